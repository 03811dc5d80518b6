//! `lanyard approvals`: what agents and flows wait for.

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{FlowGateEntry, GateEntry, GateList};
use lanyard_client::Route;
use lanyard_core::Timestamp;
use serde_json::Value;

use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::flow::title;
use crate::render::flow_gate::{choices, question};
use crate::render::gate_card::gate_card;
use crate::render::ids::Shortener;
use crate::render::table::{Column, table};
use crate::render::text::one_line;
use crate::render::time::ago;

const FLOW_COLUMNS: [Column; 6] = [
    Column::whole("APPROVAL"),
    Column::whole("FLOW"),
    Column::whole("KIND"),
    Column::whole("ASKED"),
    Column::whole("CHOICES"),
    Column::elastic("REASON", 20),
];

const EXAMPLES: &str = "\
An agent that needs permission waits for an approval, however long that takes and across restarts of
the daemon. So does a flow: c continues the same session, f fixes it in a new one, o overrides the
finding, q aborts. With a session, answered approvals are listed too.

Examples:
  lanyard approvals
  lanyard approvals fix-login
  lanyard answer
  lanyard answer gate_01m7n5djg0fayvh8t5cxyjkdnf allow";

/// List approvals that agents and flows wait for
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ApprovalsArgs {
    /// Of this session only: its id or one of its aliases
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    session: Option<String>,
}

impl ApprovalsArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let route = match &self.session {
            Some(session) => Route::to(&["sessions", session, "gates"]),
            None => Route::to(&["gates"]),
        };
        let mut client = context.client().await?;
        let list: GateList = client.get(&route).await?;
        if context.out.is_json() {
            return context.out.list(&rows(&list)?, None);
        }
        if list.truncated {
            context.out.warn("more sessions are running than one listing covers");
        }
        if list.gates.is_empty() && list.flows.is_empty() {
            context.out.note("no approval is open");
            return Ok(());
        }
        let now = daemon_now(&mut client).await?;
        context.out.data(&cards(&list, now, context.out.columns))
    }
}

/// Every approval in full, those of flows first.
pub(super) fn cards(list: &GateList, now: Timestamp, max: Option<usize>) -> String {
    let ids = shortener(list);
    let flows = list.flows.iter().map(|entry| {
        let asked = question(entry, ids, Some(now));
        let choices = choices(&entry.gate).join("\n           ");
        let (flow, id) = (ids.named(&entry.flow), ids.named(&entry.gate.id));
        let letters = letters(entry);
        format!(
            "{asked}  flow     {flow}\n  options  {choices}\n  answer   lanyard answer {id} ({letters})\n"
        )
    });
    let gates = list.gates.iter().map(|entry| gate_card(entry, ids, now, max));
    flows.chain(gates).collect::<Vec<_>>().join("\n")
}

/// For all ids of the page: no two of them look the same.
fn shortener(list: &GateList) -> Shortener {
    let of_flow = |entry: &FlowGateEntry| {
        let session = entry.gate.continue_session.as_ref().map(|payload| payload.session.to_string());
        let fork = entry.gate.fork_of.map(|fork| fork.to_string());
        let ids = [entry.gate.id.to_string(), entry.flow.to_string()];
        ids.into_iter().chain(session).chain(fork).collect::<Vec<_>>()
    };
    let of_session = |entry: &GateEntry| [entry.gate.id.to_string(), entry.session.to_string()];
    let flows = list.flows.iter().flat_map(of_flow);
    Shortener::of(&flows.chain(list.gates.iter().flat_map(of_session)).collect::<Vec<_>>())
}

/// Approvals of flows, as a table.
pub(super) fn flow_gates(gates: &[FlowGateEntry], now: Timestamp, max: Option<usize>) -> String {
    let row = |entry: &FlowGateEntry| {
        let place = entry.phase.as_ref().unwrap_or(&entry.title);
        vec![
            entry.gate.id.to_string(),
            entry.flow.to_string(),
            entry.gate.kind.as_str().to_owned(),
            ago(now, entry.gate.opened_at),
            letters(entry),
            format!("{}: {}", title(place), one_line(&entry.gate.reason)),
        ]
    };
    table(&FLOW_COLUMNS, &gates.iter().map(row).collect::<Vec<_>>(), max)
}

fn letters(entry: &FlowGateEntry) -> String {
    let letters: Vec<String> =
        entry.gate.offered().iter().map(|choice| choice.letter().to_string()).collect();
    letters.join(", ")
}

/// All approvals in one list, each with its `id` and its owner: a `session` or a `flow`.
fn rows(list: &GateList) -> Result<Vec<Value>, Failure> {
    let unwritable = |error: serde_json::Error| Failure::local("output_failed", error.to_string(), "");
    let mut rows: Vec<Value> = Vec::new();
    for entry in &list.flows {
        let mut row = serde_json::to_value(entry).map_err(unwritable)?;
        if let Some(row) = row.as_object_mut()
            && let Some(Value::Object(gate)) = row.remove("gate")
        {
            row.extend(gate);
        }
        rows.push(row);
    }
    for entry in &list.gates {
        rows.push(serde_json::to_value(entry).map_err(unwritable)?);
    }
    Ok(rows)
}
