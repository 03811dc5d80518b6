//! `lanyard guide`: say something to a running agent.

use lanyard_core::Outcome;
use lanyard_daemon::api::types::NewGuidance;

use super::target::{Target, text_or_stdin};
use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
The words wait until the agent can take them, and are never lost; `lanyard show` tells which still wait.

Examples:
  lanyard guide ses_4f2a \"use the staging key, not the live one\"
  lanyard guide ses_4f2a --withdraw note_01m7n5djg0fayvh8t5cxyjkdnf";

/// Say something to a running agent and print the note's id
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Guide {
    #[command(flatten)]
    target: Target,
    /// What the agent should know; `-` reads it from stdin
    #[arg(required_unless_present = "withdraw")]
    text: Option<String>,
    /// Take a note back that the agent has not got yet
    #[arg(long, value_name = "NOTE", conflicts_with = "text")]
    withdraw: Option<String>,
}

impl Guide {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        if let Some(note) = self.withdraw {
            let route = self.target.route(&["guidance", &note]);
            let outcome: Outcome = context.client().await?.delete(&route, &serde_json::json!({})).await?;
            return context.out.receipt(&outcome, None, &format!("{note} was taken back"));
        }
        let guidance = NewGuidance { text: text_or_stdin(self.text.unwrap_or_default())? };
        let outcome = self.target.change(context, &["guidance"], &guidance).await?;
        let id = outcome.note.map(|note| note.to_string());
        context.out.receipt(&outcome, id.as_deref(), "")
    }
}
