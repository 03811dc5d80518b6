//! The directory as a stream: what there is, then what changes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::kit::{BOTH, Client, Wire, create, say, sessions, with_role};
use crate::support::{Daemon, Setup};

fn watch(daemon: &Daemon, query: &str, wire: Wire) -> Client {
    Client::open(&daemon.caller(), &format!("/api/v1/directory/stream?{query}"), wire, &[]).unwrap()
}

/// What a stream shows up to `ready`, by id.
fn shown(client: &mut Client) -> BTreeMap<String, Value> {
    assert_eq!(client.connected()["heartbeat_ms"], 15_000);
    let mut rows = BTreeMap::new();
    loop {
        let frame = client.next().unwrap();
        match frame["type"].as_str().unwrap() {
            "row" => {
                rows.insert(frame["row"]["id"].as_str().unwrap().to_owned(), frame["row"].clone());
            }
            "ready" => {
                assert_eq!(frame["rows"], rows.len());
                return rows;
            }
            other => panic!("{other}: {frame}"),
        }
    }
}

/// Reads on until a session's row is as wanted.
fn until_row(client: &mut Client, session: &str, is: impl Fn(&Value) -> bool) {
    loop {
        let frame = client.until("row");
        if frame["row"]["id"] == session && is(&frame["row"]) {
            return;
        }
    }
}

fn made(daemon: &Daemon, new: &Value) -> String {
    let made = daemon.request("POST", "/api/v1/sessions", &[], Some(&new.to_string()));
    made.json()["session"].as_str().unwrap().to_owned()
}

#[test]
fn it_shows_what_a_listing_shows_and_then_what_changes() {
    let daemon = Daemon::start(Setup::default());
    for wire in BOTH {
        let old = create(&daemon);
        let mut client = watch(&daemon, "", wire);
        let mut rows = shown(&mut client);
        // A listing says nothing of the activity.
        for row in rows.values_mut() {
            assert!(row.as_object_mut().unwrap().remove("glance").is_some(), "{row}");
        }
        let listed: BTreeMap<String, Value> =
            sessions(&daemon).into_iter().map(|row| (row["id"].as_str().unwrap().to_owned(), row)).collect();
        assert_eq!(rows, listed, "{wire:?}");
        let new = create(&daemon);
        until_row(&mut client, &new, |row| row["state"] == "beginning");
        say(&daemon, &old, "word");
        until_row(&mut client, &old, |row| row["last_event_seq"] == 2);
        let attached = Client::attach(&daemon, &old, "", Wire::Sse);
        until_row(&mut client, &old, |row| row["active_connections"] == 1);
        drop(attached);
        until_row(&mut client, &old, |row| row["active_connections"] == 0);
        daemon.request("DELETE", &format!("/api/v1/sessions/{new}"), &[], Some("{}"));
        assert_eq!(client.until("gone")["session"], new);
    }
}

/// A dashboard shows the activity of every row without a request of its own for each.
#[test]
fn fnd_d18_rows_carry_the_activity_of_their_session() {
    let daemon = Daemon::start(Setup::default());
    for wire in BOTH {
        let session = create(&daemon);
        say(&daemon, &session, "The first. ");
        let mut client = watch(&daemon, "", wire);
        assert_eq!(shown(&mut client)[&session]["glance"]["said"], "The first.", "{wire:?}");
        say(&daemon, &session, "The second.");
        until_row(&mut client, &session, |row| row["glance"]["said"] == "The first. The second.");
        let signal = |body: &Value| {
            let path = format!("/api/v1/sessions/{session}/signals");
            let answer = daemon.request("POST", &path, &[], Some(&body.to_string()));
            assert_eq!(answer.status, 201, "{}", answer.text());
        };
        let arguments = json!({"command": "npm test"});
        signal(&json!({"type": "tool_called", "call": "1", "tool": "bash", "arguments": arguments}));
        until_row(&mut client, &session, |row| {
            row["glance"]["call"]["about"] == "npm test" && row["glance"]["call"]["running"] == true
        });
        signal(&json!({"type": "file_changed", "path": "a.rs", "added": 4, "removed": 1}));
        until_row(&mut client, &session, |row| row["glance"]["added"] == 4 && row["glance"]["files"] == 1);
    }
}

