//! What each agent last offered to choose, for sessions that have no agent yet. A file beside the runs keeps it for the
//! daemon that comes after; what a session's own agent offered is in its log.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use lanyard_api::agents::settings::AgentSettings;
use lanyard_core::Timestamp;
use lanyard_core::session::AgentOffer;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// The name of the file.
pub(super) const FILE: &str = "offers.json";
/// Agents that are kept in mind; beyond that the one that was heard of longest ago is forgotten.
const AGENTS_MAX: usize = 128;

/// The last offer of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownOffer {
    pub at: Timestamp,
    pub offer: AgentOffer,
    /// The command that was asked; another one may offer something else.
    command: Vec<String>,
}

impl KnownOffer {
    pub(super) fn new(offer: AgentOffer, settings: &AgentSettings, at: Timestamp) -> Self {
        Self { at, offer, command: settings.command.clone() }
    }
}

/// The last offers of all agents.
#[derive(Debug, Clone)]
pub struct KnownOffers {
    path: PathBuf,
    known: Arc<Mutex<BTreeMap<String, KnownOffer>>>,
}

impl KnownOffers {
    /// Those that the last daemon knew.
    #[must_use]
    pub fn open(path: PathBuf) -> Self {
        let read = std::fs::read(&path).ok();
        let known = read.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Self { path, known: Arc::new(Mutex::new(known)) }
    }

    /// What an agent with these settings offers, as far as it is known.
    #[must_use]
    pub fn of(&self, agent: &str, settings: &AgentSettings) -> Option<KnownOffer> {
        let known = self.known.lock().get(agent).cloned();
        known.filter(|known| known.command == settings.command)
    }

    pub(super) fn note(&self, agent: &str, settings: &AgentSettings, offer: &AgentOffer, at: Timestamp) {
        let mut all = self.known.lock();
        all.insert(agent.to_owned(), KnownOffer::new(offer.clone(), settings, at));
        if all.len() > AGENTS_MAX {
            let first = all.iter().min_by_key(|(_, known)| known.at).map(|(name, _)| name.clone());
            first.and_then(|first| all.remove(&first));
        }
        let next = self.path.with_extension("json.new");
        let written = serde_json::to_vec(&*all)
            .map_err(std::io::Error::other)
            .and_then(|text| std::fs::write(&next, text))
            .and_then(|()| std::fs::rename(&next, &self.path));
        // A lost file costs little: agents offer the same again with their next runs.
        if let Err(error) = written {
            tracing::warn!(%error, "what agents offer was not written down");
        }
    }
}
