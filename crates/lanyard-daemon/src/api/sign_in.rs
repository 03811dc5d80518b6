//! How a browser gets a token: a link that a token's holder asked for is exchanged for a cookie, once. The token in
//! the cookie is one like any other, listed and revocable.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lanyard_api::types::{Me, MyLimits, NewSignInLink, Reason, SignIn, SignInLink, SignedIn};
use lanyard_core::Actor;
use lanyard_core::flow::GUIDANCE_CHARS_MAX;

use crate::api::App;
use crate::api::context::{Change, Said};
use crate::api::system::{check_name, drop_token, keep_token, set_note};
use crate::auth::{self, Caller, Denied, TOKEN_PREFIX, TokenNote, cookie, device_of};
use crate::problem::Problem;

type Shared = State<Arc<App>>;

/// The default name of a browser.
const BROWSER: &str = "browser";

pub(super) async fn new_link(
    State(app): Shared,
    change: Change<NewSignInLink>,
) -> Result<(StatusCode, Json<SignInLink>), Problem> {
    let NewSignInLink { role, name } = change.body;
    let name = name.unwrap_or_else(|| BROWSER.to_owned());
    check_name(&name)?;
    let code = match change.keys.first() {
        Some(key) => app.tokens.derive_code(u128::from_be_bytes(key.key)),
        None => auth::fresh_code().map_err(|error| {
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "randomness_unavailable",
                format!("the system gave no random bits: {error}"),
                "repeat it in a moment",
            )
        })?,
    };
    let expires_at = if change.repeats.is_some() {
        let open = app.tokens.links.open_until(&code, app.clock.now());
        open.ok_or_else(|| spent(StatusCode::GONE, "use another key to make a new link"))?
    } else {
        app.tokens.links.add(&code, Actor { kind: role.into(), name }, app.clock.now())
    };
    Ok((StatusCode::CREATED, Json(SignInLink { url: app.link_to(&code), role, expires_at })))
}

fn spent(status: StatusCode, advice: &str) -> Problem {
    Problem::new(
        status,
        "sign_in_link_spent",
        "this sign-in link was used before, is older than ten minutes, or was made by an earlier daemon",
        advice,
    )
}

impl App {
    /// A link that signs an operator's browser in, for the user of this daemon.
    pub fn sign_in_link(&self) -> std::io::Result<String> {
        let code = auth::fresh_code()?;
        self.tokens.links.add(&code, Actor::operator(BROWSER), self.clock.now());
        Ok(self.link_to(&code))
    }

    /// The code stands behind `#`, which browsers neither send nor log.
    pub(super) fn link_to(&self, code: &str) -> String {
        format!("http://{}/sign-in#{code}", self.address)
    }
}

pub(super) async fn sign_in(
    State(app): Shared,
    headers: HeaderMap,
    Said(said): Said<SignIn>,
) -> Result<Response, Problem> {
    let code = said.code.trim();
    if code.starts_with(TOKEN_PREFIX) {
        return open_share(&app, &headers, code).await;
    }
    let Some(actor) = app.tokens.links.take(code, app.clock.now()) else {
        return Err(spent(StatusCode::FORBIDDEN, "`lanyard open` prints a new one"));
    };
    let before = cookie_caller(&app, &headers);
    let note = TokenNote { device: device_of(&headers), ..TokenNote::default() };
    let (stored, _, token) = keep_token(&app, app.clock.random(), (actor, None), note).await?;
    // A share link's token stays: others may have the link.
    if let Some(before) = before.filter(|before| !before.is_shared()).and_then(|before| before.token) {
        // Nobody holds it any more: the new cookie takes the place of the one it was in.
        drop_token(&app, before).await?;
    }
    tracing::info!(token = %stored.id, name = stored.actor.name, "a browser was signed in");
    let said = SignedIn { role: stored.actor.kind, name: stored.actor.name, session: None };
    Ok((signed(&app, &token), Json(said)).into_response())
}

fn signed(app: &App, token: &str) -> [(header::HeaderName, String); 2] {
    [
        (header::SET_COOKIE, cookie::set(app.address.port(), token)),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ]
}

/// The code of a share link is its token. A browser that may see more keeps what it has, and is told where to look.
async fn open_share(app: &Arc<App>, headers: &HeaderMap, code: &str) -> Result<Response, Problem> {
    let reader = app.tokens.caller(Some(&format!("Bearer {code}"))).ok();
    let reader = reader.filter(|reader| reader.is_shared() && !reader.is_over(app.clock.now()));
    let Some((reader, token)) = reader.and_then(|reader| Some((reader.clone(), reader.token?))) else {
        return Err(Denied::LinkEnded.into());
    };
    let before = cookie_caller(app, headers).filter(|before| !before.is_shared());
    let session = reader.session;
    if let Some(before) = before {
        let said = SignedIn { role: before.actor.kind, name: before.actor.name, session };
        return Ok(([(header::CACHE_CONTROL, "no-store")], Json(said)).into_response());
    }
    let note = TokenNote { device: device_of(headers), ..app.tokens.note(token) };
    set_note(app, token, note).await?;
    tracing::info!(%token, name = reader.actor.name, "a browser opened a share link");
    let said = SignedIn { role: reader.actor.kind, name: reader.actor.name, session };
    Ok((signed(app, code), Json(said)).into_response())
}

pub(super) async fn sign_out(
    State(app): Shared,
    headers: HeaderMap,
    _: Change<Reason>,
) -> Result<Response, Problem> {
    let Some(caller) = cookie_caller(&app, &headers) else {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "not_signed_in",
            "the request carries no cookie of a browser that is signed in",
            "revoke a token with `lanyard token rm`",
        ));
    };
    // A share link's token stays: others may have the link.
    if let Some(token) = caller.token.filter(|_| !caller.is_shared()) {
        drop_token(&app, token).await?;
    }
    let clear = [(header::SET_COOKIE, cookie::cleared(app.address.port()))];
    Ok((StatusCode::NO_CONTENT, clear).into_response())
}

pub(super) async fn me(State(app): Shared, Extension(caller): Extension<Caller>) -> Json<Me> {
    Json(Me {
        role: caller.actor.kind,
        name: caller.actor.name,
        token: caller.token,
        session: caller.session,
        expires_at: caller.expires_at,
        limits: limits(&app),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now: app.clock.now(),
    })
}

fn limits(app: &App) -> MyLimits {
    let rules = &app.config.rules();
    MyLimits {
        guidance_chars: rules.limits.guidance_chars,
        overlong: rules.limits.overlong,
        guidance_pending: rules.limits.guidance_pending,
        flow_guidance_chars: GUIDANCE_CHARS_MAX,
        inbox_turns: rules.limits.inbox_turns,
        depth: rules.limits.depth,
        stop_graceful_ms: rules.stop.graceful_ms,
        stop_immediate_ms: rules.stop.immediate_ms,
        writer_lapse_ms: rules.writer.lapse_ms,
        writer_deny_ms: rules.writer.deny_ms,
    }
}

/// Whose token is in the browser's cookie, where it is one that can be revoked.
fn cookie_caller(app: &App, headers: &HeaderMap) -> Option<Caller> {
    let token = cookie::read(headers, app.address.port())?;
    let caller = app.tokens.caller(Some(&format!("Bearer {token}"))).ok()?;
    caller.token.is_some().then_some(caller)
}
