//! What a key does on the screen of a session.

use serde_json::json;

use lanyard_core::session::AgentAbility;

use super::{Aim, Asked, Do, Exit, Input, Mode, Model, Over, SETTLE_TICKS, TypedDelivery, draw, leave};
use crate::tui::key::Key;
use crate::tui::transcript::Selection;

impl Model {
    pub(super) fn key(&mut self, key: Key) -> Vec<Do> {
        match &self.over {
            Over::Nothing => {}
            Over::Help => {
                self.over = Over::Nothing;
                return Vec::new();
            }
            Over::Leave => return self.leave_key(key),
            Over::Stop => return self.stop_key(key),
            Over::Inbox => return self.inbox_key(key),
            Over::Again(_) => return self.again_key(key),
        }
        if let Some(done) = self.answer_key(key).or_else(|| self.tool_key(key)) {
            return done;
        }
        match key {
            Key::Ctrl(letter) => self.order_key(key, letter),
            Key::Alt(letter) => self.alt_key(letter),
            Key::Up | Key::Down if self.recalls() => self.recall(key),
            Key::Up
            | Key::Down
            | Key::RowUp
            | Key::RowDown
            | Key::PageUp
            | Key::PageDown
            | Key::Top
            | Key::Bottom => self.scroll_key(key),
            Key::Char('q') if self.input.is_empty() && self.aim == Aim::Turn => leave(),
            Key::Char('?') if self.input.is_empty() => {
                self.over = Over::Help;
                Vec::new()
            }
            Key::End if self.input.is_empty() => self.scroll_key(Key::Bottom),
            Key::Home if self.input.is_empty() => self.scroll_key(Key::Top),
            _ if self.mode == Mode::ReadOnly => {
                self.say("read-only: started with -r");
                Vec::new()
            }
            Key::Enter => self.enter(),
            Key::Tab | Key::BackTab => {
                self.other_delivery(key == Key::Tab);
                Vec::new()
            }
            Key::Backspace if self.input.is_empty() && matches!(self.aim, Aim::File(_)) => {
                self.drop_file();
                Vec::new()
            }
            Key::Esc => {
                self.escape();
                Vec::new()
            }
            Key::Char(_)
            | Key::NewLine
            | Key::Backspace
            | Key::WordBackspace
            | Key::WordDelete
            | Key::Delete
            | Key::Left
            | Key::Right
            | Key::WordLeft
            | Key::WordRight
            | Key::EntryUp
            | Key::EntryDown
            | Key::Home
            | Key::End => {
                type_key(&mut self.input, key);
                Vec::new()
            }
        }
    }

    /// Selects, opens and closes tool calls.
    fn tool_key(&mut self, key: Key) -> Option<Vec<Do>> {
        let height = draw::transcript_rows(self);
        if key == Key::EntryUp {
            self.transcript.select(Selection::Older, height);
        } else if key == Key::EntryDown {
            self.transcript.select(Selection::Newer, height);
        } else if key == Key::Ctrl('t')
            || (key == Key::Enter && self.input.is_empty() && self.transcript.is_selecting())
        {
            if !self.transcript.toggle(height) {
                self.say("no tool call has anything to open");
            }
        } else if key == Key::Alt('t') {
            let open = self.transcript.toggle_all(height);
            self.say(if open { "all tool calls are open" } else { "all tool calls are closed" });
        } else if key == Key::Esc && self.transcript.is_selecting() {
            self.transcript.deselect();
        } else {
            return None;
        }
        Some(Vec::new())
    }

