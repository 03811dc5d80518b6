//! The line protocol: JSON-RPC messages out, whole lines in. One writer at a time; questions to the client are numbered
//! here and their answers brought to the turn that asked.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use agent_client_protocol_schema::v1::{Error, JsonRpcMessage, Notification, Request, RequestId, Response};
use lanyard_client::lines::{LineRead, read_line};
use lanyard_client::rpc::{self, RpcFault, RpcMessage};
use serde::Serialize;
use serde_json::Value;

use super::inbox::{Answer, Inbox};

/// A line longer than this is left out.
const LINE_BYTES_MAX: usize = 64 << 20;
/// How much of an endless line is written at once.
const PIECE: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Wire {
    out: Mutex<std::io::Stdout>,
    /// Questions that wait for an answer, and whose they are.
    asked: Mutex<HashMap<i64, Arc<Inbox>>>,
    next: AtomicI64,
    /// For an agent that never says a word.
    muted: AtomicBool,
}

/// What a line turned out to be.
#[derive(Debug)]
pub(super) enum Incoming {
    Request { id: RequestId, method: String, params: Value },
    Notification { method: String, params: Value },
    Answer { id: i64, answer: Answer },
    Nonsense(Error),
}

impl Wire {
    pub(super) fn new(muted: bool) -> Self {
        Self {
            out: Mutex::new(std::io::stdout()),
            asked: Mutex::default(),
            next: AtomicI64::new(1),
            muted: AtomicBool::new(muted),
        }
    }

    pub(super) fn notify(&self, method: &str, params: &impl Serialize) {
        self.send(&Notification { method: method.into(), params: Some(params) });
    }

    pub(super) fn answer(&self, id: RequestId, answer: Result<impl Serialize, Error>) {
        self.send(&Response::new(id, answer));
    }

    /// Asks the client; the answer comes to the inbox under the number returned.
    pub(super) fn ask(&self, inbox: &Arc<Inbox>, method: &str, params: &impl Serialize) -> i64 {
        let id = self.number();
        self.asked.lock().insert(id, Arc::clone(inbox));
        self.send(&Request { id: RequestId::Number(id), method: method.into(), params: Some(params) });
        id
    }

    /// A number no question has.
    pub(super) fn number(&self) -> i64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A later answer has no receiver.
    pub(super) fn forget(&self, id: i64) {
        self.asked.lock().remove(&id);
    }

    pub(super) fn deliver(&self, id: i64, answer: Answer) {
        let inbox = self.asked.lock().remove(&id);
        if let Some(inbox) = inbox {
            inbox.deliver(id, answer);
        }
    }

    fn send(&self, message: &impl Serialize) {
        if let Ok(mut line) = serde_json::to_vec(&JsonRpcMessage::wrap(message)) {
            line.push(b'\n');
            self.raw(&line);
        }
    }

    /// Bytes as they are. A client that reads no more is noticed at the end of stdin, not here.
    pub(super) fn raw(&self, bytes: &[u8]) {
        if self.muted.load(Ordering::Relaxed) {
            return;
        }
        let mut out = self.out.lock();
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    }

    /// One line of so many bytes, nothing in between.
    pub(super) fn endless(&self, bytes: usize) {
        let mut out = self.out.lock();
        let piece = vec![b'x'; PIECE.min(bytes)];
        let mut left = bytes;
        while left > 0 {
            let now = left.min(piece.len());
            if out.write_all(&piece[..now]).is_err() {
                return;
            }
            left -= now;
        }
        let _ = out.write_all(b"\n").and_then(|()| out.flush());
    }

    /// From here on nothing is written, and this call never returns.
    pub(super) fn hang(&self) -> ! {
        self.muted.store(true, Ordering::Relaxed);
        loop {
            std::thread::park();
        }
    }
}

/// The next message; `None` when there will be no more.
pub(super) fn next(input: &mut impl BufRead) -> Option<Incoming> {
    Some(match read_line(input, LINE_BYTES_MAX)? {
        LineRead::Line(line) => understand(&line),
        LineRead::TooLong => Incoming::Nonsense(Error::parse_error()),
    })
}

fn understand(line: &[u8]) -> Incoming {
    match rpc::understand(line) {
        RpcMessage::Request { id, method, params } => match serde_json::from_value(id) {
            Ok(id) => Incoming::Request { id, method, params },
            Err(_) => Incoming::Nonsense(Error::invalid_request()),
        },
        RpcMessage::Notification { method, params } => Incoming::Notification { method, params },
        RpcMessage::Answer { id, answer } => match id.as_i64() {
            Some(id) => Incoming::Answer { id, answer: answer.map_err(error_of) },
            None => Incoming::Nonsense(Error::invalid_request()),
        },
        RpcMessage::Malformed { fault: RpcFault::NoJson(_), .. } => Incoming::Nonsense(Error::parse_error()),
        RpcMessage::Malformed { fault: RpcFault::NoMessage(_), .. } => {
            Incoming::Nonsense(Error::invalid_request())
        }
    }
}

fn error_of(error: Value) -> Error {
    serde_json::from_value(error.clone()).unwrap_or_else(|_| Error::internal_error().data(error))
}
