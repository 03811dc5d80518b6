//! How things look. Colour only repeats what the words say; without it weight is left.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use crate::render::text::{fit, pad};
use crate::render::wrap::{columns, wrap};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Paint {
    pub(crate) colour: bool,
}

impl Paint {
    /// By the user's `NO_COLOR` (<https://no-color.org>).
    pub(crate) fn from_env() -> Self {
        let asked = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colour: !asked && std::env::var_os("TERM").is_none_or(|term| term != "dumb") }
    }

    fn tinted(self, style: Style, colour: Color) -> Style {
        if self.colour { style.fg(colour) } else { style }
    }

    #[expect(
        clippy::unused_self,
        reason = "looks are asked for in one place, whether or not they have a colour"
    )]
    pub(crate) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    #[expect(
        clippy::unused_self,
        reason = "looks are asked for in one place, whether or not they have a colour"
    )]
    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Needs an operator.
    pub(crate) fn loud(self) -> Style {
        self.tinted(self.strong(), Color::Yellow)
    }

    pub(crate) fn bad(self) -> Style {
        self.tinted(self.strong(), Color::Red)
    }

    pub(crate) fn good(self) -> Style {
        self.tinted(Style::new(), Color::Green)
    }

    pub(crate) fn own(self) -> Style {
        self.tinted(self.strong(), Color::Cyan)
    }

    #[expect(
        clippy::unused_self,
        reason = "looks are asked for in one place, whether or not they have a colour"
    )]
    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

/// A line of text, cut to the room there is.
pub(crate) fn line(frame: &mut Frame<'_>, area: Rect, text: &str, style: Style) {
    let text = fit(text, usize::from(area.width));
    frame.render_widget(Line::styled(text, style), area);
}

/// One text at the left, one at the right; the right one gives way when there is no room.
pub(crate) fn both_ends(frame: &mut Frame<'_>, area: Rect, left: (&str, Style), right: (&str, Style)) {
    let width = usize::from(area.width);
    let fits = columns(left.0).min(width / 2) + columns(right.0) + 2 <= width;
    let room = if fits { width - columns(right.0) - 2 } else { width };
    line(frame, Rect { width: u16::try_from(room).unwrap_or(area.width), ..area }, left.0, left.1);
    if fits && !right.0.is_empty() {
        let at = u16::try_from(width - columns(right.0)).unwrap_or(0);
        let rest = Rect { x: area.x + at, width: area.width - at, ..area };
        frame.render_widget(Span::styled(right.0.to_owned(), right.1), rest);
    }
}

/// Rows of words in a box in the middle of the screen.
pub(crate) fn overlay(frame: &mut Frame<'_>, title: &str, rows: Vec<Line<'_>>, foot: &str) {
    let area = frame.area();
    let widest =
        rows.iter().map(Line::width).chain([columns(title) + 2, columns(foot) + 2]).max().unwrap_or(0);
    let width = u16::try_from(widest + 4).unwrap_or(u16::MAX).min(area.width);
    let height = u16::try_from(rows.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let block = Block::bordered().title(format!(" {title} ")).title_bottom(format!(" {foot} "));
    let inner = block.inner(place);
    frame.render_widget(Clear, place);
    frame.render_widget(block, place);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    frame.render_widget(Paragraph::new(rows), inner);
}

/// As many hints as there is room for, the first first; how to get help is always among them.
pub(crate) fn hints(parts: &[&str], width: usize) -> String {
    const HELP: &str = "? help";
    let mut text = String::new();
    for part in parts {
        if columns(&text) + columns(part) + 3 + columns(HELP) > width {
            break;
        }
        text.push_str(part);
        text.push_str(" · ");
    }
    text + HELP
}

/// A page of keys in a box: what one presses, and what it does, broken into rows where the screen is narrow.
pub(crate) fn key_page(frame: &mut Frame<'_>, keys: &[(&str, &str)]) {
    let first = keys.iter().map(|(key, _)| columns(key)).max().unwrap_or(0) + 2;
    let width = usize::from(frame.area().width).saturating_sub(4);
    let indent = " ".repeat(first);
    let rows: Vec<Line<'_>> = keys
        .iter()
        .flat_map(|(key, what)| wrap(what, width, &pad(key, first), &indent))
        .map(Line::from)
        .collect();
    overlay(frame, "Keys", rows, "any key closes");
}

/// Where a row of an area is; one below its end has no height.
pub(crate) fn row(area: Rect, at: usize) -> Rect {
    let at = u16::try_from(at).unwrap_or(u16::MAX).min(area.height);
    Rect { y: area.y + at, height: u16::from(at < area.height), ..area }
}
