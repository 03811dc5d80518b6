//! Models, modes and effort levels of Codex. Each turn begins with those that it is to have; Codex keeps them for later
//! turns, so what a turn changed is named again in the next one.
//!
//! A mode is a sandbox and an approval policy, as in the agent's settings: `workspace-write,on-request`.

use lanyard_core::session::{AgentChoice, ChoiceKind, OfferItem, OfferMenu, Signal};
use serde_json::{Map, Value, json};

use super::{Codex, wire};
use crate::agents::driver::{Action, Actions};

/// The id of the request for the models.
pub(super) const MODELS: &str = "models";
const MODES: [(&str, &str); 4] = [
    ("read-only,on-request", "reads, and asks for everything else"),
    ("workspace-write,untrusted", "asks before commands that are not known to be safe"),
    ("workspace-write,on-request", "writes the workspace, and asks when it needs more"),
    ("danger-full-access,never", "asks for no approvals, without a sandbox"),
];
const SANDBOXES: [(&str, &str); 3] = [
    ("read-only", "readOnly"),
    ("workspace-write", "workspaceWrite"),
    ("danger-full-access", "dangerFullAccess"),
];

impl Codex {
    /// What a thread begins with is the default of all its turns.
    pub(super) fn learn_defaults(&mut self, opened: &Value, out: &mut Actions) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let model = text(&opened["model"]).or_else(|| text(&opened["thread"]["model"]));
        let (mode, effort) = (mode_of(opened), text(&opened["reasoningEffort"]));
        let offer = &mut self.tuned.offer;
        // A thread that goes on may have what its last turn chose.
        let default =
            |known: &OfferMenu, found: &Option<String>| known.default.clone().or_else(|| found.clone());
        offer.models.default = default(&offer.models, &model);
        offer.efforts.default = default(&offer.efforts, &effort);
        if mode.is_some() {
            let item = |(id, about): &(&str, &str)| OfferItem {
                about: Some((*about).to_owned()),
                ..OfferItem::new(id)
            };
            let (items, default) = (MODES.iter().map(item).collect(), default(&offer.modes, &mode));
            offer.modes = OfferMenu { items, default, ..OfferMenu::default() };
        }
        self.is_in_force(&AgentChoice { model, mode, effort }, out);
        out.push(wire::request(MODELS.to_owned(), MODELS, "model/list", &json!({})));
    }

    /// The answer to the request for the models.
    pub(super) fn learn_models(&mut self, found: &Value, out: &mut Actions) {
        let listed = found["data"].as_array().map_or(&[][..], Vec::as_slice);
        let offer = &mut self.tuned.offer;
        let text = |entry: &Value, name: &str| entry[name].as_str().map(str::to_owned);
        offer.models.items = listed
            .iter()
            .filter(|entry| entry["hidden"] != true)
            .filter_map(|entry| {
                let id = text(entry, "model").or_else(|| text(entry, "id"))?;
                let (name, about) = (text(entry, "displayName"), text(entry, "description"));
                Some(OfferItem { id, name, about, unguarded: false })
            })
            .collect();
        let levels =
            listed.iter().filter_map(|entry| entry["supportedReasoningEfforts"].as_array()).flatten();
        let levels = levels.filter_map(|level| level["reasoningEffort"].as_str().or(level.as_str()));
        let mut efforts: Vec<OfferItem> = Vec::new();
        for level in levels {
            if efforts.iter().all(|item| item.id != level) {
                efforts.push(OfferItem::new(level));
            }
        }
        let usual = |entry: &&Value| offer.models.default.as_deref() == entry["model"].as_str();
        let usual = listed.iter().find(usual).and_then(|entry| text(entry, "defaultReasoningEffort"));
        offer.efforts.default = offer.efforts.default.take().or(usual);
        // Without a default to go back to, the effort of one turn would stay.
        if offer.efforts.default.is_some() {
            offer.efforts.items = efforts;
        }
        self.tuned.offer = std::mem::take(&mut self.tuned.offer).bounded();
        let signal = Signal::Offered(Box::new(self.tuned.offer.clone()));
        out.push(Action::Saw { native: None, signal });
    }

    /// What the next turn begins with: all that is chosen, and what an earlier turn changed. Told as in force.
    pub(super) fn turn_choice(&mut self, out: &mut Actions) -> Map<String, Value> {
        let mut named = Map::new();
        let mut now = self.tuned.in_force.clone();
        for kind in ChoiceKind::ALL {
            let chosen = self.tuned.wanted.get(kind);
            let value = chosen.or(self.tuned.offer.menu(kind).default.as_deref());
            let Some(value) = value.filter(|value| chosen.is_some() || now.get(kind) != Some(*value)) else {
                continue;
            };
            let value = value.to_owned();
            match kind {
                ChoiceKind::Model => {
                    named.insert("model".to_owned(), value.as_str().into());
                }
                ChoiceKind::Effort => {
                    named.insert("effort".to_owned(), value.as_str().into());
                }
                ChoiceKind::Mode => self.name_mode(&value, &mut named),
            }
            now.put(kind, Some(value));
        }
        self.is_in_force(&now, out);
        named
    }

    fn name_mode(&self, mode: &str, named: &mut Map<String, Value>) {
        for word in mode.split([',', ' ']).filter(|word| !word.is_empty()) {
            let Some((name, kind)) = SANDBOXES.iter().find(|(name, _)| *name == word) else {
                named.insert("approvalPolicy".to_owned(), word.into());
                continue;
            };
            let mut policy = json!({ "type": kind });
            if *name == "workspace-write" {
                let roots: Vec<_> =
                    self.setting.git_folders.iter().map(|root| root.to_string_lossy()).collect();
                policy["writableRoots"] = json!(roots);
            }
            named.insert("sandboxPolicy".to_owned(), policy);
        }
    }

    fn is_in_force(&mut self, choice: &AgentChoice, out: &mut Actions) {
        if self.tuned.in_force != *choice {
            self.tuned.in_force.clone_from(choice);
            let signal = Signal::InForce(choice.clone());
            out.push(Action::Saw { native: None, signal });
        }
    }
}

/// The mode of an opened thread, where it tells both halves.
fn mode_of(opened: &Value) -> Option<String> {
    let sandbox = opened["sandbox"]["type"].as_str()?;
    let (name, _) = SANDBOXES.iter().find(|(_, kind)| *kind == sandbox)?;
    Some(format!("{name},{}", opened["approvalPolicy"].as_str()?))
}
