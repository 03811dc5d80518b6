//! Where agents reach MCP servers: addresses of the gateway, and never the servers themselves.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use lanyard_api::config::Config;
use lanyard_api::home::Home;
use lanyard_api::names::OWN_SERVER;
use lanyard_core::{RunId, SessionId};

use crate::agents::driver::McpServer;
use crate::sandbox::OwnFiles;

/// Makes the token by which processes of a run prove whose they are.
pub type TokenOf = Arc<dyn Fn(SessionId, RunId) -> String + Send + Sync>;

/// How agents that Lanyard starts reach the gateway.
#[derive(Clone)]
pub struct Addresses {
    pub address: SocketAddr,
    /// The daemon's socket, where relays forward to.
    pub socket: PathBuf,
    /// The token of a session's run.
    pub token_of: TokenOf,
    /// What no sandbox shows.
    pub own_files: Arc<OwnFiles>,
    /// Servers that are an agent's own, by their keys.
    pub own: Arc<HashSet<String>>,
}

impl std::fmt::Debug for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addresses").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Addresses {
    #[must_use]
    pub fn new(
        address: SocketAddr,
        home: &Home,
        token_of: TokenOf,
        config: &Config,
        own_files: OwnFiles,
    ) -> Self {
        let own = config
            .agents
            .iter()
            .flat_map(|(agent, settings)| settings.mcp.keys().map(move |name| server_key(name, Some(agent))));
        let own_files = Arc::new(own_files);
        Self { address, socket: home.socket(), token_of, own_files, own: Arc::new(own.collect()) }
    }

    /// The same for a run behind a relay: its addresses are the relay's. A run of an older daemon has none.
    pub(crate) fn through(&self, relay: Option<SocketAddr>) -> Self {
        Self { address: relay.unwrap_or(self.address), ..self.clone() }
    }

    /// By what the processes of a run find back to its session: its hooks, wrapped servers, and `lanyard` in its shell.
    pub(crate) fn environment(&self, session: SessionId, run: RunId) -> [(String, String); 2] {
        let url = format!("http://{}", self.address);
        let token = (self.token_of)(session, run);
        [("LANYARD_URL".to_owned(), url), ("LANYARD_TOKEN".to_owned(), token)]
    }

    /// Where the gateway has a session's servers.
    pub(crate) fn base(&self, session: SessionId) -> String {
        format!("http://{}/mcp/{session}", self.address)
    }

    /// Servers as clients write them into `mcp.json`. The token stands there by the name of its variable.
    #[expect(clippy::unused_self, reason = "what is offered comes from here")]
    pub(crate) fn config(&self, servers: &[McpServer]) -> String {
        let mut all = serde_json::Map::new();
        for server in servers {
            if let McpServer::Http { name, url, .. } = server {
                let headers = serde_json::json!({ "Authorization": "Bearer ${LANYARD_TOKEN}" });
                all.insert(
                    name.clone(),
                    serde_json::json!({ "type": "http", "url": url, "headers": headers }),
                );
            }
        }
        serde_json::json!({ "mcpServers": all }).to_string()
    }

    /// What an agent is told of a session's servers: addresses of the gateway, and never the servers themselves.
    pub(crate) fn offered<'a>(
        &self,
        (session, run): (SessionId, RunId),
        agent: &str,
        names: impl Iterator<Item = &'a String>,
    ) -> Vec<McpServer> {
        let bearer = format!("Bearer {}", (self.token_of)(session, run));
        let offer = |name: &str| {
            let own = server_key(name, Some(agent));
            let key = if self.own.contains(&own) { own } else { name.to_owned() };
            McpServer::Http {
                name: name.to_owned(),
                url: server_url(self.address, &session.to_string(), &key),
                headers: vec![("Authorization".to_owned(), bearer.clone())],
            }
        };
        names.map(|name| offer(name)).chain([offer(OWN_SERVER)]).collect()
    }
}

/// The address of a server for a session.
#[must_use]
pub fn server_url(address: SocketAddr, session: &str, key: &str) -> String {
    let mut escaped = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'@' => {
                escaped.push(char::from(byte));
            }
            other => {
                let _ = write!(escaped, "%{other:02X}");
            }
        }
    }
    format!("http://{address}/mcp/{session}/{escaped}")
}

/// The name of a server in addresses.
#[must_use]
pub fn server_key(name: &str, agent: Option<&str>) -> String {
    match agent {
        Some(agent) => format!("{name}@{agent}"),
        None => name.to_owned(),
    }
}
