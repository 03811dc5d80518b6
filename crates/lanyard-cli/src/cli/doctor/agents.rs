//! The agents: those of the daemon that runs, since its PATH counts, or else those of the config.

use std::path::PathBuf;

use lanyard_api::agents::known::place;
use lanyard_api::config::Config;
use lanyard_api::types::AgentList;
use lanyard_client::Route;

use super::Finding;
use super::service::Running;
use crate::context::Context;
use crate::failure::Failure;

const NAME: &str = "agents";

/// An agent that sessions can be run with.
#[derive(Debug)]
struct Agent {
    name: String,
    program: String,
    found: bool,
}

pub(super) async fn check(context: &Context, config: Option<&Config>, running: &Running) -> Vec<Finding> {
    let known = match (running, config) {
        (Running::Answers(..), _) => told(context).await.ok().flatten(),
        (Running::Nobody { .. }, Some(config)) => Some(configured(config)),
        (Running::Nobody { .. }, None) | (Running::Mute, _) => None,
    };
    known.map(|(agents, default)| judge(&agents, default.as_deref())).unwrap_or_default()
}

async fn told(context: &Context) -> Result<Option<(Vec<Agent>, Option<String>)>, Failure> {
    let Some(mut client) = context.client_if_running().await? else { return Ok(None) };
    let list: AgentList = client.get(&Route::to(&["agents"])).await?;
    let configured = list.agents.into_iter().filter(|agent| agent.configured);
    let agents = configured.map(|agent| Agent {
        name: agent.name,
        program: agent.command.into_iter().next().unwrap_or_default(),
        found: agent.found.is_some(),
    });
    Ok(Some((agents.collect(), list.default)))
}

fn configured(config: &Config) -> (Vec<Agent>, Option<String>) {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("lanyard"));
    let agents = config.agents(&program).into_iter().map(|(name, settings)| Agent {
        name,
        found: place(&settings).is_some(),
        program: settings.command.into_iter().next().unwrap_or_default(),
    });
    (agents.collect(), config.default_agent())
}

/// Without its default agent nothing runs that names none; any other agent may be meant for another machine.
fn judge(agents: &[Agent], default: Option<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(default) = default.filter(|default| !agents.iter().any(|agent| agent.name == *default)) {
        let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        let fix =
            format!("choose one of {} with `lanyard config set daemon.default_agent NAME`", names.join(", "));
        findings.push(Finding::fail(NAME, format!("the default agent `{default}` is not configured"), fix));
    }
    for agent in agents.iter().filter(|agent| !agent.found) {
        let what = format!("there is no program `{}` for the agent `{}`", agent.program, agent.name);
        let fix = "install it, or correct its `command` with `lanyard config edit`; the daemon's PATH counts";
        findings.push(if default == Some(agent.name.as_str()) {
            Finding::fail(NAME, what, fix)
        } else {
            Finding::warn(NAME, what, fix)
        });
    }
    if findings.is_empty() {
        let default = default.unwrap_or("none, one has to be named");
        findings.push(Finding::ok(NAME, format!("{} with their programs, default: {default}", agents.len())));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::FindingLevel;
    use super::*;

    /// FND-N10.
    #[test]
    fn fnd_n10_agents_without_a_program_and_a_default_that_is_not_there() {
        let agent = |name: &str, found| Agent { name: name.into(), program: format!("/bin/{name}"), found };
        let levels = |agents: &[Agent], default: &str| -> Vec<FindingLevel> {
            judge(agents, Some(default)).iter().map(|finding| finding.level).collect()
        };
        assert_eq!(levels(&[agent("a", true), agent("b", true)], "b"), [FindingLevel::Ok]);
        assert_eq!(levels(&[agent("a", true), agent("b", false)], "a"), [FindingLevel::Warn]);
        assert_eq!(levels(&[agent("a", true), agent("b", false)], "b"), [FindingLevel::Fail]);
        assert_eq!(levels(&[agent("a", false)], "c"), [FindingLevel::Fail, FindingLevel::Warn]);
        assert_eq!(judge(&[agent("a", true)], None)[0].level, FindingLevel::Ok);
        assert!(judge(&[agent("a", true)], Some("c")).iter().all(|finding| finding.fix.is_some()));
    }
}
