//! Lines in, actions out. The fixtures were written by the bridge in front of a real `OpenCode` 1.18.33 and a scripted
//! model.

use std::fmt::Write as _;

use expect_test::expect_file;
use lanyard_api::agents::settings::ClientFiles;
use lanyard_core::Timestamp;
use lanyard_core::session::{GateOption, OfferMenu, OptionKind};

use super::*;
use crate::agents::driver::{McpServer, TextKind};

fn setting(begin: Begin) -> Setting {
    Setting {
        tuned: Tuned::default(),
        begin,
        workspace: "/home/dev/place".into(),
        instructions: None,
        mode: None,
        model: None,
        mcp: Vec::new(),
        client_files: ClientFiles::default(),
        conversation: String::new(),
        git_folders: Vec::new(),
    }
}

fn turn() -> TurnId {
    TurnId::mint(Timestamp::from_millis(1_794_729_600_000), 7)
}

/// All actions of a trace, one per line.
fn actions_of(driver: &mut OpenCode, lines: &[&str]) -> Vec<Action> {
    let mut out = Actions::new();
    for line in lines {
        driver.line(line.as_bytes(), &mut out);
    }
    out
}

/// Text that follows text is one piece of it, as the daemon joins it.
fn joined(actions: Vec<Action>) -> Vec<Action> {
    let mut out: Vec<Action> = Vec::new();
    for action in actions {
        if let (
            Some(Action::Text { native: n1, kind: k1, text: t1, message: m1 }),
            Action::Text { native: n2, kind: k2, text: t2, message: m2 },
        ) = (out.last_mut(), &action)
            && *n1 == *n2
            && *k1 == *k2
            && *m1 == *m2
        {
            t1.push_str(t2);
        } else {
            out.push(action);
        }
    }
    out
}

fn print(actions: &[Action]) -> String {
    let mut text = String::new();
    for action in actions {
        writeln!(text, "{action:?}").unwrap();
    }
    text
}

const TRACES: [&str; 12] = [
    "text",
    "tool",
    "reject",
    "edit",
    "plan",
    "abort",
    "abort_child",
    "error",
    "retry",
    "child",
    "compaction",
    "question",
];

fn trace(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/agents/opencode/fixtures");
    std::fs::read_to_string(format!("{folder}/{name}.jsonl")).unwrap()
}

fn lines(trace: &str) -> Vec<&str> {
    trace.lines().collect()
}

#[test]
fn real_traces_become_these_actions() {
    for name in TRACES {
        let trace = trace(name);
        let mut driver = OpenCode::new(setting(Begin::New));
        let actions = joined(actions_of(&mut driver, &lines(&trace)));
        expect_file![format!("./fixtures/{name}.actions")].assert_eq(&print(&actions));
    }
}

#[test]
fn a_driver_that_takes_over_at_any_line_sees_the_same() {
    for name in TRACES {
        let trace = trace(name);
        let lines = lines(&trace);
        let whole = actions_of(&mut OpenCode::new(setting(Begin::New)), &lines);
        let greeting = lines.iter().enumerate().find_map(|(at, line)| {
            let actions = actions_of(&mut OpenCode::new(setting(Begin::New)), &[line]);
            let ready = actions.into_iter().find_map(|action| {
                if let Action::Ready(readiness) = action { Some(readiness) } else { None }
            });
            ready.map(|readiness| (at, *readiness))
        });
        let Some((at, readiness)) = greeting else { panic!("{name} has no greeting") };
        for cut in at + 1..=lines.len() {
            let mut first = OpenCode::new(setting(Begin::New));
            let mut seen = actions_of(&mut first, &lines[..cut]);
            let begin = Begin::Adopted { readiness: readiness.clone(), turn: None, open: Vec::new() };
            let mut second = OpenCode::new(setting(begin));
            second.begin(&mut seen);
            seen.extend(actions_of(&mut second, &lines[cut..]));
            assert_eq!(seen, whole, "{name} cut at line {cut}");
        }
    }
}

#[test]
fn no_line_makes_it_panic() {
    let mut random = fastrand::Rng::with_seed(7);
    let trace: String = TRACES.iter().map(|name| trace(name)).collect();
    let lines = lines(&trace);
    let mut driver = OpenCode::new(setting(Begin::New));
    let mut out = Actions::new();
    for round in 0..3_000 {
        let line = lines[random.usize(..lines.len())];
        let Ok(mut value) = serde_json::from_str::<Value>(line) else { continue };
        for _ in 0..=random.usize(..3) {
            spoil(&mut value, &mut random);
        }
        driver.line(value.to_string().as_bytes(), &mut out);
        let bytes: Vec<u8> = line.bytes().take(random.usize(..=line.len())).collect();
        driver.line(&bytes, &mut out);
        if round % 100 == 0 {
            out.clear();
        }
    }
    for line in [
        "",
        "null",
        "[]",
        "7",
        "\"x\"",
        "{}",
        "{\"event\":{}}",
        "{\"re\":\"\"}",
        "{\"event\":{\"type\":\"session.idle\"}}",
    ] {
        driver.line(line.as_bytes(), &mut out);
    }
}

