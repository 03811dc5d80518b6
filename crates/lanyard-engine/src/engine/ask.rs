//! Carrying out one request: repeats, refusals, decisions. Nothing here waits or writes; it adds to the round.

use lanyard_core::continuity::Counter;
use lanyard_core::memory::MemoryAsk;
use lanyard_core::session::{
    self, ChangeEvent, Command, DrivenBy, Event, InboxCommand, Lineage, PauseReason, Refusal, ReviewCommand,
    Session, Signal, State, WriterCommand, create, decide, fork, link, may_write, observe, plan_delivery,
};
use lanyard_core::{ActorKind, Cause, Outcome, SessionId};
use lanyard_store::{Durability, KeptOutcome};

use crate::engine::worker::Worker;
use crate::engine::{Ask, AskError, Key, Reply, Request};
use lanyard_base::error_chain;

impl Worker {
    /// A session the request needs and that is not in memory.
    pub(super) fn missing(&self, ask: &Ask) -> Option<SessionId> {
        let absent = |id: &SessionId| !self.residents.contains(*id);
        match ask {
            Ask::Create { parent, .. } => parent.filter(absent),
            Ask::Import { .. } => None,
            Ask::Fork { source, .. } => Some(*source).filter(absent),
            Ask::Link { child, parent } => {
                let previous = self.residents.get(*child).and_then(|resident| resident.session.parent);
                [Some(*child), Some(*parent), previous].into_iter().flatten().find(absent)
            }
            Ask::Do { session, .. }
            | Ask::Send { session, .. }
            | Ask::Tell { session, .. }
            | Ask::Report { session, .. }
            | Ask::CallBegins { session, .. }
            | Ask::CallEnds { session, .. }
            | Ask::CallPassed { session, .. }
            | Ask::Measure { session }
            | Ask::Nudge { session } => Some(*session).filter(absent),
        }
    }

    pub(super) fn carry_out(&mut self, request: &Request) -> Result<Reply, AskError> {
        if let Some(kept) = self.kept(request)? {
            return Ok(Reply { repeated: true, ..kept.into() });
        }
        let outcome = match &request.ask {
            Ask::Create { id, new, parent } => self.create(request, *id, new, *parent)?,
            Ask::Import { id, new, import, past } => {
                self.create(request, *id, new, None)?;
                self.import(request, *id, import, past)?
            }
            Ask::Fork { id, source, at, title } => self.fork(request, *id, *source, *at, title.as_ref())?,
            Ask::Link { child, parent } => self.link(request, *child, *parent)?,
            Ask::Do { session, command } => self.command(request, *session, command)?,
            Ask::Send { session, sending } => return self.send(request, *session, sending),
            Ask::Tell { session, signals } => self.signals(request, *session, signals)?,
            Ask::Report { session, signal } => self.report(request, *session, signal)?,
            Ask::CallBegins { session, call } => return self.call_begins(request, *session, call),
            Ask::CallEnds { session, call, returned, .. } => {
                return self.call_ends(request, *session, call, *returned);
            }
            Ask::CallPassed { session, call, returned } => {
                self.resident(*session)?;
                // Its answer went out while no subagent shared the connection, whatever does by now.
                self.saw_call(*session, call);
                self.call_returned(*session, call);
                let events = session::call_passed(self.resident(*session)?, call, returned);
                let written = self.write_all(*session, events, request);
                self.outcome(*session, written)?
            }
            Ask::Measure { session } => {
                let budget = Some(Box::new(self.budget_status(*session)?));
                return Ok(Reply { budget, ..self.outcome(*session, 0)?.into() });
            }
            Ask::Nudge { session } => return self.nudge(request, *session),
        };
        for key in &request.keys {
            self.keep(*key, &outcome);
        }
        Ok(outcome.into())
    }

