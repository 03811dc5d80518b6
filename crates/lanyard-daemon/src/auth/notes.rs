//! What is known of a token beside its rights: the end of a share link, the device that signed in with it, and its last use.
//! A use is marked in memory, by the minute; a task writes the marks down behind the requests.

use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use lanyard_api::types::ClientKind;
use lanyard_core::{Timestamp, TokenId};
use lanyard_store::{PaperKey, Store, StoreError};
use serde::{Deserialize, Serialize};

use super::{Means, TokenBook};
use lanyard_base::clock::Clock;

/// Papers of notes. Their key is the token's id.
const NOTES: &str = "token_note";
/// Notes that are read at the start; there can be no more tokens.
const NOTES_MAX: usize = 10_000;
const MINUTE_MS: i64 = 60_000;
/// How often share links that have ended are taken away.
const LOOK: Duration = Duration::from_secs(1);
/// Looks between two writes of uses.
const LOOKS_PER_WRITE: u32 = 60;

/// The note of one token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenNote {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) device: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_used_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_client: Option<ClientKind>,
}

/// The note of a token in memory. Its use changes with requests, without a lock.
#[derive(Debug)]
struct HeldNote {
    note: TokenNote,
    /// Milliseconds of the minute of the last use; 0 for none.
    used: AtomicI64,
    client: AtomicU8,
    /// The use is not on disk yet.
    unsaved: AtomicBool,
}

const KINDS: [ClientKind; 4] = [ClientKind::Browser, ClientKind::Cli, ClientKind::Editor, ClientKind::Api];

fn number(kind: ClientKind) -> u8 {
    KINDS.iter().position(|one| *one == kind).and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
}

impl HeldNote {
    fn new(note: TokenNote) -> Self {
        let used = note.last_used_at.map_or(0, Timestamp::as_millis);
        let client = note.last_client.map_or(u8::MAX, number);
        Self { note, used: used.into(), client: client.into(), unsaved: false.into() }
    }

    fn now(&self) -> TokenNote {
        let used = self.used.load(Ordering::Relaxed);
        let client = KINDS.get(usize::from(self.client.load(Ordering::Relaxed))).copied();
        TokenNote {
            last_used_at: (used > 0).then(|| Timestamp::from_millis(used)),
            last_client: client,
            ..self.note.clone()
        }
    }
}

/// The notes of all tokens that can be revoked.
#[derive(Debug, Default)]
pub(crate) struct TokenNotes(RwLock<HashMap<TokenId, Arc<HeldNote>>>);

impl TokenNotes {
    pub(crate) fn set(&self, id: TokenId, note: TokenNote) {
        self.0.write().insert(id, Arc::new(HeldNote::new(note)));
    }

    pub(super) fn remove(&self, id: TokenId) {
        self.0.write().remove(&id);
    }

    pub(super) fn of(&self, id: TokenId) -> TokenNote {
        self.0.read().get(&id).map(|held| held.now()).unwrap_or_default()
    }

    /// Marks a use, once a minute and kind of client.
    pub(super) fn used(&self, id: TokenId, kind: ClientKind, now: Timestamp) {
        let Some(held) = self.0.read().get(&id).cloned() else { return };
        let minute = now.as_millis() - now.as_millis().rem_euclid(MINUTE_MS);
        let kind = number(kind);
        if held.used.load(Ordering::Relaxed) >= minute && held.client.load(Ordering::Relaxed) == kind {
            return;
        }
        held.used.fetch_max(minute, Ordering::Relaxed);
        held.client.store(kind, Ordering::Relaxed);
        held.unsaved.store(true, Ordering::Relaxed);
    }

    fn unsaved(&self) -> Vec<(TokenId, TokenNote)> {
        let held = self.0.read();
        let changed = held.iter().filter(|(_, held)| held.unsaved.swap(false, Ordering::Relaxed));
        changed.map(|(id, held)| (*id, held.now())).collect()
    }

    fn expired(&self, now: Timestamp) -> Vec<TokenId> {
        let held = self.0.read();
        let over = held.iter().filter(|(_, held)| held.note.expires_at.is_some_and(|end| end <= now));
        over.map(|(id, _)| *id).collect()
    }
}

fn place(id: TokenId) -> PaperKey {
    PaperKey { kind: NOTES.to_owned(), workspace: String::new(), key: id.to_string() }
}

/// The notes on disk. Blocks.
pub(crate) fn read_all(store: &dyn Store) -> Result<HashMap<TokenId, TokenNote>, StoreError> {
    let papers = store.papers_named(NOTES, None, NOTES_MAX)?;
    let read = |paper: lanyard_store::Paper| {
        Some((paper.place.key.parse().ok()?, serde_json::from_str(&paper.body).ok()?))
    };
    Ok(papers.into_iter().filter_map(read).collect())
}

/// Writes a note. Blocks.
pub(crate) fn write(
    store: &dyn Store,
    id: TokenId,
    at: Timestamp,
    note: &TokenNote,
) -> Result<(), StoreError> {
    let body = serde_json::to_string(note).unwrap_or_default();
    let from = store.paper(&place(id))?.map_or(0, |paper| paper.version);
    // Of two writes at a time the later one is as good: each has the newest use.
    store.put_paper(&place(id), from, at, &body).map(drop)
}

