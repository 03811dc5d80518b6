//! `lanyard task wait`: until tasks have ended, however often the daemon is restarted meanwhile.

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{GateEntry, TaskView};
use lanyard_core::task::TaskState;

use super::at;
use crate::cli::following::{Followed, follow_within};
use crate::client::Client;
use crate::context::{Context, daemon_now};
use crate::failure::{Exit, Failure};
use crate::render::task::{listing, sentence};

/// Tasks of one wait: as many as one stream of records names.
const TASKS_MAX: usize = 100;
/// They have not ended yet.
const STILL_OPEN: u8 = Exit::Pending as u8;

pub(super) const EXAMPLES: &str = "\
How they stand goes to stderr as it changes, and all of them to stdout at the end.

Examples:
  lanyard task wait notes changelog
  lanyard task wait notes --timeout 600 && lanyard task merge notes

A daemon that restarts is waited for, up to a minute (LANYARD_DAEMON_WAIT_MS).

Exit codes: 0 all were completed, 1 one was not, 3 no daemon that answers, 4 not all had ended
within --timeout";

#[derive(Debug, clap::Args)]
pub(super) struct Wait {
    /// Tasks: ids, aliases, or ids of their workers
    #[arg(value_name = "TASK", required = true, num_args = 1..=TASKS_MAX, value_parser = NonEmptyStringValueParser::new())]
    tasks: Vec<String>,
    /// How long to wait [default: until they have ended]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

impl Wait {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        // By their ids from here on: an alias could come to mean another task while this one is waited for.
        let mut views: Vec<TaskView> = Vec::new();
        for task in &self.tasks {
            views.push(client.get(&at(task, &[])).await?);
        }
        for view in &views {
            context.out.note(&sentence(view));
        }
        let ids: Vec<String> = views.iter().map(|view| view.task.id.to_string()).collect();
        let watch = context.watch(&ids.join(","), format!("lanyard task wait {}", ids.join(" ")))?;
        let mut tasks = WaitedTasks(views);
        let in_time = follow_within(context, watch, &mut tasks, self.timeout).await?;
        let views = tasks.0;
        show(context, &views).await?;
        if !in_time {
            context.out.note("not all of them have ended; they go on");
            return Err(Failure::Ended(STILL_OPEN));
        }
        let completed = views.iter().all(|view| view.task.state == TaskState::Completed);
        if completed { Ok(()) } else { Err(Failure::Shown) }
    }
}

struct WaitedTasks(Vec<TaskView>);

impl Followed for WaitedTasks {
    async fn look(&mut self, context: &Context, client: &mut Client<'_>) -> Result<(), Failure> {
        for view in self.0.iter_mut().filter(|view| is_open(view)) {
            let newer: TaskView = client.get(&at(&view.task.id.to_string(), &[])).await?;
            let said = sentence(&newer);
            if said != sentence(view) {
                context.out.note(&said);
            }
            *view = newer;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        !self.0.iter().any(is_open)
    }

    fn approvals(&self) -> Vec<GateEntry> {
        self.0.iter().flat_map(|view| view.approvals.iter().cloned()).collect()
    }
}

fn is_open(view: &TaskView) -> bool {
    !view.task.state.is_ended()
}

async fn show(context: &Context, views: &[TaskView]) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.list(views, None);
    }
    let now = daemon_now(&mut context.client().await?).await?;
    context.out.data(&listing(views, now, context.out.columns))
}
