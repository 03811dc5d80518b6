//! Tables and pictures of the screen of all sessions.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::render::flow_fixture::{entry, escalation, phase_gate, time};
use crate::tui::testing::{done, picture, press};

fn id(n: u128) -> SessionId {
    SessionId::from_u128(n)
}

fn row(n: u128, parent: Option<u128>, title: &str, changes: &Value) -> Value {
    let mut row = json!({
        "id": id(n).to_string(), "title": title, "agent": "scripted", "parent": parent.map(|parent| id(parent).to_string()),
        "state": "idle", "status": "active", "archived": false, "since": "2026-11-15T07:58:00Z",
        "last_activity_at": "2026-11-15T07:59:00Z", "last_seq": 7, "active_connections": 0,
    });
    for (name, value) in changes.as_object().unwrap() {
        row[name] = value.clone();
    }
    row
}

fn with(rows: &[Value]) -> Model {
    let mut model = Model::new(Paint::default());
    model.update(Message::Tick("2026-11-15T08:00:12Z".parse().unwrap()));
    model.update(Message::Link(Link::Up));
    read(&mut model, rows);
    model
}

fn read(model: &mut Model, rows: &[Value]) {
    model.update(Message::Frame(json!({"type": "connected"})));
    for row in rows {
        model.update(Message::Frame(json!({"type": "row", "row": row})));
    }
    model.update(Message::Frame(json!({"type": "ready"})));
    model.settle();
}

fn family() -> Vec<Value> {
    let running = json!({"state": "executing", "since": "2026-11-15T08:00:00Z", "last_activity_at": "2026-11-15T08:00:10Z", "active_connections": 2,
        "pending": {"gates": 0, "guidance": 1, "inbox": 2, "paused": false, "stop_level": 1, "turn_at": "2026-11-15T08:00:02Z"}});
    vec![
        row(1, None, "hub: tidy the docs", &running),
        row(2, Some(1), "scout", &running),
        row(
            3,
            Some(1),
            "checker",
            &json!({"state": "executing", "attention": ["gate"], "pending": {"gates": 1}}),
        ),
        row(4, Some(3), "checker's helper", &json!({})),
        row(
            5,
            None,
            "nightly build",
            &json!({"state": "interrupted", "cause": "crash", "attention": ["uncertain"]}),
        ),
        row(
            6,
            None,
            "a question of style, with a title that goes on and on and on",
            &json!({"agent": "opencode"}),
        ),
        row(7, None, "done long ago", &json!({"state": "completed"})),
    ]
}

fn detail(model: &mut Model, n: u128, changes: &Value) {
    let value = row(n, None, "", changes);
    model.update(Message::Reply(Asked::Detail(id(n)), Ok(value)));
}

fn full() -> Model {
    let mut model = with(&family());
    detail(
        &mut model,
        1,
        &json!({
        "last_tool_call": {"tool": "search", "at": "2026-11-15T08:00:10Z"}, "guidance": [{"status": "pending"}],
        "active_turn": {"id": "turn_1", "started_at": "2026-11-15T08:00:02Z"},
        "writer": {"connection": "conn_1", "actor": {"name": "ann"}, "client": "web", "epoch": 1},
        }),
    );
    detail(&mut model, 3, &json!({"last_tool_call": {"tool": "ask"}, "gates": []}));
    model
}

fn check(model: &mut Model, columns: u16, rows: u16, expected: &Expect) {
    expected.assert_eq(&picture(model, columns, rows));
}

