//! The gate in front of every route: Host, Origin, token, role, and whose session it is. It is put there by the route
//! table, so a route cannot be without it.

use std::sync::Arc;

use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lanyard_api::names::API;
use lanyard_core::session::{Stop, StopLevel};
use lanyard_core::{Address, RunId, SessionId};
use lanyard_store::Loaded;

use crate::api::App;
use crate::api::context::{Target, load, on_disk, query};
use crate::api::plans::on_families_disk;
use crate::api::right::{Right, bounded};
use crate::auth::{Access, Caller, Denied, Means, client_of, permit, shown};
use crate::families::find;
use crate::problem::Problem;
use crate::server::Via;
use lanyard_gateway::mcp::NOBODY;

/// Generations looked through between a subagent and the agent whose process hosts it.
const HOSTED_DEPTH_MAX: usize = 16;

#[derive(Debug, Default, serde::Deserialize)]
struct PlaceQuery {
    workspace: Option<String>,
    plan: Option<String>,
}

pub(super) async fn guard(
    State((app, access)): State<(Arc<App>, (Access, &'static str))>,
    params: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response {
    if access.0 == Access::Anyone {
        return match check_host(&app, request.headers(), via(&request)) {
            Ok(()) => next.run(request).await,
            Err(problem) => problem.into_response(),
        };
    }
    let named = params.iter().find(|(name, _)| *name == "id").map(|(_, value)| value);
    let named = named.and_then(|named| if access.1 == API { Some(named) } else { in_address(named) });
    match admit(&app, access.0, named, Asked::of(&request), via(&request)).await {
        Ok((caller, target)) => {
            let right = Right::new(&app, &caller, target);
            request.extensions_mut().insert(caller);
            if let Some(target) = target {
                request.extensions_mut().insert(Target(target));
            }
            if request.method() != Method::GET {
                return bounded(next.run(request).await, right);
            }
            request.extensions_mut().insert(right.clone());
            // A look that waits ends with the right to look.
            tokio::select! {
                biased;
                response = next.run(request) => bounded(response, right),
                _ = right.of_caller().ended() => Problem::from(Denied::BadToken).into_response(),
            }
        }
        Err(problem) => problem.into_response(),
    }
}

/// The session an address of the gateway names; `None` where it names none.
pub(super) fn in_address(named: &str) -> Option<&str> {
    Some(named).filter(|named| *named != NOBODY)
}

/// What the gate looks at of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) method: &'a Method,
    pub(super) headers: &'a HeaderMap,
    pub(super) uri: &'a Uri,
}

impl<'a> Asked<'a> {
    fn of(request: &'a Request) -> Self {
        Self { method: request.method(), headers: request.headers(), uri: request.uri() }
    }
}

pub(super) async fn admit(
    app: &Arc<App>,
    access: Access,
    named: Option<&str>,
    Asked { method, headers, uri }: Asked<'_>,
    via: Via,
) -> Result<(Caller, Option<SessionId>), Problem> {
    check_host(app, headers, via)?;
    let shown = shown(headers, app.address.port()).ok_or(Denied::NoToken)?;
    let mut caller = app.tokens.caller(Some(&shown.authorization))?;
    if caller.token.is_some() {
        let now = app.clock.now();
        if caller.is_over(now) {
            return Err(Denied::LinkEnded.into());
        }
        app.tokens.used(&caller, client_of(headers, shown.by), now);
    }
    if shown.by == Means::Cookie {
        check_page(app, method, headers)?;
    }
    let target = match named {
        // A Lanyard id alone says it all.
        Some(named) => Some(if let (None, Ok(id)) = (uri.query(), named.parse()) {
            id
        } else {
            let place: PlaceQuery = query(uri)?;
            let session = named.to_owned();
            // Aside, so that the usual way stays small.
            Box::pin(resolve(app, Address { session, workspace: place.workspace, plan: place.plan })).await?
        }),
        None => None,
    };
    if caller.run.is_some() && !is_live(app, &caller).await? {
        Box::pin(may_hear_its_end(app, &caller, access)).await?;
        caller.spent = true;
    }
    match (permit(&caller, access, target), target) {
        (Ok(()), _) => Ok((caller, target)),
        (Err(Denied::OtherSession), Some(below)) if caller.is_shared() => {
            let shown = Box::pin(is_below(app, &caller, below)).await?;
            if shown { Ok((caller, target)) } else { Err(Denied::NotShared.into()) }
        }
        (Err(Denied::OtherSession), Some(hosted))
            if matches!(access, Access::Call | Access::Look | Access::Shared)
                && Box::pin(hosts(app, &caller, hosted)).await? =>
        {
            Ok((caller, target))
        }
        (Err(denied), _) => Err(denied.into()),
    }
}

/// Whether the run a token was made for is still its session's. Known without the disk but for the first time.
pub(super) async fn is_live(app: &Arc<App>, caller: &Caller) -> Result<bool, Problem> {
    let (Some(session), Some(run)) = (caller.session, caller.run) else { return Ok(true) };
    match app.tokens.live.is_live(session, run) {
        Some(live) => Ok(live),
        None => Ok(Box::pin(read_live(app, session)).await? == Some(run)),
    }
}

async fn read_live(app: &Arc<App>, session: SessionId) -> Result<Option<RunId>, Problem> {
    app.tokens.live.reading(session);
    let loaded = on_disk(app, move |store| store.load(session)).await?;
    let run = loaded.and_then(|loaded| loaded.session.live_run().map(|run| run.id));
    Ok(app.tokens.live.read(session, run))
}

/// An agent of a stopped session gets the refusal of its stop for every call, also when its run is over.
async fn may_hear_its_end(app: &Arc<App>, caller: &Caller, access: Access) -> Result<(), Problem> {
    let Some(session) = caller.session.filter(|_| matches!(access, Access::Call | Access::Message)) else {
        return Err(Denied::RunEnded.into());
    };
    let held = load(app, session).await?.session;
    let refused = |stop: &Stop| held.state.is_ended() || stop.level == StopLevel::Terminated;
    let fenced = held.fence(caller.run).is_some();
    if fenced || held.stop.as_ref().is_some_and(refused) { Ok(()) } else { Err(Denied::RunEnded.into()) }
}

/// Whether the caller's process hosts the agent of this session: a subagent below it that has no run of its own.
async fn hosts(app: &Arc<App>, caller: &Caller, hosted: SessionId) -> Result<bool, Problem> {
    let Some(host) = caller.session else { return Ok(false) };
    let found = on_disk(app, move |store| {
        let mut at = hosted;
        for _ in 0..HOSTED_DEPTH_MAX {
            let Some(Loaded { session, .. }) = store.load(at)? else { return Ok(false) };
            if session.deleted || session.run.is_some_and(|run| !run.mirrored) {
                return Ok(false);
            }
            match session.parent {
                Some(parent) if parent == host => return Ok(true),
                Some(parent) => at = parent,
                None => return Ok(false),
            }
        }
        Ok(false)
    });
    found.await
}

/// Whether a session is below that of a share link.
async fn is_below(app: &Arc<App>, caller: &Caller, below: SessionId) -> Result<bool, Problem> {
    let lineages = on_disk(app, move |store| store.lineages(&[below])).await?;
    let above = lineages.first().map(|lineage| lineage.ancestors.as_slice()).unwrap_or_default();
    Ok(caller.session.is_some_and(|shared| above.contains(&shared)))
}

pub(super) fn via(request: &Request) -> Via {
    request.extensions().get::<Via>().copied().unwrap_or(Via::Tcp)
}

/// Against DNS rebinding and pages of other sites: exact names only.
pub(super) fn check_host(app: &App, headers: &HeaderMap, via: Via) -> Result<(), Problem> {
    let host = text(headers, header::HOST).unwrap_or_default();
    if via == Via::Tcp && !app.hosts.contains(host) {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "host_not_allowed",
            format!("this daemon does not answer to the host `{host}`"),
            format!("use http://{}", app.address),
        ));
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let allowed = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.strip_prefix("http://"))
        .is_some_and(|origin| app.hosts.contains(origin));
    if allowed && via == Via::Tcp {
        return Ok(());
    }
    Err(other_origin(app))
}

