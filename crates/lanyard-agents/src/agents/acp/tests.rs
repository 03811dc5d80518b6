//! Output of real ACP agents in, actions out; and what agents get wrong.

use expect_test::{Expect, expect};
use lanyard_api::agents::settings::ClientFiles;

use super::Acp;
use crate::agents::driver::{Action, Actions, Begin, Driver, Setting, TurnEnd};
use crate::agents::played::{Play, setting, shown, survives_nonsense, turn};

const CLAUDE: &str = include_str!("traces/claude.jsonl");
const CODEX: &str = include_str!("traces/codex.jsonl");
const GEMINI: &str = include_str!("traces/gemini.jsonl");
const OPENCODE: &str = include_str!("traces/opencode.jsonl");
const ALL: [&str; 4] = [CLAUDE, CODEX, GEMINI, OPENCODE];

const GREETING: [&str; 2] = [
    r#"{"id":"init","result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"agentInfo":{"name":"a","version":"1"}}}"#,
    r#"{"id":"open","result":{"sessionId":"ses-1"}}"#,
];

fn make(begin: Begin) -> Box<dyn Driver> {
    Box::new(Acp::new(setting(begin)))
}

/// What two turns of an agent come to, without what is sent.
fn check(trace: &str, expect: &Expect) {
    let mut play = Play::new(make, Begin::New, 2, &["allow"]);
    play.lines(&trace.lines().collect::<Vec<_>>());
    let seen: Vec<Action> = play.actions.into_iter().filter(is_seen).collect();
    expect.assert_eq(&shown(&seen));
}

fn is_seen(action: &Action) -> bool {
    !matches!(action, Action::Send { .. } | Action::Odd { .. })
}

/// A greeted driver with one turn given.
fn at_work() -> Play {
    let mut play = Play::new(make, Begin::New, 1, &[]);
    play.lines(&GREETING);
    play.actions.clear();
    play
}

