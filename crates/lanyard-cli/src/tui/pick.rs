//! Choosing a session from a list: those that need an operator first, then the newest. Typing filters.

use lanyard_core::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::attach::type_key;
use super::directory::{Directory, DirectoryShape, Need, need};
use super::input::Input;
use super::key::Key;
use super::message::{Do, Exit, Link, Message, Screen};
use super::paint::{Paint, line, row};
use super::top::row::words;
use crate::render::text::{count, fit, pad};
use crate::render::wrap::columns;

/// Rows around the list: the line one types in, and the foot.
const ROWS_AROUND: u16 = 2;

/// What a session is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Attach,
    /// A command that was given no session.
    Command,
}

impl Purpose {
    const fn label(self) -> &'static str {
        match self {
            Self::Attach => "attach to> ",
            Self::Command => "session> ",
        }
    }

    const fn foot(self) -> &'static str {
        match self {
            Self::Attach => "type to filter · Up Down choose · Enter attaches · Esc leaves",
            Self::Command => "type to filter · Up Down choose · Enter takes it · Esc leaves",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Model {
    paint: Paint,
    purpose: Purpose,
    rows: u16,
    now: Timestamp,
    link: Link,
    directory: Directory,
    input: Input,
}

impl Model {
    pub(crate) fn new(paint: Paint, purpose: Purpose) -> Self {
        Self {
            paint,
            purpose,
            rows: 24,
            now: Timestamp::from_millis(0),
            link: Link::Connecting,
            directory: Directory::new(DirectoryShape::List),
            input: Input::default(),
        }
    }

    fn height(&self) -> usize {
        usize::from(self.rows.saturating_sub(ROWS_AROUND))
    }

    fn key(&mut self, key: Key) -> Vec<Do> {
        let page = isize::try_from(self.height().max(2) - 1).unwrap_or(1);
        if matches!(key, Key::Esc | Key::Ctrl('c' | 'd')) {
            return vec![Do::Leave(Exit::Quit)];
        }
        if key == Key::Enter {
            let chosen = self.directory.chosen();
            return chosen.map(|id| Do::Leave(Exit::Attach(id))).into_iter().collect();
        }
        if matches!(key, Key::Up | Key::Down) {
            self.directory.go(if key == Key::Up { -1 } else { 1 });
        } else if matches!(key, Key::PageUp | Key::PageDown) {
            self.directory.go(if key == Key::PageUp { -page } else { page });
        } else if key != Key::NewLine {
            type_key(&mut self.input, key);
            self.directory.set_filter(self.input.text());
        }
        Vec::new()
    }
}

impl Screen for Model {
    fn update(&mut self, message: Message) -> Vec<Do> {
        match message {
            Message::Key(key) => return self.key(key),
            Message::Paste(text) => {
                self.input.insert(&text.replace('\n', " "));
                self.directory.set_filter(self.input.text());
            }
            Message::Resized { rows, .. } => self.rows = rows,
            Message::Tick(now) | Message::Now(now) => self.now = now,
            Message::Frame(frame) => {
                self.directory.frame(&frame);
            }
            Message::Link(link) => self.link = link,
            Message::Reply(..) => {}
        }
        Vec::new()
    }

    fn settle(&mut self) {
        let height = self.height();
        self.directory.settle(height);
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let head = row(area, 0);
        let label = self.purpose.label();
        line(frame, head, &format!("{label}{}", self.input.text()), self.paint.own());
        let x = columns(label) + columns(self.input.before());
        let x = u16::try_from(x).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
        frame.set_cursor_position(Position::new(area.x + x, area.y));
        let list = Rect { y: area.y + 1.min(area.height), height: area.height.saturating_sub(2), ..area };
        let width = usize::from(area.width);
        for (at, (place, face)) in self.directory.visible(usize::from(list.height)).enumerate() {
            let words = words(&face, self.now);
            let agent = if width < 80 { String::new() } else { pad(&fit(&words.agent, 12), 13) };
            let chosen = self.directory.chosen() == Some(place.id);
            let text = format!(
                "{}{} {} {} {agent}{}",
                words.mark,
                if chosen { ">" } else { " " },
                pad(&fit(&words.state, 14), 14),
                pad(&fit(&words.lasting, 4), 4),
                words.title,
            );
            let style = match need(&face) {
                _ if chosen => self.paint.chosen(),
                Need::Attention => self.paint.loud(),
                Need::Running => Style::new(),
                Need::Resting | Need::Over => self.paint.quiet(),
            };
            let text = if chosen { pad(&fit(&text, width), width) } else { text };
            line(frame, row(list, at), &text, style);
        }
        if self.directory.places().is_empty() {
            let text = match (self.directory.complete, self.input.is_empty()) {
                (false, _) => "reading the directory …".to_owned(),
                (true, true) => "no sessions; `lanyard run \"…\"` begins one".to_owned(),
                (true, false) => format!("none of {} matches", count(self.directory.len(), "session")),
            };
            line(frame, row(list, 0), &text, self.paint.quiet());
        }
        let foot = match self.link {
            Link::Down => "no daemon: `lanyard up` starts it",
            Link::Up | Link::Connecting => self.purpose.foot(),
        };
        line(frame, row(area, usize::from(area.height.saturating_sub(1))), foot, self.paint.quiet());
    }
}
