//! `lanyard down`: end the daemon.

use std::time::Duration;

use lanyard_core::session::OperatorState;
use serde_json::json;

use crate::context::{Context, daemon_status};
use crate::failure::Failure;
use crate::launch::is_free;
use crate::render::text::count;

/// How long the daemon may take to count what runs. It is ended all the same.
const COUNT_WAIT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);
const POLLS_MAX: u32 = 500;

const EXAMPLES: &str = "\
Sessions stay where they are. Agents at work keep running, and the next daemon takes them over;
`lanyard halt` stops them.

Examples:
  lanyard down
  lanyard down && lanyard up --detach";

/// End the daemon and wait until it is gone
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Down {}

impl Down {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        let left = LeftBehind::count(context).await;
        let ended = end(context).await?;
        if context.out.is_json() {
            let LeftBehind { working, waiting } = left;
            return context.out.json(&json!({ "running": false, "working": working, "waiting": waiting }));
        }
        context.out.note(&if ended { left.sentence() } else { "no daemon is running".to_owned() });
        Ok(())
    }
}

/// Sessions that a daemon leaves to the next one.
#[derive(Debug, Default)]
struct LeftBehind {
    /// A turn is running.
    working: u64,
    /// An approval is open, or something else waits for a person.
    waiting: u64,
}

impl LeftBehind {
    /// Zero of a daemon that does not answer.
    async fn count(context: &Context) -> Self {
        let asked = async {
            let mut client = context.client_if_running().await.ok()??;
            daemon_status(&mut client).await.ok()
        };
        let Ok(Some(status)) = tokio::time::timeout(COUNT_WAIT, asked).await else { return Self::default() };
        let of = |state| {
            let found = status.operator_states.iter().find(|count| count.operator_state == state);
            found.map_or(0, |count| count.sessions)
        };
        Self { working: of(OperatorState::Working), waiting: of(OperatorState::NeedsAnswer) }
    }

    fn sentence(&self) -> String {
        let sessions = |number: u64| count(number, "session");
        let left = match (self.working, self.waiting) {
            (0, 0) => return "the daemon has ended".to_owned(),
            (working, 0) => format!("{} at work", sessions(working)),
            (0, waiting) => format!("{} waiting for you", sessions(waiting)),
            (working, waiting) => format!("{} at work and {waiting} waiting for you", sessions(working)),
        };
        format!(
            "the daemon has ended; the agents of {left} keep running, and `lanyard up --detach` takes them over"
        )
    }
}

/// Ends the daemon and waits until it is gone. Answers whether there was one.
pub(super) async fn end(context: &Context) -> Result<bool, Failure> {
    let mut pid = None;
    match context.client_if_running().await? {
        Some(client) => {
            pid = context.home.running().ok().flatten().map(|running| running.pid);
            client.shut_down().await?;
        }
        None if is_free(&context.home)? => return Ok(false),
        // It holds the folder and does not listen: it is just starting, or just ending.
        None => {}
    }
    for _ in 0..POLLS_MAX {
        if is_free(&context.home)? {
            return Ok(true);
        }
        tokio::time::sleep(POLL).await;
    }
    let who = pid.map_or_else(String::new, |pid| format!(" (pid {pid})"));
    let end = pid.map_or_else(|| "`lanyard doctor`".to_owned(), |pid| format!("`kill {pid}`"));
    let title = format!("the daemon{who} was asked to end and has not within 10 s");
    Err(Failure::local(
        "daemon_lingers",
        title,
        format!("look at {}, then {end}", context.home.log().display()),
    ))
}
