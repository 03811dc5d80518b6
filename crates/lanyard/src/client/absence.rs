//! The wait for a daemon that went away: one bound for every command that follows something.

use std::time::Duration;

use lanyard_core::Backoff;
use tokio::time::Instant;

use crate::context::Context;
use crate::failure::Failure;

/// The pauses between retries.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// Retries of one connection, from the loss of the daemon until it answers again.
#[derive(Debug)]
pub(crate) struct Absence {
    bound: Duration,
    until: Option<Instant>,
    backoff: Backoff,
}

impl Absence {
    pub(crate) fn new(context: &Context) -> Self {
        Self { bound: context.daemon_wait, until: None, backoff: BACKOFF }
    }

    /// Starts the bound. Returns the sentence to print, once for each absence.
    pub(crate) fn begins(&mut self) -> Option<String> {
        if self.until.is_some() {
            return None;
        }
        self.until = Some(Instant::now() + self.bound);
        let bound = self.bound.as_secs();
        Some(format!("the daemon is gone; start it with `lanyard up --detach` (waiting up to {bound} s)"))
    }

    /// Whether the daemon is gone at the moment.
    pub(crate) fn lasts(&self) -> bool {
        self.until.is_some()
    }

    /// The daemon answers again.
    pub(crate) fn ends(&mut self) {
        (self.until, self.backoff) = (None, BACKOFF);
    }

    /// Waits before the next try. Fails once the bound is over; `next` is the command that continues.
    pub(crate) async fn pause(&mut self, next: &str) -> Result<(), Failure> {
        let until = *self.until.get_or_insert_with(|| Instant::now() + self.bound);
        if Instant::now() >= until {
            let title = format!("the daemon did not come back within {} s", self.bound.as_secs());
            let advice = format!("start it with `lanyard up --detach`, then continue with `{next}`");
            return Err(Failure::unreachable("daemon_gone", title, advice));
        }
        tokio::time::sleep_until(until.min(Instant::now() + self.backoff.pause())).await;
        Ok(())
    }
}
