//! `lanyard plan watch` and `lanyard plan wait`: a plan until it is over, however often the daemon is restarted meanwhile.

use lanyard_api::types::{GateEntry, PlanView, TaskView};
use lanyard_client::{RecordWatch, Route};
use lanyard_core::paper::PlanStatus;

use super::Target;
use super::live_table::LiveTable;
use crate::cli::following::{Followed, follow_within};
use crate::client::Client;
use crate::context::{Context, daemon_now};
use crate::failure::{Exit, Failure, chain};
use crate::render::plan::{plan_sentence, task_line, tasks_table};
use crate::render::plan_board::plan_board;

pub(super) const WATCH_EXAMPLES: &str = "\
On a terminal, a table of the tasks that is drawn again at each change, until the plan is over:
state, worker, what holds a task, what its agent asks. Elsewhere a line for each task and each
change. With --json, a task per line. Restarts of the daemon are waited for, up to a minute
(LANYARD_DAEMON_WAIT_MS). Ctrl-C leaves; the plan continues.

Examples:
  lanyard plan watch release
  lanyard plan watch release --json | jq -r '[.key, .state] | @tsv'

Exit codes: 0 all tasks are completed, 1 a task failed, 3 no daemon answers, 6 the plan was cancelled";

pub(super) const WAIT_EXAMPLES: &str = "\
Changes go to stderr, the tasks to stdout at the end. Restarts of the daemon are waited for, up to a
minute (LANYARD_DAEMON_WAIT_MS).

Examples:
  lanyard plan wait release && lanyard plan merge release
  lanyard plan wait release --timeout 600

Exit codes: 0 all tasks are completed, 1 a task failed, 3 no daemon answers, 4 not over within
--timeout, 6 the plan was cancelled";

#[derive(Debug, clap::Args)]
pub(super) struct WaitPlan {
    #[command(flatten)]
    target: Target,
    /// How long to wait [default: until the plan is over]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

/// Where changes are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PrintTo {
    Stdout,
    Stderr,
}

impl WaitPlan {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut plan = WatchedPlan::find(context, &self.target, PrintTo::Stderr).await?;
        plan.note_held(context);
        let watch = plan.watch(context, "wait")?;
        let in_time = follow_within(context, watch, &mut plan, self.timeout).await?;
        if context.out.is_json() {
            context.out.json(&plan.view)?;
        } else {
            let now = daemon_now(&mut context.client().await?).await?;
            context.out.data(&tasks_table(&plan.view.all, now, context.out.columns))?;
        }
        if !in_time {
            context.out.note(&format!("{}; it continues", plan_sentence(&plan.view)));
            return Err(Failure::Ended(Exit::Pending as u8));
        }
        plan.end(context)
    }
}

pub(super) async fn watch(context: &Context, target: &Target) -> Result<(), Failure> {
    let mut plan = WatchedPlan::find(context, target, PrintTo::Stdout).await?;
    plan.note_held(context);
    plan.table = LiveTable::on_terminal(context);
    if !plan.draw(context)? {
        for view in &plan.view.all {
            plan.print(context, view)?;
        }
    }
    let watch = plan.watch(context, "watch")?;
    follow_within(context, watch, &mut plan, None).await?;
    plan.end(context)
}

struct WatchedPlan {
    view: PlanView,
    changes: PrintTo,
    /// In place of lines.
    table: Option<LiveTable>,
}

impl WatchedPlan {
    async fn find(context: &Context, target: &Target, changes: PrintTo) -> Result<Self, Failure> {
        let view: PlanView = context.client().await?.get(&target.route(&[])).await?;
        Ok(Self { view, changes, table: None })
    }

    /// By the plan's id from here on: its name could come to mean another plan.
    fn route(&self) -> Route {
        Route::to(&["plans", &self.view.plan.id.to_string()])
    }

    fn watch(&self, context: &Context, verb: &str) -> Result<RecordWatch, Failure> {
        let id = self.view.plan.id;
        context.watch_plan(id, format!("lanyard plan {verb} {id}"))
    }

    /// A plan that was not started stays as it is until it is started.
    fn note_held(&self, context: &Context) {
        let plan = &self.view.plan;
        if matches!(plan.status, PlanStatus::Draft | PlanStatus::Paused) {
            context
                .out
                .note(&format!("{} is {}; `lanyard plan start {}` starts it", plan.id, plan.status, plan.id));
        }
    }

    /// Draws the table; false where there is none.
    fn draw(&mut self, context: &Context) -> Result<bool, Failure> {
        let Some(table) = &mut self.table else { return Ok(false) };
        let text = plan_board(&self.view, context.out.columns, LiveTable::rows());
        table.draw(context, &text).map(|()| true)
    }

    fn print(&self, context: &Context, view: &TaskView) -> Result<(), Failure> {
        match self.changes {
            PrintTo::Stderr => context.out.note(&task_line(view, &self.view.all)),
            PrintTo::Stdout if context.out.is_json() => {
                let line = serde_json::to_string(view)
                    .map_err(|error| Failure::local("output_failed", chain(&error), ""))?;
                context.out.data(&line)?;
            }
            PrintTo::Stdout => context.out.data(&task_line(view, &self.view.all))?,
        }
        Ok(())
    }

    /// The sentence and the exit code of a plan that is over.
    fn end(&self, context: &Context) -> Result<(), Failure> {
        context.out.note(&plan_sentence(&self.view));
        match self.view.plan.status {
            PlanStatus::Completed => Ok(()),
            PlanStatus::Cancelled => Err(Failure::Ended(Exit::Cancelled as u8)),
            PlanStatus::Draft | PlanStatus::Active | PlanStatus::Paused | PlanStatus::Failed => {
                Err(Failure::Shown)
            }
        }
    }
}

impl Followed for WatchedPlan {
    async fn look(&mut self, context: &Context, client: &mut Client<'_>) -> Result<(), Failure> {
        let newer: PlanView = client.get(&self.route()).await?;
        let older = std::mem::replace(&mut self.view, newer);
        if self.draw(context)? {
            return Ok(());
        }
        for view in &self.view.all {
            let before = older.all.iter().find(|old| old.task.id == view.task.id);
            if before.map(|old| task_line(old, &older.all)) != Some(task_line(view, &older.all)) {
                self.print(context, view)?;
            }
        }
        let status = self.view.plan.status;
        if status != older.plan.status && !self.is_over() {
            context.out.note(&plan_sentence(&self.view));
        }
        Ok(())
    }

    /// Tasks of a plan that failed may wait for ever; those at work have still to end.
    fn is_over(&self) -> bool {
        let plan = &self.view.plan;
        let at_work = self.view.all.iter().any(|view| view.task.is_at_work());
        (plan.status.is_over() || plan.archived) && !at_work
    }

    fn approvals(&self) -> Vec<GateEntry> {
        self.view.approvals.clone()
    }

    fn is_redrawn(&self) -> bool {
        self.table.is_some()
    }

    fn printed_below(&mut self) {
        if let Some(table) = &mut self.table {
            table.leave();
        }
    }
}
