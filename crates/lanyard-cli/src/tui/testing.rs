//! Fixtures for the tests of screens: events and frames as they come over the wire, keys as text, screens as text.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use super::key::Key;
use super::message::{Do, Message, Screen};

pub(crate) const SESSION: &str = "sess_01m7n5djg0fayvh8t5cxyjkdnf";

/// An event at second `seq` of a morning.
pub(crate) fn event(seq: u64, kind: &str, data: &Value) -> Value {
    json!({
        "seq": seq, "session": SESSION, "at": format!("2026-11-15T08:{:02}:{:02}Z", (seq / 60) % 60, seq % 60),
        "actor": {"kind": "operator", "name": "somebody"}, "type": kind, "data": data,
    })
}

/// Presses keys: `a`, `ctrl-g`, `enter`, `"words"` for many letters.
pub(crate) fn press(screen: &mut impl Screen, keys: &str) -> Vec<Do> {
    let mut done = Vec::new();
    let mut rest = keys.trim();
    while !rest.is_empty() {
        let (word, tail) = match rest.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
            Some((words, tail)) => {
                for letter in words.chars() {
                    done.extend(screen.update(Message::Key(Key::Char(letter))));
                }
                rest = tail.trim_start();
                continue;
            }
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        done.extend(screen.update(Message::Key(key(word))));
        rest = tail.trim_start();
    }
    done
}

fn key(word: &str) -> Key {
    match word {
        "enter" => Key::Enter,
        "newline" => Key::NewLine,
        "tab" => Key::Tab,
        "backtab" => Key::BackTab,
        "esc" => Key::Esc,
        "backspace" => Key::Backspace,
        "entryup" => Key::EntryUp,
        "entrydown" => Key::EntryDown,
        "rowup" => Key::RowUp,
        "rowdown" => Key::RowDown,
        "worddelete" => Key::WordDelete,
        "wordleft" => Key::WordLeft,
        "up" => Key::Up,
        "down" => Key::Down,
        "end" => Key::End,
        "home" => Key::Home,
        "top" => Key::Top,
        "bottom" => Key::Bottom,
        "pageup" => Key::PageUp,
        "pagedown" => Key::PageDown,
        word => match word.split_once('-') {
            Some(("ctrl", letter)) => Key::Ctrl(letter.chars().next().unwrap()),
            Some(("alt", letter)) => Key::Alt(letter.chars().next().unwrap()),
            _ => Key::Char(word.chars().next().unwrap()),
        },
    }
}

/// What is done, one line each, without what is the same every time.
pub(crate) fn done(all: &[Do]) -> String {
    all.iter().fold(String::new(), |text, one| {
        let line = match one {
            Do::Call(asked, call) => {
                let body = if call.body.is_null() { String::new() } else { format!(" {}", call.body) };
                let route = call.route.as_str().replace("/api/v1", "").replace(SESSION, "S");
                format!("{asked:?}: {:?} {route}{body}", call.method)
            }
            Do::Keep(asked, named) => format!("{asked:?}: keep {named}"),
            Do::Leave(exit) => format!("leave: {exit:?}"),
        };
        text + &line + "\n"
    })
}

/// The screen as text. The cursor is shown as `▏` where it stands.
pub(crate) fn picture(screen: &mut impl Screen, columns: u16, rows: u16) -> String {
    screen.update(Message::Resized { columns, rows });
    screen.settle();
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    let backend = terminal.backend();
    let cursor = backend.cursor_visible().then(|| backend.cursor_position());
    let buffer = backend.buffer();
    let mut text = String::new();
    for y in 0..rows {
        let mut line = String::new();
        for x in 0..columns {
            if cursor.is_some_and(|at| (at.x, at.y) == (x, y)) {
                line.push('▏');
            } else {
                line.push_str(buffer[(x, y)].symbol());
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
