//! `lanyard replay`: fold a log again, here, and see what each event makes of the session.

use std::io::{BufRead, BufReader};
use std::path::Path;

use lanyard_client::Route;
use lanyard_core::session::{Envelope, SessionView, State};
use lanyard_core::{Session, SessionId};
use serde_json::{Value, json};

use super::printer::read;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::event::{DAMAGED, kind};
use crate::render::text::{one_line, pad};

const EXAMPLES: &str = "\
The log comes from the daemon, from a file written with `lanyard logs --json`, or from stdin (`-`).
Ends with 1 at the event where the log stops making sense.

Examples:
  lanyard replay fix-login
  lanyard replay fix-login --at 42
  lanyard logs fix-login --after 0 --json | lanyard replay -";

/// Fold a log event by event and print the state after each
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Replay {
    /// A session's id or alias, a file, or `-`
    #[arg(value_name = "ID|FILE|-")]
    log: String,
    /// Print the whole record after this event instead
    #[arg(long, value_name = "SEQ")]
    at: Option<u64>,
}

impl Replay {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let lines = lines(context, &self.log).await?;
        let mut session: Option<Session> = None;
        let mut text = String::new();
        for line in &lines {
            let step = fold(session.take(), line);
            let Ok(folded) = step else {
                context.out.data(&text)?;
                return step.map(drop);
            };
            if self.at == Some(folded.seq) {
                return context.out.json(&folded);
            }
            text.push_str(&told(context, line, &folded));
            session = Some(folded);
        }
        if let Some(at) = self.at {
            let end = session.map_or(0, |session| session.seq);
            return Err(Failure::local(
                "no_such_event",
                format!("there is no event {at}: the log ends at {end}"),
                "",
            ));
        }
        context.out.data(&text)
    }
}

/// A log's lines, from wherever it is.
async fn lines(context: &Context, log: &str) -> Result<Vec<String>, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::local("log_unreadable", format!("cannot read {log}: {error}"), "");
    let path = Path::new(log);
    let found: Vec<String> = if log == "-" {
        std::io::stdin().lock().lines().collect::<Result<_, _>>().map_err(unreadable)?
    // What reads as an id is one, whatever files lie around.
    } else if log.parse::<SessionId>().is_err() && path.is_file() {
        let file = std::fs::File::open(path).map_err(unreadable)?;
        BufReader::new(file).lines().collect::<Result<_, _>>().map_err(unreadable)?
    } else {
        let mut client = context.client().await?;
        let view: SessionView = client.get(&Route::to(&["sessions", log])).await?;
        let mut found = Vec::new();
        read(&mut client, &view.id.to_string(), 0, view.last_seq, |event| {
            found.push(event.to_owned());
            Ok(())
        })
        .await?;
        found
    };
    Ok(found.into_iter().filter(|line| !line.trim().is_empty()).collect())
}

fn fold(session: Option<Session>, line: &str) -> Result<Session, Failure> {
    let next = session.as_ref().map_or(1, |session| session.seq + 1);
    let senseless = |why: String| {
        let title = format!("the log stops making sense at event {next}: {why}");
        let advice = match next {
            1 => "give the whole log, from its first event on".to_owned(),
            _ => format!("see the last good record with --at {}", next - 1),
        };
        Failure::local("log_senseless", title, advice)
    };
    let envelope: Envelope = match serde_json::from_str(line) {
        Ok(envelope) => envelope,
        Err(error) => {
            let raw: Value = serde_json::from_str(line).unwrap_or_default();
            let damage = raw["data"]["what"].as_str().filter(|_| kind(&raw) == DAMAGED);
            return Err(senseless(
                damage.map_or_else(|| error.to_string(), |what| format!("it is damaged: {}", one_line(what))),
            ));
        }
    };
    match session {
        None => Session::born(&envelope).map_err(|error| senseless(error.to_string())),
        Some(mut session) => {
            session.apply(&envelope).map_err(|error| senseless(error.to_string()))?;
            Ok(session)
        }
    }
}

fn told(context: &Context, line: &str, session: &Session) -> String {
    let raw: Value = serde_json::from_str(line).unwrap_or_default();
    if context.out.is_json() {
        return format!("{}\n", json!({ "seq": session.seq, "type": raw["type"], "state": session.state }));
    }
    let cause = match session.state {
        State::Interrupted { cause } => format!(" ({})", cause.as_str()),
        State::Beginning
        | State::Custom
        | State::Executing
        | State::BetweenTurn
        | State::Compacted
        | State::Idle
        | State::Stale
        | State::Completed
        | State::Failed
        | State::Stopped => String::new(),
    };
    let stop = session
        .stop
        .as_ref()
        .map(|stop| format!(", stop level {}", u8::from(stop.level)))
        .unwrap_or_default();
    format!("{:>5}  {}  {}{cause}{stop}\n", session.seq, pad(&kind(&raw), 22), session.state.name())
}
