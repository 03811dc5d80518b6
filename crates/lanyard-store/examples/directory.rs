//! How long opening, listing and resuming take with many sessions and a long log.
//!
//! `cargo run --release -p lanyard-store --example directory [SESSIONS] [EVENTS]`

#![expect(clippy::disallowed_methods, reason = "measuring is reading a clock")]
#![expect(clippy::print_stdout, reason = "the result is what is printed")]
#![expect(clippy::unwrap_used, reason = "a measurement that fails should stop")]

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lanyard_core::session::{
    Delivery, Envelope, Event, NewSession, Opening, Role, StateName, Status, TranscriptEvent, TurnEvent,
    create,
};
use lanyard_core::{Actor, Limits, Session, SessionId, Timestamp, TurnId};
use lanyard_store::{Batch, Cursor, Directory, EventEntry, Filter, Journal, SqliteJournal, SqliteOptions};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse().unwrap());
    let (sessions, events) = (numbers.next().unwrap_or(100_000), numbers.next().unwrap_or(1_000_000));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let start = Instant::now();
    let ids = fill(&path, sessions, events);
    println!("{sessions} sessions and {events} events written in {:?}", start.elapsed());
    println!("file: {} MB", std::fs::metadata(&path).unwrap().len() >> 20);
    for _ in 0..3 {
        opening(&path);
    }
    let journal = SqliteJournal::open(SqliteOptions::at(path)).unwrap();
    listing(&journal);
    resuming(&journal, &ids);
}

fn opening(path: &Path) {
    let start = Instant::now();
    let conn = rusqlite::Connection::open(path).unwrap();
    let mut all = conn.prepare("SELECT * FROM sessions").unwrap();
    let mut rows = all.query([]).unwrap();
    while rows.next().unwrap().is_some() {}
    let scan = start.elapsed();
    drop(rows);
    drop(all);
    drop(conn);
    let start = Instant::now();
    drop(SqliteJournal::open(SqliteOptions::at(path.to_owned())).unwrap());
    println!("open and close {:?}, bare scan of the sessions {scan:?}", start.elapsed());
}

fn listing(journal: &SqliteJournal) {
    let text = |text: &str| Some(text.to_owned());
    let any = Filter::default;
    let filters = [
        ("all", any()),
        ("owner", Filter { owner: text("owner-3"), ..any() }),
        ("owner nobody has", Filter { owner: text("nobody"), ..any() }),
        ("plan of ten sessions", Filter { plan: text("plan-77"), ..any() }),
        ("executing", Filter { state: Some(StateName::Executing), ..any() }),
        ("active", Filter { status: Some(Status::Active), ..any() }),
        ("owner, source", Filter { owner: text("owner-3"), source: text("chat"), ..any() }),
        ("owner, source: none", Filter { owner: text("owner-3"), source: text("telegram"), ..any() }),
        (
            "live and executing by owner",
            Filter {
                owner: text("owner-3"),
                live_since: Some(Timestamp::from_millis(1)),
                state: Some(StateName::Executing),
                ..any()
            },
        ),
        ("text, common", Filter { text: text("session"), ..any() }),
        ("text, rare", Filter { text: text("number-4242"), ..any() }),
        ("text, two letters, none", Filter { text: text("qx"), ..any() }),
    ];
    for (name, filter) in filters {
        let mut cursor: Option<Cursor> = None;
        let (mut times, mut rows) = (Vec::new(), 0);
        for _ in 0..200 {
            let start = Instant::now();
            let listing = journal.list(&filter, cursor.as_ref(), 100).unwrap();
            times.push(start.elapsed());
            rows = rows.max(listing.rows.len());
            cursor = listing.next;
        }
        println!("list {name}: {} (pages of up to {rows})", show(&mut times));
    }
    let mut times: Vec<Duration> = (0..50)
        .map(|_| {
            let start = Instant::now();
            journal.in_state_since(StateName::Executing, Timestamp::from_millis(i64::MAX), 100).unwrap();
            start.elapsed()
        })
        .collect();
    println!("in_state_since: {}", show(&mut times));
}

