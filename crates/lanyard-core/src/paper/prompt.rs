//! The prompt of a spawned agent: fixed sections in a fixed order, then the caller's own text.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::paper::instructions::CallAttribution;
use crate::paper::{PaperRefusal, TEXT_CHARS_MAX, few, instructions, words};
use crate::text::BODY_BYTES_MAX;

/// Entries each list of the bounds may have.
pub const BOUNDS_MAX: usize = 100;

/// The inputs of the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief<'a> {
    pub workspace: Option<&'a str>,
    pub plan: Option<&'a str>,
    pub phase: Option<&'a str>,
    pub session: SessionId,
    pub parent: Option<SessionId>,
    pub nonce: &'a str,
    /// The way in which the agent's calls are attributed to its session.
    pub caller: CallAttribution,
    pub agent: &'a str,
    pub bounds: &'a Bounds,
    /// Whether it may have children of its own.
    pub may_spawn: bool,
    /// The agent may use its own subagents, even when it may not spawn.
    pub subagents: bool,
    pub prompt: &'a str,
}

/// Scope limits of a spawned agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Bounds {
    /// Files and folders it may change; everything in the workspace when empty.
    pub may_change: Vec<String>,
    /// Files and folders it must not change.
    pub must_not_change: Vec<String>,
    /// Work that is not part of the task.
    pub out_of_scope: Vec<String>,
}

impl Bounds {
    pub fn check(&self) -> Result<(), PaperRefusal> {
        let lists = [
            ("may_change", &self.may_change),
            ("must_not_change", &self.must_not_change),
            ("out_of_scope", &self.out_of_scope),
        ];
        for (field, list) in lists {
            few(field, list, BOUNDS_MAX)?;
            list.iter().try_for_each(|entry| words(field, entry, TEXT_CHARS_MAX))?;
        }
        Ok(())
    }
}

impl Brief<'_> {
    /// The prompt. The caller's words come last and as they are.
    pub fn text(&self) -> Result<String, PaperRefusal> {
        words("prompt", self.prompt, BODY_BYTES_MAX)?;
        self.bounds.check()?;
        let blocks = [self.context(), self.tracking(), self.boundaries(), self.spawning(), git_guard()];
        let text = format!("{}\n\n{}", blocks.join("\n\n"), self.prompt);
        if text.len() > BODY_BYTES_MAX {
            return Err(PaperRefusal::TooLong { field: "prompt", max: BODY_BYTES_MAX });
        }
        Ok(text)
    }

    fn context(&self) -> String {
        let mut text = String::from("## CONTEXT\n");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Workspace: {}", self.workspace.unwrap_or("(none)"));
        let _ = writeln!(text, "Plan: {}", self.plan.unwrap_or("(none)"));
        let _ = writeln!(text, "Session: {}", self.session);
        if let Some(parent) = self.parent {
            let _ = writeln!(text, "Parent session: {parent}");
        }
        if let Some(phase) = self.phase {
            let _ = writeln!(text, "Phase: {phase}");
        }
        let _ = write!(text, "You are: {}", self.agent);
        text
    }

    /// The session tracking block: how the agent's calls are recognised, and why that matters.
    fn tracking(&self) -> String {
        let Self { session, nonce, .. } = self;
        let duty = match self.caller {
            CallAttribution::ByConnection => {
                "Lanyard knows your calls by the connection it gave you: add no session id to the \
                 input of any tool. The user can see your work, guide you and stop you."
                    .to_owned()
            }
            CallAttribution::ByArgument => format!(
                "Put \"_session_id\": \"{session}\" into the input of EVERY call of an MCP tool (one that a server \
                 offers, such as memory_agent), also where the tool's schema does not name it. By it the user can see \
                 your work, guide you and stop you; a call without it cannot be told from another agent's. Do not \
                 omit it there, and do not use another id. Leave it out of your built-in tools (shell, read, edit, \
                 write): they refuse arguments they do not know."
            ),
        };
        format!("## SESSION TRACKING\n{duty}\n{}", instructions::short(*session, nonce))
    }

    fn boundaries(&self) -> String {
        let mut text =
            String::from("## SCOPE BOUNDARIES\nDo what the task below asks, and nothing beyond it.");
        let Bounds { may_change, must_not_change, out_of_scope } = self.bounds;
        for (head, list) in [
            ("You may change only:", may_change),
            ("You must not change:", must_not_change),
            ("Not part of your task:", out_of_scope),
        ] {
            if !list.is_empty() {
                let _ = write!(text, "\n{head}\n- {}", list.join("\n- "));
            }
        }
        text.push_str(
            "\nWhen the task cannot be done within this, stop and hand off with the reason (memory_agent, action \
             handoff).",
        );
        text
    }

    fn spawning(&self) -> String {
        let rule = match (self.may_spawn, self.subagents) {
            (true, false) => {
                "You may delegate with memory_spawn_agent only, and only what your task needs. Do not start agents in \
                 any other way."
            }
            (true, true) => {
                "You may delegate with memory_spawn_agent and to your own subagents, and only what your task needs. Do \
                 not start agents in any other way."
            }
            (false, true) => {
                "You may delegate to your own subagents, and only what your task needs. Do not start agents in any other \
                 way. What needs another agent you hand off (memory_agent, action handoff)."
            }
            (false, false) => {
                "Do not spawn, start or delegate to other agents, in any way. What needs another agent you hand off \
                 (memory_agent, action handoff)."
            }
        };
        format!("## NO SPAWNING\n{rule}")
    }
}

