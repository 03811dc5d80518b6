//! `/mcp/SESSION/SERVER`: where clients come in. Who they are was found out by the gate in front.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use lanyard_api::annotate::{self, Taste, json};
use lanyard_api::names::OWN_SERVER;
use lanyard_core::SessionId;
use lanyard_core::session::Compliance;

use crate::http_endpoint::{HttpEndpoint, Lent, Outgoing, Trouble};
use crate::mcp::RelayContext;
use crate::mcp::call_entry::{self, CallEntry};
use crate::mcp::envelope::{Envelope, Kind, MODERN, name_of};
use crate::mcp::mcp_session::McpSession;
use crate::mcp::once::{self, Before};
use crate::mcp::revisions::{input_required, legacy_client, legacy_server};
use crate::mcp::server::{Server, Upstream};
use crate::mcp::work::{Aim, Work};
use crate::mcp::{http, rpc, stdio, translate};
use lanyard_engine::live_runs::RunProof;

/// Why the gateway takes no message, opens no stream and closes no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotTaken {
    /// The token's run is over, and the message is no tool call that the stop could refuse.
    RunEnded,
    /// The config has no such server; it has these.
    UnknownServer { known: Vec<String> },
}

/// What a client wants of which server, for whom.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    pub(super) context: Arc<RelayContext>,
    pub(super) session: Option<SessionId>,
    pub(super) mcp_session: Option<Arc<McpSession>>,
    pub(super) headers: HeaderMap,
    proof: RunProof,
}

