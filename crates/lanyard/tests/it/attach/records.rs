//! The stream of records: tasks, plans, flows, notifications and mail are followed by position, over any restart.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::kit::{BOTH, Client, Wire};
use crate::support::{Caller, Daemon, Setup};

fn open(daemon: &Daemon, query: &str, wire: Wire) -> Client {
    let path = format!("/api/v1/records/stream?{query}");
    Client::open(&daemon.caller(), &path, wire, &[]).unwrap_or_else(|refused| panic!("{}", refused.text()))
}

/// Changes until everything there is has been sent.
fn caught_up(client: &mut Client) -> Vec<Value> {
    client.connected();
    let mut changes = Vec::new();
    loop {
        let frame = client.next().expect("the stream goes on");
        if frame["type"] == "ready" {
            return changes;
        }
        changes.push(frame);
    }
}

fn position(frame: &Value) -> u64 {
    frame["position"].as_u64().unwrap_or_else(|| panic!("a change has its position: {frame}"))
}

/// A plan that nobody works at, and its tasks.
fn new_plan(daemon: &Daemon, tasks: usize) -> (String, Vec<String>) {
    let tasks: Vec<Value> = (0..tasks)
        .map(|task| json!({ "title": format!("task {task}"), "key": format!("k{task}"), "prompt": "x", "agent": "demo" }))
        .collect();
    let body = json!({ "title": "a plan", "tasks": tasks }).to_string();
    let made = daemon.request("POST", "/api/v1/plans", &[], Some(&body));
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    let ids = made["all"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned());
    (made["id"].as_str().unwrap().to_owned(), ids.collect())
}

fn try_edit(caller: &Caller, task: &str, prompt: &str) -> bool {
    let body = json!({ "prompt": prompt }).to_string();
    let path = format!("/api/v1/tasks/{task}");
    caller.try_request("PATCH", &path, &[], Some(&body)).is_ok_and(|answer| answer.status == 200)
}

/// Killed between two frames, at any moment, with writers at work: no change is lost and none comes twice.
#[test]
fn a_reader_goes_on_by_position_over_a_killed_daemon() {
    for wire in BOTH {
        let mut daemon = Daemon::start(Setup::default());
        let (_, tasks) = new_plan(&daemon, 3);
        let mut client = open(&daemon, "after=0", wire);
        let mut seen = caught_up(&mut client);
        for round in 0..3 {
            let caller = daemon.caller();
            let written = std::thread::scope(|scope| {
                let writer = scope.spawn(|| {
                    let edits = 0..40_usize;
                    let done =
                        |edit: &usize| try_edit(&caller, &tasks[*edit % 3], &format!("{round}-{edit}"));
                    edits.take_while(done).count()
                });
                for _ in 0..5 {
                    seen.push(client.next().expect("the stream goes on"));
                }
                daemon.kill_9();
                writer.join().unwrap()
            });
            // Of the fifth edit the answer may be lost with the daemon.
            assert!(written >= 4, "{written}");
            // What had arrived before the kill counts as seen.
            while let Some(frame) = client.next() {
                seen.push(frame);
            }
            daemon.restart_with(Setup::default());
            let last = seen.iter().map(position).max().unwrap();
            client = open(&daemon, &format!("after={last}"), wire);
            seen.extend(caught_up(&mut client));
        }
        let whole = caught_up(&mut open(&daemon, "after=0", wire));
        assert!(seen.is_sorted_by(|one, two| position(one) < position(two)), "{wire:?}");
        assert_eq!(seen, whole, "{wire:?}: followed over kills and read at once");
        let mut logs: BTreeMap<&str, u64> = BTreeMap::new();
        for frame in seen.iter().filter(|frame| frame["kind"] == "task") {
            let last = logs.entry(frame["record"].as_str().unwrap()).or_default();
            *last += 1;
            assert_eq!(frame["seq"], *last, "{frame}");
            assert!(
                frame["at"].is_string() && frame["actor"].is_object() && frame["type"].is_string(),
                "{frame}"
            );
        }
        for task in &tasks {
            let log = daemon.request("GET", &format!("/api/v1/tasks/{task}/log"), &[], None).json();
            assert_eq!(log["head"], logs[task.as_str()]);
        }
    }
}

/// A header says where a reader was, as browsers send it.
#[test]
fn the_last_event_id_says_more_than_the_address() {
    let daemon = Daemon::start(Setup::default());
    let (_, tasks) = new_plan(&daemon, 2);
    let all = caught_up(&mut open(&daemon, "after=0", Wire::Sse));
    let at = position(&all[1]).to_string();
    let path = "/api/v1/records/stream?after=0";
    let headers = [("last-event-id", at.as_str())];
    let mut client = Client::open(&daemon.caller(), path, Wire::Sse, &headers).ok().unwrap();
    assert_eq!(caught_up(&mut client), all[2..]);
    // Without a position, only what comes.
    let mut now = open(&daemon, "", Wire::Sse);
    assert_eq!(caught_up(&mut now), [] as [Value; 0]);
    assert!(try_edit(&daemon.caller(), &tasks[0], "later"));
    let frame = now.next().unwrap();
    assert_eq!((&frame["record"], &frame["kind"]), (&json!(tasks[0]), &json!("task")));
}

