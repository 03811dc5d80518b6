//! Choices of drivers that ask for each: lines of agents in, requests out, cut at every line and taken up by a second driver.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::{Expect, expect};
use lanyard_core::session::{AgentChoice, Signal};

use super::acp::Acp;
use super::claude::ClaudeCode;
use super::driver::{Action, Actions, Begin, Driver, Readiness, Setting, Tuned};
use super::played::{setting, turn};

type MakeOf = fn(Setting) -> Box<dyn Driver>;

/// What the log knows, what the shim has written, and how far the agent's lines were reported.
#[derive(Default)]
struct Books {
    readiness: Option<Readiness>,
    tuned: Tuned,
    keys: BTreeSet<String>,
    delivered: bool,
    over: bool,
    reported: usize,
    text: String,
}

impl Books {
    /// Carries actions out as a runner would; whether one of them is something that is reported.
    fn take(&mut self, driver: &mut dyn Driver, actions: Actions) -> bool {
        let mut seen = false;
        for action in actions {
            match action {
                Action::Send { key, line } => {
                    if self.keys.insert(key.clone()) {
                        writeln!(self.text, "send {key}: {line}").unwrap();
                    }
                }
                Action::Ready(readiness) => {
                    self.readiness = Some(*readiness);
                    seen = true;
                    self.prompt(driver);
                }
                Action::Saw { signal: Signal::Offered(offer), .. } => {
                    self.tuned.offer = *offer;
                    seen = true;
                }
                Action::Saw { signal: Signal::InForce(choice), .. } => {
                    writeln!(self.text, "in force {}", serde_json::to_string(&choice).unwrap()).unwrap();
                    self.tuned.in_force = choice;
                    seen = true;
                }
                Action::Finished { end, .. } => {
                    writeln!(self.text, "finished {end:?}").unwrap();
                    (self.over, seen) = (true, true);
                }
                Action::Replayed(_)
                | Action::Text { .. }
                | Action::Image { .. }
                | Action::Saw { .. }
                | Action::Asked { .. }
                | Action::Unasked { .. }
                | Action::Child(_)
                | Action::Call { .. }
                | Action::Broken { .. }
                | Action::Odd { .. } => {}
            }
        }
        seen
    }

    fn prompt(&mut self, driver: &mut dyn Driver) {
        let mut out = Actions::new();
        if !self.delivered {
            driver.choose(&turn(1).to_string(), &self.tuned.wanted, &mut out);
        }
        driver.prompt(turn(1), None, "go".into(), &mut out);
        self.take(driver, out);
        self.delivered |= !self.over && !driver.holds_prompt();
    }

    /// A driver of a daemon that comes after.
    fn adopt(&mut self, make: MakeOf) -> Box<dyn Driver> {
        let begin = match self.readiness.clone() {
            Some(readiness) => {
                Begin::Adopted { readiness, turn: Some(turn(1)).filter(|_| !self.over), open: Vec::new() }
            }
            None => Begin::New,
        };
        let greeted = self.readiness.is_some();
        let mut driver = make(Setting { tuned: self.tuned.clone(), ..setting(begin) });
        let mut out = Actions::new();
        driver.begin(&mut out);
        self.take(&mut *driver, out);
        if greeted && !self.over {
            self.prompt(&mut *driver);
        }
        driver
    }
}

fn play(make: MakeOf, wanted: &AgentChoice, lines: &[&str], cut: Option<usize>) -> String {
    let tuned = Tuned { wanted: wanted.clone(), ..Tuned::default() };
    let mut books = Books { tuned, ..Books::default() };
    let mut driver = make(Setting { tuned: books.tuned.clone(), ..setting(Begin::New) });
    let mut out = Actions::new();
    driver.begin(&mut out);
    books.take(&mut *driver, out);
    for at in 0..lines.len() {
        let from = if cut == Some(at) {
            driver = books.adopt(make);
            books.reported
        } else {
            at
        };
        for (number, line) in lines.iter().enumerate().take(at + 1).skip(from) {
            let mut out = Actions::new();
            driver.line(line.as_bytes(), &mut out);
            if books.take(&mut *driver, out) {
                books.reported = number + 1;
            }
            books.delivered |= books.readiness.is_some() && !books.over && !driver.holds_prompt();
        }
    }
    books.text
}

