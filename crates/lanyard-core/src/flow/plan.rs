//! A plan as a person writes it: a title, and phases with checklists. Read only; Lanyard never writes into it. Pure; knows
//! nothing of flows.
//!
//! ```markdown
//! # Title of the plan
//!
//! What it is for.
//!
//! ## Phase 1: The parser
//!
//! What is to be done, in any words.
//!
//! - [x] read the grammar
//! - [ ] write the parser
//!
//! ## [x] The lexer
//! ```
//!
//! - The title is the first `#` heading; without one, the first heading that is no phase; without any, "Plan".
//! - A phase is a `##` or `###` heading that begins with the word "Phase", or has a box, or has a checklist below it. Items
//!   are `- [ ]`, `* [x]`, `+ [ ]`, `1. [ ]`, however deep they are indented.
//! - To a phase belongs all that stands below its heading, down to the next heading of its own or a higher level.
//!   Headings in it are a part of its text, whatever they are called.
//! - A `##` heading around `###` headings that begin with "Phase" or have a box is a group: those are the phases. What
//!   stands before the first of them is a phase of its own if it has a checklist; else it is only text.
//! - A box in a heading is not a part of its title. A phase is done when its heading is ticked, or when it has a checklist
//!   and all of its items are.
//! - What stands in a code block, in an HTML comment of whole lines, or between `---` at the very top is only text.
//!
//! Everything else is text that belongs to no phase. A plan without phases is one that can be reviewed.

use crate::refusals;
use crate::task::markdown::line::{Blocks, boxed, bullet, heading};

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

/// Bytes of a plan.
pub const BYTES_MAX: usize = 1024 * 1024;
/// Phases of one plan.
pub const PHASES_MAX: usize = 200;
/// Characters of a title: it stands in lists.
pub const TITLE_CHARS_MAX: usize = 300;
/// Characters of a phase's text: all of it goes into a prompt.
pub const PHASE_CHARS_MAX: usize = 100_000;

/// Levels of Markdown's headings.
const LEVELS: std::ops::RangeInclusive<usize> = 1..=6;
/// More columns than this before a line make it code.
const INDENT_MAX: usize = 3;
/// Levels that phases have.
const OUTER: usize = 2;
const INNER: usize = 3;

/// A parsed plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlowPlanText {
    pub title: String,
    pub phases: Vec<PhaseText>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PhaseText {
    pub title: String,
    /// The text below the heading.
    pub text: String,
    /// The heading is ticked, or all items of the checklist are.
    pub done: bool,
}

/// Why a text is no plan, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct PlanError {
    /// Counted from 1.
    pub line: usize,
    pub what: PlanFault,
}

refusals! {
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum PlanFault {
        TooLarge => "plan_too_large", Invalid
            ("the plan is longer than {BYTES_MAX} bytes") ("make several plans of it");
        Empty => "plan_empty", Invalid
            ("the plan is empty")
            ("write a line `# Title`, and a heading `## Phase 1: Title` with a checklist below it for each phase");
        TooManyPhases => "plan_too_many_phases", Invalid
            ("there are more than {PHASES_MAX} phases") ("make several plans of it");
        TitleTooLong => "plan_title_too_long", Invalid
            ("the heading is longer than {TITLE_CHARS_MAX} characters")
            ("say it shorter, and put the rest below the heading");
        NoTitle => "plan_phase_without_title", Invalid
            ("the heading of a phase says nothing")
            ("write `## Phase 1: Title`, or move its checklist to the phase it belongs to");
        PhaseTooLong => "plan_phase_too_long", Invalid
            ("the text of the phase is longer than {PHASE_CHARS_MAX} characters")
            ("make several phases of it, or put what is long into a file and name that");
        OpenBlock => "plan_open_block", Invalid
            ("a code block begins here and does not end") ("end it with a line of the same marks");
        OpenComment => "plan_open_comment", Invalid
            ("a comment begins here and does not end") ("end it with `-->`");
    }
}

