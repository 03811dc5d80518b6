//! The review of a session's changes: comments on lines of a diff, kept in the session's log until they are sent to the
//! agent as one message.
//!
//! A comment is a draft until it is sent. Sending is part of the decision that admits the message (`decide_inbox`), so
//! the turn and the marks are one commit. Files and repositories are read elsewhere and arrive as data.

mod anchor;
mod fold;
#[cfg(test)]
mod tests;
mod words;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::{CommentId, TurnId};
use crate::policy::Limits;
use crate::session::decide::{body, exists, log_has_room};
use crate::session::event::Event;
use crate::session::operator::TurnEnd;
use crate::session::record::{Session, is_default};
use crate::session::refusal::Refusal;
use crate::time::Timestamp;

pub use anchor::{LineAnchor, locate};
pub(super) use words::message;

/// Comments that can still be sent.
pub const DRAFTS_MAX: usize = 100;
/// Comments that were sent and are listed; the log keeps all.
pub const SENT_MAX: usize = 100;
/// Bytes of the drafts together, and as many of the comments that were sent.
pub const REVIEW_BYTES_MAX: usize = 256 * 1024;
pub const COMMENT_BYTES_MAX: usize = 8 * 1024;
pub const QUOTE_BYTES_MAX: usize = 16 * 1024;
/// Lines of one comment.
pub const SPAN_LINES_MAX: u32 = 200;
/// Bytes of the name of a file.
const PATH_BYTES_MAX: usize = 1_024;
/// Bytes of a checkpoint's name, a commit or a content's hash.
const NAME_BYTES_MAX: usize = 200;
/// Files with a mark; the oldest marks are forgotten.
pub const VIEWED_MAX: usize = 500;

/// The side of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffSide {
    /// The file as the base has it.
    Old,
    /// The file after the change.
    #[default]
    New,
}

/// Lines of a file, the first and the last one included, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct LineSpan {
    pub first: u32,
    pub last: u32,
}

impl LineSpan {
    /// Number of lines; 0 for a span that ends before it begins.
    #[must_use]
    pub const fn len(self) -> u32 {
        if self.last < self.first { 0 } else { (self.last - self.first).saturating_add(1) }
    }

    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl std::fmt::Display for LineSpan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// The kinds of base that a diff is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BaseKind {
    /// The checkpoint the newest turn began with.
    TurnStart,
    /// The first checkpoint of the session.
    SessionStart,
    /// The commit at which the branch left its base branch.
    Branch,
    /// A checkpoint chosen by name.
    Checkpoint,
}

/// The base of a diff as it was resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewBase {
    pub kind: BaseKind,
    /// Name of the checkpoint or of the base branch.
    pub name: String,
    pub commit: String,
}

/// A comment to be kept as a draft. Its id was minted before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DraftComment {
    pub comment: CommentId,
    /// Path of the file below the top of its repository.
    pub path: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub side: DiffSide,
    pub lines: LineSpan,
    /// The text of the lines, as they were when the comment was made.
    pub quote: String,
    pub text: String,
    pub base: ReviewBase,
}

/// How far a comment has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CommentState {
    /// Not sent. A message that was withdrawn leaves its comments as drafts.
    Draft,
    /// Part of a message that waits or runs.
    Sent {
        turn: TurnId,
        /// Number of the turn, once it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u64>,
    },
    /// The turn that had it completed.
    Answered { turn: TurnId, number: u64, seq: u64 },
    /// The turn that had it ended in another way. The comment can be sent again.
    Unanswered { turn: TurnId, number: u64, seq: u64, how: TurnEnd },
}

impl CommentState {
    /// Whether the comment can be sent and changed.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        match self {
            Self::Draft | Self::Unanswered { .. } => true,
            Self::Sent { .. } | Self::Answered { .. } => false,
        }
    }
}

