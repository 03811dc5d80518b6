//! Who is calling, and what may they do. Roles are bound to tokens here, on the server; a client cannot claim one.

pub(crate) mod cookie;
mod links;
mod notes;
mod slots;

use parking_lot::RwLock;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lanyard_api::types::ClientKind;
use lanyard_core::{Actor, ActorKind, RunId, SessionId, TaskId, Timestamp, TokenId, refusals};
use lanyard_store::StoredToken;
use tokio::sync::watch;

use crate::refusal::refuses;
use lanyard_engine::live_runs::{LiveRuns, RunProof};

use links::Links;
use notes::TokenNotes;
pub(crate) use notes::{TokenNote, client_of, device_of, forget, keep_up, read_all, write};
use slots::Slots;
pub(crate) use slots::StreamSlot;

/// What the token of a session's run begins with.
const SESSION_PREFIX: &str = "lys_";
/// What the token of a task's run begins with.
const RUN_PREFIX: &str = "lyr_";
/// What a token that is listed begins with.
pub(crate) const TOKEN_PREFIX: &str = "lyd_";
/// What the code of a sign-in link begins with.
const LINK_PREFIX: &str = "lyl_";
/// What a token that is offered as a subprotocol begins with.
const TOKEN_PROTOCOL: &str = "lanyard.token.";
/// Bytes of a run's token: the session, the run, and the proof.
const SESSION_BYTES: usize = 64;
/// Characters of a session's sign.
const NONCE_CHARS: usize = 16;

/// A caller whose token was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub actor: Actor,
    /// The one session an agent may act as, or that the reader of a share link may look at, with those below it.
    pub session: Option<SessionId>,
    /// The id of its token, where it is one that can be revoked.
    pub token: Option<TokenId>,
    /// The run its token was made for; nothing for a token that can be revoked.
    pub run: Option<RunId>,
    /// That run is over: the caller may hear the refusal of its stop, and nothing else.
    pub spent: bool,
    /// The end of a share link.
    pub expires_at: Option<Timestamp>,
}

impl Caller {
    /// Without any right but its actor's.
    fn nobody() -> Self {
        let actor = Actor { kind: ActorKind::Observer, name: String::new() };
        Self { actor, session: None, token: None, run: None, spent: false, expires_at: None }
    }

    pub(crate) fn proof(&self) -> RunProof {
        RunProof { run: self.run, spent: self.spent }
    }

    /// Whether it came by a share link: it may look at one family of sessions.
    pub(crate) fn is_shared(&self) -> bool {
        self.actor.kind == ActorKind::Observer && self.session.is_some()
    }

    /// Whether its time is over. A share link whose end is not known has ended.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.is_shared() && self.expires_at.is_none_or(|end| end <= now)
    }
}

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everyone may look; an agent only at its own session, and at those whose agents work in its process.
    Look,
    /// As `Look`; also the reader of a share link, at the link's session and those below it.
    Shared,
    /// Everyone but agents and readers of share links may look.
    LookAll,
    /// Operators, and the agent whose session it is.
    Own,
    /// Operators, the agent whose session it is, and the agent whose process hosts that session's agent.
    Call,
    /// Operators, and the agent whose session it is; also with the token of a run that was stopped, so that its agent
    /// gets the refusal of the stop.
    Message,
    /// Operators only.
    Operate,
    /// Everyone with a token.
    Known,
    /// Whoever can reach the daemon, with or without a token. Host and Origin are looked at all the same.
    Anyone,
}

refusals! {
    /// Why a caller was turned away.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    pub enum Denied {
        NoToken => "token_missing", Unauthorized
            ("the request carries no token")
            ("send `Authorization: Bearer …` with the token in the data folder's `token` file");
        BadToken => "token_unknown", Unauthorized
            ("the token is not known here")
            ("read it again from the data folder's `token` file, or make one with `lanyard token new`");
        /// The run the token was made for has ended.
        RunEnded => "run_ended", Unauthorized
            ("the run this token was made for has ended")
            ("an agent's token ends with its run; the next run of the session gets its own");
        /// The link's time is over, or its end cannot be read.
        LinkEnded => "share_link_ended", Unauthorized
            ("this share link has ended") ("ask for a new one; an operator makes it with `lanyard share new`");
        NotShared => "not_shared", Forbidden
            ("a share link shows one session and those below it, and nothing else")
            ("ask an operator for a browser of your own: `lanyard open --observer`");
        Role => "role_forbidden", Forbidden ("the token's role does not allow this") ("use an operator's token");
        OtherSession => "not_your_session", Forbidden
            ("an agent's token can act only as its own session") ("name the session the token was made for");
    }
}
refuses!(Denied);

