//! A server that is a program: its clients' connections, and the processes behind them. Each client has a process of its
//! own, unless the config has them share one.

mod ask;
mod link;
mod process;
mod route;
mod slot;
mod wait;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use lanyard_api::agents::settings::McpStdio;
use lanyard_api::annotate::json;
use lanyard_core::SessionId;
use tokio::sync::mpsc;
use tokio::time::Duration;

use crate::http_endpoint::Trouble;
use crate::mcp::RelayContext;
use crate::mcp::envelope::{Envelope, Kind, id_key};
use crate::mcp::http_in::{Visit, failed, is_modern, no_such_method};
use crate::mcp::rpc::{self, Piece};
use crate::mcp::server::Server;
use crate::mcp::translate;
use crate::mcp::work::Work;
use lanyard_agents::runs::relay::PAUSED;
use link::Link;
use process::Process;
use slot::{Greet, Recipe, Slot};

/// Clients of one server at a time. Beyond that the one that was idle longest is forgotten; it is known again when it
/// comes back.
const LINKS_MAX: usize = 1_024;
/// How long a process without work is kept.
const IDLE_AFTER: Duration = Duration::from_mins(30);
/// How often a quiet stream carries a comment, so that both ends notice a dead connection.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Messages that wait for a client that reads its stream slowly.
const STREAM_MAX: usize = 64;
const SESSION_HEADER: &str = "mcp-session-id";

/// A program of the config.
#[derive(Debug)]
pub(crate) struct Upstream {
    settings: McpStdio,
    links: Mutex<HashMap<String, Arc<Link>>>,
    /// The one process of all clients.
    shared: OnceLock<Arc<Slot>>,
    restarts: Arc<AtomicU64>,
}

impl Upstream {
    pub(super) fn new(settings: McpStdio) -> Self {
        Self { settings, links: Mutex::default(), shared: OnceLock::new(), restarts: Arc::default() }
    }

    pub(super) fn is_shared(&self) -> bool {
        self.settings.share
    }

    pub(super) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Processes that run now.
    pub(super) fn running(&self) -> usize {
        let shared = usize::from(self.shared.get().is_some_and(|slot| slot.live().is_some()));
        let own =
            self.all().iter().filter(|link| !link.slot.is_shared() && link.slot.live().is_some()).count();
        shared + own
    }

    fn all(&self) -> Vec<Arc<Link>> {
        self.links.lock().values().cloned().collect()
    }

    fn get(&self, id: &str) -> Option<Arc<Link>> {
        self.links.lock().get(id).cloned()
    }

    /// Keeps a connection. After a restart several requests may find the same one at once: all get the first.
    fn add(&self, link: Arc<Link>) -> Result<Arc<Link>, Trouble> {
        let mut links = self.links.lock();
        if let Some(held) = links.get(&link.id) {
            return Ok(held.clone());
        }
        if links.len() >= LINKS_MAX {
            let idle = links.values().filter(|link| link.slot.is_shared() || link.slot.live().is_none());
            let oldest = idle.min_by_key(|link| link.idle_since()).map(|link| link.id.clone());
            links.remove(&oldest.ok_or(Trouble::Crowded)?);
        }
        links.insert(link.id.clone(), link.clone());
        Ok(link)
    }

    fn remove(&self, id: &str) -> Option<Arc<Link>> {
        self.links.lock().remove(id)
    }

    /// Where a client's process lives.
    async fn slot(&self, context: &Arc<RelayContext>, session: Option<SessionId>) -> Arc<Slot> {
        let recipe = |cwd| Recipe {
            settings: self.settings.clone(),
            marker: context.gateway.marker.clone(),
            cwd,
            is_shared: self.settings.share,
        };
        if self.settings.share {
            return self.shared.get_or_init(|| Slot::new(recipe(None), self.restarts.clone())).clone();
        }
        // Where an agent's own server would find itself.
        let workspace = match session {
            Some(session) => workspace(context, session).await,
            None => None,
        };
        Slot::new(recipe(workspace), self.restarts.clone())
    }

