//! What the gateway knows of a session, and of its use of one server. All of it can be found again after a restart:
//! the session is named by the path, and the client's introduction is kept in the book.

use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use lanyard_api::annotate::Taste;
use lanyard_core::SessionId;
use lanyard_core::session::Directive;
use tokio::sync::oneshot;
use tokio::time::{Duration, Instant};

use crate::intercept::{Bound, Interceptor};
use crate::mcp::envelope::id_key;
use crate::mcp::revisions::legacy_server::LegacyServer;
use crate::mcp::translate::Modern;
use crate::mcp::work::Work;

/// Sessions, and uses of a server, that are remembered. Beyond that those nobody uses at the moment are forgotten.
const SESSIONS_MAX: usize = 32_768;
/// Foreign names of sessions that are remembered per MCP session.
const HINTS_MAX: usize = 256;
/// How long a foreign name that names nobody is believed to do so.
const NOBODY_FOR: Duration = Duration::from_secs(2);
/// Calls whose answer comes on another stream than they were made on.
const PARKED_MAX: usize = 64;
/// Questions to a client that wait for its answer.
const ASKED_MAX: usize = 64;

/// A session as the gateway knows it.
#[derive(Debug)]
pub(super) struct Person {
    pub(super) bound: Bound,
    /// What the last call was refused with. Stands in when the engine cannot be asked.
    refused: Mutex<Option<Directive>>,
    is_refused: AtomicBool,
}

impl Person {
    pub(super) fn remember(&self, refused: Option<&Directive>) {
        // Almost always nothing was refused, and nothing is: no lock then.
        if refused.is_none() && !self.is_refused.load(Ordering::Acquire) {
            return;
        }
        *self.refused.lock() = refused.cloned();
        self.is_refused.store(refused.is_some(), Ordering::Release);
    }

    pub(super) fn last_refusal(&self) -> Option<Directive> {
        self.refused.lock().clone()
    }
}

/// What is known of a foreign name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    As(SessionId),
    Nobody,
    NotYet,
}

/// A session's use of one server.
#[derive(Debug)]
pub(super) struct McpSession {
    pub(super) person: Arc<Person>,
    client: RwLock<Option<Taste>>,
    /// Tools that promise a structured result; nothing while no list was seen.
    promising: RwLock<Option<HashSet<String>>>,
    hints: Mutex<HashMap<String, (Option<SessionId>, Instant)>>,
    parked: Mutex<Vec<(String, Work)>>,
    has_parked: AtomicBool,
    /// Set when its client initializes and the server has no such thing.
    pub(super) modern: RwLock<Option<Arc<Modern>>>,
    /// Set when its client has no greeting and the server wants one.
    pub(super) legacy_server: tokio::sync::Mutex<Option<Arc<LegacyServer>>>,
    asked: Mutex<HashMap<String, oneshot::Sender<Bytes>>>,
}

impl McpSession {
    pub(super) fn session(&self) -> SessionId {
        self.person.bound.session()
    }

    /// What its client makes of results. Unknown until it introduces itself.
    pub(super) fn taste(&self) -> Option<Taste> {
        *self.client.read()
    }

    pub(super) fn introduce(&self, client: &str) {
        *self.client.write() = Some(Taste::of(client));
        // Whoever comes next may be another program, to which the tools have not been listed.
        *self.promising.write() = None;
    }

    pub(super) fn promises(&self, tool: &str) -> bool {
        let held = self.promising.read();
        held.as_ref().is_none_or(|tools| tools.contains(tool))
    }

    pub(super) fn listed(&self, promising: Vec<String>) {
        let mut held = self.promising.write();
        held.get_or_insert_with(HashSet::new).extend(promising);
    }

    /// What is known of a foreign name: who it is, or that it is nobody's.
    pub(super) fn hint(&self, name: &str) -> Known {
        let hints = self.hints.lock();
        match hints.get(name) {
            Some((Some(who), _)) => Known::As(*who),
            Some((None, since)) if since.elapsed() < NOBODY_FOR => Known::Nobody,
            Some((None, _)) | None => Known::NotYet,
        }
    }

