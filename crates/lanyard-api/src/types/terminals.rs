//! Programs on terminals: what is shown of them, and what is typed.

use lanyard_core::session::WindowSize;
use lanyard_core::{ConnectionId, RunId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::WriterEntry;

/// The screen of a program on a terminal: as it is, or as it was last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalView {
    pub session: SessionId,
    /// The program runs.
    pub running: bool,
    /// The run whose screen it is; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    pub size: WindowSize,
    /// The title the program gave its window.
    pub title: String,
    /// The rows of the screen, without the space at their ends.
    pub text: String,
    /// The cursor, where it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<CursorPlace>,
    /// The lines above the screen that are left, and the screen. Only where `transcript=true` asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
}

/// A place on the screen, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CursorPlace {
    pub row: u16,
    pub col: u16,
}

/// Text frames of a stream that shows a terminal. Output comes between them in binary frames.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TerminalFrame {
    /// The first frame.
    Connected(Box<TerminalConnected>),
    /// The next binary frame makes an empty terminal of this size show the whole screen; later ones follow from it. It
    /// comes at first, with each new size, and to a watcher that fell behind.
    Screen { cols: u16, rows: u16 },
    /// The program has ended; all of its output was sent.
    Ended,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TerminalConnected {
    pub session: SessionId,
    /// Give it back as `connection` to come back as the same connection.
    pub connection: ConnectionId,
    /// The program runs, or is about to.
    pub running: bool,
    pub writer: Option<WriterEntry>,
    pub writer_epoch: u64,
    /// How often a quiet stream carries a heartbeat.
    pub heartbeat_ms: u64,
}

/// Something to be typed. Under one key it is typed once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewTerminalInput {
    /// The bytes in base64; at most 64 KiB.
    pub data: String,
}

/// The size that the window is to have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewWindowSize {
    pub cols: u16,
    pub rows: u16,
}

/// What became of typing, or of a new size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalReceipt {
    /// It was done before under this key, and not again.
    pub repeated: bool,
}
