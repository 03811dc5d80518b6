//! What is done with the answer to one request on its way back.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use lanyard_api::annotate::{self, AnswerReader, Taste, Words, json};
use lanyard_core::session::{Call, Returned};
use memchr::memmem::Finder;
use tokio::time::Instant;

use crate::intercept::UnderWay;
use crate::mcp::mcp_session::{McpSession, Person};
use crate::mcp::once::Ticket;
use crate::mcp::rpc::{self, Parcel, Piece};
use crate::mcp::translate;
use lanyard_engine::engine::AskError;
use lanyard_engine::live_runs::RunProof;

/// What a request is for, as far as its answer is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    Call,
    ListTools,
    /// Resources and prompts: text that comes before a model.
    Read,
    Other,
}

impl Aim {
    pub(super) fn of(method: &str) -> Self {
        match method {
            "tools/call" => Self::Call,
            "tools/list" => Self::ListTools,
            "resources/read" | "prompts/get" => Self::Read,
            _ => Self::Other,
        }
    }
}

/// A call of a known session, on its way.
#[derive(Debug)]
pub(super) struct Passing {
    pub(super) person: Arc<Person>,
    pub(super) call: Call,
    pub(super) began: Instant,
    pub(super) under_way: UnderWay,
    /// It is one of those that are carried out once.
    pub(super) ticket: Option<Ticket>,
}

/// One request on its way: who asked, and what becomes of its answer.
#[derive(Debug)]
pub(super) struct Work {
    /// The request's id, as it was written.
    pub(super) id: String,
    pub(super) aim: Aim,
    pub(super) mcp_session: Option<Arc<McpSession>>,
    /// The run whose token it came with.
    pub(super) proof: RunProof,
    pub(super) passing: Option<Passing>,
    pub(super) taste: Taste,
    /// The client is of revision 2026-07-28.
    pub(super) modern: bool,
    /// The server is of an older revision than the client: its results say no type.
    pub(super) completes: bool,
    /// The answer is Lanyard's own: it may hold the markers, and has looked after what others wrote itself.
    pub(super) own: bool,
}

impl Work {
    /// Nothing is done with the answer: it may stream by.
    pub(super) fn is_idle(&self) -> bool {
        !self.completes && (self.aim == Aim::Other || (self.mcp_session.is_none() && self.passing.is_none()))
    }

    /// The answer as the client gets it.
    pub(super) async fn finish(&mut self, answer: Bytes) -> Piece {
        if self.is_idle() {
            return answer.into();
        }
        let answer = if self.completes { translate::completed(&answer) } else { answer };
        match self.aim {
            Aim::Call => self.call_returned(answer).await,
            Aim::ListTools => self.tools_listed(annotate::defused(answer)).into(),
            Aim::Read => annotate::defused(answer).into(),
            Aim::Other => answer.into(),
        }
    }

    /// The server failed: a tool's caller reads it as the tool's result, any other as an error.
    pub(super) async fn failed(&mut self, what: &str) -> Piece {
        if self.aim == Aim::Call {
            let answer = rpc::result_text(&self.id, &annotate::failure(what, self.modern));
            return self.call_returned(answer.into()).await;
        }
        Bytes::from(rpc::error_text(&self.id, rpc::SERVER_FAILED, what)).into()
    }

    pub(super) fn reader(&self, tool: &str) -> AnswerReader {
        AnswerReader {
            taste: self.taste,
            promised: self.mcp_session.as_ref().is_none_or(|mcp_session| mcp_session.promises(tool)),
            modern: self.modern,
        }
    }

