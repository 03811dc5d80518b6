//! Orders from the daemon, and the requests they become.

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::BridgeError;
use super::http::{LONG_TIMEOUT, OpenCodeHttp};

#[derive(Debug, Deserialize)]
pub(super) struct Order {
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) op: BridgeOp,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum BridgeOp {
    Open(Box<Open>),
    Prompt {
        turn: String,
        session: Option<String>,
        text: String,
        /// Parts beside the text, as the server takes them.
        #[serde(default)]
        files: Vec<Value>,
        /// The name of a command of OpenCode's; the text is its arguments.
        command: Option<String>,
        /// From this prompt on.
        model: Option<String>,
        agent: Option<String>,
        /// For this prompt.
        effort: Option<String>,
    },
    Steer {
        session: Option<String>,
        text: String,
        #[serde(default)]
        files: Vec<Value>,
    },
    Abort {
        session: Option<String>,
    },
    Reply {
        request: String,
        reply: String,
        message: Option<String>,
    },
    Answer {
        request: String,
        answers: Option<Value>,
    },
    Compact {},
    End {},
}

/// What the conversation is to be, and whom it is to meet.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Open {
    pub(super) native: Option<String>,
    pub(super) directory: std::path::PathBuf,
    pub(super) title: Option<String>,
    pub(super) agent: Option<String>,
    /// `provider/model`.
    pub(super) model: Option<String>,
    /// One of the model's effort levels, for the prompt that was given last.
    pub(super) effort: Option<String>,
    /// Said to the model before everything else.
    pub(super) system: Option<String>,
    #[serde(default)]
    pub(super) mcp: Vec<Mcp>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Mcp {
    pub(super) name: String,
    pub(super) config: Value,
}

/// A request to be made after those before it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: Option<String>,
    pub(super) path: String,
    pub(super) body: Value,
    /// The conversation and turn of a prompt.
    pub(super) prompt: Option<(String, String)>,
}

impl Open {
    /// A prompt's body. OpenCode takes model, agent and system words from the newest message, so each one has them.
    pub(super) fn words(&self, text: &str, files: Vec<Value>) -> Value {
        let mut parts = files;
        if parts.is_empty() || !text.is_empty() {
            parts.push(json!({"type": "text", "text": text}));
        }
        let mut body = json!({"parts": parts});
        if let Some(model) = self.model.as_deref().and_then(model) {
            body["model"] = model;
        }
        if let Some(agent) = &self.agent {
            body["agent"] = json!(agent);
        }
        if let Some(effort) = &self.effort {
            body["variant"] = json!(effort);
        }
        if let Some(system) = &self.system {
            body["system"] = json!(system);
        }
        body
    }

    /// The body of a command.
    pub(super) fn command(&self, name: &str, arguments: &str, files: &[Value]) -> Value {
        let mut body = json!({ "command": name, "arguments": arguments, "parts": files });
        for (key, chosen) in [("model", &self.model), ("agent", &self.agent), ("variant", &self.effort)] {
            if let Some(chosen) = chosen {
                body[key] = json!(chosen);
            }
        }
        body
    }
}

/// Why a model cannot work with an effort level; nothing where it can, or where its levels are not known.
pub(super) fn effort_refused(offers: &Value, model: Option<&str>, effort: &str) -> Option<String> {
    let model = model.or(offers["model"].as_str())?;
    let found = offers["models"].as_array()?.iter().find(|found| found["id"] == model)?;
    let levels: Vec<&str> = found["efforts"].as_array()?.iter().filter_map(Value::as_str).collect();
    if levels.contains(&effort) {
        return None;
    }
    let offered = if levels.is_empty() { "none".to_owned() } else { levels.join(", ") };
    Some(format!("choice_refused: the model {model} has no effort `{effort}`; it has {offered}"))
}

/// `provider/model` as the API wants it.
pub(super) fn model(name: &str) -> Option<Value> {
    let (provider, model) = name.split_once('/')?;
    Some(json!({"providerID": provider, "modelID": model}))
}

