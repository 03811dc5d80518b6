//! What a screen shows of a session. Read leniently from what the API gives (a listing's row or the whole session), so
//! that a field that is missing or new costs that field and no more.

use lanyard_core::session::{AgentAbility, AgentLack, Gate, GateStatus, lack_of};
use lanyard_core::{SessionId, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use crate::render::text::one_line;
use crate::render::time::span;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Face {
    pub(crate) id: SessionId,
    pub(crate) parent: Option<SessionId>,
    pub(crate) title: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) state: String,
    pub(crate) cause: Option<String>,
    pub(crate) status: String,
    pub(crate) archived: bool,
    /// The operator's word for it.
    pub(crate) operator_state: String,
    /// The end of its last turn waits for an operator to see it.
    pub(crate) unread: bool,
    /// Where its last turn ended, in the log.
    pub(crate) turn_end: Option<u64>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) active_at: Option<Timestamp>,
    pub(crate) last_seq: u64,
    pub(crate) turn: Option<Turn>,
    /// When the turn that runs began, where only that is told.
    pub(crate) turn_at: Option<Timestamp>,
    pub(crate) stop_level: Option<u64>,
    /// Guidance that waits.
    pub(crate) notes: u64,
    /// Open approvals.
    pub(crate) gates: u64,
    pub(crate) questions: Vec<Gate>,
    pub(crate) last_tool: Option<FaceTool>,
    pub(crate) queued: u64,
    pub(crate) paused: bool,
    pub(crate) writer: Option<Writer>,
    pub(crate) watchers: u64,
    /// Reasons for attention, in words.
    pub(crate) attention: Vec<String>,
    /// What cannot be asked of its agent, where the whole session was read.
    pub(crate) lacks: Vec<AgentLack>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) id: String,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) cancelling: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FaceTool {
    pub(crate) name: String,
    pub(crate) at: Option<Timestamp>,
}

/// Who holds the right to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Writer {
    pub(crate) connection: String,
    pub(crate) name: String,
    pub(crate) epoch: u64,
    /// Away ones may be followed by anybody.
    pub(crate) present: bool,
    pub(crate) asked: Option<FaceTakeover>,
}

/// Another client wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FaceTakeover {
    pub(crate) connection: String,
    pub(crate) name: String,
    pub(crate) until: Option<Timestamp>,
}

impl Face {
    /// Nothing when it has no id that can be read.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let id = value["id"].as_str()?.parse().ok()?;
        let questions: Vec<Gate> = list(&value["gates"])
            .filter_map(|gate| Gate::deserialize(gate).ok())
            .filter(|gate| gate.status == GateStatus::Open)
            .collect();
        // A listing tells in numbers what the whole session tells in full.
        let pending = &value["pending"];
        Some(Self {
            id,
            parent: value["parent"].as_str().and_then(|parent| parent.parse().ok()),
            title: words(&value["title"]),
            agent: words(&value["agent"]),
            state: words(&value["state"]).unwrap_or_else(|| "?".to_owned()),
            cause: words(&value["cause"]),
            status: words(&value["status"]).unwrap_or_default(),
            archived: value["archived"].as_bool().unwrap_or(false),
            operator_state: words(&value["operator_state"]).unwrap_or_default(),
            unread: value["unread"].as_bool().unwrap_or(false),
            turn_end: value["last_turn"]["seq"].as_u64(),
            since: time(&value["since"]),
            active_at: time(&value["last_activity_at"]),
            last_seq: value["last_seq"].as_u64().unwrap_or(0),
            turn: Turn::read(&value["active_turn"]),
            turn_at: time(&pending["turn_at"]),
            stop_level: value["stop"]["level"]
                .as_u64()
                .or_else(|| pending["stop_level"].as_u64().filter(|level| *level > 0)),
            notes: notes(value),
            gates: pending["gates"].as_u64().unwrap_or_else(|| length(&questions)),
            questions,
            last_tool: FaceTool::read(&value["last_tool_call"]),
            queued: pending["inbox"]
                .as_u64()
                .unwrap_or_else(|| value["inbox"].as_array().map_or(0, |inbox| length(inbox))),
            paused: value["inbox_paused"].is_string() || pending["paused"].as_bool() == Some(true),
            writer: Writer::read(&value["writer"]),
            watchers: value["active_connections"].as_u64().unwrap_or(0),
            attention: list(&value["attention"]).filter_map(words).collect(),
            lacks: list(&value["lacks"]).filter_map(|lack| AgentLack::deserialize(lack).ok()).collect(),
        })
    }

    /// The reason why its agent cannot be asked for one thing, as one line.
    pub(crate) fn lack(&self, what: AgentAbility) -> Option<String> {
        lack_of(&self.lacks, what).map(|lack| one_line(&lack.to_string()))
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.state.as_str(), "completed" | "failed" | "stopped")
    }

    /// Whether its agent works and asks nothing.
    pub(crate) fn is_working(&self) -> bool {
        match self.operator_state.as_str() {
            // A daemon that does not know the word.
            "" => self.state == "executing",
            word => word == "working",
        }
    }

    /// The operator's word with what qualifies it, as in listings: `failed (crash)`, `working, stopping`.
    pub(crate) fn state_words(&self) -> String {
        let word = Some(self.operator_state.replace('_', " ")).filter(|word| !word.is_empty());
        let mut text = word.unwrap_or_else(|| self.state.clone());
        if self.is_ended() && text != self.state {
            text = format!("{text} ({})", self.state);
        }
        if let Some(cause) = &self.cause {
            text = format!("{text} ({cause})");
        }
        if self.status == "stopping" {
            text.push_str(", stopping");
        }
        if self.archived {
            text.push_str(", archived");
        }
        text
    }

    /// What it goes by: its title, or its id.
    pub(crate) fn name(&self) -> String {
        self.title.clone().unwrap_or_else(|| self.id.to_string())
    }
}

