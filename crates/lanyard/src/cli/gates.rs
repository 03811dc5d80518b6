//! `lanyard gates`: the questions that wait for an answer.

use clap::builder::NonEmptyStringValueParser;
use lanyard_core::session::GateStatus;
use lanyard_daemon::api::types::{GateEntry, GateList};

use crate::client::Route;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::table::{Column, table};
use crate::render::text::one_line;
use crate::render::time::ago;

const COLUMNS: [Column; 7] = [
    Column::whole("GATE"),
    Column::whole("SESSION"),
    Column::elastic("AGENT", 5),
    Column::whole("ASKED"),
    Column::whole("STATUS"),
    Column::elastic("OPTIONS", 10),
    Column::elastic("QUESTION", 20),
];

const EXAMPLES: &str = "\
An agent that asks for permission waits until somebody answers, however long that takes and
whether or not the daemon is restarted meanwhile. Of one session, settled ones are shown too.

Examples:
  lanyard gates
  lanyard gates ses_4f2a
  lanyard answer gate_01m7n5djg0fayvh8t5cxyjkdnf allow";

/// List what agents ask and wait for
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Gates {
    /// Of this session only: its id or one of its aliases
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    session: Option<String>,
}

impl Gates {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let route = match &self.session {
            Some(session) => Route::to(&["sessions", session, "gates"]),
            None => Route::to(&["gates"]),
        };
        let mut client = context.client().await?;
        let list: GateList = client.get(&route).await?;
        if context.out.is_json() {
            return context.out.json(&list.gates);
        }
        if list.truncated {
            context.out.warn("more sessions are at work than could be looked at");
        }
        if list.gates.is_empty() {
            context.out.note("nobody asks anything");
            return Ok(());
        }
        let now = daemon_now(&mut client).await?;
        let cells: Vec<Vec<String>> = list
            .gates
            .iter()
            .map(|entry| {
                let options: Vec<String> =
                    entry.gate.question.options.iter().map(|option| one_line(&option.id)).collect();
                vec![
                    entry.gate.id.to_string(),
                    if self.session.is_some() { String::new() } else { entry.session.to_string() },
                    entry.agent.as_deref().map(one_line).unwrap_or_default(),
                    ago(now, entry.gate.opened_at),
                    if self.session.is_some() { status(entry) } else { String::new() },
                    options.join(", "),
                    one_line(&entry.gate.question.title),
                ]
            })
            .collect();
        context.out.data(&table(&COLUMNS, &cells, context.out.columns))
    }
}

fn status(entry: &GateEntry) -> String {
    match &entry.gate.status {
        GateStatus::Open => "waits".to_owned(),
        GateStatus::Answered { option, by, .. } => format!("{} by {}", one_line(option), one_line(&by.name)),
        GateStatus::Withdrawn { .. } => "withdrawn".to_owned(),
    }
}
