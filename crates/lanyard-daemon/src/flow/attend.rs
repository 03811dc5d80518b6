//! Seeing to an invocation: its session, its turn, and what came of it. Everything is asked for under ids that were written
//! down before, so that it is done once however often it is tried.

use lanyard_core::flow::{
    Conclusion, FailKind, FlowEvent, FlowRole, FlowState, Invocation, Progress, Spent, Stage, conclude,
    prompt, verdict,
};
use lanyard_core::session::{
    ActiveTurn, Command, Delivery, InboxChange, Message, NewSession, Refusal, State, StateName, TurnStatus,
    Usage,
};
use lanyard_core::{Actor, Cause, NoteId, Session, SessionId, TurnId};

use crate::flow::driver::{Driver, Next};
use crate::flow::{FlowError, look};
use lanyard_base::failpoint;
use lanyard_engine::engine::{Ask, AskError, Key, Request};

/// Where the sessions of flows come from.
pub(crate) const SOURCE: &str = "flow";

impl Driver {
    /// Writes down who is to work, before anybody does.
    pub(super) async fn invoke(
        &mut self,
        role: FlowRole,
        session: Option<SessionId>,
        fork_of: Option<SessionId>,
        guidance: Option<String>,
    ) -> Result<Next, FlowError> {
        let (now, clock) = (self.tools.clock.now(), &self.tools.clock);
        let turn = TurnId::mint(now, clock.random());
        let fresh = SessionId::mint(now, clock.random());
        let before = match session {
            Some(session) => self.used(session).await?,
            None => Spent::default(),
        };
        let continues = session.is_some();
        let session = session.unwrap_or(fresh);
        let step = self.flow.step + 1;
        let event = FlowEvent::Invoked { step, role, session, turn, continues, fork_of, guidance, before };
        self.write(vec![event], &Actor::system("flow")).await?;
        Ok(Next::Again)
    }

    async fn used(&self, session: SessionId) -> Result<Spent, FlowError> {
        let loaded = self.tools.on_disk(move |store| Ok(store.load(session)?)).await?;
        Ok(loaded.map(|loaded| spent(&loaded.session)).unwrap_or_default())
    }

    pub(super) async fn attend(&mut self) -> Result<Next, FlowError> {
        let Some(invocation) = self.flow.invocation.clone() else { return Ok(Next::Again) };
        let (id, turn) = (invocation.session, invocation.turn);
        let seen = self.tools.on_disk(move |store| look::seen(store, id, turn)).await?;
        let Some(session) = &seen.session else { return self.create(&invocation).await };
        if let Some(conclusion) = cut_short(session, &invocation) {
            return self.conclude(&invocation, conclusion).await;
        }
        let Some(row) = &seen.turn else { return self.prompt(&invocation, session).await };
        match row.status {
            TurnStatus::Queued | TurnStatus::Running => Ok(Next::Wait),
            TurnStatus::Completed => self.completed(&invocation, &seen.said).await,
            TurnStatus::Cancelled | TurnStatus::Withdrawn => {
                let why = row.reason.clone().unwrap_or_else(|| "its turn was ended".to_owned());
                let reason = format!("the turn of its {} was cancelled: {why}", invocation.role.as_str());
                self.conclude(&invocation, Conclusion::Cancelled { reason }).await
            }
            TurnStatus::Failed
            | TurnStatus::Refused
            | TurnStatus::Interrupted
            | TurnStatus::Uncertain
            | TurnStatus::Steered => {
                let (kind, reason) = look::failure(session, row);
                self.conclude(&invocation, Conclusion::Failed { kind, reason }).await
            }
        }
    }

