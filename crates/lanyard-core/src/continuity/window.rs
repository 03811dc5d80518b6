//! Counts by the minute, so that what is old stops counting, and since ever.

use std::collections::BTreeMap;

use crate::continuity::count::{Counter, Tally};
use crate::time::Timestamp;

/// Length of a time slot in milliseconds.
pub const SLOT_MS: u64 = 60_000;

/// A minute, counted from 1970. Zero stands for all of them.
pub type Slot = u64;

/// The minute a time lies in.
#[must_use]
pub fn slot_of(at: Timestamp) -> Slot {
    // Nothing was counted in the first minute of 1970, so zero is free for the totals.
    (at.as_millis().max(0).unsigned_abs() / SLOT_MS).max(1)
}

/// Counts of the last minutes, and totals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    slots: BTreeMap<Slot, Tally>,
    totals: Tally,
}

impl Window {
    pub fn add(&mut self, at: Timestamp, tally: &Tally) {
        if tally.is_empty() {
            return;
        }
        self.slots.entry(slot_of(at)).or_default().add_all(tally);
        self.totals.add_all(tally);
    }

    /// Puts back what was kept of a minute, or of all of them.
    pub fn restore(&mut self, slot: Slot, counter: Counter, times: u64) {
        match slot {
            0 => self.totals.add(counter, times),
            slot => self.slots.entry(slot).or_default().add(counter, times),
        }
    }

    /// Since ever.
    #[must_use]
    pub const fn totals(&self) -> &Tally {
        &self.totals
    }

    /// The last `window_ms` before `now`, in whole minutes.
    #[must_use]
    pub fn sum(&self, now: Timestamp, window_ms: u64) -> Tally {
        let mut sum = Tally::default();
        for tally in self.slots.range(first(now, window_ms)..).map(|(_, tally)| tally) {
            sum.add_all(tally);
        }
        sum
    }

    /// The counts of the steps from one time to another, oldest first. Steps in which nothing was counted are left out.
    #[must_use]
    pub fn series(&self, from: Timestamp, to: Timestamp, step_ms: u64) -> Vec<(Timestamp, Tally)> {
        let step = step_ms.div_ceil(SLOT_MS).max(1);
        let mut steps: BTreeMap<Slot, Tally> = BTreeMap::new();
        for (slot, tally) in self.slots.range(slot_of(from)..=slot_of(to).max(slot_of(from))) {
            steps.entry(slot / step * step).or_default().add_all(tally);
        }
        let at = |slot: Slot| Timestamp::from_millis(0).plus_millis(slot * SLOT_MS);
        steps.into_iter().map(|(slot, tally)| (at(slot), tally)).collect()
    }

    /// Forgets minutes that no longer count. Totals stay.
    pub fn forget_before(&mut self, now: Timestamp, window_ms: u64) {
        self.slots = self.slots.split_off(&first(now, window_ms));
    }
}

/// The oldest minute of a window.
fn first(now: Timestamp, window_ms: u64) -> Slot {
    let minutes = window_ms.div_ceil(SLOT_MS).max(1);
    (slot_of(now) + 1).saturating_sub(minutes).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_millis(minute * 60_000 + 5)
    }

    fn once(counter: Counter) -> Tally {
        [(counter, 1)].into_iter().collect()
    }

    /// S3-B11.
    #[test]
    fn what_is_older_than_the_window_no_longer_counts_and_totals_stay() {
        let mut window = Window::default();
        for minute in 100..110 {
            window.add(at(minute), &once(Counter::AttachFailed));
        }
        let sum = |now, minutes: u64| window.sum(at(now), minutes * SLOT_MS).get(Counter::AttachFailed);
        assert_eq!(sum(109, 60), 10);
        assert_eq!(sum(109, 3), 3);
        assert_eq!(sum(112, 5), 2);
        assert_eq!(sum(200, 60), 0);
        assert_eq!(window.totals().get(Counter::AttachFailed), 10);
        let mut later = window.clone();
        later.forget_before(at(112), 5 * SLOT_MS);
        assert_eq!(later.sum(at(112), 5 * SLOT_MS), window.sum(at(112), 5 * SLOT_MS));
        assert_eq!((later.slots.len(), later.totals()), (2, window.totals()));
    }

    #[test]
    fn a_series_has_the_steps_in_which_something_happened() {
        let mut window = Window::default();
        for minute in [61, 64, 65, 70, 99] {
            window.add(at(minute), &once(Counter::AttachFailed));
        }
        let series: Vec<_> = window
            .series(at(62), at(90), 5 * SLOT_MS)
            .into_iter()
            .map(|(from, tally)| (from.as_millis() / 60_000, tally.get(Counter::AttachFailed)))
            .collect();
        assert_eq!(series, [(60, 1), (65, 1), (70, 1)]);
    }

    #[test]
    fn what_was_kept_is_restored() {
        let mut window = Window::default();
        window.add(at(7), &once(Counter::SessionsCreated));
        window.add(at(8), &once(Counter::SessionsCreated));
        let mut again = Window::default();
        for slot in [7, 8] {
            again.restore(slot, Counter::SessionsCreated, 1);
        }
        again.restore(0, Counter::SessionsCreated, 2);
        assert_eq!(again, window);
    }
}
