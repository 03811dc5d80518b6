//! Keys as the screens know them: one value per thing a person can press.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Ctrl(char),
    Alt(char),
    Enter,
    /// Enter with Alt or Shift, where the terminal tells them apart, or Ctrl-J.
    NewLine,
    Tab,
    BackTab,
    Esc,
    Backspace,
    WordBackspace,
    WordDelete,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Up,
    Down,
    /// Up and Down with Shift.
    RowUp,
    RowDown,
    /// Up and Down with Alt or Ctrl.
    EntryUp,
    EntryDown,
    Home,
    End,
    Top,
    Bottom,
    PageUp,
    PageDown,
}

impl Key {
    /// The letter, of a key that is one.
    pub(crate) fn letter(self) -> Option<char> {
        if let Self::Char(letter) = self { Some(letter) } else { None }
    }
}

/// What came from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    Key(Key),
    Paste(String),
    Resized { columns: u16, rows: u16 },
}

/// What an event of the terminal means; nothing for those no screen has a use for.
pub(crate) fn heard(event: Event) -> Option<Heard> {
    match event {
        Event::Key(key) => named(key).map(Heard::Key),
        Event::Paste(text) => Some(Heard::Paste(text)),
        Event::Resize(columns, rows) => Some(Heard::Resized { columns, rows }),
        Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
    }
}

fn named(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
    let alt = event.modifiers.contains(KeyModifiers::ALT);
    let shift = event.modifiers.contains(KeyModifiers::SHIFT);
    Some(match event.code {
        // What a terminal sends for Ctrl-J; Enter is Ctrl-M.
        KeyCode::Char('j') if ctrl => Key::NewLine,
        // Ctrl-H is what many terminals send for Backspace.
        KeyCode::Char('h') if ctrl => Key::Backspace,
        KeyCode::Char(letter) if ctrl => Key::Ctrl(letter.to_ascii_lowercase()),
        KeyCode::Char('b') if alt => Key::WordLeft,
        KeyCode::Char('f') if alt => Key::WordRight,
        KeyCode::Char('d') if alt => Key::WordDelete,
        KeyCode::Char(letter) if alt => Key::Alt(letter.to_ascii_lowercase()),
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::Enter if alt || shift => Key::NewLine,
        KeyCode::Enter => Key::Enter,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace if alt || ctrl => Key::WordBackspace,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete if alt || ctrl => Key::WordDelete,
        KeyCode::Delete => Key::Delete,
        KeyCode::Left if ctrl || alt => Key::WordLeft,
        KeyCode::Right if ctrl || alt => Key::WordRight,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Up if ctrl || alt => Key::EntryUp,
        KeyCode::Down if ctrl || alt => Key::EntryDown,
        KeyCode::Up if shift => Key::RowUp,
        KeyCode::Down if shift => Key::RowDown,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Home if ctrl => Key::Top,
        KeyCode::End if ctrl => Key::Bottom,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Insert
        | KeyCode::F(_)
        | KeyCode::Null
        | KeyCode::CapsLock
        | KeyCode::ScrollLock
        | KeyCode::NumLock
        | KeyCode::PrintScreen
        | KeyCode::Pause
        | KeyCode::Menu
        | KeyCode::KeypadBegin
        | KeyCode::Media(_)
        | KeyCode::Modifier(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode, modifiers: KeyModifiers) -> Option<Heard> {
        heard(Event::Key(KeyEvent::new(code, modifiers)))
    }

    #[test]
    fn keys_have_one_name_each() {
        let none = KeyModifiers::NONE;
        assert_eq!(key(KeyCode::Char('Q'), KeyModifiers::SHIFT), Some(Heard::Key(Key::Char('Q'))));
        assert_eq!(key(KeyCode::Char('G'), KeyModifiers::CONTROL), Some(Heard::Key(Key::Ctrl('g'))));
        assert_eq!(key(KeyCode::Char('j'), KeyModifiers::CONTROL), Some(Heard::Key(Key::NewLine)));
        assert_eq!(key(KeyCode::Enter, none), Some(Heard::Key(Key::Enter)));
        assert_eq!(key(KeyCode::Enter, KeyModifiers::ALT), Some(Heard::Key(Key::NewLine)));
        assert_eq!(key(KeyCode::F(1), none), None);
        for (code, modifiers, expected) in [
            (KeyCode::Char('d'), KeyModifiers::ALT, Key::WordDelete),
            (KeyCode::Char('b'), KeyModifiers::ALT, Key::WordLeft),
            (KeyCode::Char('T'), KeyModifiers::ALT, Key::Alt('t')),
            (KeyCode::Up, KeyModifiers::ALT, Key::EntryUp),
            (KeyCode::Down, KeyModifiers::CONTROL, Key::EntryDown),
            (KeyCode::Up, KeyModifiers::SHIFT, Key::RowUp),
            (KeyCode::Up, none, Key::Up),
        ] {
            assert_eq!(key(code, modifiers), Some(Heard::Key(expected)));
        }
        let mut released = KeyEvent::new(KeyCode::Enter, none);
        released.kind = KeyEventKind::Release;
        assert_eq!(heard(Event::Key(released)), None);
    }
}