impl Turn {
    fn read(value: &Value) -> Option<Self> {
        let id = value["id"].as_str().or_else(|| value["turn"].as_str())?;
        Some(Self {
            id: id.to_owned(),
            started_at: time(&value["started_at"]),
            cancelling: value["cancel_requested"].as_bool().unwrap_or(false),
        })
    }
}

impl FaceTool {
    fn read(value: &Value) -> Option<Self> {
        Some(Self { name: words(&value["tool"])?, at: time(&value["at"]) })
    }
}

impl Writer {
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let connection = value["connection"].as_str()?.to_owned();
        let asked = &value["asked"];
        Some(Self {
            connection,
            name: who(value),
            epoch: value["epoch"].as_u64().unwrap_or(0),
            present: value["present"].as_bool().unwrap_or(true),
            asked: asked["connection"].as_str().map(|connection| FaceTakeover {
                connection: connection.to_owned(),
                name: who(asked),
                until: time(&asked["until"]),
            }),
        })
    }
}

/// A person at a client: `operator (web)`.
pub(crate) fn who(value: &Value) -> String {
    let name = words(&value["actor"]["name"]).or_else(|| words(&value["actor"]));
    let name = name.unwrap_or_else(|| "unknown".to_owned());
    match words(&value["client"]) {
        Some(client) => format!("{name} ({client})"),
        None => name,
    }
}

/// How long something lasts, in whole seconds.
pub(crate) fn lasting(ms: u64) -> String {
    if ms < 1_000 { "0s".to_owned() } else { span(ms) }
}

pub(crate) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str().and_then(|text| text.parse().ok())
}

fn words(value: &Value) -> Option<String> {
    value.as_str().map(one_line).filter(|text| !text.is_empty())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn length<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}

/// Guidance that has not been delivered.
fn notes(value: &Value) -> u64 {
    let Some(notes) = value["guidance"].as_array() else {
        return value["pending"]["guidance"].as_u64().unwrap_or(0);
    };
    let waits = |note: &&Value| note["status"].as_str().is_none_or(|status| status == "pending");
    u64::try_from(notes.iter().filter(waits).count()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tui::testing::SESSION;

    #[test]
    fn a_session_with_nothing_but_an_id_can_be_shown() {
        let face = Face::read(&json!({"id": SESSION, "state": 7, "attention": "x", "gates": {}})).unwrap();
        assert_eq!((face.state.as_str(), face.gates, face.attention.len()), ("?", 0, 0));
        assert_eq!(Face::read(&json!({"id": "garbage"})), None);
        assert_eq!(Face::read(&json!(null)), None);
    }

    #[test]
    fn text_of_others_is_made_harmless() {
        let face = Face::read(&json!({"id": SESSION, "title": "a\u{1b}[2J\nb"})).unwrap();
        assert_eq!(face.name(), "a\u{FFFD}[2J b");
    }
}
