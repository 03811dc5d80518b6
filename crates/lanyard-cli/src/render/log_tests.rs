//! Transcripts in their forms.

use expect_test::expect;
use serde_json::{Value, json};

use super::*;
use crate::render::tool::OpenedPart;
use crate::render::transcript::{CallPairs, Transcriber};

const TURN: &str = "turn_01m7n5djg0fayvh8t5cxyjkdnt";

fn story() -> Vec<(&'static str, &'static str, Value)> {
    let edit = json!({"filePath": "src/login.rs", "oldString": "a < b", "newString": "a <= b"});
    let started = json!({
        "turn": TURN, "prompt": "fix the login test,\nplease", "prompt_hash": "x", "opening": {"kind": "new"},
    });
    vec![
        ("08:00:01", "turn.started", started),
        ("08:00:02", "thought", json!({"text": "First the test."})),
        ("08:00:03", "message", json!({"role": "agent", "text": "I will run the test first, and then lo"})),
        ("08:00:04", "message", json!({"role": "agent", "text": "ok at <b>what</b> it says.\n\n    code"})),
        (
            "08:00:05",
            "tool.called",
            json!({"call": "1", "tool": "bash", "arguments": {"command": "cargo test"}}),
        ),
        (
            "08:00:06",
            "tool.returned",
            json!({"call": "1", "is_error": true, "content": "1 test failed\n</pre>"}),
        ),
        ("08:00:07", "tool.called", json!({"call": "2", "tool": "edit", "arguments": edit})),
        ("08:00:08", "tool.returned", json!({"call": "2", "is_error": false, "content": "done"})),
        ("08:00:09", "message", json!({"role": "agent", "text": "Done.\u{1b}[31m", "message_id": "m2"})),
        ("08:00:10", "turn.finished", json!({"turn": TURN, "outcome": "completed"})),
    ]
}

fn written(mut form: impl LogForm) -> String {
    let head = LogHead {
        title: "fix the <login>".to_owned(),
        id: "sess_1".to_owned(),
        facts: vec!["codex".to_owned(), "/srv/web".to_owned()],
    };
    let mut text = form.head(&head);
    let (mut transcriber, mut pairs) =
        (Transcriber::of_agent(Some("codex".to_owned())), CallPairs::default());
    for (seq, (time, kind, data)) in (1..).zip(story()) {
        let at = format!("2026-11-15T{time}Z");
        let raw = json!({
            "seq": seq, "session": lanyard_core::SessionId::from_u128(7), "at": at,
            "actor": {"kind": "operator", "name": "ann"}, "type": kind, "data": data,
        });
        for item in transcriber.read(&raw).into_iter().filter_map(|item| pairs.join(item)) {
            text.push_str(&form.item(at.parse().unwrap(), &item));
        }
    }
    text + &form.end()
}

