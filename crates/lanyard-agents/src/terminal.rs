//! Programs on terminals: what of their output reaches people, the screen that stands for it, and what is kept of it
//! after the run.

mod kept;
mod screen;
mod sieve;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use lanyard_api::agents::settings::{AgentSettings, DriverKind};
use lanyard_core::{Session, SessionId};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use crate::runs::{Link, LinkError, Sent};
use lanyard_core::session::WindowSize;

use kept::read_recording;
pub use kept::{KeptRun, TerminalArchive};
pub(crate) use screen::AnsweredQuery;
pub use screen::{Ended, ScreenText, Shown, TerminalScreen, WatcherPlace};

/// Changes of a window's size that may wait for the runner.
const RESIZES_MAX: usize = 8;

/// The programs on terminals that run now, by their sessions; and what is kept of those that ran.
#[derive(Debug, Clone)]
pub struct LiveTerminals {
    live: Arc<Mutex<HashMap<SessionId, LiveTerminal>>>,
    changes: watch::Sender<u64>,
    archive: TerminalArchive,
}

/// A program on a terminal, as the API has to do with it.
#[derive(Debug, Clone)]
pub struct LiveTerminal {
    pub screen: Arc<TerminalScreen>,
    link: Link,
    resizes: mpsc::Sender<ResizeOrder>,
}

/// A size, and who waits for it.
#[derive(Debug)]
pub(crate) struct ResizeOrder {
    pub(crate) key: String,
    pub(crate) size: WindowSize,
    pub(crate) done: oneshot::Sender<Result<(), LinkError>>,
}

impl LiveTerminals {
    #[must_use]
    pub fn new(archive: TerminalArchive) -> Self {
        Self { live: Arc::default(), changes: watch::channel(0).0, archive }
    }

    #[must_use]
    pub fn archive(&self) -> &TerminalArchive {
        &self.archive
    }

    #[must_use]
    pub fn live(&self, session: SessionId) -> Option<LiveTerminal> {
        self.live.lock().get(&session).cloned()
    }

    /// Tells when a program begins or ends.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A program can be watched and typed into from now on.
    pub(crate) fn begin(
        &self,
        session: SessionId,
        screen: Arc<TerminalScreen>,
        link: Link,
    ) -> mpsc::Receiver<ResizeOrder> {
        let (resizes, ordered) = mpsc::channel(RESIZES_MAX);
        self.live.lock().insert(session, LiveTerminal { screen, link, resizes });
        self.changes.send_modify(|changes| *changes += 1);
        ordered
    }

    pub(crate) fn end(&self, session: SessionId) {
        self.live.lock().remove(&session);
        self.changes.send_modify(|changes| *changes += 1);
    }
}

impl LiveTerminal {
    /// Types, once per key.
    pub async fn input(&self, key: &str, bytes: &[u8]) -> Result<Sent, LinkError> {
        self.link.send(key, bytes).await
    }

    /// Gives the window another size, once per key.
    pub async fn resize(&self, key: String, size: WindowSize) -> Result<(), LinkError> {
        let (done, waits) = oneshot::channel();
        // The runner reads the output and so knows what was written for which size.
        self.resizes.send(ResizeOrder { key, size, done }).await.map_err(|_| LinkError::Ended)?;
        waits.await.unwrap_or(Err(LinkError::Ended))
    }

    /// The recording so far. Blocks.
    pub fn recording(&self) -> io::Result<Vec<u8>> {
        read_recording(&self.link.recording())
    }
}

/// The settings of a session's runs: those of its agent, for the program that the session names.
#[must_use]
pub fn settings_of(session: &Session, settings: AgentSettings) -> AgentSettings {
    let Some(terminal) = &session.terminal else { return settings };
    AgentSettings {
        driver: DriverKind::Terminal,
        command: terminal.command.clone(),
        // People sit in front of it: it is not ended because nothing is asked of it.
        keep_alive_ms: 0,
        auto_resume: false,
        ..settings
    }
}
