//! A session in a row: the words of each column, for the screen and for `lanyard top --once`.

use lanyard_core::Timestamp;

use crate::render::text::count;
use crate::tui::directory::{Need, need, since};
use crate::tui::face::{Face, lasting};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words {
    /// `!` needs an operator, `*` runs, `-` is over.
    pub(crate) mark: &'static str,
    pub(crate) state: String,
    pub(crate) lasting: String,
    pub(crate) agent: String,
    pub(crate) title: String,
    pub(crate) tool: String,
    /// What waits, and who is there.
    pub(crate) notes: String,
}

pub(crate) fn words(face: &Face, now: Timestamp) -> Words {
    Words {
        mark: match need(face) {
            Need::Attention => "!",
            Need::Running => "*",
            Need::Resting => " ",
            Need::Over => "-",
        },
        state: face.state_words(),
        lasting: since(face).map(|since| lasting(now.millis_since(since))).unwrap_or_default(),
        agent: face.agent.clone().unwrap_or_default(),
        title: face.name(),
        tool: face.last_tool.as_ref().map(|tool| tool.name.clone()).unwrap_or_default(),
        notes: notes(face),
    }
}

fn notes(face: &Face) -> String {
    let mut parts = Vec::new();
    if face.gates > 0 {
        parts.push(format!("approvals {}", face.gates));
    }
    if let Some(level) = face.stop_level {
        parts.push(format!("stop {level}"));
    }
    parts.extend(face.attention.iter().filter_map(|reason| match reason.as_str() {
        "suspected_orphan" => Some("silent".to_owned()),
        // Told by numbers beside this, or by the state.
        "gate" | "inbox_paused" | "guidance" | "stopping" | "failed" | "turn_failed" | "turn_finished" => {
            None
        }
        other => Some(other.replace('_', " ")),
    }));
    if face.notes > 0 {
        parts.push(count(face.notes, "note"));
    }
    if face.queued > 0 {
        let paused = if face.paused { " waiting" } else { "" };
        parts.push(format!("{} queued{paused}", face.queued));
    }
    if let Some(writer) = &face.writer {
        let asked = if writer.asked.is_some() { ", asked for" } else { "" };
        parts.push(format!("writer {}{asked}", writer.name));
    }
    if face.watchers > 0 {
        parts.push(format!("{} here", face.watchers));
    }
    parts.join(", ")
}
