//! The ledger: events in any order and more than once in, each new thing once out. Pure, so that it can be tested as
//! text; the loop around it carries out its wishes.

mod parts;
#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::clip::clip;
use super::talk::{Author, Child, Talk, TalkPhase};

/// Conversations one bridge keeps apart; an agent that starts more has the later ones ignored.
const TALKS_MAX: usize = 1_000;

/// What came of an event.
#[derive(Debug, Default)]
pub(super) struct Out {
    pub(super) lines: Vec<Value>,
    pub(super) wishes: Vec<BridgeWish>,
}

/// What the ledger wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BridgeWish {
    /// It was told to abort before there was anything to abort.
    Abort { session: String },
    /// This answer is not waited for; OpenCode would keep it in its list for ever.
    Void { request: String, question: bool },
    /// Call [`BridgeLedger::settled`] when the last words had their time.
    Settle { session: String },
    /// See whether work on the prompt has begun, soon when something speaks against it; if not, call
    /// [`BridgeLedger::unbegun`].
    Check { session: String, turn: String, soon: bool },
}

/// Where an event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Stream,
    /// Asked for after the stream broke: the same thing may come again from the stream.
    Refetch,
}

#[derive(Debug)]
struct Ask {
    session: String,
    question: bool,
    ours: bool,
}

#[derive(Debug, Default)]
pub(super) struct BridgeLedger {
    main: Option<String>,
    talks: BTreeMap<String, Talk>,
    asks: BTreeMap<String, Ask>,
}

impl BridgeLedger {
    /// The conversation this bridge is about. What it holds already (up to `floor`) is an earlier life.
    pub(super) fn open(&mut self, native: &str, floor: Option<&str>) {
        let talk = self.talks.entry(native.to_owned()).or_default();
        if let Some(floor) = floor {
            talk.settle_to(floor);
        }
        self.main = Some(native.to_owned());
    }

    pub(super) fn main(&self) -> Option<&str> {
        self.main.as_deref()
    }

    /// A conversation of an earlier life: its old messages are not said again.
    pub(super) fn earlier_child(&mut self, info: &Value, floor: Option<&str>) {
        let Some(id) = info["id"].as_str() else { return };
        let talk = self.talks.entry(id.to_owned()).or_default();
        talk.child = Some(Child { info: info.clone(), prompt: None, announced: true });
        if let Some(floor) = floor {
            talk.settle_to(floor);
        }
    }

    pub(super) fn family(&self) -> Vec<String> {
        self.talks.keys().cloned().collect()
    }

    /// Whether words would join work under way, and not begin new work.
    pub(super) fn takes_words(&self, session: &str) -> bool {
        self.talks
            .get(session)
            .is_some_and(|talk| matches!(talk.phase, TalkPhase::Awaiting | TalkPhase::Busy) && !talk.aborted)
    }

    /// Whether work on this very turn has not begun.
    pub(super) fn is_awaiting(&self, session: &str, turn: &str) -> bool {
        self.talks
            .get(session)
            .is_some_and(|talk| talk.phase == TalkPhase::Awaiting && talk.turn.as_deref() == Some(turn))
    }

    fn is_ending(&self, session: &str) -> bool {
        self.talks.get(session).is_some_and(|talk| talk.phase == TalkPhase::Ending)
    }

    pub(super) fn open_asks(&self) -> Vec<String> {
        self.asks.keys().cloned().collect()
    }

    /// A prompt is about to be handed over.
    pub(super) fn prompting(&mut self, session: &str, turn: &str, out: &mut Out) {
        self.settled(session, out);
        let Some(talk) = self.talks.get_mut(session) else { return };
        talk.turn = Some(turn.to_owned());
        talk.error = None;
        talk.aborted = false;
        talk.unwanted = false;
        talk.answered = false;
        talk.before = talk.newest_message();
        // A prompt to a conversation at work joins it, and ends with it.
        if talk.phase == TalkPhase::Idle {
            talk.phase = TalkPhase::Awaiting;
            let turn = turn.to_owned();
            out.wishes.push(BridgeWish::Check { session: session.to_owned(), turn, soon: false });
        }
    }

