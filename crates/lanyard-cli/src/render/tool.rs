//! A tool call as people read it: a title, a result on the same line, and behind them the input, the output and the
//! changes of files. Each agent has a form of its own for all of these.

use lanyard_core::Timestamp;
use lanyard_core::session::block_part;
use lanyard_core::text::telling;
use serde_json::Value;

use crate::render::patch::{PatchLine, patch};
use crate::render::text::{count, fit, harmless, one_line};

/// Columns for the input in a title, and for the output in a result.
const INPUT_COLUMNS: usize = 80;
const OUTPUT_COLUMNS: usize = 120;

/// Names of fields that hold the text of a result.
const TEXTS: [&str; 5] = ["text", "content", "message", "error", "output"];

/// A tool call, and its result once it has returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolUse {
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    /// The tool with what says most of its input, on one line.
    pub(crate) title: String,
    pub(crate) input: String,
    pub(crate) edits: Vec<FileEdit>,
    pub(crate) returned: Option<ToolReturn>,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolReturn {
    pub(crate) id: String,
    pub(crate) failed: bool,
    pub(crate) output: String,
    pub(crate) edits: Vec<FileEdit>,
}

/// A change of a file as an agent describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileEdit {
    pub(crate) path: String,
    /// The text before; nothing for a new file, or where the agent does not say.
    pub(crate) old: Option<String>,
    pub(crate) new: String,
}

/// A piece of a tool's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResultBlock {
    Text(String),
    Edit(FileEdit),
}

/// A row behind a tool's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DetailRow {
    Label(String),
    Plain(String),
    Added(String),
    Removed(String),
}

/// The part of a tool call that is shown behind its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenedPart {
    Edits,
    Everything,
}

impl ToolUse {
    pub(crate) fn called(id: &str, at: Timestamp, tool: &str, arguments: &Value) -> Self {
        let (title, input) = (title(tool, arguments), input(arguments));
        Self { id: id.to_owned(), at, title, input, edits: edits(arguments), returned: None }
    }

    /// The call and its result on one line.
    pub(crate) fn line(&self) -> String {
        match &self.returned {
            Some(returned) => format!("{}: {}", self.title, returned.words()),
            None => format!("{}: no result", self.title),
        }
    }

    pub(crate) fn failed(&self) -> bool {
        self.returned.as_ref().is_some_and(|returned| returned.failed)
    }

    /// The changes of files. The agent's account of what it did counts more than what it was asked for; a call that
    /// failed changed nothing.
    pub(crate) fn changes(&self) -> &[FileEdit] {
        match &self.returned {
            Some(returned) if !returned.edits.is_empty() => &returned.edits,
            Some(returned) if returned.failed => &[],
            Some(_) | None => &self.edits,
        }
    }

    /// The rows behind the line.
    pub(crate) fn details(&self, opened: OpenedPart) -> Vec<DetailRow> {
        let mut rows: Vec<DetailRow> = self.changes().iter().flat_map(edit_rows).collect();
        if opened == OpenedPart::Edits {
            return rows;
        }
        let told = self.title.ends_with(&self.input) || !self.changes().is_empty();
        if !told {
            rows.push(DetailRow::Label("input".to_owned()));
            rows.extend(plain(&self.input));
        }
        let output = self.returned.as_ref().map_or("", |returned| &returned.output);
        if !output.trim().is_empty() {
            rows.push(DetailRow::Label("output".to_owned()));
            rows.extend(plain(output));
        }
        rows
    }
}

impl ToolReturn {
    pub(crate) fn read(id: &str, is_error: bool, content: &Value) -> Self {
        let (mut output, mut edits) = (String::new(), Vec::new());
        for block in blocks(content) {
            match block {
                ResultBlock::Edit(edit) => edits.push(edit),
                ResultBlock::Text(text) => {
                    if !output.is_empty() && !output.ends_with('\n') {
                        output.push('\n');
                    }
                    output.push_str(&text);
                }
            }
        }
        Self { id: id.to_owned(), failed: is_error, output, edits }
    }

    /// `ok`, `ok, 12 lines` or `failed, why`.
    pub(crate) fn words(&self) -> String {
        let output = self.output.trim();
        let lines = output.lines().count();
        match (self.failed, lines) {
            (false, 0 | 1) => "ok".to_owned(),
            (false, lines) => format!("ok, {}", count(lines, "line")),
            (true, 0) => "failed".to_owned(),
            (true, _) => format!("failed, {}", fit(&one_line(output), OUTPUT_COLUMNS)),
        }
    }
}

/// The rows of an action an agent asks to take: changes of files as diffs, anything else as its input.
pub(crate) fn request(detail: &Value) -> Vec<DetailRow> {
    let given = ["rawInput", "input", "arguments"].iter().find_map(|name| detail.get(*name));
    // What else is in an update of the protocol says nothing to people.
    let is_envelope = detail.get("toolCallId").is_some();
    let arguments = given.or((!is_envelope).then_some(detail)).unwrap_or(&Value::Null);
    let mut edits = edits(arguments);
    if is_envelope {
        edits.extend(ToolReturn::read("", false, &detail["content"]).edits);
    }
    if edits.is_empty() {
        plain(&input(arguments)).collect()
    } else {
        edits.iter().flat_map(edit_rows).collect()
    }
}

fn plain(text: &str) -> impl Iterator<Item = DetailRow> {
    harmless(text.trim_end())
        .lines()
        .map(|line| DetailRow::Plain(line.to_owned()))
        .collect::<Vec<_>>()
        .into_iter()
}

