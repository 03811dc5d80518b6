//! What becomes of an answer, as tables: by what there is to say, and by who reads it.

use bytes::Bytes;
use lanyard_core::session::{Directive, Lead, NoteKind, StopLevel, StopScope, Told};
use lanyard_core::{Actor, NoteId, SessionId, Timestamp};
use serde_json::{Value, json};

use super::{AnswerReader, LOOKALIKES, Taste, Words, defused, promising, refusal, without_schemas};

const NONCE: &str = "0123456789abcdef";
const PLAIN: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"it worked"}],"x":[1 , 2]}}"#;
const STRUCTURED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"a":1},"content":[{"type":"text","text":"{\"a\":1}"}]}}"#;
const BARE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"a":1}}}"#;
const FAILED: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such tool"}}"#;

fn stop(level: StopLevel) -> Lead {
    let stop = Directive { level, scope: StopScope::Session, reason: Some("enough".to_owned()) };
    Lead { stop: Some(stop), notes: Vec::new() }
}

fn guidance() -> Lead {
    let told = |number: u128, text: &str| Told {
        note: NoteId::from_u128(number),
        text: text.to_owned(),
        by: Actor::operator("ann"),
        queued_at: Timestamp::from_millis(0),
        kind: NoteKind::Guidance,
        again: false,
    };
    Lead { stop: None, notes: vec![told(1, "left"), told(2, "then right")] }
}

fn reader(taste: Taste) -> AnswerReader {
    AnswerReader { taste, promised: true, modern: false }
}

fn annotate(answer: &str, lead: &Lead, reader: AnswerReader) -> Option<String> {
    let blocks = lead.blocks(SessionId::from_u128(1), NONCE);
    let words = Words { blocks, withhold: lead.withholds(), is_error: lead.is_error() };
    super::annotate(answer, &words, reader)
}

fn said(answer: &str, lead: &Lead, taste: Taste) -> Value {
    let text = annotate(answer, lead, reader(taste)).unwrap();
    let said: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&said["jsonrpc"], &said["id"]), (&json!("2.0"), &json!(1)), "{text}");
    said["result"].clone()
}

fn texts(result: &Value) -> Vec<&str> {
    result["content"].as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap()).collect()
}

const TASTES: [Taste; 4] = [Taste::Keeps, Taste::Drops, Taste::Unknown, Taste::Unlisted];

#[test]
fn with_nothing_to_say_the_answer_keeps_its_bytes() {
    for answer in [PLAIN, STRUCTURED, BARE, FAILED] {
        for taste in TASTES {
            assert_eq!(annotate(answer, &Lead::default(), reader(taste)).as_deref(), Some(answer));
        }
    }
}

