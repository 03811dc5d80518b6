//! One turn with a bit of everything, and what the log says of it when nobody dies.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::kit::{Stage, wait};

/// `PPID` of a command is the agent.
pub(super) const SCRIPT: &str = "look around and report\n\
    /think first I look around\n\
    /say one two three\n\
    /run echo $PPID >> pids\n\
    /tool search {\"for\":\"bolts\"}\n\
    /ask May I go on?\n\
    /chatter 60 30\n\
    /plan look | tell\n\
    /spawn scout look ; /say all is clear ; /spawn helper hold ; /join ; /tool count {} ; /say that was it\n\
    /join\n\
    /run sleep 0.3; echo ran\n\
    /edit notes.txt some notes\\nin two lines\n\
    /run echo $PPID >> pids\n\
    /say now I am done\n\
    /usage 120 8";

/// How a turn ended.
pub(super) struct Told {
    pub(super) shown: Value,
    pub(super) deaths: u32,
}

/// Runs a turn to its end: whenever the daemon is found dead a new one is started, whenever the agent asks it is
/// answered.
pub(super) fn play(stage: &mut Stage, session: &str) -> Told {
    let mut deaths = 0;
    let mut last = Value::Null;
    let over = wait(|| {
        if !stage.daemon.is_alive() {
            deaths += 1;
            stage.up();
        }
        let Some(shown) = stage.look(session) else { return false };
        for gate in shown["gates"].as_array().unwrap_or(&Vec::new()) {
            if gate["status"]["name"] == "open" {
                let path = format!("/sessions/{session}/gates/{}", gate["id"].as_str().unwrap());
                if let Some(answer) = stage.try_post(&path, &json!({"option": "allow_once"})) {
                    assert!(answer.status < 300 || answer.status == 409, "{}", answer.text());
                }
            }
        }
        last = shown;
        last["active_turn"].is_null()
    });
    assert!(over, "the turn does not end: {last:#}\n{:#?}", stage.log(session));
    // It may have died of the last thing it did.
    if !stage.daemon.is_alive() {
        deaths += 1;
        stage.up();
    }
    Told { shown: stage.look(session).unwrap(), deaths }
}

/// The log without what tells of the daemon, of runs and of snapshots, pieces of text joined: the same for everybody
/// who runs the same script.
pub(super) fn gist(stage: &Stage, session: &str) -> Vec<String> {
    let mut lines: Vec<(String, String)> = Vec::new();
    // Each stage has one of its own, and changes to files name it.
    let folder = stage.work("").display().to_string();
    for event in stage.log(session) {
        let (kind, data) = (event["type"].as_str().unwrap(), &event["data"]);
        let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        let line = match kind {
            "message" | "thought" => {
                let kind = format!("{kind} {}", text("role"));
                match lines.last_mut() {
                    Some((last, words)) if *last == kind => words.push_str(&text("text")),
                    _ => lines.push((kind, text("text"))),
                }
                continue;
            }
            "turn.started" => text("prompt"),
            "turn.finished" => text("outcome"),
            "turn.interrupted" => text("cause"),
            "tool.called" => format!("{} {} {}", text("call"), text("tool"), data["arguments"]),
            "tool.returned" => {
                let content = data["content"].to_string().replace(&folder, "");
                format!("{} {} {content}", text("call"), data["is_error"])
            }
            "file.changed" => {
                format!("{} {} {}", text("path").rsplit('/').next().unwrap(), data["added"], data["removed"])
            }
            "gate.opened" => data["question"]["title"].to_string(),
            "gate.answered" => text("option"),
            "gate.withdrawn" => text("why"),
            "session.child_linked" => text("agent"),
            "plan.updated" | "usage.reported" => data.to_string(),
            _ => continue,
        };
        lines.push((kind.to_owned(), line));
    }
    lines.into_iter().map(|(kind, text)| format!("{kind}: {text}")).collect()
}

/// The gist of the session and of everybody below it.
pub(super) fn whole_gist(stage: &Stage, session: &str) -> Vec<Vec<String>> {
    let mut gists = vec![gist(stage, session)];
    for child in stage.children(session) {
        gists.extend(whole_gist(stage, &child));
    }
    gists
}

/// What [`SCRIPT`] leaves in the logs when nothing happens to anybody.
pub(super) fn expected() -> &'static Vec<Vec<String>> {
    static EXPECTED: OnceLock<Vec<Vec<String>>> = OnceLock::new();
    EXPECTED.get_or_init(|| {
        let mut stage = Stage::new();
        let session = stage.started(SCRIPT);
        let told = play(&mut stage, &session);
        assert_eq!((told.deaths, &told.shown["state"]), (0, &json!("between_turn")), "{:#}", told.shown);
        let gists = whole_gist(&stage, &session);
        assert_eq!(gists.len(), 3, "a child and its child: {gists:#?}");
        let words: usize = gists.concat().iter().map(String::len).sum();
        assert!(words > 2_000, "{gists:#?}");
        stage.end();
        gists
    })
}

/// The turn went through as if nothing had happened, in one process, which was asked once.
pub(super) fn went_through(stage: &mut Stage, session: &str, told: &Told, about: &str) {
    assert_eq!(told.shown["state"], "between_turn", "{about}: {:#}\n{:#?}", told.shown, stage.log(session));
    assert_eq!(&whole_gist(stage, session), expected(), "{about}\n{:#?}", stage.log(session));
    let pids = stage.pids("pids");
    assert!(pids.len() == 2 && pids[0] == pids[1], "{about}: one process all along: {pids:?}");
    assert_eq!(stage.agent(), pids[0], "{about}: and it is still there");
    assert_eq!(stage.events(session, "run.started").len(), 1, "{about}");
    assert_eq!(stage.events(session, "run.ended").len(), 0, "{about}");
    assert_eq!(stage.run_folders().len(), 1, "{about}");
    let adopted = stage.events(session, "run.adopted").len();
    assert!(adopted >= told.deaths.min(1) as usize, "{about}: taken over {adopted} times of {}", told.deaths);
    // The agent knows how often it was asked.
    stage.prompt(session, "/recall");
    stage.until_at_rest(session);
    let last = gist(stage, session);
    let said = last.iter().rev().find(|line| line.starts_with("message")).unwrap();
    assert!(said.contains("I know 1 earlier prompt:"), "{about}: asked once, and then again: {said}");
}
