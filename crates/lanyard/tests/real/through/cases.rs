//! The agents and what is known of each: its tools' names, what it asks, what of its subagents it shows.

use std::path::Path;

use serde_json::json;

use crate::agents::{self, Agent, Rights};
use crate::model::{Model, Step, marker};

/// What a subagent says.
pub(super) const CHILD: &str = "CHILD-OK it is done.";

/// One agent as it goes through the chapters.
#[expect(clippy::struct_excessive_bools, reason = "each is something the agent has or has not")]
pub(super) struct Case {
    /// As in packages.txt.
    pub(super) package: &'static str,
    pub(super) name: &'static str,
    pub(super) make: fn(&Path, &Model, Rights) -> Agent,
    /// A call of the agent's shell.
    pub(super) shell: fn(&str, Rights) -> Step,
    /// Calls that make `two` of the `one` in a file.
    pub(super) edit: fn(&Path) -> Vec<Step>,
    /// As `lanyard hook install` names it, and whether its hooks carry words in a run of Lanyard's.
    pub(super) harness: &'static str,
    pub(super) hooked: Hooked,
    /// A command of its own that asks no model, for an agent that does not list those of its user.
    pub(super) built_in: Option<&'static str>,
    /// Whether the first words of an answer are seen before the last.
    pub(super) partial: bool,
    pub(super) asks: Asks,
    /// Whether it tells what a command wrote.
    pub(super) tells_output: bool,
    /// Whether it takes words into a running turn.
    pub(super) steers: bool,
    /// Where a conversation is kept under its first minute, and a load within that minute empties it.
    pub(super) minute: bool,
    /// What the model says in the script `child`.
    pub(super) child: Step,
    pub(super) family: Family,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    Yes,
    /// It is run without anybody to ask, and refuses by itself what it may not do.
    Refuses,
}

/// What an agent's hooks do for words in a run of Lanyard's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hooked {
    /// They carry them.
    Yes,
    /// The agent takes words by itself, which is quicker.
    Steers,
    /// It does not run them there.
    No,
}

/// What of an agent's subagents can be seen.
pub(super) enum Family {
    /// Each is a session of its own. The steps make the model spawn one for the script `child`.
    Sessions(Vec<Step>),
    /// They work, and only their result shows.
    Hidden(Vec<Step>),
}

impl Case {
    pub(super) fn opencode() -> Case {
        Case {
            package: "opencode",
            name: "opencode",
            make: agents::opencode_serve,
            shell: bash,
            edit: opencode_edit,
            harness: "opencode",
            hooked: Hooked::Steers,
            built_in: None,
            partial: true,
            asks: Asks::Yes,
            tells_output: true,
            steers: true,
            minute: false,
            child: Step::text(CHILD),
            family: Family::Sessions(vec![task()]),
        }
    }

    pub(super) fn opencode_acp() -> Case {
        let family = Family::Hidden(vec![task()]);
        Case {
            name: "opencode acp",
            make: agents::opencode_acp,
            steers: false,
            hooked: Hooked::Yes,
            family,
            ..Case::opencode()
        }
    }

    pub(super) fn codex() -> Case {
        Case {
            package: "codex",
            name: "codex app-server",
            make: agents::codex,
            shell: exec_command,
            edit: codex_patch,
            harness: "codex",
            hooked: Hooked::Steers,
            built_in: None,
            partial: true,
            asks: Asks::Yes,
            tells_output: true,
            steers: true,
            minute: false,
            child: Step::text(CHILD),
            family: Family::Sessions(spawn()),
        }
    }

    /// Lets nothing out of its workspace.
    pub(super) fn codex_sandboxed() -> Case {
        Case { make: agents::codex_sandboxed, ..Case::codex() }
    }

    pub(super) fn codex_acp() -> Case {
        let family = Family::Hidden(spawn());
        let (package, name) = ("codex_acp", "codex-acp");
        Case {
            package,
            name,
            make: agents::codex_acp,
            steers: false,
            hooked: Hooked::No,
            built_in: Some("status"),
            family,
            ..Case::codex()
        }
    }

    pub(super) fn codex_exec() -> Case {
        let (name, make, asks) =
            ("codex exec", agents::codex_exec as fn(&Path, &Model, Rights) -> Agent, Asks::Refuses);
        Case { name, make, asks, steers: false, hooked: Hooked::No, partial: false, ..Case::codex() }
    }

    pub(super) fn claude() -> Case {
        Case {
            package: "claude",
            name: "claude -p",
            make: agents::claude_print,
            shell: claude_bash,
            edit: claude_edit,
            harness: "claude",
            hooked: Hooked::Yes,
            built_in: None,
            partial: false,
            asks: Asks::Refuses,
            tells_output: true,
            steers: false,
            minute: false,
            child: Step::text(CHILD),
            family: Family::Sessions(vec![claude_agent()]),
        }
    }

