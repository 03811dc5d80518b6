//! `lanyard guide`: say something to a running agent, and say which channel carries it.

use std::time::Duration;

use lanyard_api::types::{GuidanceList, NewGuidance};
use lanyard_client::Route;
use lanyard_core::session::{Note, NoteStatus};
use lanyard_core::{NoteId, Outcome, SessionId};

use super::session_watch::SessionWatch;
use super::target::{Target, words_or_stdin};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::render::text::one_line;
use crate::render::time::stamp;

/// How long a note is waited for when nothing else is said.
const TIMEOUT_S_DEFAULT: u64 = 60;
/// The note is pending: its outcome is not known yet.
const STILL_PENDING: u8 = Exit::Pending as u8;

const EXAMPLES: &str = "\
Names the channel that will carry the guidance: `steer` (into the running turn), `hook` (with the
next tool call or prompt), `mcp` (with the answer to the next call of an MCP tool), `prompt` (with the
next prompt) or `none`. Where no channel reaches the running turn, it names the command that installs
one. Guidance waits until the agent can take it. `lanyard guidance` shows its status and
withdraws it.

Examples:
  lanyard guide fix-login \"use the staging key, not the live one\"
  lanyard guide fix-login --wait \"look at the tests first\"
  lanyard guide fix-login - < notes.md
  lanyard guidance fix-login

Exit codes with --wait: 0 the agent has read it, 1 withdrawn or expired, 4 not within --timeout";

/// Say something to a running agent and print the note's id
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Guide {
    #[command(flatten)]
    target: Target,
    /// What the agent should know, quoted or not; `-` reads it from stdin
    #[arg(required = true)]
    text: Vec<String>,
    /// Wait until the agent has read it, and print when it was delivered
    #[arg(long)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT_S_DEFAULT, requires = "wait")]
    timeout: u64,
}

impl Guide {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let guidance = NewGuidance { text: words_or_stdin(&self.text)? };
        let outcome = self.target.change(context, &["guidance"], &guidance).await?;
        let id = outcome.note.map(|note| note.to_string());
        context.out.receipt(&outcome, id.as_deref(), &carried(&outcome))?;
        let (Some(note), true) = (outcome.note, self.wait) else { return Ok(()) };
        let wait = Duration::from_secs(self.timeout);
        if let Ok(settled) = tokio::time::timeout(wait, settled(context, outcome.session, note)).await {
            return settled;
        }
        context.out.note(&format!(
            "not acknowledged after {} s; `lanyard guidance` tells what became of it",
            self.timeout
        ));
        Err(Failure::Ended(STILL_PENDING))
    }
}

/// The channel that will carry the words, and what to do where none reaches the running turn.
fn carried(outcome: &Outcome) -> String {
    let Some(planned) = &outcome.delivery else { return String::new() };
    match &planned.advice {
        Some(advice) => format!("{}\n{advice}", planned.when),
        None => planned.when.clone(),
    }
}

/// Prints each step of the note, until nothing more comes of it.
async fn settled(context: &Context, session: SessionId, note: NoteId) -> Result<(), Failure> {
    let again = format!("lanyard guidance {session}");
    let mut watch = SessionWatch::open(context, &mut context.client().await?, session, again).await?;
    let route = Route::to(&["sessions", &session.to_string(), "guidance"]);
    let mut delivered = false;
    loop {
        let list: GuidanceList = context.client().await?.get(&route).await?;
        let held = list.waiting.iter().chain(&list.settled).find(|held| held.id == note);
        if let Some(line) = held.filter(|_| !delivered).and_then(delivery) {
            delivered = true;
            context.out.note(&line);
        }
        match held.map(|held| held.status) {
            Some(NoteStatus::Acknowledged) => {
                context.out.note("acknowledged: a later call of the agent came");
                return Ok(());
            }
            Some(NoteStatus::Withdrawn) => {
                context.out.note("withdrawn before the agent had it");
                return Err(Failure::Shown);
            }
            Some(NoteStatus::Expired) => {
                context.out.note("expired: no channel could carry it in time");
                return Err(Failure::Shown);
            }
            Some(NoteStatus::Undelivered) => {
                context.out.note("not delivered: the session ended before the agent had it");
                return Err(Failure::Shown);
            }
            // Settled notes leave the list at last.
            None if delivered => return Ok(()),
            Some(NoteStatus::Pending | NoteStatus::Delivered) | None => {}
        }
        watch.changed().await?;
    }
}

fn delivery(note: &Note) -> Option<String> {
    let delivery = note.delivery.as_ref()?;
    let call = delivery.call.as_deref().map(|call| format!(", call {}", one_line(call))).unwrap_or_default();
    Some(format!("delivered at {} through {}{call}", stamp(delivery.at), one_line(&delivery.channel)))
}
