//! Links with which somebody may look at one session, and the kind of program that uses a token.

use lanyard_core::{SessionId, Timestamp, TokenId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shortest life of a share link: a minute.
pub const SHARE_MS_MIN: u64 = 60 * 1_000;
/// The longest: 30 days, as long as a browser stays signed in.
pub const SHARE_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1_000;

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewShare {
    /// The reader, as lists show it; `shared` when absent.
    pub name: Option<String>,
    /// Milliseconds until the link ends, from a minute to 30 days; seven days when absent.
    pub expires_in_ms: Option<u64>,
}

/// A link with which anybody may look at one session and those below it until it ends.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShareLink {
    /// The token of the link; revoking it ends the link.
    pub id: TokenId,
    pub session: SessionId,
    pub name: String,
    /// Shown once. Its code stands behind `#`, which browsers neither send nor log.
    pub url: String,
    pub expires_at: Timestamp,
}

/// The kind of program that made a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientKind {
    Browser,
    /// The command line and its screens.
    Cli,
    /// An extension of an editor.
    Editor,
    /// Any other program.
    Api,
}

impl ClientKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Browser => "browser",
            Self::Cli => "cli",
            Self::Editor => "editor",
            Self::Api => "api",
        }
    }
}
