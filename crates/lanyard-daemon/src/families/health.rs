//! How workers do, by worker, and what is done about it. Looked at from the logs of their sessions; nothing is
//! concluded from silence alone.

use std::collections::HashMap;

use lanyard_core::session::{
    ActiveTurn, Command, Envelope, Event, Gate, GateKind, GateOption, GateStatus, NoteStatus, OptionKind,
    Question, Session, Signal, StateName, TranscriptEvent, TurnEvent, TurnOutcome,
};
use lanyard_core::task::health::{Condition, HealthRules, Remedy, Vitals, judge, remedy};
use lanyard_core::task::{Remedies, Task, TaskCommand, TaskEvent, TaskState, WorkerKind};
use lanyard_core::{Actor, GateId, NoteId, RunId, TaskId, Timestamp, WorkerId};

use crate::families::owner::Owner;
use crate::families::{By, FamilyError, work};
use crate::notice::last_events;
use lanyard_base::failpoint;
use lanyard_engine::engine::{Ask, Key};

/// Events of the log that are looked at.
const TAIL: u32 = 200;
/// What providers say when they want to be left alone for a while, compared without case.
const RATE_LIMITS: [&str; 4] = ["rate limit", "rate_limit", "too many requests", "overloaded"];

/// What a person who is asked can choose, and how the question is known again.
const WAIT: &str = "wait";
const RESTART: &str = "restart";
const CANCEL: &str = "cancel";
const REQUEST: &str = "health:";

/// How each worker was found to do.
#[derive(Debug, Default)]
pub(super) struct Watch {
    found: HashMap<WorkerId, Found>,
}

#[derive(Debug, Clone, Copy)]
struct Found {
    condition: Condition,
    /// What the log said then, and where it ended.
    seq: u64,
    log: Log,
}

/// What the end of a log says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Log {
    same_calls: u32,
    errors: u32,
    rate_limited: bool,
}

impl Owner {
    pub(super) fn look_at_health(&mut self) {
        let at_work =
            |task: &&Task| task.state == TaskState::Running && task.spec.kind != WorkerKind::External;
        let tasks: Vec<Task> = self.tasks.values().filter(at_work).cloned().collect();
        let workers: Vec<WorkerId> = tasks.iter().filter_map(|task| task.worker).collect();
        self.health.found.retain(|worker, _| workers.contains(worker));
        for task in tasks {
            if let Err(error) = self.look_at_worker(&task) {
                tracing::error!(task = %task.id, %error, "how a worker does could not be seen");
            }
        }
        let found = self.health.found.iter().map(|(worker, found)| (*worker, found.condition));
        self.families.published.set(found.collect());
    }

    fn look_at_worker(&mut self, task: &Task) -> Result<(), FamilyError> {
        let (Some(worker), Some(id)) = (task.worker, task.session) else { return Ok(()) };
        let Some(loaded) = self.tools.store.load(id)? else { return Ok(()) };
        let session = loaded.session;
        self.heed(task, &session)?;
        let known = self.health.found.get(&worker).filter(|found| found.seq == session.seq);
        let log = match known {
            Some(found) => found.log,
            None => read(&last_events(&*self.tools.store, &session, TAIL)?),
        };
        let now = self.now();
        let vitals = vitals(&session, &log, now);
        let rules = self.tools.rules().health;
        let condition = judge(&vitals, &rules);
        self.health.found.insert(worker, Found { condition, seq: session.seq, log });
        // Who waits for its children is at rest, as it should be.
        let kin = self.kin(task.id);
        if condition == Condition::Idle && (kin.open_children > 0 || kin.mail > 0) {
            return Ok(());
        }
        if let Some(remedy) = remedy(condition, &vitals, &task.remedies, now, &rules) {
            self.remedy(task, &session, condition, remedy, &rules);
        } else if is_to_be_asked(task, &session, condition) {
            self.escalate(task, &session, condition);
        }
        Ok(())
    }

