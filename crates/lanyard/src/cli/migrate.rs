//! `lanyard migrate`: put a session into other hands.

use lanyard_core::WorkerId;
use lanyard_daemon::api::types::Migration;

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
A new owner can take over at any time; a new agent or worker only between turns.

Examples:
  lanyard migrate ses_4f2a --owner mira --reason \"end of my shift\"
  lanyard migrate ses_4f2a --agent reviewer --reason \"ready for review\"";

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
    /// Why, for the log and for whoever takes over
    #[arg(long)]
    reason: String,
}

impl Migrate {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self { target, agent, worker, owner, reason } = self;
        let outcome =
            target.change(context, &["migrate"], &Migration { agent, worker, owner, reason }).await?;
        context.out.receipt(&outcome, None, &format!("{} was handed over", outcome.session))
    }
}