    pub(super) fn learn_hint(&self, name: &str, who: Option<SessionId>) {
        let mut hints = self.hints.lock();
        if hints.len() >= HINTS_MAX {
            hints.clear();
        }
        hints.insert(name.to_owned(), (who, Instant::now()));
    }

    /// Its client is asked something under this id. Nothing when too much waits already.
    pub(super) fn ask(&self, id: &str) -> Option<oneshot::Receiver<Bytes>> {
        let mut asked = self.asked.lock();
        if asked.len() >= ASKED_MAX {
            return None;
        }
        let (sender, answer) = oneshot::channel();
        asked.insert(id.to_owned(), sender);
        Some(answer)
    }

    /// Whoever waits for the answer to this question.
    pub(super) fn answer_to(&self, id: &str) -> Option<oneshot::Sender<Bytes>> {
        self.asked.lock().remove(&id_key(id))
    }

    /// A stream ended before the answer came: the server will give it on another one.
    pub(super) fn park(&self, id: String, work: Work) {
        let mut parked = self.parked.lock();
        if parked.len() >= PARKED_MAX {
            parked.remove(0);
        }
        parked.push((id, work));
        self.has_parked.store(true, Ordering::Release);
    }

    pub(super) fn unpark(&self, is_it: impl Fn(&str) -> bool) -> Option<Work> {
        if !self.has_parked.load(Ordering::Acquire) {
            return None;
        }
        let mut parked = self.parked.lock();
        let place = parked.iter().position(|(id, _)| is_it(id))?;
        let (_, work) = parked.remove(place);
        self.has_parked.store(!parked.is_empty(), Ordering::Release);
        Some(work)
    }
}

/// Everyone who came by since the daemon started.
#[derive(Debug, Default)]
pub(super) struct McpSessions {
    people: RwLock<HashMap<SessionId, Arc<Person>>>,
    sessions: RwLock<HashMap<SessionId, HashMap<String, Arc<McpSession>>>>,
}

impl McpSessions {
    pub(super) fn person(&self, interceptor: &Interceptor, session: SessionId) -> Arc<Person> {
        if let Some(person) = self.known(session) {
            return person;
        }
        let mut people = self.people.write();
        if people.len() >= SESSIONS_MAX {
            people.retain(|_, person| Arc::strong_count(person) > 1);
        }
        let new = || {
            let bound = interceptor.of(session);
            Arc::new(Person { bound, refused: Mutex::new(None), is_refused: AtomicBool::new(false) })
        };
        people.entry(session).or_insert_with(new).clone()
    }

    pub(super) fn known(&self, session: SessionId) -> Option<Arc<Person>> {
        self.people.read().get(&session).cloned()
    }

    /// The MCP session, and whether it is new.
    pub(super) fn of(
        &self,
        interceptor: &Interceptor,
        session: SessionId,
        server: &str,
    ) -> (Arc<McpSession>, bool) {
        let held = self.sessions.read();
        if let Some(mcp_session) = held.get(&session).and_then(|servers| servers.get(server)) {
            return (mcp_session.clone(), false);
        }
        drop(held);
        let person = self.person(interceptor, session);
        let mut sessions = self.sessions.write();
        if sessions.len() >= SESSIONS_MAX {
            sessions
                .retain(|_, servers| servers.values().any(|mcp_session| Arc::strong_count(mcp_session) > 1));
        }
        let mcp_session = Arc::new(McpSession {
            person,
            client: RwLock::new(None),
            promising: RwLock::new(None),
            hints: Mutex::default(),
            parked: Mutex::default(),
            has_parked: AtomicBool::new(false),
            modern: RwLock::new(None),
            legacy_server: tokio::sync::Mutex::new(None),
            asked: Mutex::default(),
        });
        (sessions.entry(session).or_default().entry(server.to_owned()).or_insert(mcp_session).clone(), true)
    }

    /// The session has ended.
    pub(super) fn forget(&self, session: SessionId) {
        self.sessions.write().remove(&session);
    }
}
