//! Which agent a command means: the one it names, else the default. Refused before anything is made.

use lanyard_api::agents::naming::{self, AgentRefusal};
use lanyard_api::config::DEMO;
use lanyard_api::types::AgentList;

use crate::failure::Failure;

/// The agent to start, by the name that was given or the daemon's default.
pub(crate) fn chosen(list: &AgentList, asked: Option<&str>) -> Result<String, Failure> {
    let configured: Vec<&str> =
        list.agents.iter().filter(|agent| agent.configured).map(|agent| agent.name.as_str()).collect();
    let Some(name) = asked.or(list.default.as_deref()) else {
        let own: Vec<&str> = configured.into_iter().filter(|name| *name != DEMO).collect();
        return Err(failure(naming::undecided(&own)));
    };
    match list.agents.iter().find(|agent| agent.name == name) {
        Some(agent) if !agent.configured => Err(failure(naming::unknown(name, &configured, true))),
        Some(agent) if agent.found.is_none() => {
            let program = agent.command.first().map_or("", String::as_str);
            Err(failure(naming::program_missing(name, program)))
        }
        Some(_) => Ok(name.to_owned()),
        None => Err(failure(naming::unknown(name, &configured, false))),
    }
}

fn failure(refusal: AgentRefusal) -> Failure {
    Failure::local(refusal.code, refusal.title, refusal.advice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(default: Option<&str>, agents: &[(&str, bool, bool)]) -> AgentList {
        let agents: Vec<_> = agents
            .iter()
            .map(|(name, configured, found)| {
                let found = found.then_some("/bin/x");
                json!({"name": name, "configured": configured, "driver": "acp", "command": [name], "found": found})
            })
            .collect();
        serde_json::from_value(json!({"agents": agents, "default": default})).unwrap()
    }

    fn code(list: &AgentList, asked: Option<&str>) -> String {
        match chosen(list, asked) {
            Ok(name) => name,
            Err(Failure::Told { problem, .. }) => problem.code,
            Err(other) => panic!("{other:?}"),
        }
    }

    /// FND-N4, FND-N2.
    #[test]
    fn fnd_n4_the_named_agent_or_the_default_and_never_the_demo_in_silence() {
        let demo = ("demo", true, true);
        let none = list(None, &[demo]);
        assert_eq!(code(&none, None), "agent_none_configured");
        assert_eq!(code(&none, Some("demo")), "demo");
        let two = list(None, &[("a", true, true), ("b", true, false), demo, ("gemini", false, true)]);
        assert_eq!(code(&two, None), "agent_default_missing");
        assert_eq!(code(&two, Some("a")), "a");
        assert_eq!(code(&two, Some("b")), "agent_program_missing");
        assert_eq!(code(&two, Some("gemini")), "agent_not_configured");
        assert_eq!(code(&two, Some("ghost")), "agent_unknown");
        assert_eq!(code(&list(Some("a"), &[("a", true, true), demo]), None), "a");
    }
}
