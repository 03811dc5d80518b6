//! `lanyard completions`: for the shell.

use clap_complete::Shell;

use super::help;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  lanyard completions bash > ~/.local/share/bash-completion/completions/lanyard
  lanyard completions zsh > ~/.zfunc/_lanyard
  lanyard completions fish > ~/.config/fish/completions/lanyard.fish";

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Completions {
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut help::command(), "lanyard", &mut script);
        context.out.data(&String::from_utf8_lossy(&script))
    }
}