/// Ids come from the server and from the daemon; a path takes only what cannot lead elsewhere.
pub(super) fn path(parts: &[&str]) -> String {
    let mut path = String::new();
    for part in parts {
        path.push('/');
        path.extend(part.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')));
    }
    path
}

/// Compacts a conversation, with the model it works with.
pub(super) async fn compact(
    http: OpenCodeHttp,
    session: String,
    chosen: Option<String>,
) -> Result<Value, BridgeError> {
    let chosen = match chosen.as_deref().and_then(model) {
        Some(chosen) => Some(chosen),
        None => last_model(&http, &session).await?,
    };
    let Some(body) = chosen else {
        return Err(BridgeError::Request("OpenCode does not say which model it works with".to_owned()));
    };
    http.ask(Method::POST, &path(&["session", &session, "summarize"]), Some(&body), LONG_TIMEOUT).await
}

/// The model of the last prompt, or else the one configured.
async fn last_model(http: &OpenCodeHttp, session: &str) -> Result<Option<Value>, BridgeError> {
    let info = http.get(&path(&["session", session])).await?;
    if let (Some(id), Some(provider)) = (info["model"]["id"].as_str(), info["model"]["providerID"].as_str()) {
        return Ok(Some(json!({"providerID": provider, "modelID": id})));
    }
    let config = http.get("/config").await?;
    Ok(config["model"].as_str().and_then(model))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_and_unknown_ones_are_not() {
        let read = |text: &str| serde_json::from_str::<Order>(text);
        let order = read(r#"{"id":"p","op":"prompt","turn":"turn_1","text":"hi"}"#).unwrap();
        assert!(matches!(order.op, BridgeOp::Prompt { session: None, .. }), "{order:?}");
        assert!(matches!(read(r#"{"id":"c","op":"compact"}"#).unwrap().op, BridgeOp::Compact {}));
        assert!(read(r#"{"id":"x","op":"explode"}"#).is_err());
        assert!(read(r#"{"op":"compact"}"#).is_err());
    }

    #[test]
    fn every_prompt_carries_model_agent_and_system_words() {
        let open = Open {
            model: Some("openai/org/gpt".to_owned()),
            agent: Some("plan".to_owned()),
            system: Some("Be brief.".to_owned()),
            ..Open::default()
        };
        assert_eq!(
            open.words("hi", Vec::new()),
            json!({
                "parts": [{"type": "text", "text": "hi"}],
                "model": {"providerID": "openai", "modelID": "org/gpt"},
                "agent": "plan",
                "system": "Be brief.",
            })
        );
    }

    #[test]
    fn a_command_carries_its_arguments_and_what_is_chosen() {
        let open =
            Open { effort: Some("high".to_owned()), agent: Some("plan".to_owned()), ..Open::default() };
        assert_eq!(open.words("hi", Vec::new())["variant"], "high");
        assert_eq!(
            open.command("review", "HEAD~1", &[]),
            json!({"command": "review", "arguments": "HEAD~1", "parts": [], "agent": "plan", "variant": "high"})
        );
    }

    #[test]
    fn an_effort_that_the_model_does_not_have_is_refused_by_name() {
        let offers = json!({"model": "p/m", "models": [
            {"id": "p/m", "efforts": ["low", "high"]}, {"id": "p/plain", "efforts": []},
        ]});
        assert_eq!(effort_refused(&offers, None, "high"), None);
        assert_eq!(effort_refused(&offers, Some("p/other"), "high"), None);
        let why = "choice_refused: the model p/m has no effort `deep`; it has low, high";
        assert_eq!(effort_refused(&offers, None, "deep").as_deref(), Some(why));
        assert!(effort_refused(&offers, Some("p/plain"), "low").unwrap().ends_with("it has none"));
    }

    #[test]
    fn a_path_leads_nowhere_else() {
        assert_eq!(path(&["session", "ses_1a/../../config?x", "abort"]), "/session/ses_1aconfigx/abort");
    }
}
