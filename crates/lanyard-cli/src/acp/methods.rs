//! The methods of the protocol, and which part of Lanyard answers each.

use std::path::Path;
use std::sync::Arc;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, CancelNotification, CancelRequestNotification, CloseSessionRequest, Error,
    ForkSessionRequest, ForkSessionResponse, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, McpServer, NewSessionRequest,
    NewSessionResponse, PromptCapabilities, PromptRequest, RequestId, ResumeSessionRequest,
    SessionCapabilities, SessionCloseCapabilities, SessionForkCapabilities, SessionId, SessionInfo,
    SessionListCapabilities, SessionResumeCapabilities,
};
use lanyard_api::types::{AgentList, NewFork, SessionDetail, SessionPage};
use lanyard_client::Route;
use lanyard_core::Outcome;
use lanyard_core::session::NewSession;
use serde_json::{Value, json};

use super::host::Host;
use super::offers::{Choosing, wish_of};
use super::prompt::EditorPrompt;
use super::seat::Order;
use super::wire::Incoming;
use super::words::{error_of, params_of};
use crate::chosen_agent::chosen;
use crate::failure::Failure;
use crate::render::text::{fit, one_line};

/// Sessions on one page of a list.
const PAGE_SESSIONS: usize = 100;
/// Columns of a title that is made of a prompt.
const TITLE_COLUMNS: usize = 80;
/// Events among which a session's first prompt is.
const FIRST_EVENTS: usize = 32;
/// Pages looked through for one that has something to show.
const PAGES_MAX: usize = 20;

/// Takes what the editor says.
pub(super) struct Desk {
    host: Arc<Host>,
    greeted: bool,
}

impl Desk {
    pub(super) fn new(host: Arc<Host>) -> Self {
        Self { host, greeted: false }
    }

