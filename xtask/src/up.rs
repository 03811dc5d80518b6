//! `cargo xtask up`: from a fresh checkout to a running daemon, and what to type next.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{artifact, process, web};

#[derive(Debug, clap::Args)]
pub(crate) struct UpArgs {
    /// Build the dev profile: quicker to build, slower to run
    #[arg(long)]
    debug: bool,
    /// Further arguments for `lanyard up`
    #[arg(last = true, value_name = "ARGS")]
    rest: Vec<OsString>,
}

pub(crate) fn run(args: &UpArgs) -> Result<()> {
    let has_dashboard = web::build_if_possible();
    let binary = build(args.debug, has_dashboard)?;
    // Started where the user stands, not at the root: relative paths in ARGS are theirs.
    let mut command = Command::new(&binary);
    command.args(["up", "--detach"]).args(&args.rest);
    if args.debug && has_dashboard {
        // A debug build carries no pages.
        command.env("LANYARD_DASHBOARD_DIR", web::dist());
    }
    process::run(&mut command)?;
    let name = if is_on_path(&binary, env::var_os("PATH")) {
        "lanyard".to_owned()
    } else {
        quoted(&binary.to_string_lossy())
    };
    let at_work = start_demo(&binary, &args.rest)?;
    println!("\n{}", next_steps(&name, at_work));
    Ok(())
}

/// On a daemon without a session the built-in agent shows what one looks like. It reads files here and changes none.
/// Answers whether it was started.
fn start_demo(binary: &Path, rest: &[OsString]) -> Result<bool> {
    // Where the data is concerns this too; other options of `up` are not known to it.
    let place: Vec<&OsString> =
        rest.windows(2).filter(|pair| pair[0] == "--data-dir" || pair[0] == "--config").flatten().collect();
    let listed = process::read(Command::new(binary).args(&place).args(["ls", "--json"]))?;
    let sessions: serde_json::Value = serde_json::from_str(&listed).unwrap_or_default();
    if sessions["items"].as_array().is_none_or(|sessions| !sessions.is_empty()) {
        return Ok(false);
    }
    let words = "Look around in this folder with two helpers and tell me what it is.";
    let mut demo = Command::new(binary);
    demo.args(&place).args(["run", "--agent", "demo", "--title", "demo", "--detach", words]);
    process::run(&mut demo)?;
    Ok(true)
}

fn next_steps(name: &str, at_work: bool) -> String {
    let demo = if at_work { "A demo agent is at work. " } else { "" };
    format!(
        "{demo}Try next:\n  \
         {name} open                   # all of it in a browser\n  \
         {name} tree ID                # the hub and its two helpers\n  \
         {name} log -f ID              # watch it\n  \
         {name} approvals              # one of them waits for approval; `{name} answer ID allow`\n  \
         {name} run \"what you want\"   # your own agent: `{name} init`, `{name} agents`\n  \
         {name} down                   # agents go on without it"
    )
}

/// Builds the daemon and returns where cargo put it. Cargo is asked rather than guessed: the
/// target directory, the profile and a configured target triple all have a say in it.
pub(crate) fn build(debug: bool, has_dashboard: bool) -> Result<PathBuf> {
    let messages = artifact::build(if debug { "dev" } else { "release" }, has_dashboard)?;
    artifact::program("lanyard", &messages).context("cargo built no program called `lanyard`")
}

/// Whether typing the bare name would start exactly this file, and not some other build of it.
fn is_on_path(binary: &Path, path: Option<OsString>) -> bool {
    let (Some(path), Some(name)) = (path, binary.file_name()) else {
        return false;
    };
    let first = env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    match (first.map(|file| file.canonicalize()), binary.canonicalize()) {
        (Some(Ok(found)), Ok(built)) => found == built,
        _ => false,
    }
}

/// A path as a shell reads it back.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_file_counts_as_being_on_the_path() {
        let me = env::current_exe().unwrap();
        let folder = me.parent().map(|folder| folder.as_os_str().to_owned());
        assert!(is_on_path(&me, folder));
        assert!(!is_on_path(&me, Some("/nowhere".into())));
        assert!(!is_on_path(&me, None));
    }

    #[test]
    fn a_path_with_a_space_is_quoted() {
        assert_eq!(quoted("/a/b-1.0/lanyard"), "/a/b-1.0/lanyard");
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
