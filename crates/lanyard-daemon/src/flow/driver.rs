//! The driver of one flow: it alone decides about its log; the engine commits it.

use std::sync::Arc;
use std::time::Duration;

use lanyard_core::Record as _;
use lanyard_core::flow::{
    Choice, Due, Flow, FlowCommand, FlowEnvelope, FlowEvent, FlowKind, FlowRefusal, FlowState, FlowWant,
    Looked, cut_off, decide, due, want,
};
use lanyard_core::session::Command;
use lanyard_core::{Actor, SessionId, TurnId};
use lanyard_store::FlowBatch;
use tokio::sync::{Notify, mpsc};

use crate::flow::check::Running;
use crate::flow::hooks::Hooks;
use crate::flow::plan_lock::PlanLock;
use crate::flow::tell::Told;
use crate::flow::{FlowError, FlowHandle, Order, Tools, look, place};
use lanyard_base::failpoint;
use lanyard_engine::redaction::of_flow;

/// How often it looks at what only time changes, and tries again what did not work.
const TICK: Duration = Duration::from_secs(1);

pub(super) struct Driver {
    pub(super) flows: FlowHandle,
    pub(super) tools: Arc<Tools>,
    pub(super) flow: Flow,
    orders: mpsc::Receiver<Order>,
    pub(super) poke: Arc<Notify>,
    lock: Option<PlanLock>,
    /// Its folder is in a git repository; not known before it was looked.
    repository: Option<bool>,
    pub(super) check: Option<Running>,
    /// How often the supervisor of the check that runs was lost.
    pub(super) lost_checks: u32,
    hooks: Hooks,
    /// What people were told of last.
    pub(super) told: Told,
    /// What is held here may be behind the disk.
    stale: bool,
}

/// What the driver does after a step.
pub(super) enum Next {
    /// Something is different: look again at once.
    Again,
    /// Nothing to do until something happens.
    Wait,
    /// The flow is over and in order.
    Over,
}

impl Driver {
    pub(super) fn new(
        flows: FlowHandle,
        flow: Flow,
        orders: mpsc::Receiver<Order>,
        poke: Arc<Notify>,
    ) -> Self {
        let tools = flows.0.tools.clone();
        let hooks = Hooks::new(&flow);
        Self {
            flows,
            tools,
            flow,
            orders,
            poke,
            lock: None,
            repository: None,
            check: None,
            lost_checks: 0,
            hooks,
            told: Told::default(),
            stale: false,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            // Before the first look: one that is over would have nothing to do but what is asked of it.
            self.take_orders().await;
            let next = match self.step().await {
                Ok(next) => next,
                Err(FlowError::Closing) => return,
                Err(error) => {
                    tracing::error!(flow = %self.flow.id, %error, "a flow could not go on; it is tried again");
                    Next::Wait
                }
            };
            self.tell_hooks().await;
            self.tell_people().await;
            match next {
                Next::Again => {}
                Next::Wait => {
                    if !self.wait().await {
                        return;
                    }
                }
                Next::Over if self.hooks.is_done() => {
                    if self.flows.left(&self.flow, &self.orders) {
                        return;
                    }
                }
                Next::Over => {
                    if !self.wait().await {
                        return;
                    }
                }
            }
        }
    }

