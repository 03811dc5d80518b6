//! The wait for a daemon that went away: one backoff, and one bound for everything that follows something.

use std::time::Duration;

use lanyard_core::Backoff;
use tokio::time::Instant;

/// The pauses between tries to reach a daemon.
pub const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// Retries of one connection, from the loss of the daemon until it answers again.
#[derive(Debug)]
pub(crate) struct Absence {
    /// `None` waits for as long as it takes.
    bound: Option<Duration>,
    since: Option<Instant>,
    backoff: Backoff,
}

/// The bound of the wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BoundOver(pub(crate) Duration);

impl Absence {
    pub(crate) fn within(bound: Option<Duration>) -> Self {
        Self { bound, since: None, backoff: BACKOFF }
    }

    /// Starts the wait. True at its beginning, once for each absence.
    pub(crate) fn begins(&mut self) -> bool {
        let is_new = self.since.is_none();
        self.since.get_or_insert_with(Instant::now);
        is_new
    }

    /// Whether the daemon is away at the moment.
    pub(crate) fn lasts(&self) -> bool {
        self.since.is_some()
    }

    /// The daemon answers again.
    pub(crate) fn ends(&mut self) {
        (self.since, self.backoff) = (None, BACKOFF);
    }

    pub(crate) fn bound(&self) -> Option<Duration> {
        self.bound
    }

    /// Waits before the next try. Fails once the bound is over.
    pub(crate) async fn pause(&mut self) -> Result<(), BoundOver> {
        let since = *self.since.get_or_insert_with(Instant::now);
        let next = Instant::now() + self.backoff.pause();
        let Some(bound) = self.bound else {
            tokio::time::sleep_until(next).await;
            return Ok(());
        };
        let until = since + bound;
        if Instant::now() >= until {
            return Err(BoundOver(bound));
        }
        tokio::time::sleep_until(until.min(next)).await;
        Ok(())
    }
}
