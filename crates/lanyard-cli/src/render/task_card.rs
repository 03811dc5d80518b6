//! One task, readable: what it is, how it stands, who works at it, whom it reports to, and where its work is.

use lanyard_api::types::TaskView;
use lanyard_core::Timestamp;
use lanyard_core::paper::Priority;
use lanyard_core::task::{Isolation, ParentEnd, Task, TaskRun};

use crate::render::approval::approvals;
use crate::render::card::Card;
use crate::render::task::{source, state, trouble, waiting};
use crate::render::text::{commit, count, harmless, one_line};
use crate::render::time::{ago, lasting, stamp};

/// Files of a capture that are named; all are in `--json`.
const FILES_SHOWN: usize = 5;

/// `now` is the daemon's clock.
pub(crate) fn task_card(view: &TaskView, now: Timestamp) -> String {
    let task = &view.task;
    let mut card = Card::default();
    card.line("id", task.id.to_string());
    card.text("title", Some(&task.spec.title));
    card.line("address", one_line(&view.uri));
    card.lines("alias", task.aliases.iter().map(|alias| one_line(alias)));
    how_it_stands(&mut card, view, now);
    card.gap();
    who(&mut card, task);
    card.gap();
    family(&mut card, view);
    card.gap();
    the_work(&mut card, task);
    card.gap();
    where_it_is(&mut card, task);
    card.gap();
    let made_in = task.created_in.map(|session| format!(" in {session}")).unwrap_or_default();
    let by = one_line(&task.created_by.name);
    card.line(
        "created",
        format!("{} ({}) by {by}{made_in}", stamp(task.created_at), ago(now, task.created_at)),
    );
    card.line("log", count(task.seq, "event"));
    let prompt = harmless(task.spec.prompt.trim());
    let mut text = card.done();
    text.push_str(&approvals(&view.approvals));
    if !prompt.is_empty() && prompt != task.spec.title {
        text.push('\n');
        text.push_str(&prompt);
        text.push('\n');
    }
    text
}

fn how_it_stands(card: &mut Card, view: &TaskView, now: Timestamp) {
    let task = &view.task;
    card.line("state", format!("{} {}", state(task), lasting(now, task.since)));
    // One that ends with its agent's last words has them as its reason and as its result.
    let said = task.result.as_ref().map(|result| &result.summary);
    card.text("because", task.reason.as_ref().filter(|reason| Some(*reason) != said));
    card.text("held", view.held.as_ref());
    card.line("health", view.condition.and_then(trouble).unwrap_or_default());
    let done = task.remedies;
    let remedies = [(done.nudges, "nudge"), (done.restarts, "restart"), (done.escalations, "escalation")];
    let remedies = remedies.into_iter().filter(|(times, _)| *times > 0);
    let remedies: Vec<String> = remedies.map(|(times, noun)| count(times, noun)).collect();
    card.line("remedies", remedies.join(", "));
    if let Some(result) = &task.result {
        let how = if result.by_turn_end { " (what its agent said last)" } else { "" };
        card.line("result", format!("{}{how}", one_line(&result.summary)));
        card.text("evidence", result.evidence.as_ref());
    }
    card.line("waiting", waiting(view));
}

fn who(card: &mut Card, task: &Task) {
    card.text("agent", task.spec.agent.as_ref());
    card.line("kind", task.spec.kind.as_str());
    if let Some(worker) = task.worker {
        let from = task.worker_source.map(|from| format!(", {}", source(from))).unwrap_or_default();
        card.line("worker", format!("{worker}{from}"));
    }
    card.line("session", task.session.map(|session| session.to_string()).unwrap_or_default());
    if let Some(run) = task.current_run() {
        card.line("run", format!("{}, {}", run_words(run), count(task.attempts, "deploy")));
    }
}

/// `3 (run_…)`.
fn run_words(run: &TaskRun) -> String {
    let process = run.run.map(|process| format!(" ({process})")).unwrap_or_default();
    format!("{}{process}", run.number)
}

