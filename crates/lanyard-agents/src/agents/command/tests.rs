//! Output of real `claude -p` and `codex exec` runs in, actions out.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes its strings so")]

use expect_test::{Expect, expect};
use lanyard_api::agents::settings::{OutputForm, PerTurn};
use lanyard_core::session::AgentChoice;

use super::{CommandDriver, arguments};
use crate::agents::driver::{Action, Begin, Driver};
use crate::agents::played::{Play, goes_on_anywhere, setting, survives_nonsense, turn};

const CLAUDE: &str = include_str!("traces/claude.jsonl");
/// It was allowed to write, denied a command, asked for a subagent's command, and asked a question of its own.
const CLAUDE_ASKS: &str = include_str!("traces/claude_asks.jsonl");
const CLAUDE_PARTS: &str = include_str!("traces/claude_parts.jsonl");
const CLAUDE_ERROR: &str = include_str!("traces/claude_error.jsonl");
const CLAUDE_REFUSED: &str = include_str!("traces/claude_refused.jsonl");
const CODEX: &str = include_str!("traces/codex.jsonl");
const CODEX_RESUMED: &str = include_str!("traces/codex_resumed.jsonl");
const CODEX_ERROR: &str = include_str!("traces/codex_error.jsonl");
const CODEX_SPAWN: &str = include_str!("traces/codex_spawn.jsonl");

fn per_turn(output: OutputForm) -> PerTurn {
    PerTurn {
        first: vec!["-p".to_owned(), "{prompt}".to_owned()],
        next: vec!["--resume={native}".to_owned(), "{prompt}".to_owned()],
        prompt_on_stdin: false,
        output,
    }
}

fn driver(begin: Begin, per_turn: PerTurn) -> Box<dyn Driver> {
    Box::new(CommandDriver::new(setting(begin), per_turn))
}

fn text(begin: Begin) -> Box<dyn Driver> {
    driver(begin, per_turn(OutputForm::Text))
}

fn claude(begin: Begin) -> Box<dyn Driver> {
    driver(begin, per_turn(OutputForm::ClaudeJson))
}

fn claude_parts(begin: Begin) -> Box<dyn Driver> {
    let mut per_turn = per_turn(OutputForm::ClaudeJson);
    per_turn.next.push("--include-partial-messages".to_owned());
    driver(begin, per_turn)
}

/// With answers to its questions.
fn claude_two_way(begin: Begin) -> Box<dyn Driver> {
    let words = ["--input-format", "stream-json", "--permission-prompt-tool", "stdio"];
    let first = words.map(str::to_owned).to_vec();
    driver(begin, PerTurn { first, prompt_on_stdin: true, ..per_turn(OutputForm::ClaudeJson) })
}

fn codex(begin: Begin) -> Box<dyn Driver> {
    driver(begin, per_turn(OutputForm::CodexJson))
}

fn resume(native: &str) -> Begin {
    Begin::Resume { native: native.to_owned() }
}

fn check(make: fn(Begin) -> Box<dyn Driver>, begin: Begin, trace: &str, code: i32, expect: &Expect) {
    let mut play = Play::new(make, begin, 1, &[]);
    play.lines(&trace.lines().collect::<Vec<_>>());
    play.wish(|driver, out| driver.exited(Some(code), out));
    expect.assert_eq(&play.show());
}

