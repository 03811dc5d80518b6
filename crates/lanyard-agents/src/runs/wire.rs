//! What daemon and shim say to each other: lines of JSON. A `send` is followed by as many raw bytes as it says.

use serde::{Deserialize, Serialize};

use super::process::Identity;
use super::record::Exit;

/// The longest line; a key and a few numbers fit easily.
pub(crate) const LINE_MAX: usize = 64 * 1024;
/// The most that may wait for the agent to read it, and so the longest single input.
pub const INPUT_MAX: usize = 64 * 1024 * 1024;
/// The longest key of an input. 4,096 of them are remembered.
pub(crate) const KEY_MAX: usize = 256;

/// From the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum Request {
    Send { id: u64, key: String, len: usize },
    CloseInput { id: u64 },
    Resize { id: u64, key: String, cols: u16, rows: u16 },
    End { id: u64, grace_ms: u64 },
    Status { id: u64 },
    Consumed { to: u64 },
}

/// From the shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Message {
    /// First on every connection.
    Hello {
        status: Status,
    },
    Answer {
        id: u64,
        result: Answer,
    },
    /// The spool has grown to this length.
    Output {
        to: u64,
    },
    Exit {
        exit: Exit,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Done,
    First,
    Repeated,
    /// The agent's stdin is closed, or the agent is gone.
    InputClosed,
    /// Too much waits for the agent already.
    InputFull,
    /// The window has the new size from this place in the output on.
    Resized {
        at: u64,
    },
    /// The run has no terminal.
    NoTerminal,
    Status(Status),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) agent: Identity,
    pub(crate) output: u64,
    pub(crate) consumed: u64,
    pub(crate) input_open: bool,
    pub(crate) input_waiting: usize,
    pub(crate) ending: bool,
}

/// The one line the shim says on its stdout when it has started the agent, or has not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Birth {
    Started { agent: u32 },
    Failed { what: Failed, text: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Failed {
    Program,
    Permission,
    Cwd,
    Disk,
    Shim,
    Other,
}

/// A line ready to be written.
pub(crate) fn line(value: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(value).map_err(std::io::Error::other)?;
    bytes.push(b'\n');
    Ok(bytes)
}
