//! `lanyard migrate`: put a session into other hands.

use lanyard_api::types::Migration;
use lanyard_core::WorkerId;
use lanyard_core::session::Continuity;

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
A new owner can take over at any time; a new agent or worker only between turns. Another agent
gets the conversation: by its own load where it shares it (`native`), else the transcript
(`replayed`) or a summary (`preamble`) goes with its first prompt. The output says which.

Examples:
  lanyard migrate fix-login --owner mira --reason \"end of my shift\"
  lanyard migrate fix-login --agent reviewer --reason \"ready for review\"";

const USAGE: &str = "lanyard migrate [OPTIONS] --reason <REASON> <ID>";

/// Hand a session over to another agent, worker or owner
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[group(id = "hands", required = true, multiple = true, args = ["agent", "worker", "owner"])]
pub(super) struct Migrate {
    #[command(flatten)]
    target: Target,
    /// The agent that goes on; at least one of these three
    #[arg(long)]
    agent: Option<String>,
    /// The worker that goes on
    #[arg(long)]
    worker: Option<WorkerId>,
    /// The owner from here on
    #[arg(long)]
    owner: Option<String>,
    /// Why, for the log and the next agent
    #[arg(long)]
    reason: String,
}

impl Migrate {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self { target, agent, worker, owner, reason } = self;
        let outcome =
            target.change(context, &["migrate"], &Migration { agent, worker, owner, reason }).await?;
        let how = outcome.continuity.map(|how| format!(", continuity {}: {}", how.as_str(), told(how)));
        let sentence = format!("{} was handed over{}", outcome.session, how.unwrap_or_default());
        context.out.receipt(&outcome, None, &sentence)
    }
}

/// What the next agent knows of the conversation.
const fn told(how: Continuity) -> &'static str {
    match how {
        Continuity::Exact => "the same process goes on",
        Continuity::Native => "the agent loads it by its own id",
        Continuity::Replayed => "the agent gets the transcript with its first prompt",
        Continuity::Preamble => "the agent gets a summary with its first prompt",
        Continuity::Lost => "the agent knows nothing of it",
    }
}
