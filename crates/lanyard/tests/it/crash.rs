//! The crash suite: the real daemon under concurrent clients, ended with SIGKILL at named places and at any moment,
//! hundreds of times. After every restart: what was acknowledged is there exactly once, positions have no gaps and are
//! never used twice, and nothing is there by half (S0-23, S3-B01, S3-B05, S4-B06).
//!
//! `LANYARD_KILLS=N` asks for N kills in all, `LANYARD_CRASH_SEED=N` repeats a run.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Answer, Caller, Daemon, Setup};

const KILLS: u64 = 240;
/// Suites that run side by side, each with a daemon of its own.
const LANES: u64 = 4;
/// Clients that send at the same time.
const CLIENTS: usize = 4;
/// Sessions one round works on.
const SESSIONS: usize = 6;
/// A failpoint that does not come up in this time is replaced by a kill from outside. The clients write until the daemon
/// dies, so only a machine that is far too busy gets here.
const ROUND_MAX: Duration = Duration::from_secs(10);

const PLACES: [&str; 8] = [
    "before_append",
    "before_commit",
    "after_commit",
    "after_append",
    "after_publish",
    "checkpoint",
    "anytime",
    "anytime",
];

#[test]
fn lane_1_keeps_what_it_acknowledged() {
    lane(0);
}

#[test]
fn lane_2_keeps_what_it_acknowledged() {
    lane(1);
}

#[test]
fn lane_3_keeps_what_it_acknowledged() {
    lane(2);
}

#[test]
fn lane_4_keeps_what_it_acknowledged() {
    lane(3);
}

/// A journal is made by steps; dying at each of them, and just before and after, leaves one that can be opened.
#[test]
fn a_migration_that_is_killed_is_taken_up_where_it_was() {
    for at in 1.. {
        let mut daemon =
            Daemon::prepare(Setup::default().env("LANYARD_FAILPOINT", format!("migration:{at}")));
        if daemon.try_start().is_ok() {
            assert!(at > 4, "only {} places in a migration", at - 1);
            return;
        }
        daemon.restart_with(Setup::default());
        let made = daemon.request("POST", "/api/v1/sessions", &[], Some("{}"));
        assert_eq!(made.status, 201, "{}", made.text());
        assert_eq!(check(&daemon)["damage"], serde_json::json!([]));
    }
}

fn lane(number: u64) {
    let kills =
        std::env::var("LANYARD_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS).div_ceil(LANES);
    let seed =
        std::env::var("LANYARD_CRASH_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(20_261_115) + number;
    eprintln!("repeat with LANYARD_CRASH_SEED={}", seed - number);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut daemon = Daemon::start(Setup::default());
    let mut known = Known::default();
    let mut died_at: BTreeMap<&str, u32> = BTreeMap::new();
    let mut places = PLACES;
    for kill in 0..kills {
        // Each place once in every eight kills, in an order of their own: left to chance alone, one of them may never come.
        let turn = usize::try_from(kill).unwrap() % places.len();
        if turn == 0 {
            random.shuffle(&mut places);
        }
        let place = places[turn];
        known.renew_sessions(&daemon, &mut random);
        daemon.kill_9();
        // It may die while it starts, settling the turns the last crash left.
        let started = daemon.try_restart_with(armed(place, &mut random)).is_ok();
        let tried = if started { round(&daemon, &known, &mut random, place) } else { Vec::new() };
        *died_at.entry(place).or_default() += u32::from(!daemon.is_alive());
        daemon.kill_9();
        daemon.restart_with(Setup::default());
        known.settle(&daemon, tried);
        sound(&daemon);
        if kill % 20 == 19 || kill + 1 == kills {
            known.verify(&daemon);
        }
    }
    eprintln!("lane {number}: {kills} kills, {} commands acknowledged, {died_at:?}", known.acknowledged);
    if kills >= 50 {
        for place in PLACES {
            assert!(died_at.get(place).is_some_and(|died| *died > 0), "never died at {place}: {died_at:?}");
        }
    }
    assert!(known.acknowledged > kills, "hardly anything was acknowledged: the suite proves nothing");
}

fn armed(place: &str, random: &mut fastrand::Rng) -> Setup {
    match place {
        "anytime" => Setup::default(),
        // In the middle of a checkpoint: it takes a few hundred microseconds.
        "checkpoint" => Setup::default()
            .env("LANYARD_CHECKPOINT_PAGES", "8")
            .env("LANYARD_FAILPOINT", format!("checkpoint:{}+{}", random.u32(1..4), random.u32(0..800))),
        place => Setup::default().env("LANYARD_FAILPOINT", format!("{place}:{}", random.u32(1..24))),
    }
}

/// One command as it was sent.
#[derive(Debug, Clone)]
struct Sent {
    key: String,
    path: String,
    body: String,
    /// What was answered, if anything was.
    answer: Option<(u16, Value)>,
}

/// Lets the clients work until the daemon dies.
fn round(daemon: &Daemon, known: &Known, random: &mut fastrand::Rng, place: &str) -> Vec<Sent> {
    let over = AtomicBool::new(false);
    let all = Mutex::new(Vec::new());
    let patience =
        if place == "anytime" { Duration::from_micros(random.u64(500..60_000)) } else { ROUND_MAX };
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let (caller, mut random) = (daemon.caller(), random.fork());
            let (over, all, sessions) = (&over, &all, &known.sessions);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let mut sent = command(&mut random, sessions);
                    let answer = send(&caller, &sent);
                    let alive = answer.is_some();
                    sent.answer = answer.map(|answer| (answer.status, answer.json()));
                    all.lock().unwrap().push(sent);
                    if !alive {
                        return;
                    }
                }
            });
        }
        let since = Instant::now();
        while since.elapsed() < patience && daemon.is_alive() {
            // sleep: the round lasts until the daemon dies or its time is over.
            std::thread::sleep(Duration::from_micros(200));
        }
        if place == "anytime" {
            // Waits for the end: a process that still ends would count as one that did not die.
            daemon.kill_9();
        }
        over.store(true, Ordering::Relaxed);
    });
    all.into_inner().unwrap()
}

