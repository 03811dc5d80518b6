//! Editing a settings file where it stands: what is put in or taken out changes nothing else of the text, not a blank.
//! Pure. The file is read as strict JSON; anything else is left alone.

use std::ops::Range;

use serde::Serialize;
use serde_json::{Value, json};

/// What stands at `hooks.EVENT` for one command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
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

/// A member of an object or an element of a list, with the places of its parts in the text.
#[derive(Debug)]
struct Item {
    whole: Range<usize>,
    key: Option<String>,
    value: Range<usize>,
}

/// The text with the entries in it. A blank text is an empty object.
pub(super) fn add(text: &str, entries: &[Entry]) -> Result<String, EditError> {
    let blank = text.trim().is_empty();
    let mut text = if blank { "{}\n".to_owned() } else { text.to_owned() };
    for entry in entries {
        text = add_one(&text, entry, blank)?;
    }
    Ok(text)
}

fn add_one(text: &str, entry: &Entry, pretty: bool) -> Result<String, EditError> {
    let root = root(text)?;
    let group = json!({ "hooks": [entry.hook] });
    let layout = Layout::of(text, pretty);
    let Some(hooks) = member(text, &root, "hooks") else {
        let event: serde_json::Map<String, Value> =
            [(entry.event.to_owned(), json!([group]))].into_iter().collect();
        return Ok(layout.insert(text, &root, Some("hooks"), &event));
    };
    let hooks = shaped(text, hooks, b'{', "`hooks`", "an object")?;
    match member(text, &hooks, entry.event) {
        None => Ok(layout.insert(text, &hooks, Some(entry.event), &json!([group]))),
        Some(event) => {
            let event = shaped(text, event, b'[', entry.event, "a list")?;
            Ok(layout.insert(text, &event, None, &group))
        }
    }
}

/// The text without the hooks whose command is one of `ours`, and without what they leave empty.
pub(super) fn remove(text: &str, ours: &dyn Fn(&str) -> bool) -> Result<String, EditError> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let mut text = text.to_owned();
    while let Some(less) = remove_one(&text, ours)? {
        text = less;
    }
    Ok(text)
}

fn remove_one(text: &str, ours: &dyn Fn(&str) -> bool) -> Result<Option<String>, EditError> {
    let root = root(text)?;
    let Some(hooks) = member(text, &root, "hooks") else { return Ok(None) };
    if !text[hooks.clone()].starts_with('{') {
        return Ok(None);
    }
    for event in items(text, &hooks) {
        if !text[event.value.clone()].starts_with('[') {
            continue;
        }
        for group in items(text, &event.value) {
            let inner = if text[group.value.clone()].starts_with('{') {
                member(text, &group.value, "hooks").filter(|inner| text[inner.clone()].starts_with('['))
            } else {
                None
            };
            let Some(inner) = inner else { continue };
            let found = items(text, &inner)
                .into_iter()
                .find(|hook| command(&text[hook.value.clone()]).is_some_and(|command| ours(&command)));
            let Some(hook) = found else { continue };
            // What held nothing else goes with it, up to the outermost.
            let chain = [(&inner, &hook.whole), (&event.value, &group.whole), (&hooks, &event.whole)];
            let alone = |container: &Range<usize>| items(text, container).len() == 1;
            for (container, item) in chain {
                if !alone(container) {
                    return Ok(Some(without(text, container, item)));
                }
            }
            let whole = items(text, &root).into_iter().find(|item| item.key.as_deref() == Some("hooks"));
            return Ok(whole.map(|item| without(text, &root, &item.whole)));
        }
    }
    Ok(None)
}

/// Every command at `hooks`, with its event.
pub(super) fn commands(text: &str) -> Result<Vec<(String, String)>, EditError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    root(text)?;
    let value: Value = serde_json::from_str(text).map_err(|error| EditError::NotJson(error.to_string()))?;
    let mut found = Vec::new();
    for (event, groups) in value["hooks"].as_object().into_iter().flatten() {
        let groups = groups.as_array().into_iter().flatten();
        let hooks = groups.flat_map(|group| group["hooks"].as_array().into_iter().flatten());
        let commands = hooks.filter_map(|hook| hook["command"].as_str());
        found.extend(commands.map(|command| (event.clone(), command.to_owned())));
    }
    Ok(found)
}

fn command(hook: &str) -> Option<String> {
    let hook: Value = serde_json::from_str(hook).ok()?;
    hook["command"].as_str().map(str::to_owned)
}

