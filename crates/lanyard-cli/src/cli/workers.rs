//! `lanyard workers`: who works at what, and how they do.

use lanyard_api::types::WorkerList;
use lanyard_client::Route;
use lanyard_client::names::A_PLAN;

use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::worker::workers;

const EXAMPLES: &str = "\
A worker keeps its id over every deploy of its task and every restart; its runs are numbered.
HEALTH is well, idle, stuck, looping, error streak or rate limited, with what was done about it.

Examples:
  lanyard workers
  lanyard workers --plan release --all
  lanyard workers --json | jq -r '.items[] | select(.condition != \"well\") | .worker'";

/// List workers with their tasks and health
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WorkersArgs {
    /// Of this plan: id or name
    #[arg(long)]
    plan: Option<String>,
    /// Show those whose task has ended too
    #[arg(long, short)]
    all: bool,
}

impl WorkersArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let plan = client.id_if(A_PLAN, self.plan).await?;
        let route = Route::to(&["workers"]).with("plan", plan).with("all", self.all.then_some("true"));
        let list: WorkerList = client.get(&route).await?;
        if context.out.is_json() {
            return context.out.list(&list.workers, None);
        }
        if list.workers.is_empty() {
            let hint =
                if self.all { "`lanyard task deploy` makes one" } else { "--all shows earlier ones too" };
            context.out.note(&format!("no worker has a task; {hint}"));
            return Ok(());
        }
        let now = daemon_now(&mut client).await?;
        context.out.data(&workers(&list.workers, now, context.out.columns))
    }
}
