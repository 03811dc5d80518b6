//! The answer in each harness's dialect. Pure.

use lanyard_core::session::StopLevel;
use lanyard_core::session::directive::{ORIGINAL, RESPONSE};
use serde_json::{Value, json};

use super::input::{Happened, Harness, Moment};

/// What the daemon said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The tool must not run.
    Refused {
        text: String,
        level: Option<StopLevel>,
    },
    Words {
        blocks: Vec<String>,
        withhold: bool,
        level: Option<StopLevel>,
    },
    /// The session is over: nothing more is asked of a model.
    Over {
        text: String,
    },
}

/// What is printed for the harness; nothing when there is nothing to say.
pub(super) fn answer(happened: &Happened, verdict: Verdict) -> Option<Value> {
    if happened.harness == Harness::Opencode {
        return opencode(verdict);
    }
    match verdict {
        Verdict::Refused { text, level } => Some(match happened.moment {
            Moment::BeforeTool => denied(happened, &text, level),
            // What has run cannot be refused any more, and a prompt is the user's.
            Moment::AfterTool | Moment::Aside | Moment::AfterAll => told(happened, &text, level),
        }),
        Verdict::Over { text } => Some(json!({ "continue": false, "stopReason": text })),
        Verdict::Words { blocks, withhold, level } => {
            let text = bare(blocks);
            if text.is_empty() {
                return None;
            }
            if withhold && happened.harness == Harness::Gemini && happened.moment == Moment::AfterTool {
                let mut answer = json!({ "decision": "deny", "reason": text });
                end(&mut answer, happened, &text, level);
                return Some(answer);
            }
            Some(told(happened, &text, level))
        }
    }
}

fn denied(happened: &Happened, text: &str, level: Option<StopLevel>) -> Value {
    let mut answer = match happened.harness {
        Harness::Gemini => json!({ "decision": "deny", "reason": text }),
        Harness::Claude | Harness::Codex | Harness::Opencode => json!({ "hookSpecificOutput": {
            "hookEventName": happened.event,
            "permissionDecision": "deny",
            "permissionDecisionReason": text,
        }}),
    };
    // Codex takes a PreToolUse answer with `continue` in it for a broken hook, and runs the tool. Claude passes over it
    // beside a denial, and is ended after the batch.
    if happened.harness != Harness::Codex {
        end(&mut answer, happened, text, level);
    }
    answer
}

fn told(happened: &Happened, text: &str, level: Option<StopLevel>) -> Value {
    let said = json!({ "hookEventName": happened.event, "additionalContext": text });
    let mut answer = json!({ "hookSpecificOutput": said });
    end(&mut answer, happened, text, level);
    answer
}

/// At level 3 the harness itself ends the agent's work.
fn end(answer: &mut Value, happened: &Happened, text: &str, level: Option<StopLevel>) {
    // A start cannot be stopped; the first prompt or tool can.
    if level == Some(StopLevel::Terminated) && happened.event != "SessionStart" {
        answer["continue"] = json!(false);
        answer["stopReason"] = json!(text);
    }
}

/// The plugin understands this.
fn opencode(verdict: Verdict) -> Option<Value> {
    match verdict {
        Verdict::Refused { text, level: Some(StopLevel::Terminated) } => {
            Some(json!({ "deny": text, "over": true }))
        }
        Verdict::Refused { text, .. } => Some(json!({ "deny": text })),
        Verdict::Over { .. } => None,
        Verdict::Words { blocks, .. } if blocks.is_empty() => None,
        Verdict::Words { blocks, withhold, .. } => Some(json!({ "blocks": blocks, "withhold": withhold })),
    }
}

