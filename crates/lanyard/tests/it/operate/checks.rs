//! Which agents there are, and whether one can be worked with.

use serde_json::{Value, json};

use super::stage::{Stage, text};
use crate::support::{Daemon, Setup, binary};

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    list["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == name).unwrap()
}

#[test]
fn configured_agents_are_listed_with_their_programs_and_versions() {
    let stage = Stage::with(&[], "[agents.absent]\ndriver = \"acp\"\ncommand = [\"no-such-agent-here\"]");
    let list = stage.get("/agents");
    assert_eq!(list["default"], Value::Null, "two are configured and none is named");
    let scripted = named(&list, "scripted");
    assert_eq!((&scripted["configured"], &scripted["driver"]), (&json!(true), &json!("acp")));
    assert_eq!(scripted["found"], binary().display().to_string());
    assert!(scripted.get("version").is_none(), "not asked for");
    assert_eq!(named(&list, "absent")["found"], Value::Null);
    assert_eq!(named(&list, "demo")["configured"], true);
    let list = stage.get("/agents?versions=true");
    assert!(named(&list, "scripted")["version"].as_str().unwrap().starts_with("lanyard "), "{list:#}");
    let shown = text(&stage.lanyard(&["agents"]).stdout);
    assert!(shown.contains("scripted") && shown.contains("not found"), "{shown}");
    let refused = stage.daemon.request("GET", "/api/v1/agents?version=true", &[], None);
    assert_eq!(refused.code(), "query_invalid");
}

/// What is on the daemon's PATH and known is listed too, with how it would be run.
#[test]
fn installed_agents_are_found_on_the_path() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/true", folder.path().join("gemini")).unwrap();
    std::fs::write(folder.path().join("codex"), "no program").unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let daemon = Daemon::start(Setup::default().env("PATH", path));
    let list = daemon.request("GET", "/api/v1/agents", &[], None).json();
    let gemini = named(&list, "gemini");
    assert_eq!((&gemini["configured"], &gemini["command"]), (&json!(false), &json!(["gemini", "--acp"])));
    assert_eq!(gemini["found"], folder.path().join("gemini").display().to_string());
    assert!(list["agents"].as_array().unwrap().iter().all(|agent| agent["name"] != "codex"), "{list:#}");
    let refused = daemon.lanyard(&["run", "--agent", "gemini", "hello"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("[agent_not_configured]"), "{}", text(&refused.stderr));
    let unknown = daemon.lanyard(&["run", "--agent", "nobody", "hello"]);
    assert!(text(&unknown.stderr).contains("[agent_unknown]"), "{}", text(&unknown.stderr));
    assert_eq!(daemon.request("GET", "/api/v1/sessions", &[], None).json()["sessions"], json!([]));
}

#[test]
fn a_check_says_what_an_agent_can_do_and_leaves_nothing() {
    let stage = Stage::new();
    let check = stage.post("/agents/scripted/check", &json!({})).json();
    assert_eq!(check["works"], true, "{check:#}");
    assert_eq!(check["info"]["protocol"], "acp 1");
    for feature in ["load", "cancel", "permissions", "mcp_stdio"] {
        assert_eq!(check["capabilities"][feature], true, "{feature}");
    }
    assert_eq!(check["capabilities"]["steer"], false);
    assert_eq!(stage.runs(), 0);
    assert_eq!(std::fs::read_dir(stage.daemon.home().join("checks")).map_or(0, Iterator::count), 0);
    assert_eq!(named(&stage.get("/agents"), "scripted")["checked"]["works"], true, "it is remembered");
    assert_eq!(stage.get("/sessions")["sessions"], json!([]), "it made a session");

    let shown = stage.lanyard(&["agents", "check", "scripted"]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    assert!(text(&shown.stdout).contains("  yes  load\n"), "{}", text(&shown.stdout));
    let unknown = stage.post("/agents/nobody/check", &json!({}));
    assert_eq!((unknown.status, unknown.code()), (404, "agent_unknown".to_owned()));
}

#[test]
fn a_check_of_an_agent_that_cannot_be_worked_with_says_why() {
    for (flags, code) in [
        (&["--bad-handshake"][..], "version_unsupported"),
        (&["--bad-handshake=garbage"], "handshake_failed"),
        (&["--silent"], "handshake_timeout"),
        (&["--no-such-flag"], "handshake_failed"),
    ] {
        let stage = Stage::with(flags, "handshake_timeout_ms = 2000");
        let check = stage.post("/agents/scripted/check", &json!({})).json();
        assert_eq!((&check["works"], &check["problem"]["code"]), (&json!(false), &json!(code)), "{check:#}");
        assert_eq!(stage.runs(), 0, "{flags:?}");
        if code == "version_unsupported" {
            let shown = stage.lanyard(&["agents", "check", "scripted"]);
            assert_eq!(shown.status.code(), Some(1));
            assert!(text(&shown.stderr).contains("[version_unsupported]"), "{}", text(&shown.stderr));
        }
    }
    let stage = Stage::with(&[], "[agents.absent]\ndriver = \"acp\"\ncommand = [\"/no/such/agent\"]");
    let check = stage.post("/agents/absent/check", &json!({})).json();
    assert_eq!(check["problem"]["code"], "agent_program_missing", "{check:#}");
    assert_eq!(stage.runs(), 0);
}
