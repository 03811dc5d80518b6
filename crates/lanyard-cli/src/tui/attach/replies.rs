//! What the daemon answers, and what follows from it.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Asked, Asking, Call, Do, Fresh, Input, Model, Over, Refused, Sent};
use crate::tui::face::{Face, time};
use crate::tui::message::Exit;

/// How deep a family is looked through.
const DEPTH_MAX: u32 = 16;

impl Model {
    pub(super) fn reply(&mut self, asked: Asked, result: Result<Value, Refused>) -> Vec<Do> {
        match (asked, result) {
            (Asked::Session, result) => self.session(result),
            (Asked::Turn(number), result) => self.turn_answered(number, result),
            (Asked::File(number), result) => {
                self.file_kept(number, result);
                Vec::new()
            }
            (Asked::Older | Asked::Newer | Asked::Latest, result) => {
                self.paged(asked, result);
                Vec::new()
            }
            (Asked::Receipt, Ok(value)) => {
                self.receipt = Deserialize::deserialize(&value).ok();
                Vec::new()
            }
            (Asked::Below, Ok(tree)) => {
                let children = tree["children"].as_array().map(Vec::as_slice).unwrap_or_default();
                self.children |= !children.is_empty();
                self.below = children.iter().find_map(|child| asking(child, DEPTH_MAX));
                Vec::new()
            }
            // Looked at again with the next change.
            (Asked::Receipt | Asked::Below, Err(_)) | (Asked::Seen, _) => Vec::new(),
            (asked, Ok(value)) => {
                self.done(asked, &value);
                self.refresh()
            }
            (_, Err(refused)) => {
                self.complain(&refused);
                self.refresh()
            }
        }
    }

    fn session(&mut self, result: Result<Value, Refused>) -> Vec<Do> {
        let stale = self.fresh == Fresh::AskedAndStale;
        self.fresh = Fresh::Yes;
        let mut all = Vec::new();
        match result {
            Ok(value) => {
                self.face = Face::read(&value);
                self.inbox.read(&value["inbox"], &value["inbox_paused"]);
                if self.face.as_ref().is_some_and(|face| face.stop_level.is_some()) {
                    all.push(self.look(Asked::Receipt, &["stop"]));
                } else {
                    self.receipt = None;
                }
                all.extend(self.mark_seen());
            }
            Err(refused) if refused.unheard => {}
            Err(refused) if matches!(refused.code.as_str(), "session_deleted" | "session_not_found") => {
                return vec![Do::Leave(Exit::Refused(refused))];
            }
            Err(refused) => self.complain(&refused),
        }
        if stale {
            all.extend(self.refresh());
        }
        all
    }

    /// The end of the turn is on the screen: it is marked once.
    fn mark_seen(&mut self) -> Option<Do> {
        let end = self.face.as_ref().filter(|face| face.unread).and_then(|face| face.turn_end)?;
        let shown = self.transcript.is_live() && self.transcript.head() >= end;
        if !shown || self.seen >= end {
            return None;
        }
        self.seen = end;
        let call = Call::post(self.route(&["seen"]), json!({"seq": end}));
        Some(Do::Call(Asked::Seen, call))
    }

    fn paged(&mut self, asked: Asked, result: Result<Value, Refused>) {
        self.paging = false;
        match result {
            Ok(value) => {
                let events = value["events"].as_array().map(Vec::as_slice).unwrap_or_default();
                if asked == Asked::Older {
                    self.transcript.prepend(events);
                } else if asked == Asked::Latest {
                    self.transcript.replace(events);
                } else {
                    self.transcript.append(events);
                }
            }
            Err(refused) => self.complain(&refused),
        }
    }

