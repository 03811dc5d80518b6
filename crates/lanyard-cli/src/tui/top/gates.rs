//! What flows ask, on the screen of all sessions: a few rows above them, and the dialogue that answers one.

use lanyard_api::types::{FlowAnswer, FlowGateEntry, GateList};
use lanyard_client::Route;
use lanyard_core::{FlowId, GateId, Timestamp};
use serde_json::{Value, json};

use super::{Model, Over, SETTLE_MS};
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

/// Gates with a row, in the order they came. One that is settled keeps its place until the person goes on, so that no
/// other slides under a key that is on its way.
#[derive(Debug, Default)]
pub(super) struct Gates {
    held: Vec<Held>,
    /// Ticks until they are asked for again.
    rest: u32,
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) entry: FlowGateEntry,
    pub(super) is_settled: bool,
}

/// A gate that is being answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answering {
    pub(super) flow: FlowId,
    pub(super) title: String,
    pub(super) dialogue: Dialogue,
    pub(super) input: Input,
    /// It takes no more answers, and why.
    pub(super) settled: Option<String>,
    /// Keys before this time were meant for what was here before.
    ready_at: Timestamp,
}

impl Answering {
    fn of(entry: &FlowGateEntry, now: Timestamp) -> Self {
        let title = name(entry);
        let dialogue = Dialogue::new(entry.gate.clone());
        let (input, settled, ready_at) = (Input::default(), None, now.plus_millis(SETTLE_MS));
        Self { flow: entry.flow, title, dialogue, input, settled, ready_at }
    }

    /// Whether it was there long enough for a key to be meant for it.
    pub(super) fn is_ready(&self, now: Timestamp) -> bool {
        now >= self.ready_at
    }

    /// Whether a key or a paste goes into the answer.
    pub(super) fn takes(&self, now: Timestamp) -> bool {
        self.settled.is_none() && self.is_ready(now)
    }

    fn settle(&mut self, why: &str, now: Timestamp) {
        self.settled = Some(why.to_owned());
        self.input = Input::default();
        self.ready_at = now.plus_millis(SETTLE_MS);
    }
}

/// `Release 1.0, Add the API`.
pub(super) fn name(entry: &FlowGateEntry) -> String {
    let phase = entry.phase.as_deref().map(|phase| format!(", {}", title(phase)));
    format!("{}{}", one_line(&entry.title), phase.unwrap_or_default())
}

impl Gates {
    /// How many wait for an answer.
    pub(super) fn len(&self) -> usize {
        self.open().count()
    }

    fn open(&self) -> impl Iterator<Item = &FlowGateEntry> {
        self.held.iter().filter(|held| !held.is_settled).map(|held| &held.entry)
    }

    pub(super) fn shown(&self) -> impl Iterator<Item = &Held> {
        self.held.iter().take(SHOWN_MAX)
    }

    /// How many wait that have no row of their own.
    pub(super) fn hidden(&self) -> usize {
        self.held.len().saturating_sub(SHOWN_MAX)
    }

