//! The log of a task, one event per line.

use lanyard_core::task::health::Remedy;
use lanyard_core::task::{TaskEnding, TaskEnvelope, TaskEvent};

use crate::render::text::{commit as short, count, fit, one_line, quoted};
use crate::render::time::stamp;

/// `3     2026-11-15T08:00:00Z  families  deployed to worker_…`.
pub(crate) fn task_line(envelope: &TaskEnvelope, max: Option<usize>) -> String {
    let who = one_line(&envelope.actor.name);
    let what = what(&envelope.event);
    let line = format!("{:<4}  {}  {who}  {what}", envelope.seq, stamp(envelope.at));
    max.map_or_else(|| line.clone(), |max| fit(&line, max))
}

fn what(event: &TaskEvent) -> String {
    match event {
        TaskEvent::Created(created) => format!("created {}", quoted(&created.spec.title)),
        TaskEvent::Edited { spec } => format!("edited {}", quoted(&spec.title)),
        TaskEvent::Deployed { worker, source, session, run, .. } => {
            format!("deployed to {worker} ({}) in {session} as run {run}", source.as_str())
        }
        TaskEvent::TreeMade { tree } => {
            format!("worktree {} on branch {}", one_line(&tree.path), one_line(&tree.branch))
        }
        TaskEvent::Started {} => "started".to_owned(),
        TaskEvent::RunSeen { run, process } => format!("run {run} is {process}"),
        TaskEvent::Interrupted { cause, reason } => {
            format!("interrupted ({}){}", cause.as_str(), because(reason.as_deref()))
        }
        TaskEvent::Resumed { .. } => "goes on".to_owned(),
        TaskEvent::Paused { reason } => format!("paused{}", because(reason.as_deref())),
        TaskEvent::EndAsked { ending, reason } => {
            let asked = match ending {
                TaskEnding::Complete => "is to be completed",
                TaskEnding::Fail => "is to fail",
                TaskEnding::Cancel { now: false } => "is to be cancelled",
                TaskEnding::Cancel { now: true } => "is to be cancelled at once",
            };
            format!("{asked}{}", because(reason.as_deref()))
        }
        TaskEvent::Reported { result } => {
            let how = if result.by_turn_end { "said last" } else { "reported" };
            format!("{how} {}", quoted(&result.summary))
        }
        TaskEvent::Captured { captured } => {
            format!("{} captured in {}", count(captured.files_changed, "file"), short(&captured.commit))
        }
        TaskEvent::BaseConflict { conflict } => {
            let with = conflict.with.join(", ");
            let files: Vec<String> = conflict.files.iter().map(|file| one_line(file)).collect();
            format!(
                "cannot begin: {} conflicts with {} in {}",
                one_line(&conflict.branch),
                one_line(&with),
                files.join(", ")
            )
        }
        TaskEvent::BranchCounted { commits } => format!("the branch has {}", count(*commits, "commit")),
        TaskEvent::CaptureFailed { why } => format!("not captured: {}", one_line(why)),
        TaskEvent::Ended { state, reason } => format!("{state}{}", because(reason.as_deref())),
        TaskEvent::Retried {} => "to be done again".to_owned(),
        TaskEvent::Merged { commit, into } => {
            format!("merged into {} as {}", one_line(into), short(commit))
        }
        TaskEvent::TreeRemoved {} => "worktree taken away; the branch stays".to_owned(),
        TaskEvent::Discarded { reference } => {
            format!("branch discarded; git keeps it under {}", one_line(reference))
        }
        TaskEvent::Remedied { remedy, why, .. } => {
            let done = match remedy {
                Remedy::Nudge => "nudged",
                Remedy::Restart => "restarted",
                Remedy::Escalate => "an approval was requested",
            };
            format!("{done}: {}", one_line(why))
        }
        TaskEvent::Adopted { reports_to } => match reports_to {
            Some(to) => format!("reports to {to} from here on"),
            None => "reports to no task or session from here on".to_owned(),
        },
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {}", one_line(reason))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use lanyard_core::session::InterruptCause;
    use lanyard_core::task::{Captured, MailTo, TaskResult, TaskState, Tree, WorkerSource};
    use lanyard_core::{Actor, RunId, TaskId};

    use super::*;
    use crate::render::task::testing::{session_id, then, worker_id};

    fn log() -> Vec<TaskEvent> {
        let said = |text: &str| Some(text.to_owned());
        let tree = Tree {
            path: "/trees/t".to_owned(),
            branch: "lanyard/t".to_owned(),
            base: "abc".to_owned(),
            repository: "/srv/web".to_owned(),
            removed: false,
        };
        let captured = Captured { commit: "def".to_owned(), files: Vec::new(), files_changed: 2 };
        vec![
            TaskEvent::Deployed {
                worker: worker_id(5),
                source: WorkerSource::Generated,
                session: session_id(7),
                run: 1,
                turns: 0,
            },
            TaskEvent::TreeMade { tree },
            TaskEvent::Started {},
            TaskEvent::RunSeen { run: 1, process: RunId::from_u128(8) },
            TaskEvent::Interrupted { cause: InterruptCause::Crash, reason: said("signal 9") },
            TaskEvent::Remedied { remedy: Remedy::Restart, why: "its agent crashed".to_owned(), turns: 1 },
            TaskEvent::Paused { reason: None },
            TaskEvent::Resumed { turns: 1 },
            TaskEvent::EndAsked { ending: TaskEnding::Cancel { now: false }, reason: said("wrong\nbranch") },
            TaskEvent::Reported {
                result: TaskResult { summary: "half of it".to_owned(), evidence: None, by_turn_end: true },
            },
            TaskEvent::Captured { captured },
            TaskEvent::CaptureFailed { why: "the disk is full".to_owned() },
            TaskEvent::TreeRemoved {},
            TaskEvent::Ended { state: TaskState::Cancelled, reason: said("wrong branch") },
            TaskEvent::Adopted { reports_to: Some(MailTo::Task(TaskId::from_u128(2))) },
            TaskEvent::Merged { commit: "abc".to_owned(), into: "main".to_owned() },
            TaskEvent::Discarded { reference: "refs/lanyard/discarded/t/1".to_owned() },
            TaskEvent::Retried {},
        ]
    }

    #[test]
    fn a_log_reads_as_what_happened() {
        let lines: String = (2..)
            .zip(log())
            .map(|(seq, event)| {
                let actor = Actor::system("families");
                let envelope = TaskEnvelope { task: TaskId::from_u128(1), seq, at: then(), actor, event };
                task_line(&envelope, None) + "\n"
            })
            .collect();
        expect![[r#"
            2     2026-11-15T08:00:00Z  families  deployed to worker_00000000000000000000000005 (generated) in sess_00000000000000000000000007 as run 1
            3     2026-11-15T08:00:00Z  families  worktree /trees/t on branch lanyard/t
            4     2026-11-15T08:00:00Z  families  started
            5     2026-11-15T08:00:00Z  families  run 1 is run_00000000000000000000000008
            6     2026-11-15T08:00:00Z  families  interrupted (crash): signal 9
            7     2026-11-15T08:00:00Z  families  restarted: its agent crashed
            8     2026-11-15T08:00:00Z  families  paused
            9     2026-11-15T08:00:00Z  families  goes on
            10    2026-11-15T08:00:00Z  families  is to be cancelled: wrong branch
            11    2026-11-15T08:00:00Z  families  said last "half of it"
            12    2026-11-15T08:00:00Z  families  2 files captured in def
            13    2026-11-15T08:00:00Z  families  not captured: the disk is full
            14    2026-11-15T08:00:00Z  families  worktree taken away; the branch stays
            15    2026-11-15T08:00:00Z  families  cancelled: wrong branch
            16    2026-11-15T08:00:00Z  families  reports to task_00000000000000000000000002 from here on
            17    2026-11-15T08:00:00Z  families  merged into main as abc
            18    2026-11-15T08:00:00Z  families  branch discarded; git keeps it under refs/lanyard/discarded/t/1
            19    2026-11-15T08:00:00Z  families  to be done again
        "#]].assert_eq(&lines);
    }
}
