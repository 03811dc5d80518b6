//! `lanyard guide`: say something to a running agent.

use lanyard_core::session::StateName;
use lanyard_daemon::api::types::NewGuidance;

use super::target::{Target, text_or_stdin};
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
The words wait until the agent can take them, and are never lost: they stand in front of the answer
to its next tool call, or go with its next prompt. `lanyard guidance` tells what became of them, and
takes them back.

Examples:
  lanyard guide ses_4f2a \"use the staging key, not the live one\"
  lanyard guide ses_4f2a - < notes.md
  lanyard guidance ses_4f2a";

/// Say something to a running agent and print the note's id
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Guide {
    #[command(flatten)]
    target: Target,
    /// What the agent should know; `-` reads it from stdin
    text: String,
}

impl Guide {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let guidance = NewGuidance { text: text_or_stdin(self.text)? };
        let outcome = self.target.change(context, &["guidance"], &guidance).await?;
        let id = outcome.note.map(|note| note.to_string());
        let carrier = if outcome.state == StateName::Executing {
            "it goes in front of the answer to the agent's next tool call"
        } else {
            "it goes with the agent's next prompt or tool call"
        };
        context.out.receipt(&outcome, id.as_deref(), carrier)
    }
}
