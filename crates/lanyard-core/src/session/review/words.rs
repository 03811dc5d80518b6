//! Comments as one message to the agent. The format is stable: people and tests read it.

use std::fmt::Write;

use super::{DiffSide, LineAnchor, ReviewComment};

/// A fence is at least this long, and longer than any in the text.
const FENCE_MIN: usize = 3;

/// The message: the operator's own words, then files in order, and in each file the lines in order.
pub(in crate::session) fn message(intro: &str, comments: &[(&ReviewComment, LineAnchor)]) -> String {
    let mut sorted = comments.to_vec();
    sorted.sort_by_key(|(comment, anchor)| {
        (comment.draft.path.clone(), place(comment, *anchor).0.first, comment.draft.side == DiffSide::New)
    });
    let count = match sorted.len() {
        1 => "one comment".to_owned(),
        count => format!("{count} comments"),
    };
    let mut text = format!("Review of your changes: {count}. Address each.");
    if !intro.trim().is_empty() {
        let _ = write!(text, "\n\n{}", intro.trim());
    }
    for (comment, anchor) in sorted {
        let (lines, note) = place(comment, anchor);
        let draft = &comment.draft;
        let fence = fence(&draft.quote);
        let _ = write!(
            text,
            "\n\n{}:{lines}{note}\n{fence}\n{}\n{fence}\n{}",
            draft.path,
            draft.quote,
            draft.text.trim()
        );
    }
    text
}

/// The lines as they are now, and what to know about them.
fn place(comment: &ReviewComment, anchor: LineAnchor) -> (super::LineSpan, &'static str) {
    match (comment.draft.side, anchor) {
        (DiffSide::Old, _) => (comment.draft.lines, " (before the change)"),
        (DiffSide::New, LineAnchor::Same) => (comment.draft.lines, ""),
        (DiffSide::New, LineAnchor::Moved { now }) => (now, ""),
        (DiffSide::New, LineAnchor::Stale) => (comment.draft.lines, " (these lines changed since)"),
    }
}

/// A fence the quoted text cannot end.
fn fence(quote: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for letter in quote.chars() {
        run = if letter == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(FENCE_MIN.max(longest + 1))
}
