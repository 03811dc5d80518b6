//! The only file that reads a clock or makes random ids. Everything else gets time and ids as data.
//!
//! Recorded times follow the wall clock but never go back, neither when it is set back nor behind what the journal
//! already holds. How long something has been quiet is counted without the steps the wall clock was set by while the
//! daemon ran (S1-B10): a clock that leaps a year ahead does not make every session stale.

use std::path::PathBuf;
use std::sync::Mutex;

use lanyard_core::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// A difference between wall clock and boot clock that grows by less than this between two looks is drift, not a step.
const STEP_MIN_MS: i64 = 2_000;
/// Random bytes taken from the system at once, so that an id does not cost a system call.
const BLOCK: usize = 4_096;
/// Steps remembered; a machine whose clock is set more often than this loses the oldest correction.
const STEPS_MAX: usize = 64;

/// Where time comes from.
#[derive(Debug)]
enum Source {
    /// The machine's clocks. The boot clock counts time asleep too, and nobody sets it.
    Machine,
    /// Milliseconds in a file, for scenarios: time moves when the file changes.
    File(PathBuf),
}

#[derive(Debug)]
pub struct Clock {
    source: Source,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    latest: i64,
    /// Wall minus boot clock when it was last looked at.
    offset: i64,
    /// When the wall clock was set, and by how much.
    steps: Vec<(i64, i64)>,
    bits: Bits,
}

/// Where randomness comes from: the system, a block at a time, or a seed.
#[derive(Debug)]
enum Bits {
    System { block: Box<[u8; BLOCK]>, used: usize },
    Seeded(fastrand::Rng),
}

impl Clock {
    /// `LANYARD_CLOCK_FILE` and `LANYARD_SEED` replace the machine's time and randomness, for scenarios only.
    pub fn from_env() -> std::io::Result<Self> {
        let source = match std::env::var_os("LANYARD_CLOCK_FILE") {
            Some(path) => Source::File(path.into()),
            None => Source::Machine,
        };
        let bits = match std::env::var("LANYARD_SEED").ok().and_then(|seed| seed.parse().ok()) {
            Some(seed) => Bits::Seeded(fastrand::Rng::with_seed(seed)),
            None => Bits::system()?,
        };
        Ok(Self::new(source, bits))
    }

    fn new(source: Source, bits: Bits) -> Self {
        let (wall, boot) = read(&source);
        let state = State { latest: wall, offset: wall - boot, steps: Vec::new(), bits };
        Self { source, state: Mutex::new(state) }
    }

    /// Time never goes behind `at` from here on.
    pub fn not_before(&self, at: Timestamp) {
        let mut state = self.lock();
        state.latest = state.latest.max(at.as_millis());
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        let (wall, boot) = read(&self.source);
        let mut state = self.lock();
        state.look(wall, boot);
        Timestamp::from_millis(state.latest)
    }

    /// How long ago `since` really was, leaving out what the wall clock was set forward by in between.
    #[must_use]
    pub fn elapsed_ms(&self, since: Timestamp) -> u64 {
        let now = self.now();
        let state = self.lock();
        let forward: i64 = state
            .steps
            .iter()
            .filter(|(at, step)| *at >= since.as_millis() && *step > 0)
            .map(|(_, step)| step)
            .sum();
        now.millis_since(since).saturating_sub(forward.unsigned_abs())
    }

    /// The minute of the day it is then, where the daemon is.
    #[must_use]
    pub fn minute_of_day(&self, at: Timestamp) -> u32 {
        let Ok(at) = jiff::Timestamp::from_millisecond(at.as_millis()) else { return 0 };
        let time = at.to_zoned(jiff::tz::TimeZone::system()).time();
        u32::from(time.hour().unsigned_abs()) * 60 + u32::from(time.minute().unsigned_abs())
    }

    /// 128 random bits; from a seed when one was given.
    #[must_use]
    pub fn random(&self) -> u128 {
        self.lock().bits.next()
    }

