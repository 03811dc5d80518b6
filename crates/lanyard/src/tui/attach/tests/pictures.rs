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
    check(&mut model, 80, 20, &expect![""]);
}

#[test]
fn a_wide_screen() {
    let mut model =
        running(&json!({"guidance": [{"status": "pending"}], "writer": writer(OTHER, &json!(null))}));
    check(&mut model, 120, 16, &expect![""]);
}

#[test]
fn a_narrow_screen_with_a_question() {
    let mut model = running(&json!({"gates": [gate()]}));
    check(&mut model, 60, 20, &expect![""]);
}

#[test]
fn a_question_is_open() {
    let mut model = running(&json!({"gates": [gate()]}));
    check(&mut model, 80, 16, &expect![""]);
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
    check(&mut model, 80, 20, &expect![""]);
}

#[test]
fn the_queue() {
    let mut model = running(&json!({"inbox": queue(), "inbox_paused": "interrupted"}));
    press(&mut model, "ctrl-q down");
    check(&mut model, 100, 18, &expect![""]);
    check(&mut model, 60, 14, &expect![""]);
}

#[test]
fn another_asks_to_write() {
    let asked = json!({"connection": OTHER, "actor": {"name": "ann"}, "client": "web", "until": "2026-11-15T08:00:20Z"});
    let mut model = running(&json!({"writer": writer(OWN, &asked)}));
    check(&mut model, 80, 14, &expect![""]);
}

#[test]
fn the_page_of_keys() {
    let mut model = running(&json!({}));
    press(&mut model, "?");
    check(&mut model, 90, 26, &expect![""]);
}

#[test]
fn leaving_is_asked_about() {
    let mut model = running(&json!({}));
    press(&mut model, "ctrl-c");
    check(&mut model, 80, 16, &expect![""]);
}

#[test]
fn a_turn_that_may_have_run() {
    let mut model = running(&json!({}));
    press(&mut model, r#""deploy to staging" enter"#);
    model.update(Message::Reply(Asked::Turn(1), Err(refusal("turn_uncertain", false))));
    check(&mut model, 80, 16, &expect![""]);
}

#[test]
fn read_only_and_idle() {
    let at_rest = json!({"state": "between_turn", "active_turn": null});
    let mut model = attached(Mode::ReadOnly, &at_rest);
    check(&mut model, 80, 10, &expect![""]);
    let mut model = attached(Mode::Write, &at_rest);
    check(&mut model, 80, 5, &expect![""]);
}

#[test]
fn the_daemon_is_away_and_something_is_typed_over_several_rows() {
    let mut model = running(&json!({}));
    model.update(Message::Link(Link::Down));
    press(
        &mut model,
        r#""a long message that does not fit into one row of so narrow a screen" newline "and more""#,
    );
    check(&mut model, 50, 14, &expect![""]);
}

#[test]
fn scrolled_up() {
    let mut model = running(&json!({}));
    model.update(Message::Resized { columns: 60, rows: 9 });
    press(&mut model, "pageup");
    check(&mut model, 60, 9, &expect![""]);
}
