//! This terminal in raw mode: bytes as they are typed. Dropped, it is as it was.

use std::io::{Read, Write, stdin, stdout};

use lanyard_core::session::WindowSize;
use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode, size};
use tokio::sync::mpsc;

use super::pane::{ENTER, LEAVE};
use crate::failure::Failure;

/// Pieces of typing that may wait.
const PIECES_MAX: usize = 64;
const PIECE_BYTES: usize = 4 * 1024;

pub(super) struct RawTerminal {
    pub(super) typed: mpsc::Receiver<Vec<u8>>,
}

fn unusable(error: &std::io::Error) -> Failure {
    Failure::local("terminal_unusable", format!("cannot use the terminal: {error}"), "")
}

impl RawTerminal {
    pub(super) fn open() -> Result<Self, Failure> {
        enable_raw_mode().map_err(|error| unusable(&error))?;
        let (sender, typed) = mpsc::channel(PIECES_MAX);
        // It ends with the process, or with the terminal: nothing else is read from it after this command.
        std::thread::spawn(move || {
            let mut piece = [0; PIECE_BYTES];
            while let Ok(read @ 1..) = stdin().lock().read(&mut piece) {
                if sender.blocking_send(piece[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        let raw = Self { typed };
        draw(ENTER)?;
        Ok(raw)
    }
}

pub(super) fn draw(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| unusable(&error))
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = draw(LEAVE);
        let _ = disable_raw_mode();
    }
}

/// The size of this terminal.
pub(super) fn local_size() -> WindowSize {
    size().map_or_else(|_| WindowSize::default(), |(cols, rows)| WindowSize { cols, rows })
}
