//! Accounts that have reached their limit, known to all sessions until the reset. A file beside the runs keeps them for
//! the daemon that comes after; the waits themselves are in the logs, so a lost file costs at most a try.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lanyard_core::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// The name of the file.
pub(super) const FILE: &str = "limits.json";
/// Accounts that are kept in mind; beyond that the one that resets first is forgotten.
const ACCOUNTS_MAX: usize = 1_024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Exhausted {
    agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    until: Timestamp,
}

/// The accounts that cannot be used at the moment.
#[derive(Debug)]
pub(super) struct ExhaustedAccounts {
    path: PathBuf,
    until: Mutex<BTreeMap<(String, Option<String>), Timestamp>>,
}

impl ExhaustedAccounts {
    /// Those that the last daemon knew.
    pub(super) fn open(path: PathBuf) -> Self {
        let read = std::fs::read(&path).ok();
        let known: Vec<Exhausted> =
            read.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let until = known.into_iter().map(|known| ((known.agent, known.account), known.until)).collect();
        Self { path, until: Mutex::new(until) }
    }

    /// Until when an account cannot be used; nothing for one that can.
    pub(super) fn until(&self, agent: &str, account: Option<&str>, now: Timestamp) -> Option<Timestamp> {
        let key = (agent.to_owned(), account.map(str::to_owned));
        self.until.lock().get(&key).copied().filter(|until| *until > now)
    }

    pub(super) fn note(&self, agent: &str, account: Option<&str>, until: Timestamp, now: Timestamp) {
        let mut all = self.until.lock();
        all.retain(|_, until| *until > now);
        all.insert((agent.to_owned(), account.map(str::to_owned)), until);
        if all.len() > ACCOUNTS_MAX {
            let first = all.iter().min_by_key(|(_, until)| **until).map(|(key, _)| key.clone());
            first.and_then(|first| all.remove(&first));
        }
        self.keep(&all);
    }

    /// A person says that the account can be used.
    pub(super) fn forget(&self, agent: &str, account: Option<&str>) {
        let mut all = self.until.lock();
        if all.remove(&(agent.to_owned(), account.map(str::to_owned))).is_some() {
            self.keep(&all);
        }
    }

    fn keep(&self, all: &BTreeMap<(String, Option<String>), Timestamp>) {
        let known: Vec<Exhausted> = all
            .iter()
            .map(|((agent, account), until)| Exhausted {
                agent: agent.clone(),
                account: account.clone(),
                until: *until,
            })
            .collect();
        let next = self.path.with_extension("json.new");
        let written = serde_json::to_vec(&known)
            .map_err(std::io::Error::other)
            .and_then(|text| std::fs::write(&next, text))
            .and_then(|()| std::fs::rename(&next, &self.path));
        if let Err(error) = written {
            tracing::warn!(%error, "the accounts that reached their limit were not written down");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_known_to_be_exhausted_until_its_reset_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let (path, at) = (folder.path().join(FILE), Timestamp::from_millis);
        let known = ExhaustedAccounts::open(path.clone());
        known.note("claude", Some("work"), at(90), at(10));
        known.note("claude", None, at(50), at(10));
        assert_eq!(known.until("claude", Some("work"), at(20)), Some(at(90)));
        assert_eq!(known.until("codex", Some("work"), at(20)), None);
        let known = ExhaustedAccounts::open(path.clone());
        assert_eq!(known.until("claude", None, at(49)), Some(at(50)));
        assert_eq!(known.until("claude", None, at(50)), None, "it is over");
        known.forget("claude", Some("work"));
        assert_eq!(ExhaustedAccounts::open(path.clone()).until("claude", Some("work"), at(20)), None);
        std::fs::write(&path, "not JSON").unwrap();
        assert_eq!(ExhaustedAccounts::open(path).until("claude", None, at(20)), None);
    }
}
