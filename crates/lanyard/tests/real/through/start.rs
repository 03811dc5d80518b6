//! An agent starts and says who it is, answers, runs a tool, and is gone when its session is stopped.

use serde_json::{Value, json};

use super::cases::{Asks, Case};
use super::kit::{GREETING, Kit, said};
use super::processes;
use crate::agents::{self, Rights};
use crate::model::Role;
use crate::model::Step;

/// Its output is not in its own text.
const COMMAND: &str = "printf SHELL-%s 42";
const OUTPUT: &str = "SHELL-42";

pub(super) fn shows(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    kit.model.script("work", [(case.shell)(COMMAND, Rights::All), Step::text("Work done.")]);
    let session = kit.session();

    let greeted = kit.turn(&session, "greet");
    // An agent may say something of its own first, such as a warning about an unknown model.
    assert!(greeted.ends_with(GREETING), "{greeted}");
    assert_eq!(greeted.matches(GREETING).count(), 1, "{greeted}");
    kit.ok("text");
    let ready = kit.ready(&session);
    assert_ne!(ready["info"]["name"], "", "{ready:#}");
    assert!(!ready["native"].as_str().unwrap().is_empty(), "{ready:#}");
    let version = ready["info"]["version"].as_str();
    assert!(version.is_none_or(|told| told.contains(agents::version(case.package))), "{ready:#}");
    assert_eq!(ready["capabilities"]["steer"], case.steers, "{ready:#}");
    assert_eq!(ready["capabilities"]["permissions"], case.asks == Asks::Yes, "{ready:#}");
    kit.ok("start");
    offers(&kit, &ready["capabilities"]);

    runs_a_tool(&kit, &session);
    counts(&kit, &session);

    stops(&kit, &session);
    kit.ok("stop");
}

/// What the run of an agent says that it offers, and nothing here tries.
fn offers(kit: &Kit<'_>, capabilities: &Value) {
    kit.say("fork", if capabilities["fork"] == true { "yes" } else { "not offered" });
}

/// Whether tokens, context and cost are told after a turn.
fn counts(kit: &Kit<'_>, session: &str) {
    let usage = kit.get(&format!("/sessions/{session}"))["usage"].clone();
    for (name, field) in
        [("tokens", "input_tokens"), ("context size", "context_tokens"), ("cost", "cost_micros")]
    {
        let told = usage[field].as_u64().is_some_and(|count| count > 0);
        kit.say(name, if told { "ok" } else { "not offered" });
    }
}

fn runs_a_tool(kit: &Kit<'_>, session: &str) {
    let before = kit.log(session).len();
    let worked = kit.turn(session, "work");
    assert!(worked.ends_with("Work done."), "{worked}");
    let log = kit.log(session);
    let log = &log[before..];
    let called = log.iter().filter(|event| event["type"] == "tool.called").collect::<Vec<_>>();
    let [called] = called[..] else { panic!("one call is told of once: {}", kit.told(session)) };
    // Where an agent names no arguments, its title says what it runs.
    assert!(called["data"].to_string().contains("SHELL-%s"), "{called:#}");
    let returned = log.iter().filter(|event| event["type"] == "tool.returned").collect::<Vec<_>>();
    let [returned] = returned[..] else { panic!("it returns once: {}", kit.told(session)) };
    assert_eq!(returned["data"]["call"], called["data"]["call"]);
    assert_eq!(returned["data"]["is_error"], false, "{returned:#}");
    let told = returned["data"]["content"].to_string().contains(OUTPUT);
    assert_eq!(told, kit.case.tells_output, "{returned:#}");
    let asked = kit.answered("work", 1).asked;
    assert!(asked.says(Role::Tool, OUTPUT), "{:?}", asked.tool_results());
    assert!(!said(log).contains(GREETING), "nothing is told twice");
}

/// Stopped in the middle of its work: nothing of it is left.
fn stops(kit: &Kit<'_>, session: &str) {
    let turn = kit.begin(session, "hold");
    kit.is_held("hold");
    let run = kit.run(session);
    assert!(!processes::agents(&run).is_empty());
    kit.post(&format!("/sessions/{session}/stop"), &json!({}));
    let ended = kit.event(session, "the end of the session", |event| event["type"] == "session.ended");
    assert_eq!(ended["data"]["how"], "stopped");
    assert!(processes::agents(&run).is_empty(), "{:#?}", processes::marked(&run));
    kit.nothing_left(session, &run);
    assert_eq!(kit.ended(session, &turn)["data"]["cause"], "user", "{}", kit.told(session));
}
