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
use rustix::event::{PollFd, PollFlags, Timespec};
use tokio::sync::mpsc;

use super::key::{Heard, heard};
use crate::failure::Failure;

/// A whole screen with its colours goes out in one piece.
const OUT_BYTES: usize = 64 * 1024;
/// Keys that may wait. Faster input is a paste, and is read as one.
const KEYS_MAX: usize = 256;
/// How often the thread that listens looks whether it is still wanted: fifty milliseconds.
const LISTEN_NS: i64 = 50_000_000;
/// How long it is waited for when the terminal is given back: a few of those.
const JOIN_LOOK: Duration = Duration::from_millis(5);
const JOIN_LOOKS: u32 = 40;

/// While it lives, the terminal is a screen. Dropping it gives the terminal back.
pub(crate) struct Term {
    pub(crate) terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    keys: mpsc::Receiver<Heard>,
    ended: Arc<AtomicBool>,
    listener: std::thread::JoinHandle<()>,
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
        Ok(Self { terminal, keys, ended, listener })
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
        // What it reads from here on would be lost to the shell, so it is waited for; but not when it hangs in a
        // terminal that is gone.
        for _ in 0..JOIN_LOOKS {
            if self.listener.is_finished() {
                break;
            }
            std::thread::sleep(JOIN_LOOK);
        }
        restore();
    }
}

fn listen(sender: &mpsc::Sender<Heard>, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) && is_there() {
        // Not waited for here: `is_there` waits. A change of size comes without anything to read.
        while let Ok(true) = poll(Duration::ZERO) {
            let Ok(event) = read() else { return };
            if let Some(heard) = heard(event)
                && sender.blocking_send(heard).is_err()
            {
                return;
            }
        }
    }
}

/// Waits a moment for something to read. False when the terminal was hung up: crossterm would read from it for ever.
fn is_there() -> bool {
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let moment = Timespec { tv_sec: 0, tv_nsec: LISTEN_NS };
    match rustix::event::poll(&mut fds, Some(&moment)) {
        Ok(_) => !fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
        Err(error) => error == rustix::io::Errno::INTR,
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
