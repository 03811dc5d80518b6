//! What must hold when all tasks of a simulation have ended, read over HTTP, from git and from the machine.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lanyard_core::Record as _;
use lanyard_core::task::mail::{Sender, waits_for_next_run};
use lanyard_core::task::{
    Mail, MailKind, MailState, MailTo, ParentEnd, Task, TaskEnvelope, TaskEvent, TaskState,
};
use serde_json::Value;

use super::Sim;
use super::look::is_ended;
use crate::families::kit::id;

/// How long mail may take to be settled, and processes to be gone, after the last end.
const SETTLE: Duration = Duration::from_secs(45);
/// How an answer of Lanyard's own tools is acknowledged; there is no note then.
const BY_ANSWER: &str = "its agent went on after the answer";

pub(super) fn all(sim: &mut Sim) {
    settle(sim);
    if !sim.look() {
        sim.fail("the daemon does not answer");
    }
    let mail = mails(sim);
    let mut tasks = BTreeMap::new();
    let mut ends: Vec<End> = Vec::new();
    for shown in sim.seen.all() {
        let (task, mut of_task) = replayed(sim, shown);
        says_why(sim, &task);
        ends.append(&mut of_task);
        tasks.insert(task.id.to_string(), task);
    }
    every_end_is_told_once(sim, &ends, &mail);
    for mail in &mail {
        is_settled(sim, mail, &tasks);
    }
    words_came_once(sim, &mail);
    for task in tasks.values() {
        is_found(sim, task);
    }
    nothing_is_left(sim);
    let report = sim.stage.get("/check");
    let damaged = report
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, found)| found.as_array().is_some_and(|all| !all.is_empty()));
    if damaged.count() > 0 {
        sim.fail(&format!("the journal is damaged: {report}"));
    }
}

