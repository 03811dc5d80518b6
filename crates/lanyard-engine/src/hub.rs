//! Fan-out: a reader is a cursor, not a queue. The engine puts what it committed, encoded once, into a short ring per
//! observed session and wakes its readers; they share the bytes. Who falls behind the ring reads the journal, and so
//! never slows the writer and never loses an event. A session without readers has no ring at all.

mod beside;
mod changes;
mod reader;
mod records_head;
mod ring;
mod stored_event;

use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use lanyard_core::SessionId;
use lanyard_core::redact::Redactor;
use lanyard_store::EventEntry;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::redaction::Redaction;

pub use beside::{BEAT, Preview, control};
pub use changes::{Changes, Of, Over};
pub use reader::EventReader;
pub use records_head::RecordsHead;
use ring::{Chunk, Ring};
pub use stored_event::events_json;

/// How often a quiet stream carries a comment, so that both ends notice a dead connection.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub struct Hub {
    topics: RwLock<HashMap<SessionId, Arc<Topic>>>,
    observed: AtomicUsize,
    readers: AtomicUsize,
    /// Topics whose readers are to be woken; each at most once, so never more than there are topics.
    fresh: Mutex<Vec<Arc<Topic>>>,
    wake: Notify,
    closing: AtomicBool,
    /// Which sessions changed, for those who watch all of them.
    changes: changes::Board,
    /// Those of them that changed in more than their transcript, and those that ended.
    structure: changes::Board,
    ends: changes::Board,
    /// Where the changes of records end.
    records: watch::Sender<RecordsHead>,
    /// Finds secrets in what is about to be written or shown.
    pub redaction: Arc<Redaction>,
}

/// One observed session.
#[derive(Debug)]
pub(crate) struct Topic {
    session: SessionId,
    ring: Mutex<Ring>,
    /// Whether it stands in the hub's list of topics to wake.
    listed: AtomicBool,
    previewed_at: Mutex<Option<Instant>>,
}

impl Topic {
    fn ring(&self) -> parking_lot::MutexGuard<'_, Ring> {
        self.ring.lock()
    }
}

impl Hub {
    /// From here on secrets are taken out of what is written and shown.
    pub fn redact_with(&self, redactor: Arc<Redactor>) {
        self.redaction.begin(redactor);
    }

    pub fn redactor(&self) -> Option<Arc<Redactor>> {
        self.redaction.redactor()
    }

    /// Passes committed events on. Called by the engine; never waits for a reader.
    pub fn publish(&self, entries: &[EventEntry]) {
        self.touch(Of::All, entries.iter().map(|entry| entry.session));
        if self.observed.load(Ordering::Acquire) == 0 {
            return;
        }
        let topics = self.topics.read();
        let mut chunks: HashMap<SessionId, (u64, u64, BytesMut)> = HashMap::new();
        for entry in entries.iter().filter(|entry| topics.contains_key(&entry.session)) {
            let (_, last, frames) =
                chunks.entry(entry.session).or_insert_with(|| (entry.seq, entry.seq, BytesMut::new()));
            *last = entry.seq;
            frame(frames, entry.seq, &entry.body);
        }
        let mut fresh = self.fresh.lock();
        for (session, (first, last, frames)) in chunks {
            let Some(topic) = topics.get(&session) else { continue };
            topic.ring().push(Chunk { first, last, frames: frames.freeze() });
            list(&mut fresh, topic);
        }
        drop(fresh);
        self.wake.notify_one();
    }

    /// Has the topic's readers woken.
    fn stir(&self, topic: &Arc<Topic>) {
        list(&mut self.fresh.lock(), topic);
        self.wake.notify_one();
    }

    /// Wakes readers, away from the engine's thread, and keeps quiet streams alive. Runs until `close`.
    pub async fn run(self: Arc<Self>) {
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        loop {
            tokio::select! {
                () = self.wake.notified() => {
                    let fresh = std::mem::take(&mut *self.fresh.lock());
                    for topic in fresh {
                        topic.listed.store(false, Ordering::Release);
                        wake_all(&topic, Ring::take_waiting);
                    }
                    for board in [&self.changes, &self.structure, &self.ends] {
                        board.pass_on();
                    }
                }
                _ = heartbeat.tick() => {
                    for topic in self.all() {
                        wake_all(&topic, Ring::beat);
                    }
                }
            }
            if self.closing.load(Ordering::Acquire) {
                for topic in self.all() {
                    wake_all(&topic, Ring::close);
                }
                for board in [&self.changes, &self.structure, &self.ends] {
                    board.close();
                }
                return;
            }
        }
    }

    /// Ends all streams.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.records.send_modify(|head| head.closing = true);
        self.wake.notify_one();
    }

    #[must_use]
    pub fn readers(&self) -> usize {
        self.readers.load(Ordering::Relaxed)
    }

    fn all(&self) -> Vec<Arc<Topic>> {
        self.topics.read().values().cloned().collect()
    }

    fn topic(&self, session: SessionId) -> Option<Arc<Topic>> {
        if self.observed.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.topics.read().get(&session).cloned()
    }

    /// From here on, what is committed in this session reaches the place.
    #[must_use]
    pub fn join(self: &Arc<Self>, session: SessionId, want: ReaderWant) -> TopicPlace {
        let mut topics = self.topics.write();
        let topic = topics.entry(session).or_insert_with(|| {
            self.observed.fetch_add(1, Ordering::AcqRel);
            Arc::new(Topic {
                session,
                ring: Mutex::default(),
                listed: AtomicBool::new(false),
                previewed_at: Mutex::default(),
            })
        });
        let mut ring = topic.ring();
        ring.readers += 1;
        ring.watchers += usize::from(want == ReaderWant::All);
        drop(ring);
        self.readers.fetch_add(1, Ordering::Relaxed);
        TopicPlace { hub: self.clone(), topic: topic.clone(), want }
    }
}

/// What a reader gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderWant {
    /// The log alone.
    Events,
    /// The log, and what stands beside it: previews, presence, and a word when it fell far behind.
    All,
}

/// A reader's place at a session. The last one to leave takes the topic with it.
#[derive(Debug)]
pub struct TopicPlace {
    hub: Arc<Hub>,
    topic: Arc<Topic>,
    want: ReaderWant,
}

impl Drop for TopicPlace {
    fn drop(&mut self) {
        self.hub.readers.fetch_sub(1, Ordering::Relaxed);
        let mut topics = self.hub.topics.write();
        let mut ring = self.topic.ring();
        ring.readers -= 1;
        ring.watchers -= usize::from(self.want == ReaderWant::All);
        if ring.readers == 0 {
            topics.remove(&self.topic.session);
            self.hub.observed.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn list(fresh: &mut Vec<Arc<Topic>>, topic: &Arc<Topic>) {
    if !topic.listed.swap(true, Ordering::AcqRel) {
        fresh.push(topic.clone());
    }
}

fn wake_all(topic: &Topic, take: impl FnOnce(&mut Ring) -> Vec<std::task::Waker>) {
    // Woken outside the lock, so that the first reader to run does not wait for the last to be woken.
    let waiting = take(&mut topic.ring());
    for waker in waiting {
        waker.wake();
    }
}

/// Adds one server-sent event.
pub fn frame(frames: &mut BytesMut, seq: u64, body: &Bytes) {
    use std::fmt::Write;
    frames.reserve(body.len() + 32);
    let _ = write!(frames, "id: {seq}\ndata: ");
    frames.extend_from_slice(body);
    frames.extend_from_slice(b"\n\n");
}
