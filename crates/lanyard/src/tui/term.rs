//! The terminal: taken over for a screen, and given back however the screen ends, by a panic too.

use std::io::{BufWriter, Stdout, Write, stdout};
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, poll, read};
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use tokio::sync::mpsc;

use super::key::{Heard, heard};
use crate::failure::Failure;

/// A whole screen with its colours goes out in one piece.
const OUT_BYTES: usize = 64 * 1024;
/// Keys that may wait. Whoever types faster than this is a paste, and comes as one.
const KEYS_MAX: usize = 256;
/// How often the thread that listens looks whether it is still wanted.
const LISTEN: Duration = Duration::from_millis(50);

/// While it lives, the terminal is a screen. Dropping it gives the terminal back.
pub(crate) struct Term {
    pub(crate) terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    keys: mpsc::Receiver<Heard>,
    ended: Arc<AtomicBool>,
    listener: Option<std::thread::JoinHandle<()>>,
}

impl Term {
    pub(crate) fn open() -> Result<Self, Failure> {
        restore_on_panic();
        let unusable = |error: std::io::Error| {
            Failure::local("terminal_unusable", format!("cannot use the terminal: {error}"), "")
        };
        enable_raw_mode().map_err(unusable)?;
        let screen = || {
            // Wiped by hand: ratatui would first ask the terminal where its cursor is, and not every one answers.
            execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, Clear(ClearType::All))?;
            Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(OUT_BYTES, stdout())))
        };
        let terminal = screen().map_err(|error| {
            restore();
            unusable(error)
        })?;
        let (sender, keys) = mpsc::channel(KEYS_MAX);
        let ended = Arc::new(AtomicBool::new(false));
        let listener = std::thread::spawn({
            let ended = ended.clone();
            move || listen(&sender, &ended)
        });
        Ok(Self { terminal, keys, ended, listener: Some(listener) })
    }

    /// The next thing the user does; `None` when the terminal is gone.
    pub(crate) async fn next(&mut self) -> Option<Heard> {
        self.keys.recv().await
    }

    pub(crate) fn next_if_ready(&mut self) -> Option<Heard> {
        self.keys.try_recv().ok()
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.keys.close();
        if let Some(listener) = self.listener.take() {
            // It looks every few moments whether it is wanted; what it reads after that would be lost to the shell.
            let _ = listener.join();
        }
        restore();
    }
}

fn listen(sender: &mpsc::Sender<Heard>, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        match poll(LISTEN) {
            Ok(false) => {}
            Ok(true) => match read() {
                Ok(event) => {
                    if let Some(heard) = heard(event)
                        && sender.blocking_send(heard).is_err()
                    {
                        return;
                    }
                }
                Err(_) => return,
            },
            Err(_) => return,
        }
    }
}

/// Gives the terminal back. Nothing can be done about a terminal that takes nothing any more.
fn restore() {
    let mut out = stdout();
    let _ = execute!(out, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
    let _ = out.flush();
    let _ = disable_raw_mode();
}

/// Words of a panic belong on the terminal as it was before.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}
