//! `lanyard send`: a further turn in a session, watched to its end.

use lanyard_daemon::api::types::NewTurn;

use super::target::{Target, text_or_stdin};
use super::watch::{EXIT_CODES, Watched, watch};
use crate::context::Context;
use crate::failure::Failure;

const ABOUT: &str = "\
Shows the turn as `lanyard run` does. An agent whose process is gone takes the conversation up
again by itself, and says how. `lanyard prompt` starts a turn without watching it.

Examples:
  lanyard send ses_4f2a \"now the other test\"
  lanyard send ses_4f2a - < task.md
  lanyard send ses_4f2a --detach \"go on\"

";

/// Give a session's agent something further to do, and watch it
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{ABOUT}{EXIT_CODES}"))]
pub(super) struct Send {
    #[command(flatten)]
    target: Target,
    /// What the agent is told; `-` reads it from stdin
    prompt: String,
    /// Do not wait: print the turn's id
    #[arg(long, short)]
    detach: bool,
}

impl Send {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let prompt = text_or_stdin(self.prompt)?;
        send(context, &self.target, prompt, self.detach).await
    }
}

/// Starts a turn, and watches it unless told otherwise.
pub(super) async fn send(
    context: &Context,
    target: &Target,
    prompt: String,
    detach: bool,
) -> Result<(), Failure> {
    let turn = NewTurn { prompt, client_turn_id: None };
    let started = target.change(context, &["turns"], &turn).await?;
    match started.turn {
        Some(turn) if !detach => {
            let after = started.seq.saturating_sub(u64::from(started.events));
            watch(context, Watched { session: started.session, turn, after }).await
        }
        turn => context.out.receipt(&started, turn.map(|turn| turn.to_string()).as_deref(), ""),
    }
}