    /// Makes the session; what is gone on with is not made anew.
    async fn create(&mut self, invocation: &Invocation) -> Result<Next, FlowError> {
        if invocation.continues {
            let (kind, reason) = (FailKind::Gone, "its session is not there any more".to_owned());
            return self.conclude(invocation, Conclusion::Failed { kind, reason }).await;
        }
        let title = format!("{}: {}", invocation.state, self.title());
        let ask = match invocation.fork_of {
            Some(source) => {
                Ask::Fork { id: invocation.session, source, at: None, title: Some(title.clone()) }
            }
            None => self.new_session(invocation, &title),
        };
        let mut asked = self.ask(ask, Some(key(&["session", &invocation.session.to_string()]))).await;
        // What cannot be forked is begun afresh: that is what was asked for in the first place.
        if let (Err(AskError::Refused(refusal)), Some(_)) = (&asked, invocation.fork_of) {
            tracing::warn!(flow = %self.flow.id, %refusal, "a session could not be forked; a new one is begun");
            let ask = self.new_session(invocation, &title);
            asked = self.ask(ask, Some(key(&["fresh session", &invocation.session.to_string()]))).await;
        }
        match asked {
            Ok(()) => Ok(Next::Again),
            Err(AskError::Refused(Refusal::Halted)) => Ok(Next::Wait),
            Err(AskError::Refused(refusal)) => {
                let (kind, reason) = (FailKind::NotStarted, refusal.to_string());
                self.conclude(invocation, Conclusion::Failed { kind, reason }).await
            }
            Err(error) => Err(error.into()),
        }
    }

    fn title(&self) -> String {
        self.flow.active().map_or_else(|| self.flow.title.clone(), |phase| phase.title.clone())
    }

    fn new_session(&self, invocation: &Invocation, title: &str) -> Ask {
        let role = self.flow.settings.role(invocation.role);
        // A flow is begun with the agents of its roles; one of an older daemon may lack them.
        let default = || self.tools.agents.default_name().ok();
        let agent = role.agent.clone().or_else(default);
        let new = NewSession {
            title: Some(lanyard_core::text::cut(title, lanyard_core::text::NAME_CHARS_MAX).0.to_owned()),
            agent,
            source: Some(SOURCE.to_owned()),
            workspace: Some(self.flow.folder()),
            plan: Some(self.flow.id.to_string()),
            phase: self.flow.active().map(|phase| phase.title.clone()),
            purpose: Some(invocation.role.as_str().to_owned()),
            ..NewSession::default()
        };
        Ask::Create { id: invocation.session, new: Box::new(new), parent: None }
    }

