//! Memory in the daemon: one way in for tools, the API, summaries and imports, so that one policy judges all of them; one
//! way to find things again; and the keeper, who sweeps, summarises and makes vectors.
//!
//! It knows no routes and no tools.

mod embed;
mod error;
mod find;
mod keeper;
pub(crate) mod ledger;
mod policy;
mod standing;
mod write;

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

use lanyard_api::config::{MemoryConfig, MemorySwitch, SummaryMode};
use lanyard_core::memory::{MemoryPolicy, RetentionRules, Rule};
use lanyard_store::Store;
use tokio::sync::{Notify, RwLock};

use lanyard_base::clock::Clock;
use lanyard_engine::engine::Engine;
use lanyard_engine::hub::Hub;
use lanyard_engine::redaction::Redaction;

pub(crate) use embed::Embedder;
pub(crate) use error::MemoryError;
pub(crate) use find::{Hit, search};
pub(crate) use keeper::Keeper;
pub(crate) use ledger::ledger;
pub(crate) use policy::{Judged, look_up, set_policy};
pub(crate) use standing::{Standing, place, standing};
pub(crate) use write::{Brought, Wish, forget, import, write};

/// What the daemon knows of memory beside the store.
#[derive(Debug)]
pub struct Memory {
    switch: MemorySwitch,
    summary: SummaryMode,
    retention: RetentionRules,
    embedder: Option<Embedder>,
    /// Read by whoever judges and writes, written by whoever changes a policy: once a change is answered, nothing is
    /// written that was judged by what was true before.
    gate: RwLock<()>,
    /// Told when there is something new to make a vector of.
    fresh: Notify,
    /// Refused since the start, by rule.
    refused: Mutex<BTreeMap<Rule, u64>>,
    /// Takes secrets out of entries.
    redaction: Arc<Redaction>,
}

/// Memory with what reading and writing it takes.
pub(crate) struct MemoryContext {
    pub(crate) memory: Arc<Memory>,
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) clock: Arc<Clock>,
}

impl Memory {
    /// What the config says, or a sentence of what is wrong with it.
    pub fn new(config: &MemoryConfig, redaction: Arc<Redaction>) -> Result<Self, String> {
        Ok(Self {
            redaction,
            switch: config.mode,
            summary: config.summary,
            retention: config.retention(),
            embedder: Embedder::new(&config.embeddings)?,
            gate: RwLock::default(),
            fresh: Notify::new(),
            refused: Mutex::default(),
        })
    }

    /// Refuses where memory is switched off as a whole. Nothing is deleted by that: switched on again, all is there.
    pub(crate) fn on(&self) -> Result<(), MemoryError> {
        match self.switch {
            MemorySwitch::On => Ok(()),
            MemorySwitch::Off => Err(MemoryError::SwitchedOff),
        }
    }

    pub(crate) fn switch(&self) -> MemorySwitch {
        self.switch
    }

    pub(crate) fn embedder(&self) -> Option<&Embedder> {
        self.embedder.as_ref()
    }

    /// Refused since the start, by rule.
    pub(crate) fn refused(&self) -> BTreeMap<Rule, u64> {
        self.refused.lock().clone()
    }

    fn count(&self, rule: Rule) {
        *self.refused.lock().entry(rule).or_default() += 1;
    }
}

/// The policy of a caller without a session: an operator by name.
fn unbound() -> MemoryPolicy {
    MemoryPolicy::of(lanyard_core::MemoryMode::Full)
}
