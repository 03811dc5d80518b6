//! Agents that are run once per turn: they may ask while they work, and the log says whether they know what came before.

use serde_json::{Value, json};

use super::kit::{Stage, Talk};

/// Reads its prompt, asks before it writes a file, and waits for the end of its input as Claude Code does.
const ASKS: &str = r#"
read -r prompt
printf '%s\n' '{"type":"system","subtype":"init","session_id":"conversation"}'
printf '%s\n' '{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"file_path":"note.txt"},"tool_use_id":"t1"}}'
read -r answer
case "$answer" in
*'"behavior":"allow"'*) : > note.txt; said=written ;;
*) said=refused ;;
esac
printf '%s\n' "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"$said\"}]}}"
printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"result":"ok"}'
cat > rest.txt
"#;
const TWO_WAY: &str = "per_turn = { prompt_on_stdin = true, output = \"claude_json\", \
    first = [\"--input-format\", \"stream-json\", \"--permission-prompt-tool\", \"stdio\"], \
    next = [\"--resume\", \"{native}\"] }\n";

fn question(talk: &mut Talk<'_>, prompt: &str) -> String {
    talk.turn(prompt);
    let opened = talk.until("gate.opened");
    assert_eq!(opened["data"]["title"], "Write: note.txt", "{opened:#}");
    opened["data"]["gate"].as_str().unwrap().to_owned()
}

