//! Tasks and mail: records. A task has a log; mail has none.

use lanyard_core::task::{Mail, MailTo, Task, TaskEnvelope, TaskState};
use lanyard_core::{MailId, PlanId, SessionId, TaskId, WorkerId};

use crate::error::StoreError;
use crate::records::{
    KeyRange, KeyValue, RecordBatch, RecordKey, RecordKind, RecordOrder, RecordQuery, RecordRef, Records,
    Stored, get, list, log,
};

/// Tasks and mail, as [`Records`] keeps them.
pub trait Tasks: Records {
    /// A damaged row is rebuilt from the task's log; one that cannot be is an error.
    fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        get(self, id.as_u128())
    }

    /// Tasks that match all of the filter, by id, those after `after` only. At most `limit`; fewer only when there are no
    /// more. One that cannot be made from its row or its log is left out and reported by `check`.
    fn tasks(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Vec<Task>, StoreError> {
        let order = RecordOrder::Oldest { after: after.map(TaskId::as_u128) };
        let query = RecordQuery { kind: RecordKind::Task, keys: filter.keys(), order };
        list(self, &query, |task| filter.matches(task), limit)
    }

    /// Tasks that match all of the filter, newest first. At most `limit`; fewer only when there are no more.
    fn newest_tasks(&self, filter: &TaskFilter, limit: usize) -> Result<Vec<Task>, StoreError> {
        let order = RecordOrder::Newest { before: None };
        let query = RecordQuery { kind: RecordKind::Task, keys: filter.keys(), order };
        list(self, &query, |task| filter.matches(task), limit)
    }

    /// Mail, newest first. At most `limit`; fewer only when there is no more.
    fn newest_mail(&self, limit: usize) -> Result<Vec<Mail>, StoreError> {
        let order = RecordOrder::Newest { before: None };
        list(self, &RecordQuery { kind: RecordKind::Mail, keys: Vec::new(), order }, |_| true, limit)
    }

    /// Up to `limit` events of a task's log with `seq > after`, in order. A damaged one among them is an error.
    fn task_events(&self, task: TaskId, after: u64, limit: usize) -> Result<Vec<TaskEnvelope>, StoreError> {
        log::<Task>(self, task.as_u128(), after, limit)
    }

    /// The tasks of a name: an alias, or the id of a worker, session or run of the task. Newest first, at most
    /// `FIND_MAX`.
    fn tasks_named(&self, name: &str) -> Result<Vec<TaskId>, StoreError> {
        let found = self.records_named(RecordKind::Task, name)?;
        Ok(found.into_iter().map(TaskId::from_u128).collect())
    }

    /// A damaged one is an error.
    fn mail(&self, id: MailId) -> Result<Option<Mail>, StoreError> {
        get(self, id.as_u128())
    }

    /// The last place that is taken in a box; 0 when it is empty.
    fn last_mail(&self, to: MailTo) -> Result<u64, StoreError> {
        let range = KeyRange { key: PLACE, after: place(to, 0), before: place(to, u64::MAX) };
        let last = self.last_key(RecordKind::Mail, &range)?;
        Ok(last.and_then(|last| seq_in(&last)).unwrap_or(0))
    }

    /// Mail that matches all of the filter, by box and place in it, those after `after` only. At most `limit`; fewer
    /// only when there is no more. A damaged one is left out and reported by `check`.
    fn mails(
        &self,
        filter: &MailFilter,
        after: Option<(MailTo, u64)>,
        limit: usize,
    ) -> Result<Vec<Mail>, StoreError> {
        let order = RecordOrder::Key(filter.range(after));
        let query = RecordQuery { kind: RecordKind::Mail, keys: Vec::new(), order };
        list(self, &query, |mail| filter.matches(mail), limit)
    }
}

impl<T: Records> Tasks for T {}

/// Keys of mail. Each value is the mail's place in its box; the last two are there only while the mail is so.
const PLACE: &str = "place";
const UNSETTLED: &str = "unsettled";
const DEAD: &str = "dead";

/// A box as a key: boxes of tasks before those of sessions, as [`MailTo`] is ordered.
fn box_key(to: MailTo) -> Vec<u8> {
    let kind = match to {
        MailTo::Task(_) => 0,
        MailTo::Session(_) => 1,
    };
    [[kind].as_slice(), &to.bits().to_be_bytes()].concat()
}

/// A place in a box as a key.
fn place(to: MailTo, seq: u64) -> KeyValue {
    KeyValue::Bytes([box_key(to).as_slice(), &seq.to_be_bytes()].concat())
}

fn seq_in(place: &KeyValue) -> Option<u64> {
    match place {
        KeyValue::Bytes(bytes) => bytes.last_chunk().copied().map(u64::from_be_bytes),
        KeyValue::Number(_) | KeyValue::Text(_) => None,
    }
}

impl Stored for Task {
    const KIND: RecordKind = RecordKind::Task;

    fn bits(&self) -> u128 {
        self.id.as_u128()
    }

    fn as_of(&self) -> u64 {
        self.seq
    }

