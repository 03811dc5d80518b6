//! `lanyard plan merge` and `lanyard plan cancel`.

use std::path::PathBuf;

use lanyard_api::types::{CancelTask, PlanView};

use super::Target;
use crate::cli::target::folder;
use crate::cli::task::{MergedTasks, merge_in_order};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::plan::plan_sentence;
use crate::render::text::one_line;

pub(super) const MERGE_EXAMPLES: &str = "\
Merges the branches of completed tasks, prerequisites first, into the branch that is checked out in
the plan's folder. The first conflict stops it with nothing changed by that task; tasks merged before
stay merged. Resolve it, then run the same command: it continues there.

Examples:
  lanyard plan wait release && lanyard plan merge release
  lanyard plan merge release --into ../release-tree
  lanyard plan merge release --json | jq -r '.items[] | [.key, .outcome] | @tsv'";

#[derive(Debug, clap::Args)]
pub(super) struct MergePlan {
    #[command(flatten)]
    target: Target,
    /// The folder to merge into [default: the plan's]
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
}

impl MergePlan {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let view: PlanView = client.get(&self.target.route(&[])).await?;
        let into = self.into.map(|into| folder(Some(into), "--into")).transpose()?;
        let elsewhere = into.as_ref().map(|into| format!(" --into {into}")).unwrap_or_default();
        let again = format!("lanyard plan merge {}{elsewhere}", view.plan.id);
        if view.all.is_empty() {
            context.out.note(&format!("{} has no tasks; nothing to merge", one_line(&view.plan.title)));
        }
        merge_in_order(context, &mut client, &view.all, MergedTasks::Completed, into, &again).await
    }
}

pub(super) const CANCEL_EXAMPLES: &str = "\
Begins nothing more of the plan and cancels its open tasks, as `lanyard task cancel` does. What their
worktrees hold is committed to their branches. `lanyard plan start` starts the plan again; cancelled
tasks stay cancelled until `lanyard task retry`.

Examples:
  lanyard plan cancel release --reason \"wrong branch\"
  lanyard plan cancel release --now && lanyard plan wait release";

#[derive(Debug, clap::Args)]
pub(super) struct CancelPlan {
    #[command(flatten)]
    target: Target,
    /// Stop agents at once, whatever they are doing
    #[arg(long)]
    now: bool,
    /// Why, for the agents and the log
    #[arg(long)]
    reason: Option<String>,
}

impl CancelPlan {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let body = CancelTask { reason: self.reason, now: self.now };
        let view: PlanView = context.client().await?.post(&self.target.route(&["cancel"]), &body).await?;
        if context.out.is_json() {
            return context.out.json(&view);
        }
        let next = if view.all.iter().any(|view| view.task.is_at_work()) {
            format!("; `lanyard plan wait {}` waits for the end of its tasks", view.plan.id)
        } else {
            String::new()
        };
        context.out.note(&format!("{}{next}", plan_sentence(&view)));
        Ok(())
    }
}
