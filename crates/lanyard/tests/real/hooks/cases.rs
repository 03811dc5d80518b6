//! The agents and what the hooks of each can do.

use std::path::Path;

use serde_json::json;

use crate::agents::{self, Agent, Rights};
use crate::model::{Model, Role, Step, marker};

/// One agent as it goes through the chapters.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(super) struct Case {
    /// As in packages.txt.
    pub(super) package: &'static str,
    pub(super) name: &'static str,
    /// As `lanyard hook install` names it.
    pub(super) harness: &'static str,
    /// The file its hooks are in, below its home.
    pub(super) file: &'static str,
    pub(super) make: fn(&Path, &Model, Rights) -> Agent,
    /// Further words before the prompt, always and when a conversation goes on.
    pub(super) always: &'static [&'static str],
    pub(super) go_on: fn(&str) -> Vec<String>,
    /// What stands right before the prompt.
    pub(super) flag: Option<&'static str>,
    /// The member of its output that has its own id of the conversation.
    pub(super) id_key: &'static str,
    /// What its hooks call the shell.
    pub(super) tool: &'static str,
    pub(super) shell: fn(&str) -> Step,
    pub(super) words: Words,
    /// Words go with a prompt.
    pub(super) with_prompt: bool,
    /// The answer of a tool that works when a stop at level 2 comes is held back.
    pub(super) withholds: bool,
    pub(super) third: Third,
    /// It prints why it was ended.
    pub(super) says_why: bool,
    /// It writes its settings anew by itself.
    pub(super) rewrites: bool,
    pub(super) family: Family,
}

/// Where an agent's model finds what stands beside a tool's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// In the tool's result, before its own.
    InFront,
    /// In the tool's result, after its own.
    Behind,
    /// In a message of its own.
    Message(Role),
}

/// What comes of level 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Third {
    /// The agent ends; its model is not asked again.
    Ends,
    /// The model hears it with every tool, and none runs.
    Refuses,
}

/// What is seen of an agent's subagents.
pub(super) enum Family {
    /// Each is a session below its parent's.
    Below(Vec<Step>),
    /// Their tools count as their parent's.
    Hidden(Vec<Step>),
}

impl Case {
    pub(super) fn claude() -> Case {
        Case {
            package: "claude",
            name: "claude -p, hooks",
            harness: "claude",
            file: ".claude/settings.json",
            make: agents::claude_print,
            always: &[],
            go_on: |id| vec!["--resume".to_owned(), id.to_owned()],
            flag: None,
            id_key: "session_id",
            tool: "Bash",
            shell: |command| Step::tool("Bash", json!({ "command": command, "description": "x" })),
            words: Words::Message(Role::System),
            with_prompt: true,
            withholds: false,
            third: Third::Ends,
            says_why: true,
            rewrites: false,
            family: Family::Below(vec![Step::tool(
                "Agent",
                json!({ "description": "sub work", "prompt": child(), "subagent_type": "general-purpose", "run_in_background": false }),
            )]),
        }
    }

    pub(super) fn gemini() -> Case {
        Case {
            package: "gemini",
            name: "gemini -p, hooks",
            harness: "gemini",
            file: ".gemini/settings.json",
            make: agents::gemini_print,
            always: &[],
            go_on: |_| vec!["--resume".to_owned(), "latest".to_owned()],
            flag: Some("-p"),
            id_key: "session_id",
            tool: "run_shell_command",
            shell: |command| Step::tool("run_shell_command", json!({ "command": command })),
            words: Words::Behind,
            with_prompt: true,
            withholds: true,
            third: Third::Ends,
            says_why: true,
            rewrites: true,
            family: Family::Hidden(vec![Step::tool(
                "invoke_agent",
                json!({ "agent_name": "generalist", "prompt": child() }),
            )]),
        }
    }

    pub(super) fn codex() -> Case {
        Case {
            package: "codex",
            name: "codex exec, hooks",
            harness: "codex",
            file: ".codex/hooks.json",
            make: agents::codex_exec,
            always: &["--dangerously-bypass-hook-trust"],
            go_on: |id| vec!["resume".to_owned(), id.to_owned()],
            flag: None,
            id_key: "thread_id",
            tool: "Bash",
            shell: |command| Step::tool("exec_command", json!({ "cmd": command })),
            words: Words::Message(Role::System),
            with_prompt: true,
            withholds: false,
            third: Third::Refuses,
            says_why: false,
            rewrites: false,
            family: Family::Below(vec![
                Step::tool("multi_agent_v1::spawn_agent", json!({ "message": child() })),
                Step::tool(
                    "multi_agent_v1::wait_agent",
                    json!({ "targets": ["{{field:agent_id}}"], "timeout_ms": 30_000 }),
                ),
            ]),
        }
    }

    pub(super) fn opencode() -> Case {
        Case {
            package: "opencode",
            name: "opencode run, hooks",
            harness: "opencode",
            file: ".config/opencode/plugin/lanyard.js",
            make: agents::opencode_run,
            always: &[],
            go_on: |id| vec!["--session".to_owned(), id.to_owned()],
            flag: None,
            id_key: "sessionID",
            tool: "bash",
            shell: |command| Step::tool("bash", json!({ "command": command, "description": "x" })),
            words: Words::InFront,
            with_prompt: false,
            withholds: true,
            third: Third::Ends,
            says_why: false,
            rewrites: false,
            family: Family::Below(vec![Step::tool(
                "task",
                json!({ "description": "sub work", "prompt": child(), "subagent_type": "general" }),
            )]),
        }
    }
}

/// What a subagent is told.
fn child() -> String {
    format!("do it {}", marker("child"))
}
