//! A disk that misbehaves under the real daemon: no panic, nothing acknowledged is lost, nothing damaged is shown as
//! if it were whole (S1-B08, S0-24).
//!
//! The faults come from a small library (`faults.c`) that is loaded into the daemon and changes what the system
//! answers to writes and syncs of the journal.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::support::{Answer, Daemon, PATIENCE, Setup};

/// What writes and syncs do, as `faults.c` reads it.
type Weather = [u8; 2];
const FINE: Weather = [0, 0];

/// The library, built once.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults.c");
        let library =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{}.so", std::process::id()));
        let built = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .status()
            .expect("a C compiler: install one, as for SQLite itself");
        assert!(built.success());
        library
    })
}

/// A daemon under a sky that can be changed.
struct Storm {
    daemon: Daemon,
    sky: PathBuf,
    session: String,
    _folder: tempfile::TempDir,
}

impl Storm {
    fn new() -> Self {
        // Stops rise fast, for the one test that waits for it.
        Self::with("[stop]\ngraceful_ms = 300\nimmediate_ms = 300\n")
    }

    fn with(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sky = folder.path().join("sky");
        std::fs::write(&sky, FINE).unwrap();
        let setup = Setup::default().config(config);
        let setup = setup.env("LD_PRELOAD", library()).env("LANYARD_FAULTS", &sky);
        let daemon = Daemon::start(setup);
        let made = daemon.request("POST", "/api/v1/sessions", &[], Some(r#"{"title":"in the storm"}"#));
        assert_eq!(made.status, 201, "{}", made.text());
        let session = made.json()["session"].as_str().unwrap().to_owned();
        Self { daemon, sky, session, _folder: folder }
    }

    /// Written in place: the daemon has the file mapped.
    fn set(&self, weather: Weather) {
        use std::os::unix::fs::FileExt;
        let file = std::fs::File::options().write(true).open(&self.sky).unwrap();
        file.write_all_at(&weather, 0).unwrap();
    }

    fn say(&self, key: &str) -> Answer {
        let path = format!("/api/v1/sessions/{}/signals", self.session);
        let body = format!(r#"{{"type":"said","role":"agent","text":"{key}"}}"#);
        self.daemon.request("POST", &path, &[("idempotency-key", key)], Some(&body))
    }

    /// Says it again and again until it is acknowledged, as a client would with its key.
    fn say_until_kept(&self, key: &str) {
        let since = Instant::now();
        loop {
            let answer = self.say(key);
            if answer.status == 201 {
                return;
            }
            assert_eq!(answer.code(), "storage_unavailable", "{}", answer.text());
            assert!(since.elapsed() < PATIENCE, "does not recover: {}", answer.text());
            // sleep: the daemon tries a failed journal twice a second.
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What was said, in order; the log has no gaps and nothing damaged.
    fn said(&self) -> Vec<String> {
        let log = self.daemon.log_after(&self.session, 0);
        for (at, event) in log.iter().enumerate() {
            assert_eq!(event["seq"], at as u64 + 1, "a gap: {event}");
            assert_ne!(event["type"], "record.damaged", "{event}");
        }
        let messages = log.iter().filter(|event| event["type"] == "message");
        messages.map(|event| event["data"]["text"].as_str().unwrap().to_owned()).collect()
    }
}

/// S0-B20: work is not held up by a sick disk, and what could not be written down about it is counted and shown.
#[test]
fn tool_calls_pass_in_a_storm_and_what_is_not_recorded_is_told() {
    let storm = Storm::new();
    let call = r#"{"id":"1","tool":"echo","channel":"mcp"}"#;
    let passes = || {
        let path = |what: &str| format!("/api/v1/sessions/{}/{what}", storm.session);
        let ended = format!(r#"{{"call":{call}}}"#);
        let begun = storm.daemon.request("POST", &path("calls"), &[], Some(call));
        let ended = storm.daemon.request("POST", &path("calls/end"), &[], Some(&ended));
        (begun.status, ended.status)
    };
    let unrecorded = || {
        let status = storm.daemon.request("GET", "/api/v1/status", &[], None).json();
        status["calls_unrecorded"].as_u64().unwrap()
    };
    // The first call asks the engine and lets the flag down.
    assert_eq!(passes(), (200, 200));
    assert_eq!(passes(), (200, 200));
    assert_eq!(unrecorded(), 0);
    storm.set([0, 1]);
    assert_eq!(storm.say("during").status, 503);
    let since = Instant::now();
    while unrecorded() == 0 {
        assert!(since.elapsed() < PATIENCE, "a call that was not recorded is not told of");
        let _ = passes();
    }
}

/// Calls of a session, and how many of them the daemon has in its log.
fn pass_calls(daemon: &Daemon, session: &str, count: usize) -> Vec<(u16, u16)> {
    let path = |what: &str| format!("/api/v1/sessions/{session}/{what}");
    let pass = |number: usize| {
        let call = format!(r#"{{"id":"{number}","tool":"echo","channel":"mcp"}}"#);
        let ended = format!(r#"{{"call":{call}}}"#);
        let begun = daemon.request("POST", &path("calls"), &[], Some(&call)).status;
        (begun, daemon.request("POST", &path("calls/end"), &[], Some(&ended)).status)
    };
    (0..count).map(pass).collect()
}

fn relayed(daemon: &Daemon, session: &str) -> usize {
    daemon.log_after(session, 0).iter().filter(|event| event["type"] == "tool.relayed").count()
}

/// A record that is only written needs no sync; one that is to be synced is not taken for kept without it.
#[test]
fn a_written_record_waits_for_no_sync_and_a_synced_one_does() {
    for (record, passed) in [("written", (200, 200)), ("synced", (200, 503))] {
        let storm = Storm::with(&format!("[gateway]\nrecord = \"{record}\"\n"));
        assert_eq!(pass_calls(&storm.daemon, &storm.session, 2), [(200, 200); 2]);
        storm.set([0, 1]);
        assert_eq!(pass_calls(&storm.daemon, &storm.session, 1), [passed], "{record}");
        let kept = relayed(&storm.daemon, &storm.session);
        assert_eq!(kept, if record == "written" { 3 } else { 2 }, "{record}");
    }
}

/// S0-23: after a power cut nothing is there that was not synced. Records of calls that were only written are gone, and
/// safe from the next command on that is acknowledged.
#[test]
fn a_power_cut_takes_written_records_until_the_next_command() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::default().config("[gateway]\nrecord = \"written\"\n");
    let setup = setup.env("LD_PRELOAD", library()).env("LANYARD_SYNCED", folder.path());
    let daemon = Daemon::start(setup);
    let post = |path: &str, body: &str| daemon.request("POST", path, &[], Some(body));
    let made = post("/api/v1/sessions", r#"{"title":"in the dark"}"#);
    let session = made.json()["session"].as_str().unwrap().to_owned();
    // The journal as the disk has it, under another daemon.
    let after_the_cut = || {
        let mut other = Daemon::prepare(Setup::default());
        std::fs::create_dir_all(other.home()).unwrap();
        for name in ["journal.db", "journal.db-wal"] {
            let _ = std::fs::copy(folder.path().join(name), other.home().join(name));
        }
        other.try_start().unwrap();
        other
    };
    assert_eq!(pass_calls(&daemon, &session, 20), [(200, 200); 20]);
    assert_eq!(relayed(&daemon, &session), 20);
    assert!(relayed(&after_the_cut(), &session) < 20, "what is only written must not be synced each time");
    let said = format!("/api/v1/sessions/{session}/signals");
    assert_eq!(post(&said, r#"{"type":"said","role":"agent","text":"kept"}"#).status, 201);
    let other = after_the_cut();
    assert_eq!(relayed(&other, &session), 20);
    assert_eq!(other.log_after(&session, 0), daemon.log_after(&session, 0));
    let report = other.request("GET", "/api/v1/check", &[], None).json();
    assert_eq!((&report["damage"], &report["structure"]), (&serde_json::json!([]), &serde_json::json!([])));
}

/// S0-B03: a deadline that comes while nothing can be written is kept until something can.
#[test]
fn a_stop_rises_after_the_storm_when_its_deadline_came_in_it() {
    let storm = Storm::new();
    let post = |path: &str, body: &str| storm.daemon.request("POST", path, &[], Some(body));
    let made = post("/api/v1/sessions", r#"{"source":"external"}"#).json();
    let path = format!("/api/v1/sessions/{}", made["session"].as_str().unwrap());
    assert_eq!(post(&format!("{path}/stop"), "{}").status, 202);
    storm.set([0, 1]);
    assert_eq!(storm.say("during").status, 503);
    // sleep: the deadline has to come while nothing can be written; looked for once a second.
    std::thread::sleep(Duration::from_secs(3));
    storm.set(FINE);
    let since = Instant::now();
    while storm.daemon.request("GET", &path, &[], None).json()["state"] != "stopped" {
        assert!(since.elapsed() < PATIENCE, "its deadline was forgotten");
        // sleep: between two looks.
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// S4-B06: what is asked of tasks is refused while nothing can be written, and taken up by itself when something can,
/// also when nobody but the owner of tasks has anything to write.
#[test]
fn tasks_go_on_after_the_storm() {
    let storm = Storm::new();
    let ask = |key: &str| {
        let body = serde_json::json!({ "title": key, "kind": "external", "deploy": true }).to_string();
        storm.daemon.request("POST", "/api/v1/tasks", &[("idempotency-key", key)], Some(&body))
    };
    let runs = |task: &str| {
        let path = format!("/api/v1/tasks/{task}");
        let since = Instant::now();
        while storm.daemon.request("GET", &path, &[], None).json()["state"] != "running" {
            assert!(since.elapsed() < PATIENCE, "{task} was forgotten: {}", storm.daemon.stderr());
            // sleep: between two looks.
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    storm.set([0, 1]);
    assert_eq!(ask("during").code(), "storage_unavailable");
    storm.set(FINE);
    let since = Instant::now();
    let made = loop {
        let answer = ask("during");
        if answer.status == 201 {
            break answer.json();
        }
        assert!(since.elapsed() < PATIENCE, "does not recover: {}", answer.text());
        // sleep: between two tries of a client.
        std::thread::sleep(Duration::from_millis(50));
    };
    runs(made["id"].as_str().unwrap());

    // One that is admitted, and whose next steps cannot be written down.
    let made = ask("before").json();
    storm.set([0, 1]);
    assert_eq!(ask("other").code(), "storage_unavailable");
    storm.set(FINE);
    runs(made["id"].as_str().unwrap());
    let listed = storm.daemon.request("GET", "/api/v1/tasks", &[], None).json();
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 2, "nothing that was refused is there: {listed}");
}

fn storm_passes(weather: Weather) {
    let mut storm = Storm::new();
    let mut expected = Vec::new();
    for key in ["before-1", "before-2"] {
        assert_eq!(storm.say(key).status, 201);
        expected.push(key.to_owned());
    }
    storm.set(weather);
    let refused = storm.say("during");
    assert_eq!(
        (refused.status, refused.code()),
        (503, "storage_unavailable".to_owned()),
        "{}",
        refused.text()
    );
    // Still refused, and reading goes on meanwhile.
    assert_eq!(storm.say("during").status, 503);
    let status = storm.daemon.request("GET", "/api/v1/status", &[], None).json();
    assert_eq!(status["storage"], "unavailable", "{status}");
    assert_eq!(storm.said()[..2], expected);

    storm.set(FINE);
    storm.say_until_kept("during");
    storm.say_until_kept("after");
    expected.extend(["during".to_owned(), "after".to_owned()]);
    assert_eq!(storm.said(), expected, "each once, in order");
    let status = storm.daemon.request("GET", "/api/v1/status", &[], None).json();
    assert_eq!(status["storage"], "ok", "{status}");

    storm.daemon.restart_with(Setup::default());
    assert_eq!(storm.said(), expected, "and after a crash");
    let report = storm.daemon.request("GET", "/api/v1/check", &[], None).json();
    assert_eq!(
        (&report["damage"], &report["structure"]),
        (&serde_json::json!([]), &serde_json::json!([])),
        "{report}"
    );
}

#[test]
fn an_io_error_on_write_stops_acknowledging_until_it_is_gone() {
    storm_passes([1, 0]);
}

#[test]
fn a_full_disk_stops_acknowledging_until_there_is_room() {
    storm_passes([2, 0]);
}

#[test]
fn a_short_write_leaves_no_half() {
    storm_passes([3, 0]);
}

#[test]
fn a_file_system_that_turned_read_only_stops_acknowledging() {
    storm_passes([4, 0]);
}

#[test]
fn a_failed_fsync_is_never_acknowledged() {
    storm_passes([0, 1]);
}

#[test]
fn an_fsync_that_finds_no_room_is_never_acknowledged() {
    storm_passes([0, 2]);
}

/// Killed right after a failed sync: the batch is there whole or not at all, and its key tells which.
#[test]
fn a_crash_during_the_storm_leaves_definite_outcomes() {
    for weather in [[1, 0], [3, 0], [0, 1]] {
        let mut storm = Storm::new();
        assert_eq!(storm.say("before").status, 201);
        storm.set(weather);
        assert_eq!(storm.say("during").status, 503);
        storm.daemon.restart_with(Setup::default());
        let said = storm.said();
        assert!(said == ["before"] || said == ["before", "during"], "{said:?}");
        assert_eq!(storm.say("during").status, 201);
        assert_eq!(storm.said(), ["before", "during"]);
    }
}

/// Weather that changes all the time, with several clients: what was acknowledged is there once, in the end.
#[test]
fn changing_weather_loses_nothing_that_was_acknowledged() {
    let storm = Storm::new();
    let kept: Vec<String> = std::thread::scope(|scope| {
        let storm = &storm;
        let clients: Vec<_> = (0..4)
            .map(|client| {
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for number in 0..90 {
                        let key = format!("c{client}-{number}");
                        if number % 3 == 0 {
                            storm.say_until_kept(&key);
                            kept.push(key);
                        } else if storm.say(&key).status == 201 {
                            kept.push(key);
                        }
                    }
                    kept
                })
            })
            .collect();
        let mut random = fastrand::Rng::with_seed(7);
        while clients.iter().any(|client| !client.is_finished()) {
            storm.set([random.u8(0..5), random.u8(0..3)]);
            // sleep: weather lasts a moment.
            std::thread::sleep(Duration::from_millis(random.u64(1..30)));
            storm.set(FINE);
            // sleep: and so does sunshine; longer than the daemon waits before it tries again.
            std::thread::sleep(Duration::from_millis(random.u64(1..700)));
        }
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    storm.set(FINE);
    storm.say_until_kept("the-end");
    let mut said = storm.said();
    said.sort();
    for key in &kept {
        let found = said.iter().filter(|text| *text == key).count();
        assert_eq!(found, 1, "{key} was acknowledged");
    }
    let all = said.len();
    said.dedup();
    assert_eq!(said.len(), all, "something is there twice");
    assert!(kept.len() > 50, "hardly anything was acknowledged: {}", kept.len());
}

/// A flipped bit in an event: reported in its place, the rest stays readable, other sessions stay usable.
#[test]
fn a_damaged_record_is_reported_in_its_place_and_the_rest_stays_usable() {
    let mut storm = Storm::new();
    for key in ["one", "the-damaged-one", "three"] {
        assert_eq!(storm.say(key).status, 201);
    }
    assert!(storm.daemon.terminate().success());
    let journal = storm.daemon.home().join("journal.db");
    let mut bytes = std::fs::read(&journal).unwrap();
    let place = find(&bytes, br#""text":"the-damaged-one""#).expect("the event is in the file");
    bytes[place + 10] ^= 0x04;
    std::fs::write(&journal, bytes).unwrap();
    storm.daemon.restart_with(Setup::default());

    let log = storm.daemon.log_after(&storm.session, 0);
    let types: Vec<&str> = log.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["session.created", "message", "record.damaged", "message"]);
    let shown = storm.daemon.request("GET", &format!("/api/v1/sessions/{}", storm.session), &[], None).json();
    assert_eq!(shown["damage"][0]["first_seq"], 3, "{shown}");
    let refused = storm.say("four");
    assert_eq!((refused.status, refused.code()), (409, "session_damaged".to_owned()));
    let doctor = storm.daemon.lanyard(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1), "{}", String::from_utf8_lossy(&doctor.stdout));
    let made = storm.daemon.request("POST", "/api/v1/sessions", &[], Some("{}"));
    assert_eq!(made.status, 201, "others go on: {}", made.text());
}

/// A file that is no journal, and one from the future, are refused by name and left as they are.
#[test]
fn a_foreign_file_and_a_newer_journal_are_refused_and_untouched() {
    let mut daemon = Daemon::prepare(Setup::default());
    std::fs::create_dir(daemon.home()).unwrap();
    let journal = daemon.home().join("journal.db");
    std::fs::write(&journal, "a shopping list").unwrap();
    let error = daemon.try_start().unwrap_err();
    assert!(error.contains("is not a Lanyard journal"), "{error}");
    assert_eq!(std::fs::read(&journal).unwrap(), b"a shopping list");

    let daemon = Daemon::start(Setup::default());
    assert!(daemon.terminate().success());
    let journal = daemon.home().join("journal.db");
    let conn = rusqlite::Connection::open(&journal).unwrap();
    conn.pragma_update(None, "user_version", 999).unwrap();
    drop(conn);
    let before = std::fs::read(&journal).unwrap();
    let mut daemon = daemon;
    let error = daemon.try_start().unwrap_err();
    assert!(error.contains("newer Lanyard (schema 999"), "{error}");
    assert_eq!(std::fs::read(&journal).unwrap(), before);
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
