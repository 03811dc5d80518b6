//! Messages and their parts: text that grows, tools that change their status, steps with their tokens.

use serde_json::{Value, json};

use super::super::clip::{TEXT_BYTES_MAX, head};
use super::super::talk::{Author, Talk};
use super::{BridgeLedger, Out, Source};

/// Where in the server's answer some words stand.
struct PartPlace<'a> {
    session: &'a str,
    message: &'a str,
    part: &'a str,
}

impl BridgeLedger {
    pub(super) fn message(&mut self, session: &str, info: &Value) {
        let Some(id) = info["id"].as_str() else { return };
        let author = match info["role"].as_str() {
            Some("user") => Author::User,
            Some(_) if info["summary"] == true => Author::Summary,
            Some(_) | None => Author::Agent,
        };
        let Some(talk) = self.talks.get_mut(session) else { return };
        if talk.wrote(id, author) && author != Author::User {
            talk.changed.clear();
            talk.answered = true;
        }
        if talk.author(id) == Some(Author::Summary) {
            talk.summary = Some((id.to_owned(), info["tokens"]["output"].as_u64().unwrap_or(0)));
        }
        // The same as `session.error`, for when that one was missed. Older messages are updated late with older errors.
        let error = &info["error"];
        let is_recent = talk.before.as_deref().is_none_or(|before| before < id);
        if is_recent
            && talk.author(id).is_some()
            && talk.is_working()
            && talk.error.is_none()
            && error.is_object()
        {
            talk.error = Some(error.clone());
        }
    }

    pub(super) fn part(&mut self, session: &str, part: &Value, source: Source, out: &mut Out) {
        let (Some(message), Some(id)) = (part["messageID"].as_str(), part["id"].as_str()) else { return };
        let place = PartPlace { session, message, part: id };
        match part["type"].as_str() {
            Some("text") => self.text(&place, "text", part, source, out),
            Some("reasoning") => self.text(&place, "reasoning", part, source, out),
            Some("tool") => self.tool(&place, part, out),
            Some("step-finish") => self.step(&place, part, out),
            Some("patch") => self.patch(&place, part, out),
            Some(_) | None => {}
        }
    }

    fn text(
        &mut self,
        place: &PartPlace<'_>,
        kind: &'static str,
        part: &Value,
        source: Source,
        out: &mut Out,
    ) {
        let PartPlace { session, message, part: id } = *place;
        let text = part["text"].as_str().unwrap_or_default();
        let Some(author) = self.author(session, message) else { return };
        let Some(talk) = self.talks.get_mut(session) else { return };
        let is_new = !talk.knows_part(id);
        let Some(record) = talk.part(message, id) else { return };
        if author == Author::User {
            record.closed = true;
            if is_new && part["synthetic"] != true && !text.is_empty() {
                self.announce(session, Some(text), out);
            }
            return;
        }
        record.kind = Some(kind);
        let at = record.said;
        let ended = part["time"]["end"].is_number();
        // The server stores a text when it begins and when it is whole: in between deltas may have been missed.
        record.held = !ended && (record.held || source == Source::Refetch);
        record.closed |= ended;
        let fresh = text.get(at..).unwrap_or_default().to_owned();
        record.said = at.max(text.len());
        self.words(place, kind_of(author, kind), at, &fresh, out);
    }

    pub(super) fn delta(&mut self, session: &str, properties: &Value, out: &mut Out) {
        let (Some(message), Some(id)) = (properties["messageID"].as_str(), properties["partID"].as_str())
        else {
            return;
        };
        let delta = properties["delta"].as_str().unwrap_or_default();
        if properties["field"] != "text" || delta.is_empty() {
            return;
        }
        let author = self.author(session, message);
        let Some(record) = self.talks.get_mut(session).and_then(|talk| talk.part(message, id)) else {
            return;
        };
        let (Some(kind), Some(author)) = (record.kind, author) else {
            // Its beginning was missed.
            record.held = true;
            return;
        };
        if record.held || record.closed {
            return;
        }
        let at = record.said;
        record.said += delta.len();
        self.words(&PartPlace { session, message, part: id }, kind_of(author, kind), at, delta, out);
    }

    fn words(&mut self, place: &PartPlace<'_>, kind: &str, mut at: usize, mut text: &str, out: &mut Out) {
        let PartPlace { session, message, part } = *place;
        while !text.is_empty() {
            let piece = head(text, TEXT_BYTES_MAX);
            let properties = json!({
                "sessionID": session, "messageID": message, "partID": part, "field": "text", "delta": piece,
            });
            let event = json!({"type": "message.part.delta", "properties": properties});
            self.say(session, event, json!({"kind": kind, "at": at}), out);
            at += piece.len();
            text = &text[piece.len()..];
        }
    }