    /// Keys with Ctrl: what can be done to the session.
    fn order_key(&mut self, key: Key, letter: char) -> Vec<Do> {
        match letter {
            'd' => return leave(),
            'c' => self.over = Over::Leave,
            'q' => {
                self.over = Over::Inbox;
                return self.refresh();
            }
            'o' => {
                let below = self.below.as_ref().map(|asking| Do::Leave(Exit::Attach(asking.session)));
                return below.into_iter().collect();
            }
            _ if self.mode == Mode::ReadOnly => self.say("read-only: started with -r"),
            'g' if matches!(self.aim, Aim::File(_)) => {}
            'g' => self.aim = if self.aim == Aim::Guidance { Aim::Turn } else { Aim::Guidance },
            's' => return self.stop_pressed(),
            'x' => {
                let body = json!({"reason": "asked for while attached"});
                return self.call(Asked::Unstop, &["stop", "withdraw"], body);
            }
            _ => type_key(&mut self.input, key),
        }
        Vec::new()
    }

    /// The next way in which a message can arrive; one that the agent does not offer is passed over, with the reason.
    fn other_delivery(&mut self, forward: bool) {
        let step = |from: TypedDelivery| if forward { from.next() } else { from.previous() };
        self.delivery = step(self.delivery);
        if self.delivery == TypedDelivery::Steer
            && let Some(why) = self.lack(AgentAbility::Steer)
        {
            self.delivery = step(self.delivery);
            self.say(why);
        }
    }

    /// Keys with Alt: the right to write, and files.
    fn alt_key(&mut self, letter: char) -> Vec<Do> {
        match letter {
            'a' | 'w' if self.mode == Mode::ReadOnly => {
                self.say("read-only: started with -r");
                Vec::new()
            }
            'a' => {
                self.file_key();
                Vec::new()
            }
            'w' => self.writer_key(),
            _ => Vec::new(),
        }
    }

    /// Whether Up and Down recall prompts: nothing is typed but a prompt that was recalled.
    fn recalls(&self) -> bool {
        let as_recalled =
            self.recalled.is_some_and(|back| self.transcript.prompt(back) == Some(self.input.text()));
        self.mode == Mode::Write && self.aim == Aim::Turn && (self.input.is_empty() || as_recalled)
    }

    /// An earlier prompt, or a later one; after the newest comes an empty line.
    fn recall(&mut self, key: Key) -> Vec<Do> {
        let recalled = self.recalled.filter(|_| !self.input.is_empty());
        let back = match (key, recalled) {
            (Key::Up, None) => Some(0),
            (Key::Up, Some(back)) => Some(back + 1),
            (_, back) => back.and_then(|back| back.checked_sub(1)),
        };
        let Some(back) = back else {
            (self.recalled, self.input) = (None, Input::default());
            return Vec::new();
        };
        if let Some(prompt) = self.transcript.prompt(back) {
            (self.recalled, self.input) = (Some(back), Input::holding(prompt));
            return Vec::new();
        }
        // Earlier ones may be in a part of the log that was not read yet.
        let older = self.older_page();
        let words =
            if older.is_empty() { "no earlier prompt" } else { "reading further back; press Up again" };
        self.say(words);
        older
    }

    /// Takes the right to write, asks for it, or gives it back.
    fn writer_key(&mut self) -> Vec<Do> {
        let Some(connection) = self.connection.clone() else {
            self.say("not connected yet");
            return Vec::new();
        };
        if let Some(epoch) = self.own_epoch() {
            let body = json!({"connection": connection, "epoch": epoch});
            return self.call(Asked::Handover, &["writer", "release"], body);
        }
        let body = json!({"connection": connection, "client": "cli", "take": true});
        self.call(Asked::Claim, &["writer"], body)
    }

