//! What a key does on the screen of all sessions.

use lanyard_client::Route;
use lanyard_core::SessionId;
use lanyard_core::session::AgentAbility;
use serde_json::json;

use super::{Model, Over};
use crate::tui::attach::type_key;
use crate::tui::input::Input;
use crate::tui::key::Key;
use crate::tui::message::{Asked, Call, Do, Exit, Method, RowVerb};

const REASON: &str = "asked for in `lanyard top`";

impl Model {
    pub(super) fn key(&mut self, key: Key) -> Vec<Do> {
        match std::mem::replace(&mut self.over, Over::Nothing) {
            Over::Nothing => self.list_key(key),
            Over::Help => Vec::new(),
            Over::Confirm(verb, id) if matches!(key, Key::Char('y') | Key::Enter) => {
                vec![order(verb, id, "")]
            }
            Over::Confirm(..) => Vec::new(),
            Over::Guide(id, input) => self.guide_key(id, input, key),
            Over::Filter(input) => {
                self.filter_key(input, key);
                Vec::new()
            }
            Over::Answer(answering) => self.answer_key(answering, key),
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        match &mut self.over {
            Over::Guide(_, input) => input.insert(text),
            Over::Answer(answering) if answering.takes(self.now) => {
                answering.input.insert(&text.replace('\n', " "));
            }
            Over::Filter(input) => {
                input.insert(&text.replace('\n', " "));
                let text = input.text().to_owned();
                self.directory.set_filter(&text);
            }
            Over::Nothing | Over::Help | Over::Confirm(..) | Over::Answer(_) => {}
        }
    }

    fn list_key(&mut self, key: Key) -> Vec<Do> {
        // The person goes on: what was settled has been read.
        self.gates.move_on();
        if self.go_key(key) {
            self.moved_until = None;
            return Vec::new();
        }
        match key {
            Key::Char('q') | Key::Ctrl('c' | 'd') => return vec![Do::Leave(Exit::Quit)],
            Key::Esc => self.directory.set_filter(""),
            Key::Char('?') => self.over = Over::Help,
            Key::Char('f') => self.open_gate(None),
            Key::Char('/') => self.over = Over::Filter(Input::holding(self.directory.filter())),
            Key::Enter | Key::Char(_) => {
                if self.moved_until.is_some_and(|until| self.now < until) {
                    self.warn("another session is chosen now: the one before is gone");
                    return Vec::new();
                }
                if let Some(id) = self.directory.chosen() {
                    return self.row_key(key, id);
                }
            }
            Key::Ctrl(_)
            | Key::NewLine
            | Key::Tab
            | Key::BackTab
            | Key::Backspace
            | Key::WordBackspace
            | Key::WordDelete
            | Key::Alt(_)
            | Key::RowUp
            | Key::RowDown
            | Key::EntryUp
            | Key::EntryDown
            | Key::Delete
            | Key::Left
            | Key::Right
            | Key::WordLeft
            | Key::WordRight
            | Key::Up
            | Key::Down
            | Key::Home
            | Key::End
            | Key::Top
            | Key::Bottom
            | Key::PageUp
            | Key::PageDown => {}
        }
        Vec::new()
    }

    /// Chooses another row. Says whether the key does that.
    fn go_key(&mut self, key: Key) -> bool {
        let page = isize::try_from(self.height().max(2) - 1).unwrap_or(1);
        let by = if matches!(key, Key::Up | Key::Char('k')) {
            -1
        } else if matches!(key, Key::Down | Key::Char('j')) {
            1
        } else if key == Key::PageUp {
            -page
        } else if key == Key::PageDown {
            page
        } else if matches!(key, Key::Home | Key::Top) {
            isize::MIN / 2
        } else if matches!(key, Key::End | Key::Bottom) {
            isize::MAX / 2
        } else {
            return false;
        };
        self.directory.go(by);
        true
    }

    /// Keys that are about the chosen session, and only about that one.
    fn row_key(&mut self, key: Key, id: SessionId) -> Vec<Do> {
        let archived = self.directory.face(id).is_some_and(|face| face.archived);
        match key.letter() {
            None => return vec![Do::Leave(Exit::Attach(id))],
            Some('s') => match self.directory.face(id).and_then(|face| face.lack(AgentAbility::Stop)) {
                Some(why) => self.warn(&why),
                None => self.over = Over::Confirm(RowVerb::Stop, id),
            },
            Some('S') => self.over = Over::Confirm(RowVerb::StopBelow, id),
            Some('x') => self.over = Over::Confirm(RowVerb::Delete, id),
            Some('g') => self.over = Over::Guide(id, Input::default()),
            Some('c') => return vec![order(RowVerb::Cancel, id, "")],
            Some('r') => return vec![order(RowVerb::Resume, id, "")],
            Some('a') if archived => return vec![order(RowVerb::Unarchive, id, "")],
            Some('a') => return vec![order(RowVerb::Archive, id, "")],
            Some(_) => {}
        }
        Vec::new()
    }

    fn guide_key(&mut self, id: SessionId, mut input: Input, key: Key) -> Vec<Do> {
        if key == Key::Enter {
            let said = !input.text().trim().is_empty();
            return said.then(|| order(RowVerb::Guide, id, input.text())).into_iter().collect();
        }
        if !matches!(key, Key::Esc | Key::Ctrl('c')) {
            type_key(&mut input, key);
            self.over = Over::Guide(id, input);
        }
        Vec::new()
    }

    fn filter_key(&mut self, mut input: Input, key: Key) {
        if matches!(key, Key::Esc | Key::Ctrl('c')) {
            return self.directory.set_filter("");
        }
        if key == Key::Enter {
            return;
        }
        // One can look through the matches while typing; letters are letters here.
        if key.letter().is_some() || !self.go_key(key) {
            type_key(&mut input, key);
            self.directory.set_filter(input.text());
        }
        self.over = Over::Filter(input);
    }

    pub(super) fn done(&mut self, id: SessionId, verb: RowVerb) {
        let name = self.directory.face(id).map_or_else(|| id.to_string(), |face| face.name());
        let what = match verb {
            RowVerb::Stop | RowVerb::StopBelow => "is asked to stop; once more raises it",
            RowVerb::Guide => "gets the guidance",
            RowVerb::Cancel => "is asked to end its turn",
            RowVerb::Resume => "comes back",
            RowVerb::Archive => "is archived; `lanyard archive --undo` or `a` brings it back",
            RowVerb::Unarchive => "is no longer archived",
            RowVerb::Delete => "is deleted",
        };
        self.say(format!("{name} {what}"));
    }
}

fn order(verb: RowVerb, id: SessionId, text: &str) -> Do {
    let id_text = id.to_string();
    let route = |below: &str| Route::to(&["sessions", &id_text, below]);
    let reason = json!({"reason": REASON});
    let call = match verb {
        RowVerb::Stop => Call::post(route("stop"), reason),
        RowVerb::StopBelow => Call::post(route("stop"), json!({"reason": REASON, "scope": "subtree"})),
        RowVerb::Guide => Call::post(route("guidance"), json!({"text": text})),
        RowVerb::Cancel => Call::post(route("cancel"), reason),
        RowVerb::Resume => Call::post(route("resume"), json!({})),
        RowVerb::Archive => Call::post(route("archive"), reason),
        RowVerb::Unarchive => Call::post(route("unarchive"), reason),
        RowVerb::Delete => {
            Call { method: Method::Delete, ..Call::post(Route::to(&["sessions", &id_text]), reason) }
        }
    };
    Do::Call(Asked::Row(id, verb), call)
}
