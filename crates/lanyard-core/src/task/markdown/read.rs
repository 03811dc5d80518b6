//! A text as a plan: which of the two forms it has, what is common to both, and whether it adds up.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{Blocks, Fence, boxed, bullet, heading, unquote};
use super::{BYTES_MAX, Fault, MarkdownError, PlanText, TASKS_MAX, TaskText, field, list, slug, steps};
use crate::paper::{self, TEXT_CHARS_MAX};
use crate::task::decide::PROMPT_CHARS_MAX;
use crate::task::schedule;

/// A line and its number.
pub(super) type Numbered<'a> = (usize, &'a str);

/// A task that was read, and where.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) line: usize,
    pub(super) task: TaskText,
    /// The place of the task it is nested in.
    pub(super) inside: Option<usize>,
    /// The fields it has, and where.
    fields: Vec<(&'static str, usize)>,
}

impl Found {
    fn line_of(&self, field: &str) -> usize {
        self.fields.iter().find(|(name, _)| *name == field).map_or(self.line, |(_, line)| *line)
    }
}

/// The plan a text describes.
pub fn read(text: &str) -> Result<PlanText, MarkdownError> {
    if text.len() > BYTES_MAX {
        return Err(at(1, Fault::TooLarge));
    }
    // Files that end their lines the other way do it from the first line on.
    let other_ends = text.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r'));
    let unified = if other_ends { text.replace("\r\n", "\n") } else { text.to_owned() };
    let lines: Vec<Numbered<'_>> = unified.split('\n').enumerate().map(|(at, line)| (at + 1, line)).collect();
    let lines = steps::without(&lines);
    let (title, rest) = title(&lines)?;
    let (goal, mut found) = match form(rest)? {
        Form::Headings => headings(rest)?,
        Form::Checklist => list::read(rest)?,
    };
    let Some(last) = found.last() else {
        return Err(at(lines.len(), Fault::NoTasks));
    };
    let last = last.line;
    if found.len() > TASKS_MAX {
        return Err(at(last, Fault::TooManyTasks));
    }
    name_keys(&mut found)?;
    resolve(&mut found)?;
    check_circles(&found)?;
    let tasks = found.into_iter().map(|found| found.task).collect();
    Ok(PlanText { title, goal, tasks, steps: None })
}

pub(super) fn at(line: usize, what: impl Into<Fault>) -> MarkdownError {
    MarkdownError { line, what: what.into() }
}

fn title<'a, 'b>(lines: &'b [Numbered<'a>]) -> Result<(String, &'b [Numbered<'a>]), MarkdownError> {
    let first = lines.iter().position(|(_, line)| !line.trim().is_empty());
    let first = first.ok_or_else(|| at(1, Fault::NoTitle))?;
    let (number, line) = lines[first];
    let title = heading(line.trim_start_matches('\u{feff}'), 1).ok_or_else(|| at(number, Fault::NoTitle))?;
    paper::name("title", title).map_err(|refusal| at(number, refusal))?;
    Ok((title.to_owned(), &lines[first + 1..]))
}

enum Form {
    Headings,
    Checklist,
}

/// Headings with boxes are tasks. So are headings without, unless there is a checklist.
fn form(lines: &[Numbered<'_>]) -> Result<Form, MarkdownError> {
    let mut blocks = Blocks::default();
    let mut checklist = false;
    for (number, line) in lines {
        if blocks.takes(*number, line) {
            continue;
        }
        if heading(line, 2).is_some_and(|text| boxed(text).is_some()) {
            return Ok(Form::Headings);
        }
        checklist |= bullet(line).is_some_and(|item| boxed(item).is_some());
    }
    match blocks.open_since() {
        Some(number) => Err(at(number, Fault::OpenFence)),
        None if checklist => Ok(Form::Checklist),
        None => Ok(Form::Headings),
    }
}

fn headings(lines: &[Numbered<'_>]) -> Result<(Option<String>, Vec<Found>), MarkdownError> {
    let mut blocks = Blocks::default();
    let mut starts = Vec::new();
    for (place, (number, line)) in lines.iter().enumerate() {
        if !blocks.takes(*number, line)
            && let Some(text) = heading(line, 2)
        {
            starts.push((place, *number, text));
        }
    }
    if let Some(number) = blocks.open_since() {
        return Err(at(number, Fault::OpenFence));
    }
    let with_box = starts.iter().any(|(_, _, text)| boxed(text).is_some());
    let goal = goal(&lines[..starts.first().map_or(lines.len(), |start| start.0)])?;
    let mut found = Vec::new();
    for (index, (place, number, text)) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(lines.len(), |next| next.0);
        let (done, text) = match boxed(text) {
            Some(boxed) => boxed,
            None if with_box => return Err(at(*number, Fault::NoBox)),
            None => (false, *text),
        };
        let mut task = begin(*number, done, text)?;
        let rest = fields(&mut task, &lines[place + 1..end])?;
        task.task.prompt = prompt(&task, rest)?;
        found.push(task);
    }
    Ok((goal, found))
}

/// A task from `key: Title` or a title alone. The key is empty then.
pub(super) fn begin(line: usize, done: bool, text: &str) -> Result<Found, MarkdownError> {
    let apart = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t']);
    let quoted = unquote(text).and_then(|(key, rest)| Some((key, rest.strip_prefix(':')?)));
    let bare = || text.split_once(':').filter(|(key, _)| is_bare_key(key));
    let (key, title) = quoted.or_else(bare).filter(|(_, rest)| apart(rest)).unwrap_or(("", text));
    let title = title.trim();
    paper::name("title", title).map_err(|refusal| at(line, refusal))?;
    if !key.is_empty() {
        paper::name("key", key).map_err(|refusal| at(line, refusal))?;
    }
    let task = TaskText { key: key.to_owned(), title: title.to_owned(), done, ..TaskText::default() };
    Ok(Found { line, task, ..Found::default() })
}

/// Keys that need no backticks.
pub(super) fn is_bare_key(key: &str) -> bool {
    let letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/');
    !key.is_empty() && key.chars().all(letter)
}

/// Reads the fields that come first, and answers the lines below them.
pub(super) fn fields<'a, 'b>(
    found: &mut Found,
    lines: &'b [Numbered<'a>],
) -> Result<&'b [Numbered<'a>], MarkdownError> {
    let mut place = lines.iter().take_while(|(_, line)| line.trim().is_empty()).count();
    while let Some((number, line)) = lines.get(place) {
        let item = bullet(line).filter(|item| boxed(item).is_none());
        let Some((name, value)) = item.and_then(field::split) else { break };
        let set = field::set(&mut found.task, &found.fields, name, value);
        found.fields.push((set.map_err(|fault| at(*number, fault))?, *number));
        place += 1;
    }
    Ok(&lines[place..])
}

