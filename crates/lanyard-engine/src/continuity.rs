//! Counting continuity while it happens: what the log tells of is written with the log and only added up here; what it
//! does not tell of is written a moment later, by a timer.
//!
//! Nothing that counts ever waits for the disk. A kill takes at most what was counted since the last flush.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lanyard_core::continuity::{
    Accidents, Alert, AlertKind, ContinuityRules, Counter, SLOT_MS, Slot, Tally, Window, assess, slot_of,
};
use lanyard_core::{Actor, ActorKind, Timestamp};
use lanyard_store::{AppendError, Durability, StoreError, Tallies};

/// How long counts are kept by the minute, for charts: a week.
pub const HISTORY_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// What has been counted, and what of it is not on disk yet.
#[derive(Debug)]
pub struct ContinuityCounter {
    pub rules: ContinuityRules,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    window: Window,
    unwritten: BTreeMap<Slot, Tally>,
    accidents: Accidents,
    /// Alerts that hold, as far as anybody was told.
    told: BTreeSet<AlertKind>,
    forgotten: Slot,
}

impl ContinuityCounter {
    /// With what an earlier daemon counted.
    pub fn open(rules: ContinuityRules, store: &(impl Tallies + ?Sized)) -> Result<Arc<Self>, StoreError> {
        let counts = Counts { window: restored(store)?, ..Counts::default() };
        Ok(Arc::new(Self { rules, counts: Mutex::new(counts) }))
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock()
    }

    /// Something happened that no log tells of.
    pub fn count(&self, counter: Counter, now: Timestamp) {
        let tally: Tally = [(counter, 1)].into_iter().collect();
        let mut held = self.lock();
        held.window.add(now, &tally);
        held.unwritten.entry(slot_of(now)).or_default().add_all(&tally);
    }

    /// Something happened that is on disk already, with the events that tell of it.
    pub fn committed(&self, at: Timestamp, tally: &Tally) {
        self.lock().window.add(at, tally);
    }

    /// A client failed to get back to a session; one that it makes now may be an accident.
    pub fn lost_the_way(&self, who: &Actor, now: Timestamp) {
        if is_somebody(who) {
            self.lock().accidents.failed(who, now);
        }
    }

    /// Whether a new session comes from such a failure.
    pub(crate) fn is_accident(&self, who: &Actor, now: Timestamp) -> bool {
        is_somebody(who) && self.lock().accidents.made(who, now, self.rules.accident_ms)
    }

    /// Writes down what is only in memory. To the write-ahead log, and not further: a power cut may take a minute.
    pub fn flush(&self, store: &dyn Tallies, now: Timestamp) -> Result<(), AppendError> {
        let (unwritten, first) = {
            let mut held = self.lock();
            let window_ms = self.rules.window_ms.max(HISTORY_MS);
            held.window.forget_before(now, window_ms);
            let first = (slot_of(now) + 1).saturating_sub(window_ms.div_ceil(SLOT_MS)).max(1);
            let due = first > held.forgotten;
            held.forgotten = first;
            (std::mem::take(&mut held.unwritten), due.then_some(first))
        };
        for (slot, tally) in &unwritten {
            let at = Timestamp::from_millis(i64::try_from(slot * SLOT_MS).unwrap_or(i64::MAX));
            if let Err(error) = store.add_tally(at, tally, Durability::Written) {
                self.put_back(unwritten.range(slot..));
                return Err(error);
            }
        }
        if let Some(first) = first {
            store.forget_tallies(first).map_err(AppendError::Unavailable)?;
        }
        Ok(())
    }

    fn put_back<'a>(&self, unwritten: impl Iterator<Item = (&'a Slot, &'a Tally)>) {
        let mut held = self.lock();
        for (slot, tally) in unwritten {
            held.unwritten.entry(*slot).or_default().add_all(tally);
        }
    }

    /// Reads what is on disk again, after a journal that failed: a batch without an acknowledgement may be there all the same.
    pub fn reload(&self, store: &(impl Tallies + ?Sized)) -> Result<(), StoreError> {
        let mut window = restored(store)?;
        let mut held = self.lock();
        for (slot, tally) in &held.unwritten {
            let at = Timestamp::from_millis(i64::try_from(slot * SLOT_MS).unwrap_or(i64::MAX));
            window.add(at, tally);
        }
        held.window = window;
        Ok(())
    }

    /// Totals, and those of the window.
    pub fn sums(&self, now: Timestamp) -> (Tally, Tally) {
        let held = self.lock();
        (*held.window.totals(), held.window.sum(now, self.rules.window_ms))
    }

    /// What was counted in the steps of a time.
    #[must_use]
    pub fn series(&self, from: Timestamp, to: Timestamp, step_ms: u64) -> Vec<(Timestamp, Tally)> {
        self.lock().window.series(from, to, step_ms)
    }

    /// The alerts that hold now, and those that were notified.
    pub fn alerts(&self, now: Timestamp) -> (Vec<Alert>, BTreeSet<AlertKind>) {
        let held = self.lock();
        let window = held.window.sum(now, self.rules.window_ms);
        (assess(&window, &self.rules, &held.told), held.told.clone())
    }

    /// The begin or the end of an alert was notified.
    pub fn told(&self, kind: AlertKind, holds: bool) {
        let mut held = self.lock();
        if holds {
            held.told.insert(kind);
        } else {
            held.told.remove(&kind);
        }
    }
}