    /// Keeps an outcome for repeats of its key.
    pub(super) fn keep(&mut self, key: Key, outcome: &Outcome) {
        self.draft.batch.durability = Durability::Synced;
        let Key { key, request } = key;
        let kept = KeptOutcome { key, request, at: self.draft.now, outcome: outcome.clone() };
        self.draft.keys.insert(key, self.draft.batch.outcomes.len());
        self.draft.batch.outcomes.push(kept);
    }

    /// What is kept under a key, on disk or in this round.
    pub(super) fn kept_under(&self, key: Key) -> Result<Option<KeptOutcome>, AskError> {
        match self.draft.keys.get(&key.key) {
            Some(at) => Ok(self.draft.batch.outcomes.get(*at).cloned()),
            None => self.store.outcome(&key.key).map_err(|error| unavailable(&error)),
        }
    }

    /// The outcome one of the request's keys was given before.
    fn kept(&self, request: &Request) -> Result<Option<Outcome>, AskError> {
        for key in &request.keys {
            match self.kept_under(*key)? {
                Some(kept) if kept.request != key.request => return Err(AskError::KeyConflict),
                Some(kept) => return Ok(Some(kept.outcome)),
                None => {}
            }
        }
        Ok(None)
    }

    fn create(
        &mut self,
        request: &Request,
        id: SessionId,
        new: &session::NewSession,
        parent: Option<SessionId>,
    ) -> Result<Outcome, AskError> {
        if self.residents.contains(id) {
            return Err(AskError::Defect(format!("session {id} is there already")));
        }
        if self.store.tombstone(id).map_err(|error| unavailable(&error))?.is_some() {
            return Err(AskError::Deleted(id));
        }
        // What others started is there in any case, and better watched than not.
        let elsewhere = [Some(session::EXTERNAL), Some(session::IMPORTED)];
        let started_elsewhere = new.observed || elsewhere.contains(&new.source.as_deref());
        if self.engine.halting.is_on() && !started_elsewhere {
            return Err(self.refused(request, parent, "create", Refusal::Halted));
        }
        let under = parent.and_then(|parent| self.residents.get(parent));
        let under = under.map(|resident| (&resident.session, &resident.lineage));
        let mut new = new.clone();
        if parent.is_none() {
            let ask = MemoryAsk { mode: new.memory_mode, ..MemoryAsk::default() };
            new.memory = Some(new.memory.unwrap_or(ask).or(new.memory_mode, &self.memory));
        }
        if new.source.as_deref() != Some(session::EXTERNAL) && !new.observed && new.driven_by.is_none() {
            new.driven_by = Some(self.runs_here(new.agent.as_deref()));
        }
        let mode = new.choice.check(request.actor.kind);
        if let Err(refusal) = mode {
            return Err(self.refused(request, parent, "create", refusal));
        }
        let created = match create(&new, &request.actor.name, under, &self.rules.limits) {
            Ok(created) => created,
            Err(refusal) => return Err(self.refused(request, parent, "create", refusal)),
        };
        if let session::ChangeEvent::Created(created) = &created {
            for alias in &created.aliases {
                self.claim_alias(alias, created.workspace.as_ref(), created.plan.as_ref())?;
            }
        }
        self.write(id, created.into(), request);
        if self.continuity.is_accident(&request.actor, self.draft.now) {
            self.draft.count(&[(Counter::AccidentalNewSessions, 1)].into_iter().collect());
        }
        if let Some(parent) = parent {
            let agent = new.agent.clone();
            self.write(parent, session::ChangeEvent::ChildLinked { child: id, agent }.into(), request);
            let inherited = self.residents.get(parent).and_then(|held| session::inherited(&held.session));
            if let Some(stop) = inherited {
                self.write(id, stop, request);
            }
        }
        self.outcome(id, 1)
    }

