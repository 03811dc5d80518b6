//! The selection of heads that a commit writes.
//!
//! A commit of 64 events touches up to 64 sessions, and their heads lie all over the table: writing each of them would
//! cost a page per event. A hand therefore goes round the table like an elevator, a stretch of about a page at a time,
//! and a commit writes the heads that changed in the stretches that are due. After one lap, every head that had changed
//! before the lap is on disk. The log after that point is read again at the next start, so the log paces the hand: one
//! lap for so many events. While only few heads have changed, all are written at once, but not with every commit: a
//! lone writer would pay for a second page each time.

use std::collections::BTreeSet;

use crate::sqlite::rows::{Pos, Sid};

/// Sessions whose heads share a page, more or less.
const STRETCH: Sid = 128;
/// Events in which the hand goes round once. No more than two laps have to be read again at the next start.
const LAP: Pos = 32_768;
/// Changed heads that are written all at once.
const FEW: usize = 8;
/// Events by which few heads, and the stored position, may trail the true ones, so that not every commit has to write
/// them.
const SLACK: Pos = 1_024;

pub(super) struct Elevator {
    /// Sessions whose head on disk is old.
    dirty: BTreeSet<Sid>,
    /// The last session the hand has passed.
    hand: Sid,
    /// The highest session there is to pass.
    top: Sid,
    /// End of the log at the last commit.
    end: Pos,
    /// Credit of the hand, in sessions times events; a stretch costs `STRETCH * LAP`.
    credit: i64,
    /// End of the log at the start of the lap.
    set_out: Pos,
    /// Heads on disk are true up to here.
    settled: Pos,
    /// The value of `settled` in the file.
    stored: Pos,
}

/// The heads that one commit writes.
pub(super) struct Round {
    pub(super) sids: Vec<Sid>,
    /// The position up to which heads are settled, when it is worth storing.
    pub(super) settled: Option<Pos>,
}

impl Elevator {
    /// `stored` is what the file says; `dirty` are the sessions found in the log after it, which ends at `end`.
    pub(super) fn new(stored: Pos, end: Pos, dirty: BTreeSet<Sid>) -> Self {
        let top = dirty.last().copied().unwrap_or(0);
        Self { dirty, hand: 0, top, end, credit: 0, set_out: end, settled: stored, stored }
    }

    pub(super) fn touch(&mut self, sid: Sid) {
        self.top = self.top.max(sid);
        self.dirty.insert(sid);
    }

    /// The session has no head any more.
    pub(super) fn forget(&mut self, sid: Sid) {
        self.dirty.remove(&sid);
    }

    /// The heads to write with a commit after which the log ends at `end`.
    pub(super) fn next(&mut self, end: Pos) -> Round {
        self.credit += (end - self.end) * (self.top + STRETCH);
        self.end = end;
        if self.dirty.len() <= FEW {
            self.credit = 0;
            let stretches = if end - self.settled >= SLACK { i64::MAX } else { 0 };
            return self.go(end, stretches, SLACK);
        }
        let stretches = self.credit / (STRETCH * LAP);
        self.credit -= stretches * STRETCH * LAP;
        self.go(end, stretches, SLACK)
    }

    /// All that is left.
    pub(super) fn rest(&mut self, end: Pos) -> Round {
        self.go(end, i64::MAX, 1)
    }

    fn go(&mut self, end: Pos, mut stretches: i64, slack: Pos) -> Round {
        let mut sids = Vec::new();
        // How far the stretch goes that the hand is in.
        let mut until = 0;
        while !self.dirty.is_empty() {
            let Some(&sid) = self.dirty.range(self.hand + 1..).next() else {
                // The hand has come round.
                self.settled = self.set_out;
                (self.set_out, self.hand, until) = (end, 0, 0);
                continue;
            };
            if sid > until {
                if stretches == 0 {
                    break;
                }
                stretches -= 1;
                until = sid + STRETCH;
            }
            self.dirty.remove(&sid);
            self.hand = sid;
            sids.push(sid);
        }
        if self.dirty.is_empty() {
            (self.settled, self.set_out, self.hand) = (end, end, 0);
        }
        let settled = (self.settled - self.stored >= slack).then_some(self.settled);
        self.stored = settled.unwrap_or(self.stored);
        Round { sids, settled }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_little_to_do_everything_is_settled_now_and_then() {
        let mut elevator = Elevator::new(0, 0, BTreeSet::new());
        let mut written = 0;
        for end in 1..=3 * SLACK {
            elevator.touch(7);
            let round = elevator.next(end);
            if end % SLACK == 0 {
                assert_eq!((round.sids, round.settled), (vec![7], Some(end)));
                written += 1;
            } else {
                assert_eq!((round.sids, round.settled), (vec![], None), "after {end} events");
            }
        }
        assert_eq!(written, 3);
        elevator.touch(9);
        assert_eq!(elevator.rest(3 * SLACK + 1).sids, [9], "the end writes the rest");
    }

    /// Whatever the hand says is settled has been written at least as new as that.
    #[test]
    fn what_is_settled_is_on_disk() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut elevator = Elevator::new(0, 0, BTreeSet::new());
        let (mut live, mut disk) = ([0; 2_000], [0; 2_000]);
        let mut end = 0;
        for _ in 0..5_000 {
            for _ in 0..rng.usize(1..100) {
                end += 1;
                let sid = rng.usize(1..2_000);
                live[sid] = end;
                elevator.touch(Sid::try_from(sid).unwrap());
            }
            let round = elevator.next(end);
            let round_len = round.sids.len();
            for sid in round.sids {
                disk[usize::try_from(sid).unwrap()] = live[usize::try_from(sid).unwrap()];
            }
            let settled = elevator.settled;
            assert!(end - settled <= 2 * LAP + 100, "the hand is {} behind", end - settled);
            assert!(round_len <= 129, "{round_len} heads in one commit");
            for sid in 1..2_000 {
                assert!(live[sid] > settled || disk[sid] == live[sid], "session {sid} is not on disk");
            }
        }
        elevator.rest(end);
        assert_eq!(elevator.settled, end);
    }
}
