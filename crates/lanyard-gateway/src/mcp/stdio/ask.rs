//! A server that asks in the middle of a call (sampling, elicitation, roots), and a client that cannot be asked while it
//! waits (revision 2026-07-28): the question is the answer to its request, and its answer comes with the same request
//! made again. The call itself waits in between.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use tokio::time::Instant;

use super::link::Link;
use super::process::{InFlight, Process};
use super::wait;
use crate::http_endpoint::Trouble;
use crate::mcp::envelope::Said;
use crate::mcp::http_in::{Visit, failed};
use crate::mcp::server::Server;
use crate::mcp::work::Work;
use crate::mcp::{input, rpc};

/// A call that waits for its client to answer a question.
#[derive(Debug)]
pub(super) struct Asked {
    process: Arc<Process>,
    waiting: InFlight,
    /// The server's id of its question.
    question: String,
    since: Instant,
}

/// The server asked before it answered: the client is told so, and the call waits.
pub(super) async fn first(
    server: &Arc<Server>,
    link: &Arc<Link>,
    process: &Arc<Process>,
    waiting: InFlight,
    mut work: Work,
    question: Bytes,
) -> Response {
    let Some(state) = input::state() else {
        return failed(work, "the system gives no random bits").await;
    };
    let Some((id, result)) = input::required(&question, &state) else {
        return failed(work, &server.failed(&Trouble::Nonsense("a question without a method".to_owned())))
            .await;
    };
    let held = Asked { process: process.clone(), waiting, question: id, since: Instant::now() };
    if !keep(link, &state, held) {
        return failed(work, &server.failed(&Trouble::Crowded)).await;
    }
    let answer = rpc::result_text(&work.id, &result);
    work.completes = false;
    rpc::json_response(work.finish(answer.into()).await.into_body())
}

/// False when too many wait already; the call is then given up.
fn keep(link: &Link, state: &str, asked: Asked) -> bool {
    let mut held = link.questions.lock();
    held.retain(|_, asked| asked.since.elapsed() < input::ASKED_FOR);
    if held.len() >= input::ASKED_MAX {
        return false;
    }
    held.insert(state.to_owned(), asked);
    true
}

/// The request made again with the client's answer: the call goes on. The work comes back when it is a new request.
pub(super) async fn answered(
    visit: &Visit,
    server: &Arc<Server>,
    link: &Arc<Link>,
    body: &Bytes,
    work: Work,
) -> Result<Response, Work> {
    let Some(again) = input::again(body) else { return Err(work) };
    // Another client's question is as unknown as one that was never asked.
    let asked = link.questions.lock().remove(&again.state);
    let Some(asked) = asked else {
        let late = rpc::error_text(&work.id, rpc::INVALID_PARAMS, input::NOBODY_WAITS);
        return Ok(rpc::json_response(Body::from(late)));
    };
    let answer = rpc::result_text(&asked.question, &again.result);
    Ok(go_on(visit, server, link, asked, answer.into(), work).await)
}

async fn go_on(
    visit: &Visit,
    server: &Arc<Server>,
    link: &Arc<Link>,
    asked: Asked,
    answer: Bytes,
    mut work: Work,
) -> Response {
    let Asked { process, mut waiting, .. } = asked;
    work.completes = true;
    if let Err(trouble) = process.send(answer).await {
        return failed(work, &server.failed(&trouble)).await;
    }
    let mut closing = visit.context.gateway.closing();
    let id = work.id.clone();
    loop {
        tokio::select! {
            biased;
            Some(other) = waiting.others.recv() => {
                if Said::read(&other).is_some_and(|said| said.id.is_some()) {
                    return Box::pin(first(server, link, &process, waiting, work, other)).await;
                }
            }
            answer = &mut waiting.answer => {
                return match waiting.outcome(answer) {
                    // It was asked under the id of the first request.
                    Ok(answer) => wait::plain(work, super::route::with_id(&answer, &id).unwrap_or(answer)).await,
                    Err(trouble) => failed(work, &server.failed(&trouble)).await,
                };
            }
            () = crate::mcp::closed(&mut closing) => {
                return failed(work, &server.failed(&Trouble::Closing)).await;
            }
            () = tokio::time::sleep(server.timeout) => {
                drop(waiting);
                return failed(work, &server.failed(&Trouble::Slow(server.timeout))).await;
            }
        }
    }
}
