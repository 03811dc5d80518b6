//! The newest events of one observed session, as frames ready to send, and who waits for the next.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::{Bytes, BytesMut};

/// Bytes a ring holds. A reader that is further behind reads the journal.
const RING_BYTES_MAX: usize = 256 * 1024;
/// Commits a ring holds.
const RING_CHUNKS_MAX: usize = 256;
/// Bytes handed to one reader at once, unless a single commit is larger.
const SEND_BYTES_MAX: usize = 64 * 1024;

/// What one commit wrote into one session.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) frames: Bytes,
}

#[derive(Debug, Default)]
pub(super) struct Ring {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    waiting: Vec<Waker>,
    /// Grows with every waking, so that a reader knows whether it is still in the list.
    pub(super) wakings: u64,
    pub(super) beats: u64,
    pub(super) closed: bool,
    pub(super) readers: usize,
    /// Readers that also want what stands beside the log.
    pub(super) watchers: usize,
    /// The text that is being written, until the event that holds it is in the log.
    pub(super) preview: Aside,
    pub(super) presence: Aside,
}

/// Something beside the log, as a frame. Only its newest form counts; a slow reader misses the others.
#[derive(Debug, Default)]
pub(super) struct Aside {
    pub(super) number: u64,
    frame: Option<Bytes>,
}

impl Aside {
    pub(super) fn put(&mut self, frame: Bytes) {
        self.number += 1;
        self.frame = Some(frame);
    }

    /// The newest, for one that has `seen` those before.
    pub(super) fn after(&self, seen: &mut u64) -> Option<Bytes> {
        if *seen == self.number {
            return None;
        }
        *seen = self.number;
        self.frame.clone()
    }
}

/// What there is for a reader at a cursor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Frames up to and including this position.
    Frames(Bytes, u64),
    /// The ring no longer, or not evenly, holds what follows the cursor.
    Behind,
    Nothing,
}

impl Ring {
    pub(super) fn push(&mut self, chunk: Chunk) {
        // A hole would hide events from readers; better to start over and let them read the journal.
        if self.chunks.back().is_some_and(|newest| newest.last + 1 != chunk.first) {
            self.chunks.clear();
            self.bytes = 0;
        }
        self.preview.frame = None;
        self.bytes += chunk.frames.len();
        self.chunks.push_back(chunk);
        while self.chunks.len() > 1 && (self.bytes > RING_BYTES_MAX || self.chunks.len() > RING_CHUNKS_MAX) {
            self.bytes -= self.chunks.pop_front().map_or(0, |oldest| oldest.frames.len());
        }
    }

    pub(super) fn after(&self, cursor: u64) -> Next {
        match self.chunks.back() {
            Some(newest) if newest.last > cursor => {}
            Some(_) | None => return Next::Nothing,
        }
        let at = self.chunks.partition_point(|chunk| chunk.last <= cursor);
        let Some(first) = self.chunks.get(at).filter(|chunk| chunk.first == cursor + 1) else {
            return Next::Behind;
        };
        // One commit is shared as it is; several become one send.
        let size = first.frames.len();
        let Some(next) = self.chunks.get(at + 1).filter(|next| size + next.frames.len() <= SEND_BYTES_MAX)
        else {
            return Next::Frames(first.frames.clone(), first.last);
        };
        let mut frames = BytesMut::with_capacity((size + next.frames.len()) * 2);
        let mut last = cursor;
        for chunk in self.chunks.range(at..) {
            if !frames.is_empty() && frames.len() + chunk.frames.len() > SEND_BYTES_MAX {
                break;
            }
            frames.extend_from_slice(&chunk.frames);
            last = chunk.last;
        }
        Next::Frames(frames.freeze(), last)
    }

    pub(super) fn wait(&mut self, waker: Waker) -> u64 {
        self.waiting.push(waker);
        self.wakings
    }

    pub(super) fn take_waiting(&mut self) -> Vec<Waker> {
        self.wakings += 1;
        let size = self.waiting.len();
        std::mem::replace(&mut self.waiting, Vec::with_capacity(size))
    }

    pub(super) fn beat(&mut self) -> Vec<Waker> {
        self.beats += 1;
        self.take_waiting()
    }

    pub(super) fn close(&mut self) -> Vec<Waker> {
        self.closed = true;
        self.take_waiting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(first: u64, last: u64, size: usize) -> Chunk {
        Chunk { first, last, frames: Bytes::from(vec![b'x'; size]) }
    }

    fn got(next: Next) -> Option<(usize, u64)> {
        match next {
            Next::Frames(frames, last) => Some((frames.len(), last)),
            Next::Behind | Next::Nothing => None,
        }
    }

    #[test]
    fn a_reader_at_the_end_waits_and_one_behind_the_ring_is_told() {
        let mut ring = Ring::default();
        assert_eq!(ring.after(0), Next::Nothing);
        ring.push(chunk(5, 6, 10));
        assert_eq!(ring.after(6), Next::Nothing);
        assert_eq!(ring.after(3), Next::Behind);
        assert_eq!(ring.after(5), Next::Behind, "in the middle of a commit");
        assert_eq!(got(ring.after(4)), Some((10, 6)));
    }

    #[test]
    fn several_commits_are_sent_together_up_to_the_bound() {
        let mut ring = Ring::default();
        for seq in 1..=4 {
            ring.push(chunk(seq, seq, 30 * 1024));
        }
        assert_eq!(got(ring.after(0)), Some((60 * 1024, 2)));
        assert_eq!(got(ring.after(2)), Some((60 * 1024, 4)));
        assert_eq!(got(ring.after(3)), Some((30 * 1024, 4)));
    }

    #[test]
    fn the_ring_forgets_its_oldest_and_starts_over_after_a_hole() {
        let mut ring = Ring::default();
        for seq in 1..=10 {
            ring.push(chunk(seq, seq, 100 * 1024));
        }
        assert_eq!(ring.after(0), Next::Behind);
        assert_eq!(got(ring.after(8)), Some((100 * 1024, 9)));
        ring.push(chunk(20, 20, 1));
        assert_eq!(ring.after(10), Next::Behind);
    }

    #[test]
    fn a_preview_is_seen_once_and_goes_with_the_next_event() {
        let mut ring = Ring::default();
        let mut seen = ring.preview.number;
        ring.preview.put(Bytes::from_static(b"a"));
        ring.preview.put(Bytes::from_static(b"ab"));
        assert_eq!(ring.preview.after(&mut seen).as_deref(), Some(&b"ab"[..]));
        assert_eq!(ring.preview.after(&mut seen), None);
        ring.preview.put(Bytes::from_static(b"abc"));
        ring.push(chunk(1, 1, 1));
        assert_eq!(ring.preview.after(&mut seen), None);
    }
}
