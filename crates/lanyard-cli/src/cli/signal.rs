//! `lanyard signal`: report what was seen of a session's work.

use lanyard_core::session::Signal as Seen;

use super::target::{Target, text_or_stdin};
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
For agents, harnesses and tests that report by themselves what an agent did.

Examples:
  lanyard signal fix-login '{\"type\": \"said\", \"role\": \"agent\", \"text\": \"done\"}'
  lanyard signal fix-login '{\"type\": \"turn_finished\", \"outcome\": \"completed\"}'
  lanyard signal fix-login '{\"type\": \"work_ended\", \"channel\": \"process exit\"}'";

/// Report what was seen of a session's work
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SignalArgs {
    #[command(flatten)]
    target: Target,
    /// The signal; `-` reads it from stdin
    #[arg(value_name = "JSON")]
    signal: String,
}

impl SignalArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let text = text_or_stdin(self.signal)?;
        let seen: Seen = serde_json::from_str(&text).map_err(|error| {
            Failure::usage(
                format!("this is not a signal: {error}"),
                "see examples with `lanyard signal --help`",
            )
        })?;
        let outcome = self.target.change(context, &["signals"], &seen).await?;
        context.out.receipt(&outcome, None, &format!("{} is {}", outcome.session, outcome.state))
    }
}