#[test]
fn families_those_that_want_somebody_first() {
    check(
        &mut full(),
        120,
        12,
        &expect![[r"
            lanyard top  7 sessions, 3 running, 2 need you
              STATE                 FOR   AGENT        SESSION                         LAST TOOL          WAITS, WHO IS THERE
            *>executing             10s   scripted     hub: tidy the docs              search             stop 1, 1 note, 2 queued,…
            * executing             10s   scripted     ├─ scout                                           stop 1, 1 note, 2 queued,…
            ! executing             2m    scripted     └─ checker                      ask                approvals 1
              idle                  2m    scripted        └─ checker's helper
            ! interrupted (crash)   2m    scripted     nightly build                                      uncertain
              idle                  2m    opencode     a question of style, with a ti…
            - completed             2m    scripted     done long ago


            Enter attach · s stop · g guide · / filter · q leave · c cancel · r resume · a archive · x delete · ? help
        "]],
    );
}

#[test]
fn a_narrow_screen() {
    check(
        &mut full(),
        60,
        12,
        &expect![[r"
            lanyard top  7 sessions, 3 running, 2 need you
              STATE        FOR  SESSION                   WAITS, WHO IS…
            *>executing    10s  hub: tidy the docs        stop 1, 1 not…
            * executing    10s  ├─ scout                  stop 1, 1 not…
            ! executing    2m   └─ checker                approvals 1
              idle         2m      └─ checker's helper
            ! interrupted… 2m   nightly build             uncertain
              idle         2m   a question of style, wit…
            - completed    2m   done long ago


            Enter attach · s stop · g guide · / filter · ? help
        "]],
    );
}

#[test]
fn a_filter_keeps_what_matches_and_what_it_hangs_from() {
    let mut model = full();
    press(&mut model, r#"/ "helper""#);
    check(
        &mut model,
        90,
        8,
        &expect![[r#"
            lanyard top  7 sessions, 3 running, 2 need you                           "helper": 3 shown
              STATE          FOR   AGENT      SESSION                    LAST TOOL  WAITS, WHO IS THE…
            *>executing      10s   scripted   hub: tidy the docs         search     stop 1, 1 note, 2…
            ! executing      2m    scripted   └─ checker                 ask        approvals 1
              idle           2m    scripted      └─ checker's helper


            filter> helper▏
        "#]],
    );
    press(&mut model, r#"enter / " nothing like it" enter"#);
    check(
        &mut model,
        90,
        6,
        &expect![[r#"
            lanyard top  7 sessions, 3 running, 2 need you           "helper nothing like it": 0 shown
              STATE          FOR   AGENT      SESSION                    LAST TOOL  WAITS, WHO IS THE…

            none of 7 sessions matches "helper nothing like it"

            Enter attach · s stop · g guide · / filter · q leave · c cancel · r resume · ? help
        "#]],
    );
    press(&mut model, "esc");
    model.settle();
    assert_eq!(model.directory.places().len(), 7);
}

#[test]
fn nothing_there() {
    check(
        &mut with(&[]),
        80,
        6,
        &expect![[r#"
            lanyard top  0 sessions, 0 running
              STATE          FOR   AGENT      SESSION          LAST TOOL  WAITS, WHO IS THE…

            no sessions; `lanyard run "…"` begins one

            Enter attach · s stop · g guide · / filter · q leave · c cancel · ? help
        "#]],
    );
    check(
        &mut Model::new(Paint::default()),
        80,
        6,
        &expect![[r"
            lanyard top  0 sessions, 0 running                                    connecting
              STATE          FOR   AGENT      SESSION          LAST TOOL  WAITS, WHO IS THE…

            reading the directory …

            Enter attach · s stop · g guide · / filter · q leave · c cancel · ? help
        "]],
    );
}

#[test]
fn what_cannot_be_undone_is_asked_about() {
    let mut model = full();
    press(&mut model, "S");
    check(
        &mut model,
        80,
        12,
        &expect![[r"
            lanyard top  7 sessions, 3 running, 2 need you
              STATE          FOR   AGENT      SESSION          LAST TOOL  WAITS, WHO IS THE…
            *>executing      10s   scripted   hub: tidy the d… search     stop 1, 1 note, 2…
            * executing      10s   scripted   ├─ scout                    stop 1, 1 note, 2…
            ! executing     ┌ Sure? ──────────────────────────────────────┐pprovals 1
              idle          │ stop, with all below it, hub: tidy the docs │
            ! interrupted (…│ sess_00000000000000000000000001             │ncertain
              idle          └ y yes, any other key no ────────────────────┘
            - completed      2m    scripted   done long ago


            Enter attach · s stop · g guide · / filter · q leave · c cancel · ? help
        "]],
    );
    press(&mut model, "esc ?");
    check(
        &mut model,
        80,
        18,
        &expect![[r"
            lanyard t┌ Keys ──────────────────────────────────────────────────────┐
              STATE  │ f        answer an approval of a flow                      │O IS THE…
            *>executi│ Enter    attach to the session                             │ note, 2…
            * executi│ s        stop it; S stops all below it too                 │ note, 2…
            ! executi│ g        give it guidance                                  │ 1
              idle   │ c        cancel its turn                                   │
            ! interru│ r        resume: bring its agent back                      │
              idle   │ a        archive it, or bring it back from the archive     │
            - complet│ x        delete it                                         │
                     │ /        filter by words; Esc shows all again              │
                     │ Up Down  choose; PgUp, PgDn, Home and End go further       │
                     │ q        leave; sessions go on                             │
                     │                                                            │
                     │ !        needs you: waits for approval, or was interrupted │
                     │ *        a turn runs                                       │
                     │ -        it is over                                        │
                     └ any key closes ────────────────────────────────────────────┘
            Enter attach · s stop · g guide · / filter · q leave · c cancel · ? help
        "]],
    );
}

/// S3-24: each control touches the chosen session alone.
#[test]
fn keys_are_about_the_chosen_session() {
    let mut model = full();
    let first = model.directory.chosen().unwrap();
    assert_eq!(first, id(1));
    let all = press(&mut model, r#"s y s n S enter x y c r a g "use staging" enter g esc enter down enter"#);
    let text = done(&all).replace(&id(1).to_string(), "S1").replace(&id(2).to_string(), "S2");
    expect![[r#"
        Row(S1, Stop): Post /sessions/S1/stop {"reason":"asked for in `lanyard top`"}
        Row(S1, StopBelow): Post /sessions/S1/stop {"reason":"asked for in `lanyard top`","scope":"subtree"}
        Row(S1, Delete): Delete /sessions/S1 {"reason":"asked for in `lanyard top`"}
        Row(S1, Cancel): Post /sessions/S1/cancel {"reason":"asked for in `lanyard top`"}
        Row(S1, Resume): Post /sessions/S1/resume {}
        Row(S1, Archive): Post /sessions/S1/archive {"reason":"asked for in `lanyard top`"}
        Row(S1, Guide): Post /sessions/S1/guidance {"text":"use staging"}
        leave: Attach(S1)
        leave: Attach(S2)
    "#]]
    .assert_eq(&text);
    model.update(Message::Reply(Asked::Row(id(1), RowVerb::Stop), Ok(json!({}))));
    assert!(picture(&mut model, 80, 8).contains("hub: tidy the docs is asked to stop"));
}

/// A chosen row stays chosen while others come, change and go; when it goes itself its neighbour is chosen.
#[test]
fn the_choice_stays_where_it_was() {
    let mut model = full();
    press(&mut model, "down down");
    assert_eq!(model.directory.chosen(), Some(id(3)));
    model.update(Message::Frame(
        json!({"type": "row", "row": row(9, None, "new", &json!({"attention": ["asks"]}))}),
    ));
    model.settle();
    assert_eq!(model.directory.chosen(), Some(id(3)));
    let gone = json!({"type": "gone", "session": id(3).to_string()});
    model.update(Message::Frame(gone));
    model.settle();
    assert!(model.directory.chosen().is_some_and(|chosen| chosen != id(3)));
}

/// After a daemon's restart all rows come again: none twice, and what is gone is gone.
#[test]
fn a_new_reading_replaces_the_old_one() {
    let mut model = full();
    model.update(Message::Link(Link::Down));
    assert!(picture(&mut model, 80, 12).contains("no daemon: `lanyard up` starts it"));
    model.update(Message::Link(Link::Up));
    read(&mut model, &family()[..3]);
    assert_eq!(model.directory.places().len(), 3);
}

#[test]
fn thousands_of_rows_are_drawn_a_screen_at_a_time() {
    let rows: Vec<Value> = (1..=5_000).map(|n| row(n, None, &format!("session {n}"), &json!({}))).collect();
    let mut model = with(&rows);
    press(&mut model, "end");
    model.settle();
    let screen = picture(&mut model, 80, 10);
    assert_eq!(screen.lines().filter(|line| line.contains("session ")).count(), 7, "{screen}");
    // Details are asked for what is seen, a few at a time, and once.
    let mut asked = 0;
    for _ in 0..10 {
        let wanted = model.update(Message::Tick("2026-11-15T08:00:12Z".parse().unwrap()));
        asked += wanted.iter().filter(|one| matches!(one, Do::Call(Asked::Detail(_), _))).count();
    }
    assert_eq!(asked, 7);
}

#[test]
fn a_loop_of_parents_ends() {
    let mut model = with(&[
        row(1, Some(2), "a", &json!({})),
        row(2, Some(1), "b", &json!({})),
        row(3, Some(3), "c", &json!({})),
    ]);
    picture(&mut model, 80, 10);
}

/// A screen with what flows ask; the gate of the first has been open for a minute and a half.
fn asking(gates: &[lanyard_core::flow::FlowGate]) -> Model {
    let mut model = full();
    model.update(Message::Tick(time(90)));
    gates_came(&mut model, gates);
    model
}

fn gates_came(model: &mut Model, gates: &[lanyard_core::flow::FlowGate]) {
    let flows: Vec<_> = gates.iter().map(entry).collect();
    model.update(Message::Reply(Asked::Gates, Ok(json!({"gates": [], "flows": flows}))));
}

/// Time passes until keys count again.
fn settled(model: &mut Model) {
    let now = model.now.plus_millis(SETTLE_MS);
    model.update(Message::Now(now));
}

/// Opens the dialogue with the first gate, and has read it.
fn opened(model: &mut Model) {
    press(model, "f");
    settled(model);
}

fn another(n: u128) -> lanyard_core::flow::FlowGate {
    let mut gate = phase_gate();
    gate.id = lanyard_core::GateId::from_u128(n);
    gate.opened_at = time(60);
    gate
}

#[test]
fn what_flows_ask_stands_above_all_sessions() {
    check(
        &mut asking(&[another(8), escalation(true)]),
        100,
        12,
        &expect![[r#"
            lanyard top  7 sessions, 3 running, 2 need you, 2 flows wait for approval
            ! escalation 1m   Release 1.0, Add the API: The author needs a person: which key?
            ! phase      30s  Release 1.0, Add the API: "Add the API" was found ready.
              STATE          FOR   AGENT      SESSION                              LAST TOOL  WAITS, WHO IS THE…
            *>executing      1m    scripted   hub: tidy the docs                   search     stop 1, 1 note, 2…
            * executing      1m    scripted   ├─ scout                                        stop 1, 1 note, 2…
            ! executing      3m    scripted   └─ checker                           ask        approvals 1
              idle           3m    scripted      └─ checker's helper
            ! interrupted (… 3m    scripted   nightly build                                   uncertain
              idle           3m    opencode   a question of style, with a title t…
            - completed      3m    scripted   done long ago
            f answer the flow · Enter attach · s stop · g guide · / filter · q leave · c cancel · ? help
        "#]],
    );
    let mut many = asking(&[escalation(true), another(8), another(9), another(10), another(11)]);
    let text = picture(&mut many, 80, 12);
    assert!(text.contains("! and 2 more; f answers one after the other"), "{text}");
    assert!(text.contains("5 flows wait for approval"), "{text}");
}

/// S2-08: a letter, a name, words after a colon. S2-07: without them they are asked for.
#[test]
fn a_gate_is_answered_in_place() {
    let answers = [
        (r#""c" enter enter"#, r#"{"choice":"continue_session"}"#),
        (
            r#""continue-session" enter "use staging" enter"#,
            r#"{"choice":"continue_session","guidance":"use staging"}"#,
        ),
        (r#""c: fix the import" enter"#, r#"{"choice":"continue_session","guidance":"fix the import"}"#),
        (r#""f:again" enter"#, r#"{"choice":"continue","guidance":"again"}"#),
        (r#""o" enter"#, r#"{"choice":"approve"}"#),
        (r#""q" enter"#, r#"{"choice":"abort"}"#),
    ];
    for (keys, body) in answers {
        let mut model = asking(&[escalation(true)]);
        opened(&mut model);
        let all = press(&mut model, keys);
        let [Do::Call(Asked::Answer(gate), call)] = all.as_slice() else { panic!("{keys}: {all:?}") };
        assert_eq!(*gate, escalation(true).id);
        assert_eq!(call.body, serde_json::from_str::<Value>(body).unwrap(), "{keys}");
        assert!(call.route.as_str().ends_with("/gates/gate_00000000000000000000000007"), "{keys}");
    }
    let mut model = asking(&[escalation(true)]);
    opened(&mut model);
    press(&mut model, r#""o" enter"#);
    model.update(Message::Reply(Asked::Answer(escalation(true).id), Ok(json!({}))));
    let text = picture(&mut model, 80, 12);
    assert!(text.contains("Release 1.0, Add the API: answered") && !text.contains("flow asks"), "{text}");
}

#[test]
fn the_dialogue_shows_what_it_is_about() {
    let mut model = asking(&[escalation(true), another(8)]);
    opened(&mut model);
    press(&mut model, r#""c" enter "use st""#);
    check(
        &mut model,
        90,
        20,
        &expect![[r#"
            lanyard top  7 sessions, 3 running, 2 need you, 2 flows wait for approval
            ! escalation 1m   Release 1.0, Add the API: The author needs a person: which key?
            ! phase      30s  Release 1.0, Add the API: "Add the API" was found ready.
              STATE          FOR   AGENT      SESSION                    LAST TOOL  WAITS, WHO IS THE…
            *>executing ┌ Release 1.0, Add the API (escalation) ────────────────────────┐1, 1 note, 2…
            * executing │ The author needs a person: which key?                         │1, 1 note, 2…
            ! executing │   P0 human_required  Which key?: staging or production        │vals 1
              idle      │   P1 auto_fix        Name the route                           │
            ! interrupte│   | error: no key                                             │tain
              idle      │   | at api.rs:12                                              │
            - completed │                                                               │
                        │ c  continue the same session, which keeps everything it knows │
                        │ f  fix it in a new session                                    │
                        │ o  override: let it pass as it is                             │
                        │ q  abort the flow; `lanyard flow resume` takes it up again    │
                        └ Tab next, Esc leaves it open ─────────────────────────────────┘



            message to the agent (Enter: none) > use st▏
        "#]],
    );
}

/// S2-06, S2-08: what is no answer is told for a while and answers nothing; what is not offered is not named.
#[test]
fn what_is_no_answer_is_a_toast_and_answers_nothing() {
    for typed in ["c", "continue-session", "c: fix the import", "what", "o: words"] {
        let mut model = asking(&[escalation(false)]);
        opened(&mut model);
        let all = press(&mut model, &format!(r#""{typed}" enter"#));
        assert!(all.is_empty(), "{typed}: {all:?}");
        let text = picture(&mut model, 100, 20);
        let toast = text.lines().rev().nth(1).unwrap_or_default();
        assert!(toast.contains("type f (fix), o (override) or q (abort)"), "{typed}: {text}");
        assert!(!toast.contains("continue-session"), "{typed}: {text}");
        // What was typed is still there, and the gate is still open.
        assert!(text.contains(&format!("f/o/q > {typed}")), "{typed}: {text}");
    }
    let mut model = asking(&[escalation(true)]);
    opened(&mut model);
    assert!(press(&mut model, r#""what" enter"#).is_empty());
    let text = picture(&mut model, 100, 20);
    assert!(text.contains("type c (continue-session), f (fix), o (override) or q (abort)"), "{text}");
}

#[test]
fn a_gate_that_is_answered_elsewhere_is_no_longer_open() {
    let mut model = asking(&[escalation(true), another(8)]);
    press(&mut model, "f");
    gates_came(&mut model, &[another(8)]);
    assert!(picture(&mut model, 80, 12).contains("Settled: no longer open."));
    press(&mut model, "esc f tab esc");
    gates_came(&mut model, &[]);
    press(&mut model, "f");
    assert!(picture(&mut model, 80, 12).contains("no flow waits for approval"));
}

#[test]
fn a_refused_answer_says_why() {
    let mut model = asking(&[escalation(true)]);
    let refused = crate::tui::message::Refused {
        code: "gate_answered".to_owned(),
        title: "the gate was answered with abort before".to_owned(),
        advice: String::new(),
        unheard: false,
    };
    model.update(Message::Reply(Asked::Answer(escalation(true).id), Err(refused)));
    assert!(picture(&mut model, 80, 12).contains("answered with abort before [gate_answered]"));
}

/// FND-D1: two answers in a row, as fast as fingers are. The second gate was not read, so it is not answered.
#[test]
fn fnd_d1_a_second_answer_does_not_hit_the_next_gate() {
    let mut model = asking(&[escalation(true), another(8)]);
    opened(&mut model);
    let all = press(&mut model, r#""o" enter "o" enter enter"#);
    assert_eq!(answers(&all), [escalation(true).id]);
    // The next one is opened by hand, and its first 700 ms take nothing but leaving and going on.
    model.update(Message::Reply(Asked::Answer(escalation(true).id), Ok(json!({}))));
    gates_came(&mut model, &[another(8)]);
    let all = press(&mut model, r#"tab "o" enter"#);
    assert!(answers(&all).is_empty(), "{all:?}");
    settled(&mut model);
    assert!(answers(&press(&mut model, "enter")).is_empty(), "what was typed too early is not there");
    assert_eq!(answers(&press(&mut model, r#""o" enter"#)), [another(8).id]);
}

/// FND-D1: answered elsewhere while somebody types: no key goes to another gate, nor to the session below.
#[test]
fn fnd_d1_a_gate_settled_elsewhere_stays_in_place_and_takes_nothing() {
    let mut model = asking(&[escalation(true), another(8)]);
    opened(&mut model);
    press(&mut model, r#""o""#);
    gates_came(&mut model, &[another(8)]);
    // `c` cancels a turn, `a` archives and `x` deletes, were the list under the cursor.
    for keys in ["enter", r#""c""#, r#""a""#, r#""x" enter"#] {
        let all = press(&mut model, keys);
        assert!(all.is_empty(), "{keys}: {all:?}");
    }
    let text = picture(&mut model, 80, 16);
    assert!(text.contains("Settled: no longer open.") && text.contains("- settled"), "{text}");
    // Enter closes it once it could be read; then the rows close up.
    settled(&mut model);
    press(&mut model, "enter");
    let text = picture(&mut model, 80, 16);
    assert!(!text.contains("ettled") && text.contains("! phase"), "{text}");
}

/// FND-D1: a gate that changes under the cursor has to be read again.
#[test]
fn fnd_d1_a_gate_that_changed_is_read_again_before_it_is_answered() {
    let mut model = asking(&[escalation(true)]);
    opened(&mut model);
    press(&mut model, r#""o""#);
    let mut changed = escalation(true);
    changed.reason = "Now it asks for production".to_owned();
    gates_came(&mut model, &[changed]);
    assert!(press(&mut model, "enter").is_empty());
    settled(&mut model);
    assert_eq!(answers(&press(&mut model, "enter")), [escalation(true).id]);
}

/// FND-D1: new gates come last, and settled ones keep their rows until the person goes on.
#[test]
fn fnd_d1_new_gates_append() {
    let early = |n: u128| {
        let mut gate = another(n);
        gate.opened_at = time(0);
        gate
    };
    let mut model = asking(&[another(8), another(9)]);
    gates_came(&mut model, &[early(7), another(9)]);
    let order = |model: &Model| -> Vec<_> { model.gates.shown().map(|held| held.entry.gate.id).collect() };
    assert_eq!(order(&model), [another(8).id, another(9).id, another(7).id]);
    press(&mut model, "j");
    assert_eq!(order(&model), [another(9).id, another(7).id]);
}

/// FND-D1: the chosen session goes away; the next one slides under the cursor and takes no order before it was read.
#[test]
fn fnd_d1_a_session_that_slid_under_the_cursor_takes_no_order() {
    let mut model = full();
    model.directory.choose(id(5));
    model.settle();
    model.update(Message::Frame(json!({"type": "gone", "session": id(5).to_string()})));
    model.settle();
    assert!(press(&mut model, "c").is_empty() && press(&mut model, "a").is_empty());
    settled(&mut model);
    assert_eq!(press(&mut model, "c").len(), 1);
}

fn answers(all: &[Do]) -> Vec<lanyard_core::GateId> {
    let gate = |one: &Do| match one {
        Do::Keep(..) => None,
        Do::Call(Asked::Answer(gate), _) => Some(*gate),
        Do::Call(..) | Do::Leave(_) => None,
    };
    all.iter().filter_map(gate).collect()
}
