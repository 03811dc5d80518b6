//! The only file that reads a clock or makes random ids. Everything else gets time and ids as data.
//!
//! Recorded times follow the wall clock but never go back, neither when it is set back nor behind what the journal
//! already holds. They never stand still either: while they are ahead of the wall clock, the boot clock counts them on,
//! one part in a hundred slower, until the two agree again. So every deadline is reached, whatever the wall clock does
//! (docs/decisions/0031-time-that-never-stands-still.md). How long something has been quiet is counted without the steps
//! the wall clock was set forward by while the daemon ran: a clock that leaps a year ahead does not make every
//! session stale.

use parking_lot::Mutex;
use std::path::PathBuf;

use lanyard_core::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// Time that is ahead of the wall clock gives up one part in this many. A deadline is at most that much late.
const SLEW_PARTS: i64 = 100;
/// Time ahead of the wall clock by less than this is drift, and so is a leap between two looks.
const STEP_MIN_MS: i64 = 2_000;
/// Random bytes taken from the system at once, so that an id does not cost a system call.
const BLOCK: usize = 4_096;
/// A clock that counts time asleep and that nobody sets. Other systems' monotonic clock goes on while they sleep.
#[cfg(target_os = "linux")]
const BOOT_CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const BOOT_CLOCK: ClockId = ClockId::Monotonic;
/// Steps remembered; a machine whose clock is set more often than this loses the oldest correction.
const STEPS_MAX: usize = 64;

/// Where time comes from.
#[derive(Debug)]
enum Source {
    /// The machine's clocks. The boot clock counts time asleep too, and is never set.
    Machine,
    /// Milliseconds in a file, for scenarios: time moves when the file changes. A second number is the boot clock; without
    /// one it goes with the first.
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
    /// The boot clock when it was last looked at.
    boot: i64,
    /// Milliseconds spent ahead of the wall clock that nothing was given up for yet.
    unslewed: i64,
    /// Whether `latest` is ahead of the wall clock by more than drift.
    ahead: bool,
    /// Leaps forward: when they were over, and by how much.
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
        let (wall, boot) = read(&source).unwrap_or_default();
        let state = State { latest: wall, boot, unslewed: 0, ahead: false, steps: Vec::new(), bits };
        Self { source, state: Mutex::new(state) }
    }

    /// Time never goes behind `at` from here on.
    pub fn not_before(&self, at: Timestamp) {
        let mut state = self.lock();
        state.latest = state.latest.max(at.as_millis());
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        let read = read(&self.source);
        let mut state = self.lock();
        if let Some((wall, boot)) = read {
            state.look(wall, boot);
        }
        Timestamp::from_millis(state.latest)
    }

    /// The wall clock as it is: for times that others tell, never for times that are recorded.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        let wall = read(&self.source).map(|(wall, _)| wall);
        Timestamp::from_millis(wall.unwrap_or_else(|| self.lock().latest))
    }

    /// How long ago `since` really was, leaving out what the wall clock was set forward by in between.
    #[must_use]
    pub fn elapsed_ms(&self, since: Timestamp) -> u64 {
        let now = self.now();
        let state = self.lock();
        let forward: i64 =
            state.steps.iter().filter(|(at, _)| *at >= since.as_millis()).map(|(_, step)| step).sum();
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

    fn lock(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
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
        let passed = (boot - self.boot).max(0);
        self.boot = self.boot.max(boot);
        let counted = self.latest + passed;
        if wall >= counted {
            self.leapt(wall, wall - counted);
            self.unslewed = 0;
            self.latest = wall;
        } else {
            self.unslewed += passed;
            let given_up = self.unslewed / SLEW_PARTS;
            self.unslewed %= SLEW_PARTS;
            self.latest = wall.max(counted - given_up);
        }
        let ahead = self.latest - wall >= STEP_MIN_MS;
        if ahead && !self.ahead {
            let ahead_ms = self.latest - wall;
            tracing::warn!(ahead_ms, "recorded time is ahead of the wall clock; the boot clock counts it on");
        }
        self.ahead = ahead;
    }

    fn leapt(&mut self, to: i64, by: i64) {
        if by < STEP_MIN_MS {
            return;
        }
        if self.steps.len() == STEPS_MAX {
            self.steps.remove(0);
        }
        self.steps.push((to, by));
    }
}