    fn turn_answered(&mut self, number: u64, result: Result<Value, Refused>) -> Vec<Do> {
        let Some(at) = self.sent.iter().position(|sent| sent.number == number) else { return Vec::new() };
        match result {
            Ok(value) => {
                self.sent.remove(at);
                if let Some(warning) = value["warnings"].as_array().and_then(|all| all.first()?.as_str()) {
                    self.say(warning.to_owned());
                } else if let Some(words) = value["result"].as_str().and_then(receipt) {
                    self.say(words);
                }
                self.refresh()
            }
            Err(refused) if refused.unheard => {
                self.sent[at].unheard = true;
                self.say("no answer: it is sent again, as the same message, once the daemon is back");
                Vec::new()
            }
            Err(refused) => {
                let sent = self.sent.remove(at);
                self.not_taken(sent, &refused);
                self.refresh()
            }
        }
    }

    /// A refused message goes back into the line.
    fn not_taken(&mut self, sent: Sent, refused: &Refused) {
        if refused.code == "turn_uncertain" && self.over == Over::Nothing {
            self.over = Over::Again(sent);
            return;
        }
        self.give_back(sent);
        match refused.code.as_str() {
            "writer_held" => {
                let holder =
                    self.writer().map_or_else(|| "another client".to_owned(), |one| one.name.clone());
                let title = format!("not sent: {holder} writes here");
                self.complain(&Refused { title, advice: "Alt-W asks for it".to_owned(), ..refused.clone() });
            }
            _ => self.complain(refused),
        }
    }

    /// Words and files of a message go back into the line, unless another one is being written.
    pub(super) fn give_back(&mut self, sent: Sent) {
        if self.input.is_empty() {
            self.input = Input::holding(&sent.prompt);
        }
        if self.files.is_empty() {
            self.files = sent.files;
        }
    }

    fn done(&mut self, asked: Asked, value: &Value) {
        let warning = value["warnings"].as_array().and_then(|all| all.first()?.as_str()).map(str::to_owned);
        let words = match asked {
            Asked::Guidance => "guidance is on its way".to_owned(),
            Asked::Stop => match value["stop_level"].as_u64() {
                Some(level) if level < 3 && self.is_busy() => {
                    format!("stop at level {level}; Ctrl-S raises it, Ctrl-X takes it back")
                }
                Some(_) => format!("the session ends; `lanyard resume {}` brings it back", self.id),
                None => "stop requested".to_owned(),
            },
            Asked::Unstop => "the stop was taken back".to_owned(),
            Asked::Cancel => "cancel requested; ask again to insist".to_owned(),
            Asked::Gate(_) => "answered".to_owned(),
            Asked::Claim => match value["result"].as_str() {
                Some("asked") => {
                    self.asked_until = time(&value["until"]);
                    "asked to write; it is yours unless the writer denies it".to_owned()
                }
                _ => "you write now".to_owned(),
            },
            Asked::Handover => "done".to_owned(),
            // Shown by what changes on the screen.
            Asked::InboxChange
            | Asked::Session
            | Asked::Receipt
            | Asked::Seen
            | Asked::Below
            | Asked::Older
            | Asked::Newer
            | Asked::Latest
            | Asked::Turn(_)
            | Asked::File(_)
            | Asked::Row(..)
            | Asked::Detail(_)
            | Asked::Gates
            | Asked::Halt
            | Asked::Answer(_) => String::new(),
        };
        let words = warning.unwrap_or(words);
        if !words.is_empty() {
            self.say(words);
        }
    }
}

/// The first of a family that waits for an answer.
fn asking(node: &Value, depth: u32) -> Option<Asking> {
    let face = Face::read(node)?;
    if face.gates > 0 {
        let name = face.agent.clone().unwrap_or_else(|| face.name());
        return Some(Asking { session: face.id, name });
    }
    let children = node["children"].as_array().filter(|_| depth > 0)?;
    children.iter().find_map(|child| asking(child, depth - 1))
}

/// What became of a message, where the transcript does not show it.
fn receipt(result: &str) -> Option<&'static str> {
    match result {
        "queued" => Some("queued; Ctrl-Q shows what waits"),
        "steered" => Some("it goes into the running turn"),
        "interrupting" => Some("the turn is cancelled; this runs as soon as it has ended"),
        "turn_in_progress" => Some("the same message is running already"),
        "duplicate_turn_ignored" => Some("this very message ran already; nothing was run again"),
        _ => None,
    }
}
