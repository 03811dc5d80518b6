//! A server that asks in the middle of a call (sampling, elicitation, roots), and a client that cannot be asked while it
//! waits (revision 2026-07-28): the question is the answer to its request, and its answer comes with the same request
//! made again. The call itself waits in between.

use std::sync::{Arc, PoisonError};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use tokio::time::{Duration, Instant};

use super::link::Link;
use super::process::{InFlight, Process};
use super::wait;
use crate::annotate::json;
use crate::mcp::door::{Visit, failed};
use crate::mcp::envelope::Said;
use crate::mcp::rpc;
use crate::mcp::server::{Server, Trouble};
use crate::mcp::work::Work;

/// Calls of one client that may wait for its answer, and for how long.
const ASKED_MAX: usize = 64;
const ASKED_FOR: Duration = Duration::from_mins(10);
/// What the name of such a call begins with; a server's own begins otherwise.
const STATE: &str = "lya_";

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
    let read = || {
        let text = std::str::from_utf8(&question).ok()?;
        let (method, params) = (json::member(text, "method")?, json::member(text, "params").unwrap_or("{}"));
        let id = Said::read(&question)?.id?.get().to_owned();
        Some((id, format!(r#"{{"method":{method},"params":{params}}}"#)))
    };
    let Some((id, asked)) = read() else {
        return failed(work, &server.failed(&Trouble::Nonsense("a question without a method".to_owned())))
            .await;
    };
    let mut bits = [0; 16];
    if getrandom::fill(&mut bits).is_err() {
        return failed(work, "the system gives no random bits").await;
    }
    let state = format!("{STATE}{:032x}", u128::from_be_bytes(bits));
    let held = Asked { process: process.clone(), waiting, question: id, since: Instant::now() };
    if !keep(link, &state, held) {
        return failed(work, &server.failed(&Trouble::Crowded)).await;
    }
    let result = format!(
        r#"{{"resultType":"input_required","inputRequests":{{"input":{asked}}},"requestState":"{state}"}}"#
    );
    let answer = rpc::result_text(&work.id, &result);
    work.completes = false;
    rpc::json_response(work.finish(answer.into()).await.into_body())
}

/// False when too many wait already; the call is then given up.
fn keep(link: &Link, state: &str, asked: Asked) -> bool {
    let mut held = link.questions.lock().unwrap_or_else(PoisonError::into_inner);
    held.retain(|_, asked| asked.since.elapsed() < ASKED_FOR);
    if held.len() >= ASKED_MAX {
        return false;
    }
    held.insert(state.to_owned(), asked);
    true
}

/// The answer to a question, in a request made again.
struct Again {
    state: String,
    result: String,
}

fn again(body: &Bytes) -> Option<Again> {
    let params = json::member(std::str::from_utf8(body).ok()?, "params")?;
    let state: String = serde_json::from_str(json::member(params, "requestState")?).ok()?;
    let responses = json::member(params, "inputResponses")?;
    let result = json::member(responses, "input").unwrap_or("{}").replace(['\n', '\r'], " ");
    Some(Again { state, result }).filter(|again| again.state.starts_with(STATE))
}

/// The request made again with the client's answer: the call goes on. The work comes back when it is a new request.
pub(super) async fn answered(
    visit: &Visit,
    server: &Arc<Server>,
    link: &Arc<Link>,
    body: &Bytes,
    work: Work,
) -> Result<Response, Work> {
    let Some(again) = again(body) else { return Err(work) };
    // Another client's question is as unknown as one that was never asked.
    let asked = link.questions.lock().unwrap_or_else(PoisonError::into_inner).remove(&again.state);
    let Some(asked) = asked else {
        let what = "nobody waits for this answer any more; make the call anew, without requestState";
        return Ok(rpc::json_response(Body::from(rpc::error_text(&work.id, rpc::INVALID_PARAMS, what))));
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
    let mut closing = visit.app.gateway.closing();
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
