//! What is taken out of logs: the config's say in it, and the values of this machine's secrets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lanyard_api::agents::settings::McpSettings;
use lanyard_api::config::{Config, RedactionConfig};
use lanyard_core::flow::FlowEvent;
use lanyard_core::redact::{RedactionScope, Redactor, Wanted};
use lanyard_core::session::{Envelope, Event, ReviewEvent, TurnEvent};
use lanyard_core::task::{MailFrom, TaskEvent};
use lanyard_core::{Actor, ActorKind};
use parking_lot::RwLock;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The variables that a config gives agents and their servers.
#[must_use]
pub fn given(config: &Config) -> Vec<(String, String)> {
    let servers = config.agents.values().flat_map(|agent| agent.mcp.values()).chain(config.mcp.values());
    let given = servers.filter_map(|server| match server {
        McpSettings::Stdio(program) => Some(&program.env),
        McpSettings::Http(_) => None,
    });
    let accounts = || config.agents.values().flat_map(|agent| &agent.accounts);
    let given = given.chain(config.agents.values().map(|agent| &agent.env));
    let given = given.chain(accounts().map(|account| &account.env)).flatten();
    // The values of files are looked for as they are now; one that cannot be read is found out when it is used.
    let files = accounts().flat_map(|account| account.files().collect::<Vec<_>>());
    given.map(|(name, value)| (name.clone(), value.clone())).chain(files).collect()
}

/// Looks for what agents could tell: the variables they inherit and those that a config gives or gave them.
pub fn redactor(config: &Config, given: &[(String, String)]) -> Result<Arc<Redactor>, String> {
    let mut variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    variables.extend(given.iter().cloned());
    let RedactionConfig { enabled, names, prefixes } = config.redaction.clone();
    Redactor::new(&Wanted { variables, names, prefixes, own_only: !enabled }).map(Arc::new)
}

/// The redactor of a daemon, shared by everything that writes or shows, and how many secrets it took out. Without a
/// redactor nothing is changed.
#[derive(Debug, Default)]
pub struct Redaction {
    redactor: RwLock<Option<Arc<Redactor>>>,
    taken: AtomicU64,
}

impl Redaction {
    /// From here on this redactor takes secrets out, in place of any before it.
    pub fn begin(&self, redactor: Arc<Redactor>) {
        *self.redactor.write() = Some(redactor);
    }

    pub fn redactor(&self) -> Option<Arc<Redactor>> {
        self.redactor.read().clone()
    }

    /// Secrets taken out so far.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    pub fn count(&self, secrets: u64) {
        self.taken.fetch_add(secrets, Ordering::Relaxed);
    }

    pub fn text(&self, text: String, scope: RedactionScope) -> String {
        match self.redactor().and_then(|redactor| redactor.redacted(&text, scope)) {
            Some((clean, count)) => {
                self.count(count);
                clean
            }
            None => text,
        }
    }

    /// An event of another log than a session's, without its secrets.
    pub fn event<T: Serialize + DeserializeOwned>(
        &self,
        event: T,
        scope: RedactionScope,
    ) -> Result<T, String> {
        let Some(redactor) = self.redactor() else { return Ok(event) };
        let body = serde_json::to_vec(&event).map_err(|error| error.to_string())?;
        if !redactor.suspects(&body) {
            return Ok(event);
        }
        let mut value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        let count = redactor.redact(&mut value, scope);
        if count == 0 {
            return Ok(event);
        }
        self.count(count);
        serde_json::from_value(value).map_err(|error| error.to_string())
    }
}

