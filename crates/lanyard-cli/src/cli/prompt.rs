//! `lanyard prompt`: the older name of `lanyard send --detach`, hidden.

use lanyard_api::types::NewTurn;

use super::target::{Target, text_or_stdin};
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Older name of `lanyard send --detach`, with --turn-id for --id.

Examples:
  lanyard prompt sess_01m7n5djg0fayvh8t5cxyjkdnf \"run the tests and fix what fails\"
  lanyard prompt fix-login - < task.md
  lanyard prompt fix-login \"go on\" --turn-id nightly-2026-11-15";

/// Start a turn and print its id
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PromptArgs {
    #[command(flatten)]
    target: Target,
    /// Message to the agent; `-` reads it from stdin
    text: String,
    /// Your own name for the turn: the same name and text again is the same turn
    #[arg(long, value_name = "NAME")]
    turn_id: Option<String>,
}

impl PromptArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let prompt = text_or_stdin(self.text)?;
        let turn = NewTurn { prompt, client_turn_id: self.turn_id, ..NewTurn::default() };
        let outcome = self.target.change(context, &["turns"], &turn).await?;
        let id = outcome.turn.map(|turn| turn.to_string());
        context.out.receipt(&outcome, id.as_deref(), "")
    }
}
