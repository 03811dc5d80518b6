//! What is taken out of logs: the config's say in it, and the values of this machine's secrets.

use std::sync::Arc;

use lanyard_core::redact::{Redactor, Scope, Wanted};
use lanyard_core::session::{Envelope, Event, TurnEvent};
use serde::Deserialize;

use crate::agents::settings::McpSettings;
use crate::config::Config;

/// Secrets in logs.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedactionConfig {
    /// Lanyard's own tokens are taken out in any case.
    pub enabled: bool,
    /// Environment variables whose values are secret, beside those whose names say so.
    pub names: Vec<String>,
    /// Beginnings of keys of your own.
    pub prefixes: Vec<String>,
}

impl Default for RedactionConfig {
    fn default() -> Self {
        Self { enabled: true, names: Vec::new(), prefixes: Vec::new() }
    }
}

/// Looks for what agents could tell: the variables they inherit and those the config gives them or their servers.
pub(crate) fn redactor(config: &Config) -> Result<Arc<Redactor>, String> {
    let mut variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let servers = config.agents.values().flat_map(|agent| agent.mcp.values()).chain(config.mcp.values());
    let given = servers.filter_map(|server| match server {
        McpSettings::Stdio(program) => Some(&program.env),
        McpSettings::Http(_) => None,
    });
    let given = given.chain(config.agents.values().map(|agent| &agent.env));
    variables.extend(given.flatten().map(|(name, value)| (name.clone(), value.clone())));
    let RedactionConfig { enabled, names, prefixes } = config.redaction.clone();
    Redactor::new(&Wanted { variables, names, prefixes, own_only: !enabled }).map(Arc::new)
}

/// Takes the secrets out of an event before it becomes part of the log; answers how many there were.
pub(crate) fn redact(redactor: &Redactor, envelope: &mut Envelope) -> Result<u64, String> {
    let scope = scope(&envelope.event);
    let mut value = serde_json::to_value(&envelope.event).map_err(|error| error.to_string())?;
    let count = redactor.redact(&mut value, scope);
    if count > 0 {
        envelope.event = serde_json::from_value(value).map_err(|error| error.to_string())?;
    }
    Ok(count)
}

/// The words of people are read from the log by those who bring them to the agent: they stay as they were said, but for
/// Lanyard's own tokens, which no agent needs.
fn scope(event: &Event) -> Scope {
    match event {
        Event::Turn(TurnEvent::Finished { .. } | TurnEvent::Interrupted { .. })
        | Event::Transcript(_)
        | Event::Run(_)
        | Event::Gate(_) => Scope::All,
        Event::Turn(TurnEvent::Started { .. } | TurnEvent::CancelRequested { .. })
        | Event::Change(_)
        | Event::Inbox(_)
        | Event::Context(_)
        | Event::Control(_)
        | Event::Writer(_) => Scope::OwnTokens,
    }
}
