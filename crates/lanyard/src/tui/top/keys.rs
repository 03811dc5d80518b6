//! What a key does on the screen of all sessions.

use lanyard_core::SessionId;
use serde_json::json;

use super::{Model, Over};
use crate::client::Route;
use crate::tui::attach::type_key;
use crate::tui::input::Input;
use crate::tui::key::Key;
use crate::tui::message::{Asked, Call, Do, Exit, Method, Verb};

const REASON: &str = "asked for in `lanyard top`";

impl Model {
    pub(super) fn key(&mut self, key: Key) -> Vec<Do> {
        match std::mem::replace(&mut self.over, Over::Nothing) {
            Over::Nothing => self.list_key(key),
            Over::Help => Vec::new(),
            Over::Confirm(verb, id) => match key {
                Key::Char('y') | Key::Enter => vec![order(verb, id, "")],
                _ => Vec::new(),
            },
            Over::Guide(id, input) => self.guide_key(id, input, key),
            Over::Filter(input) => {
                self.filter_key(input, key);
                Vec::new()
            }
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        match &mut self.over {
            Over::Guide(_, input) => input.insert(text),
            Over::Filter(input) => {
                input.insert(&text.replace('\n', " "));
                let text = input.text().to_owned();
                self.directory.set_filter(&text);
            }
            Over::Nothing | Over::Help | Over::Confirm(..) => {}
        }
    }

    fn list_key(&mut self, key: Key) -> Vec<Do> {
        let page = isize::try_from(self.height().max(2) - 1).unwrap_or(1);
        match key {
            Key::Char('q') | Key::Ctrl('c' | 'd') => return vec![Do::Leave(Exit::Quit)],
            Key::Esc => self.directory.set_filter(""),
            Key::Char('?') => self.over = Over::Help,
            Key::Char('/') => self.over = Over::Filter(Input::holding(self.directory.filter())),
            Key::Up | Key::Char('k') => self.directory.go(-1),
            Key::Down | Key::Char('j') => self.directory.go(1),
            Key::PageUp => self.directory.go(-page),
            Key::PageDown => self.directory.go(page),
            Key::Home | Key::Top => self.directory.go(isize::MIN / 2),
            Key::End | Key::Bottom => self.directory.go(isize::MAX / 2),
            key => {
                if let Some(id) = self.directory.chosen() {
                    return self.row_key(key, id);
                }
            }
        }
        Vec::new()
    }

    /// Keys that are about the chosen session, and only about that one.
    fn row_key(&mut self, key: Key, id: SessionId) -> Vec<Do> {
        let archived = self.directory.face(id).is_some_and(|face| face.archived);
        match key {
            Key::Enter => return vec![Do::Leave(Exit::Attach(id))],
            Key::Char('s') => self.over = Over::Confirm(Verb::Stop, id),
            Key::Char('S') => self.over = Over::Confirm(Verb::StopBelow, id),
            Key::Char('x') => self.over = Over::Confirm(Verb::Delete, id),
            Key::Char('g') => self.over = Over::Guide(id, Input::default()),
            Key::Char('c') => return vec![order(Verb::Cancel, id, "")],
            Key::Char('r') => return vec![order(Verb::Resume, id, "")],
            Key::Char('a') if archived => return vec![order(Verb::Unarchive, id, "")],
            Key::Char('a') => return vec![order(Verb::Archive, id, "")],
            _ => {}
        }
        Vec::new()
    }

    fn guide_key(&mut self, id: SessionId, mut input: Input, key: Key) -> Vec<Do> {
        match key {
            Key::Esc | Key::Ctrl('c') => Vec::new(),
            Key::Enter if input.text().trim().is_empty() => Vec::new(),
            Key::Enter => vec![order(Verb::Guide, id, input.text())],
            key => {
                type_key(&mut input, key);
                self.over = Over::Guide(id, input);
                Vec::new()
            }
        }
    }

    fn filter_key(&mut self, mut input: Input, key: Key) {
        match key {
            Key::Enter => {}
            Key::Esc | Key::Ctrl('c') => self.directory.set_filter(""),
            // One can look through the matches while typing.
            Key::Up => {
                self.directory.go(-1);
                self.over = Over::Filter(input);
            }
            Key::Down => {
                self.directory.go(1);
                self.over = Over::Filter(input);
            }
            key => {
                type_key(&mut input, key);
                self.directory.set_filter(input.text());
                self.over = Over::Filter(input);
            }
        }
    }

    pub(super) fn done(&mut self, id: SessionId, verb: Verb) {
        let name = self.directory.face(id).map_or_else(|| id.to_string(), |face| face.name());
        let what = match verb {
            Verb::Stop | Verb::StopBelow => "is asked to stop; once more raises it",
            Verb::Guide => "gets the guidance",
            Verb::Cancel => "is asked to end its turn",
            Verb::Resume => "comes back",
            Verb::Archive => "is archived; `lanyard archive --undo` or `a` brings it back",
            Verb::Unarchive => "is no longer archived",
            Verb::Delete => "is deleted",
        };
        self.say(format!("{name} {what}"));
    }
}

fn order(verb: Verb, id: SessionId, text: &str) -> Do {
    let id_text = id.to_string();
    let route = |below: &str| Route::to(&["sessions", &id_text, below]);
    let reason = json!({"reason": REASON});
    let call = match verb {
        Verb::Stop => Call::post(route("stop"), reason),
        Verb::StopBelow => Call::post(route("stop"), json!({"reason": REASON, "scope": "subtree"})),
        Verb::Guide => Call::post(route("guidance"), json!({"text": text})),
        Verb::Cancel => Call::post(route("cancel"), reason),
        Verb::Resume => Call::post(route("resume"), json!({})),
        Verb::Archive => Call::post(route("archive"), reason),
        Verb::Unarchive => Call::post(route("unarchive"), reason),
        Verb::Delete => {
            Call { method: Method::Delete, ..Call::post(Route::to(&["sessions", &id_text]), reason) }
        }
    };
    Do::Call(Asked::Row(id, verb), call)
}