    pub(super) async fn hear(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Request { id, method, params } => {
                if let Err(error) = self.request(&id, &method, params).await {
                    self.host.wire.refuse(id, error).await;
                }
            }
            Incoming::Notification { method, params } => self.notified(&method, params),
            Incoming::Answer { id, answer } => self.host.wire.deliver(id, answer),
            Incoming::Nonsense { id, error } => self.host.wire.refuse(id, error).await,
        }
    }

    /// Sees to a request; what is not answered here is answered by its receiver.
    async fn request(&mut self, id: &RequestId, method: &str, params: Value) -> Result<(), Error> {
        if method == "initialize" {
            let _: InitializeRequest = params_of(params)?;
            self.greeted = true;
            self.host.wire.answer(id.clone(), Ok(greeting())).await;
            return Ok(());
        }
        if !self.greeted {
            return Err(Error::invalid_request().data("`initialize` comes first"));
        }
        let id = id.clone();
        match method {
            "session/new" => self.begin(id, &params_of(params)?),
            "session/list" => self.list(id, params_of(params)?),
            "session/fork" => self.fork(id, params_of(params)?),
            "session/load" => {
                let request: LoadSessionRequest = params_of(params)?;
                self.mind_servers(&request.mcp_servers);
                self.host.order(&request.session_id, Order::Load { id })
            }
            "session/resume" => {
                let request: ResumeSessionRequest = params_of(params)?;
                self.mind_servers(&request.mcp_servers);
                self.host.order(&request.session_id, Order::Resume { id })
            }
            "session/prompt" => {
                let request: PromptRequest = params_of(params)?;
                let prompt = EditorPrompt::read(request.prompt)?;
                self.host.order(&request.session_id, Order::Prompt { id, prompt })
            }
            "session/set_mode" | "session/set_config_option" => {
                let wish = wish_of(method, &params)?;
                let session = SessionId::new(params["sessionId"].as_str().unwrap_or_default().to_owned());
                self.host.order(&session, Order::Choose { id, wish })
            }
            "session/close" => {
                let request: CloseSessionRequest = params_of(params)?;
                self.host.order(&request.session_id, Order::Close { id })
            }
            _ => Err(Error::method_not_found().data(method.to_owned())),
        }
    }

    /// Unknown notifications are dropped: a notification is never answered.
    fn notified(&self, method: &str, params: Value) {
        match method {
            "session/cancel" => {
                if let Ok(cancel) = serde_json::from_value::<CancelNotification>(params) {
                    // A session with so many requests that this does not fit has been told to end before.
                    let _ = self.host.order(&cancel.session_id, Order::Cancel);
                }
            }
            "$/cancel_request" => {
                if let Ok(cancel) = serde_json::from_value::<CancelRequestNotification>(params) {
                    self.host.take_back(&cancel.request_id);
                }
            }
            _ => {}
        }
    }

    fn begin(&self, id: RequestId, request: &NewSessionRequest) -> Result<(), Error> {
        let workspace = folder(&request.cwd)?;
        self.mind_servers(&request.mcp_servers);
        let host = Arc::clone(&self.host);
        self.host.spawn(async move {
            let made = create(&host, workspace).await;
            let made = made.map(|outcome| (SessionId::new(outcome.session.to_string()), outcome.seq));
            if let Ok((session, seq)) = &made {
                host.attach(session, *seq);
            }
            let made = match made {
                Ok((session, _)) => session,
                Err(failure) => return host.wire.refuse(id, error_of(&failure)).await,
            };
            // What its agent is known to offer; without an answer the session works all the same.
            let detail = host.get::<SessionDetail>(&Route::to(&["sessions", &made.0])).await;
            let choosing = detail.as_ref().map(Choosing::of).unwrap_or_default();
            host.wire.answer(id, choosing.beside(&NewSessionResponse::new(made.clone()))).await;
            if let Some(update) = choosing.commands() {
                host.wire.update_json(&made, update).await;
            }
        });
        Ok(())
    }

    fn fork(&self, id: RequestId, request: ForkSessionRequest) -> Result<(), Error> {
        folder(&request.cwd)?;
        self.mind_servers(&request.mcp_servers);
        let host = Arc::clone(&self.host);
        self.host.spawn(async move {
            let route = Route::to(&["sessions", &request.session_id.0, "fork"]);
            let made = host.post::<Outcome>(&route, &NewFork::default()).await;
            let made = made.map(|outcome| (SessionId::new(outcome.session.to_string()), outcome.seq));
            if let Ok((session, seq)) = &made {
                host.attach(session, *seq);
            }
            let answer = made
                .map(|(session, _)| session)
                .map(ForkSessionResponse::new)
                .map_err(|failure| error_of(&failure));
            host.wire.answer(id, answer).await;
        });
        Ok(())
    }

    fn list(&self, id: RequestId, request: ListSessionsRequest) -> Result<(), Error> {
        let workspace = match &request.cwd {
            Some(cwd) if !cwd.is_absolute() => {
                return Err(Error::invalid_params().data("`cwd` must be an absolute path"));
            }
            Some(cwd) => Some(whole(cwd)?),
            None => None,
        };
        let host = Arc::clone(&self.host);
        self.host.spawn(async move {
            let listed = sessions(&host, &request, workspace.as_deref()).await;
            host.wire.answer(id, listed.map_err(|failure| error_of(&failure))).await;
        });
        Ok(())
    }

    /// The agent's servers are those of Lanyard's config. Who has set up others should know.
    fn mind_servers(&self, servers: &[McpServer]) {
        if servers.is_empty() {
            return;
        }
        let names: Vec<String> = servers.iter().map(server_name).collect();
        self.host.context.out.warn(&format!(
            "MCP servers of the editor are not passed on ({}); name them in Lanyard's config",
            names.join(", ")
        ));
    }
}

/// The same for all clients: there is one version, and a client of other versions leaves.
fn greeting() -> InitializeResponse {
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .fork(SessionForkCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let can = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().embedded_context(true).image(true))
        .session_capabilities(sessions);
    let info = Implementation::new("lanyard", env!("CARGO_PKG_VERSION")).title("Lanyard".to_owned());
    InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(can).agent_info(info)
}

