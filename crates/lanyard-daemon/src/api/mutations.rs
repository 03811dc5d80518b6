//! The log of changes that no session's log has: who made each, when and why. It is also what makes such a request safe to
//! repeat: under the same `Idempotency-Key` the first answer is given again.
//!
//! Kept by the day, each change for [`LOG_DAYS`] and each answer for two, or for `keep_outcomes_ms` if that is less. A
//! change is written after it was made and before it is answered; one whose daemon died in between is made again when it
//! is repeated, which handlers allow.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lanyard_core::redact::RedactionScope;
use lanyard_core::text::{NAME_CHARS_MAX, cut};
use lanyard_core::{Actor, Timestamp};
use lanyard_store::{PaperKey, Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::api::App;
use crate::api::context::{BODY_BYTES_MAX, REPLAYED, Repeats, key, missing, on_disk, read_body};
use crate::auth::Caller;
use crate::problem::Problem;
use lanyard_engine::engine::{AskError, Key};

/// Days a change is kept.
const LOG_DAYS: u64 = 30;
/// Days behind those that are cleaned up, for a daemon that did not run meanwhile.
const CLEANED_DAYS: u64 = 30;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Changes of one day that are shown.
const DAY_MAX: usize = 10_000;
/// Largest answer that is kept. A larger one is made again when its request is repeated.
const ANSWER_BYTES_MAX: usize = 512 * 1024;

/// Papers of changes, and of the answers to keyed requests. Their workspace is the day.
const CHANGES: &str = "change";
const REQUESTS: &str = "change_request";

/// Where a route's changes are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It changes nothing, has no caller, or is part of an agent's tool calls, which have their own records.
    Nowhere,
    /// In the session's own log, which keeps the actor and the key with the event.
    InSession,
    /// Here, with the answer.
    Here,
    /// Here, without the answer: it holds a secret, or words that somebody may want forgotten. The handler shows again what
    /// it made, or says that it is gone.
    WithoutAnswer,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mutation {
    pub(super) at: Timestamp,
    pub(super) actor: Actor,
    /// The route's name.
    pub(super) name: String,
    /// What it was made to: the path below the API.
    pub(super) path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    pub(super) status: u16,
}

/// A keyed request, and its answer once there is one.
#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    /// A fingerprint of what was asked.
    request: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<Answer>,
    /// It was carried out, and its answer is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made: Option<Repeats>,
}