#[test]
fn a_reader_gets_the_kinds_the_plan_and_the_records_it_asks_for() {
    let daemon = Daemon::start(Setup::default());
    let (one, tasks) = new_plan(&daemon, 2);
    let (other, _) = new_plan(&daemon, 1);
    let mut plans = open(&daemon, "after=0&kind=plan", Wire::Ws);
    let shown = caught_up(&mut plans);
    let names: Vec<&Value> = shown.iter().map(|frame| &frame["record"]).collect();
    assert_eq!(names, [&one, &other]);
    assert!(
        shown.iter().all(|frame| frame["type"] == "state" && frame["state"]["title"] == "a plan"),
        "{shown:?}"
    );
    let mut of_plan = open(&daemon, &format!("after=0&plan={one}"), Wire::Sse);
    assert_eq!(caught_up(&mut of_plan).len(), 3, "the plan and its tasks");
    let mut of_task = open(&daemon, &format!("after=0&record={}", tasks[1]), Wire::Sse);
    assert_eq!(caught_up(&mut of_task).len(), 1);

    // A change reaches those who asked for it, and a plan that is read again is the plan as it is.
    let paused = daemon.request("POST", &format!("/api/v1/plans/{one}/archive"), &[], Some("{}"));
    assert_eq!(paused.code(), "plan_at_work");
    for task in &tasks {
        let path = format!("/api/v1/tasks/{task}/complete");
        let done = daemon.request("POST", &path, &[], Some(r#"{"summary":"done"}"#));
        assert_eq!(done.status, 200, "{}", done.text());
    }
    daemon.request("POST", &format!("/api/v1/plans/{one}/archive"), &[], Some("{}"));
    let frame = plans.next().unwrap();
    assert_eq!((&frame["record"], &frame["state"]["archived"]), (&json!(one), &json!(true)), "{frame}");
    while of_task.next().unwrap()["record"] != json!(tasks[1]) {}
    assert!(std::iter::from_fn(|| of_plan.next()).any(|frame| frame["kind"] == "plan"));
}

#[test]
fn what_cannot_be_followed_is_refused_with_advice() {
    let daemon = Daemon::start(Setup::default());
    let (plan, _) = new_plan(&daemon, 1);
    let last = position(caught_up(&mut open(&daemon, "after=0", Wire::Sse)).last().unwrap());
    let cases = [
        ("kind=session".to_owned(), 400, "record_kind_unknown", "task, plan, flow, notification or mail"),
        ("record=nobody".to_owned(), 400, "record_id_bad", "ids as the listings show them"),
        (format!("plan={plan}&kind=mail"), 400, "query_conflict", "leave `kind` out"),
        ("plan=nothing".to_owned(), 404, "plan_not_found", "plan"),
        (format!("after={}", last + 1), 409, "seq_in_future", "go on from its end"),
        ("wait_ms=5".to_owned(), 400, "query_invalid", "openapi"),
        ("token=x".to_owned(), 400, "token_in_query", "Authorization"),
    ];
    for (query, status, code, advice) in cases {
        let path = format!("/api/v1/records/stream?{query}");
        let answer = daemon.request("GET", &path, &[], None);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{}", answer.text());
        assert!(answer.text().contains(advice), "{}", answer.text());
    }
}

/// One that takes nothing holds no writer up, and reads on from where it was.
#[test]
fn a_reader_that_stands_still_slows_nobody_and_gets_everything() {
    for wire in BOTH {
        let daemon = Daemon::start(Setup::default());
        let (_, tasks) = new_plan(&daemon, 1);
        let mut stalled = open(&daemon, "after=0&kind=task", wire);
        let before = caught_up(&mut stalled).len();
        let mut lively = open(&daemon, "after=0&kind=task", Wire::Sse);
        caught_up(&mut lively);
        let (text, caller, total) = ("x".repeat(50_000), daemon.caller(), 120);
        for edit in 0..total {
            assert!(try_edit(&caller, &tasks[0], &format!("{edit} {text}")));
        }
        let numbers = |client: &mut Client| -> Vec<u64> {
            (0..total).map(|_| client.next().unwrap()["seq"].as_u64().unwrap()).collect()
        };
        let expected: Vec<u64> = (before as u64 + 1..).take(total).collect();
        assert_eq!(numbers(&mut lively), expected);
        // Six megabytes later, far more than any buffer between them.
        assert_eq!(numbers(&mut stalled), expected, "{wire:?}");
    }
}

#[test]
fn a_stream_of_records_says_goodbye_when_the_daemon_ends() {
    for wire in BOTH {
        let daemon = Daemon::start(Setup::default());
        let mut client = open(&daemon, "", wire);
        caught_up(&mut client);
        daemon.terminate();
        let last = client.until("goodbye");
        assert_eq!(last["why"], "closing", "{wire:?}");
        assert_eq!(client.next(), None);
    }
}
