//! The owner's loop: take what is ready, write it down, answer, look at what it concerns, do what is wanted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use lanyard_core::redact::RedactionScope;
use lanyard_core::task::mail::admit;
use lanyard_core::task::{
    Kin, Mail, MailFrom, MailTo, SeenSession, Task, TaskEnvelope, TaskEvent, TaskState, TaskWant, observe,
    want,
};
use lanyard_core::{Actor, MailId, PlanId, SessionId, TaskId, Timestamp};
use lanyard_store::{MailFilter, StoreError, TaskFilter, WorkBatch};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use crate::families::held::Tasks;
use crate::families::{Answer, Families, FamilyError, Input, Tools, look, work};
use lanyard_base::error_chain;
use lanyard_base::failpoint;
use lanyard_engine::redaction::{of_mail, of_task};

/// Inputs of one round.
const ROUND_MAX: usize = 64;
/// Rows read at a time.
const PAGE: usize = 500;
/// Times something that did not work is tried again before the task fails.
const TRIES_MAX: u32 = 5;
/// Milliseconds before the first of them; doubled each time.
const RETRY_MS: u64 = 500;
/// Times in a row something new of a task may follow from the last.
const NEWS_MAX: usize = 8;
/// Seconds between two looks at how workers do; fewer where less patience is asked for.
const HEALTH_TICKS: u64 = 5;

pub(crate) struct Owner {
    pub(super) tools: Arc<Tools>,
    pub(super) families: Families,
    /// Those that have not ended, and all of the plans they belong to.
    pub(super) tasks: Tasks,
    /// Whose session it is, of those.
    pub(super) sessions: HashMap<SessionId, TaskId>,
    /// Mail that is not settled, in order.
    pub(super) mail: BTreeMap<MailTo, Vec<Mail>>,
    /// The last place given in any box: places only grow.
    pub(super) place: u64,
    /// When sessions made tasks lately.
    pub(super) spawns: HashMap<SessionId, VecDeque<Timestamp>>,
    pub(super) halted: bool,
    /// Tasks to look at, boxes to look into, plans to go on with.
    pub(super) pokes: BTreeSet<TaskId>,
    pub(super) boxes: BTreeSet<MailTo>,
    pub(super) plans: BTreeSet<PlanId>,
    /// Tasks for which something is being done.
    busy: HashSet<TaskId>,
    /// Boxes whose mail is being given over.
    pub(super) giving: HashSet<MailTo>,
    /// Tasks whose end the owner of a box waits for in a call of its own.
    pub(super) awaited: HashMap<(MailTo, TaskId), u32>,
    tries: HashMap<TaskId, (u32, Timestamp)>,
    pub(super) health: super::health::Watch,
    batch: WorkBatch,
    dirty: BTreeSet<TaskId>,
    /// What is in memory is not what is on disk: everything is read, and then looked at, before anything else.
    stale: bool,
    /// An event did not apply: a defect. Nothing of the round may be written.
    poison: Option<String>,
    ticks: u64,
    looked_back: bool,
}

