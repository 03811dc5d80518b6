//! A call on its way to a server that can ask in the middle of it.

use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use lanyard_api::annotate::json;
use tokio::sync::{mpsc, watch};

use super::LegacyServer;
use crate::http_endpoint::Trouble;
use crate::mcp::envelope::Said;
use crate::mcp::http::Talk;
use crate::mcp::http_in::{Visit, failed};
use crate::mcp::input;
use crate::mcp::rpc::{self, Piece};
use crate::mcp::server::Server;
use crate::mcp::work::Work;

/// Pieces that wait for a client that reads slowly.
const PIECES_MAX: usize = 16;

/// One request of the client, under the id the server knows.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) server: Arc<Server>,
    pub(super) legacy_server: Arc<LegacyServer>,
    pub(super) id: String,
    pub(super) work: Work,
}

/// A call whose client was asked something: the server goes on with its stream when the answer has come.
#[derive(Debug)]
pub(super) struct Parked {
    talk: Talk,
    id: String,
    /// The server's id of its question.
    question: String,
}

/// The server's answer: plain where it is plain, a stream where it is one.
pub(super) async fn follow(visit: &Visit, mut call: Call, mut talk: Talk) -> Response {
    let mut closing = visit.context.gateway.closing();
    if !talk.is_stream() {
        let heard = tokio::time::timeout(call.server.timeout, talk.next()).await;
        let piece = match heard {
            Ok(Ok(Some(data))) => call.finished(data).await,
            Ok(Ok(None)) => call.failed(&Trouble::Nonsense("an empty answer".to_owned())).await,
            Ok(Err(trouble)) => call.failed(&trouble).await,
            Err(_) => call.failed(&Trouble::Slow(call.server.timeout)).await,
        };
        return rpc::json_response(piece.into_body());
    }
    let (pieces, body) = mpsc::channel(PIECES_MAX);
    tokio::spawn(async move {
        if let Some(last) = converse(call, talk, &pieces, &mut closing).await {
            let _ = pieces.send(last.into_frame()).await;
        }
    });
    rpc::typed(rpc::Pieces::body(body), rpc::SSE)
}

/// Relays what the server says until it answers or asks; the last word, unless the client has gone.
async fn converse(
    mut call: Call,
    mut talk: Talk,
    pieces: &mpsc::Sender<Piece>,
    closing: &mut watch::Receiver<bool>,
) -> Option<Piece> {
    let patience = call.server.timeout;
    loop {
        let heard = tokio::select! {
            heard = talk.next() => heard,
            () = pieces.closed() => {
                call.give_up().await;
                return None;
            }
            () = crate::mcp::closed(closing) => return Some(call.failed(&Trouble::Closing).await),
            () = tokio::time::sleep(patience) => {
                call.give_up().await;
                return Some(call.failed(&Trouble::Slow(patience)).await);
            }
        };
        let data = match heard {
            Ok(Some(data)) => data,
            Ok(None) => {
                return Some(call.failed(&Trouble::Broken("its stream ended".to_owned())).await);
            }
            Err(trouble) => return Some(call.failed(&trouble).await),
        };
        let Some(said) = Said::read(&data) else { continue };
        if said.answers(&call.id) {
            return Some(call.finished(data).await);
        }
        match (said.method.as_deref(), said.id) {
            (None, _) => {}
            (Some(method), Some(_)) if input::is_input(method) => {
                return Some(call.park(talk, &data).await);
            }
            // The connection is Lanyard's, and so is the answer.
            (Some("ping"), Some(id)) => call.tell(rpc::result_text(id.get(), "{}")).await,
            (Some(_), Some(id)) => {
                let what = "this client cannot be asked that";
                call.tell(rpc::error_text(id.get(), rpc::METHOD_NOT_FOUND, what)).await;
            }
            (Some(_), None) => {
                if pieces.send(Piece::from(data).into_frame()).await.is_err() {
                    call.give_up().await;
                    return None;
                }
            }
        }
    }
}

impl Call {
    /// The answer under the client's own id.
    async fn finished(&mut self, answer: Bytes) -> Piece {
        let renamed =
            std::str::from_utf8(&answer).ok().and_then(|text| json::with(text, "id", &self.work.id));
        self.work.finish(renamed.map_or(answer, Bytes::from)).await
    }

    async fn failed(&mut self, trouble: &Trouble) -> Piece {
        self.work.failed(&self.server.failed(trouble)).await
    }

    /// Tells the server something that has no answer.
    async fn tell(&self, message: String) {
        if let Err(trouble) = self.told(message).await {
            tracing::debug!(server = self.server.key, %trouble, "an MCP server could not be told something");
        }
    }

    async fn told(&self, message: String) -> Result<(), Trouble> {
        let Some(upstream) = self.server.address() else { return Ok(()) };
        let out = self.legacy_server.outgoing(HeaderMap::new(), message.into());
        let answer = upstream.send(out, self.server.timeout).await?;
        if answer.status().is_success() {
            return Ok(());
        }
        Err(Trouble::Nonsense(format!("it refused the client's answer with status {}", answer.status())))
    }

    async fn give_up(&self) {
        let params = format!(r#"{{"requestId":{},"reason":"the client has gone"}}"#, self.id);
        self.tell(format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#))
            .await;
    }

    /// The server asked: the client is told so, and the server's stream waits.
    async fn park(mut self, talk: Talk, question: &Bytes) -> Piece {
        let asked = input::state().and_then(|state| Some((input::required(question, &state)?, state)));
        let Some(((question, result), state)) = asked else {
            return self.failed(&Trouble::Nonsense("a question that cannot be passed on".to_owned())).await;
        };
        let parked = Parked { talk, id: self.id.clone(), question };
        if !keep(&self.legacy_server, &state, parked) {
            self.give_up().await;
            return self.failed(&Trouble::Crowded).await;
        }
        self.work.completes = false;
        self.work.finish(rpc::result_text(&self.work.id, &result).into()).await
    }
}

/// False when too many wait already.
fn keep(legacy_server: &Arc<LegacyServer>, state: &str, parked: Parked) -> bool {
    let mut held = legacy_server.parked.lock();
    if held.len() >= input::ASKED_MAX {
        return false;
    }
    held.insert(state.to_owned(), parked);
    drop(held);
    let (legacy_server, state) = (Arc::downgrade(legacy_server), state.to_owned());
    tokio::spawn(async move {
        tokio::time::sleep(input::ASKED_FOR).await;
        if let Some(legacy_server) = legacy_server.upgrade() {
            legacy_server.parked.lock().remove(&state);
        }
    });
    true
}

/// The request made again with the client's answer.
pub(super) async fn go_on(
    visit: &Visit,
    server: &Arc<Server>,
    legacy_server: &Arc<LegacyServer>,
    again: input::Again,
    work: Work,
) -> Response {
    let parked = legacy_server.parked.lock().remove(&again.state);
    let Some(Parked { talk, id, question }) = parked else {
        let late = rpc::error_text(&work.id, rpc::INVALID_PARAMS, input::NOBODY_WAITS);
        return rpc::json_response(Body::from(late));
    };
    let call = Call { server: server.clone(), legacy_server: legacy_server.clone(), id, work };
    if let Err(trouble) = call.told(rpc::result_text(&question, &again.result)).await {
        return failed(call.work, &server.failed(&trouble)).await;
    }
    follow(visit, call, talk).await
}