/// The text without an item of a container, and without the comma it had.
fn without(text: &str, container: &Range<usize>, item: &Range<usize>) -> String {
    let all = items(text, container);
    let at = all.iter().position(|other| other.whole == *item).unwrap_or(0);
    let cut = match (at, all.get(at + 1)) {
        (_, Some(next)) => item.start..next.whole.start,
        (0, None) => container.start + 1..container.end - 1,
        (_, None) => all[at - 1].whole.end..item.end,
    };
    format!("{}{}", &text[..cut.start], &text[cut.end..])
}

/// How the file is laid out, so that what is put in looks the same.
struct Layout {
    unit: String,
    /// One line for all.
    flat: bool,
}

impl Layout {
    fn of(text: &str, pretty: bool) -> Self {
        let indent = text.lines().find_map(|line| {
            let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
            (blanks > 0 && blanks < line.len()).then(|| line[..blanks].to_owned())
        });
        let flat = !pretty && !text.trim().contains('\n') && text.trim() != "{}";
        Self { unit: indent.unwrap_or_else(|| "  ".to_owned()), flat }
    }

    fn insert(
        &self,
        text: &str,
        container: &Range<usize>,
        key: Option<&str>,
        value: &impl Serialize,
    ) -> String {
        let all = items(text, container);
        let key = key.map_or(String::new(), |key| format!("{}: ", json!(key)));
        let line = text[..container.start].rfind('\n').map_or(0, |at| at + 1);
        let base = &text[line..line + blanks(&text[line..])];
        let inline =
            all.first().is_some_and(|first| !text[container.start..first.whole.start].contains('\n'));
        if self.flat || inline {
            let value = serde_json::to_string(value).unwrap_or_default();
            let comma = if all.is_empty() { "" } else { ", " };
            let at = all.last().map_or(container.start + 1, |last| last.whole.end);
            return format!("{}{comma}{key}{value}{}", &text[..at], &text[at..]);
        }
        let indent = match all.first() {
            Some(first) => {
                let line = text[..first.whole.start].rfind('\n').map_or(0, |at| at + 1);
                text[line..first.whole.start].to_owned()
            }
            None => format!("{base}{}", self.unit),
        };
        let value = pretty(value, &self.unit).replace('\n', &format!("\n{indent}"));
        if let Some(last) = all.last() {
            let at = last.whole.end;
            return format!("{},\n{indent}{key}{value}{}", &text[..at], &text[at..]);
        }
        let (before, after) = (&text[..=container.start], &text[container.end - 1..]);
        format!("{before}\n{indent}{key}{value}\n{base}{after}")
    }
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

fn pretty(value: &impl Serialize, unit: &str) -> String {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Values made here can be written.
    let _ = value.serialize(&mut serializer);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Checks that all of the text is one JSON object, and says where it stands.
fn root(text: &str) -> Result<Range<usize>, EditError> {
    let _: serde::de::IgnoredAny =
        serde_json::from_str(text).map_err(|error| EditError::NotJson(error.to_string()))?;
    let start = text.len() - text.trim_start().len();
    let root = start..text.trim_end().len();
    shaped(text, root, b'{', "the file", "an object")
}

fn shaped(
    text: &str,
    range: Range<usize>,
    open: u8,
    what: &str,
    shape: &'static str,
) -> Result<Range<usize>, EditError> {
    if text.as_bytes().get(range.start) == Some(&open) {
        return Ok(range);
    }
    Err(EditError::Shape(what.to_owned(), shape))
}

/// Where a member's value stands. Of two with the same key the last counts, as everywhere.
fn member(text: &str, object: &Range<usize>, key: &str) -> Option<Range<usize>> {
    let items = items(text, object);
    items.into_iter().rfind(|item| item.key.as_deref() == Some(key)).map(|item| item.value)
}

/// The parts of an object or a list in a text that is known to be JSON.
fn items(text: &str, container: &Range<usize>) -> Vec<Item> {
    let bytes = text.as_bytes();
    let is_object = bytes.get(container.start) == Some(&b'{');
    let mut all = Vec::new();
    let mut at = skip(bytes, container.start + 1);
    while at + 1 < container.end {
        let start = at;
        let mut key = None;
        if is_object {
            let end = value_end(bytes, at);
            key = serde_json::from_str(&text[at..end]).ok();
            // Over the colon.
            at = skip(bytes, skip(bytes, end) + 1);
        }
        let end = value_end(bytes, at);
        all.push(Item { whole: start..end, key, value: at..end });
        // Over the comma, or the end of the container.
        at = skip(bytes, skip(bytes, end) + 1);
    }
    all
}

fn skip(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while let Some(&inside) = bytes.get(at) {
                    match inside {
                        b'\\' => at += 1,
                        b'"' => break,
                        _ => {}
                    }
                    at += 1;
                }
                if depth == 0 {
                    return at + 1;
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' if depth == 0 => return at,
            byte if depth == 0 && byte.is_ascii_whitespace() => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
