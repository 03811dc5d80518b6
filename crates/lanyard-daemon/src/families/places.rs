//! How far a family may grow: depth, breadth, rate, budget and circles. Inherited, and never widened by a child.

use std::collections::{HashSet, VecDeque};

use lanyard_core::session::{Command, NewSession, Refusal, StopScope, create};
use lanyard_core::task::{MailTo, TaskCreated};
use lanyard_core::{SessionId, TaskId};
use lanyard_store::{Loaded, TaskFilter};

use crate::families::owner::Owner;
use crate::families::{FamilyError, find, refused, work};
use lanyard_engine::engine::{Ask, AskError};

/// What a session is told that tried to go deeper than its family may.
const EMERGENCY: &str = "EMERGENCY_HALT: it tried to spawn deeper than its family may go";
const MINUTE_MS: u64 = 60_000;

impl Owner {
    /// Whether this session's agent may have the task made, beside as many others that are made with it.
    pub(super) fn may_spawn(
        &mut self,
        by: SessionId,
        new: &TaskCreated,
        beside: usize,
    ) -> Result<(), FamilyError> {
        if self.halted {
            return Err(refused("halted", "everything was halted", "wait until the user lifts it"));
        }
        let Some(loaded) = self.tools.store.load(by)? else { return Err(AskError::Unknown(by).into()) };
        self.deep_enough(&loaded, !new.spec.may_spawn)?;
        let to = find::box_of(&*self.tools.store, by)?;
        let rules = self.tools.rules().families;
        let open = self.tasks.open_below(to).count() + beside;
        if open >= rules.breadth as usize {
            let what = format!("{open} tasks below you have not ended, which is all you may have");
            return Err(refused("breadth_limit", what, "wait for some of them with action await"));
        }
        self.no_circle(to, new)?;
        self.within_budget(to, beside)?;
        self.not_too_fast(by, beside)
    }

    /// So many were made.
    pub(super) fn count_spawns(&mut self, by: SessionId, made: usize) {
        let now = self.now();
        self.spawns.entry(by).or_default().extend(std::iter::repeat_n(now, made));
    }

    /// Going deeper than allowed is refused, and ends whoever tries it: something is out of hand.
    fn deep_enough(&self, parent: &Loaded, leaf: bool) -> Result<(), FamilyError> {
        let new = NewSession { leaf, ..NewSession::default() };
        let under = Some((&parent.session, &parent.lineage));
        let Err(refusal) = create(&new, "", under, &self.tools.rules().limits) else { return Ok(()) };
        if let Refusal::DepthExceeded { .. } = refusal {
            let (tools, session) = (self.tools.clone(), parent.session.id);
            let reason = Some(EMERGENCY.to_owned());
            let command = Command::Stop { reason, scope: StopScope::Subtree, now: true };
            tracing::error!(%session, "a session tried to spawn deeper than its family may go; it is stopped");
            self.tools.runtime.spawn(async move {
                if let Err(error) = work::ask_engine(&tools, Ask::Do { session, command }, None).await {
                    tracing::warn!(%session, %error, "a session that spawns too deep could not be stopped");
                }
            });
        }
        Err(AskError::Refused(refusal).into())
    }

    /// The same work given to the same agent further and further down is a circle.
    fn no_circle(&mut self, to: MailTo, new: &TaskCreated) -> Result<(), FamilyError> {
        let mut next = Some(to);
        let mut seen: HashSet<TaskId> = HashSet::new();
        while let Some(MailTo::Task(id)) = next {
            if !seen.insert(id) {
                break;
            }
            let task = self.task(id)?;
            if task.spec.agent == new.spec.agent && task.spec.prompt == new.spec.prompt {
                return Err(refused(
                    "spawn_cycle",
                    format!("task {id} above you is the same work for the same agent"),
                    "do it yourself, or give away only a part of it",
                ));
            }
            next = task.reports_to;
        }
        Ok(())
    }

    fn within_budget(&mut self, to: MailTo, beside: usize) -> Result<(), FamilyError> {
        let budget = self.tools.rules().families.budget as usize;
        let root = self.root_of(to)?;
        let mut made: HashSet<TaskId> = HashSet::new();
        let mut boxes = VecDeque::from([root]);
        while let Some(to) = boxes.pop_front() {
            let filter = TaskFilter { reports_to: Some(to), ..TaskFilter::default() };
            let stored = self.tools.store.tasks(&filter, None, budget + 1)?;
            // Those of this round are not on disk yet.
            for id in stored.iter().chain(self.tasks.below(to)).map(|task| task.id) {
                if made.insert(id) {
                    boxes.push_back(MailTo::Task(id));
                }
            }
            if made.len() + beside >= budget {
                let what = format!("{} tasks were made below {root}, which is all there may be", made.len());
                return Err(refused("spawn_budget", what, "do the rest yourself, or tell the user"));
            }
        }
        Ok(())
    }

    fn root_of(&mut self, to: MailTo) -> Result<MailTo, FamilyError> {
        let MailTo::Task(id) = to else { return Ok(to) };
        let task = self.task(id)?.clone();
        Ok(find::above(&*self.tools.store, &task)?.pop().unwrap_or(to))
    }

    fn not_too_fast(&mut self, by: SessionId, beside: usize) -> Result<(), FamilyError> {
        let (now, most) = (self.now(), self.tools.rules().families.spawns_per_minute as usize);
        self.spawns.retain(|_, times| times.back().is_some_and(|at| now.millis_since(*at) < MINUTE_MS));
        let times = self.spawns.entry(by).or_default();
        times.retain(|at| now.millis_since(*at) < MINUTE_MS);
        if times.len() + beside < most {
            return Ok(());
        }
        let what = format!("you may make {most} tasks within a minute, and made {}", times.len());
        Err(refused("spawn_rate", what, "wait a minute, or make fewer at once"))
    }

    /// The session its worker's session is linked below: where whoever hears of it works now, if that can have children.
    pub(super) fn parent_session(&self, id: TaskId) -> Option<SessionId> {
        let task = self.tasks.get(&id)?;
        let session = match task.reports_to? {
            MailTo::Session(session) => session,
            MailTo::Task(parent) => match self.tasks.get(&parent) {
                Some(parent) => parent.session?,
                None => self.tools.store.task(parent).ok()??.session?,
            },
        };
        let parent = self.tools.store.load(session).ok()??;
        if task.created_in.is_some() && !parent.session.state.is_ended() {
            return Some(session);
        }
        // A person's task is not held up by what its parent's agent may do; it only stands beside it then.
        let new = NewSession { leaf: true, ..NewSession::default() };
        let under = Some((&parent.session, &parent.lineage));
        create(&new, "", under, &self.tools.rules().limits).is_ok().then_some(session)
    }
}
