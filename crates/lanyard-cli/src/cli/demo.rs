//! `lanyard demo`: a session with the built-in agent, which needs no account.

use clap::{Args, FromArgMatches};
use lanyard_api::config::DEMO;

use super::run::RunArgs;
use super::target::new_name;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
The built-in agent plays a small piece of work in this folder: it plans, uses tools, waits for one approval, and
changes nothing. It runs only when it is named: here, or with `--agent demo`.

Examples:
  lanyard demo
  lanyard demo --detach";

/// Watch the built-in demo agent work; no account needed
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Demo {
    /// Message to the agent; it also takes the steps of docs/scripted-agent.md
    #[arg(default_value = "show me around")]
    prompt: Vec<String>,
    /// A name for it, accepted wherever an id is
    #[arg(long, value_parser = new_name)]
    name: Option<String>,
    /// Do not wait: print the session's id
    #[arg(long, short)]
    detach: bool,
}

impl Demo {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut words = vec!["run", "--agent", DEMO];
        words.extend(self.detach.then_some("--detach"));
        words.extend(self.name.iter().flat_map(|name| ["--name", name]));
        words.push("--");
        words.extend(self.prompt.iter().map(String::as_str));
        // A shorthand for `run`, and so read by it.
        let read = RunArgs::augment_args(clap::Command::new("run")).try_get_matches_from(words);
        let run = read.and_then(|matches| RunArgs::from_arg_matches(&matches));
        run.map_err(|error| Failure::usage(error.to_string(), "see `lanyard demo --help`"))?
            .run(context)
            .await
    }
}