/// Waits until nothing is on its way any more. What is then, is found by the checks.
fn settle(sim: &mut Sim) {
    let since = Instant::now();
    let on_its_way = |sim: &Sim| {
        let mail = mails(sim);
        mail.iter().any(|mail| !mail.state.is_settled() && !waits(sim, mail))
            || !sim.stage.processes().is_empty()
    };
    while on_its_way(sim) && since.elapsed() < SETTLE {
        // sleep: between two looks at mail and processes.
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn mails(sim: &Sim) -> Vec<Mail> {
    let mut all = Vec::new();
    for settled in [true, false] {
        let path = format!("/mail?settled={settled}&limit=200");
        all.extend(sim.all(&path, "mail").unwrap_or_else(|| sim.fail("no answer about mail")));
    }
    all.into_iter().map(|mail| serde_json::from_value(mail).unwrap()).collect()
}

/// It waits in the box of a parent that ended, as its sender declared (S4-B09), or as a word from above for the next run.
fn waits(sim: &Sim, mail: &Mail) -> bool {
    let declared = mail.from.task.and_then(|task| sim.seen.get(&task.to_string()));
    let MailTo::Task(to) = mail.to else { return false };
    let Some(to) = sim.seen.get(&to.to_string()).filter(|to| is_ended(to)) else { return false };
    let state: TaskState = serde_json::from_value(to["state"].clone()).unwrap();
    let for_next_run = mail.from.operator && waits_for_next_run(state, Sender::Above);
    let by_sender = declared
        .is_some_and(|task| task["when_parent_ends"] == serde_json::to_value(ParentEnd::Wait).unwrap());
    mail.state == MailState::Pending && (for_next_run || by_sender)
}

/// One end of a task, of which somebody was to hear.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    task: String,
    run: Option<u32>,
    state: TaskState,
}

/// The log adds up to the record; answers that, and the ends in it.
fn replayed(sim: &Sim, shown: &Value) -> (Task, Vec<End>) {
    let name = id(shown, "id");
    let record: Task = serde_json::from_value(shown.clone()).unwrap();
    let mut events: Vec<TaskEnvelope> = Vec::new();
    while (events.len() as u64) < record.seq {
        let page = sim.stage.get(&format!("/tasks/{name}/log?limit=200&after={}", events.len()));
        let page: Vec<TaskEnvelope> = serde_json::from_value(page["events"].clone()).unwrap();
        assert!(!page.is_empty(), "seed {}: the log of {name} ends at {}", sim.seed, events.len());
        events.extend(page);
    }
    let mut task = Task::born(&events[0]).unwrap();
    let (mut ends, mut worker) = (Vec::new(), None);
    for event in &events[1..] {
        let run = task.run;
        task.apply(event).unwrap_or_else(|error| sim.fail(&error.to_string()));
        assert!(task.run >= run, "seed {}: {name}", sim.seed);
        worker = worker.or(task.worker);
        if task.worker != worker {
            sim.fail(&format!("{name} has another worker than {worker:?}: {task:?}"));
        }
        if let TaskEvent::Ended { state, .. } = event.event
            && task.reports_to.is_some()
        {
            ends.push(End { task: name.clone(), run: (task.run > 0).then_some(task.run), state });
        }
    }
    // Keys of requests find a task too, and are not shown.
    task.aliases.retain(|alias| !alias.starts_with("spawn:"));
    if task != record {
        sim.fail(&format!("the log of {name} adds up to {task:#?}\nand its record is {record:#?}"));
    }
    (task, ends)
}

fn says_why(sim: &Sim, task: &Task) {
    let reason = task.reason.as_deref().is_some_and(|reason| !reason.trim().is_empty());
    let says = match task.state {
        TaskState::Completed => reason || task.result.is_some(),
        TaskState::Failed | TaskState::Cancelled => reason,
        TaskState::Pending
        | TaskState::Deploying
        | TaskState::Running
        | TaskState::Paused
        | TaskState::Interrupted => false,
    };
    if !says || task.capture_failed.is_some() || task.tree.as_ref().is_some_and(|tree| !tree.removed) {
        sim.fail(&format!("a task does not say why it ended, or left something: {task:#?}"));
    }
    if let Some(tree) = &task.tree
        && !sim.stage.branch(&tree.branch)
    {
        sim.fail(&format!("the branch of {} is gone: {tree:?}", task.id));
    }
}

/// Each end of which somebody hears is one message, and each such message is one end.
fn every_end_is_told_once(sim: &Sim, ends: &[End], mail: &[Mail]) {
    let of_end = |mail: &&Mail| mail.kind == MailKind::Ended;
    let told = mail.iter().filter(of_end).map(|mail| End {
        task: mail.from.task.unwrap().to_string(),
        run: mail.from.run,
        state: mail.ended.unwrap(),
    });
    let mut told: Vec<End> = told.collect();
    let mut ends: Vec<&End> = ends.iter().collect();
    told.sort_unstable();
    ends.sort_unstable();
    if told.iter().ne(ends.iter().copied()) {
        let untold: Vec<_> = ends.iter().filter(|end| !told.contains(end)).collect();
        let counts = told.iter().map(|end| (end, told.iter().filter(|other| *other == end).count()));
        let twice: Vec<_> = counts.filter(|(_, count)| *count > 1).collect();
        sim.fail(&format!(
            "{} ends and {} messages; untold: {untold:#?}\ntwice: {twice:#?}",
            ends.len(),
            told.len()
        ));
    }
}

fn is_settled(sim: &Sim, mail: &Mail, tasks: &BTreeMap<String, Task>) {
    let fits = match &mail.state {
        MailState::Acknowledged { how, .. } => !how.is_empty(),
        MailState::Dead { why, .. } => !why.is_empty(),
        MailState::Pending => waits(sim, mail),
        MailState::Given { .. } | MailState::Shown { .. } => false,
    };
    if !fits {
        let to = tasks.get(&mail.to.to_string());
        sim.fail(&format!("a message is not settled: {mail:#?}\nto {to:#?}"));
    }
}

/// What a session was given is in its log once, however often it was tried.
fn words_came_once(sim: &Sim, mail: &[Mail]) {
    let mut logs: HashMap<String, HashMap<String, usize>> = HashMap::new();
    for shown in sim.all("/sessions?limit=200", "sessions").unwrap_or_default() {
        let session = id(&shown, "id");
        let mut queued: HashMap<String, usize> = HashMap::new();
        for event in sim.stage.daemon.log_after(&session, 0) {
            if event["type"] == "guidance.queued" {
                *queued.entry(id(&event["data"], "note")).or_default() += 1;
            }
        }
        if let Some((note, times)) = queued.iter().find(|(_, times)| **times > 1) {
            sim.fail(&format!("{session} was given {note} {times} times"));
        }
        logs.insert(session, queued);
    }
    for mail in mail {
        let MailState::Acknowledged { session: Some(session), how, .. } = &mail.state else { continue };
        let given = logs.get(&session.to_string()).and_then(|log| log.get(&mail.note().to_string()));
        if given.is_none() && how != BY_ANSWER {
            sim.fail(&format!("{session} acknowledged what its log does not have: {mail:#?}"));
        }
    }
}

/// By its worker and by its session, as by its own id (S4-20).
fn is_found(sim: &Sim, task: &Task) {
    let names = [task.worker.map(|id| id.to_string()), task.session.map(|id| id.to_string())];
    for name in names.into_iter().flatten() {
        let found = sim.stage.show(&name);
        assert_eq!(found["id"], task.id.to_string(), "seed {}: by {name}", sim.seed);
    }
}

fn nothing_is_left(sim: &Sim) {
    let home = sim.stage.daemon.home();
    let mut left: Vec<PathBuf> = [files(&home.join("runs")), files(&home.join("trees/.making"))].concat();
    left.extend(files(&home.join("trees")).into_iter().filter(|path| !path.ends_with(".making")));
    let (worktrees, processes) = (sim.stage.worktrees() - 1, sim.stage.processes());
    if worktrees > 0 || !processes.is_empty() || !left.is_empty() {
        sim.fail(&format!("{worktrees} worktrees are left, {left:?}, {processes:?}"));
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}
