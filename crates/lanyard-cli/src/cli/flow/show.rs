//! `lanyard flow show`.

use lanyard_api::types::{FlowEventPage, FlowView};
use lanyard_core::flow::FlowEnvelope;

use super::at;
use super::which::Ended;
use crate::client::Client;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::flow_card::flow_card;
use crate::render::flow_log::Narrator;

pub(super) const EXAMPLES: &str = "\
Phases: [ ] open, [>] running, [x] complete, [o] overridden, [-] skipped.

Examples:
  lanyard flow show
  lanyard flow show flow_01m7n5djg0fayvh8t5cxyjkdnf --log
  lanyard flow show --json | jq .gate";

#[derive(Debug, clap::Args)]
pub(super) struct FlowShowArgs {
    #[command(flatten)]
    target: Ended,
    /// What happened to it, instead
    #[arg(long)]
    log: bool,
}

impl FlowShowArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let flow = self.target.newest(&mut client).await?;
        if self.log {
            return log(context, &mut client, &flow).await;
        }
        let view: FlowView = client.get(&at(&flow, &[])).await?;
        if context.out.is_json() {
            return context.out.json(&view);
        }
        let now = daemon_now(&mut client).await?;
        context.out.data(&flow_card(&view, now))
    }
}

async fn log(context: &Context, client: &mut Client<'_>, flow: &str) -> Result<(), Failure> {
    let log = read(client, flow).await?;
    if context.out.is_json() {
        return context.out.list(&log, None);
    }
    let mut narrator = Narrator::default();
    let lines: String = log.iter().flat_map(|event| narrator.tell(event)).map(|line| line + "\n").collect();
    context.out.data(&lines)
}

/// Reads page after page up to where the log ended when it was first asked for.
async fn read(client: &mut Client<'_>, flow: &str) -> Result<Vec<FlowEnvelope>, Failure> {
    let mut log: Vec<FlowEnvelope> = Vec::new();
    let mut until = None;
    loop {
        let after = log.last().map(|event| event.seq);
        let page: FlowEventPage = client.get(&at(flow, &["events"]).with("after", after)).await?;
        let until = *until.get_or_insert(page.head);
        let empty = page.events.is_empty();
        log.extend(page.events);
        if empty || log.last().is_none_or(|event| event.seq >= until) {
            return Ok(log);
        }
    }
}