#[test]
fn text_has_the_time_in_the_margin_and_wraps_words() {
    expect![[r"
        fix the <login>
        sess_1 · codex · /srv/web

        2026-11-15 (UTC)

        08:00:01  ann: fix the login test,
                       please
        08:00:02  ┊ First the test.
        08:00:03  codex: I will run the test first, and
                  then look at <b>what</b> it says.

                      code
        08:00:05  · bash cargo test: failed, 1 test
                    failed </pre>
        08:00:07  · edit src/login.rs: ok
                    src/login.rs
                    │ - a < b
                    │ + a <= b
        08:00:09  codex: Done.�[31m
        08:00:10  ── completed after 9s
    "]]
    .assert_eq(&written(TextForm::new(Some(48), false, OpenedPart::Edits)));
}

#[test]
fn without_a_terminal_no_line_is_broken() {
    expect![[r"
        fix the <login>
        sess_1 · codex · /srv/web

        2026-11-15 (UTC)

        08:00:01  ann: fix the login test,
                       please
        08:00:02  ┊ First the test.
        08:00:03  codex: I will run the test first, and then look at <b>what</b> it says.

                      code
        08:00:05  · bash cargo test: failed, 1 test failed </pre>
                    output
                    │ 1 test failed
                    │ </pre>
        08:00:07  · edit src/login.rs: ok
                    src/login.rs
                    │ - a < b
                    │ + a <= b
                    output
                    │ done
        08:00:09  codex: Done.�[31m
        08:00:10  ── completed after 9s
    "]]
    .assert_eq(&written(TextForm::new(None, false, OpenedPart::Everything)));
}

#[test]
fn markdown_keeps_words_and_fences_what_tools_wrote() {
    expect![[r"
        # fix the \<login\>

        `sess_1` · codex · /srv/web

        ## 2026-11-15 (UTC)

        ### ann · 08:00:01

        fix the login test,
        please

        > First the test.

        ### codex · 08:00:03

        I will run the test first, and then look at <b>what</b> it says.

            code

        `08:00:05` bash cargo test: failed, 1 test failed \</pre\>

        ```diff
        @@ output @@
        1 test failed
        </pre>
        ```

        `08:00:07` edit src/login.rs: ok

        ```diff
        @@ src/login.rs @@
        - a < b
        + a <= b
        @@ output @@
        done
        ```

        ### codex · 08:00:09

        Done.�[31m

        `08:00:10` **completed after 9s**

    "]]
    .assert_eq(&written(MarkdownForm::new(OpenedPart::Everything)));
}

#[test]
fn a_page_of_html_is_escaped_and_has_no_script() {
    let page = written(HtmlForm::new(OpenedPart::Edits));
    let body = &page[page.find("<body>").unwrap()..];
    expect![[r#"
        <body>
        <h1>fix the &lt;login&gt;</h1>
        <div class="facts">sess_1 · codex · /srv/web</div>
        <h2>2026-11-15 (UTC)</h2>
        <article class="own"><time>08:00:01</time><b>ann</b><div class="text">fix the login test,
        please</div></article>
        <article class="thought"><time>08:00:02</time><b>thinks</b><div class="text">First the test.</div></article>
        <article class="agent"><time>08:00:03</time><b>codex</b><div class="text">I will run the test first, and then look at &lt;b&gt;what&lt;/b&gt; it says.

            code</div></article>
        <details><summary class="bad"><time>08:00:05</time>bash cargo test: failed, 1 test failed &lt;/pre&gt;</summary><pre><i>output</i>
        1 test failed
        &lt;/pre&gt;
        </pre></details>
        <details open><summary><time>08:00:07</time>edit src/login.rs: ok</summary><pre><i>src/login.rs</i>
        <del>- a &lt; b</del>
        <ins>+ a &lt;= b</ins>
        <i>output</i>
        done
        </pre></details>
        <article class="agent"><time>08:00:09</time><b>codex</b><div class="text">Done.�[31m</div></article>
        <div class="line good"><time>08:00:10</time>completed after 9s</div>
        </body></html>
    "#]].assert_eq(body);
    for bad in ["<b>what", "<login>", "<script", "\u{1b}", "http://", "https://", "src=", "href="] {
        assert!(!page.contains(bad), "{bad} in {page}");
    }
    assert!(page.contains("default-src 'none'") && page.contains("prefers-color-scheme:dark"), "{page}");
}

#[test]
fn a_fence_is_longer_than_any_in_the_text() {
    let at = "2026-11-15T08:00:00Z".parse().unwrap();
    let called = crate::render::tool::ToolUse::called("1", at, "cat", &json!({"path": "a.md"}));
    let returned = crate::render::tool::ToolReturn::read("1", false, &json!("````\n# not a heading\n````"));
    let tool = crate::render::tool::ToolUse { returned: Some(returned), ..called };
    let text = MarkdownForm::new(OpenedPart::Everything).item(at, &TranscriptItem::Tool(Box::new(tool)));
    assert!(text.contains("\n`````diff\n"), "{text}");
}
