//! The steps that misbehave, as they are written.

use super::{WAIT_MS_MAX, needed, number, split};

/// Bytes of one `/endless` line.
const ENDLESS_MAX: usize = 1 << 30;
/// Chunks after a cancel.
const CHUNKS_MAX: u64 = 1_000_000;
/// What `/die` sends itself when no signal is named: SIGKILL.
const DIE_DEFAULT: i32 = 9;

/// One thing an agent should not do, done on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agent) enum Misdeed {
    IgnoreCancel,
    StreamAfterCancel(u64),
    AnswerLate(u64),
    Malformed,
    Endless(usize),
    Hang,
    ForkAway(String),
    RunOn(String),
    RunBare(String),
    Serve(String),
    IgnoreTerm,
    Die(i32),
    Exit(i32),
    NoAnswer,
    DoubleAnswer,
    LateUpdate,
    UnknownUpdate,
    Error {
        code: i32,
        message: String,
    },
    /// The provider's limit, until the file is there. The first time makes it.
    Limit {
        file: String,
        limit: ScriptedLimit,
    },
}

/// A limit of the provider, as an agent tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agent) enum ScriptedLimit {
    /// A usage limit, with the milliseconds until its reset if that is told.
    Usage { reset_ms: Option<u64> },
    /// A quota that is spent.
    Quota,
    /// The provider is overloaded.
    Overloaded,
    /// The agent dies with words about a usage limit.
    Dies,
}

pub(super) fn parse(name: &str, rest: &str) -> Result<Option<Misdeed>, String> {
    let misdeed = match name {
        "/ignore-cancel" => Misdeed::IgnoreCancel,
        "/stream-after-cancel" => Misdeed::StreamAfterCancel(number(rest, "how many chunks", CHUNKS_MAX)?),
        "/answer-late" => Misdeed::AnswerLate(number(rest, "milliseconds", WAIT_MS_MAX)?),
        "/malformed" => Misdeed::Malformed,
        "/endless" => Misdeed::Endless(number(rest, "how many bytes", ENDLESS_MAX)?),
        "/hang" => Misdeed::Hang,
        "/fork-away" => Misdeed::ForkAway(needed(rest, "a command")?.to_owned()),
        "/run-on" => Misdeed::RunOn(needed(rest, "a command")?.to_owned()),
        "/run-bare" => Misdeed::RunBare(needed(rest, "a program")?.to_owned()),
        "/serve" => Misdeed::Serve(needed(rest, "a program")?.to_owned()),
        "/ignore-term" => Misdeed::IgnoreTerm,
        "/die" if rest.is_empty() => Misdeed::Die(DIE_DEFAULT),
        "/die" => Misdeed::Die(number(rest, "a signal", i32::MAX)?),
        "/exit" => Misdeed::Exit(number(rest, "an exit code", 255)?),
        "/no-answer" => Misdeed::NoAnswer,
        "/double-answer" => Misdeed::DoubleAnswer,
        "/late-update" => Misdeed::LateUpdate,
        "/unknown-update" => Misdeed::UnknownUpdate,
        "/error" => {
            let (code, message) = split(rest);
            Misdeed::Error { code: number(code, "a code", i32::MAX)?, message: message.to_owned() }
        }
        "/limit" => {
            let (file, after) = split(rest);
            let (kind, wait) = split(after);
            let limit = match kind {
                "usage" if wait.is_empty() => ScriptedLimit::Usage { reset_ms: None },
                "usage" => {
                    ScriptedLimit::Usage { reset_ms: Some(number(wait, "milliseconds", WAIT_MS_MAX)?) }
                }
                "quota" => ScriptedLimit::Quota,
                "529" => ScriptedLimit::Overloaded,
                "die" => ScriptedLimit::Dies,
                _ => return Err("a limit is `usage`, `usage MS`, `quota`, `529` or `die`".to_owned()),
            };
            Misdeed::Limit { file: needed(file, "a path")?.to_owned(), limit }
        }
        _ => return Ok(None),
    };
    Ok(Some(misdeed))
}
