//! Models, modes, effort levels and commands that the agent offers when it is told to, and what it does when one is
//! chosen. A process knows the choices of its own life only: another one begins with the first of each list.

use agent_client_protocol_schema::v1::{Error, SessionId};
use serde::Serialize;
use serde_json::{Value, json};

use super::connection::{Agent, Session};

/// What is offered, and how it is set.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Offers {
    /// Offer these models, as a config option
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    models: Vec<String>,
    /// Offer these modes, as session modes
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    modes: Vec<String>,
    /// Offer these effort levels, as a config option
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    efforts: Vec<String>,
    /// Offer these commands
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    commands: Vec<String>,
    /// What to do when something is chosen: refuse it, agree and do nothing, answer nonsense, or never answer
    #[arg(long, value_name = "HOW", value_enum)]
    set: Option<SetManner>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SetManner {
    Refuse,
    Ignore,
    Garbage,
    Silent,
}

/// What is chosen in a session; nothing stands for the first of the list.
#[derive(Debug, Clone, Default)]
pub(super) struct Chosen {
    model: Option<String>,
    mode: Option<String>,
    effort: Option<String>,
}

impl Agent {
    /// The answer that opens a session, with what it offers.
    pub(super) fn with_choices(&self, id: &SessionId, answer: &impl Serialize) -> Result<Value, Error> {
        let mut answer = serde_json::to_value(answer).map_err(Error::into_internal_error)?;
        let chosen = self.session(id)?.chosen.lock().clone();
        let (offers, options) = (&self.options.offers, self.config_options(&chosen));
        if !options.is_empty() {
            answer["configOptions"] = options.into();
        }
        if let Some(current) = chosen.mode.as_ref().or(offers.modes.first()) {
            let modes: Vec<Value> =
                offers.modes.iter().map(|mode| json!({ "id": mode, "name": mode })).collect();
            answer["modes"] = json!({ "currentModeId": current, "availableModes": modes });
        }
        Ok(answer)
    }

    fn config_options(&self, chosen: &Chosen) -> Vec<Value> {
        let offers = &self.options.offers;
        let option = |id: &str, category: &str, values: &[String], current: Option<&String>| {
            let current = current.or(values.first())?;
            let options: Vec<Value> =
                values.iter().map(|value| json!({ "value": value, "name": value })).collect();
            Some(json!({
                "id": id, "name": id, "category": category, "type": "select",
                "currentValue": current, "options": options,
            }))
        };
        let model = option("model", "model", &offers.models, chosen.model.as_ref());
        let effort = option("effort", "thought_level", &offers.efforts, chosen.effort.as_ref());
        model.into_iter().chain(effort).collect()
    }

    /// Tells of the commands, once the session is open.
    pub(super) fn tell_commands(&self, id: &SessionId) {
        let commands = &self.options.offers.commands;
        if commands.is_empty() {
            return;
        }
        let commands: Vec<Value> = commands
            .iter()
            .map(|name| json!({ "name": name, "description": format!("does {name}") }))
            .collect();
        let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
        self.wire.notify("session/update", &json!({ "sessionId": id, "update": update }));
    }

    /// A choice of the client; nothing for an answer that never comes.
    pub(super) fn choose(&self, params: &Value) -> Result<Option<Value>, Error> {
        let id = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let session = self.session(&SessionId::new(id))?;
        let offers = &self.options.offers;
        let (name, value) = match params["modeId"].as_str() {
            Some(mode) => ("mode", mode),
            None => (
                params["configId"].as_str().unwrap_or_default(),
                params["value"].as_str().unwrap_or_default(),
            ),
        };
        match offers.set {
            Some(SetManner::Refuse) => {
                return Err(Error::new(-32000, format!("`{value}` is not for you")));
            }
            Some(SetManner::Garbage) => return Ok(Some(json!(["what", { "configOptions": 7 }]))),
            Some(SetManner::Silent) => return Ok(None),
            Some(SetManner::Ignore) | None => {}
        }
        let mut chosen = session.chosen.lock();
        let (known, place) = match name {
            "model" => (&offers.models, &mut chosen.model),
            "mode" => (&offers.modes, &mut chosen.mode),
            "effort" => (&offers.efforts, &mut chosen.effort),
            _ => return Err(Error::invalid_params().data(format!("there is no option `{name}`"))),
        };
        if !known.iter().any(|known| known == value) {
            return Err(Error::invalid_params().data(format!("there is no {name} `{value}`")));
        }
        if offers.set.is_none() {
            *place = Some(value.to_owned());
        }
        Ok(Some(match name {
            "mode" => json!({}),
            _ => json!({ "configOptions": self.config_options(&chosen) }),
        }))
    }
}

impl Session {
    /// `model=a mode=b effort=c`, as the session has it.
    pub(super) fn choices(&self, offers: &Offers) -> String {
        let chosen = self.chosen.lock().clone();
        let of = |chosen: Option<String>, offered: &[String]| {
            chosen.or_else(|| offered.first().cloned()).unwrap_or_else(|| "-".to_owned())
        };
        format!(
            "model={} mode={} effort={}",
            of(chosen.model, &offers.models),
            of(chosen.mode, &offers.modes),
            of(chosen.effort, &offers.efforts),
        )
    }

    /// The agent goes to another mode by itself; the update that tells of it.
    pub(super) fn go_to_mode(&self, mode: &str) -> Value {
        self.chosen.lock().mode = Some(mode.to_owned());
        json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode })
    }
}
