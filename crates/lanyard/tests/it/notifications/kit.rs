//! A daemon with a clock that is moved by hand, and receivers that behave as they are told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver as Channel, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, PATIENCE, Setup, head, read_head};

/// Where the clock begins: in the middle of a minute of a day in November 2026.
const BEGIN_MS: i64 = 1_794_729_630_000;

/// A daemon whose time stands still until it is moved.
pub(super) struct Stage {
    pub(super) daemon: Daemon,
    clock: PathBuf,
    now: i64,
    _folder: tempfile::TempDir,
}

impl Stage {
    pub(super) fn new(config: &str) -> Self {
        Self::with(config, |setup| setup)
    }

    pub(super) fn with(config: &str, more: impl Fn(Setup) -> Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = folder.path().join("clock");
        std::fs::write(&clock, BEGIN_MS.to_string()).unwrap();
        let setup = Setup::default().config(config).env("LANYARD_CLOCK_FILE", &clock).env("TZ", "UTC");
        Self { daemon: Daemon::start(more(setup)), clock, now: BEGIN_MS, _folder: folder }
    }

    pub(super) fn again(&mut self, config: &str) {
        let setup = Setup::default().config(config).env("LANYARD_CLOCK_FILE", &self.clock).env("TZ", "UTC");
        self.daemon.restart_with(setup);
    }

    /// Moves time on.
    pub(super) fn later(&mut self, ms: i64) {
        self.now += ms;
        // Whole at once: a clock that is half written would be a leap.
        let beside = self.clock.with_extension("new");
        std::fs::write(&beside, self.now.to_string()).unwrap();
        std::fs::rename(&beside, &self.clock).unwrap();
    }

    pub(super) fn get(&self, path: &str) -> Value {
        get(&self.daemon, path)
    }

    pub(super) fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.daemon.request(method, &format!("/api/v1{path}"), &[], Some(&body.to_string()))
    }

    pub(super) fn new_session(&self) -> String {
        new_session(&self.daemon)
    }

    /// Attaches so often, and goes again.
    pub(super) fn attach(&self, session: &str, times: usize) {
        for _ in 0..times {
            attach(&self.daemon, session, "");
        }
    }

    /// Comes back so often with a position the log does not reach: what the client has seen is gone.
    pub(super) fn fail_to_attach(&self, session: &str, times: usize) {
        for _ in 0..times {
            let path = format!("/api/v1/sessions/{session}/attach?after=99999");
            assert_eq!(self.daemon.request("GET", &path, &[], None).code(), "seq_in_future");
        }
    }

    pub(super) fn continuity(&self) -> Value {
        self.get("/metrics/continuity")
    }

    /// Notifications of one kind, oldest first.
    pub(super) fn notifications(&self, kind: &str) -> Vec<Value> {
        let page = self.get(&format!("/notifications?kind={kind}"));
        page["notifications"].as_array().unwrap().iter().rev().cloned().collect()
    }

    /// Waits until there are so many of a kind.
    pub(super) fn await_notifications(&self, kind: &str, count: usize) -> Vec<Value> {
        until(&format!("{count} of {kind}"), || {
            Some(self.notifications(kind)).filter(|found| found.len() >= count)
        })
    }
}

/// Lets the daemon's timers go round a few times.
pub(super) fn rounds() {
    // sleep: that nothing happens can only be waited for. The timers look fifty times a second.
    std::thread::sleep(Duration::from_millis(200));
}

pub(super) fn get(daemon: &Daemon, path: &str) -> Value {
    let answer = daemon.request("GET", &format!("/api/v1{path}"), &[], None);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}

pub(super) fn new_session(daemon: &Daemon) -> String {
    let made = daemon.request("POST", "/api/v1/sessions", &[], Some("{}"));
    assert_eq!(made.status, 201, "{}", made.text());
    made.json()["session"].as_str().unwrap().to_owned()
}

/// Attaches, reads the first frame, and goes; answers with the frame.
pub(super) fn attach(daemon: &Daemon, session: &str, query: &str) -> Value {
    attached(daemon, session, query).0
}

/// Attaches and stays, until this is dropped.
pub(super) fn hold(daemon: &Daemon, session: &str) -> BufReader<UnixStream> {
    attached(daemon, session, "").1
}

fn attached(daemon: &Daemon, session: &str, query: &str) -> (Value, BufReader<UnixStream>) {
    let caller = daemon.caller();
    let bearer = format!("Bearer {}", caller.token);
    let mut stream = UnixStream::connect(&caller.socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let headers = [("host", "localhost"), ("authorization", bearer.as_str())];
    let path = format!("/api/v1/sessions/{session}/attach{query}");
    stream.write_all(head("GET", &path, &headers, None).as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let answer = read_head(&mut reader).unwrap();
    assert_eq!(answer.status, 200, "{path}");
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the stream ended");
        if let Some(data) = line.strip_prefix("data: ") {
            return (serde_json::from_str(data).unwrap(), reader);
        }
    }
}

/// Looks until it is there.
pub(super) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "{what} does not come");
        // sleep: between two looks at what other processes do.
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What a receiver does with a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    Take,
    /// Answers with an error.
    Fail,
    /// Takes it and says nothing.
    Hang,
    /// Takes it and breaks the connection off.
    Break,
    /// Sends the poster elsewhere.
    Redirect,
}

/// A post as it came.
#[derive(Debug, Clone)]
pub(super) struct Post {
    pub(super) path: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Post {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(held, _)| held == name).map_or("", |(_, value)| value)
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A server that takes posts, each in the next manner; the last one stays.
pub(super) struct Receiver {
    address: String,
    posts: Channel<Post>,
}

impl Receiver {
    pub(super) fn start(manners: &[Manner]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, posts) = channel();
        let manners = manners.to_vec();
        // It ends with the test's process.
        std::thread::spawn(move || serve(&listener, &manners, &sender));
        Self { address, posts }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(super) fn next(&self) -> Post {
        self.posts.recv_timeout(PATIENCE).expect("a post comes")
    }

    /// Everything that has come since.
    pub(super) fn rest(&self) -> Vec<Post> {
        self.posts.try_iter().collect()
    }
}

fn serve(listener: &TcpListener, manners: &[Manner], posts: &Sender<Post>) {
    let mut held = Vec::new();
    for (turn, stream) in listener.incoming().enumerate() {
        let Ok(mut stream) = stream else { continue };
        let manner = manners.get(turn).or(manners.last()).copied().unwrap_or(Manner::Take);
        let Some(post) = read(&mut stream) else { continue };
        if posts.send(post).is_err() {
            return;
        }
        let answer = match manner {
            Manner::Take => "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
            Manner::Fail => "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nlate",
            Manner::Redirect => {
                "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
            }
            Manner::Break => continue,
            Manner::Hang => {
                held.push(stream);
                continue;
            }
        };
        let _ = stream.write_all(answer.as_bytes());
    }
}

fn read(stream: &mut TcpStream) -> Option<Post> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None => break,
        }
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Post { path, headers, body })
}

/// A webhook of the config.
pub(super) fn webhook(name: &str, url: &str, more: &str) -> String {
    format!("[notifications.webhooks.{name}]\nurl = \"{url}\"\nretry_ms = 100\ntimeout_ms = 400\n{more}\n")
}

pub(super) fn ids(found: &[Value]) -> Vec<Value> {
    found.iter().map(|held| json!(held["id"])).collect()
}
