//! One watcher of a terminal: its own place, and nothing that waits for it. A watcher that takes nothing holds no output:
//! when it takes something again it gets the screen.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use lanyard_agents::terminal::{LiveTerminal, LiveTerminals, Shown, WatcherPlace};
use lanyard_api::types::{StreamFrame, TerminalFrame};
use lanyard_core::SessionId;
use tokio::time::{Instant, timeout_at};

use crate::api::attach::binary;
use lanyard_engine::hub::{HEARTBEAT, control};
use lanyard_engine::presence::PresenceGuard;

/// How long a program that was asked for may take to begin.
const BEGIN_WAIT: Duration = Duration::from_mins(1);

struct Watching {
    terminals: LiveTerminals,
    session: SessionId,
    live: Option<LiveTerminal>,
    place: Option<WatcherPlace>,
    ready: VecDeque<Bytes>,
    /// A program that does not run yet is waited for until then.
    patience: Option<Instant>,
    over: bool,
    /// Present for as long as it watches.
    _seat: PresenceGuard,
}

/// The frames of a watcher, to the end of the program.
pub(super) fn watch(
    terminals: LiveTerminals,
    session: SessionId,
    running: bool,
    hello: Bytes,
    seat: PresenceGuard,
) -> Pin<Box<dyn Stream<Item = Bytes> + Send>> {
    let patience = running.then(|| Instant::now() + BEGIN_WAIT);
    let watching = Watching {
        terminals,
        session,
        live: None,
        place: None,
        ready: VecDeque::from([hello]),
        patience,
        over: false,
        _seat: seat,
    };
    Box::pin(unfold(watching, |mut watching| async move {
        let frame = watching.next().await?;
        Some((frame, watching))
    }))
}

impl Watching {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            if self.over {
                return None;
            }
            match self.live.clone() {
                Some(live) => self.look(&live).await,
                None => self.await_begin().await,
            }
        }
    }

    async fn look(&mut self, live: &LiveTerminal) {
        // Before the look: what changes after it wakes.
        let mut changes = live.screen.changes();
        changes.mark_unchanged();
        match live.screen.after(self.place) {
            Ok(Some((shown, place))) => {
                self.place = Some(place);
                match shown {
                    Shown::Screen { size, bytes } => {
                        let head = TerminalFrame::Screen { cols: size.cols, rows: size.rows };
                        self.ready.push_back(control("screen", &head));
                        self.ready.push_back(binary(&bytes));
                    }
                    Shown::Bytes(bytes) => self.ready.push_back(binary(&bytes)),
                }
            }
            Ok(None) => {
                if timeout_at(Instant::now() + HEARTBEAT, changes.changed()).await.is_err() {
                    self.ready.push_back(control("heartbeat", &StreamFrame::Heartbeat));
                }
            }
            Err(_) => self.end(),
        }
    }

    async fn await_begin(&mut self) {
        let mut changes = self.terminals.changes();
        changes.mark_unchanged();
        if let Some(live) = self.terminals.live(self.session) {
            self.live = Some(live);
            return;
        }
        let Some(until) = self.patience else { return self.end() };
        if timeout_at(until, changes.changed()).await.is_err() {
            self.end();
        }
    }

    fn end(&mut self) {
        self.over = true;
        self.ready.push_back(control("ended", &TerminalFrame::Ended));
    }
}
