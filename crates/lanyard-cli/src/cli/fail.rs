//! `lanyard fail`: end a session as failed.

use lanyard_api::types::Reason;

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  lanyard fail fix-login --reason \"the test cannot pass without the new schema\"";

/// End a session as failed
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FailArgs {
    #[command(flatten)]
    target: Target,
    /// Why, for the log
    #[arg(long)]
    reason: Option<String>,
}

impl FailArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let outcome = self.target.change(context, &["fail"], &Reason { reason: self.reason }).await?;
        context.out.receipt(&outcome, None, &format!("{} is {}", outcome.session, outcome.state))
    }
}