    fn fork(
        &mut self,
        request: &Request,
        id: SessionId,
        source: SessionId,
        at: Option<u64>,
        title: Option<&String>,
    ) -> Result<Outcome, AskError> {
        if self.engine.halting.is_on() {
            return Err(AskError::Refused(Refusal::Halted));
        }
        let mut created = fork(self.resident(source)?, at, title.cloned()).map_err(AskError::Refused)?;
        if let session::ChangeEvent::Created(created) = &mut created {
            created.driven_by = Some(self.runs_here(created.agent.as_deref()));
        }
        self.write(id, created.into(), request);
        self.outcome(id, 1)
    }

    fn link(&mut self, request: &Request, child: SessionId, parent: SessionId) -> Result<Outcome, AskError> {
        // The height of the child's family is read from the journal, which must hold all of it.
        self.flush()?;
        let depth = self.rules.limits.depth.saturating_add(1);
        let height = self.store.height(child, depth).map_err(|error| unavailable(&error))?;
        let lineage = self.lineage(parent)?;
        let linked = link(self.resident(child)?, self.resident(parent)?, &lineage, height);
        let (down, up, unlinked) = match linked {
            Ok(events) => events,
            Err(refusal) => return Err(self.refused(request, Some(child), "link", refusal)),
        };
        self.write(child, down, request);
        self.write(parent, up, request);
        if let Some((previous, event)) = unlinked {
            self.write(previous, event, request);
        }
        let above = self.lineage_under(Some(parent));
        self.residents.relink(child, &above);
        self.spending.regroup();
        self.outcome(child, 1)
    }

    fn command(&mut self, request: &Request, id: SessionId, command: &Command) -> Result<Outcome, AskError> {
        let mut command = command.clone();
        if let Command::Delete { children, .. } = &mut command {
            self.flush()?;
            *children = self.store.live_children(id).map_err(|error| unavailable(&error))?;
        }
        if let Command::Inbox(inbox) = &command {
            self.words(request, id, inbox)?;
        }
        if let Command::Writer(WriterCommand::Claim { holder_gone, .. }) = &mut command {
            *holder_gone = self.writer_gone(id)?;
        }
        self.may_command(request, id, &command)?;
        if let Err(refusal) = operators_only(self.resident(id)?, &command, request.actor.kind) {
            return Err(self.refused(request, Some(id), command.name(), refusal));
        }
        let events = match decide(self.resident(id)?, &command, self.draft.now, &self.rules) {
            Ok(events) => events,
            Err(refusal) => return Err(self.refused(request, Some(id), command.name(), refusal)),
        };
        if let Some(refusal) = self.hindrance(id, &events)? {
            return Err(self.refused(request, Some(id), command.name(), refusal));
        }
        let session = self.resident(id)?;
        if let (Command::AddAlias { alias }, false) = (&command, events.is_empty()) {
            let (workspace, plan) = (session.workspace.clone(), session.plan.clone());
            self.claim_alias(alias, workspace.as_ref(), plan.as_ref())?;
        }
        let warnings = guidance_warnings(&events);
        let starts_later = is_resumed(&events) && !session::starts_run(&events);
        let driven = self.driven_after(self.resident(id)?, &events);
        let mut written = self.write_all(id, events, request);
        written += self.write_all(id, driven.into_iter().collect(), request);
        let mut outcome = self.outcome(id, written)?;
        match &command {
            Command::StartTurn { turn, .. } => outcome.turn = Some(*turn),
            Command::CancelTurn { .. } => {
                outcome.turn = self.resident(id)?.turn.as_ref().map(|turn| turn.id);
            }
            Command::Guide { note, .. } => {
                outcome.note = Some(*note);
                outcome.delivery = Some(plan_delivery(self.resident(id)?, self.is_shared(id)));
                outcome.warnings = warnings;
            }
            Command::Notify { note, .. } => outcome.note = Some(*note),
            Command::Migrate { .. } => outcome.continuity = self.resident(id)?.carries,
            Command::Review(ReviewCommand::Draft(draft)) => outcome.comment = Some(draft.comment),
            Command::Inbox(command) => outcome.turn = command.change.turn(),
            Command::Resume { .. } if starts_later => outcome.warnings = vec![STARTS_LATER.to_owned()],
            Command::Complete { .. }
            | Command::Fail { .. }
            | Command::Stop { .. }
            | Command::WithdrawStop { .. }
            | Command::WithdrawGuidance { .. }
            | Command::AnswerGate { .. }
            | Command::Resume { .. }
            | Command::AddAlias { .. }
            | Command::Rename { .. }
            | Command::SetAnchors { .. }
            | Command::SetMemory { .. }
            | Command::Choose { .. }
            | Command::Checkpoint
            | Command::See { .. }
            | Command::Writer(_)
            | Command::Review(_)
            | Command::Archive
            | Command::Unarchive
            | Command::Reset { .. }
            | Command::Delete { .. } => {}
        }
        Ok(outcome)
    }