    /// Ends what has no work, and everything of sessions that have ended.
    pub(super) async fn sweep(&self, ended: &[SessionId]) {
        for link in self.all().into_iter().filter(|link| !is_at_work(link)) {
            let is_over = link.session.is_some_and(|session| ended.contains(&session));
            let is_idle = link.idle_since().elapsed() >= IDLE_AFTER && !link.is_listening();
            if is_over {
                self.remove(&link.id);
                link.close();
            }
            if (is_over || is_idle) && !link.slot.is_shared() {
                link.slot.end().await;
            }
        }
        let quiet = |link: &Arc<Link>| link.idle_since().elapsed() >= IDLE_AFTER && !is_at_work(link);
        if let Some(slot) = self.shared.get().filter(|_| self.all().iter().all(quiet)) {
            slot.end().await;
        }
    }

    /// The sessions whose clients are connected.
    pub(super) fn sessions(&self) -> Vec<SessionId> {
        self.all().iter().filter_map(|link| link.session).collect()
    }

    /// Ends everything.
    pub(super) async fn close(&self) {
        let mut slots: Vec<Arc<Slot>> = self.all().iter().map(|link| link.slot.clone()).collect();
        slots.extend(self.shared.get().cloned());
        let ends: Vec<_> =
            slots.into_iter().map(|slot| tokio::spawn(async move { slot.end().await })).collect();
        for end in ends {
            let _ = end.await;
        }
    }
}

fn is_at_work(link: &Arc<Link>) -> bool {
    link.slot.live().is_some_and(|process| {
        let pending = process.pending.lock();
        pending.values().any(|waiting| std::ptr::eq(waiting.link.as_ptr(), Arc::as_ptr(link)))
    })
}

async fn workspace(context: &Arc<RelayContext>, session: SessionId) -> Option<PathBuf> {
    let store = context.store.clone();
    let loaded = tokio::task::spawn_blocking(move || store.load(session)).await.ok()?.ok()??;
    loaded.session.workspace.map(PathBuf::from).filter(|path| path.is_absolute())
}

/// A request of a client.
pub(super) async fn request(
    visit: &Visit,
    server: &Arc<Server>,
    upstream: &Upstream,
    envelope: &Envelope<'_>,
    body: Bytes,
    mut work: Work,
) -> Response {
    let link = if work.modern {
        modern_link(visit, upstream, envelope).await
    } else if envelope.method() == "initialize" {
        new_link(visit, server, upstream, &body).await
    } else {
        match find(visit, server, upstream).await {
            Ok(link) => Ok(link),
            Err(response) => return response,
        }
    };
    let link = match link {
        Ok(link) => link,
        Err(trouble) => return failed(work, &server.failed(&trouble)).await,
    };
    link.touch();
    if work.modern {
        work = match ask::answered(visit, server, &link, &body, work).await {
            Ok(response) => return response,
            Err(work) => work,
        };
    }
    let greet = match (envelope.method(), link.slot.is_shared()) {
        ("initialize", false) => Greet::Client,
        _ => Greet::With(&link.params),
    };
    let process = match link.slot.process(&link, greet).await {
        Ok(process) => process,
        Err(trouble) => return failed(work, &server.failed(&trouble)).await,
    };
    server.worked();
    work.completes = work.modern && link.dressed.read().is_none();
    match known(&link, &process, envelope) {
        Some(result) => {
            let answer = rpc::result_text(envelope.id(), &result).into();
            let mut response = rpc::json_response(work.finish(answer).await.into_body());
            name(&mut response, &link, envelope);
            response
        }
        None => wait::call(visit, server, &link, &process, envelope, body, work).await,
    }
}

/// What can be answered without asking the server again.
fn known(link: &Arc<Link>, process: &Arc<Process>, envelope: &Envelope<'_>) -> Option<String> {
    let greeting = process.greeting.get()?;
    match envelope.method() {
        "initialize" if process.is_shared => Some(greeting.clone()),
        "server/discover" if link.is_modern => Some(translate::discovered(greeting)),
        "resources/subscribe" | "resources/unsubscribe" if process.is_shared => {
            let uri = envelope.params.as_ref()?.uri?.get();
            if envelope.method() == "resources/subscribe" {
                link.subscribe(uri);
                return None;
            }
            link.unsubscribe(uri);
            // Others may still want to hear of it.
            route::links(process).iter().any(|other| other.has_subscribed(uri)).then(|| "{}".to_owned())
        }
        _ => None,
    }
}

