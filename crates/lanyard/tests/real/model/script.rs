//! What the model is told to answer, and how to misbehave.

use std::time::Duration;

use serde_json::Value;

/// One answer of the model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    pub(super) thought: String,
    pub(super) text: String,
    pub(super) calls: Vec<Wanted>,
    pub(super) error: Option<(u16, String)>,
    pub(super) delay: Duration,
    pub(super) chunk_delay: Duration,
    pub(super) hang: Option<Hang>,
    pub(super) usage: Option<Usage>,
    pub(super) fault: Option<Fault>,
}

/// A tool call as the script names it. `~echo` means the first offered tool with that name, that
/// ending or that part; `mcp__server::tool` names a tool in a namespace.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) tool: String,
    pub(super) args: Value,
}

/// How long an answer pauses after its first word. A client that hangs up ends every pause.
#[derive(Debug, Clone)]
pub(super) enum Hang {
    For(Duration),
    UntilReleased,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub(super) input: u64,
    pub(super) output: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The request is read and nothing is ever said.
    Silent,
    /// After the first word comes something that is no JSON, and the stream ends.
    Malformed,
    /// After the first word, or at once when there is none, the connection is reset.
    Reset,
}

impl Step {
    /// Text that ends the turn, unless a call is added.
    pub(crate) fn text(text: &str) -> Step {
        Step { text: text.to_owned(), ..Step::default() }
    }

    /// One tool call.
    pub(crate) fn tool(tool: &str, args: Value) -> Step {
        Step::default().and_tool(tool, args)
    }

    /// An HTTP error instead of an answer.
    pub(crate) fn error(status: u16, message: &str) -> Step {
        Step { error: Some((status, message.to_owned())), ..Step::default() }
    }

    /// One more call in the same answer: after a text, or beside another call.
    pub(crate) fn and_tool(mut self, tool: &str, args: Value) -> Step {
        self.calls.push(Wanted { tool: tool.to_owned(), args });
        self
    }

    /// Reasoning before the text, where the protocol has a place for it.
    pub(crate) fn thinking(mut self, thought: &str) -> Step {
        thought.clone_into(&mut self.thought);
        self
    }

    /// Waits before the first byte: a late answer.
    pub(crate) fn delay(mut self, delay: Duration) -> Step {
        self.delay = delay;
        self
    }

    /// Waits between words.
    pub(crate) fn chunk_delay(mut self, delay: Duration) -> Step {
        self.chunk_delay = delay;
        self
    }

    /// Waits after the first word.
    pub(crate) fn hang(mut self, pause: Duration) -> Step {
        self.hang = Some(Hang::For(pause));
        self
    }

    /// Waits after the first word until the test calls `Model::release` with the script's name.
    pub(crate) fn held(mut self) -> Step {
        self.hang = Some(Hang::UntilReleased);
        self
    }

    /// The token counts to report, such as ones that force a compaction.
    pub(crate) fn usage(mut self, input: u64, output: u64) -> Step {
        self.usage = Some(Usage { input, output });
        self
    }

    pub(crate) fn silent() -> Step {
        Step { fault: Some(Fault::Silent), ..Step::default() }
    }

    pub(crate) fn malformed(mut self) -> Step {
        self.fault = Some(Fault::Malformed);
        self
    }

    pub(crate) fn reset(mut self) -> Step {
        self.fault = Some(Fault::Reset);
        self
    }
}
