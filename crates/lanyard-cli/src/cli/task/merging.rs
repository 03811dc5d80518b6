//! Merging the branches of several tasks, prerequisites first. The first refusal stops it; what was merged stays merged, and
//! the same command continues there.

use lanyard_api::types::{MergeTask, MergedTask, TaskView};
use lanyard_core::TaskId;
use lanyard_core::task::{Task, TaskState, schedule};
use serde::Serialize;

use super::at;
use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Column, table};
use crate::render::text::{commit as short, one_line};

/// The tasks that are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum MergedTasks {
    /// All of them, in the order they were named.
    Named,
    /// Those of a plan that are completed.
    Completed,
}

/// What became of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct MergeReceipt {
    task: TaskId,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    outcome: MergeOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// The branch it was merged into.
    #[serde(skip_serializing_if = "Option::is_none")]
    into: Option<String>,
    /// The code and the sentence of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum MergeOutcome {
    Merged,
    /// The folder's branch has its commits.
    NothingToMerge,
    /// An earlier command merged it.
    MergedBefore,
    /// It worked in the folder itself, or its branch was discarded.
    NoBranch,
    NotCompleted,
    Refused,
    /// It comes after one that was refused.
    NotTried,
}

impl MergeOutcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Merged => "merged",
            Self::NothingToMerge => "nothing to merge",
            Self::MergedBefore => "merged before",
            Self::NoBranch => "no branch",
            Self::NotCompleted => "not completed",
            Self::Refused => "refused",
            Self::NotTried => "not tried",
        }
    }
}

/// Merges them into a folder, by default the one each worked for. `again` is the command that continues.
pub(in crate::cli) async fn merge_in_order(
    context: &Context,
    client: &mut Client<'_>,
    views: &[TaskView],
    which: MergedTasks,
    into: Option<String>,
    again: &str,
) -> Result<(), Failure> {
    let mut receipts: Vec<MergeReceipt> = Vec::new();
    let mut stopped: Option<(Task, String)> = None;
    for task in schedule::by_dependency(views.iter().map(|view| &view.task)) {
        let outcome = match settled(task, which) {
            Some(outcome) => outcome,
            None if stopped.is_some() => MergeOutcome::NotTried,
            None => {
                let receipt = merge(client, task, into.clone()).await?;
                if receipt.outcome == MergeOutcome::Refused {
                    stopped = Some((task.clone(), receipt.code.clone().unwrap_or_default()));
                }
                receipts.push(receipt);
                continue;
            }
        };
        receipts.push(MergeReceipt::of(task, outcome));
    }
    if context.out.is_json() {
        context.out.list(&receipts, None)?;
    } else {
        context.out.data(&shown(&receipts, context.out.columns))?;
    }
    match stopped {
        None => Ok(()),
        Some((task, code)) => {
            context.out.note(&how_to_go_on(&task, &code, into.as_deref(), again));
            Err(Failure::Shown)
        }
    }
}

/// The outcome of a task that need not be merged.
fn settled(task: &Task, which: MergedTasks) -> Option<MergeOutcome> {
    if which == MergedTasks::Completed && task.state != TaskState::Completed {
        return Some(MergeOutcome::NotCompleted);
    }
    if task.merged.is_some() {
        return Some(MergeOutcome::MergedBefore);
    }
    (which == MergedTasks::Completed && task.tree.is_none()).then_some(MergeOutcome::NoBranch)
}

async fn merge(client: &mut Client<'_>, task: &Task, into: Option<String>) -> Result<MergeReceipt, Failure> {
    let id = task.id.to_string();
    let (route, body) = (at(&id, &["merge"]), MergeTask { into });
    match client.post_part_patiently::<MergedTask>(&id, &route, &body).await {
        Ok(merged) => {
            let outcome = if merged.nothing { MergeOutcome::NothingToMerge } else { MergeOutcome::Merged };
            let (commit, into) = (Some(merged.commit), Some(merged.into));
            Ok(MergeReceipt { commit, into, ..MergeReceipt::of(task, outcome) })
        }
        Err(failure) if failure.is_passing() => Err(failure),
        Err(Failure::Told { problem, .. }) => Ok(MergeReceipt {
            code: Some(problem.code),
            why: Some(format!("{}; {}", problem.title, problem.advice)),
            ..MergeReceipt::of(task, MergeOutcome::Refused)
        }),
        Err(failure) => Err(failure),
    }
}

impl MergeReceipt {
    fn of(task: &Task, outcome: MergeOutcome) -> Self {
        Self {
            task: task.id,
            key: task.spec.key.clone(),
            outcome,
            branch: task.tree.as_ref().map(|tree| tree.branch.clone()),
            commit: task.merged.clone(),
            into: None,
            code: None,
            why: None,
        }
    }

    fn note(&self) -> String {
        match (&self.commit, &self.into, &self.why) {
            (_, _, Some(why)) => one_line(why),
            (Some(commit), Some(into), None) => format!("{} in {}", short(commit), one_line(into)),
            (Some(commit), None, None) => short(commit),
            (None, _, None) => String::new(),
        }
    }
}

const ROW: [Column; 3] = [Column::whole("TASK"), Column::whole("OUTCOME"), Column::elastic("NOTE", 16)];

fn shown(receipts: &[MergeReceipt], max: Option<usize>) -> String {
    let cells: Vec<Vec<String>> = receipts
        .iter()
        .map(|receipt| {
            let name = receipt.key.as_deref().map_or_else(|| receipt.task.to_string(), one_line);
            vec![name, receipt.outcome.as_str().to_owned(), receipt.note()]
        })
        .collect();
    table(&ROW, &cells, max)
}

/// A refused merge has changed nothing; what was merged before it stays.
fn how_to_go_on(task: &Task, code: &str, into: Option<&str>, again: &str) -> String {
    let name = task.spec.key.as_deref().map_or_else(|| task.id.to_string(), one_line);
    let folder = into.or(task.workspace.as_deref()).map(one_line).unwrap_or_default();
    let mend = match &task.tree {
        Some(tree) if code == "merge_conflict" => format!(
            "resolve the conflict with `git -C {folder} merge {}`, commit, and continue",
            one_line(&tree.branch)
        ),
        Some(_) | None => "mend it and continue".to_owned(),
    };
    format!("stopped at {name}, of which nothing was merged; {mend} with `{again}`")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn receipts_read_as_a_table() {
        let receipt = |key: &str, outcome| MergeReceipt {
            task: TaskId::from_u128(1),
            key: Some(key.to_owned()),
            outcome,
            branch: None,
            commit: None,
            into: None,
            code: None,
            why: None,
        };
        let merged = MergeReceipt {
            commit: Some("0123456789abcdef".to_owned()),
            into: Some("main".to_owned()),
            ..receipt("api", MergeOutcome::Merged)
        };
        let refused = MergeReceipt {
            why: Some("`b` and `main` change the same places of: `x`; merge by hand".to_owned()),
            ..receipt("notes", MergeOutcome::Refused)
        };
        let receipts = [merged, refused, receipt("site", MergeOutcome::NotTried)];
        expect![[r"
            TASK   OUTCOME    NOTE
            api    merged     0123456789ab in main
            notes  refused    `b` and `main` change the same places of: `x`; merge by hand
            site   not tried
        "]]
        .assert_eq(&shown(&receipts, None));
    }
}
