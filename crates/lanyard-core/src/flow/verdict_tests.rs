//! Answers as agents give them, and as nobody should.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn author_of(said: &str, commit: bool) -> String {
    match author(said, commit) {
        Ok(status) => {
            let words =
                [&status.commit, &status.reason, &status.notes].map(|words| words.as_deref().unwrap_or("-"));
            format!("{} {}", status.status.as_str(), words.join(" "))
        }
        Err(fault) => format!("! {fault}"),
    }
}

fn verdict_of(said: &str) -> String {
    match verdict(said) {
        Ok(verdict) => {
            let items = verdict.items.iter().map(|item| {
                format!(" [{} {} {} {}]", item.priority.as_str(), item.id, item.title, item.action.as_str())
            });
            let score = verdict.score.map(|score| format!(" {score}")).unwrap_or_default();
            format!("{}{score}{}", verdict.readiness.as_str(), items.collect::<String>())
        }
        Err(fault) => format!("! {fault}"),
    }
}

/// One line for each: what is said, and what is read.
fn check_authors(said: &[&str], expect: &Expect) {
    check(said, |said| author_of(said, true), expect);
}

fn check_verdicts(said: &[&str], expect: &Expect) {
    check(said, verdict_of, expect);
}

fn check(said: &[&str], read: impl Fn(&str) -> String, expect: &Expect) {
    let lines = said.iter().map(|said| format!("{}\n  {}\n", cut(said, 90).0, read(said)));
    expect.assert_eq(&lines.collect::<String>());
}

#[test]
fn an_answer_is_found_in_what_is_said() {
    let plain = r#"{"status":"complete","commit":"abcd1234","notes":"done"}"#;
    for said in [
        plain.to_owned(),
        format!("```json\n{plain}\n```"),
        format!("~~~\n{plain}\n~~~\n"),
        format!("Here it is:\n\n```\n{plain}\n```\n\nTell me if you need more."),
        format!("I used `fn main() {{ }}` and a {{brace}}.\n{plain} That is all {{ really."),
        format!("{plain}\n"),
        format!("\u{feff}{plain}"),
        plain.replace(',', ",\r\n\t"),
        // A commit without what surrounds it.
        plain.replace("abcd1234", " abcd1234\\n"),
    ] {
        assert_eq!(author_of(&said, true), "complete abcd1234 - done", "{said}");
    }
}

