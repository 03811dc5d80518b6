//! What handlers get from a request, checked: the caller, the session it names, the body, the key.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use lanyard_core::{Actor, Cause, SessionId};
use lanyard_store::{Loaded, Store, StoreError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::api::App;
use crate::auth::Caller;
use crate::problem::{Problem, marked_as_json, too_slow};
use crate::server::patience;
use lanyard_engine::engine::Key;
use lanyard_engine::live_runs::RunProof;

/// On an answer that was given before.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Largest request body. A prompt may have 1 MiB; JSON escapes can double it.
pub(super) const BODY_BYTES_MAX: usize = 2 << 20;
/// Longest Idempotency-Key.
pub(super) const KEY_CHARS_MAX: usize = 200;

/// The session in the path, found by the guard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target(pub(crate) SessionId);

impl<S: Sync> FromRequestParts<S> for Target {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().copied().ok_or_else(|| missing("session"))
    }
}

/// The epoch of the writer's lease, from the header `Lanyard-Writer`.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriterEpoch(pub(super) Option<u64>);

impl<S: Sync> FromRequestParts<S> for WriterEpoch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get("lanyard-writer") else { return Ok(Self(None)) };
        let epoch = value.to_str().ok().and_then(|text| text.trim().parse().ok());
        epoch.map(|epoch| Self(Some(epoch))).ok_or_else(|| {
            Problem::bad_request(
                "writer_epoch_bad",
                "the header Lanyard-Writer holds no epoch",
                "send the number the lease was granted with",
            )
        })
    }
}

/// A request that was carried out before under the same key, and whose answer was not kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Repeats {
    /// The id of what it made, where that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
}

/// A request to change something.
#[derive(Debug)]
pub(super) struct Change<T> {
    pub(super) actor: Actor,
    pub(super) cause: Option<Cause>,
    pub(super) keys: Vec<Key>,
    /// It was carried out before: what it made is shown again, and nothing is made.
    pub(super) repeats: Option<Repeats>,
    /// The run whose token the request came with.
    pub(super) proof: RunProof,
    pub(super) body: T,
}

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Change<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let caller = parts.extensions.get::<Caller>().cloned().ok_or_else(|| missing("caller"))?;
        let (bytes, proof) = (read_body(body).await?, caller.proof());
        let key = key(&parts, &caller.actor, &bytes)?;
        let cause = match &key {
            Some((text, _)) => text.clone(),
            None => format!("req_{:032x}", app.clock.random()),
        };
        Ok(Self {
            body: parse(&parts.headers, &bytes)?,
            actor: caller.actor,
            cause: Some(Cause::Request(cause)),
            keys: key.map(|(_, key)| key).into_iter().collect(),
            repeats: parts.extensions.get::<Repeats>().cloned(),
            proof,
        })
    }
}

/// The body of a request anyone may make: there is no caller whom a key could belong to.
#[derive(Debug)]
pub(super) struct Said<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Said<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Arc<App>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        parse(&parts.headers, &read_body(body).await?).map(Self)
    }
}

pub(super) async fn read_body(body: axum::body::Body) -> Result<bytes::Bytes, Problem> {
    let read = tokio::time::timeout(patience(), axum::body::to_bytes(body, BODY_BYTES_MAX));
    read.await.map_err(|_| too_slow())?.map_err(|_| {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("the body is larger than {BODY_BYTES_MAX} bytes, or broke off"),
            "send less; put long content into a file the agent can read",
        )
    })
}

pub(super) fn missing(what: &str) -> Problem {
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "defect",
        format!("the request has no {what}"),
        "nothing was changed; please report this with the daemon's log",
    )
}

fn parse<T: DeserializeOwned>(headers: &HeaderMap, bytes: &[u8]) -> Result<T, Problem> {
    if bytes.is_empty() {
        return read_json(b"{}");
    }
    marked_as_json(headers)?;
    read_json(bytes)
}

fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // A list would be taken as the fields in their order, and a typing mistake as something that was meant.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "body_invalid",
            "the body is a JSON list where an object belongs",
            "compare it with the schema at /api/v1/openapi.json",
        ));
    }
    serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "body_invalid",
            format!("the body does not fit: {error}"),
            "compare it with the schema at /api/v1/openapi.json",
        ),
        serde_json::error::Category::Syntax
        | serde_json::error::Category::Eof
        | serde_json::error::Category::Io => Problem::bad_request(
            "json_malformed",
            format!("the body is not JSON: {error}"),
            "send one JSON document",
        ),
    })
}

/// The key as it was sent, and bound to who sent it, for what.
pub(super) fn key(parts: &Parts, actor: &Actor, body: &[u8]) -> Result<Option<(String, Key)>, Problem> {
    let Some(value) = parts.headers.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| {
        (1..=KEY_CHARS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    });
    let Some(text) = text else {
        return Err(Problem::bad_request(
            "idempotency_key_bad",
            "the Idempotency-Key cannot be used",
            format!("use 1 to {KEY_CHARS_MAX} visible ASCII characters, such as a UUID"),
        ));
    };
    let content = [parts.method.as_str(), parts.uri.path(), parts.uri.query().unwrap_or_default()];
    Ok(Some((text.to_owned(), key_of(actor, text, &content, body))))
}

/// Hashes a key with its user, and the content it stands for.
pub(super) fn key_of(actor: &Actor, key: &str, content: &[&str], body: &[u8]) -> Key {
    let mut owner = blake3::Hasher::new();
    owner.update(format!("{:?}\0{}\0{key}", actor.kind, actor.name).as_bytes());
    let mut request = blake3::Hasher::new();
    for part in content {
        request.update(part.as_bytes()).update(b"\0");
    }
    request.update(body);
    Key { key: half(owner.finalize()), request: half(request.finalize()) }
}

fn half(hash: blake3::Hash) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}

/// The query string as a checked type.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    axum::extract::Query::try_from_uri(uri).map(|axum::extract::Query(query)| query).map_err(|error| {
        Problem::bad_request(
            "query_invalid",
            format!("the query does not fit: {}", error.body_text()),
            "compare it with /api/v1/openapi.json",
        )
    })
}

/// Reads from the store without holding up the runtime's threads.
pub(super) async fn on_disk<T: Send + 'static>(
    app: &Arc<App>,
    read: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Problem> {
    let store = app.store.clone();
    let done = tokio::task::spawn_blocking(move || read(&*store)).await;
    done.map_err(|_| missing("reader"))?.map_err(Problem::from)
}

/// A session as its log adds up to.
pub(super) async fn load(app: &Arc<App>, id: SessionId) -> Result<Loaded, Problem> {
    let (loaded, purged) = on_disk(app, move |store| {
        let loaded = store.load(id)?;
        let purged = loaded.is_none() && store.tombstone(id)?.is_some();
        Ok((loaded, purged))
    })
    .await?;
    match loaded {
        Some(loaded) if loaded.session.deleted => Err(Problem::deleted(id)),
        Some(loaded) => Ok(loaded),
        None if purged => Err(Problem::deleted(id)),
        None => Err(Problem::not_found(id)),
    }
}
