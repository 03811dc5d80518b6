//! `lanyard guidance`: what became of the words sent to an agent.

use lanyard_api::types::GuidanceList;
use lanyard_core::Outcome;
use lanyard_core::session::Note;

use super::target::Target;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::table::{Column, table};
use crate::render::text::one_line;
use crate::render::time::ago;

const EXAMPLES: &str = "\
A note is pending until it goes out, delivered when it stood in an answer, acknowledged when a later
call shows that the agent went on from there; or it expired, or was withdrawn.

Examples:
  lanyard guidance fix-login
  lanyard guidance fix-login --json | jq '.items[].status'
  lanyard guidance fix-login --withdraw note_01m7n5djg0fayvh8t5cxyjkdnf";

const COLUMNS: [Column; 6] = [
    Column::whole("NOTE"),
    Column::whole("STATUS"),
    Column::whole("SENT"),
    Column::elastic("FROM", 5),
    Column::elastic("DELIVERED", 10),
    Column::elastic("TEXT", 20),
];

/// List guidance sent to an agent, with its status
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Guidance {
    #[command(flatten)]
    target: Target,
    /// Take a note back that the agent has not got yet
    #[arg(long, value_name = "NOTE")]
    withdraw: Option<String>,
}

impl Guidance {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        if let Some(note) = self.withdraw {
            let route = self.target.route(&["guidance", &note]);
            let outcome: Outcome = client.delete(&route, &serde_json::json!({})).await?;
            return context.out.receipt(&outcome, None, &format!("{note} was taken back"));
        }
        let list: GuidanceList = client.get(&self.target.route(&["guidance"])).await?;
        if context.out.is_json() {
            let notes: Vec<&Note> = list.waiting.iter().chain(&list.settled).collect();
            return context.out.list(&notes, None);
        }
        if list.waiting.is_empty() && list.settled.is_empty() {
            context.out.note("no guidance was sent; `lanyard guide` sends some");
            return Ok(());
        }
        let now = daemon_now(&mut client).await?;
        let cell = |note: &Note| {
            vec![
                note.id.to_string(),
                status(note),
                ago(now, note.queued_at),
                one_line(&note.by.name),
                delivery(note),
                one_line(&note.text),
            ]
        };
        let cells: Vec<Vec<String>> = list.waiting.iter().chain(&list.settled).map(cell).collect();
        context.out.data(&table(&COLUMNS, &cells, context.out.columns))
    }
}

/// As it is on the wire, so that a status that is new is shown too.
fn status(note: &Note) -> String {
    let status = serde_json::to_value(note.status).ok();
    let status = status.as_ref().and_then(serde_json::Value::as_str).unwrap_or("?");
    if note.again { format!("{status}, again") } else { status.to_owned() }
}

fn delivery(note: &Note) -> String {
    let Some(delivery) = &note.delivery else { return String::new() };
    match &delivery.call {
        Some(call) => format!("{} {}", one_line(&delivery.channel), one_line(call)),
        None => one_line(&delivery.channel),
    }
}
