//! A client that greets (2025-11-25 and older) in front of a server that asks by `input_required` (2026-07-28): each
//! thing it wants to know is a request to the client on the stream of its own one, and the client's answers go with the
//! call made again.

use std::sync::Arc;

use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use lanyard_api::annotate::json;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Duration;

use crate::http_endpoint::{Lent, Outgoing, Trouble};
use crate::mcp::envelope::{Envelope, Said};
use crate::mcp::http::Talk;
use crate::mcp::http_in::Visit;
use crate::mcp::input;
use crate::mcp::mcp_session::McpSession;
use crate::mcp::rpc::{self, Piece};
use crate::mcp::server::Server;
use crate::mcp::work::Work;

/// How often a server may ask again before it answers.
const ROUNDS_MAX: usize = 16;
/// What it may want to know at a time.
const INPUTS_MAX: usize = 16;
/// How long the client may take: there is a person behind it.
const CLIENT_PATIENCE: Duration = Duration::from_mins(10);
/// Pieces that wait for a client that reads slowly.
const PIECES_MAX: usize = 16;

/// Whether a server may ask in the answer to this.
pub(in crate::mcp) fn may_ask(envelope: &Envelope<'_>) -> bool {
    matches!(envelope.method(), "tools/call" | "prompts/get" | "resources/read")
}

/// A call, as it went to the server.
#[derive(Debug)]
struct Call {
    server: Arc<Server>,
    mcp_session: Arc<McpSession>,
    headers: HeaderMap,
    /// Dressed as the server wants it.
    message: String,
    /// The id of the request that is on its way.
    id: String,
    work: Work,
}

/// Why a call comes to an end.
#[expect(clippy::large_enum_variant, reason = "one per call that asks back, and never kept")]
enum End {
    /// This goes out.
    Said(Piece),
    /// There is nobody to say it to.
    Gone,
}

/// What was asked for: by its name, the method and its parameters, as they were written.
struct Asked {
    inputs: Vec<(String, String, String)>,
    state: Option<String>,
}

fn asks(answer: &Bytes) -> Option<Asked> {
    memchr::memmem::find(answer, b"input_required")?;
    let result = json::member(std::str::from_utf8(answer).ok()?, "result")?;
    if json::member(result, "resultType")? != "\"input_required\"" {
        return None;
    }
    let requests = json::member(result, "inputRequests").unwrap_or("{}");
    let inputs = json::members(requests)?.into_iter().filter_map(|member| {
        let wanted = requests.get(member.value.clone())?;
        let method = json::member(wanted, "method")?.to_owned();
        let params = json::member(wanted, "params").unwrap_or("{}").to_owned();
        Some((member.key.clone(), method, params))
    });
    Some(Asked { inputs: inputs.collect(), state: json::member(result, "requestState").map(str::to_owned) })
}

/// Follows a call to its answer. What is answered at once is plain.
pub(in crate::mcp) async fn follow(
    visit: &Visit,
    server: &Arc<Server>,
    mcp_session: &Arc<McpSession>,
    request: (HeaderMap, Bytes),
    answer: Response<Lent>,
    work: Work,
) -> Response {
    let (headers, message) = (request.0, String::from_utf8_lossy(&request.1).into_owned());
    let id = work.id.clone();
    let mut call =
        Call { server: server.clone(), mcp_session: mcp_session.clone(), headers, message, id, work };
    let mut talk = Talk::of(answer);
    let mut first = None;
    if !talk.is_stream() {
        let answer = match tokio::time::timeout(server.timeout, talk.next()).await {
            Ok(Ok(Some(answer))) => answer,
            Ok(Ok(None)) => Bytes::new(),
            Ok(Err(trouble)) => return rpc::json_response(call.failed(&trouble).await.into_body()),
            Err(_) => {
                return rpc::json_response(call.failed(&Trouble::Slow(server.timeout)).await.into_body());
            }
        };
        if asks(&answer).is_none() {
            return rpc::json_response(call.work.finish(answer).await.into_body());
        }
        first = Some(answer);
    }
    let (pieces, body) = mpsc::channel(PIECES_MAX);
    let mut closing = visit.context.gateway.closing();
    tokio::spawn(async move {
        if let End::Said(last) = call.converse(talk, first, &pieces, &mut closing).await {
            let _ = pieces.send(last.into_frame()).await;
        }
    });
    rpc::typed(rpc::Pieces::body(body), rpc::SSE)
}

impl Call {
    async fn failed(&mut self, trouble: &Trouble) -> Piece {
        self.work.failed(&self.server.failed(trouble)).await
    }

    async fn converse(
        &mut self,
        mut talk: Talk,
        mut heard: Option<Bytes>,
        pieces: &mpsc::Sender<Piece>,
        closing: &mut watch::Receiver<bool>,
    ) -> End {
        for _ in 0..ROUNDS_MAX {
            let answer = match heard.take() {
                Some(answer) => answer,
                None => match self.answer(&mut talk, pieces, closing).await {
                    Ok(answer) => answer,
                    Err(end) => return end,
                },
            };
            let Some(asked) = asks(&answer) else {
                if Said::read(&answer).is_none() {
                    let what = "its answer is no message".to_owned();
                    return End::Said(self.failed(&Trouble::Nonsense(what)).await);
                }
                let text = std::str::from_utf8(&answer).ok();
                let renamed = text.and_then(|text| json::with(text, "id", &self.work.id));
                return End::Said(self.work.finish(renamed.map_or(answer, Bytes::from)).await);
            };
            let again = tokio::select! {
                again = self.again(&asked, pieces) => again,
                () = pieces.closed() => return End::Gone,
                () = crate::mcp::closed(closing) => Err(Trouble::Closing),
                () = tokio::time::sleep(CLIENT_PATIENCE) => {
                    Err(Trouble::Nonsense("the client did not answer what it asked".to_owned()))
                }
            };
            talk = match again {
                Ok(talk) => talk,
                Err(trouble) => return End::Said(self.failed(&trouble).await),
            };
        }
        End::Said(self.failed(&Trouble::Nonsense(format!("it asked {ROUNDS_MAX} times"))).await)
    }