fn check(make: MakeOf, wanted: &AgentChoice, lines: &[&str], expect: &Expect) {
    let whole = play(make, wanted, lines, None);
    expect.assert_eq(&whole);
    for cut in 0..lines.len() {
        assert_eq!(play(make, wanted, lines, Some(cut)), whole, "cut before line {}", cut + 1);
    }
}

fn acp(setting: Setting) -> Box<dyn Driver> {
    Box::new(Acp::new(setting))
}

fn claude(setting: Setting) -> Box<dyn Driver> {
    Box::new(ClaudeCode::new(setting))
}

fn choice(model: &str, mode: &str) -> AgentChoice {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    AgentChoice { model: some(model), mode: some(mode), effort: None }
}

const ACP_INIT: &str = r#"{"id":"init","result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"agentInfo":{"name":"a","version":"1"}}}"#;
/// The shape of claude-agent-acp.
const ACP_OPEN: &str = r#"{"id":"open","result":{"sessionId":"ses-1","modes":{"currentModeId":"default","availableModes":[{"id":"default","name":"Default"},{"id":"plan","name":"Plan"},{"id":"bypassPermissions","name":"Bypass"}]},"configOptions":[{"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":"default","options":[{"value":"default","name":"Default"},{"value":"plan","name":"Plan"},{"value":"bypassPermissions","name":"Bypass"}]},{"id":"model","name":"Model","category":"model","type":"select","currentValue":"sonnet","options":[{"group":"g","name":"G","options":[{"value":"sonnet","name":"Sonnet"},{"value":"opus","name":"Opus"}]}]}]}}"#;
const MODEL_SET: &str = r#"{"id":"set:turn_01jz0000000000000000000001:model","result":{"configOptions":[{"id":"model","name":"Model","category":"model","type":"select","currentValue":"opus","options":[{"value":"sonnet","name":"Sonnet"},{"value":"opus","name":"Opus"}]}]}}"#;
const MODE_SET: &str = r#"{"id":"set:turn_01jz0000000000000000000001:mode","result":{}}"#;
const ACP_DONE: &str = r#"{"id":"turn_01jz0000000000000000000001","result":{"stopReason":"end_turn"}}"#;

