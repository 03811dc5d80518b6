//! One server of the config, whatever kind it is, and how it does.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lanyard_api::agents::settings::McpSettings;
use lanyard_api::types::McpState;
use tokio::time::Duration;

use crate::http_endpoint::{HttpEndpoint, Trouble};
use crate::mcp::stdio;
use lanyard_agents::agents::addresses::server_key;

/// Largest message a client may send. Tool arguments are small; resources go the other way.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Largest message of a server.
pub(super) const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How long a call may take when the config does not say.
const TIMEOUT: Duration = Duration::from_mins(10);

/// How the gateway reaches a server.
#[derive(Debug)]
pub(super) enum Upstream {
    Http(HttpEndpoint),
    Stdio(stdio::Upstream),
    /// What the config says cannot be used, and why.
    Unusable(String),
}

/// One server of the config.
#[derive(Debug)]
pub(super) struct Server {
    /// Its name in addresses: that of the config, and `NAME@AGENT` for an agent's own.
    pub(super) key: String,
    pub(super) name: String,
    pub(super) agent: Option<String>,
    pub(super) timeout: Duration,
    pub(super) upstream: Upstream,
    /// Tools whose calls are carried out once in a turn, also when it is taken up again.
    once: Vec<String>,
    pub(super) calls: AtomicU64,
    trouble: Mutex<Option<String>>,
    /// Whether it has answered, and whether its last word was one.
    has_answered: AtomicBool,
    has_failed: AtomicBool,
}

impl Server {
    pub(super) fn new(name: &str, agent: Option<&str>, settings: &McpSettings) -> Self {
        let (timeout_ms, once) = match settings {
            McpSettings::Stdio(settings) => (settings.timeout_ms, &settings.once),
            McpSettings::Http(settings) => (settings.timeout_ms, &settings.once),
        };
        let upstream = match settings {
            McpSettings::Stdio(settings) => Upstream::Stdio(stdio::Upstream::new(settings.clone())),
            McpSettings::Http(settings) => match HttpEndpoint::new(settings) {
                Ok(upstream) => Upstream::Http(upstream),
                Err(why) => {
                    tracing::warn!(server = name, why, "an MCP server of the config cannot be used");
                    Upstream::Unusable(why)
                }
            },
        };
        Self {
            key: server_key(name, agent),
            name: name.to_owned(),
            agent: agent.map(str::to_owned),
            timeout: timeout_ms.map_or(TIMEOUT, Duration::from_millis),
            upstream,
            once: once.clone(),
            calls: AtomicU64::new(0),
            trouble: Mutex::default(),
            has_answered: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        }
    }

    pub(super) fn is_once(&self, tool: &str) -> bool {
        self.once.iter().any(|once| once == tool || once == "*")
    }

    /// Where it is, if it is behind an address.
    pub(super) fn address(&self) -> Option<&HttpEndpoint> {
        match &self.upstream {
            Upstream::Http(upstream) => Some(upstream),
            Upstream::Stdio(_) | Upstream::Unusable(_) => None,
        }
    }

    pub(super) fn counted(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// The trouble as a sentence about this server, kept for those who ask how it does.
    pub(super) fn failed(&self, trouble: &Trouble) -> String {
        let what = format!("MCP server `{}` {trouble}.", self.name);
        tracing::warn!(server = self.key, what);
        *self.trouble.lock() = Some(what.clone());
        self.has_failed.store(true, Ordering::Relaxed);
        what
    }

    pub(super) fn worked(&self) {
        // Every call comes by here: nothing is written that is so already.
        if !self.has_answered.load(Ordering::Relaxed) || self.has_failed.load(Ordering::Relaxed) {
            self.has_answered.store(true, Ordering::Relaxed);
            self.has_failed.store(false, Ordering::Relaxed);
        }
    }

    pub(super) fn last_trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    pub(super) fn state(&self) -> McpState {
        if self.has_failed.load(Ordering::Relaxed) {
            return McpState::Down;
        }
        if self.has_answered.load(Ordering::Relaxed) { McpState::Up } else { McpState::NotStarted }
    }
}