    fn tool(&mut self, place: &PartPlace<'_>, part: &Value, out: &mut Out) {
        let PartPlace { session, message, part: id } = *place;
        let state = &part["state"];
        let status = match state["status"].as_str() {
            Some("running") => "running",
            Some("completed") => "completed",
            Some("error") => "error",
            Some(_) | None => return,
        };
        self.expect_child(state);
        let Some(talk) = self.talks.get_mut(session) else { return };
        let Some(record) = talk.part(message, id) else { return };
        let was = record.status;
        if was == Some(status) || matches!(was, Some("completed" | "error")) {
            return;
        }
        record.status = Some(status);
        let files = if status == "completed" { changed_files(part, talk) } else { Vec::new() };
        let slim = json!({
            "id": id, "messageID": message, "sessionID": session, "type": "tool",
            "tool": part["tool"], "callID": part["callID"],
            "state": {
                "status": status, "input": state["input"], "title": state["title"],
                "output": state["output"], "error": state["error"],
            },
        });
        let event =
            json!({"type": "message.part.updated", "properties": {"sessionID": session, "part": slim}});
        self.say(session, event, json!({"was": was, "files": files}), out);
    }

    /// The tool that starts a subagent names its conversation, and has the words it starts with.
    fn expect_child(&mut self, state: &Value) {
        let Some(child) = state["metadata"]["sessionId"].as_str() else { return };
        let Some(child) = self.talks.get_mut(child).and_then(|talk| talk.child.as_mut()) else { return };
        if !child.announced {
            child.prompt = state["input"]["prompt"].as_str().map(str::to_owned);
        }
    }

    fn step(&mut self, place: &PartPlace<'_>, part: &Value, out: &mut Out) {
        let PartPlace { session, message, part: id } = *place;
        let author = self.author(session, message);
        let Some(talk) = self.talks.get_mut(session) else { return };
        let Some(record) = talk.part(message, id).filter(|record| !record.closed) else { return };
        record.closed = true;
        let is_summary = author == Some(Author::Summary);
        let tokens = &part["tokens"];
        if is_summary {
            talk.summary = Some((message.to_owned(), tokens["output"].as_u64().unwrap_or(0)));
        } else {
            talk.tokens = tokens["total"].as_u64().unwrap_or(talk.tokens);
        }
        let properties = json!({"sessionID": session, "part": part});
        let event = json!({"type": "message.part.updated", "properties": properties});
        self.say(session, event, json!({"summary": is_summary}), out);
    }

    /// Files that differ after a step, which includes those a shell command wrote.
    fn patch(&mut self, place: &PartPlace<'_>, part: &Value, out: &mut Out) {
        let PartPlace { session, message, part: id } = *place;
        let Some(talk) = self.talks.get_mut(session) else { return };
        let Some(record) = talk.part(message, id).filter(|record| !record.closed) else { return };
        record.closed = true;
        let files: Vec<Value> = part["files"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter(|path| !talk.changed.contains(*path))
            .map(|path| json!({"path": path}))
            .collect();
        if files.is_empty() {
            return;
        }
        let slim = json!({"id": id, "messageID": message, "sessionID": session, "type": "patch"});
        let event =
            json!({"type": "message.part.updated", "properties": {"sessionID": session, "part": slim}});
        self.say(session, event, json!({"files": files}), out);
    }
}

fn kind_of(author: Author, kind: &'static str) -> &'static str {
    if author == Author::Summary { "summary" } else { kind }
}

/// What the file tools say of their work: `edit` has one diff, `apply_patch` a list of files, `write` only the path.
fn changed_files(part: &Value, talk: &mut Talk) -> Vec<Value> {
    let metadata = &part["state"]["metadata"];
    let mut files = Vec::new();
    let mut push = |path: &Value, counts: &Value| {
        if let Some(path) = path.as_str() {
            talk.changed.insert(path.to_owned());
            files.push(json!({"path": path, "added": counts["additions"], "removed": counts["deletions"]}));
        }
    };
    if metadata["filediff"].is_object() {
        push(&metadata["filediff"]["file"], &metadata["filediff"]);
    } else if let Some(list) = metadata["files"].as_array() {
        for file in list {
            push(&file["filePath"], file);
        }
    } else if part["tool"] == "write" {
        push(&metadata["filepath"], &Value::Null);
    }
    files
}
