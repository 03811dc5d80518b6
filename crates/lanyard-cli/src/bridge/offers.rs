//! The models, agents and commands that OpenCode offers, as the driver is told of them.

use serde_json::{Value, json};

use super::http::OpenCodeHttp;

/// OpenCode's agent where none is configured.
const USUAL_AGENT: &str = "build";
/// Models that are listed. Some providers have thousands.
const MODELS_MAX: usize = 512;

/// What can be chosen; nothing where OpenCode does not say, which is no reason not to work with it.
pub(super) async fn offers(http: &OpenCodeHttp) -> Option<Value> {
    let (Ok(config), Ok(providers), Ok(agents)) =
        (http.get("/config").await, http.get("/config/providers").await, http.get("/agent").await)
    else {
        return None;
    };
    // Without its commands it can still be worked with.
    let commands = http.get("/command").await.unwrap_or_default();
    let found = found(&config, &providers, &agents, &commands);
    found["models"].as_array().is_some_and(|models| !models.is_empty()).then_some(found)
}

fn found(config: &Value, providers: &Value, agents: &Value, commands: &Value) -> Value {
    let listed = providers["providers"].as_array().map_or(&[][..], Vec::as_slice);
    let models = listed.iter().flat_map(models_of).take(MODELS_MAX).collect::<Vec<_>>();
    let first = listed.iter().find_map(|provider| {
        let provider = provider["id"].as_str()?;
        Some(format!("{provider}/{}", providers["default"][provider].as_str()?))
    });
    let model = config["model"].as_str().map(str::to_owned).or(first);
    // Subagents are not for people to talk to.
    let primary = |agent: &&Value| agent["mode"] != "subagent" && agent["hidden"] != true;
    let listed = agents.as_array().map_or(&[][..], Vec::as_slice);
    let agents: Vec<Value> = listed
        .iter()
        .filter(primary)
        .map(|agent| json!({ "id": agent["name"], "about": agent["description"] }))
        .collect();
    let agent = config["default_agent"].as_str().unwrap_or(USUAL_AGENT);
    let listed = commands.as_array().map_or(&[][..], Vec::as_slice);
    let commands: Vec<Value> = listed.iter().map(command).collect();
    json!({ "model": model, "models": models, "agent": agent, "agents": agents, "commands": commands })
}

fn command(command: &Value) -> Value {
    // The places for arguments in its template.
    let hints = command["hints"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let hint = hints.collect::<Vec<_>>().join(" ");
    json!({ "name": command["name"], "about": command["description"], "hint": hint })
}

fn models_of(provider: &Value) -> Vec<Value> {
    let Some(id) = provider["id"].as_str() else { return Vec::new() };
    let models = provider["models"].as_object().into_iter().flatten();
    let entry = |(model, about): (&String, &Value)| {
        // OpenCode's word for the effort levels of a model.
        let efforts = about["variants"].as_object().into_iter().flatten();
        let efforts: Vec<&String> = efforts.map(|(name, _)| name).collect();
        json!({ "id": format!("{id}/{model}"), "name": about["name"], "efforts": efforts })
    };
    models.map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_have_their_provider_and_agents_that_are_for_people_are_modes() {
        let providers = json!({
            "providers": [{ "id": "fake", "models": { "m": { "name": "M", "variants": { "low": {}, "high": {} } }, "org/n": {} } }],
            "default": { "fake": "m" },
        });
        let agents = json!([
            { "name": "build", "mode": "primary", "description": "works" },
            { "name": "general", "mode": "subagent" },
        ]);
        let commands =
            json!([{ "name": "init", "description": "sets up", "hints": ["$ARGUMENTS"], "template": "…" }]);
        assert_eq!(
            found(&json!({}), &providers, &agents, &commands),
            json!({
                "model": "fake/m",
                "models": [
                    { "id": "fake/m", "name": "M", "efforts": ["low", "high"] },
                    { "id": "fake/org/n", "name": null, "efforts": [] },
                ],
                "agent": "build",
                "agents": [{ "id": "build", "about": "works" }],
                "commands": [{ "name": "init", "about": "sets up", "hint": "$ARGUMENTS" }],
            })
        );
        let nothing = found(&Value::Null, &json!("what"), &json!(7), &json!({}));
        assert_eq!(nothing["models"], json!([]));
    }
}
