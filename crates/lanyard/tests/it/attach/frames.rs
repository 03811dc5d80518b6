//! What clients send that is no request: it is named, nothing is done, and too much of it ends the connection.

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::kit::{Client, Wire, create, say};
use crate::support::{Daemon, Setup};

fn attached() -> (Daemon, String, Client) {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let mut client = Client::attach(&daemon, &session, "", Wire::Ws);
    client.connected();
    (daemon, session, client)
}

#[test]
fn garbage_is_named_and_the_stream_goes_on() {
    let (daemon, session, mut client) = attached();
    let cases = [
        ("", "frame_invalid"),
        ("hello", "frame_invalid"),
        ("[1,2]", "frame_invalid"),
        ("{\"do\":7}", "frame_invalid"),
        ("{\"do\":\"start_turn\",\"wish\":1}", "frame_invalid"),
        ("{}", "do_unknown"),
        ("null", "frame_invalid"),
        ("{\"do\":\"fly\"}", "do_unknown"),
        ("{\"do\":\"attach\"}", "do_unknown"),
        ("{\"do\":\"shutdown\"}", "do_unknown"),
        ("{\"do\":\"mcp_message\",\"params\":{\"server\":\"x\"}}", "do_unknown"),
        ("{\"do\":\"answer_gate\"}", "param_missing"),
        ("{\"do\":\"cancel_turn\",\"params\":{\"id\":\"sess_x\"}}", "param_unknown"),
        ("{\"do\":\"get_session\",\"body\":{}}", "body_unknown"),
        ("{\"type\":\"pong\"}", "type_unknown"),
        ("{\"type\":\"ping\",\"do\":\"cancel_turn\"}", "type_unknown"),
        ("{\"do\":\"cancel_turn\",\"key\":\"a\\nb\"}", "frame_invalid"),
    ];
    for (frame, code) in cases {
        assert_eq!(client.fault(frame), code, "{frame}");
        // A good frame in between: only faults in a row count.
        let reply = client.ask(&json!({"ref": frame, "do": "get_session"}));
        assert_eq!((&reply["ref"], &reply["status"]), (&json!(frame), &json!(200)));
    }
    client.socket().send(Message::binary(vec![0, 159, 146, 150])).unwrap();
    assert_eq!(client.until("error")["code"], "frame_not_text");
    say(&daemon, &session, "still here");
    assert_eq!(client.take(1), [2]);
}

/// Both kinds of ping are answered.
#[test]
fn a_ping_is_answered_by_a_heartbeat() {
    let (_daemon, _session, mut client) = attached();
    client.say(r#"{"type":"ping"}"#);
    client.socket().send(Message::Ping(vec![1, 2].into())).unwrap();
    let (mut heartbeat, mut pong) = (false, false);
    while !(heartbeat && pong) {
        match client.socket().read().unwrap() {
            Message::Text(text) if text.as_str() == r#"{"type":"heartbeat"}"# => heartbeat = true,
            Message::Pong(data) => pong = data.as_ref() == [1, 2],
            Message::Text(_)
            | Message::Binary(_)
            | Message::Ping(_)
            | Message::Close(_)
            | Message::Frame(_) => {}
        }
    }
}

#[test]
fn too_many_faults_in_a_row_end_the_connection_and_nothing_else() {
    let (daemon, session, mut client) = attached();
    for _ in 0..7 {
        assert_eq!(client.fault("garbage"), "frame_invalid");
    }
    client.say("garbage");
    assert_eq!(client.closed().unwrap().code, CloseCode::Policy);
    say(&daemon, &session, "unharmed");
    let mut client = Client::attach(&daemon, &session, "mode=full", Wire::Ws);
    client.connected();
    assert_eq!(client.take(2), [1, 2]);
}

/// A frame over the limit is refused; one far over it is not even read.
#[test]
fn large_frames_are_refused() {
    let (daemon, session, mut client) = attached();
    let large = |bytes: usize| json!({"do": "start_turn", "body": {"prompt": "x".repeat(bytes)}}).to_string();
    assert_eq!(client.fault(&large(1 << 20)), "frame_too_large");
    say(&daemon, &session, "still here");
    assert_eq!(client.take(1), [2]);
    // The server may close before all of it was sent.
    let _ = client.socket().send(Message::text(large(5 << 20)));
    let mut codes = Vec::new();
    while let Ok(message) = client.socket().read() {
        match message {
            Message::Text(text) => {
                codes.push(serde_json::from_str::<serde_json::Value>(&text).unwrap()["code"].clone());
            }
            Message::Close(close) => assert!(close.is_none_or(|close| close.code == CloseCode::Size)),
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
    assert!(codes.iter().all(|code| code == "frame_too_large" || code.is_null()), "{codes:?}");
    assert_eq!(daemon.log_after(&session, 0).len(), 2, "none of it was taken as a turn");
}
