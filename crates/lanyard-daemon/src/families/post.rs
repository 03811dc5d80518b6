//! The mail: in order, at least once, acknowledged after it was handled, never lost. A message is in its box
//! until whoever works there has gone on after it; who is gone passes it on to who is above. What a task was told from
//! above stays in its box after a cancel or a failure, for the worker of its next run.

use std::sync::Arc;

use lanyard_core::session::{
    Command, Delivery, DrivenBy, InboxChange, Message, NoteKind, NoteStatus, Session, StateName,
};
use lanyard_core::task::mail::{BOX_MAX, Sender, waits_for_next_run};
use lanyard_core::task::{
    Mail, MailFrom, MailKind, MailState, MailTo, ParentEnd, Task, TaskState, WorkerKind,
};
use lanyard_core::{Actor, ActorKind, Cause, MailId, NoteId, SessionId, Timestamp, TurnId};
use lanyard_store::{Loaded, MailFilter};

use crate::families::owner::Owner;
use crate::families::{FamilyError, Input, Tools, find, refused};
use lanyard_base::error_chain;
use lanyard_base::failpoint;
use lanyard_engine::engine::{Ask, AskError, Key, Request};

/// Messages that are on their way to one session at a time.
const GIVEN_MAX: usize = 8;
/// Mailbox sequence numbers available per millisecond.
const PLACES_PER_MS: u64 = 1_024;
/// What wakes an agent that is between turns. The messages themselves stand before it.
const WAKE: &str = "What is above came from those who work for you while you were between turns. Take it into account \
                    and go on with your work.";

/// A message to be.
#[derive(Debug, Clone)]
pub(super) struct Letter {
    /// Where it could be sent twice, the same.
    pub(super) id: Option<MailId>,
    pub(super) to: MailTo,
    pub(super) from: MailFrom,
    pub(super) kind: MailKind,
    pub(super) ended: Option<TaskState>,
    pub(super) text: String,
}

impl Letter {
    pub(super) fn from_task(task: &Task, to: MailTo, kind: MailKind, text: &str) -> Self {
        let from = MailFrom {
            task: Some(task.id),
            worker: task.worker,
            session: task.session,
            run: (task.run > 0).then_some(task.run),
            name: task.agent().to_owned(),
            operator: false,
        };
        Self { id: None, to, from, kind, ended: None, text: text.to_owned() }
    }

    /// How it ended, what came of it, and what it left.
    pub(super) fn of_end(task: &Task, to: MailTo, left: &str) -> Self {
        let mut lines = vec![format!("\"{}\" is {}.", task.spec.title, task.state)];
        if let Some(reason) = &task.reason {
            lines.push(format!("Why: {reason}"));
        }
        if let Some(result) = &task.result {
            lines.push(format!("Result: {}", result.summary));
            lines.extend(result.evidence.as_ref().map(|evidence| format!("Evidence: {evidence}")));
        }
        if !left.is_empty() && (task.state != TaskState::Completed || task.result.is_none()) {
            lines.push(left.to_owned());
        }
        if let Some(tree) = &task.tree {
            lines.push(format!("Its work is on branch {} (since {}).", tree.branch, short(&tree.base)));
        }
        if let Some(captured) = &task.captured {
            let files = match captured.files_changed {
                1 => "1 file".to_owned(),
                files => format!("{files} files"),
            };
            lines.push(format!("Lanyard committed what it had not: {}, {files}.", short(&captured.commit)));
        }
        if let Some(why) = &task.capture_failed {
            lines.push(format!("What it had not committed is still in its worktree: {why}"));
        }
        let mut letter = Self::from_task(task, to, MailKind::Ended, &lines.join("\n"));
        letter.ended = Some(task.state);
        letter
    }
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// What became of giving messages to a session.
#[derive(Debug)]
pub(super) struct Gave {
    to: MailTo,
    session: SessionId,
    given: Vec<MailId>,
    error: Option<String>,
}

/// Who takes a box's mail.
enum Taker {
    /// This session's agent.
    Session(Box<Loaded>),
    /// Nobody yet; there will be somebody.
    Later,
    /// Nobody any more.
    Gone { why: String, next: Option<MailTo> },
}

impl Owner {
    /// Tasks without an explicit agent use the default agent.
    pub(super) fn name_in(&self, mut letter: Letter) -> Letter {
        let unnamed =
            letter.from.task.and_then(|id| self.tasks.get(&id)).is_some_and(|task| task.spec.agent.is_none());
        if let (true, Ok(agent)) = (unnamed, self.tools.agents.default_name()) {
            letter.from.name = agent;
        }
        letter
    }

