//! Ending everything of a run: TERM, a grace, then KILL, again and again until nothing lives.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::{EndedBy, Identity, Process, ProcessEnd, RunScope, look, now_ms, send};

/// Listed in a receipt; a fork bomb should not fill the disk with names.
const LISTED_MAX: usize = 1_000;
/// Between two looks at what is left: at first, and at most.
const PAUSE_MIN_MS: u64 = 4;
const PAUSE_MAX_MS: u64 = 100;
/// The part of the grace, as its divisor, in which a terminal's processes have only its hangup.
const HANGUP_PART: u64 = 3;
/// How long a sweep waits after the first KILL. What lives then hangs in the kernel or is not ours to kill.
pub(super) const KILL_PATIENCE_MS: u64 = 10_000;

/// Between two looks at what is left: longer each time.
#[derive(Debug)]
pub(super) struct Pace(u64);

impl Default for Pace {
    fn default() -> Self {
        Self(PAUSE_MIN_MS)
    }
}

impl Pace {
    /// Milliseconds to the next look, which is no later than the moment of KILL.
    pub(super) fn next(&mut self, now: u64, kill_at: u64) -> u64 {
        let pause = self.0;
        self.0 = (pause * 2).min(PAUSE_MAX_MS);
        if now < kill_at { pause.min(kill_at - now).max(1) } else { pause }
    }
}

#[derive(Debug)]
pub(crate) struct RunEnding {
    scope: RunScope,
    kill_at: u64,
    next_at: u64,
    pause: u64,
    /// Until then the hangup of the terminal is all that is told.
    term_at: u64,
    /// Who was told what last, and where it stands in the list if it does.
    told: HashMap<(u32, u64), (EndedBy, Option<usize>)>,
    listed: Vec<ProcessEnd>,
    /// The keeper of a sandbox: it ends by itself once all in it has, and takes all along when it is ended.
    keeper: Option<u32>,
}

impl RunEnding {
    pub(crate) fn new(scope: RunScope, now: u64, grace_ms: u64) -> Self {
        Self {
            scope,
            kill_at: now.saturating_add(grace_ms),
            next_at: now,
            pause: PAUSE_MIN_MS,
            term_at: now,
            told: HashMap::new(),
            listed: Vec::new(),
            keeper: None,
        }
    }

    /// With a process that is not told to end before KILL.
    pub(crate) fn sparing(self, keeper: Option<u32>) -> Self {
        Self { keeper, ..self }
    }

    /// With the hangup of the terminal first, for a part of the grace: shells heed it where they ignore TERM, and editors
    /// save what they have.
    pub(crate) fn hanging_up(self, now: u64) -> Self {
        let term_at = now + self.kill_at.saturating_sub(now) / HANGUP_PART;
        Self { term_at, ..self }
    }

    /// A shorter grace counts from now; a longer one changes nothing.
    pub(crate) fn hasten(&mut self, now: u64, grace_ms: u64) {
        self.kill_at = self.kill_at.min(now.saturating_add(grace_ms));
        self.term_at = self.term_at.min(self.kill_at);
        self.look_again(now);
    }

    /// Something happened that may have ended a process.
    pub(crate) fn look_again(&mut self, now: u64) {
        self.next_at = now;
        self.pause = PAUSE_MIN_MS;
    }

    /// When `step` wants to be called next.
    pub(crate) fn next_at(&self) -> u64 {
        self.next_at
    }

    /// Tells what lives to end. Returns how many still do.
    pub(crate) fn step(&mut self, now: u64) -> io::Result<usize> {
        // Set before anything can fail, or a table that cannot be read would be read without pause.
        self.next_at = now + self.pause;
        let members = self.scope.members()?;
        let kill = now >= self.kill_at;
        let by = if now >= self.term_at { EndedBy::Term } else { EndedBy::Hangup };
        for process in &members {
            let told = self.told.get(&(process.pid, process.start)).map(|(told, _)| *told);
            match (kill, told) {
                (true, _) => self.tell(process, EndedBy::Kill),
                (false, None) if self.keeper == Some(process.pid) => {}
                (false, Some(told)) if told == by => {}
                (false, _) => self.tell(process, by),
            }
        }
        let turn = [self.term_at, self.kill_at].into_iter().find(|turn| *turn > now);
        if let Some(turn) = turn.filter(|turn| self.next_at >= *turn) {
            self.next_at = turn;
            self.pause = PAUSE_MIN_MS;
        } else {
            self.pause = (self.pause * 2).min(PAUSE_MAX_MS);
        }
        if kill {
            // The last step: what starts others faster than it is found ends with them.
            self.scope.kill_group();
        }
        Ok(members.len().max(usize::from(self.scope.holds_on())))
    }

    fn tell(&mut self, process: &Process, by: EndedBy) {
        // Not permitted: a process that changed its user. It stays in the scope, and the run is not over.
        if !matches!(send(process, by.signal()), Ok(true)) {
            return;
        }
        let room = self.listed.len() < LISTED_MAX;
        let listed = &mut self.listed;
        let (told, place) = self.told.entry((process.pid, process.start)).or_insert_with(|| {
            let place = room.then(|| {
                listed.push(ProcessEnd { pid: process.pid, name: process.name.clone(), by });
                listed.len() - 1
            });
            (by, place)
        });
        *told = by;
        if let Some(entry) = place.and_then(|at| self.listed.get_mut(at)) {
            entry.by = by;
        }
    }

    /// Who was ended, and how many more than are listed.
    pub(crate) fn receipt(self) -> (Vec<ProcessEnd>, u64) {
        let more = self.told.len() - self.listed.len();
        (self.listed, more as u64)
    }
}

/// Ends everything of a run whose shim is gone or does not answer, and the shim last: as long as it lives, whoever
/// loses a parent becomes its child. Blocks.
pub fn end_and_wait(
    run: &str,
    shim: Option<&Identity>,
    agent: Option<&Identity>,
    group: Option<PathBuf>,
    grace: Duration,
) -> io::Result<(Vec<ProcessEnd>, u64)> {
    let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
    let begun = now_ms();
    let scope = RunScope::new(run, shim.cloned(), agent.cloned()).in_group(group);
    let mut ending = RunEnding::new(scope, begun, grace_ms);
    let give_up = begun.saturating_add(grace_ms).saturating_add(KILL_PATIENCE_MS);
    loop {
        let now = now_ms();
        let left = ending.step(now)?;
        if left == 0 {
            // Nothing lives but, perhaps, a shim that hangs.
            let Some(last) = shim.filter(|shim| shim.is_alive()).and_then(|shim| look(shim.pid)) else {
                return Ok(ending.receipt());
            };
            ending.tell(&last, EndedBy::Kill);
        } else if now > give_up {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("{left} processes of {run} do not end, not even by SIGKILL"),
            ));
        }
        std::thread::sleep(Duration::from_millis(ending.next_at().saturating_sub(now).max(1)));
    }
}
