//! `lanyard checkpoint`: mark a place to come back to.

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Turns and risky tools make checkpoints by themselves. `lanyard fork --at` goes on from one. In a
git repository the workspace is kept with it: `lanyard checkpoints` lists what can be gone back to.

Examples:
  lanyard checkpoint fix-login";

/// Mark the current place in a session's log, and keep its workspace
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckpointArgs {
    #[command(flatten)]
    target: Target,
}

impl CheckpointArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let outcome = self.target.change(context, &["checkpoints"], &serde_json::json!({})).await?;
        // The checkpoint's own event comes right after the position it names.
        let sentence = format!("{} has a checkpoint at {}", outcome.session, outcome.seq.saturating_sub(1));
        context.out.receipt(&outcome, None, &sentence)
    }
}
