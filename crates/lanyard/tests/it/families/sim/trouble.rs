//! What goes wrong in a simulation: agents, supervisors and daemons are killed, daemons end in order or at a named place.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lanyard_base::failpoint::{OF_AGENTS, OF_CALLS, OF_FAMILIES};

use super::Sim;
use crate::families::kit::kill_9;

/// At least and at most so much time between two of them, in milliseconds.
const APART_MS: std::ops::Range<u64> = 50..900;

pub(super) struct Trouble {
    kills: usize,
    tasks: usize,
    next: Instant,
    done: BTreeMap<&'static str, usize>,
}

impl Trouble {
    pub(super) fn new(kills: usize, tasks: usize) -> Self {
        Self { kills, tasks, next: Instant::now(), done: BTreeMap::new() }
    }

    pub(super) fn told(&self) -> String {
        let kinds: Vec<String> = self.done.iter().map(|(kind, times)| format!("{times} {kind}")).collect();
        format!("{} kills ({})", self.count(), kinds.join(", "))
    }

    fn count(&self) -> usize {
        self.done.values().sum()
    }

    /// A daemon that died comes back. Kills are spread over the tasks: as many of them as tasks have ended.
    pub(super) fn step(&mut self, sim: &mut Sim) {
        if !sim.stage.daemon.is_alive() {
            sim.note("the daemon is dead, and comes back".to_owned());
            sim.stage.up();
        }
        let due = (sim.seen.ended() + 1) * self.kills > self.count() * self.tasks;
        if self.count() >= self.kills || !due || Instant::now() < self.next || sim.seen.len() == 0 {
            return;
        }
        self.next = Instant::now() + Duration::from_millis(sim.random.u64(APART_MS));
        let kind = strike(sim);
        if let Some(kind) = kind {
            *self.done.entry(kind).or_default() += 1;
        }
    }
}

fn strike(sim: &mut Sim) -> Option<&'static str> {
    match sim.random.u8(..20) {
        0..=4 => {
            sim.note("kill -9 of the daemon".to_owned());
            sim.stage.up();
            Some("daemons")
        }
        5..=9 => kill_one(sim, " scripted-agent ").then_some("agents"),
        10..=12 => kill_one(sim, " shim ").then_some("shims"),
        13 | 14 => {
            sim.note("kill -9 of the daemon, and of runs while it is away".to_owned());
            sim.stage.daemon.kill_9();
            kill_one(sim, " shim ");
            kill_one(sim, " scripted-agent ");
            sim.stage.up();
            Some("daemons with runs")
        }
        15 => {
            sim.note("the daemon ends in order".to_owned());
            assert!(sim.stage.daemon.terminate().success(), "seed {}", sim.seed);
            sim.stage.up();
            Some("ends in order")
        }
        _ => {
            let places: Vec<&str> =
                OF_FAMILIES.iter().chain(&OF_FAMILIES).chain(&OF_AGENTS).chain(&OF_CALLS).copied().collect();
            let place = sim.random.choice(places)?;
            let place = format!("{place}:{}", sim.random.u8(1..6));
            sim.note(format!("a daemon that is to die at {place}"));
            sim.stage.up_to(&place);
            Some("named places")
        }
    }
}

/// Kills one of those whose command line has this word; answers whether there was one.
fn kill_one(sim: &mut Sim, word: &str) -> bool {
    let mut found = sim.stage.marked();
    found.retain(|(_, line)| line.contains(word));
    found.sort_unstable();
    let Some((pid, _)) = sim.random.choice(found) else { return false };
    sim.note(format!("kill -9 of{word}{pid}"));
    kill_9(pid);
    true
}