/// A comment on lines of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewComment {
    #[serde(flatten)]
    pub draft: DraftComment,
    pub author: Actor,
    pub at: Timestamp,
    /// Time of the last change of its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<Timestamp>,
    #[serde(flatten)]
    pub state: CommentState,
}

impl ReviewComment {
    const fn bytes(&self) -> usize {
        self.draft.text.len() + self.draft.quote.len()
    }
}

/// A file that an operator marked as viewed, with this content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ViewedFile {
    pub path: String,
    pub hash: String,
}

/// The review of a session: its comments in the order they were made, and the files that were viewed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReviewBook {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<ReviewComment>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub viewed: VecDeque<ViewedFile>,
}

impl ReviewBook {
    #[must_use]
    pub fn find(&self, id: CommentId) -> Option<&ReviewComment> {
        self.comments.iter().find(|held| held.draft.comment == id)
    }

    /// Comments that were never sent.
    pub fn drafts(&self) -> impl Iterator<Item = &ReviewComment> {
        self.comments.iter().filter(|held| held.state == CommentState::Draft)
    }

    fn open(&self) -> impl Iterator<Item = &ReviewComment> {
        self.comments.iter().filter(|held| held.state.is_open())
    }

    /// Whether a file was viewed with this content.
    #[must_use]
    pub fn is_viewed(&self, path: &str, hash: &str) -> bool {
        self.viewed.iter().any(|mark| mark.path == path && mark.hash == hash)
    }
}

/// A comment to be sent, with the place of its lines at that time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedComment {
    pub comment: CommentId,
    pub anchor: LineAnchor,
}

/// Commands to the review. Sending is a message and goes through the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewCommand {
    Draft(Box<DraftComment>),
    Edit {
        comment: CommentId,
        text: String,
    },
    Remove {
        comment: CommentId,
    },
    /// Marks a file as viewed with this content; without a hash takes the mark away.
    View {
        path: String,
        hash: Option<String>,
    },
}

impl ReviewCommand {
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Draft(_) => "draft_comment",
            Self::Edit { .. } => "edit_comment",
            Self::Remove { .. } => "remove_comment",
            Self::View { .. } => "view_file",
        }
    }
}

/// The review of the session's changes went on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum ReviewEvent {
    #[serde(rename = "review.drafted")]
    Drafted(Box<DraftComment>),
    #[serde(rename = "review.edited")]
    Edited { comment: CommentId, text: String },
    #[serde(rename = "review.removed")]
    Removed { comment: CommentId },
    /// The comments are part of this turn's message, written in the same commit.
    #[serde(rename = "review.sent")]
    Sent { turn: TurnId, comments: Vec<CommentId> },
    /// A file was marked as viewed with this content; without a hash the mark was taken away.
    #[serde(rename = "review.viewed")]
    Viewed {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
    },
}

pub(super) fn decide(
    session: &Session,
    command: &ReviewCommand,
    limits: &Limits,
) -> Result<Vec<Event>, Refusal> {
    exists(session)?;
    log_has_room(session, limits)?;
    let book = &session.review;
    match command {
        ReviewCommand::Draft(draft) => {
            if book.find(draft.comment).is_some() {
                return Ok(Vec::new());
            }
            check(draft)?;
            room(book, 1, draft.text.len() + draft.quote.len())?;
            Ok(vec![ReviewEvent::Drafted(draft.clone()).into()])
        }
        ReviewCommand::Edit { comment, text } => {
            let held = open(book, *comment)?;
            comment_text(text)?;
            if held.draft.text == *text {
                return Ok(Vec::new());
            }
            room(book, 0, text.len().saturating_sub(held.draft.text.len()))?;
            Ok(vec![ReviewEvent::Edited { comment: *comment, text: text.clone() }.into()])
        }
        ReviewCommand::Remove { comment } => {
            let held = book.find(*comment).ok_or(Refusal::CommentUnknown { comment: *comment })?;
            match held.state {
                CommentState::Sent { turn, .. } => Err(Refusal::CommentSent { comment: *comment, turn }),
                CommentState::Draft | CommentState::Answered { .. } | CommentState::Unanswered { .. } => {
                    Ok(vec![ReviewEvent::Removed { comment: *comment }.into()])
                }
            }
        }
        ReviewCommand::View { path, hash } => {
            short("path", path, PATH_BYTES_MAX)?;
            hash.as_deref().map_or(Ok(()), |hash| short("hash", hash, NAME_BYTES_MAX))?;
            let held = book.viewed.iter().find(|mark| mark.path == *path).map(|mark| &mark.hash);
            if held == hash.as_ref() {
                return Ok(Vec::new());
            }
            Ok(vec![ReviewEvent::Viewed { path: path.clone(), hash: hash.clone() }.into()])
        }
    }
}