/// Blocks.
pub(crate) fn forget(store: &dyn Store, id: TokenId) -> Result<(), StoreError> {
    store.remove_paper(&place(id)).map(drop)
}

/// Takes away share links that have ended, and writes uses down once a minute. Runs until the daemon ends.
pub(crate) async fn keep_up(tokens: Arc<TokenBook>, store: Arc<dyn Store>, clock: Arc<Clock>) {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut until_write = LOOKS_PER_WRITE;
    loop {
        looks.tick().await;
        let now = clock.now();
        let over = tokens.notes.expired(now);
        for id in &over {
            tokens.revoke(*id);
        }
        until_write -= 1;
        let used = if until_write == 0 { tokens.notes.unsaved() } else { Vec::new() };
        if until_write == 0 {
            until_write = LOOKS_PER_WRITE;
        }
        if over.is_empty() && used.is_empty() {
            continue;
        }
        let store = store.clone();
        let done = tokio::task::spawn_blocking(move || {
            for id in over {
                store.revoke_token(id)?;
                forget(&*store, id)?;
            }
            used.into_iter().try_for_each(|(id, note)| write(&*store, id, now, &note))
        });
        if let Ok(Err(error)) = done.await {
            tracing::warn!(%error, "what is known of tokens could not be written");
        }
    }
}

/// The kind of program that made a request.
pub(crate) fn client_of(headers: &HeaderMap, by: Means) -> ClientKind {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if by == Means::Cookie || agent.starts_with("Mozilla/") {
        ClientKind::Browser
    } else if agent.starts_with("lanyard-vscode/") {
        ClientKind::Editor
    } else if agent.starts_with("lanyard/") {
        ClientKind::Cli
    } else {
        ClientKind::Api
    }
}

/// `Firefox on Linux`, as far as a browser says so.
pub(crate) fn device_of(headers: &HeaderMap) -> Option<String> {
    // Each of these names those that come later in its own text.
    const BROWSERS: [(&str, &str); 6] = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("HeadlessChrome/", "Chrome"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    const SYSTEMS: [(&str, &str); 7] = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
    ];
    let agent = headers.get(header::USER_AGENT)?.to_str().ok()?;
    let named = |all: &[(&str, &'static str)]| {
        all.iter().find(|(sign, _)| agent.contains(sign)).map(|(_, name)| *name)
    };
    match (named(&BROWSERS), named(&SYSTEMS)) {
        (Some(browser), Some(system)) => Some(format!("{browser} on {system}")),
        (Some(one), None) | (None, Some(one)) => Some(one.to_owned()),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(agent: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::USER_AGENT, agent.parse().unwrap())])
    }

    #[test]
    fn a_browser_names_itself_and_its_system() {
        let firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
        let edge = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/144.0 \
                    Safari/537.36 Edg/144.0";
        let phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1";
        for (agent, device) in
            [(firefox, "Firefox on Linux"), (edge, "Edge on Windows"), (phone, "Safari on iPhone")]
        {
            assert_eq!(device_of(&from(agent)).as_deref(), Some(device));
            assert_eq!(client_of(&from(agent), Means::Given), ClientKind::Browser);
        }
        assert_eq!(device_of(&from("curl/8.0")), None);
        assert_eq!(client_of(&from("curl/8.0"), Means::Given), ClientKind::Api);
        assert_eq!(client_of(&from("lanyard/0.9"), Means::Given), ClientKind::Cli);
        assert_eq!(client_of(&from("lanyard-vscode/0.9"), Means::Given), ClientKind::Editor);
    }

    #[test]
    fn a_use_is_marked_once_a_minute_and_written_once() {
        let (notes, id) = (TokenNotes::default(), TokenId::from_u128(1));
        notes.set(id, TokenNote::default());
        let at = |ms| Timestamp::from_millis(ms);
        notes.used(id, ClientKind::Cli, at(61_000));
        assert_eq!(notes.of(id).last_used_at, Some(at(60_000)));
        assert_eq!(notes.of(id).last_client, Some(ClientKind::Cli));
        assert_eq!(notes.unsaved().len(), 1);
        notes.used(id, ClientKind::Cli, at(119_999));
        assert!(notes.unsaved().is_empty(), "the minute is known");
        notes.used(id, ClientKind::Browser, at(119_999));
        assert_eq!(notes.unsaved().len(), 1, "another kind of client is news");
        notes.used(id, ClientKind::Browser, at(120_000));
        assert_eq!(notes.of(id).last_used_at, Some(at(120_000)));
        notes.used(TokenId::from_u128(2), ClientKind::Api, at(120_000));
        assert_eq!(notes.of(TokenId::from_u128(2)), TokenNote::default());
    }

    #[test]
    fn a_link_ends_at_its_time() {
        let (notes, id) = (TokenNotes::default(), TokenId::from_u128(1));
        let end = Timestamp::from_millis(1_000);
        notes.set(id, TokenNote { expires_at: Some(end), ..TokenNote::default() });
        notes.set(TokenId::from_u128(2), TokenNote::default());
        assert!(notes.expired(Timestamp::from_millis(999)).is_empty());
        assert_eq!(notes.expired(end), [id]);
    }
}
