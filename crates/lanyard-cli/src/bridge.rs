//! The bridge: OpenCode's HTTP server as an agent that speaks lines on stdio.
//!
//! OpenCode streams its events without a way to ask for them again, and the daemon may be away at any moment. So one
//! bridge and one `opencode serve` live side by side under the shim, outlive the daemon, and keep the [`ledger`]: what
//! was said already, so that each word and each tool call is said once, whatever connection broke. A bridge serves one
//! Lanyard session: OpenCode keeps its MCP connections per directory, and two sessions must never share them.
//!
//! # The protocol
//!
//! One JSON object per line, both ways. In, each with an `id` that its answer repeats:
//!
//! ```text
//! {"id","op":"open","native"?,"directory","title"?,"agent"?,"model"?,"system"?,"mcp":[{"name","config"}]}
//! {"id","op":"prompt","turn","session"?,"text","command"?,"model"?,"agent"?,"effort"?}
//!                                                    the end comes as session.idle with this turn in its note
//! {"id","op":"steer","session"?,"text"}              words into the running turn; refused when none runs
//! {"id","op":"abort","session"?}
//! {"id","op":"reply","request","reply","message"?}   to permission.asked: once, always, reject
//! {"id","op":"answer","request","answers"?}          to question.asked: labels per question; without them a refusal
//! {"id","op":"compact"}
//! {"id","op":"end"}                                  the server is ended, and the bridge
//! ```
//!
//! Out:
//!
//! ```text
//! {"re":ID,"ok":{…}}  {"re":ID,"error":{"code","message"}}
//! {"event":EVENT,"note":{…}}    an event as OpenCode shapes it, if it says anything new, and what the ledger adds:
//!     message.part.delta        all text, also what came otherwise; kind (text, reasoning, summary), at (bytes before)
//!     message.part.updated      tools when they start and when they are done (was: the status said before), steps with
//!                               their tokens (summary), patches (files)
//!     session.created           a child (prompt; again when it was set to work once more)
//!     session.idle              the end of work (turn, error, aborted)
//!     session.status            retries; session.compacted (before, after); todo.updated; session.error without a session
//!     permission.asked, permission.replied, question.asked, question.replied (ours: answered through the bridge)
//! {"gap":{"number"}}            the stream broke and is back; what was missed follows as events
//! {"odd":"…"}                   something to log
//! {"down":{"what"}}             the last line
//! ```

mod clip;
mod http;
mod ledger;
mod offers;
mod ops;
mod process;
mod refetch;
mod run;
mod stdio;
mod stream;
mod talk;

pub(crate) use run::run;

/// What goes wrong between the bridge and its server.
#[derive(Debug)]
pub(crate) enum BridgeError {
    /// The server cannot be started, or died.
    Server(String),
    /// A request had no usable answer.
    Request(String),
    /// The server said no.
    Refused { status: u16, message: String },
    /// The bridge was asked to end, or its output is closed.
    Ending(&'static str),
}

impl std::fmt::Display for BridgeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server(what) | Self::Request(what) => f.write_str(what),
            Self::Refused { status, message } => write!(f, "OpenCode answered {status}: {message}"),
            Self::Ending(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for BridgeError {}
