//! Models, permission modes, effort levels and commands of Claude Code, and the requests that set them.

use lanyard_core::session::{ChoiceKind, OfferItem, OfferMenu, OfferedCommand};
use serde_json::{Value, json};

use super::{ClaudeCode, asks};
use crate::agents::driver::Actions;
use crate::agents::tuning::TuningStep;

/// Claude Code's permission modes; its answers do not list them.
const MODES: [(&str, &str); 6] = [
    ("default", "asks before actions that are not allowed"),
    ("acceptEdits", "edits files of the workspace without asking"),
    ("plan", "makes a plan and changes nothing"),
    ("auto", "lets the model judge what is safe"),
    ("dontAsk", "denies what is not allowed, without asking"),
    (BYPASS, "asks for no approvals"),
];
/// The mode that has to be allowed when the program starts.
pub(super) const BYPASS: &str = "bypassPermissions";
/// The model and the mode where none is chosen.
const DEFAULT: &str = "default";

impl ClaudeCode {
    /// Reads what the greeting's answer says. `model` and `mode` are those of the agent's settings, which the program was
    /// started with.
    pub(super) fn learn_options(&mut self, body: &Value, out: &mut Actions) {
        let listed = body["models"].as_array().map_or(&[][..], Vec::as_slice);
        let models: Vec<OfferItem> = listed.iter().filter_map(model).collect();
        let efforts = efforts(listed);
        let commands = body["commands"].as_array().map_or(&[][..], Vec::as_slice);
        let commands: Vec<OfferedCommand> = commands.iter().filter_map(command).collect();
        let told = body["current_permission_mode"].as_str();
        let mode = told.or(self.mode.as_deref()).unwrap_or(DEFAULT).to_owned();
        let usual = self.mode.clone().unwrap_or_else(|| mode.clone());
        let model = self.model.clone().unwrap_or_else(|| DEFAULT.to_owned());
        let offers_models = !models.is_empty();
        let default = Some(model.clone()).filter(|_| offers_models);
        self.tuning.offers(
            |offer| {
                offer.models = OfferMenu { items: models, default, ..OfferMenu::default() };
                let item = |(id, about): &(&str, &str)| OfferItem {
                    about: Some((*about).to_owned()),
                    ..OfferItem::new(id)
                };
                let items = MODES.iter().map(item).collect();
                offer.modes = OfferMenu { items, default: Some(usual), ..OfferMenu::default() };
                offer.efforts = OfferMenu { items: efforts, ..OfferMenu::default() };
                offer.commands = commands;
            },
            out,
        );
        if offers_models {
            self.tuning.is_in_force(ChoiceKind::Model, Some(model), out);
        }
        self.tuning.is_in_force(ChoiceKind::Mode, Some(mode), out);
    }

    /// The permission mode, where a message tells it.
    pub(super) fn learn_mode(&mut self, message: &Value, out: &mut Actions) {
        if let Some(mode) = message["permissionMode"].as_str() {
            self.tuning.is_in_force(ChoiceKind::Mode, Some(mode.to_owned()), out);
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
                let request = match kind {
                    ChoiceKind::Model => json!({ "subtype": "set_model", "model": value }),
                    ChoiceKind::Mode => json!({ "subtype": "set_permission_mode", "mode": value }),
                    ChoiceKind::Effort => {
                        json!({ "subtype": "apply_flag_settings", "settings": { "effortLevel": value } })
                    }
                };
                out.push(asks::request(id, &request));
            }
            TuningStep::Failed { turn } => {
                self.turn.take_if(|running| *running == turn);
            }
        }
    }

    /// The answer to a request to set something.
    pub(super) fn option_answered(&mut self, id: &str, refused: Option<&str>, out: &mut Actions) {
        if let Some(why) = refused {
            if let Some(step) = self.tuning.refused(id, why, out) {
                self.carry_on(step, out);
            }
        } else if let Some((kind, value)) = self.tuning.agreed(id) {
            self.tuning.is_in_force(kind, value, out);
            self.tune(out);
        }
    }
}

fn model(entry: &Value) -> Option<OfferItem> {
    let text = |name: &str| entry[name].as_str().map(str::to_owned);
    Some(OfferItem {
        id: text("value")?,
        name: text("displayName"),
        about: text("description"),
        unguarded: false,
    })
}

/// The effort levels of all models, each once.
fn efforts(models: &[Value]) -> Vec<OfferItem> {
    let levels = models.iter().filter_map(|model| model["supportedEffortLevels"].as_array()).flatten();
    let mut items: Vec<OfferItem> = Vec::new();
    for level in levels.filter_map(Value::as_str) {
        if items.iter().all(|item| item.id != level) {
            items.push(OfferItem::new(level));
        }
    }
    items
}

fn command(entry: &Value) -> Option<OfferedCommand> {
    let text = |name: &str| entry[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    Some(OfferedCommand { name: text("name")?, about: text("description"), hint: text("argumentHint") })
}