    /// Puts a message into a box: with what else this round writes, or not at all.
    pub(super) fn post(&mut self, letter: Letter) -> MailId {
        let now = self.now();
        let id = letter.id.unwrap_or_else(|| MailId::mint(now, self.tools.clock.random()));
        let (seq, text) = (self.next_place(), self.mail_text(&letter.from, &letter.text));
        self.write_mail(Mail {
            id,
            to: letter.to,
            seq,
            from: letter.from,
            kind: letter.kind,
            ended: letter.ended,
            text,
            at: now,
            state: MailState::Pending,
            times: 0,
            forwarded_from: None,
        });
        id
    }

    /// Places only grow, also over restarts: the clock does.
    fn next_place(&mut self) -> u64 {
        let now = u64::try_from(self.now().as_millis()).unwrap_or(0).saturating_mul(PLACES_PER_MS);
        self.place = now.max(self.place + 1);
        self.place
    }

    /// Whether a further message may wait there.
    pub(super) fn check_box(&self, to: MailTo) -> Result<(), FamilyError> {
        let waiting = self.mail.get(&to).map_or(0, Vec::len);
        if waiting < BOX_MAX {
            return Ok(());
        }
        let what = format!("{waiting} messages wait in the box of {to} already");
        Err(refused("box_full", what, "wait until some of them were taken"))
    }

    /// Looks into a box: what was heard is settled, what was lost waits again, what waits is given.
    pub(super) fn tend(&mut self, to: MailTo) -> Result<(), FamilyError> {
        let Some(held) = self.mail.get(&to).filter(|held| !held.is_empty()).cloned() else { return Ok(()) };
        for mail in &held {
            if self.has_moved_on(mail)? {
                continue;
            }
            if let Some(state) = self.state_now(mail)? {
                self.write_mail(Mail { state, ..mail.clone() });
            }
        }
        match self.taker(to)? {
            Taker::Later => {}
            Taker::Gone { why, next } => self.pass_on(to, &why, next)?,
            Taker::Session(loaded) => self.give(to, &loaded),
        }
        // Each change looks again; what did not change does not.
        let changed = self.mail.get(&to) != Some(&held);
        if !changed {
            self.boxes.remove(&to);
        }
        Ok(())
    }

    /// Whether the engine has changed a message with its note, which is then held as it is on disk. Asked after the session
    /// was seen to be over, the answer is final.
    pub(super) fn has_moved_on(&mut self, mail: &Mail) -> Result<bool, FamilyError> {
        let on_its_way = matches!(mail.state, MailState::Given { .. }) || self.giving.contains(&mail.to);
        Ok(on_its_way && self.take_up(mail.id)?.is_some_and(|stored| stored.state != mail.state))
    }

    /// What has become of a message that is on its way, where the engine has not settled it with its note.
    fn state_now(&self, mail: &Mail) -> Result<Option<MailState>, FamilyError> {
        let acknowledged = |session: SessionId, how: &str| {
            let acknowledged_at = self.now();
            MailState::Acknowledged { session: Some(session), acknowledged_at, how: how.to_owned() }
        };
        match &mail.state {
            MailState::Given { session, note, .. } => {
                let Some(loaded) = self.tools.store.load(*session)? else {
                    return Ok(Some(MailState::Pending));
                };
                let heard = &loaded.session;
                let over = heard.state.is_ended() || heard.deleted;
                if let Some(held) = heard.guidance.iter().find(|held| held.id == *note) {
                    if over {
                        return Ok(Some(MailState::Pending));
                    }
                    // Not every kind of words is settled with the turn they were said in.
                    let out = held.delivery.as_ref().filter(|_| held.status == NoteStatus::Delivered);
                    // They went out within a turn, which is over now, perhaps in the same millisecond.
                    let over = heard.state.name() == StateName::BetweenTurn;
                    let finished = out.is_some_and(|out| over && heard.since >= out.at);
                    return Ok(finished.then(|| acknowledged(*session, "its agent ended its turn after it")));
                }
                let settled = heard.guidance_settled.iter().find(|held| held.id == *note);
                Ok(Some(match settled.map(|note| note.status) {
                    Some(NoteStatus::Withdrawn) => acknowledged(*session, "somebody took it back"),
                    Some(NoteStatus::Expired | NoteStatus::Undelivered) => MailState::Pending,
                    // The newest that are settled are remembered; it was settled before those.
                    Some(NoteStatus::Acknowledged | NoteStatus::Pending | NoteStatus::Delivered) | None => {
                        acknowledged(*session, "its agent went on after it")
                    }
                }))
            }
            MailState::Shown { session, shown_at } => {
                let Some(loaded) = self.tools.store.load(*session)? else {
                    return Ok(Some(MailState::Pending));
                };
                let session = &loaded.session;
                let called = session.last_tool_call.as_ref().is_some_and(|call| call.at > *shown_at);
                let finished = ended_turn_after(session, *shown_at);
                if called || finished || session.state.name() == StateName::Completed {
                    return Ok(Some(acknowledged(session.id, "its agent went on after the answer")));
                }
                let lost = session.state.name() != StateName::Executing;
                Ok(lost.then_some(MailState::Pending))
            }
            MailState::Pending | MailState::Acknowledged { .. } | MailState::Dead { .. } => Ok(None),
        }
    }

