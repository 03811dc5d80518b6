//! An agent's MCP calls pass through Lanyard: words and a stop reach its model in the answer to a call, and a stopped
//! session's calls are not carried out.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::cases::{Asks, Case, Family};
use super::kit::{AFTER, Kit};
use crate::agents::{self, Rights};
use crate::mcp::forward::Forward;
use crate::mcp::kit::everything_command;
use crate::mcp::servers::{self, Script, Server};
use crate::model::{Role, Step};
use crate::support::binary;

/// What the first line of Lanyard's words says.
const GUIDANCE: &str = "📝 USER GUIDANCE (injected by user):";
const GRACEFUL: &str = "⚠️ SESSION STOP REQUESTED";
const IMMEDIATE: &str = "🛑 SESSION STOP — IMMEDIATE";
const TERMINATED: &str = "❌ SESSION TERMINATED";
const WORDS: &str = "Mind the gap, please.";

/// The reference server, where its calls can be seen and held back.
pub(super) enum Behind {
    /// Offered by Lanyard, over HTTP.
    Offered(Forward, Server),
    /// In the agent's own settings, behind `lanyard mcp wrap`: for an agent that Lanyard runs once per turn.
    Wrapped { record: PathBuf, hold: PathBuf, tap: Script, _folder: tempfile::TempDir },
}

impl Behind {
    pub(super) fn of(case: &Case) -> Behind {
        // Claude is run once per turn too, and told of the gateway's servers by an argument.
        if case.asks == Asks::Yes || case.name == "claude -p" {
            let server = Server::everything();
            return Behind::Offered(Forward::to(&server.target()), server);
        }
        let folder = tempfile::tempdir().unwrap();
        let [record, hold] = ["record", "hold"].map(|name| folder.path().join(name));
        Behind::Wrapped { record, hold, tap: servers::tap(), _folder: folder }
    }

    /// Makes the server known by the name `ev`. Answers what goes into Lanyard's config.
    pub(super) fn offer(&self, home: &Path) -> String {
        let shown = |path: &Path| path.display().to_string();
        match self {
            Behind::Offered(forward, _) => format!("[mcp.ev]\nurl = \"{}\"\n", forward.url),
            Behind::Wrapped { record, hold, tap, .. } => {
                let node = servers::node_dir().join("node");
                let mut command = vec![shown(binary()), "mcp".to_owned(), "wrap".to_owned(), "--".to_owned()];
                command.extend([&node, &tap.path(), record, hold].map(|path| shown(path)));
                command.extend(everything_command());
                agents::own_server(home, "ev", &command);
                String::new()
            }
        }
    }

    pub(super) fn hold(&self) {
        match self {
            Behind::Offered(forward, _) => forward.hold(),
            Behind::Wrapped { hold, .. } => std::fs::write(hold, "").unwrap(),
        }
    }

    pub(super) fn release(&self) {
        match self {
            Behind::Offered(forward, _) => forward.release(),
            Behind::Wrapped { hold, .. } => std::fs::remove_file(hold).unwrap(),
        }
    }

    /// The tools that were called, as the server sees it.
    pub(super) fn called(&self) -> Vec<String> {
        match self {
            Behind::Offered(forward, _) => forward.called(),
            Behind::Wrapped { record, .. } => {
                let text = std::fs::read_to_string(record).unwrap_or_default();
                text.lines().map(str::to_owned).collect()
            }
        }
    }
}

/// A call of the server's echo.
pub(super) fn echo(message: &str) -> Step {
    Step::tool("~echo", json!({ "message": message }))
}

/// Waits until the server has seen so many calls.
pub(super) fn seen(kit: &Kit<'_>, session: &str, behind: &Behind, calls: usize) {
    kit.wait("a call at the server", session, || (behind.called().len() >= calls).then_some(()));
}

/// Words that come while a tool works stand before its answer, also where the answer has a structured form.
pub(super) fn guidance(case: &Case) {
    let behind = Behind::of(case);
    let kit = Kit::with(case, Rights::All, |home| behind.offer(home));
    let weather = Step::tool("~structured", json!({ "location": "Chicago" }));
    kit.model.script("echo", [echo("one"), echo("two"), Step::text("Work done.")]);
    kit.model.script("weather", [weather, Step::text("Work done.")]);
    let session = kit.session();

    behind.hold();
    let turn = kit.begin(&session, "echo");
    seen(&kit, &session, &behind, 1);
    kit.post(&format!("/sessions/{session}/guidance"), &json!({ "text": WORDS }));
    behind.release();
    kit.completed(&session, &turn);
    leads(&kit, &session, "echo", "Echo: one");
    let asked = kit.answered("echo", 2).asked;
    let last = asked.last_tool_result().unwrap();
    assert!(last.contains("Echo: two") && !last.contains(WORDS), "once is enough: {last}");
    let delivered = kit.event(&session, "the words' delivery", |event| event["type"] == "guidance.delivered");
    assert_eq!(delivered["data"]["channel"], "mcp", "{delivered:#}");
    kit.ok("gateway");

    behind.hold();
    let turn = kit.begin(&session, "weather");
    seen(&kit, &session, &behind, 3);
    kit.post(&format!("/sessions/{session}/guidance"), &json!({ "text": WORDS }));
    behind.release();
    kit.completed(&session, &turn);
    leads(&kit, &session, "weather", "humidity");
    kit.ok("guidance beside structure");
}

