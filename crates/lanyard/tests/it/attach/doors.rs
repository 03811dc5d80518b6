//! Who is let in over TCP, as a browser would come: Host, Origin, and the token as a subprotocol.

use std::net::TcpStream;

use tokio_tungstenite::tungstenite::client::client;
use tokio_tungstenite::tungstenite::http::{Request, Response};
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket};

use super::kit::{create, with_role};
use crate::support::{Daemon, PATIENCE, Setup, exchange};

type Opened = Result<(WebSocket<TcpStream>, Response<Option<Vec<u8>>>), (u16, String)>;

/// Knocks as a browser does, with these headers beside the usual ones.
fn knock(daemon: &Daemon, path: &str, host: &str, headers: &[(&str, &str)]) -> Opened {
    let stream = TcpStream::connect(daemon.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut request = Request::builder()
        .uri(format!("ws://{host}{path}"))
        .header("host", host)
        .header("connection", "keep-alive, Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    match client(request.body(()).unwrap(), stream) {
        Ok(opened) => Ok(opened),
        Err(tokio_tungstenite::tungstenite::HandshakeError::Failure(Error::Http(response))) => {
            let body = response.body().clone().unwrap_or_default();
            let problem: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            Err((response.status().as_u16(), problem["code"].as_str().unwrap_or_default().to_owned()))
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_browser_comes_in_with_its_token_as_a_subprotocol() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let address = daemon.address();
    let origin = format!("http://{address}");
    let path = format!("/api/v1/sessions/{session}/attach?client=web");
    let offer = format!("lanyard.v1, lanyard.token.{}", daemon.token());
    let (mut socket, response) =
        knock(&daemon, &path, &address, &[("origin", &origin), ("sec-websocket-protocol", &offer)]).unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "lanyard.v1", "the token is not sent back");
    let Message::Text(first) = socket.read().unwrap() else { panic!("no text") };
    assert!(first.contains("\"connected\""), "{first}");
    let observer = format!("lanyard.v1, lanyard.token.{}", with_role(&daemon, "observer").token);
    let (mut socket, _) = knock(&daemon, &path, &address, &[("sec-websocket-protocol", &observer)]).unwrap();
    socket.send(Message::text(r#"{"do":"start_turn","body":{"prompt":"x"}}"#)).unwrap();
    loop {
        let Message::Text(text) = socket.read().unwrap() else { continue };
        if text.contains("\"reply\"") {
            assert!(text.contains("role_forbidden"), "{text}");
            break;
        }
    }
}

#[test]
fn everyone_else_stays_outside() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let address = daemon.address();
    let port = address.rsplit_once(':').unwrap().1.to_owned();
    let token = daemon.token();
    let path = format!("/api/v1/sessions/{session}/attach");
    let offer = format!("lanyard.v1, lanyard.token.{token}");
    let protocol = ("sec-websocket-protocol", offer.as_str());
    let refused = |path: &str, host: &str, headers: &[(&str, &str)]| {
        knock(&daemon, path, host, headers)
            .err()
            .unwrap_or_else(|| panic!("let in: {path} {host} {headers:?}"))
    };
    let outside = |status: u16, code: &str| (status, code.to_owned());
    assert_eq!(refused(&path, &address, &[]), outside(401, "token_missing"));
    assert_eq!(
        refused(&path, &address, &[("sec-websocket-protocol", "lanyard.v1")]),
        outside(401, "token_missing")
    );
    let guess = [("sec-websocket-protocol", "lanyard.v1, lanyard.token.lyd_guess")];
    assert_eq!(refused(&path, &address, &guess), outside(401, "token_unknown"));
    for origin in ["http://evil.example", "null", "https://localhost", &format!("http://evil.example:{port}")]
    {
        assert_eq!(
            refused(&path, &address, &[protocol, ("origin", origin)]),
            outside(403, "origin_not_allowed")
        );
    }
    for host in ["evil.example", &format!("evil.example:{port}")] {
        assert_eq!(refused(&path, host, &[protocol]), outside(421, "host_not_allowed"));
    }
    let in_query = format!("{path}?token={token}");
    assert_eq!(refused(&in_query, &address, &[]), outside(401, "token_missing"));
    assert_eq!(refused(&in_query, &address, &[protocol]), outside(400, "token_in_query"));
    // As a subprotocol it opens WebSockets and nothing else.
    let plain = [("host", address.as_str()), protocol];
    let answer =
        exchange(TcpStream::connect(&address).unwrap(), "GET", "/api/v1/status", &plain, None).unwrap();
    assert_eq!(answer.code(), "token_missing");
    assert!(!daemon.stderr().contains(&token), "no token is logged");
}

/// A request for a WebSocket that is none is told what it lacks.
#[test]
fn half_a_handshake_is_refused() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let path = format!("/api/v1/sessions/{session}/attach");
    for headers in [
        vec![("upgrade", "websocket")],
        vec![("upgrade", "h2c"), ("connection", "upgrade")],
        vec![
            ("upgrade", "websocket"),
            ("connection", "upgrade"),
            ("sec-websocket-version", "8"),
            ("sec-websocket-key", "x"),
        ],
    ] {
        let answer = daemon.request("GET", &path, &headers, None);
        assert_eq!((answer.status, answer.code()), (400, "upgrade_invalid".to_owned()), "{headers:?}");
    }
}

/// A token that is revoked does not keep its stream: it is told with the next heartbeat.
#[test]
fn a_stream_ends_after_its_token_was_revoked() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon);
    let observer = with_role(&daemon, "observer");
    let mut streams =
        super::kit::BOTH.map(|wire| super::kit::Client::attach_as(&observer, &session, "", wire));
    let listed = daemon.request("GET", "/api/v1/tokens", &[], None).json();
    let id = listed["tokens"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(daemon.request("DELETE", &format!("/api/v1/tokens/{id}"), &[], None).status, 204);
    for stream in &mut streams {
        assert_eq!(stream.until("goodbye")["why"], "token_revoked");
        assert!(stream.next().is_none());
    }
}
