//! `lanyard reset`: start the conversation over.

use lanyard_api::types::Reason;

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
A new conversation starts under the same id; the log keeps the old one.

Examples:
  lanyard reset fix-login --reason \"the context was poisoned\"";

/// Start a session's conversation over
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Reset {
    #[command(flatten)]
    target: Target,
    /// Why, for the log
    #[arg(long)]
    reason: Option<String>,
}

impl Reset {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let outcome = self.target.change(context, &["reset"], &Reason { reason: self.reason }).await?;
        context.out.receipt(&outcome, None, &format!("{} starts over", outcome.session))
    }
}