/// Reads a plan.
pub fn read(text: &str) -> Result<FlowPlanText, PlanError> {
    if text.len() > BYTES_MAX {
        return Err(at(1, PlanFault::TooLarge));
    }
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Err(at(1, PlanFault::Empty));
    }
    let lines: Vec<&str> = text.lines().collect();
    let marks = marks(&lines)?;
    let parts = parts(&marks, lines.len());
    if let Some(part) = parts.get(PHASES_MAX) {
        return Err(at(part.line + 1, PlanFault::TooManyPhases));
    }
    let title = title(&marks, &parts)?;
    let phases = parts.iter().map(|part| phase(&lines, &marks, part)).collect::<Result<_, _>>()?;
    Ok(FlowPlanText { title, phases })
}

fn at(line: usize, what: PlanFault) -> PlanError {
    PlanError { line, what }
}

/// A line that says something about the plan's form.
#[derive(Debug, Clone, Copy)]
struct Mark<'a> {
    /// Line number, counted from 0.
    line: usize,
    what: What<'a>,
}

#[derive(Debug, Clone, Copy)]
enum What<'a> {
    Heading { level: usize, title: &'a str, tick: Option<bool> },
    Item { ticked: bool },
}

/// A phase: its heading and where what belongs to it ends.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    line: usize,
    title: &'a str,
    ticked: bool,
    end: usize,
}

/// All headings and items of checklists, in order.
fn marks<'a>(lines: &[&'a str]) -> Result<Vec<Mark<'a>>, PlanError> {
    let mut found = Vec::new();
    let mut blocks = Blocks::default();
    let mut comment = None;
    for (place, line) in lines.iter().enumerate().skip(front_matter(lines)) {
        if comment.is_none() && blocks.takes(place, line) {
            continue;
        }
        if comment.is_none() && line.trim_start().starts_with("<!--") {
            comment = Some(place);
        }
        if comment.is_some() {
            comment = comment.filter(|_| !line.contains("-->"));
            continue;
        }
        found.extend(what(line).map(|what| Mark { line: place, what }));
    }
    // Whatever follows would be taken for code, and phases would be left out without a word.
    if let Some(place) = blocks.open_since() {
        return Err(at(place + 1, PlanFault::OpenBlock));
    }
    match comment {
        Some(place) => Err(at(place + 1, PlanFault::OpenComment)),
        None => Ok(found),
    }
}

/// Lines at the top that are settings of some other program.
fn front_matter(lines: &[&str]) -> usize {
    let is_rule = |line: &&str| line.trim_end() == "---";
    if !lines.first().is_some_and(is_rule) {
        return 0;
    }
    lines.iter().skip(1).position(is_rule).map_or(0, |end| end + 2)
}

fn what(line: &str) -> Option<What<'_>> {
    let inner = line.trim_start_matches(' ');
    if line.len() - inner.len() <= INDENT_MAX
        && let Some((level, text)) =
            LEVELS.into_iter().find_map(|level| Some((level, heading(inner, level)?)))
    {
        let text = without_closing_marks(text);
        let (tick, title) = boxed(text).map_or((None, text), |(ticked, title)| (Some(ticked), title));
        return Some(What::Heading { level, title, tick });
    }
    let (ticked, _) = bullet(line).and_then(boxed)?;
    Some(What::Item { ticked })
}

/// `## Title ##` is a way to write a heading.
fn without_closing_marks(text: &str) -> &str {
    let rest = text.trim_end_matches('#');
    if rest.is_empty() || rest.ends_with([' ', '\t']) { rest.trim_end() } else { text }
}

/// "Phase", "phase 2", "PHASE: x", or anything with a box; not "Phases" or "Phased".
fn is_called_phase(title: &str, tick: Option<bool>) -> bool {
    let word = title.get(.."phase".len()).is_some_and(|word| word.eq_ignore_ascii_case("phase"));
    tick.is_some() || (word && !title["phase".len()..].starts_with(char::is_alphabetic))
}

