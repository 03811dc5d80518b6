//! Whether the agent has reached the MCP servers it was offered.

use lanyard_api::agents::settings::{AgentSettings, DriverKind};
use lanyard_core::session::Signal;

use super::Runner;
use crate::agents::driver::McpServer;

impl Runner {
    /// Tells the log of MCP servers that the agent has not reached, once for each change. Asked at the end of a turn: by
    /// then an agent that connects at its start has done so.
    pub(super) async fn tell_missing_tools(&mut self) {
        if self.offered.is_empty() {
            return;
        }
        let reached = self.shared.runs.contacts(&self.run.to_string());
        let eager = connects_at_start(self.settings.driver);
        let servers: Vec<String> = self
            .offered
            .iter()
            .filter(|server| match reached.get(*server) {
                Some(reached) => !reached,
                None => eager,
            })
            .cloned()
            .collect();
        let Some(session) = self.shared.session(self.session).await else { return };
        let known = session.run.as_ref().filter(|held| held.id == self.run && held.is_live());
        if known.is_some_and(|held| held.missing_tools != servers) {
            self.shared.note(self.session, Signal::ToolsMissing { run: self.run, servers }).await;
        }
    }
}

/// Agents of these drivers connect to all servers before their first turn. Of others it is not known: one that has not
/// tried is not told of.
fn connects_at_start(driver: DriverKind) -> bool {
    match driver {
        DriverKind::Codex | DriverKind::Opencode => true,
        DriverKind::Acp | DriverKind::Claude | DriverKind::Command | DriverKind::Terminal => false,
    }
}

/// The servers an agent is told of, by their names in addresses.
pub(super) fn offered(settings: &AgentSettings, servers: &[McpServer]) -> Vec<String> {
    let told = match settings.driver {
        DriverKind::Acp | DriverKind::Claude | DriverKind::Codex | DriverKind::Opencode => true,
        // A program on a terminal reads its own settings.
        DriverKind::Terminal => false,
        DriverKind::Command => {
            let per_turn = settings.per_turn();
            let mut words = per_turn.first.iter().chain(&per_turn.next);
            words.any(|word| word.contains("{mcp"))
        }
    };
    let names = servers.iter().filter(|_| told).filter_map(|server| match server {
        McpServer::Http { url, .. } => url.rsplit('/').next().map(str::to_owned),
        McpServer::Stdio { .. } => None,
    });
    names.collect()
}
