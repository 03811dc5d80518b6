//! A request on its way to a process and its answer back: plain JSON when the answer is the first thing that comes, a
//! stream when the server has something to say before.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use lanyard_api::annotate::json;
use tokio::sync::{mpsc, watch};
use tokio::time::Duration;

use super::link::Link;
use super::process::{InFlight, Process};
use super::slot::{START_PATIENCE, discover};
use super::{ask, name};
use crate::http_endpoint::Trouble;
use crate::mcp::envelope::{Envelope, Said, id_key};
use crate::mcp::http_in::{Visit, failed};
use crate::mcp::rpc::{self, Piece};
use crate::mcp::server::Server;
use crate::mcp::translate;
use crate::mcp::work::Work;

/// Pieces that wait for a client that reads slowly.
const PIECES_MAX: usize = 16;

/// Sends a request and answers when its answer, or anything else, comes.
pub(super) async fn call(
    visit: &Visit,
    server: &Arc<Server>,
    link: &Arc<Link>,
    process: &Arc<Process>,
    envelope: &Envelope<'_>,
    body: Bytes,
    mut work: Work,
) -> Response {
    let is_greeting = envelope.method() == "initialize";
    let sent = send(link, process, envelope, &body).await;
    let mut waiting = match sent {
        Ok(waiting) => waiting,
        Err(trouble) => return failed(work, &server.failed(&trouble)).await,
    };
    let patience = if is_greeting { START_PATIENCE } else { server.timeout };
    let streams =
        visit.header("accept").is_none_or(|accept| accept.contains(rpc::SSE) || accept.contains("*/*"));
    if !link.is_modern
        && streams
        && !is_greeting
        && let Some(first) = first_waiting(link)
    {
        return stream(visit, server, waiting, work, first);
    }
    let answer = loop {
        tokio::select! {
            biased;
            Some(other) = waiting.others.recv() => {
                let is_question = Said::read(&other).is_some_and(|said| said.id.is_some());
                if link.is_modern && is_question {
                    return ask::first(server, link, process, waiting, work, other).await;
                }
                if streams && !is_greeting {
                    return stream(visit, server, waiting, work, vec![other]);
                }
                if !link.is_modern {
                    link.tell_apart(process, other);
                }
            }
            answer = &mut waiting.answer => break waiting.outcome(answer),
            () = tokio::time::sleep(patience) => break Err(Trouble::Slow(patience)),
        }
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(trouble) => {
            drop(waiting);
            return failed(work, &server.failed(&trouble)).await;
        }
    };
    if is_greeting {
        return greeted(server, link, process, envelope, answer, work).await;
    }
    rpc::json_response(work.finish(answer).await.into_body())
}

fn first_waiting(link: &Link) -> Option<Vec<Bytes>> {
    if link.is_listening() {
        return None;
    }
    Some(link.take_waiting()).filter(|waiting| !waiting.is_empty())
}

/// The server's answer to the client's own greeting.
async fn greeted(
    server: &Arc<Server>,
    link: &Arc<Link>,
    process: &Arc<Process>,
    envelope: &Envelope<'_>,
    answer: Bytes,
    mut work: Work,
) -> Response {
    let text = String::from_utf8_lossy(&answer).into_owned();
    let mut answer = answer;
    if translate::refuses_greeting(&text) {
        if let Err(trouble) = discover(process, link, &link.params).await {
            return failed(work, &server.failed(&trouble)).await;
        }
        let greeting = process.greeting.get().cloned().unwrap_or_else(|| "{}".to_owned());
        answer = rpc::result_text(envelope.id(), &greeting).into();
    } else if let Some(result) = json::member(&text, "result") {
        let _ = process.greeting.set(result.to_owned());
    }
    let mut response = rpc::json_response(work.finish(answer).await.into_body());
    name(&mut response, link, envelope);
    response
}

