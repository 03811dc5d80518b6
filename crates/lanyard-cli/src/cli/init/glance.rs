//! `lanyard` alone on a terminal, once there is a config: what runs, what needs you, and what to do next.

use lanyard_api::types::{AgentList, DaemonStatus, GateList};
use lanyard_client::Route;

use crate::context::Context;
use crate::failure::Failure;

pub(in crate::cli) async fn glance(context: &Context) -> Result<(), Failure> {
    let Some(mut client) = context.client_if_running().await? else {
        let file = context.config_file()?;
        return context.out.data(&format!(
            "No daemon is running; commands start one when they need it.\n{}\n\n{}",
            agent_line(file.config.default_agent().as_deref()),
            next(0)
        ));
    };
    let status: DaemonStatus = client.get(&Route::to(&["status"])).await?;
    let agents: AgentList = client.get(&Route::to(&["agents"])).await?;
    let gates: GateList = client.get(&Route::to(&["gates"])).await?;
    let asks = gates.gates.len() + gates.flows.len();
    context.out.data(&text(&status, agents.default.as_deref(), asks))
}

fn text(status: &DaemonStatus, default: Option<&str>, asks: usize) -> String {
    let counts: Vec<String> = status
        .operator_states
        .iter()
        .filter(|count| count.sessions > 0)
        .map(|count| format!("{} {}", count.sessions, count.operator_state.label()))
        .collect();
    let sessions = if counts.is_empty() { "none yet".to_owned() } else { counts.join(", ") };
    let mut lines = vec![
        format!("The daemon runs at http://{} (version {}).", status.address, status.version),
        agent_line(default),
        format!("Sessions: {sessions}"),
    ];
    if asks > 0 {
        lines.push(format!("Needs you: {asks} waiting for approval"));
    }
    if let Some(error) = &status.config.error {
        lines.push(format!("The config file is not used: {error}"));
    }
    if !status.config.needs_restart.is_empty() {
        let keys: Vec<&str> = status.config.needs_restart.iter().map(|change| change.key.as_str()).collect();
        lines.push(format!("Needs a restart: {}", keys.join(", ")));
    }
    format!("{}\n\n{}", lines.join("\n"), next(asks))
}

fn agent_line(default: Option<&str>) -> String {
    match default {
        Some(name) => format!("Default agent: {name}"),
        None => {
            "Default agent: none; choose one with `lanyard config set daemon.default_agent NAME`".to_owned()
        }
    }
}

fn next(asks: usize) -> String {
    let first = if asks > 0 {
        "lanyard approvals          see what waits for approval"
    } else {
        "lanyard run \"…\"            give an agent work in this folder, and watch it"
    };
    format!(
        "Next:\n  {first}\n  lanyard top                watch all sessions\n  \
         lanyard --help             see all commands\n"
    )
}
