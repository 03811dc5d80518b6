//! The daemon itself: how it is, whom it knows, whether its journal is whole, and its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lanyard_api::types::{
    CheckReport, DaemonStatus, NewToken, OperatorStateCount, Reason, Rebuilt, Reloaded, StateCount,
    StorageState, TokenInfo, TokenList,
};
use lanyard_core::{Actor, ActorKind, Address, SessionId, TokenId};
use lanyard_store::StoredToken;

use crate::api::App;
use crate::api::context::{Change, on_disk};
use crate::api::guard::resolve;
use crate::api::journal;
use crate::auth::{self, TokenNote};
use crate::problem::Problem;

type Shared = State<Arc<App>>;

/// Tokens one daemon may know.
const TOKENS_MAX: usize = 10_000;

pub(super) async fn status(State(app): Shared) -> Result<Json<DaemonStatus>, Problem> {
    let shared = app.clone();
    let (states, words, journal) = on_disk(&app, move |store| {
        // A journal whose size cannot be told still has a state.
        let journal = journal::status(&shared, store).unwrap_or_default();
        Ok((store.states()?, store.operator_states()?, journal))
    })
    .await?;
    let by_word = words.into_iter();
    let by_word = by_word.map(|(operator_state, sessions)| OperatorStateCount { operator_state, sessions });
    let storage_error = app.engine.stats.storage_error();
    Ok(Json(DaemonStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        address: app.address.to_string(),
        data_dir: app.data_dir.display().to_string(),
        started_at: app.started_at,
        now: app.clock.now(),
        storage: if storage_error.is_some() { StorageState::Unavailable } else { StorageState::Ok },
        storage_error,
        journal,
        sessions_in_memory: app.engine.stats.residents.load(Ordering::Relaxed),
        readers: app.hub.readers() as u64,
        commits: app.engine.stats.commits.load(Ordering::Relaxed),
        events: app.engine.stats.events.load(Ordering::Relaxed),
        calls_unrecorded: app.engine.stats.unrecorded.load(Ordering::Relaxed),
        states: states.into_iter().map(|(state, sessions)| StateCount { state, sessions }).collect(),
        operator_states: by_word.collect(),
        halt: app.engine.halting.how().into(),
        config: app.reloader.state(),
    }))
}

pub(super) async fn shutdown(State(app): Shared, _: Change<Reason>) -> StatusCode {
    app.shutdown.notify_one();
    StatusCode::ACCEPTED
}

/// A file that cannot be used is refused, and the settings that were read before stay in use.
pub(super) async fn reload(State(app): Shared, _: Change<Reason>) -> Result<Json<Reloaded>, Problem> {
    let reloader = app.reloader.clone();
    let done = tokio::task::spawn_blocking(move || reloader.reload()).await;
    let done = done.unwrap_or_else(|_| Err("reading the file was cut off".to_owned()));
    done.map(Json).map_err(|why| {
        let advice =
            "correct the file with `lanyard config edit`; until then the settings read before stay in use";
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "config_invalid", why, advice)
    })
}

pub(super) async fn check(State(app): Shared) -> Result<Json<CheckReport>, Problem> {
    let attachments = app.storage.attachments.clone();
    let checked = on_disk(&app, move |store| {
        let _kept = attachments.hold();
        let mut report = store.check()?;
        attachments.verify(&mut report);
        Ok(report)
    });
    Ok(Json(checked.await?))
}

pub(super) async fn rebuild(State(app): Shared, _: Change<Reason>) -> Result<Json<Rebuilt>, Problem> {
    let sessions = on_disk(&app, |store| store.rebuild()).await?;
    Ok(Json(Rebuilt { sessions }))
}

pub(super) async fn openapi() -> Json<serde_json::Value> {
    Json(crate::api::document())
}

pub(super) async fn list_tokens(State(app): Shared) -> Result<Json<TokenList>, Problem> {
    let tokens = on_disk(&app, |store| store.tokens()).await?;
    Ok(Json(TokenList { tokens: tokens.iter().map(|token| info(&app, token, None)).collect() }))
}

pub(super) async fn new_token(State(app): Shared, change: Change<NewToken>) -> Result<Response, Problem> {
    let NewToken { role, name, session } = change.body.clone();
    let session = match (role, session) {
        (ActorKind::Agent, Some(session)) => Some(resolve(&app, Address::of(session)).await?),
        (ActorKind::Operator | ActorKind::Observer, None) => None,
        (ActorKind::System, _) => {
            return Err(bad_token(
                "the system's role is not given to tokens",
                "use operator, observer or agent",
            ));
        }
        (ActorKind::Agent, None) => {
            return Err(bad_token("an agent's token needs a session", "name the session it acts as"));
        }
        (ActorKind::Operator | ActorKind::Observer, Some(_)) => {
            return Err(bad_token("only an agent's token is bound to a session", "leave `session` out"));
        }
    };
    check_name(&name)?;
    // From its key, so that a repeat of the request makes the same token and not another.
    let bits = change.keys.first().map_or_else(|| app.clock.random(), |key| u128::from_be_bytes(key.key));
    not_revoked(&app, &change, bits)?;
    let actor = Actor { kind: role, name };
    let (stored, _, token) = keep_token(&app, bits, (actor, session), TokenNote::default()).await?;
    Ok((StatusCode::CREATED, Json(info(&app, &stored, Some(token)))).into_response())
}

