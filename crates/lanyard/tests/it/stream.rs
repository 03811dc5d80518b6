//! Live streams: a reader is a cursor (S3-B05, S3-B06, S3-08, S3-10, S3-12).

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::Value;

use crate::support::{Daemon, PATIENCE, Setup, head, read_head};

/// An open event stream.
struct Stream {
    reader: BufReader<UnixStream>,
}

impl Stream {
    fn open(daemon: &Daemon, session: &str, query: &str, headers: &[(&str, &str)]) -> Self {
        let caller = daemon.caller();
        let bearer = format!("Bearer {}", caller.token);
        let mut all =
            vec![("host", "localhost"), ("authorization", bearer.as_str()), ("accept", "text/event-stream")];
        all.extend_from_slice(headers);
        let mut stream = UnixStream::connect(&caller.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let path = format!("/api/v1/sessions/{session}/events{query}");
        stream.write_all(head("GET", &path, &all, None).as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let answer = read_head(&mut reader).unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        Self { reader }
    }

    /// The next event; none when the stream has ended.
    fn next(&mut self) -> Option<(u64, Value)> {
        let (mut id, mut line) = (None, String::new());
        loop {
            line.clear();
            if self.reader.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // Chunk sizes, blank lines and heartbeats are passed over.
            if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.trim().parse().unwrap());
            } else if let Some(text) = line.strip_prefix("data: ") {
                return Some((
                    id.expect("every event has its position"),
                    serde_json::from_str(text).unwrap(),
                ));
            }
        }
    }

    fn take(&mut self, count: usize) -> Vec<u64> {
        (0..count)
            .map(|_| {
                let (id, event) = self.next().expect("the stream goes on");
                assert_eq!(event["seq"], id);
                id
            })
            .collect()
    }
}

fn create(daemon: &Daemon) -> String {
    daemon.request("POST", "/api/v1/sessions", &[], Some("{}")).json()["session"].as_str().unwrap().to_owned()
}

fn say(daemon: &Daemon, session: &str, text: &str) {
    let body = serde_json::json!({"type": "said", "role": "agent", "text": text}).to_string();
    let answer = daemon.request("POST", &format!("/api/v1/sessions/{session}/signals"), &[], Some(&body));
    assert_eq!(answer.status, 201, "{}", answer.text());
}

/// From the beginning, from a position, from the end, and where one left off: no gap and no repeat.
#[test]
fn a_stream_begins_where_it_is_asked_to_and_goes_on_live() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    for number in 0..9 {
        say(&daemon, &session, &number.to_string());
    }
    let mut full = Stream::open(&daemon, &session, "", &[]);
    let mut after = Stream::open(&daemon, &session, "?after=7", &[]);
    let mut tail = Stream::open(&daemon, &session, "?tail=2", &[]);
    let mut now = Stream::open(&daemon, &session, "?tail=0", &[]);
    let mut resumed = Stream::open(&daemon, &session, "?after=1", &[("last-event-id", "9")]);
    assert_eq!(full.take(10), (1..=10).collect::<Vec<_>>());
    assert_eq!(after.take(3), [8, 9, 10]);
    assert_eq!(tail.take(2), [9, 10]);
    assert_eq!(resumed.take(1), [10]);
    for number in 0..300 {
        say(&daemon, &session, &number.to_string());
    }
    for stream in [&mut full, &mut after, &mut tail, &mut now, &mut resumed] {
        assert_eq!(stream.take(300), (11..=310).collect::<Vec<_>>());
    }
}

/// A reader that comes and goes while others write misses nothing, however the cursor falls between commits.
#[test]
fn reconnecting_at_any_moment_leaves_no_gap_and_no_repeat() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let total = 600;
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (daemon, session) = (&daemon, &session);
            scope.spawn(move || {
                for number in 0..total / 3 {
                    say(daemon, session, &format!("{writer}-{number}"));
                }
            });
        }
        let mut seen = 0;
        let mut random = fastrand::Rng::with_seed(3);
        while seen < total + 1 {
            let mut stream = Stream::open(&daemon, &session, "", &[("last-event-id", &seen.to_string())]);
            for _ in 0..random.u64(1..60).min(total + 1 - seen) {
                let (id, _) = stream.next().unwrap();
                assert_eq!(id, seen + 1);
                seen = id;
            }
        }
    });
}

/// S3-08: a client that goes away changes nothing; S3-B06: one that does not read holds nobody up.
#[test]
fn a_stalled_reader_slows_nobody_and_can_catch_up() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let mut stalled = Stream::open(&daemon, &session, "", &[]);
    let mut lively = Stream::open(&daemon, &session, "", &[]);
    let gone = Stream::open(&daemon, &session, "", &[]);
    drop(gone);
    let text = "x".repeat(20_000);
    for _ in 0..200 {
        say(&daemon, &session, &text);
    }
    assert_eq!(lively.take(201), (1..=201).collect::<Vec<_>>());
    // Four megabytes later, far more than any buffer between them: it reads on from where it was.
    assert_eq!(stalled.take(201), (1..=201).collect::<Vec<_>>());
}

/// When the daemon ends, streams end; the client comes back with its last position.
#[test]
fn a_stream_ends_with_the_daemon_and_resumes_with_the_next() {
    let mut daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    say(&daemon, &session, "one");
    let mut stream = Stream::open(&daemon, &session, "", &[]);
    assert_eq!(stream.take(2), [1, 2]);
    assert!(daemon.terminate().success());
    assert_eq!(stream.next(), None);
    daemon.restart_with(Setup::default());
    say(&daemon, &session, "two");
    let mut stream = Stream::open(&daemon, &session, "", &[("last-event-id", "2")]);
    assert_eq!(stream.take(1), [3]);
}

#[test]
fn a_stream_of_nobody_is_not_found() {
    let daemon = Daemon::start(Setup::default());
    let accept = [("accept", "text/event-stream")];
    let path = "/api/v1/sessions/sess_00000000000000000000000000/events";
    assert_eq!(daemon.request("GET", path, &accept, None).code(), "session_not_found");
    let session = create(&daemon);
    let path = format!("/api/v1/sessions/{session}/events");
    let bad = [("accept", "text/event-stream"), ("last-event-id", "seven")];
    assert_eq!(daemon.request("GET", &path, &bad, None).code(), "last_event_id_bad");
}

/// `lanyard logs -f` survives a daemon that is killed and comes back.
#[test]
fn following_a_log_goes_on_over_a_restart() {
    let mut daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let mut follower = std::process::Command::new(crate::support::binary())
        .args(["logs", &session, "-f", "--json"])
        .env("LANYARD_DATA_DIR", daemon.home())
        .env("LANYARD_CONFIG", daemon.config())
        .env("LANYARD_NO_START", "1")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut seq = move || {
        let line = lines.next().expect("it goes on").unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["seq"].as_u64().unwrap()
    };
    assert_eq!(seq(), 1);
    say(&daemon, &session, "before");
    assert_eq!(seq(), 2);
    daemon.restart_with(Setup::default());
    say(&daemon, &session, "after");
    assert_eq!(seq(), 3);
    follower.kill().unwrap();
    follower.wait().unwrap();
}

/// A client that sends half a request and falls silent is cut off, not kept for ever.
#[test]
fn half_a_request_does_not_hold_a_place_for_ever() {
    let daemon = Daemon::start(Setup::default());
    let mut stream = UnixStream::connect(daemon.caller().socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /api/v1/status HTTP/1.1\r\nhost: loc").unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(daemon.request("GET", "/api/v1/status", &[], None).status, 200);
}
