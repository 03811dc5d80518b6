//! What an agent that Lanyard runs is told about itself in its environment.

use lanyard_daemon::home::Home;

use super::desk::Desk;
use super::link::Link;

/// The session this process works in, with the right to act as it and nothing else.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) session: String,
    token: String,
    url: Option<String>,
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

impl Given {
    /// From `LANYARD_SESSION`, `LANYARD_TOKEN` and `LANYARD_URL`; nothing unless the first two are there.
    pub(crate) fn from_environment() -> Option<Self> {
        let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Some(Self {
            session: named("LANYARD_SESSION")?,
            token: named("LANYARD_TOKEN")?,
            url: named("LANYARD_URL"),
        })
    }

    /// The daemon that gave it. Its address may have changed with a restart; its socket does not.
    pub(crate) async fn desk(&self, home: Option<&Home>) -> Option<Desk> {
        let there = self.url.as_deref().and_then(|url| Link::at(url, &self.token)).map(Desk::new);
        let Some(there) = there else { return self.local(home) };
        if there.is_up().await {
            return Some(there);
        }
        match self.local(home) {
            Some(local) if local.is_up().await => Some(local),
            _ => Some(there),
        }
    }

    fn local(&self, home: Option<&Home>) -> Option<Desk> {
        home.map(|home| Desk::new(Link::local_as(home.socket(), &self.token)))
    }
}
