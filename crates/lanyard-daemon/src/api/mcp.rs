//! MCP servers: which there are, where a session reaches one, and whether it works.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::Body as HttpBody;
use lanyard_api::types::{McpAddress, McpCheck, McpList, NewMcpAddress, Reason};
use lanyard_core::session::NewSession;
use lanyard_core::{Address, SessionId};

use crate::api::App;
use crate::api::context::{Change, Target, load};
use crate::api::guard::resolve;
use crate::api::system::host_token;
use crate::auth::{Caller, Denied};
use crate::problem::{Problem, marked_as_json, too_slow};
use crate::server::patience;
use lanyard_agents::agents::addresses::server_url;
use lanyard_engine::engine::{self, Ask};
use lanyard_engine::live_runs::RunProof;
use lanyard_gateway::http_endpoint::whole;
use lanyard_gateway::mcp::{self, MESSAGE_BYTES_MAX, NotTaken};

type Shared = State<Arc<App>>;

/// Where sessions of agents that Lanyard did not start come from.
const EXTERNAL: &str = "external";

pub(super) async fn list(State(app): Shared) -> Json<McpList> {
    Json(McpList { servers: app.mcp.gateway.list() })
}

pub(super) async fn address(
    State(app): Shared,
    Path(server): Path<String>,
    change: Change<NewMcpAddress>,
) -> Result<Json<McpAddress>, Problem> {
    if !app.mcp.gateway.has(&server) {
        return Err(unknown(&server));
    }
    let session = match &change.body.session {
        Some(named) => {
            let session = resolve(&app, Address::of(named.clone())).await?;
            load(&app, session).await?.session.id
        }
        None => register(&app, &change).await?,
    };
    let token = host_token(&app, session).await?;
    let headers = [("Authorization".to_owned(), format!("Bearer {token}"))];
    let url = server_url(app.address, &session.to_string(), &server);
    Ok(Json(McpAddress { session, url, headers: BTreeMap::from(headers) }))
}

/// A session for an agent that was started outside of Lanyard: it can be watched, guided and stopped like any other.
async fn register(app: &Arc<App>, change: &Change<NewMcpAddress>) -> Result<SessionId, Problem> {
    let NewMcpAddress { agent, workspace, alias, .. } = &change.body;
    let new = NewSession {
        agent: agent.clone(),
        source: Some(EXTERNAL.to_owned()),
        workspace: workspace.clone(),
        aliases: alias.iter().cloned().collect(),
        ..NewSession::default()
    };
    let id = SessionId::mint(app.clock.now(), app.clock.random());
    let request = engine::Request {
        ask: Ask::Create { id, new: Box::new(new), parent: None },
        actor: change.actor.clone(),
        cause: change.cause.clone(),
        keys: change.keys.clone(),
    };
    Ok(app.engine.ask(request).await?.outcome.session)
}

pub(super) async fn check(
    State(app): Shared,
    Path(server): Path<String>,
    _: Change<Reason>,
) -> Result<Json<McpCheck>, Problem> {
    app.mcp.gateway.check(&app.mcp, &server).await.map(Json).ok_or_else(|| unknown(&server))
}

fn unknown(server: &str) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "mcp_server_not_found",
        format!("the config has no MCP server `{server}`"),
        "list them with `lanyard mcp ls`",
    )
}

type ServerPath = Path<(String, String)>;

/// The session that the gate found in the address, and what its token proves.
fn whose(extensions: &Extensions) -> (Option<SessionId>, RunProof) {
    let session = extensions.get::<Target>().map(|target| target.0);
    (session, extensions.get::<Caller>().map(Caller::proof).unwrap_or_default())
}

pub(super) async fn post(
    State(app): Shared,
    Path((_, name)): ServerPath,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    message(&app, whose(&parts.extensions), &name, parts.headers, body).await
}

/// A message of an MCP client.
pub(super) async fn message(
    app: &App,
    whose: (Option<SessionId>, RunProof),
    server: &str,
    headers: HeaderMap,
    body: impl HttpBody<Data = Bytes> + Unpin,
) -> Result<Response, Problem> {
    let body = read(&headers, body).await?;
    mcp::message(app.mcp.clone(), whose, server, headers, body).await.map_err(|why| not_taken(why, server))
}

async fn read(headers: &HeaderMap, body: impl HttpBody<Data = Bytes> + Unpin) -> Result<Bytes, Problem> {
    marked_as_json(headers)?;
    let read = tokio::time::timeout(patience(), whole(body, MESSAGE_BYTES_MAX));
    read.await.map_err(|_| too_slow())?.map_err(|_| {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("the message is larger than {MESSAGE_BYTES_MAX} bytes, or broke off"),
            "send less; put long content into a file the server can read",
        )
    })
}

fn not_taken(why: NotTaken, server: &str) -> Problem {
    match why {
        NotTaken::RunEnded => Denied::RunEnded.into(),
        NotTaken::UnknownServer { known } => Problem::new(
            StatusCode::NOT_FOUND,
            "mcp_server_not_found",
            format!("the config has no MCP server `{server}`"),
            format!("it has: {}", known.join(", ")),
        ),
    }
}

pub(super) async fn listen(
    State(app): Shared,
    Path((_, name)): ServerPath,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let opened = mcp::get(app.mcp.clone(), whose(&parts.extensions), &name, parts.headers).await;
    opened.map_err(|why| not_taken(why, &name))
}

pub(super) async fn close(
    State(app): Shared,
    Path((_, name)): ServerPath,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let closed = mcp::delete(app.mcp.clone(), whose(&parts.extensions), &name, parts.headers).await;
    closed.map_err(|why| not_taken(why, &name))
}
