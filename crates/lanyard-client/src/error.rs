//! Why a request has no answer, or a negative one.

use std::path::PathBuf;
use std::time::Duration;

use lanyard_api::names::DAEMON_AWAY;
use lanyard_api::types::Problem;

/// From this HTTP status on the daemon failed, not the request.
const TROUBLE: u16 = 500;
/// Refusals of the moment: request timeout, too early, too many.
const BUSY: [u16; 3] = [408, 425, 429];

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no daemon answers")]
    Away,
    #[error("cannot connect to {path}")]
    Socket { path: PathBuf, source: std::io::Error },
    #[error("cannot read the token {path}")]
    Token { path: PathBuf, source: std::io::Error },
    #[error("`{0}` is no address of a daemon")]
    Address(String),
    #[error("the connection broke before an answer")]
    Broken,
    #[error("the daemon did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// The daemon's refusal.
    #[error("{}", .0.title)]
    Refused(Box<Problem>),
    #[error("the daemon's answer cannot be understood")]
    Unreadable(#[source] serde_json::Error),
    #[error("the request cannot be written: {0}")]
    Unwritable(String),
    #[error("cannot make a random key: {0}")]
    NoRandomness(String),
    /// The bound of the wait for a daemon is over. `again` is what continues, as the caller named it.
    #[error("the daemon did not come back within {} s", bound.as_secs())]
    StayedAway { bound: Duration, again: String },
}

impl ClientError {
    /// Whether the same request may succeed later: no daemon answers, or it is in trouble or too busy at the moment.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused(problem) => is_passing_status(problem.status),
            Self::Away
            | Self::Socket { .. }
            | Self::Token { .. }
            | Self::Broken
            | Self::Silent(_)
            | Self::StayedAway { .. } => true,
            Self::Address(_) | Self::Unreadable(_) | Self::Unwritable(_) | Self::NoRandomness(_) => false,
        }
    }

    /// Whether no daemon answers at the moment. The relay of an agent's run says so in the daemon's place.
    #[must_use]
    pub fn is_down(&self) -> bool {
        match self {
            Self::Refused(problem) => problem.code == DAEMON_AWAY,
            Self::Away
            | Self::Socket { .. }
            | Self::Token { .. }
            | Self::Broken
            | Self::Silent(_)
            | Self::StayedAway { .. } => true,
            Self::Address(_) | Self::Unreadable(_) | Self::Unwritable(_) | Self::NoRandomness(_) => false,
        }
    }

    /// Whether the daemon refuses this to the token that was sent.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self.status(), Some(401 | 403))
    }

    /// Whether what the route names does not exist, or no longer.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self.status(), Some(404 | 410))
    }

    #[must_use]
    pub fn is_code(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused(problem) if problem.code == wanted)
    }

    /// The same error, with what continues after a daemon that stayed away.
    #[must_use]
    pub fn continued_by(self, next: String) -> Self {
        match self {
            Self::StayedAway { bound, .. } => Self::StayedAway { bound, again: next },
            Self::Away
            | Self::Socket { .. }
            | Self::Token { .. }
            | Self::Address(_)
            | Self::Broken
            | Self::Silent(_)
            | Self::Refused(_)
            | Self::Unreadable(_)
            | Self::Unwritable(_)
            | Self::NoRandomness(_) => self,
        }
    }

    fn status(&self) -> Option<u16> {
        if let Self::Refused(problem) = self { Some(problem.status) } else { None }
    }
}

/// Whether a status tells of trouble that passes.
#[must_use]
pub fn is_passing_status(status: u16) -> bool {
    status >= TROUBLE || BUSY.contains(&status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str) -> ClientError {
        let (kind, title, advice) = ("about:blank".to_owned(), String::new(), String::new());
        ClientError::Refused(Box::new(Problem { kind, status, code: code.to_owned(), title, advice }))
    }

    #[test]
    fn only_trouble_of_the_daemon_passes() {
        for (status, passing) in [
            (400, false),
            (404, false),
            (409, false),
            (408, true),
            (425, true),
            (429, true),
            (500, true),
            (503, true),
        ] {
            assert_eq!(refused(status, "x").is_passing(), passing, "{status}");
        }
        assert!(ClientError::Away.is_passing());
        assert!(!ClientError::Address("x".to_owned()).is_passing());
    }

    #[test]
    fn a_run_s_relay_says_that_the_daemon_is_down() {
        assert!(refused(503, DAEMON_AWAY).is_down());
        assert!(!refused(503, "overloaded").is_down());
        assert!(ClientError::Broken.is_down());
    }
}
