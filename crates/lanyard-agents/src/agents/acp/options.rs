//! Models, modes, effort levels and commands of an ACP agent: config options, session modes, and the session models of
//! older versions of the protocol.

use lanyard_core::session::{AgentOffer, ChoiceKind, OfferItem, OfferMenu, OfferedCommand};
use serde_json::{Value, json};

use super::{Acp, rpc};
use crate::agents::driver::{Action, Actions, Begin};
use crate::agents::tuning::{Tuning, TuningStep};

/// What one option is about, what it offers and what it is set to.
type Found = (ChoiceKind, OfferMenu, Option<String>);

impl Acp {
    /// Reads what a conversation offers from the answer that opened it.
    pub(super) fn learn_options(&mut self, answer: &Value, out: &mut Actions) {
        // The current values of a conversation that goes on may be what was chosen for it before.
        let keeps = matches!(self.setting.begin, Begin::Resume { .. });
        self.take_options(options_in(answer), keeps, out);
        let model = self.setting.model.clone();
        if model.as_deref().is_some_and(|model| self.tuning.offer().models.has(model)) {
            self.tuning.offers(|offer| offer.models.default = model, out);
        }
    }

    fn take_options(&mut self, found: Vec<Found>, keeps_defaults: bool, out: &mut Actions) {
        let current: Vec<(ChoiceKind, Option<String>)> =
            found.iter().map(|(kind, _, current)| (*kind, current.clone())).collect();
        self.tuning.offers(
            |offer| {
                for (kind, mut menu, current) in found {
                    let known = offer.menu(kind).default.clone().filter(|known| menu.has(known));
                    menu.default = known.filter(|_| keeps_defaults).or(current);
                    *offer.menu_mut(kind) = menu;
                }
            },
            out,
        );
        for (kind, current) in current {
            if current.is_some() {
                self.tuning.is_in_force(kind, current, out);
            }
        }
    }

    /// The mode of the agent's settings is in force: it is the default under the session's own.
    pub(super) fn config_mode_set(&mut self, out: &mut Actions) {
        let mode = self.setting.mode.clone();
        self.tuning.offers(|offer| offer.modes.default.clone_from(&mode), out);
        self.tuning.is_in_force(ChoiceKind::Mode, mode, out);
    }

    /// An update about options; false for any other.
    pub(super) fn option_update(&mut self, kind: &str, update: &Value, out: &mut Actions) -> bool {
        match kind {
            "available_commands_update" => {
                let commands = commands_in(&update["availableCommands"]);
                self.tuning.offers(|offer| offer.commands = commands, out);
            }
            "config_option_update" => self.take_options(options_in(update), true, out),
            "current_mode_update" => {
                let mode = update["currentModeId"].as_str().map(str::to_owned);
                if mode.is_some() {
                    self.tuning.is_in_force(ChoiceKind::Mode, mode, out);
                }
            }
            _ => return false,
        }
        self.stay_guarded(out);
        true
    }

    /// A mode without approvals that the agent went to by itself is left again.
    fn stay_guarded(&mut self, out: &mut Actions) {
        if self.tuning.left_guard() {
            self.tune(out);
        }
    }

    /// Goes on with what is to be set.
    pub(super) fn tune(&mut self, out: &mut Actions) {
        let step = self.tuning.step(out);
        self.carry_on(step, out);
    }

    fn carry_on(&mut self, step: TuningStep, out: &mut Actions) {
        match step {
            TuningStep::Rest => {}
            TuningStep::Ask { id, kind, value } => {
                let line = request(&self.native, self.tuning.offer(), (&id, kind, value.as_deref()));
                out.push(Action::Send { key: id, line });
            }
            TuningStep::Failed { turn } => {
                self.turn.take_if(|running| running.id == turn);
            }
        }
    }