/// S0-40, S0-45: the words come first, the answer stays complete after them.
#[test]
fn words_stand_in_front_and_the_answer_stays() {
    for taste in TASTES {
        let result = said(PLAIN, &stop(StopLevel::Graceful), taste);
        let all = texts(&result);
        assert!(all[0].starts_with("⚠️ SESSION STOP REQUESTED\n"), "{}", all[0]);
        assert!(all[0].ends_with("\n--- ORIGINAL RESPONSE ---"), "{}", all[0]);
        assert_eq!((all.len(), all[1], &result["x"]), (2, "it worked", &json!([1, 2])));
        assert_eq!(result.get("isError"), None);

        let result = said(PLAIN, &guidance(), taste);
        let all = texts(&result);
        assert!(all[0].starts_with("📝 USER GUIDANCE (injected by user):\n"), "{}", all[0]);
        assert!(all[0].find("left") < all[0].find("then right"), "{}", all[0]);
        assert!(all[0].ends_with("\n--- TOOL RESPONSE ---") && all[0].contains(NONCE), "{}", all[0]);
        assert_eq!(all[1..], ["it worked"]);
    }
    let text = annotate(PLAIN, &guidance(), reader(Taste::Keeps)).unwrap();
    assert!(text.contains(r#"],"x":[1 , 2]}}"#), "the rest keeps its bytes: {text}");
}

/// What each client does with structured content was measured with the real ones.
#[test]
fn structured_content_goes_or_stays_by_who_reads_it() {
    for (taste, stays) in
        [(Taste::Keeps, true), (Taste::Drops, false), (Taste::Unknown, false), (Taste::Unlisted, true)]
    {
        let result = said(STRUCTURED, &guidance(), taste);
        assert_eq!(result.get("structuredContent").is_some(), stays, "{taste:?}");
        assert_eq!(texts(&result)[1..], [r#"{"a":1}"#], "{taste:?}");
        // Where the structured part was all there is, it is not lost.
        let result = said(BARE, &guidance(), taste);
        let rest: &[&str] = if stays { &[] } else { &[r#"{"a":1}"#] };
        assert_eq!(texts(&result)[1..], *rest, "{taste:?}");
    }
}

/// S0-41, S0-42: from level 2 on the answer is left out; level 3 is an error.
#[test]
fn a_withheld_answer_is_the_directive_alone() {
    for (level, first, is_error) in [
        (StopLevel::Immediate, "🛑 SESSION STOP — IMMEDIATE\n", false),
        (StopLevel::Terminated, "❌ SESSION TERMINATED\n", true),
    ] {
        for answer in [PLAIN, STRUCTURED, BARE, FAILED] {
            for taste in TASTES {
                let result = said(answer, &stop(level), taste);
                let all = texts(&result);
                assert!(all.len() == 1 && all[0].starts_with(first), "{all:?}");
                assert_eq!(result.get("structuredContent"), None);
                // A client that misses what the tool promised takes it only as an error.
                assert_eq!(result["isError"], is_error || taste.validates(), "{taste:?}");
            }
        }
        let directive = stop(level).stop.unwrap();
        let free = AnswerReader { promised: false, modern: true, ..reader(Taste::Keeps) };
        let refused: Value =
            serde_json::from_str(&refusal(&directive.text(SessionId::from_u128(1)), is_error, free)).unwrap();
        assert_eq!((&refused["isError"], &refused["resultType"]), (&json!(is_error), &json!("complete")));
        assert!(texts(&refused)[0].starts_with(first));
    }
}

/// The model reads results; what becomes of an error is the client's affair.
#[test]
fn an_error_that_carries_words_becomes_a_result() {
    let result = said(FAILED, &guidance(), Taste::Unknown);
    assert_eq!(result["isError"], true);
    assert_eq!(texts(&result)[1..], ["MCP error -32602: no such tool"]);
    let reordered = r#"{"error":{"code":1,"message":"m"},"id":1,"jsonrpc":"2.0"}"#;
    assert_eq!(texts(&said(reordered, &guidance(), Taste::Keeps))[1..], ["MCP error 1: m"]);
}

#[test]
fn an_answer_that_is_none_yet_carries_nothing() {
    let asks = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}"#;
    assert_eq!(annotate(asks, &guidance(), reader(Taste::Keeps)), None);
    let withheld = annotate(asks, &stop(StopLevel::Terminated), reader(Taste::Keeps)).unwrap();
    assert!(withheld.contains("SESSION TERMINATED"));
    for nonsense in ["", "{", "[]", r#"{"id":1,"result":5}"#, r#"{"id":1,"result":{"content":5}}"#] {
        assert_eq!(annotate(nonsense, &guidance(), reader(Taste::Keeps)), None, "{nonsense}");
    }
}

/// S0-B01: nothing a tool says can pass for Lanyard's words, however it is written.
#[test]
fn lookalikes_are_defused_wherever_they_stand() {
    let defused_text =
        |answer: &str| String::from_utf8(defused(Bytes::from(answer.to_owned())).to_vec()).unwrap();
    for untouched in
        [PLAIN, STRUCTURED, FAILED, r#"{"id":1,"result":{"a":"\u001b[1m \u003c\u0026 é \\u0053"}}"#]
    {
        assert_eq!(defused_text(untouched), untouched);
    }
    for mark in LOOKALIKES {
        let answer =
            json!({"id": 1, "result": {"content": [{"type": "text", "text": format!("x {mark} y")}]}})
                .to_string();
        let said = defused_text(&answer);
        assert!(!said.contains(mark), "{said}");
        assert_eq!(said.replace('\u{2060}', ""), answer);
        // The same, with its first letter written as an escape.
        let first = mark.as_bytes()[0];
        let hidden = answer.replace(mark, &format!("\\u{first:04x}{}", &mark[1..]));
        let plain: Value = serde_json::from_str(&defused_text(&hidden)).unwrap();
        assert!(!plain.to_string().contains(mark), "{plain}");
    }
    let error = r#"{"id":"SESSION STOP","error":{"code":1,"message":"SESSION STOP"}}"#;
    assert_eq!(
        defused_text(error),
        "{\"id\":\"SESSION STOP\",\"error\":{\"code\":1,\"message\":\"S\u{2060}ESSION STOP\"}}"
    );
}

#[test]
fn tools_lose_the_schema_of_their_results_and_nothing_else() {
    let listed = r#"{"id":1,"result":{"tools":[{"name":"a","outputSchema":{"x":[]}, "y":1},{"name":"b"}],"nextCursor":"c"}}"#;
    let without = r#"{"id":1,"result":{"tools":[{"name":"a","y":1},{"name":"b"}],"nextCursor":"c"}}"#;
    assert_eq!(without_schemas(listed).as_deref(), Some(without));
    assert_eq!(promising(listed), Some(vec!["a".to_owned()]));
    assert_eq!(without_schemas(r#"{"id":1,"error":{}}"#), None);
}

/// What nobody touches stays as the server wrote it, also where it is written in an unusual way.
#[test]
fn ids_numbers_and_escapes_stay_as_they_were_written() {
    let answer = r#"{"jsonrpc":"2.0","id":"a\u0062","result":{"x":1.50,"content":[{"type":"text", "text":"b"}],"structuredContent":{"n":1},"_meta":{"k":2}}}"#;
    let words = |blocks: &[&str]| Words {
        blocks: blocks.iter().map(|&text| text.to_owned()).collect(),
        ..Words::default()
    };
    let dropped = super::annotate(answer, &words(&["one"]), reader(Taste::Drops)).unwrap();
    assert_eq!(
        dropped,
        r#"{"jsonrpc":"2.0","id":"a\u0062","result":{"x":1.50,"content":[{"type":"text","text":"one"},{"type":"text", "text":"b"}],"_meta":{"k":2}}}"#
    );
    let kept = super::annotate(answer, &words(&["one", "two"]), reader(Taste::Keeps)).unwrap();
    assert_eq!(
        kept,
        r#"{"jsonrpc":"2.0","id":"a\u0062","result":{"x":1.50,"content":[{"type":"text","text":"one"},{"type":"text","text":"two"},{"type":"text", "text":"b"}],"structuredContent":{"n":1},"_meta":{"k":2}}}"#
    );
}
