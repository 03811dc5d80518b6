//! The desk: takes what the engine wants done, and passes it to the runner of that session. It starts one where there is
//! none, and hears of each when it ends.

use std::collections::HashMap;
use std::sync::Arc;

use lanyard_core::SessionId;
use lanyard_core::session::{
    DrivenBy, Effect, InterruptCause, Receipt, ResumeWay, Run, RunEnd, Session, Signal,
};
use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};

use crate::agents::AgentWish;
use crate::agents::runner::{Left, ORDERS_MAX, Start, start};
use crate::agents::shared::Shared;

pub(super) struct Desk {
    pub(super) shared: Arc<Shared>,
    pub(super) wishes: mpsc::Receiver<AgentWish>,
    runners: HashMap<SessionId, mpsc::Sender<AgentWish>>,
    tasks: JoinSet<Left>,
    /// Whose runner each task is: one that is lost cannot say so itself.
    whose: HashMap<Id, SessionId>,
}

impl Desk {
    pub(super) fn new(shared: Arc<Shared>, wishes: mpsc::Receiver<AgentWish>) -> Self {
        Self { shared, wishes, runners: HashMap::new(), tasks: JoinSet::new(), whose: HashMap::new() }
    }

    /// Works until the daemon ends. Runners are dropped with it; their agents go on under their shims.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                wish = self.wishes.recv() => match wish {
                    Some(wish) => self.pass(wish.session(), wish).await,
                    None => return,
                },
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => match ended {
                    Ok((task, left)) => self.ended(task, left).await,
                    Err(error) => {
                        tracing::error!(%error, "a runner was lost; its run is ended");
                        self.lost(error.id()).await;
                    }
                },
            }
        }
    }

    /// A runner for a run that is alive already.
    pub(super) fn employ(
        &mut self,
        session: SessionId,
        orders: mpsc::Sender<AgentWish>,
        work: impl Future<Output = Left> + Send + 'static,
    ) {
        self.runners.insert(session, orders);
        let task = self.tasks.spawn(work);
        self.whose.insert(task.id(), session);
    }

    async fn pass(&mut self, session: SessionId, wish: AgentWish) {
        // A subagent whose session was stopped and resumed is no part of its parent's run any more.
        if matches!(wish, AgentWish::Effect { effect: Effect::Revive { .. }, .. })
            && self.is_on_its_own(session).await
        {
            self.shared.unmirror_one(session);
        }
        let owner = self.shared.owner_of(session);
        let wish = match self.runners.get(&owner) {
            Some(runner) => match runner.try_send(wish) {
                Ok(()) => return,
                Err(mpsc::error::TrySendError::Full(wish)) => {
                    tracing::error!(%session, ?wish, "a runner has more orders than it may; this one is lost");
                    return;
                }
                // It has just ended; what it left comes back when it is heard of.
                Err(mpsc::error::TrySendError::Closed(wish)) => wish,
            },
            None => wish,
        };
        // Without a runner nobody compacts, which says it all.
        let AgentWish::Effect { effect, .. } = wish else { return };
        match effect {
            Effect::RunTurn { turn } => self.begin(session, Some(turn), None),
            Effect::Revive { ways } => self.begin(session, None, Some(ways).filter(|ways| !ways.is_empty())),
            Effect::CancelWork { .. } | Effect::StopWork { .. } | Effect::EndRun { .. } => {
                self.nothing_runs(session).await;
            }
            Effect::AnswerGate { .. } | Effect::Steer { .. } | Effect::Choose { .. } | Effect::TellParent => {
            }
        }
    }

    /// Whether a session that was a subagent's has a run of its own by now, or is to get one.
    async fn is_on_its_own(&self, session: SessionId) -> bool {
        self.shared.owner_of(session) != session
            && self.shared.session(session).await.is_some_and(|held| held.driver() != DrivenBy::Parent)
    }

    fn begin(
        &mut self,
        session: SessionId,
        turn: Option<lanyard_core::TurnId>,
        ways: Option<Vec<ResumeWay>>,
    ) {
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        let work = start(Start { shared: self.shared.clone(), session, orders, turn, ways });
        self.employ(session, sender, work);
    }

    /// Somebody wants an end, and there is no process: then that is the end.
    async fn nothing_runs(&self, session: SessionId) {
        let Some(held) = self.shared.session(session).await else { return };
        // That Lanyard has no process of it says nothing about an agent of another host.
        if !held.driver().is_run_here() {
            return;
        }
        let Some(run) = held.run.filter(Run::is_live) else {
            let channel = "nothing was running".to_owned();
            return self.shared.note(session, Signal::WorkEnded { channel }).await;
        };
        let cause = Some(InterruptCause::Crash);
        if run.mirrored {
            // The process is its parent's, and not this session's to end.
            let (how, reason) = (RunEnd::Lost, Some("its parent's process is gone".to_owned()));
            let receipt = Receipt::default();
            return self
                .shared
                .note(session, Signal::RunEnded { run: run.id, how, cause, reason, receipt })
                .await;
        }
        // Aside: it may take the grace, and others wait at the desk.
        let shared = self.shared.clone();
        tokio::spawn(async move { shared.end_unattended(session, run.id, cause).await });
    }

    async fn ended(&mut self, task: Id, left: Left) {
        let Some(session) = self.whose.remove(&task) else { return };
        // A further one may have begun since this one took no more orders.
        if self.runners.get(&session).is_some_and(mpsc::Sender::is_closed) {
            self.runners.remove(&session);
        }
        if let Some(ways) = left.again
            && !self.runners.contains_key(&session)
        {
            let turn = self.shared.session(session).await.and_then(|held| held.turn);
            let turn = turn.filter(|turn| !turn.is_waiting()).map(|turn| turn.prompt_id());
            self.begin(session, turn, Some(ways));
        }
        for wish in left.orders {
            let of = concerns(&wish).unwrap_or(session);
            if !self.is_outdated(of, &wish).await {
                self.pass(of, wish).await;
            }
        }
    }

    /// A runner was lost with all it was given: its run is ended.
    async fn lost(&mut self, task: Id) {
        let Some(session) = self.whose.get(&task).copied() else { return };
        let orders = vec![AgentWish::of(session, Effect::EndRun { answered: false })];
        self.ended(task, Left { orders, again: None }).await;
    }

    /// Whether an order to end a run that is over has nothing left to do: the session may have been resumed since, and the
    /// next run must not be ended by it.
    async fn is_outdated(&self, session: SessionId, wish: &AgentWish) -> bool {
        let AgentWish::Effect { effect, .. } = wish else { return false };
        let over: fn(&Session) -> bool = match effect {
            Effect::StopWork { .. } => |held| held.stop.is_none(),
            Effect::EndRun { .. } => |held| held.live_run().is_none(),
            Effect::RunTurn { .. }
            | Effect::CancelWork { .. }
            | Effect::AnswerGate { .. }
            | Effect::Steer { .. }
            | Effect::Revive { .. }
            | Effect::Choose { .. }
            | Effect::TellParent => return false,
        };
        self.shared.session(session).await.is_some_and(|held| over(&held))
    }
}

/// The session that a wish concerns; nothing where it concerns the run, and so the session whose runner had it.
const fn concerns(wish: &AgentWish) -> Option<SessionId> {
    match wish {
        AgentWish::Effect { effect: Effect::EndRun { .. } | Effect::Revive { .. }, .. }
        | AgentWish::Compact { .. } => None,
        AgentWish::Effect {
            session,
            effect:
                Effect::RunTurn { .. }
                | Effect::CancelWork { .. }
                | Effect::StopWork { .. }
                | Effect::AnswerGate { .. }
                | Effect::Steer { .. }
                | Effect::Choose { .. }
                | Effect::TellParent,
        } => Some(*session),
    }
}
