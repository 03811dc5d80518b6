//! Keys, frames and answers in; what is done out.

use expect_test::{Expect, expect};

use super::*;
use crate::tui::testing::{done, press};

fn check(model: &mut Model, keys: &str, expected: &Expect) {
    let all = press(model, keys);
    expected.assert_eq(&done(&all));
}

#[test]
fn a_message_goes_out_with_an_id_of_its_own_and_the_chosen_delivery() {
    let mut model = running(&json!({}));
    check(
        &mut model,
        r#""hello world" newline "more" enter tab "now" enter tab "stop that" enter tab "if free" enter"#,
        &expect![[r#"
            Turn(1): Post /sessions/S/turns {"prompt":"hello world\nmore","client_turn_id":"00000000-0000-4000-8000-000000000008","delivery":"queue"}
            Turn(2): Post /sessions/S/turns {"prompt":"now","client_turn_id":"00000000-0000-4000-8000-000000000009","delivery":"steer"}
            Turn(3): Post /sessions/S/turns {"prompt":"stop that","client_turn_id":"00000000-0000-4000-8000-00000000000a","delivery":"interrupt"}
            Turn(4): Post /sessions/S/turns {"prompt":"if free","client_turn_id":"00000000-0000-4000-8000-00000000000b","delivery":"reject"}
        "#]],
    );
}

/// S3-15: what nobody confirmed is sent again as the same turn once the daemon is back; a confirmed one is not.
#[test]
fn a_message_nobody_answered_for_is_sent_again_as_the_same_turn() {
    let mut model = running(&json!({}));
    press(&mut model, r#""one" enter "two" enter"#);
    model.update(Message::Reply(Asked::Turn(1), Ok(json!({"result": "queued"}))));
    let none = model.update(Message::Reply(Asked::Turn(2), Err(refusal("uncertain", true))));
    assert_eq!(none, []);
    model.update(Message::Link(Link::Down));
    let again = model.update(Message::Frame(connected(7)));
    expect![[r#"
        Turn(2): Post /sessions/S/turns {"prompt":"two","client_turn_id":"00000000-0000-4000-8000-000000000009","delivery":"queue"}
    "#]]
    .assert_eq(&done(&again[again.len() - 1..]));
    let once = model.update(Message::Frame(connected(7)));
    assert!(!done(&once).contains("Turn"), "{}", done(&once));
}

#[test]
fn words_that_were_not_taken_are_given_back() {
    let mut model = running(&json!({"writer": writer(OTHER, &json!(null))}));
    press(&mut model, r#""mine" enter"#);
    model.update(Message::Reply(Asked::Turn(1), Err(refusal("writer_held", false))));
    assert_eq!(model.input.text(), "mine");
    let said = model.notice.clone().unwrap().text;
    assert_eq!(said, "not sent: operator (web) writes here [writer_held]; Alt-W asks for it");
    // Not over what is being typed.
    press(&mut model, r#"enter "new" "#);
    model.update(Message::Reply(Asked::Turn(2), Err(refusal("inbox_full", false))));
    assert_eq!(model.input.text(), "new");
}

/// A turn that may have run is asked about, never repeated by itself.
#[test]
fn an_uncertain_turn_is_run_again_only_by_word() {
    let mut model = running(&json!({}));
    press(&mut model, r#""deploy" enter"#);
    model.update(Message::Reply(Asked::Turn(1), Err(refusal("turn_uncertain", false))));
    assert!(matches!(model.over, Over::Again(_)));
    check(&mut model, "x", &expect![""]);
    check(
        &mut model,
        "y",
        &expect![[r#"
            Turn(1): Post /sessions/S/turns {"prompt":"deploy","client_turn_id":"00000000-0000-4000-8000-000000000008","delivery":"queue","again":true}
        "#]],
    );
    model.update(Message::Reply(Asked::Turn(1), Err(refusal("turn_uncertain", false))));
    check(&mut model, "n", &expect![""]);
    assert_eq!(model.input.text(), "deploy");
}

#[test]
fn keys_with_ctrl_are_orders() {
    let mut model = running(&json!({}));
    check(
        &mut model,
        r#"ctrl-g "use staging" enter ctrl-s y ctrl-x ctrl-c c ctrl-c s y ctrl-c g ctrl-c d ctrl-d"#,
        &expect![[r#"
            Guidance: Post /sessions/S/guidance {"text":"use staging"}
            Stop: Post /sessions/S/stop {"reason":"asked for while attached"}
            Unstop: Post /sessions/S/stop/withdraw {"reason":"asked for while attached"}
            Cancel: Post /sessions/S/cancel {"reason":"asked for while attached"}
            Stop: Post /sessions/S/stop {"reason":"asked for while attached"}
            leave: Quit
            leave: Quit
        "#]],
    );
}

/// FND-N5: nothing is stopped by one key, however often it is pressed; a stop that is pending is raised at once.
#[test]
fn fnd_n5_a_stop_is_asked_about_first() {
    let mut model = running(&json!({}));
    check(&mut model, "ctrl-s ctrl-s ctrl-s n", &expect![""]);
    check(&mut model, "ctrl-s esc ctrl-s enter ctrl-c s q", &expect![""]);
    check(
        &mut model,
        "ctrl-s y",
        &expect![[r#"
            Stop: Post /sessions/S/stop {"reason":"asked for while attached"}
        "#]],
    );
    let stop = json!({"level": 1, "scope": "session"});
    let mut model = running(&json!({"stop": stop, "status": "stopping"}));
    check(
        &mut model,
        "ctrl-s",
        &expect![[r#"
            Stop: Post /sessions/S/stop {"reason":"asked for while attached"}
        "#]],
    );
}

/// FND-N5: what cannot be taken back is not said to be; a session that ended does not go on.
#[test]
fn fnd_n5_words_about_a_stop_are_true() {
    let said = |model: &mut Model, level: u64| {
        model.update(Message::Reply(Asked::Stop, Ok(json!({"stop_level": level}))));
        model.notice.as_ref().map(|notice| notice.text.clone()).unwrap_or_default()
    };
    assert!(said(&mut running(&json!({})), 1).contains("Ctrl-X takes it back"));
    assert!(!said(&mut running(&json!({})), 3).contains("Ctrl-X"));
    let idle = json!({"state": "idle", "active_turn": null});
    let told = said(&mut running(&idle), 1);
    assert!(!told.contains("Ctrl-X") && told.contains("lanyard resume"), "{told}");

    assert!(running(&json!({})).farewell().contains("goes on"));
    let ended = |state: &str| running(&json!({"state": state, "active_turn": null})).farewell();
    for state in ["stopped", "completed", "failed"] {
        assert!(!ended(state).contains("goes on") && ended(state).contains(state), "{}", ended(state));
    }
    assert!(ended("stopped").contains("lanyard resume") && !ended("completed").contains("resume"));
    let mut model = running(&json!({"state": "stopped", "active_turn": null}));
    check(&mut model, "ctrl-s y", &expect![""]);
}

#[test]
fn q_and_the_question_mark_are_letters_once_something_is_typed() {
    let mut model = running(&json!({}));
    check(
        &mut model,
        r#""a" q ? enter"#,
        &expect![[r#"
            Turn(1): Post /sessions/S/turns {"prompt":"aq?","client_turn_id":"00000000-0000-4000-8000-000000000008","delivery":"queue"}
        "#]],
    );
    check(
        &mut model,
        "? x q",
        &expect![[r"
        leave: Quit
    "]],
    );
}

/// X-01 and a slip of the fingers: a number answers, unless the question is too new to have been read.
#[test]
fn numbers_answer_the_question_that_is_shown() {
    let mut model = running(&json!({"gates": [gate()]}));
    check(
        &mut model,
        "2",
        &expect![[r#"
        Gate(gate_01m7n5djg0fayvh8t5cxyjkdng): Post /sessions/S/gates/gate_01m7n5djg0fayvh8t5cxyjkdng {"option":"always"}
    "#]],
    );
    check(&mut model, "9", &expect![""]);
    assert_eq!(model.input.text(), "9", "there is no ninth option");
    check(&mut model, "1", &expect![""]);
    assert_eq!(model.input.text(), "91", "something is typed");
    let mut model = running(&json!({"gates": [gate()]}));
    check(&mut model, "esc 1", &expect![""]);
    assert_eq!(model.input.text(), "1", "it was put aside");
    let mut fresh = running(&json!({}));
    fresh.update(Message::Reply(Asked::Session, Ok(session(&json!({"gates": [gate()]})))));
    check(&mut fresh, "1", &expect![""]);
    assert!(fresh.input.is_empty());
}

#[test]
fn the_right_to_write_is_asked_for_given_and_kept() {
    let mut model = running(&json!({"writer": writer(OTHER, &json!(null))}));
    check(
        &mut model,
        "alt-w",
        &expect![[r#"
            Claim: Post /sessions/S/writer {"connection":"conn_01m7n5djg0fayvh8t5cxyjkdna","client":"cli","take":true}
        "#]],
    );
    let until = json!({"result": "asked", "until": "2026-11-15T08:00:20Z"});
    model.update(Message::Reply(Asked::Claim, Ok(until)));
    assert_eq!(model.writer_words(), "writer: operator (web), asked (8s left)");
    let denied = event(8, "writer.denied", &json!({"connection": OWN}));
    model.update(Message::Frame(denied));
    assert_eq!(model.writer_words(), "writer: operator (web)");

    // Held here: everything that is written names the epoch, and another may ask.
    let asked = json!({"connection": OTHER, "actor": {"name": "ann"}, "client": "web", "until": "2026-11-15T08:00:20Z"});
    let mut model = running(&json!({"writer": writer(OWN, &asked)}));
    let sent = press(&mut model, r#""x" enter"#);
    assert!(matches!(&sent[0], Do::Call(_, call) if call.writer == Some(4)), "{sent:?}");
    check(
        &mut model,
        r#"n y "typing" alt-n alt-y alt-w"#,
        &expect![[r#"
            Handover: Post /sessions/S/writer/deny {"connection":"conn_01m7n5djg0fayvh8t5cxyjkdna","epoch":4}
            Handover: Post /sessions/S/writer/grant {"connection":"conn_01m7n5djg0fayvh8t5cxyjkdna","epoch":4}
            Handover: Post /sessions/S/writer/deny {"connection":"conn_01m7n5djg0fayvh8t5cxyjkdna","epoch":4}
            Handover: Post /sessions/S/writer/grant {"connection":"conn_01m7n5djg0fayvh8t5cxyjkdna","epoch":4}
            Handover: Post /sessions/S/writer/release {"connection":"conn_01m7n5djg0fayvh8t5cxyjkdna","epoch":4}
        "#]],
    );
    assert!(model.parting().is_some(), "whoever leaves gives it back");
    assert!(running(&json!({})).parting().is_none());
}

#[test]
fn what_waits_is_moved_edited_and_withdrawn() {
    let mut model = running(&json!({"inbox": queue(), "inbox_paused": "asked"}));
    check(
        &mut model,
        r#"ctrl-q down k p s i g P x up e "!" enter"#,
        &expect![[r#"
            Session: Get /sessions/S
            InboxChange: Post /sessions/S/inbox/order {"turns":["turn_b","turn_a"]}
            InboxChange: Post /sessions/S/inbox/turn_b/promote {"as":"front"}
            InboxChange: Post /sessions/S/inbox/turn_b/promote {"as":"steer"}
            InboxChange: Post /sessions/S/inbox/turn_b/promote {"as":"interrupt"}
            InboxChange: Post /sessions/S/inbox/go {}
            InboxChange: Post /sessions/S/inbox/pause {}
            InboxChange: Delete /sessions/S/inbox/turn_b {}
            InboxChange: Patch /sessions/S/inbox/turn_b {"prompt":"and a changelog line\nwith its number!"}
        "#]],
    );
    check(
        &mut model,
        "ctrl-q j j j esc esc",
        &expect![[r#"
        InboxChange: Post /sessions/S/inbox/order {"turns":["turn_a","turn_b"]}
    "#]],
    );
}

#[test]
fn read_only_touches_nothing() {
    let all =
        json!({"gates": [gate()], "inbox": queue(), "writer": writer(OWN, &json!({"connection": OTHER}))});
    let mut model = attached(Mode::ReadOnly, &all);
    let keys = r#"1 y n "text" enter tab ctrl-g ctrl-s ctrl-x alt-w ctrl-c c ctrl-c s ctrl-q x p e g j esc"#;
    check(
        &mut model,
        keys,
        &expect![[r"
        Session: Get /sessions/S
    "]],
    );
    assert!(model.input.is_empty());
    check(
        &mut model,
        "q",
        &expect![[r"
        leave: Quit
    "]],
    );
}

/// One look at a time, however much happens, and one more when something happened meanwhile.
#[test]
fn the_session_is_looked_at_again_after_a_change_and_not_for_every_word() {
    let mut model = running(&json!({}));
    let word = event(8, "message", &json!({"role": "agent", "text": "x"}));
    assert_eq!(model.update(Message::Frame(word)), []);
    let mut looks = 0;
    for seq in 9..30 {
        let frame = event(seq, "guidance.settled", &json!({"notes": [], "how": "acknowledged"}));
        looks += model.update(Message::Frame(frame)).len();
    }
    assert_eq!(looks, 1);
    let again = model.update(Message::Reply(Asked::Session, Ok(session(&json!({})))));
    assert_eq!(done(&again), "Session: Get /sessions/S\n");
    assert_eq!(model.update(Message::Reply(Asked::Session, Ok(session(&json!({}))))), []);
}

/// S3-B05: the same event twice, as after a reconnect, is one event.
#[test]
fn nothing_is_shown_twice_after_a_reconnect() {
    let mut model = running(&json!({}));
    let rows = model.transcript.total();
    model.update(Message::Link(Link::Down));
    model.update(Message::Frame(connected(7)));
    for raw in story() {
        assert_eq!(model.update(Message::Frame(raw)), []);
    }
    assert_eq!(model.transcript.total(), rows);
}

#[test]
fn older_events_are_read_when_one_scrolls_up_to_them() {
    let mut model = empty(Mode::Write);
    model.update(Message::Resized { columns: 80, rows: 12 });
    model.update(Message::Frame(connected(500)));
    for seq in 501..560 {
        model.update(Message::Frame(event(seq, "file.changed", &json!({"path": format!("src/{seq}.rs")}))));
    }
    check(&mut model, "pageup", &expect![""]);
    check(
        &mut model,
        "top rowup",
        &expect![[r"
        Older: Get /sessions/S/events?after=200&limit=300
    "]],
    );
    let page: Vec<Value> = (201..=500)
        .map(|seq| event(seq, "file.changed", &json!({"path": format!("src/{seq}.rs")})))
        .collect();
    model.update(Message::Reply(Asked::Older, Ok(json!({"events": page, "head": 559}))));
    check(&mut model, "rowup", &expect![""]);
    check(
        &mut model,
        "top",
        &expect![[r"
        Older: Get /sessions/S/events?after=0&limit=200
    "]],
    );
    check(&mut model, "bottom", &expect![""]);
    assert_eq!(model.transcript.scroll.below, 0);
}

/// Up at an empty line recalls what was asked; what is typed is never replaced.
#[test]
fn earlier_prompts_are_recalled_at_an_empty_line() {
    let mut model = running(&json!({}));
    for (seq, prompt) in [(8, "second"), (9, "second"), (10, "third\nwith two lines")] {
        let started = json!({
            "turn": "turn_01m7n5djg0fayvh8t5cxyjkdnt", "prompt": prompt, "prompt_hash": "x", "opening": {"kind": "new"},
        });
        model.update(Message::Frame(event(seq, "turn.started", &started)));
    }
    let line = |model: &mut Model, keys: &str| {
        press(model, keys);
        model.input.text().to_owned()
    };
    assert_eq!(line(&mut model, "up"), "third\nwith two lines");
    assert_eq!(line(&mut model, "up"), "second", "equal ones in a row are one");
    assert_eq!(line(&mut model, "up"), "fix the failing login test");
    assert_eq!(line(&mut model, "up"), "fix the failing login test", "there is none before");
    assert_eq!(line(&mut model, "down"), "second");
    assert_eq!(line(&mut model, "down down"), "");
    assert_eq!(line(&mut model, r#""typed" up"#), "typed");
    assert_eq!(line(&mut model, "ctrl-u up "), "third\nwith two lines");
    assert_eq!(line(&mut model, r#""!" up"#), "third\nwith two lines!", "it was changed");
}

#[test]
fn the_line_is_edited_as_in_a_shell() {
    let mut model = running(&json!({}));
    for (keys, text) in [
        (r#""fix the login test" ctrl-w"#, "fix the login "),
        ("ctrl-y", "fix the login test"),
        ("ctrl-a worddelete", " the login test"),
        ("ctrl-e ctrl-u", ""),
        ("ctrl-y wordleft ctrl-k", " the login "),
        ("ctrl-y", " the login test"),
    ] {
        check(&mut model, keys, &expect![""]);
        assert_eq!(model.input.text(), text, "{keys}");
    }
}

/// A file is kept by the daemon before the message names it; the words that were typed stay.
#[test]
fn a_file_goes_with_the_next_message() {
    let mut model = running(&json!({}));
    check(
        &mut model,
        r#""look" alt-a "shot.png" enter enter"#,
        &expect![[r"
            File(1): keep shot.png
        "]],
    );
    assert_eq!(model.notice.clone().unwrap().text, "a file is still being sent; press Enter again");
    assert_eq!(model.input.text(), "look");
    let part = json!({"kind": "attachment", "id": "x", "name": "shot.png"});
    model.update(Message::Reply(Asked::File(1), Ok(json!({"part": part, "image": true}))));
    check(
        &mut model,
        "enter",
        &expect![[r#"
            Turn(1): Post /sessions/S/turns {"prompt":"look","client_turn_id":"00000000-0000-4000-8000-000000000008","delivery":"queue","parts":[{"kind":"attachment","id":"x","name":"shot.png"}]}
        "#]],
    );
    assert!(model.files.is_empty());
    // Refused, both come back.
    model.update(Message::Reply(Asked::Turn(1), Err(refusal("inbox_full", false))));
    assert_eq!((model.input.text(), model.files.len()), ("look", 1));
    // A file that cannot be read goes with nothing, and Backspace takes one away.
    press(&mut model, r#"alt-a "missing" enter"#);
    model.update(Message::Reply(Asked::File(2), Err(refusal("attachment_unreadable", false))));
    assert_eq!(model.files.len(), 1);
    press(&mut model, "alt-a backspace esc");
    assert_eq!((model.input.text(), model.files.len()), ("look", 0));
}

fn lacks(what: &[&str]) -> Value {
    let lack = |what: &&str| json!({"what": what, "why": format!("no {what}"), "instead": "do without"});
    json!({"lacks": what.iter().map(lack).collect::<Vec<_>>()})
}

/// What the agent cannot do is not done, and the reason is the daemon's.
#[test]
fn what_the_agent_cannot_do_is_passed_over_with_the_reason() {
    let mut model = running(&lacks(&["steer", "stop", "prompt", "images"]));
    let said = |model: &Model| model.notice.clone().unwrap().text;
    check(&mut model, "tab", &expect![""]);
    assert_eq!((model.delivery, said(&model).as_str()), (TypedDelivery::Interrupt, "no steer; do without"));
    check(&mut model, "backtab", &expect![""]);
    assert_eq!(model.delivery, TypedDelivery::Queue);
    check(&mut model, "ctrl-s", &expect![""]);
    assert_eq!((&model.over, said(&model).as_str()), (&Over::Nothing, "no stop; do without"));
    check(&mut model, r#""hello" enter"#, &expect![""]);
    assert_eq!((model.input.text(), said(&model).as_str()), ("hello", "no prompt; do without"));
    press(&mut model, r#"alt-a "a.png" enter"#);
    let kept = json!({"part": {"kind": "attachment", "id": "x"}, "image": true});
    model.update(Message::Reply(Asked::File(1), Ok(kept)));
    assert_eq!(said(&model), "no images; do without");
}

#[test]
fn a_session_that_is_gone_is_left_with_the_reason() {
    let mut model = running(&json!({}));
    model.refresh();
    let left = model.update(Message::Reply(Asked::Session, Err(refusal("session_deleted", false))));
    assert!(matches!(&left[..], [Do::Leave(Exit::Refused(refused))] if refused.code == "session_deleted"));
}

/// Bad input: whatever comes over the stream or from a keyboard, nothing panics.
#[test]
fn garbage_is_passed_over() {
    let mut model = running(&json!({}));
    for frame in [
        json!(null),
        json!([1, 2]),
        json!("x"),
        json!({"type": 7}),
        json!({"type": "preview"}),
        json!({"type": "presence", "connections": "many"}),
        json!({"type": "connected"}),
        json!({"seq": "8"}),
        json!({"seq": 8}),
        json!({"seq": 9, "type": "message", "data": 7}),
        json!({"seq": u64::MAX, "type": "turn.started", "data": {"prompt": null}}),
    ] {
        model.update(Message::Frame(frame));
    }
    for reply in [json!(null), json!({"events": [1, {"seq": 3}]}), json!({"turns": [{}]})] {
        for asked in [Asked::Session, Asked::Older, Asked::Newer, Asked::Latest, Asked::Receipt] {
            model.update(Message::Reply(asked, Ok(reply.clone())));
        }
    }
    for (columns, rows) in [(0, 0), (1, 1), (3, 2), (500, 200)] {
        crate::tui::testing::picture(&mut model, columns, rows);
        press(&mut model, "pageup pagedown top bottom up down");
    }
}