/// Puts the request into the server's own terms and sends it.
async fn send(
    link: &Arc<Link>,
    process: &Arc<Process>,
    envelope: &Envelope<'_>,
    body: &Bytes,
) -> Result<InFlight, Trouble> {
    let dressed = link.dressed.read().clone();
    let token = envelope.meta().and_then(|meta| json::member(meta, "progressToken")).map(str::to_owned);
    let mut message = one_line(body);
    if let Some(modern) = dressed.filter(|_| envelope.method() != "initialize") {
        let text = std::str::from_utf8(&message).ok().and_then(|text| modern.dress(text));
        message = text.map_or(message, Bytes::from);
    }
    let whom = Arc::downgrade(link);
    let waiting = if process.is_shared || link.is_modern {
        let key = format!("\"lanyard-{}\"", process.number());
        message = renamed(&message, &key, token.is_some())
            .ok_or_else(|| Trouble::Nonsense("the request cannot be given an id".to_owned()))?;
        process.expect(key, Some(envelope.id().to_owned()), &whom, token)?
    } else {
        process.expect(id_key(envelope.id()), None, &whom, token)?
    };
    process.send(message).await?;
    Ok(waiting)
}

/// The message with an id, and a progress token where it has one, that nobody else uses.
fn renamed(line: &Bytes, key: &str, has_token: bool) -> Option<Bytes> {
    let text = std::str::from_utf8(line).ok()?;
    let mut text = json::with(text, "id", key)?;
    if has_token {
        let params = json::member(&text, "params")?;
        let meta = json::with(json::member(params, "_meta")?, "progressToken", key)?;
        let params = json::with(params, "_meta", &meta)?;
        text = json::with(&text, "params", &params)?;
    }
    Some(text.into())
}

/// A message must be one line; in JSON a line's end can only be space.
pub(super) fn one_line(body: &Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', body).is_none() {
        return body.clone();
    }
    body.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}

/// The client takes a request back: by the id the server knows it by.
pub(super) fn cancelled(link: &Arc<Link>, process: &Arc<Process>, body: &Bytes) -> Option<Bytes> {
    if !process.is_shared && !link.is_modern {
        return Some(one_line(body));
    }
    let text = std::str::from_utf8(body).ok()?;
    let params = json::member(text, "params")?;
    let asked = id_key(json::member(params, "requestId")?);
    let pending = process.pending.lock();
    let key = pending.iter().find(|(_, waiting)| {
        std::ptr::eq(waiting.link.as_ptr(), Arc::as_ptr(link))
            && waiting.id.as_deref().is_some_and(|id| id_key(id) == asked)
    });
    let params = json::with(params, "requestId", key?.0)?;
    json::with(text, "params", &params).map(|text| one_line(&text.into()))
}

/// The rest of an answer that began with something else.
fn stream(visit: &Visit, server: &Arc<Server>, waiting: InFlight, work: Work, first: Vec<Bytes>) -> Response {
    let (pieces, body) = mpsc::channel(PIECES_MAX);
    let closing = visit.context.gateway.closing();
    tokio::spawn(relay(server.clone(), waiting, work, first, pieces, closing));
    rpc::typed(rpc::Pieces::body(body), rpc::SSE)
}

async fn relay(
    server: Arc<Server>,
    mut waiting: InFlight,
    mut work: Work,
    first: Vec<Bytes>,
    pieces: mpsc::Sender<Piece>,
    mut closing: watch::Receiver<bool>,
) {
    for line in first {
        if pieces.send(Piece::from(line).into_frame()).await.is_err() {
            return;
        }
    }
    let patience: Duration = server.timeout;
    let answer = loop {
        tokio::select! {
            biased;
            Some(other) = waiting.others.recv() => {
                if pieces.send(Piece::from(other).into_frame()).await.is_err() {
                    return;
                }
            }
            answer = &mut waiting.answer => break waiting.outcome(answer),
            // The client has gone: dropping the request takes it back.
            () = pieces.closed() => return,
            () = crate::mcp::closed(&mut closing) => break Err(Trouble::Closing),
            () = tokio::time::sleep(patience) => break Err(Trouble::Slow(patience)),
        }
    };
    drop(waiting);
    let piece = match answer {
        Ok(answer) => work.finish(answer).await,
        Err(trouble) => work.failed(&server.failed(&trouble)).await,
    };
    let _ = pieces.send(piece.into_frame()).await;
}

/// An answer as plain JSON.
pub(super) async fn plain(mut work: Work, answer: Bytes) -> Response {
    let body: Body = work.finish(answer).await.into_body();
    rpc::json_response(body)
}
