//! The script in a prompt: text in, steps out. Pure. A line that begins with `/` is a step; all other lines are words.

mod misdeeds;

pub(super) use misdeeds::{Misdeed, ScriptedLimit};

use agent_client_protocol_schema::v1::StopReason;
use serde_json::Value;

/// Steps of one prompt, those of its children not counted.
const STEPS_MAX: usize = 10_000;
/// How often one step may be repeated.
const REPEAT_MAX: u64 = 1_000_000;
/// Chunks of one `/chatter`.
const CHUNKS_MAX: u64 = 100_000_000;
/// Bytes of one chunk of `/chatter`.
const CHUNK_BYTES_MAX: usize = 1 << 20;
/// The longest `/wait`: a day.
const WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// How deep `/spawn` and `/repeat` may stand in each other.
const DEPTH_MAX: usize = 4;
/// Between the steps of a child.
const CHILD_SEPARATOR: &str = " ; ";

/// One thing the agent does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Say {
        text: String,
        /// In one chunk, not word by word.
        whole: bool,
    },
    Think(String),
    Chatter {
        count: u64,
        bytes: usize,
    },
    Plan(Vec<String>),
    /// Counted from 1.
    PlanDone(usize),
    Tool {
        name: String,
        input: Value,
    },
    ToolFail {
        name: String,
        text: String,
    },
    ToolOpen(String),
    Run(String),
    Edit {
        path: String,
        text: String,
    },
    Look(String),
    Read(String),
    Write {
        path: String,
        text: String,
    },
    Terminal(String),
    Ask(String),
    AskTool {
        name: String,
        title: String,
    },
    Mcp {
        server: String,
        tool: String,
        input: Value,
    },
    Spawn {
        name: String,
        prompt: String,
        steps: Vec<Step>,
    },
    Join,
    Compact {
        before: u64,
        after: u64,
    },
    Usage {
        input: u64,
        output: u64,
        context: Option<u64>,
    },
    /// In cents.
    Cost(u32),
    /// Reports this number of dollars as the whole cost, whatever it is; `nan` for none.
    CostIs(String),
    Pace(u64),
    Wait(u64),
    WaitFile(String),
    Touch(String),
    Repeat(u64, Box<Step>),
    Stop(StopReason),
    Recall,
    /// Says what the prompt consists of.
    Parts,
    /// An image in a message, from a file.
    Image(String),
    /// An image as the result of a tool.
    ToolImage(String),
    /// Says what is chosen.
    Choices,
    /// Goes to another mode unasked.
    GoToMode(String),
    Wrong(Misdeed),
}

/// A line that looks like a step and is none. Said before the first step runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the script: {reason}")]
pub(super) struct ScriptError {
    line: usize,
    reason: String,
}

/// The steps of a prompt; none when it is words only.
pub(super) fn parse(prompt: &str) -> Result<Vec<Step>, ScriptError> {
    let mut steps = Vec::new();
    for (line, text) in (1..).zip(prompt.lines()) {
        if !text.starts_with('/') {
            continue;
        }
        if steps.len() == STEPS_MAX {
            return Err(ScriptError { line, reason: format!("more than {STEPS_MAX} steps") });
        }
        steps.push(step(text, DEPTH_MAX).map_err(|reason| ScriptError { line, reason })?);
    }
    Ok(steps)
}

fn step(text: &str, depth: usize) -> Result<Step, String> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("more than {DEPTH_MAX} steps within each other"));
    };
    let text = text.trim_end();
    let (name, rest) = split(text);
    if let Some(step) = words(name, rest)? {
        return Ok(step);
    }
    if let Some(step) = work(name, rest)? {
        return Ok(step);
    }
    if let Some(misdeed) = misdeeds::parse(name, rest)? {
        return Ok(Step::Wrong(misdeed));
    }
    match name {
        "/spawn" => spawn(rest, depth),
        "/repeat" => {
            let (count, rest) = split(rest);
            let count = number(count, "how often", REPEAT_MAX)?;
            Ok(Step::Repeat(count, Box::new(step(needed(rest, "a step")?, depth)?)))
        }
        _ => Err(format!("there is no step {name}")),
    }
}

fn spawn(rest: &str, depth: usize) -> Result<Step, String> {
    let (name, prompt) = split(rest);
    let name = needed(name, "a name")?.to_owned();
    let mut steps = Vec::new();
    for text in prompt.split(CHILD_SEPARATOR).map(str::trim).filter(|text| text.starts_with('/')) {
        steps.push(step(text, depth)?);
    }
    Ok(Step::Spawn { name, prompt: prompt.to_owned(), steps })
}

