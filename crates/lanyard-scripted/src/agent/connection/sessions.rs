//! How sessions come, come back, and go.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use agent_client_protocol_schema::v1::{
    CloseSessionRequest, CloseSessionResponse, ContentChunk, Error, ForkSessionRequest, ForkSessionResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, NewSessionRequest,
    NewSessionResponse, RequestId, ResumeSessionRequest, ResumeSessionResponse, SessionId, SessionInfo,
    SessionNotification, SessionUpdate,
};
use serde_json::Value;

use super::{Agent, Memory, Session, SessionPlace, params_of};
use crate::agent::state::{Header, History, Record, Saved};

/// Sessions one process keeps loaded, children included.
const SESSIONS_MAX: usize = 1_024;
/// How much of a first prompt makes a title.
const TITLE_MAX: usize = 60;

impl Agent {
    pub(in crate::agent) fn session(&self, id: &SessionId) -> Result<Arc<Session>, Error> {
        self.sessions.lock().get(id).cloned().ok_or_else(|| Error::session_not_found(id.clone()))
    }

    /// Opens a session and answers with what it offers.
    pub(super) fn open(&self, id: RequestId, params: Value) {
        let made = params_of(params).and_then(|request| self.new_session(request));
        let answer =
            made.as_ref().map_err(Clone::clone).and_then(|made| self.with_choices(&made.session_id, made));
        self.wire.answer(id, answer);
        if let Ok(made) = made {
            self.tell_commands(&made.session_id);
        }
    }

    fn new_session(&self, request: NewSessionRequest) -> Result<NewSessionResponse, Error> {
        let place = SessionPlace { cwd: request.cwd, servers: request.mcp_servers };
        let session = self.make(place, None, None, &[])?;
        Ok(NewSessionResponse::new(session.id.clone()))
    }

    /// A session under a new id.
    pub(in crate::agent) fn make(
        &self,
        place: SessionPlace,
        parent: Option<SessionId>,
        title: Option<String>,
        records: &[Record],
    ) -> Result<Arc<Session>, Error> {
        if !place.cwd.is_absolute() {
            return Err(Error::invalid_params().data("cwd must be an absolute path"));
        }
        let mut bits = [0_u8; 8];
        getrandom::fill(&mut bits).map_err(Error::into_internal_error)?;
        let id = SessionId::new(format!("scr_{:016x}", u64::from_ne_bytes(bits)));
        let header = Header { session: id, cwd: place.cwd.clone(), parent, title };
        let history = self.store.create(&header, records).map_err(Error::into_internal_error)?;
        let saved = Saved { header, records: records.to_vec() };
        self.keep(saved, history, place)
    }

    fn keep(&self, saved: Saved, history: History, place: SessionPlace) -> Result<Arc<Session>, Error> {
        let memory = Memory { prompts: saved.prompts(), history, cents: 0, parts: String::new() };
        let session = Arc::new(Session {
            id: saved.header.session,
            parent: saved.header.parent,
            place,
            memory: Mutex::new(memory),
            running: Mutex::default(),
            poisoned: AtomicBool::new(false),
            chosen: Mutex::default(),
        });
        let mut sessions = self.sessions.lock();
        if sessions.len() >= SESSIONS_MAX && !sessions.contains_key(&session.id) {
            return Err(Error::new(-32000, format!("more than {SESSIONS_MAX} sessions; close some")));
        }
        sessions.insert(session.id.clone(), Arc::clone(&session));
        Ok(session)
    }

    /// Brings a session back from disk, and gives what is to be replayed.
    fn bring_back(&self, id: &SessionId, place: SessionPlace) -> Result<Vec<Record>, Error> {
        if self.options.refuse_resume {
            return Err(Error::new(-32002, "this agent refuses to resume").data(id.to_string()));
        }
        if self.sessions.lock().get(id).is_some_and(|session| session.running.lock().is_some()) {
            return Err(Error::new(-32600, "this session is busy with an earlier prompt"));
        }
        let header = || Header { session: id.clone(), cwd: place.cwd.clone(), parent: None, title: None };
        let saved = if self.options.resume_empty {
            Saved { header: header(), records: Vec::new() }
        } else {
            self.store.read(id).ok_or_else(|| Error::session_not_found(id.clone()))?
        };
        let history = self.store.append(id).map_err(Error::into_internal_error)?;
        let records = saved.records.clone();
        self.keep(saved, history, place)?;
        Ok(records)
    }

    pub(super) fn load(&self, id: RequestId, params: Value) {
        let request: LoadSessionRequest = match params_of(params) {
            Ok(request) => request,
            Err(error) => return self.wire.answer(id, Err::<Value, Error>(error)),
        };
        let place = SessionPlace { cwd: request.cwd, servers: request.mcp_servers };
        let records = match self.bring_back(&request.session_id, place) {
            Ok(records) => records,
            Err(error) => return self.wire.answer(id, Err::<Value, Error>(error)),
        };
        if self.options.late_replay {
            self.wire.answer(id, self.with_choices(&request.session_id, &LoadSessionResponse::new()));
            return self.replay(&request.session_id, records);
        }
        self.replay(&request.session_id, records);
        self.wire.answer(id, self.with_choices(&request.session_id, &LoadSessionResponse::new()));
        self.tell_commands(&request.session_id);
    }

    fn replay(&self, id: &SessionId, records: Vec<Record>) {
        for record in records {
            let update = match record {
                Record::Prompt(text) => SessionUpdate::UserMessageChunk(ContentChunk::new(text.into())),
                Record::Update(update) => *update,
            };
            self.wire.notify("session/update", &SessionNotification::new(id.clone(), update));
        }
    }

    pub(super) fn resume(&self, request: ResumeSessionRequest) -> Result<Value, Error> {
        let place = SessionPlace { cwd: request.cwd, servers: request.mcp_servers };
        self.bring_back(&request.session_id, place)?;
        self.with_choices(&request.session_id, &ResumeSessionResponse::new())
    }

    pub(super) fn fork(&self, request: ForkSessionRequest) -> Result<ForkSessionResponse, Error> {
        if let Ok(session) = self.session(&request.session_id) {
            session.memory.lock().history.flush();
        }
        let saved = self
            .store
            .read(&request.session_id)
            .ok_or_else(|| Error::session_not_found(request.session_id.clone()))?;
        let place = SessionPlace { cwd: request.cwd, servers: request.mcp_servers };
        let fork = self.make(place, None, saved.header.title, &saved.records)?;
        Ok(ForkSessionResponse::new(fork.id.clone()))
    }

    pub(super) fn list(&self, request: &ListSessionsRequest) -> ListSessionsResponse {
        let wanted = |saved: &Saved| request.cwd.as_ref().is_none_or(|cwd| *cwd == saved.header.cwd);
        let told = |saved: Saved| {
            let first = saved.prompts().first().and_then(|text| text.lines().next().map(title_of));
            let title = saved.header.title.or(first);
            SessionInfo::new(saved.header.session, saved.header.cwd).title(title)
        };
        ListSessionsResponse::new(self.store.list().into_iter().filter(wanted).map(told).collect())
    }

    /// Ends the session's turn and forgets it; its file stays.
    pub(super) fn close(&self, request: &CloseSessionRequest) -> Result<CloseSessionResponse, Error> {
        let session = self.session(&request.session_id)?;
        self.cancel(&session.id);
        self.sessions.lock().remove(&session.id);
        Ok(CloseSessionResponse::new())
    }
}

fn title_of(line: &str) -> String {
    line.chars().take(TITLE_MAX).collect()
}
