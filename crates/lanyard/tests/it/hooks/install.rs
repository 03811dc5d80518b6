//! Into the settings and out again: what others wrote stays, byte for byte.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::binary;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("home")).unwrap();
        std::fs::create_dir_all(folder.path().join("work")).unwrap();
        Self { folder }
    }

    fn run(&self, words: &[&str]) -> Output {
        Command::new(binary())
            .args(words)
            .env_clear()
            .env("HOME", self.folder.path().join("home"))
            .current_dir(self.folder.path().join("work"))
            .output()
            .unwrap()
    }

    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    fn home(&self, below: &str) -> PathBuf {
        self.folder.path().join("home").join(below)
    }

    fn work(&self, below: &str) -> PathBuf {
        self.folder.path().join("work").join(below)
    }
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn files(place: &Place) -> [(&'static str, &'static str, PathBuf); 8] {
    [
        ("claude", "--user", place.home(".claude/settings.json")),
        ("claude", "--project", place.work(".claude/settings.local.json")),
        ("codex", "--user", place.home(".codex/hooks.json")),
        ("codex", "--project", place.work(".codex/hooks.json")),
        ("gemini", "--user", place.home(".gemini/settings.json")),
        ("gemini", "--project", place.work(".gemini/settings.json")),
        ("opencode", "--user", place.home(".config/opencode/plugin/lanyard.js")),
        ("opencode", "--project", place.work(".opencode/plugin/lanyard.js")),
    ]
}