/// The last word counts: agents correct themselves, and repeat the example they were given.
#[test]
fn of_two_answers_the_last_one_counts() {
    check_authors(
        &[
            r#"{"status":"complete","commit":"abcd1234"} No, wait. {"status":"failed","reason":"tests fail"}"#,
            // What follows and is no answer does not hide it.
            r#"{"status":"complete","commit":"abcd1234"} and the config is {"a": 1}"#,
            // One that is faulty is not replaced by one that says something else.
            r#"{"status":"complete","commit":"abcd1234"} no: {"status":"failed","why":"tests fail"}"#,
        ],
        &expect![[r#"
            {"status":"complete","commit":"abcd1234"} No, wait. {"status":"failed","reason":"tests fai
              failed - tests fail -
            {"status":"complete","commit":"abcd1234"} and the config is {"a": 1}
              complete abcd1234 - -
            {"status":"complete","commit":"abcd1234"} no: {"status":"failed","why":"tests fail"}
              ! unknown field `why`, expected one of `status`, `commit`, `reason`, `notes`
        "#]],
    );
    check_verdicts(
        &[r#"{"readiness":"ready"}{"readiness":"not_ready"}"#, r#"{"answer":{"readiness":"ready"}}"#],
        &expect![[r#"
            {"readiness":"ready"}{"readiness":"not_ready"}
              not_ready
            {"answer":{"readiness":"ready"}}
              ! unknown field `answer`, expected one of `readiness`, `items`, `score`, `summary`
        "#]],
    );
}

#[test]
fn what_is_wrong_with_an_answer_is_said() {
    check_authors(
        &[
            "",
            "All done!",
            "[1, 2]",
            r#"{"status":"complete","commit":"abcd1234""#,
            "{}",
            r#"{"status":"done"}"#,
            r#"{"status":"Complete","commit":"abcd1234"}"#,
            r#"{"status":"complete","commit":"abcd1234","sha":"x"}"#,
            r#"{"status":"complete","commit":1}"#,
            r#"{"readiness":"ready"}"#,
        ],
        &expect![[r#"

              ! there is no JSON object in the answer
            All done!
              ! there is no JSON object in the answer
            [1, 2]
              ! there is no JSON object in the answer
            {"status":"complete","commit":"abcd1234"
              ! there is no JSON object in the answer
            {}
              ! missing field `status`
            {"status":"done"}
              ! unknown variant `done`, expected one of `complete`, `needs_human`, `failed`
            {"status":"Complete","commit":"abcd1234"}
              ! unknown variant `Complete`, expected one of `complete`, `needs_human`, `failed`
            {"status":"complete","commit":"abcd1234","sha":"x"}
              ! unknown field `sha`, expected one of `status`, `commit`, `reason`, `notes`
            {"status":"complete","commit":1}
              ! invalid type: integer `1`, expected a string
            {"readiness":"ready"}
              ! unknown field `readiness`, expected one of `status`, `commit`, `reason`, `notes`
        "#]],
    );
    check_verdicts(
        &[
            r#"{"readiness":"maybe"}"#,
            r#"{"readiness":"ready","score":101}"#,
            r#"{"readiness":"ready","score":-1}"#,
            r#"{"readiness":"ready","score":"high"}"#,
            r#"{"status":"complete"}"#,
        ],
        &expect![[r#"
            {"readiness":"maybe"}
              ! unknown variant `maybe`, expected one of `ready`, `ready_with_corrections`, `not_ready`
            {"readiness":"ready","score":101}
              ! `score` is 101, and it goes from 0 to 100
            {"readiness":"ready","score":-1}
              ! invalid value: integer `-1`, expected u32
            {"readiness":"ready","score":"high"}
              ! invalid type: string "high", expected u32
            {"status":"complete"}
              ! unknown field `status`, expected one of `readiness`, `items`, `score`, `summary`
        "#]],
    );
}

#[test]
fn a_commit_is_named_where_one_is_needed() {
    check_authors(
        &[
            r#"{"status":"complete"}"#,
            r#"{"status":"complete","commit":"  "}"#,
            r#"{"status":"complete","commit":null}"#,
            r#"{"status":"complete","commit":"HEAD"}"#,
            r#"{"status":"complete","commit":"abc"}"#,
            r#"{"status":"complete","commit":"$(rm -rf ~)"}"#,
            // Whoever did not finish need not have committed, and says why.
            r#"{"status":"needs_human","reason":"which one?"}"#,
            r#"{"status":"needs_human"}"#,
            r#"{"status":"failed","reason":" "}"#,
        ],
        &expect![[r#"
            {"status":"complete"}
              ! `status` is `complete` and no `commit` is named: commit your work and name the commit
            {"status":"complete","commit":"  "}
              ! `status` is `complete` and no `commit` is named: commit your work and name the commit
            {"status":"complete","commit":null}
              ! `status` is `complete` and no `commit` is named: commit your work and name the commit
            {"status":"complete","commit":"HEAD"}
              ! `commit` is `HEAD`, which is not a commit's hash
            {"status":"complete","commit":"abc"}
              ! `commit` is `abc`, which is not a commit's hash
            {"status":"complete","commit":"$(rm -rf ~)"}
              ! `commit` is `$(rm -rf ~)`, which is not a commit's hash
            {"status":"needs_human","reason":"which one?"}
              needs_human - which one? -
            {"status":"needs_human"}
              ! `status` is `needs_human` and no `reason` is given
            {"status":"failed","reason":" "}
              ! `status` is `failed` and no `reason` is given
        "#]],
    );
    assert_eq!(author_of(r#"{"status":"complete"}"#, false), "complete - - -");
    assert_eq!(author_of(r#"{"status":"complete","commit":""}"#, false), "complete - - -");
    assert!(author(r#"{"status":"complete","commit":"HEAD"}"#, false).is_err());
    let long = format!(r#"{{"status":"complete","commit":"{}"}}"#, "a".repeat(65));
    assert!(author(&long, true).is_err());
}

#[test]
fn items_say_what_they_want() {
    let of = |item: &str| format!(r#"{{"readiness":"not_ready","items":[{item}]}}"#);
    let twice = r#"{"id":"1","title":"t","action":"auto_fix"},{"id":"1","title":"u","action":"auto_fix"}"#;
    let said = [
        r#"{"id":"1","title":"No tests","action":"auto_fix","priority":"P0","reason":"none"}"#,
        r#"{"id":"1","title":"t","action":"human_required"},{"id":"2","title":"u","action":"auto_fix"}"#,
        r#"{"id":"1","title":"t","action":"fix"}"#,
        r#"{"id":"1","title":"t","action":"auto_fix","priority":"P3"}"#,
        r#"{"id":"1","title":"t"}"#,
        r#"{"id":1,"title":"t","action":"auto_fix"}"#,
        r#"{"id":" ","title":"t","action":"auto_fix"}"#,
        r#"{"id":"1","title":"","action":"auto_fix"}"#,
        r#"{"id":"1","title":"t","action":"auto_fix","file":"a.rs"}"#,
        twice,
        // What that leads to is for the flow to say.
        "",
    ];
    check(
        &said,
        |item| verdict_of(&of(item)),
        &expect![[r#"
        {"id":"1","title":"No tests","action":"auto_fix","priority":"P0","reason":"none"}
          not_ready [P0 1 No tests auto_fix]
        {"id":"1","title":"t","action":"human_required"},{"id":"2","title":"u","action":"auto_fix"
          not_ready [P1 1 t human_required] [P1 2 u auto_fix]
        {"id":"1","title":"t","action":"fix"}
          ! unknown variant `fix`, expected `auto_fix` or `human_required`
        {"id":"1","title":"t","action":"auto_fix","priority":"P3"}
          ! unknown variant `P3`, expected one of `P0`, `P1`, `P2`
        {"id":"1","title":"t"}
          ! missing field `action`
        {"id":1,"title":"t","action":"auto_fix"}
          ! invalid type: integer `1`, expected a string
        {"id":" ","title":"t","action":"auto_fix"}
          ! an item has no `id` or no `title`
        {"id":"1","title":"","action":"auto_fix"}
          ! an item has no `id` or no `title`
        {"id":"1","title":"t","action":"auto_fix","file":"a.rs"}
          ! unknown field `file`, expected one of `id`, `title`, `action`, `priority`, `reason`
        {"id":"1","title":"t","action":"auto_fix"},{"id":"1","title":"u","action":"auto_fix"}
          ! two items have the id `1`

          not_ready
    "#]],
    );
}

#[test]
fn long_answers_are_bounded() {
    let long = |max: usize| "é".repeat(max + 1);
    let item = |id: &str, title: &str| format!(r#"{{"id":"{id}","title":"{title}","action":"auto_fix"}}"#);
    let of = |items: &[String]| format!(r#"{{"readiness":"not_ready","items":[{}]}}"#, items.join(","));
    let many: Vec<String> = (0..=ITEMS_MAX).map(|id| item(&id.to_string(), "t")).collect();
    let notes = format!(r#"{{"status":"failed","reason":"x","notes":"{}"}}"#, long(WORDS_CHARS_MAX));
    let reason = format!(r#"{{"status":"failed","reason":"{}"}}"#, long(WORDS_CHARS_MAX));
    check_authors(
        &[&reason, &notes, &"x".repeat(ANSWER_BYTES_MAX + 1)],
        &expect![[r#"
        {"status":"failed","reason":"ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé
          ! `reason` has 8001 characters, and at most 8000 are taken
        {"status":"failed","reason":"x","notes":"ééééééééééééééééééééééééééééééééééééééééééééééééé
          ! `notes` has 8001 characters, and at most 8000 are taken
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          ! the answer is longer than 524288 bytes
    "#]],
    );
    let summary = format!(r#"{{"readiness":"ready","summary":"{}"}}"#, long(WORDS_CHARS_MAX));
    let title = of(&[item("1", &long(TITLE_CHARS_MAX))]);
    let id = of(&[item(&long(TITLE_CHARS_MAX), "t")]);
    check_verdicts(
        &[&summary, &title, &id, &of(&many)],
        &expect![[r#"
        {"readiness":"ready","summary":"éééééééééééééééééééééééééééééééééééééééééééééééééééééééééé
          ! `summary` has 8001 characters, and at most 8000 are taken
        {"readiness":"not_ready","items":[{"id":"1","title":"ééééééééééééééééééééééééééééééééééééé
          ! `title` has 301 characters, and at most 300 are taken
        {"readiness":"not_ready","items":[{"id":"ééééééééééééééééééééééééééééééééééééééééééééééééé
          ! `id` has 301 characters, and at most 300 are taken
        {"readiness":"not_ready","items":[{"id":"0","title":"t","action":"auto_fix"},{"id":"1","ti
          ! there are 101 items, and at most 100 are taken
    "#]],
    );
    assert!(verdict(&of(&many[1..])).is_ok());
    // What the agent is told of its fault is short, whatever it said.
    let fault = author(&format!(r#"{{"status":"{}"}}"#, "x".repeat(100_000)), true).unwrap_err();
    assert!(fault.chars().count() <= FAULT_CHARS_MAX, "{}", fault.len());
}

/// Braces that open and never close, nest deep or come in thousands: it comes to an end, and nothing is found.
#[test]
fn hostile_answers_come_to_an_end() {
    let full = |piece: &str| piece.repeat(ANSWER_BYTES_MAX / piece.len());
    for piece in ["{", "{\"a\":", "[", "{\"a\":[", "{}", "{ ", "\"{", "{\"", "\\{", "{\"a\":1,", "}{", "{1}"]
    {
        assert!(author(&full(piece), true).is_err(), "{piece}");
        assert!(verdict(&full(piece)).is_err(), "{piece}");
    }
    let nested = format!("{}1{}", "{\"status\":".repeat(1_000), "}".repeat(1_000));
    assert!(author(&nested, true).is_err());
    // An answer behind a heap of braces is found.
    let heap = "{ x } {} ".repeat(1_000);
    let behind = format!(r#"{heap} {{"status":"complete","commit":"abcd1234"}} {{}}"#);
    assert_eq!(author_of(&behind, true), "complete abcd1234 - -");
}

#[test]
fn the_schema_is_what_is_read() {
    for (role, fields) in [
        (FlowRole::Author, ["commit", "notes", "reason", "status"]),
        (FlowRole::Reviewer, ["items", "readiness", "score", "summary"]),
    ] {
        let schema = schema(role);
        let mut named: Vec<&str> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        named.sort_unstable();
        assert_eq!(named, fields);
        assert_eq!(schema["additionalProperties"], false);
    }
}

fn piece() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        ",",
        "\\",
        "\"status\"",
        "\"complete\"",
        "\"commit\"",
        "\"abcd\"",
        "\"readiness\"",
        "\"items\"",
        "```",
        "\n",
        " ",
        "1e999",
        "-",
        "null",
        "\u{0}",
        "é",
        "\\ud800",
        "\"score\"",
    ])
}

proptest! {
    #[test]
    fn no_answer_breaks_the_reader(said in any::<String>(), pieces in proptest::collection::vec(piece(), 0..40)) {
        for text in [said, pieces.concat()] {
            let _ = author(&text, true);
            let _ = verdict(&text);
        }
    }

    /// Whatever stands around it, an answer is read as it was meant.
    #[test]
    fn an_answer_survives_talk(before in "[^{}]{0,40}", after in "[^{}]{0,40}", reason in "[a-z {}\"]{1,20}[a-z]") {
        let meant = AuthorStatus { status: Progress::NeedsHuman, commit: None, reason: Some(reason), notes: None };
        let said = format!("{before}{}{after}", serde_json::to_string(&meant).unwrap());
        prop_assert_eq!(author(&said, true), Ok(meant));
    }
}