    /// Answers to what is asked on the screen: by another who wants to write, or by the agent.
    fn answer_key(&mut self, key: Key) -> Option<Vec<Do>> {
        if self.mode == Mode::ReadOnly {
            return None;
        }
        let bare = self.input.is_empty();
        if self.takeover().is_some() {
            let pressed = |letter| key == Key::Alt(letter) || (bare && key == Key::Char(letter));
            let verb = if pressed('y') { "grant" } else { "deny" };
            if let Some(epoch) = self.own_epoch().filter(|_| pressed('y') || pressed('n')) {
                let body = json!({"connection": self.connection, "epoch": epoch});
                return Some(self.call(Asked::Handover, &["writer", verb], body));
            }
        }
        let Key::Char(digit @ '1'..='9') = key else { return None };
        let gate = self.question().filter(|_| bare)?;
        let nth = usize::try_from(digit.to_digit(10)?).ok()?.checked_sub(1)?;
        let option = gate.question.options.get(nth)?.id.clone();
        let id = gate.id;
        // What was typed before the question could be read is no answer to it.
        if self.shown.is_none_or(|(shown, ticks)| shown != id || ticks < SETTLE_TICKS) {
            return Some(Vec::new());
        }
        Some(self.call(Asked::Gate(id), &["gates", &id.to_string()], json!({"option": option})))
    }

    fn leave_key(&mut self, key: Key) -> Vec<Do> {
        let reason = json!({"reason": "asked for while attached"});
        self.over = Over::Nothing;
        let leaves = matches!(key, Key::Char('d') | Key::Ctrl('c' | 'd') | Key::Enter);
        match key.letter() {
            _ if leaves => leave(),
            Some('c' | 's') if self.mode == Mode::ReadOnly => {
                self.say("read-only: started with -r");
                Vec::new()
            }
            Some('c') => self.call(Asked::Cancel, &["cancel"], reason),
            Some('s') => self.stop_pressed(),
            // Anything else goes on.
            _ => Vec::new(),
        }
    }

    /// The first press asks; a stop that is pending is raised.
    fn stop_pressed(&mut self) -> Vec<Do> {
        let face = self.face.as_ref();
        if let Some(state) = face.filter(|face| face.is_ended()).map(|face| face.state.clone()) {
            self.say(format!("nothing to stop: the session is {state}"));
            return Vec::new();
        }
        if let Some(why) = self.lack(AgentAbility::Stop) {
            self.say(why);
            return Vec::new();
        }
        let face = self.face.as_ref();
        if face.is_some_and(|face| face.stop_level.is_some()) {
            return self.stop_now();
        }
        self.over = Over::Stop;
        Vec::new()
    }

    fn stop_key(&mut self, key: Key) -> Vec<Do> {
        // Pressed twice, it is still only asked.
        if key == Key::Ctrl('s') {
            return Vec::new();
        }
        self.over = Over::Nothing;
        if matches!(key, Key::Char('y' | 'Y')) {
            return self.stop_now();
        }
        self.say("nothing was stopped");
        Vec::new()
    }

    fn stop_now(&self) -> Vec<Do> {
        self.call(Asked::Stop, &["stop"], json!({"reason": "asked for while attached"}))
    }

    fn again_key(&mut self, key: Key) -> Vec<Do> {
        let Over::Again(mut sent) = std::mem::replace(&mut self.over, Over::Nothing) else {
            return Vec::new();
        };
        if matches!(key, Key::Enter | Key::Char('y')) {
            sent.again = true;
            let order = self.order(&sent);
            self.sent.push(sent);
            return vec![order];
        }
        if matches!(key, Key::Esc | Key::Char('n' | 'q') | Key::Ctrl('c')) {
            self.give_back(sent);
            return Vec::new();
        }
        self.over = Over::Again(sent);
        Vec::new()
    }

    fn enter(&mut self) -> Vec<Do> {
        let bare = self.input.text().trim().is_empty();
        match std::mem::replace(&mut self.aim, Aim::Turn) {
            Aim::File(words) => return self.name_file(words),
            Aim::Turn if self.is_keeping() => {
                self.say("a file is still being sent; press Enter again");
                return Vec::new();
            }
            Aim::Turn if !bare || !self.files.is_empty() => {
                if let Some(why) = self.lack(AgentAbility::Prompt) {
                    self.say(why);
                    return Vec::new();
                }
            }
            aim @ (Aim::Turn | Aim::Guidance | Aim::Edit(_)) => self.aim = aim,
        }
        if bare && (self.aim != Aim::Turn || self.files.is_empty()) {
            return Vec::new();
        }
        let text = self.input.take();
        match std::mem::replace(&mut self.aim, Aim::Turn) {
            Aim::Turn | Aim::File(_) => self.send(text),
            Aim::Guidance => self.call(Asked::Guidance, &["guidance"], json!({"text": text})),
            Aim::Edit(turn) => self.patch(Asked::InboxChange, &["inbox", &turn], json!({"prompt": text})),
        }
    }