/// Tells the client by what name it is known from now on.
fn name(response: &mut Response, link: &Link, envelope: &Envelope<'_>) {
    if envelope.method() == "initialize"
        && let Ok(value) = HeaderValue::from_str(&link.id)
    {
        response.headers_mut().insert(SESSION_HEADER, value);
    }
}

/// A client greets: it gets a connection of its own, which outlives the daemon.
async fn new_link(
    visit: &Visit,
    server: &Server,
    upstream: &Upstream,
    body: &Bytes,
) -> Result<Arc<Link>, Trouble> {
    let params = std::str::from_utf8(body).ok().and_then(|text| json::member(text, "params"));
    let params = params.unwrap_or("{}").replace(['\n', '\r'], " ");
    let id = format!("lyn_{:032x}", visit.context.clock.random());
    visit.context.gateway.book.keep(visit.session, &server.key, &id, params.clone()).await;
    let slot = upstream.slot(&visit.context, visit.session).await;
    upstream.add(Link::new(id, visit.session, params, slot, false))
}

/// Clients that do not greet share one connection per session.
async fn modern_link(
    visit: &Visit,
    upstream: &Upstream,
    envelope: &Envelope<'_>,
) -> Result<Arc<Link>, Trouble> {
    let id =
        format!("modern {}", visit.session.map_or_else(|| "-".to_owned(), |session| session.to_string()));
    if let Some(link) = upstream.get(&id) {
        return Ok(link);
    }
    let slot = upstream.slot(&visit.context, visit.session).await;
    let params = translate::greeting_params(envelope.meta()).replace(['\n', '\r'], " ");
    upstream.add(Link::new(id, visit.session, params, slot, true))
}

/// The connection the client names. One of an earlier daemon is taken up again: some clients never greet twice.
async fn find(visit: &Visit, server: &Server, upstream: &Upstream) -> Result<Arc<Link>, Response> {
    let Some(id) = visit.header(SESSION_HEADER) else {
        let what = "the Mcp-Session-Id header is missing; send initialize first";
        return Err(rpc::error(StatusCode::BAD_REQUEST, "null", rpc::INVALID_REQUEST, what));
    };
    if let Some(link) = upstream.get(id) {
        // Another session's connection is as unknown as one that never was.
        return if link.session == visit.session && !link.is_modern { Ok(link) } else { Err(lost()) };
    }
    let Some(params) = visit.context.gateway.book.find(visit.session, &server.key, id).await else {
        return Err(lost());
    };
    let slot = upstream.slot(&visit.context, visit.session).await;
    let link = Link::new(id.to_owned(), visit.session, params, slot, false);
    upstream.add(link).map_err(|trouble| {
        rpc::error(StatusCode::SERVICE_UNAVAILABLE, "null", rpc::SERVER_FAILED, &server.failed(&trouble))
    })
}

fn lost() -> Response {
    let what = "this Mcp-Session-Id is not known here; send initialize again";
    rpc::error(StatusCode::NOT_FOUND, "null", rpc::SESSION_UNKNOWN, what)
}

/// A notification, or an answer to something the server asked.
pub(super) async fn tell(
    visit: &Visit,
    server: &Arc<Server>,
    upstream: &Upstream,
    envelope: &Envelope<'_>,
    body: &Bytes,
) -> Response {
    let link = if envelope.modern().is_some() || is_modern(visit) {
        modern_link(visit, upstream, envelope).await.ok()
    } else {
        match find(visit, server, upstream).await {
            Ok(link) => Some(link),
            Err(response) => return response,
        }
    };
    // Whoever is not there needs not be told anything.
    let Some(link) = link else { return rpc::accepted() };
    let Some(process) = link.slot.live() else { return rpc::accepted() };
    link.touch();
    if let Some(line) = told(&link, &process, envelope, body)
        && let Err(trouble) = process.send(line).await
    {
        return rpc::error(StatusCode::BAD_GATEWAY, "null", rpc::SERVER_FAILED, &server.failed(&trouble));
    }
    rpc::accepted()
}

