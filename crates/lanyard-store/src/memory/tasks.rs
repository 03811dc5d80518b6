//! Tasks and mail, kept in memory.

use std::collections::{BTreeMap, BTreeSet};

use lanyard_core::task::{Mail, MailTo, Task, TaskEnvelope, is_key};
use lanyard_core::{MailId, TaskId, Timestamp};

use crate::error::{AppendError, StoreError};
use crate::fold::TaskFold;
use crate::journal::FIND_MAX;
use crate::memory::MemoryJournal;
use crate::tasks::{MailFilter, TaskFilter, Tasks, WorkBatch};

#[derive(Debug, Default, Clone)]
pub(super) struct Work {
    tasks: BTreeMap<TaskId, Task>,
    /// Event `seq` is at `seq - 1`.
    logs: BTreeMap<TaskId, Vec<TaskEnvelope>>,
    names: BTreeSet<(String, TaskId)>,
    mail: BTreeMap<MailId, Mail>,
    boxes: BTreeMap<(MailTo, u64), MailId>,
}

impl Work {
    fn add(&mut self, batch: &WorkBatch) -> Result<(), String> {
        for entry in &batch.entries {
            let id = entry.task;
            let log = self.logs.entry(id).or_default();
            if entry.seq != log.len() as u64 + 1 {
                return Err(format!("event {} of {id} after event {}", entry.seq, log.len()));
            }
            if batch.tasks.iter().all(|task| task.id != id) {
                return Err(format!("events of {id} without its row"));
            }
            log.push(entry.clone());
            self.names.extend(entry.names().into_iter().map(|name| (name, id)));
        }
        for task in &batch.tasks {
            let head = self.logs.get(&task.id).map_or(0, Vec::len) as u64;
            if task.seq != head || head == 0 {
                return Err(format!("a row of {} as of {}, not {head}", task.id, task.seq));
            }
            self.tasks.insert(task.id, task.clone());
        }
        batch.mail.iter().try_for_each(|mail| self.put(mail))
    }

    fn put(&mut self, mail: &Mail) -> Result<(), String> {
        let place = (mail.to, mail.seq);
        if self.boxes.get(&place).is_some_and(|holder| *holder != mail.id) {
            return Err(format!("place {} of the box of {} is taken", mail.seq, mail.to));
        }
        if let Some(before) = self.mail.insert(mail.id, mail.clone()) {
            self.boxes.remove(&(before.to, before.seq));
        }
        self.boxes.insert(place, mail.id);
        Ok(())
    }

    pub(super) fn forget_keys(&mut self, before: Timestamp, limit: usize) -> usize {
        let tasks = &self.tasks;
        let long_ago =
            |id: &TaskId| tasks.get(id).is_some_and(|task| task.state.is_ended() && task.since < before);
        let old = self.names.iter().filter(|(name, id)| is_key(name) && long_ago(id));
        let old: Vec<_> = old.take(limit).cloned().collect();
        for name in &old {
            self.names.remove(name);
        }
        old.len()
    }

    pub(super) fn rebuild(&mut self) -> Result<(), StoreError> {
        self.tasks.clear();
        self.names.clear();
        for (id, log) in &self.logs {
            let mut fold = TaskFold::default();
            for entry in log {
                fold.feed(entry.seq, Ok(entry));
            }
            let Some(task) = fold.record.filter(|_| fold.left_out.is_empty()) else {
                return Err(StoreError::Damaged(format!("task {id} cannot be made from its log")));
            };
            self.tasks.insert(*id, task);
            self.names.extend(fold.names.into_iter().map(|name| (name, *id)));
        }
        Ok(())
    }
}

impl Tasks for MemoryJournal {
    fn write_work(&self, batch: &WorkBatch) -> Result<(), AppendError> {
        let mut kept = self.kept();
        kept.writable()?;
        // On a copy, so that a batch is written whole or not at all.
        let mut next = kept.work.clone();
        next.add(batch).map_err(AppendError::Contradiction)?;
        kept.work = next;
        Ok(())
    }

    fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        Ok(self.kept().work.tasks.get(&id).cloned())
    }

    fn tasks(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Vec<Task>, StoreError> {
        let kept = self.kept();
        let tasks = kept.work.tasks.values().filter(|task| after.is_none_or(|after| task.id > after));
        Ok(tasks.filter(|task| filter.matches(task)).take(limit).cloned().collect())
    }

    fn task_events(&self, task: TaskId, after: u64, limit: usize) -> Result<Vec<TaskEnvelope>, StoreError> {
        let kept = self.kept();
        let log = kept.work.logs.get(&task).into_iter().flatten();
        Ok(log.filter(|entry| entry.seq > after).take(limit).cloned().collect())
    }

    fn tasks_named(&self, name: &str) -> Result<Vec<TaskId>, StoreError> {
        let kept = self.kept();
        let named = kept.work.names.iter().rev().filter(|(held, _)| held == name);
        Ok(named.map(|(_, task)| *task).take(FIND_MAX).collect())
    }

    fn mail(&self, id: MailId) -> Result<Option<Mail>, StoreError> {
        Ok(self.kept().work.mail.get(&id).cloned())
    }

    fn last_mail(&self, to: MailTo) -> Result<u64, StoreError> {
        let kept = self.kept();
        Ok(kept.work.boxes.range((to, 0)..=(to, u64::MAX)).next_back().map_or(0, |((_, seq), _)| *seq))
    }

    fn mails(
        &self,
        filter: &MailFilter,
        after: Option<(MailTo, u64)>,
        limit: usize,
    ) -> Result<Vec<Mail>, StoreError> {
        let kept = self.kept();
        let later = kept.work.boxes.iter().filter(|(place, _)| after.is_none_or(|after| **place > after));
        let mail = later.filter_map(|(_, id)| kept.work.mail.get(id));
        Ok(mail.filter(|mail| filter.matches(mail)).take(limit).cloned().collect())
    }
}