    async fn call_returned(&mut self, answer: Bytes) -> Piece {
        let answer = if self.own { answer } else { annotate::defused(answer) };
        let Some(Passing { person, call, began, under_way, ticket }) = self.passing.take() else {
            return answer.into();
        };
        if let Some(ticket) = ticket {
            ticket.keep(&answer).await;
        }
        let (person, tool) = (&*person, call.tool.clone());
        let returned = Returned {
            is_error: is_error(&answer),
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            bytes: answer.len() as u64,
        };
        // A refusal of Lanyard's holds no result that a stop could hold back.
        let refusal = self.own && returned.is_error;
        let lead = match person.bound.ends(call, returned, under_way.answered()).await {
            Ok(lead) => lead,
            Err(error) => {
                said(&error, "a tool's answer goes out without being looked at");
                return answer.into();
            }
        };
        if lead.withholds() {
            person.remember(lead.stop.as_ref());
        }
        if lead.is_empty() {
            return answer.into();
        }
        let notes = lead.notes.iter().map(|told| told.note).collect();
        let parcel = Parcel::new(person.bound.clone(), notes);
        let words = Words {
            blocks: lead.blocks(person.bound.session(), person.bound.nonce()),
            withhold: lead.withholds() && !refusal,
            is_error: lead.is_error(),
        };
        let reader = self.reader(&tool);
        let annotated =
            std::str::from_utf8(&answer).ok().and_then(|text| annotate::annotate(text, &words, reader));
        match annotated {
            Some(text) => Piece { bytes: text.into(), parcel },
            // What it would have carried goes again with the next answer that can.
            None => answer.into(),
        }
    }

    fn tools_listed(&self, answer: Bytes) -> Bytes {
        let Some(mcp_session) = &self.mcp_session else { return answer };
        let Ok(text) = std::str::from_utf8(&answer) else { return answer };
        let promises = memchr::memmem::find(&answer, b"outputSchema").is_some();
        match self.taste {
            Taste::Unknown if promises => annotate::without_schemas(text).map_or(answer, Bytes::from),
            Taste::Unknown | Taste::Drops | Taste::Unlisted => answer,
            Taste::Keeps => {
                mcp_session.listed(annotate::promising(text).unwrap_or_default());
                answer
            }
        }
    }
}

/// Unknown sessions are no error; everything else is logged.
pub(super) fn said(error: &AskError, what: &str) {
    match error {
        AskError::Unknown(_) | AskError::Deleted(_) => {}
        AskError::Refused(_)
        | AskError::Damaged { .. }
        | AskError::AliasTaken(_)
        | AskError::AliasReserved(_)
        | AskError::KeyConflict
        | AskError::Unavailable(_)
        | AskError::Overloaded
        | AskError::Closing
        | AskError::Defect(_) => tracing::warn!(%error, what),
    }
}

static IS_ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"isError\""));
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"error\""));

fn is_error(answer: &[u8]) -> bool {
    // A quote in a text is escaped, so each of these is a key somewhere: with none that says yes there is none that counts.
    let mut said = IS_ERROR.find_iter(answer).map(|at| &answer[at + IS_ERROR.needle().len()..]);
    if said.all(says_no) && ERROR.find(answer).is_none() {
        return false;
    }
    let Ok(text) = std::str::from_utf8(answer) else { return true };
    match json::member(text, "result") {
        Some(result) => json::member(result, "isError") == Some("true"),
        None => true,
    }
}

fn says_no(after_key: &[u8]) -> bool {
    let value = after_key.trim_ascii_start().strip_prefix(b":");
    value.is_some_and(|value| value.trim_ascii_start().starts_with(b"false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_an_error_where_its_result_says_so_or_there_is_none() {
        for (answer, expected) in [
            (r#"{"id":1,"result":{"content":[]}}"#, false),
            (r#"{"id":1,"result":{"content":[],"isError":false}}"#, false),
            (r#"{"id":1,"result":{"content":[],"isError" : false}}"#, false),
            (r#"{"id":1,"result":{"content":[],"isError":true}}"#, true),
            (r#"{"id":1,"result":{"isError": true,"content":[]}}"#, true),
            (r#"{"id":1,"error":{"code":-1,"message":"x"}}"#, true),
            // What lies deeper, or is only spoken of, does not count.
            (r#"{"id":1,"result":{"structuredContent":{"isError":true},"isError":false}}"#, false),
            (r#"{"id":1,"result":{"content":[{"text":"\"isError\":true"}]}}"#, false),
            (r#"{"id":1,"result":{"structuredContent":{"error":"x"}}}"#, false),
        ] {
            assert_eq!(is_error(answer.as_bytes()), expected, "{answer}");
        }
    }
}
