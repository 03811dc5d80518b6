//! How much of a run's output can be given up. A daemon that comes after reads on from the last report, and is reminded of
//! the output before it that is still kept.

use std::collections::VecDeque;

/// Output given up at a time; each costs a system call.
const GIVE_UP_BYTES: u64 = 1 << 20;
/// Distance between two places at which output may be given up.
const PLACE_BYTES: u64 = 64 << 10;
/// Output that is kept at most for lines that refer back to it: a quarter of what the supervisor keeps.
const KEEP_BYTES_MAX: u64 = 64 << 20;

pub(super) struct SpentOutput {
    /// Output before this place has been given up.
    to: u64,
    /// Places that no later line refers back beyond, in order.
    places: VecDeque<u64>,
}

impl SpentOutput {
    pub(super) fn new(from: u64) -> Self {
        Self { to: from, places: VecDeque::new() }
    }

    /// No line after `at` refers back beyond it.
    pub(super) fn note(&mut self, at: u64) {
        if self.places.back().is_none_or(|last| at >= last + PLACE_BYTES) {
            self.places.push_back(at);
        }
    }

    /// The place up to which output can be given up now that it was reported up to `reported`.
    pub(super) fn give_up(&mut self, reported: u64) -> Option<u64> {
        let mut to = self.to;
        while let Some(place) = self.places.pop_front_if(|place| *place <= reported) {
            to = place;
        }
        if reported >= self.to + KEEP_BYTES_MAX {
            to = reported;
        }
        if to >= self.to + GIVE_UP_BYTES {
            self.to = to;
            return Some(to);
        }
        if to > self.to {
            self.places.push_front(to);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{GIVE_UP_BYTES, KEEP_BYTES_MAX, PLACE_BYTES, SpentOutput};

    #[test]
    fn output_is_given_up_only_where_no_later_line_refers_back() {
        let mut spent = SpentOutput::new(0);
        for at in [10, PLACE_BYTES - 1, PLACE_BYTES + 10, GIVE_UP_BYTES, 2 * GIVE_UP_BYTES] {
            spent.note(at);
        }
        assert_eq!(spent.give_up(PLACE_BYTES + 20), None, "too little to be worth a call");
        assert_eq!(spent.give_up(2 * GIVE_UP_BYTES - 1), Some(GIVE_UP_BYTES), "not up to the report");
        assert_eq!(spent.give_up(2 * GIVE_UP_BYTES - 1), None);
        assert_eq!(spent.give_up(3 * GIVE_UP_BYTES), Some(2 * GIVE_UP_BYTES));
    }

    #[test]
    fn fnd_n8_a_message_that_goes_on_keeps_its_start() {
        let mut spent = SpentOutput::new(0);
        spent.note(GIVE_UP_BYTES);
        assert_eq!(spent.give_up(GIVE_UP_BYTES), Some(GIVE_UP_BYTES));
        assert_eq!(spent.give_up(9 * GIVE_UP_BYTES), None);
        let far = GIVE_UP_BYTES + KEEP_BYTES_MAX;
        assert_eq!(spent.give_up(far), Some(far), "the supervisor keeps only so much");
    }
}
