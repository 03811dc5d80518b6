//! The screen of all sessions: families as trees, what each does, what it waits for, and keys to step in.

mod draw;
mod gates;
mod keys;
pub(crate) mod row;
#[cfg(test)]
mod tests;

use lanyard_api::types::HaltState;
use lanyard_core::{SessionId, Timestamp};
use ratatui::Frame;

use lanyard_client::Route;

use super::directory::{Directory, DirectoryShape};
use super::input::Input;
use super::message::{Asked, Call, Do, Link, Message, RowVerb, Screen};
use super::paint::Paint;
use gates::{Answering, Gates};

/// Sessions whose details are asked for at one tick.
const DETAILS_PER_TICK: usize = 8;
const NOTICE_TICKS: u32 = 24;
/// How long something must have been on the screen before a key can hit it.
const SETTLE_MS: u64 = 700;
/// Rows around the list: the head, the titles, the foot.
const ROWS_AROUND: u16 = 3;

/// What lies over the list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Over {
    Nothing,
    Help,
    Confirm(RowVerb, SessionId),
    Guide(SessionId, Input),
    Filter(Input),
    Answer(Box<Answering>),
}

#[derive(Debug)]
pub(crate) struct Model {
    paint: Paint,
    columns: u16,
    rows: u16,
    now: Timestamp,
    link: Link,
    pub(crate) directory: Directory,
    /// What flows ask; it comes first.
    gates: Gates,
    over: Over,
    /// All work is halted: since when, by whom and why.
    halt: HaltState,
    /// Another session than the one a person chose is under the cursor; keys do nothing to it before this time.
    moved_until: Option<Timestamp>,
    /// What happened, whether it is bad, and for how many ticks it is shown.
    notice: Option<(String, bool, u32)>,
}

impl Model {
    pub(crate) fn new(paint: Paint) -> Self {
        Self {
            paint,
            columns: 80,
            rows: 24,
            now: Timestamp::from_millis(0),
            link: Link::Connecting,
            directory: Directory::new(DirectoryShape::Tree),
            gates: Gates::default(),
            over: Over::Nothing,
            halt: HaltState::default(),
            moved_until: None,
            notice: None,
        }
    }

    fn height(&self) -> usize {
        usize::from(self.rows.saturating_sub(ROWS_AROUND)).saturating_sub(self.gates.rows())
    }

    fn say(&mut self, text: impl Into<String>) {
        self.notice = Some((text.into(), false, NOTICE_TICKS));
    }

    fn warn(&mut self, text: impl Into<String>) {
        self.notice = Some((text.into(), true, NOTICE_TICKS * 2));
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Do> {
        self.now = now;
        if let Some((_, _, ticks)) = &mut self.notice {
            *ticks = ticks.saturating_sub(1);
        }
        if matches!(self.notice, Some((_, _, 0))) {
            self.notice = None;
        }
        if self.link != Link::Up {
            return Vec::new();
        }
        let wanted = self.directory.wanting(self.height(), DETAILS_PER_TICK);
        let detail =
            |id: SessionId| Do::Call(Asked::Detail(id), Call::get(Route::to(&["sessions", &id.to_string()])));
        let looks = self.gates.tick().into_iter().flat_map(|gates| {
            // Looked at as often as the gates: both say that something waits for a person.
            [gates, Do::Call(Asked::Halt, Call::get(Route::to(&["halt"])))]
        });
        looks.chain(wanted.into_iter().map(detail)).collect()
    }
}

impl Screen for Model {
    fn update(&mut self, message: Message) -> Vec<Do> {
        match message {
            Message::Key(key) => return self.key(key),
            Message::Paste(text) => self.paste(&text),
            Message::Resized { columns, rows } => (self.columns, self.rows) = (columns, rows),
            Message::Tick(now) => return self.tick(now),
            Message::Now(now) => self.now = now,
            Message::Frame(frame) => {
                self.directory.frame(&frame);
            }
            Message::Link(link) => self.link = link,
            Message::Reply(Asked::Detail(id), Ok(value)) => self.directory.detail(id, &value),
            Message::Reply(Asked::Row(id, verb), Ok(_)) => self.done(id, verb),
            Message::Reply(Asked::Gates, Ok(value)) => self.gates_came(value),
            Message::Reply(Asked::Halt, Ok(value)) => {
                self.halt = serde_json::from_value(value).unwrap_or_default();
            }
            Message::Reply(Asked::Answer(gate), Ok(_)) => self.answered(gate),
            Message::Reply(asked @ (Asked::Row(..) | Asked::Answer(_)), Err(refused)) => {
                self.not_answered(asked);
                let text = format!("{} [{}]; {}", refused.title, refused.code, refused.advice);
                self.warn(text.trim_end_matches("; "));
            }
            // Details come again with the next change.
            Message::Reply(..) => {}
        }
        Vec::new()
    }

    fn settle(&mut self) {
        let height = self.height();
        let chosen = self.directory.chosen();
        self.directory.settle(height);
        if chosen.is_some() && self.directory.chosen() != chosen {
            self.moved_until = Some(self.now.plus_millis(SETTLE_MS));
        }
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        draw::draw(self, frame);
    }
}
