//! Secrets in what is kept beside the logs of sessions: memory, tasks and mail.

use lanyard_core::redact::{Redactor, Wanted};

use super::*;
use lanyard_core::task::mail::TEXT_CHARS_MAX;

fn room() -> Room {
    let room = Room::new();
    let variables = vec![("DEPLOY_TOKEN".to_owned(), "not-for-the-log-1234".to_owned())];
    let wanted = Wanted { variables, ..Wanted::default() };
    room.app.hub.redact_with(Arc::new(Redactor::new(&wanted).unwrap()));
    room
}

fn key() -> String {
    format!("ghp_{}", "a1B2".repeat(9))
}

/// FND-K8: what an agent remembers holds no secret; what a person wrote down stays as it was written.
#[tokio::test(flavor = "multi_thread")]
async fn fnd_k8_no_memory_of_an_agent_holds_a_secret() {
    let (room, key) = (room(), key());
    let me = room.hub(None).await;
    let text = format!("the key is {key} and the token not-for-the-log-1234; see a1b2c3d4 and sk-ills");
    let entry = json!({ "action": "store", "scope": "session", "name": "found", "text": text });
    room.call(me, "memory_context", entry).await;
    let (status, by_hand) =
        room.http("POST", "/memory", json!({ "text": text, "workspace": WORKSPACE })).await;
    assert_eq!(status, 201, "{by_hand}");
    let held = room.remembered();
    let of = |name: Option<&str>| held.iter().find(|entry| entry.name.as_deref() == name).unwrap();
    let clean = "the key is [redacted:github-token] and the token [redacted:env DEPLOY_TOKEN]; see a1b2c3d4 and sk-ills";
    assert_eq!(of(Some("found")).text, clean);
    assert_eq!(of(None).text, text);
    assert_eq!(room.app.engine.stats.redaction.taken(), 2);
    room.close().await;
}

/// FND-K8: what is told of a task; what it is asked to do stays as it was written.
#[tokio::test(flavor = "multi_thread")]
async fn fnd_k8_no_report_in_the_log_of_a_task_holds_a_secret() {
    let (room, key) = (room(), key());
    let new = json!({ "title": "a task", "prompt": format!("deploy with {key}") });
    let (status, task) = room.http("POST", "/tasks", new).await;
    assert_eq!(status, 201, "{task}");
    let id = task["id"].as_str().unwrap().to_owned();
    let summary = format!("deployed with {key} in a1b2c3d4");
    let (status, done) =
        room.http("POST", &format!("/tasks/{id}/complete"), json!({ "summary": summary })).await;
    assert_eq!(status, 200, "{done}");
    let log = room.http("GET", &format!("/tasks/{id}/log"), json!({})).await.1.to_string();
    assert!(log.contains(&format!("deploy with {key}")), "the agent is asked what it was asked: {log}");
    assert!(log.contains("deployed with [redacted:github-token] in a1b2c3d4"), "{log}");
    assert!(!log.contains(&summary), "{log}");
    room.close().await;
}

/// All mail in the box of a session, settled or not.
async fn mail_of(room: &Room, session: SessionId) -> Vec<Value> {
    let open = room.http("GET", &format!("/mail?box={session}"), json!({})).await.1;
    let settled = room.http("GET", &format!("/mail?box={session}&settled=true"), json!({})).await.1;
    [open, settled].iter().flat_map(|page| page["mail"].as_array().unwrap().clone()).collect()
}