#[derive(Debug)]
pub struct TokenBook {
    callers: RwLock<HashMap<[u8; 32], Caller>>,
    /// The ids of those that can be revoked.
    ids: RwLock<HashSet<TokenId>>,
    /// The operator's own token: further ones are derived from it.
    root: [u8; 32],
    /// Links that can be exchanged for a token.
    pub(crate) links: Links,
    /// Which runs are alive, and the bell for every right that ends.
    pub(crate) live: LiveRuns,
    /// Ends, devices and last uses.
    pub(crate) notes: TokenNotes,
    slots: Slots,
}

impl TokenBook {
    /// The operator's token from the data folder. Those made since are added.
    #[must_use]
    pub fn new(operator: &str, live: LiveRuns) -> Self {
        let local = Caller { actor: Actor::operator("local"), ..Caller::nobody() };
        Self {
            callers: RwLock::new(HashMap::from([(hash(operator), local)])),
            ids: RwLock::default(),
            root: hash(operator),
            links: Links::default(),
            live,
            notes: TokenNotes::default(),
            slots: Slots::default(),
        }
    }

    /// The same with another number of streams for the operator's own token.
    #[must_use]
    pub fn with_operator_streams(self, max: usize) -> Self {
        Self { slots: Slots::new(max), ..self }
    }

    /// Accepts a token from here on.
    pub(crate) fn add(&self, token: &StoredToken, note: TokenNote) {
        let (hash, entry) = entry(token, note.expires_at);
        self.notes.set(token.id, note);
        self.ids.write().insert(token.id);
        self.callers.write().insert(hash, entry);
    }

    /// What is known of a token beside its rights.
    pub(crate) fn note(&self, id: TokenId) -> TokenNote {
        self.notes.of(id)
    }

    /// Marks a request with a token.
    pub(crate) fn used(&self, caller: &Caller, kind: ClientKind, now: Timestamp) {
        if let Some(token) = caller.token {
            self.notes.used(token, kind, now);
        }
    }

    pub fn revoke(&self, id: TokenId) {
        let mut callers = self.callers.write();
        callers.retain(|_, caller| caller.token != Some(id));
        drop(callers);
        self.notes.remove(id);
        self.ids.write().remove(&id);
        self.live.ring();
    }

    /// Whether the token of a caller is still valid. Whether its run does is another question.
    pub(crate) fn knows(&self, caller: &Caller) -> bool {
        caller.token.is_none_or(|token| self.is_listed(token))
    }

    /// Whether there is a token of this id that can be revoked.
    pub(crate) fn is_listed(&self, id: TokenId) -> bool {
        self.ids.read().contains(&id)
    }

    /// A place for one more stream of this caller.
    pub(crate) fn slot(&self, caller: &Caller) -> Option<StreamSlot> {
        self.slots.take(caller)
    }

    /// Changes whenever a right ends: a token is revoked, or a run is over. Readers look at their own right then.
    #[must_use]
    pub fn endings(&self) -> watch::Receiver<u64> {
        self.live.endings()
    }

    /// Looked up by hash, so that the time it takes tells nothing about the token.
    pub fn caller(&self, authorization: Option<&str>) -> Result<Caller, Denied> {
        let token = authorization.ok_or(Denied::NoToken)?;
        let token = token.strip_prefix("Bearer ").ok_or(Denied::NoToken)?;
        if token.starts_with(SESSION_PREFIX) {
            return self.session_caller(token.trim());
        }
        let callers = self.callers.read();
        callers.get(&hash(token.trim())).cloned().ok_or(Denied::BadToken)
    }

