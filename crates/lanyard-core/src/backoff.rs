//! Growing pauses between tries. The caller waits; no clock is read here.

use std::time::Duration;

/// Pauses of which each is twice as long as the one before, up to a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    next: Duration,
    max: Duration,
}

impl Backoff {
    #[must_use]
    pub const fn new(first: Duration, max: Duration) -> Self {
        Self { next: first, max }
    }

    /// The pause before the next try.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.max);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(500));
        let pauses: Vec<_> = (0..5).map(|_| backoff.pause().as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 500, 500]);
    }
}
