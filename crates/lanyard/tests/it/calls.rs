//! Tool calls that come by, at the API that wrapped servers and hooks use: the ladder, guidance, families, and the
//! daemon killed in between.

mod driven;
mod family;
mod governance;
mod guidance;
mod host_run;
mod kills;
mod ladder;

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, Setup, until};

/// A daemon whose stops rise by calls alone, unless a test says otherwise.
fn daemon() -> Daemon {
    Daemon::start(patient())
}

fn patient() -> Setup {
    Setup::default().config("[stop]\ngraceful_ms = 600000\nimmediate_ms = 600000\n")
}

fn made(daemon: &Daemon, body: &Value) -> String {
    let answer = daemon.request("POST", "/api/v1/sessions", &[], Some(&body.to_string()));
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["session"].as_str().unwrap().to_owned()
}

fn external(daemon: &Daemon) -> String {
    made(daemon, &json!({ "source": "external", "agent": "someone" }))
}

fn post(daemon: &Daemon, session: &str, what: &str, body: &Value) -> Answer {
    daemon.request("POST", &format!("/api/v1/sessions/{session}/{what}"), &[], Some(&body.to_string()))
}

fn get(daemon: &Daemon, session: &str, what: &str) -> Value {
    let answer = daemon.request("GET", &format!("/api/v1/sessions/{session}{what}"), &[], None);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn call(id: &str) -> Value {
    json!({ "id": id, "server": "ev", "tool": "echo", "channel": "mcp" })
}

fn complying(how: &str) -> Value {
    json!({ "id": how, "server": "lanyard", "tool": "memory_agent", "channel": "mcp", "compliance": how })
}

/// Before the call: whether it is carried out.
fn begins(daemon: &Daemon, session: &str, call: &Value) -> Value {
    let answer = post(daemon, session, "calls", call);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// Before its answer: what goes in front of it.
fn ends(daemon: &Daemon, session: &str, call: &Value) -> Value {
    let answer = post(daemon, session, "calls/end", &json!({ "call": call }));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// A whole call: the first lines of what its agent is told, or `as it is`.
fn whole(daemon: &Daemon, session: &str, id: &str) -> String {
    let begun = begins(daemon, session, &call(id));
    if begun["go"] == false {
        return format!("not carried out: {}", first_line(&begun["text"]));
    }
    let lead = ends(daemon, session, &call(id));
    let blocks = lead["blocks"].as_array().unwrap();
    match blocks.first() {
        None => "as it is".to_owned(),
        Some(block) if lead["withhold"] == true => format!("withheld: {}", first_line(block)),
        Some(block) => first_line(block),
    }
}

fn first_line(text: &Value) -> String {
    text.as_str().unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

fn stop(daemon: &Daemon, session: &str, body: &Value) -> Value {
    let answer = post(daemon, session, "stop", body);
    assert_eq!(answer.status, 202, "{}", answer.text());
    answer.json()
}

fn guide(daemon: &Daemon, session: &str, text: &str) -> Value {
    let answer = post(daemon, session, "guidance", &json!({ "text": text }));
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

/// The kinds of events in the log, `type` alone.
fn kinds(daemon: &Daemon, session: &str) -> Vec<String> {
    let log = daemon.log_after(session, 0);
    log.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}
