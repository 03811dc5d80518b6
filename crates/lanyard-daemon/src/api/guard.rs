//! The gate in front of every route: Host, Origin, token, role, and whose session it is. It is put there by the route
//! table, so a route cannot be without it.

use std::sync::Arc;

use axum::extract::{RawPathParams, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use lanyard_core::{Address, SessionId};

use crate::api::context::{Target, on_disk, query};
use crate::api::plans::on_families_disk;
use crate::api::problem::Problem;
use crate::api::routes::API;
use crate::api::{App, Via};
use crate::auth::{Access, Denied, Means, permit, shown};
use crate::families::find;
use crate::mcp::NOBODY;

#[derive(Debug, Default, serde::Deserialize)]
struct Place {
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
            request.extensions_mut().insert(caller);
            if let Some(target) = target {
                request.extensions_mut().insert(Target(target));
            }
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// The session an address of the gateway names; nobody, where none is meant.
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
) -> Result<(crate::auth::Caller, Option<SessionId>), Problem> {
    check_host(app, headers, via)?;
    let shown = shown(headers, app.address.port()).ok_or(Denied::NoToken)?;
    let caller = app.tokens.caller(Some(&shown.authorization))?;
    if shown.by == Means::Cookie {
        check_page(app, method, headers)?;
    }
    let target = match named {
        // A Lanyard id alone says it all.
        Some(named) => Some(if let (None, Ok(id)) = (uri.query(), named.parse()) {
            id
        } else {
            let place: Place = query(uri)?;
            let session = named.to_owned();
            // Aside, so that the usual way stays small.
            Box::pin(resolve(app, Address { session, workspace: place.workspace, plan: place.plan })).await?
        }),
        None => None,
    };
    permit(&caller, access, target)?;
    Ok((caller, target))
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

/// The session an address names; a task's or a worker's is the one where it is worked at now (S4-11). A Lanyard id alone needs no look-up: whether it exists is found out where it is used.
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
