//! Clients that come, go and change sessions at random while agents work in many sessions at once (S3-02, S3-T9): every
//! reader's log is complete and in order, no session is made, none is cancelled.
//!
//! `LANYARD_CHURN_ROUNDS=10000 LANYARD_CHURN_SEED=…` makes a longer run, or one run again.

use std::sync::atomic::{AtomicBool, Ordering};

use super::kit::{BOTH, Client, create, say, sessions};
use crate::support::{Daemon, Setup};

const ROUNDS: u64 = 2_000;
const READERS: u64 = 24;
const SESSIONS: usize = 12;
const WRITERS: u64 = 3;

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// One reader: for each session, how far it has read.
fn read(daemon: &Daemon, ids: &[String], rounds: u64, seed: u64) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut cursors = vec![0; ids.len()];
    for _ in 0..rounds {
        let at = random.usize(..ids.len());
        let wire = BOTH[random.usize(..2)];
        let mut client =
            Client::attach(daemon, &ids[at], &format!("after={}&client=churn", cursors[at]), wire);
        let connected = client.connected();
        assert_eq!(connected["after"], cursors[at], "seed {seed}");
        // Never more than there is: it would wait for what may not come.
        let there = connected["head_seq"].as_u64().unwrap() - cursors[at];
        for _ in 0..random.u64(0..=20).min(there) {
            let event = client.event().unwrap();
            cursors[at] += 1;
            assert_eq!(event["seq"], cursors[at], "a gap or a repeat, seed {seed}");
            assert_eq!(event["session"], ids[at], "another session's event, seed {seed}");
        }
        // It leaves as a client does that is killed: with unread data, and without a word.
    }
    cursors
}

#[test]
fn readers_that_come_and_go_at_random_miss_nothing() {
    let rounds = from_env("LANYARD_CHURN_ROUNDS").unwrap_or(ROUNDS);
    let seed = from_env("LANYARD_CHURN_SEED").unwrap_or_else(|| fastrand::u64(..1 << 32));
    eprintln!("LANYARD_CHURN_ROUNDS={rounds} LANYARD_CHURN_SEED={seed}");
    let daemon = Daemon::start(Setup::default());
    let ids: Vec<String> = (0..SESSIONS).map(|_| create(&daemon)).collect();
    let over = AtomicBool::new(false);
    let cursors: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let (daemon, ids, over) = (&daemon, &ids, &over);
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed + 1_000 + writer);
                while !over.load(Ordering::Relaxed) {
                    say(daemon, &ids[random.usize(..ids.len())], "word");
                }
            });
        }
        let readers: Vec<_> = (0..READERS)
            .map(|reader| scope.spawn(move || read(daemon, ids, rounds / READERS, seed + reader)))
            .collect();
        let cursors = readers.into_iter().map(std::thread::ScopedJoinHandle::join);
        let cursors: Vec<_> = cursors.collect();
        over.store(true, Ordering::Relaxed);
        cursors.into_iter().map(Result::unwrap).collect()
    });
    // Each reads on to the end of each log, from where it was.
    for (at, id) in ids.iter().enumerate() {
        let log = daemon.log_after(id, 0);
        for cursors in &cursors {
            let mut client = Client::attach(&daemon, id, &format!("after={}", cursors[at]), BOTH[at % 2]);
            let rest = client.take(log.len() - usize::try_from(cursors[at]).unwrap());
            assert_eq!(rest, (cursors[at] + 1..=log.len() as u64).collect::<Vec<_>>(), "seed {seed}");
        }
        let kinds: Vec<&str> = log.iter().skip(1).map(|event| event["type"].as_str().unwrap()).collect();
        assert!(kinds.iter().all(|kind| *kind == "message"), "only what was said is in the log, seed {seed}");
    }
    let listed = sessions(&daemon);
    assert_eq!(listed.len(), SESSIONS, "no session was made or lost, seed {seed}");
    assert!(listed.iter().all(|row| row["status"] == "active"), "none was cancelled, seed {seed}");
}
