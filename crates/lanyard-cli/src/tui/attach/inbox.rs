//! The messages that wait for their turn, and what one can do with them.

use lanyard_core::session::AgentAbility;
use serde_json::{Value, json};

use super::{Aim, Asked, Do, Mode, Model, Over};
use crate::tui::input::Input;
use crate::tui::key::Key;
use crate::tui::message::{Call, Method};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Inbox {
    pub(super) waiting: Vec<Waiting>,
    /// Why it does not go on by itself.
    pub(super) paused: Option<String>,
    pub(super) chosen: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) turn: String,
    pub(super) prompt: String,
    pub(super) delivery: String,
    pub(super) by: String,
}

impl Inbox {
    pub(super) fn read(&mut self, turns: &Value, paused: &Value) {
        let turns = turns.as_array().map(Vec::as_slice).unwrap_or_default();
        self.waiting = turns
            .iter()
            .filter_map(|one| {
                Some(Waiting {
                    turn: one["turn"].as_str()?.to_owned(),
                    prompt: one["prompt"].as_str().unwrap_or_default().to_owned(),
                    delivery: one["delivery"].as_str().unwrap_or("queue").to_owned(),
                    by: one["actor"]["name"].as_str().unwrap_or("unknown").to_owned(),
                })
            })
            .collect();
        self.paused = paused.as_str().map(str::to_owned);
        self.chosen = self.chosen.min(self.waiting.len().saturating_sub(1));
    }

    fn chosen(&self) -> Option<&Waiting> {
        self.waiting.get(self.chosen)
    }
}

impl Model {
    pub(super) fn inbox_key(&mut self, key: Key) -> Vec<Do> {
        let last = self.inbox.waiting.len().saturating_sub(1);
        match key {
            Key::Esc | Key::Ctrl('q' | 'c') | Key::Char('q') => self.over = Over::Nothing,
            Key::Up => self.inbox.chosen = self.inbox.chosen.saturating_sub(1),
            Key::Down => self.inbox.chosen = (self.inbox.chosen + 1).min(last),
            Key::Char(_) | Key::Enter | Key::Delete if self.mode == Mode::ReadOnly => {
                self.say("read-only: nothing is changed from here");
            }
            Key::Char('g') => return self.inbox_change(&["inbox", "go"], json!({})),
            Key::Char('P') => return self.inbox_change(&["inbox", "pause"], json!({})),
            Key::Char('k') => return self.swap(self.inbox.chosen.checked_sub(1)),
            Key::Char('j') => return self.swap(Some(self.inbox.chosen + 1)),
            Key::Char('e') | Key::Enter => self.edit(),
            Key::Char('x' | 'd') | Key::Delete => return self.withdraw(),
            Key::Char('p') => return self.promote("front"),
            Key::Char('s') => match self.lack(AgentAbility::Steer) {
                Some(why) => self.say(why),
                None => return self.promote("steer"),
            },
            Key::Char('i') => return self.promote("interrupt"),
            Key::Char(_)
            | Key::Ctrl(_)
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
            | Key::Left
            | Key::Right
            | Key::WordLeft
            | Key::WordRight
            | Key::Home
            | Key::End
            | Key::Top
            | Key::Bottom
            | Key::PageUp
            | Key::PageDown => {}
        }
        Vec::new()
    }

    fn inbox_change(&self, below: &[&str], body: Value) -> Vec<Do> {
        let call = Call::post(self.route(below), body).writing(self.own_epoch());
        vec![Do::Call(Asked::InboxChange, call)]
    }

    /// Puts the chosen message in another's place. All of them are named: who has seen others is refused.
    fn swap(&mut self, with: Option<usize>) -> Vec<Do> {
        let chosen = self.inbox.chosen;
        let Some(with) = with.filter(|with| *with < self.inbox.waiting.len()) else { return Vec::new() };
        self.inbox.waiting.swap(chosen, with);
        self.inbox.chosen = with;
        let turns: Vec<&str> = self.inbox.waiting.iter().map(|one| one.turn.as_str()).collect();
        let body = json!({"turns": turns});
        self.inbox_change(&["inbox", "order"], body)
    }

    fn edit(&mut self) {
        if let Some(waiting) = self.inbox.chosen() {
            self.input = Input::holding(&waiting.prompt);
            self.aim = Aim::Edit(waiting.turn.clone());
            self.over = Over::Nothing;
        }
    }

    fn withdraw(&mut self) -> Vec<Do> {
        let Some(waiting) = self.inbox.chosen() else { return Vec::new() };
        let route = self.route(&["inbox", &waiting.turn]);
        let call = Call { method: Method::Delete, ..Call::post(route, json!({})) };
        vec![Do::Call(Asked::InboxChange, call.writing(self.own_epoch()))]
    }

    fn promote(&mut self, to: &str) -> Vec<Do> {
        let Some(waiting) = self.inbox.chosen() else { return Vec::new() };
        self.inbox_change(&["inbox", &waiting.turn, "promote"], json!({"as": to}))
    }
}