    fn remedy(
        &mut self,
        task: &Task,
        session: &Session,
        condition: Condition,
        remedy: Remedy,
        rules: &HealthRules,
    ) {
        let why = condition.as_str().to_owned();
        tracing::warn!(task = %task.id, worker = ?task.worker, why, remedy = ?remedy, "a worker needs help");
        let event = TaskEvent::Remedied { remedy, why, turns: session.turns };
        self.write(task.id, event, &Actor::system("health"));
        match remedy {
            Remedy::Nudge => self.nudge(task.id, session, condition, rules),
            // What its state wants then brings it back, and the next look finds that a person was not asked.
            Remedy::Restart | Remedy::Escalate => {}
        }
    }

    fn nudge(&self, id: TaskId, session: &Session, condition: Condition, rules: &HealthRules) {
        let text = match condition {
            Condition::Looping => format!(
                "You made the same call {} times in a row. It will not answer differently: try another way, or say what \
                 keeps you.",
                rules.same_calls
            ),
            Condition::ErrorStreak => {
                "Your last calls all failed. Read the errors again, try another way, or say what keeps you."
                    .to_owned()
            }
            Condition::Idle | Condition::Stuck | Condition::Well | Condition::RateLimited => {
                "Nothing was heard of you for a while. Go on with your task, or say what keeps you."
                    .to_owned()
            }
        };
        let (now, tools, session) = (self.now(), self.tools.clone(), session.id);
        let note = NoteId::mint(now, tools.clock.random());
        let key = Key::once(&format!("nudge\0{id}\0{now:?}"));
        self.tools.runtime.spawn(async move {
            let ask = Ask::Do { session, command: Command::Guide { note, text } };
            if let Err(error) = work::ask_engine(&tools, ask, Some(key)).await {
                tracing::warn!(%session, %error, "a worker could not be nudged");
            }
        });
    }
}

impl Owner {
    /// Asks a person. The gate belongs to no process, so no agent answers for it. Asked for twice, it is the same gate.
    fn escalate(&self, task: &Task, session: &Session, condition: Condition) {
        let (id, request) = (task.id, request(task));
        let (tools, session) = (self.tools.clone(), session.id);
        let number = u128::from_be_bytes(Key::once(&format!("escalation\0{session}\0{request}")).key);
        let option = |id: &str, name: &str| GateOption {
            id: id.to_owned(),
            name: name.to_owned(),
            kind: OptionKind::Other,
        };
        let question = Question {
            kind: GateKind::Escalation,
            title: format!("The worker of {id} is {}, and what was tried did not help", condition.as_str()),
            call: None,
            detail: serde_json::json!({ "task": id, "condition": condition }),
            options: vec![
                option(WAIT, "Leave it alone"),
                option(RESTART, "End its run and begin again, by the same worker"),
                option(CANCEL, "Cancel the task"),
            ],
            request,
        };
        let (gate, run) = (GateId::from_u128(number), RunId::from_u128(number));
        let signal = Signal::GateAsked { gate, run, question: Box::new(question) };
        self.tools.runtime.spawn(async move {
            failpoint::hit(failpoint::BEFORE_ESCALATION);
            let ask = Ask::Tell { session, signals: vec![signal] };
            if let Err(error) = work::ask_engine(&tools, ask, None).await {
                tracing::warn!(%session, %error, "a person could not be asked about a worker");
            }
        });
    }

