//! The questions about calls, and finding or making the session they belong to.

use lanyard_api::types::{
    CallAnswer, CallEnded, CallLead, CallUnsent, FamilyMember, McpNames, NewSubagent, StopReceipt, Subagent,
};
use lanyard_client::{ClientError, DaemonAddress, DaemonLink, Route};
use lanyard_core::session::{Call, Directive, NewSession, Returned, StopLevel};
use lanyard_core::{NoteId, Outcome};
use serde::Deserialize;
use serde_json::Value;

use super::EXTERNAL;

#[derive(Debug)]
pub(crate) struct Desk {
    link: DaemonLink,
}

/// A session of an agent that Lanyard did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Newcomer {
    pub(crate) agent: String,
    pub(crate) workspace: Option<String>,
    /// The agent's own id of the conversation.
    pub(crate) alias: Option<String>,
    /// The session it works for.
    pub(crate) parent: Option<String>,
    /// The alias is the agent's own id of a conversation that it could resume.
    pub(crate) resumable: bool,
}

/// What of a session matters here.
#[derive(Debug, Deserialize)]
struct Seen {
    id: String,
}

impl Desk {
    pub(crate) fn at(address: DaemonAddress) -> Self {
        Self { link: DaemonLink::new(address) }
    }

    /// Whether a daemon answers; a refusal is an answer too.
    pub(crate) async fn is_up(&self) -> bool {
        match self.link.get::<Value>(&Route::to(&["status"])).await {
            Ok(_) => true,
            Err(error) => !error.is_down(),
        }
    }

    pub(crate) async fn begins(&self, session: &str, call: &Call) -> Result<CallAnswer, ClientError> {
        self.link.post(&Route::to(&["sessions", session, "calls"]), call).await
    }

    pub(crate) async fn ends(
        &self,
        session: &str,
        call: Call,
        returned: Returned,
    ) -> Result<CallLead, ClientError> {
        let route = Route::to(&["sessions", session, "calls", "end"]);
        self.link.post(&route, &CallEnded { call, returned }).await
    }

    pub(crate) async fn unsent(&self, session: &str, notes: Vec<NoteId>) -> Result<(), ClientError> {
        if notes.is_empty() {
            return Ok(());
        }
        let route = Route::to(&["sessions", session, "calls", "unsent"]);
        self.link.post::<Value>(&route, &CallUnsent { notes }).await.map(drop)
    }

    /// What an agent whose session was terminated is told; nothing while it was not. Looks only: no call is counted.
    pub(crate) async fn over(&self, session: &str) -> Result<Option<String>, ClientError> {
        let receipt: StopReceipt = match self.link.get(&Route::to(&["sessions", session, "stop"])).await {
            Ok(receipt) => receipt,
            Err(error) if error.is_code("no_stop") => return Ok(None),
            Err(error) => return Err(error),
        };
        if receipt.withdrawn || receipt.level != StopLevel::Terminated {
            return Ok(None);
        }
        let StopReceipt { level, scope, reason, session, .. } = receipt;
        Ok(Some(Directive { level, scope, reason }.text(session)))
    }

    /// The session of this name; nothing when there is none.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<String>, ClientError> {
        Ok(self.look(name).await?.map(|seen| seen.id))
    }

    async fn look(&self, name: &str) -> Result<Option<Seen>, ClientError> {
        match self.link.get::<Seen>(&Route::to(&["sessions", name])).await {
            Ok(seen) => Ok(Some(seen)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The newcomer's session: the one it has already, or a new one.
    pub(crate) async fn enlist(&self, newcomer: &Newcomer) -> Result<String, ClientError> {
        if let Some(alias) = &newcomer.alias
            && let Some(found) = self.find(alias).await?
        {
            return Ok(found);
        }
        let new = NewSession {
            agent: Some(newcomer.agent.clone()),
            source: Some(EXTERNAL.to_owned()),
            workspace: newcomer.workspace.clone(),
            parent: newcomer.parent.clone(),
            aliases: newcomer.alias.clone().into_iter().collect(),
            native: newcomer.alias.clone().filter(|_| newcomer.resumable),
            ..NewSession::default()
        };
        match self.link.post::<Outcome>(&Route::to(&["sessions"]), &new).await {
            Ok(made) => Ok(made.session.to_string()),
            // Another process of the same agent was quicker.
            Err(error) if error.is_code("alias_taken") => match &newcomer.alias {
                Some(alias) => self.find(alias).await?.ok_or(error),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// The MCP servers whose calls pass the daemon itself.
    pub(crate) async fn gateway_servers(&self, session: &str) -> Result<Vec<String>, ClientError> {
        let names: McpNames = self.link.get(&Route::to(&["sessions", session, "mcp"])).await?;
        Ok(names.servers)
    }

    /// The session of a subagent that works in the process of `host`'s agent: the one it has already, or a new one.
    pub(crate) async fn enlist_below(&self, host: &str, sub: &NewSubagent) -> Result<String, ClientError> {
        let made: Subagent = self.link.post(&Route::to(&["sessions", host, "subagents"]), sub).await?;
        Ok(made.session.to_string())
    }

    /// Whose a name is, seen from a session.
    pub(crate) async fn relation(&self, session: &str, name: &str) -> Result<FamilyMember, ClientError> {
        self.link.get(&Route::to(&["sessions", session, "family", name])).await
    }
}