/// Steps that talk, and those that tell of the turn itself.
fn words(name: &str, rest: &str) -> Result<Option<Step>, String> {
    let step = match name {
        "/say" => Step::Say { text: unescaped(rest), whole: false },
        "/say!" => Step::Say { text: unescaped(rest), whole: true },
        "/think" => Step::Think(unescaped(rest)),
        "/chatter" => {
            let (count, bytes) = split(rest);
            let count = number(count, "how many chunks", CHUNKS_MAX)?;
            Step::Chatter { count, bytes: number(bytes, "how many bytes", CHUNK_BYTES_MAX)? }
        }
        "/plan" => Step::Plan(needed(rest, "entries")?.split('|').map(|e| e.trim().to_owned()).collect()),
        "/plan-done" => Step::PlanDone(number(rest, "which entry", usize::MAX)?),
        "/compact" => {
            let (before, after) = split(rest);
            let before = number(before, "a size before", u64::MAX)?;
            Step::Compact { before, after: number(after, "a size after", u64::MAX)? }
        }
        "/usage" => usage(rest)?,
        "/cost" => Step::Cost(number(rest, "cents", u32::MAX)?),
        "/cost-is" => Step::CostIs(needed(rest, "an amount")?.to_owned()),
        "/pace" => Step::Pace(number(rest, "milliseconds", WAIT_MS_MAX)?),
        "/wait" => Step::Wait(number(rest, "milliseconds", WAIT_MS_MAX)?),
        "/wait-file" => Step::WaitFile(needed(rest, "a path")?.to_owned()),
        "/touch" => Step::Touch(needed(rest, "a path")?.to_owned()),
        "/stop" => Step::Stop(stop_reason(rest)?),
        "/recall" => Step::Recall,
        "/parts" => Step::Parts,
        "/image" => Step::Image(needed(rest, "a path")?.to_owned()),
        "/tool-image" => Step::ToolImage(needed(rest, "a path")?.to_owned()),
        "/choices" => Step::Choices,
        "/mode" => Step::GoToMode(needed(rest, "a mode")?.to_owned()),
        "/join" => Step::Join,
        _ => return Ok(None),
    };
    Ok(Some(step))
}

/// Steps that work with tools.
fn work(name: &str, rest: &str) -> Result<Option<Step>, String> {
    let (first, after) = split(rest);
    let path = || needed(first, "a path").map(str::to_owned);
    let tool = || needed(first, "a name").map(str::to_owned);
    let command = || needed(rest, "a command").map(str::to_owned);
    let step = match name {
        "/tool" => Step::Tool { name: tool()?, input: json(after)? },
        "/tool-fail" => Step::ToolFail { name: tool()?, text: unescaped(after) },
        "/tool-open" => Step::ToolOpen(tool()?),
        "/run" => Step::Run(command()?),
        "/edit" => Step::Edit { path: path()?, text: unescaped(after) },
        "/look" => Step::Look(path()?),
        "/read" => Step::Read(path()?),
        "/write" => Step::Write { path: path()?, text: unescaped(after) },
        "/terminal" => Step::Terminal(command()?),
        "/ask" => Step::Ask(needed(rest, "a title")?.to_owned()),
        "/ask-tool" => Step::AskTool { name: tool()?, title: needed(after, "a title")?.to_owned() },
        "/mcp" => {
            let (called, input) = split(after);
            let server = needed(first, "a server")?.to_owned();
            Step::Mcp { server, tool: needed(called, "a tool")?.to_owned(), input: json(input)? }
        }
        _ => return Ok(None),
    };
    Ok(Some(step))
}

fn usage(rest: &str) -> Result<Step, String> {
    let (input, rest) = split(rest);
    let (output, context) = split(rest);
    let input = number(input, "tokens in", u64::MAX)?;
    let output = number(output, "tokens out", u64::MAX)?;
    let context = match context {
        "" => None,
        text => Some(number(text, "a context size", u64::MAX)?),
    };
    Ok(Step::Usage { input, output, context })
}

fn stop_reason(text: &str) -> Result<StopReason, String> {
    match text {
        "end_turn" => Ok(StopReason::EndTurn),
        "max_tokens" => Ok(StopReason::MaxTokens),
        "max_turn_requests" => Ok(StopReason::MaxTurnRequests),
        "refusal" => Ok(StopReason::Refusal),
        _ => Err(format!(
            "no reason to stop: `{text}`; there are end_turn, max_tokens, max_turn_requests, refusal"
        )),
    }
}

/// The first word, and what comes after the blanks behind it.
fn split(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    (first, rest.trim_start())
}

fn needed<'a>(text: &'a str, what: &str) -> Result<&'a str, String> {
    if text.is_empty() { Err(format!("{what} is missing")) } else { Ok(text) }
}

fn number<T: Copy + std::str::FromStr + PartialOrd + std::fmt::Display>(
    text: &str,
    what: &str,
    max: T,
) -> Result<T, String> {
    let value: T =
        needed(text, what)?.parse().map_err(|_| format!("{what}: `{text}` is not a number that fits"))?;
    if value > max { Err(format!("{what}: {value} is more than {max}")) } else { Ok(value) }
}

fn json(text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(text).map_err(|error| format!("`{text}` is no JSON: {error}"))
}

/// A step is one line; `\n` stands for a new one.
fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n")
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
