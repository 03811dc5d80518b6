//! `lanyard stop`: ask a session to end, insist, or take it back.

use lanyard_core::Outcome;
use lanyard_core::session::StopLevel;
use lanyard_daemon::api::types::Reason;

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::event::stop_level;

const EXAMPLES: &str = "\
The first stop is graceful (level 1). Each further one raises it: immediate (2), terminated (3).
The session is stopped once its work has really ended; level 3 cannot be taken back.

Examples:
  lanyard stop ses_4f2a --reason \"wrong approach\"
  lanyard stop ses_4f2a
  lanyard stop ses_4f2a --withdraw";

/// Ask a session to end; again to insist
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Stop {
    #[command(flatten)]
    target: Target,
    /// Why, for the agent and the log
    #[arg(long)]
    reason: Option<String>,
    /// Take the stop back
    #[arg(long)]
    withdraw: bool,
}

impl Stop {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let verb: &[&str] = if self.withdraw { &["stop", "withdraw"] } else { &["stop"] };
        let outcome = self.target.change(context, verb, &Reason { reason: self.reason }).await?;
        let sentence = if self.withdraw {
            format!("the stop of {} was taken back; it is {}", outcome.session, outcome.state)
        } else {
            how_far(&outcome)
        };
        context.out.receipt(&outcome, None, &sentence)
    }
}

fn how_far(outcome: &Outcome) -> String {
    let level = outcome.stop_level.and_then(|level| StopLevel::try_from(level).ok());
    match level {
        _ if outcome.state.is_ended() => format!("{} is {}", outcome.session, outcome.state),
        Some(level) => {
            format!("{} is asked to stop, {}; it is {}", outcome.session, stop_level(level), outcome.state)
        }
        None => format!("{} is asked to stop; it is {}", outcome.session, outcome.state),
    }
}
