//! The line protocol of the editor: whole lines in, JSON-RPC messages out. Both ends are threads, so that a pipe that
//! hangs keeps nobody from ending. Questions to the editor are numbered here and their answers brought to who asked.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CancelRequestNotification, Error, JsonRpcMessage, Notification, PROTOCOL_LEVEL_METHOD_NAMES, Request,
    RequestId, Response, SessionId, SessionNotification, SessionUpdate,
};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// The longest line that is taken. A prompt may have 1 MiB of text; encoded as JSON it can be several times that.
pub(super) const LINE_BYTES_MAX: usize = 8 << 20;
/// Lines read ahead.
const READ_AHEAD_MAX: usize = 64;
/// Lines that wait for an editor that is slow to read; then everybody waits, and the daemon with them.
const WRITE_AHEAD_MAX: usize = 256;
/// How long the last lines may take once there is nothing more to say.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

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
    lines: mpsc::Sender<Vec<u8>>,
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

/// Done when nothing more can be written: all is out, or nobody reads any more.
pub(super) type Written = oneshot::Receiver<()>;

impl Wire {
    /// Opens stdout for the protocol.
    pub(super) fn open() -> (Self, Written) {
        let (lines, mut receiver) = mpsc::channel::<Vec<u8>>(WRITE_AHEAD_MAX);
        let (finish, written) = oneshot::channel();
        std::thread::spawn(move || {
            let mut stdout = std::io::stdout().lock();
            while let Some(line) = receiver.blocking_recv() {
                if stdout.write_all(&line).and_then(|()| stdout.flush()).is_err() {
                    break;
                }
            }
            // The loop may have gone already.
            let _ = finish.send(());
        });
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

    /// Brings an answer to who asked. An answer to a question that was taken back is for nobody.
    pub(super) fn deliver(&self, id: i64, answer: Answer) {
        let waiting = self.asked.waiting().remove(&id);
        if let Some(waiting) = waiting {
            // Whoever asked may have gone.
            let _ = waiting.send(answer);
        }
    }

    /// The editor will answer nothing any more.
    pub(super) fn hang_up(&self) {
        self.asked.waiting().clear();
    }

    /// Whoever reads no more is noticed by the loop, not here.
    async fn send(&self, message: &impl Serialize) {
        if let Ok(mut line) = serde_json::to_vec(&JsonRpcMessage::wrap(message)) {
            line.push(b'\n');
            let _ = self.lines.send(line).await;
        }
    }

    /// Waits until what was said is out, for as long as that may take. Nobody else may hold the wire then.
    pub(super) async fn close(self, written: Written) {
        drop(self);
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, written).await;
    }
}

/// Lines of stdin, until its end.
pub(super) fn input() -> mpsc::Receiver<Incoming> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD_MAX);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        while let Some(incoming) = next(&mut stdin) {
            if sender.blocking_send(incoming).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The next line that is not blank; `None` when there will be no more.
fn next(input: &mut impl BufRead) -> Option<Incoming> {
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return None;
        }
        if line.len() > LINE_BYTES_MAX && !line.ends_with(b"\n") {
            let found_end = input.skip_until(b'\n').is_ok();
            let error = Error::parse_error()
                .data(format!("a line has more than {LINE_BYTES_MAX} bytes; it was left out"));
            return found_end.then_some(Incoming::Nonsense { id: RequestId::Null, error });
        }
        if !line.trim_ascii().is_empty() {
            return Some(understand(&line));
        }
    }
}

