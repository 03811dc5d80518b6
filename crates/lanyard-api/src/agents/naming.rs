//! Which agent is meant, and the refusals about it: an unknown name, no default, a missing program. The API, tasks, flows
//! and the command line share them.

use lanyard_core::text::near;

/// Why an agent cannot be used: a stable code, what is wrong, what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRefusal {
    pub code: &'static str,
    pub title: String,
    pub advice: String,
}

/// A name that the config does not have. `installed` says that Lanyard knows how to run it all the same.
#[must_use]
pub fn unknown(name: &str, configured: &[&str], installed: bool) -> AgentRefusal {
    let names = listed(configured);
    if installed {
        return AgentRefusal {
            code: "agent_not_configured",
            title: format!("the agent `{name}` is installed, but not in the config; configured: {names}"),
            advice: format!(
                "add `[agents.{name}]` to the config as `lanyard init --print` shows it; the daemon reloads it"
            ),
        };
    }
    let advice = match near(name, configured) {
        Some(near) => format!("did you mean `{near}`? `lanyard agents` lists them all"),
        None => "name one of those, or add it to the config with `lanyard config edit`".to_owned(),
    };
    AgentRefusal {
        code: "agent_unknown",
        title: format!("there is no agent `{name}`; configured: {names}"),
        advice,
    }
}

/// No agent was named, and the config does not say which one is meant. `configured` leaves out the demo agent.
#[must_use]
pub fn undecided(configured: &[&str]) -> AgentRefusal {
    match configured {
        [] => AgentRefusal {
            code: "agent_none_configured",
            title: "no agent is configured".to_owned(),
            advice: "write a config for the agents installed here with `lanyard init`, or see the built-in one work \
                     with `lanyard demo`"
                .to_owned(),
        },
        several => AgentRefusal {
            code: "agent_default_missing",
            title: format!("several agents are configured and none is the default: {}", listed(several)),
            advice: "name one with `--agent`, or choose a default with `lanyard config set daemon.default_agent NAME`"
                .to_owned(),
        },
    }
}

/// The agent is configured, and its program is missing here, or not executable.
#[must_use]
pub fn program_missing(name: &str, program: &str) -> AgentRefusal {
    AgentRefusal {
        code: "agent_program_missing",
        title: format!(
            "the agent `{name}` cannot be started: its program `{program}` is missing here, or not executable"
        ),
        advice: format!("install it, or change `command` under `[agents.{name}]` with `lanyard config edit`"),
    }
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FND-N2.
    #[test]
    fn fnd_n2_an_unknown_name_is_refused_with_the_names_there_are() {
        let refusal = unknown("opencod", &["claude", "demo", "opencode"], false);
        assert_eq!(refusal.code, "agent_unknown");
        assert_eq!(refusal.title, "there is no agent `opencod`; configured: claude, demo, opencode");
        assert_eq!(refusal.advice, "did you mean `opencode`? `lanyard agents` lists them all");
        let far = unknown("ghost", &["demo"], false);
        assert!(far.advice.starts_with("name one of those"), "{}", far.advice);
        assert_eq!(unknown("gemini", &["demo"], true).code, "agent_not_configured");
    }

    /// FND-N4.
    #[test]
    fn fnd_n4_without_a_default_the_refusal_says_how_to_choose() {
        let none = undecided(&[]);
        assert_eq!(none.code, "agent_none_configured");
        assert!(
            none.advice.contains("lanyard init") && none.advice.contains("lanyard demo"),
            "{}",
            none.advice
        );
        let several = undecided(&["claude", "codex"]);
        assert_eq!(several.code, "agent_default_missing");
        assert!(several.title.contains("claude, codex") && several.advice.contains("daemon.default_agent"));
    }
}
