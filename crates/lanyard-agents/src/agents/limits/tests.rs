//! What agents print at a limit. Lines with a version were recorded from that program; the others are what its
//! documentation and its source say.

use jiff::tz::TimeZone;
use lanyard_core::session::LimitKind::{self, Overloaded, Quota, Unavailable, Usage};
use serde_json::{Value, json};

use super::*;

/// 2026-11-15T08:00:00Z, a Sunday.
const WALL_MS: i64 = 1_794_729_600_000;
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn after(sign: &LimitSign) -> Option<u64> {
    sign.reset.as_ref()?.after_ms(WALL_MS, &TimeZone::UTC)
}

type WordsRow = (&'static str, Option<(LimitKind, Option<u64>)>);

const WORDS_OF_FAILURES: &[WordsRow] = &[
    // Claude Code 2.1.197
    (
        "API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.",
        Some((Usage, None)),
    ),
    (
        "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:4312).",
        Some((Overloaded, None)),
    ),
    ("Credit balance is too low", Some((Quota, None))),
    // Claude Code with a subscription
    ("Claude AI usage limit reached|1794733200", Some((Usage, Some(HOUR)))),
    ("5-hour limit reached ∙ resets 3pm", Some((Usage, Some(7 * HOUR)))),
    ("You've hit your session limit · resets 9:30am (Europe/Berlin)", Some((Usage, Some(30 * MINUTE)))),
    ("You've hit your weekly limit · resets Mon 12:00am", Some((Usage, Some(16 * HOUR)))),
    (
        r#"API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        Some((Overloaded, None)),
    ),
    (
        r#"API Error: 500 {"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#,
        Some((Unavailable, None)),
    ),
    ("API Error: Connection error.", Some((Unavailable, None))),
    // codex 0.166.0
    (
        "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again at 4:36 PM.",
        Some((Usage, Some(8 * HOUR + 36 * MINUTE))),
    ),
    ("Selected model is at capacity. Please try a different model.", Some((Overloaded, None))),
    ("Quota exceeded. Check your plan and billing details.", Some((Quota, None))),
    (
        "You've hit your usage limit. Try again in 2 hours 5 minutes.",
        Some((Usage, Some(2 * HOUR + 5 * MINUTE))),
    ),
    ("stream disconnected before completion: error sending request for url", Some((Unavailable, None))),
    // Gemini CLI 0.61.0
    (
        "You exceeded your current quota, please check your plan and billing details. Please retry in 37.5s.\nSuggested retry after 37s.",
        Some((Usage, Some(37_500))),
    ),
    ("The model is overloaded. Please try again later.", Some((Overloaded, None))),
    ("You have exhausted your daily quota on this model.", Some((Usage, None))),
    ("Your quota will reset after 1h2m3s.", Some((Usage, Some(HOUR + 2 * MINUTE + 3_000)))),
    // OpenCode
    ("Too Many Requests", Some((Usage, None))),
    ("fetch failed", Some((Unavailable, None))),
    // What is no limit
    ("The file was not found", None),
    ("resets 3pm", None),
    ("exited with 1", None),
    ("API Error: 400 the request is wrong", None),
    (r#"{"type": "error", "error": {"type": "api_error", "message": "bad request", "code": 400}}"#, None),
    ("status: 52", None),
    ("", None),
];

#[test]
fn the_words_of_a_failure_tell_its_limit() {
    for (words, expected) in WORDS_OF_FAILURES {
        let found = in_words(words).map(|sign| (sign.kind, after(&sign)));
        assert_eq!(found, *expected, "{words}");
    }
}

type ErrorRow = (Value, &'static str, Option<(LimitKind, Option<u64>)>);

#[test]
fn an_error_of_json_tells_its_limit() {
    let table: [ErrorRow; 9] = [
        // Gemini CLI 0.61.0
        (json!({"code": 503}), "The model is overloaded. Please try again later.", Some((Overloaded, None))),
        (json!({"code": 429}), "something new", Some((Usage, None))),
        (
            json!({"code": 429}),
            "You exceeded your current quota. Please retry in 37s.",
            Some((Usage, Some(37_000))),
        ),
        (json!({"code": -32603, "data": {"errorKind": "rate_limit"}}), "Internal error", Some((Usage, None))),
        (json!({"code": -32603, "data": {"statusCode": 529}}), "Internal error", Some((Overloaded, None))),
        (json!({"code": 429, "data": {"retry_after_ms": 1_500}}), "slow down", Some((Usage, Some(1_500)))),
        (
            json!({"data": {"statusCode": 429, "responseHeaders": {"retry-after": "60"}}}),
            "Rate limited",
            Some((Usage, Some(MINUTE))),
        ),
        (json!({"code": 429, "data": {"resets_at": 1_794_733_200}}), "no more", Some((Usage, Some(HOUR)))),
        (json!({"code": -32602}), "the session does not exist", None),
    ];
    for (error, words, expected) in table {
        let found = in_error(&error, words).map(|sign| (sign.kind, after(&sign)));
        assert_eq!(found, expected, "{error} {words}");
    }
}

#[test]
fn a_reset_that_cannot_be_meant_is_no_reset() {
    let far = LimitReset::In(400 * 24 * HOUR);
    assert_eq!(far.after_ms(WALL_MS, &TimeZone::UTC), None);
    assert_eq!(LimitReset::At(1).after_ms(WALL_MS, &TimeZone::UTC), Some(0), "it has passed");
    let soon = in_words("usage limit, resets 7:58am").unwrap();
    assert_eq!(after(&soon), Some(0), "it has just passed");
    for odd in
        ["usage limit, resets 29:99", "usage limit, resets soon", "rate limit|12", "rate limit, retry in x"]
    {
        assert_eq!(after(&in_words(odd).unwrap()), None, "{odd}");
    }
}

/// Words that break off anywhere, with a reset that makes no sense.
#[test]
fn no_words_are_too_odd() {
    for (words, _) in WORDS_OF_FAILURES {
        for (end, _) in words.char_indices() {
            for text in [format!("rate limit resets {}", &words[end..]), format!("{} 9:", &words[..end])] {
                let reset = in_words(&text).and_then(|sign| sign.reset);
                let _ = reset.and_then(|reset| reset.after_ms(WALL_MS, &TimeZone::UTC));
            }
        }
    }
}