/// FND-K8: what agents write to each other holds no secret, in the file, in the listing, in the log of whoever reads it and
/// in an agent's own tools; also where the bound of a message would cut the secret in two. A report that is repeated under
/// its key is the same report, with or without the secret in it.
#[tokio::test(flavor = "multi_thread")]
async fn fnd_k8_no_mail_of_an_agent_holds_a_secret() {
    let (room, key) = (room(), key());
    let hub = room.hub(None).await;
    let spawn = json!({ "action": "start", "agent": "helper", "prompt": "go", "may_spawn": true });
    let started = room.call(hub, "memory_spawn_agent", spawn).await;
    let child: SessionId = started["session_id"].as_str().unwrap().parse().unwrap();
    room.until(|| room.find(child).is_some_and(|session| session.turn.is_some())).await;
    let task: lanyard_core::TaskId = started["task_id"].as_str().unwrap().parse().unwrap();
    let text = format!("pushed with {key} and not-for-the-log-1234; see a1b2c3d4");
    let report = json!({ "action": "report", "kind": "progress", "text": text });
    room.call(child, "tasks", report).await;
    room.call(child, "tasks", json!({ "action": "message", "to": "parent", "text": text })).await;
    // The last characters that are kept are the first of the secret.
    let half = format!("{}{key}", "x ".repeat(TEXT_CHARS_MAX / 2 - 6));
    room.call(child, "tasks", json!({ "action": "report", "kind": "error", "text": half })).await;
    let body = json!({
        "run_token": room.app.tokens.of_run(task, 1), "kind": "question", "text": text,
    });
    for _ in 0..2 {
        let (at, keyed) = (format!("/api/v1/sessions/{child}/report"), [("idempotency-key", "once")]);
        assert_eq!(room.sent("POST", &at, &keyed, &body.to_string()).await.status(), 200);
    }
    room.until(|| room.load(hub).guidance.len() == 4).await;
    let clean = "pushed with [redacted:github-token] and [redacted:env DEPLOY_TOKEN]; see a1b2c3d4";
    let held = mail_of(&room, hub).await;
    let texts: Vec<&str> = held.iter().map(|mail| mail["text"].as_str().unwrap()).collect();
    assert_eq!(texts.iter().filter(|text| **text == clean).count(), 3, "{texts:?}");
    assert_eq!(texts.len(), 4);
    let one = room.http("GET", &format!("/mail/{}", held[0]["id"].as_str().unwrap()), json!({})).await.1;
    let log = room.http("GET", &format!("/sessions/{hub}/events"), json!({})).await.1;
    let mailbox = room.call(hub, "tasks", json!({ "action": "mailbox" })).await;
    let (whole, part) = (key.as_str(), &key[..8]);
    for (place, shown) in [("mail", json!(held)), ("one", one), ("log", log), ("mailbox", mailbox)] {
        let shown = shown.to_string();
        for secret in [whole, part, "not-for-the-log-1234"] {
            assert!(!shown.contains(secret), "{secret} in {place}: {shown}");
        }
    }
    let folder = room.close().await;
    for file in std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
        let bytes = if file.is_file() { std::fs::read(&file).unwrap() } else { Vec::new() };
        for secret in [part, "not-for-the-log-1234"] {
            let found = bytes.windows(secret.len()).any(|piece| piece == secret.as_bytes());
            assert!(!found, "{secret} in {}", file.display());
        }
    }
}

/// FND-K8: a person's message reaches the agent as it was written, but for Lanyard's own tokens.
#[tokio::test(flavor = "multi_thread")]
async fn fnd_k8_the_mail_of_a_person_loses_only_lanyards_tokens() {
    let (room, key) = (room(), key());
    let new = json!({ "title": "a task", "kind": "external" });
    let (status, task) = room.http("POST", "/tasks", new).await;
    assert_eq!(status, 201, "{task}");
    let at = format!("/tasks/{}/mail", task["id"].as_str().unwrap());
    let own = room.app.tokens.of_session(room.hub(None).await, lanyard_core::RunId::from_u128(7));
    let (status, mail) = room.http("POST", &at, json!({ "text": format!("use {key}, not {own}") })).await;
    assert_eq!(status, 201, "{mail}");
    assert_eq!(mail["text"], format!("use {key}, not [redacted:lanyard-token]"));
    room.close().await;
}