fn family(card: &mut Card, view: &TaskView) {
    let task = &view.task;
    card.line("plan", task.plan.map(|plan| plan.to_string()).unwrap_or_default());
    card.text("key", task.spec.key.as_ref());
    card.line("part of", task.parent.map(|parent| parent.to_string()).unwrap_or_default());
    card.line("reports to", task.reports_to.map(|to| to.to_string()).unwrap_or_default());
    if task.parent.is_some() || task.reports_to.is_some() {
        let then = match task.spec.when_parent_ends {
            ParentEnd::Wait => "it goes on, and its result waits",
            ParentEnd::Adopt => "it goes on, and reports to the next above",
            ParentEnd::Cancel => "it is cancelled",
        };
        card.line("parent ends", then);
    }
    card.lines("after", task.spec.depends_on.iter().map(ToString::to_string));
}

fn the_work(card: &mut Card, task: &Task) {
    let spec = &task.spec;
    if spec.priority != Priority::Normal {
        card.line("priority", priority(spec.priority));
    }
    card.text("group", spec.group.as_ref());
    card.lines("file", spec.files.iter().map(|file| one_line(file)));
    card.text("workspace", task.workspace.as_ref());
    match spec.isolation {
        Isolation::Auto => {}
        Isolation::Worktree => card.line("isolation", "a worktree of its own"),
        Isolation::Shared => card.line("isolation", "none: it works in the workspace"),
    }
    match (spec.may_spawn, spec.subagents) {
        (true, _) => {}
        (false, true) => card.line("may spawn", "its own subagents only"),
        (false, false) => card.line("may spawn", "no"),
    }
    if let Some(bounds) = &spec.bounds {
        card.lines("may change", bounds.may_change.iter().map(|entry| one_line(entry)));
        card.lines("must not", bounds.must_not_change.iter().map(|entry| one_line(entry)));
        card.lines("not part", bounds.out_of_scope.iter().map(|entry| one_line(entry)));
    }
}

fn where_it_is(card: &mut Card, task: &Task) {
    if let Some(tree) = &task.tree {
        card.line("branch", format!("{} from {}", one_line(&tree.branch), commit(&tree.base)));
        let gone = if tree.removed { " (taken away; the branch has it all)" } else { "" };
        card.line("worktree", format!("{}{gone}", one_line(&tree.path)));
    } else {
        card.text("base", task.spec.base.as_ref());
    }
    if let Some(captured) = &task.captured {
        let mut names: Vec<String> =
            captured.files.iter().take(FILES_SHOWN).map(|file| one_line(file)).collect();
        if names.len() < captured.files_changed as usize {
            names.push("…".to_owned());
        }
        let files = count(captured.files_changed, "file");
        card.line("captured", format!("{} in {}: {}", files, commit(&captured.commit), names.join(", ")));
    }
    card.text("not captured", task.capture_failed.as_ref());
    card.line("merged", task.merged.as_deref().map(commit).unwrap_or_default());
}