    /// Refuses agents what is for operators alone: a mode without approvals, and bringing back what an operator stopped.
    fn may_command(&mut self, request: &Request, id: SessionId, command: &Command) -> Result<(), AskError> {
        let kind = request.actor.kind;
        let refusal = if let Command::Choose { choice } = command {
            choice.check(kind).err()
        } else if matches!(command, Command::Resume { .. }) && kind == ActorKind::Agent {
            let session = self.resident(id)?;
            let state = session.state.name();
            (session.state == State::Stopped).then_some(Refusal::Ended { session: id, state })
        } else {
            None
        };
        match refusal {
            Some(refusal) => Err(self.refused(request, Some(id), command.name(), refusal)),
            None => Ok(()),
        }
    }

    /// What keeps the work of these events from beginning: a halt of all work, or a spent budget.
    fn hindrance(&mut self, id: SessionId, events: &[Event]) -> Result<Option<Refusal>, AskError> {
        if self.is_halted(id, events)? {
            return Ok(Some(Refusal::Halted));
        }
        Ok(self.over_budget(id, events)?.map(Refusal::BudgetSpent))
    }

    /// Whether these events would start work while all work is halted. A turn of a subagent has begun already.
    pub(super) fn is_halted(&self, id: SessionId, events: &[Event]) -> Result<bool, AskError> {
        if !self.engine.halting.is_on() || !session::starts_work(events) {
            return Ok(false);
        }
        Ok(!self.resident(id)?.live_run().is_some_and(|run| run.mirrored))
    }

    /// What is part of the conversation is the writer's alone, while there is one.
    pub(super) fn words(
        &mut self,
        request: &Request,
        id: SessionId,
        command: &InboxCommand,
    ) -> Result<(), AskError> {
        let gone = self.writer_gone(id)?;
        match may_write(self.resident(id)?, command.writer_epoch, &request.actor, gone) {
            Ok(events) => self.write_all(id, events, request),
            Err(refusal) => return Err(self.refused(request, Some(id), command.change.name(), refusal)),
        };
        Ok(())
    }

    /// Whether the session's writer has been away for longer than its lease lasts. A daemon that has just started has
    /// seen nobody yet, and gives everyone the time to come back.
    fn writer_gone(&self, id: SessionId) -> Result<bool, AskError> {
        let Some(writer) = &self.resident(id)?.writer else { return Ok(false) };
        let seen = (self.seen)(id, writer.pen.connection);
        let last = seen.into_iter().chain([writer.since, self.started]).max();
        Ok(last.is_none_or(|last| self.draft.now.millis_since(last) > self.rules.writer.lapse_ms))
    }

