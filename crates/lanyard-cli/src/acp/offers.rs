//! What the agent of a session offers to choose, in the editor's terms: config options, session modes and commands.

use agent_client_protocol_schema::v1::Error;
use lanyard_api::types::SessionDetail;
use lanyard_core::session::{AgentChoice, AgentOffer, ChangeEvent, ChoiceKind, Event, RunEvent};
use serde::Serialize;
use serde_json::{Value, json};

/// What is offered and chosen in one session.
#[derive(Debug, Clone, Default)]
pub(super) struct Choosing {
    offer: AgentOffer,
    /// The session's own choice.
    pub(super) chosen: AgentChoice,
    in_force: AgentChoice,
}

impl Choosing {
    pub(super) fn of(detail: &SessionDetail) -> Self {
        let (chosen, in_force) = (detail.view.choice.clone(), detail.view.in_force.clone());
        Self { offer: detail.offer.clone().unwrap_or_default(), chosen, in_force }
    }

    /// Follows the log; the updates for the editor, where something changed.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other events say nothing of choices")]
    pub(super) fn follow(&mut self, event: &Event) -> Vec<Value> {
        let before = self.clone();
        match event {
            Event::Run(RunEvent::Offered(offer)) => self.offer = (**offer).clone(),
            Event::Run(RunEvent::InForce(choice)) => self.in_force.clone_from(choice),
            Event::Change(ChangeEvent::ChoiceSet { choice }) => {
                self.chosen.clone_from(choice);
                // The agent says later what it took; until then the editor shows what was asked for.
                self.in_force = choice.over(&self.offer.defaults());
            }
            _ => return Vec::new(),
        }
        let mut updates = Vec::new();
        if self.offer.commands != before.offer.commands {
            updates.extend(self.commands());
        }
        if self.options() != before.options() {
            updates.push(json!({ "sessionUpdate": "config_option_update", "configOptions": self.options() }));
        }
        if let Some(mode) = self.current(ChoiceKind::Mode).filter(|_| self.modes() != before.modes()) {
            updates.push(json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode }));
        }
        updates
    }

    fn current(&self, kind: ChoiceKind) -> Option<String> {
        let current = self.in_force.over(&self.chosen).over(&self.offer.defaults());
        current.get(kind).map(str::to_owned)
    }

    /// Refuses what the editor was not offered.
    pub(super) fn admit(&self, wish: &AgentChoice) -> Result<(), Error> {
        self.offer.admit(wish).map_err(|refusal| Error::invalid_params().data(refusal.to_string()))
    }

    /// The config options: a list for each kind that has one.
    pub(super) fn options(&self) -> Vec<Value> {
        let kinds = [
            (ChoiceKind::Model, "Model", "model"),
            (ChoiceKind::Mode, "Mode", "mode"),
            (ChoiceKind::Effort, "Effort", "thought_level"),
        ];
        let option = |(kind, name, category): (ChoiceKind, &str, &str)| {
            let menu = self.offer.menu(kind);
            let current =
                self.current(kind).filter(|current| menu.items.iter().any(|item| item.id == *current))?;
            let options: Vec<Value> = menu
                .items
                .iter()
                .map(|item| {
                    let name = item.name.as_ref().unwrap_or(&item.id);
                    json!({ "value": item.id, "name": name, "description": item.about })
                })
                .collect();
            Some(json!({
                "id": kind.as_str(), "name": name, "category": category, "type": "select",
                "currentValue": current, "options": options,
            }))
        };
        kinds.into_iter().filter_map(option).collect()
    }

    fn modes(&self) -> Option<Value> {
        let items = &self.offer.modes.items;
        let current = self.current(ChoiceKind::Mode).filter(|_| !items.is_empty())?;
        let modes: Vec<Value> = items
            .iter()
            .map(|item| {
                let name = item.name.as_ref().unwrap_or(&item.id);
                json!({ "id": item.id, "name": name, "description": item.about })
            })
            .collect();
        Some(json!({ "currentModeId": current, "availableModes": modes }))
    }

    /// An answer that opens a session, with what it offers.
    pub(super) fn beside(&self, answer: &impl Serialize) -> Result<Value, Error> {
        let mut answer = serde_json::to_value(answer).map_err(Error::into_internal_error)?;
        let (options, modes) = (self.options(), self.modes());
        if !options.is_empty() {
            answer["configOptions"] = options.into();
        }
        if let Some(modes) = modes {
            answer["modes"] = modes;
        }
        Ok(answer)
    }

    /// The agent's own commands, where it has some.
    pub(super) fn commands(&self) -> Option<Value> {
        let commands: Vec<Value> = self
            .offer
            .commands
            .iter()
            .map(|command| {
                let input = command.hint.as_ref().map(|hint| json!({ "hint": hint }));
                let about = command.about.as_deref().unwrap_or_default();
                json!({ "name": command.name, "description": about, "input": input })
            })
            .collect();
        let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
        (!commands.is_empty()).then_some(update)
    }
}

/// What a request to set something asks for.
pub(super) fn wish_of(method: &str, params: &Value) -> Result<AgentChoice, Error> {
    let (name, value) = match method {
        "session/set_mode" => ("mode", &params["modeId"]),
        _ => (params["configId"].as_str().unwrap_or_default(), &params["value"]),
    };
    let kind = ChoiceKind::ALL.into_iter().find(|kind| kind.as_str() == name);
    let (Some(kind), Some(value)) = (kind, value.as_str()) else {
        return Err(Error::invalid_params().data("there is no such option or value"));
    };
    let mut wish = AgentChoice::default();
    wish.put(kind, Some(value.to_owned()));
    Ok(wish)
}
