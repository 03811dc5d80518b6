//! Who else is there.

use serde_json::{Value, json};

use super::kit::{BOTH, Client, Wire, create, until, with_role};
use crate::support::{Daemon, Setup};

fn present(daemon: &Daemon, session: &str) -> Vec<Value> {
    let listed = daemon.request("GET", &format!("/api/v1/sessions/{session}/presence"), &[], None).json();
    let connections = listed["connections"].as_array().unwrap().clone();
    assert_eq!(listed["count"], connections.len());
    connections
}

/// The next list of presence with so many in it.
fn with(client: &mut Client, count: usize) -> Vec<Value> {
    loop {
        let connections = client.until("presence")["connections"].as_array().unwrap().clone();
        if connections.len() == count {
            return connections;
        }
    }
}

#[test]
fn who_comes_and_goes_is_seen_by_the_others_and_writes_nothing() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let observer = with_role(&daemon, "observer");
    for wire in BOTH {
        let mut first = Client::attach(&daemon, &session, "client=cli&channel=desk&write=true", wire);
        let connection = first.connected()["connection"].clone();
        // An observer may say that it means to write; it is not one who does (S3-B13).
        let second = Client::attach_as(&observer, &session, "client=web&write=true", wire);
        let seen = with(&mut first, 2);
        assert_eq!(seen, present(&daemon, &session));
        assert_eq!(seen[0]["connection"], connection);
        assert_eq!((&seen[0]["client"], &seen[0]["channel"]), (&json!("cli"), &json!("desk")));
        assert_eq!((&seen[0]["mode"], &seen[1]["mode"]), (&json!("writing"), &json!("reading")));
        assert_eq!(seen[1]["actor"], json!({"kind": "observer", "name": "observer"}));
        drop(second);
        assert_eq!(with(&mut first, 1)[0]["connection"], connection);
        drop(first);
        until("everyone to be gone", || present(&daemon, &session).is_empty());
        assert_eq!(daemon.log_after(&session, 0).len(), 1, "presence is not in the log");
    }
}

/// A client that is killed is gone as one that leaves.
#[test]
fn a_client_that_is_killed_is_not_there_any_more() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let mut watcher = Client::attach(&daemon, &session, "client=watcher", Wire::Ws);
    let script = format!(
        "exec curl -sN --unix-socket {} -H 'Authorization: Bearer {}' 'http://localhost/api/v1/sessions/{session}/attach?client=curl'",
        daemon.home().join("lanyard.sock").display(),
        daemon.token(),
    );
    let mut client = std::process::Command::new("sh")
        .args(["-c", &script])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let both = with(&mut watcher, 2);
    assert!(both.iter().any(|one| one["client"] == "curl"));
    client.kill().unwrap();
    client.wait().unwrap();
    assert_eq!(with(&mut watcher, 1)[0]["client"], "watcher");
}

/// One connection that came back before its old socket was known to be dead counts once; nobody else can be it.
#[test]
fn a_connection_is_its_owners() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let mut first = Client::attach(&daemon, &session, "", Wire::Ws);
    let connection = first.connected()["connection"].as_str().unwrap().to_owned();
    let query = format!("connection={connection}");
    let mut again = Client::attach(&daemon, &session, &query, Wire::Sse);
    assert_eq!(again.connected()["connection"], connection);
    assert_eq!(present(&daemon, &session).len(), 1);
    let thief = with_role(&daemon, "observer");
    let path = format!("/api/v1/sessions/{session}/attach?{query}");
    let refused = |wire| Client::open(&thief, &path, wire, &[]).err().unwrap().code();
    assert_eq!(refused(Wire::Ws), "connection_taken");
    drop((first, again));
    until("it to be gone", || present(&daemon, &session).is_empty());
    assert_eq!(refused(Wire::Sse), "connection_taken", "also after it left");
}

/// The list names some of a crowd and counts all of it.
#[test]
fn a_crowd_is_counted() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let crowd: Vec<Client> =
        (0..100).map(|at| Client::attach(&daemon, &session, "client=fan", BOTH[at % 2])).collect();
    let listed = daemon.request("GET", &format!("/api/v1/sessions/{session}/presence"), &[], None).json();
    assert_eq!((listed["count"].clone(), listed["connections"].as_array().unwrap().len()), (json!(100), 64));
    let detail = daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).json();
    assert_eq!(detail["active_connections"], 100);
    drop(crowd);
    let path = format!("/api/v1/sessions/{session}/presence");
    until("the crowd to go", || daemon.request("GET", &path, &[], None).json()["count"] == 0);
}

/// S3-41: attaching and detaching are in the daemon's own log, with who and how.
#[test]
fn attaching_and_detaching_are_logged() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let mut client = Client::attach(&daemon, &session, "client=cli&channel=desk&last=3", Wire::Ws);
    let connection = client.connected()["connection"].as_str().unwrap().to_owned();
    drop(client);
    until("both lines", || daemon.stderr().contains("detached"));
    for word in ["attached", "detached"] {
        let said = daemon.stderr();
        let line =
            said.lines().find(|line| line.contains(&format!(" {word} "))).unwrap_or_else(|| panic!("{said}"));
        for part in [session.as_str(), connection.as_str(), "cli", "desk", "local", "last"] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }
}