fn answer(talk: &Talk<'_>, gate: &str, option: &str) {
    let answer = talk.post(&format!("gates/{gate}"), &json!({ "option": option }));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn continuity(talk: &Talk<'_>) -> Vec<Value> {
    talk.all("run.ready").iter().map(|event| event["data"]["continuity"].clone()).collect()
}

/// FND-R4.
#[test]
fn fnd_r4_a_command_asks_and_does_what_it_was_allowed() {
    let stage = Stage::once(ASKS, TWO_WAY);
    let mut talk = stage.talk();
    let gate = question(&mut talk, "write it");
    assert!(!stage.file("note.txt").exists(), "it waits for an answer");
    assert_eq!(talk.all("run.ready")[0]["data"]["capabilities"]["permissions"], true);
    answer(&talk, &gate, "allow");
    assert_eq!(talk.over()["data"]["outcome"], "completed");
    assert_eq!(talk.said(), "written");
    assert!(stage.file("note.txt").exists());
    let ended = talk.run_over();
    assert_eq!(
        ended["data"]["how"],
        json!({ "kind": "exited", "code": 0 }),
        "its input was closed: {ended:#}"
    );

    std::fs::remove_file(stage.file("note.txt")).unwrap();
    let gate = question(&mut talk, "write it again");
    answer(&talk, &gate, "deny");
    assert_eq!(talk.over()["data"]["outcome"], "completed");
    assert!(talk.said().ends_with("refused") && !stage.file("note.txt").exists(), "{}", talk.said());
    talk.run_over();
    assert_eq!(continuity(&talk), [Value::Null, json!("native")]);
}

/// FND-R4: rules answer before people are asked.
#[test]
fn fnd_r4_rules_answer_a_command_first() {
    let rules = format!("{TWO_WAY}permissions = {{ deny = [\"note.txt\"], default = \"allow\" }}\n");
    let stage = Stage::once(ASKS, &rules);
    let mut talk = stage.talk();
    assert_eq!(talk.answer_to("write it"), "refused");
    let answered = talk.all("gate.answered")[0];
    assert_eq!((&answered["data"]["option"], &answered["actor"]["name"]), (&json!("deny"), &json!("policy")));
}

/// FND-R4: a question waits durably, and the process still ends with its turn.
#[test]
fn fnd_r4_a_commands_question_outlives_the_daemon() {
    let mut stage = Stage::once(ASKS, TWO_WAY);
    let (session, gate) = {
        let mut talk = stage.talk();
        let gate = question(&mut talk, "write it");
        (talk.id.clone(), gate)
    };
    stage.restart();
    let mut talk = stage.follow(&session);
    answer(&talk, &gate, "allow");
    assert_eq!(talk.over()["data"]["outcome"], "completed", "{:#?}", talk.seen);
    assert!(stage.file("note.txt").exists());
    talk.run_over();
    assert_eq!((talk.all("gate.opened").len(), talk.said()), (1, "written".to_owned()));
    assert_eq!(std::fs::read_to_string(stage.file("rest.txt")).unwrap(), "", "it was told nothing twice");
}

/// FND-R4: one that cannot ask says in its turn's end what it denied.
#[test]
fn fnd_r4_what_a_command_denied_by_itself_stands_at_the_end_of_its_turn() {
    let script = r#"
printf '%s\n' '{"type":"system","subtype":"init","session_id":"conversation"}'
printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"result":"ok","permission_denials":[{"tool_name":"Write","tool_use_id":"t"}]}'
"#;
    let stage = Stage::once(
        script,
        "per_turn = { output = \"claude_json\", first = [\"{prompt}\"], next = [\"{native}\"] }\n",
    );
    let mut talk = stage.talk();
    let end = talk.ask("write it");
    assert_eq!(end["data"]["outcome"], "completed");
    let reason = end["data"]["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("Claude Code denied 1 tool call and asked nobody: Write;"), "{end:#}");
    let checked = stage.post("/agents/a/check", &json!({})).json();
    assert!(checked["warnings"][0].as_str().unwrap().contains("cannot ask for permission"), "{checked:#}");
}

/// FND-R9.
#[test]
fn fnd_r9_a_command_that_begins_anew_with_each_turn_is_labelled_or_told_the_past() {
    let echo = r#"printf '%s\n' "$1""#;
    for (settings, label) in [
        ("per_turn = { first = [\"{prompt}\"] }\n", "lost"),
        ("", "lost"),
        ("resume = [\"native\", \"preamble\"]\n", "preamble"),
        ("resume = [\"replay\"]\n", "replayed"),
    ] {
        let stage = Stage::once(echo, settings);
        let mut talk = stage.talk();
        assert_eq!(talk.answer_to("the blue door"), "the blue door\n");
        let said = talk.answer_to("and now?");
        assert_eq!(continuity(&talk), [Value::Null, json!(label)], "{settings}");
        assert_eq!(said.contains("user: the blue door"), label != "lost", "{said}");
        assert!(said.ends_with("and now?\n"), "{said}");
        let checked = stage.post("/agents/a/check", &json!({})).json();
        assert_eq!(
            checked["warnings"].to_string().contains("`per_turn.next` is missing"),
            label == "lost",
            "{checked:#}"
        );
    }
}

/// FND-R15: a check and a run say the same of an agent.
#[test]
fn fnd_r15_a_check_says_what_the_run_says() {
    let stage = Stage::once(ASKS, TWO_WAY);
    let checked = stage.post("/agents/a/check", &json!({})).json();
    assert_eq!(checked["works"], true, "{checked:#}");
    let mut talk = stage.talk();
    let gate = question(&mut talk, "write it");
    answer(&talk, &gate, "allow");
    talk.over();
    let ready = &talk.all("run.ready")[0]["data"];
    for field in ["name", "protocol"] {
        assert_eq!(checked["info"][field], ready["info"][field]);
    }
    assert_eq!(checked["capabilities"], ready["capabilities"]);
}

/// FND-R15.
#[test]
fn fnd_r15_a_reason_holds_nothing_of_terminal_escapes() {
    let script = r"printf '\033[1;31merror\033[0m: \033]8;;http://x\033\\no key\033]8;;\033\\\n' >&2; exit 3";
    let stage = Stage::once(script, "");
    let mut talk = stage.talk();
    talk.turn("go");
    let ended = talk.run_over();
    let reason = ended["data"]["reason"].as_str().unwrap();
    assert!(reason.ends_with("; its last words: error: no key"), "{reason}");
}