    /// The token with which the agent of one run acts as its session, until that run ends. The token proves itself, so
    /// nothing is stored for it and a restarted daemon knows it again.
    #[must_use]
    pub fn of_session(&self, session: SessionId, run: RunId) -> String {
        let mut bytes = [0; SESSION_BYTES];
        bytes[..16].copy_from_slice(&session.as_u128().to_be_bytes());
        bytes[16..32].copy_from_slice(&run.as_u128().to_be_bytes());
        let proof = self.proof(&bytes[..32]);
        bytes[32..].copy_from_slice(proof.as_bytes());
        format!("{SESSION_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    fn proof(&self, of: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.root);
        hasher.update(b"session run\0").update(of);
        hasher.finalize()
    }

    fn session_caller(&self, token: &str) -> Result<Caller, Denied> {
        // Decoded in place: every tool call comes by here.
        let mut bytes = [0; SESSION_BYTES];
        let text = token.strip_prefix(SESSION_PREFIX).unwrap_or_default();
        let read = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes);
        if read.ok() != Some(SESSION_BYTES) {
            return Err(Denied::BadToken);
        }
        let (of, proof) = bytes.split_at(32);
        let proof: [u8; 32] = proof.try_into().map_err(|_| Denied::BadToken)?;
        // Compared in constant time.
        if self.proof(of) != blake3::Hash::from(proof) {
            return Err(Denied::BadToken);
        }
        let id = |at: &[u8]| at.try_into().map(u128::from_be_bytes).map_err(|_| Denied::BadToken);
        let session = SessionId::from_u128(id(&of[..16])?);
        let run = RunId::from_u128(id(&of[16..])?);
        let actor = Actor { kind: ActorKind::Agent, name: session.to_string() };
        Ok(Caller { actor, session: Some(session), run: Some(run), ..Caller::nobody() })
    }

    /// The token of one run of a task, which tells it from every other run. Nothing is stored for it either.
    #[must_use]
    pub fn of_run(&self, task: TaskId, run: u32) -> String {
        let mut bytes = [0; 52];
        bytes[..16].copy_from_slice(&task.as_u128().to_be_bytes());
        bytes[16..20].copy_from_slice(&run.to_be_bytes());
        let proof = self.run_proof(&bytes[..20]);
        bytes[20..].copy_from_slice(proof.as_bytes());
        format!("{RUN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The task and run a token was made for; nothing when it was not made here.
    #[must_use]
    pub fn run_of(&self, token: &str) -> Option<(TaskId, u32)> {
        let bytes = URL_SAFE_NO_PAD.decode(token.strip_prefix(RUN_PREFIX)?).ok()?;
        let bytes: [u8; 52] = bytes.try_into().ok()?;
        let proof: [u8; 32] = bytes[20..].try_into().ok()?;
        // Compared in constant time.
        if self.run_proof(&bytes[..20]) != blake3::Hash::from(proof) {
            return None;
        }
        let task = TaskId::from_u128(u128::from_be_bytes(bytes[..16].try_into().ok()?));
        Some((task, u32::from_be_bytes(bytes[16..20].try_into().ok()?)))
    }

    fn run_proof(&self, of: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.root);
        hasher.update(b"run\0").update(of);
        hasher.finalize()
    }

    /// The sign of a session in every block that carries words to its agent.
    #[must_use]
    pub fn nonce(&self, session: SessionId) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.root);
        hasher.update(b"nonce\0").update(&session.as_u128().to_be_bytes());
        hasher.finalize().to_hex()[..NONCE_CHARS].to_owned()
    }

    /// A new token from 128 bits that are random or, to answer a repeated request alike, come from its key.
    #[must_use]
    pub fn derive(&self, bits: u128) -> String {
        secret(blake3::keyed_hash(&self.root, &bits.to_be_bytes()).as_bytes())
    }

    /// The code of the sign-in link that is asked for under a key: the same for a repeat.
    pub(crate) fn derive_code(&self, bits: u128) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.root);
        hasher.update(b"sign-in link\0").update(&bits.to_be_bytes());
        format!("{LINK_PREFIX}{}", URL_SAFE_NO_PAD.encode(hasher.finalize().as_bytes()))
    }
}

fn entry(token: &StoredToken, expires_at: Option<Timestamp>) -> ([u8; 32], Caller) {
    let (actor, session) = (token.actor.clone(), token.session);
    let caller = Caller { actor, session, token: Some(token.id), expires_at, ..Caller::nobody() };
    (token.hash, caller)
}

#[must_use]
pub(crate) fn hash(token: &str) -> [u8; 32] {
    *blake3::hash(token.as_bytes()).as_bytes()
}

/// A new token. Always from the system's own randomness, whatever ids are made of.
pub(crate) fn fresh() -> std::io::Result<String> {
    Ok(secret(&random()?))
}

/// The code of a new sign-in link, as random as a token.
pub(crate) fn fresh_code() -> std::io::Result<String> {
    Ok(format!("{LINK_PREFIX}{}", URL_SAFE_NO_PAD.encode(random()?)))
}