fn resuming(journal: &SqliteJournal, ids: &[SessionId]) {
    let mut rng = fastrand::Rng::with_seed(5);
    let mut resume = |session: &dyn Fn(&mut fastrand::Rng) -> SessionId, limit| {
        let mut times = Vec::new();
        for _ in 0..500 {
            let id = session(&mut rng);
            let head = journal.events(id, u64::MAX, 1).unwrap().head;
            let after = rng.u64(0..head);
            let start = Instant::now();
            journal.events(id, after, limit).unwrap();
            times.push(start.elapsed());
        }
        show(&mut times)
    };
    println!("one event of a long log: {}", resume(&|_| ids[0], 1));
    println!("100 events of a long log: {}", resume(&|_| ids[0], 100));
    println!("one event of any log: {}", resume(&|rng| ids[rng.usize(0..ids.len())], 1));
    let mut times: Vec<Duration> = (0..500)
        .map(|_| {
            let id = ids[rng.usize(1..ids.len())];
            let start = Instant::now();
            journal.load(id).unwrap().unwrap();
            start.elapsed()
        })
        .collect();
    println!("load: {}", show(&mut times));
}

/// Every tenth event goes to the first session, the others anywhere.
fn fill(path: &Path, sessions: usize, events: usize) -> Vec<SessionId> {
    let journal = SqliteJournal::open(SqliteOptions::at(path.to_owned())).unwrap();
    let mut heads: Vec<(SessionId, u64)> = Vec::with_capacity(sessions);
    for some in (1..=sessions).collect::<Vec<_>>().chunks(1_000) {
        let mut batch = Batch::default();
        for &number in some {
            let session = born(number, &mut batch);
            heads.push((session.id, session.seq));
            batch.sessions.push(session);
        }
        journal.append(&batch).unwrap();
    }
    let mut rng = fastrand::Rng::with_seed(9);
    for begin in (0..events.saturating_sub(sessions)).step_by(500) {
        let mut batch = Batch::default();
        for number in begin..begin + 500 {
            let index = if number.is_multiple_of(10) { 0 } else { rng.usize(0..sessions) };
            let (id, head) = &mut heads[index];
            *head += 1;
            let event = TranscriptEvent::Message {
                role: Role::Agent,
                text: "x".repeat(150),
                message_id: None,
                parts: Vec::new(),
            };
            batch.entries.push(entry(*id, *head, event.into()).1);
        }
        journal.append(&batch).unwrap();
    }
    heads.into_iter().map(|(id, _)| id).collect()
}

fn born(number: usize, batch: &mut Batch) -> Session {
    let id = SessionId::mint(Timestamp::from_millis(0), number as u128);
    let new = NewSession {
        title: Some(format!("session number-{number}")),
        agent: Some(format!("agent-{}", number % 7)),
        owner: Some(format!("owner-{}", number % 20)),
        // Half of the owners use one channel only.
        source: Some(if number.is_multiple_of(2) { "telegram" } else { "chat" }.to_owned()),
        workspace: Some(format!("workspace-{}", number % 100)),
        plan: Some(format!("plan-{}", number / 10)),
        aliases: vec![format!("chat-{number}")],
        ..NewSession::default()
    };
    let created = create(&new, "alex", None, &Limits::default()).unwrap();
    let (envelope, first) = entry(id, 1, created.into());
    let mut session = Session::born(&envelope).unwrap();
    batch.entries.push(first);
    if number.is_multiple_of(1_000) {
        let started = TurnEvent::Started {
            turn: TurnId::from_u128(number as u128),
            client_turn_id: None,
            prompt: "go".to_owned(),
            parts: Vec::new(),
            prompt_hash: "0".to_owned(),
            opening: Opening::New,
            anchors: Vec::new(),
            governance: false,
            delivery: Delivery::Reject,
            queued: false,
            by: None,
            memory: None,
            choice: lanyard_core::session::AgentChoice::default(),
            forced: false,
        };
        let (envelope, second) = entry(id, 2, started.into());
        session.apply(&envelope).unwrap();
        batch.entries.push(second);
    }
    session
}

fn entry(session: SessionId, seq: u64, event: Event) -> (Envelope, EventEntry) {
    let at = Timestamp::from_millis(1_794_729_600_000);
    let envelope = Envelope { seq, session, at, actor: Actor::operator("alex"), cause: None, event };
    let body = Bytes::from(serde_json::to_vec(&envelope).unwrap());
    (envelope, EventEntry { session, seq, at, body })
}

fn show(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_micros();
    format!("p50 {} µs, p99 {} µs", at(50), at(99))
}
