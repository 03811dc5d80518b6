//! Where hooks do not reach: no daemon, a hook nobody trusts, a mode without them.

use serde_json::{Value, json};

use super::cases::Case;
use super::kit::Kit;
use crate::agents::{self, Rights};
use crate::model::{Step, marker};
use crate::peer::{Dialect, Peer};

/// Without a daemon the agent works as if it had no hooks, and none is started.
pub(super) fn without_a_daemon(case: &Case) {
    let kit = Kit::new(case);
    kit.model.script("alone", [kit.plain("one"), Step::text("Work-done.")]);
    kit.daemon.kill_9();
    let mut running = kit.start("alone", None);
    let said = running.ended();
    assert!(said.contains("Work-done.") && kit.has_run("one"), "{}", running.shown());
    assert!(kit.daemon.caller().try_request("GET", "/api/v1/sessions", &[], None).is_err());
    kit.say("works without a daemon", true);
}

/// Codex runs a hook only after its user has said that it may, or with a flag.
#[test]
fn codex_runs_no_hook_that_nobody_trusts() {
    let case = Case { always: &[], ..Case::codex() };
    let kit = Kit::new(&case);
    kit.model.script("work", [kit.plain("one"), Step::text("Work-done.")]);
    let mut running = kit.start("work", None);
    let said = running.ended();
    assert!(said.contains("Work-done.") && kit.has_run("one"), "{}", running.shown());
    assert_eq!(kit.sessions(), Vec::<Value>::new());
}

/// Gemini CLI over ACP asks its hooks about prompts, and never about tools.
#[test]
fn gemini_asks_no_hook_about_tools_over_acp() {
    let case = Case::gemini();
    let kit = Kit::without_hooks(&case);
    kit.model.script("work", [kit.plain("one"), Step::text("Work-done.")]);
    let agent = agents::gemini_acp(&kit.home, &kit.model, Rights::All);
    kit.hook("install");
    let mut peer = Peer::start(&agent, &kit.work, Dialect::JsonRpc2, |_| json!({}));
    let client = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    peer.request("init", "initialize", &client);
    let new = json!({ "cwd": kit.work, "mcpServers": [] });
    let native = peer.request("new", "session/new", &new)["sessionId"].clone();
    let text = format!("go {}", marker("work"));
    let prompt = json!({ "sessionId": native, "prompt": [{ "type": "text", "text": text }] });
    assert_eq!(peer.request("turn", "session/prompt", &prompt)["stopReason"], "end_turn");
    assert!(kit.has_run("one"));
    let sessions = kit.sessions();
    let [session] = &sessions[..] else { panic!("the prompt is told: {sessions:#?}") };
    assert_eq!(kit.relayed(session["id"].as_str().unwrap()), ["BeforeAgent"]);
}
