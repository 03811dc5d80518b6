//! Which heads go to disk with which commit.
//!
//! A commit of 64 events touches up to 64 sessions, and their heads lie all over the table: writing each of them
//! would cost a page per event. So a hand goes round the table like an elevator, and every commit writes the next few
//! heads that changed, side by side, a page or two. When the hand has come round, everything that had changed before
//! it set out is on disk. The log after that point is read again at the next start. With little to do the hand comes
//! round within every commit.

use std::collections::BTreeSet;

use crate::sqlite::rows::{Pos, Sid};

/// Heads one commit writes.
const ROUND: usize = 64;
/// Heads one commit writes when the hand falls behind.
const ROUND_LATE: usize = 512;
/// Events that may have to be read again at the next start before the hand must hurry.
const BEHIND_MAX: Pos = 65_536;
/// Events by which the stored position may trail the true one, so that not every commit has to write it.
const SLACK: Pos = 1_024;

pub(super) struct Elevator {
    /// Sessions whose head on disk is old.
    dirty: BTreeSet<Sid>,
    /// The last session the hand has passed.
    hand: Sid,
    /// Where the log ended when the hand set out.
    set_out: Pos,
    /// Heads on disk are true up to here.
    settled: Pos,
    /// What the file says of `settled`.
    stored: Pos,
}

/// What one commit writes.
pub(super) struct Round {
    pub(super) sids: Vec<Sid>,
    /// The position up to which heads are settled, when it is worth storing.
    pub(super) settled: Option<Pos>,
}

impl Elevator {
    /// `stored` is what the file says; `dirty` are the sessions found in the log after it, which ends at `end`.
    pub(super) fn new(stored: Pos, end: Pos, dirty: BTreeSet<Sid>) -> Self {
        Self { dirty, hand: 0, set_out: end, settled: stored, stored }
    }

    pub(super) fn touch(&mut self, sid: Sid) {
        self.dirty.insert(sid);
    }

    /// The heads to write with a commit after which the log ends at `end`.
    pub(super) fn next(&mut self, end: Pos) -> Round {
        let budget = if end - self.settled > BEHIND_MAX { ROUND_LATE } else { ROUND };
        self.go(end, budget, SLACK)
    }

    /// All that is left.
    pub(super) fn rest(&mut self, end: Pos) -> Round {
        self.go(end, usize::MAX, 1)
    }

    fn go(&mut self, end: Pos, budget: usize, slack: Pos) -> Round {
        let mut sids = Vec::with_capacity(budget.min(self.dirty.len()));
        while sids.len() < budget {
            let Some(&sid) = self.dirty.range(self.hand + 1..).next() else {
                // The hand has come round. With nothing dirty left, all of the log is settled.
                self.settled = if self.dirty.is_empty() { end } else { self.set_out };
                self.set_out = end;
                self.hand = 0;
                if self.dirty.is_empty() {
                    break;
                }
                continue;
            };
            self.dirty.remove(&sid);
            self.hand = sid;
            sids.push(sid);
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
    fn with_little_to_do_every_commit_settles_everything() {
        let mut elevator = Elevator::new(0, 0, BTreeSet::new());
        for end in 1..=10 {
            elevator.touch(7);
            assert_eq!(elevator.next(end).sids, [7]);
            assert_eq!(elevator.settled, end);
        }
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
            for sid in round.sids {
                disk[usize::try_from(sid).unwrap()] = live[usize::try_from(sid).unwrap()];
            }
            let settled = elevator.settled;
            assert!(end - settled < 2 * 65_536, "the hand is {} behind", end - settled);
            for sid in 1..2_000 {
                assert!(live[sid] > settled || disk[sid] == live[sid], "session {sid} is not on disk");
            }
        }
        elevator.rest(end);
        assert_eq!(elevator.settled, end);
    }
}