fn random() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

/// A token made of random bytes, recognisable as Lanyard's.
fn secret(bytes: &[u8; 32]) -> String {
    format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// What a request shows for itself.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    /// In the form of an `Authorization` header, whatever it came as.
    pub(crate) authorization: Cow<'a, str>,
    pub(crate) by: Means,
}

/// How it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    /// Deliberately, by a holder of the token.
    Given,
    /// By a browser, unasked, whichever page made the request.
    Cookie,
}

/// A header; else, since a browser cannot send one with a WebSocket, a subprotocol beside `lanyard.v1`, which is the one
/// that is answered; else the cookie of this port.
pub(crate) fn shown(headers: &HeaderMap, port: u16) -> Option<Shown<'_>> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        return value
            .to_str()
            .ok()
            .map(|text| Shown { authorization: Cow::Borrowed(text), by: Means::Given });
    }
    let given = offered(headers).map(|token| (token, Means::Given));
    let (token, by) = given.or_else(|| cookie::read(headers, port).map(|token| (token, Means::Cookie)))?;
    Some(Shown { authorization: Cow::Owned(format!("Bearer {token}")), by })
}

/// As [`shown`], only the text.
pub(crate) fn bearer(headers: &HeaderMap, port: u16) -> Option<Cow<'_, str>> {
    shown(headers, port).map(|shown| shown.authorization)
}

fn offered(headers: &HeaderMap) -> Option<&str> {
    if !headers.contains_key(header::UPGRADE) {
        return None;
    }
    let offered =
        headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    offered.flat_map(|value| value.split(',')).find_map(|one| one.trim().strip_prefix(TOKEN_PROTOCOL))
}

/// Whether the caller may use a route, on a session where it names one.
pub(crate) fn permit(caller: &Caller, access: Access, target: Option<SessionId>) -> Result<(), Denied> {
    match caller.actor.kind {
        ActorKind::Operator => Ok(()),
        ActorKind::Observer if caller.session.is_some() => match access {
            Access::Known | Access::Anyone => Ok(()),
            Access::Shared if target.is_some() && caller.session == target => Ok(()),
            // It may be one below.
            Access::Shared if target.is_some() => Err(Denied::OtherSession),
            Access::Shared
            | Access::Look
            | Access::LookAll
            | Access::Own
            | Access::Call
            | Access::Message
            | Access::Operate => Err(Denied::NotShared),
        },
        ActorKind::Observer => match access {
            Access::Look | Access::Shared | Access::LookAll | Access::Known | Access::Anyone => Ok(()),
            Access::Own | Access::Call | Access::Message | Access::Operate => Err(Denied::Role),
        },
        ActorKind::Agent => match access {
            Access::Known | Access::Anyone => Ok(()),
            Access::Look | Access::Shared | Access::Own | Access::Call | Access::Message
                if target.is_some() && caller.session == target =>
            {
                Ok(())
            }
            Access::Look | Access::Shared | Access::Own | Access::Call | Access::Message => {
                Err(Denied::OtherSession)
            }
            Access::LookAll | Access::Operate => Err(Denied::Role),
        },
        // No token is ever given the system's role.
        ActorKind::System => Err(Denied::Role),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_by(headers: &[(&'static str, &'static str)]) -> Option<(String, Means)> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        shown(&map, 7717).map(|shown| (shown.authorization.into_owned(), shown.by))
    }

    #[test]
    fn what_is_given_goes_before_what_a_browser_sends_unasked() {
        let header = ("authorization", "Bearer a");
        let offer = ("sec-websocket-protocol", "lanyard.v1, lanyard.token.b");
        let (upgrade, cookie) = (("upgrade", "websocket"), ("cookie", "lanyard_7717=c"));
        let given = |token: &str| Some((format!("Bearer {token}"), Means::Given));
        assert_eq!(shown_by(&[cookie, upgrade, offer, header]), given("a"));
        assert_eq!(shown_by(&[cookie, upgrade, offer]), given("b"));
        assert_eq!(shown_by(&[cookie, offer]), Some(("Bearer c".to_owned(), Means::Cookie)));
        assert_eq!(shown_by(&[("cookie", "lanyard_7718=c")]), None);
        // Also one that is no good: it was meant.
        let basic = ("authorization", "Basic x");
        assert_eq!(shown_by(&[cookie, basic]), Some(("Basic x".to_owned(), Means::Given)));
    }
}