fn edit_rows(edit: &FileEdit) -> Vec<DetailRow> {
    let mut rows = vec![DetailRow::Label(one_line(&edit.path))];
    let lines = patch(edit.old.as_deref().unwrap_or_default(), &edit.new);
    rows.extend(lines.into_iter().map(|line| match line {
        PatchLine::Kept(line) => DetailRow::Plain(format!("  {}", harmless(&line))),
        PatchLine::Added(line) => DetailRow::Added(format!("+ {}", harmless(&line))),
        PatchLine::Removed(line) => DetailRow::Removed(format!("- {}", harmless(&line))),
        PatchLine::Skipped(lines) => DetailRow::Plain(format!("  … {} unchanged", count(lines, "line"))),
    }));
    rows
}

/// A tool with what says most of its arguments.
fn title(tool: &str, arguments: &Value) -> String {
    let shown = match (telling(arguments), arguments) {
        (Some(text), _) => text,
        (None, Value::Null) => String::new(),
        (None, Value::Object(fields)) if fields.is_empty() => String::new(),
        (None, other) => other.to_string(),
    };
    let shown = fit(&one_line(&shown), INPUT_COLUMNS);
    if shown.is_empty() { one_line(tool) } else { format!("{} {shown}", one_line(tool)) }
}

/// The arguments in full: a lone argument that says most as it is, anything else as JSON.
fn input(arguments: &Value) -> String {
    let lone = arguments.as_object().is_some_and(|fields| fields.len() == 1);
    match telling(arguments).filter(|_| lone) {
        Some(text) => text,
        None if arguments.is_null() || *arguments == serde_json::json!({}) => String::new(),
        None => serde_json::to_string_pretty(arguments).unwrap_or_default(),
    }
}

/// Changes of files that a call's arguments describe: a list of patches (Codex), a piece of text in place of another, or
/// a whole file (OpenCode, Claude).
pub(crate) fn edits(arguments: &Value) -> Vec<FileEdit> {
    let listed = arguments["changes"].as_array().map_or(&[][..], Vec::as_slice);
    listed.iter().filter_map(patched).chain(edited(arguments)).collect()
}

/// `{filePath, oldString, newString}` or `{filePath, content}`.
fn edited(arguments: &Value) -> Option<FileEdit> {
    let text = |names: &[&str]| names.iter().find_map(|name| arguments[*name].as_str()).map(str::to_owned);
    let path = text(&["filePath", "file_path", "path"])?;
    let (old, new) = match (text(&["oldString", "old_string"]), text(&["newString", "new_string"])) {
        (Some(old), Some(new)) => (Some(old), new),
        _ => (None, text(&["content"])?),
    };
    Some(FileEdit { path, old, new })
}

/// `{path, kind: {type, move_path}, diff}`: the whole text where a file comes or goes, else hunks.
fn patched(listed: &Value) -> Option<FileEdit> {
    let kind = &listed["kind"];
    let path = kind["move_path"].as_str().or_else(|| listed["path"].as_str())?.to_owned();
    let diff = listed["diff"].as_str()?;
    let (old, new) = match kind["type"].as_str()? {
        "add" => (None, diff.to_owned()),
        "delete" => (Some(diff.to_owned()), String::new()),
        _ => {
            let (old, new) = sides(diff);
            (Some(old), new)
        }
    };
    Some(FileEdit { path, old, new })
}

/// The lines of a patch's hunks before and after it.
fn sides(diff: &str) -> (String, String) {
    let (mut old, mut new) = (String::new(), String::new());
    let hunks = diff.lines().skip_while(|line| !line.starts_with("@@"));
    for line in hunks.filter(|line| !line.starts_with("@@") && !line.starts_with('\\')) {
        let (mark, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        if mark != "+" {
            old.push_str(text);
            old.push('\n');
        }
        if mark != "-" {
            new.push_str(text);
            new.push('\n');
        }
    }
    (old, new)
}

/// A tool's result as texts and changes; nothing where it returned nothing.
pub(crate) fn blocks(content: &Value) -> Vec<ResultBlock> {
    match content {
        Value::Null => Vec::new(),
        Value::String(text) => vec![ResultBlock::Text(text.clone())],
        Value::Array(parts) => parts.iter().flat_map(blocks).collect(),
        // A command of Codex: what it wrote, and how it ended where that was badly.
        Value::Object(fields) if fields.contains_key("exit_code") => command(content),
        Value::Object(fields) => {
            if let Some(part) = block_part(content) {
                return vec![ResultBlock::Text(part.label())];
            }
            let text = |name: &str| content[name].as_str().map(str::to_owned);
            if let (Some("diff"), Some(path), Some(new)) =
                (content["type"].as_str(), text("path"), text("newText"))
            {
                return vec![ResultBlock::Edit(FileEdit { path, old: text("oldText"), new })];
            }
            let inner = TEXTS.iter().find_map(|name| fields.get(*name));
            inner.map_or_else(|| vec![ResultBlock::Text(content.to_string())], blocks)
        }
        Value::Bool(_) | Value::Number(_) => vec![ResultBlock::Text(content.to_string())],
    }
}

fn command(content: &Value) -> Vec<ResultBlock> {
    let output = content["output"].as_str().unwrap_or_default();
    let ended = match content["exit_code"].as_i64() {
        Some(0) => None,
        Some(code) => Some(format!("exit code {code}")),
        None => content["status"].as_str().filter(|status| *status != "completed").map(str::to_owned),
    };
    let output = Some(output.to_owned()).filter(|output| !output.is_empty());
    output.into_iter().chain(ended).map(ResultBlock::Text).collect()
}

#[cfg(test)]
#[path = "tool_tests.rs"]
mod tests;