/// Replaces something somewhere inside by something else.
fn spoil(value: &mut Value, random: &mut fastrand::Rng) {
    match value {
        Value::Object(fields) if !fields.is_empty() && random.u8(..) > 40 => {
            let at = random.usize(..fields.len());
            if let Some(inner) = fields.values_mut().nth(at) {
                spoil(inner, random);
            }
        }
        Value::Array(items) if !items.is_empty() && random.u8(..) > 40 => {
            let at = random.usize(..items.len());
            spoil(&mut items[at], random);
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            let others =
                [json!(null), json!(-1), json!("x"), json!([]), json!({}), json!(u64::MAX), json!([[1]])];
            *value = others[random.usize(..others.len())].clone();
        }
    }
}

fn sent(actions: &[Action]) -> Vec<(String, Value)> {
    actions
        .iter()
        .filter_map(|action| {
            let Action::Send { key, line } = action else { return None };
            Some((key.clone(), serde_json::from_str(line).unwrap()))
        })
        .collect()
}

#[test]
fn opening_says_everything_the_conversation_needs() {
    let mut setting = setting(Begin::Resume { native: "ses_1".to_owned() });
    setting.instructions = Some("Be brief.".to_owned());
    setting.model = Some("fake/fake".to_owned());
    setting.mcp = vec![
        McpServer::Http {
            name: "web".to_owned(),
            url: "http://127.0.0.1:1/mcp".to_owned(),
            headers: vec![("authorization".to_owned(), "Bearer x".to_owned())],
        },
        McpServer::Stdio {
            name: "own".to_owned(),
            command: "serve".to_owned(),
            args: vec!["-v".to_owned()],
            env: vec![("A".to_owned(), "b".to_owned())],
        },
    ];
    let mut out = Actions::new();
    OpenCode::new(setting).begin(&mut out);
    let order = json!({
        "id": "open", "op": "open", "native": "ses_1", "directory": "/home/dev/place",
        "model": "fake/fake", "system": "Be brief.",
        "mcp": [
            {"name": "web", "config": {"type": "remote", "url": "http://127.0.0.1:1/mcp",
                "headers": {"authorization": "Bearer x"}, "oauth": false}},
            {"name": "own", "config": {"type": "local", "command": ["serve", "-v"], "environment": {"A": "b"}}},
        ],
    });
    assert_eq!(sent(&out), [("open".to_owned(), order)]);
}

#[test]
fn an_adopted_driver_says_nothing() {
    let readiness = Readiness {
        native: "ses_1".to_owned(),
        info: AgentInfo::default(),
        capabilities: CAPABILITIES,
        how: Opened::New,
    };
    let begin = Begin::Adopted { readiness, turn: None, open: Vec::new() };
    let mut out = Actions::new();
    OpenCode::new(setting(begin)).begin(&mut out);
    assert_eq!(out, []);
}

