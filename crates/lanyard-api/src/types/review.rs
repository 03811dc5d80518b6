//! Comments on a session's changes, files that were viewed, and pull requests.

use lanyard_core::session::{CommentState, Delivery, DiffSide, LineAnchor, ReviewComment, ViewedFile};
use lanyard_core::{CommentId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The review of a session's changes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReviewView {
    pub session: SessionId,
    /// In the order they were made: all drafts, and the newest that were sent.
    pub comments: Vec<CommentView>,
    /// Comments that were never sent.
    pub drafts: usize,
    pub viewed: Vec<ViewedFile>,
}

/// A comment, and the place of its lines in the workspace as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommentView {
    #[serde(flatten)]
    pub comment: ReviewComment,
    #[serde(flatten)]
    pub anchor: LineAnchor,
}

impl CommentView {
    /// The state in words: `draft`, `sent with turn 3`, `answered by turn 3`.
    #[must_use]
    pub fn state_words(&self) -> String {
        match self.comment.state {
            CommentState::Draft => "draft".to_owned(),
            CommentState::Sent { number: None, .. } => "sent, its turn waits".to_owned(),
            CommentState::Sent { number: Some(number), .. } => format!("sent with turn {number}"),
            CommentState::Answered { number, .. } => format!("answered by turn {number}"),
            CommentState::Unanswered { number, how, .. } => {
                format!("not answered: turn {number} ended as {}", how.as_str())
            }
        }
    }
}

/// A comment to be kept as a draft.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewComment {
    /// Path of the file below the top of its repository, as the diff names it.
    pub path: String,
    #[serde(default)]
    pub side: DiffSide,
    /// The first line, counted from 1.
    pub first: u32,
    /// The last line; the first one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u32>,
    pub text: String,
    /// The text of the lines as they were shown. Read from the file when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// The base of the diff, as in `from` of the session's diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommentEdit {
    pub text: String,
}

/// Comments to be sent to the agent as one message.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewReview {
    /// All drafts when absent. A comment whose turn did not complete can be named again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comments: Option<Vec<CommentId>>,
    /// Words in front of the comments.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How the message wants to arrive when a turn is running; after it when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// The epoch of the lease it is written under; the header `Lanyard-Writer` does as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer_epoch: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewViewed {
    pub path: String,
    /// The content that was viewed, as the diff gives it. Takes the mark away when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// Whether a pull request can be opened for what is checked out in a session's workspace.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PullRequestOffer {
    /// `gh` or `glab`; absent when neither is on the daemon's PATH, or there is no branch or no remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Address of the remote, without a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The worktree has changes that are in no commit; they are not part of a pull request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncommitted: bool,
    /// Why there can be none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPullRequest {
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The branch to merge into; the remote's default branch when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draft: bool,
    /// The address of the remote that was shown. Refused when the repository names another one by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PullRequest {
    pub session: SessionId,
    pub branch: String,
    pub commit: String,
    pub url: String,
    /// The pull request was open before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub existing: bool,
}
