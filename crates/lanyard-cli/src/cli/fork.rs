//! `lanyard fork`: go on from a place in another session's log.

use lanyard_api::types::NewFork;

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
The first session stays as it is, ended or not. `lanyard logs` shows the positions.

Examples:
  lanyard fork fix-login
  lanyard fork fix-login --at 42 --title \"the other approach\"";

/// Make a session that goes on from another's log, and print its id
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ForkArgs {
    #[command(flatten)]
    target: Target,
    /// The position in the log to go on from [default: its end]
    #[arg(long, value_name = "SEQ")]
    at: Option<u64>,
    /// What people see the new one under [default: the same]
    #[arg(long)]
    title: Option<String>,
}

impl ForkArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let fork = NewFork { at: self.at, title: self.title };
        let outcome = self.target.change(context, &["fork"], &fork).await?;
        context.out.receipt(&outcome, Some(&outcome.session.to_string()), "")
    }
}