    /// Waits until something happens. False when nobody needs it any more.
    async fn wait(&mut self) -> bool {
        let poke = self.poke.clone();
        let ended = async {
            match &mut self.check {
                Some(running) => running.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            order = self.orders.recv() => match order {
                Some(order) => self.order(order).await,
                None => return false,
            },
            () = poke.notified() => {}
            () = ended => {}
            () = tokio::time::sleep(TICK) => {}
        }
        true
    }

    async fn take_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            self.order(order).await;
        }
    }

    async fn order(&mut self, order: Order) {
        let Order { command, by, answer } = order;
        let result = self.carry_out(command, &by).await;
        let _ = answer.send(result.map(|()| self.flow.clone()));
    }

    async fn carry_out(&mut self, command: FlowCommand, by: &Actor) -> Result<(), FlowError> {
        self.refresh().await?;
        let command = self.with_probe(command).await?;
        let decided = decide(&self.flow, &command, by, self.tools.fresh());
        if let Err(FlowRefusal::ContinuationGone { why }) = &decided
            && let Some(gate) = &self.flow.gate
        {
            let event = FlowEvent::ContinuationWithdrawn { gate: gate.id, why: why.clone() };
            self.write(vec![event], &Actor::system("flow")).await?;
        }
        self.write(decided?, by).await
    }

    /// What is chosen is looked at once more before it is taken.
    async fn with_probe(&self, command: FlowCommand) -> Result<FlowCommand, FlowError> {
        let FlowCommand::Answer { gate, choice, guidance, probe: None } = command else { return Ok(command) };
        let asked = self.flow.gate.as_ref().filter(|open| open.id == gate && open.is_open());
        let payload = asked.and_then(|open| open.continue_session.clone());
        let probe = match payload {
            Some(payload) if choice == Choice::ContinueSession => {
                Some(self.looked(payload.session, None).await?.probe)
            }
            Some(_) | None => None,
        };
        Ok(FlowCommand::Answer { gate, choice, guidance, probe })
    }

    pub(super) async fn looked(&self, session: SessionId, turn: Option<TurnId>) -> Result<Looked, FlowError> {
        let (agents, rules) = (self.tools.agents.clone(), self.flow.settings.rules);
        self.tools.on_disk(move |store| look::looked(store, &agents, &rules, (session, turn))).await
    }

    async fn step(&mut self) -> Result<Next, FlowError> {
        self.refresh().await?;
        self.lease().await?;
        let now = self.tools.clock.now();
        for due in due(&self.flow, now) {
            self.came(due).await?;
        }
        self.release_preserved().await?;
        let tree = self.wants_tree().await;
        let want = want(&self.flow, tree);
        // While all work is halted a flow begins nothing; it looks again each tick.
        let begins = matches!(want, FlowWant::MakeTree | FlowWant::Invoke { .. } | FlowWant::Check { .. });
        if begins && self.tools.engine.halting.is_on() {
            return Ok(Next::Wait);
        }
        match want {
            FlowWant::MakeTree => self.make_tree().await,
            FlowWant::Invoke { session, fork_of, guidance, role } => {
                self.invoke(role, session, fork_of, guidance).await
            }
            FlowWant::Attend => self.attend().await,
            FlowWant::Check { place } => self.begin_check(place).await,
            FlowWant::AttendCheck => self.attend_check().await,
            FlowWant::CutOff => {
                let events = cut_off(&self.flow, self.tools.fresh());
                self.write(events, &Actor::system("flow")).await?;
                Ok(Next::Again)
            }
            FlowWant::Answer => Ok(Next::Wait),
            FlowWant::Settle => self.settle().await,
            FlowWant::Nothing => Ok(Next::Over),
        }
    }

    /// Takes the plan for this daemon, and says so once.
    async fn lease(&mut self) -> Result<(), FlowError> {
        if self.lock.is_none() && !(self.flow.state.is_ended() && self.flow.settled) {
            let (plan, flow, holder) = (self.flow.plan.clone(), self.flow.id, self.tools.holder.clone());
            let taken = tokio::task::spawn_blocking(move || PlanLock::take(&plan, flow, &holder)).await;
            self.lock = Some(taken.map_err(|_| FlowError::Closing)??);
        }
        let mine = self.flow.lease.as_ref().is_some_and(|lease| lease.holder == self.tools.holder);
        if mine || self.flow.state.is_ended() {
            return Ok(());
        }
        let before = self.flow.lease.as_ref();
        let (epoch, from) =
            (before.map_or(0, |lease| lease.epoch) + 1, before.map(|lease| lease.holder.clone()));
        let event = FlowEvent::Leased { holder: self.tools.holder.clone(), epoch, from };
        self.write(vec![event], &Actor::system("flow")).await
    }

    async fn wants_tree(&mut self) -> bool {
        let made = self.flow.tree.as_ref().is_some_and(|tree| !tree.removed);
        if made || !self.flow.settings.rules.worktree || self.flow.kind == FlowKind::PlanReview {
            return false;
        }
        if self.repository.is_none() {
            let folder = self.flow.workspace.clone();
            let looked = tokio::task::spawn_blocking(move || {
                lanyard_git::worktree::is_repository(std::path::Path::new(&folder))
            });
            self.repository = looked.await.ok();
        }
        self.repository == Some(true)
    }

    async fn make_tree(&mut self) -> Result<Next, FlowError> {
        failpoint::hit("flows_before_act");
        let (root, flow) = (self.tools.trees.root(), self.flow.clone());
        let made = tokio::task::spawn_blocking(move || place::make_tree(&root, &flow)).await;
        let made = match made.map_err(|_| FlowError::Closing)? {
            Ok(tree) => self.tools.trees.prepare(&tree).await.map(|_| tree),
            Err(error) => Err(error),
        };
        failpoint::hit("flows_after_act");
        let event = match made {
            Ok(tree) => FlowEvent::TreeMade { tree },
            Err(error) if error.is_for_good() => {
                let reason = Some(format!("its worktree could not be made: {error}"));
                FlowEvent::Ended { state: FlowState::Aborted, reason }
            }
            Err(error) => return Err(FlowError::Unavailable(error.to_string())),
        };
        self.write(vec![event], &Actor::system("flow")).await?;
        Ok(Next::Again)
    }

    async fn came(&mut self, due: Due) -> Result<(), FlowError> {
        match due {
            Due::Timeout => self.timed_out().await,
            Due::Reap { session } => self.reap(session, "it had its time").await,
            Due::Answer { gate, choice } => {
                let command = FlowCommand::Answer { gate, choice, guidance: None, probe: None };
                match self.carry_out(command, &Actor::system("gate deadline")).await {
                    // It can no longer be gone on with: then it waits for a person.
                    Err(FlowError::Refused(refusal)) => {
                        tracing::warn!(flow = %self.flow.id, %refusal, "the deadline of a gate changes nothing");
                        Ok(())
                    }
                    done => done,
                }
            }
        }
    }

    /// Sessions nobody waits for: those that came to rest by themselves, and those that use too much.
    async fn release_preserved(&mut self) -> Result<(), FlowError> {
        let limit = self.flow.settings.rules.preserve_tokens;
        for kept in self.flow.preserved.clone() {
            let (session, turn) = (kept.session, kept.turn);
            let running = self.tools.on_disk(move |store| look::running(store, session, turn)).await?;
            match running {
                None => self.release(session, "its turn came to its end").await?,
                Some(tokens) if limit > 0 && tokens.saturating_sub(kept.tokens) >= limit => {
                    self.reap(session, "it used what it may").await?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    async fn reap(&mut self, session: SessionId, why: &str) -> Result<(), FlowError> {
        let kept = self.flow.preserved.iter().find(|kept| kept.session == session).map(|kept| kept.turn);
        if let Some(turn) = kept {
            self.cancel_turn(session, turn, why).await?;
        }
        self.release(session, why).await
    }

    async fn release(&mut self, session: SessionId, why: &str) -> Result<(), FlowError> {
        let event = FlowEvent::SessionReleased { session, why: why.to_owned() };
        self.write(vec![event], &Actor::system("flow")).await
    }

    /// Ends the turn if it is the one that runs.
    pub(super) async fn cancel_turn(
        &self,
        session: SessionId,
        turn: TurnId,
        why: &str,
    ) -> Result<(), FlowError> {
        let runs = self.tools.on_disk(move |store| look::running(store, session, turn)).await?;
        if runs.is_some() {
            let reason = Some(format!("its flow does not wait for it: {why}"));
            self.command(session, Command::CancelTurn { reason }, None).await?;
        }
        Ok(())
    }

    /// Reads the flow again after a write that was refused: it may be on disk after all, once the journal has recovered.
    async fn refresh(&mut self) -> Result<(), FlowError> {
        if self.stale {
            let failing = self.tools.engine.stats.storage_error().is_some();
            let id = self.flow.id;
            if let Some(flow) = self.tools.on_disk(move |store| Ok(store.flow(id)?)).await? {
                self.flow = flow;
            }
            self.stale = failing;
        }
        Ok(())
    }

    /// Makes events true: on disk first, then here.
    pub(super) async fn write(&mut self, events: Vec<FlowEvent>, actor: &Actor) -> Result<(), FlowError> {
        if events.is_empty() {
            return Ok(());
        }
        let (mut next, at) = (self.flow.clone(), self.tools.clock.now());
        let mut entries = Vec::with_capacity(events.len());
        for event in events {
            let scope = of_flow(&event);
            let event = self.tools.engine.stats.redaction.event(event, scope).map_err(FlowError::Defect)?;
            let envelope = FlowEnvelope { flow: next.id, seq: next.seq + 1, at, actor: actor.clone(), event };
            next.apply(&envelope).map_err(|error| FlowError::Defect(error.to_string()))?;
            tracing::info!(flow = %next.id, seq = envelope.seq, event = envelope.event.name(), state = %next.state, "flow");
            entries.push(envelope);
        }
        let records = FlowBatch { entries, flows: vec![next.clone()] }.records()?;
        failpoint::hit("flows_before_write");
        // Until it is known to be written, what is held here may be behind the disk.
        self.stale = true;
        self.tools.engine.write(records).await?;
        self.stale = false;
        failpoint::hit("flows_after_write");
        if let Some(invocation) = &next.invocation {
            self.flows.watches(invocation.session, &self.poke);
        }
        self.flow = next;
        self.flows.wrote();
        Ok(())
    }

    async fn tell_hooks(&mut self) {
        if let Some(event) = self.hooks.go_on(&self.flow, &self.tools, &self.poke)
            && let Err(error) = self.write(vec![event], &Actor::system("flow")).await
        {
            tracing::warn!(flow = %self.flow.id, %error, "that a hook was told could not be written");
        }
    }

    /// The end: nothing of it works on, what it changed is kept, the plan is free.
    async fn settle(&mut self) -> Result<Next, FlowError> {
        failpoint::hit("flows_before_act");
        self.end_checks().await;
        for worked in self.flow.sessions.clone() {
            self.end_session(worked.session).await?;
        }
        for kept in self.flow.preserved.clone() {
            self.release(kept.session, "its flow ended").await?;
        }
        let flow = self.flow.clone();
        let settled = tokio::task::spawn_blocking(move || place::settle(&flow)).await;
        failpoint::hit("flows_after_act");
        self.write(vec![settled.map_err(|_| FlowError::Closing)?], &Actor::system("flow")).await?;
        self.lock = None;
        Ok(Next::Again)
    }
}
