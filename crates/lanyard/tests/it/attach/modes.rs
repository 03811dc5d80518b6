//! Where a stream begins, and that it goes on exactly there.

use serde_json::Value;

use super::kit::{BOTH, Client, Wire, create, say, sessions};
use crate::support::{Daemon, Setup};

fn prepared() -> (Daemon, String) {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    for number in 0..9 {
        say(&daemon, &session, &number.to_string());
    }
    (daemon, session)
}

/// S3-12: from here on, after a position, with the last few first, or everything; then live, and the same on both wires.
#[test]
fn a_stream_begins_where_it_is_asked_to_and_goes_on_live() {
    let (daemon, session) = prepared();
    for wire in BOTH {
        let head = daemon.log_after(&session, 0).len() as u64;
        let cases = [
            ("", "tail", head),
            ("mode=tail&client=test", "tail", head),
            ("after=7", "after", 7),
            ("last=2", "last", head - 2),
            ("last=0", "last", head),
            ("last=10000", "last", 0),
            ("mode=full", "full", 0),
        ];
        let mut clients: Vec<(Client, u64)> = cases
            .into_iter()
            .map(|(query, mode, after)| {
                let mut client = Client::attach(&daemon, &session, query, wire);
                let connected = client.connected();
                assert_eq!(connected["mode"], mode, "{query}");
                assert_eq!(connected["after"], after, "{query}");
                assert_eq!(connected["head_seq"], head, "{query}");
                (client, after)
            })
            .collect();
        for number in 0..300 {
            say(&daemon, &session, &number.to_string());
        }
        for (client, after) in &mut clients {
            let wanted: Vec<u64> = (*after + 1..=head + 300).collect();
            assert_eq!(client.take(wanted.len()), wanted, "{wire:?}");
        }
    }
}

/// Events are exactly the stored envelopes, over both wires.
#[test]
fn events_are_what_the_log_holds() {
    let (daemon, session) = prepared();
    say(&daemon, &session, "Größe 漢 \u{2028} line\nbreak \"data: x\"");
    let log = daemon.log_after(&session, 0);
    for wire in BOTH {
        let mut client = Client::attach(&daemon, &session, "mode=full", wire);
        client.connected();
        let seen: Vec<Value> = log.iter().map(|_| client.event().unwrap()).collect();
        assert_eq!(seen, log, "{wire:?}");
    }
}

/// S3-04: the session's id nested and not, with everything a client needs to go on.
#[test]
fn the_connected_frame_has_both_shapes() {
    let (daemon, session) = prepared();
    for wire in BOTH {
        let connected = Client::attach(&daemon, &session, "", wire).connected();
        assert_eq!(connected["session_id"], session);
        assert_eq!(connected["session"]["id"], session);
        for name in ["state", "head_seq", "active_turn", "writer"] {
            assert_eq!(connected[name], connected["session"][name], "{name}");
            assert!(connected.get(name).is_some() && connected["session"].get(name).is_some(), "{name}");
        }
        assert_eq!(connected["session"]["lifecycle"], "idle");
        assert_eq!(connected["session"]["status"], "active");
        assert_eq!(connected["heartbeat_ms"], 15_000);
        assert!(connected["connection"].as_str().unwrap().starts_with("conn_"));
        assert_eq!(connected["client_turn_id"].as_str().unwrap().len(), 36);
    }
}

/// S3-B05: who comes back with its last position gets what follows it, also from a daemon that was killed since.
/// S3-T1: the session and the place in it are found again, also by a daemon that was killed.
#[test]
fn coming_back_leaves_no_gap_and_no_repeat_over_a_kill() {
    for wire in BOTH {
        let mut daemon = Daemon::start(Setup::default());
        let session = create(&daemon);
        let mut client = Client::attach(&daemon, &session, "mode=full", wire);
        let connection = client.connected()["connection"].as_str().unwrap().to_owned();
        let mut seen = client.take(1);
        for round in 0..4 {
            for number in 0..20 {
                say(&daemon, &session, &format!("{round} {number}"));
            }
            seen.extend(client.take(7));
            if round % 2 == 1 {
                daemon.restart_with(Setup::default());
            }
            let query = format!("after={}&connection={connection}", seen.last().unwrap());
            client = Client::attach(&daemon, &session, &query, wire);
            let connected = client.connected();
            assert_eq!(connected["connection"], connection, "it comes back as the same");
            assert_eq!(connected["after"], *seen.last().unwrap());
        }
        seen.extend(client.take(81 - seen.len()));
        assert_eq!(seen, (1..=81).collect::<Vec<_>>(), "{wire:?}");
    }
}