    /// Signals that are told together become true together. What an agent wrote is told again after a crash, and
    /// what the log has of it is not written twice.
    fn signals(&mut self, request: &Request, id: SessionId, signals: &[Signal]) -> Result<Outcome, AskError> {
        if let (Some(Cause::Output { run, to }), Some(held)) = (&request.cause, &self.resident(id)?.run)
            && held.id == *run
            && held.cursor >= *to
        {
            return self.outcome(id, 0);
        }
        if signals.iter().any(|signal| matches!(signal, Signal::Due { .. })) {
            self.draft.flagged.insert(id);
        }
        self.know_spending(id)?;
        let mut written = 0;
        let spawning = !self.resident(id)?.open_spawns.is_empty();
        for signal in signals {
            let mut events = observe(self.resident(id)?, signal, &self.rules);
            if self.engine.halting.is_on() {
                events = session::held(self.resident(id)?, events, PauseReason::Halted);
            }
            events = self.within_budget(id, events)?;
            written += self.write_all(id, events, request);
        }
        if spawning == self.resident(id)?.open_spawns.is_empty() {
            self.draft.flagged.insert(id);
        }
        self.outcome(id, written)
    }

    /// A signal from outside: believed as far as its origin can know it, else refused, and that is written down.
    fn report(&mut self, request: &Request, id: SessionId, signal: &Signal) -> Result<Outcome, AskError> {
        let (held, calls_open) = (self.resident(id)?, self.engine.flags.answer_is_due(id));
        let origin = session::Origin::of(request.actor.kind, held);
        if let Err(refusal) = session::check_origin(origin, held, signal, calls_open) {
            return Err(self.refused(request, Some(id), signal.name(), refusal));
        }
        self.signals(request, id, std::slice::from_ref(signal))
    }

    /// Looks whether the session has been quiet long enough for its state to change. The answer's `seq` is after how
    /// many milliseconds it is worth looking again.
    fn nudge(&mut self, request: &Request, id: SessionId) -> Result<Reply, AskError> {
        self.draft.flagged.insert(id);
        let session = self.resident(id)?;
        let quiet_ms = self.clock.elapsed_ms(session.last_activity_at);
        let events = observe(session, &Signal::Quiet { for_ms: quiet_ms }, &self.rules);
        let staleness = &self.rules.staleness;
        let next = [staleness.idle_after_ms, staleness.stale_after_ms]
            .into_iter()
            .filter(|limit| *limit > quiet_ms)
            .min()
            .map_or(staleness.stale_after_ms, |limit| limit - quiet_ms);
        let written = self.write_all(id, events, request);
        let mut outcome = self.outcome(id, written)?;
        outcome.seq = next;
        Ok(outcome.into())
    }

    /// Who runs a session of this agent that is made for Lanyard to run.
    fn runs_here(&self, agent: Option<&str>) -> DrivenBy {
        let known = agent.is_some_and(|agent| self.settings.has_agent(agent));
        if known { DrivenBy::Lanyard } else { DrivenBy::Nobody }
    }

    /// Another agent may be one that Lanyard runs, or none.
    fn driven_after(&self, session: &Session, events: &[Event]) -> Option<Event> {
        let other = events.iter().find_map(|event| match event {
            Event::Change(ChangeEvent::Migrated { from, to, .. }) if from.agent != to.agent => Some(to),
            Event::Change(_)
            | Event::Turn(_)
            | Event::Inbox(_)
            | Event::Context(_)
            | Event::Control(_)
            | Event::Transcript(_)
            | Event::Run(_)
            | Event::Gate(_)
            | Event::Writer(_)
            | Event::Review(_) => None,
        })?;
        let by = match (session.driver(), self.runs_here(other.agent.as_deref())) {
            (_, DrivenBy::Lanyard) => DrivenBy::Lanyard,
            (DrivenBy::Lanyard, other) => other,
            // Its own host goes on with another name for its agent.
            (held, _) => held,
        };
        (by != session.driver()).then(|| ChangeEvent::Driven { by }.into())
    }

    pub(super) fn write_all(&mut self, id: SessionId, events: Vec<Event>, request: &Request) -> u32 {
        let count = u32::try_from(events.len()).unwrap_or(u32::MAX);
        for event in events {
            self.write(id, event, request);
        }
        count
    }

