//! Where each agent keeps its hooks, and what is written there.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::ask::HOOK_WAIT;
use super::edit::HookEntry;
use super::input::Harness;

/// A harness waits this much longer than the hook itself does.
const MARGIN_S: u64 = 2;
const PLUGIN: &str = include_str!("opencode.js");

/// Whose settings are edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookScope {
    /// For every project of this user.
    User,
    /// For the project in this folder.
    Project,
}

/// Where users keep their things.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) harness: Harness,
    pub(crate) scope: HookScope,
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
    /// How the hook is started: the program and the arguments before `hook`.
    pub(crate) program: Vec<String>,
}

impl Target {
    /// The file that is edited. Agents that can be told to keep their settings elsewhere are believed.
    pub(crate) fn path(&self) -> PathBuf {
        let moved =
            |variable: &str| std::env::var_os(variable).filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let home = |below: &str| self.home.join(below);
        let project = &self.project;
        match (self.harness, self.scope) {
            (Harness::Claude, HookScope::User) => {
                moved("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home(".claude")).join("settings.json")
            }
            // The one that is not shared: the command names a program on this machine.
            (Harness::Claude, HookScope::Project) => project.join(".claude/settings.local.json"),
            (Harness::Codex, HookScope::User) => {
                moved("CODEX_HOME").unwrap_or_else(|| home(".codex")).join("hooks.json")
            }
            (Harness::Codex, HookScope::Project) => project.join(".codex/hooks.json"),
            (Harness::Gemini, HookScope::User) => home(".gemini/settings.json"),
            (Harness::Gemini, HookScope::Project) => project.join(".gemini/settings.json"),
            (Harness::Opencode, HookScope::User) => {
                let config = moved("XDG_CONFIG_HOME").unwrap_or_else(|| home(".config"));
                config.join("opencode/plugin/lanyard.js")
            }
            (Harness::Opencode, HookScope::Project) => project.join(".opencode/plugin/lanyard.js"),
        }
    }

    pub(super) fn words(&self) -> Vec<String> {
        let hook = ["hook".to_owned(), self.harness.as_str().to_owned()];
        self.program.iter().cloned().chain(hook).collect()
    }

    /// As a harness hands it to a shell.
    pub(super) fn command(&self) -> String {
        self.words().iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn entries(&self) -> Vec<HookEntry> {
        let events: &[&'static str] = match self.harness {
            Harness::Claude => &[
                "PreToolUse",
                "PostToolUse",
                "PostToolUseFailure",
                "PostToolBatch",
                "UserPromptSubmit",
                "SessionStart",
            ],
            Harness::Codex => &["PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart"],
            Harness::Gemini => &["BeforeTool", "AfterTool", "BeforeAgent", "SessionStart"],
            Harness::Opencode => &[],
        };
        events.iter().map(|&event| HookEntry { event, hook: self.hook() }).collect()
    }

    fn hook(&self) -> Value {
        let wait_s = HOOK_WAIT.as_secs() + MARGIN_S;
        let mut hook = json!({ "type": "command", "command": self.command(), "timeout": wait_s });
        if self.harness == Harness::Gemini {
            hook["name"] = json!("lanyard");
            hook["timeout"] = json!(wait_s * 1_000);
        }
        hook
    }

    /// The plugin's whole text.
    pub(super) fn plugin(&self) -> String {
        let wait_ms = (HOOK_WAIT.as_secs() + MARGIN_S) * 1_000;
        let command = json!(self.words()).to_string();
        PLUGIN.replace("__COMMAND__", &command).replace("__WAIT_MS__", &wait_ms.to_string())
    }

    /// Whether a command in the settings is one that Lanyard wrote, of whatever place and version.
    pub(super) fn is_ours(&self, command: &str) -> bool {
        let Some(before) = command.trim_end().strip_suffix(&format!(" hook {}", self.harness.as_str()))
        else {
            return false;
        };
        let program = before.split(" --data-dir ").next().unwrap_or_default().trim_matches('\'');
        Path::new(program).file_name().is_some_and(|name| name.to_string_lossy().starts_with("lanyard"))
    }
}

/// In quotes where a shell would read more into it.
fn quoted(word: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@' | '%' | ':');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(program: &[&str]) -> Target {
        Target {
            harness: Harness::Claude,
            scope: HookScope::Project,
            home: "/home/u".into(),
            project: "/w".into(),
            program: program.iter().map(|&word| word.to_owned()).collect(),
        }
    }

    #[test]
    fn our_commands_are_known_again() {
        for program in [
            &["/usr/bin/lanyard"][..],
            &["/home/u/my tools/lanyard"],
            &["/x/lanyard", "--data-dir", "/some where/it's"],
        ] {
            let target = target(program);
            assert!(target.is_ours(&target.command()), "{}", target.command());
        }
        let one = target(&["/usr/bin/lanyard"]);
        assert_eq!(one.command(), "/usr/bin/lanyard hook claude");
        assert_eq!(target(&["/a b/lanyard"]).command(), "'/a b/lanyard' hook claude");
        for other in ["lanyard hook codex", "my-lanyard hook claude", "lanyard", "rm -rf / hook claude"] {
            assert!(!one.is_ours(other), "{other}");
        }
    }
}
