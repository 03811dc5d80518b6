//! The fold of the review: its own events, and what turns mean for the comments they carry.

use super::{
    CommentState, REVIEW_BYTES_MAX, ReviewBook, ReviewComment, ReviewEvent, SENT_MAX, VIEWED_MAX, ViewedFile,
};
use crate::id::{CommentId, TurnId};
use crate::session::event::Envelope;
use crate::session::operator::TurnEnd;
use crate::session::record::Session;

impl Session {
    pub(in crate::session) fn reviewing(&mut self, event: &ReviewEvent, envelope: &Envelope) -> bool {
        match event {
            ReviewEvent::Drafted(draft) => {
                let new = self.review.find(draft.comment).is_none();
                self.review.comments.push(ReviewComment {
                    draft: (**draft).clone(),
                    author: envelope.actor.clone(),
                    at: envelope.at,
                    edited_at: None,
                    state: CommentState::Draft,
                });
                new
            }
            ReviewEvent::Edited { comment, text } => {
                let Some(held) = self.review.find_mut(*comment) else { return false };
                held.draft.text.clone_from(text);
                held.edited_at = Some(envelope.at);
                held.state.is_open()
            }
            ReviewEvent::Removed { comment } => {
                let before = self.review.comments.len();
                self.review.comments.retain(|held| held.draft.comment != *comment);
                self.review.comments.len() < before
            }
            ReviewEvent::Sent { turn, comments } => {
                let runs = self.turn.as_ref().is_some_and(|active| active.id == *turn);
                let known = runs || self.waiting(*turn).is_some();
                let number = runs.then_some(self.turns);
                let all = comments.iter().all(|comment| self.review.sent(*comment, *turn, number));
                self.review.forget_oldest();
                known && all
            }
            ReviewEvent::Viewed { path, hash } => {
                self.review.viewed.retain(|mark| mark.path != *path);
                if let Some(hash) = hash {
                    if self.review.viewed.len() >= VIEWED_MAX {
                        self.review.viewed.pop_front();
                    }
                    let mark = ViewedFile { path: path.clone(), hash: hash.clone() };
                    self.review.viewed.push_back(mark);
                }
                true
            }
        }
    }
}

impl ReviewBook {
    fn find_mut(&mut self, id: CommentId) -> Option<&mut ReviewComment> {
        self.comments.iter_mut().find(|held| held.draft.comment == id)
    }

    /// Whether the comment could be sent.
    fn sent(&mut self, id: CommentId, turn: TurnId, number: Option<u64>) -> bool {
        let Some(held) = self.find_mut(id) else { return false };
        let legal = held.state.is_open();
        held.state = CommentState::Sent { turn, number };
        legal
    }

    /// Keeps the newest of the comments that were sent.
    fn forget_oldest(&mut self) {
        let (mut count, mut bytes) = (0, 0);
        let mut keep: Vec<bool> = Vec::with_capacity(self.comments.len());
        for held in self.comments.iter().rev() {
            if !held.state.is_open() {
                count += 1;
                bytes += held.bytes();
            }
            keep.push(held.state.is_open() || (count <= SENT_MAX && bytes <= REVIEW_BYTES_MAX));
        }
        let mut keep = keep.into_iter().rev();
        self.comments.retain(|_| keep.next().unwrap_or(true));
    }

    fn carried_by(&mut self, turn: TurnId) -> impl Iterator<Item = &mut ReviewComment> {
        self.comments
            .iter_mut()
            .filter(move |held| matches!(held.state, CommentState::Sent { turn: by, .. } if by == turn))
    }

    /// The turn runs under this number.
    pub(in crate::session) fn turn_began(&mut self, turn: TurnId, number: u64) {
        for held in self.carried_by(turn) {
            held.state = CommentState::Sent { turn, number: Some(number) };
        }
    }

    /// The message went into a running turn.
    pub(in crate::session) fn turn_merged(&mut self, turn: TurnId, into: TurnId, number: u64) {
        for held in self.carried_by(turn) {
            held.state = CommentState::Sent { turn: into, number: Some(number) };
        }
    }

    /// The message will not run: its comments are drafts again.
    pub(in crate::session) fn turn_withdrawn(&mut self, turn: TurnId) {
        for held in self.carried_by(turn) {
            held.state = CommentState::Draft;
        }
    }

    pub(in crate::session) fn turn_over(&mut self, turn: TurnId, number: u64, how: TurnEnd, seq: u64) {
        for held in self.carried_by(turn) {
            held.state = match how {
                TurnEnd::Completed => CommentState::Answered { turn, number, seq },
                TurnEnd::Failed
                | TurnEnd::Refused
                | TurnEnd::Cancelled
                | TurnEnd::Crashed
                | TurnEnd::Uncertain
                | TurnEnd::Limit => CommentState::Unanswered { turn, number, seq, how },
            };
        }
        self.forget_oldest();
    }
}
