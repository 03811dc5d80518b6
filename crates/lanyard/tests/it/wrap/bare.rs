//! Without a daemon a wrapped server is the bare one: every byte, every signal, every exit code (S0-27).

use std::os::unix::process::ExitStatusExt;

use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::kit::{Wrapped, Wrapping, piped};
use crate::support::{Daemon, Setup};

#[test]
fn every_byte_passes_in_both_directions() {
    let nowhere = tempfile::tempdir().unwrap();
    let mut input =
        b"\n\r\nno json\xff\xfe\n{\"id\": 1 , \"method\":\"tools/call\",\"params\":{\"name\":\"a\",\
        \"arguments\":{\"_session_id\":\"s\"}}}\n[{\"id\":1}]\n{\"id\":1,\"result\":{}}\n"
            .to_vec();
    // Larger than any pipe, and without an end.
    input.extend(std::iter::repeat_n(b"0123456789abcdef".as_slice(), 200_000).flatten());
    let daemon = Daemon::start(Setup::default());
    for home in [nowhere.path(), &daemon.home()] {
        assert!(piped(home, &["cat"], &input) == input || home != nowhere.path());
        // With a daemon, too, for whatever is no call.
        let plain = b"one\n{\"method\":\"notifications/x\"}\n{\"id\":2,\"method\":\"ping\"}";
        assert_eq!(piped(home, &["cat"], plain), plain);
    }
}

#[test]
fn a_wrapped_server_works_without_a_daemon_and_says_so_once() {
    let nowhere = tempfile::tempdir().unwrap();
    let mut server = Wrapped::start(&Wrapping { home: nowhere.path(), options: &[], env: &[] });
    server.greet("claude-code");
    for _ in 0..3 {
        let result = server.call("echo", &json!({ "text": "hi", "_session_id": "s" }));
        assert_eq!(result, json!({ "content": [{ "type": "text", "text": "hi" }] }));
    }
    assert!(server.heard().contains(r#""_session_id":"s""#));
    let said = server.stderr();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("no daemon answers"), "{said}");
    assert!(!nowhere.path().join("lanyard.sock").exists(), "a daemon was started");
}

#[test]
fn the_end_of_the_server_is_passed_on() {
    let nowhere = tempfile::tempdir().unwrap();
    let wrapping = Wrapping { home: nowhere.path(), options: &[], env: &[] };
    let mut server = Wrapped::start(&wrapping);
    server.greet("x");
    server.ask("tools/call", &json!({ "name": "exit", "arguments": { "code": 42 } }));
    assert_eq!(server.wait().code(), Some(42));

    let mut server = Wrapped::start(&wrapping);
    server.greet("x");
    server.close();
    assert_eq!(server.wait().code(), Some(0), "the end of stdin was not passed on");

    let folder = tempfile::tempdir().unwrap();
    let mut server = Wrapped::around(&wrapping, &["/does/not/exist"], folder);
    assert_eq!(server.wait().code(), Some(127));
    assert!(server.stderr().contains("cannot run /does/not/exist"), "{}", server.stderr());
}

#[test]
fn signals_go_to_the_server() {
    let nowhere = tempfile::tempdir().unwrap();
    let script = "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let folder = tempfile::tempdir().unwrap();
    let wrapping = Wrapping { home: nowhere.path(), options: &[], env: &[] };
    let mut server = Wrapped::around(&wrapping, &["sh", "-c", script], folder);
    assert_eq!(server.line(), "ready");
    kill_process(server.pid(), Signal::TERM).unwrap();
    assert_eq!(server.line(), "got it");
    let ended = server.wait();
    assert_eq!((ended.code(), ended.signal()), (Some(3), None));
}