/// Lanyard itself makes sessions on purpose.
fn is_somebody(who: &Actor) -> bool {
    match who.kind {
        ActorKind::Operator | ActorKind::Observer | ActorKind::Agent => true,
        ActorKind::System => false,
    }
}

fn restored(store: &(impl Tallies + ?Sized)) -> Result<Window, StoreError> {
    let mut window = Window::default();
    for (slot, counter, times) in store.tallies()? {
        window.restore(slot, counter, times);
    }
    Ok(window)
}

#[cfg(test)]
mod tests {
    use lanyard_store::{SqliteJournal, SqliteOptions};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_794_729_600_000);

    fn journal(folder: &std::path::Path) -> SqliteJournal {
        SqliteJournal::open(SqliteOptions::at(folder.join("journal.db"))).unwrap()
    }

    /// A journal that has stopped writing.
    struct Stopped;

    impl Tallies for Stopped {
        fn add_tally(&self, _: Timestamp, _: &Tally, _: Durability) -> Result<(), AppendError> {
            Err(AppendError::Unavailable(StoreError::Stopped("the disk is full".to_owned())))
        }

        fn tallies(&self) -> Result<Vec<(Slot, Counter, u64)>, StoreError> {
            Ok(Vec::new())
        }

        fn forget_tallies(&self, _: Slot) -> Result<usize, StoreError> {
            Ok(0)
        }
    }

    #[test]
    fn what_was_flushed_is_there_after_a_restart_and_only_that() {
        let folder = tempfile::tempdir().unwrap();
        let store = journal(folder.path());
        let first = ContinuityCounter::open(ContinuityRules::default(), &store).unwrap();
        first.count(Counter::AttachFailed, NOW);
        first.count(Counter::AttachFailed, NOW.plus_millis(61_000));
        first.flush(&store, NOW.plus_millis(61_000)).unwrap();
        first.count(Counter::AttachFailed, NOW.plus_millis(62_000));
        assert_eq!(first.sums(NOW.plus_millis(62_000)).1.get(Counter::AttachFailed), 3);
        let second = ContinuityCounter::open(ContinuityRules::default(), &store).unwrap();
        let (totals, window) = second.sums(NOW.plus_millis(62_000));
        assert_eq!((totals.get(Counter::AttachFailed), window.get(Counter::AttachFailed)), (2, 2));
    }

    #[test]
    fn what_could_not_be_written_is_written_later_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = journal(folder.path());
        let counts = ContinuityCounter::open(ContinuityRules::default(), &store).unwrap();
        counts.count(Counter::BusyRejections, NOW);
        assert!(counts.flush(&Stopped, NOW).is_err());
        counts.reload(&store).unwrap();
        assert_eq!(counts.sums(NOW).0.get(Counter::BusyRejections), 1);
        counts.flush(&store, NOW).unwrap();
        counts.flush(&store, NOW).unwrap();
        assert_eq!(store.tallies().unwrap()[0], (0, Counter::BusyRejections, 1));
    }

    #[test]
    fn minutes_that_are_too_old_go_and_totals_stay() {
        let folder = tempfile::tempdir().unwrap();
        let store = journal(folder.path());
        let counts = ContinuityCounter::open(ContinuityRules::default(), &store).unwrap();
        counts.count(Counter::AttachSucceeded, NOW);
        counts.flush(&store, NOW).unwrap();
        counts.flush(&store, NOW.plus_millis(HISTORY_MS + 3_600_000)).unwrap();
        assert_eq!(store.tallies().unwrap(), [(0, Counter::AttachSucceeded, 1)]);
    }
}
