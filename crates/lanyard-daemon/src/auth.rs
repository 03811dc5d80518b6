//! Who is calling, and what may they do. Roles are bound to tokens here, on the server; a client cannot claim one.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lanyard_core::{Actor, ActorKind, SessionId, TokenId};
use lanyard_store::StoredToken;

/// Somebody whose token was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub actor: Actor,
    /// The one session an agent may act as.
    pub session: Option<SessionId>,
}

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everyone may look; an agent only at its own session.
    Look,
    /// Everyone but agents may look.
    LookAll,
    /// Operators, and the agent whose session it is.
    Own,
    /// Operators only.
    Operate,
}

/// Why a caller was turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    NoToken,
    BadToken,
    Role,
    OtherSession,
}

/// A caller, with the id of its token where it is one that can be revoked.
type Known = (Option<TokenId>, Caller);

#[derive(Debug)]
pub struct Tokens {
    callers: RwLock<HashMap<[u8; 32], Known>>,
    /// The operator's own token: further ones are derived from it.
    root: [u8; 32],
}

impl Tokens {
    /// The operator's token from the data folder, and those made since.
    #[must_use]
    pub fn new(operator: &str, stored: &[StoredToken]) -> Self {
        let local = Caller { actor: Actor::operator("local"), session: None };
        let mut callers = HashMap::from([(hash(operator), (None, local))]);
        callers.extend(stored.iter().map(entry));
        Self { callers: RwLock::new(callers), root: hash(operator) }
    }

    pub fn add(&self, token: &StoredToken) {
        let (hash, entry) = entry(token);
        self.callers.write().unwrap_or_else(PoisonError::into_inner).insert(hash, entry);
    }

    pub fn revoke(&self, id: TokenId) {
        let mut callers = self.callers.write().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|_, (held, _)| *held != Some(id));
    }

    /// Looked up by hash, so that the time it takes tells nothing about the token.
    pub fn caller(&self, authorization: Option<&str>) -> Result<Caller, Denied> {
        let token = authorization.ok_or(Denied::NoToken)?;
        let token = token.strip_prefix("Bearer ").ok_or(Denied::NoToken)?;
        let callers = self.callers.read().unwrap_or_else(PoisonError::into_inner);
        callers.get(&hash(token.trim())).map(|(_, caller)| caller.clone()).ok_or(Denied::BadToken)
    }

    /// A new token from 128 bits that are random or, to answer a repeated request alike, come from its key.
    #[must_use]
    pub fn derive(&self, bits: u128) -> String {
        secret(blake3::keyed_hash(&self.root, &bits.to_be_bytes()).as_bytes())
    }
}

fn entry(token: &StoredToken) -> ([u8; 32], Known) {
    let caller = Caller { actor: token.actor.clone(), session: token.session };
    (token.hash, (Some(token.id), caller))
}

#[must_use]
pub(crate) fn hash(token: &str) -> [u8; 32] {
    *blake3::hash(token.as_bytes()).as_bytes()
}

/// A new token. Always from the system's own randomness, whatever ids are made of.
pub(crate) fn fresh() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(secret(&bytes))
}

/// A token made of random bytes, recognisable as Lanyard's.
fn secret(bytes: &[u8; 32]) -> String {
    format!("lyd_{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// Whether the caller may use a route, on a session where it names one.
pub(crate) fn permit(caller: &Caller, access: Access, target: Option<SessionId>) -> Result<(), Denied> {
    match caller.actor.kind {
        ActorKind::Operator => Ok(()),
        ActorKind::Observer => match access {
            Access::Look | Access::LookAll => Ok(()),
            Access::Own | Access::Operate => Err(Denied::Role),
        },
        ActorKind::Agent => match access {
            Access::Look | Access::Own if target.is_some() && caller.session == target => Ok(()),
            Access::Look | Access::Own => Err(Denied::OtherSession),
            Access::LookAll | Access::Operate => Err(Denied::Role),
        },
        // No token is ever given the system's role.
        ActorKind::System => Err(Denied::Role),
    }
}
