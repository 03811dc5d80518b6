//! Output of a real `codex app-server` in, actions out.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes its strings so")]

use expect_test::{Expect, expect};

use super::Codex;
use crate::agents::driver::{Action, Begin, Driver, McpServer};
use crate::agents::played::{Play, goes_on_anywhere, setting, shown, survives_nonsense, turn};

const FULL: &str = include_str!("traces/full.jsonl");
const PERM: &str = include_str!("traces/perm.jsonl");
const CANCEL: &str = include_str!("traces/cancel.jsonl");
const STEER: &str = include_str!("traces/steer.jsonl");
const RESUME: &str = include_str!("traces/resume.jsonl");
const SPAWN: &str = include_str!("traces/spawn.jsonl");
const ERR: &str = include_str!("traces/err.jsonl");

const GREETING: [&str; 2] = [
    r#"{"id":"init","result":{"userAgent":"lanyard/0.166.0 (Debian)"}}"#,
    r#"{"id":"thread","result":{"thread":{"id":"main","turns":[]}}}"#,
];

fn make(begin: Begin) -> Box<dyn Driver> {
    Box::new(Codex::new(setting(begin)))
}

fn check(trace: &str, turns: u8, answers: &[&'static str], expect: &Expect) {
    let mut play = Play::new(make, Begin::New, turns, answers);
    play.lines(&trace.lines().collect::<Vec<_>>());
    expect.assert_eq(&play.show());
}

/// A greeted driver with one turn given.
fn at_work() -> Play {
    let mut play = Play::new(make, Begin::New, 1, &[]);
    play.lines(&GREETING);
    play.actions.clear();
    play
}

#[test]
fn a_turn_with_thoughts_tools_and_changes() {
    check(
        FULL,
        1,
        &[],
        &expect![[r#"
            send init: {"id":"init","method":"initialize","params":{"clientInfo":{"name":"lanyard","title":"Lanyard","version":"0.1.0"},"capabilities":{"experimentalApi":true}}}
            send initialized: {"method":"initialized"}
            send thread: {"id":"thread","method":"thread/start","params":{"cwd":"/w"}}
            InForce(AgentChoice { model: Some("gpt-5.5"), mode: None, effort: None })
            send models: {"id":"models","method":"model/list","params":{}}
            ready id-1 New, codex 0.166.0
            send turn_01jz0000000000000000000001: {"id":"turn_01jz0000000000000000000001","method":"turn/start","params":{"threadId":"id-1","input":[{"type":"text","text":"go"}]}}
            Thought of rs_00001 "Let "
            Thought of rs_00001 "me "
            Thought of rs_00001 "look. "
            Thought of rs_00001 "\n\n"
            Thought of rs_00001 "Second "
            Thought of rs_00001 "part. "
            Message of msg_00001 "Working "
            Message of msg_00001 "now. "
            called call_00001_0 shell {"command":"/bin/bash -lc 'echo CX-SHELL'","cwd":"/w"}
            returned call_00001_0 {"output":"CX-SHELL\n","exit_code":0,"status":"completed"}
            Usage { input: 9948, output: 13, context: Some(9961), cost: 0 }
            called call_00002_0 mcp__ev__echo {"message":"h"}
            returned call_00002_0 [{"type":"text","text":"Echo: h"}]
            called call_00002_1 mcp__ev__echo {"message":"bad"}
            returned call_00002_1 ERROR [{"type":"text","text":"Echo: bad"}]
            Usage { input: 10129, output: 10, context: Some(10139), cost: 0 }
            Usage { input: 10323, output: 10, context: Some(10333), cost: 0 }
            called call_00004_0 apply_patch {"changes":[{"path":"/w/new.txt","kind":{"type":"add"},"diff":"one\ntwo\n"},{"path":"/w/old.txt","kind":{"type":"update"},"diff":"@@ -1 +1,2 @@\n-a\n+b\n+c\n"}]}
            returned call_00004_0 "completed"
            FileChanged { path: "/w/new.txt", added: Some(2), removed: Some(0) }
            FileChanged { path: "/w/old.txt", added: Some(2), removed: Some(1) }
            Usage { input: 10438, output: 10, context: Some(10448), cost: 0 }
            called call_00005_0 shell {"command":"/bin/bash -lc 'exit 3'","cwd":"/w"}
            returned call_00005_0 ERROR {"output":null,"exit_code":3,"status":"failed"}
            Usage { input: 10554, output: 10, context: Some(10564), cost: 0 }
            Message of msg_00006 "cx "
            Message of msg_00006 "done."
            Usage { input: 10648, output: 12, context: Some(10660), cost: 0 }
            finished turn_01jz0000000000000000000001: Done(Completed)
        "#]],
    );
}

#[test]
fn questions_are_asked_and_answered() {
    check(
        PERM,
        4,
        &["allow", "deny", "allow", "always", "stop"],
        &expect![[r#"
            send init: {"id":"init","method":"initialize","params":{"clientInfo":{"name":"lanyard","title":"Lanyard","version":"0.1.0"},"capabilities":{"experimentalApi":true}}}
            send initialized: {"method":"initialized"}
            send thread: {"id":"thread","method":"thread/start","params":{"cwd":"/w"}}
            InForce(AgentChoice { model: Some("gpt-5.5"), mode: None, effort: None })
            send models: {"id":"models","method":"model/list","params":{}}
            ready id-1 New, codex 0.166.0
            send turn_01jz0000000000000000000001: {"id":"turn_01jz0000000000000000000001","method":"turn/start","params":{"threadId":"id-1","input":[{"type":"text","text":"go"}]}}
            called call_00007_0 shell {"command":"/bin/bash -lc 'touch perm1'","cwd":"/w"}
            asked 0 about call_00007_0: /bin/bash -lc 'touch perm1' [accept (AllowOnce, Allow); acceptWithExecpolicyAmendment (AllowAlways, Always allow `touch perm1`); decline (RejectOnce, Reject); cancel (Other, Reject and end the turn)]
            send answer:0: {"result":{"decision":"accept"},"id":0}
            returned call_00007_0 {"output":null,"exit_code":0,"status":"completed"}
            Usage { input: 9954, output: 10, context: Some(9964), cost: 0 }
            called call_00008_0 shell {"command":"/bin/bash -lc 'touch perm2'","cwd":"/w"}
            asked 1 about call_00008_0: /bin/bash -lc 'touch perm2' [accept (AllowOnce, Allow); acceptWithExecpolicyAmendment (AllowAlways, Always allow `touch perm2`); decline (RejectOnce, Reject); cancel (Other, Reject and end the turn)]
            send answer:1: {"result":{"decision":"decline"},"id":1}
            returned call_00008_0 ERROR {"output":null,"exit_code":null,"status":"declined"}
            Usage { input: 10049, output: 10, context: Some(10059), cost: 0 }
            Message of msg_00009 "ok"
            Usage { input: 10139, output: 10, context: Some(10149), cost: 0 }
            finished turn_01jz0000000000000000000001: Done(Completed)
            send turn_01jz0000000000000000000002: {"id":"turn_01jz0000000000000000000002","method":"turn/start","params":{"threadId":"id-1","input":[{"type":"text","text":"go"}]}}
            called call_00010_0 apply_patch {"changes":[{"path":"/w/old.txt","kind":{"type":"update"},"diff":"@@ -1 +1,2 @@\n-a\n+b\n+c\n"}]}
            asked 2 about call_00010_0: Change /w/old.txt [accept (AllowOnce, Allow); acceptForSession (AllowAlways, Allow for this session); decline (RejectOnce, Reject); cancel (Other, Reject and end the turn)]
            send answer:2: {"result":{"decision":"accept"},"id":2}
            returned call_00010_0 "completed"
            FileChanged { path: "/w/old.txt", added: Some(2), removed: Some(1) }
            Usage { input: 10209, output: 10, context: Some(10219), cost: 0 }
            Message of msg_00011 "patched"
            Usage { input: 10314, output: 11, context: Some(10325), cost: 0 }
            finished turn_01jz0000000000000000000002: Done(Completed)
            send turn_01jz0000000000000000000003: {"id":"turn_01jz0000000000000000000003","method":"turn/start","params":{"threadId":"id-1","input":[{"type":"text","text":"go"}]}}
            called call_00012_0 mcp__ev__echo {"message":"h"}
            asked 3 about -: Allow the ev MCP server to run tool "echo"? [accept (AllowOnce, Allow); accept:session (AllowAlways, Allow (session)); accept:always (AllowAlways, Allow (always)); decline (RejectOnce, Reject); cancel (Other, Reject and end the turn)]
            send answer:3: {"result":{"action":"accept","content":{},"_meta":{"persist":"session"}},"id":3}
            returned call_00012_0 [{"type":"text","text":"Echo: h"}]
            Usage { input: 10384, output: 10, context: Some(10394), cost: 0 }
            Message of msg_00013 "mcp "
            Message of msg_00013 "ok"
            Usage { input: 10480, output: 11, context: Some(10491), cost: 0 }
            finished turn_01jz0000000000000000000003: Done(Completed)
            send turn_01jz0000000000000000000004: {"id":"turn_01jz0000000000000000000004","method":"turn/start","params":{"threadId":"id-1","input":[{"type":"text","text":"go"}]}}
            called call_00014_0 shell {"command":"/bin/bash -lc 'touch perm1'","cwd":"/w"}
            asked 4 about call_00014_0: /bin/bash -lc 'touch perm1' [accept (AllowOnce, Allow); acceptWithExecpolicyAmendment (AllowAlways, Always allow `touch perm1`); decline (RejectOnce, Reject); cancel (Other, Reject and end the turn)]
            send cancel:turn_01jz0000000000000000000004: {"id":"cancel:turn_01jz0000000000000000000004","method":"turn/interrupt","params":{"threadId":"id-1","turnId":"id-8"}}
            Usage { input: 10550, output: 10, context: Some(10560), cost: 0 }
            finished turn_01jz0000000000000000000004: Cancelled
            unasked 4: the agent no longer waits
        "#]],
    );
}

#[test]
fn a_turn_that_fails_says_why() {
    check(
        ERR,
        1,
        &[],
        &expect![[r#"
            send init: {"id":"init","method":"initialize","params":{"clientInfo":{"name":"lanyard","title":"Lanyard","version":"0.1.0"},"capabilities":{"experimentalApi":true}}}
            send initialized: {"method":"initialized"}
            send thread: {"id":"thread","method":"thread/start","params":{"cwd":"/w"}}
            InForce(AgentChoice { model: Some("fake"), mode: None, effort: None })
            send models: {"id":"models","method":"model/list","params":{}}
            ready id-1 New, codex 0.166.0
            send turn_01jz0000000000000000000001: {"id":"turn_01jz0000000000000000000001","method":"turn/start","params":{"threadId":"id-1","input":[{"type":"text","text":"go"}]}}
            odd: codex: Model metadata for `fake` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.
            Error { text: "{\"type\": \"error\", \"error\": {\"type\": \"api_error\", \"message\": \"scripted bad request\", \"code\": 400}}" }
            finished turn_01jz0000000000000000000001: Failed("{\"type\": \"error\", \"error\": {\"type\": \"api_error\", \"message\": \"scripted bad request\", \"code\": 400}}")
        "#]],
    );
}

#[test]
fn a_subagent_is_a_conversation_of_its_own() {
    check(
        SPAWN,
        1,
        &[],
        &expect![[r#"
            send init: {"id":"init","method":"initialize","params":{"clientInfo":{"name":"lanyard","title":"Lanyard","version":"0.1.0"},"capabilities":{"experimentalApi":true}}}
            send initialized: {"method":"initialized"}
            send thread: {"id":"thread","method":"thread/start","params":{"cwd":"/w"}}
            InForce(AgentChoice { model: Some("gpt-5.5"), mode: None, effort: None })
            send models: {"id":"models","method":"model/list","params":{}}
            ready id-1 New, codex 0.166.0
            send turn_01jz0000000000000000000001: {"id":"turn_01jz0000000000000000000001","method":"turn/start","params":{"threadId":"id-1","input":[{"type":"text","text":"go"}]}}
            called call_00040_0 spawnAgent {"prompt":"child do it @@cxchild@@","threads":[]}
            returned call_00040_0 {"id-4":{"status":"pendingInit"}}
            Child { native: "id-4", also: [], parent: None, title: None, agent: None, prompt: "child do it @@cxchild@@" }
            Usage { input: 9468, output: 10, context: Some(9478), cost: 0 }
            called call_00041_0 wait {"prompt":null,"threads":["id-4"]}
            (id-4) called call_00042_0 shell {"command":"/bin/bash -lc 'echo child'","cwd":"/w"}
            (id-4) returned call_00042_0 {"output":"child\n","exit_code":0,"status":"completed"}
            (id-4) Usage { input: 9355, output: 10, context: Some(9365), cost: 0 }
            (id-4) Message of msg_00043 "CX-CHILD-OK"
            (id-4) Usage { input: 9452, output: 12, context: Some(9464), cost: 0 }
            (id-4) finished -: Done(Completed)
            returned call_00041_0 {"id-4":{"status":"completed","message":"CX-CHILD-OK"}}
            Usage { input: 9567, output: 10, context: Some(9577), cost: 0 }
            Message of msg_00044 "parent "
            Message of msg_00044 "done."
            Usage { input: 9751, output: 13, context: Some(9764), cost: 0 }
            finished turn_01jz0000000000000000000001: Done(Completed)
        "#]],
    );
}

#[test]
fn a_conversation_is_taken_up_again() {
    let mut play = Play::new(make, Begin::Resume { native: "id-1".to_owned() }, 1, &[]);
    play.lines(&RESUME.lines().collect::<Vec<_>>());
    expect![[r#"
        send init: {"id":"init","method":"initialize","params":{"clientInfo":{"name":"lanyard","title":"Lanyard","version":"0.1.0"},"capabilities":{"experimentalApi":true}}}
        send initialized: {"method":"initialized"}
        send thread: {"id":"thread","method":"thread/resume","params":{"cwd":"/w","threadId":"id-1"}}
        odd: codex: Full-history hydration is deprecated for paginated threads; use `excludeTurns: true`, then page with `thread/turns/list` and `thread/items/list`.
        InForce(AgentChoice { model: Some("fake"), mode: None, effort: None })
        send models: {"id":"models","method":"model/list","params":{}}
        replayed 5
        ready id-1 Resumed, codex 0.166.0
        send turn_01jz0000000000000000000001: {"id":"turn_01jz0000000000000000000001","method":"turn/start","params":{"threadId":"id-1","input":[{"type":"text","text":"go"}]}}
        Usage { input: 0, output: 0, context: Some(6009), cost: 0 }
        odd: codex: Model metadata for `fake` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.
        Message of msg_00015 "Simple "
        Message of msg_00015 "answer."
        Usage { input: 10536, output: 13, context: Some(10549), cost: 0 }
        finished turn_01jz0000000000000000000001: Done(Completed)
    "#]].assert_eq(&play.show());
}

#[test]
fn a_conversation_that_cannot_be_taken_up_breaks_the_run() {
    for answer in [
        r#"{"error":{"code":-32600,"message":"no rollout found for thread id x"},"id":"thread"}"#,
        r#"{"id":"thread","result":{"thread":{"id":"another"}}}"#,
        r#"{"id":"thread","result":{}}"#,
    ] {
        let mut play = Play::new(make, Begin::Resume { native: "x".to_owned() }, 1, &[]);
        play.lines(&[GREETING[0], answer]);
        let broken = play.actions.iter().find(|action| matches!(action, Action::Broken { .. }));
        assert!(broken.is_some() && !play.is_ready(), "{answer}");
    }
}

#[test]
fn a_broken_greeting_breaks_the_run() {
    let cases = [
        vec![r#"{"id":"init","error":{"code":1,"message":"no"}}"#],
        vec![GREETING[0], r#"{"id":"thread","error":{"code":1,"message":"no"}}"#],
        vec![
            GREETING[0],
            r#"{"id":"thread","error":{"message":"Invalid request: unknown variant `thread/start`"}}"#,
        ],
        vec![GREETING[0], r#"{"id":"thread","result":null}"#],
    ];
    let mut text = String::new();
    for lines in cases {
        let mut play = Play::new(make, Begin::New, 1, &[]);
        play.lines(&lines);
        text += &shown(&play.actions[play.actions.len() - 1..]);
    }
    expect![[r#"
        broken handshake_failed: codex refused the greeting: no
        broken handshake_failed: codex opened no thread: no
        broken version_unsupported: this codex is too old for its driver: Invalid request: unknown variant `thread/start`
        broken handshake_failed: codex opened a thread without an id
    "#]].assert_eq(&text);
}

#[test]
fn the_opening_says_all_that_is_set() {
    let mut full = setting(Begin::New);
    full.instructions = Some("Be brief.".to_owned());
    full.model = Some("m".to_owned());
    full.mode = Some("read-only, untrusted".to_owned());
    full.mcp = vec![
        McpServer::Http {
            name: "a.b".to_owned(),
            url: "http://127.0.0.1:1/mcp".to_owned(),
            headers: vec![("authorization".to_owned(), "Bearer t".to_owned())],
        },
        McpServer::Stdio {
            name: "c".to_owned(),
            command: "cat".to_owned(),
            args: vec!["-u".to_owned()],
            env: vec![("K".to_owned(), "v".to_owned())],
        },
    ];
    let mut wild = full.clone();
    wild.mode = Some("yolo".to_owned());
    let mut out = Vec::new();
    for setting in [full, wild] {
        let mut codex = Codex::new(setting);
        codex.begin(&mut out);
        codex.line(GREETING[0].as_bytes(), &mut out);
    }
    expect![[r#"
        send init: {"id":"init","method":"initialize","params":{"clientInfo":{"name":"lanyard","title":"Lanyard","version":"0.1.0"},"capabilities":{"experimentalApi":true}}}
        send initialized: {"method":"initialized"}
        send thread: {"id":"thread","method":"thread/start","params":{"cwd":"/w","developerInstructions":"Be brief.","model":"m","sandbox":"read-only","approvalPolicy":"untrusted","config":{"mcp_servers.a_b":{"url":"http://127.0.0.1:1/mcp","http_headers":{"authorization":"Bearer t"}},"mcp_servers.c":{"command":"cat","args":["-u"],"env":{"K":"v"}}}}}
        send init: {"id":"init","method":"initialize","params":{"clientInfo":{"name":"lanyard","title":"Lanyard","version":"0.1.0"},"capabilities":{"experimentalApi":true}}}
        broken mode_unknown: codex has no mode `yolo`; it knows read-only, workspace-write, danger-full-access and untrusted, on-request, never
    "#]].assert_eq(&shown(&out));
}

#[test]
fn a_cancel_waits_for_the_turn_to_begin() {
    let lines: Vec<&str> = CANCEL.lines().collect();
    let begun = lines.iter().position(|line| line.contains("turn/started")).unwrap();
    let mut play = Play::new(make, Begin::New, 1, &[]);
    play.lines(&lines[..begun]);
    play.wish(|driver, out| driver.cancel(turn(1), None, out));
    play.lines(&lines[begun..]);
    expect![[r#"
        send init: {"id":"init","method":"initialize","params":{"clientInfo":{"name":"lanyard","title":"Lanyard","version":"0.1.0"},"capabilities":{"experimentalApi":true}}}
        send initialized: {"method":"initialized"}
        send thread: {"id":"thread","method":"thread/start","params":{"cwd":"/w"}}
        InForce(AgentChoice { model: Some("gpt-5.5"), mode: None, effort: None })
        send models: {"id":"models","method":"model/list","params":{}}
        ready id-1 New, codex 0.166.0
        send turn_01jz0000000000000000000001: {"id":"turn_01jz0000000000000000000001","method":"turn/start","params":{"threadId":"id-1","input":[{"type":"text","text":"go"}]}}
        send cancel:turn_01jz0000000000000000000001: {"id":"cancel:turn_01jz0000000000000000000001","method":"turn/interrupt","params":{"threadId":"id-1","turnId":"id-2"}}
        Message of msg_00015 "one "
        finished turn_01jz0000000000000000000001: Cancelled
        odd: codex refused `steer:2turn_01jz0000000000000000000001`: no active turn to steer
    "#]].assert_eq(&play.show());
}

#[test]
fn a_cancel_after_a_restart_asks_for_the_turn() {
    let mut play = at_work();
    play.restart();
    play.wish(|driver, out| driver.cancel(turn(1), None, out));
    let look =
        format!(r#"{{"id":"look:{}","result":{{"data":[{{"id":"cx","status":"inProgress"}}]}}}}"#, turn(1));
    play.lines(&[&look]);
    expect![[r#"
        send look:turn_01jz0000000000000000000001: {"id":"look:turn_01jz0000000000000000000001","method":"thread/turns/list","params":{"threadId":"main","limit":1,"sortDirection":"desc","itemsView":"notLoaded"}}
        send cancel:turn_01jz0000000000000000000001: {"id":"cancel:turn_01jz0000000000000000000001","method":"turn/interrupt","params":{"threadId":"main","turnId":"cx"}}
    "#]].assert_eq(&play.show());
}

#[test]
fn words_are_put_into_the_turn_and_the_context_is_compacted_between_turns() {
    let lines: Vec<&str> = STEER.lines().collect();
    let called = lines.iter().position(|line| line.contains("commandExecution")).unwrap() + 1;
    let over = lines.iter().position(|line| line.contains("turn/completed")).unwrap() + 1;
    let mut play = Play::new(make, Begin::New, 1, &[]);
    assert!(!play.wish(|driver, out| driver.steer("early", None, "x".into(), out)));
    play.lines(&lines[..called]);
    assert!(play.wish(|driver, out| driver.steer("n", None, "be quick".into(), out)));
    assert!(!play.wish(|driver, out| driver.compact("early", out)), "it would end the turn");
    play.lines(&lines[called..over]);
    assert!(!play.wish(|driver, out| driver.steer("late", None, "x".into(), out)));
    assert!(play.wish(|driver, out| driver.compact("k", out)));
    play.wish(|driver, out| driver.prompt(turn(2), None, "next".into(), out));
    play.lines(&lines[over..]);
    expect![[r#"
        send init: {"id":"init","method":"initialize","params":{"clientInfo":{"name":"lanyard","title":"Lanyard","version":"0.1.0"},"capabilities":{"experimentalApi":true}}}
        send initialized: {"method":"initialized"}
        send thread: {"id":"thread","method":"thread/start","params":{"cwd":"/w"}}
        InForce(AgentChoice { model: Some("fake"), mode: None, effort: None })
        send models: {"id":"models","method":"model/list","params":{}}
        ready id-1 New, codex 0.166.0
        send turn_01jz0000000000000000000001: {"id":"turn_01jz0000000000000000000001","method":"turn/start","params":{"threadId":"id-1","input":[{"type":"text","text":"go"}]}}
        odd: codex: Model metadata for `fake` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.
        called call_00012_0 shell {"command":"/bin/bash -lc 'sleep 2'","cwd":"/w"}
        send steer:n: {"id":"steer:n","method":"turn/steer","params":{"threadId":"id-1","expectedTurnId":"id-2","input":[{"type":"text","text":"be quick"}]}}
        returned call_00012_0 {"output":null,"exit_code":0,"status":"completed"}
        Usage { input: 9803, output: 10, context: Some(9813), cost: 0 }
        Message of msg_00013 "after "
        Message of msg_00013 "steer."
        Usage { input: 9930, output: 13, context: Some(9943), cost: 0 }
        finished turn_01jz0000000000000000000001: Done(Completed)
        send compact:k: {"id":"compact:k","method":"thread/compact/start","params":{"threadId":"id-1"}}
        Usage { input: 5827, output: 13, context: Some(5840), cost: 0 }
        Usage { input: 0, output: 0, context: Some(6009), cost: 0 }
        Compacted { before: 9943, after: 6009 }
        send turn_01jz0000000000000000000002: {"id":"turn_01jz0000000000000000000002","method":"turn/start","params":{"threadId":"id-1","input":[{"type":"text","text":"next"}]}}
    "#]].assert_eq(&play.show());
}

#[test]
fn a_prompt_refused_by_a_compaction_is_given_again() {
    let mut play = at_work();
    let refused = format!(
        r#"{{"error":{{"code":-32603,"message":"failed to submit turn input: ActiveTurnNotSteerable {{ turn_kind: Compact }}"}},"id":"{}"}}"#,
        turn(1)
    );
    play.lines(&[
        &refused,
        r#"{"method":"turn/started","params":{"threadId":"main","turn":{"id":"c"}}}"#,
        r#"{"method":"turn/completed","params":{"threadId":"main","turn":{"id":"c","status":"completed"}}}"#,
    ]);
    expect![[r#"
        send turn_01jz0000000000000000000001:again: {"id":"turn_01jz0000000000000000000001","method":"turn/start","params":{"threadId":"main","input":[{"type":"text","text":"go"}]}}
    "#]].assert_eq(&play.show());
}

#[test]
fn a_driver_goes_on_where_another_stopped() {
    goes_on_anywhere(make, &Begin::New, 1, &[], FULL);
    goes_on_anywhere(make, &Begin::New, 4, &["allow", "deny", "allow", "always", "stop"], PERM);
    goes_on_anywhere(make, &Begin::New, 1, &[], CANCEL);
    goes_on_anywhere(make, &Begin::New, 1, &[], SPAWN);
    goes_on_anywhere(make, &Begin::New, 1, &[], ERR);
    goes_on_anywhere(make, &Begin::Resume { native: "id-1".to_owned() }, 1, &[], RESUME);
}

#[test]
fn a_message_without_parts_is_told_at_its_end() {
    let mut play = at_work();
    play.lines(&[
        r#"{"method":"item/started","params":{"threadId":"main","turnId":"t","item":{"type":"agentMessage","id":"m","text":""}}}"#,
        r#"{"method":"item/completed","params":{"threadId":"main","turnId":"t","item":{"type":"agentMessage","id":"m","text":"all"}}}"#,
        r#"{"method":"item/completed","params":{"threadId":"main","turnId":"t","item":{"type":"webSearch","id":"w","query":"q"}}}"#,
        r#"{"method":"turn/plan/updated","params":{"threadId":"main","turnId":"t","plan":[{"step":"a","status":"completed"},{"step":"b","status":"inProgress"},{"step":"c"}]}}"#,
    ]);
    expect![[r#"
        Message of m "all"
        called w web_search {"query":"q","action":null}
        returned w null
        Planned { entries: [PlanEntry { text: "a", status: Completed }, PlanEntry { text: "b", status: InProgress }, PlanEntry { text: "c", status: Pending }] }
    "#]].assert_eq(&play.show());
}

#[test]
fn odd_lines_harm_nothing() {
    let mut play = at_work();
    play.lines(&[
        "",
        "garbage",
        "[1]",
        "null",
        r#"{"id":7,"result":{}}"#,
        r#"{"id":"steer:n","error":{"message":"no active turn to steer"}}"#,
        r#"{"id":"nobody","result":{}}"#,
        r#"{"method":"no/such/notice","params":{"threadId":"main"}}"#,
        r#"{"method":"item/started","params":{"threadId":"main","item":{"type":"holodeck","id":"x"}}}"#,
        r#"{"method":"item/completed","params":{"threadId":"main"}}"#,
        r#"{"method":"turn/completed","params":{"threadId":"main","turn":{"id":"x","status":"bored"}}}"#,
        r#"{"method":"turn/completed","params":{"threadId":"main","turn":{"id":"y","status":"completed"}}}"#,
        r#"{"id":"a","method":"item/tool/requestUserInput","params":{"threadId":"main"}}"#,
        r#"{"id":9,"method":"mcpServer/elicitation/request","params":{"mode":"form","requestedSchema":{"properties":{"n":{}}}}}"#,
        r#"{"method":"warning","params":{"message":"low on tea"}}"#,
        r#"{"method":"mcpServer/startupStatus/updated","params":{"threadId":"main","name":"ev","status":"failed","error":"gone"}}"#,
    ]);
    expect![[r#"
        odd: codex wrote no JSON: garbage
        odd: codex wrote no message: [1]
        odd: codex wrote no message: null
        odd: codex wrote no message: {"id":7,"result":{}}
        odd: codex refused `steer:n`: no active turn to steer
        finished turn_01jz0000000000000000000001: Failed("codex ended the turn as `bored`")
        odd: codex ended a turn that nobody here began
        odd: codex asked `item/tool/requestUserInput`, which nobody here can answer
        send answer:"a": {"error":{"code":-32601,"message":"this client has no `item/tool/requestUserInput`"},"id":"a"}
        odd: codex asked `mcpServer/elicitation/request`, which nobody here can answer
        send answer:9: {"result":{"action":"decline"},"id":9}
        odd: codex: low on tea
        Error { text: "MCP server ev did not start: gone" }
    "#]].assert_eq(&play.show());
}

#[test]
fn nonsense_never_panics() {
    survives_nonsense(make, &Begin::New, &[FULL, PERM, CANCEL, STEER, SPAWN, ERR]);
    survives_nonsense(make, &Begin::Resume { native: "id-1".to_owned() }, &[RESUME]);
}

/// FND-R8: words for a subagent go into its own thread's running turn, and nowhere when none runs there.
#[test]
fn fnd_r8_a_subagent_is_steered_in_its_own_thread() {
    let mut play = at_work();
    assert!(!play.wish(|driver, out| driver.steer("early", Some("sub"), "x".into(), out)));
    play.lines(&[
        r#"{"method":"turn/started","params":{"threadId":"sub","turn":{"id":"t9","items":[],"status":"inProgress"}}}"#,
    ]);
    play.actions.clear();
    assert!(play.wish(|driver, out| driver.steer("n", Some("sub"), "look left".into(), out)));
    expect![[r#"
        send steer:n: {"id":"steer:n","method":"turn/steer","params":{"threadId":"sub","expectedTurnId":"t9","input":[{"type":"text","text":"look left"}]}}
    "#]].assert_eq(&play.show());
}

/// FND-R13. In a worktree of Lanyard's, Codex's sandbox is told where a commit is written.
#[test]
fn fnd_r13_codex_may_write_where_a_commit_goes() {
    let mut setting = setting(Begin::New);
    setting.git_folders = vec!["/r/.git/worktrees/flow_1".into(), "/r/.git/objects".into()];
    let mut out = Vec::new();
    let mut codex = Codex::new(setting);
    codex.begin(&mut out);
    codex.line(GREETING[0].as_bytes(), &mut out);
    let roots = r#""config":{"sandbox_workspace_write.writable_roots":["/r/.git/worktrees/flow_1","/r/.git/objects"]}"#;
    assert!(shown(&out).contains(roots), "{}", shown(&out));
}
