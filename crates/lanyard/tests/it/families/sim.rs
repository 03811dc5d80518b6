//! A simulation: families of many tasks, while runs, their supervisors and the daemon are killed at moments of chance.
//!
//! What must hold in the end: every task has ended in a state that says why, every parent has every result exactly once,
//! nobody's id is another than before, and no worktree, process or unsettled message is left (S4-13 to S4-16, S4-20,
//! S4-B01, S4-B02, S4-B07, S4-B09, S4-B10).
//!
//! In CI it is small. To make it larger, or to repeat one:
//!
//! ```text
//! LANYARD_FAMILY_TASKS=300 LANYARD_FAMILY_KILLS=60 LANYARD_FAMILY_SEED=7 \
//!     cargo test -p lanyard --test it families::sim -- --nocapture
//! ```
//!
//! A seed repeats the families and the order of what is done to them. The moments are the machine's.

mod checks;
mod forest;
mod look;
mod people;
mod trouble;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::kit::Stage;
use forest::Forest;
use look::Seen;
use people::People;
use trouble::Trouble;

/// Tasks and kills in CI.
const TASKS: usize = 40;
const KILLS: usize = 10;
/// Places to work at; so few that families wait for each other.
const PLACES: u32 = 8;
/// Nothing may change for so long before it counts as stuck.
const STUCK: Duration = Duration::from_mins(1);
/// How much of each open task a failure shows.
const SESSION_LINES: usize = 40;
const LINE_CHARS: usize = 400;
/// Between two looks.
const PAUSE_MS: u64 = 40;

const RULES: &str = "\
    [families]\nplan_concurrency = 5\nconcurrency = PLACES\nbreadth = 100\nspawns_per_minute = 10000\nbudget = 10000\n\
    [health]\nrestarts = 50\n\
    [stop]\ngraceful_ms = 1500\nimmediate_ms = 1500\n";

/// One that died before it wrote down its conversation begins it anew from the log.
const AGENT: &str = "resume = [\"native\", \"preamble\"]";

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What the simulation goes by.
struct Sim {
    stage: Stage,
    seed: u64,
    random: fastrand::Rng,
    seen: Seen,
    /// What happened, for whoever looks at a failure.
    diary: Vec<String>,
}

impl Sim {
    /// A request that may find nobody, or somebody who dies of it.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Option<crate::support::Answer> {
        let body = body.map(ToString::to_string);
        let path = format!("/api/v1{path}");
        self.stage.daemon.caller().try_request(method, &path, &[], body.as_deref()).ok()
    }

    fn post(&self, path: &str, body: &Value) -> Option<crate::support::Answer> {
        self.ask("POST", path, Some(body))
    }

    /// Every page of a listing; nothing when nobody answers.
    fn all(&self, path: &str, field: &str) -> Option<Vec<Value>> {
        let mut rows = Vec::new();
        let mut cursor = String::new();
        loop {
            let answer = self.ask("GET", &format!("{path}{cursor}"), None)?;
            assert_eq!(answer.status, 200, "seed {}: {path}: {}", self.seed, answer.text());
            let page = answer.json();
            rows.extend(page[field].as_array()?.iter().cloned());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Some(rows),
            }
        }
    }

    fn note(&mut self, what: String) {
        if std::env::var_os("LANYARD_FAMILY_SEED").is_some() {
            eprintln!("{what}");
        }
        self.diary.push(what);
    }

    /// Ends the test with all there is to know.
    fn fail(&self, what: &str) -> ! {
        let open: Vec<String> = self.seen.open().map(|task| self.about(task)).collect();
        let (diary, seed) = (self.diary.join("\n"), self.seed);
        panic!("{what}\nrepeat with LANYARD_FAMILY_SEED={seed}\n{diary}\nopen:\n{}", open.join("\n"));
    }

    /// A task that has not ended, with its mail, its log and the end of its session's.
    fn about(&self, task: &Value) -> String {
        let fields = ["id", "title", "state", "reason", "ending", "session", "held", "mail", "open_children"];
        let mut lines = vec![fields.map(|field| task[field].to_string()).join(" ")];
        let name = task["id"].as_str().unwrap_or_default();
        let mail = self.all(&format!("/mail?box={name}&limit=100"), "mail").unwrap_or_default();
        lines.extend(mail.iter().map(ToString::to_string));
        let log = self.ask("GET", &format!("/tasks/{name}/log?limit=500"), None).map(|log| log.json());
        let log = log.and_then(|log| log["events"].as_array().cloned()).unwrap_or_default();
        lines.extend(
            log.iter().skip(1).map(|event| format!("{} {} {}", event["at"], event["type"], event["data"])),
        );
        if let Some(session) = task["session"].as_str().filter(|_| self.stage.daemon.is_alive()) {
            let log = self.stage.daemon.log_after(session, 0);
            let last = &log[log.len().saturating_sub(SESSION_LINES)..];
            lines.extend(
                last.iter().map(|event| format!("  {} {} {}", event["at"], event["type"], event["data"])),
            );
        }
        lines
            .iter()
            .map(|line| line.chars().take(LINE_CHARS).collect::<String>())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

#[test]
fn families_come_through_kills_at_any_moment() {
    let seed = u64::try_from(number("LANYARD_FAMILY_SEED", 20_261_115)).unwrap();
    let (tasks, kills) = (number("LANYARD_FAMILY_TASKS", TASKS), number("LANYARD_FAMILY_KILLS", KILLS));
    let mut forest = Forest::new(seed, tasks);
    let stage = Stage::with_agent(&RULES.replace("PLACES", &PLACES.to_string()), AGENT);
    let random = fastrand::Rng::with_seed(seed.wrapping_add(1));
    let mut sim = Sim { stage, seed, random, seen: Seen::default(), diary: Vec::new() };
    let mut trouble = Trouble::new(kills, tasks);
    let mut people = People::new(tasks);
    let began = Instant::now();
    let (mut changed, mut events) = (Instant::now(), 0);
    while !(forest.is_planted(&sim) && sim.seen.all_ended() && people.are_done()) {
        forest.plant(&mut sim);
        trouble.step(&mut sim);
        if sim.look() {
            people.step(&mut sim);
        }
        if sim.seen.events() != events {
            (changed, events) = (Instant::now(), sim.seen.events());
        }
        if changed.elapsed() > STUCK {
            sim.fail("nothing changes any more, and not all tasks have ended");
        }
        // sleep: between two looks at families at work.
        std::thread::sleep(Duration::from_millis(PAUSE_MS));
    }
    // One without a place to die at.
    sim.stage.up();
    checks::all(&mut sim);
    eprintln!("seed {seed}: {} tasks, {} in {:?}", sim.seen.len(), trouble.told(), began.elapsed());
    sim.post("/halt", &json!({}));
}
