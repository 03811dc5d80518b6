//! `lanyard unstop`: take a stop back.

use lanyard_api::types::Reason;

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
A stop can be taken back before it reaches level 3 (terminated).

Examples:
  lanyard unstop fix-login
  lanyard unstop fix-login --reason \"it was the right branch after all\"";

/// Take a stop back
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Unstop {
    #[command(flatten)]
    target: Target,
    /// Why, for the log
    #[arg(long)]
    reason: Option<String>,
}

impl Unstop {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let body = Reason { reason: self.reason };
        let outcome = self.target.change(context, &["stop", "withdraw"], &body).await?;
        let sentence = format!("the stop of {} was taken back; it is {}", outcome.session, outcome.state);
        context.out.receipt(&outcome, None, &sentence)
    }
}
