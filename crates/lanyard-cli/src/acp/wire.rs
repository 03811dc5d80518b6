//! The line protocol of the editor: whole lines in, JSON-RPC messages out. Questions to the editor are numbered here and
//! their answers brought to the askers.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use agent_client_protocol_schema::v1::{
    CancelRequestNotification, Error, JsonRpcMessage, Notification, PROTOCOL_LEVEL_METHOD_NAMES, Request,
    RequestId, Response, SessionId, SessionNotification, SessionUpdate,
};
use lanyard_client::lines::{LineRead, StdoutLines, Written, stdin_lines};
use lanyard_client::rpc::{RpcFault, RpcMessage, understand};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// The longest line that is taken. A prompt may have 1 MiB of text; encoded as JSON it can be several times that.
pub(super) const LINE_BYTES_MAX: usize = 8 << 20;
/// Lines read ahead.
const READ_AHEAD_MAX: usize = 64;
/// Lines that wait for an editor that is slow to read; then everybody waits, and the daemon with them.
const WRITE_AHEAD_MAX: usize = 256;

/// What the editor answered to a question.
pub(super) type Answer = Result<Value, Error>;

/// What a line turned out to be.
#[derive(Debug)]
pub(super) enum Incoming {
    Request {
        id: RequestId,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Answer {
        id: i64,
        answer: Answer,
    },
    /// To be answered with an error, under the id that could be read.
    Nonsense {
        id: RequestId,
        error: Error,
    },
}

/// The way to the editor. Cloned by everybody who has something to say.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    lines: StdoutLines,
    asked: Arc<Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    next: AtomicI64,
    waiting: Mutex<HashMap<i64, oneshot::Sender<Answer>>>,
}

impl Asked {
    fn waiting(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Answer>>> {
        self.waiting.lock()
    }
}

impl Wire {
    /// Opens stdout for the protocol.
    pub(super) fn open() -> (Self, Written) {
        let (lines, written) = StdoutLines::open(WRITE_AHEAD_MAX);
        (Self { lines, asked: Arc::default() }, written)
    }

    pub(super) async fn answer(&self, id: RequestId, answer: Result<impl Serialize, Error>) {
        self.send(&Response::new(id, answer)).await;
    }

    pub(super) async fn refuse(&self, id: RequestId, error: Error) {
        self.answer(id, Err::<Value, Error>(error)).await;
    }

    pub(super) async fn update(&self, session: &SessionId, update: SessionUpdate) {
        let params = SessionNotification::new(session.clone(), update);
        self.send(&Notification { method: "session/update".into(), params: Some(params) }).await;
    }

    /// An update that is JSON already.
    pub(super) async fn update_json(&self, session: &SessionId, update: Value) {
        let params = serde_json::json!({ "sessionId": session, "update": update });
        self.send(&Notification { method: "session/update".into(), params: Some(params) }).await;
    }

    /// Asks the editor; the answer comes to the receiver, or never.
    pub(super) async fn ask(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> (i64, oneshot::Receiver<Answer>) {
        let id = self.asked.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.asked.waiting().insert(id, sender);
        self.send(&Request { id: RequestId::Number(id), method: method.into(), params: Some(params) }).await;
        (id, receiver)
    }

    /// Tells the editor that its answer is not needed any more, unless it has come.
    pub(super) async fn take_back(&self, id: i64) {
        let waited = self.asked.waiting().remove(&id).is_some();
        if waited {
            let params = CancelRequestNotification::new(RequestId::Number(id));
            let method = PROTOCOL_LEVEL_METHOD_NAMES.cancel_request.into();
            self.send(&Notification { method, params: Some(params) }).await;
        }
    }

    /// Brings an answer to who asked. An answer to a question that was taken back is dropped.
    pub(super) fn deliver(&self, id: i64, answer: Answer) {
        let waiting = self.asked.waiting().remove(&id);
        if let Some(waiting) = waiting {
            // The asker may have ended.
            let _ = waiting.send(answer);
        }
    }

    /// The editor will answer nothing any more.
    pub(super) fn hang_up(&self) {
        self.asked.waiting().clear();
    }

    /// A closed stdout is noticed by the loop, not here.
    async fn send(&self, message: &impl Serialize) {
        if let Ok(mut line) = serde_json::to_vec(&JsonRpcMessage::wrap(message)) {
            line.push(b'\n');
            self.lines.send(line).await;
        }
    }

    /// Waits until what was said is out, for as long as that may take. Every other clone must be dropped by then.
    pub(super) async fn close(self, written: Written) {
        let Self { lines, asked: _ } = self;
        lines.close(written).await;
    }
}

/// Messages on stdin, until its end.
pub(super) struct Input(mpsc::Receiver<LineRead>);

impl Input {
    pub(super) fn open() -> Self {
        Self(stdin_lines(LINE_BYTES_MAX, READ_AHEAD_MAX))
    }

