//! A client's connection to a server: who it is, how it introduced itself, and the streams it can be reached on.

use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use lanyard_core::SessionId;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::ask::Asked;
use super::process::Process;
use super::slot::Slot;
use crate::mcp::rpc::{self, Piece};
use crate::mcp::translate::Modern;

/// Messages kept for a client that listens nowhere at the moment; the oldest are left out beyond that.
const WAITING_MAX: usize = 64;
/// Resources a client may have subscribed to.
const SUBSCRIBED_MAX: usize = 1_024;

#[derive(Debug)]
pub(super) struct Link {
    /// What the client names it by.
    pub(super) id: String,
    pub(super) session: Option<SessionId>,
    /// The parameters of its greeting, by which a new process is greeted.
    pub(super) params: String,
    /// Where its process lives.
    pub(super) slot: Arc<Slot>,
    /// A client of revision 2026-07-28, which greets nobody.
    pub(super) is_modern: bool,
    /// Set when it greets and the server has no greeting.
    pub(super) dressed: RwLock<Option<Arc<Modern>>>,
    stream: Mutex<Option<mpsc::Sender<Piece>>>,
    waiting: Mutex<VecDeque<Bytes>>,
    subscribed: Mutex<HashSet<String>>,
    /// Calls that wait until the client has answered a question.
    pub(super) questions: Mutex<HashMap<String, Asked>>,
    used: Mutex<Instant>,
}

impl Link {
    pub(super) fn new(
        id: String,
        session: Option<SessionId>,
        params: String,
        slot: Arc<Slot>,
        is_modern: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            session,
            params,
            slot,
            is_modern,
            dressed: RwLock::default(),
            stream: Mutex::default(),
            waiting: Mutex::default(),
            subscribed: Mutex::default(),
            questions: Mutex::default(),
            used: Mutex::new(Instant::now()),
        })
    }

    pub(super) fn touch(&self) {
        *self.used.lock() = Instant::now();
    }

    pub(super) fn idle_since(&self) -> Instant {
        *self.used.lock()
    }

    pub(super) fn is_listening(&self) -> bool {
        let stream = self.stream.lock();
        stream.as_ref().is_some_and(|stream| !stream.is_closed())
    }

    /// The client opened its stream; a former one is closed. What waited goes out first.
    pub(super) fn listen(&self, stream: mpsc::Sender<Piece>) {
        let mut waiting = self.waiting.lock();
        while let Some(line) = waiting.pop_front() {
            let _ = stream.try_send(Piece::from(line).into_frame());
        }
        drop(waiting);
        *self.stream.lock() = Some(stream);
    }

    /// What waits for any stream of the client.
    pub(super) fn take_waiting(&self) -> Vec<Bytes> {
        self.waiting.lock().drain(..).collect()
    }

    pub(super) fn has_subscribed(&self, uri: &str) -> bool {
        self.subscribed.lock().contains(uri)
    }

    pub(super) fn subscribe(&self, uri: &str) {
        let mut subscribed = self.subscribed.lock();
        if subscribed.len() < SUBSCRIBED_MAX {
            subscribed.insert(uri.to_owned());
        }
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        self.subscribed.lock().remove(uri);
    }

    /// A question of the server, on the stream of the call at work if there is one.
    pub(super) fn ask(self: &Arc<Self>, process: &Arc<Process>, id: &str, line: Bytes) {
        if self.is_modern && !self.with_call(process, &line) {
            // Such a client can only be asked in the answer to a request of its own.
            let text = rpc::error_text(id, rpc::SERVER_FAILED, "the client can be asked only while it waits");
            return process.try_send(text.into());
        }
        if !self.is_modern {
            self.tell(process, line);
        }
    }

    /// A message that belongs to the call at work, if there is one.
    pub(super) fn tell(self: &Arc<Self>, process: &Arc<Process>, line: Bytes) {
        if !self.with_call(process, &line) {
            self.out(line);
        }
    }

    /// A message that belongs to no call.
    pub(super) fn tell_apart(self: &Arc<Self>, process: &Arc<Process>, line: Bytes) {
        if self.is_listening() || self.is_modern || !self.with_call(process, &line) {
            self.out(line);
        }
    }

    /// On the stream of its newest call. False when none is there.
    fn with_call(self: &Arc<Self>, process: &Arc<Process>, line: &Bytes) -> bool {
        let pending = process.pending.lock();
        let own = pending.values().filter(|waiting| std::ptr::eq(waiting.link.as_ptr(), Arc::as_ptr(self)));
        let newest = own.max_by_key(|waiting| waiting.order);
        newest.is_some_and(|waiting| waiting.others.try_send(line.clone()).is_ok())
    }

    fn out(&self, line: Bytes) {
        // Nobody of that revision listens here.
        if self.is_modern {
            return;
        }
        let stream = self.stream.lock();
        if let Some(stream) = stream.as_ref()
            && stream.try_send(Piece::from(line.clone()).into_frame()).is_ok()
        {
            return;
        }
        drop(stream);
        let mut waiting = self.waiting.lock();
        if waiting.len() >= WAITING_MAX {
            waiting.pop_front();
        }
        waiting.push_back(line);
    }

    pub(super) fn close(&self) {
        *self.stream.lock() = None;
    }
}
