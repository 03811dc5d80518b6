//! What an agent that Lanyard runs finds about itself in its environment. A process in such an environment acts as that
//! session, with its token, at the address it was given; it looks for no data folder, no config and no other token.

use lanyard_api::names::SESSION;

use crate::daemon::DaemonAddress;
use crate::error::ClientError;

const TOKEN: &str = "LANYARD_TOKEN";
const URL: &str = "LANYARD_URL";

/// The session this process works in, with the right to act as it and nothing else.
#[derive(Clone)]
pub struct GivenSession {
    pub session: String,
    pub token: String,
    pub url: String,
}

/// Without the token, which is a secret.
impl std::fmt::Debug for GivenSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GivenSession")
            .field("session", &self.session)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// The session this process is inside of, also where it got no token for it.
#[must_use]
pub fn inside() -> Option<String> {
    named(SESSION)
}

fn named(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl GivenSession {
    /// From `LANYARD_SESSION`, `LANYARD_TOKEN` and `LANYARD_URL`; nothing unless all are there.
    #[must_use]
    pub fn from_environment() -> Option<Self> {
        Some(Self { session: named(SESSION)?, token: named(TOKEN)?, url: named(URL)? })
    }

    /// The daemon's address, with this session's token.
    pub fn address(&self) -> Result<DaemonAddress, ClientError> {
        DaemonAddress::at(&self.url, &self.token)
    }
}
