//! The one place where a flow changes. The same when running and when replaying; a contradiction is an error, so a bad
//! event is never written.

use crate::actor::ActorKind;
use crate::flow::advance::deadline;
use crate::flow::event::{Conclusion, FlowCreated, FlowEnvelope, FlowEvent, Spent};
use crate::flow::gate::{Choice, FlowGate, GateAnswered};
use crate::flow::record::{
    Check, CheckResult, Flow, FlowKind, FlowPending, FlowState, Invocation, Lease, PhaseState, SESSIONS_MAX,
    Stage, Worked,
};
use crate::flow::stall::{FlowStall, error_hash, reason_hash};
use crate::id::{FlowId, GateId, SessionId};
use crate::log::{LogEntry, Record};
use crate::time::Timestamp;

impl LogEntry for FlowEnvelope {
    type Id = FlowId;

    fn record(&self) -> FlowId {
        self.flow
    }

    fn seq(&self) -> u64 {
        self.seq
    }
}

impl Record for Flow {
    const KIND: &'static str = "flow";

    type Entry = FlowEnvelope;

    fn id(&self) -> FlowId {
        self.id
    }

    fn seq(&self) -> u64 {
        self.seq
    }

    fn skip_to(&mut self, seq: u64) {
        self.seq = seq;
    }

    fn is_ended(&self) -> bool {
        self.state.is_ended()
    }

    fn first(envelope: &FlowEnvelope) -> Result<Self, &'static str> {
        let FlowEvent::Created(created) = &envelope.event else {
            return Err("a flow begins with its creation");
        };
        Ok(Self::fresh(envelope, created))
    }

    fn change(&mut self, envelope: &FlowEnvelope) -> Result<(), &'static str> {
        if self.state.is_ended() && !envelope.event.may_follow_the_end() {
            return Err("the flow has ended");
        }
        let at = envelope.at;
        match &envelope.event {
            FlowEvent::Created(_) => return Err("a flow is created once"),
            FlowEvent::Leased { holder, epoch, .. } => self.lease_to(holder, *epoch, at)?,
            FlowEvent::TreeMade { tree } => self.tree = Some(tree.clone()),
            FlowEvent::Invoked { .. } => self.invoked(&envelope.event, at)?,
            FlowEvent::Asked { stage, turn, fault } => {
                let invocation = self.invocation.as_mut().ok_or("nobody works")?;
                invocation.stage = *stage;
                invocation.turn = *turn;
                invocation.asked_at = at;
                invocation.fault.clone_from(fault);
            }
            FlowEvent::Concluded { conclusion, spent } => self.concluded(conclusion, spent)?,
            FlowEvent::CheckBegun { place, run } => {
                if self.state != FlowState::QualityCheck || self.check.is_some() {
                    return Err("no check is to be run");
                }
                self.check = Some(Check { place: *place, run: run.clone(), begun_at: at });
                if *place == 0 {
                    self.checks.clear();
                }
            }
            FlowEvent::CheckEnded { result } => {
                self.check.take().ok_or("no check is run")?;
                self.checks.push(result.clone());
                self.round_ended();
            }
            FlowEvent::Moved { to, reason } => self.moved(*to, reason.as_deref(), at)?,
            FlowEvent::Retried { session, guidance, .. } => self.retried(*session, guidance.as_deref())?,
            FlowEvent::PhaseEnded { phase, state } => self.phase_ended(*phase, *state)?,
            FlowEvent::GateOpened { gate } => self.asked(gate)?,
            FlowEvent::GateAnswered { gate, answer } => self.answered(*gate, answer)?,
            FlowEvent::ContinuationWithdrawn { gate, why } => {
                let open =
                    self.gate.as_mut().filter(|open| open.id == *gate).ok_or("no such gate is open")?;
                open.continue_session = None;
                open.not_offered = Some(why.clone());
            }
            FlowEvent::SessionPreserved { preserved } => self.preserved.push(preserved.clone()),
            FlowEvent::SessionReleased { session, .. } => {
                self.preserved.retain(|kept| kept.session != *session);
            }
            FlowEvent::Ended { state, reason } => {
                if !state.is_ended() {
                    return Err("it is not an end");
                }
                self.came_from = Some(self.state);
                self.ended_by = Some(envelope.actor.clone());
                self.pending = self.left_unsaid().filter(|_| *state == FlowState::Aborted);
                self.check = None;
                self.enter(*state, reason.as_deref(), at);
                self.settled = false;
            }
            FlowEvent::Settled { captured, tree_removed, .. } => {
                self.settled = true;
                self.captured = captured.clone().or(self.captured.take());
                if let Some(tree) = &mut self.tree {
                    tree.removed = *tree_removed;
                }
            }
            FlowEvent::Resumed {} => self.resumed(at)?,
            FlowEvent::Hooked { to, .. } => self.hooked = *to,
        }
        Ok(())
    }
}