/// The first result of a script has the words in it, and the tool's own after them.
fn leads(kit: &Kit<'_>, session: &str, script: &str, own: &str) {
    let asked = kit.answered(script, 1).asked;
    let result = asked.last_tool_result().unwrap_or_default().to_owned();
    let order = [GUIDANCE, WORDS, own].map(|part| result.find(part));
    let [Some(marker), Some(words), Some(own)] = order else {
        panic!("{result}\n{}", kit.told(session));
    };
    assert!(marker < words && words < own, "{result}");
    assert!(!asked.says(Role::User, WORDS), "said twice: {}", kit.told(session));
}

/// FND-R2: words for the parent while its subagent makes the calls. No request of the subagent's model holds them; the
/// parent's own model reads them, in this turn or with the next prompt.
pub(super) fn shared(case: &Case) {
    let behind = Behind::of(case);
    let kit = Kit::with(case, Rights::All, |home| behind.offer(home));
    let (Family::Sessions(steps) | Family::Hidden(steps)) = &case.family;
    let mut steps = steps.clone();
    steps.extend([echo("parent"), Step::text("Work done.")]);
    kit.model.script("parent", steps);
    kit.model.script("child", [echo("one"), echo("two"), case.child.clone()]);
    let session = kit.session();
    behind.hold();
    let turn = kit.begin(&session, "parent");
    seen(&kit, &session, &behind, 1);
    kit.post(&format!("/sessions/{session}/guidance"), &json!({ "text": WORDS }));
    behind.release();
    kit.completed(&session, &turn);
    assert!(kit.turn(&session, "after").ends_with(AFTER));
    let reads = |script: &str| {
        let all = kit.model.log();
        all.iter().filter(|one| one.script == script).any(|one| {
            one.asked.hears(WORDS) || one.asked.tool_results().iter().any(|text| text.contains(WORDS))
        })
    };
    kit.answered("child", 2);
    assert!(!reads("child"), "the subagent's model read the parent's words\n{}", kit.told(&session));
    assert!(reads("parent") || reads("after"), "the parent's model never read them\n{}", kit.told(&session));
    kit.ok("words past a subagent");
}

/// A stop, to an agent whose model goes on calling: it is told, refused, and ended.
pub(super) fn stop(case: &Case) {
    let behind = Behind::of(case);
    let kit = Kit::with(case, Rights::All, |home| behind.offer(home));
    let steps = ["one", "two", "three", "four"].map(echo);
    kit.model.script("stop", steps.into_iter().chain([Step::text("Work done.")]).collect::<Vec<_>>());
    let session = kit.session();

    behind.hold();
    kit.begin(&session, "stop");
    seen(&kit, &session, &behind, 1);
    let run = kit.run(&session);
    kit.post(&format!("/sessions/{session}/stop"), &json!({ "reason": "enough of it" }));
    behind.release();
    let result = |step: usize| {
        let asked = kit.model.wait("a result", crate::peer::PATIENCE, |asked| asked.is("stop", step)).asked;
        asked.last_tool_result().unwrap_or_default().to_owned()
    };
    let first = result(1);
    assert!(first.contains(GRACEFUL) && first.contains("Echo: one"), "{first}\n{}", kit.told(&session));
    assert!(first.contains("enough of it"), "{first}");
    let second = result(2);
    assert!(second.contains(IMMEDIATE) && !second.contains("Echo: two"), "{second}\n{}", kit.told(&session));
    let third = result(3);
    assert!(third.contains(TERMINATED), "{third}\n{}", kit.told(&session));
    let ended = kit.event(&session, "the end of the session", |event| event["type"] == "session.ended");
    assert_eq!(ended["data"]["how"], "stopped", "{}", kit.told(&session));
    kit.nothing_left(&session, &run);
    assert_eq!(behind.called(), ["echo"], "nothing is carried out after the first");
    kit.ok("stop in a result");
}