impl Owner {
    pub(super) fn new(tools: Arc<Tools>, families: Families) -> Self {
        Self {
            tools,
            families,
            tasks: Tasks::default(),
            sessions: HashMap::new(),
            mail: BTreeMap::new(),
            place: 0,
            spawns: HashMap::new(),
            halted: false,
            pokes: BTreeSet::new(),
            boxes: BTreeSet::new(),
            plans: BTreeSet::new(),
            busy: HashSet::new(),
            giving: HashSet::new(),
            awaited: HashMap::new(),
            tries: HashMap::new(),
            health: super::health::Watch::default(),
            batch: WorkBatch::default(),
            dirty: BTreeSet::new(),
            stale: true,
            poison: None,
            ticks: 0,
            looked_back: false,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.tools.clock.now()
    }

    pub(super) fn run(mut self, mut inbox: mpsc::Receiver<Input>) {
        let mut open = true;
        while open {
            let Some(first) = inbox.blocking_recv() else { return };
            if self.stale {
                // What was refused may be on disk after all, once the journal has recovered.
                let failing = self.tools.engine.stats.storage_error().is_some();
                match self.load() {
                    Ok(()) => self.stale = failing,
                    Err(error) => tracing::error!(error = error_chain(&error), "tasks cannot be read"),
                }
            }
            if let Err(error) = self.look_back() {
                tracing::error!(%error, "the ends of sessions could not be told");
            }
            let mut answers: Vec<Answer> = Vec::new();
            open = self.take(first, &mut answers);
            for _ in 1..ROUND_MAX {
                match inbox.try_recv() {
                    Ok(input) if open => open = self.take(input, &mut answers),
                    Ok(_) | Err(_) => break,
                }
            }
            let written = self.commit();
            for answer in answers {
                answer(written.clone());
            }
            while !(self.pokes.is_empty() && self.boxes.is_empty() && self.plans.is_empty()) {
                self.look_around();
            }
        }
        tracing::debug!("the owner of families stopped");
    }

    /// Once: what ended just before the last daemon did.
    fn look_back(&mut self) -> Result<(), FamilyError> {
        if !self.looked_back {
            let of_session = |task: &Task| match task.reports_to {
                Some(MailTo::Session(session)) => Some(session),
                Some(MailTo::Task(_)) | None => None,
            };
            let parents: Vec<SessionId> = self.tasks.values().filter_map(of_session).collect();
            self.ended_sessions(&parents);
            self.tell_of_recent()?;
            if !self.halted {
                self.release_inboxes();
            }
            self.looked_back = true;
        }
        Ok(())
    }

    /// Reads all that is open. What the last daemon left is looked at before anything new is begun.
    fn load(&mut self) -> Result<(), StoreError> {
        self.tasks.clear();
        self.sessions.clear();
        self.mail.clear();
        self.load_tasks(&TaskFilter { ended: Some(false), ..TaskFilter::default() })?;
        let plans: BTreeSet<PlanId> = self.tasks.values().filter_map(|task| task.plan).collect();
        for plan in plans {
            self.load_tasks(&TaskFilter { plan: Some(plan), ..TaskFilter::default() })?;
        }
        let filter = MailFilter { settled: Some(false), ..MailFilter::default() };
        let mut after = None;
        loop {
            let page = self.tools.store.mails(&filter, after, PAGE)?;
            let Some(last) = page.last() else { break };
            after = Some((last.to, last.seq));
            for mail in page {
                self.place = self.place.max(mail.seq);
                self.mail.entry(mail.to).or_default().push(mail);
            }
        }
        self.halted = super::halt::how(&*self.tools.store)?.is;
        self.pokes = self.tasks.keys().copied().collect();
        self.boxes = self.mail.keys().copied().collect();
        Ok(())
    }

    pub(super) fn load_tasks(&mut self, filter: &TaskFilter) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.tools.store.tasks(filter, after, PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.id);
            for task in page {
                self.hold(task);
            }
        }
    }

    pub(super) fn hold(&mut self, task: Task) {
        if let Some(session) = task.session
            && !task.state.is_ended()
        {
            self.sessions.insert(session, task.id);
        }
        self.tasks.hold(task);
    }

    /// Answers whether to go on.
    fn take(&mut self, input: Input, answers: &mut Vec<Answer>) -> bool {
        match input {
            Input::Job(job) => answers.push(job(self)),
            Input::Changed(sessions) => self.changed(&sessions),
            Input::Ended(sessions) => self.ended(&sessions),
            Input::ChangedAll => {
                self.pokes.extend(self.tasks.keys().copied());
                self.boxes.extend(self.mail.keys().copied());
            }
            Input::Done { task, done } => {
                self.busy.remove(&task);
                self.done(task, done);
                self.pokes.insert(task);
            }
            Input::Gave(gave) => self.gave(gave),
            Input::Tick => self.tick(),
            Input::Stop => return false,
        }
        true
    }

    fn changed(&mut self, sessions: &[SessionId]) {
        for session in sessions {
            if let Some(task) = self.sessions.get(session) {
                self.pokes.insert(*task);
                self.boxes.insert(MailTo::Task(*task));
            }
            self.boxes.insert(MailTo::Session(*session));
        }
        // Boxes nobody writes to are many; only those with mail are looked into.
        self.boxes.retain(|to| self.mail.contains_key(to));
    }

    /// What becomes of those who work for them, and who is to hear of it.
    fn ended(&mut self, sessions: &[SessionId]) {
        self.ended_sessions(sessions);
        if let Err(error) = self.tell_parents(sessions) {
            tracing::error!(%error, "the ends of sessions could not be told");
        }
    }

    fn tick(&mut self) {
        self.ticks += 1;
        let now = self.now();
        let due: Vec<TaskId> =
            self.tries.iter().filter(|(_, (_, at))| *at <= now).map(|(task, _)| *task).collect();
        self.pokes.extend(due);
        let patience = self.tools.rules().health.patience_ms / 1_000;
        if self.ticks.is_multiple_of(patience.clamp(1, HEALTH_TICKS)) {
            self.look_at_health();
            self.boxes.extend(self.mail.keys().copied());
            self.plans.extend(
                self.tasks
                    .values()
                    .filter(|task| task.state == TaskState::Pending)
                    .filter_map(|task| task.plan),
            );
            self.poke_those_who_wait();
        }
    }

    /// Tasks that are begun as soon as nothing holds them.
    fn poke_those_who_wait(&mut self) {
        let waits = |task: &&Task| task.state == TaskState::Pending && task.spec.auto;
        self.pokes.extend(self.tasks.values().filter(waits).map(|task| task.id));
    }

    /// Writes an event of a task: true in memory now, on disk with the round.
    pub(super) fn write(&mut self, id: TaskId, event: TaskEvent, actor: &Actor) {
        if self.poison.is_some() {
            return;
        }
        let at = self.now();
        let seq = self.tasks.get(&id).map_or(0, |task| task.seq) + 1;
        let scope = of_task(&event);
        let Some(event) = self.redacted(event, scope) else { return };
        let envelope = TaskEnvelope { task: id, seq, at, actor: actor.clone(), event };
        if let Err(defect) = self.apply(&envelope) {
            tracing::error!(task = %id, seq, defect, "an event of a task did not apply; the round is dropped");
            self.poison = Some(defect);
            return;
        }
        if let TaskEvent::Deployed { worker, source, session, run, .. } = &envelope.event {
            tracing::info!(task = %id, %worker, source = source.as_str(), %session, run, "deployed");
        }
        self.batch.entries.push(envelope);
        self.dirty.insert(id);
        self.pokes.insert(id);
    }

    fn apply(&mut self, envelope: &TaskEnvelope) -> Result<(), String> {
        let task = self.tasks.apply(envelope)?;
        if let (Some(session), false) = (task.session, task.state.is_ended()) {
            self.sessions.insert(session, task.id);
        }
        Ok(())
    }

    /// The value without its secrets. A value that cannot be redacted drops the round.
    fn redacted<T: Serialize + DeserializeOwned>(&mut self, value: T, scope: RedactionScope) -> Option<T> {
        match self.tools.engine.stats.redaction.event(value, scope) {
            Ok(value) => Some(value),
            Err(defect) => {
                tracing::error!(defect, "a record could not be redacted; the round is dropped");
                self.poison = Some(defect);
                None
            }
        }
    }

    /// The text of a message as it is kept. Secrets go before the text is cut: half of one is not recognised any more.
    pub(super) fn mail_text(&self, from: &MailFrom, text: &str) -> String {
        admit(&self.tools.engine.stats.redaction.text(text.to_owned(), of_mail(from)))
    }

    pub(super) fn write_mail(&mut self, mail: Mail) {
        let scope = of_mail(&mail.from);
        let Some(mail) = self.redacted(mail, scope) else { return };
        self.batch.mail.retain(|other| other.id != mail.id);
        self.batch.mail.push(mail.clone());
        self.hold_mail(mail);
    }

    /// Holds a message as it is, and looks at what it concerns.
    pub(super) fn hold_mail(&mut self, mail: Mail) {
        self.boxes.insert(mail.to);
        if let MailTo::Task(task) = mail.to {
            self.pokes.insert(task);
        }
        let held = self.mail.entry(mail.to).or_default();
        held.retain(|other| other.id != mail.id);
        if !mail.state.is_settled() {
            let at = held.partition_point(|other| other.seq < mail.seq);
            held.insert(at, mail);
        }
    }

    /// Takes up a message as it is on disk: the engine changes it with the note of its session. Answers the message; none
    /// when this round changes it too.
    pub(super) fn take_up(&mut self, id: MailId) -> Result<Option<Mail>, StoreError> {
        if self.batch.mail.iter().any(|mail| mail.id == id) {
            return Ok(None);
        }
        let stored = self.tools.store.mail(id)?;
        let held = |mail: &Mail| self.mail.get(&mail.to).is_some_and(|held| held.contains(mail));
        if let Some(mail) = stored.clone().filter(|mail| !held(mail)) {
            self.hold_mail(mail);
        }
        Ok(stored)
    }

    /// Makes the round durable. When that fails, what is held in memory is read again before the next.
    pub(super) fn commit(&mut self) -> Result<(), FamilyError> {
        let mut batch = std::mem::take(&mut self.batch);
        let dirty = std::mem::take(&mut self.dirty);
        let poison = self.poison.take();
        if batch == WorkBatch::default() && poison.is_none() {
            return Ok(());
        }
        batch.tasks = dirty.iter().filter_map(|id| self.tasks.get(id).cloned()).collect();
        failpoint::hit("families_before_write");
        let written = match poison {
            Some(defect) => Err(FamilyError::Unavailable(defect)),
            None => batch
                .records()
                .map_err(FamilyError::from)
                .and_then(|records| Ok(self.tools.engine.write_blocking(records)?)),
        };
        failpoint::hit("families_after_write");
        if let Err(error) = &written {
            tracing::error!(%error, "what became of tasks could not be written");
            // Not at once, or a full disk would be asked without a pause; with the next input, at the latest the clock's.
            self.stale = true;
            self.pokes.clear();
            self.boxes.clear();
            self.plans.clear();
        }
        self.mail.retain(|_, held| !held.is_empty());
        if written.is_ok() && batch.entries.iter().any(|entry| matches!(entry.event, TaskEvent::Ended { .. }))
        {
            self.families.ends.notify_waiters();
            // There is a place for another.
            self.poke_those_who_wait();
        }
        written
    }

    /// Makes what the round has so far durable, before something that has to come after it. When that fails, the whole
    /// round fails, with the answers of the inputs before.
    pub(super) fn commit_early(&mut self) -> Result<(), FamilyError> {
        let written = self.commit();
        if let Err(error) = &written {
            self.poison = Some(error.to_string());
        }
        written
    }

    /// One look at all that was poked.
    fn look_around(&mut self) {
        let mut seen: Vec<(TaskId, u64, Option<SeenSession>)> = Vec::new();
        for id in std::mem::take(&mut self.pokes) {
            match self.look_at(id) {
                Ok(Some((seq, session))) => seen.push((id, seq, session)),
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(task = %id, error = error_chain(&error), "a task's session cannot be read");
                }
            }
        }
        for to in std::mem::take(&mut self.boxes) {
            if let Err(error) = self.tend(to) {
                tracing::error!(mailbox = %to, %error, "a mailbox could not be looked into");
            }
        }
        for plan in std::mem::take(&mut self.plans) {
            if let Err(error) = self.go_on_with(plan) {
                tracing::error!(%plan, %error, "a plan could not be gone on with");
            }
        }
        if self.commit().is_err() {
            return;
        }
        for (id, seq, session) in seen {
            // What was begun or asked for since it was looked at is looked at anew.
            if self.tasks.get(&id).is_some_and(|task| task.seq == seq) {
                self.do_what_is_wanted(id, session.as_ref());
            }
        }
        self.forget_ended();
    }

    /// Writes what is new of a task. Answers its session as it was seen, and what the task was then; nothing for a task
    /// that wants nothing.
    fn look_at(&mut self, id: TaskId) -> Result<Option<(u64, Option<SeenSession>)>, StoreError> {
        let Some(task) = self.tasks.get(&id) else { return Ok(None) };
        if task.state.is_ended() {
            if let Some(plan) = task.plan {
                self.plans.insert(plan);
            }
            return Ok(None);
        }
        let seen = match task.session {
            Some(session) => look::session(&*self.tools.store, session)?,
            None => None,
        };
        let actor = Actor::system("families");
        // What is new may make something else new: begun, and cut short since.
        for _ in 0..NEWS_MAX {
            let Some(task) = self.tasks.get(&id) else { return Ok(None) };
            let events = observe(task, seen.as_ref(), self.kin(id));
            if events.is_empty() {
                break;
            }
            for event in events {
                self.write(id, event, &actor);
            }
        }
        self.pokes.remove(&id);
        let seq = self.tasks.get(&id).map_or(0, |task| task.seq);
        self.begin_if_free(id);
        Ok(Some((seq, seen)))
    }

    pub(super) fn kin(&self, id: TaskId) -> Kin {
        let to = MailTo::Task(id);
        Kin { open_children: self.tasks.open_below(to).count(), mail: self.mail.get(&to).map_or(0, Vec::len) }
    }

    fn do_what_is_wanted(&mut self, id: TaskId, seen: Option<&SeenSession>) {
        let now = self.now();
        let Some(task) = self.tasks.get(&id) else { return };
        if self.busy.contains(&id) || self.tries.get(&id).is_some_and(|(_, at)| *at > now) {
            return;
        }
        let Some(want) = want(task, seen) else { return };
        if want == TaskWant::Restart {
            return self.restart_or_fail(id, seen.map_or(0, |seen| seen.turns));
        }
        let parent = self.parent_session(id);
        self.busy.insert(id);
        let (tools, families, task) = (self.tools.clone(), self.families.clone(), task.clone());
        self.tools.runtime.spawn(async move {
            let done = work::carry_out(&tools, &task, want, parent).await;
            families.tell(Input::Done { task: task.id, done }).await;
        });
    }

    /// Tries again later, or gives up.
    pub(super) fn failed(&mut self, id: TaskId, why: String, for_good: bool) {
        let now = self.now();
        let tries = self.tries.entry(id).or_insert((0, now));
        tries.0 += 1;
        tries.1 = now.plus_millis(RETRY_MS << tries.0.min(8));
        if for_good || tries.0 > TRIES_MAX {
            self.tries.remove(&id);
            return self.give_up(id, why);
        }
        tracing::warn!(task = %id, why, "something a task needs did not work; it is tried again");
    }

    pub(super) fn worked(&mut self, id: TaskId) {
        self.tries.remove(&id);
    }

    /// Tasks that have ended and belong to no plan with open ones are read again when somebody asks.
    fn forget_ended(&mut self) {
        if !self.tasks.have_ended() {
            return;
        }
        let (pokes, dirty) = (&self.pokes, &self.dirty);
        self.tasks.forget_ended(|id| pokes.contains(&id) || dirty.contains(&id));
        let tasks = &self.tasks;
        self.sessions.retain(|_, task| tasks.get(task).is_some_and(|task| !task.state.is_ended()));
    }

    /// Whether the disk does not know yet how a task is.
    pub(super) fn is_new(&self, id: TaskId) -> bool {
        self.dirty.contains(&id)
    }

    /// A task, in memory or from disk.
    pub(crate) fn task(&mut self, id: TaskId) -> Result<&Task, FamilyError> {
        if !self.tasks.contains_key(&id) {
            let task = self.tools.store.task(id)?.ok_or_else(|| FamilyError::NoTask(id.to_string()))?;
            self.hold(task);
        }
        self.tasks.get(&id).ok_or_else(|| FamilyError::NoTask(id.to_string()))
    }
}