/// Takes the secrets out of an event before it becomes part of the log; answers how many there were.
pub fn redact(redactor: &Redactor, envelope: &mut Envelope) -> Result<u64, String> {
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
fn scope(event: &Event) -> RedactionScope {
    match event {
        Event::Turn(
            TurnEvent::Finished { .. } | TurnEvent::Interrupted { .. } | TurnEvent::Waiting { .. },
        )
        | Event::Transcript(_)
        // It quotes what an agent wrote.
        | Event::Review(ReviewEvent::Drafted(_))
        | Event::Run(_)
        | Event::Gate(_) => RedactionScope::All,
        Event::Turn(
            TurnEvent::Started { .. } | TurnEvent::CancelRequested { .. } | TurnEvent::Continued { .. },
        )
        | Event::Change(_)
        | Event::Inbox(_)
        | Event::Context(_)
        | Event::Control(_)
        | Event::Writer(_)
        | Event::Review(
            ReviewEvent::Edited { .. }
            | ReviewEvent::Removed { .. }
            | ReviewEvent::Sent { .. }
            | ReviewEvent::Viewed { .. },
        ) => RedactionScope::OwnTokens,
    }
}

/// What a task is asked to do reaches its agent from the log and stays as it was said; names of branches and folders are
/// used as they are.
#[must_use]
pub fn of_task(event: &TaskEvent) -> RedactionScope {
    match event {
        TaskEvent::Interrupted { .. }
        | TaskEvent::Paused { .. }
        | TaskEvent::EndAsked { .. }
        | TaskEvent::Reported { .. }
        | TaskEvent::CaptureFailed { .. }
        | TaskEvent::Ended { .. }
        | TaskEvent::Remedied { .. } => RedactionScope::All,
        TaskEvent::Created(_)
        | TaskEvent::Edited { .. }
        | TaskEvent::Deployed { .. }
        | TaskEvent::TreeMade { .. }
        | TaskEvent::BaseConflict { .. }
        | TaskEvent::BranchCounted { .. }
        | TaskEvent::Started {}
        | TaskEvent::RunSeen { .. }
        | TaskEvent::Resumed { .. }
        | TaskEvent::Captured { .. }
        | TaskEvent::Retried {}
        | TaskEvent::Merged { .. }
        | TaskEvent::TreeRemoved {}
        | TaskEvent::Discarded { .. }
        | TaskEvent::Adopted { .. } => RedactionScope::OwnTokens,
    }
}

/// A person's message reaches the agent as it was written; a message of an agent is read by others.
#[must_use]
pub fn of_mail(from: &MailFrom) -> RedactionScope {
    if from.operator { RedactionScope::OwnTokens } else { RedactionScope::All }
}

/// The same of a flow: what its agents and checks say is redacted, what its people say is not.
#[must_use]
pub fn of_flow(event: &FlowEvent) -> RedactionScope {
    match event {
        FlowEvent::Asked { .. }
        | FlowEvent::Concluded { .. }
        | FlowEvent::CheckEnded { .. }
        | FlowEvent::Moved { .. }
        | FlowEvent::GateOpened { .. }
        | FlowEvent::ContinuationWithdrawn { .. }
        | FlowEvent::SessionReleased { .. }
        | FlowEvent::Ended { .. }
        | FlowEvent::Hooked { .. } => RedactionScope::All,
        FlowEvent::Created(_)
        | FlowEvent::Leased { .. }
        | FlowEvent::TreeMade { .. }
        | FlowEvent::Invoked { .. }
        | FlowEvent::CheckBegun { .. }
        | FlowEvent::Retried { .. }
        | FlowEvent::PhaseEnded { .. }
        | FlowEvent::GateAnswered { .. }
        | FlowEvent::SessionPreserved { .. }
        | FlowEvent::Settled { .. }
        | FlowEvent::Resumed {} => RedactionScope::OwnTokens,
    }
}

/// Text that people wrote is kept, except for Lanyard's own tokens.
#[must_use]
pub fn by(actor: &Actor) -> RedactionScope {
    match actor.kind {
        ActorKind::Operator | ActorKind::Observer => RedactionScope::OwnTokens,
        ActorKind::Agent | ActorKind::System => RedactionScope::All,
    }
}

#[cfg(test)]
mod tests {
    use lanyard_core::flow::CheckResult;
    use lanyard_core::task::TaskResult;

    use super::*;

    fn redaction() -> Redaction {
        let redaction = Redaction::default();
        redaction.begin(Arc::new(Redactor::new(&Wanted::default()).unwrap()));
        redaction
    }

    /// FND-K8: what a check of a flow wrote, and what a task's agent reported.
    #[test]
    fn fnd_k8_events_of_flows_and_tasks_are_written_without_secrets() {
        let (redaction, key) = (redaction(), format!("ghp_{}", "a1B2".repeat(9)));
        let result = CheckResult {
            name: "deploy".to_owned(),
            passed: false,
            exit_code: Some(1),
            timed_out: false,
            error: None,
            output: format!("curl: 401 with {key}\nsee 0a1b2c3d"),
            truncated: false,
            ms: 7,
        };
        let ended = FlowEvent::CheckEnded { result };
        let scope = of_flow(&ended);
        let FlowEvent::CheckEnded { result } = redaction.event(ended, scope).unwrap() else { panic!() };
        assert_eq!(result.output, "curl: 401 with [redacted:github-token]\nsee 0a1b2c3d");
        assert_eq!((result.name.as_str(), result.ms), ("deploy", 7));
        let begun = FlowEvent::CheckBegun { place: 0, run: format!("deploy --key {key}") };
        assert_eq!(
            redaction.event(begun.clone(), of_flow(&begun)).unwrap(),
            begun,
            "it is run as it is written"
        );
        let result =
            TaskResult { summary: key.clone(), evidence: Some("none".to_owned()), by_turn_end: false };
        let reported = TaskEvent::Reported { result };
        let scope = of_task(&reported);
        let TaskEvent::Reported { result } = redaction.event(reported, scope).unwrap() else { panic!() };
        assert_eq!(
            (result.summary.as_str(), result.evidence.as_deref()),
            ("[redacted:github-token]", Some("none"))
        );
        assert_eq!(redaction.taken(), 2);
    }

    #[test]
    fn without_a_redactor_nothing_changes() {
        let key = format!("ghp_{}", "a1B2".repeat(9));
        assert_eq!(Redaction::default().text(key.clone(), RedactionScope::All), key);
    }
}
