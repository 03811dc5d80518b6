//! `lanyard completions`: the script that makes a shell ask for completions.

use clap_complete::Shell;
use clap_complete::env::Shells;

use super::completion::VARIABLE;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
The script asks `lanyard` itself while you type, so names of sessions, turns, tasks, plans, flows,
approvals and agents complete too, and settings with their values. Without a daemon only commands,
options and settings do.

Examples:
  echo 'source <(lanyard completions bash)' >> ~/.bashrc
  echo 'source <(lanyard completions zsh)' >> ~/.zshrc
  lanyard completions fish > ~/.config/fish/completions/lanyard.fish";

/// Print the script for completions in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Completions {
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let unwritable = |why: String| Failure::local("output_failed", why, "");
        let shells = Shells::builtins();
        let shell = shells
            .completer(&self.shell.to_string())
            .ok_or_else(|| unwritable(format!("there is no script for {}", self.shell)))?;
        let mut script = Vec::new();
        shell
            .write_registration(VARIABLE, "lanyard", "lanyard", "lanyard", &mut script)
            .map_err(|error| unwritable(error.to_string()))?;
        context.out.data(String::from_utf8_lossy(&script).trim_start())
    }
}
