//! The operator of a simulation: cancels, pauses, retries, writes and answers, and clears away what can only wait.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::Sim;
use super::look::is_ended;
use crate::families::kit::id;

/// One step in so many has somebody do something.
const RARELY: u8 = 12;

pub(super) struct People {
    /// Things they still do.
    left: usize,
    paused: Vec<String>,
    retried: HashSet<String>,
}

impl People {
    pub(super) fn new(tasks: usize) -> Self {
        Self { left: tasks / 4, paused: Vec::new(), retried: HashSet::new() }
    }

    /// Nobody holds anything any more.
    pub(super) fn are_done(&self) -> bool {
        self.paused.is_empty()
    }

    pub(super) fn step(&mut self, sim: &mut Sim) {
        answer_gates(sim);
        clear(sim);
        if sim.random.u8(..RARELY) == 0 {
            self.resume(sim);
        }
        if self.left > 0 && sim.random.u8(..RARELY) == 0 {
            self.left -= 1;
            self.act(sim);
        }
    }

    fn act(&mut self, sim: &mut Sim) {
        match sim.random.u8(..8) {
            0..=2 => {
                let now = sim.random.bool();
                ask_open(sim, "cancel", &json!({ "reason": "the simulation's", "now": now }));
            }
            3 | 4 => {
                if let Some(task) = ask_open(sim, "pause", &json!({})) {
                    self.paused.push(task);
                }
            }
            5 => {
                ask_open(sim, "mail", &json!({ "text": "a word of the operator's" }));
            }
            _ => self.retry(sim),
        }
    }

    fn resume(&mut self, sim: &mut Sim) {
        let Some(task) = self.paused.pop() else { return };
        let held = sim.seen.get(&task).is_some_and(|task| task["state"] == "paused");
        if held && !ask(sim, &task, "resume", &json!({})) {
            self.paused.push(task);
        }
    }

    /// Each once: what dies of itself dies again.
    fn retry(&mut self, sim: &mut Sim) {
        let lost = |task: &&Value| is_ended(task) && task["state"] != "completed";
        let lost: Vec<String> = sim.seen.all().filter(lost).map(|task| id(task, "id")).collect();
        let fresh: Vec<String> = lost.into_iter().filter(|task| !self.retried.contains(task)).collect();
        let Some(task) = sim.random.choice(fresh) else { return };
        self.retried.insert(task.clone());
        ask(sim, &task, "retry", &json!({ "deploy": true }));
    }
}

/// Asks something of a task that has not ended as far as anybody knows. Answers which, when it was done.
fn ask_open(sim: &mut Sim, verb: &str, body: &Value) -> Option<String> {
    let open: Vec<String> = sim.seen.open().map(|task| id(task, "id")).collect();
    let task = sim.random.choice(open)?;
    ask(sim, &task, verb, body).then_some(task)
}

fn ask(sim: &mut Sim, task: &str, verb: &str, body: &Value) -> bool {
    let answer = sim.post(&format!("/tasks/{task}/{verb}"), body);
    let said = match &answer {
        Some(answer) if answer.status < 300 => "done".to_owned(),
        Some(answer) => answer.code(),
        None => "no answer".to_owned(),
    };
    let server = answer.as_ref().is_some_and(|answer| answer.status >= 500);
    sim.note(format!("{verb} {task}: {said}"));
    if server {
        sim.fail(&format!("{verb} of {task} was answered with {said}"));
    }
    // Nobody knows whether a request without an answer was done; whoever is asked to go on may be at work.
    said == "done" || answer.is_none()
}

/// Whoever asks is allowed.
fn answer_gates(sim: &mut Sim) {
    let Some(listed) = sim.ask("GET", "/gates", None) else { return };
    for gate in listed.json()["gates"].as_array().unwrap() {
        let path = format!("/sessions/{}/gates/{}", id(gate, "session"), id(gate, "id"));
        sim.post(&path, &json!({ "option": "allow" }));
    }
}

/// What waits for a task that was lost is cancelled, and what was cut short by a limit is resumed: nobody else would.
fn clear(sim: &mut Sim) {
    let lost = |on: &Value| {
        let on = on.as_str().and_then(|on| sim.seen.get(on));
        on.is_some_and(|on| on["state"] == "failed" || on["state"] == "cancelled")
    };
    let waits = |task: &&Value| {
        task["state"] == "pending" && task["depends_on"].as_array().is_some_and(|on| on.iter().any(lost))
    };
    let waiting: Vec<String> = sim.seen.open().filter(waits).map(|task| id(task, "id")).collect();
    let limited = |task: &&Value| task["state"] == "interrupted" && task["interrupted_by"] == "limit";
    let limited: Vec<String> = sim.seen.open().filter(limited).map(|task| id(task, "id")).collect();
    for task in waiting {
        sim.note(format!("{task} waits for what is lost, and is cancelled"));
        sim.post(&format!("/tasks/{task}/cancel"), &json!({ "reason": "what it waits for is lost" }));
    }
    for task in limited {
        sim.note(format!("{task} came to a limit, and goes on"));
        sim.post(&format!("/tasks/{task}/resume"), &json!({}));
    }
}
