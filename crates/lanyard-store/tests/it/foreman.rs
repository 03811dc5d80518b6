//! Tasks and mail made with the real core, batches of them, and what a store must then answer.

use std::collections::BTreeMap;

use lanyard_core::session::InterruptCause;
use lanyard_core::task::{
    Mail, MailFrom, MailKind, MailState, MailTo, Task, TaskCreated, TaskEnvelope, TaskEvent, TaskSpec,
    TaskState, WorkerSource,
};
use lanyard_core::{Actor, MailId, RunId, SessionId, TaskId, WorkerId};
use lanyard_core::{LogEntry as _, Record as _};
use lanyard_store::{MailFilter, TaskFilter, WorkBatch};

use crate::kit::{Store, WriteRecords, at};

/// Makes tasks and mail as the daemon would, and remembers all of it.
#[derive(Clone)]
pub(crate) struct Foreman {
    now: i64,
    minted: u128,
    pub(crate) tasks: BTreeMap<TaskId, Task>,
    pub(crate) logs: BTreeMap<TaskId, Vec<TaskEnvelope>>,
    pub(crate) mail: BTreeMap<MailId, Mail>,
    batch: WorkBatch,
}

impl Default for Foreman {
    fn default() -> Self {
        let (tasks, logs, mail) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { now: 1_794_729_600_000, minted: 0, tasks, logs, mail, batch: WorkBatch::default() }
    }
}

/// A task that says nothing but its title.
pub(crate) fn plain(title: &str) -> TaskCreated {
    let spec = TaskSpec { title: title.to_owned(), prompt: title.to_owned(), ..TaskSpec::default() };
    TaskCreated {
        plan: None,
        parent: None,
        reports_to: None,
        workspace: None,
        created_in: None,
        aliases: Vec::new(),
        spec,
    }
}

impl Foreman {
    fn mint(&mut self) -> u128 {
        self.minted += 1;
        self.minted.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
    }

    pub(crate) fn create(&mut self, new: TaskCreated) -> TaskId {
        self.now += 1;
        let task = TaskId::mint(at(self.now), self.mint());
        let event = TaskEvent::Created(Box::new(new));
        let envelope = TaskEnvelope { task, seq: 1, at: at(self.now), actor: Actor::operator("alex"), event };
        self.tasks.insert(task, Task::born(&envelope).unwrap());
        self.record(envelope);
        task
    }

    pub(crate) fn push(&mut self, task: TaskId, event: TaskEvent) {
        self.now += 1;
        let held = self.tasks.get_mut(&task).unwrap();
        let (seq, actor) = (held.seq + 1, Actor::operator("alex"));
        let envelope = TaskEnvelope { task, seq, at: at(self.now), actor, event };
        held.apply(&envelope).unwrap();
        self.record(envelope);
    }

    fn record(&mut self, envelope: TaskEnvelope) {
        self.batch.tasks.retain(|task| task.id != envelope.task);
        self.batch.tasks.push(self.tasks[&envelope.task].clone());
        self.logs.entry(envelope.task).or_default().push(envelope.clone());
        self.batch.entries.push(envelope);
    }

    pub(crate) fn deploy(&mut self, task: TaskId, worker: u128, session: u128) {
        let run = self.tasks[&task].run + 1;
        let (worker, session) = (WorkerId::from_u128(worker), SessionId::from_u128(session));
        self.push(
            task,
            TaskEvent::Deployed { worker, source: WorkerSource::Generated, session, run, turns: 0 },
        );
    }

    pub(crate) fn see_run(&mut self, task: TaskId, process: u128) {
        let last = self.tasks[&task].current_run().unwrap();
        let run = if last.run.is_none() { last.number } else { last.number + 1 };
        self.push(task, TaskEvent::RunSeen { run, process: RunId::from_u128(process) });
    }

    pub(crate) fn end(&mut self, task: TaskId, state: TaskState) {
        self.push(task, TaskEvent::Ended { state, reason: Some("enough".to_owned()) });
    }

    /// Something of everything that may happen to a task.
    pub(crate) fn work_at(&mut self, task: TaskId, number: u128) {
        self.deploy(task, 1_000 + number, 2_000 + number);
        self.push(task, TaskEvent::Started {});
        self.see_run(task, 3_000 + number);
        self.push(task, TaskEvent::Interrupted { cause: InterruptCause::Crash, reason: None });
        self.push(task, TaskEvent::Resumed { turns: 1 });
        self.see_run(task, 4_000 + number);
    }

    /// A message with the next place in its box.
    pub(crate) fn send(&mut self, to: MailTo, text: &str) -> MailId {
        let last = self.mail.values().filter(|mail| mail.to == to).map(|mail| mail.seq).max();
        self.send_as(to, last.unwrap_or(0) + 1, text)
    }

    pub(crate) fn send_as(&mut self, to: MailTo, seq: u64, text: &str) -> MailId {
        self.now += 1;
        let id = MailId::mint(at(self.now), self.mint());
        let from = MailFrom { name: "tester".to_owned(), ..MailFrom::default() };
        self.put(Mail {
            id,
            to,
            seq,
            from,
            kind: MailKind::Message,
            ended: None,
            text: text.to_owned(),
            at: at(self.now),
            state: MailState::Pending,
            times: 0,
            forwarded_from: None,
        });
        id
    }

    pub(crate) fn put(&mut self, mail: Mail) {
        self.batch.mail.push(mail.clone());
        self.mail.insert(mail.id, mail);
    }

    pub(crate) fn settle(&mut self, id: MailId, state: MailState) {
        let mail = Mail { state, times: 1, ..self.mail[&id].clone() };
        self.put(mail);
    }

    /// Everything that happened since the last batch.
    pub(crate) fn batch(&mut self) -> WorkBatch {
        std::mem::take(&mut self.batch)
    }

    pub(crate) fn write(&mut self, store: &dyn Store) {
        store.write_work(&self.batch()).unwrap();
    }

    /// Names, each with the tasks it stands for, the newest first.
    pub(crate) fn names(&self) -> BTreeMap<String, Vec<TaskId>> {
        let mut names: BTreeMap<String, Vec<TaskId>> = BTreeMap::new();
        for envelope in self.logs.values().rev().flatten() {
            for name in envelope.names() {
                let tasks = names.entry(name).or_default();
                if !tasks.contains(&envelope.task) {
                    tasks.push(envelope.task);
                }
            }
        }
        names
    }

    /// The store answers for every task, name and message with exactly what was told.
    pub(crate) fn assert_kept(&self, store: &dyn Store) {
        for (id, log) in &self.logs {
            assert_eq!(store.task(*id).unwrap().as_ref(), self.tasks.get(id));
            assert_eq!(store.task_events(*id, 0, usize::MAX).unwrap(), *log);
        }
        let all = store.tasks(&TaskFilter::default(), None, usize::MAX).unwrap();
        assert!(all.iter().eq(self.tasks.values()), "{all:?}");
        for (name, tasks) in self.names() {
            assert_eq!(store.tasks_named(&name).unwrap(), tasks, "{name}");
        }
        let mut mail: Vec<&Mail> = self.mail.values().collect();
        mail.sort_by_key(|mail| (mail.to, mail.seq));
        let kept = store.mails(&MailFilter::default(), None, usize::MAX).unwrap();
        assert!(kept.iter().eq(mail.iter().copied()), "{kept:?}");
        for mail in mail {
            assert_eq!(store.mail(mail.id).unwrap().as_ref(), Some(mail));
        }
    }
}
