//! The rules a session's agent works under: level, languages, whether the agent has its instructions, and how often it
//! broke a rule. The text of the instructions is not known here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::{Actor, ActorKind};
use crate::session::decide::optional_name;
use crate::session::event::ControlEvent;
use crate::session::record::{Session, is_default};
use crate::session::refusal::Refusal;
use crate::time::Timestamp;

/// The languages an agent uses.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Language {
    /// The language of its messages to people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communication: Option<String>,
    /// The language of the documents it writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Governance {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub language: Language,
    /// The agent has its instructions. False at birth, and after a compaction until the next prompt arrives.
    pub injected: bool,
    /// Calls and commands of the agent that were refused.
    #[serde(skip_serializing_if = "is_default")]
    pub violations: u64,
}

impl Default for Governance {
    /// Of a record from before this was written: its agent was given its instructions with the first prompt.
    fn default() -> Self {
        Self { level: None, language: Language::default(), injected: true, violations: 0 }
    }
}

/// The first tool a session's agent used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FirstTool {
    pub name: String,
    pub at: Timestamp,
}

/// The rules of a session as the API shows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GovernanceView {
    /// Governance level of the agent, by the name its maker gave.
    pub governance_level: Option<String>,
    pub language: Language,
    /// Whether the agent has its instructions. False until the first prompt arrived, and after a compaction until the
    /// next one did.
    pub governance_injected: bool,
    /// Calls and commands of the agent that were refused.
    pub violation_count: u64,
    /// The first tool its agent used.
    pub first_tool: Option<FirstTool>,
}

impl GovernanceView {
    #[must_use]
    pub fn of(session: &Session) -> Self {
        let Governance { level, language, injected, violations } = session.governance.clone();
        Self {
            governance_level: level,
            language,
            governance_injected: injected,
            violation_count: violations,
            first_tool: session.first_tool.clone(),
        }
    }
}

impl Language {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        optional_name("language.communication", self.communication.as_deref())?;
        optional_name("language.documents", self.documents.as_deref())
    }

    /// Each language that is set here, else that of `above`.
    pub(super) fn under(&self, above: &Self) -> Self {
        let Self { communication, documents } = self.clone();
        Self {
            communication: communication.or_else(|| above.communication.clone()),
            documents: documents.or_else(|| above.documents.clone()),
        }
    }
}

impl Governance {
    /// Of a session that is being born.
    pub(super) fn new(level: Option<String>, language: Language) -> Self {
        Self { level, language, injected: false, violations: 0 }
    }

    /// The level and the languages as sentences for the agent; nothing where none is set.
    #[must_use]
    pub fn sentences(&self) -> Option<String> {
        let level = self.level.as_ref().map(|level| format!("Governance level: {level}."));
        let spoken = self.language.communication.as_ref().map(|name| format!("Write to people in {name}."));
        let written = self.language.documents.as_ref().map(|name| format!("Write documents in {name}."));
        let said: Vec<String> = [level, spoken, written].into_iter().flatten().collect();
        (!said.is_empty()).then(|| said.join(" "))
    }

    /// A refused call of an agent under a stop, or a refused command of the agent, is a violation. A person's are not.
    pub(super) fn saw(&mut self, event: &ControlEvent, by: &Actor) {
        let violated = match event {
            ControlEvent::StopApplied { refused, .. } => *refused,
            ControlEvent::CommandRefused { .. } => by.kind == ActorKind::Agent,
            ControlEvent::StopRequested { .. }
            | ControlEvent::StopComplied { .. }
            | ControlEvent::StopSettled {}
            | ControlEvent::StopRaised { .. }
            | ControlEvent::EndBlocked { .. }
            | ControlEvent::StopWithdrawn { .. }
            | ControlEvent::GuidanceQueued { .. }
            | ControlEvent::GuidanceDelivered { .. }
            | ControlEvent::GuidanceReturned { .. }
            | ControlEvent::GuidanceSettled { .. }
            | ControlEvent::NoticeSent { .. }
            | ControlEvent::Introduced { .. }
            | ControlEvent::HandedOff { .. }
            | ControlEvent::SignalUnexpected { .. } => false,
        };
        self.violations = self.violations.saturating_add(u64::from(violated));
    }
}
