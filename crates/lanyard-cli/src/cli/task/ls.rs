//! `lanyard task ls`.

use lanyard_api::types::{TaskPage, TaskView};
use lanyard_client::Route;
use lanyard_client::names::{A_PLAN, A_TASK};
use lanyard_core::task::TaskState;

use crate::cli::target::workspace;
use crate::cli::words;
use crate::client::Client;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::task::listing;

/// Tasks of one request.
const PAGE_TASKS_MAX: usize = 500;

pub(super) const EXAMPLES: &str = "\
Without --all or --state, tasks that have ended are left out.

Examples:
  lanyard task ls
  lanyard task ls --plan release --all
  lanyard task ls --state failed
  lanyard task ls --json | jq -r '.items[].id'";

#[derive(Debug, clap::Args)]
pub(super) struct TaskLsArgs {
    /// Show tasks that have ended too
    #[arg(long, short)]
    all: bool,
    /// Show this many at most [default: all]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Go on where a limited listing ended: its `next`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Of this plan: id or name
    #[arg(long)]
    plan: Option<String>,
    /// In this state
    #[arg(long, value_parser = words::task_state())]
    state: Option<TaskState>,
    /// The parts of this task
    #[arg(long, value_name = "TASK")]
    part_of: Option<String>,
    /// Of this workspace (`.` for this folder)
    #[arg(long, value_parser = workspace)]
    workspace: Option<String>,
}

impl TaskLsArgs {
    pub(super) async fn run(mut self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        self.plan = client.id_if(A_PLAN, self.plan).await?;
        self.part_of = client.id_if(A_TASK, self.part_of).await?;
        let route = self.route();
        let (tasks, next) =
            read_all(&mut client, &route, self.cursor, self.limit.unwrap_or(usize::MAX)).await?;
        if context.out.is_json() {
            return context.out.list(&tasks, next.as_deref());
        }
        if tasks.is_empty() {
            let hint =
                if self.all { "make one with `lanyard task add`" } else { "--all shows ended ones too" };
            context.out.note(&format!("no tasks; {hint}"));
            return Ok(());
        }
        let now = daemon_now(&mut client).await?;
        context.out.data(&listing(&tasks, now, context.out.columns))
    }

    fn route(&self) -> Route {
        let ended = (!self.all && self.state.is_none()).then_some("false");
        Route::to(&["tasks"])
            .with("plan", self.plan.as_ref())
            .with("parent", self.part_of.as_ref())
            .with("workspace", self.workspace.as_ref())
            .with("state", self.state)
            .with("ended", ended)
    }
}

/// Reads page after page from `cursor` on until there are `max` tasks or no more. Returns the cursor of the rest too.
async fn read_all(
    client: &mut Client<'_>,
    route: &Route,
    mut cursor: Option<String>,
    max: usize,
) -> Result<(Vec<TaskView>, Option<String>), Failure> {
    let mut tasks: Vec<TaskView> = Vec::new();
    while tasks.len() < max {
        let limit = PAGE_TASKS_MAX.min(max - tasks.len());
        let at = route.clone().with("cursor", cursor.as_ref()).with("limit", Some(limit));
        let page: TaskPage = client.get(&at).await?;
        tasks.extend(page.tasks);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok((tasks, cursor))
}