fn update(text: &str) -> String {
    let update =
        format!(r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#);
    format!(r#"{{"method":"session/update","params":{{"sessionId":"ses-1","update":{update}}}}}"#)
}

fn answer(number: u8, reason: &str) -> String {
    format!(r#"{{"id":"{}","result":{{"stopReason":"{reason}"}}}}"#, turn(number))
}

#[test]
fn claude() {
    check(
        CLAUDE,
        &expect![[r#"
            ready ses-1 New, @agentclientprotocol/claude-agent-acp 0.99.0
            Message of msg-1 "Hello "
            Message of msg-1 "from "
            Message of msg-1 "the "
            Message of msg-1 "script."
            Usage { input: 1200, output: 34, context: Some(1234), cost: 9780 }
            finished turn_01jz0000000000000000000001: Done(Completed)
            called toolu_call_00004_0 Bash {"command":"touch smoke && printf SMOKE-%s 42","description":"smoke"}
            asked 0 about toolu_call_00004_0: touch smoke && printf SMOKE-%s 42 [allow-once (AllowOnce, Yes); reject (RejectOnce, No)]
            returned toolu_call_00004_0 "```console\nSMOKE-42\n```"
            Message of msg-2 "Work "
            Message of msg-2 "done."
            Usage { input: 0, output: 0, context: Some(20109), cost: 165220 }
            Usage { input: 40120, output: 22, context: Some(20109), cost: 0 }
            finished turn_01jz0000000000000000000002: Done(Completed)
        "#]],
    );
}

#[test]
fn codex() {
    check(
        CODEX,
        &expect![[r#"
            ready ses-1 New, @agentclientprotocol/codex-acp 2.6.0
            Message "Warning: Model metadata for `scripted` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.\n\n"
            Message of msg-1 "Hello "
            Message of msg-1 "from "
            Message of msg-1 "the "
            Message of msg-1 "script."
            Usage { input: 1200, output: 34, context: Some(1234), cost: 0 }
            finished turn_01jz0000000000000000000001: Done(Completed)
            Message "Warning: Model metadata for `scripted` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.\n\n"
            called call_00003_0 touch smoke && printf SMOKE-%s 42 {"command":"touch smoke && printf SMOKE-%s 42","cwd":"/w"}
            asked 0 about call_00003_0: touch smoke && printf SMOKE-%s 42 [allow_once (AllowOnce, Yes, proceed); accept_execpolicy_amendment (AllowAlways, Yes, and don't ask again for commands that start with `touch smoke`); cancel (RejectOnce, No, and tell Codex what to do differently)]
            returned call_00003_0 "SMOKE-42"
            Message of msg-2 "Work "
            Message of msg-2 "done."
            Usage { input: 22057, output: 22, context: Some(11101), cost: 0 }
            finished turn_01jz0000000000000000000002: Done(Completed)
        "#]],
    );
}

#[test]
fn gemini() {
    check(
        GEMINI,
        &expect![[r#"
            ready ses-1 New, gemini-cli 0.61.0
            Message "Hello "
            Message "from "
            Message "the "
            Message "script."
            Usage { input: 1200, output: 34, context: None, cost: 0 }
            finished turn_01jz0000000000000000000001: Done(Completed)
            called run_shell_command__call_00002_0 touch smoke && printf SMOKE-%s 42 null
            asked 0 about run_shell_command__call_00002_0: touch smoke && printf SMOKE-%s 42 [proceed_always (AllowAlways, Allow for this session); proceed_once (AllowOnce, Allow); cancel (RejectOnce, Reject)]
            returned run_shell_command__call_00002_0 null
            Message "Work "
            Message "done."
            Usage { input: 23982, output: 22, context: None, cost: 0 }
            finished turn_01jz0000000000000000000002: Done(Completed)
        "#]],
    );
}

#[test]
fn opencode() {
    check(
        OPENCODE,
        &expect![[r#"
            ready ses-1 New, OpenCode 1.18.33
            Message of msg-1 "Hello "
            Message of msg-1 "from "
            Message of msg-1 "the "
            Message of msg-1 "script."
            Usage { input: 1200, output: 34, context: Some(1200), cost: 0 }
            finished turn_01jz0000000000000000000001: Done(Completed)
            called call_00003_0 bash {"command":"touch smoke && printf SMOKE-%s 42","cwd":"/w","description":"smoke"}
            asked 0 about call_00003_0: touch smoke && printf SMOKE-%s 42 [once (AllowOnce, Allow once); always (AllowAlways, Always allow); reject (RejectOnce, Reject)]
            returned call_00003_0 "SMOKE-42"
            Message of msg-2 "Work "
            Message of msg-2 "done."
            Usage { input: 7767, output: 12, context: Some(7767), cost: 0 }
            finished turn_01jz0000000000000000000002: Done(Completed)
        "#]],
    );
}

/// A daemon that comes back is shown everything after the last line that became events, and nothing is lost or repeated.
#[test]
fn a_second_driver_goes_on_wherever_the_first_one_stopped() {
    for trace in ALL {
        let lines: Vec<&str> = trace.lines().collect();
        let mut whole = Play::new(make, Begin::New, 2, &["allow"]);
        whole.lines(&lines);
        let whole = essence(&whole.actions);
        for cut in 0..=lines.len() {
            let mut play = Play::new(make, Begin::New, 2, &["allow"]);
            let mut reported = 0;
            for (at, line) in lines[..cut].iter().enumerate() {
                let before = play.actions.len();
                play.lines(&[line]);
                if play.actions[before..].iter().any(is_seen) {
                    reported = at + 1;
                }
            }
            if play.is_ready() {
                play.restart();
                play.lines(&lines[reported..]);
                assert_eq!(essence(&play.actions), whole, "cut before line {}", cut + 1);
            }
        }
    }
}

/// What must be the same whoever listened: all but token counts, what is sent, which the shim writes once, and a call
/// that is told of again while it is open, which the log keeps once.
fn essence(actions: &[Action]) -> String {
    use lanyard_core::session::Signal;
    let mut called = std::collections::BTreeSet::new();
    let kept = actions.iter().filter(|action| is_seen(action)).filter(|action| {
        if let Action::Saw { signal: Signal::ToolCalled { call, .. }, .. } = action {
            return called.insert(call.clone());
        }
        !matches!(action, Action::Saw { signal: Signal::UsageReported { .. }, .. })
    });
    shown(&kept.cloned().collect::<Vec<_>>())
}

#[test]
fn nonsense_never_panics() {
    survives_nonsense(make, &Begin::New, &ALL);
    survives_nonsense(make, &Begin::Resume { native: "ses-1".to_owned() }, &ALL);
}

#[test]
fn a_cancel_gives_up_open_questions_first_and_goes_only_into_a_running_turn() {
    let mut play = at_work();
    play.lines(&[r#"{"id":0,"method":"session/request_permission","params":{"sessionId":"ses-1","toolCall":{"toolCallId":"c"},"options":[]}}"#]);
    play.actions.clear();
    play.wish(|driver, out| driver.cancel(turn(2), None, out));
    play.wish(|driver, out| driver.cancel(turn(1), None, out));
    expect![[r#"
        send answer:0: {"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}
        send cancel:turn_01jz0000000000000000000001: {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"ses-1"}}
    "#]].assert_eq(&play.show());
}

#[test]
fn a_prompt_that_a_late_cancel_swallowed_is_sent_once_more() {
    let mut driver = make(Begin::New);
    let mut out = Actions::new();
    driver.begin(&mut out);
    for line in GREETING {
        driver.line(line.as_bytes(), &mut out);
    }
    driver.prompt(turn(1), None, "one".into(), &mut out);
    driver.cancel(turn(1), None, &mut out);
    driver.line(answer(1, "end_turn").as_bytes(), &mut out);
    out.clear();
    driver.prompt(turn(2), None, "two".into(), &mut out);
    driver.line(answer(2, "cancelled").as_bytes(), &mut out);
    let keys: Vec<&str> = out.iter().filter_map(key).collect();
    assert_eq!(keys, [turn(2).to_string(), format!("{}:again", turn(2))]);
    assert!(!out.iter().any(|action| matches!(action, Action::Finished { .. })));
    out.clear();
    driver.line(update("hello").as_bytes(), &mut out);
    driver.line(answer(2, "end_turn").replace("02\"", "02:again\"").as_bytes(), &mut out);
    assert!(matches!(out.last(), Some(Action::Finished { end: TurnEnd::Done(_), .. })), "{out:?}");
}

fn key(action: &Action) -> Option<&str> {
    if let Action::Send { key, .. } = action { Some(key) } else { None }
}

#[test]
fn what_is_played_back_is_counted_and_not_said_again() {
    let mut play = Play::new(make, Begin::Resume { native: "ses-1".to_owned() }, 1, &[]);
    let before = update("old");
    play.lines(&[GREETING[0], &before, r#"{"id":"open","result":{}}"#]);
    let live = update("new");
    play.lines(&[&live, &answer(1, "end_turn")]);
    let seen: Vec<Action> = play.actions.into_iter().filter(is_seen).collect();
    expect![[r#"
        replayed 1
        ready ses-1 Resumed, a 1
        Message "new"
        finished turn_01jz0000000000000000000001: Done(Completed)
    "#]]
    .assert_eq(&shown(&seen));
}

/// Bad greetings end the run with a code; nothing else does.
#[test]
fn what_is_wrong_with_a_greeting_has_a_code() {
    let resume = || Begin::Resume { native: "ses-1".to_owned() };
    let cases: [(Begin, &[&str]); 6] = [
        (Begin::New, &[r#"{"id":"init","result":{"protocolVersion":99}}"#]),
        (Begin::New, &[r#"{"id":"init","result":"what"}"#]),
        (Begin::New, &[r#"{"id":"init","error":{"code":-1,"message":"no"}}"#]),
        (Begin::New, &[GREETING[0], r#"{"id":"open","error":{"code":-1,"message":"log in first"}}"#]),
        (resume(), &[GREETING[0], r#"{"id":"open","error":{"code":-1,"message":"who?"}}"#]),
        (resume(), &[r#"{"id":"init","result":{"protocolVersion":1}}"#]),
    ];
    let mut text = String::new();
    for (begin, lines) in cases {
        let mut play = Play::new(make, begin, 0, &[]);
        play.lines(lines);
        let broken: Vec<Action> =
            play.actions.into_iter().filter(|action| matches!(action, Action::Broken { .. })).collect();
        text += &shown(&broken);
    }
    expect![[r#"
        broken version_unsupported: it speaks version 99 of ACP, and this is 1
        broken handshake_failed: its greeting cannot be read: invalid type: string "what", expected struct InitializeResponse
        broken handshake_failed: no
        broken handshake_failed: log in first
        broken resume_refused: who?
        broken resume_refused: it offers neither load nor resume
    "#]].assert_eq(&text);
}

/// FND-R6.
#[test]
fn fnd_r6_file_access_is_offered_as_the_agent_is_set() {
    let offered = |client_files| {
        let mut driver = Acp::new(Setting { client_files, ..setting(Begin::New) });
        let mut out = Actions::new();
        driver.begin(&mut out);
        let Some(Action::Send { line, .. }) = out.first() else { panic!("it does not greet") };
        let greeting: serde_json::Value = serde_json::from_str(line).unwrap();
        let files = greeting["params"]["clientCapabilities"]["fs"].clone();
        (files["readTextFile"] == true, files["writeTextFile"] == true)
    };
    assert_eq!(offered(ClientFiles::ReadWrite), (true, true));
    assert_eq!(offered(ClientFiles::Write), (false, true));
    assert_eq!(offered(ClientFiles::None), (false, false));
}