    /// Whether time comes from a file: timers then look often, so that a scenario need not wait.
    #[must_use]
    pub fn is_scripted(&self) -> bool {
        matches!(self.source, Source::File(_))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Bits {
    fn system() -> std::io::Result<Self> {
        let mut block = Box::new([0; BLOCK]);
        getrandom::fill(&mut *block).map_err(std::io::Error::other)?;
        Ok(Self::System { block, used: 0 })
    }

    fn next(&mut self) -> u128 {
        match self {
            Self::Seeded(rng) => rng.u128(..),
            Self::System { block, used } => {
                if *used + 16 > BLOCK {
                    // Should the system stop giving, the old block is stretched: never the same bits twice.
                    if getrandom::fill(&mut **block).is_err() {
                        blake3::Hasher::new().update(&**block).finalize_xof().fill(&mut **block);
                    }
                    *used = 0;
                }
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&block[*used..*used + 16]);
                *used += 16;
                u128::from_be_bytes(bytes)
            }
        }
    }
}

impl State {
    fn look(&mut self, wall: i64, boot: i64) {
        let offset = wall - boot;
        let step = offset - self.offset;
        if step.abs() >= STEP_MIN_MS {
            if self.steps.len() == STEPS_MAX {
                self.steps.remove(0);
            }
            self.steps.push((wall, step));
        }
        self.offset = offset;
        self.latest = self.latest.max(wall);
    }
}

/// Nanoseconds since 1970 by the wall clock, for spans and records that go to a collector; nothing is decided by it.
pub(crate) fn unix_nanos() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.unsigned_abs())
}

/// Bits no other span has.
pub(crate) fn bits() -> u128 {
    let mut bytes = [0; 16];
    // A span without bits of its own is of no use to anybody, and does no harm.
    let _ = getrandom::fill(&mut bytes);
    u128::from_be_bytes(bytes)
}

/// Wall and boot clock in milliseconds.
fn read(source: &Source) -> (i64, i64) {
    match source {
        Source::Machine => (millis(ClockId::Realtime), millis(ClockId::Boottime)),
        Source::File(path) => {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let now = text.trim().parse().unwrap_or(0);
            (now, now)
        }
    }
}

fn millis(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeded(seed: u64) -> Bits {
        Bits::Seeded(fastrand::Rng::with_seed(seed))
    }

    fn state() -> State {
        State { latest: 1_000_000, offset: 900_000, steps: Vec::new(), bits: seeded(1) }
    }

    #[test]
    fn a_clock_set_back_does_not_take_recorded_time_back() {
        let mut state = state();
        state.look(400_000, 100_100);
        assert_eq!(state.latest, 1_000_000);
    }

    /// S1-B10.
    #[test]
    fn a_leap_forward_is_remembered_as_a_step_and_drift_is_not() {
        let mut state = state();
        state.look(1_000_500, 100_000);
        assert!(state.steps.is_empty());
        state.look(1_000_500 + 3_600_000, 100_000);
        assert_eq!(state.steps, [(4_600_500, 3_600_000)]);
    }

    #[test]
    fn quiet_time_leaves_out_the_leap() {
        let clock = Clock::new(Source::File("/nonexistent/clock".into()), seeded(1));
        clock.lock().steps.push((5_000, 3_600_000));
        clock.not_before(Timestamp::from_millis(3_610_000));
        assert_eq!(clock.elapsed_ms(Timestamp::from_millis(1_000)), 9_000);
        assert_eq!(clock.elapsed_ms(Timestamp::from_millis(3_609_000)), 1_000);
    }

    #[test]
    fn the_same_seed_gives_the_same_randomness() {
        let bits = || Clock::new(Source::Machine, seeded(7)).random();
        assert_eq!(bits(), bits());
    }

    /// S0-B08: ids hold 128 bits nobody can guess.
    #[test]
    fn unseeded_randomness_does_not_repeat_over_blocks() {
        let clock = Clock::new(Source::Machine, Bits::system().unwrap());
        let seen: std::collections::HashSet<u128> = (0..1_000).map(|_| clock.random()).collect();
        assert_eq!(seen.len(), 1_000);
    }
}