impl Flow {
    fn fresh(envelope: &FlowEnvelope, created: &FlowCreated) -> Self {
        let state = match created.kind {
            FlowKind::Phases => FlowState::Execute,
            FlowKind::PlanReview => FlowState::Review,
        };
        let mut phases = created.phases.clone();
        let phase = phases.iter().position(|phase| phase.state == PhaseState::Open).unwrap_or(phases.len());
        if let Some(first) = phases.get_mut(phase) {
            first.state = PhaseState::Active;
        }
        Self {
            id: envelope.flow,
            seq: 1,
            kind: created.kind,
            title: created.title.clone(),
            plan: created.plan.clone(),
            plan_hash: created.plan_hash.clone(),
            workspace: created.workspace.clone(),
            settings: created.settings.clone(),
            created_at: envelope.at,
            created_by: envelope.actor.clone(),
            request: created.request.clone(),
            phases,
            phase,
            state,
            since: envelope.at,
            reason: None,
            ended_by: None,
            came_from: None,
            step: 0,
            decided_at_step: 0,
            iteration: 0,
            quality_retries: 0,
            auto_retries: 0,
            items: Vec::new(),
            check: None,
            checks: Vec::new(),
            invocation: None,
            pending: None,
            gate: None,
            preserved: Vec::new(),
            sessions: Vec::new(),
            spent: Spent::default(),
            stall: FlowStall::default(),
            tree: None,
            captured: None,
            settled: false,
            lease: None,
            hooked: 0,
        }
    }