    /// Records the refusal where the log should tell of it, and passes it on.
    pub(super) fn refused(
        &mut self,
        request: &Request,
        session: Option<SessionId>,
        command: &str,
        refusal: Refusal,
    ) -> AskError {
        let busy = matches!(refusal, Refusal::Busy { .. } | Refusal::WriterHeld { .. });
        if let Some(id) = session
            && let Some(resident) = self.residents.get(id)
            && let Some(event) = refusal.record(&resident.session, command)
        {
            self.write(id, event, request);
            if busy {
                self.draft.count(&[(Counter::BusyRejections, 1)].into_iter().collect());
            }
        } else if busy {
            self.continuity.count(Counter::BusyRejections, self.draft.now);
        }
        AskError::Refused(refusal)
    }

    /// An alias is unique in its workspace and plan, among what is on disk and in this round.
    fn claim_alias(
        &mut self,
        alias: &str,
        workspace: Option<&String>,
        plan: Option<&String>,
    ) -> Result<(), AskError> {
        if alias.parse::<SessionId>().is_ok() {
            return Err(AskError::AliasReserved(alias.to_owned()));
        }
        let place = (workspace.cloned(), plan.cloned(), alias.to_owned());
        let taken = self.store.alias_taken(alias, workspace.map(String::as_str), plan.map(String::as_str));
        if taken.map_err(|error| unavailable(&error))? || !self.draft.aliases.insert(place) {
            return Err(AskError::AliasTaken(alias.to_owned()));
        }
        Ok(())
    }

    pub(super) fn resident(&self, id: SessionId) -> Result<&lanyard_core::Session, AskError> {
        match self.residents.get(id) {
            Some(resident) if resident.session.deleted => Err(AskError::Deleted(id)),
            Some(resident) => Ok(&resident.session),
            None => Err(AskError::Unknown(id)),
        }
    }

    pub(super) fn lineage(&self, id: SessionId) -> Result<Lineage, AskError> {
        self.residents.get(id).map(|resident| resident.lineage.clone()).ok_or(AskError::Unknown(id))
    }

    pub(super) fn outcome(&self, id: SessionId, events: u32) -> Result<Outcome, AskError> {
        let Some(resident) = self.residents.get(id) else { return Err(AskError::Unknown(id)) };
        let session = &resident.session;
        Ok(Outcome {
            session: id,
            seq: session.seq,
            events,
            state: session.state.name(),
            turn: None,
            note: None,
            comment: None,
            delivery: None,
            continuity: None,
            stop_level: session.stop.as_ref().map(|stop| stop.level.into()),
            warnings: Vec::new(),
        })
    }
}

/// Refuses what is an operator's alone: a review, and for agents to bring a stopped session back.
fn operators_only(session: &Session, command: &Command, actor: ActorKind) -> Result<(), Refusal> {
    let looks_only = matches!(actor, ActorKind::Agent | ActorKind::Observer);
    if looks_only && matches!(command, Command::Review(_)) {
        return Err(Refusal::ReviewForbidden);
    }
    let stopped = session.state == State::Stopped;
    if stopped && actor == ActorKind::Agent && matches!(command, Command::Resume { .. }) {
        return Err(Refusal::Ended { session: session.id, state: session.state.name() });
    }
    Ok(())
}

pub(super) fn unavailable(error: &lanyard_store::StoreError) -> AskError {
    AskError::Unavailable(error_chain(error))
}

/// What an operator is told whose resume starts no process.
const STARTS_LATER: &str = "no process was started; work begins with the next prompt";

fn is_resumed(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Change(ChangeEvent::Resumed { .. })))
}

fn guidance_warnings(events: &[Event]) -> Vec<String> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Control(session::ControlEvent::GuidanceQueued { warnings, .. }) => Some(warnings.clone()),
            Event::Change(_)
            | Event::Turn(_)
            | Event::Inbox(_)
            | Event::Context(_)
            | Event::Control(_)
            | Event::Transcript(_)
            | Event::Run(_)
            | Event::Gate(_)
            | Event::Writer(_)
            | Event::Review(_) => None,
        })
        .flatten()
        .collect()
}