#[test]
fn a_file_that_was_made_is_gone_again_with_its_folders() {
    let place = Place::new();
    for (agent, scope, path) in files(&place) {
        assert_eq!(place.ok(&["hook", "install", agent, scope]), path.to_str().unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("hook"), "{text}");
        let before = std::fs::metadata(&path).unwrap().modified().unwrap();
        place.ok(&["hook", "install", agent, scope]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "a second time changes nothing");
        assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), before);
        place.ok(&["hook", "uninstall", agent, scope]);
        assert!(!path.exists());
        place.ok(&["hook", "uninstall", agent, scope]);
    }
    let left: Vec<_> = std::fs::read_dir(place.work("")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let left: Vec<_> =
        std::fs::read_dir(place.home("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".local"], "only Lanyard's own data");
}

/// FND-R15: Codex does not run a hook before its user trusts it.
#[test]
fn fnd_r15_installing_for_codex_says_that_the_hook_must_be_trusted() {
    let place = Place::new();
    for (agent, trust) in [("codex", true), ("claude", false), ("gemini", false), ("opencode", false)] {
        let output = place.run(&["hook", "install", agent]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && told.contains("Hook installed."), "{agent}: {told}");
        assert_eq!(told.contains("trust the hook"), trust, "{agent}: {told}");
        let json = place.ok(&["hook", "install", agent, "--json"]);
        assert_eq!(json.contains("trust the hook"), trust, "{agent}: {json}");
    }
}

#[test]
fn what_was_there_comes_back_byte_for_byte() {
    let odd = "\u{20}{ \"model\":\"x\",\n\n\t\"hooks\" : {\"PreToolUse\":[],\"BeforeTool\": [ {\"hooks\":[{\"command\":\"a b\"}]}]},\n\"big\": 12345678901234567890.10 }\n\n";
    for (agent, scope, _) in files(&Place::new()).iter().filter(|(agent, _, _)| *agent != "opencode") {
        let place = Place::new();
        let (_, _, path) = files(&place).into_iter().find(|(a, s, _)| a == agent && s == scope).unwrap();
        put(&path, odd);
        place.ok(&["hook", "install", agent, scope]);
        place.ok(&["hook", "install", agent, scope]);
        let with = std::fs::read_to_string(&path).unwrap();
        assert!(
            with.contains("\"big\": 12345678901234567890.10") && with.contains("\"command\":\"a b\""),
            "{with}"
        );
        serde_json::from_str::<serde_json::Value>(&with).unwrap();
        place.ok(&["hook", "uninstall", agent, scope]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), odd, "{agent}");
    }
}

#[test]
fn what_others_changed_since_is_kept() {
    let place = Place::new();
    let path = place.home(".claude/settings.json");
    put(&path, "{\n  \"model\": \"x\"\n}\n");
    place.ok(&["hook", "install", "claude"]);
    let with = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, with.replace("\"x\"", "\"y\"")).unwrap();
    place.ok(&["hook", "uninstall", "claude"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\n  \"model\": \"y\"\n}\n");
}

#[test]
fn a_file_that_is_not_understood_is_left_alone() {
    let place = Place::new();
    let path = place.home(".gemini/settings.json");
    for text in ["// mine\n{a: 1}", "{\"hooks\": []}", "[1]", "{"] {
        put(&path, text);
        let output = place.run(&["hook", "install", "gemini"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(said.contains("is left as it is") && said.contains("[hook_install_failed]"), "{said}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    let plugin = place.work(".opencode/plugin/lanyard.js");
    put(&plugin, "export const Mine = 1\n");
    assert_eq!(place.run(&["hook", "install", "opencode", "--project"]).status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&plugin).unwrap(), "export const Mine = 1\n");
}

#[test]
fn a_link_stays_a_link() {
    let place = Place::new();
    let real = place.home("dotfiles/settings.json");
    put(&real, "{}");
    std::fs::create_dir_all(place.home(".claude")).unwrap();
    let link = place.home(".claude/settings.json");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    place.ok(&["hook", "install", "claude"]);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(std::fs::read_to_string(&real).unwrap().contains("PreToolUse"));
    place.ok(&["hook", "uninstall", "claude"]);
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "{}");
}

#[test]
fn every_agent_that_is_found_gets_its_hook_and_the_status_says_how_each_is() {
    let place = Place::new();
    for program in ["claude", "gemini"] {
        let file = place.work(&format!("bin/{program}"));
        put(&file, "#!/bin/sh\n");
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let run = |words: &[&str]| {
        let output = Command::new(binary())
            .args(words)
            .env_clear()
            .env("HOME", place.home(""))
            .env("PATH", place.work("bin"))
            .current_dir(place.work(""))
            .output()
            .unwrap();
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.success(), told)
    };
    let states = || -> Vec<String> {
        let items = run(&["hook", "status", "--json"]).1["items"].take();
        let items = items.as_array().unwrap().iter();
        let told = items
            .map(|item| format!("{} {} {}", item["agent"], item["found"], item["hook"]).replace('"', ""));
        told.collect()
    };
    let absent = ["claude true absent", "codex false absent", "gemini true absent", "opencode false absent"];
    assert_eq!(states(), absent);
    // One file that is no settings keeps the other agent from nothing.
    put(&place.home(".gemini/settings.json"), "not json");
    let (done, told) = run(&["hook", "install", "--all", "--json"]);
    assert!(!done, "{told:#}");
    assert_eq!(told["items"][0]["changed"], true);
    assert!(told["items"][1]["error"].as_str().unwrap().contains("is left as it is"), "{told:#}");
    assert_eq!(std::fs::read_to_string(place.home(".gemini/settings.json")).unwrap(), "not json");
    assert_eq!(
        (states()[0].as_str(), states()[2].as_str()),
        ("claude true installed", "gemini true unreadable")
    );
    std::fs::remove_file(place.home(".gemini/settings.json")).unwrap();
    assert!(run(&["hook", "install", "--all", "--json"]).0);
    assert_eq!(
        (states()[0].as_str(), states()[2].as_str()),
        ("claude true installed", "gemini true installed")
    );
    // Of an older program, or changed by hand.
    let settings = place.home(".claude/settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    put(&settings, &text.replace("PostToolUse", "Stop"));
    assert_eq!(states()[0], "claude true outdated");
    assert!(!place.home(".codex").exists(), "what is not found is left alone");
}