/// Refuses to make again what was revoked.
pub(super) fn not_revoked<T>(app: &App, change: &Change<T>, bits: u128) -> Result<(), Problem> {
    if change.repeats.is_none() || app.tokens.is_listed(TokenId::from_u128(bits)) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::GONE,
        "token_revoked",
        "the token that was made under this key was revoked since",
        "use another key to make a new one",
    ))
}

/// A token's name is shown in lists and logs.
pub(super) fn check_name(name: &str) -> Result<(), Problem> {
    let printable =
        !name.trim().is_empty() && name.chars().count() <= 200 && !name.chars().any(char::is_control);
    if !printable {
        return Err(bad_token("the name cannot be used", "use 1 to 200 visible characters"));
    }
    Ok(())
}

/// Makes the token of these bits, or finds it where it was made before.
pub(super) async fn keep_token(
    app: &Arc<App>,
    bits: u128,
    (actor, session): (Actor, Option<SessionId>),
    note: TokenNote,
) -> Result<(StoredToken, TokenNote, String), Problem> {
    let token = app.tokens.derive(bits);
    let stored = StoredToken {
        id: TokenId::from_u128(bits),
        hash: auth::hash(&token),
        actor,
        session,
        created_at: app.clock.now(),
    };
    let known = on_disk(app, |store| store.tokens()).await?;
    if let Some(first) = known.iter().find(|known| known.id == stored.id) {
        if (&first.actor, first.session) != (&stored.actor, stored.session) {
            return Err(lanyard_engine::engine::AskError::KeyConflict.into());
        }
        return Ok((first.clone(), app.tokens.note(stored.id), token));
    }
    if known.len() >= TOKENS_MAX {
        return Err(bad_token("there are too many tokens", "revoke some with `lanyard token rm`"));
    }
    let (kept, written, now) = (stored.clone(), note.clone(), app.clock.now());
    // The note first: a share link without its end is not accepted.
    on_disk(app, move |store| {
        auth::write(store, kept.id, now, &written)?;
        store.put_token(&kept)
    })
    .await?;
    app.tokens.add(&stored, note.clone());
    Ok((stored, note, token))
}

/// Changes what is known of a token that is accepted.
pub(super) async fn set_note(app: &Arc<App>, id: TokenId, note: TokenNote) -> Result<(), Problem> {
    let (written, now) = (note.clone(), app.clock.now());
    on_disk(app, move |store| auth::write(store, id, now, &written)).await?;
    app.tokens.notes.set(id, note);
    Ok(())
}

/// The token of a session whose agent Lanyard does not run: listed, revocable, and the same one when asked for again.
pub(super) async fn host_token(app: &Arc<App>, session: SessionId) -> Result<String, Problem> {
    let actor = Actor { kind: ActorKind::Agent, name: session.to_string() };
    let known = on_disk(app, |store| store.tokens()).await?;
    let made = known.iter().find(|known| known.session == Some(session) && known.actor == actor);
    let bits = made.map_or_else(|| app.clock.random(), |made| made.id.as_u128());
    Ok(keep_token(app, bits, (actor, Some(session)), TokenNote::default()).await?.2)
}

pub(super) async fn revoke_token(
    State(app): Shared,
    Path(id): Path<String>,
    _: Change<Reason>,
) -> Result<StatusCode, Problem> {
    let id: TokenId = id.parse().map_err(|error| {
        bad_token(&format!("`{id}` is not a token's id: {error}"), "list them with `lanyard token ls`")
    })?;
    drop_token(&app, id).await?;
    // Revoking what is not there leaves the same: no such token.
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn drop_token(app: &Arc<App>, id: TokenId) -> Result<(), Problem> {
    on_disk(app, move |store| {
        store.revoke_token(id)?;
        auth::forget(store, id)
    })
    .await?;
    app.tokens.revoke(id);
    Ok(())
}

pub(super) fn info(app: &App, token: &StoredToken, secret: Option<String>) -> TokenInfo {
    let TokenNote { expires_at, device, last_used_at, last_client } = app.tokens.note(token.id);
    TokenInfo {
        id: token.id,
        role: token.actor.kind,
        name: token.actor.name.clone(),
        session: token.session,
        created_at: token.created_at,
        expires_at,
        device,
        last_used_at,
        last_client,
        token: secret,
    }
}

fn bad_token(title: &str, advice: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "token_invalid", title, advice)
}
