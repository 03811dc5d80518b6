//! What was missed while the stream was broken: asked for, and handed to the ledger as events.

use serde_json::{Value, json};

use super::BridgeError;
use super::http::OpenCodeHttp;
use super::ledger::{BridgeLedger, Out, Source};
use super::ops::path;

/// Asks for everything that may have happened. The ledger knows what of it is new.
pub(super) async fn refetch(
    http: &OpenCodeHttp,
    ledger: &mut BridgeLedger,
    out: &mut Out,
) -> Result<(), BridgeError> {
    let mut feed = |ledger: &mut BridgeLedger, kind: &str, properties: Value| {
        ledger.event(&json!({"type": kind, "properties": properties}), Source::Refetch, out);
    };
    // Children are found while going along, so the list grows.
    let mut seen = 0;
    let mut sessions = family(ledger, &[]);
    while let Some(session) = sessions.get(seen).cloned() {
        seen += 1;
        for child in list(&http.get(&path(&["session", &session, "children"])).await?) {
            feed(ledger, "session.created", json!({"info": child}));
        }
        let more = family(ledger, &sessions);
        sessions.extend(more);
    }
    for session in &sessions {
        for message in list(&http.get(&path(&["session", session, "message"])).await?) {
            feed(ledger, "message.updated", json!({"sessionID": session, "info": message["info"]}));
            for part in list(&message["parts"]) {
                feed(ledger, "message.part.updated", json!({"sessionID": session, "part": part}));
            }
        }
        if ledger.silent_compaction(session) {
            feed(ledger, "session.compacted", json!({"sessionID": session}));
        }
        let todos = http.get(&path(&["session", session, "todo"])).await?;
        if todos.as_array().is_some_and(|todos| !todos.is_empty()) {
            feed(ledger, "todo.updated", json!({"sessionID": session, "todos": todos}));
        }
    }
    questions(http, ledger, out).await?;
    statuses(http, ledger, &sessions, out).await
}

async fn questions(http: &OpenCodeHttp, ledger: &mut BridgeLedger, out: &mut Out) -> Result<(), BridgeError> {
    let mut open = Vec::new();
    for (place, kind) in [("/permission", "permission.asked"), ("/question", "question.asked")] {
        for ask in list(&http.get(place).await?) {
            open.extend(ask["id"].as_str().map(str::to_owned));
            ledger.event(&json!({"type": kind, "properties": ask}), Source::Refetch, out);
        }
    }
    for request in ledger.open_asks() {
        if !open.contains(&request) {
            ledger.vanished(&request, out);
        }
    }
    Ok(())
}

async fn statuses(
    http: &OpenCodeHttp,
    ledger: &mut BridgeLedger,
    sessions: &[String],
    out: &mut Out,
) -> Result<(), BridgeError> {
    let statuses = http.get("/session/status").await?;
    for session in sessions {
        let status = statuses.get(session).cloned().unwrap_or_else(|| json!({"type": "idle"}));
        let properties = json!({"sessionID": session, "status": status});
        if ledger.answered_unseen(session) {
            // All of the work fell into the gap.
            let busy = json!({"sessionID": session, "status": {"type": "busy"}});
            ledger.event(&json!({"type": "session.status", "properties": busy}), Source::Refetch, out);
        }
        ledger.event(&json!({"type": "session.status", "properties": properties}), Source::Refetch, out);
    }
    Ok(())
}

/// What an earlier life of the conversation left: its length, and where it ended.
pub(super) struct Past {
    pub(super) messages: u64,
    pub(super) last: Option<String>,
}

pub(super) async fn past(http: &OpenCodeHttp, session: &str) -> Result<Past, BridgeError> {
    let messages = http.get(&path(&["session", session, "message"])).await?;
    let messages = list(&messages);
    let last = messages.iter().filter_map(|message| message["info"]["id"].as_str()).max().map(str::to_owned);
    Ok(Past { messages: u64::try_from(messages.len()).unwrap_or(u64::MAX), last })
}

/// Takes the children of an earlier life into the family.
pub(super) async fn past_children(
    http: &OpenCodeHttp,
    ledger: &mut BridgeLedger,
    root: &str,
) -> Result<(), BridgeError> {
    let mut sessions = vec![root.to_owned()];
    let mut seen = 0;
    while let Some(session) = sessions.get(seen).cloned() {
        seen += 1;
        for child in list(&http.get(&path(&["session", &session, "children"])).await?) {
            let Some(id) = child["id"].as_str().filter(|id| !sessions.iter().any(|known| known == id)) else {
                continue;
            };
            let past = past(http, id).await?;
            ledger.earlier_child(child, past.last.as_deref());
            sessions.push(id.to_owned());
        }
    }
    Ok(())
}

fn family(ledger: &BridgeLedger, known: &[String]) -> Vec<String> {
    ledger.family().into_iter().filter(|session| !known.contains(session)).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
