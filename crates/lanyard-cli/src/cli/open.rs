//! `lanyard open`: the dashboard, in a browser.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use lanyard_api::types::{NewSignInLink, SignInLink, SignInRole};
use lanyard_client::Route;

use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Prints a link that signs one browser in: once, and within ten minutes. On a machine with a screen
it is opened there; elsewhere, carry it over: `ssh -L 7717:127.0.0.1:7717 HOST` brings the port.
A browser stays signed in for 30 days; `lanyard token ls` shows it and `lanyard token rm` ends it.

Examples:
  lanyard open
  lanyard open --print
  lanyard open --observer --name \"wall screen\"";

/// What opens an address where there is a desktop.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
/// What says that there is one to open it on.
const SIGNS: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];

/// Open the dashboard in a browser
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct OpenArgs {
    /// A browser that may look and not touch
    #[arg(long)]
    observer: bool,
    /// Whose browser it is, as lists and logs show it [default: browser]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only print the link
    #[arg(long)]
    print: bool,
}

impl OpenArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let role = if self.observer { SignInRole::Observer } else { SignInRole::Operator };
        let asked = NewSignInLink { role, name: self.name };
        let link = link(&mut context.client().await?, &asked).await?;
        if context.out.is_json() {
            return context.out.json(&link);
        }
        let opener = if self.print { None } else { opener() };
        let is_opened = opener.is_some_and(|opener| is_started(&opener, &link.url));
        context.out.note(if is_opened {
            "the dashboard opens in your browser; this link does the same, if it does not:"
        } else {
            "open this link in a browser, once, within ten minutes:"
        });
        context.out.data(&link.url)
    }
}

/// A link that signs a browser in.
pub(super) async fn link(client: &mut Client<'_>, asked: &NewSignInLink) -> Result<SignInLink, Failure> {
    client.post(&Route::to(&["sign-in", "links"]), asked).await
}

/// The program that opens an address, where there is a desktop.
fn opener() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if !std::io::stdout().is_terminal() {
        return None;
    }
    if !cfg!(target_os = "macos") && !SIGNS.iter().any(|sign| named(sign).is_some()) {
        return None;
    }
    found(&named("PATH")?)
}

fn found(path: &OsString) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(OPENER)).find(|place| place.is_file())
}

/// Not waited for: some of them stay for as long as the browser does.
fn is_started(opener: &PathBuf, url: &str) -> bool {
    let quiet = |command: &mut Command| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
    };
    quiet(Command::new(opener).arg(url))
}
