//! `lanyard schema`: the API or the command line as a document. Hidden: for programs that build clients and docs.

use serde::Serialize;

use super::help;
use crate::context::Context;
use crate::failure::Failure;
use crate::host::DaemonHost;

/// Print the API as an `OpenAPI` document
#[derive(Debug, clap::Args)]
pub(super) struct Schema {
    /// Print the commands and their help instead
    #[arg(long)]
    commands: bool,
}

impl Schema {
    pub(super) fn run(self, context: &Context, host: &DaemonHost) -> Result<(), Failure> {
        if self.commands {
            return context.out.list(&commands(), None);
        }
        context.out.json(&(host.openapi)())
    }
}

/// One command of the reference.
#[derive(Debug, Serialize)]
struct CommandPage {
    /// As it is typed, without `lanyard`: `plan import`.
    name: String,
    about: String,
    help: String,
}

/// Every command that the help lists, each with its subcommands after it.
fn commands() -> Vec<CommandPage> {
    let mut root = help::command();
    root.build();
    let mut pages = Vec::new();
    for command in root.get_subcommands_mut() {
        collect(command, "", &mut pages);
    }
    pages
}

fn collect(command: &mut clap::Command, above: &str, pages: &mut Vec<CommandPage>) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{above}{}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    pages.push(CommandPage { name: name.clone(), about, help: command.render_long_help().to_string() });
    for below in command.get_subcommands_mut() {
        collect(below, &format!("{name} "), pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_has_commands_and_their_subcommands_but_no_hidden_ones() {
        let names: Vec<String> = commands().into_iter().map(|page| page.name).collect();
        for known in ["run", "plan", "plan import", "task add"] {
            assert!(names.iter().any(|name| name == known), "{known} is missing: {names:?}");
        }
        assert!(!names.iter().any(|name| name == "schema" || name.ends_with("help")), "{names:?}");
    }
}