    /// The answer to a request to set something.
    pub(super) fn option_set(&mut self, id: &str, answer: &Value, out: &mut Actions) {
        let Some((kind, value)) = self.tuning.agreed(id) else { return };
        let found = options_in(answer);
        if found.is_empty() {
            self.tuning.is_in_force(kind, value, out);
        } else {
            self.take_options(found, true, out);
        }
        self.tune(out);
    }

    pub(super) fn option_refused(&mut self, id: &str, why: &str, out: &mut Actions) {
        if let Some(step) = self.tuning.refused(id, why, out) {
            self.carry_on(step, out);
        }
    }
}

fn request(native: &str, offer: &AgentOffer, (id, kind, value): (&str, ChoiceKind, Option<&str>)) -> String {
    match (&offer.menu(kind).option, kind) {
        (Some(option), _) => {
            let params = json!({ "sessionId": native, "configId": option, "value": value });
            rpc::request(id, "session/set_config_option", &params)
        }
        (None, ChoiceKind::Model) => {
            rpc::request(id, "session/set_model", &json!({ "sessionId": native, "modelId": value }))
        }
        (None, ChoiceKind::Mode | ChoiceKind::Effort) => {
            rpc::request(id, "session/set_mode", &json!({ "sessionId": native, "modeId": value }))
        }
    }
}

/// The first option of each kind. Modes and models of their own count where no option is about the same.
fn options_in(answer: &Value) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut add = |next: Found| {
        if found.iter().all(|(kind, ..)| *kind != next.0) && next.1.is_offered() {
            found.push(next);
        }
    };
    for option in answer["configOptions"].as_array().into_iter().flatten() {
        let (Some(kind), Some(id)) = (kind_of(option), option["id"].as_str()) else { continue };
        let items = items_in(&option["options"], "value");
        let menu = OfferMenu { items, option: Some(id.to_owned()), ..OfferMenu::default() };
        add((kind, menu, option["currentValue"].as_str().map(str::to_owned)));
    }
    let lists = [
        (ChoiceKind::Mode, &answer["modes"], ["availableModes", "id", "currentModeId"]),
        (ChoiceKind::Model, &answer["models"], ["availableModels", "modelId", "currentModelId"]),
    ];
    for (kind, list, [items, id, current]) in lists {
        let menu = OfferMenu { items: items_in(&list[items], id), ..OfferMenu::default() };
        add((kind, menu, list[current].as_str().map(str::to_owned)));
    }
    found
}

/// The kind of an option by its category, and by its id where it has none.
fn kind_of(option: &Value) -> Option<ChoiceKind> {
    let word = option["category"].as_str().or_else(|| option["id"].as_str())?;
    match word {
        "model" => Some(ChoiceKind::Model),
        "mode" => Some(ChoiceKind::Mode),
        "thought_level" | "effort" | "reasoning_effort" => Some(ChoiceKind::Effort),
        _ => None,
    }
}

/// The values of a list, those in groups too.
fn items_in(list: &Value, id: &str) -> Vec<OfferItem> {
    let mut items = Vec::new();
    for entry in list.as_array().into_iter().flatten() {
        let grouped = entry["options"].as_array().map_or(std::slice::from_ref(entry), Vec::as_slice);
        items.extend(grouped.iter().filter_map(|entry| {
            let text = |name: &str| entry[name].as_str().map(str::to_owned);
            Some(OfferItem {
                id: text(id)?,
                name: text("name"),
                about: text("description"),
                unguarded: false,
            })
        }));
    }
    items
}

fn commands_in(list: &Value) -> Vec<OfferedCommand> {
    let command = |entry: &Value| {
        let name = entry["name"].as_str()?.trim_start_matches('/').to_owned();
        let about = entry["description"].as_str().map(str::to_owned);
        let hint = entry["input"]["hint"].as_str().map(str::to_owned);
        Some(OfferedCommand { name, about, hint })
    };
    list.as_array().into_iter().flatten().filter_map(command).collect()
}

/// The state of a new driver.
pub(super) fn tuning(setting: &crate::agents::driver::Setting) -> Tuning {
    Tuning::new(setting.tuned.clone())
}