/// The blocks as one text. Nothing follows it, so it needs no line that says what follows.
fn bare(mut blocks: Vec<String>) -> String {
    if let Some(last) = blocks.last_mut() {
        for separator in [ORIGINAL, RESPONSE] {
            if let Some(kept) = last.strip_suffix(separator) {
                *last = kept.trim_end().to_owned();
            }
        }
    }
    blocks.join("\n\n")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(harness: Harness, event: &str, verdict: Verdict, expected: &Expect) {
        let text = json!({ "session_id": "s", "hook_event_name": event, "tool_name": "Bash" }).to_string();
        let happened = Happened::read(harness, &text).unwrap();
        let said = answer(&happened, verdict).map_or(String::new(), |answer| answer.to_string());
        expected.assert_eq(&said);
    }

    fn refused(level: StopLevel) -> Verdict {
        Verdict::Refused { text: "STOP".to_owned(), level: Some(level) }
    }

    fn words(level: Option<StopLevel>) -> Verdict {
        let blocks = vec!["one".to_owned(), format!("two\n{RESPONSE}")];
        Verdict::Words { blocks, withhold: level.is_some_and(|level| level > StopLevel::Graceful), level }
    }

    #[test]
    fn a_tool_is_denied_in_the_words_of_its_harness() {
        check(
            Harness::Claude,
            "PreToolUse",
            refused(StopLevel::Immediate),
            &expect![[
                r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"STOP"}}"#
            ]],
        );
        check(
            Harness::Claude,
            "PreToolUse",
            refused(StopLevel::Terminated),
            &expect![[
                r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"STOP"},"continue":false,"stopReason":"STOP"}"#
            ]],
        );
        check(
            Harness::Codex,
            "PreToolUse",
            refused(StopLevel::Terminated),
            &expect![[
                r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"STOP"}}"#
            ]],
        );
        check(
            Harness::Gemini,
            "BeforeTool",
            refused(StopLevel::Immediate),
            &expect![[r#"{"decision":"deny","reason":"STOP"}"#]],
        );
        check(
            Harness::Gemini,
            "BeforeTool",
            refused(StopLevel::Terminated),
            &expect![[r#"{"decision":"deny","reason":"STOP","continue":false,"stopReason":"STOP"}"#]],
        );
        check(
            Harness::Opencode,
            "tool.execute.before",
            refused(StopLevel::Immediate),
            &expect![[r#"{"deny":"STOP"}"#]],
        );
        check(
            Harness::Opencode,
            "tool.execute.before",
            refused(StopLevel::Terminated),
            &expect![[r#"{"deny":"STOP","over":true}"#]],
        );
    }

    #[test]
    fn words_go_beside_the_answer() {
        check(
            Harness::Claude,
            "PostToolUse",
            words(None),
            &expect![[
                r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"one\n\ntwo"}}"#
            ]],
        );
        check(
            Harness::Codex,
            "PostToolUse",
            words(Some(StopLevel::Terminated)),
            &expect![[
                r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"one\n\ntwo"},"continue":false,"stopReason":"one\n\ntwo"}"#
            ]],
        );
        check(
            Harness::Gemini,
            "AfterTool",
            words(None),
            &expect![[
                r#"{"hookSpecificOutput":{"hookEventName":"AfterTool","additionalContext":"one\n\ntwo"}}"#
            ]],
        );
        check(
            Harness::Gemini,
            "AfterTool",
            words(Some(StopLevel::Immediate)),
            &expect![[r#"{"decision":"deny","reason":"one\n\ntwo"}"#]],
        );
        check(
            Harness::Opencode,
            "tool.execute.after",
            words(None),
            &expect![[r#"{"blocks":["one","two\n--- TOOL RESPONSE ---"],"withhold":false}"#]],
        );
    }

    #[test]
    fn a_prompt_and_a_start_carry_words_too() {
        check(
            Harness::Claude,
            "UserPromptSubmit",
            words(None),
            &expect![[
                r#"{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"one\n\ntwo"}}"#
            ]],
        );
        check(
            Harness::Claude,
            "SessionStart",
            refused(StopLevel::Terminated),
            &expect![[
                r#"{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"STOP"}}"#
            ]],
        );
        check(
            Harness::Gemini,
            "BeforeAgent",
            refused(StopLevel::Terminated),
            &expect![[
                r#"{"hookSpecificOutput":{"hookEventName":"BeforeAgent","additionalContext":"STOP"},"continue":false,"stopReason":"STOP"}"#
            ]],
        );
    }

    #[test]
    fn a_session_that_is_over_asks_no_model_again() {
        let over = Verdict::Over { text: "STOP".to_owned() };
        check(
            Harness::Claude,
            "PostToolBatch",
            over,
            &expect![[r#"{"continue":false,"stopReason":"STOP"}"#]],
        );
    }

    #[test]
    fn nothing_to_say_is_no_answer() {
        let nothing = || Verdict::Words { blocks: Vec::new(), withhold: false, level: None };
        for (harness, event) in [
            (Harness::Claude, "PostToolUse"),
            (Harness::Gemini, "AfterTool"),
            (Harness::Opencode, "tool.execute.after"),
        ] {
            check(harness, event, nothing(), &expect![""]);
        }
    }
}