    /// Rows they take on the screen.
    pub(super) fn rows(&self) -> usize {
        self.held.len().min(SHOWN_MAX) + usize::from(self.hidden() > 0)
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

    /// What flows ask now: those that are gone stay as settled ones, new ones come last.
    fn came(&mut self, mut entries: Vec<FlowGateEntry>) {
        entries.sort_by_key(|entry| entry.gate.opened_at);
        for held in &mut self.held {
            match entries.iter().position(|entry| entry.gate.id == held.entry.gate.id) {
                Some(at) => held.entry = entries.remove(at),
                None => held.is_settled = true,
            }
        }
        self.held.extend(entries.into_iter().map(|entry| Held { entry, is_settled: false }));
    }

    fn settle(&mut self, gate: GateId) {
        for held in self.held.iter_mut().filter(|held| held.entry.gate.id == gate) {
            held.is_settled = true;
        }
    }

    /// The person has seen what was settled.
    pub(super) fn move_on(&mut self) {
        self.held.retain(|held| !held.is_settled);
    }

    fn find(&self, gate: GateId) -> Option<&FlowGateEntry> {
        self.held.iter().map(|held| &held.entry).find(|entry| entry.gate.id == gate)
    }

    /// The one after this gate, round and round; the first without one.
    fn after(&self, gate: Option<GateId>) -> Option<&FlowGateEntry> {
        let at = gate.and_then(|gate| self.held.iter().position(|held| held.entry.gate.id == gate));
        let from = at.map_or(0, |at| at + 1);
        let (before, behind) = self.held.split_at(from.min(self.held.len()));
        behind.iter().chain(before).find(|held| !held.is_settled).map(|held| &held.entry)
    }
}

impl Model {
    /// What flows ask now. A gate that is being answered may have changed, or may have been answered elsewhere; its
    /// dialogue stays, so that what is typed goes nowhere else.
    pub(super) fn gates_came(&mut self, value: Value) {
        let Ok(list) = serde_json::from_value::<GateList>(value) else { return };
        let open: Vec<GateId> = list.flows.iter().map(|entry| entry.gate.id).collect();
        self.gates.came(list.flows);
        let Over::Answer(answering) = &mut self.over else { return };
        let gate = answering.dialogue.gate();
        if answering.settled.is_some() {
            return;
        }
        if !open.contains(&gate.id) {
            answering.settle("no longer open", self.now);
            return;
        }
        let Some(found) = self.gates.find(gate.id).map(|entry| entry.gate.clone()) else { return };
        if found == *gate {
            return;
        }
        answering.ready_at = self.now.plus_millis(SETTLE_MS);
        if answering.dialogue.renew(found) {
            self.warn("what you chose is no longer offered");
        }
    }

    /// Opens the dialogue with the gate that waits longest, or with the one after this.
    pub(super) fn open_gate(&mut self, after: Option<GateId>) {
        let now = self.now;
        let next = self.gates.after(after).map(|entry| Answering::of(entry, now));
        self.gates.move_on();
        match next {
            Some(answering) => self.over = Over::Answer(Box::new(answering)),
            None => self.say("no flow waits for approval"),
        }
    }

    pub(super) fn answer_key(&mut self, mut answering: Box<Answering>, key: Key) -> Vec<Do> {
        if matches!(key, Key::Esc | Key::Ctrl('c')) {
            self.gates.move_on();
            return Vec::new();
        }
        if key == Key::Tab {
            self.open_gate(Some(answering.dialogue.gate().id));
            return Vec::new();
        }
        if !answering.takes(self.now) {
            let over = key == Key::Enter && answering.settled.is_some() && answering.is_ready(self.now);
            if over {
                self.gates.move_on();
            } else {
                self.over = Over::Answer(answering);
            }
            return Vec::new();
        }
        if key != Key::Enter {
            type_key(&mut answering.input, key);
            self.over = Over::Answer(answering);
            return Vec::new();
        }
        let mut orders = Vec::new();
        match answering.dialogue.line(answering.input.text()) {
            // Nothing is answered, and what was typed can be mended.
            Next::Again(why) => self.warn(why),
            Next::Guidance => {
                answering.input = Input::default();
                self.notice = None;
            }
            Next::Answer(answer) => {
                orders.push(order(&answering, &answer));
                answering.settle("answer sent", self.now);
            }
        }
        self.over = Over::Answer(answering);
        orders
    }

    pub(super) fn answered(&mut self, gate: GateId) {
        let name = self.gates.find(gate).map_or_else(|| gate.to_string(), name);
        self.gates.settle(gate);
        self.gates.rest = 0;
        if let Some(answering) = self.answering(gate) {
            answering.settled = Some("answered".to_owned());
        }
        self.say(format!("{name}: answered"));
    }

    /// The answer did not count. The gate can be answered again while it is open.
    pub(super) fn not_answered(&mut self, asked: Asked) {
        let Asked::Answer(gate) = asked else { return };
        self.gates.rest = 0;
        let now = self.now;
        if let Some(answering) = self.answering(gate) {
            answering.settled = None;
            answering.ready_at = now.plus_millis(SETTLE_MS);
        }
    }

    fn answering(&mut self, gate: GateId) -> Option<&mut Answering> {
        match &mut self.over {
            Over::Answer(answering) if answering.dialogue.gate().id == gate => Some(answering),
            Over::Nothing
            | Over::Help
            | Over::Confirm(..)
            | Over::Guide(..)
            | Over::Filter(_)
            | Over::Answer(_) => None,
        }
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