#[test]
fn an_acp_agent_is_asked_for_one_thing_after_the_other_and_prompted_last() {
    check(
        acp,
        &choice("opus", "plan"),
        &[ACP_INIT, ACP_OPEN, MODEL_SET, MODE_SET, ACP_DONE],
        &expect![[r#"
            send init: {"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"auth":{"terminal":false}},"clientInfo":{"name":"lanyard","version":"0.1.0"}}}
            send open: {"jsonrpc":"2.0","id":"open","method":"session/new","params":{"cwd":"/w","mcpServers":[]}}
            in force {"mode":"default"}
            in force {"model":"sonnet","mode":"default"}
            send set:turn_01jz0000000000000000000001:model: {"jsonrpc":"2.0","id":"set:turn_01jz0000000000000000000001:model","method":"session/set_config_option","params":{"sessionId":"ses-1","configId":"model","value":"opus"}}
            in force {"model":"opus","mode":"default"}
            send set:turn_01jz0000000000000000000001:mode: {"jsonrpc":"2.0","id":"set:turn_01jz0000000000000000000001:mode","method":"session/set_config_option","params":{"sessionId":"ses-1","configId":"mode","value":"plan"}}
            in force {"model":"opus","mode":"plan"}
            send turn_01jz0000000000000000000001: {"jsonrpc":"2.0","id":"turn_01jz0000000000000000000001","method":"session/prompt","params":{"sessionId":"ses-1","prompt":[{"type":"text","text":"go"}]}}
            finished Done(Completed)
        "#]],
    );
}

#[test]
fn an_acp_agent_that_refuses_is_not_prompted() {
    let refused = r#"{"id":"set:turn_01jz0000000000000000000001:model","error":{"code":-32000,"message":"no opus today"}}"#;
    check(
        acp,
        &choice("opus", ""),
        &[ACP_INIT, ACP_OPEN, refused],
        &expect![[r#"
        send init: {"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"auth":{"terminal":false}},"clientInfo":{"name":"lanyard","version":"0.1.0"}}}
        send open: {"jsonrpc":"2.0","id":"open","method":"session/new","params":{"cwd":"/w","mcpServers":[]}}
        in force {"mode":"default"}
        in force {"model":"sonnet","mode":"default"}
        send set:turn_01jz0000000000000000000001:model: {"jsonrpc":"2.0","id":"set:turn_01jz0000000000000000000001:model","method":"session/set_config_option","params":{"sessionId":"ses-1","configId":"model","value":"opus"}}
        finished Failed("choice_refused: the agent refused the model `opus`: no opus today")
    "#]],
    );
}

#[test]
fn an_acp_agent_leaves_a_mode_without_approvals_that_nobody_chose() {
    let yolo = r#"{"method":"session/update","params":{"sessionId":"ses-1","update":{"sessionUpdate":"current_mode_update","currentModeId":"bypassPermissions"}}}"#;
    let text = play(acp, &choice("", ""), &[ACP_INIT, ACP_OPEN, yolo, ACP_DONE], None);
    assert!(text.contains(r#""configId":"mode","value":"default""#), "{text}");
}

const CLAUDE_INIT: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"init","response":{"commands":[{"name":"review","description":"reviews","argumentHint":"[files]"}],"models":[{"value":"default","displayName":"Default (recommended)","supportedEffortLevels":["low","high"]},{"value":"opus","displayName":"Opus"}],"claude_code_version":"2.1.325","current_permission_mode":"default"}}}"#;
const CLAUDE_MODEL: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"set:turn_01jz0000000000000000000001:model","response":{}}}"#;
const CLAUDE_EFFORT: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"set:turn_01jz0000000000000000000001:effort","response":{}}}"#;
const CLAUDE_DONE: &str = r#"{"type":"result","subtype":"success","result":"ok","user_message_uuids":["turn_01jz0000000000000000000001"]}"#;

#[test]
fn claude_code_is_asked_by_control_requests() {
    let wanted = AgentChoice { effort: Some("high".to_owned()), ..choice("opus", "") };
    check(
        claude,
        &wanted,
        &[CLAUDE_INIT, CLAUDE_MODEL, CLAUDE_EFFORT, CLAUDE_DONE],
        &expect![[r#"
        send init: {"type":"control_request","request_id":"init","request":{"subtype":"initialize"}}
        in force {"model":"default"}
        in force {"model":"default","mode":"default"}
        send set:turn_01jz0000000000000000000001:model: {"type":"control_request","request_id":"set:turn_01jz0000000000000000000001:model","request":{"subtype":"set_model","model":"opus"}}
        in force {"model":"opus","mode":"default"}
        send set:turn_01jz0000000000000000000001:effort: {"type":"control_request","request_id":"set:turn_01jz0000000000000000000001:effort","request":{"subtype":"apply_flag_settings","settings":{"effortLevel":"high"}}}
        in force {"model":"opus","mode":"default","effort":"high"}
        send turn_01jz0000000000000000000001: {"type":"user","message":{"role":"user","content":[{"type":"text","text":"go"}]},"parent_tool_use_id":null,"session_id":"","uuid":"turn_01jz0000000000000000000001"}
        finished Done(Completed)
    "#]],
    );
}

#[test]
fn claude_code_that_refuses_a_mode_is_not_prompted() {
    let refused = r#"{"type":"control_response","response":{"subtype":"error","request_id":"set:turn_01jz0000000000000000000001:mode","error":"not launched with --dangerously-skip-permissions"}}"#;
    check(
        claude,
        &choice("", "bypassPermissions"),
        &[CLAUDE_INIT, refused],
        &expect![[r#"
        send init: {"type":"control_request","request_id":"init","request":{"subtype":"initialize"}}
        in force {"model":"default"}
        in force {"model":"default","mode":"default"}
        send set:turn_01jz0000000000000000000001:mode: {"type":"control_request","request_id":"set:turn_01jz0000000000000000000001:mode","request":{"subtype":"set_permission_mode","mode":"bypassPermissions"}}
        finished Failed("choice_refused: the agent refused the mode `bypassPermissions`: not launched with --dangerously-skip-permissions")
    "#]],
    );
}

#[test]
fn what_is_no_offer_and_no_answer_changes_nothing() {
    for line in [
        r#"{"id":"open","result":{"sessionId":"ses-1","configOptions":7,"modes":[],"models":{"availableModels":[{}]}}}"#,
        r#"{"id":"open","result":{"sessionId":"ses-1","configOptions":[{"id":7},{"id":"model","options":[{"value":""}],"currentValue":null}]}}"#,
    ] {
        let text = play(acp, &choice("", ""), &[ACP_INIT, line, MODE_SET, ACP_DONE], None);
        assert!(text.contains("session/prompt") && text.contains("finished Done"), "{text}");
    }
}