/// A browser's `EventSource` comes back with a header.
#[test]
fn the_last_event_id_says_more_than_the_query() {
    let (daemon, session) = prepared();
    let path = format!("/api/v1/sessions/{session}/attach?mode=full");
    let mut client = Client::open(&daemon.caller(), &path, Wire::Sse, &[("last-event-id", "8")]).unwrap();
    let connected = client.connected();
    assert_eq!((&connected["mode"], &connected["after"]), (&"after".into(), &8.into()));
    assert_eq!(client.take(2), [9, 10]);
}

/// When the daemon ends it says so, and the next one takes the client up where it was.
#[test]
fn the_end_of_the_daemon_is_said_to_everyone() {
    for wire in BOTH {
        let mut daemon = Daemon::start(Setup::default());
        let session = create(&daemon);
        let mut client = Client::attach(&daemon, &session, "mode=full", wire);
        client.connected();
        assert_eq!(client.take(1), [1]);
        assert!(daemon.terminate().success());
        let goodbye = client.until("goodbye");
        assert_eq!(goodbye["why"], "closing");
        if wire == Wire::Ws {
            assert_eq!(u16::from(client.closed().unwrap().code), 1001);
        }
        assert!(client.next().is_none());
        daemon.restart_with(Setup::default());
        say(&daemon, &session, "again");
        let mut client = Client::attach(&daemon, &session, "after=1", wire);
        client.connected();
        assert_eq!(client.take(1), [2]);
    }
}

/// S3-B09: an id nobody knows is not found, and nothing is made; a position nobody can know is refused.
#[test]
fn what_cannot_be_attached_to_is_refused_and_nothing_is_made() {
    let (daemon, session) = prepared();
    let refuse = |path: &str, wire: Wire| {
        let answer = Client::open(&daemon.caller(), &format!("/api/v1/sessions/{path}"), wire, &[]);
        let answer = answer.err().unwrap_or_else(|| panic!("{path} was let in"));
        (answer.status, answer.code())
    };
    let cases = [
        ("sess_00000000000000000000000000/attach".to_owned(), 404, "session_not_found"),
        ("nobody/attach".to_owned(), 404, "session_not_found"),
        (format!("{session}/attach?after=11"), 409, "seq_in_future"),
        (format!("{session}/attach?after=18446744073709551615"), 409, "seq_in_future"),
        (format!("{session}/attach?after=-1"), 400, "query_invalid"),
        (format!("{session}/attach?last=-5"), 400, "query_invalid"),
        (format!("{session}/attach?last=many"), 400, "query_invalid"),
        (format!("{session}/attach?last=10001"), 400, "query_invalid"),
        (format!("{session}/attach?mode=sideways"), 400, "query_invalid"),
        (format!("{session}/attach?mode=tail&after=1"), 400, "query_invalid"),
        (format!("{session}/attach?speed=9"), 400, "query_invalid"),
        (format!("{session}/attach?client="), 400, "query_invalid"),
        (format!("{session}/attach?connection=conn_1"), 400, "query_invalid"),
    ];
    for wire in BOTH {
        for (path, status, code) in &cases {
            assert_eq!(refuse(path, wire), (*status, (*code).to_owned()), "{path} over {wire:?}");
        }
    }
    assert_eq!(sessions(&daemon).len(), 1);
    let answer = Client::open(
        &daemon.caller(),
        &format!("/api/v1/sessions/{session}/attach?after=11"),
        Wire::Sse,
        &[],
    );
    assert!(answer.err().unwrap().text().contains("which is 10"), "the head is told");
    daemon.request("DELETE", &format!("/api/v1/sessions/{session}"), &[], Some("{}"));
    assert_eq!(refuse(&format!("{session}/attach"), Wire::Ws), (410, "session_deleted".to_owned()));
}
