//! What one round of the engine has made so far and not yet committed.

use std::collections::{BTreeSet, HashMap, HashSet};

use lanyard_core::continuity::Tally;
use lanyard_core::session::Effect;
use lanyard_core::{SessionId, Timestamp};
use lanyard_store::{Batch, Durability, KeyHash, RecordBatch, RecordRef};
use tokio::sync::oneshot;

use crate::engine::{AskError, Reply, TurnSpan};

/// The answer to writes of records.
pub(super) type RecordAnswer = (oneshot::Sender<Result<(), AskError>>, Result<(), AskError>);

pub(super) type Answer = (oneshot::Sender<Result<Reply, AskError>>, Result<Reply, AskError>);

/// Where an alias is unique: in its workspace and plan.
pub(super) type AliasPlace = (Option<String>, Option<String>, String);

#[derive(Debug)]
pub(super) struct Draft {
    /// One reading of the clock for the whole round.
    pub(super) now: Timestamp,
    /// Synced, unless all it holds are records of tool calls.
    pub(super) batch: Batch,
    /// Sessions with events in this round, and whether their rows must be written with it.
    pub(super) touched: HashMap<SessionId, bool>,
    /// Sessions that were looked at because of a call or a deadline, whether or not anything came of it.
    pub(super) flagged: HashSet<SessionId>,
    pub(super) effects: Vec<(SessionId, Effect)>,
    /// Turns that end in this round, for those who collect traces.
    pub(super) spans: Vec<TurnSpan>,
    /// Keys used in this round, by their place in the batch's outcomes.
    pub(super) keys: HashMap<KeyHash, usize>,
    pub(super) aliases: HashSet<AliasPlace>,
    pub(super) answers: Vec<Answer>,
    /// Records in the batch. None is written twice in one commit.
    pub(super) records: BTreeSet<RecordRef>,
    /// The answers of those who write records.
    pub(super) writes: Vec<RecordAnswer>,
    /// Tool calls in this round whose answer went out already.
    pub(super) behind: u64,
    /// An event did not apply: a defect. Nothing of the round may be written.
    pub(super) poison: Option<String>,
}

impl Draft {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            now,
            batch: Batch { durability: Durability::Written, ..Batch::default() },
            touched: HashMap::new(),
            flagged: HashSet::new(),
            effects: Vec::new(),
            spans: Vec::new(),
            keys: HashMap::new(),
            aliases: HashSet::new(),
            answers: Vec::new(),
            records: BTreeSet::new(),
            writes: Vec::new(),
            behind: 0,
            poison: None,
        }
    }

    /// Adds writes of records that contradict neither the store nor each other.
    pub(super) fn add_records(&mut self, records: RecordBatch) {
        self.batch.durability = Durability::Synced;
        self.records.extend(records.records());
        self.batch.records.append(records);
    }

    /// Whether there is nothing to commit. A command that had nothing to change still has an outcome to keep under its key.
    pub(super) fn is_empty(&self) -> bool {
        let Batch { entries, outcomes, records, .. } = &self.batch;
        entries.is_empty() && outcomes.is_empty() && records.is_empty() && self.poison.is_none()
    }

    /// Nothing of the round is on disk.
    pub(super) fn refuse(&mut self, error: &AskError) {
        self.answers.iter_mut().for_each(|(_, result)| *result = Err(error.clone()));
        self.writes.iter_mut().for_each(|(_, result)| *result = Err(error.clone()));
    }

    /// What the round's events count for is written with them.
    pub(super) fn count(&mut self, tally: &Tally) {
        if !tally.is_empty() {
            let (_, held) = self.batch.tally.get_or_insert((self.now, Tally::default()));
            held.add_all(tally);
        }
    }
}