    fn lease_to(&mut self, holder: &str, epoch: u64, at: Timestamp) -> Result<(), &'static str> {
        if self.lease.as_ref().is_some_and(|lease| epoch <= lease.epoch) {
            return Err("a lease's number only grows");
        }
        self.lease = Some(Lease { holder: holder.to_owned(), epoch, since: at });
        Ok(())
    }

    fn invoked(&mut self, event: &FlowEvent, at: Timestamp) -> Result<(), &'static str> {
        let FlowEvent::Invoked { step, role, session, turn, continues, fork_of, guidance, before } = event
        else {
            return Err("it is no invocation");
        };
        if self.invocation.is_some() {
            return Err("somebody works already");
        }
        if self.state.role() != Some(*role) {
            return Err("this role does not work in this state");
        }
        if *step != self.step + 1 {
            return Err("a step's number is the next");
        }
        let chosen = self.pending.as_ref().and_then(|pending| pending.session);
        if *continues && chosen != Some(*session) {
            return Err("nobody chose to go on with this session");
        }
        let pending = self.pending.take().unwrap_or_default();
        self.step = *step;
        self.preserved.retain(|kept| kept.session != *session);
        self.invocation = Some(Invocation {
            step: *step,
            state: self.state,
            role: *role,
            session: *session,
            continues: *continues,
            fork_of: *fork_of,
            guidance: guidance.clone(),
            heard: pending.heard,
            stage: Stage::Work,
            turn: *turn,
            before: *before,
            begun_at: at,
            asked_at: at,
            fault: None,
        });
        if self.sessions.len() >= SESSIONS_MAX {
            self.sessions.remove(0);
        }
        let (state, phase, step) = (self.state, self.phase, *step);
        let chosen = *continues && pending.chosen;
        self.sessions.push(Worked { session: *session, role: *role, state, phase, step, chosen });
        Ok(())
    }

    fn concluded(&mut self, conclusion: &Conclusion, spent: &Spent) -> Result<(), &'static str> {
        if self.invocation.is_none() {
            return Err("nobody works");
        }
        self.spent.input_tokens += spent.input_tokens;
        self.spent.output_tokens += spent.output_tokens;
        self.spent.cost_micros = self.spent.cost_micros.saturating_add(spent.cost_micros);
        self.spent.ms += spent.ms;
        match conclusion {
            Conclusion::Author(status) => {
                self.auto_retries = 0;
                if let (Some(commit), Some(phase)) = (&status.commit, self.phases.get_mut(self.phase)) {
                    phase.commit = Some(commit.clone());
                }
            }
            Conclusion::Verdict(verdict) => {
                self.auto_retries = 0;
                self.iteration += 1;
                self.items.clone_from(&verdict.items);
                if !verdict.items.is_empty() {
                    self.stall.saw_issues(&verdict.items, verdict.score);
                }
            }
            Conclusion::Failed { reason, .. } => self.stall.saw_error(reason_hash(reason)),
            Conclusion::Cancelled { .. } => {}
        }
        Ok(())
    }

    fn retried(&mut self, session: Option<SessionId>, guidance: Option<&str>) -> Result<(), &'static str> {
        let lost = self.invocation.take().ok_or("nobody works")?;
        self.auto_retries += 1;
        let chosen = session.is_some() && self.sessions.last().is_some_and(|worked| worked.chosen);
        let fork_of = lost.fork_of.filter(|_| session.is_none());
        let heard = lost.words().filter(|_| guidance.is_none()).cloned();
        let guidance = guidance.map(str::to_owned);
        self.pending = Some(FlowPending { session, fork_of, guidance, heard, chosen });
        Ok(())
    }

    /// Ends a round of checks. A round is one look at the work: its failures are one error, however many checks find
    /// it.
    fn round_ended(&mut self) {
        let failed: Vec<&CheckResult> = self.checks.iter().filter(|check| !check.passed).collect();
        if self.checks.len() >= self.settings.quality.len() && !failed.is_empty() {
            self.stall.saw_error(error_hash(&failed));
        }
    }

    fn moved(&mut self, to: FlowState, reason: Option<&str>, at: Timestamp) -> Result<(), &'static str> {
        if to.is_ended() {
            return Err("an end is told as one");
        }
        match to {
            FlowState::QualityCheck => {
                self.checks.clear();
                self.check = None;
                self.step += 1;
                if self.state != FlowState::QualityRetry {
                    self.quality_retries = 0;
                }
            }
            FlowState::QualityRetry if self.state == FlowState::QualityCheck => self.quality_retries += 1,
            FlowState::Review if self.state == FlowState::QualityCheck => self.stall.passed(),
            FlowState::Escalate | FlowState::PhaseGate | FlowState::ReviewGate => {
                self.came_from = Some(self.state);
            }
            FlowState::Execute if self.state == FlowState::PhaseComplete => self.next_phase(),
            FlowState::Execute
            | FlowState::QualityRetry
            | FlowState::Review
            | FlowState::AutoFix
            | FlowState::PhaseComplete
            | FlowState::Aborted
            | FlowState::Completed
            | FlowState::Approved => {}
        }
        self.enter(to, reason, at);
        Ok(())
    }

    fn enter(&mut self, to: FlowState, reason: Option<&str>, at: Timestamp) {
        self.invocation = None;
        self.state = to;
        self.since = at;
        self.reason = reason.map(str::to_owned);
    }

    fn next_phase(&mut self) {
        self.phase += 1;
        while self.active().is_some_and(|phase| phase.state != PhaseState::Open) {
            self.phase += 1;
        }
        if let Some(phase) = self.phases.get_mut(self.phase) {
            phase.state = PhaseState::Active;
        }
        (self.iteration, self.quality_retries, self.auto_retries) = (0, 0, 0);
        self.items.clear();
        self.checks.clear();
        self.stall = FlowStall::default();
    }

    fn phase_ended(&mut self, phase: usize, state: PhaseState) -> Result<(), &'static str> {
        let ended = self.phases.get_mut(phase).ok_or("there is no such phase")?;
        ended.state = state;
        Ok(())
    }

    fn asked(&mut self, gate: &FlowGate) -> Result<(), &'static str> {
        if self.gate.as_ref().is_some_and(FlowGate::is_open) {
            return Err("a gate is open already");
        }
        if !self.state.asks() {
            return Err("nobody is asked in this state");
        }
        self.step = gate.step;
        self.gate = Some(gate.clone());
        Ok(())
    }

    fn answered(&mut self, gate: GateId, answer: &GateAnswered) -> Result<(), &'static str> {
        let open = self.gate.as_mut().filter(|open| open.id == gate).ok_or("no such gate is open")?;
        if open.answered.is_some() {
            return Err("the gate is answered already");
        }
        if !open.offers(answer.choice) {
            return Err("this was not offered");
        }
        open.answered = Some(answer.clone());
        let guidance = answer.guidance.clone();
        self.pending = match answer.choice {
            Choice::ContinueSession => open.continue_session.as_ref().map(|payload| FlowPending {
                session: Some(payload.session),
                guidance,
                chosen: true,
                ..FlowPending::default()
            }),
            Choice::Continue => {
                Some(FlowPending { fork_of: open.fork_of, guidance, ..FlowPending::default() })
            }
            Choice::Approve | Choice::Abort => None,
        };
        if answer.by.kind == ActorKind::Operator {
            self.decided();
        }
        Ok(())
    }

    /// The guidance for the first session after an abort, which is new and has not received it.
    fn left_unsaid(&mut self) -> Option<FlowPending> {
        let cut_off = self.invocation.take().and_then(|invocation| invocation.words().cloned());
        let unused = self.pending.take().and_then(|pending| pending.guidance.or(pending.heard));
        let guidance = cut_off.or(unused)?;
        Some(FlowPending { guidance: Some(guidance), ..FlowPending::default() })
    }

    /// Resets the counts of attempts after a person's decision. A deadline is no person: a flow that only deadlines
    /// answer must run out of attempts.
    fn decided(&mut self) {
        self.decided_at_step = self.step;
        (self.iteration, self.quality_retries, self.auto_retries) = (0, 0, 0);
        self.stall = FlowStall::default();
    }

    fn resumed(&mut self, at: Timestamp) -> Result<(), &'static str> {
        if self.state != FlowState::Aborted {
            return Err("only what was aborted goes on");
        }
        let back = self.came_from.filter(|state| !state.is_ended()).ok_or("nobody knows where it was")?;
        // A question that is still open has its whole time again, or its deadline would answer it at once.
        let deadline = deadline(self, at);
        if let Some(gate) = self.gate.as_mut().filter(|gate| gate.is_open()) {
            gate.deadline = gate.deadline.and(deadline);
        }
        if back == FlowState::QualityCheck {
            // A round of its own: nobody knows what became of the check that was cut off.
            self.checks.clear();
            self.check = None;
            self.step += 1;
        }
        self.decided();
        self.settled = false;
        self.enter(back, None, at);
        Ok(())
    }
}