pub(crate) const fn priority(priority: Priority) -> &'static str {
    match priority {
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "high",
        Priority::Critical => "critical",
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use lanyard_core::paper::Bounds;
    use lanyard_core::task::health::Condition;
    use lanyard_core::task::{Captured, MailTo, TaskEnding, TaskResult, TaskState, Tree, WorkerSource};
    use lanyard_core::{RunId, TaskId};

    use super::*;
    use crate::render::task::testing::{now, plan_id, session_id, task, then, worker_id};

    #[test]
    fn a_task_nobody_works_at_has_a_short_card() {
        let mut view = task(1, TaskState::Pending, "write the notes");
        view.held = Some("its plan is draft".to_owned());
        expect![[r"
            id           task_00000000000000000000000001
            title        write the notes
            address      orchestrator:/task_00000000000000000000000001
            state        [ ] pending for 3m
            held         its plan is draft

            kind         background

            workspace    /srv/web
            may spawn    no

            created      2026-11-15T08:00:00Z (3m ago) by operator
            log          1 event
        "]]
        .assert_eq(&task_card(&view, now()));
    }

    #[test]
    fn a_task_at_work_shows_who_works_where_and_for_whom() {
        let mut view = task(1, TaskState::Running, "fix the login test");
        view.condition = Some(Condition::Looping);
        view.open_children = 1;
        let task = &mut view.task;
        task.aliases = vec!["chat-7".to_owned()];
        task.ending = Some(TaskEnding::Cancel { now: true });
        task.reason = Some("wrong\nbranch".to_owned());
        task.remedies.nudges = 2;
        task.remedies.restarts = 1;
        task.result = Some(TaskResult {
            summary: "green".to_owned(),
            evidence: Some("ci 42".to_owned()),
            by_turn_end: true,
        });
        task.worker = Some(worker_id(5));
        task.worker_source = Some(WorkerSource::Reused);
        task.session = Some(session_id(7));
        task.attempts = 2;
        task.runs =
            vec![TaskRun { number: 3, session: session_id(7), run: Some(RunId::from_u128(8)), at: then() }];
        task.plan = Some(plan_id());
        task.parent = Some(TaskId::from_u128(2));
        task.reports_to = Some(MailTo::Task(TaskId::from_u128(2)));
        task.created_in = Some(session_id(6));
        task.workspace = Some("/srv/web".to_owned());
        let spec = &mut task.spec;
        spec.key = Some("login".to_owned());
        spec.agent = Some("codex".to_owned());
        spec.depends_on = vec![TaskId::from_u128(3), TaskId::from_u128(4)];
        spec.priority = Priority::High;
        spec.group = Some("backend".to_owned());
        spec.files = vec!["src/**".to_owned()];
        spec.when_parent_ends = ParentEnd::Cancel;
        spec.may_spawn = true;
        let must_not_change = vec!["Cargo.lock".to_owned()];
        spec.bounds = Some(Bounds { must_not_change, ..Bounds::default() });
        spec.prompt = "Make it green.\nTouch nothing else.\u{1b}[2J".to_owned();
        task.tree = Some(Tree {
            path: "/data/trees/task_1".to_owned(),
            branch: "lanyard/task_1".to_owned(),
            base: "0123abc".to_owned(),
            repository: "/srv/web".to_owned(),
            removed: true,
        });
        task.captured = Some(Captured {
            commit: "4567def".to_owned(),
            files: vec!["src/a.rs".to_owned()],
            files_changed: 3,
        });
        expect![[r"
            id           task_00000000000000000000000001
            title        fix the login test
            address      orchestrator:/task_00000000000000000000000001
            alias        chat-7
            state        [>] running, being cancelled at once for 3m
            because      wrong branch
            health       looping: the same call again and again
            remedies     2 nudges, 1 restart
            result       green (what its agent said last)
            evidence     ci 42
            waiting      1 child

            agent        codex
            kind         background
            worker       worker_00000000000000000000000005, id reused
            session      sess_00000000000000000000000007
            run          3 (run_00000000000000000000000008), 2 deploys

            plan         plan_00000000000000000000000009
            key          login
            part of      task_00000000000000000000000002
            reports to   task_00000000000000000000000002
            parent ends  it is cancelled
            after        task_00000000000000000000000003
                         task_00000000000000000000000004

            priority     high
            group        backend
            file         src/**
            workspace    /srv/web
            must not     Cargo.lock

            branch       lanyard/task_1 from 0123abc
            worktree     /data/trees/task_1 (taken away; the branch has it all)
            captured     3 files in 4567def: src/a.rs, …

            created      2026-11-15T08:00:00Z (3m ago) by operator in sess_00000000000000000000000006
            log          1 event

            Make it green.
            Touch nothing else.�[2J
        "]]
        .assert_eq(&task_card(&view, now()));
    }
}
