//! The screen as it looks, without colour.

use expect_test::{Expect, expect};

use super::*;
use crate::tui::testing::{picture, press};

fn check(model: &mut Model, columns: u16, rows: u16, expected: &Expect) {
    expected.assert_eq(&picture(model, columns, rows));
}

#[test]
fn a_running_turn() {
    let mut model = running(&json!({}));
    let presence = json!({"type": "presence", "connections": [
        {"connection": OWN, "actor": {"kind": "operator", "name": "operator"}, "client": "cli"},
        {"connection": OTHER, "actor": {"kind": "operator", "name": "ann"}, "client": "web"},
    ]});
    model.update(Message::Frame(presence));
    model.update(Message::Frame(json!({"type": "preview", "kind": "message", "text": "The test still"})));
    press(&mut model, r#""and then""#);
    check(
        &mut model,
        80,
        20,
        &expect![[r#"
            scripted  "fix the failing login test"           sess_01m7n5djg0fayvh8t5cxyjkdnf








            > fix the failing login test
            ┊ First the test, then the code it tests.
            I will run the test first, and then look at what it says about the login form
            and its handler.
            ▸ bash cargo test login: failed, 1 test failed
            · file src/login.rs +3 -1
            · bash cargo test login …
            The test still
            executing 11s · tool bash cargo test login · writer: free · also here: ann (web)
            next> and then▏
            Tab when · Ctrl-D detach · Ctrl-G guide · Ctrl-S stop · Ctrl-T tool · ? help
        "#]],
    );
}

#[test]
fn a_wide_screen() {
    let mut model =
        running(&json!({"guidance": [{"status": "pending"}], "writer": writer(OTHER, &json!(null))}));
    check(
        &mut model,
        120,
        16,
        &expect![[r#"
            scripted  "fix the failing login test"                                                   sess_01m7n5djg0fayvh8t5cxyjkdnf






            > fix the failing login test
            ┊ First the test, then the code it tests.
            I will run the test first, and then look at what it says about the login form and its handler.
            ▸ bash cargo test login: failed, 1 test failed
            · file src/login.rs +3 -1
            · bash cargo test login …
            executing 11s · tool bash cargo test login · 1 note waits · writer: operator (web)
            next> ▏
            Tab when · Ctrl-D detach · Ctrl-G guide · Ctrl-S stop · Ctrl-T tool · Ctrl-C leave … · Ctrl-Q queue · ? help
        "#]],
    );
}

#[test]
fn a_narrow_screen_with_a_question() {
    let mut model = running(&json!({"gates": [gate()]}));
    check(
        &mut model,
        60,
        20,
        &expect![[r#"
            scripted  "fix the failing login test"





            > fix the failing login test
            ┊ First the test, then the code it tests.
            I will run the test first, and then look at what it says
            about the login form and its handler.
            ▸ bash cargo test login: failed, 1 test failed
            · file src/login.rs +3 -1
            · bash cargo test login …
            ? asks for approval: Run `rm -rf build`?
              1 Allow once   2 Always allow   3 Reject
              (press a number, Esc to put it aside)
            executing 11s · 1 approval · tool bash cargo test login
            writer: free
            next> ▏
            Tab when · Ctrl-D detach · Ctrl-G guide · ? help
        "#]],
    );
}

#[test]
fn a_question_is_open() {
    let mut model = running(&json!({"gates": [gate()]}));
    check(
        &mut model,
        80,
        16,
        &expect![[r#"
            scripted  "fix the failing login test"           sess_01m7n5djg0fayvh8t5cxyjkdnf


            > fix the failing login test
            ┊ First the test, then the code it tests.
            I will run the test first, and then look at what it says about the login form
            and its handler.
            ▸ bash cargo test login: failed, 1 test failed
            · file src/login.rs +3 -1
            · bash cargo test login …
            ? asks for approval: Run `rm -rf build`?
              1 Allow once   2 Always allow   3 Reject
              (press a number, Esc to put it aside)
            executing 11s · 1 approval · tool bash cargo test login · writer: free
            next> ▏
            Tab when · Ctrl-D detach · Ctrl-G guide · Ctrl-S stop · Ctrl-T tool · ? help
        "#]],
    );
}

#[test]
fn a_stop_rises() {
    let mut model = running(&json!({"stop": {"level": 2}, "status": "stopping"}));
    model.update(Message::Reply(
        Asked::Receipt,
        Ok(json!({
            "session": SESSION, "state": "executing", "level": 2, "scope": "session",
            "by": {"kind": "operator", "name": "operator"}, "requested_at": "2026-11-15T08:00:08Z",
            "steps": [
                {"at": "2026-11-15T08:00:08Z", "channel": "request", "what": "level 1 (graceful) asked for by operator"},
                {"at": "2026-11-15T08:00:09Z", "channel": "agent", "what": "its own cancel was sent"},
                {"at": "2026-11-15T08:00:11Z", "channel": "request", "what": "raised to level 2 (immediate)"},
            ],
            "confirmed": false, "withdrawn": false,
        })),
    ));
    check(
        &mut model,
        80,
        20,
        &expect![[r#"
            scripted  "fix the failing login test"           sess_01m7n5djg0fayvh8t5cxyjkdnf




            > fix the failing login test
            ┊ First the test, then the code it tests.
            I will run the test first, and then look at what it says about the login form
            and its handler.
            ▸ bash cargo test login: failed, 1 test failed
            · file src/login.rs +3 -1
            · bash cargo test login …
            ! stop level 2 (immediate), session
              request: level 1 (graceful) asked for by operator
              agent: its own cancel was sent
              request: raised to level 2 (immediate)
            executing, stopping 11s · stop level 2 · tool bash cargo test login
            writer: free
            next> ▏
            Tab when · Ctrl-D detach · Ctrl-G guide · Ctrl-S stop · Ctrl-T tool · ? help
        "#]],
    );
}

#[test]
fn the_queue() {
    let mut model = running(&json!({"inbox": queue(), "inbox_paused": "interrupted"}));
    press(&mut model, "ctrl-q down");
    check(
        &mut model,
        100,
        18,
        &expect![[r#"
            scripted  "fix the failing login test"                               sess_01m7n5djg0fayvh8t5cxyjkdnf





                   ┌ Queue ────────────────────────────────────────────────────────────────────────────┐
                   │   1 [next] then the docs                                                          │
                   │ > 2 [next] and a changelog line with its number                                   │
            > fix t│ it waits (interrupted): g lets it go on                                           │
            ┊ First└ j k move · e edit · x withdraw · p front · s now · i interrupt · P pause · g go ──┘
            I will run the test first, and then look at what it says about the login form and its handler.
            ▸ bash cargo test login: failed, 1 test failed
            · file src/login.rs +3 -1
            · bash cargo test login …
            executing 11s · tool bash cargo test login · 2 queued, waits (interrupted) · writer: free
            next>
            Tab when · Ctrl-D detach · Ctrl-G guide · Ctrl-S stop · Ctrl-T tool · Ctrl-C leave … · ? help
        "#]],
    );
    check(
        &mut model,
        60,
        14,
        &expect![[r#"
            scripted  "fix the failing login test"


            > fix the failing login test
            ┊ Fi┌ Queue ──────────────────────────────────────────┐
            I wi│   1 [next] then the docs                        │s
            abou│ > 2 [next] and a changelog line with its number │
            ▸ ba│ it waits (interrupted): g lets it go on         │
            · fi└ j k move · e edit · x withdraw · p s i · g go ──┘
            · bash cargo test login …
            executing 11s · tool bash cargo test login
            2 queued, waits (interrupted) · writer: free
            next>
            Tab when · Ctrl-D detach · Ctrl-G guide · ? help
        "#]],
    );
}

#[test]
fn another_asks_to_write() {
    let asked = json!({"connection": OTHER, "actor": {"name": "ann"}, "client": "web", "until": "2026-11-15T08:00:20Z"});
    let mut model = running(&json!({"writer": writer(OWN, &asked)}));
    check(
        &mut model,
        80,
        14,
        &expect![[r#"
            scripted  "fix the failing login test"           sess_01m7n5djg0fayvh8t5cxyjkdnf

            > fix the failing login test
            ┊ First the test, then the code it tests.
            I will run the test first, and then look at what it says about the login form
            and its handler.
            ▸ bash cargo test login: failed, 1 test failed
            · file src/login.rs +3 -1
            · bash cargo test login …
            ! ann (web) asks to write here (8s left)
              y lets them, n keeps it with you; Alt-Y, Alt-N while typing
            executing 11s · tool bash cargo test login · writer: you
            next> ▏
            Tab when · Ctrl-D detach · Ctrl-G guide · Ctrl-S stop · Ctrl-T tool · ? help
        "#]],
    );
}

#[test]
fn the_page_of_keys() {
    let mut model = running(&json!({}));
    press(&mut model, "?");
    check(
        &mut model,
        90,
        26,
        &expect![[r#"
            scripted  "fix the failing login test"                     sess_01m7n5djg0fayvh8t5cxyjkdnf
                  ┌ Keys ──────────────────────────────────────────────────────────────────────┐
                  │ Enter             send what is typed; Ctrl-J or Alt-Enter: new line        │
                  │ Tab               while a turn runs: next, now, interrupt, send if free    │
                  │                   (after the turn, into it, instead of it, not at all)     │
                  │ Up Down           earlier prompts of this session, when nothing is typed   │
                  │ Ctrl-A E W U K Y  start, end; delete a word, to start, to end; put back    │
                  │ Alt-B F D         a word back, a word forward, delete the next word        │
                  │ Alt-Up Alt-Down   select a tool call; Enter or Ctrl-T opens and closes it  │
                  │ Alt-T             open or close all tool calls: output and diffs           │
                  │ PgUp PgDn         scroll; Shift-Up, Shift-Down by a row; Home, End         │
                  │ 1 2 3 …           answer the approval shown; Esc puts it aside             │
                  │ Alt-A             attach a file or link to the message; once more: back    │
                  │ Ctrl-G            type guidance for the running agent instead              │
                  │ Ctrl-O            go to the session below that waits for approval          │
                  │ Ctrl-S            stop the session (asks first); once more raises the stop │
            > fix │ Ctrl-X            take back a stop that is pending, below level 3          │
            ┊ Firs│ Ctrl-C            detach, cancel the turn, stop, or go on                  │
            I will│ Ctrl-Q            the queue: reorder, edit, withdraw, move up              │s
            handle│ Alt-W             take the right to write, or give it back                 │
            ▸ bash│ Alt-Y Alt-N       let the client write that asks to, or not                │
            · file│ Ctrl-D, q         detach (q when nothing is typed)                         │
            · bash│ ?                 this page (when nothing is typed)                        │
            execut└ any key closes ────────────────────────────────────────────────────────────┘
            next>
            Tab when · Ctrl-D detach · Ctrl-G guide · Ctrl-S stop · Ctrl-T tool · ? help
        "#]],
    );
}

#[test]
fn leaving_is_asked_about() {
    let mut model = running(&json!({}));
    press(&mut model, "ctrl-c");
    check(
        &mut model,
        80,
        16,
        &expect![[r#"
            scripted  "fix the failing login test"           sess_01m7n5djg0fayvh8t5cxyjkdnf




                             ┌ Leave? ────────────────────────────────────┐
            > fix the failing│ d  detach: the session goes on without you │
            ┊ First the test,│ c  cancel the turn                         │
            I will run the te│ s  stop the session                        │the login form
            and its handler. │ g  go on                                   │
            ▸ bash cargo test└ Ctrl-C again detaches ─────────────────────┘
            · file src/login.rs +3 -1
            · bash cargo test login …
            executing 11s · tool bash cargo test login · writer: free
            next>
            Tab when · Ctrl-D detach · Ctrl-G guide · Ctrl-S stop · Ctrl-T tool · ? help
        "#]],
    );
}

#[test]
fn a_turn_that_may_have_run() {
    let mut model = running(&json!({}));
    press(&mut model, r#""deploy to staging" enter"#);
    model.update(Message::Reply(Asked::Turn(1), Err(refusal("turn_uncertain", false))));
    check(
        &mut model,
        80,
        16,
        &expect![[r#"
            scripted  "fix the failing login test"           sess_01m7n5djg0fayvh8t5cxyjkdnf




                 ┌ Once more? ───────────────────────────────────────────────────────┐
            > fix│ The agent had this message when its process was lost. It may have │
            ┊ Fir│ acted on it. Look at the log before you run it once more.         │
            I wil│                                                                   │orm
            and i│ deploy to staging                                                 │
            ▸ bas└ y runs it again, n does not ──────────────────────────────────────┘
            · file src/login.rs +3 -1
            · bash cargo test login …
            executing 11s · tool bash cargo test login · writer: free
            next>
            Tab when · Ctrl-D detach · Ctrl-G guide · Ctrl-S stop · Ctrl-T tool · ? help
        "#]],
    );
}

#[test]
fn read_only_and_idle() {
    let at_rest = json!({"state": "between_turn", "active_turn": null});
    let mut model = attached(Mode::ReadOnly, &at_rest);
    check(
        &mut model,
        80,
        10,
        &expect![[r#"
            scripted  "fix the failing login test"           sess_01m7n5djg0fayvh8t5cxyjkdnf
            > fix the failing login test
            ┊ First the test, then the code it tests.
            I will run the test first, and then look at what it says about the login form
            and its handler.
            ▸ bash cargo test login: failed, 1 test failed
            · file src/login.rs +3 -1
            · bash cargo test login …
            between_turn 12s · last tool bash cargo test login · read-only
            PgUp PgDn scroll · Alt-T tools · q detach · Ctrl-Q queue · ? help
        "#]],
    );
    let mut model = attached(Mode::Write, &at_rest);
    check(
        &mut model,
        80,
        5,
        &expect![[r#"
            scripted  "fix the failing login test"           sess_01m7n5djg0fayvh8t5cxyjkdnf
            · bash cargo test login …
            between_turn 12s · last tool bash cargo test login · writer: free
            send> ▏
            Enter sends · Ctrl-T tool · Ctrl-D detach · Alt-W writer · Ctrl-Q queue · ? help
        "#]],
    );
}

#[test]
fn the_daemon_is_away_and_something_is_typed_over_several_rows() {
    let mut model = running(&json!({}));
    model.update(Message::Link(Link::Down));
    press(
        &mut model,
        r#""a long message that does not fit into one row of so narrow a screen" newline "and more""#,
    );
    check(
        &mut model,
        50,
        14,
        &expect![[r#"
            scripted  "fix the failing login test"
            > fix the failing login test
            ┊ First the test, then the code it tests.
            I will run the test first, and then look at what
            it says about the login form and its handler.
            ▸ bash cargo test login: failed, 1 test failed
            · file src/login.rs +3 -1
            · bash cargo test login …
            no daemon: `lanyard up` starts it · executing 11s
            tool bash cargo test login · writer: free
            next> a long message that does not fit into one r
                  ow of so narrow a screen
                  and more▏
            Tab when · Ctrl-D detach · Ctrl-G guide · ? help
        "#]],
    );
}

#[test]
fn scrolled_up() {
    let mut model = running(&json!({}));
    model.update(Message::Resized { columns: 60, rows: 9 });
    press(&mut model, "pageup");
    check(
        &mut model,
        60,
        9,
        &expect![[r#"
            scripted  "fix the failing login test"
            > fix the failing login test
            ┊ First the test, then the code it tests.
            I will run the test first, and then look at what it says
            about the login form and its handler.
            executing 11s · tool bash cargo test login · writer: free
            3 rows below
            next> ▏
            Tab when · Ctrl-D detach · Ctrl-G guide · ? help
        "#]],
    );
}

#[test]
fn a_session_below_asks() {
    let mut model = running(&json!({}));
    let child = json!({"id": "sess_01m7n5djg0fayvh8t5cxyjkdnc", "agent": "checker", "pending": {"gates": 1}, "children": []});
    let tree = json!({"id": SESSION, "pending": {"gates": 0}, "children": [child]});
    model.update(Message::Reply(Asked::Below, Ok(tree)));
    check(
        &mut model,
        80,
        12,
        &expect![[r#"
            scripted  "fix the failing login test"           sess_01m7n5djg0fayvh8t5cxyjkdnf
            ┊ First the test, then the code it tests.
            I will run the test first, and then look at what it says about the login form
            and its handler.
            ▸ bash cargo test login: failed, 1 test failed
            · file src/login.rs +3 -1
            · bash cargo test login …
            ? checker below asks for approval: sess_01m7n5djg0fayvh8t5cxyjkdnc
              Ctrl-O goes there; Ctrl-D there comes back here
            executing 11s · tool bash cargo test login · writer: free
            next> ▏
            Tab when · Ctrl-D detach · Ctrl-G guide · Ctrl-S stop · Ctrl-T tool · ? help
        "#]],
    );
    let gone = press(&mut model, "ctrl-o");
    assert!(matches!(&gone[..], [Do::Leave(Exit::Attach(_))]), "{gone:?}");
}

/// The first call failed and has output; the second has not returned.
#[test]
fn a_tool_call_is_selected_and_opened() {
    let mut model = running(&json!({}));
    let edit = json!({"filePath": "src/login.rs", "oldString": "a\nb", "newString": "a\nc"});
    model.update(Message::Frame(event(
        8,
        "tool.called",
        &json!({"call": "3", "tool": "edit", "arguments": edit}),
    )));
    model.update(Message::Frame(event(9, "tool.returned", &json!({"call": "3", "is_error": false}))));
    press(&mut model, "entryup enter");
    check(
        &mut model,
        80,
        22,
        &expect![[r#"
            scripted  "fix the failing login test"           sess_01m7n5djg0fayvh8t5cxyjkdnf






            > fix the failing login test
            ┊ First the test, then the code it tests.
            I will run the test first, and then look at what it says about the login form
            and its handler.
            ▸ bash cargo test login: failed, 1 test failed
            · file src/login.rs +3 -1
            · bash cargo test login …
            ▾ edit src/login.rs: ok
              src/login.rs
              │   a
              │ - b
              │ + c
            executing 11s · last tool edit src/login.rs · writer: free
            next> ▏
            Enter opens and closes · Alt-Up Alt-Down others · Alt-T all · Esc back · ? help
        "#]],
    );
    press(&mut model, "alt-t");
    check(
        &mut model,
        80,
        26,
        &expect![[r#"
            scripted  "fix the failing login test"           sess_01m7n5djg0fayvh8t5cxyjkdnf








            > fix the failing login test
            ┊ First the test, then the code it tests.
            I will run the test first, and then look at what it says about the login form
            and its handler.
            ▾ bash cargo test login: failed, 1 test failed
              output
              │ 1 test failed
            · file src/login.rs +3 -1
            · bash cargo test login …
            ▾ edit src/login.rs: ok
              src/login.rs
              │   a
              │ - b
              │ + c
            executing 11s · last tool edit src/login.rs · writer: free
            next> ▏
            all tool calls are open
        "#]],
    );
    press(&mut model, "alt-t esc");
    assert!(!model.transcript.is_selecting());
}
