//! The MCP gateway: every server of the config at an address per session, `/mcp/SESSION/SERVER`, and Lanyard's own tools
//! beside them. Tool calls of a session pass the interceptor; all else passes.
//!
//! A relay forwards the JSON it received and reads only the envelope, so that fields and methods it does not know
//! survive. Nothing here owns a session: what the gateway knows of one can be lost and found again.

mod book;
mod call_entry;
mod check;
mod context;
mod envelope;
mod http;
mod http_in;
mod input;
mod mcp_session;
mod once;
mod own_server;
mod revisions;
mod rpc;
mod server;
mod stdio;
mod translate;
mod work;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use lanyard_api::config::Config;
use lanyard_api::names::OWN_SERVER;
use lanyard_api::types::{GcCount, McpEntry, McpKind, McpState};
use lanyard_core::SessionId;
use lanyard_store::Store;
use tokio::sync::watch;
use tokio::time::Duration;

use book::Book;
use lanyard_agents::runs::process::end_and_wait;
use mcp_session::McpSessions;
pub use server::MESSAGE_BYTES_MAX;
use server::{Server, Upstream};

pub use context::RelayContext;
pub use http_in::{NotTaken, delete, get, message};
pub use own_server::{OwnServer, RpcError};

/// What stands in an address where no session is meant.
pub const NOBODY: &str = "-";

/// How often processes without work, and those of ended sessions, are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(2);
/// Grace for processes an earlier daemon left behind.
const LEFT_GRACE: Duration = Duration::from_secs(2);

/// Every server of the config, and who uses it.
#[derive(Debug)]
pub struct Gateway {
    servers: BTreeMap<String, Arc<Server>>,
    sessions: McpSessions,
    book: Book,
    /// What every process of a server bears in its environment.
    marker: Arc<str>,
    closing: watch::Sender<bool>,
}

impl Gateway {
    /// The servers of the config. What an earlier daemon left of them is ended first.
    pub async fn open(config: &Config, data_dir: &Path) -> Self {
        let gateway = Self::new(config, data_dir);
        gateway.tidy().await;
        gateway
    }

    #[must_use]
    pub fn new(config: &Config, data_dir: &Path) -> Self {
        let own = config.agents.iter().flat_map(|(agent, settings)| {
            settings.mcp.iter().map(move |(name, server)| Server::new(name, Some(agent), server))
        });
        let all = config.mcp.iter().map(|(name, server)| Server::new(name, None, server));
        let servers = all.chain(own).map(|server| (server.key.clone(), Arc::new(server))).collect();
        let place = blake3::hash(data_dir.as_os_str().as_encoded_bytes()).to_hex();
        Self {
            servers,
            sessions: McpSessions::default(),
            book: Book::new(data_dir.join("mcp")),
            marker: format!("mcp-{}", &place[..32]).into(),
            closing: watch::Sender::new(false),
        }
    }

