//! Knows whom the calls belong to and whether there is a daemon to ask. A daemon that is away is waited for in the
//! background; until it is back, calls pass as if Lanyard were not there.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lanyard_api::home::Home;
use lanyard_api::types::Relation;
use lanyard_client::{ClientError, DaemonAddress, GivenSession};
use lanyard_core::Backoff;
use lanyard_core::session::CallerProof;
use tokio::sync::Mutex;

use crate::relay::{Desk, Mark, Newcomer};

/// Looking for a daemon that is away starts quick and gets patient.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
/// Hints and conversations remembered; when there are more, all are found again.
const REMEMBERED_MAX: usize = 256;
/// An agent that has not said its name.
const NAMELESS: &str = "mcp-client";

/// What is known from the start.
#[derive(Debug)]
pub(super) struct WrapSetting {
    pub(super) home: Option<Home>,
    pub(super) given: Option<GivenSession>,
    /// The session named on the command line.
    pub(super) session: Option<String>,
    pub(super) server: String,
    pub(super) workspace: Option<String>,
    /// The agent's own id of its conversation, where its environment tells.
    pub(super) alias: Option<String>,
}

#[derive(Debug)]
pub(super) struct Minder {
    setting: WrapSetting,
    up: AtomicBool,
    told: AtomicBool,
    /// What the client calls itself.
    client: OnceLock<String>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    desk: Option<Arc<Desk>>,
    /// By the agent's own id of the conversation; empty for the one the process belongs to.
    sessions: HashMap<String, String>,
    hints: HashMap<String, SessionHint>,
    marks: Vec<Mark>,
}

#[derive(Debug, Clone)]
enum SessionHint {
    /// Nothing new, or an unknown name.
    Same,
    /// A session that works for this one.
    Below(String),
    Foreign,
}

/// A session and where to ask about it.
#[derive(Debug, Clone)]
pub(super) struct BoundSession {
    pub(super) desk: Arc<Desk>,
    pub(super) session: String,
}

/// Whom a call belongs to.
#[derive(Debug)]
pub(super) enum CallOwner {
    /// No session: the call passes as it is.
    Nobody,
    /// A session, and what says that the call is its.
    Session(BoundSession, CallerProof),
    /// The call names a session that is none of this connection's business.
    Foreign,
    /// The token of this process is not good for its session: nothing can be supervised, so nothing passes.
    Denied,
}

/// What a call says about where it comes from.
#[derive(Debug, Default)]
pub(super) struct CallOrigin {
    /// Codex: the conversation, and the one it works for.
    pub(super) thread: Option<String>,
    pub(super) root: Option<String>,
    pub(super) hint: Option<String>,
}

impl CallOrigin {
    /// The conversation of a subagent, where the call says that one makes it.
    fn subagent(&self) -> Option<&str> {
        self.thread.as_deref().filter(|thread| self.root.as_deref() != Some(*thread))
    }
}

impl Minder {
    pub(super) fn new(setting: WrapSetting) -> Arc<Self> {
        Arc::new(Self {
            setting,
            up: AtomicBool::new(true),
            told: AtomicBool::new(false),
            client: OnceLock::new(),
            known: Mutex::default(),
        })
    }

    /// The client has said its name: from now on there is a session. In the background, since no caller waits for it.
    pub(super) fn meet(self: &Arc<Self>, client: &str) {
        if self.client.set(client.to_owned()).is_ok() && self.is_known_early() {
            let minder = self.clone();
            tokio::spawn(async move { minder.owner(&CallOrigin::default()).await });
        }
    }

    /// Whether there can be a session before the first call. Codex names its conversation in each call, and only there.
    fn is_known_early(&self) -> bool {
        self.client.get().is_some_and(|client| !client.to_ascii_lowercase().starts_with("codex"))
    }

    /// Whom a call belongs to.
    pub(super) async fn owner(self: &Arc<Self>, origin: &CallOrigin) -> CallOwner {
        if !self.up.load(Ordering::Relaxed) {
            return CallOwner::Nobody;
        }
        let mut known = self.known.lock().await;
        match self.find(&mut known, origin).await {
            Ok(Some(owner)) => owner,
            Ok(None) => CallOwner::Nobody,
            Err(error) if error.is_denied() => CallOwner::Denied,
            Err(_) => {
                self.lost();
                CallOwner::Nobody
            }
        }
    }

    async fn find(&self, known: &mut Known, origin: &CallOrigin) -> Result<Option<CallOwner>, ClientError> {
        let Some(desk) = self.desk(known) else { return Ok(None) };
        let Some(session) = self.session(known, &desk, origin).await? else { return Ok(None) };
        let bound = BoundSession { desk, session };
        if let Some(hint) = &origin.hint {
            return Ok(Some(match self.hinted(known, &bound, hint).await? {
                SessionHint::Same => CallOwner::Session(bound, CallerProof::Named),
                SessionHint::Below(session) => {
                    CallOwner::Session(BoundSession { session, ..bound }, CallerProof::Named)
                }
                SessionHint::Foreign => CallOwner::Foreign,
            }));
        }
        if self.is_fixed()
            && let Some(thread) = origin.subagent()
        {
            return Ok(Some(match self.hinted(known, &bound, thread).await? {
                SessionHint::Below(session) => {
                    CallOwner::Session(BoundSession { session, ..bound }, CallerProof::Named)
                }
                // A subagent that Lanyard has not seen yet is certainly not its parent.
                SessionHint::Same | SessionHint::Foreign => CallOwner::Session(bound, CallerProof::Uncertain),
            }));
        }
        let proof = if origin.thread.is_some() { CallerProof::Named } else { CallerProof::Address };
        Ok(Some(CallOwner::Session(bound, proof)))
    }