impl Visit {
    async fn new(
        context: Arc<RelayContext>,
        (session, proof): (Option<SessionId>, RunProof),
        server: &str,
        headers: HeaderMap,
    ) -> Self {
        let mut mcp_session = None;
        if let Some(session) = session {
            let (found, is_new) = context.gateway.sessions.of(&context.interceptor, session, server);
            if is_new {
                Box::pin(remembered(&context, session, server, &found)).await;
            }
            mcp_session = Some(found);
        }
        Self { context, session, mcp_session, headers, proof }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// A request of the client, as it is followed to its answer.
    fn work(&self, envelope: &Envelope<'_>, server: &str) -> Work {
        let modern = envelope.modern().is_some();
        // A client without a greeting introduces itself each time.
        if modern
            && let (Some(mcp_session), Some(client)) = (&self.mcp_session, envelope.client())
            && mcp_session.taste() != Some(Taste::of(&client))
        {
            self.introduce(&client, server);
        }
        let taste = match &self.mcp_session {
            Some(mcp_session) => mcp_session.taste().unwrap_or(Taste::Unknown),
            // Without a session tools are listed as they are.
            None => match envelope.client().map(|client| Taste::of(&client)) {
                Some(Taste::Drops) => Taste::Drops,
                Some(Taste::Keeps | Taste::Unknown | Taste::Unlisted) | None => Taste::Unlisted,
            },
        };
        Work {
            id: envelope.id().to_owned(),
            aim: Aim::of(envelope.method()),
            mcp_session: self.mcp_session.clone(),
            proof: self.proof,
            passing: None,
            taste,
            modern,
            completes: false,
            own: server == OWN_SERVER,
        }
    }

    /// Remembers who the client said it is.
    pub(super) fn introduce(&self, client: &str, server: &str) {
        let Some(mcp_session) = &self.mcp_session else { return };
        mcp_session.introduce(client);
        let (book, session) = (self.context.gateway.book.clone(), self.session);
        let (server, client) = (server.to_owned(), client.to_owned());
        tokio::spawn(async move { book.keep(session, &server, "client", client).await });
    }
}

/// What an earlier daemon knew of the client.
async fn remembered(context: &RelayContext, session: SessionId, server: &str, mcp_session: &McpSession) {
    if let Some(client) = context.gateway.book.find(Some(session), server, "client").await {
        mcp_session.introduce(&client);
    }
    if let Some(params) = context.gateway.book.find(Some(session), server, "modern").await {
        *mcp_session.modern.write() = Some(Arc::new(translate::Modern::of(&params, MODERN)));
    }
}

/// A message of a client. Ways that are seldom gone are put aside, so that the usual one stays small. With the token of
/// a run that is over only a tool call passes, which the stop refuses.
pub async fn message(
    context: Arc<RelayContext>,
    (session, proof): (Option<SessionId>, RunProof),
    name: &str,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, NotTaken> {
    let envelope = match Envelope::read(&body) {
        Ok(envelope) => envelope,
        Err(error) => return Ok(malformed(&body, &error)),
    };
    if proof.spent && !(envelope.kind() == Kind::Request && Aim::of(envelope.method()) == Aim::Call) {
        return Err(NotTaken::RunEnded);
    }
    if name == OWN_SERVER {
        let visit = Visit::new(context, (session, proof), name, headers).await;
        return Ok(Box::pin(own_post(&visit, &envelope, &body)).await);
    }
    let server = context.gateway.server(name).ok_or_else(|| unknown(&context))?;
    let visit = Visit::new(context, (session, proof), &server.key, headers).await;
    Ok(take(&visit, &server, &envelope, &body).await)
}

/// A message for a server of the config.
async fn take(visit: &Visit, server: &Arc<Server>, envelope: &Envelope<'_>, body: &Bytes) -> Response {
    if envelope.kind() != Kind::Request {
        return Box::pin(forward_plain(visit, server, envelope, body)).await;
    }
    let mut work = visit.work(envelope, &server.key);
    let mut body = body.clone();
    if work.aim == Aim::Call {
        server.counted();
        match call_entry::enter(&visit.context, &server.name, envelope, &body, None, &mut work).await {
            CallEntry::Goes(None) => {}
            CallEntry::Goes(Some(changed)) => body = changed,
            CallEntry::Answered(result) => {
                return rpc::json_response(Body::from(rpc::result_text(envelope.id(), &result)));
            }
        }
        if let Some(result) = made_before(visit, server, envelope, &mut work).await {
            let answer = work.finish(rpc::result_text(envelope.id(), &result).into()).await;
            return rpc::json_response(answer.into_body());
        }
    }
    if envelope.method() == "initialize"
        && let Some(client) = std::str::from_utf8(&body).ok().and_then(introduced)
    {
        visit.introduce(&client, &server.key);
    }
    match &server.upstream {
        Upstream::Unusable(why) => {
            let what = format!("MCP server `{}` cannot be used: {why}.", server.name);
            Box::pin(failed(work, &what)).await
        }
        Upstream::Stdio(upstream) => {
            Box::pin(stdio::request(visit, server, upstream, envelope, body, work)).await
        }
        Upstream::Http(upstream) => relay(visit, server, upstream, envelope, body, work).await,
    }
}

/// The result of a call that is carried out once, where an earlier life of the agent has made it in this turn.
async fn made_before(
    visit: &Visit,
    server: &Server,
    envelope: &Envelope<'_>,
    work: &mut Work,
) -> Option<String> {
    let passing = work.passing.as_mut().filter(|passing| server.is_once(&passing.call.tool))?;
    let (session, tool) = (passing.person.bound.session(), &passing.call.tool);
    match once::look(&visit.context, session, &server.name, tool, envelope.arguments()).await? {
        Before::Goes(ticket) => {
            passing.ticket = Some(ticket);
            None
        }
        Before::Done(result) => Some(result),
        Before::Unclear => {
            let what = "call_uncertain: this call was made before the agent was restarted, and its answer was lost: \
                        it may have been carried out. Look whether it was; call once more if it has to be repeated.";
            Some(annotate::failure(what, work.modern))
        }
    }
}

fn introduced(body: &str) -> Option<String> {
    name_of(json::member(json::member(body, "params")?, "clientInfo")?)
}

async fn relay(
    visit: &Visit,
    server: &Arc<Server>,
    upstream: &HttpEndpoint,
    envelope: &Envelope<'_>,
    body: Bytes,
    work: Work,
) -> Response {
    let greeting = envelope.method() == "initialize";
    if work.modern
        && let Some(known) = legacy_server::known(visit).await
    {
        return Box::pin(legacy_server::request(visit, server, upstream, envelope, &body, work, known)).await;
    }
    let mut asker = None;
    let out = if let Some(dressed) = legacy_client::dressed(visit, envelope, &body).filter(|_| !greeting) {
        if input_required::may_ask(envelope) {
            asker = visit
                .mcp_session
                .clone()
                .map(|mcp_session| (mcp_session, (dressed.headers.clone(), dressed.body.clone())));
        }
        dressed
    } else {
        let headers = http::onward(&visit.headers);
        Outgoing { method: Method::POST, headers, body: body.clone() }
    };
    let sent = upstream.send(out, server.timeout).await;
    let answer = match sent {
        Ok(answer) => answer,
        Err(trouble) => return Box::pin(failed(work, &server.failed(&trouble))).await,
    };
    server.worked();
    if greeting && legacy_client::may_be_refused(&answer) {
        return Box::pin(legacy_client::greet(visit, server, upstream, envelope, &body, answer)).await;
    }
    if work.modern && visit.mcp_session.is_some() && legacy_server::may_be_refused(envelope, &answer) {
        return Box::pin(legacy_server::meet(visit, server, upstream, envelope, &body, answer, work)).await;
    }
    if let Some((mcp_session, sent)) = asker.filter(|_| answer.status().is_success()) {
        return Box::pin(input_required::follow(visit, server, &mcp_session, sent, answer, work)).await;
    }
    match http::returned(answer, work, server, &visit.context.gateway).await {
        Ok(response) => response,
        Err((back, trouble)) => Box::pin(failed(back, &server.failed(&trouble))).await,
    }
}

/// A notification, or an answer to something the server asked.
async fn forward_plain(
    visit: &Visit,
    server: &Arc<Server>,
    envelope: &Envelope<'_>,
    body: &Bytes,
) -> Response {
    let trouble = match &server.upstream {
        Upstream::Unusable(why) => Trouble::NotStarted(why.clone()),
        Upstream::Stdio(upstream) => return stdio::tell(visit, server, upstream, envelope, body).await,
        Upstream::Http(upstream) => {
            if let Some(mcp_session) = visit.mcp_session.as_ref().filter(|_| envelope.kind() == Kind::Answer)
                && let Some(asker) = mcp_session.answer_to(envelope.id())
            {
                let _ = asker.send(body.clone());
                return rpc::accepted();
            }
            let legacy_server = if is_modern(visit) { legacy_server::known(visit).await } else { None };
            let translated = match &legacy_server {
                Some((_, legacy_server)) => legacy_server::told(legacy_server, visit, body),
                None => legacy_client::dressed(visit, envelope, body),
            };
            let out = translated.unwrap_or_else(|| Outgoing {
                method: Method::POST,
                headers: http::onward(&visit.headers),
                body: body.clone(),
            });
            match upstream.send(out, server.timeout).await {
                Ok(answer) => return passed_on(answer),
                Err(trouble) => trouble,
            }
        }
    };
    rpc::error(StatusCode::BAD_GATEWAY, "null", rpc::SERVER_FAILED, &server.failed(&trouble))
}

fn passed_on<B>(answer: Response<B>) -> Response
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = answer.into_parts();
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = parts.status;
    for name in [header::CONTENT_TYPE, header::HeaderName::from_static("mcp-session-id")] {
        if let Some(value) = parts.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

/// The stream for what belongs to no request.
pub async fn get(
    context: Arc<RelayContext>,
    whose: (Option<SessionId>, RunProof),
    name: &str,
    headers: HeaderMap,
) -> Result<Response, NotTaken> {
    let Some((visit, server)) = connection(context, whose, name, headers).await? else {
        return Ok(no_such_method());
    };
    Ok(match &server.upstream {
        Upstream::Unusable(_) => no_such_method(),
        Upstream::Stdio(upstream) => stdio::listen(&visit, &server, upstream).await,
        Upstream::Http(upstream) => match bare(&visit, &server, upstream, Method::GET).await {
            Ok(answer) if answer.status().is_success() => {
                http::streamed(answer, visit.mcp_session.clone(), &visit.context.gateway)
            }
            Ok(answer) => passed_on(answer),
            Err(response) => response,
        },
    })
}

/// The client is done.
pub async fn delete(
    context: Arc<RelayContext>,
    whose: (Option<SessionId>, RunProof),
    name: &str,
    headers: HeaderMap,
) -> Result<Response, NotTaken> {
    let Some((visit, server)) = connection(context, whose, name, headers).await? else {
        return Ok(no_such_method());
    };
    Ok(match &server.upstream {
        Upstream::Unusable(_) => no_such_method(),
        Upstream::Stdio(upstream) => stdio::bye(&visit, &server, upstream).await,
        Upstream::Http(upstream) => match bare(&visit, &server, upstream, Method::DELETE).await {
            Ok(answer) => passed_on(answer),
            Err(response) => response,
        },
    })
}

/// A server that keeps connections, and who comes about one. The built-in server keeps none.
async fn connection(
    context: Arc<RelayContext>,
    whose: (Option<SessionId>, RunProof),
    name: &str,
    headers: HeaderMap,
) -> Result<Option<(Visit, Arc<Server>)>, NotTaken> {
    if name == OWN_SERVER {
        return Ok(None);
    }
    let server = context.gateway.server(name).ok_or_else(|| unknown(&context))?;
    Ok(Some((Visit::new(context, whose, &server.key, headers).await, server)))
}

/// Passes a request without a body on.
async fn bare(
    visit: &Visit,
    server: &Server,
    upstream: &HttpEndpoint,
    method: Method,
) -> Result<Response<Lent>, Response> {
    let out = Outgoing { method, headers: http::onward(&visit.headers), body: Bytes::new() };
    upstream.send(out, server.timeout).await.map_err(|trouble| {
        rpc::error(StatusCode::BAD_GATEWAY, "null", rpc::SERVER_FAILED, &server.failed(&trouble))
    })
}

/// A subagent must not end its parent's session.
const CALLER_UNCERTAIN: &str = "caller_uncertain: a subagent may be using this connection, so it is not certain whose \
    call this is, and it was not carried out. Call again with `_session_id` set to your own session's id.";

/// The built-in server keeps no connections: it is asked, and answers.
async fn own_post(visit: &Visit, envelope: &Envelope<'_>, body: &Bytes) -> Response {
    if envelope.kind() != Kind::Request {
        return rpc::accepted();
    }
    let text = std::str::from_utf8(body).unwrap_or_default();
    if envelope.method() == "initialize"
        && let Some(client) = introduced(text)
    {
        visit.introduce(&client, OWN_SERVER);
    }
    let mut work = visit.work(envelope, OWN_SERVER);
    let mut body = body.clone();
    if work.aim == Aim::Call {
        let arguments =
            envelope.arguments().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let compliance = visit.context.own.compliance(&envelope.tool().unwrap_or_default(), &arguments);
        match call_entry::enter(&visit.context, OWN_SERVER, envelope, &body, compliance, &mut work).await {
            CallEntry::Goes(None) => {}
            CallEntry::Goes(Some(changed)) => body = changed,
            CallEntry::Answered(result) => {
                return rpc::json_response(Body::from(rpc::result_text(envelope.id(), &result)));
            }
        }
        let uncertain = work.passing.as_ref().is_some_and(|passing| passing.call.is_uncertain());
        if uncertain && matches!(compliance, Some(Compliance::Complete | Compliance::HandOff)) {
            let result = annotate::failure(CALLER_UNCERTAIN, work.modern);
            let answer = work.finish(rpc::result_text(envelope.id(), &result).into()).await;
            return rpc::json_response(answer.into_body());
        }
    }
    let session = work.passing.as_ref().map(|passing| passing.person.bound.session()).or(visit.session);
    let params = std::str::from_utf8(&body).ok().and_then(|text| json::member(text, "params"));
    let params = params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
    let answer = match visit.context.own.handle(session, envelope.method(), params).await {
        Ok(result) => rpc::result_text(envelope.id(), &own_result(envelope, &work, &result.to_string())),
        Err(error) => rpc::error_text(envelope.id(), error.code, &error.message),
    };
    rpc::json_response(work.finish(answer.into()).await.into_body())
}

/// A client without a greeting asks what the greeting would have said.
fn own_result(envelope: &Envelope<'_>, work: &Work, result: &str) -> String {
    if envelope.method() == "server/discover"
        && work.modern
        && json::member(result, "supportedVersions").is_none()
    {
        return translate::discovered(result);
    }
    result.to_owned()
}

pub(super) async fn failed(mut work: Work, what: &str) -> Response {
    rpc::json_response(work.failed(what).await.into_body())
}

fn malformed(body: &[u8], error: &serde_json::Error) -> Response {
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
    let code = if is_json { rpc::INVALID_REQUEST } else { rpc::PARSE_ERROR };
    rpc::error(StatusCode::BAD_REQUEST, "null", code, &format!("this is no JSON-RPC message: {error}"))
}

fn unknown(context: &RelayContext) -> NotTaken {
    NotTaken::UnknownServer { known: context.gateway.names().map(str::to_owned).collect() }
}

pub(super) fn no_such_method() -> Response {
    let mut response = rpc::error(
        StatusCode::METHOD_NOT_ALLOWED,
        "null",
        rpc::METHOD_NOT_FOUND,
        "this server opens no stream of its own and keeps no connection",
    );
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

/// Whether the client's request says it is of a revision without a greeting.
pub(super) fn is_modern(visit: &Visit) -> bool {
    visit.header("mcp-protocol-version").is_some_and(|version| version >= MODERN)
}