fn send(caller: &Caller, sent: &Sent) -> Option<Answer> {
    caller.try_request("POST", &sent.path, &[("idempotency-key", &sent.key)], Some(&sent.body)).ok()
}

fn command(random: &mut fastrand::Rng, sessions: &[String]) -> Sent {
    let session = &sessions[random.usize(..sessions.len())];
    let other = &sessions[random.usize(..sessions.len())];
    let (path, body) = match random.u32(0..24) {
        0 => ("/api/v1/sessions".to_owned(), format!(r#"{{"title":"child","parent":"{other}"}}"#)),
        1..=4 => (format!("/api/v1/sessions/{session}/turns"), r#"{"prompt":"go"}"#.to_owned()),
        5..=8 => {
            let body = r#"{"type":"turn_finished","outcome":"completed"}"#.to_owned();
            (format!("/api/v1/sessions/{session}/signals"), body)
        }
        9 => (format!("/api/v1/sessions/{session}/guidance"), r#"{"text":"mind the gap"}"#.to_owned()),
        10 => (format!("/api/v1/sessions/{session}/checkpoints"), "{}".to_owned()),
        _ => {
            let text = "x".repeat(random.usize(1..2_000));
            let body = format!(r#"{{"type":"said","role":"agent","text":"{text}"}}"#);
            (format!("/api/v1/sessions/{session}/signals"), body)
        }
    };
    Sent { key: format!("{:032x}", random.u128(..)), path, body, answer: None }
}

/// What must be true of the daemon's journal.
#[derive(Default)]
struct Known {
    /// The sessions the clients work on now.
    sessions: Vec<String>,
    acknowledged: u64,
    /// Every event ever seen, in order, by session.
    logs: BTreeMap<String, Vec<Value>>,
    /// Where the events of each key are.
    caused: HashMap<String, Vec<(String, usize)>>,
    /// How many events each key that was carried out has.
    expected: HashMap<String, usize>,
}

impl Known {
    fn renew_sessions(&mut self, daemon: &Daemon, random: &mut fastrand::Rng) {
        while self.sessions.len() < SESSIONS || random.u32(0..4) == 0 {
            let made = daemon.request("POST", "/api/v1/sessions", &[], Some(r#"{"title":"root"}"#));
            assert_eq!(made.status, 201, "{}", made.text());
            self.sessions.push(made.json()["session"].as_str().unwrap().to_owned());
        }
        let surplus = self.sessions.len().saturating_sub(SESSIONS);
        self.sessions.drain(..surplus);
    }

    /// Reads what is new in the sessions of this round, and in the children they got.
    fn refresh(&mut self, daemon: &Daemon) {
        let mut todo = self.sessions.clone();
        while let Some(session) = todo.pop() {
            let log = self.logs.entry(session.clone()).or_default();
            for event in daemon.log_after(&session, log.len() as u64) {
                assert_eq!(event["seq"], log.len() as u64 + 1, "a gap in {session}: {event}");
                if event["type"] == "session.child_linked" {
                    todo.push(event["data"]["child"].as_str().unwrap().to_owned());
                }
                if let Some(key) = event["cause"]["request"].as_str() {
                    self.caused.entry(key.to_owned()).or_default().push((session.clone(), log.len()));
                }
                log.push(event);
            }
        }
    }

    /// The events of a key that changed something, and those that only tell of a refusal.
    fn count(&self, key: &str) -> (usize, usize) {
        let places = self.caused.get(key).map_or(&[][..], Vec::as_slice);
        let events = places.iter().map(|(session, at)| &self.logs[session][*at]);
        let refusals = events.filter(|event| event["type"] == "command.refused").count();
        (places.len() - refusals, refusals)
    }

    /// Repeats everything. With the same key it must have one outcome, whether it was carried out before the crash or
    /// is now.
    fn settle(&mut self, daemon: &Daemon, tried: Vec<Sent>) {
        self.refresh(daemon);
        let caller = daemon.caller();
        let mut repeated = Vec::new();
        for sent in tried {
            let before = self.count(&sent.key).0;
            let again = send(&caller, &sent).expect("the daemon answers again");
            repeated.push((sent, before, again));
        }
        self.refresh(daemon);
        for (sent, before, again) in repeated {
            self.judge(&sent, before, &again);
        }
    }

    fn judge(&mut self, sent: &Sent, before: usize, again: &Answer) {
        let (replayed, outcome) = (again.header("idempotent-replayed").is_some(), again.json());
        let now = self.count(&sent.key).0;
        match &sent.answer {
            Some((200..=299, first)) => {
                self.acknowledged += 1;
                assert!(replayed, "an acknowledged command was carried out again: {sent:?} {outcome}");
                assert_eq!(kept(&outcome), kept(first), "another outcome than the first: {sent:?}");
                assert_eq!(before, now, "a repeat wrote something: {sent:?}");
            }
            Some(_) | None if replayed => {
                assert!(sent.answer.is_none(), "a refusal was carried out: {sent:?}");
                assert_eq!(before, now, "a repeat wrote something: {sent:?}");
            }
            // Refused, or lost before it was carried out: then nothing of it may be there.
            Some(_) | None => {
                assert!(again.status < 500, "{sent:?} {outcome}");
                assert_eq!(before, 0, "there by half: {sent:?}");
            }
        }
        let whole = match again.status {
            200..=299 => {
                let own = usize::try_from(outcome["events"].as_u64().unwrap()).unwrap();
                // A child's birth is told in its parent's log too.
                own + usize::from(sent.body.contains("\"parent\""))
            }
            _ => 0,
        };
        assert_eq!(now, whole, "not there as a whole: {sent:?} {outcome}");
        self.expected.insert(sent.key.clone(), whole);
    }

    /// Reads every log from its beginning and compares it with all that was ever seen of it.
    fn verify(&mut self, daemon: &Daemon) {
        for (session, seen) in &self.logs {
            let log = daemon.log_after(session, 0);
            assert!(log.len() >= seen.len(), "the log of {session} got shorter");
            for (at, event) in log.iter().enumerate() {
                assert_eq!(event["seq"], at as u64 + 1, "a gap in {session}: {event}");
                // A turn that was running when its session was last looked at has been settled by a restart since.
                match seen.get(at) {
                    Some(first) => assert_eq!(event, first, "a position of {session} was used twice"),
                    None => assert_eq!(event["actor"]["name"], "boot", "{event}"),
                }
            }
        }
        for (key, whole) in &self.expected {
            assert_eq!(self.count(key).0, *whole, "events of {key}");
        }
    }
}

/// The journal holds together, as `lanyard doctor` would judge it.
fn sound(daemon: &Daemon) {
    let report = check(daemon);
    assert_eq!(report["damage"], serde_json::json!([]), "{report}");
    assert_eq!(report["structure"], serde_json::json!([]), "{report}");
}

/// The outcome that is kept. What has become of a turn since is told beside it, and is another thing later.
fn kept(answer: &Value) -> Value {
    let mut outcome = answer.clone();
    if let Some(members) = outcome.as_object_mut() {
        members.retain(|name, _| !["result", "turn_status", "log"].contains(&name.as_str()));
    }
    outcome
}

fn check(daemon: &Daemon) -> Value {
    daemon.request("GET", "/api/v1/check", &[], None).json()
}