    /// The prompt was not taken.
    pub(super) fn refused(&mut self, session: &str, turn: &str, message: &str, out: &mut Out) {
        let error = json!({"name": "PromptRefused", "data": {"message": message}});
        match self.talks.get_mut(session) {
            Some(talk) if talk.phase == TalkPhase::Awaiting && talk.turn.as_deref() == Some(turn) => {
                talk.error = Some(error);
                self.end(session, out);
            }
            Some(_) | None => out.lines.push(idle(session, Some(turn), Some(&error), false)),
        }
    }

    /// An abort is about to be sent.
    pub(super) fn aborting(&mut self, session: &str, out: &mut Out) {
        let Some(talk) = self.talks.get_mut(session).filter(|talk| talk.is_working()) else { return };
        talk.aborted = true;
        if let (TalkPhase::Awaiting, Some(turn)) = (talk.phase, talk.turn.clone()) {
            out.wishes.push(BridgeWish::Check { session: session.to_owned(), turn, soon: true });
        }
    }

    /// This question is being answered through the bridge.
    pub(super) fn answering(&mut self, request: &str) {
        if let Some(ask) = self.asks.get_mut(request) {
            ask.ours = true;
        }
    }

    /// The stream broke.
    pub(super) fn lost(&mut self) {
        self.talks.values_mut().for_each(Talk::hold);
    }

    /// The last words had their time.
    pub(super) fn settled(&mut self, session: &str, out: &mut Out) {
        if self.is_ending(session) {
            self.end(session, out);
        }
    }

    /// The server does not work on the prompt it took.
    pub(super) fn unbegun(&mut self, session: &str, out: &mut Out) {
        let Some(talk) = self.talks.get_mut(session).filter(|talk| talk.phase == TalkPhase::Awaiting) else {
            return;
        };
        talk.unwanted = talk.aborted;
        if !talk.aborted && talk.error.is_none() {
            let message = "OpenCode took the prompt and did not begin to work on it";
            talk.error = Some(json!({"name": "PromptForgotten", "data": {"message": message}}));
        }
        self.end(session, out);
    }

    /// Takes in one event.
    pub(super) fn event(&mut self, event: &Value, source: Source, out: &mut Out) {
        let properties = &event["properties"];
        let kind = event["type"].as_str().unwrap_or_default();
        if kind == "session.created" {
            self.created(&properties["info"]);
            return;
        }
        let session =
            [&properties["sessionID"], &properties["part"]["sessionID"], &properties["info"]["sessionID"]]
                .into_iter()
                .find_map(Value::as_str);
        let Some(session) = session else {
            if kind == "session.error" {
                out.lines.push(line(event.clone(), json!({})));
            }
            return;
        };
        if !self.talks.contains_key(session) {
            return;
        }
        match kind {
            "message.updated" => self.message(session, &properties["info"]),
            "message.part.updated" => self.part(session, &properties["part"], source, out),
            "message.part.delta" => self.delta(session, properties, out),
            "session.status" => self.status(session, event, out),
            "session.idle" => self.idle(session, out),
            "session.error" => self.error(session, &properties["error"], out),
            "session.compacted" => self.compacted(session, event, out),
            "todo.updated" => self.todo(session, event, out),
            "permission.asked" | "question.asked" => self.asked(session, event, out),
            "permission.replied" | "question.replied" | "question.rejected" => self.replied(event, out),
            _ => {}
        }
    }

    fn created(&mut self, info: &Value) {
        let (Some(id), Some(parent)) = (info["id"].as_str(), info["parentID"].as_str()) else { return };
        if !self.talks.contains_key(parent) || self.talks.contains_key(id) || self.talks.len() >= TALKS_MAX {
            return;
        }
        let child = Child { info: info.clone(), prompt: None, announced: false };
        self.talks.entry(id.to_owned()).or_default().child = Some(child);
    }

    fn status(&mut self, session: &str, event: &Value, out: &mut Out) {
        let status = &event["properties"]["status"];
        match status["type"].as_str() {
            Some("busy") => self.busy(session, out),
            Some("retry") => {
                self.busy(session, out);
                let attempt = status["attempt"].as_u64();
                let Some(talk) = self.talks.get_mut(session) else { return };
                if attempt.is_some() && talk.retry != attempt {
                    talk.retry = attempt;
                    self.say(session, event.clone(), json!({}), out);
                }
            }
            // The second one: its last words are said.
            Some("idle") if self.is_ending(session) => self.end(session, out),
            Some("idle") => self.idle(session, out),
            Some(_) | None => {}
        }
    }

