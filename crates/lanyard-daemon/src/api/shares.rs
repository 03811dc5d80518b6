//! Share links: somebody with the link may look at one session and those below it, until the link ends or is revoked. The
//! link's code is a token like any other; what it may do is decided by the guard, for each route.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lanyard_api::types::{NewShare, SHARE_MS_MAX, SHARE_MS_MIN, ShareLink, TokenList};
use lanyard_core::{Actor, ActorKind, TokenId};

use crate::api::App;
use crate::api::context::{Change, Target, load, on_disk};
use crate::api::system::{check_name, info, keep_token, not_revoked};
use crate::auth::TokenNote;
use crate::problem::Problem;

type Shared = State<Arc<App>>;

/// The default life of a link: seven days.
const SHARE_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// The default name of its reader.
const SHARED: &str = "shared";

pub(super) async fn share(
    State(app): Shared,
    target: Target,
    change: Change<NewShare>,
) -> Result<(StatusCode, Json<ShareLink>), Problem> {
    let NewShare { name, expires_in_ms } = change.body.clone();
    let name = name.unwrap_or_else(|| SHARED.to_owned());
    check_name(&name)?;
    let life = expires_in_ms.unwrap_or(SHARE_MS);
    if !(SHARE_MS_MIN..=SHARE_MS_MAX).contains(&life) {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "share_life_invalid",
            format!("`expires_in_ms` is {life}"),
            format!("use {SHARE_MS_MIN} to {SHARE_MS_MAX}: a minute to 30 days"),
        ));
    }
    let session = load(&app, target.0).await?.session.id;
    // From its key, so that a repeat of the request makes the same link and not another.
    let bits = change.keys.first().map_or_else(|| app.clock.random(), |key| u128::from_be_bytes(key.key));
    not_revoked(&app, &change, bits)?;
    let note = TokenNote { expires_at: Some(app.clock.now().plus_millis(life)), ..TokenNote::default() };
    let actor = Actor { kind: ActorKind::Observer, name };
    let (stored, note, token) = keep_token(&app, bits, (actor, Some(session)), note).await?;
    let url = app.link_to(&token);
    let expires_at = note.expires_at.unwrap_or(stored.created_at);
    let link = ShareLink { id: TokenId::from_u128(bits), session, name: stored.actor.name, url, expires_at };
    Ok((StatusCode::CREATED, Json(link)))
}

pub(super) async fn list(State(app): Shared, target: Target) -> Result<Json<TokenList>, Problem> {
    let session = load(&app, target.0).await?.session.id;
    let tokens = on_disk(&app, |store| store.tokens()).await?;
    let shared = tokens
        .iter()
        .filter(|token| token.actor.kind == ActorKind::Observer && token.session == Some(session));
    Ok(Json(TokenList { tokens: shared.map(|token| info(&app, token, None)).collect() }))
}
