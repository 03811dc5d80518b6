//! What a task left in git: its branch shown and merged.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{MergeTask, MergedTask, PlanView, TaskDiff, TaskView};
use lanyard_client::Route;

use super::merging::{MergedTasks, merge_in_order};
use super::{Target, at};
use crate::cli::target::folder;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::{commit as short, count, harmless, one_line};

pub(super) const DIFF_EXAMPLES: &str = "\
From the commit its branch began at to where it is now, with what is not committed yet. The patch
goes to stdout, the summary to stderr.

Examples:
  lanyard task diff notes
  lanyard task diff notes --stat
  lanyard task diff notes | git apply";

#[derive(Debug, clap::Args)]
pub(super) struct TaskDiffArgs {
    #[command(flatten)]
    target: Target,
    /// Only the files, with how many lines were added and removed
    #[arg(long)]
    stat: bool,
}

impl TaskDiffArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let route = self.target.route(&["diff"]);
        let diff: TaskDiff = context.client().await?.get_patiently(&route).await?;
        if context.out.is_json() {
            return context.out.json(&diff);
        }
        context.out.note(&heading(&diff));
        for commit in &diff.commits {
            context.out.note(&format!("  {} {}", short(&commit.commit), one_line(&commit.subject)));
        }
        if self.stat {
            return context.out.data(&files(&diff));
        }
        for line in files(&diff).lines() {
            context.out.note(&format!("  {line}"));
        }
        if diff.truncated {
            context.out.warn("the patch is longer than can be shown; what is here is its beginning");
        }
        // On a terminal nothing in a file may move the cursor; in a pipe every byte counts.
        match context.out.columns {
            Some(_) => context.out.data(&harmless(&diff.patch)),
            None => context.out.data(&diff.patch),
        }
    }
}

fn heading(diff: &TaskDiff) -> String {
    let more = if diff.uncommitted { ", some of it not committed" } else { "" };
    format!(
        "{} from {}: {}, {}{more}",
        one_line(&diff.branch),
        short(&diff.base),
        count(diff.commits.len(), "commit"),
        count(diff.files.len(), "file")
    )
}

fn files(diff: &TaskDiff) -> String {
    let line = |file: &lanyard_api::types::DiffFile| {
        let lines = match (file.added, file.removed) {
            (Some(added), Some(removed)) => format!("+{added} -{removed}"),
            (_, _) => "binary".to_owned(),
        };
        format!("{} {} {lines}\n", one_line(&file.status), one_line(&file.path))
    };
    diff.files.iter().map(line).collect()
}

pub(super) const MERGE_EXAMPLES: &str = "\
Into what is checked out in the task's workspace. Refused, with nothing changed, when there are
uncommitted changes there or the two do not fit. Several tasks are merged prerequisites first; the
first refusal stops it, and the same command continues there.

Examples:
  lanyard task merge notes
  lanyard task merge notes --into ../release
  lanyard task merge notes api
  lanyard task merge --plan release";

/// Tasks one command merges.
const TASKS_MAX: usize = 100;

#[derive(Debug, clap::Args)]
pub(super) struct Merge {
    /// Tasks: ids, aliases, or ids of their workers
    #[arg(value_name = "TASK", num_args = 1..=TASKS_MAX, value_parser = NonEmptyStringValueParser::new())]
    #[arg(required_unless_present = "plan")]
    tasks: Vec<String>,
    /// All completed tasks of this plan: id or name
    #[arg(long, conflicts_with = "tasks")]
    plan: Option<String>,
    /// The folder to merge into [default: the task's workspace]
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
}

impl Merge {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let into = self.into.map(|into| folder(Some(into), "--into")).transpose()?;
        let elsewhere = into.as_ref().map(|into| format!(" --into {into}")).unwrap_or_default();
        let mut client = context.client().await?;
        if let [task] = self.tasks.as_slice() {
            let merged = client.post_patiently(&at(task, &["merge"]), &MergeTask { into }).await?;
            return tell_merged(context, &merged);
        }
        if let Some(plan) = &self.plan {
            let view: PlanView = client.get(&Route::to(&["plans", plan])).await?;
            let again = format!("lanyard plan merge {}{elsewhere}", view.plan.id);
            return merge_in_order(context, &mut client, &view.all, MergedTasks::Completed, into, &again)
                .await;
        }
        let mut views: Vec<TaskView> = Vec::new();
        for task in &self.tasks {
            views.push(client.get(&at(task, &[])).await?);
        }
        let ids: Vec<String> = views.iter().map(|view| view.task.id.to_string()).collect();
        let again = format!("lanyard task merge {}{elsewhere}", ids.join(" "));
        merge_in_order(context, &mut client, &views, MergedTasks::Named, into, &again).await
    }
}

fn tell_merged(context: &Context, merged: &MergedTask) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.json(merged);
    }
    let into = one_line(&merged.into);
    if merged.nothing {
        context.out.note(&format!("there was nothing to merge; {into} has it all"));
    } else {
        context.out.note(&format!("{} is merged into {into}", merged.task));
    }
    context.out.data(&one_line(&merged.commit))
}

#[cfg(test)]
mod tests {
    use lanyard_api::types::{DiffCommit, DiffFile};
    use lanyard_core::TaskId;

    use super::*;

    #[test]
    fn a_diff_is_summed_up_by_file() {
        let file = |path: &str, status: &str, lines: Option<(u64, u64)>| DiffFile {
            path: path.to_owned(),
            status: status.to_owned(),
            added: lines.map(|lines| lines.0),
            removed: lines.map(|lines| lines.1),
        };
        let diff = TaskDiff {
            task: TaskId::from_u128(1),
            branch: "lanyard/t".to_owned(),
            base: "abc".to_owned(),
            commits: vec![DiffCommit { commit: "def".to_owned(), subject: "fix".to_owned() }],
            files: vec![file("a.rs", "M", Some((3, 1))), file("logo.png", "A", None)],
            uncommitted: true,
            patch: String::new(),
            truncated: false,
        };
        assert_eq!(heading(&diff), "lanyard/t from abc: 1 commit, 2 files, some of it not committed");
        assert_eq!(files(&diff), "M a.rs +3 -1\nA logo.png binary\n");
    }
}
