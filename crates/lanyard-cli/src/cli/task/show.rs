//! `lanyard task show`.

use lanyard_api::types::{TaskLog, TaskView};
use lanyard_core::task::TaskEnvelope;

use super::{Target, at};
use crate::client::Client;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::task_card::task_card;
use crate::render::task_log::task_line;

pub(super) const EXAMPLES: &str = "\
Examples:
  lanyard task show task_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard task show orchestrator:/task_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard task show notes --log
  lanyard task show notes --json | jq -r .session";

#[derive(Debug, clap::Args)]
pub(super) struct TaskShowArgs {
    #[command(flatten)]
    target: Target,
    /// What happened to it, instead
    #[arg(long)]
    log: bool,
}

impl TaskShowArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        if self.log {
            let log = read(&mut client, &self.target.task).await?;
            if context.out.is_json() {
                return context.out.list(&log, None);
            }
            let lines: String =
                log.iter().map(|event| task_line(event, context.out.columns) + "\n").collect();
            return context.out.data(&lines);
        }
        let view: TaskView = client.get(&self.target.route(&[])).await?;
        if context.out.is_json() {
            return context.out.json(&view);
        }
        let now = daemon_now(&mut client).await?;
        context.out.data(&task_card(&view, now))
    }
}

/// Reads page after page up to where the log ended when it was first asked for.
async fn read(client: &mut Client<'_>, task: &str) -> Result<Vec<TaskEnvelope>, Failure> {
    let mut log: Vec<TaskEnvelope> = Vec::new();
    let mut until = None;
    loop {
        let after = log.last().map(|event| event.seq);
        let page: TaskLog = client.get(&at(task, &["log"]).with("after", after)).await?;
        let until = *until.get_or_insert(page.head);
        let empty = page.events.is_empty();
        log.extend(page.events);
        if empty || log.last().is_none_or(|event| event.seq >= until) {
            return Ok(log);
        }
    }
}
