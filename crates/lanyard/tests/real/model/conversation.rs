//! A request in one shape, whichever protocol it came in.

use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) role: Role,
    pub(crate) text: String,
    /// The names of the tools an assistant called, in order.
    pub(crate) calls: Vec<String>,
}

/// A tool the request offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// Codex keeps the tools of an MCP server in a namespace.
    pub(crate) namespace: Option<String>,
    /// Takes free text instead of JSON.
    pub(crate) custom: bool,
}

impl Tool {
    pub(super) fn named(name: &str) -> Tool {
        Tool { name: name.to_owned(), ..Tool::default() }
    }

    /// `namespace::name`, or the name alone.
    pub(crate) fn full_name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}::{}", self.name),
            None => self.name.clone(),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Vec<Tool>,
}

impl Conversation {
    pub(super) fn push(&mut self, role: Role, text: String) {
        self.messages.push(Message { role, text, calls: Vec::new() });
    }

    /// The assistant's current turn. Neighbouring items are one turn: some protocols write the text and
    /// each call apart.
    pub(super) fn assistant(&mut self) -> &mut Message {
        if self.messages.last().is_none_or(|last| last.role != Role::Assistant) {
            self.push(Role::Assistant, String::new());
        }
        let last = self.messages.len() - 1;
        &mut self.messages[last]
    }

    fn texts(&self, role: Role) -> impl DoubleEndedIterator<Item = &str> {
        self.messages.iter().filter(move |message| message.role == role).map(|message| message.text.as_str())
    }

    /// What the tools answered, in order.
    pub(crate) fn tool_results(&self) -> Vec<&str> {
        self.texts(Role::Tool).collect()
    }

    pub(crate) fn last_tool_result(&self) -> Option<&str> {
        self.texts(Role::Tool).next_back()
    }

    /// Whether any message of this role has the text in it.
    pub(crate) fn says(&self, role: Role, text: &str) -> bool {
        self.texts(role).any(|said| said.contains(text))
    }

    /// Whether words for a running turn reached the model. Claude Code gives them in a message of the role `system`.
    pub(crate) fn hears(&self, text: &str) -> bool {
        self.says(Role::User, text) || self.says(Role::System, text)
    }
}

/// The text of any content value: a string, a list of parts, a part.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(text_of).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
        Value::Object(part) => {
            let inner = ["text", "content", "output"].iter().find_map(|key| part.get(*key));
            inner.map_or_else(|| content.to_string(), text_of)
        }
        Value::Bool(_) | Value::Number(_) => content.to_string(),
    }
}

/// The items of a list, or none when the value is no list.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn str_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