    /// As `lanyard init` writes it.
    pub(super) fn claude_entry() -> Case {
        let (name, asks) = ("claude, entry of init", Asks::Yes);
        Case {
            name,
            make: agents::claude_entry,
            asks,
            steers: true,
            hooked: Hooked::Steers,
            partial: true,
            ..Case::claude()
        }
    }

    /// Run once per turn, with answers to its questions.
    pub(super) fn claude_asks() -> Case {
        Case { name: "claude -p, asks", make: agents::claude_asks, asks: Asks::Yes, ..Case::claude() }
    }

    /// As an older guide had it.
    pub(super) fn claude_old_guide() -> Case {
        Case { name: "claude, old guide", make: agents::claude_old_guide, ..Case::claude() }
    }

    pub(super) fn claude_acp() -> Case {
        Case {
            package: "claude_acp",
            name: "claude-agent-acp",
            make: agents::claude_acp,
            asks: Asks::Yes,
            partial: true,
            family: Family::Hidden(vec![claude_agent()]),
            ..Case::claude()
        }
    }

    pub(super) fn gemini() -> Case {
        Case {
            package: "gemini",
            name: "gemini --acp",
            make: agents::gemini_acp,
            shell: |command, _| Step::tool("run_shell_command", json!({ "command": command })),
            edit: gemini_edit,
            harness: "gemini",
            hooked: Hooked::No,
            built_in: Some("about"),
            partial: true,
            asks: Asks::Yes,
            tells_output: false,
            steers: false,
            minute: true,
            child: Step::tool("complete_task", json!({ "result": { "response": CHILD } })),
            family: Family::Hidden(vec![gemini_agent()]),
        }
    }
}

fn bash(command: &str, _: Rights) -> Step {
    Step::tool("bash", json!({ "command": command, "description": "x" }))
}

fn claude_bash(command: &str, _: Rights) -> Step {
    Step::tool("Bash", json!({ "command": command, "description": "x" }))
}

fn opencode_edit(file: &Path) -> Vec<Step> {
    let edit = json!({ "filePath": file, "oldString": "one", "newString": "two" });
    vec![Step::tool("read", json!({ "filePath": file })), Step::tool("edit", edit)]
}

fn claude_edit(file: &Path) -> Vec<Step> {
    let edit = json!({ "file_path": file, "old_string": "one", "new_string": "two" });
    vec![Step::tool("Read", json!({ "file_path": file })), Step::tool("Edit", edit)]
}

fn gemini_edit(file: &Path) -> Vec<Step> {
    let edit = json!({
        "file_path": file, "instruction": "Replace one by two", "old_string": "one", "new_string": "two",
    });
    vec![Step::tool("replace", edit)]
}

/// Codex carries out a patch that its shell is given.
fn codex_patch(file: &Path) -> Vec<Step> {
    let file = file.display();
    let patch = format!("*** Begin Patch\n*** Update File: {file}\n@@\n-one\n+two\n*** End Patch");
    vec![Step::tool("exec_command", json!({ "cmd": format!("apply_patch <<'EOF'\n{patch}\nEOF\n") }))]
}

/// Codex asks only about a call that says it needs more than the sandbox allows.
fn exec_command(command: &str, rights: Rights) -> Step {
    let mut call = json!({ "cmd": command });
    if rights == Rights::Ask {
        call["sandbox_permissions"] = json!("require_escalated");
        call["justification"] = json!("the script wants it");
    }
    Step::tool("exec_command", call)
}

fn child_prompt() -> String {
    format!("do it {}", marker("child"))
}

fn task() -> Step {
    let call = json!({ "description": "sub work", "prompt": child_prompt(), "subagent_type": "general" });
    Step::tool("task", call)
}

fn claude_agent() -> Step {
    let call = json!({ "description": "sub work", "prompt": child_prompt(), "subagent_type": "general-purpose", "run_in_background": false });
    Step::tool("Agent", call)
}

fn gemini_agent() -> Step {
    Step::tool("invoke_agent", json!({ "agent_name": "generalist", "prompt": child_prompt() }))
}

fn spawn() -> Vec<Step> {
    let wait = json!({ "targets": ["{{field:agent_id}}"], "timeout_ms": 30_000 });
    vec![
        Step::tool("multi_agent_v1::spawn_agent", json!({ "message": child_prompt() })),
        Step::tool("multi_agent_v1::wait_agent", wait),
    ]
}