    fn server(&self, key: &str) -> Option<Arc<Server>> {
        self.servers.get(key).cloned()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str).chain([OWN_SERVER])
    }

    /// Whether there is a server of this name.
    pub fn has(&self, key: &str) -> bool {
        key == OWN_SERVER || self.servers.contains_key(key)
    }

    fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Ends what an earlier daemon left behind: its servers outlive it only if they do not notice its end.
    async fn tidy(&self) {
        let (marker, book) = (self.marker.clone(), self.book.clone());
        let tidied = tokio::task::spawn_blocking(move || {
            book.sweep();
            end_and_wait(&marker, None, None, None, LEFT_GRACE)
        });
        match tidied.await {
            Ok(Ok((ended, _))) if !ended.is_empty() => {
                tracing::info!(processes = ended.len(), "MCP servers of an earlier daemon were ended");
            }
            Ok(Ok(_)) | Err(_) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "MCP servers of an earlier daemon could not be looked for");
            }
        }
    }

    /// Ends processes nobody needs any more. Runs until the daemon ends.
    pub async fn look_after(&self, store: Arc<dyn Store>) {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            let used: HashSet<SessionId> =
                self.programs().flat_map(|(_, program)| program.sessions()).collect();
            let reading = store.clone();
            let ended = tokio::task::spawn_blocking(move || {
                let has_ended = |session: &SessionId| match reading.load(*session) {
                    Ok(Some(loaded)) => loaded.session.deleted || loaded.session.state.is_ended(),
                    // One that was never there is nobody's business; one that cannot be read may live.
                    Ok(None) | Err(_) => false,
                };
                used.into_iter().filter(has_ended).collect::<Vec<_>>()
            });
            let ended = ended.await.unwrap_or_default();
            for (_, program) in self.programs() {
                program.sweep(&ended).await;
            }
            for address in self.servers.values().filter_map(|server| server.address()) {
                address.sweep();
            }
            for session in ended {
                self.sessions.forget(session);
            }
        }
    }

    /// Forgets how a session's clients introduced themselves.
    pub async fn forget_session(&self, session: SessionId) {
        self.book.forget_session(session).await;
    }

    /// The same for all sessions that are over, which an earlier daemon did not get to.
    pub async fn forget_ended(&self, store: &Arc<dyn Store>) {
        let (book, store) = (self.book.clone(), store.clone());
        let _ = tokio::task::spawn_blocking(move || sweep_book(&book, &*store, false)).await;
    }

    /// Removes, or only counts, introductions to sessions that are over.
    pub fn sweep_book(&self, store: &dyn Store, dry_run: bool) -> GcCount {
        sweep_book(&self.book, store, dry_run)
    }

    fn programs(&self) -> impl Iterator<Item = (&Arc<Server>, &stdio::Upstream)> {
        self.servers.values().filter_map(|server| match &server.upstream {
            Upstream::Stdio(program) => Some((server, program)),
            Upstream::Http(_) | Upstream::Unusable(_) => None,
        })
    }

    /// Streams end: they would hold up the end of the daemon.
    pub fn close_streams(&self) {
        self.closing.send_replace(true);
    }

    /// Ends every process.
    pub async fn close(&self) {
        self.close_streams();
        for (_, program) in self.programs() {
            program.close().await;
        }
    }

    /// The servers and how they do.
    pub fn list(&self) -> Vec<McpEntry> {
        let mut all = vec![McpEntry {
            name: OWN_SERVER.to_owned(),
            agent: None,
            kind: McpKind::BuiltIn,
            share: true,
            state: McpState::Up,
            processes: 0,
            restarts: 0,
            last_error: None,
            calls: 0,
        }];
        all.extend(self.servers.values().map(|server| entry(server)));
        all
    }

    /// Starts or connects to a server and looks at it.
    pub async fn check(
        &self,
        context: &Arc<RelayContext>,
        key: &str,
    ) -> Option<lanyard_api::types::McpCheck> {
        if key == OWN_SERVER {
            return Some(check::own(&*context.own).await);
        }
        let server = self.server(key)?;
        Some(check::check(context, &server).await)
    }
}

fn sweep_book(book: &Book, store: &dyn Store, dry_run: bool) -> GcCount {
    let mut found = GcCount::default();
    for session in book.sessions() {
        let over = match store.load(session) {
            Ok(Some(loaded)) => loaded.session.deleted || loaded.session.state.is_ended(),
            Ok(None) => true,
            Err(_) => false,
        };
        let (count, bytes) = book.size(session);
        if over && (dry_run || book.remove(session)) {
            found.count += count;
            found.bytes += bytes;
        }
    }
    found
}

/// The daemon is ending.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

fn entry(server: &Server) -> McpEntry {
    let by_answers = server.state();
    let (kind, share, state, processes, restarts) = match &server.upstream {
        Upstream::Http(_) => (McpKind::Http, true, by_answers, 0, 0),
        Upstream::Unusable(_) => (McpKind::Http, true, McpState::Down, 0, 0),
        Upstream::Stdio(program) => {
            let running = program.running();
            let state = if running > 0 { McpState::Up } else { by_answers };
            (McpKind::Stdio, program.is_shared(), state, running as u64, program.restarts())
        }
    };
    let unusable = match &server.upstream {
        Upstream::Unusable(why) => Some(why.clone()),
        Upstream::Http(_) | Upstream::Stdio(_) => None,
    };
    McpEntry {
        name: server.name.clone(),
        agent: server.agent.clone(),
        kind,
        share,
        state,
        processes,
        restarts,
        last_error: unusable.or_else(|| server.last_trouble()),
        calls: server.calls.load(std::sync::atomic::Ordering::Relaxed),
    }
}
