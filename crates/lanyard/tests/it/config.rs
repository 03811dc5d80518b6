//! The config of a running daemon: taken up when the file changes, refused when it is not valid, and changed from the
//! command line without losing a comment.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Daemon, Setup, binary, until};

/// An agent that needs no program of its own.
fn agent(name: &str) -> String {
    let command = serde_json::to_string(&[binary().to_str().unwrap(), "scripted-agent"]).unwrap();
    format!("[agents.{name}]\ndriver = \"acp\"\ncommand = {command}\n")
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn status(daemon: &Daemon) -> Value {
    daemon.request("GET", "/api/v1/status", &[], None).json()
}

fn agents(daemon: &Daemon) -> Value {
    daemon.request("GET", "/api/v1/agents", &[], None).json()
}

fn keys(changes: &Value) -> Vec<String> {
    let rows = changes.as_array().unwrap().iter();
    rows.map(|row| format!("{} {}", row["key"].as_str().unwrap(), row["change"].as_str().unwrap())).collect()
}

#[test]
fn fnd_n16_a_changed_file_is_taken_up_by_itself() {
    let daemon = Daemon::start(Setup::default().config(&agent("first")));
    assert_eq!(agents(&daemon)["default"], "first");
    let new = format!("[daemon]\ndefault_agent = \"second\"\n{}{}", agent("first"), agent("second"));
    std::fs::write(daemon.config(), new).unwrap();
    assert!(until(|| agents(&daemon)["default"] == "second"), "{:#}", status(&daemon)["config"]);
    let ran = daemon.lanyard(&["run", "--cwd", "/tmp", "/say from the second"]);
    assert_eq!(said(&ran).0, "from the second\n");
    assert!(until(|| daemon.stderr().contains("config reloaded")), "{}", daemon.stderr());
}

#[test]
fn a_reload_says_what_changed_and_what_needs_a_restart() {
    let daemon = Daemon::start(Setup::default().config(&agent("later")));
    let mut before = "later".to_owned();
    // The daemon may be quicker than the command; then the next change is told.
    let (depth, applied, needs_restart) = (0..20)
        .find_map(|number| {
            let (name, depth) = (format!("later{number}"), 9 + number);
            let new = format!(
                "[daemon]\nlisten = \"127.0.0.1:1\"\n[limits]\ndepth = {depth}\n[mcp.x]\ncommand = [\"x\"]\n{}",
                agent(&name)
            );
            std::fs::write(daemon.config(), &new).unwrap();
            let done: Value = serde_json::from_slice(&daemon.lanyard(&["reload", "--json"]).stdout).unwrap();
            let gone = std::mem::replace(&mut before, name);
            let applied = keys(&done["applied"]);
            (!applied.is_empty()).then(|| (depth, (gone, applied), keys(&done["needs_restart"])))
        })
        .unwrap();
    let (gone, mut applied) = applied;
    applied.sort();
    let mut wanted = [
        format!("agents.{gone} removed"),
        format!("agents.{before} added"),
        "limits.depth changed".to_owned(),
    ];
    wanted.sort();
    assert_eq!(applied, wanted);
    assert_eq!(needs_restart, ["daemon.listen changed", "mcp.x added"]);
    let shown = said(&daemon.lanyard(&["reload"])).0;
    assert!(!shown.contains("in use now") && shown.contains("  daemon.listen (changed)\n"), "{shown}");
    let state = status(&daemon)["config"].clone();
    assert_eq!(keys(&state["needs_restart"]), ["daemon.listen changed", "mcp.x added"]);
    let card = said(&daemon.lanyard(&["status"])).0;
    assert!(card.contains("daemon.listen, mcp.x"), "{card}");
    let me = daemon.request("GET", "/api/v1/me", &[], None).json();
    assert_eq!(me["limits"]["depth"], depth, "{me:#}");
}

#[test]
fn a_file_that_is_not_valid_changes_nothing_and_is_told_everywhere() {
    let good = agent("first");
    let daemon = Daemon::start(Setup::default().config(&good));
    std::fs::write(daemon.config(), format!("{good}comand = \"s3cret-line\"\n")).unwrap();
    // Found without being asked for.
    assert!(until(|| status(&daemon)["config"]["error"].is_string()));
    let refused = daemon.request("POST", "/api/v1/reload", &[], Some("{}"));
    assert_eq!((refused.status, refused.json()["code"].clone()), (422, "config_invalid".into()));
    let (_, error) = said(&daemon.lanyard(&["reload"]));
    assert!(error.contains("[config_invalid]") && error.contains("`comand`"), "{error}");
    assert!(said(&daemon.lanyard(&["status"])).0.contains("the file is not used"), "status");
    assert!(daemon.stderr().contains("the settings read before stay in use"), "{}", daemon.stderr());
    let state = status(&daemon).to_string();
    assert!(!state.contains("s3cret-line") && !daemon.stderr().contains("s3cret-line"), "{state}");
    let ran = daemon.lanyard(&["run", "--cwd", "/tmp", "/say still here"]);
    assert_eq!(said(&ran).0, "still here\n");
    // Gone is as bad as wrong.
    std::fs::remove_file(daemon.config()).unwrap();
    let gone = daemon.request("POST", "/api/v1/reload", &[], Some("{}"));
    assert!(gone.json()["title"].as_str().unwrap().contains("is missing"), "{}", gone.text());
    assert_eq!(agents(&daemon)["default"], "first");
    std::fs::write(daemon.config(), &good).unwrap();
    assert!(until(|| status(&daemon)["config"].get("error").is_none()));
}

/// An agent that runs keeps its settings, and its turn goes to its end although its agent left the config.
#[test]
fn what_runs_keeps_the_settings_it_was_started_with() {
    let daemon = Daemon::start(Setup::default().config(&agent("first")));
    let started = daemon.lanyard(&["run", "--detach", "--cwd", "/tmp", "/ask may I?\n/say done"]);
    let id = said(&started).0.trim().to_owned();
    let gates = || daemon.request("GET", "/api/v1/gates", &[], None).json()["gates"].clone();
    assert!(until(|| gates().as_array().is_some_and(|gates| gates.len() == 1)), "{:#}", gates());
    std::fs::write(daemon.config(), agent("second")).unwrap();
    assert!(daemon.lanyard(&["reload"]).status.success());
    assert_eq!(agents(&daemon)["default"], "second");
    let gate = gates()[0]["id"].as_str().unwrap().to_owned();
    let answered = daemon.lanyard(&["answer", &gate, "allow"]);
    assert!(answered.status.success(), "{:?}", said(&answered));
    let log = || daemon.log_after(&id, 0).iter().map(ToString::to_string).collect::<String>();
    assert!(until(|| log().contains("turn.finished")), "{}", log());
    let more = daemon.lanyard(&["run", "--agent", "first", "--cwd", "/tmp", "hello"]);
    assert!(said(&more).1.contains("[agent_unknown]"), "{:?}", said(&more));
}

#[test]
fn a_setting_is_changed_in_place_and_taken_up() {
    let text = format!("# mine\n[limits]\ndepth = 3 # levels\n\n# my agent\n{}", agent("first"));
    let daemon = Daemon::start(Setup::default().config(&text));
    std::fs::set_permissions(daemon.config(), PermissionsExt::from_mode(0o640)).unwrap();
    let set = daemon.lanyard(&["config", "set", "limits.depth", "5"]);
    assert!(set.status.success(), "{:?}", said(&set));
    let me = daemon.request("GET", "/api/v1/me", &[], None).json();
    assert_eq!(me["limits"]["depth"], 5, "in use when the command has ended: {:?}", said(&set));
    let after = std::fs::read_to_string(daemon.config()).unwrap();
    assert_eq!(after, text.replace("depth = 3 # levels", "depth = 5 # levels"));
    assert_eq!(daemon.config().metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(said(&daemon.lanyard(&["config", "get", "limits.depth"])).0, "5\n");
    assert_eq!(said(&daemon.lanyard(&["config", "get", "writer.lapse_ms"])).0, "30000\n", "a default");
    let path = daemon.config().display().to_string();
    assert_eq!(said(&daemon.lanyard(&["config", "path"])).0, format!("{path}\n"));
    let shown = said(&daemon.lanyard(&["config", "show"])).0;
    assert!(shown.contains("limits.depth = 5\n") && !shown.contains("lapse_ms"), "{shown}");
}

/// Each of many changes at once is in the file afterwards.
#[test]
fn settings_that_are_changed_at_once_are_all_kept() {
    let daemon = Daemon::start(Setup::default().config(&agent("first")));
    let set = |number: usize| {
        let key = format!("agents.first.env.KEY_{number}");
        Command::new(binary())
            .args(["config", "set", &key, "on"])
            .env("LANYARD_DATA_DIR", daemon.home())
            .env("LANYARD_CONFIG", daemon.config())
            .env_remove("LANYARD_SESSION")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    for child in (0..16).map(set).collect::<Vec<_>>() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{:?}", said(&output));
    }
    let text = std::fs::read_to_string(daemon.config()).unwrap();
    for number in 0..16 {
        assert!(text.contains(&format!("KEY_{number} = \"on\"\n")), "{number}: {text}");
    }
    let left = daemon.config().parent().unwrap().read_dir().unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).filter(|name| name != "config.toml").collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("config.toml")), "{left:?}");
}