    /// Out of guidance or an edit; then a question is put aside, or taken up again.
    fn escape(&mut self) {
        match &self.aim {
            Aim::Guidance => self.aim = Aim::Turn,
            Aim::Edit(_) => {
                self.aim = Aim::Turn;
                self.input = Input::default();
            }
            Aim::File(_) => self.file_key(),
            Aim::Turn => self.aside = self.question().map(|gate| gate.id),
        }
    }

    fn scroll_key(&mut self, key: Key) -> Vec<Do> {
        let height = draw::transcript_rows(self);
        let page = height.saturating_sub(2).max(1);
        let is_row = matches!(key, Key::Up | Key::Down | Key::RowUp | Key::RowDown);
        let by = if is_row { 1 } else { page };
        if key == Key::Bottom {
            self.transcript.down(usize::MAX);
            self.catch_up()
        } else if key == Key::Top {
            self.up(usize::MAX / 2, height)
        } else if matches!(key, Key::Up | Key::RowUp | Key::PageUp) {
            self.up(by, height)
        } else {
            self.down(by)
        }
    }

    fn up(&mut self, by: usize, height: usize) -> Vec<Do> {
        let at_top = self.transcript.up(by, height);
        if at_top { self.older_page() } else { Vec::new() }
    }

    /// Asks for the events before the oldest that are here, once at a time.
    fn older_page(&mut self) -> Vec<Do> {
        match self.transcript.older() {
            Some((after, limit)) if !self.paging => {
                self.paging = true;
                vec![self.page(Asked::Older, after, limit)]
            }
            _ => Vec::new(),
        }
    }

    fn down(&mut self, by: usize) -> Vec<Do> {
        let at_bottom = self.transcript.down(by);
        match self.transcript.newer() {
            Some(after) if at_bottom && !self.paging => {
                self.paging = true;
                vec![self.page(Asked::Newer, after, crate::tui::transcript::PAGE_EVENTS)]
            }
            _ => Vec::new(),
        }
    }
}

/// Editing keys.
pub(crate) fn type_key(input: &mut Input, key: Key) {
    match key {
        Key::Char(letter) => input.insert(letter.encode_utf8(&mut [0; 4])),
        Key::NewLine => input.insert("\n"),
        Key::Backspace => input.backspace(),
        Key::WordBackspace | Key::Ctrl('w') => input.delete_word(),
        Key::WordDelete => input.delete_next_word(),
        Key::Ctrl('u') => input.delete_to_start(),
        Key::Ctrl('k') => input.delete_to_end(),
        Key::Ctrl('y') => input.yank(),
        Key::Delete => input.delete(),
        Key::Left | Key::Ctrl('b') => input.left(),
        Key::Right | Key::Ctrl('f') => input.right(),
        Key::WordLeft => input.word_left(),
        Key::WordRight => input.word_right(),
        Key::Home | Key::Ctrl('a') => input.home(),
        Key::End | Key::Ctrl('e') => input.end(),
        Key::Ctrl(_)
        | Key::Alt(_)
        | Key::RowUp
        | Key::RowDown
        | Key::EntryUp
        | Key::EntryDown
        | Key::Enter
        | Key::Tab
        | Key::BackTab
        | Key::Esc
        | Key::Up
        | Key::Down
        | Key::Top
        | Key::Bottom
        | Key::PageUp
        | Key::PageDown => {}
    }
}
