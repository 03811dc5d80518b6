//! Secrets in what is kept beside the logs of sessions: memory and tasks.

use lanyard_core::redact::{Redactor, Wanted};

use super::*;

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
