//! What comes over the stream: events of the log, and what goes beside them.

use serde_json::Value;

use super::{Asked, Do, Link, Model, Present};
use crate::tui::face::{Writer, who};

/// Others that are listed; more are only counted.
const PRESENT_MAX: usize = 64;

impl Model {
    pub(super) fn frame(&mut self, frame: &Value) -> Vec<Do> {
        if let Some(seq) = frame["seq"].as_u64() {
            return self.event(seq, frame);
        }
        match frame["type"].as_str() {
            Some("connected") => self.connected(frame),
            Some("preview") => {
                let thought = frame["kind"].as_str() == Some("thought");
                let text = frame["text"].as_str().unwrap_or_default();
                self.transcript.preview(thought, text, frame["message_id"].as_str());
                Vec::new()
            }
            Some("presence") => {
                self.presence(frame);
                Vec::new()
            }
            // A heartbeat, a word about the pace, or something of a later version.
            _ => Vec::new(),
        }
    }

    fn connected(&mut self, frame: &Value) -> Vec<Do> {
        self.link = Link::Up;
        if let Some(connection) = frame["connection"].as_str() {
            self.connection = Some(connection.to_owned());
        }
        self.transcript.join(frame["after"].as_u64().unwrap_or(0));
        if let Some(face) = &mut self.face {
            face.writer = Writer::read(&frame["writer"]);
        }
        let mut all = self.refresh();
        all.push(self.look(Asked::Below, &["tree"]));
        // Turns without an answer: the same ones again, by their ids.
        let unheard: Vec<usize> = (0..self.sent.len()).filter(|&at| self.sent[at].unheard).collect();
        for at in unheard {
            self.sent[at].unheard = false;
            all.push(self.order(&self.sent[at]));
        }
        all
    }

    fn event(&mut self, seq: u64, raw: &Value) -> Vec<Do> {
        if seq <= self.transcript.head() {
            return Vec::new();
        }
        self.transcript.live(seq, raw);
        match raw["type"].as_str().unwrap_or_default() {
            // They change nothing that is shown beside the transcript, and there may be very many.
            "message" | "thought" | "tool.called" | "tool.returned" | "tool.relayed" | "plan.updated"
            | "file.changed" => Vec::new(),
            "writer.denied" => {
                let own = raw["data"]["connection"].as_str() == self.connection.as_deref();
                if own && self.asked_until.take().is_some() {
                    self.say("denied: the writer keeps writing");
                }
                self.refresh()
            }
            "writer.granted" => {
                let own = raw["data"]["pen"]["connection"].as_str() == self.connection.as_deref();
                if own && self.connection.is_some() {
                    self.asked_until = None;
                    self.say("you write now");
                } else if self.own_epoch().is_some() {
                    self.say("you no longer write: another took over");
                }
                self.refresh()
            }
            "session.child_linked" => {
                self.children = true;
                self.refresh()
            }
            "session.deleted" => {
                self.say("the session was deleted");
                Vec::new()
            }
            _ => self.refresh(),
        }
    }

    fn presence(&mut self, frame: &Value) {
        let connections = frame["connections"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.present = connections
            .iter()
            .take(PRESENT_MAX)
            .filter_map(|one| {
                let connection = one["connection"].as_str()?.to_owned();
                Some(Present { connection, name: who(one) })
            })
            .collect();
    }
}
