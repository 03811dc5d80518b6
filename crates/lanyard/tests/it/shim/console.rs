//! Programs on a terminal under the real shim: their own terminal, its window, its keys, its hangup, its recording.

use std::time::Duration;

use lanyard_agents::runs::{EndedBy, How, LinkError, Sent, Spec, TerminalSpec};
use lanyard_core::session::WindowSize;
use serde_json::Value;

use super::kit::{Stage, read_until, wait_for, within};

const SIZE: WindowSize = WindowSize { cols: 90, rows: 30 };

fn on_terminal(stage: &Stage, script: &str) -> Spec {
    Spec { terminal: Some(TerminalSpec::new(SIZE, 1_700_000_000)), ..stage.spec(script) }
}

fn recording(stage: &Stage) -> Vec<Value> {
    let text = std::fs::read_to_string(stage.file(&stage.run, "recording.cast")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_program_has_a_terminal_of_its_own_and_a_window_that_changes_once_per_key() {
    let stage = Stage::new();
    let script = "tty; echo its own > /dev/tty; stty size; read a; stty size; read b; stty size; exit 3";
    let link = stage.start_spec(&stage.run, &on_terminal(&stage, script)).await;
    let mut output = link.output(0);
    let first = String::from_utf8(read_until(&mut output, b"30 90\r\n").await).unwrap();
    let lines: Vec<&str> = first.lines().collect();
    assert!(lines[0].starts_with("/dev/pts/"), "{first}");
    assert_eq!(lines[1], "its own", "it is its controlling terminal");

    let wide = WindowSize { cols: 120, rows: 40 };
    let at = within(link.resize("r1", wide)).await.unwrap();
    assert_eq!(at, Some(first.len() as u64));
    assert_eq!(within(link.resize("r1", SIZE)).await, Ok(None), "once per key");
    for bad in [(0, 24), (80, 0), (10_000, 24)] {
        let size = WindowSize { cols: bad.0, rows: bad.1 };
        assert_eq!(within(link.resize(&format!("bad{bad:?}"), size)).await, Err(LinkError::NoTerminal));
    }
    assert_eq!(link.send("k1", b"a\r").await, Ok(Sent::First));
    assert_eq!(link.send("k1", b"a\r").await, Ok(Sent::Repeated));
    read_until(&mut output, b"40 120\r\n").await;
    drop((link, output));

    // A later daemon finds the sizes, and types nothing twice.
    let link = stage.adopt_live(&stage.run).await;
    assert_eq!(link.sizes(), [(0, SIZE), (first.len() as u64, wide)]);
    assert_eq!(link.send("k1", b"a\r").await, Ok(Sent::Repeated));
    assert_eq!(link.send("k2", b"b\r").await, Ok(Sent::First));
    assert_eq!(within(link.exited()).await.how, How::Exited(3));
    let all = String::from_utf8(stage.spooled(&stage.run)).unwrap();
    assert!(all.ends_with("b\r\n40 120\r\n"), "{all:?}");

    let recorded = recording(&stage);
    assert_eq!((&recorded[0]["width"], &recorded[0]["timestamp"]), (&90.into(), &1_700_000_000.into()));
    let of = |code: &'static str| recorded[1..].iter().filter(move |event| event[1] == code);
    let written: String = of("o").map(|event| event[2].as_str().unwrap()).collect();
    assert_eq!(written, all);
    assert_eq!(of("r").map(|event| event[2].clone()).collect::<Vec<_>>(), ["120x40"]);
    assert_eq!(of("i").count(), 0, "what is typed may be a secret");
}

#[tokio::test]
async fn an_end_begins_with_the_hangup_and_reaches_what_forked_away() {
    let stage = Stage::new();
    // An interactive shell ignores TERM; the other ignores the hangup; the third left its session and its parent.
    let script = "
        (trap '' HUP; trap 'echo termed > termed; exit' TERM; echo $(sh -c 'echo $PPID') > stubborn; while :; do sleep 0.02; done) &
        setsid sh -c 'echo $$ > away; trap \"\" HUP TERM; while :; do sleep 0.02; done' &
        trap 'echo hung > hung; exit 0' HUP; trap '' TERM; echo $$ > main; while :; do sleep 0.02; done";
    let spec = Spec { grace_ms: 1_500, ..on_terminal(&stage, script) };
    let link = stage.start_spec(&stage.run, &spec).await;
    let (main, stubborn, away) = (stage.process("main"), stage.process("stubborn"), stage.process("away"));
    within(link.end(Duration::from_millis(1_500))).await.unwrap();
    let exit = within(link.exited()).await;
    assert_eq!(exit.how, How::Exited(0));
    assert!([&main, &stubborn, &away].iter().all(|process| !process.is_alive()));
    let by = |pid: u32| exit.ended.iter().find(|process| process.pid == pid).map(|process| process.by);
    assert_eq!(by(main.pid), Some(EndedBy::Hangup));
    assert_eq!(by(stubborn.pid), Some(EndedBy::Term));
    assert_eq!(by(away.pid), Some(EndedBy::Kill));
    assert!(stage.work().join("hung").is_file() && stage.work().join("termed").is_file());
}

#[tokio::test]
async fn a_flood_is_recorded_up_to_its_bound_and_says_so() {
    let stage = Stage::new();
    let mut spec =
        on_terminal(&stage, "yes 'a line of some length that is written again and again' | head -c 3000000");
    if let Some(terminal) = &mut spec.terminal {
        terminal.recording_max = 1 << 20;
    }
    let link = stage.start_spec(&stage.run, &spec).await;
    assert_eq!(within(link.exited()).await.how, How::Exited(0));
    let recorded = recording(&stage);
    let last = recorded.last().unwrap();
    assert_eq!(last[1], "m", "{last}");
    assert!(last[2].as_str().unwrap().contains("the recording ends here"), "{last}");
    assert!(std::fs::metadata(stage.file(&stage.run, "recording.cast")).unwrap().len() < 1_100_000);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_before_it_has_a_terminal() {
    let stage = Stage::new();
    let mut spec = on_terminal(&stage, "");
    spec.argv = vec!["no-such-program-anywhere".to_owned()];
    let error = stage.runs.start(&stage.run, &serde_json::json!({}), &spec).await.unwrap_err();
    assert_eq!(error.code(), "agent_program_missing");
    assert_eq!(stage.runs.list().unwrap(), []);
}

#[tokio::test]
async fn a_program_goes_on_while_no_daemon_reads_it() {
    let stage = Stage::new();
    let script = "stty -echo; while read line; do echo \"got $line\"; echo \"$line\" >> typed; done";
    let link = stage.start_spec(&stage.run, &on_terminal(&stage, script)).await;
    assert_eq!(link.send("k1", b"one\r").await, Ok(Sent::First));
    drop(link);
    let typed = stage.work().join("typed");
    wait_for("what was typed", || std::fs::read_to_string(&typed).is_ok_and(|text| text == "one\n"));
    let link = stage.adopt_live(&stage.run).await;
    assert_eq!(link.send("k1", b"one\r").await, Ok(Sent::Repeated));
    assert_eq!(link.send("k2", b"two\r").await, Ok(Sent::First));
    wait_for("the rest", || std::fs::read_to_string(&typed).is_ok_and(|text| text == "one\ntwo\n"));
    within(link.end(Duration::from_millis(200))).await.unwrap();
    within(link.exited()).await;
}