#[test]
fn a_setting_that_cannot_be_is_refused_and_nothing_is_written() {
    let daemon = Daemon::start(Setup::default().config(&agent("first")));
    let before = std::fs::read(daemon.config()).unwrap();
    for (words, code, near) in [
        (["limits.deepth", "4"], "config_key_unknown", "did you mean `limits.depth`?"),
        (["default_agent", "first"], "config_key_unknown", "did you mean `daemon.default_agent`?"),
        (["limits.depth", "many"], "config_value_invalid", "nothing was changed"),
        (["agents.first.driver", "telepathy"], "config_value_invalid", "nothing was changed"),
        (["agents.new.model", "x"], "config_value_invalid", "nothing was changed"),
        (["agents", "x"], "config_key_is_table", "config get agents"),
        (["a..b", "x"], "config_key_invalid", "daemon.listen"),
    ] {
        let refused = daemon.lanyard(&["config", "set", words[0], words[1]]);
        let (_, error) = said(&refused);
        assert_eq!(refused.status.code(), Some(1), "{words:?}: {error}");
        assert!(error.contains(&format!("[{code}]")) && error.contains(near), "{words:?}: {error}");
    }
    assert_eq!(std::fs::read(daemon.config()).unwrap(), before);
    let unset = daemon.lanyard(&["config", "get", "daemon.default_agent"]);
    assert!(said(&unset).1.contains("[config_value_missing]"), "{:?}", said(&unset));
}

