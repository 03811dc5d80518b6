//! What a screen is told, and what it wants done.

use lanyard_client::Route;
use lanyard_core::{GateId, SessionId, Timestamp};
use ratatui::Frame;
use serde_json::Value;

use super::key::Key;

/// Something happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Key(Key),
    Paste(String),
    Resized {
        columns: u16,
        rows: u16,
    },
    /// What time it is by the daemon's clock.
    Tick(Timestamp),
    /// The same just before a key or a paste, so that a screen knows how long its rows have been readable.
    Now(Timestamp),
    /// From the daemon, over the stream.
    Frame(Value),
    Link(Link),
    Reply(Asked, Result<Value, Refused>),
}

/// How the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Connecting,
    Up,
    /// Broken; tried again and again.
    Down,
}

/// Why there was no answer, or why the answer was no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: String,
    pub(crate) title: String,
    pub(crate) advice: String,
    /// No answer: whether it was done is not known.
    pub(crate) unheard: bool,
}

/// What a reply is the reply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Session,
    Receipt,
    /// The mark that the end of a turn was shown.
    Seen,
    /// The family below.
    Below,
    Older,
    Newer,
    Latest,
    /// A turn, by its number among those sent from here.
    Turn(u64),
    /// A file that goes with the next message, by its number among those.
    File(u64),
    Guidance,
    Stop,
    Unstop,
    Cancel,
    Gate(GateId),
    InboxChange,
    Claim,
    Handover,
    /// Something about one row of the directory.
    Row(SessionId, RowVerb),
    Detail(SessionId),
    /// What flows ask.
    Gates,
    /// Whether all work is halted.
    Halt,
    /// An answer to a flow's gate.
    Answer(GateId),
}

/// What can be done to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowVerb {
    Stop,
    StopBelow,
    Guide,
    Cancel,
    Resume,
    Archive,
    Unarchive,
    Delete,
}

/// Something for the world outside.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Do {
    Call(Asked, Call),
    /// Have the daemon keep the content of a file, or a link.
    Keep(Asked, String),
    Leave(Exit),
}

/// Why a screen is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Exit {
    Quit,
    Attach(SessionId),
    /// Something is wrong that no further try will mend.
    Refused(Refused),
}

/// A request of the API.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) route: Route,
    pub(crate) body: Value,
    /// The epoch of the right to write, where one is held.
    pub(crate) writer: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Patch,
    Delete,
}

impl Call {
    pub(crate) fn get(route: Route) -> Self {
        Self { method: Method::Get, route, body: Value::Null, writer: None }
    }

    pub(crate) fn post(route: Route, body: Value) -> Self {
        Self { method: Method::Post, route, body, writer: None }
    }

    /// Carries the epoch of the right to write.
    pub(crate) fn writing(self, epoch: Option<u64>) -> Self {
        Self { writer: epoch, ..self }
    }
}

/// A screen of a terminal.
pub(crate) trait Screen {
    /// Takes a message. Pure: all it does to the world is what it answers.
    fn update(&mut self, message: Message) -> Vec<Do>;

    /// Makes ready for drawing what many messages changed.
    fn settle(&mut self) {}

    fn draw(&self, frame: &mut Frame<'_>);
}