    pub(super) async fn next(&mut self) -> Option<Incoming> {
        self.0.recv().await.map(|line| read(&line))
    }
}

fn read(line: &LineRead) -> Incoming {
    let LineRead::Line(line) = line else {
        let error = Error::parse_error()
            .data(format!("a line has more than {LINE_BYTES_MAX} bytes; it was left out"));
        return Incoming::Nonsense { id: RequestId::Null, error };
    };
    match understand(line) {
        RpcMessage::Request { id, method, params } => Incoming::Request { id: id_of(id), method, params },
        RpcMessage::Notification { method, params } => Incoming::Notification { method, params },
        RpcMessage::Answer { id, answer } => {
            // An answer to something that was never asked has no receiver.
            let id = id.as_i64().unwrap_or(i64::MIN);
            Incoming::Answer { id, answer: answer.map_err(error_of) }
        }
        RpcMessage::Malformed { id, fault } => Incoming::Nonsense { id: id_of(id), error: fault_of(fault) },
    }
}

fn id_of(id: Value) -> RequestId {
    serde_json::from_value(id).unwrap_or(RequestId::Null)
}

fn error_of(error: Value) -> Error {
    serde_json::from_value(error.clone()).unwrap_or_else(|_| Error::internal_error().data(error))
}

fn fault_of(fault: RpcFault) -> Error {
    match fault {
        RpcFault::NoJson(why) => Error::parse_error().data(why),
        RpcFault::NoMessage(what) => Error::invalid_request().data(what.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Incoming {
        read(&LineRead::Line(text.as_bytes().to_vec()))
    }

    fn code(incoming: &Incoming) -> Option<(RequestId, i32)> {
        match incoming {
            Incoming::Nonsense { id, error } => Some((id.clone(), error.code.into())),
            Incoming::Request { .. } | Incoming::Notification { .. } | Incoming::Answer { .. } => None,
        }
    }

    #[test]
    fn messages_have_the_protocols_types() {
        let request = read_text(r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{}}"#);
        assert!(
            matches!(&request, Incoming::Request { id: RequestId::Str(id), method, .. } if id == "a" && method == "m")
        );
        let answer = read_text(r#"{"jsonrpc":"2.0","id":3,"result":null}"#);
        assert!(matches!(answer, Incoming::Answer { id: 3, answer: Ok(Value::Null) }));
        let error = read_text(r#"{"jsonrpc":"2.0","id":4,"error":{"code":-1,"message":"no"}}"#);
        assert!(matches!(error, Incoming::Answer { id: 4, answer: Err(_) }));
    }

    #[test]
    fn nonsense_is_answered_under_the_id_it_has() {
        let null = RequestId::Null;
        assert_eq!(code(&read_text("{nonsense")), Some((null.clone(), -32700)));
        assert_eq!(code(&read_text("[]")), Some((null.clone(), -32600)));
        assert_eq!(
            code(&read_text(r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#)),
            Some((RequestId::Number(1), -32600))
        );
        assert_eq!(code(&read(&LineRead::TooLong)), Some((null, -32700)));
    }
}