/// An editor that is a script: a text that is not valid does not replace the file, and is kept.
#[test]
fn an_edit_replaces_the_file_only_if_it_is_valid() {
    let daemon = Daemon::start(Setup::default().config(&agent("first")));
    let before = std::fs::read_to_string(daemon.config()).unwrap();
    let edit = |editor: &str| {
        Command::new(binary())
            .args(["config", "edit"])
            .env("LANYARD_DATA_DIR", daemon.home())
            .env("LANYARD_CONFIG", daemon.config())
            .env("VISUAL", editor)
            .env_remove("LANYARD_SESSION")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let left = || {
        let all = daemon.config().parent().unwrap().read_dir().unwrap().flatten();
        all.filter(|entry| entry.file_name().to_string_lossy().contains(".edit.")).count()
    };
    let same = edit("true");
    assert!(same.status.success() && said(&same).1.contains("Nothing changed."), "{:?}", said(&same));
    let fine = edit("sh -c 'echo \"turn_timeout_ms = 7\" >> \"$1\"' editor");
    assert!(fine.status.success(), "{:?}", said(&fine));
    assert!(said(&fine).1.contains("wrote "), "{:?}", said(&fine));
    assert_eq!(std::fs::read_to_string(daemon.config()).unwrap(), format!("{before}turn_timeout_ms = 7\n"));
    assert_eq!(left(), 0);
    let wrong = edit("sh -c 'echo nonsense >> \"$1\"' editor");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(said(&wrong).1.contains("[config_invalid]"), "{:?}", said(&wrong));
    assert_eq!(std::fs::read_to_string(daemon.config()).unwrap(), format!("{before}turn_timeout_ms = 7\n"));
    assert_eq!(left(), 1, "the text is kept");
    let failed = edit("false");
    assert!(said(&failed).1.contains("[editor_failed]"), "{:?}", said(&failed));
}
