//! The small list of fields below a task, both ways.

use super::line::{quote, unquote};
use super::{Fault, TaskText};
use crate::paper::prompt::BOUNDS_MAX;
use crate::paper::{self, Priority, TEXT_CHARS_MAX};
use crate::task::decide::LIST_MAX;
use crate::task::record::{Isolation, ParentEnd};

/// In the order they are written.
pub(super) const NAMES: [&str; 13] = [
    "agent",
    "part of",
    "after",
    "priority",
    "group",
    "files",
    "base",
    "isolation",
    "when parent ends",
    "may spawn",
    "may change",
    "must not change",
    "out of scope",
];
/// Words of a field's name.
const WORDS_MAX: usize = 3;

const PRIORITIES: [(&str, Priority); 4] = [
    ("low", Priority::Low),
    ("normal", Priority::Normal),
    ("high", Priority::High),
    ("critical", Priority::Critical),
];
const ISOLATIONS: [(&str, Isolation); 3] =
    [("auto", Isolation::Auto), ("worktree", Isolation::Worktree), ("shared", Isolation::Shared)];
const PARENT_ENDS: [(&str, ParentEnd); 3] =
    [("wait", ParentEnd::Wait), ("adopt", ParentEnd::Adopt), ("cancel", ParentEnd::Cancel)];
/// Whether it may make tasks, and whether it may use its own subagents without that.
const SPAWNING: [(&str, (bool, bool)); 5] = [
    ("yes", (true, false)),
    ("no", (false, false)),
    ("subagents", (false, true)),
    ("true", (true, false)),
    ("false", (false, false)),
];

/// The name and value of an item that has the shape of a field: a few words in small letters, a colon, the value.
pub(super) fn split(item: &str) -> Option<(&str, &str)> {
    let (name, value) = item.split_once(':')?;
    let apart = value.is_empty() || value.starts_with([' ', '\t']);
    let small = |letter: char| letter.is_ascii_lowercase() || matches!(letter, ' ' | '_');
    let words = name.split(' ').count();
    let shaped = !name.is_empty() && name.trim() == name && name.chars().all(small) && words <= WORDS_MAX;
    (apart && shaped).then(|| (name, value.trim()))
}

/// Sets a field of a task that has none of those in `seen` set. Answers which one it is.
pub(super) fn set(
    task: &mut TaskText,
    seen: &[(&'static str, usize)],
    name: &str,
    value: &str,
) -> Result<&'static str, Fault> {
    let known = match name.replace('_', " ").as_str() {
        "depends on" => "after",
        "parent" => "part of",
        other => {
            let found = NAMES.into_iter().find(|known| *known == other);
            found.ok_or_else(|| Fault::UnknownField { name: name.to_owned() })?
        }
    };
    if seen.iter().any(|(name, _)| *name == known) {
        return Err(Fault::FieldTwice { name: known });
    }
    match known {
        "agent" => task.agent = Some(one(known, value)?),
        "part of" => task.parent = Some(one(known, value)?),
        "after" => task.depends_on = names(known, value)?,
        "priority" => {
            task.priority = chosen(known, value, &PRIORITIES, "`low`, `normal`, `high` or `critical`")?;
        }
        "group" => task.group = Some(one(known, value)?),
        "files" => task.files = names(known, value)?,
        "base" => task.base = Some(one(known, value)?),
        "isolation" => {
            task.isolation = chosen(known, value, &ISOLATIONS, "`auto`, `worktree` or `shared`")?;
        }
        "when parent ends" => {
            task.when_parent_ends = chosen(known, value, &PARENT_ENDS, "`wait`, `adopt` or `cancel`")?;
        }
        "may spawn" => {
            (task.may_spawn, task.subagents) = chosen(known, value, &SPAWNING, "`yes`, `no` or `subagents`")?;
        }
        "may change" => task.bounds.may_change = bounds(known, value)?,
        "must not change" => task.bounds.must_not_change = bounds(known, value)?,
        _ => task.bounds.out_of_scope = bounds(known, value)?,
    }
    Ok(known)
}

/// The fields of a task that are not what they are without being said.
pub(super) fn all(task: &TaskText) -> Vec<(&'static str, String)> {
    let one = |text: &Option<String>| text.as_deref().map(single).unwrap_or_default();
    let several = |list: &[String]| list.iter().map(|item| listed(item)).collect::<Vec<_>>().join(", ");
    let texts = [
        one(&task.agent),
        one(&task.parent),
        several(&task.depends_on),
        said(task.priority, &PRIORITIES),
        one(&task.group),
        several(&task.files),
        one(&task.base),
        said(task.isolation, &ISOLATIONS),
        said(task.when_parent_ends, &PARENT_ENDS),
        said((task.may_spawn, task.subagents), &SPAWNING),
        several(&task.bounds.may_change),
        several(&task.bounds.must_not_change),
        several(&task.bounds.out_of_scope),
    ];
    NAMES.into_iter().zip(texts).filter(|(_, text)| !text.is_empty()).collect()
}

fn said<T: Copy + PartialEq + Default>(value: T, table: &[(&'static str, T)]) -> String {
    let name = table.iter().find(|(_, known)| *known == value && value != T::default());
    name.map(|(name, _)| (*name).to_owned()).unwrap_or_default()
}

fn single(text: &str) -> String {
    let plain = text.trim() == text && !text.is_empty() && !text.contains('`');
    if plain { text.to_owned() } else { quote(text) }
}

fn listed(text: &str) -> String {
    if text.contains(',') { quote(text) } else { single(text) }
}

fn chosen<T: Copy>(
    name: &'static str,
    value: &str,
    table: &[(&str, T)],
    known: &'static str,
) -> Result<T, Fault> {
    let value = one(name, value)?;
    let found = table.iter().find(|(word, _)| *word == value).map(|(_, found)| *found);
    found.ok_or(Fault::BadValue { name, value, known })
}

fn one(name: &'static str, value: &str) -> Result<String, Fault> {
    let text = match unquote(value) {
        Some((text, "")) => text,
        Some(_) | None => value,
    };
    paper::name(name, text)?;
    Ok(text.to_owned())
}

fn names(field: &'static str, value: &str) -> Result<Vec<String>, Fault> {
    let items = several(field, value, LIST_MAX)?;
    items.iter().try_for_each(|item| paper::name(field, item))?;
    Ok(items)
}

/// Parses the bounds of a task, which may be sentences.
fn bounds(field: &'static str, value: &str) -> Result<Vec<String>, Fault> {
    let items = several(field, value, BOUNDS_MAX)?;
    items.iter().try_for_each(|item| paper::words(field, item, TEXT_CHARS_MAX))?;
    Ok(items)
}

fn several(name: &'static str, value: &str, most: usize) -> Result<Vec<String>, Fault> {
    let mut items = Vec::new();
    let mut rest = value.trim();
    while !rest.is_empty() {
        let quoted = unquote(rest).and_then(|(item, after)| {
            let after = after.trim_start();
            Some((item, after.strip_prefix(',').or(after.is_empty().then_some(after))?))
        });
        let (item, after) = quoted.unwrap_or_else(|| {
            let (item, after) = rest.split_once(',').unwrap_or((rest, ""));
            (item.trim(), after)
        });
        rest = after.trim_start();
        items.push(item.to_owned());
        paper::few(name, &items, most)?;
    }
    if items.is_empty() {
        return Err(paper::PaperRefusal::Empty { field: name }.into());
    }
    Ok(items)
}
