//! Requests over a WebSocket: the same rows, the same rules, the same answers.

use serde_json::{Value, json};

use super::kit::{Client, Stage, Wire, create, until, with_role};
use crate::support::{Caller, Daemon, Setup};

/// A turn is started, read to its end and asked for, all over one connection.
#[test]
fn a_conversation_needs_only_one_socket() {
    let stage = Stage::new();
    let session = stage.talk();
    let mut client = Client::attach(&stage.daemon, &session, "write=true", Wire::Ws);
    let turn_id = client.connected()["client_turn_id"].clone();
    let body = json!({"prompt": "/say hello", "client_turn_id": turn_id});
    let reply = client.ask(&json!({"ref": "7", "do": "start_turn", "body": body}));
    assert_eq!((&reply["ref"], &reply["status"]), (&json!("7"), &json!(201)), "{reply}");
    assert_eq!(reply["body"]["session"], session);
    assert_eq!(client.until("turn.finished")["data"]["outcome"], "completed");
    let reply = client.ask(&json!({"ref": "8", "do": "list_events", "params": {"after": "0", "limit": "1"}}));
    assert_eq!(reply["body"]["events"][0]["seq"], 1);
}

/// The key of a request is its key, over whichever way it comes again.
#[test]
fn an_idempotency_key_holds_over_both_ways() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let mut client = Client::attach(&daemon, &session, "", Wire::Ws);
    let frame = json!({"ref": "a", "do": "guide_session", "body": {"text": "look left"}, "key": "k1"});
    let first = client.ask(&frame);
    assert_eq!(first["status"], 201, "{first}");
    let again = client.ask(&frame);
    assert_eq!(again["body"], first["body"]);
    let path = format!("/api/v1/sessions/{session}/guidance");
    let http = daemon.request("POST", &path, &[("idempotency-key", "k1")], Some("{\"text\":\"look left\"}"));
    assert_eq!(http.json(), first["body"], "{}", http.text());
    let other = client.ask(&json!({"do": "guide_session", "body": {"text": "look right"}, "key": "k1"}));
    assert_eq!((&other["status"], &other["body"]["code"]), (&json!(409), &json!("idempotency_conflict")));
    assert_eq!(other["ref"], Value::Null);
}

/// S3-B13: what a token may not do over HTTP it may not do here, and a token that is revoked may nothing more.
#[test]
fn an_observers_connection_cannot_write() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let observer = with_role(&daemon, "observer");
    let mut client = Client::attach_as(&observer, &session, "write=true", Wire::Ws);
    for operation in
        ["start_turn", "cancel_turn", "stop_session", "guide_session", "delete_session", "complete_session"]
    {
        let reply = client.ask(&json!({"do": operation, "body": {"prompt": "x"}}));
        assert_eq!(
            (&reply["status"], &reply["body"]["code"]),
            (&json!(403), &json!("role_forbidden")),
            "{operation}"
        );
    }
    assert_eq!(client.ask(&json!({"do": "get_session"}))["status"], 200);
    assert_eq!(daemon.log_after(&session, 0).len(), 1);
    revoke(&daemon, "observer");
    assert_eq!(client.until("goodbye")["why"], "token_revoked");
    assert!(client.next().is_none());
}

fn revoke(daemon: &Daemon, name: &str) {
    let listed = daemon.request("GET", "/api/v1/tokens", &[], None).json();
    let held =
        listed["tokens"].as_array().unwrap().iter().find(|token| token["name"] == name).unwrap().clone();
    let path = format!("/api/v1/tokens/{}", held["id"].as_str().unwrap());
    assert_eq!(daemon.request("DELETE", &path, &[], None).status, 204);
}

/// An agent's token is let in to its own session only, and there it does what agents may.
#[test]
fn an_agent_attaches_to_itself_alone() {
    let daemon = Daemon::start(Setup::default());
    let (own, other) = (create(&daemon), create(&daemon));
    let body = json!({"role": "agent", "name": "agent", "session": own}).to_string();
    let made = daemon.request("POST", "/api/v1/tokens", &[], Some(&body)).json();
    let agent = Caller { token: made["token"].as_str().unwrap().to_owned(), ..daemon.caller() };
    let mut client = Client::attach_as(&agent, &own, "", Wire::Ws);
    let said = json!({"type": "said", "role": "agent", "text": "here"});
    assert_eq!(client.ask(&json!({"do": "report_signal", "body": said}))["status"], 201);
    assert_eq!(client.ask(&json!({"do": "start_turn", "body": {"prompt": "x"}}))["status"], 403);
    let refused = Client::open(&agent, &format!("/api/v1/sessions/{other}/attach"), Wire::Ws, &[]);
    assert_eq!(refused.err().unwrap().code(), "not_your_session");
}

/// More requests at once than a connection may have are refused, not queued without end. None is lost in silence.
#[test]
fn every_request_is_answered_or_refused() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let mut client = Client::attach(&daemon, &session, "", Wire::Ws);
    let total = 64;
    for number in 0..total {
        let said = json!({"type": "said", "role": "agent", "text": number.to_string()});
        client.send(&json!({"ref": number.to_string(), "do": "report_signal", "body": said}));
    }
    let (mut done, mut refused) = (Vec::new(), Vec::new());
    while done.len() + refused.len() < total {
        let frame = client.next().expect("haste alone ends no connection");
        let named = frame["ref"].as_str().unwrap_or_default().to_owned();
        match frame["type"].as_str() {
            Some("reply") => done.push(named),
            Some("error") => {
                assert_eq!(frame["code"], "too_many_in_flight", "{frame}");
                refused.push(named);
            }
            _ => {}
        }
    }
    assert!(done.len() >= 8, "{done:?}");
    let log = daemon.log_after(&session, 1);
    let mut written: Vec<&str> = log.iter().map(|event| event["data"]["text"].as_str().unwrap()).collect();
    written.sort_unstable();
    done.sort_unstable();
    assert_eq!(written, done, "what was answered was done, once, and nothing else");
}

/// One who does not read what it is sent can still say stop (and is heard).
#[test]
fn a_client_that_takes_nothing_is_still_heard() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let mut client = Client::attach(&daemon, &session, "mode=full", Wire::Ws);
    let text = "x".repeat(20_000);
    for _ in 0..200 {
        super::kit::say(&daemon, &session, &text);
    }
    client.send(&json!({"ref": "stop", "do": "complete_session", "body": {"reason": "enough"}}));
    until("it to be heard", || {
        let detail = daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).json();
        detail["state"] == "completed"
    });
    client.connected();
    let mut seen = Vec::new();
    let mut replied = false;
    while seen.len() < 202 || !replied {
        let frame = client.next().unwrap();
        match frame["seq"].as_u64() {
            Some(seq) => seen.push(seq),
            None => replied |= frame["ref"] == "stop",
        }
    }
    assert_eq!(seen, (1..=202).collect::<Vec<_>>());
}