#[test]
fn resuming_counts_what_is_there_or_says_that_nothing_is() {
    let resume = || OpenCode::new(setting(Begin::Resume { native: "ses_1".to_owned() }));
    let actions =
        actions_of(&mut resume(), &[r#"{"re":"open","ok":{"native":"ses_1","version":"1","history":4}}"#]);
    assert_eq!(actions[0], Action::Replayed(4));
    assert!(matches!(&actions[1], Action::Ready(ready) if ready.how == Opened::Resumed), "{actions:?}");

    let no = r#"{"re":"open","error":{"code":"unknown","message":"Session not found: ses_1"}}"#;
    let what = "Session not found: ses_1".to_owned();
    assert_eq!(
        actions_of(&mut resume(), &[no]),
        [Action::Broken { code: "resume_refused", what: what.clone() }]
    );
    let mut new = OpenCode::new(setting(Begin::New));
    assert_eq!(actions_of(&mut new, &[no]), [Action::Broken { code: "open_failed", what }]);
}

#[test]
fn orders_have_keys_of_their_own() {
    let mut driver = OpenCode::new(setting(Begin::New));
    let mut out = Actions::new();
    driver.prompt(turn(), None, "hi".into(), &mut out);
    driver.prompt(turn(), Some("ses_2"), "you".into(), &mut out);
    driver.cancel(turn(), None, &mut out);
    assert!(driver.steer("note_1", None, "left".into(), &mut out));
    // FND-R8: a subagent is steered in its own conversation.
    assert!(driver.steer("note_2", Some("ses_child"), "right".into(), &mut out));
    assert!(driver.compact("c1", &mut out));
    driver.close(&mut out);
    let turn = turn();
    let expected = [
        (format!("prompt:{turn}"), json!({"op": "prompt", "turn": turn, "text": "hi"})),
        (format!("prompt:{turn}"), json!({"op": "prompt", "turn": turn, "session": "ses_2", "text": "you"})),
        (format!("cancel:{turn}"), json!({"op": "abort"})),
        ("steer:note_1".to_owned(), json!({"op": "steer", "text": "left"})),
        ("steer:note_2".to_owned(), json!({"op": "steer", "session": "ses_child", "text": "right"})),
        ("compact:c1".to_owned(), json!({"op": "compact"})),
        ("end".to_owned(), json!({"op": "end"})),
    ]
    .map(|(key, mut order)| {
        order["id"] = json!(key);
        (key, order)
    });
    assert_eq!(sent(&out), expected);
}

/// A command goes by its name; an effort is named with each prompt that has one.
#[test]
fn a_command_and_an_effort_are_named_with_the_prompt() {
    let mut driver = OpenCode::new(setting(Begin::New));
    let offers = json!({
        "model": "p/m", "models": [{"id": "p/m", "efforts": ["low", "high"]}, {"id": "p/n", "efforts": ["high", "max"]}],
        "agent": "build", "agents": [{"id": "build"}], "commands": [{"name": "review", "about": "reviews", "hint": "$ARGUMENTS"}],
    });
    let mut out = Vec::new();
    driver.learn_offer(&offers, &mut out);
    let ids = |menu: &OfferMenu| menu.items.iter().map(|item| item.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&driver.tuned.offer.efforts), ["low", "high", "max"]);
    let effort = AgentChoice { effort: Some("max".to_owned()), ..AgentChoice::default() };
    let mut told = |prompt: &str, wanted: &AgentChoice| {
        let mut out = Vec::new();
        driver.choose("k", wanted, &mut out);
        driver.prompt(turn(), None, prompt.into(), &mut out);
        let (_, order) = sent(&out).pop().unwrap();
        [&order["command"], &order["text"], &order["effort"]]
            .map(|field| field.as_str().unwrap_or("-").to_owned())
    };
    assert_eq!(told("/review HEAD~1 now", &effort), ["review", "HEAD~1 now", "max"]);
    assert_eq!(told("/unknown x", &AgentChoice::default()), ["-", "/unknown x", "-"]);
    assert_eq!(told("see /review", &AgentChoice::default()), ["-", "see /review", "-"]);
}

#[test]
fn answers_become_replies() {
    let mut driver = OpenCode::new(setting(Begin::New));
    let question = |request: &str| Question {
        kind: lanyard_core::session::GateKind::Permission,
        title: String::new(),
        call: None,
        detail: Value::Null,
        options: Vec::new(),
        request: request.to_owned(),
    };
    let chosen = |name: &str, kind, message: Option<&str>| Answer::Chosen {
        option: GateOption { id: "o".to_owned(), name: name.to_owned(), kind },
        message: message.map(str::to_owned),
    };
    let mut reply = |request: &str, answer: &Answer| {
        let mut out = Actions::new();
        driver.answer(&question(request), answer, &mut out);
        let mut order = sent(&out).remove(0).1;
        order["id"].take();
        order
    };
    assert_eq!(
        reply("per_1", &chosen("x", OptionKind::AllowAlways, Some("ignored"))),
        json!({"id": null, "op": "reply", "request": "per_1", "reply": "always"})
    );
    assert_eq!(
        reply("per_1", &chosen("x", OptionKind::RejectOnce, Some("not there"))),
        json!({"id": null, "op": "reply", "request": "per_1", "reply": "reject", "message": "not there"})
    );
    assert_eq!(
        reply("per_1", &Answer::Void),
        json!({"id": null, "op": "reply", "request": "per_1", "reply": "reject"})
    );
    assert_eq!(
        reply("que_1", &chosen("Left", OptionKind::Other, None)),
        json!({"id": null, "op": "answer", "request": "que_1", "answers": [["Left"]]})
    );
    assert_eq!(reply("que_1", &Answer::Void), json!({"id": null, "op": "answer", "request": "que_1"}));
}

#[test]
fn an_answer_from_elsewhere_withdraws_the_question() {
    let mut driver = OpenCode::new(setting(Begin::New));
    let replied = |ours: bool| {
        json!({"event": {"type": "permission.replied",
            "properties": {"sessionID": "ses_1", "requestID": "per_1", "reply": "once"}}, "note": {"ours": ours}})
        .to_string()
    };
    assert_eq!(actions_of(&mut driver, &[&replied(true)]), []);
    assert_eq!(
        actions_of(&mut driver, &[&replied(false)]),
        [Action::Unasked { request: "per_1".to_owned(), why: "answered elsewhere: once".to_owned() }]
    );
}

#[test]
fn words_of_a_summary_are_thoughts() {
    let mut driver = OpenCode::new(setting(Begin::Resume { native: "ses_1".to_owned() }));
    let line = r#"{"event":{"type":"message.part.delta","properties":{"sessionID":"ses_1","delta":"So far"}},"note":{"kind":"summary","at":0}}"#;
    let text =
        Action::Text { native: None, kind: TextKind::Thought, text: "So far".to_owned(), message: None };
    assert_eq!(actions_of(&mut driver, &[line]), [text]);
}