async fn create(host: &Host, workspace: String) -> Result<Outcome, Failure> {
    let agent = choose(host).await?;
    let new = NewSession {
        agent: Some(agent),
        source: Some("editor".to_owned()),
        workspace: Some(workspace),
        ..NewSession::default()
    };
    host.post(&Route::to(&["sessions"]), &new).await
}

/// The agent of `--agent`, else the daemon's default.
async fn choose(host: &Host) -> Result<String, Failure> {
    let list: AgentList = host.get(&Route::to(&["agents"])).await?;
    chosen(&list, host.options.agent.as_deref())
}

/// A page of sessions; pages on which there is nothing for an editor are passed over.
async fn sessions(
    host: &Host,
    request: &ListSessionsRequest,
    workspace: Option<&str>,
) -> Result<ListSessionsResponse, Failure> {
    let mut cursor = request.cursor.clone();
    for _ in 0..PAGES_MAX {
        let route = Route::to(&["sessions"])
            .with("workspace", workspace)
            .with("cursor", cursor.as_ref())
            .with("limit", Some(PAGE_SESSIONS));
        let mut page: SessionPage = host.get(&route).await?;
        for listed in page.sessions.iter_mut().filter(|listed| listed.row.title.is_none()) {
            listed.row.title = first_words(host, listed.row.id).await;
        }
        let infos: Vec<SessionInfo> = page
            .sessions
            .into_iter()
            .map(|listed| listed.row)
            // A subagent's session belongs to the one that started it.
            .filter(|row| row.parent.is_none())
            .filter_map(|row| {
                // In the editor's own words, where it named a folder.
                let cwd = request.cwd.clone().or_else(|| row.workspace.clone().map(Into::into))?;
                let about = json!({"state": row.state, "agent": row.agent, "source": row.source});
                let info = SessionInfo::new(row.id.to_string(), cwd.clone())
                    .title(row.title)
                    .updated_at(row.last_activity_at.to_string())
                    .meta(json!({"lanyard": about}).as_object().cloned());
                cwd.is_absolute().then_some(info)
            })
            .collect();
        cursor = page.next;
        if cursor.is_none() || !infos.is_empty() {
            return Ok(ListSessionsResponse::new(infos).next_cursor(cursor));
        }
    }
    Ok(ListSessionsResponse::new(Vec::new()).next_cursor(cursor))
}

/// The beginning of a session's first prompt, for a session without a title. One that cannot be read has none.
async fn first_words(host: &Host, session: lanyard_core::SessionId) -> Option<String> {
    let route = Route::to(&["sessions", &session.to_string(), "events"]).with("limit", Some(FIRST_EVENTS));
    let page: Value = host.get(&route).await.ok()?;
    let started = page["events"].as_array()?.iter().find(|event| event["type"] == "turn.started")?;
    let words = one_line(started["data"]["prompt"].as_str()?);
    Some(fit(&words, TITLE_COLUMNS)).filter(|title| !title.is_empty())
}

/// The folder to work in, as Lanyard writes it.
fn folder(cwd: &Path) -> Result<String, Error> {
    if !cwd.is_absolute() {
        return Err(Error::invalid_params().data("`cwd` must be an absolute path"));
    }
    if !cwd.is_dir() {
        return Err(Error::invalid_params().data(format!("there is no folder {}", cwd.display())));
    }
    whole(cwd)
}

/// A folder goes by one name, whichever way an editor came to it; one that is gone by the name it had.
fn whole(cwd: &Path) -> Result<String, Error> {
    let path = std::fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
    path.into_os_string().into_string().map_err(|path| {
        Error::invalid_params().data(format!("the folder's name is not UTF-8: {}", path.display()))
    })
}

fn server_name(server: &McpServer) -> String {
    match server {
        McpServer::Http(server) => server.name.clone(),
        McpServer::Sse(server) => server.name.clone(),
        McpServer::Stdio(server) => server.name.clone(),
        _ => "one of another kind".to_owned(),
    }
}