/// What is known of a key.
enum Reserved {
    /// Nothing was carried out under it.
    New,
    Answered(Answer),
    Made(Repeats),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Answer {
    status: u16,
    body: String,
}

/// Requests under way, by key: the second of two with one key waits for the first. No more than there are requests.
#[derive(Debug, Default)]
pub struct Underway(Mutex<HashMap<[u8; 16], Arc<tokio::sync::Mutex<()>>>>);

impl Underway {
    pub(super) fn lock(&self, key: [u8; 16]) -> Arc<tokio::sync::Mutex<()>> {
        let mut held = self.0.lock();
        held.retain(|_, lock| Arc::strong_count(lock) > 1);
        held.entry(key).or_default().clone()
    }
}

/// The layer before a handler whose changes are recorded here.
pub(super) async fn record(
    State((app, name, recorded)): State<(Arc<App>, &'static str, Recorded)>,
    request: Request,
    next: Next,
) -> Response {
    // Aside from the connection: a client that leaves does not take the record with it.
    let made = tokio::spawn(async move { make(&app, name, recorded, request, next).await });
    match made.await {
        Ok(Ok(response)) => response,
        Ok(Err(problem)) => problem.into_response(),
        Err(_) => missing("handler").into_response(),
    }
}

async fn make(
    app: &Arc<App>,
    name: &'static str,
    recorded: Recorded,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let actor = parts.extensions.get::<Caller>().ok_or_else(|| missing("caller"))?.actor.clone();
    let bytes = read_body(body).await?;
    let key = key(&parts, &actor, &bytes)?.map(|(_, key)| key);
    let mutation = Mutation {
        at: app.clock.now(),
        actor,
        name: name.to_owned(),
        path: parts.uri.path().to_owned(),
        reason: reason_in(&bytes).map(|reason| app.hub.redaction.text(reason, RedactionScope::All)),
        status: 0,
    };
    let mut request = Request::from_parts(parts, Body::from(bytes));
    let Some(key) = key else {
        let response = next.run(request).await;
        return kept(app, mutation, None, recorded, response).await;
    };
    let lock = app.underway.lock(key.key);
    let _held = lock.lock().await;
    let now = mutation.at;
    let kept_since = now.minus_millis(app.config.storage().keep_outcomes_ms);
    match on_disk(app, move |store| reserve(store, key, now, kept_since)).await?? {
        Reserved::New => {}
        Reserved::Answered(answer) => return Ok(answer.into_response()),
        // Nothing is changed, so nothing is recorded.
        Reserved::Made(repeats) => {
            request.extensions_mut().insert(repeats);
            let mut response = next.run(request).await;
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
            return Ok(response);
        }
    }
    let response = next.run(request).await;
    kept(app, mutation, Some(key), recorded, response).await
}

/// Writes a change down that was made; a refused one leaves no trace.
async fn kept(
    app: &Arc<App>,
    mut mutation: Mutation,
    key: Option<Key>,
    recorded: Recorded,
    response: Response,
) -> Result<Response, Problem> {
    let (parts, body) = response.into_parts();
    let whole = to_bytes(body, usize::MAX).await.map_err(|_| missing("answer"))?;
    mutation.status = parts.status.as_u16();
    let (serial, body) = (app.clock.random(), whole.clone());
    let done = parts.status.is_success();
    on_disk(app, move |store| {
        match key {
            Some(key) if done => answer(store, key, &mutation, recorded, &body)?,
            Some(key) => forget(store, key, mutation.at)?,
            None => {}
        }
        if done { write(store, &mutation, serial) } else { Ok(()) }
    })
    .await?;
    Ok(Response::from_parts(parts, Body::from(whole)))
}

/// What became of an earlier request of this key. A new key is taken; another request under it is a conflict. Answers
/// from before `kept_since` count as forgotten.
fn reserve(
    store: &dyn Store,
    key: Key,
    now: Timestamp,
    kept_since: Timestamp,
) -> Result<Result<Reserved, Problem>, StoreError> {
    let asked = hex(key.request);
    for day in [now, now.minus_millis(DAY_MS)] {
        let Some(paper) = store.paper(&place(REQUESTS, day, hex(key.key)))? else { continue };
        if paper.at < kept_since {
            continue;
        }
        let Ok(known) = serde_json::from_str::<Asked>(&paper.body) else { continue };
        if known.request != asked {
            return Ok(Err(AskError::KeyConflict.into()));
        }
        return Ok(Ok(match (known.answer, known.made) {
            (Some(answer), _) => Reserved::Answered(answer),
            (None, Some(made)) => Reserved::Made(made),
            (None, None) => Reserved::New,
        }));
    }
    let asked = Asked { request: asked, answer: None, made: None };
    put(store, &place(REQUESTS, now, hex(key.key)), now, &asked)?;
    Ok(Ok(Reserved::New))
}

fn answer(
    store: &dyn Store,
    key: Key,
    mutation: &Mutation,
    recorded: Recorded,
    body: &Bytes,
) -> Result<(), StoreError> {
    let small = recorded == Recorded::Here && body.len() <= ANSWER_BYTES_MAX;
    let text = std::str::from_utf8(body).ok().filter(|_| small);
    let answer = text.map(|body| Answer { status: mutation.status, body: body.to_owned() });
    let made = (recorded == Recorded::WithoutAnswer).then(|| Repeats { id: id_in(body) });
    let at = mutation.at;
    put(store, &place(REQUESTS, at, hex(key.key)), at, &Asked { request: hex(key.request), answer, made })
}

/// The id of what an answer shows.
fn id_in(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Shown {
        id: Option<String>,
    }
    serde_json::from_slice::<Shown>(body).ok()?.id
}

/// Nothing was done: the same key may be used again, also for something else.
fn forget(store: &dyn Store, key: Key, at: Timestamp) -> Result<(), StoreError> {
    store.remove_paper(&place(REQUESTS, at, hex(key.key))).map(drop)
}

fn write(store: &dyn Store, mutation: &Mutation, serial: u128) -> Result<(), StoreError> {
    let name = format!("{:016x}.{:08x}", mutation.at.as_millis(), serial & 0xFFFF_FFFF);
    let first = store.papers(CHANGES, &day(mutation.at), None, 1)?.is_empty();
    put(store, &place(CHANGES, mutation.at, name), mutation.at, mutation)?;
    // Once a day is soon enough.
    if first { clean_up(store, mutation.at) } else { Ok(()) }
}

fn clean_up(store: &dyn Store, now: Timestamp) -> Result<(), StoreError> {
    for (kind, days) in [(CHANGES, LOG_DAYS), (REQUESTS, 2)] {
        for back in days..days + CLEANED_DAYS {
            let at = now.minus_millis(back * DAY_MS);
            for paper in store.papers(kind, &day(at), None, DAY_MAX)? {
                store.remove_paper(&paper.place)?;
            }
        }
    }
    Ok(())
}

/// Changes between two times, newest first, until `enough` says so.
pub(super) fn read(
    store: &dyn Store,
    (since, until): (Option<Timestamp>, Timestamp),
    mut enough: impl FnMut(Mutation, u64) -> bool,
) -> Result<(), StoreError> {
    for back in 0..=LOG_DAYS {
        let at = until.minus_millis(back * DAY_MS);
        for paper in store.papers(CHANGES, &day(at), None, DAY_MAX)?.into_iter().rev() {
            let Ok(mutation) = serde_json::from_str::<Mutation>(&paper.body) else { continue };
            let serial =
                paper.place.key.rsplit_once('.').and_then(|(_, text)| u64::from_str_radix(text, 16).ok());
            let asked = since.is_none_or(|since| mutation.at >= since) && mutation.at <= until;
            if asked && enough(mutation, serial.unwrap_or_default()) {
                return Ok(());
            }
        }
        if since.is_some_and(|since| day(at) < day(since)) {
            return Ok(());
        }
    }
    Ok(())
}

fn put<T: Serialize>(
    store: &dyn Store,
    place: &PaperKey,
    at: Timestamp,
    value: &T,
) -> Result<(), StoreError> {
    let body = serde_json::to_string(value).unwrap_or_default();
    let from = store.paper(place)?.map_or(0, |paper| paper.version);
    // The key's lock makes this the only writer of the place.
    store.put_paper(place, from, at, &body).map(drop)
}

fn place(kind: &str, at: Timestamp, key: String) -> PaperKey {
    PaperKey { kind: kind.to_owned(), workspace: day(at), key }
}

/// `2026-11-18`.
fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

fn hex(bytes: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(bytes))
}

/// The caller's reason.
fn reason_in(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Given {
        reason: Option<String>,
    }
    if body.len() > BODY_BYTES_MAX {
        return None;
    }
    let given: Given = serde_json::from_slice(body).ok()?;
    given.reason.map(|reason| cut(&reason, NAME_CHARS_MAX).0.to_owned())
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        let mut response = (status, self.body).into_response();
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        response
    }
}
