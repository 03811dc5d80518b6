//! What flows ask, on the screen of all sessions: a few rows above them, and the dialogue that answers one.

use lanyard_core::{FlowId, GateId};
use lanyard_daemon::api::types::{FlowAnswer, FlowGateEntry, GateList};
use serde_json::{Value, json};

use super::{Model, Over};
use crate::client::Route;
use crate::dialogue::{Dialogue, Next};
use crate::render::flow::title;
use crate::render::text::one_line;
use crate::tui::attach::type_key;
use crate::tui::input::Input;
use crate::tui::key::Key;
use crate::tui::message::{Asked, Call, Do};

/// Gates that are shown; the others are counted.
const SHOWN_MAX: usize = 3;
/// Ticks between two looks at what flows ask.
const LOOK_TICKS: u32 = 8;

/// Open gates, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Gates {
    entries: Vec<FlowGateEntry>,
    /// Ticks until they are asked for again.
    rest: u32,
}

/// A gate that is being answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answering {
    pub(super) flow: FlowId,
    pub(super) title: String,
    pub(super) dialogue: Dialogue,
    pub(super) input: Input,
}

impl Answering {
    fn of(entry: &FlowGateEntry) -> Self {
        let title = name(entry);
        let dialogue = Dialogue::new(entry.gate.clone());
        Self { flow: entry.flow, title, dialogue, input: Input::default() }
    }
}

/// `Release 1.0, Add the API`.
pub(super) fn name(entry: &FlowGateEntry) -> String {
    let phase = entry.phase.as_deref().map(|phase| format!(", {}", title(phase)));
    format!("{}{}", one_line(&entry.title), phase.unwrap_or_default())
}

impl Gates {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn shown(&self) -> impl Iterator<Item = &FlowGateEntry> {
        self.entries.iter().take(SHOWN_MAX)
    }

    /// How many wait that have no row of their own.
    pub(super) fn hidden(&self) -> usize {
        self.entries.len().saturating_sub(SHOWN_MAX)
    }

    /// Rows they take on the screen.
    pub(super) fn rows(&self) -> usize {
        self.entries.len().min(SHOWN_MAX) + usize::from(self.hidden() > 0)
    }

    /// Asks for them, now and then.
    pub(super) fn tick(&mut self) -> Option<Do> {
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        self.rest = LOOK_TICKS;
        Some(Do::Call(Asked::Gates, Call::get(Route::to(&["gates"]))))
    }

    fn find(&self, gate: GateId) -> Option<&FlowGateEntry> {
        self.entries.iter().find(|entry| entry.gate.id == gate)
    }

    /// The one after this gate, round and round; the first when it is gone.
    fn after(&self, gate: Option<GateId>) -> Option<&FlowGateEntry> {
        let at = gate.and_then(|gate| self.entries.iter().position(|entry| entry.gate.id == gate));
        self.entries.get(at.map_or(0, |at| (at + 1) % self.entries.len()))
    }
}

impl Model {
    /// What flows ask now. A gate that is being answered may have changed, or may have been answered elsewhere.
    pub(super) fn gates_came(&mut self, value: Value) {
        let Ok(list) = serde_json::from_value::<GateList>(value) else { return };
        self.gates.entries = list.flows;
        self.gates.entries.sort_by_key(|entry| entry.gate.opened_at);
        let Over::Answer(answering) = &mut self.over else { return };
        let gate = self.gates.find(answering.dialogue.gate().id).map(|entry| entry.gate.clone());
        let Some(gate) = gate else {
            let said = format!("{}: no longer asked", answering.title);
            self.over = Over::Nothing;
            return self.say(said);
        };
        if answering.dialogue.renew(gate) {
            self.warn("what you chose is no longer offered");
        }
    }

    /// Opens the dialogue with the gate that waits longest, or with the one after this.
    pub(super) fn open_gate(&mut self, after: Option<GateId>) {
        match self.gates.after(after) {
            Some(entry) => self.over = Over::Answer(Box::new(Answering::of(entry))),
            None => self.say("no flow asks anything"),
        }
    }

    pub(super) fn answer_key(&mut self, mut answering: Box<Answering>, key: Key) -> Vec<Do> {
        if matches!(key, Key::Esc | Key::Ctrl('c')) {
            return Vec::new();
        }
        if key == Key::Tab {
            self.open_gate(Some(answering.dialogue.gate().id));
            return Vec::new();
        }
        if key != Key::Enter {
            type_key(&mut answering.input, key);
            self.over = Over::Answer(answering);
            return Vec::new();
        }
        match answering.dialogue.line(answering.input.text()) {
            // Nothing is answered, and what was typed can be mended (S2-06).
            Next::Again(why) => self.warn(why),
            Next::Guidance => {
                answering.input = Input::default();
                self.notice = None;
            }
            Next::Answer(answer) => return vec![order(&answering, &answer)],
        }
        self.over = Over::Answer(answering);
        Vec::new()
    }

    pub(super) fn answered(&mut self, gate: GateId) {
        let name = self.gates.find(gate).map_or_else(|| gate.to_string(), name);
        self.gates.entries.retain(|entry| entry.gate.id != gate);
        self.gates.rest = 0;
        self.say(format!("{name}: answered"));
    }
}

fn order(answering: &Answering, answer: &FlowAnswer) -> Do {
    let gate = answering.dialogue.gate().id;
    let route = Route::to(&["flows", &answering.flow.to_string(), "gates", &gate.to_string()]);
    let mut body = json!({"choice": answer.choice});
    if let Some(guidance) = &answer.guidance {
        body["guidance"] = json!(guidance);
    }
    Do::Call(Asked::Answer(gate), Call::post(route, body))
}
