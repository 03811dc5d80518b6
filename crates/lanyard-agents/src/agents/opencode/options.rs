//! Models, agents, effort levels and commands of OpenCode. Each prompt names its model and agent, and its effort where one is
//! chosen; OpenCode's agents are its modes.

use lanyard_core::session::{AgentOffer, ChoiceKind, OfferItem, OfferMenu, OfferedCommand, Signal};
use serde_json::Value;

use super::OpenCode;
use crate::agents::driver::{Action, Actions};

impl OpenCode {
    /// Reads what the bridge found when it opened the conversation.
    pub(super) fn learn_offer(&mut self, found: &Value, out: &mut Actions) {
        if !found.is_object() {
            return;
        }
        let configured = |chosen: Option<&String>, told: &Value| chosen.cloned().or_else(|| text(told));
        let model = configured(self.setting.model.as_ref(), &found["model"]);
        let agent = configured(self.setting.mode.as_ref(), &found["agent"]);
        let menu = |items: Vec<OfferItem>, default: Option<String>| {
            // Without a default to go back to, the choice of one turn would stay.
            let items = if default.is_some() { items } else { Vec::new() };
            OfferMenu { items, default, ..OfferMenu::default() }
        };
        let offer = AgentOffer {
            models: menu(items(&found["models"]), model.clone()),
            modes: menu(items(&found["agents"]), agent.clone()),
            // Each prompt has its own: one without is the model's usual.
            efforts: OfferMenu { items: efforts(&found["models"]), ..OfferMenu::default() },
            commands: commands(&found["commands"]),
        };
        self.tuned.offer = offer.bounded();
        let signal = Signal::Offered(Box::new(self.tuned.offer.clone()));
        out.push(Action::Saw { native: None, signal });
        self.tuned.in_force.put(ChoiceKind::Model, model);
        self.tuned.in_force.put(ChoiceKind::Mode, agent);
        let signal = Signal::InForce(self.tuned.in_force.clone());
        out.push(Action::Saw { native: None, signal });
    }

    /// Names the model and the agent of a prompt, and tells them as in force.
    pub(super) fn name_choice(&mut self, order: &mut Value, out: &mut Actions) {
        let mut now = self.tuned.in_force.clone();
        for (kind, field) in [(ChoiceKind::Model, "model"), (ChoiceKind::Mode, "agent")] {
            let chosen = self.tuned.wanted.get(kind);
            let value = chosen.or(self.tuned.offer.menu(kind).default.as_deref()).map(str::to_owned);
            if chosen.is_some() || now.get(kind) != value.as_deref() {
                order[field] = value.clone().into();
                now.put(kind, value);
            }
        }
        let effort = self.tuned.wanted.get(ChoiceKind::Effort).map(str::to_owned);
        if let Some(effort) = &effort {
            order["effort"] = effort.as_str().into();
        }
        now.put(ChoiceKind::Effort, effort);
        if now != self.tuned.in_force {
            self.tuned.in_force = now.clone();
            out.push(Action::Saw { native: None, signal: Signal::InForce(now) });
        }
    }
}

fn items(list: &Value) -> Vec<OfferItem> {
    let item = |entry: &Value| {
        let (name, about) = (text(&entry["name"]), text(&entry["about"]));
        Some(OfferItem { id: text(&entry["id"])?, name, about, unguarded: false })
    };
    list.as_array().into_iter().flatten().filter_map(item).collect()
}

/// The levels of all models, each once. A model without the one that is chosen refuses the prompt.
fn efforts(models: &Value) -> Vec<OfferItem> {
    let mut levels: Vec<OfferItem> = Vec::new();
    for level in
        models.as_array().into_iter().flatten().filter_map(|model| model["efforts"].as_array()).flatten()
    {
        let Some(level) = level.as_str() else { continue };
        if levels.iter().all(|known| known.id != level) {
            levels.push(OfferItem::new(level));
        }
    }
    levels
}

fn commands(listed: &Value) -> Vec<OfferedCommand> {
    let command = |entry: &Value| {
        let (about, hint) = (text(&entry["about"]), text(&entry["hint"]));
        Some(OfferedCommand { name: text(&entry["name"])?, about, hint })
    };
    listed.as_array().into_iter().flatten().filter_map(command).collect()
}

/// A prompt that is one of OpenCode's commands, as the name and what follows it.
pub(super) fn command_in<'a>(offer: &AgentOffer, prompt: &'a str) -> Option<(&'a str, &'a str)> {
    let rest = prompt.strip_prefix('/').filter(|_| offer.is_command(prompt))?;
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((name, arguments.trim_start()))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