/// The comments a message is to carry: each is there and can be sent.
pub(super) fn chosen<'a>(
    session: &'a Session,
    placed: &[PlacedComment],
) -> Result<Vec<(&'a ReviewComment, LineAnchor)>, Refusal> {
    if placed.is_empty() {
        return Err(Refusal::ReviewEmpty);
    }
    let mut found: Vec<(&ReviewComment, LineAnchor)> = Vec::new();
    for PlacedComment { comment, anchor } in placed {
        let held = open(&session.review, *comment)?;
        if found.iter().all(|(known, _)| known.draft.comment != *comment) {
            found.push((held, *anchor));
        }
    }
    Ok(found)
}

fn open(book: &ReviewBook, comment: CommentId) -> Result<&ReviewComment, Refusal> {
    let held = book.find(comment).ok_or(Refusal::CommentUnknown { comment })?;
    match held.state {
        CommentState::Draft | CommentState::Unanswered { .. } => Ok(held),
        CommentState::Sent { turn, .. } | CommentState::Answered { turn, .. } => {
            Err(Refusal::CommentSent { comment, turn })
        }
    }
}

fn room(book: &ReviewBook, more: usize, bytes: usize) -> Result<(), Refusal> {
    if book.open().count() + more > DRAFTS_MAX {
        return Err(Refusal::ReviewFull { max: DRAFTS_MAX, unit: "comments" });
    }
    if book.open().map(ReviewComment::bytes).sum::<usize>() + bytes > REVIEW_BYTES_MAX {
        return Err(Refusal::ReviewFull { max: REVIEW_BYTES_MAX, unit: "bytes" });
    }
    Ok(())
}

fn check(draft: &DraftComment) -> Result<(), Refusal> {
    short("path", &draft.path, PATH_BYTES_MAX)?;
    short("base", &draft.base.name, NAME_BYTES_MAX)?;
    short("commit", &draft.base.commit, NAME_BYTES_MAX)?;
    comment_text(&draft.text)?;
    let lines = draft.lines;
    if lines.first == 0 || lines.is_empty() || lines.len() > SPAN_LINES_MAX {
        return Err(Refusal::LineRange { max: SPAN_LINES_MAX });
    }
    if draft.quote.len() > QUOTE_BYTES_MAX {
        return Err(Refusal::TooLong { field: "quote", max: QUOTE_BYTES_MAX, unit: "bytes" });
    }
    if anchor::quoted_lines(&draft.quote).count() != usize::try_from(lines.len()).unwrap_or(usize::MAX) {
        return Err(Refusal::QuoteDiffers { lines: lines.len() });
    }
    Ok(())
}

fn comment_text(text: &str) -> Result<(), Refusal> {
    body("text", text)?;
    if text.len() > COMMENT_BYTES_MAX {
        return Err(Refusal::TooLong { field: "text", max: COMMENT_BYTES_MAX, unit: "bytes" });
    }
    Ok(())
}

fn short(field: &'static str, text: &str, max: usize) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(Refusal::Empty { field });
    }
    if text.len() > max {
        return Err(Refusal::TooLong { field, max, unit: "bytes" });
    }
    if text.chars().any(char::is_control) {
        return Err(Refusal::BadText { field });
    }
    Ok(())
}
