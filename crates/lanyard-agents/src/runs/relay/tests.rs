//! The relay against a daemon of the test's own making, which reads, answers and ends as it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::heads::{self, Body, Length, Step};
use super::listening::Tail;
use super::*;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

struct Stage {
    folder: tempfile::TempDir,
    relay: SocketAddr,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inlet = Inlet::open(folder.path().join("sock")).unwrap();
        let relay = inlet.address();
        start(inlet.listener, inlet.socket, Contacts::new(folder.path().to_owned())).unwrap();
        Self { folder, relay }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("sock")
    }

    fn daemon(&self) -> UnixListener {
        let _ = std::fs::remove_file(self.socket());
        UnixListener::bind(self.socket()).unwrap()
    }

    fn client(&self) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(self.relay).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        BufReader::new(stream)
    }

    fn post(&self, client: &mut BufReader<TcpStream>, message: &str) {
        self.send(client, "POST", "/mcp/sess_1/tools", message);
    }

    fn send(&self, client: &mut BufReader<TcpStream>, method: &str, target: &str, body: &str) {
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.relay,
            body.len()
        );
        client.get_mut().write_all((head + body).as_bytes()).unwrap();
    }
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay"}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":8,"method":"tools/list"}"#;

/// One request, as the daemon reads it.
fn heard(stream: &mut BufReader<UnixStream>) -> (String, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

fn accepted(daemon: &UnixListener) -> BufReader<UnixStream> {
    BufReader::new(daemon.accept().unwrap().0)
}

fn say(stream: &mut BufReader<UnixStream>, body: &str) {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.get_mut().write_all((head + body).as_bytes()).unwrap();
}

/// The head and the body of an answer with a length.
fn told(client: &mut BufReader<TcpStream>) -> (String, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(client.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    client.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

/// The next chunk of a stream.
fn chunk(client: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    let mut piece = vec![0; usize::from_str_radix(line.trim(), 16).unwrap() + 2];
    client.read_exact(&mut piece).unwrap();
    piece.truncate(piece.len() - 2);
    String::from_utf8(piece).unwrap()
}

fn stream_head(client: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(client.read_line(&mut head).unwrap() > 0, "{head}");
    }
    head
}

/// Requests of one connection reach the daemon with the agent's headers and without what belongs to the connection.
#[test]
fn a_request_passes_and_its_connection_is_kept() {
    let stage = Stage::new();
    let daemon = stage.daemon();
    let mut client = stage.client();
    for round in 0..2 {
        let head = format!(
            "POST /mcp/sess_1/tools?a=b HTTP/1.1\r\nHOST: localhost:{}\r\nauthorization: Bearer x\r\ncookie: c\r\n\
             connection: keep-alive, x-hop\r\nx-hop: 1\r\ntransfer-encoding: chunked\r\n\r\n4\r\n{{\"a\"\r\n3\r\n:1}}\r\n0\r\n\r\n",
            stage.relay.port()
        );
        client.get_mut().write_all(head.as_bytes()).unwrap();
        let mut stream = accepted(&daemon);
        let (head, body) = heard(&mut stream);
        assert_eq!(body, r#"{"a":1}"#);
        assert!(head.starts_with("POST /mcp/sess_1/tools?a=b HTTP/1.1\r\n"), "{head}");
        assert!(
            head.contains("authorization: Bearer x\r\n") && head.contains("host: localhost\r\n"),
            "{head}"
        );
        for gone in ["cookie", "x-hop", "chunked", "keep-alive"] {
            assert!(!head.contains(gone), "{head}");
        }
        say(&mut stream, &format!("{{\"round\":{round}}}"));
        assert_eq!(told(&mut client).1, format!("{{\"round\":{round}}}"));
    }
}

/// FND-R10: a call that the daemon had read when it ended is answered, and no other daemon gets it.
#[test]
fn fnd_r10_a_call_that_was_read_is_answered_and_not_repeated() {
    let stage = Stage::new();
    let daemon = stage.daemon();
    let mut client = stage.client();
    stage.post(&mut client, CALL);
    let mut stream = accepted(&daemon);
    heard(&mut stream);
    drop((stream, daemon));
    let (head, body) = told(&mut client);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((answer["id"].as_i64(), &answer["result"]["isError"]), (Some(7), &serde_json::json!(true)));
    assert!(body.contains("The tool may have run; check before you repeat the call."), "{body}");
    // The connection is used again, and the next daemon hears of the next request only.
    let daemon = stage.daemon();
    stage.post(&mut client, LIST);
    let mut stream = accepted(&daemon);
    assert_eq!(heard(&mut stream).1, LIST);
    say(&mut stream, "{}");
    assert_eq!(told(&mut client).1, "{}");
}

/// FND-R10: a call that no daemon has read waits and goes to the next one; so does a call in the queue of a daemon that
/// ends, and a request that changes nothing.
#[test]
fn fnd_r10_what_was_not_read_goes_to_the_next_daemon() {
    let stage = Stage::new();
    let mut client = stage.client();
    stage.post(&mut client, CALL);
    // sleep: the relay looks for a daemon meanwhile, or has not begun to.
    std::thread::sleep(Duration::from_millis(60));
    let daemon = stage.daemon();
    let mut stream = accepted(&daemon);
    assert_eq!(heard(&mut stream).1, CALL);
    say(&mut stream, "{\"done\":1}");
    assert_eq!(told(&mut client).1, "{\"done\":1}");

    // Accepted and not read to its end.
    stage.post(&mut client, CALL);
    let (mut half, _) = daemon.accept().unwrap();
    half.read_exact(&mut [0; 10]).unwrap();
    drop((half, daemon));
    let daemon = stage.daemon();
    let mut stream = accepted(&daemon);
    assert_eq!(heard(&mut stream).1, CALL);
    say(&mut stream, "{\"done\":2}");
    assert_eq!(told(&mut client).1, "{\"done\":2}");

    // Read, and harmless.
    stage.post(&mut client, LIST);
    let mut stream = accepted(&daemon);
    heard(&mut stream);
    drop((stream, daemon));
    let daemon = stage.daemon();
    let mut stream = accepted(&daemon);
    assert_eq!(heard(&mut stream).1, LIST);
    say(&mut stream, "{\"done\":3}");
    assert_eq!(told(&mut client).1, "{\"done\":3}");
    assert_eq!(read_contacts(stage.folder.path()).get("tools"), Some(&true));
}

/// FND-R10: a stream that answers a call ends with an event that says what is known.
#[test]
fn fnd_r10_a_stream_that_is_cut_ends_with_an_answer() {
    let stage = Stage::new();
    let daemon = stage.daemon();
    let mut client = stage.client();
    stage.post(&mut client, CALL);
    let mut stream = accepted(&daemon);
    heard(&mut stream);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.get_mut().write_all(format!("{head}9\r\ndata: 1\n\n\r\n").as_bytes()).unwrap();
    assert!(stream_head(&mut client).contains("text/event-stream"));
    assert_eq!(chunk(&mut client), "data: 1\n\n");
    drop(stream);
    let last = chunk(&mut client);
    assert!(
        last.contains(r#""id":7"#) && last.contains("call_uncertain") && last.ends_with("\n\n"),
        "{last}"
    );
    assert_eq!(chunk_or_end(&mut client), None);
}

fn chunk_or_end(client: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    if line == "0\r\n" {
        client.read_line(&mut line).unwrap();
        return None;
    }
    Some(line)
}

/// FND-R10: the stream for what belongs to no request stays open, whether the daemon is killed or ends in order, and
/// the next one is told where it was.
#[test]
fn fnd_r10_a_listening_client_hears_the_next_daemon() {
    let stage = Stage::new();
    let mut daemon = stage.daemon();
    let mut client = stage.client();
    stage.send(&mut client, "GET", "/mcp/sess_1/tools", "");
    for (round, last) in [(0, ""), (1, std::str::from_utf8(PAUSED).unwrap()), (2, "")] {
        let mut stream = accepted(&daemon);
        let (head, _) = heard(&mut stream);
        assert_eq!(head.contains(&format!("last-event-id: e{}", round - 1)), round > 0, "{head}");
        let event = format!("id: e{round}\ndata: {round}\n\n{last}");
        let end = if last.is_empty() { "" } else { "0\r\n\r\n" };
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let text = format!("{head}{:x}\r\n{event}\r\n{end}", event.len());
        stream.get_mut().write_all(text.as_bytes()).unwrap();
        if round == 0 {
            stream_head(&mut client);
        }
        assert_eq!(chunk(&mut client), event);
        drop((stream, daemon));
        daemon = stage.daemon();
    }
}

/// A client that has gone wants nothing any more: its call is not carried out.
#[test]
fn a_call_whose_client_has_gone_is_not_sent() {
    let stage = Stage::new();
    let mut client = stage.client();
    stage.post(&mut client, CALL);
    drop(client);
    let mut client = stage.client();
    stage.post(&mut client, LIST);
    // sleep: the relay notices the end of the first client while no daemon is there.
    std::thread::sleep(Duration::from_millis(300));
    let daemon = stage.daemon();
    let mut stream = accepted(&daemon);
    assert_eq!(heard(&mut stream).1, LIST);
}

/// Hooks go on without an answer, so they are told at once that there is no daemon.
#[test]
fn a_request_of_a_hook_does_not_wait() {
    let stage = Stage::new();
    let mut client = stage.client();
    stage.send(&mut client, "GET", "/api/v1/status", "");
    let (head, body) = told(&mut client);
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert!(body.contains(r#""code":"daemon_away""#), "{body}");
}

#[test]
fn what_is_no_agents_request_is_refused() {
    let stage = Stage::new();
    let own = format!("Host: {}\r\n", stage.relay);
    for (request, status) in [
        (format!("GET / HTTP/1.1\r\n{own}\r\n"), 404),
        (format!("GET /mcp HTTP/1.1\r\n{own}\r\n"), 404),
        (format!("OPTIONS /mcp/a/b HTTP/1.1\r\n{own}\r\n"), 405),
        ("POST /mcp/a/b HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_owned(), 421),
        ("POST /mcp/a/b HTTP/1.1\r\n\r\n".to_owned(), 421),
        (format!("POST /mcp/a/b HTTP/1.1\r\n{own}{own}\r\n"), 400),
        (format!("POST /mcp/a/b HTTP/1.0\r\n{own}\r\n"), 400),
        (
            format!("POST /mcp/a/b HTTP/1.1\r\n{own}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"),
            400,
        ),
        (format!("POST /mcp/a/b HTTP/1.1\r\n{own}content-length: 1\r\ncontent-length: 1\r\n\r\n"), 400),
        (format!("POST /mcp/a/b HTTP/1.1\r\n{own}content-length: +1\r\n\r\n"), 400),
        (format!("POST /mcp/a/b HTTP/1.1\r\n{own}content-length: 99999999\r\n\r\n"), 413),
        (format!("POST /mcp/a/b HTTP/1.1\r\n{own}x: {}\r\n\r\n", "y".repeat(40_000)), 431),
        ("nonsense\r\n\r\n".to_owned(), 400),
    ] {
        let mut client = stage.client();
        client.get_mut().write_all(request.as_bytes()).unwrap();
        let (head, body) = told(&mut client);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request:.80}: {head}");
        assert!(body.contains("\"code\":") && body.contains("\"advice\":"), "{body}");
        assert!(head.contains("connection: close"), "{head}");
    }
    assert!(read_contacts(Path::new("/nowhere")).is_empty());
}

/// A body is cut the same way however its bytes arrive.
#[test]
fn chunks_are_read_in_any_pieces() {
    let wire = b"4;x=y\r\nabcd\r\n1\r\ne\r\n0\r\nt: 1\r\n\r\nrest";
    for step in 1..wire.len() {
        let (mut at, mut held, mut out) = (Body::new(Length::Chunked), Vec::new(), Vec::new());
        let mut pieces = wire.chunks(step);
        loop {
            match at.step(&held).unwrap() {
                Step::Piece(bytes) => out.extend(held.drain(..bytes)),
                Step::Skip(bytes) => drop(held.drain(..bytes)),
                Step::More => held.extend_from_slice(pieces.next().unwrap()),
                Step::Done => break,
            }
        }
        assert_eq!(out, b"abcde", "in pieces of {step}");
    }
    assert!(Body::ChunkEnd.step(b"xx").is_err());
    assert!(Body::ChunkHead.step(b"zz\r\n").is_err());
    assert!(heads::answer(b"HTTP/1.1 200 OK\r\n").unwrap().is_none());
}

#[test]
fn the_last_event_of_a_stream_is_remembered() {
    let mut tail = Tail::default();
    for piece in [&b"id: 1\nda"[..], b"ta: x\n\ni", b"d:2\n", b"data: id: 9\n\n"] {
        tail.take(piece);
    }
    assert_eq!(tail.id().as_deref(), Some("2"));
    tail.take(b"id: a\x01b\n");
    assert_eq!(tail.id().as_deref(), Some("2"), "no header can carry it");
    assert!(!tail.is_paused());
    tail.take(PAUSED);
    assert!(tail.is_paused());
}