    fn keys(&self) -> Vec<RecordKey> {
        let like = TaskFilter {
            plan: self.plan,
            parent: self.parent,
            reports_to: self.reports_to,
            worker: self.worker,
            session: self.session,
            workspace: self.workspace.clone(),
            state: Some(self.state),
            ended: Some(self.state.is_ended()),
        };
        like.keys()
    }
}

impl Stored for Mail {
    const KIND: RecordKind = RecordKind::Mail;

    fn bits(&self) -> u128 {
        self.id.as_u128()
    }

    fn as_of(&self) -> u64 {
        0
    }

    fn keys(&self) -> Vec<RecordKey> {
        let keys = [(PLACE, true), (UNSETTLED, !self.state.is_settled()), (DEAD, self.state.is_dead())];
        let held = keys.into_iter().filter(|(_, held)| *held);
        held.map(|(key, _)| (key, place(self.to, self.seq))).collect()
    }
}

/// One commit of tasks and mail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkBatch {
    /// Entries in the order of their events. Per task, `seq` continues without a gap. The names they give their tasks
    /// ([`lanyard_core::LogEntry::names`]) are kept with them.
    pub entries: Vec<TaskEnvelope>,
    /// Each as of its last entry; all that have entries are here.
    pub tasks: Vec<Task>,
    /// Each as it now is. No two have the same place in a box.
    pub mail: Vec<Mail>,
}

impl WorkBatch {
    /// The writes of the batch.
    pub fn records(&self) -> Result<RecordBatch, StoreError> {
        let mut batch = RecordBatch::default();
        for entry in &self.entries {
            batch.add_entry(RecordRef { kind: RecordKind::Task, id: entry.task.as_u128() }, entry)?;
        }
        let (tasks, mail) = (self.tasks.iter().map(Stored::row), self.mail.iter().map(Stored::row));
        batch.rows = tasks.chain(mail).collect::<Result<_, _>>()?;
        Ok(batch)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    pub plan: Option<PlanId>,
    pub parent: Option<TaskId>,
    pub reports_to: Option<MailTo>,
    pub worker: Option<WorkerId>,
    pub session: Option<SessionId>,
    pub workspace: Option<String>,
    pub state: Option<TaskState>,
    /// Only tasks that have ended (`true`), or that have not (`false`).
    pub ended: Option<bool>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailFilter {
    pub to: Option<MailTo>,
    /// Only tasks that are settled (`true`), or that are not (`false`).
    pub settled: Option<bool>,
    pub dead: Option<bool>,
}

impl TaskFilter {
    /// The keys of what is asked for. Half of all tasks may have the same state, so it is asked last.
    fn keys(&self) -> Vec<RecordKey> {
        let keys = [
            ("plan", self.plan.map(|plan| KeyValue::id(plan.as_u128()))),
            ("parent", self.parent.map(|parent| KeyValue::id(parent.as_u128()))),
            ("reports_to", self.reports_to.map(|to| KeyValue::Bytes(box_key(to)))),
            ("worker", self.worker.map(|worker| KeyValue::id(worker.as_u128()))),
            ("session", self.session.map(|session| KeyValue::id(session.as_u128()))),
            ("workspace", self.workspace.clone().map(KeyValue::Text)),
            ("state", self.state.map(|state| KeyValue::Text(state.as_str().to_owned()))),
            ("ended", self.ended.map(KeyValue::from)),
        ];
        keys.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }

    fn matches(&self, task: &Task) -> bool {
        fn is<T: PartialEq>(wanted: Option<&T>, found: Option<&T>) -> bool {
            wanted.is_none() || wanted == found
        }
        is(self.plan.as_ref(), task.plan.as_ref())
            && is(self.parent.as_ref(), task.parent.as_ref())
            && is(self.reports_to.as_ref(), task.reports_to.as_ref())
            && is(self.worker.as_ref(), task.worker.as_ref())
            && is(self.session.as_ref(), task.session.as_ref())
            && is(self.workspace.as_ref(), task.workspace.as_ref())
            && self.state.is_none_or(|wanted| wanted == task.state)
            && self.ended.is_none_or(|wanted| wanted == task.state.is_ended())
    }
}

impl MailFilter {
    /// The range of the key with the fewest records among which all that match are.
    fn range(&self, after: Option<(MailTo, u64)>) -> KeyRange {
        let key = match (self.settled, self.dead) {
            (Some(false), _) => UNSETTLED,
            (Some(true) | None, Some(true)) => DEAD,
            (Some(true) | None, Some(false) | None) => PLACE,
        };
        let first = self.to.map_or(KeyValue::Bytes(Vec::new()), |to| place(to, 0));
        let last = self.to.map_or(KeyValue::Bytes(vec![u8::MAX]), |to| place(to, u64::MAX));
        let after = after.map_or(first.clone(), |(to, seq)| place(to, seq).max(first));
        KeyRange { key, after, before: last }
    }

    fn matches(&self, mail: &Mail) -> bool {
        self.to.is_none_or(|wanted| wanted == mail.to)
            && self.settled.is_none_or(|wanted| wanted == mail.state.is_settled())
            && self.dead.is_none_or(|wanted| wanted == mail.state.is_dead())
    }
}
