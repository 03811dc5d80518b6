//! The agent as its client sees it: which methods there are, and the sessions they are about.

mod sessions;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, CancelNotification, ClientCapabilities, Error, Implementation, InitializeRequest,
    InitializeResponse, McpCapabilities, McpServer, PromptCapabilities, PromptRequest, PromptResponse,
    RequestId, SessionCapabilities, SessionCloseCapabilities, SessionForkCapabilities, SessionId,
    SessionListCapabilities, SessionResumeCapabilities, StopReason,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::choices::Chosen;
use super::inbox::Inbox;
use super::state::{History, Store};
use super::wire::{Incoming, Wire};
use super::{BadHandshake, ScriptedOptions, parts, turn};

#[derive(Debug)]
pub(super) struct Agent {
    pub(super) options: ScriptedOptions,
    pub(super) wire: Wire,
    pub(super) client: Mutex<ClientCapabilities>,
    /// Set by `/ignore-cancel`.
    pub(super) ignores_cancel: AtomicBool,
    /// Turns under way, those of children too.
    pub(super) busy: AtomicUsize,
    pub(super) runtime: tokio::runtime::Handle,
    store: Store,
    sessions: Mutex<HashMap<SessionId, Arc<Session>>>,
}

/// A conversation that is loaded.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    parent: Option<SessionId>,
    pub(super) place: SessionPlace,
    pub(super) memory: Mutex<Memory>,
    /// The turn under way.
    running: Mutex<Option<Arc<Inbox>>>,
    /// Cancelled while idle, by an agent that holds it against the next prompt.
    poisoned: AtomicBool,
    pub(super) chosen: Mutex<Chosen>,
}

/// Where a session works and what it can reach.
#[derive(Debug, Clone)]
pub(super) struct SessionPlace {
    pub(super) cwd: PathBuf,
    pub(super) servers: Vec<McpServer>,
}

#[derive(Debug)]
pub(super) struct Memory {
    pub(super) prompts: Vec<String>,
    pub(super) history: History,
    /// What the conversation has cost since the process began.
    pub(super) cents: u32,
    /// What the last prompt consisted of.
    pub(super) parts: String,
}

impl Session {
    /// Takes the session for a turn; `None` while another one has it.
    pub(super) fn begin(&self) -> Option<Arc<Inbox>> {
        let mut running = self.running.lock();
        if running.is_some() {
            return None;
        }
        Some(Arc::clone(running.insert(Arc::default())))
    }

    pub(super) fn end(&self) {
        *self.running.lock() = None;
    }

    /// Whether there was something to cancel.
    fn cancel(&self) -> bool {
        self.running.lock().as_ref().inspect(|inbox| inbox.cancel()).is_some()
    }
}

impl Agent {
    pub(super) fn new(options: ScriptedOptions, store: Store, runtime: tokio::runtime::Handle) -> Self {
        Self {
            wire: Wire::new(options.silent),
            options,
            client: Mutex::default(),
            ignores_cancel: AtomicBool::new(false),
            busy: AtomicUsize::new(0),
            runtime,
            store,
            sessions: Mutex::default(),
        }
    }

    pub(super) fn hear(self: &Arc<Self>, incoming: Incoming) {
        match incoming {
            Incoming::Request { id, method, params } => self.request(id, &method, params),
            Incoming::Notification { method, params } => {
                if method == "session/cancel"
                    && let Ok(cancel) = serde_json::from_value::<CancelNotification>(params)
                {
                    self.cancel(&cancel.session_id);
                }
            }
            Incoming::Answer { id, answer } => self.wire.deliver(id, answer),
            Incoming::Nonsense(error) => self.wire.answer(RequestId::Null, Err::<Value, Error>(error)),
        }
    }

