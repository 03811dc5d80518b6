//! `lanyard compact`: have an agent compact its context.

use lanyard_api::types::Reason;

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
The agent does it in its own way and says when it is done: `context.compacted` in the log, with the sizes before and
after. Agents that cannot be asked say so.

Examples:
  lanyard compact fix-login";

/// Have a session's agent compact its context
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Compact {
    #[command(flatten)]
    target: Target,
}

impl Compact {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let outcome = self.target.change(context, &["compact"], &Reason::default()).await?;
        context.out.receipt(&outcome, None, &format!("{} is compacting", outcome.session))
    }
}