    fn taker(&mut self, to: MailTo) -> Result<Taker, FamilyError> {
        let session = match to {
            MailTo::Session(session) => session,
            MailTo::Task(id) => {
                let task = match self.task(id) {
                    Ok(task) => task.clone(),
                    Err(FamilyError::NoTask(_)) => {
                        return Ok(Taker::Gone { why: format!("task {id} is gone"), next: None });
                    }
                    Err(error) => return Err(error),
                };
                if task.state.is_ended() {
                    let why = format!("task {id} is {}", task.state);
                    return Ok(Taker::Gone { why, next: task.reports_to });
                }
                match task.session {
                    Some(session) => session,
                    None => return Ok(Taker::Later),
                }
            }
        };
        let loaded = self.tools.store.load(session)?;
        let over =
            loaded.as_ref().is_none_or(|loaded| loaded.session.state.is_ended() || loaded.session.deleted);
        match (loaded, to) {
            (Some(loaded), _) if !over => Ok(Taker::Session(Box::new(loaded))),
            // A task that has not ended gets another session.
            (_, MailTo::Task(_)) => Ok(Taker::Later),
            (loaded, MailTo::Session(_)) => {
                let next = match loaded.and_then(|loaded| loaded.session.parent) {
                    Some(parent) => Some(find::box_of(&*self.tools.store, parent)?),
                    None => None,
                };
                Ok(Taker::Gone { why: format!("session {session} has ended"), next })
            }
        }
    }

    /// Nobody is left who would take it: the next above gets it, or it is kept as a dead letter, which is seen.
    fn pass_on(&mut self, to: MailTo, why: &str, next: Option<MailTo>) -> Result<(), FamilyError> {
        for mail in self.mail.get(&to).cloned().unwrap_or_default() {
            let waits = mail.state == MailState::Pending && !self.has_moved_on(&mail)?;
            if !waits || self.waits_for_parent(&mail)? || self.waits_here(&mail)? {
                continue;
            }
            let Some(next) = next else {
                let state = MailState::Dead { why: why.to_owned(), dead_at: self.now() };
                tracing::warn!(mail = %mail.id, mailbox = %to, why, "a message has nobody who takes it");
                self.write_mail(Mail { state, ..mail });
                continue;
            };
            // It leaves one box and comes into the other in the same write.
            if let Some(held) = self.mail.get_mut(&to) {
                held.retain(|other| other.id != mail.id);
            }
            let (seq, forwarded_from) = (self.next_place(), Some(mail.forwarded_from.unwrap_or(to)));
            self.write_mail(Mail { to: next, seq, forwarded_from, ..mail });
        }
        Ok(())
    }