/// Nanoseconds since 1970 by the wall clock, for spans and records that go to a collector; nothing is decided by it.
#[must_use]
pub fn unix_nanos() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.unsigned_abs())
}

/// Bits no other span has.
#[must_use]
pub fn bits() -> u128 {
    let mut bytes = [0; 16];
    // A span without bits of its own is of no use to anybody, and does no harm.
    let _ = getrandom::fill(&mut bytes);
    u128::from_be_bytes(bytes)
}

/// Wall and boot clock in milliseconds; nothing while the file is missing or being written.
fn read(source: &Source) -> Option<(i64, i64)> {
    match source {
        Source::Machine => Some((millis(ClockId::Realtime), millis(BOOT_CLOCK))),
        Source::File(path) => {
            let text = std::fs::read_to_string(path).ok()?;
            let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
            let wall = numbers.next()??;
            Some((wall, numbers.next().unwrap_or(Some(wall))?))
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
        State {
            latest: 1_000_000,
            boot: 100_000,
            unslewed: 0,
            ahead: false,
            steps: Vec::new(),
            bits: seeded(1),
        }
    }

    #[test]
    fn a_clock_set_back_does_not_take_recorded_time_back() {
        let mut state = state();
        state.look(400_000, 100_000);
        assert_eq!(state.latest, 1_000_000);
    }

    /// FND-K5. A deadline is reached by the boot clock when the wall clock was ahead and is put right.
    #[test]
    fn fnd_k5_time_goes_on_after_a_clock_that_was_ahead_is_put_right() {
        let mut state = state();
        // Looked at every 10 ms for 30 s, an hour behind.
        for look in 1..=3_000 {
            let before = state.latest;
            state.look(1_000_000 - 3_600_000 + look * 10, 100_000 + look * 10);
            assert!(state.latest > before, "time stands still at look {look}");
        }
        assert_eq!(state.latest, 1_000_000 + 29_700);
    }

    /// FND-K5. Recorded time is given back slowly until the wall clock has caught up, and then follows it.
    #[test]
    fn fnd_k5_time_that_is_ahead_comes_back_to_the_wall_clock() {
        let mut state = state();
        let wall = |passed: i64| 1_000_000 - 60_000 + passed;
        state.look(wall(0), 100_000);
        for passed in (1_000..=6_000_000).step_by(1_000) {
            state.look(wall(passed), 100_000 + passed);
        }
        assert_eq!(state.latest, wall(6_000_000), "a minute is given back in a hundred minutes");
        state.look(wall(6_001_000), 100_000 + 6_001_000);
        assert_eq!(state.latest, wall(6_001_000));
        assert!(state.steps.is_empty(), "nothing leapt: {:?}", state.steps);
    }

    /// FND-K5. What the journal holds may be ahead of the wall clock at the start, too.
    #[test]
    fn fnd_k5_a_daemon_that_starts_behind_its_journal_counts_on_from_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock");
        std::fs::write(&path, "5000 100").unwrap();
        let clock = Clock::new(Source::File(path.clone()), seeded(1));
        clock.not_before(Timestamp::from_millis(3_600_000));
        std::fs::write(&path, "15000 10100").unwrap();
        assert_eq!(clock.now(), Timestamp::from_millis(3_600_000 + 9_900));
        std::fs::write(&path, "9000000 20100").unwrap();
        assert_eq!(clock.now(), Timestamp::from_millis(9_000_000), "the wall clock is ahead again");
    }

    /// A file that is being written is empty or cut short for a moment; time stands still meanwhile and does not leap.
    #[test]
    fn a_clock_file_that_is_half_written_keeps_the_last_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock");
        std::fs::write(&path, "1794729630000").unwrap();
        let clock = Clock::new(Source::File(path.clone()), seeded(1));
        for half in ["", "17947", "-", "1794729630000 x"] {
            std::fs::write(&path, half).unwrap();
            assert_eq!(clock.now(), Timestamp::from_millis(1_794_729_630_000), "{half:?}");
            std::fs::write(&path, "1794729630000").unwrap();
            assert_eq!(clock.now(), Timestamp::from_millis(1_794_729_630_000), "after {half:?}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(clock.now(), Timestamp::from_millis(1_794_729_630_000), "without a file");
        std::fs::write(&path, "1794729631000").unwrap();
        assert_eq!(clock.now(), Timestamp::from_millis(1_794_729_631_000));
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