    fn request(self: &Arc<Self>, id: RequestId, method: &str, params: Value) {
        let offered = !self.options.no_load;
        match method {
            "initialize" => self.initialize(id, params),
            "session/new" => self.open(id, params),
            "session/set_mode" | "session/set_config_option" => match self.choose(&params) {
                Ok(Some(answer)) => self.wire.answer(id, Ok(answer)),
                Ok(None) => {}
                Err(error) => self.wire.answer(id, Err::<Value, Error>(error)),
            },
            "session/load" if offered => self.load(id, params),
            "session/resume" if offered => self.reply(id, params, |request| self.resume(request)),
            "session/list" => self.reply(id, params, |request| Ok(self.list(&request))),
            "session/fork" => self.reply(id, params, |request| self.fork(request)),
            "session/close" => self.reply(id, params, |request| self.close(&request)),
            "session/prompt" => self.prompt(id, params),
            _ => self.wire.answer(id, Err::<Value, Error>(Error::method_not_found().data(method.to_owned()))),
        }
    }

    /// Answers at once.
    fn reply<P: DeserializeOwned, R: Serialize>(
        &self,
        id: RequestId,
        params: Value,
        work: impl FnOnce(P) -> Result<R, Error>,
    ) {
        self.wire.answer(id, params_of(params).and_then(work));
    }

    fn initialize(&self, id: RequestId, params: Value) {
        let info = Implementation::new("lanyard-scripted", env!("CARGO_PKG_VERSION"))
            .title("Scripted agent".to_owned());
        match self.options.bad_handshake {
            Some(BadHandshake::Version) => {
                return self.wire.answer(id, Ok(json!({"protocolVersion": 99, "agentInfo": info})));
            }
            Some(BadHandshake::Garbage) => return self.wire.answer(id, Ok(json!(["what", "was", "that?"]))),
            None => {}
        }
        let can = AgentCapabilities::new()
            .load_session(!self.options.no_load)
            .mcp_capabilities(McpCapabilities::new().http(true))
            .prompt_capabilities(
                PromptCapabilities::new().image(self.options.images).embedded_context(self.options.images),
            )
            .session_capabilities(self.session_capabilities());
        self.reply(id, params, |request: InitializeRequest| {
            *self.client.lock() = request.client_capabilities;
            Ok(InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(can).agent_info(info))
        });
    }

    fn session_capabilities(&self) -> SessionCapabilities {
        SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume((!self.options.no_load).then(SessionResumeCapabilities::new))
            .close(SessionCloseCapabilities::new())
            .fork(SessionForkCapabilities::new())
    }

    /// Starts a turn in a thread of its own, which answers when it ends.
    fn prompt(self: &Arc<Self>, id: RequestId, params: Value) {
        let found = params_of::<PromptRequest>(params).and_then(|request| {
            let session = self.session(&request.session_id)?;
            if session.poisoned.swap(false, Ordering::Relaxed) {
                return Ok((request, session, None));
            }
            let busy = || Error::new(-32600, "this session is busy with an earlier prompt");
            let inbox = session.begin().ok_or_else(busy)?;
            Ok((request, session, Some(inbox)))
        });
        match found {
            Err(error) => self.wire.answer(id, Err::<Value, Error>(error)),
            Ok((_, _, None)) => self.wire.answer(id, Ok(PromptResponse::new(StopReason::Cancelled))),
            Ok((request, session, Some(inbox))) => {
                session.memory.lock().parts = parts::told(&request.prompt);
                turn::start(Arc::clone(self), session, inbox, id, turn::text_of(&request.prompt));
            }
        }
    }

    /// Cancels a session's turn and those of all below it.
    fn cancel(&self, id: &SessionId) {
        if self.ignores_cancel.load(Ordering::Relaxed) {
            return;
        }
        self.cancel_children(id);
        let Ok(session) = self.session(id) else { return };
        if !session.cancel() && self.options.idle_cancel_poisons {
            session.poisoned.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn cancel_children(&self, id: &SessionId) {
        let sessions = self.sessions.lock();
        for session in sessions.values() {
            let mut parent = session.parent.as_ref();
            while let Some(above) = parent {
                if above == id {
                    session.cancel();
                    break;
                }
                parent = sessions.get(above).and_then(|session| session.parent.as_ref());
            }
        }
    }

    /// At the end of the process, whatever was said about ignoring a cancel.
    pub(super) fn cancel_all(&self) {
        for session in self.sessions.lock().values() {
            session.cancel();
        }
    }
}

pub(super) fn params_of<P: DeserializeOwned>(params: Value) -> Result<P, Error> {
    serde_json::from_value(params).map_err(|error| Error::invalid_params().data(error.to_string()))
}