/// A cookie says which browser it is, and not which page: `SameSite` does not tell the ports of a host apart. So
/// whatever changes something, or talks on, must come from one of this daemon's own pages, and say so; that the origin is
/// the right one, where it is said, was looked at before.
fn check_page(app: &App, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let from = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    if from.is_some_and(|from| from != "same-origin" && from != "none") {
        return Err(other_origin(app));
    }
    let only_looks = matches!(*method, Method::GET | Method::HEAD) && !headers.contains_key(header::UPGRADE);
    if only_looks || headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "origin_missing",
        "the request is signed in by a cookie and does not say which page it comes from",
        "send `Origin`, or a token as `Authorization: Bearer …`",
    ))
}

fn other_origin(app: &App) -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "origin_not_allowed",
        "pages of other origins cannot use this daemon",
        format!("open http://{} instead", app.address),
    )
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The session an address names; a task's or a worker's is the one where it is worked at now. A Lanyard id alone needs no look-up: whether it exists is found out where it is used.
pub(super) async fn resolve(app: &Arc<App>, address: Address) -> Result<SessionId, Problem> {
    if address.workspace.is_none()
        && address.plan.is_none()
        && let Ok(id) = address.session.parse()
    {
        return Ok(id);
    }
    if find::names_work(&address.session) {
        return on_families_disk(app, move |store| find::session_at(store, &address.session)).await;
    }
    let wanted = address.clone();
    let found = on_disk(app, move |store| store.find(&wanted)).await?;
    let mut living = found.iter().filter(|found| !found.deleted);
    match (living.next(), living.next()) {
        (Some(only), None) => Ok(only.session),
        (Some(_), Some(_)) => Err(Problem::new(
            StatusCode::CONFLICT,
            "address_ambiguous",
            format!("more than one session is called {address}"),
            "add `workspace` and `plan`, or use the `sess_…` id",
        )),
        (None, _) if found.is_empty() => Err(Problem::not_found(address)),
        (None, _) => Err(Problem::deleted(address)),
    }
}
