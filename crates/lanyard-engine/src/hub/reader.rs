//! One live stream of a session's events: first what the journal has after the cursor, then what is published. Late
//! join, resume and falling behind are the same code.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame};
use lanyard_core::SessionId;
use lanyard_store::{EventPage, Store, StoreError};
use tokio::task::JoinHandle;

use crate::hub::beside::{BEAT, Beside, resync};
use crate::hub::ring::Next;
use crate::hub::stored_event::event_json;
use crate::hub::{ReaderWant, TopicPlace, frame};

/// Events read from the journal at a time: fewer after a page that was large, more after one that was small. That
/// bounds what a slow reader holds in memory, whatever the size of its events.
const PAGE_EVENTS_MAX: usize = 128;
const PAGE_EVENTS_FIRST: usize = 32;
const PAGE_BYTES_LARGE: usize = 256 * 1024;
const PAGE_BYTES_SMALL: usize = 64 * 1024;

/// The body of an SSE response.
pub struct EventReader {
    store: Arc<dyn Store>,
    place: TopicPlace,
    session: SessionId,
    /// The last position that was sent.
    cursor: u64,
    beats: u64,
    /// When it last joined the ring's waiting list, and with which waker.
    waiting: Option<(u64, Waker)>,
    reading: Option<JoinHandle<Result<EventPage, StoreError>>>,
    page_events: usize,
    /// For one that wants more than the log.
    beside: Option<Beside>,
    ended: bool,
}

impl std::fmt::Debug for EventReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("session", &self.session)
            .field("cursor", &self.cursor)
            .finish_non_exhaustive()
    }
}

impl EventReader {
    /// A stream of everything after `cursor`, for as long as the client stays. `head` is the end of the log as it was
    /// after the place was taken: what is committed in between is in both, and never in neither.
    #[must_use]
    pub fn new(place: TopicPlace, store: Arc<dyn Store>, cursor: u64, head: u64) -> Self {
        let (session, beats, beside) = {
            let ring = place.topic.ring();
            (
                place.topic.session,
                ring.beats,
                (place.want == ReaderWant::All).then(|| Beside::from_now(&ring)),
            )
        };
        let mut reader = Self {
            store,
            place,
            session,
            cursor,
            beats,
            waiting: None,
            reading: None,
            page_events: PAGE_EVENTS_FIRST,
            beside,
            ended: false,
        };
        // At the end of the log there is nothing to read; what came since is in the ring.
        if cursor < head {
            reader.read_journal();
        }
        reader
    }

    fn read_journal(&mut self) {
        let (store, session, cursor, limit) =
            (self.store.clone(), self.session, self.cursor, self.page_events);
        self.reading = Some(tokio::task::spawn_blocking(move || store.events(session, cursor, limit)));
    }

    /// What the journal had, as frames; `None` when the reader is up with it.
    fn page(&mut self, page: &EventPage) -> Option<Bytes> {
        let last = page.events.last()?.seq;
        let mut frames = BytesMut::new();
        for event in &page.events {
            frame(&mut frames, event.seq, &event_json(self.session, event));
        }
        self.cursor = last;
        self.page_events = match frames.len() {
            PAGE_BYTES_LARGE.. => (self.page_events / 4).max(1),
            0..PAGE_BYTES_SMALL => (self.page_events * 2).min(PAGE_EVENTS_MAX),
            _ => self.page_events,
        };
        Some(frames.freeze())
    }

    fn live(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut ring = self.place.topic.ring();
        if ring.closed {
            return Poll::Ready(None);
        }
        match ring.after(self.cursor) {
            Next::Frames(frames, last) => {
                self.cursor = last;
                return Poll::Ready(Some(frames));
            }
            Next::Behind => {
                drop(ring);
                self.read_journal();
                return Poll::Ready(Some(Bytes::new()));
            }
            Next::Nothing => {}
        }
        if let Some(frame) = self.beside.as_mut().and_then(|beside| beside.next(&ring)) {
            return Poll::Ready(Some(frame));
        }
        if ring.beats != self.beats {
            self.beats = ring.beats;
            return Poll::Ready(Some(BEAT));
        }
        let listed = self
            .waiting
            .as_ref()
            .is_some_and(|(wakings, waker)| *wakings == ring.wakings && waker.will_wake(cx.waker()));
        if !listed {
            let waker = cx.waker().clone();
            self.waiting = Some((ring.wait(waker.clone()), waker));
        }
        Poll::Pending
    }

    /// The next piece of the stream: whole frames, or a heartbeat.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, StoreError>>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            if let Some(reading) = &mut self.reading {
                let Poll::Ready(read) = Pin::new(reading).poll(cx) else { return Poll::Pending };
                self.reading = None;
                match read {
                    // There is no log any more: the session was purged while somebody read it.
                    Ok(Ok(page)) if page.head == 0 => {
                        self.ended = true;
                        return Poll::Ready(None);
                    }
                    Ok(Ok(page)) => {
                        let behind = page.events.last().is_some_and(|event| event.seq < page.head);
                        let told =
                            self.beside.as_mut().and_then(|beside| resync(beside, self.cursor, page.head));
                        let frames = self.page(&page);
                        if behind {
                            self.read_journal();
                        }
                        if let Some(frames) = frames {
                            return Poll::Ready(Some(Ok(after(told, frames))));
                        }
                    }
                    // The stream ends and the client comes back with its last position; nothing is skipped.
                    Ok(Err(error)) => {
                        self.ended = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                    Err(_) => return Poll::Ready(None),
                }
                continue;
            }
            match self.live(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => {
                    self.ended = true;
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(frames)) if frames.is_empty() => {}
                Poll::Ready(Some(frames)) => return Poll::Ready(Some(Ok(frames))),
            }
        }
    }
}

/// What is said first, and then the frames.
fn after(first: Option<Bytes>, frames: Bytes) -> Bytes {
    match first {
        Some(first) => [first, frames].concat().into(),
        None => frames,
    }
}

impl Body for EventReader {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        self.poll_piece(cx).map_ok(Frame::data)
    }
}
