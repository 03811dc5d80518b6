//! What was asked and what became of it, in memory, for tests to wait on.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::choose::Call;
use super::conversation::Conversation;

/// More requests than any test makes; what comes after is answered and not logged.
const EXCHANGES_MAX: usize = 4096;

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is being given.
    Open,
    /// All of it was sent.
    Answered,
    /// The client went away before the end: the proof that a cancel reached the model.
    HungUp,
    /// The script broke the connection.
    Broken,
}

/// One request and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) seq: u64,
    pub(crate) api: &'static str,
    pub(crate) path: String,
    /// Names in lower case; credentials are left out.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    pub(crate) asked: Conversation,
    pub(crate) script: String,
    pub(crate) step: usize,
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) status: u16,
    pub(crate) outcome: Outcome,
}

impl Exchange {
    /// Whether this is step `step` of a script.
    pub(crate) fn is(&self, script: &str, step: usize) -> bool {
        self.script == script && self.step == step
    }

    fn line(&self) -> String {
        let Exchange { seq, api, path, script, step, outcome, status, .. } = self;
        let tools = self.asked.tool_results().len();
        format!("{seq} {api} {path} {script}[{step}] {status} {outcome:?}, {tools} tool results")
    }
}

#[derive(Debug, Default)]
pub(super) struct Log {
    exchanges: Mutex<Vec<Exchange>>,
    changed: Condvar,
}

impl Log {
    pub(super) fn all(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap().clone()
    }

    pub(super) fn push(self: &Arc<Self>, exchange: Exchange) -> Pending {
        let seq = exchange.seq;
        let mut exchanges = self.exchanges.lock().unwrap();
        if exchanges.len() < EXCHANGES_MAX {
            exchanges.push(exchange);
        }
        self.changed.notify_all();
        Pending { log: self.clone(), seq, settled: false }
    }

    pub(super) fn wait(&self, what: &str, patience: Duration, fits: impl Fn(&Exchange) -> bool) -> Exchange {
        let end = Instant::now() + patience;
        let mut exchanges = self.exchanges.lock().unwrap();
        loop {
            if let Some(found) = exchanges.iter().find(|exchange| fits(exchange)) {
                return found.clone();
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let lines: Vec<String> = exchanges.iter().map(Exchange::line).collect();
                drop(exchanges);
                panic!("the model was never asked: {what}. It was asked:\n{}", lines.join("\n"));
            }
            exchanges = self.changed.wait_timeout(exchanges, left).unwrap().0;
        }
    }

    fn settle(&self, seq: u64, outcome: Outcome) {
        let mut exchanges = self.exchanges.lock().unwrap();
        if let Some(exchange) = exchanges.iter_mut().find(|exchange| exchange.seq == seq) {
            exchange.outcome = outcome;
        }
        self.changed.notify_all();
    }
}

/// An answer under way. Dropped unsettled, it tells the log that the client hung up.
#[derive(Debug)]
pub(super) struct Pending {
    log: Arc<Log>,
    seq: u64,
    settled: bool,
}

impl Pending {
    pub(super) fn answered(&mut self) {
        self.settle(Outcome::Answered);
    }

    pub(super) fn broken(&mut self) {
        self.settle(Outcome::Broken);
    }

    fn settle(&mut self, outcome: Outcome) {
        if !std::mem::replace(&mut self.settled, true) {
            self.log.settle(self.seq, outcome);
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.settle(Outcome::HungUp);
    }
}