    /// Relays what the server says until it answers.
    async fn answer(
        &mut self,
        talk: &mut Talk,
        pieces: &mpsc::Sender<Piece>,
        closing: &mut watch::Receiver<bool>,
    ) -> Result<Bytes, End> {
        let patience = self.server.timeout;
        loop {
            let heard = tokio::select! {
                heard = talk.next() => heard,
                // Its connection is closed with it, by which the server knows.
                () = pieces.closed() => return Err(End::Gone),
                () = crate::mcp::closed(closing) => Err(Trouble::Closing),
                () = tokio::time::sleep(patience) => Err(Trouble::Slow(patience)),
            };
            let data = match heard {
                Ok(Some(data)) => data,
                Ok(None) => {
                    let trouble = Trouble::Broken("its stream ended".to_owned());
                    return Err(End::Said(self.failed(&trouble).await));
                }
                Err(trouble) => return Err(End::Said(self.failed(&trouble).await)),
            };
            if Said::read(&data).is_some_and(|said| said.answers(&self.id)) || !talk.is_stream() {
                return Ok(data);
            }
            if pieces.send(Piece::from(data).into_frame()).await.is_err() {
                return Err(End::Gone);
            }
        }
    }

    /// Asks the client, and makes the call again with its answers.
    async fn again(&mut self, asked: &Asked, pieces: &mpsc::Sender<Piece>) -> Result<Talk, Trouble> {
        let responses = self.ask(asked, pieces).await?;
        let dressed = || {
            let mut params = json::member(&self.message, "params").unwrap_or("{}").to_owned();
            if !asked.inputs.is_empty() {
                params = json::with(&params, "inputResponses", &responses)?;
            }
            params = match &asked.state {
                Some(state) => json::with(&params, "requestState", state)?,
                None => params,
            };
            // Each request has an id of its own.
            let id = json::quoted(&format!("lanyard-{:016x}", fastrand::u64(..)));
            Some((json::with(&json::with(&self.message, "params", &params)?, "id", &id)?, id))
        };
        let (message, id) =
            dressed().ok_or_else(|| Trouble::Nonsense("what it asked cannot be answered".to_owned()))?;
        self.id = id;
        let upstream = self.server.address().ok_or(Trouble::Closing)?;
        let headers = self.headers.clone();
        let out = Outgoing { method: Method::POST, headers, body: message.into() };
        let answer = upstream.send(out, self.server.timeout).await?;
        if matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(Trouble::Denied(answer.status().as_u16()));
        }
        Ok(Talk::of(answer))
    }

    /// The client's answers, by the names of what was asked.
    async fn ask(&self, asked: &Asked, pieces: &mpsc::Sender<Piece>) -> Result<String, Trouble> {
        if asked.inputs.len() > INPUTS_MAX {
            return Err(Trouble::Nonsense(format!("it asked more than {INPUTS_MAX} things at a time")));
        }
        let mut waiting = Vec::with_capacity(asked.inputs.len());
        for (name, method, params) in &asked.inputs {
            if !serde_json::from_str::<String>(method).is_ok_and(|method| input::is_input(&method)) {
                return Err(Trouble::Nonsense(format!("it asked {method}, which no client can be asked")));
            }
            let question = Question::new(&self.mcp_session).ok_or(Trouble::Crowded)?;
            let id = &question.0;
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#);
            if pieces.send(Piece::from(Bytes::from(line)).into_frame()).await.is_err() {
                return Err(Trouble::Closing);
            }
            waiting.push((name, method, question));
        }
        let mut responses = String::from("{}");
        for (name, method, question) in waiting {
            let answer = question.answer().await.ok_or(Trouble::Closing)?;
            let text = String::from_utf8_lossy(&answer);
            let result = match json::member(&text, "result") {
                Some(result) => result,
                // To say no is an answer where there is a person; elsewhere the call cannot go on.
                None if method.contains("elicitation") => r#"{"action":"cancel"}"#,
                None => {
                    return Err(Trouble::Nonsense(format!("the client refused to answer {method}: {text}")));
                }
            };
            responses = json::with(&responses, name, result)
                .ok_or_else(|| Trouble::Nonsense("the client's answer cannot be passed on".to_owned()))?;
        }
        Ok(responses)
    }
}

/// A question on its way to the client; dropped, nobody waits for its answer.
struct Question<'a>(String, oneshot::Receiver<Bytes>, &'a McpSession);

impl<'a> Question<'a> {
    fn new(mcp_session: &'a McpSession) -> Option<Self> {
        let id = json::quoted(&format!("lanyard-ask-{:016x}", fastrand::u64(..)));
        let answer = mcp_session.ask(&id)?;
        Some(Self(id, answer, mcp_session))
    }

    async fn answer(mut self) -> Option<Bytes> {
        (&mut self.1).await.ok()
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.2.answer_to(&self.0);
    }
}