fn parts<'a>(marks: &[Mark<'a>], lines: usize) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    for (index, mark) in marks.iter().enumerate() {
        let What::Heading { level, title, tick } = mark.what else { continue };
        let inside = parts.last().is_some_and(|part| mark.line < part.end);
        if inside || !(OUTER..=INNER).contains(&level) {
            continue;
        }
        let below = &marks[index + 1..];
        let closes =
            |mark: &&Mark<'_>| matches!(mark.what, What::Heading { level: other, .. } if other <= level);
        let end = below.iter().find(closes).map_or(lines, |mark| mark.line);
        let within = |mark: &&Mark<'_>| mark.line < end;
        let named = |mark: &&Mark<'_>| {
            level == OUTER
                && matches!(mark.what, What::Heading { level: INNER, title, tick } if is_called_phase(title, tick))
        };
        let group = below.iter().take_while(within).find(named).map(|first| first.line);
        let end = group.unwrap_or(end);
        let listed = items(below, end).next().is_some();
        if listed || (group.is_none() && is_called_phase(title, tick)) {
            parts.push(Part { line: mark.line, title, ticked: tick == Some(true), end });
        }
    }
    parts
}

/// Whether each item before this line is ticked.
fn items<'m>(marks: &'m [Mark<'_>], end: usize) -> impl Iterator<Item = bool> + 'm {
    marks.iter().take_while(move |mark| mark.line < end).filter_map(|mark| match mark.what {
        What::Item { ticked } => Some(ticked),
        What::Heading { .. } => None,
    })
}

fn title(marks: &[Mark<'_>], parts: &[Part<'_>]) -> Result<String, PlanError> {
    let is_phase = |line: usize| parts.iter().any(|part| part.line == line);
    let headings = || {
        marks.iter().filter_map(|mark| match mark.what {
            What::Heading { level, title, .. } => Some((mark.line, level, title)),
            What::Item { .. } => None,
        })
    };
    let said = |(_, _, title): &(usize, usize, &str)| !title.is_empty();
    let first = headings().filter(said).find(|(_, level, _)| *level == 1);
    let found = first.or_else(|| headings().filter(said).find(|(line, _, _)| !is_phase(*line)));
    match found {
        Some((line, _, title)) => short(line, title),
        None => Ok("Plan".to_owned()),
    }
}

fn short(line: usize, title: &str) -> Result<String, PlanError> {
    if title.chars().count() > TITLE_CHARS_MAX {
        return Err(at(line + 1, PlanFault::TitleTooLong));
    }
    Ok(title.to_owned())
}

fn phase(lines: &[&str], marks: &[Mark<'_>], part: &Part<'_>) -> Result<PhaseText, PlanError> {
    if part.title.is_empty() {
        return Err(at(part.line + 1, PlanFault::NoTitle));
    }
    let title = short(part.line, part.title)?;
    let text = without_edges(&lines[part.line + 1..part.end]).join("\n");
    if text.chars().count() > PHASE_CHARS_MAX {
        return Err(at(part.line + 1, PlanFault::PhaseTooLong));
    }
    let below = marks.partition_point(|mark| mark.line <= part.line);
    let (mut listed, mut all) = (false, true);
    for ticked in items(&marks[below..], part.end) {
        (listed, all) = (true, all && ticked);
    }
    Ok(PhaseText { title, text, done: part.ticked || (listed && all) })
}

/// Without the empty lines before and after.
fn without_edges<'a, 'b>(lines: &'b [&'a str]) -> &'b [&'a str] {
    let blank = |line: &&str| line.trim().is_empty();
    let start = lines.iter().take_while(|line| blank(line)).count();
    let end = lines.iter().rev().take_while(|line| blank(line)).count();
    lines.get(start..lines.len() - end).unwrap_or_default()
}
