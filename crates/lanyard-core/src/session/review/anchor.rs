//! The place of a comment's lines in a file that has changed since: unmoved, moved with their text, or no longer there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LineSpan;

/// Where the lines of a comment are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "anchor", rename_all = "snake_case")]
pub enum LineAnchor {
    /// The lines are where they were.
    Same,
    /// The same text stands at other lines.
    Moved { now: LineSpan },
    /// The text is not in the file any more: the lines changed since the comment was made.
    Stale,
}

/// The lines of a quote: a line break stands between two lines. A carriage return is no part of a line.
pub(super) fn quoted_lines(quote: &str) -> impl Iterator<Item = &str> {
    quote.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
}

/// The lines of a file: a line break at its end begins no further line.
fn file_lines(file: &str) -> impl Iterator<Item = &str> {
    quoted_lines(file.strip_suffix('\n').unwrap_or(file))
}

/// Finds quoted lines in a file. Of several places the nearest to the old one counts, the upper one of two. The cost is
/// that of reading the file once.
#[must_use]
pub fn locate(file: &str, quote: &str, lines: LineSpan) -> LineAnchor {
    let wanted: Vec<&str> = quoted_lines(quote).collect();
    let old = usize::try_from(lines.first).unwrap_or(usize::MAX).saturating_sub(1);
    let nearest = starts(file_lines(file), &wanted).min_by_key(|start| (start.abs_diff(old), *start));
    match nearest {
        None => LineAnchor::Stale,
        Some(start) if start == old => LineAnchor::Same,
        Some(start) => {
            let number = |index: usize| u32::try_from(index.saturating_add(1)).unwrap_or(u32::MAX);
            let now = LineSpan { first: number(start), last: number(start + wanted.len() - 1) };
            LineAnchor::Moved { now }
        }
    }
}

/// The indexes at which the wanted lines stand one after the other (Knuth, Morris and Pratt, over lines).
fn starts<'a>(file: impl Iterator<Item = &'a str>, wanted: &'a [&'a str]) -> impl Iterator<Item = usize> {
    let back = borders(wanted);
    let mut held = 0;
    file.enumerate().filter_map(move |(at, line)| {
        while held > 0 && wanted.get(held) != Some(&line) {
            held = back.get(held - 1).copied().unwrap_or(0);
        }
        if wanted.get(held) == Some(&line) {
            held += 1;
        }
        if held < wanted.len() {
            return None;
        }
        held = back.get(held - 1).copied().unwrap_or(0);
        Some(at + 1 - wanted.len())
    })
}

/// For each beginning of the lines the length of its longest proper beginning that also ends it.
fn borders(wanted: &[&str]) -> Vec<usize> {
    let mut back = vec![0; wanted.len()];
    let mut held = 0;
    for at in 1..wanted.len() {
        while held > 0 && wanted.get(held) != wanted.get(at) {
            held = back.get(held - 1).copied().unwrap_or(0);
        }
        if wanted.get(held) == wanted.get(at) {
            held += 1;
        }
        back[at] = held;
    }
    back
}
