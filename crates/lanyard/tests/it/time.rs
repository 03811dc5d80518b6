//! A wall clock that was ahead and is put right: deadlines go by the boot clock, and leases end as they should.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, PATIENCE, Setup};

const BEGIN_MS: i64 = 1_794_729_630_000;
const HOUR_MS: i64 = 3_600_000;
const FIRST: &str = "conn_00000000000000000000000001";
const SECOND: &str = "conn_00000000000000000000000002";
const CONFIG: &str = "[stop]\ngraceful_ms = 30000\nimmediate_ms = 30000\n\
    [limits]\nguidance_expires_ms = 60000\n[writer]\nlapse_ms = 60000\n";

/// A daemon with a wall clock and a boot clock that are set by hand.
struct Stage {
    daemon: Daemon,
    clock: PathBuf,
    wall: i64,
    boot: i64,
    _folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = folder.path().join("clock");
        std::fs::write(&clock, format!("{BEGIN_MS} 1000")).unwrap();
        let setup = Setup::default().config(CONFIG).env("LANYARD_CLOCK_FILE", &clock);
        Self { daemon: Daemon::start(setup), clock, wall: BEGIN_MS, boot: 1_000, _folder: folder }
    }

    fn restart(&mut self) {
        let setup = Setup::default().config(CONFIG).env("LANYARD_CLOCK_FILE", &self.clock);
        self.daemon.restart_with(setup);
    }

    /// Time passes, by both clocks.
    fn later(&mut self, ms: i64) {
        self.boot += ms;
        self.set_wall(ms);
    }

    /// Somebody sets the wall clock.
    fn set_wall(&mut self, by: i64) {
        self.wall += by;
        // Whole at once: a clock that is half written would be a leap.
        let beside = self.clock.with_extension("new");
        std::fs::write(&beside, format!("{} {}", self.wall, self.boot)).unwrap();
        std::fs::rename(&beside, &self.clock).unwrap();
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.daemon.request("POST", &format!("/api/v1{path}"), &[], Some(&body.to_string()))
    }

    fn get(&self, path: &str) -> Value {
        self.daemon.request("GET", &format!("/api/v1{path}"), &[], None).json()
    }

    fn session(&self) -> String {
        let made = self.post("/sessions", &json!({ "source": "external", "agent": "someone" }));
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["session"].as_str().unwrap().to_owned()
    }

    fn claim(&self, session: &str, connection: &str) -> Answer {
        let body = json!({ "connection": connection, "client": "cli", "take": false });
        self.post(&format!("/sessions/{session}/writer"), &body)
    }

    fn now(&self) -> Value {
        self.get("/status")["now"].clone()
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "{what} does not come");
        // sleep: between two looks at what another process does.
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// FND-K5. A stop rises, guidance expires and a lease lapses after a clock that was ahead is put right.
#[test]
fn fnd_k5_deadlines_come_after_a_clock_that_was_ahead_is_put_right() {
    let mut stage = Stage::new();
    stage.set_wall(HOUR_MS);
    let (stopped, guided) = (stage.session(), stage.session());
    assert_eq!(stage.post(&format!("/sessions/{stopped}/stop"), &json!({})).status, 202);
    let guidance = stage.post(&format!("/sessions/{guided}/guidance"), &json!({ "text": "look there" }));
    assert_eq!(guidance.status, 201, "{}", guidance.text());
    assert_eq!(stage.claim(&guided, FIRST).status, 200);
    let ahead = stage.now();
    stage.set_wall(-HOUR_MS);
    assert_eq!(stage.now(), ahead, "what was recorded is not taken back");
    stage.later(32_000);
    until("level 2", || stage.get(&format!("/sessions/{stopped}"))["stop"]["level"] == 2);
    stage.later(32_000);
    until("level 3", || stage.get(&format!("/sessions/{stopped}"))["state"] == "stopped");
    until("the end of the guidance", || {
        let shown = stage.get(&format!("/sessions/{guided}/guidance"));
        shown["settled"].as_array().unwrap().iter().any(|note| note["status"] == "expired")
    });
    let second = stage.claim(&guided, SECOND);
    assert_eq!((second.status, &second.json()["result"]), (200, &json!("granted")), "{}", second.text());
}

/// FND-K5. A deadline that was set under a wrong clock is reached by the daemon that comes after, too.
#[test]
fn fnd_k5_deadlines_come_after_a_restart_with_a_clock_that_was_put_right() {
    let mut stage = Stage::new();
    stage.set_wall(24 * HOUR_MS);
    let session = stage.session();
    assert_eq!(stage.post(&format!("/sessions/{session}/stop"), &json!({})).status, 202);
    stage.set_wall(-24 * HOUR_MS);
    stage.restart();
    stage.later(32_000);
    until("level 2", || stage.get(&format!("/sessions/{session}"))["stop"]["level"] == 2);
    stage.later(32_000);
    until("level 3", || stage.get(&format!("/sessions/{session}"))["state"] == "stopped");
}

/// A claim over plain HTTP keeps the lease, and so do words under it: the holder is there although it is not attached.
#[test]
fn fnd_i19_a_claim_over_http_lengthens_the_lease() {
    let mut stage = Stage::new();
    // A client of the API carries out its turns.
    let made = stage.post("/sessions", &json!({ "title": "by hand" }));
    let session = made.json()["session"].as_str().unwrap().to_owned();
    let epoch = stage.claim(&session, FIRST).json()["epoch"].clone();
    for _ in 0..3 {
        stage.later(45_000);
        assert_eq!(stage.claim(&session, FIRST).json()["epoch"], epoch, "it holds it still");
        assert_eq!(stage.claim(&session, SECOND).code(), "writer_held");
    }
    stage.later(45_000);
    let turn = json!({ "prompt": "go on", "writer_epoch": epoch });
    assert_eq!(stage.post(&format!("/sessions/{session}/turns"), &turn).status, 201);
    stage.later(45_000);
    assert_eq!(stage.claim(&session, SECOND).code(), "writer_held", "it wrote a moment ago");
    let shown = stage.get(&format!("/sessions/{session}/writer"));
    assert_eq!(shown["writer"]["present"], true, "{shown}");
    stage.later(61_000);
    assert_eq!(stage.claim(&session, SECOND).status, 200, "it was not heard of for longer than a lease");
}
