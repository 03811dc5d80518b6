//! `lanyard cancel`: end the running turn.

use lanyard_api::types::Reason;

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
The session stays and can take another prompt. A second cancel does not wait for the agent to agree.

Examples:
  lanyard cancel fix-login --reason \"wrong branch\"";

/// Cancel the turn that is running
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CancelArgs {
    #[command(flatten)]
    target: Target,
    /// Why, for the log
    #[arg(long)]
    reason: Option<String>,
}

impl CancelArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let outcome = self.target.change(context, &["cancel"], &Reason { reason: self.reason }).await?;
        let sentence = format!("{} was asked to cancel its turn; it is {}", outcome.session, outcome.state);
        context.out.receipt(&outcome, None, &sentence)
    }
}