#[test]
fn claude_works_with_tools_files_and_a_subagent() {
    check(
        claude,
        Begin::New,
        CLAUDE,
        0,
        &expect![[r#"
            ready id-1 New, claude 2.1.197
            Message of msg_00016 "Working. "
            called toolu_call_00016_0 Bash {"command":"echo CL-BASH","description":"x"}
            returned toolu_call_00016_0 "CL-BASH"
            called toolu_call_00017_0 mcp__ev__echo {"message":"h"}
            returned toolu_call_00017_0 [{"type":"text","text":"Echo: h"}]
            called toolu_call_00018_0 Write {"file_path":"/w/cl.txt","content":"one\ntwo\n"}
            returned toolu_call_00018_0 "File created successfully at: /w/cl.txt (file state is current in your context — no need to Read it back)"
            FileChanged { path: "/w/cl.txt", added: Some(2), removed: Some(0) }
            called toolu_call_00019_0 Agent {"description":"sub","prompt":"child go @@clchild@@","subagent_type":"general-purpose"}
            Child { native: "toolu_call_00019_0", also: ["id-1/ac3378aafd2afc871"], parent: None, title: Some("sub"), agent: Some("general-purpose"), prompt: "child go @@clchild@@" }
            (toolu_call_00019_0) Usage { input: 11295, output: 1, context: Some(11296), cost: 0 }
            (toolu_call_00019_0) called toolu_call_00020_0 Bash {"command":"exit 3","description":"x"}
            (toolu_call_00019_0) returned toolu_call_00020_0 ERROR "Exit code 3"
            (toolu_call_00019_0) Message "CL-CHILD-OK"
            (toolu_call_00019_0) Usage { input: 11758, output: 12, context: Some(11770), cost: 0 }
            (toolu_call_00019_0) finished -: Done(Completed)
            returned toolu_call_00019_0 [{"type":"text","text":"CL-CHILD-OK"},{"type":"text","text":"agentId: ac3378aafd2afc871 (use SendMessage with to: 'ac3378aafd2afc871', summary: '<5-10 word recap>' to continue this agent)\n<usage>subagent_tokens: 11770\ntool_uses: 1\nduration_ms: 160</usage>"}]
            Message of msg_00022 "cl done."
            Usage { input: 96205, output: 54, context: Some(19451), cost: 0 }
            finished turn_01jz0000000000000000000001: Done(Completed)
        "#]],
    );
}

/// FND-R4.
#[test]
fn fnd_r4_claude_asks_and_is_answered_while_it_works() {
    let mut play = Play::new(claude_two_way, Begin::New, 1, &["allow", "deny", "allow", "choice2"]);
    play.lines(&CLAUDE_ASKS.lines().collect::<Vec<_>>());
    play.wish(|driver, out| driver.exited(Some(0), out));
    expect![[r#"
        ready id-1 New, claude 2.1.197
        send turn_01jz0000000000000000000001: {"type":"user","message":{"role":"user","content":[{"type":"text","text":"go"}]},"parent_tool_use_id":null,"session_id":""}
        Message of msg_00018 "Working. "
        called toolu_call_00018_0 Write {"file_path":"/w/new.txt","content":"hello\n"}
        asked req-1 about toolu_call_00018_0: Write: /w/new.txt [allow (AllowOnce, Allow once); deny (RejectOnce, Deny)]
        send answer:req-1: {"type":"control_response","response":{"subtype":"success","request_id":"req-1","response":{"behavior":"allow","updatedInput":{}}}}
        returned toolu_call_00018_0 "File created successfully at: /w/new.txt (file state is current in your context — no need to Read it back)"
        FileChanged { path: "/w/new.txt", added: Some(1), removed: Some(0) }
        called toolu_call_00019_0 Bash {"command":"touch b.txt","description":"x"}
        asked req-2 about toolu_call_00019_0: Bash: touch b.txt [allow (AllowOnce, Allow once); deny (RejectOnce, Deny)]
        send answer:req-2: {"type":"control_response","response":{"subtype":"success","request_id":"req-2","response":{"behavior":"deny","message":"This was denied."}}}
        returned toolu_call_00019_0 ERROR "Not now."
        called toolu_call_00020_0 Agent {"description":"sub","prompt":"child go @@subc@@","subagent_type":"general-purpose"}
        Child { native: "toolu_call_00020_0", also: ["id-1/a74e909d10113eba0"], parent: None, title: Some("sub"), agent: Some("general-purpose"), prompt: "child go @@subc@@" }
        (toolu_call_00020_0) asked req-3 about toolu_call_00021_0: Bash: touch /w/c.txt [allow (AllowOnce, Allow once); deny (RejectOnce, Deny)]
        send answer:req-3: {"type":"control_response","response":{"subtype":"success","request_id":"req-3","response":{"behavior":"allow","updatedInput":{}}}}
        (toolu_call_00020_0) Usage { input: 11262, output: 1, context: Some(11263), cost: 0 }
        (toolu_call_00020_0) called toolu_call_00021_0 Bash {"command":"touch /w/c.txt","description":"x"}
        (toolu_call_00020_0) returned toolu_call_00021_0 "(Bash completed with no output)"
        (toolu_call_00020_0) Message "child done."
        (toolu_call_00020_0) Usage { input: 11735, output: 12, context: Some(11747), cost: 0 }
        (toolu_call_00020_0) finished -: Done(Completed)
        returned toolu_call_00020_0 [{"type":"text","text":"child done."},{"type":"text","text":"agentId: a74e909d10113eba0 (use SendMessage with to: 'a74e909d10113eba0', summary: '<5-10 word recap>' to continue this agent)\n<usage>subagent_tokens: 11747\ntool_uses: 1\nduration_ms: 195</usage>"}]
        called toolu_call_00023_0 AskUserQuestion {"questions":[{"question":"Which?","header":"W","multiSelect":false,"options":[{"label":"A","description":"a"},{"label":"B","description":"b"}]}]}
        asked req-4 about toolu_call_00023_0: Which? [choice1 (Other, A); choice2 (Other, B); reject (RejectOnce, Do not answer)]
        send answer:req-4: {"type":"control_response","response":{"subtype":"success","request_id":"req-4","response":{"behavior":"allow","updatedInput":{"questions":[{"question":"Which?","header":"W","options":[{"label":"A","description":"a"},{"label":"B","description":"b"}],"multiSelect":false}],"answers":{"Which?":"B"}}}}}
        returned toolu_call_00023_0 "Your questions have been answered: \"Which?\"=\"B\". You can now continue with these answers in mind."
        Message of msg_00024 "done."
        Usage { input: 110054, output: 53, context: Some(22233), cost: 667130 }
        finished turn_01jz0000000000000000000001: Done(Completed)
    "#]].assert_eq(&play.show());
}

/// FND-R4: its result lists what it denied; one that could ask was told each time.
#[test]
fn fnd_r4_what_claude_denied_by_itself_is_noted() {
    let result = |denials: &str| {
        format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"result":"ok","permission_denials":[{denials}]}}"#
        )
    };
    let init = r#"{"type":"system","subtype":"init","session_id":"id-1"}"#;
    let write = r#"{"tool_name":"Write","tool_use_id":"a","tool_input":{}}"#;
    let two = format!(r#"{write},{{"tool_name":"Bash","tool_use_id":"b"}}"#);
    for (make, denials, noted) in [
        (
            claude as fn(Begin) -> Box<dyn Driver>,
            two.as_str(),
            Some("denied 2 tool calls and asked nobody: Bash, Write;"),
        ),
        (claude, write, Some("denied 1 tool call and asked nobody: Write;")),
        (claude, "", None),
        (claude_two_way, two.as_str(), None),
    ] {
        let mut play = Play::new(make, Begin::New, 1, &[]);
        play.lines(&[init, &result(denials)]);
        let shown = play.show();
        assert_eq!(shown.contains("Noted(Completed"), noted.is_some(), "{shown}");
        assert!(noted.is_none_or(|noted| shown.contains(noted)), "{shown}");
    }
}

#[test]
fn claude_in_parts_is_not_told_twice() {
    check(
        claude_parts,
        resume("id-1"),
        CLAUDE_PARTS,
        0,
        &expect![[r#"
            ready id-1 Believed, claude 2.1.197
            Message of msg_00023 "Simple "
            Message of msg_00023 "answer."
            Usage { input: 19453, output: 13, context: Some(19466), cost: 0 }
            finished turn_01jz0000000000000000000001: Done(Completed)
        "#]],
    );
}

#[test]
fn claude_fails_or_refuses_to_resume() {
    check(
        claude,
        Begin::New,
        CLAUDE_ERROR,
        1,
        &expect![[r#"
        ready id-1 New, claude 2.1.197
        Error { text: "API Error: 400 scripted bad request" }
        finished turn_01jz0000000000000000000001: Failed("API Error: 400 scripted bad request")
    "#]],
    );
    check(
        claude,
        resume("id-1"),
        CLAUDE_REFUSED,
        1,
        &expect![[r#"
        broken resume_refused: No conversation found with session ID: id-1
    "#]],
    );
    check(
        claude,
        resume("another"),
        CLAUDE_PARTS.lines().next().unwrap(),
        0,
        &expect![[r#"
            broken resume_refused: another was asked for and id-1 was opened
        "#]],
    );
}

#[test]
fn codex_works_with_tools() {
    check(
        codex,
        Begin::New,
        CODEX,
        0,
        &expect![[r#"
            ready id-1 New, codex -
            Thought of item_0 "Let me look.\nSecond part."
            Message of item_1 "Working now. "
            called item_2 shell {"command":"/bin/bash -lc 'echo CX-SHELL'"}
            returned item_2 {"output":"CX-SHELL\n","exit_code":0,"status":"completed"}
            called item_3 mcp__ev__echo {"message":"h"}
            returned item_3 [{"type":"text","text":"Echo: h"}]
            called item_4 mcp__ev__echo {"message":"bad"}
            returned item_4 ERROR [{"type":"text","text":"Echo: bad"}]
            called item_5 shell {"command":"/bin/bash -lc 'exit 3'"}
            returned item_5 ERROR {"output":"","exit_code":3,"status":"failed"}
            Message of item_6 "cx done."
            Usage { input: 62048, output: 65, context: None, cost: 0 }
            finished turn_01jz0000000000000000000001: Done(Completed)
        "#]],
    );
}

#[test]
fn codex_starts_a_subagent() {
    check(
        codex,
        Begin::New,
        CODEX_SPAWN,
        0,
        &expect![[r#"
            ready id-1 New, codex -
            Error { text: "Model metadata for `fake` not found. Defaulting to fallback metadata; this can degrade performance and cause issues." }
            called item_1 spawn_agent {"prompt":"child do it @@cxchild@@","threads":[]}
            returned item_1 {"id-2":{"status":"pending_init"}}
            Child { native: "id-2", also: [], parent: None, title: None, agent: None, prompt: "child do it @@cxchild@@" }
            called item_2 wait {"prompt":null,"threads":["id-2"]}
            returned item_2 {"id-2":{"status":"completed","message":"CX-CHILD-OK"}}
            (id-2) Message "CX-CHILD-OK"
            (id-2) finished -: Done(Completed)
            Message of item_3 "parent done."
            Usage { input: 29831, output: 33, context: None, cost: 0 }
            finished turn_01jz0000000000000000000001: Done(Completed)
        "#]],
    );
}

#[test]
fn codex_resumes_fails_or_refuses() {
    check(
        codex,
        resume("id-1"),
        CODEX_RESUMED,
        0,
        &expect![[r#"
            ready id-1 Believed, codex -
            Message of item_0 "Simple answer."
            finished turn_01jz0000000000000000000001: Done(Completed)
        "#]],
    );
    check(
        codex,
        Begin::New,
        CODEX_ERROR,
        1,
        &expect![[r#"
        ready id-1 New, codex -
        Error { text: "{\"type\": \"error\", \"error\": {\"type\": \"api_error\", \"message\": \"scripted bad request\", \"code\": 400}}" }
        finished turn_01jz0000000000000000000001: Failed("{\"type\": \"error\", \"error\": {\"type\": \"api_error\", \"message\": \"scripted bad request\", \"code\": 400}}")
    "#]],
    );
    check(
        codex,
        resume("id-1"),
        "",
        1,
        &expect![[r#"
        broken resume_refused: exited with 1
    "#]],
    );
}

#[test]
fn a_command_that_never_tells_a_conversation_breaks_the_run() {
    let mut play = Play::new(codex, Begin::New, 0, &[]);
    play.lines(&["usage: codex [OPTIONS]"]);
    play.wish(|driver, out| driver.exited(Some(2), out));
    expect![[r#"
        odd: the command wrote no JSON: usage: codex [OPTIONS]
        broken handshake_failed: exited with 2
    "#]]
    .assert_eq(&play.show());
}

#[test]
fn plain_text_is_the_answer_and_the_exit_its_end() {
    check(
        text,
        Begin::New,
        "one\n\ntwo",
        0,
        &expect![[r#"
        ready text New, command -
        Message "one\n"
        Message "\n"
        Message "two\n"
        finished turn_01jz0000000000000000000001: Done(Completed)
    "#]],
    );
    check(
        text,
        resume("text"),
        "oops",
        3,
        &expect![[r#"
        ready text Believed, command -
        Message "oops\n"
        finished turn_01jz0000000000000000000001: Failed("exited with 3")
    "#]],
    );
}

#[test]
fn the_end_waits_for_the_turn_it_ends() {
    let mut play = Play::new(codex, Begin::New, 0, &[]);
    play.lines(&CODEX_RESUMED.lines().collect::<Vec<_>>());
    assert!(!play.actions.iter().any(|action| matches!(action, Action::Finished { .. })));
    play.actions.clear();
    play.wish(|driver, out| driver.prompt(turn(1), None, "go".into(), out));
    play.wish(|driver, out| driver.exited(Some(0), out));
    expect![[r#"
        finished turn_01jz0000000000000000000001: Done(Completed)
    "#]]
    .assert_eq(&play.show());
}

#[test]
fn a_cancelled_command_that_was_killed_is_cancelled() {
    let mut play = Play::new(text, Begin::New, 1, &[]);
    play.wish(|driver, out| driver.cancel(turn(1), None, out));
    play.actions.clear();
    play.wish(|driver, out| driver.exited(None, out));
    expect![[r#"
        finished turn_01jz0000000000000000000001: Cancelled
    "#]]
    .assert_eq(&play.show());
}

/// The end of the run tells that, and its turn is interrupted by it.
#[test]
fn a_command_that_somebody_killed_gave_its_turn_no_end() {
    for per_turn in [text, claude] {
        let mut play = Play::new(per_turn, Begin::New, 1, &[]);
        play.actions.clear();
        play.wish(|driver, out| driver.exited(None, out));
        assert_eq!(play.show(), "");
    }
}

#[test]
fn the_prompt_goes_to_standard_input_when_asked() {
    let mut per_turn = per_turn(OutputForm::Text);
    per_turn.prompt_on_stdin = true;
    let mut out = Vec::new();
    CommandDriver::new(setting(Begin::New), per_turn).prompt(turn(1), None, "go\non".into(), &mut out);
    assert_eq!(out, [Action::Send { key: turn(1).to_string(), line: "go\non".to_owned() }]);
}

#[test]
fn a_driver_goes_on_where_another_stopped() {
    goes_on_anywhere(claude, &Begin::New, 1, &[], CLAUDE);
    let alone = CLAUDE_ASKS.lines().filter(|line| !line.contains("00020_0") && !line.contains("00021_0"));
    let alone = alone.collect::<Vec<_>>().join("\n");
    goes_on_anywhere(claude_two_way, &Begin::New, 1, &["allow", "deny", "choice1"], &alone);
    goes_on_anywhere(claude, &Begin::New, 1, &[], CLAUDE_ERROR);
    goes_on_anywhere(claude_parts, &resume("id-1"), 1, &[], CLAUDE_PARTS);
    goes_on_anywhere(codex, &Begin::New, 1, &[], CODEX);
    goes_on_anywhere(codex, &Begin::New, 1, &[], CODEX_SPAWN);
    goes_on_anywhere(text, &Begin::New, 1, &[], "one\ntwo");
}

#[test]
fn arguments_are_filled_in_one_pass_and_never_split() {
    let form = per_turn(OutputForm::Text);
    assert_eq!(arguments(&form, of(None, "do {native}; rm -rf")), ["-p", "do {native}; rm -rf"]);
    assert_eq!(arguments(&form, of(Some("x {prompt}"), "p")), ["--resume=x {prompt}", "p"]);
    let alone = PerTurn { next: Vec::new(), ..form.clone() };
    assert_eq!(arguments(&alone, of(Some("x"), "p")), ["-p", "p"]);
    let braces = PerTurn { first: vec!["{{prompt}} {a} {".to_owned()], ..form.clone() };
    assert_eq!(arguments(&braces, of(None, "p")), ["{p} {a} {"]);
    let nowhere = PerTurn { first: vec!["-q".to_owned()], ..form.clone() };
    assert_eq!(arguments(&nowhere, of(None, "p")), ["-q", "p"]);
    let stdin = PerTurn { prompt_on_stdin: true, ..nowhere };
    assert_eq!(arguments(&stdin, of(None, "p")), ["-q"]);
}

#[test]
fn nonsense_never_panics() {
    survives_nonsense(claude, &Begin::New, &[CLAUDE, CLAUDE_PARTS, CLAUDE_ERROR, CLAUDE_REFUSED]);
    survives_nonsense(claude_two_way, &Begin::New, &[CLAUDE_ASKS, CLAUDE]);
    survives_nonsense(claude_parts, &resume("id-1"), &[CLAUDE, CLAUDE_PARTS]);
    survives_nonsense(codex, &Begin::New, &[CODEX, CODEX_ERROR, CODEX_SPAWN]);
    survives_nonsense(text, &Begin::New, &[CODEX]);
}

fn of<'a>(native: Option<&'a str>, prompt: &'a str) -> super::Places<'a> {
    static NOTHING: AgentChoice = AgentChoice { model: None, mode: None, effort: None };
    super::Places {
        prompt,
        choice: &NOTHING,
        native,
        mcp_config: "{\"mcpServers\":{}}",
        mcp: "http://127.0.0.1:1/mcp/sess",
    }
}

/// Servers have places too; what fills one is not looked through for others.
#[test]
fn mcp_servers_have_places() {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let first = words(&["--mcp-config", "{mcp_config}", "-c", "url={mcp}/ev", "{prompt}"]);
    let (next, output) = (Vec::new(), lanyard_api::agents::settings::OutputForm::Text);
    let form = PerTurn { first, next, prompt_on_stdin: false, output };
    assert_eq!(
        arguments(&form, of(None, "{mcp}")),
        ["--mcp-config", "{\"mcpServers\":{}}", "-c", "url=http://127.0.0.1:1/mcp/sess/ev", "{mcp}"]
    );
}