/// The filters of a listing, and a session that stops to match is gone.
#[test]
fn only_what_matches_is_shown_and_what_stops_to_is_taken_back() {
    let daemon = Daemon::start(Setup::default());
    let mine = made(&daemon, &json!({"title": "fix login", "owner": "ann"}));
    let other = made(&daemon, &json!({"title": "fix login", "owner": "bob"}));
    for (wire, reason) in BOTH.into_iter().zip(["archive", "unarchive"]) {
        let archived = reason == "unarchive";
        let query = format!("owner=ann&text=LOGIN&archived={archived}");
        let mut client = watch(&daemon, &query, wire);
        assert_eq!(shown(&mut client).into_keys().collect::<Vec<_>>(), [mine.as_str()]);
        say(&daemon, &other, "not for this stream");
        daemon.request("POST", &format!("/api/v1/sessions/{mine}/{reason}"), &[], Some("{}"));
        let frame = client.next().unwrap();
        assert_eq!(frame, json!({"type": "gone", "session": mine}), "{wire:?}");
        let undo = if archived { "archive" } else { "unarchive" };
        daemon.request("POST", &format!("/api/v1/sessions/{mine}/{undo}"), &[], Some("{}"));
        until_row(&mut client, &mine, |row| row["archived"] == archived);
        daemon.request("POST", &format!("/api/v1/sessions/{mine}/{reason}"), &[], Some("{}"));
    }
}

#[test]
fn the_newest_come_first_up_to_the_limit() {
    let daemon = Daemon::start(Setup::default());
    let ids: Vec<String> = (0..450).map(|_| create(&daemon)).collect();
    let mut client = watch(&daemon, "limit=410", Wire::Ws);
    let rows = shown(&mut client);
    // Ids of one millisecond have no order.
    let newest: BTreeSet<String> = ids[40..].iter().cloned().collect();
    assert_eq!(rows.into_keys().collect::<BTreeSet<_>>(), newest);
    // One that was not shown is, once something happens to it.
    say(&daemon, &ids[0], "hello");
    until_row(&mut client, &ids[0], |row| row["last_event_seq"] == 2);
}

/// Many changes of one session are few rows, and the last of them is how it is.
#[test]
fn a_storm_becomes_few_rows() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    for wire in BOTH {
        let mut client = watch(&daemon, "", wire);
        let begun = shown(&mut client)[&session]["last_event_seq"].as_u64().unwrap();
        for number in 0..300 {
            say(&daemon, &session, &number.to_string());
        }
        let mut rows = 0;
        while client.until("row")["row"]["last_event_seq"].as_u64() < Some(begun + 300) {
            rows += 1;
        }
        assert!(rows < 150, "{rows} rows for 300 events");
    }
}

#[test]
fn who_may_not_look_at_all_is_refused_and_bad_queries_too() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let body = json!({"role": "agent", "name": "agent", "session": session}).to_string();
    let token = daemon.request("POST", "/api/v1/tokens", &[], Some(&body)).json()["token"].clone();
    let agent = crate::support::Caller { token: token.as_str().unwrap().to_owned(), ..daemon.caller() };
    let refused = |caller: &crate::support::Caller, query: &str, wire| {
        let path = format!("/api/v1/directory/stream?{query}");
        Client::open(caller, &path, wire, &[]).err().unwrap_or_else(|| panic!("{query} was let in")).code()
    };
    for wire in BOTH {
        assert_eq!(refused(&agent, "", wire), "role_forbidden");
        for query in ["limit=0", "limit=10001", "cursor=x", "state=flying", "after=1", "limit=-1"] {
            assert_eq!(refused(&daemon.caller(), query, wire), "query_invalid", "{query}");
        }
    }
    let observer = with_role(&daemon, "observer");
    let mut client = Client::open(&observer, "/api/v1/directory/stream", Wire::Ws, &[]).unwrap();
    assert_eq!(shown(&mut client).len(), 1);
    client.say(r#"{"do":"stop_session"}"#);
    assert_eq!(client.until("error")["code"], "do_unknown");
    assert!(daemon.terminate().success());
    assert_eq!(client.until("goodbye")["why"], "closing");
}
