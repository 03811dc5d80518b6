//! How fast the journal appends, beside a plain file that is appended to and synced with the same bytes in the same
//! groups. The two take turns, and the median of the ratios is what counts.
//!
//! `cargo run --release -p lanyard-store --example append [FOLDER]`

#![expect(clippy::disallowed_methods, reason = "measuring is reading a clock")]
#![expect(clippy::print_stdout, reason = "the result is what is printed")]
#![expect(clippy::unwrap_used, reason = "a measurement that fails should stop")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lanyard_core::session::{Envelope, NewSession, create};
use lanyard_core::{Actor, Limits, Session, SessionId, Timestamp};
use lanyard_store::{Batch, EventEntry, Journal, SqliteJournal, SqliteOptions};

/// Events in one commit: what 64 writers have ready.
const GROUP: usize = 64;
const BODY_BYTES: usize = 300;
const TURNS: usize = 7;
const TURN: Duration = Duration::from_secs(2);

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let folder = tempfile::tempdir_in(folder).unwrap();
    let mut many = Subject::new(folder.path(), 10_000);
    let mut few = Subject::new(folder.path(), 64);
    let mut file = File::create(folder.path().join("file")).unwrap();
    let mut ratios = (Vec::new(), Vec::new());
    println!(
        "{GROUP} events of {BODY_BYTES} bytes per commit; events/s (p50/p99 µs of a commit, bytes per event)"
    );
    for _ in 0..TURNS {
        let plain = run(|| append_to(&mut file));
        let ten_thousand = run(|| many.append());
        let sixty_four = run(|| few.append());
        println!(
            "file {plain}   journal, 10,000 sessions {ten_thousand}   journal, 64 sessions {sixty_four}"
        );
        ratios.0.push(ten_thousand.rate / plain.rate);
        ratios.1.push(ten_thousand.rate / sixty_four.rate);
    }
    println!("10,000 sessions / file: {}", spread(&mut ratios.0));
    println!("10,000 sessions / 64 sessions: {}", spread(&mut ratios.1));
}

fn append_to(file: &mut File) {
    file.write_all(&vec![b'x'; GROUP * BODY_BYTES]).unwrap();
    file.sync_data().unwrap();
}

struct Subject {
    journal: SqliteJournal,
    heads: Vec<(SessionId, u64)>,
    now: i64,
    rng: fastrand::Rng,
    body: Bytes,
}

impl Subject {
    fn new(folder: &Path, sessions: u64) -> Self {
        let path = folder.join(format!("{sessions}.db"));
        let journal = SqliteJournal::open(SqliteOptions::at(path)).unwrap();
        let born: Vec<(Session, EventEntry)> = (1..=sessions).map(born).collect();
        for some in born.chunks(1_000) {
            let (sessions, entries) = some.iter().cloned().unzip();
            journal.append(&Batch { entries, sessions, ..Batch::default() }).unwrap();
        }
        let heads = born.iter().map(|(session, _)| (session.id, 1)).collect();
        let body = Bytes::from(vec![b'x'; BODY_BYTES]);
        Self { journal, heads, now: 0, rng: fastrand::Rng::with_seed(1), body }
    }

    fn append(&mut self) {
        let mut entries = Vec::with_capacity(GROUP);
        for _ in 0..GROUP {
            self.now += 1;
            let index = self.rng.usize(0..self.heads.len());
            let (session, head) = &mut self.heads[index];
            *head += 1;
            let at = Timestamp::from_millis(self.now);
            entries.push(EventEntry { session: *session, seq: *head, at, body: self.body.clone() });
        }
        self.journal.append(&Batch { entries, ..Batch::default() }).unwrap();
    }
}

fn born(number: u64) -> (Session, EventEntry) {
    let at = Timestamp::from_millis(0);
    let session = SessionId::mint(at, u128::from(number));
    let event = create(&NewSession::default(), "alex", None, &Limits::default()).unwrap().into();
    let envelope = Envelope { seq: 1, session, at, actor: Actor::operator("alex"), cause: None, event };
    let body = serde_json::to_vec(&envelope).unwrap().into();
    (Session::born(&envelope).unwrap(), EventEntry { session, seq: 1, at, body })
}

struct Measured {
    rate: f64,
    /// Bytes handed to the system for each event, where the system tells.
    bytes: u64,
    p50: Duration,
    p99: Duration,
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rate, bytes, p50, p99 } = self;
        write!(f, "{rate:.0} ({}/{}, {bytes} B)", p50.as_micros(), p99.as_micros())
    }
}

fn run(mut commit: impl FnMut()) -> Measured {
    let (begin, written) = (Instant::now(), bytes_written());
    let mut times = Vec::new();
    while begin.elapsed() < TURN {
        let start = Instant::now();
        commit();
        times.push(start.elapsed());
    }
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let rate = (times.len() * GROUP) as f64 / begin.elapsed().as_secs_f64();
    let bytes = (bytes_written() - written) / (times.len() * GROUP) as u64;
    times.sort_unstable();
    Measured { rate, bytes, p50: times[times.len() / 2], p99: times[times.len() * 99 / 100] }
}

fn bytes_written() -> u64 {
    let counters = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let written = counters.lines().find_map(|line| line.strip_prefix("wchar: "));
    written.and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn spread(ratios: &mut [f64]) -> String {
    ratios.sort_by(f64::total_cmp);
    format!("{:.2} [{:.2}–{:.2}]", ratios[ratios.len() / 2], ratios[0], ratios[ratios.len() - 1])
}
