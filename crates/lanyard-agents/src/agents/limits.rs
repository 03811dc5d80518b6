//! Limits of providers, as agents tell of them: text or JSON in, the kind of the limit and its reset out. Pure: the wall
//! clock and the time zone arrive as data.
//!
//! Words are looked at only where the agent says that its turn failed, never in what a model writes.

mod reset;
#[cfg(test)]
mod tests;

use lanyard_core::session::LimitKind;
use serde_json::Value;

use super::driver::TurnEnd;
pub(crate) use reset::LimitReset;

/// Bytes of an agent's words that are looked at.
const WORDS_BYTES_MAX: usize = 4 * 1024;

/// A limit as an agent told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LimitSign {
    pub(crate) kind: LimitKind,
    /// The agent's words.
    pub(crate) text: String,
    pub(crate) reset: Option<LimitReset>,
}

/// Fragments of the words with which agents and providers tell of a limit, in lower case. The first that is found counts.
const WORDS: &[(LimitKind, &[&str])] = &[
    (
        LimitKind::Quota,
        &[
            "credit balance is too low",
            "insufficient_quota",
            "insufficient quota",
            "quota exceeded. check your plan",
            "billing_error",
            "billing hard limit",
            "out of credits",
            "payment required",
        ],
    ),
    (
        LimitKind::Usage,
        &[
            "usage limit",
            "rate limit",
            "rate_limit",
            "ratelimit",
            "hour limit reached",
            "hit your session limit",
            "hit your weekly limit",
            "hit your limit",
            "weekly limit reached",
            "too many requests",
            "resource_exhausted",
            "exceeded your current quota",
            "exhausted your daily quota",
            "exhausted your capacity",
            "quota will reset",
            "quota limit",
            "rejected (429)",
        ],
    ),
    (
        LimitKind::Overloaded,
        &["overloaded", "at capacity", "server is busy", "model is currently busy", "high demand"],
    ),
    (
        LimitKind::Unavailable,
        &[
            "internal server error",
            "internal_server_error",
            "bad gateway",
            "service unavailable",
            "gateway timeout",
            "connection error",
            "connection reset",
            "connection refused",
            "connection timed out",
            "econnreset",
            "econnrefused",
            "etimedout",
            "enotfound",
            "fetch failed",
            "socket hang up",
            "stream disconnected",
            "error sending request",
            "network error",
        ],
    ),
];

/// The limit that an agent's words about a failure tell of.
pub(crate) fn in_words(text: &str) -> Option<LimitSign> {
    let text = &text[..text.floor_char_boundary(WORDS_BYTES_MAX)];
    let low = text.to_lowercase();
    let named = WORDS.iter().find(|(_, words)| words.iter().any(|word| low.contains(word)));
    let kind = named.map(|(kind, _)| *kind).or_else(|| status_in(&low).and_then(of_status))?;
    Some(LimitSign { kind, text: text.to_owned(), reset: reset::in_words(text) })
}

/// The kind that an HTTP status stands for.
pub(crate) fn of_status(status: u64) -> Option<LimitKind> {
    match status {
        402 => Some(LimitKind::Quota),
        429 => Some(LimitKind::Usage),
        503 | 529 => Some(LimitKind::Overloaded),
        500 | 502 | 504 | 520..=528 => Some(LimitKind::Unavailable),
        _ => None,
    }
}

/// A status of HTTP in words such as `API Error: 529 {…}`.
fn status_in(low: &str) -> Option<u64> {
    const BEFORE: [&str; 5] = ["api error: ", "status code ", "status: ", "http ", "status "];
    BEFORE.iter().find_map(|before| {
        let (_, after) = low.split_once(before)?;
        after.get(..3)?.parse().ok()
    })
}

/// The limit in an error of JSON-RPC or of a provider: its code or status, its words and what they add.
pub(crate) fn in_error(error: &Value, words: &str) -> Option<LimitSign> {
    let places = [error, &error["data"], &error["data"]["error"], &error["error"]];
    let number = |names: &[&str]| {
        places.iter().flat_map(|place| names.iter().map(|name| &place[*name])).find_map(number_in)
    };
    let text = |names: &[&str]| {
        places.iter().flat_map(|place| names.iter().map(|name| &place[*name])).find_map(Value::as_str)
    };
    let status = number(&["statusCode", "status", "httpStatusCode", "api_error_status", "code"]);
    let named = text(&["type", "errorKind", "reason", "error", "status"]);
    let of_words = in_words(words).or_else(|| in_words(named?));
    // Words tell a spent quota from a rate, which share a status.
    let kind = of_words.as_ref().map(|sign| sign.kind).or_else(|| status.and_then(of_status))?;
    let seconds = number(&["retryAfter", "retry_after", "retry-after", "resets_in_seconds"])
        .or_else(|| number_in(&error["data"]["responseHeaders"]["retry-after"]));
    let at = number(&["resetsAt", "resets_at", "resetAt"]).map(LimitReset::at_epoch);
    let after = number(&["retryAfterMs", "retry_after_ms"]).map(LimitReset::In);
    let after = after.or(seconds.map(|seconds| LimitReset::In(seconds.saturating_mul(1_000))));
    let reset = at.or(after).or(of_words.and_then(|sign| sign.reset)).or_else(|| reset::in_words(words));
    Some(LimitSign { kind, text: words.to_owned(), reset })
}

fn number_in(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// The end of a turn, with the limit recognised that its words tell of.
pub(crate) fn recognised(end: TurnEnd) -> TurnEnd {
    match end {
        TurnEnd::Failed(words) => match in_words(&words) {
            Some(sign) => TurnEnd::Limited(sign),
            None => TurnEnd::Failed(words),
        },
        TurnEnd::Done(_)
        | TurnEnd::Noted(..)
        | TurnEnd::Cancelled
        | TurnEnd::Limit(_)
        | TurnEnd::Limited(_) => end,
    }
}