    /// Does what a person answered, once: what is done about it gives the next question another name. An answer to an
    /// older question counts if it came after all that was done since.
    fn heed(&mut self, task: &Task, session: &Session) -> Result<(), FamilyError> {
        let (current, about) = (request(task), format!("{REQUEST}{}:", task.id));
        let asked = |gate: &&Gate| {
            gate.question.kind == GateKind::Escalation && gate.question.request.starts_with(&about)
        };
        for gate in session.gates.iter().filter(asked) {
            let GateStatus::Answered { option, at, by, .. } = &gate.status else { continue };
            let is_old = task.remedies.last_at.is_some_and(|last| last >= *at);
            if is_old && gate.question.request != current {
                continue;
            }
            let by = By { actor: by.clone(), session: None };
            match option.as_str() {
                CANCEL => {
                    let reason = Some("a person was asked and cancelled it".to_owned());
                    self.order(task.id, &TaskCommand::Cancel { reason, now: false }, &by)?;
                }
                RESTART => {
                    let (remedy, why) = (Remedy::Restart, "a person was asked and said so".to_owned());
                    self.write(task.id, TaskEvent::Remedied { remedy, why, turns: session.turns }, &by.actor);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What the question about a task is called: the same until something was done about it or it was begun again.
fn request(task: &Task) -> String {
    let Remedies { restarts, escalations, .. } = task.remedies;
    format!("{REQUEST}{}:{}:{restarts}:{escalations}", task.id, task.attempts)
}

/// It is on disk that a person is to be asked, and its session has no such question. Whatever else is asked there comes
/// first, and one that does well again by then is not asked about.
fn is_to_be_asked(task: &Task, session: &Session, condition: Condition) -> bool {
    let unwell = match condition {
        Condition::Idle | Condition::Stuck | Condition::Looping | Condition::ErrorStreak => true,
        Condition::Well | Condition::RateLimited => false,
    };
    let request = request(task);
    task.remedies.escalations > 0
        && unwell
        && !session.state.is_ended()
        && !session.deleted
        && session.open_gates().next().is_none()
        && session.gates.iter().all(|gate| gate.question.request != request)
}

fn vitals(session: &Session, log: &Log, now: Timestamp) -> Vitals {
    let executing = session.state.name() == StateName::Executing;
    let waits = session.turn.as_ref().is_some_and(ActiveTurn::is_waiting);
    // What it has heard is given time to work as well.
    let heard = session.guidance_settled.iter().filter(|note| note.status == NoteStatus::Acknowledged);
    let steered = session.guidance.iter().chain(heard).map(|note| note.queued_at).max();
    Vitals {
        executing,
        open_calls: session.open_calls.len() + usize::try_from(session.calls_in_flight).unwrap_or(0),
        // A turn that waits for a limit has a reason to be quiet.
        quiet_ms: if waits { 0 } else { now.millis_since(session.last_activity_at) },
        steered_ms: steered.map(|at| now.millis_since(at)),
        same_calls: log.same_calls,
        errors: log.errors,
        rate_limited: log.rate_limited,
        asks: session.open_gates().next().is_some(),
    }
}

/// Calls that are the same, failures in a row, and what providers say, from the end of a log.
fn read(events: &[Envelope]) -> Log {
    let mut log = Log::default();
    let mut last: Option<(String, String)> = None;
    for envelope in events {
        match &envelope.event {
            Event::Transcript(TranscriptEvent::ToolCalled { tool, arguments, .. }) => {
                let call = (tool.clone(), arguments.to_string());
                log.same_calls = if last.as_ref() == Some(&call) { log.same_calls + 1 } else { 1 };
                log.rate_limited = false;
                last = Some(call);
            }
            Event::Transcript(TranscriptEvent::ToolReturned { is_error, .. }) => {
                log.errors = if *is_error { log.errors + 1 } else { 0 };
            }
            Event::Transcript(TranscriptEvent::Message { .. }) => {
                (log.errors, log.rate_limited) = (0, false);
            }
            Event::Turn(TurnEvent::Started { .. }) => {
                (log.same_calls, last) = (0, None);
            }
            Event::Turn(TurnEvent::Waiting { limit, .. }) => log.rate_limited = !limit.kind.is_transient(),
            Event::Turn(TurnEvent::Continued { .. }) => log.rate_limited = false,
            Event::Turn(TurnEvent::Finished { outcome, reason, .. }) => {
                let said = reason.as_deref().unwrap_or_default().to_lowercase();
                log.rate_limited = RATE_LIMITS.iter().any(|words| said.contains(words));
                log.errors = if *outcome == TurnOutcome::Completed { 0 } else { log.errors + 1 };
            }
            Event::Transcript(_)
            | Event::Turn(_)
            | Event::Inbox(_)
            | Event::Change(_)
            | Event::Context(_)
            | Event::Control(_)
            | Event::Run(_)
            | Event::Gate(_)
            | Event::Writer(_)
            | Event::Review(_) => {}
        }
    }
    log
}