/// What the server gets to hear of it.
fn told(link: &Arc<Link>, process: &Arc<Process>, envelope: &Envelope<'_>, body: &Bytes) -> Option<Bytes> {
    if envelope.kind() == Kind::Answer {
        // Only who was asked may answer.
        let mut asked = process.asked.lock();
        let key = id_key(envelope.id());
        let is_asked = asked.get(&key).is_some_and(|held| std::ptr::eq(held.as_ptr(), Arc::as_ptr(link)));
        if !is_asked {
            return None;
        }
        asked.remove(&key);
        return Some(wait::one_line(body));
    }
    match envelope.method() {
        // It was said for all of them when the process was greeted.
        "notifications/initialized" if process.is_shared || link.is_modern => None,
        "notifications/cancelled" => wait::cancelled(link, process, body),
        _ => Some(wait::one_line(body)),
    }
}

/// The stream for what belongs to no request.
pub(super) async fn listen(visit: &Visit, server: &Arc<Server>, upstream: &Upstream) -> Response {
    if is_modern(visit) {
        return no_such_method();
    }
    let link = match find(visit, server, upstream).await {
        Ok(link) => link,
        Err(response) => return response,
    };
    link.touch();
    let (pieces, stream) = mpsc::channel(STREAM_MAX);
    link.listen(pieces.clone());
    let mut closing = visit.context.gateway.closing();
    let beat = pieces.downgrade();
    drop(pieces);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(HEARTBEAT) => {}
                () = crate::mcp::closed(&mut closing) => break,
            }
            let Some(pieces) = beat.upgrade() else { return };
            if pieces.send(Piece::from(Bytes::from_static(b": \n\n"))).await.is_err() {
                return;
            }
        }
        if let Some(pieces) = beat.upgrade() {
            let _ = pieces.send(Piece::from(Bytes::from_static(PAUSED))).await;
        }
        link.close();
    });
    rpc::typed(rpc::Pieces::body(stream), rpc::SSE)
}

/// The client is done: its process ends.
pub(super) async fn bye(visit: &Visit, server: &Arc<Server>, upstream: &Upstream) -> Response {
    if is_modern(visit) {
        return no_such_method();
    }
    let link = match find(visit, server, upstream).await {
        Ok(link) => link,
        Err(response) => return response,
    };
    upstream.remove(&link.id);
    visit.context.gateway.book.forget(visit.session, &server.key, &link.id).await;
    link.close();
    if !link.slot.is_shared() {
        link.slot.end().await;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Starts the server for a look at it: its greeting and the number of its tools.
pub(super) async fn check(
    context: &Arc<RelayContext>,
    upstream: &Upstream,
    params: &str,
) -> Result<(String, String), Trouble> {
    let slot = if upstream.is_shared() {
        upstream.slot(context, None).await
    } else {
        let recipe = Recipe {
            settings: upstream.settings.clone(),
            marker: context.gateway.marker.clone(),
            cwd: None,
            is_shared: false,
        };
        Slot::new(recipe, Arc::default())
    };
    let link = Link::new("check".to_owned(), None, params.to_owned(), slot.clone(), false);
    let looked = async {
        let process = slot.process(&link, Greet::With(params)).await?;
        let asked = match link.dressed.read().clone() {
            Some(modern) => modern.dress(r#"{"params":{}}"#).unwrap_or_default(),
            None => r#"{"params":{}}"#.to_owned(),
        };
        let tools =
            slot::exchange(&process, "tools/list", json::member(&asked, "params").unwrap_or("{}")).await?;
        let greeting = process.greeting.get().cloned().unwrap_or_default();
        Ok((greeting, String::from_utf8_lossy(&tools).into_owned()))
    };
    let found = looked.await;
    if !upstream.is_shared() {
        slot.end().await;
    }
    found
}
