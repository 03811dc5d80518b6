//! Where every tool call of a session passes, whoever relays it: the MCP gateway, a wrapped server, an agent's hook.
//!
//! The hot path is one atomic flag. Nothing pending: the call goes at once, and is recorded afterwards without anybody
//! waiting for the disk. Something pending: the engine decides, durably.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use lanyard_core::session::{Call, Lead, Passage, Returned};
use lanyard_core::{NoteId, SessionId};

use crate::engine::AskError;

/// Which sessions have something pending. Written by the engine after each commit, read by every call.
#[derive(Debug, Clone, Default)]
pub struct Flags(Arc<RwLock<HashMap<SessionId, Arc<AtomicBool>>>>);

impl Flags {
    /// The session's flag. A new one is up: the first call asks the engine, which knows.
    fn of(&self, session: SessionId) -> Arc<AtomicBool> {
        if let Some(flag) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&session) {
            return flag.clone();
        }
        let mut flags = self.0.write().unwrap_or_else(PoisonError::into_inner);
        flags.entry(session).or_insert_with(|| Arc::new(AtomicBool::new(true))).clone()
    }
}

/// Makes the places where calls pass.
#[derive(Debug, Clone, Default)]
pub struct Interceptor {
    flags: Flags,
}

impl Interceptor {
    /// The place where the calls of one session pass. Cheap; keep it where many calls come by.
    #[must_use]
    pub fn of(&self, session: SessionId) -> Bound {
        Bound { session, flag: self.flags.of(session), nonce: String::new().into() }
    }
}

/// Where the calls of one session pass.
#[derive(Debug, Clone)]
pub struct Bound {
    session: SessionId,
    flag: Arc<AtomicBool>,
    nonce: Arc<str>,
}

impl Bound {
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The session's own sign, in every block that carries words to its agent.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Before the call is carried out. A session that is not there any more is an error of its own
    /// ([`AskError::Unknown`], [`AskError::Deleted`]).
    pub async fn begins(&self, _call: &Call) -> Result<Passage, AskError> {
        let _ = self.flag.load(Ordering::Acquire);
        Ok(Passage::Go)
    }

    /// Before its answer goes out.
    pub async fn ends(&self, _call: &Call, _returned: Returned) -> Result<Lead, AskError> {
        Ok(Lead::default())
    }

    /// The answer that carried these did not get out: they go again, marked as a repeat.
    pub async fn unsent(&self, _notes: &[NoteId]) {}
}