fn understand(line: &[u8]) -> Incoming {
    let nonsense = |id: RequestId, error: Error| Incoming::Nonsense { id, error };
    let message = match serde_json::from_slice::<Value>(line) {
        Ok(Value::Object(message)) => message,
        Ok(_) => {
            return nonsense(RequestId::Null, wrong("a message is one JSON object; batches are not taken"));
        }
        Err(error) => return nonsense(RequestId::Null, Error::parse_error().data(error.to_string())),
    };
    let id = match message.get("id") {
        None => None,
        Some(id) => match serde_json::from_value::<RequestId>(id.clone()) {
            Ok(id) => Some(id),
            Err(_) => return nonsense(RequestId::Null, wrong("an id is a string or a whole number")),
        },
    };
    let at_fault = id.clone().unwrap_or(RequestId::Null);
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return nonsense(at_fault, wrong("`jsonrpc` must be \"2.0\""));
    }
    let params = message.get("params").cloned().unwrap_or_default();
    match (message.get("method"), id) {
        (Some(Value::String(method)), None) => Incoming::Notification { method: method.clone(), params },
        (Some(Value::String(method)), Some(id)) => Incoming::Request { id, method: method.clone(), params },
        (Some(_), _) => nonsense(at_fault, wrong("`method` must be a string")),
        (None, Some(id)) => match (id, answer(&message)) {
            (RequestId::Number(id), Some(answer)) => Incoming::Answer { id, answer },
            // An answer to something that was never asked: there is nobody to tell.
            (_, Some(_)) => Incoming::Answer { id: i64::MIN, answer: Ok(Value::Null) },
            (_, None) => nonsense(at_fault, wrong("there is neither a method nor a result")),
        },
        (None, None) => nonsense(at_fault, wrong("there is neither a method nor an id")),
    }
}

fn answer(message: &serde_json::Map<String, Value>) -> Option<Answer> {
    if let Some(error) = message.get("error") {
        let unknown = || Error::internal_error().data(error.clone());
        return Some(Err(serde_json::from_value(error.clone()).unwrap_or_else(|_| unknown())));
    }
    message.get("result").map(|result| Ok(result.clone()))
}

fn wrong(what: &str) -> Error {
    Error::invalid_request().data(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut input: &[u8]) -> Vec<Incoming> {
        std::iter::from_fn(|| next(&mut input)).collect()
    }

    fn code(incoming: &Incoming) -> Option<(RequestId, i32)> {
        match incoming {
            Incoming::Nonsense { id, error } => Some((id.clone(), error.code.into())),
            Incoming::Request { .. } | Incoming::Notification { .. } | Incoming::Answer { .. } => None,
        }
    }

    #[test]
    fn lines_are_told_apart() {
        let seen = all(b"\n  \n{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"m\",\"params\":{}}\n\
            {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\r\n{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":null}\n\
            {\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":-1,\"message\":\"no\"}}");
        assert!(
            matches!(&seen[0], Incoming::Request { id: RequestId::Str(id), method, .. } if id == "a" && method == "m")
        );
        assert!(matches!(&seen[1], Incoming::Notification { method, .. } if method == "n"));
        assert!(matches!(&seen[2], Incoming::Answer { id: 3, answer: Ok(Value::Null) }));
        assert!(matches!(&seen[3], Incoming::Answer { id: 4, answer: Err(_) }), "also without a line's end");
        assert_eq!(seen.len(), 4);
    }

    #[test]
    fn nonsense_is_answered_under_the_id_it_has() {
        let lines: [(&str, RequestId, i32); 9] = [
            ("{nonsense", RequestId::Null, -32700),
            ("[]", RequestId::Null, -32600),
            ("7", RequestId::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, RequestId::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, RequestId::Null, -32600),
            (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, RequestId::Number(1), -32600),
            (r#"{"jsonrpc":"2.0","id":2,"method":7}"#, RequestId::Number(2), -32600),
            (r#"{"jsonrpc":"2.0","id":3}"#, RequestId::Number(3), -32600),
            (r#"{"jsonrpc":"2.0"}"#, RequestId::Null, -32600),
        ];
        for (line, id, expected) in lines {
            assert_eq!(code(&understand(line.as_bytes())), Some((id, expected)), "{line}");
        }
        assert_eq!(
            code(&understand(b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}")),
            Some((RequestId::Null, -32700))
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out_and_the_next_one_taken() {
        let mut input = vec![b'x'; LINE_BYTES_MAX + 10];
        input.extend_from_slice(b"\n{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n");
        let seen = all(&input);
        assert_eq!(code(&seen[0]), Some((RequestId::Null, -32700)));
        assert!(matches!(&seen[1], Incoming::Notification { .. }));
    }
}