fn git_guard() -> String {
    "## GIT STABILITY\n\
     Others may work in this repository at the same time. Do not commit, push, pull, merge, rebase, reset, stash, clean, \
     switch branches or discard changes unless the task below tells you to. Leave changes that are not yours as they are."
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brief<'a>(bounds: &'a Bounds, prompt: &'a str) -> Brief<'a> {
        Brief {
            workspace: Some("/w"),
            plan: Some("plan_x"),
            phase: None,
            session: SessionId::from_u128(7),
            parent: None,
            nonce: "abc123",
            caller: CallAttribution::ByArgument,
            agent: "Executor",
            bounds,
            may_spawn: false,
            subagents: false,
            prompt,
        }
    }

    /// S0-29: the order of the parts; S0-30: what the tracking block says.
    #[test]
    fn the_parts_come_in_their_order_and_the_callers_words_last() {
        let bounds = Bounds { may_change: vec!["src/a.rs".to_owned()], ..Bounds::default() };
        let text = brief(&bounds, "Fix it.\n\n## CONTEXT of mine").text().unwrap();
        let session = format!("Session: {}", SessionId::from_u128(7));
        let parts = [
            "## CONTEXT\n",
            "Workspace: /w",
            "Plan: plan_x",
            &session,
            "## SESSION TRACKING",
            "EVERY call of an MCP tool",
            "Do not omit it",
            "Leave it out of your built-in tools",
            "abc123",
            "## SCOPE BOUNDARIES",
            "- src/a.rs",
            "## NO SPAWNING",
            "## GIT STABILITY",
            "Fix it.",
        ];
        let places: Vec<usize> = parts.iter().map(|part| text.find(part).unwrap()).collect();
        assert!(places.is_sorted(), "{places:?}\n{text}");
        assert!(text.ends_with("\n\nFix it.\n\n## CONTEXT of mine"));
    }

    /// FND-R5: an agent that Lanyard runs is known by its connection.
    #[test]
    fn fnd_r5_an_agent_with_a_connection_of_its_own_is_told_of_no_argument() {
        let none = Bounds::default();
        let text = Brief { caller: CallAttribution::ByConnection, ..brief(&none, "x") }.text().unwrap();
        assert!(!text.contains("_session_id") && text.contains("add no session id"), "{text}");
        assert!(text.contains("## SESSION TRACKING") && text.contains("abc123"), "{text}");
    }

    #[test]
    fn who_may_spawn_is_told_how_and_bad_bounds_are_refused() {
        let none = Bounds::default();
        assert!(brief(&none, "x").text().unwrap().contains("Do not spawn"));
        let own = Brief { subagents: true, ..brief(&none, "x") };
        assert!(own.text().unwrap().contains("You may delegate to your own subagents,"));
        let free = Brief { may_spawn: true, ..brief(&none, "x") };
        assert!(free.text().unwrap().contains("memory_spawn_agent only"));
        assert_eq!(brief(&none, " ").text().unwrap_err().code(), "field_empty");
        let many = Bounds { out_of_scope: vec!["x".to_owned(); BOUNDS_MAX + 1], ..Bounds::default() };
        assert_eq!(brief(&many, "x").text().unwrap_err().code(), "field_too_many");
    }
}
