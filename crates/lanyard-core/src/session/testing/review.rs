//! Comments of a review, and the message that carries them.

use crate::id::CommentId;
use crate::session::testing::{Input, inbox, note_id, turn_id};
use crate::session::{
    BaseKind, Command, Delivery, DiffSide, DraftComment, InboxChange, LineAnchor, LineSpan, Message,
    PlacedComment, ReviewBase, ReviewCommand,
};

pub(in crate::session) fn comment_id(comment: u128) -> CommentId {
    CommentId::from_u128(comment)
}

/// A comment on one line, whose text is `line LINE`.
pub(in crate::session) fn draft_of(comment: u128, line: u32) -> DraftComment {
    DraftComment {
        comment: comment_id(comment),
        path: "src/a.rs".into(),
        side: DiffSide::New,
        lines: LineSpan { first: line, last: line },
        quote: format!("line {line}"),
        text: format!("why {comment}?"),
        base: ReviewBase { kind: BaseKind::TurnStart, name: "turn-1".into(), commit: "0a".into() },
    }
}

pub(in crate::session) fn draft(comment: u128, line: u32) -> Input {
    ReviewCommand::Draft(Box::new(draft_of(comment, line))).into()
}

pub(in crate::session) fn view(path: &str, hash: Option<&str>) -> Input {
    ReviewCommand::View { path: path.into(), hash: hash.map(str::to_owned) }.into()
}

/// A message of this delivery with comments whose lines are where they were.
pub(in crate::session) fn send_review(turn: u128, delivery: Delivery, comments: &[u128]) -> Input {
    let placed = |comment: &u128| PlacedComment { comment: comment_id(*comment), anchor: LineAnchor::Same };
    let message = Message {
        turn: turn_id(turn),
        note: note_id(turn),
        client_turn_id: None,
        prompt: String::new(),
        parts: Vec::new(),
        delivery,
        memory: None,
        choice: crate::session::AgentChoice::default(),
        forced: false,
        take_over: false,
        review: Some(comments.iter().map(placed).collect()),
    };
    inbox(InboxChange::Send(Box::new(message)))
}

impl From<ReviewCommand> for Input {
    fn from(command: ReviewCommand) -> Self {
        Self::Command(Command::Review(command))
    }
}