    fn busy(&mut self, session: &str, out: &mut Out) {
        let Some(talk) = self.talks.get_mut(session) else { return };
        match talk.phase {
            TalkPhase::Idle | TalkPhase::Awaiting => {
                talk.phase = TalkPhase::Busy;
                if !talk.answered {
                    // It came late, about what was before: work that fails does not begin afterwards.
                    talk.error = None;
                }
                if talk.aborted || std::mem::take(&mut talk.unwanted) {
                    talk.aborted = true;
                    out.wishes.push(BridgeWish::Abort { session: session.to_owned() });
                }
            }
            TalkPhase::Busy | TalkPhase::Ending => {}
        }
    }

    fn idle(&mut self, session: &str, out: &mut Out) {
        let Some(talk) = self.talks.get_mut(session) else { return };
        match talk.phase {
            // Older than the prompt, or said before.
            TalkPhase::Idle | TalkPhase::Awaiting => {}
            TalkPhase::Busy if talk.aborted || is_abort(talk.error.as_ref()) => {
                // The last words of what was cut short come after its idle, and then it is idle again.
                talk.phase = TalkPhase::Ending;
                out.wishes.push(BridgeWish::Settle { session: session.to_owned() });
            }
            TalkPhase::Busy => self.end(session, out),
            TalkPhase::Ending => {}
        }
    }

    fn error(&mut self, session: &str, error: &Value, out: &mut Out) {
        let Some(talk) = self.talks.get_mut(session).filter(|talk| talk.is_working()) else { return };
        // Later ones are the same with a stack trace.
        if talk.error.is_none() {
            talk.error = Some(error.clone());
        }
        if let (TalkPhase::Awaiting, Some(turn)) = (talk.phase, talk.turn.clone()) {
            out.wishes.push(BridgeWish::Check { session: session.to_owned(), turn, soon: true });
        }
    }

    fn compacted(&mut self, session: &str, event: &Value, out: &mut Out) {
        let Some(talk) = self.talks.get_mut(session) else { return };
        let (summary, after): (Option<String>, Option<u64>) = talk.summary.clone().unzip();
        if summary.is_some() && talk.compacted == summary {
            return;
        }
        talk.compacted = summary;
        let note = json!({"before": talk.tokens, "after": after.unwrap_or(0)});
        self.say(session, event.clone(), note, out);
    }

    /// Whether the agent wrote something since a prompt whose work was never seen to begin.
    pub(super) fn answered_unseen(&self, session: &str) -> bool {
        self.talks.get(session).is_some_and(|talk| talk.phase == TalkPhase::Awaiting && talk.answered)
    }

    /// The newest summary whose compaction was not said, for what is asked for after a gap.
    pub(super) fn silent_compaction(&self, session: &str) -> bool {
        self.talks.get(session).is_some_and(|talk| {
            talk.summary.as_ref().is_some_and(|(id, _)| talk.compacted.as_ref() != Some(id))
        })
    }

    fn todo(&mut self, session: &str, event: &Value, out: &mut Out) {
        let todos = &event["properties"]["todos"];
        let Some(talk) = self.talks.get_mut(session) else { return };
        if talk.todo.as_ref() != Some(todos) {
            talk.todo = Some(todos.clone());
            self.say(session, event.clone(), json!({}), out);
        }
    }

    fn asked(&mut self, session: &str, event: &Value, out: &mut Out) {
        let Some(request) = event["properties"]["id"].as_str() else { return };
        if self.asks.contains_key(request) {
            return;
        }
        let question = event["type"] == "question.asked";
        let ask = Ask { session: session.to_owned(), question, ours: false };
        self.asks.insert(request.to_owned(), ask);
        self.say(session, event.clone(), json!({}), out);
    }

