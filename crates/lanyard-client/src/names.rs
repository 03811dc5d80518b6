//! Names instead of ids. A route may name a session, a task or anything else with an id by whatever people call it; a
//! client asks the daemon for the id once, and uses that id from then on. A whole id needs no look-up.

use std::collections::BTreeMap;
use std::sync::Arc;

use lanyard_api::types::NamedItem;
use lanyard_core::Timestamp;
use lanyard_core::naming::{NameKind, is_whole};
use parking_lot::Mutex;

/// What stands before a task's id where chat hosts address it.
const URI: &str = "orchestrator:/";

/// The kinds that each collection of the API can be asked for by name, and the words below it that are no names.
const COLLECTIONS: [(&str, &[NameKind], &[&str]); 8] = [
    ("sessions", A_SESSION, &["bulk"]),
    ("tasks", A_TASK, &[]),
    ("plans", A_PLAN, &["import"]),
    ("flows", &[NameKind::Flow], &[]),
    ("mail", &[NameKind::Mail], &[]),
    ("notifications", &[NameKind::Notification], &["bulk", "purge"]),
    ("ids", ANY, &[]),
    ("resume", ANY, &[]),
];

/// A session, by its own names or by those of the task that is done in it.
pub const A_SESSION: &[NameKind] = &[NameKind::Session, NameKind::Task, NameKind::Worker];
/// A task, by its own names or by those of its workers.
pub const A_TASK: &[NameKind] = &[NameKind::Task, NameKind::Session, NameKind::Worker, NameKind::Run];
pub const A_PLAN: &[NameKind] = &[NameKind::Plan];
/// Work that can be halted.
pub const A_WORK: &[NameKind] = &[NameKind::Plan, NameKind::Task, NameKind::Worker];
/// An approval, or the flow, session or task that waits for it.
pub const AN_ASKER: &[NameKind] = &[NameKind::Gate, NameKind::Flow, NameKind::Session, NameKind::Task];

/// Everything `lanyard id` and `lanyard resume` take, the likeliest first.
pub const ANY: &[NameKind] =
    &[NameKind::Session, NameKind::Task, NameKind::Plan, NameKind::Worker, NameKind::Run, NameKind::Mail];

/// The kinds a part of an address can name; `None` where it needs no look-up.
pub(crate) fn kinds_of(collection: &str, name: &str) -> Option<&'static [NameKind]> {
    let known = |(own, _, verbs): &&(&str, _, &[&str])| *own == collection && !verbs.contains(&name);
    let (_, kinds, _) = COLLECTIONS.iter().find(known)?;
    (!is_id(name)).then_some(*kinds)
}

/// Whether a name is an id that needs no look-up.
#[must_use]
pub fn is_id(name: &str) -> bool {
    is_whole(name) || name.starts_with(URI)
}

/// A name, and where to look for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WantedName {
    pub kinds: &'static [NameKind],
    pub name: String,
    pub workspace: Option<String>,
    pub plan: Option<String>,
}

impl WantedName {
    #[must_use]
    pub fn of(kinds: &'static [NameKind], name: &str) -> Self {
        Self { kinds, name: name.to_owned(), workspace: None, plan: None }
    }
}

/// The names this process has looked up. A name means the same thing in all requests of a command, also when a newer
/// session takes the place of `last` meanwhile.
#[derive(Debug, Clone, Default)]
pub struct NameBook(Arc<Mutex<BTreeMap<WantedName, NameMeaning>>>);

/// What the daemon knows under a name.
#[derive(Debug, Clone)]
pub enum NameMeaning {
    Id(String),
    /// Nothing; these names are the nearest.
    Nothing(Vec<NamedItem>, Option<Timestamp>),
}

impl NameBook {
    #[must_use]
    pub fn known(&self, wanted: &WantedName) -> Option<NameMeaning> {
        self.0.lock().get(wanted).cloned()
    }

    pub fn note(&self, wanted: WantedName, meaning: NameMeaning) {
        self.0.lock().insert(wanted, meaning);
    }
}