    /// Its sender declared that it waits for this parent, which can be run again.
    fn waits_for_parent(&mut self, mail: &Mail) -> Result<bool, FamilyError> {
        let (Some(from), MailTo::Task(_)) = (mail.from.task, mail.to) else { return Ok(false) };
        match self.task(from) {
            Ok(task) => Ok(task.spec.when_parent_ends == ParentEnd::Wait),
            Err(FamilyError::NoTask(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Its task has ended and can be retried, and it is for whoever works there next.
    fn waits_here(&mut self, mail: &Mail) -> Result<bool, FamilyError> {
        let MailTo::Task(id) = mail.to else { return Ok(false) };
        let task = match self.task(id) {
            Ok(task) => task.clone(),
            Err(FamilyError::NoTask(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        let from = mail.from.task.map(MailTo::Task).or(mail.from.session.map(MailTo::Session));
        let sender = match from {
            Some(from) if find::above(&*self.tools.store, &task)?.contains(&from) => Sender::Above,
            _ if mail.from.operator => Sender::Above,
            Some(_) | None => Sender::Below,
        };
        Ok(waits_for_next_run(task.state, sender))
    }

    /// A task is worked on again: its next worker gets what nobody took.
    pub(super) fn revive(&mut self, to: MailTo) -> Result<(), FamilyError> {
        let filter = MailFilter { to: Some(to), dead: Some(true), ..MailFilter::default() };
        for mail in self.tools.store.mails(&filter, None, BOX_MAX)? {
            self.write_mail(Mail { state: MailState::Pending, ..mail });
        }
        Ok(())
    }

    fn give(&mut self, to: MailTo, loaded: &Loaded) {
        if self.giving.contains(&to) {
            return;
        }
        let held = self.mail.get(&to).map(Vec::as_slice).unwrap_or_default();
        let out = held.iter().filter(|mail| matches!(mail.state, MailState::Given { .. })).count();
        let awaited = |mail: &&Mail| {
            mail.kind == MailKind::Ended
                && mail.from.task.is_some_and(|task| self.awaited.contains_key(&(to, task)))
        };
        let pending = held.iter().filter(|mail| mail.state == MailState::Pending && !awaited(mail));
        let next: Vec<Mail> = pending.take(GIVEN_MAX.saturating_sub(out)).cloned().collect();
        let wake = (out > 0 || !next.is_empty()) && self.can_be_woken(to, &loaded.session);
        if next.is_empty() && !wake {
            return;
        }
        self.giving.insert(to);
        let (tools, families, session) = (self.tools.clone(), self.families.clone(), loaded.session.id);
        self.tools.runtime.spawn(async move {
            let gave = give_all(&tools, to, session, next, wake).await;
            families.tell(Input::Gave(gave)).await;
        });
    }

    /// Between turns, with an agent Lanyard can start, and nobody holding it.
    fn can_be_woken(&self, to: MailTo, session: &Session) -> bool {
        let ours =
            session.hands.agent.as_deref().is_some_and(|agent| self.tools.agents.settings(agent).is_some());
        let task = match to {
            MailTo::Task(id) => self.tasks.get(&id),
            MailTo::Session(_) => None,
        };
        let at_work = task.is_none_or(|task| {
            task.state == TaskState::Running
                && task.spec.kind != WorkerKind::External
                && task.ending.is_none()
        });
        let rests =
            matches!(session.state.name(), StateName::BetweenTurn | StateName::Idle | StateName::Stale);
        self.tools.rules().families.wake
            && ours
            && at_work
            && rests
            && session.driver() == DrivenBy::Lanyard
            && session.turns > 0
            && session.stop.is_none()
            && session.inbox.is_empty()
            && session.inbox_paused.is_none()
            && !session.archived
    }

    pub(super) fn gave(&mut self, gave: Gave) {
        self.giving.remove(&gave.to);
        if let Some(error) = gave.error {
            // Looked at again when the session changes, and with the clock.
            tracing::debug!(mailbox = %gave.to, session = %gave.session, error, "mail could not be given");
        }
        for id in gave.given {
            match self.take_up(id) {
                // Its note was queued before, by a daemon that did not write both together.
                Ok(Some(mail)) if mail.to == gave.to => {
                    if let Some(given) = mail.queued(gave.session, self.now()) {
                        self.write_mail(given);
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(mail = %id, error = error_chain(&error), "a message cannot be read");
                }
            }
        }
    }

    /// Sessions that ended and have children at work, or a parent who should hear of it.
    pub(super) fn ended_sessions(&mut self, sessions: &[SessionId]) {
        for session in sessions {
            if self.tasks.open_below(MailTo::Session(*session)).next().is_none() {
                continue;
            }
            if let Err(error) = self.parent_session_ended(*session) {
                tracing::error!(%session, %error, "what becomes of an ended session's tasks could not be decided");
            }
        }
    }

    fn parent_session_ended(&mut self, session: SessionId) -> Result<(), FamilyError> {
        let Some(loaded) = self.tools.store.load(session)? else { return Ok(()) };
        if !loaded.session.state.is_ended() && !loaded.session.deleted {
            return Ok(());
        }
        let next = match loaded.session.parent {
            Some(parent) => Some(find::box_of(&*self.tools.store, parent)?),
            None => None,
        };
        let mine: Vec<Task> = self.tasks.open_below(MailTo::Session(session)).cloned().collect();
        for child in mine {
            self.orphaned(&child, next);
        }
        Ok(())
    }
}

/// Whether the session's agent came to the end of a turn since then, and nothing was asked of it after that.
fn ended_turn_after(session: &Session, at: Timestamp) -> bool {
    session.state.name() == StateName::BetweenTurn && session.since > at
}

/// Gives messages in order, the rest later when one does not go; then wakes who is between turns.
async fn give_all(tools: &Arc<Tools>, to: MailTo, session: SessionId, mail: Vec<Mail>, wake: bool) -> Gave {
    let mut gave = Gave { to, session, given: Vec::new(), error: None };
    for mail in mail {
        failpoint::hit("families_before_give");
        if let Err(error) = give_one(tools, session, &mail).await {
            gave.error = Some(error.to_string());
            return gave;
        }
        failpoint::hit("families_after_give");
        gave.given.push(mail.id);
    }
    if wake && let Err(error) = wake_up(tools, session).await {
        gave.error = Some(error.to_string());
    }
    gave
}

async fn give_one(tools: &Tools, session: SessionId, mail: &Mail) -> Result<(), AskError> {
    // A child that was cancelled is told of as one that was interrupted: it is not its own word.
    let interrupted = mail.kind == MailKind::Ended && mail.ended == Some(TaskState::Cancelled);
    let (kind, actor) = if interrupted || mail.from.operator {
        let kind = if interrupted { NoteKind::Notice } else { NoteKind::Guidance };
        let name = if mail.from.operator { mail.from.name.as_str() } else { "families" };
        (kind, if mail.from.operator { Actor::operator(name) } else { Actor::system(name) })
    } else {
        (NoteKind::Report, Actor { kind: ActorKind::Agent, name: mail.from.name.clone() })
    };
    let (note, about) = (mail.note(), mail.from.session);
    let command = Command::Notify { note, kind, about, text: mail.words() };
    let cause = Some(Cause::Signal(command.name().to_owned()));
    let keys = vec![Key::once(&format!("mail\0{}\0{session}", mail.id))];
    let request = Request { ask: Ask::Do { session, command }, actor, cause, keys };
    tools.engine.ask(request).await.map(|_| ())
}

async fn wake_up(tools: &Tools, session: SessionId) -> Result<(), AskError> {
    let (now, clock) = (tools.clock.now(), &tools.clock);
    let store = tools.store.clone();
    let loaded = tokio::task::spawn_blocking(move || store.load(session)).await;
    let Ok(Ok(Some(loaded))) = loaded else { return Ok(()) };
    if loaded.session.guidance.iter().all(|note| note.status != NoteStatus::Pending) {
        return Ok(());
    }
    let message = Message {
        turn: TurnId::mint(now, clock.random()),
        note: NoteId::mint(now, clock.random()),
        client_turn_id: None,
        prompt: WAKE.to_owned(),
        parts: Vec::new(),
        delivery: Delivery::Reject,
        memory: None,
        choice: lanyard_core::session::AgentChoice::default(),
        forced: false,
        take_over: false,
        review: None,
    };
    let command = Command::Inbox(InboxChange::Send(Box::new(message)).into());
    // Once for what came after its last turn.
    let key = Key::once(&format!("wake\0{session}\0{}", loaded.session.turns));
    let actor = Actor::system("families");
    let cause = Some(Cause::Signal("wake".to_owned()));
    let request = Request { ask: Ask::Do { session, command }, actor, cause, keys: vec![key] };
    match tools.engine.ask(request).await {
        // The session is already running, or has ended; the next look tells which.
        Ok(_) | Err(AskError::Refused(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