pub(super) fn prompt(found: &Found, lines: &[Numbered<'_>]) -> Result<String, MarkdownError> {
    let Some((line, text)) = body("prompt", lines)? else { return Ok(found.task.title.clone()) };
    paper::words("prompt", &text, PROMPT_CHARS_MAX).map_err(|refusal| at(line, refusal))?;
    Ok(text)
}

pub(super) fn goal(lines: &[Numbered<'_>]) -> Result<Option<String>, MarkdownError> {
    let Some((line, text)) = body("goal", lines)? else { return Ok(None) };
    paper::words("goal", &text, TEXT_CHARS_MAX).map_err(|refusal| at(line, refusal))?;
    Ok(Some(text))
}

/// A text of several lines and its start: the content of the block with this name, or the whole text.
fn body(name: &'static str, lines: &[Numbered<'_>]) -> Result<Option<(usize, String)>, MarkdownError> {
    let start = lines.iter().take_while(|(_, line)| line.trim().is_empty()).count();
    let lines = &lines[start..];
    let Some((number, first)) = lines.first() else { return Ok(None) };
    let joined = |lines: &[Numbered<'_>]| lines.iter().map(|line| line.1).collect::<Vec<_>>().join("\n");
    let Some((fence, _)) = Fence::opens(first).filter(|(_, info)| *info == name) else {
        return Ok(Some((*number, joined(lines).trim().to_owned())));
    };
    let inside = &lines[1..];
    let end = inside.iter().position(|(_, line)| fence.is_closed_by(line));
    let end = end.ok_or_else(|| at(*number, Fault::OpenFence))?;
    if let Some((number, _)) = inside[end + 1..].iter().find(|(_, line)| !line.trim().is_empty()) {
        return Err(at(*number, Fault::AfterFence { name }));
    }
    Ok(Some((*number, joined(&inside[..end]))))
}

/// Gives a key to every task that has none; those that were written come first.
fn name_keys(found: &mut [Found]) -> Result<(), MarkdownError> {
    let mut taken = BTreeSet::new();
    for one in found.iter().filter(|one| !one.task.key.is_empty()) {
        if !taken.insert(one.task.key.clone()) {
            return Err(at(one.line, Fault::KeyTwice { key: one.task.key.clone() }));
        }
    }
    for one in found.iter_mut().filter(|one| one.task.key.is_empty()) {
        let made = slug(&one.task.title);
        let mut key = made.clone();
        let mut count = 1;
        while !taken.insert(key.clone()) {
            count += 1;
            key = format!("{made}-{count}");
        }
        one.task.key = key;
    }
    Ok(())
}

/// Turns what tasks call each other into keys: a key as it is, or a title whose key was made.
fn resolve(found: &mut [Found]) -> Result<(), MarkdownError> {
    let keys: BTreeSet<String> = found.iter().map(|one| one.task.key.clone()).collect();
    let nested: Vec<Option<String>> = found
        .iter()
        .map(|one| one.inside.and_then(|place| Some(found.get(place)?.task.key.clone())))
        .collect();
    let key_of = |line: usize, called: &str| {
        let made = slug(called);
        let key = [called, made.as_str()].into_iter().find(|key| keys.contains(*key));
        key.map(str::to_owned).ok_or_else(|| at(line, Fault::UnknownKey { key: called.to_owned() }))
    };
    for (one, outer) in found.iter_mut().zip(nested) {
        let (after, part) = (one.line_of("after"), one.line_of("part of"));
        one.task.parent = match one.task.parent.take() {
            Some(called) => Some(key_of(part, &called)?),
            None => outer,
        };
        for called in &mut one.task.depends_on {
            *called = key_of(after, called)?;
        }
    }
    Ok(())
}

fn check_circles(found: &[Found]) -> Result<(), MarkdownError> {
    let depends: BTreeMap<&str, Vec<&str>> = found
        .iter()
        .map(|one| (one.task.key.as_str(), one.task.depends_on.iter().map(String::as_str).collect()))
        .collect();
    let parts: BTreeMap<&str, Vec<&str>> = found
        .iter()
        .map(|one| (one.task.key.as_str(), one.task.parent.as_deref().into_iter().collect()))
        .collect();
    let Some(circle) = schedule::circle(&depends).or_else(|| schedule::circle(&parts)) else { return Ok(()) };
    let line = found.iter().find(|one| circle.contains(&one.task.key.as_str())).map_or(1, |one| one.line);
    Err(at(line, Fault::Cycle { keys: circle.into_iter().map(str::to_owned).collect() }))
}
