//! What was seen of the tasks of a simulation, look after look. Ids that change and numbers that fall are found here.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Sim;
use crate::families::kit::id;

#[derive(Default)]
pub(super) struct Seen {
    tasks: BTreeMap<String, Value>,
}

const ENDS: [&str; 3] = ["completed", "failed", "cancelled"];

pub(super) fn is_ended(task: &Value) -> bool {
    ENDS.iter().any(|end| task["state"] == *end)
}

impl Seen {
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Value> {
        self.tasks.values()
    }

    pub(super) fn get(&self, task: &str) -> Option<&Value> {
        self.tasks.get(task)
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &Value> {
        self.tasks.values().filter(|task| !is_ended(task))
    }

    pub(super) fn ended(&self) -> usize {
        self.tasks.values().filter(|task| is_ended(task)).count()
    }

    pub(super) fn all_ended(&self) -> bool {
        self.tasks.values().all(is_ended)
    }

    /// Events of all tasks: more, and something happened.
    pub(super) fn events(&self) -> u64 {
        self.tasks.values().filter_map(|task| task["seq"].as_u64()).sum()
    }

    /// Takes what a task is now, and says what cannot be.
    fn take(&mut self, now: Value) -> Result<(), String> {
        let task = id(&now, "id");
        let Some(before) = self.tasks.get(&task) else {
            self.tasks.insert(task, now);
            return Ok(());
        };
        let same = |field: &str| before[field].is_null() || before[field] == now[field];
        let grows = |field: &str| now[field].as_u64() >= before[field].as_u64();
        for field in ["worker", "aliases", "uri", "created_in", "parent", "plan"] {
            if !same(field) {
                return Err(format!("{field} of {task} was {}, and is {}", before[field], now[field]));
            }
        }
        for field in ["seq", "run", "attempts"] {
            if !grows(field) {
                return Err(format!("{field} of {task} fell from {} to {}", before[field], now[field]));
            }
        }
        if now["attempts"] == before["attempts"] && !before["session"].is_null() && !same("session") {
            // One that is to be run again has none until it is.
            if !now["session"].is_null() {
                return Err(format!("the session of {task} changed within an attempt: {before} {now}"));
            }
        }
        self.tasks.insert(task, now);
        Ok(())
    }
}

impl Sim {
    /// Looks at all tasks. Answers whether anybody answered.
    pub(super) fn look(&mut self) -> bool {
        let Some(rows) = self.all("/tasks?limit=200", "tasks") else { return false };
        let shown: std::collections::BTreeSet<String> = rows.iter().map(|row| id(row, "id")).collect();
        if let Some(lost) = self.seen.tasks.keys().find(|task| !shown.contains(*task)) {
            self.fail(&format!("{lost} is gone"));
        }
        for row in rows {
            if let Err(what) = self.seen.take(row) {
                self.fail(&what);
            }
        }
        true
    }
}
