//! Readers that do not keep up: they get everything, are told, and hold nobody up (S3-B06).

use super::kit::{BOTH, Client, Wire, create, say};
use crate::support::{Daemon, Setup};

#[test]
fn a_stalled_reader_slows_nobody_is_told_and_gets_everything() {
    for wire in BOTH {
        let daemon = Daemon::start(Setup::default());
        let session = create(&daemon);
        let mut stalled = Client::attach(&daemon, &session, "mode=full", wire);
        stalled.connected();
        assert_eq!(stalled.take(1), [1]);
        let mut lively = Client::attach(&daemon, &session, "mode=full", Wire::Sse);
        lively.connected();
        // Far more than any buffer between them holds, and more events than one may be behind in silence.
        let (text, total) = ("x".repeat(4_000), 1_600);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..total / 4).for_each(|_| say(&daemon, &session, &text)));
            }
            assert_eq!(lively.take(total + 1), (1..=total as u64 + 1).collect::<Vec<_>>());
        });
        let (mut seen, mut told) = (1, None);
        while seen <= total as u64 {
            let frame = stalled.next().unwrap();
            if let Some(seq) = frame["seq"].as_u64() {
                assert_eq!(seq, seen + 1, "{wire:?}");
                seen = seq;
            } else if frame["type"] == "resync" {
                assert_eq!(frame["after"], seen, "{frame}");
                assert!(frame["head"].as_u64().unwrap() > seen + 1_000, "{frame}");
                assert!(told.replace(frame).is_none(), "told once");
            }
        }
        assert!(told.is_some(), "{wire:?}: told that it is behind");
    }
}

/// A socket that takes nothing at all is not kept for ever.
#[test]
fn a_socket_that_takes_nothing_is_closed() {
    let daemon = Daemon::start(Setup::default().env("LANYARD_STALLED_MS", "1000"));
    let session = create(&daemon);
    let streams = BOTH.map(|wire| Client::attach(&daemon, &session, "mode=full", wire));
    let text = "x".repeat(100_000);
    for _ in 0..80 {
        say(&daemon, &session, &text);
    }
    let detail = || daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).json();
    super::kit::until("both to be let go", || detail()["active_connections"] == 0);
    drop(streams);
    let mut again = Client::attach(&daemon, &session, "mode=full", Wire::Ws);
    again.connected();
    assert_eq!(again.take(81), (1..=81).collect::<Vec<_>>());
}