    async fn prompt(&mut self, invocation: &Invocation, session: &Session) -> Result<Next, FlowError> {
        let busy = session.state.name() == StateName::Executing;
        let ours = session.turn.as_ref().is_some_and(|turn| self.is_ours(turn));
        // What a timeout left running ends before the session is gone on with. Nobody else's turn is ended.
        let delivery = if ours && invocation.continues && invocation.stage == Stage::Work {
            Delivery::Interrupt
        } else if busy {
            return Ok(Next::Wait);
        } else {
            Delivery::Reject
        };
        let now = self.tools.clock.now();
        let message = Message {
            turn: invocation.turn,
            note: NoteId::mint(now, self.tools.clock.random()),
            client_turn_id: Some(self.client_turn(invocation)),
            prompt: prompt::text(&self.flow, invocation),
            parts: Vec::new(),
            delivery,
            memory: None,
            choice: lanyard_core::session::AgentChoice::default(),
            forced: false,
            take_over: false,
            review: None,
        };
        let send = Command::Inbox(InboxChange::Send(Box::new(message)).into());
        let key = key(&["turn", &invocation.turn.to_string()]);
        match self.command(invocation.session, send, Some(key)).await {
            Ok(()) => Ok(Next::Again),
            Err(FlowError::Ask(AskError::Refused(
                Refusal::Busy { .. } | Refusal::Halted | Refusal::BudgetSpent(_),
            ))) => Ok(Next::Wait),
            Err(FlowError::Ask(AskError::Refused(refusal))) => {
                let kind = if invocation.continues { FailKind::Gone } else { FailKind::NotStarted };
                let conclusion = Conclusion::Failed { kind, reason: refusal.to_string() };
                self.conclude(invocation, conclusion).await
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a turn was asked for by this flow.
    fn is_ours(&self, turn: &ActiveTurn) -> bool {
        let mark = format!("{}:", self.flow.id);
        turn.client_turn_id.as_ref().is_some_and(|client| client.starts_with(&mark))
    }

    /// By which its turns are known in the session.
    fn client_turn(&self, invocation: &Invocation) -> String {
        let stage = match invocation.stage {
            Stage::Work => "work",
            Stage::Summary => "summary",
            Stage::Repair => "repair",
        };
        format!("{}:{}:{stage}", self.flow.id, invocation.step)
    }

    /// The turn is over: the work, or what was said about it.
    async fn completed(&mut self, invocation: &Invocation, said: &str) -> Result<Next, FlowError> {
        let read = match (invocation.stage, invocation.role) {
            (Stage::Work, _) => return self.ask_for(Stage::Summary, None).await,
            (Stage::Summary | Stage::Repair, FlowRole::Author) => {
                match verdict::author(said, self.flow.needs_commit()) {
                    Ok(status) => self.checked(status).await?.map(Conclusion::Author),
                    Err(fault) => Err(fault),
                }
            }
            (Stage::Summary | Stage::Repair, FlowRole::Reviewer) => {
                verdict::verdict(said).map(Conclusion::Verdict)
            }
        };
        match (read, invocation.stage) {
            (Ok(conclusion), _) => self.conclude(invocation, conclusion).await,
            (Err(fault), Stage::Summary) => self.ask_for(Stage::Repair, Some(fault)).await,
            (Err(reason), Stage::Work | Stage::Repair) => {
                self.conclude(invocation, Conclusion::Failed { kind: FailKind::Unreadable, reason }).await
            }
        }
    }

    /// A commit that is named must be there, on the flow's branch, and new.
    async fn checked(
        &self,
        status: lanyard_core::flow::AuthorStatus,
    ) -> Result<Result<lanyard_core::flow::AuthorStatus, String>, FlowError> {
        let Some(commit) = status.commit.clone().filter(|_| status.status == Progress::Complete) else {
            return Ok(Ok(status));
        };
        if !self.flow.needs_commit() {
            return Ok(Ok(status));
        }
        let (folder, after) = (self.flow.folder(), self.flow.last_commit().map(str::to_owned));
        let looked = tokio::task::spawn_blocking(move || {
            lanyard_git::worktree::is_new_work(std::path::Path::new(&folder), &commit, after.as_deref())
        });
        Ok(looked.await.map_err(|_| FlowError::Closing)?.map(|()| status))
    }

    async fn ask_for(&mut self, stage: Stage, fault: Option<String>) -> Result<Next, FlowError> {
        let turn = TurnId::mint(self.tools.clock.now(), self.tools.clock.random());
        self.write(vec![FlowEvent::Asked { stage, turn, fault }], &Actor::system("flow")).await?;
        Ok(Next::Again)
    }

    async fn conclude(&mut self, invocation: &Invocation, conclusion: Conclusion) -> Result<Next, FlowError> {
        let looked = self.looked(invocation.session, Some(invocation.turn)).await?;
        let used = self.used(invocation.session).await?;
        let fresh = self.tools.fresh();
        let spent = Spent {
            input_tokens: used.input_tokens.saturating_sub(invocation.before.input_tokens),
            output_tokens: used.output_tokens.saturating_sub(invocation.before.output_tokens),
            cost_micros: used.cost_micros.saturating_sub(invocation.before.cost_micros),
            ms: fresh.now.millis_since(invocation.begun_at),
        };
        let events = conclude(&self.flow, conclusion, spent, looked, fresh);
        self.write(events, &Actor::system("flow")).await?;
        Ok(Next::Again)
    }

    /// Nobody waits for its turn any more.
    pub(super) async fn timed_out(&mut self) -> Result<(), FlowError> {
        let Some(invocation) = self.flow.invocation.clone() else { return Ok(()) };
        let (id, turn) = (invocation.session, invocation.turn);
        let seen = self.tools.on_disk(move |store| look::seen(store, id, turn)).await?;
        // A turn that is over is looked at as such, and one that waits for a person has all the time it needs.
        let over = seen.turn.as_ref().is_some_and(|row| !row.status.is_open());
        let asks = seen.session.as_ref().is_some_and(|session| session.open_gates().next().is_some());
        if over || asks {
            return Ok(());
        }
        let role = self.flow.settings.role(invocation.role);
        let begun = seen.turn.as_ref().is_some_and(|row| row.started_at.is_some());
        let reason = format!("more than {} ms", role.timeout_ms);
        let conclusion = if begun || !invocation.continues {
            Conclusion::Failed { kind: FailKind::Timeout, reason }
        } else {
            let reason = "it works at something else and does not let go".to_owned();
            Conclusion::Failed { kind: FailKind::Busy, reason }
        };
        if role.abort_on_timeout {
            self.cancel_turn(id, turn, "it took too long").await?;
        }
        self.conclude(&invocation, conclusion).await.map(drop)
    }

    /// The flow is over: its turn ends, and where all is done its session does.
    pub(super) async fn end_session(&self, id: SessionId) -> Result<(), FlowError> {
        let Some(loaded) = self.tools.on_disk(move |store| Ok(store.load(id)?)).await? else { return Ok(()) };
        let session = loaded.session;
        if session.deleted || session.state.is_ended() {
            return Ok(());
        }
        let command = match &session.turn {
            Some(turn) if !self.is_ours(turn) || turn.cancel_requested => return Ok(()),
            Some(_) => Command::CancelTurn { reason: Some("its flow ended".to_owned()) },
            None if self.flow.state == FlowState::Aborted => return Ok(()),
            None => Command::Complete { reason: Some("its flow is complete".to_owned()) },
        };
        match self.command(id, command, None).await {
            Ok(())
            | Err(FlowError::Ask(AskError::Refused(_) | AskError::Unknown(_) | AskError::Deleted(_))) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn command(
        &self,
        session: SessionId,
        command: Command,
        key: Option<Key>,
    ) -> Result<(), FlowError> {
        self.ask(Ask::Do { session, command }, key).await.map_err(FlowError::from)
    }

    async fn ask(&self, ask: Ask, key: Option<Key>) -> Result<(), AskError> {
        failpoint::hit("flows_before_act");
        let actor = Actor::system("flow");
        let cause = Some(Cause::Signal("flow".to_owned()));
        let request = Request { ask, actor, cause, keys: key.into_iter().collect() };
        let asked = self.tools.engine.ask(request).await.map(|_| ());
        failpoint::hit("flows_after_act");
        asked
    }
}

fn key(parts: &[&str]) -> Key {
    Key::once(&format!("flow\0{}", parts.join("\0")))
}

fn spent(session: &Session) -> Spent {
    let Usage { input_tokens, output_tokens, cost_micros, .. } = session.usage;
    Spent { input_tokens, output_tokens, cost_micros, ms: 0 }
}

/// Its session came to its end before its turn did: by a person's stop, or otherwise.
fn cut_short(session: &Session, invocation: &Invocation) -> Option<Conclusion> {
    let role = invocation.role.as_str();
    if session.state == State::Stopped || session.stop.is_some() {
        let why = session.end_reason.clone().map(|why| format!(": {why}")).unwrap_or_default();
        return Some(Conclusion::Cancelled { reason: format!("the session of its {role} was stopped{why}") });
    }
    if session.deleted || session.state.is_ended() {
        let (kind, reason) = (FailKind::Gone, "its session was ended".to_owned());
        return Some(Conclusion::Failed { kind, reason });
    }
    None
}