    /// Whether all calls belong to one session and those below it, whichever conversation they name.
    fn is_fixed(&self) -> bool {
        self.setting.given.is_some() || self.setting.session.is_some()
    }

    fn desk(&self, known: &mut Known) -> Option<Arc<Desk>> {
        if let Some(desk) = &known.desk {
            return Some(desk.clone());
        }
        let desk = match &self.setting.given {
            Some(given) => given.address().ok().map(Desk::at),
            None => self.setting.home.as_ref().map(local),
        };
        known.desk = desk.map(Arc::new);
        known.desk.clone()
    }

    async fn session(
        &self,
        known: &mut Known,
        desk: &Desk,
        origin: &CallOrigin,
    ) -> Result<Option<String>, ClientError> {
        if let Some(given) = &self.setting.given {
            return Ok(Some(self.marked(known, String::new(), given.session.clone())));
        }
        let thread = origin.thread.as_deref().unwrap_or_default();
        let key = if self.setting.session.is_some() { "" } else { thread };
        if let Some(session) = known.sessions.get(key) {
            return Ok(Some(session.clone()));
        }
        if let Some(named) = &self.setting.session {
            let Some(found) = desk.find(named).await? else {
                self.say(&format!("there is no session {named}; calls pass as they are"));
                return Ok(None);
            };
            return Ok(Some(self.marked(known, String::new(), found)));
        }
        let agent = self.client.get().cloned().unwrap_or_else(|| NAMELESS.to_owned());
        let workspace = self.setting.workspace.clone();
        let mut newcomer = Newcomer { agent, workspace, alias: None, parent: None, resumable: true };
        newcomer.alias = if thread.is_empty() { self.setting.alias.clone() } else { Some(thread.to_owned()) };
        if let Some(root) = origin.root.as_deref().filter(|root| !thread.is_empty() && *root != thread) {
            newcomer.resumable = false;
            let above = Newcomer { alias: Some(root.to_owned()), ..newcomer.clone() };
            newcomer.parent = Some(desk.enlist(&above).await?);
        }
        let session = desk.enlist(&newcomer).await?;
        Ok(Some(self.marked(known, thread.to_owned(), session)))
    }

    /// Remembers a session and marks that its calls come by here.
    fn marked(&self, known: &mut Known, key: String, session: String) -> String {
        if known.sessions.len() >= REMEMBERED_MAX {
            known.sessions.clear();
            known.marks.clear();
        }
        if known.sessions.insert(key, session.clone()).is_none() {
            known.marks.extend(Mark::set(&session, &self.setting.server));
        }
        session
    }

    async fn hinted(
        &self,
        known: &mut Known,
        bound: &BoundSession,
        hint: &str,
    ) -> Result<SessionHint, ClientError> {
        if hint == bound.session {
            return Ok(SessionHint::Same);
        }
        let key = format!("{}\0{hint}", bound.session);
        if let Some(seen) = known.hints.get(&key) {
            return Ok(seen.clone());
        }
        let member = bound.desk.relation(&bound.session, hint).await?;
        let seen = match (member.relation, member.session) {
            (Relation::Same, _) => SessionHint::Same,
            (Relation::Below, Some(below)) => SessionHint::Below(below.to_string()),
            (Relation::Below | Relation::Other, _) => SessionHint::Foreign,
            // Unknown here: not ours to judge. Not remembered, it may be made yet.
            (Relation::Unknown, _) => return Ok(SessionHint::Same),
        };
        if known.hints.len() >= REMEMBERED_MAX {
            known.hints.clear();
        }
        known.hints.insert(key, seen.clone());
        Ok(seen)
    }

    /// A question about a call came to nothing.
    pub(super) async fn failed(self: &Arc<Self>, bound: &BoundSession, error: &ClientError) {
        if error.is_missing() {
            // The session was deleted: the next call makes a new one.
            self.known.lock().await.sessions.retain(|_, session| *session != bound.session);
            return;
        }
        self.lost();
    }

    /// No daemon answers: calls pass until one does.
    fn lost(self: &Arc<Self>) {
        if !self.up.swap(false, Ordering::Relaxed) {
            return;
        }
        self.say("no daemon answers; calls pass as they are until one does");
        let minder = self.clone();
        tokio::spawn(async move { minder.come_back().await });
    }

    async fn come_back(self: Arc<Self>) {
        let mut backoff = BACKOFF;
        loop {
            tokio::time::sleep(backoff.pause()).await;
            let mut known = self.known.lock().await;
            // Its address may be another one now.
            known.desk = None;
            let Some(desk) = self.desk(&mut known) else { return };
            if !desk.is_up().await {
                continue;
            }
            // A session that cannot be had now may be had later.
            if !self.is_known_early() || self.session(&mut known, &desk, &CallOrigin::default()).await.is_ok()
            {
                self.up.store(true, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Once: stderr is the server's.
    pub(super) fn say(&self, text: &str) {
        if !self.told.swap(true, Ordering::Relaxed) {
            super::say(&format!("lanyard mcp wrap ({}): {text}", self.setting.server));
        }
    }
}

fn local(home: &Home) -> Desk {
    Desk::at(DaemonAddress::of(home))
}

/// The folder this process works in, as a workspace.
pub(super) fn workspace() -> Option<String> {
    let here = std::env::current_dir().ok()?;
    Path::to_str(&here).map(str::to_owned)
}
