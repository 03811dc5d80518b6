//! The line protocol: JSON-RPC messages out, whole lines in. One writer at a time; questions to the client are numbered
//! here and their answers brought to the turn that asked.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use agent_client_protocol_schema::v1::{Error, JsonRpcMessage, Notification, Request, RequestId, Response};
use serde::Serialize;
use serde_json::Value;

use super::inbox::{Answer, Inbox};

/// A line longer than this is not read to its end.
const LINE_MAX: u64 = 64 << 20;
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

    /// An answer that comes later is for nobody.
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

    /// From here on nothing is said by anybody, and whoever called this never comes back.
    pub(super) fn hang(&self) -> ! {
        self.muted.store(true, Ordering::Relaxed);
        loop {
            std::thread::park();
        }
    }
}

/// The next line without its end; `None` when there will be no more.
pub(super) fn line(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let read = input.take(LINE_MAX).read_until(b'\n', &mut line).ok()?;
    if read == 0 {
        return None;
    }
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() as u64 == LINE_MAX {
        // The rest of it comes as lines of its own, and makes no sense either.
        line.clear();
        line.push(b'!');
    }
    Some(line)
}

pub(super) fn understand(line: &[u8]) -> Incoming {
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return Incoming::Nonsense(Error::parse_error());
    };
    let params = message.get("params").cloned().unwrap_or_default();
    let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
    let id = message.get("id").map(request_id);
    match (method, id) {
        (Some(method), None) => Incoming::Notification { method, params },
        (Some(method), Some(Some(id))) => Incoming::Request { id, method, params },
        (None, Some(Some(RequestId::Number(id)))) => match answer(&message) {
            Some(answer) => Incoming::Answer { id, answer },
            None => Incoming::Nonsense(Error::invalid_request()),
        },
        _ => Incoming::Nonsense(Error::invalid_request()),
    }
}

fn answer(message: &Value) -> Option<Answer> {
    if let Some(error) = message.get("error") {
        let unknown = || Error::internal_error().data(error.clone());
        return Some(Err(serde_json::from_value(error.clone()).unwrap_or_else(|_| unknown())));
    }
    message.get("result").map(|result| Ok(result.clone()))
}

fn request_id(value: &Value) -> Option<RequestId> {
    serde_json::from_value(value.clone()).ok()
}