    fn replied(&mut self, event: &Value, out: &mut Out) {
        let Some(request) = event["properties"]["requestID"].as_str() else { return };
        let Some(ask) = self.asks.remove(request) else { return };
        self.say(&ask.session, event.clone(), json!({"ours": ask.ours}), out);
    }

    /// A question that is gone from the server's list without an answer being seen.
    pub(super) fn vanished(&mut self, request: &str, out: &mut Out) {
        let Some(ask) = self.asks.remove(request) else { return };
        let event = unasked(&ask, request, "gone");
        self.say(&ask.session, event, json!({"ours": ask.ours}), out);
    }

    /// Says that the work has ended, and that its answers are not waited for.
    fn end(&mut self, session: &str, out: &mut Out) {
        let stale: Vec<String> = self
            .asks
            .iter()
            .filter(|(_, ask)| ask.session == session)
            .map(|(request, _)| request.clone())
            .collect();
        for request in stale {
            let Some(ask) = self.asks.remove(&request) else { continue };
            self.say(session, unasked(&ask, &request, "void"), json!({"ours": false}), out);
            out.wishes.push(BridgeWish::Void { request, question: ask.question });
        }
        let Some(talk) = self.talks.get_mut(session) else { return };
        talk.phase = TalkPhase::Idle;
        talk.retry = None;
        let (turn, error) = (talk.turn.take(), talk.error.take());
        let aborted = std::mem::take(&mut talk.aborted);
        let mut said = idle(session, turn.as_deref(), error.as_ref(), aborted);
        self.say(session, said["event"].take(), said["note"].take(), out);
    }

    /// Says something about a conversation; a child that was not announced is announced first.
    fn say(&mut self, session: &str, event: Value, note: Value, out: &mut Out) {
        self.announce(session, None, out);
        out.lines.push(line(event, note));
    }

    fn announce(&mut self, session: &str, prompt: Option<&str>, out: &mut Out) {
        let Some(talk) = self.talks.get_mut(session) else { return };
        let Some(child) = talk.child.as_mut() else { return };
        let again = child.announced;
        if again && (prompt.is_none() || talk.turn.is_some() || talk.phase != TalkPhase::Idle) {
            return;
        }
        child.announced = true;
        let prompt = prompt.map(str::to_owned).or_else(|| child.prompt.take());
        let mut note = json!({"prompt": prompt});
        if again {
            note["again"] = true.into();
        }
        let info = &child.info;
        let info = json!({"id": info["id"], "parentID": info["parentID"], "title": info["title"], "agent": info["agent"]});
        let properties = json!({"sessionID": session, "info": info});
        out.lines.push(line(json!({"type": "session.created", "properties": properties}), note));
    }

    fn author(&self, session: &str, message: &str) -> Option<Author> {
        self.talks.get(session).and_then(|talk| talk.author(message))
    }
}

fn line(mut event: Value, note: Value) -> Value {
    if let Some(event) = event.as_object_mut() {
        event.remove("id");
    }
    clip(&mut event);
    Value::Object([("event".to_owned(), event), ("note".to_owned(), note)].into_iter().collect())
}

fn idle(session: &str, turn: Option<&str>, error: Option<&Value>, aborted: bool) -> Value {
    let error = error.map(told_error);
    line(
        json!({"type": "session.idle", "properties": {"sessionID": session}}),
        json!({"turn": turn, "error": error, "aborted": aborted}),
    )
}

fn unasked(ask: &Ask, request: &str, reply: &str) -> Value {
    let kind = if ask.question { "question.replied" } else { "permission.replied" };
    json!({"type": kind, "properties": {"sessionID": ask.session, "requestID": request, "reply": reply}})
}

/// An error without what only OpenCode needs. A status and a pause say whether it is a limit of the provider.
fn told_error(error: &Value) -> Value {
    let mut told = json!({"name": error["name"], "message": error["data"]["message"]});
    let (status, pause) = (&error["data"]["statusCode"], &error["data"]["responseHeaders"]["retry-after"]);
    if status.is_number() {
        told["statusCode"] = status.clone();
    }
    if pause.is_string() {
        told["retryAfter"] = pause.clone();
    }
    told
}

fn is_abort(error: Option<&Value>) -> bool {
    error.is_some_and(|error| error["name"] == "MessageAbortedError")
}
