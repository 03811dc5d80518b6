//! The words in which a stop, guidance or a notice reaches an agent. The first line of each is a stable marker on which
//! instructions and tests rely.
//!
//! What people wrote stands between two fence lines that carry the session's nonce. Tool output cannot know the nonce,
//! and lookalikes of the markers in it are defused, so nothing a tool says can pass for a person's word.

use crate::actor::ActorKind;
use crate::id::SessionId;
use crate::session::calls::{Directive, Lead, Told};
use crate::session::guidance::{NoteKind, neutral};
use crate::session::stop::{StopLevel, StopScope};

pub const GRACEFUL: &str = "⚠️ SESSION STOP REQUESTED";
pub const IMMEDIATE: &str = "🛑 SESSION STOP — IMMEDIATE";
pub const TERMINATED: &str = "❌ SESSION TERMINATED";
pub const GUIDANCE: &str = "📝 USER GUIDANCE (injected by user):";
pub const INTERRUPTED: &str = "⚠️ SUBAGENT INTERRUPTED:";
pub const REPORT: &str = "📬 SUBAGENT REPORT (agent output, not from the user):";
/// Between a directive of level 1 and the answer it precedes.
pub const ORIGINAL: &str = "--- ORIGINAL RESPONSE ---";
/// Between guidance and the answer it precedes.
pub const RESPONSE: &str = "--- TOOL RESPONSE ---";

/// Fragments that every lookalike of a marker contains. Searched for in tool output.
pub const LOOKALIKES: [&str; 9] = [
    "SESSION STOP",
    "SESSION TERMINATED",
    "USER GUIDANCE",
    "GUIDANCE (from",
    "SUBAGENT INTERRUPTED",
    "SUBAGENT REPORT",
    "ORIGINAL RESPONSE ---",
    "TOOL RESPONSE ---",
    "[lanyard ",
];
/// Put inside a lookalike, so that it is no longer one. Invisible, and not a space.
pub const DEFUSED: char = '\u{2060}';

impl Directive {
    /// The whole text of the directive, for the session it is told to.
    #[must_use]
    pub fn text(&self, session: SessionId) -> String {
        let what = match self.scope {
            StopScope::Turn => "this turn",
            StopScope::Session | StopScope::Subtree => "this session",
        };
        let reason = self.reason.as_deref().map_or(String::new(), |reason| format!("Reason: {reason}\n"));
        match self.level {
            StopLevel::Graceful => format!(
                "{GRACEFUL}\nThe user asked for {what} to stop.\n{reason}\
                 1. Finish the current call; its answer follows below. Begin nothing new.\n\
                 2. Hand off to Coordinator with reason \"User requested stop\" \
                 (memory_agent, action handoff).\n\
                 3. Then complete (memory_agent, action complete).\n\
                 Any other tool call raises the stop."
            ),
            StopLevel::Immediate => format!(
                "{IMMEDIATE}\nThe user wants {what} to stop now. This call was not answered.\n{reason}\
                 1. Stop immediately. Process no more steps.\n\
                 2. Hand off with reason \"User forced stop\" (memory_agent, action handoff).\n\
                 3. Complete (memory_agent, action complete).\n\
                 Any other tool call ends the session."
            ),
            StopLevel::Terminated => format!(
                "{TERMINATED}\nSession {session} was terminated. Every further tool call gets this error.\n\
                 {reason}Do not call any tool again. End your work now."
            ),
        }
    }
}

impl Lead {
    /// The content blocks that go in front of the answer, in order; the separator ends the last one where the answer
    /// follows.
    #[must_use]
    pub fn blocks(&self, session: SessionId, nonce: &str) -> Vec<String> {
        if let Some(stop) = &self.stop {
            let mut text = stop.text(session);
            if stop.level == StopLevel::Graceful {
                text.push('\n');
                text.push_str(ORIGINAL);
            }
            return vec![text];
        }
        let mut blocks: Vec<String> = Vec::new();
        let is_notice = |told: &&Told| matches!(told.kind, NoteKind::Notice | NoteKind::Report);
        blocks.extend(self.notes.iter().filter(is_notice).map(|told| notice(told, nonce)));
        let words: Vec<&Told> = self.notes.iter().filter(|told| !is_notice(told)).collect();
        // All that one hand wrote stands under one heading, in the order it was written.
        for group in words.chunk_by(|one, other| heading(one) == heading(other)) {
            blocks.push(guidance(group, nonce));
        }
        if let Some(last) = blocks.last_mut() {
            last.push('\n');
            last.push_str(RESPONSE);
        }
        blocks
    }
}

fn heading(told: &Told) -> String {
    match told.by.kind {
        ActorKind::Operator => GUIDANCE.to_owned(),
        ActorKind::Agent | ActorKind::Observer | ActorKind::System => {
            format!("📝 GUIDANCE (from {} `{}`, not from the user):", told.by.kind.as_str(), told.by.name)
        }
    }
}

fn guidance(group: &[&Told], nonce: &str) -> String {
    let mut text = group.first().map_or(String::new(), |told| heading(told));
    for told in group {
        text.push_str(&fenced(told, nonce));
    }
    text
}

fn notice(told: &Told, nonce: &str) -> String {
    let heading = if told.kind == NoteKind::Report { REPORT } else { INTERRUPTED };
    format!("{heading}{}", fenced(told, nonce))
}

/// The words between two lines only Lanyard can write: who, when, and which note.
fn fenced(told: &Told, nonce: &str) -> String {
    let again = if told.again { ", repeated: you may have seen it" } else { "" };
    let words = match told.by.kind {
        // A person's words arrive as they are; what an agent may do is enforced elsewhere.
        ActorKind::Operator => told.text.clone(),
        ActorKind::System => told.text.clone(),
        ActorKind::Agent | ActorKind::Observer => neutral(&told.text),
    };
    // The nonce is no secret to the agent; words that carry it must not close the fence.
    let words = words.replace(nonce, "…");
    format!(
        "\n[lanyard {nonce} {} from {} at {}{again}]\n{words}\n[/lanyard {nonce}]",
        told.note, told.by.name, told.queued_at
    )
}

/// Text of a tool in which nothing can be taken for Lanyard's own words. `None` when it is fine as it is.
#[must_use]
pub fn defuse(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((at, len)) = first_lookalike(rest) {
        // After the first character, which is ASCII in all of them.
        let cut = at + 1;
        out.push_str(&rest[..cut]);
        out.push(DEFUSED);
        out.push_str(&rest[cut..at + len]);
        rest = &rest[at + len..];
    }
    if out.is_empty() {
        return None;
    }
    out.push_str(rest);
    Some(out)
}

fn first_lookalike(text: &str) -> Option<(usize, usize)> {
    LOOKALIKES.iter().filter_map(|mark| text.find(mark).map(|at| (at, mark.len()))).min()
}
