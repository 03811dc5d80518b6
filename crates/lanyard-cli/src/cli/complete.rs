//! `lanyard complete`: end a session as done.

use lanyard_api::types::Reason;

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  lanyard complete fix-login
  lanyard complete fix-login --reason \"merged as 3f9c2d1\"";

/// End a session as completed
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompleteArgs {
    #[command(flatten)]
    target: Target,
    /// Why, for the log
    #[arg(long)]
    reason: Option<String>,
}

impl CompleteArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let outcome = self.target.change(context, &["complete"], &Reason { reason: self.reason }).await?;
        context.out.receipt(&outcome, None, &format!("{} is {}", outcome.session, outcome.state))
    }
}
