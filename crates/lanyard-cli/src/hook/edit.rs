//! Editing a settings file in place: what is put in or taken out changes nothing else of the text, not even whitespace.
//! Pure. Comments and trailing commas are kept; whether the agent accepts them is its own affair.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Value, json};

const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_extended_string_escapes: false,
    allow_non_finite_numbers: false,
};

/// What stands at `hooks.EVENT` for one command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HookEntry {
    pub(super) event: &'static str,
    pub(super) hook: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditError {
    #[error("it is not JSON: {0}")]
    NotJson(String),
    #[error("{0} is not {1}")]
    Shape(String, &'static str),
}

/// The text with the entries in it. A blank text is an empty object.
pub(super) fn add(text: &str, entries: &[HookEntry]) -> Result<String, EditError> {
    let text = if text.trim().is_empty() { "{\n}\n" } else { text };
    let (root, object) = parse(text)?;
    for entry in entries {
        add_one(&object, entry)?;
    }
    let with = root.to_string();
    let is_on_one_line = text.trim() != "{}" && !text.trim().contains('\n');
    if !is_on_one_line {
        return Ok(with);
    }
    let line: String = with.trim().lines().map(str::trim_start).collect();
    Ok(text.replace(text.trim(), &line))
}

fn add_one(object: &CstObject, entry: &HookEntry) -> Result<(), EditError> {
    let group = json!({ "hooks": [entry.hook] });
    let Some(hooks) = member(object, "hooks") else {
        object.append("hooks", input(&json!({ entry.event: [group] })));
        return Ok(());
    };
    let hooks = hooks.object_value().ok_or_else(|| EditError::Shape("`hooks`".to_owned(), "an object"))?;
    match member(&hooks, entry.event) {
        None => drop(hooks.append(entry.event, input(&json!([group])))),
        Some(event) => {
            let event =
                event.array_value().ok_or_else(|| EditError::Shape(entry.event.to_owned(), "a list"))?;
            event.append(input(&group));
        }
    }
    Ok(())
}

/// The text without the hooks whose command is one of `ours`, and without what they leave empty.
pub(super) fn remove(text: &str, ours: &dyn Fn(&str) -> bool) -> Result<String, EditError> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let (root, object) = parse(text)?;
    let Some(property) = member(&object, "hooks") else { return Ok(text.to_owned()) };
    let Some(hooks) = property.object_value() else { return Ok(text.to_owned()) };
    let mut is_changed = false;
    for event in hooks.properties() {
        let Some(groups) = event.array_value() else { continue };
        for group in groups.elements() {
            let Some(inner) = hooks_of(&group) else { continue };
            let gone: Vec<CstNode> = inner
                .elements()
                .into_iter()
                .filter(|hook| command(hook).is_some_and(|name| ours(&name)))
                .collect();
            is_changed |= !gone.is_empty();
            if !gone.is_empty() && gone.len() == inner.elements().len() {
                group.remove();
            } else {
                gone.into_iter().for_each(CstNode::remove);
            }
        }
        if is_changed && groups.elements().is_empty() {
            event.remove();
        }
    }
    if is_changed && hooks.properties().is_empty() {
        property.remove();
    }
    Ok(if is_changed { root.to_string() } else { text.to_owned() })
}

/// Every command at `hooks`, with its event.
pub(super) fn commands(text: &str) -> Result<Vec<(String, String)>, EditError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let (_, object) = parse(text)?;
    let mut found = Vec::new();
    let hooks = member(&object, "hooks").and_then(|hooks| hooks.object_value());
    for event in hooks.iter().flat_map(CstObject::properties) {
        let groups = event.array_value().map(|groups| groups.elements()).unwrap_or_default();
        let hooks = groups.iter().filter_map(hooks_of).flat_map(|hooks| hooks.elements());
        let name = event.decoded_name().unwrap_or_default();
        found.extend(hooks.filter_map(|hook| command(&hook)).map(|command| (name.clone(), command)));
    }
    Ok(found)
}

fn parse(text: &str) -> Result<(CstRootNode, CstObject), EditError> {
    let root = CstRootNode::parse(text, &OPTIONS).map_err(|error| EditError::NotJson(error.to_string()))?;
    let object = root.object_value().ok_or_else(|| EditError::Shape("the file".to_owned(), "an object"))?;
    Ok((root, object))
}

/// A property. Of two with the same name the last counts, as everywhere.
fn member(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    object.properties().into_iter().rfind(|property| property.decoded_name().as_deref() == Some(name))
}

fn hooks_of(group: &CstNode) -> Option<CstArray> {
    member(&group.as_object()?, "hooks")?.array_value()
}

fn command(hook: &CstNode) -> Option<String> {
    member(&hook.as_object()?, "command")?.value()?.as_string_lit()?.decoded_value().ok()
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(values) => {
            CstInputValue::Object(values.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
