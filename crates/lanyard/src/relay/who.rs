//! What an agent that Lanyard runs is told about itself in its environment. A process in such an environment acts as that
//! session, with its token, at the address it was given; it looks for no data folder, no config and no other token.

use lanyard_api::names::SESSION;

use super::desk::Desk;
use super::link::Link;

const TOKEN: &str = "LANYARD_TOKEN";
const URL: &str = "LANYARD_URL";

/// The session this process works in, with the right to act as it and nothing else.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) session: String,
    pub(crate) token: String,
    pub(crate) url: String,
}

/// A token is a secret.
impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Given")
            .field("session", &self.session)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// The session this process is inside of, also where it got no token for it.
pub(crate) fn inside() -> Option<String> {
    named(SESSION)
}

fn named(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Given {
    /// From `LANYARD_SESSION`, `LANYARD_TOKEN` and `LANYARD_URL`; nothing unless all are there.
    pub(crate) fn from_environment() -> Option<Self> {
        Some(Self { session: named(SESSION)?, token: named(TOKEN)?, url: named(URL)? })
    }

    /// Where it is asked about, by its own address alone.
    pub(crate) fn desk(&self) -> Option<Desk> {
        Link::at(&self.url, &self.token).map(Desk::new)
    }

    /// The host and port of the address.
    pub(crate) fn host(&self) -> Option<&str> {
        self.url.strip_prefix("http://").map(|host| host.trim_end_matches('/'))
    }
}
