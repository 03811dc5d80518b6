//! Every stream ends with the right to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::json;
use tokio_tungstenite::tungstenite::client::client;
use tokio_tungstenite::tungstenite::http::Request;
use tokio_tungstenite::tungstenite::{Message, WebSocket};

use super::kit::{INHERITED, Stage, ask};
use crate::support::{Caller, PATIENCE, Setup, head, read_head};

/// A comment that keeps a quiet stream alive: none may be needed to find out.
const BEAT: &str = "\n:\n";

/// An MCP server that keeps a stream open.
const SERVER: &str = "[mcp.echo]\ncommand = [\"LANYARD\", \"scripted-mcp\"]\n";

fn observer(stage: &Stage) -> (Caller, String) {
    let made = stage.post("/tokens", &json!({ "role": "observer", "name": "wall" })).json();
    let token = made["token"].as_str().unwrap().to_owned();
    (Caller { token, ..stage.daemon.caller() }, made["id"].as_str().unwrap().to_owned())
}

fn revoke(stage: &Stage, id: &str) {
    assert_eq!(stage.daemon.request("DELETE", &format!("/api/v1/tokens/{id}"), &[], None).status, 204);
}

fn connect(caller: &Caller) -> UnixStream {
    let stream = UnixStream::connect(&caller.socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// An open stream of server-sent events.
fn sse(caller: &Caller, path: &str) -> BufReader<UnixStream> {
    let bearer = format!("Bearer {}", caller.token);
    let headers =
        [("host", "localhost"), ("authorization", bearer.as_str()), ("accept", "text/event-stream")];
    let mut stream = connect(caller);
    stream.write_all(head("GET", path, &headers, None).as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let answer = read_head(&mut reader).unwrap();
    assert_eq!(answer.status, 200, "{path}");
    reader
}

/// Everything until the stream ends by itself.
fn rest(mut reader: BufReader<UnixStream>) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    text
}

fn socket(caller: &Caller, path: &str) -> WebSocket<UnixStream> {
    let request = Request::builder()
        .uri(format!("ws://localhost{path}"))
        .header("host", "localhost")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("authorization", format!("Bearer {}", caller.token));
    client(request.body(()).unwrap(), connect(caller)).unwrap().0
}

fn last_words(mut socket: WebSocket<UnixStream>) -> Vec<String> {
    let mut all = Vec::new();
    while let Ok(message) = socket.read() {
        match message {
            Message::Text(text) => all.push(text.to_string()),
            Message::Close(_) => break,
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
    all
}

/// FND-K4: events, attach, directory and long looks end when the token is revoked, without waiting for a heartbeat.
#[test]
fn fnd_k4_every_stream_ends_when_its_token_is_revoked() {
    let stage = Stage::new(INHERITED);
    let session = stage.session();
    let (wall, id) = observer(&stage);
    let own = format!("/api/v1/sessions/{session}");
    let events = sse(&wall, &format!("{own}/events?after=0"));
    let attached = sse(&wall, &format!("{own}/attach"));
    let directory = sse(&wall, "/api/v1/directory/stream");
    let records = sse(&wall, "/api/v1/records/stream");
    let sockets =
        ["/directory/stream", "/records/stream"].map(|path| socket(&wall, &format!("/api/v1{path}")));
    let sockets = sockets.into_iter().chain([socket(&wall, &format!("{own}/attach"))]);
    let sockets: Vec<_> = sockets.collect();
    let waiting = {
        let wall = wall.clone();
        std::thread::spawn(move || ask(&wall, "GET", "/notifications?after=999999&wait_ms=25000", None))
    };
    let mut first = attached;
    let mut line = String::new();
    first.read_line(&mut line).unwrap();
    revoke(&stage, &id);
    // What happens from here on reaches none of them.
    stage.post(&format!("/sessions/{session}/signals"), &json!({ "type": "thought", "text": "afterwards" }));
    let streams = [
        ("events", events, false),
        ("attach", first, true),
        ("directory", directory, true),
        ("records", records, true),
    ];
    for (name, reader, tells) in streams {
        let text = rest(reader);
        assert!(!text.contains(BEAT) && !text.contains("afterwards"), "{name}: {text}");
        assert_eq!(text.contains("token_revoked"), tells, "{name}: {text}");
    }
    for socket in sockets {
        let all = last_words(socket);
        assert!(all.last().is_some_and(|last| last.contains("token_revoked")), "{all:?}");
        assert!(
            !all.iter().any(|text| text.contains(r#""type":"heartbeat""#) || text.contains("afterwards")),
            "{all:?}"
        );
    }
    assert_eq!(waiting.join().unwrap().status, 401);
}

/// FND-K4: the streams of a run end with it, and those of a session with its deletion.
#[test]
fn fnd_k4_streams_end_with_the_run_and_with_the_session() {
    let stage = Stage::new(INHERITED);
    let session = stage.session();
    let agent = stage.held_token(&session);
    let of_run = sse(&agent, &format!("/api/v1/sessions/{session}/events?after=0"));
    let of_operator = sse(&stage.daemon.caller(), &format!("/api/v1/sessions/{session}/events?after=0"));
    let attached = sse(&stage.daemon.caller(), &format!("/api/v1/sessions/{session}/attach"));
    stage.touch("go");
    stage.until_at_rest(&session);
    let text = rest(of_run);
    assert!(!text.contains(BEAT), "{text}");
    let deleted = stage.daemon.request("DELETE", &format!("/api/v1/sessions/{session}"), &[], Some("{}"));
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    for reader in [of_operator, attached] {
        let text = rest(reader);
        assert!(text.contains("session.deleted") && !text.contains(BEAT), "{text}");
    }
}

/// FND-K4: a stream of the MCP gateway ends with the token it was opened with.
#[test]
fn fnd_k4_a_gateways_stream_ends_when_its_token_is_revoked() {
    let server = SERVER.replace("LANYARD", &crate::support::binary().display().to_string());
    let stage = Stage::with(INHERITED, &server, Setup::default());
    let made = stage.post("/mcp/echo/address", &json!({ "agent": "theirs" })).json();
    let (session, header) =
        (made["session"].as_str().unwrap(), made["headers"]["Authorization"].as_str().unwrap());
    let agent = Caller { token: header.trim_start_matches("Bearer ").to_owned(), ..stage.daemon.caller() };
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let path = format!("/mcp/{session}/echo");
    let accept = [("accept", "application/json, text/event-stream")];
    let answer = agent.try_request("POST", &path, &accept, Some(&hello.to_string())).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let connection = answer.header("mcp-session-id").map(str::to_owned).unwrap_or_default();
    let bearer = format!("Bearer {}", agent.token);
    let headers = [
        ("host", "localhost"),
        ("authorization", bearer.as_str()),
        ("accept", "text/event-stream"),
        ("mcp-session-id", connection.as_str()),
    ];
    let mut stream = connect(&agent);
    stream.write_all(head("GET", &path, &headers, None).as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    assert_eq!(read_head(&mut reader).unwrap().status, 200);
    let listed = stage.daemon.request("GET", "/api/v1/tokens", &[], None).json();
    revoke(&stage, listed["tokens"][0]["id"].as_str().unwrap());
    rest(reader);
    let answer = agent.try_request("POST", &path, &accept, Some(&hello.to_string())).unwrap();
    assert_eq!(answer.code(), "token_unknown");
}

/// FND-K13: two hosts, or two tokens, are no request anybody understands alike.
#[test]
fn fnd_k13_a_request_with_two_hosts_is_refused() {
    let stage = Stage::new(INHERITED);
    for twice in [("host", "evil.example"), ("authorization", "Bearer lyd_other")] {
        let answer = stage.daemon.caller().try_request("GET", "/api/v1/status", &[twice], None).unwrap();
        assert_eq!((answer.status, answer.code().as_str()), (400, "request_ambiguous"), "{twice:?}");
    }
}

/// FND-K13: a request with a length and with chunks is read by its chunks, and nothing behind it is read as another one.
#[test]
fn fnd_k13_nothing_is_smuggled_behind_a_body_with_a_length_and_chunks() {
    let stage = Stage::new(INHERITED);
    let caller = stage.daemon.caller();
    let bearer = format!("Bearer {}", caller.token);
    let headers = [
        ("host", "localhost"),
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("content-length", "5"),
        ("transfer-encoding", "chunked"),
    ];
    let body = r#"{"title":"first"}"#;
    let second = r#"{"title":"smuggled"}"#;
    let first = head("POST", "/api/v1/sessions", &headers, None);
    let mut whole = format!("{first}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let length = second.len().to_string();
    let plain = [&headers[..3], &[("content-length", length.as_str())]].concat();
    whole += &head("POST", "/api/v1/sessions", &plain, None);
    whole += second;
    let mut stream = connect(&caller);
    stream.write_all(whole.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let answer = read_head(&mut reader).unwrap();
    assert_eq!((answer.status, answer.header("connection")), (201, Some("close")));
    let mut rest = String::new();
    // The daemon may close before it has read all that was sent, which resets the connection.
    let _ = std::io::Read::read_to_string(&mut reader, &mut rest);
    assert!(!rest.contains("HTTP/1.1"), "{rest}");
    let listed = stage.daemon.request("GET", "/api/v1/sessions", &[], None).text();
    assert!(listed.contains("first") && !listed.contains("smuggled"), "{listed}");
}

/// FND-K13: a body that does not come is not waited for without end.
#[test]
fn fnd_k13_a_body_that_comes_byte_by_byte_is_cut_off() {
    let stage = Stage::with(INHERITED, "", Setup::default().env("LANYARD_STALLED_MS", "300"));
    let caller = stage.daemon.caller();
    let bearer = format!("Bearer {}", caller.token);
    for path in ["/api/v1/sessions", "/mcp/-/lanyard"] {
        let headers = [
            ("host", "localhost"),
            ("authorization", bearer.as_str()),
            ("content-length", "1000"),
            ("content-type", "application/json"),
        ];
        let mut stream = connect(&caller);
        stream.write_all(head("POST", path, &headers, None).as_bytes()).unwrap();
        stream.write_all(b"{").unwrap();
        let answer = read_head(&mut BufReader::new(stream)).unwrap();
        assert_eq!(answer.status, 408, "{path}");
    }
}
