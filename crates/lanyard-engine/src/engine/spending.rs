//! What was spent in the scopes of a session. Sums are read from the journal when they are first needed, and added to
//! while events are written: a decision never waits for a sum over the log.

use std::collections::HashMap;

use lanyard_base::day_zone::{DayZone, LocalDay};
use lanyard_core::budget::{BudgetLine, Spending};
use lanyard_core::insight::quarter_of;
use lanyard_core::session::{Envelope, Event, PauseReason, TranscriptEvent, held, queues_turn, starts_turn};
use lanyard_core::{ActorKind, SessionId, Timestamp};

use crate::engine::ask::unavailable;
use crate::engine::worker::Worker;
use crate::engine::{AskError, Request};

/// Families whose sums are kept in memory. All are forgotten when there are more.
const FAMILIES_MAX: usize = 10_000;

/// The sums of the day and of families, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct SpendingBook {
    day: Option<(LocalDay, u64)>,
    /// The setting of the time zone in which the day was made.
    zone: String,
    /// By the root of the family.
    families: HashMap<SessionId, u64>,
}

/// The budgets of a session that are set, and what is spent of them.
#[derive(Debug, Clone)]
pub struct BudgetStatus {
    pub session: SessionId,
    /// The root of its family.
    pub root: SessionId,
    /// The local day.
    pub date: String,
    pub lines: Vec<BudgetLine>,
    /// Its turn was begun by an operator although a budget is spent.
    pub forced: bool,
}

impl SpendingBook {
    /// Forgets everything: the journal knows better.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Forgets the sums of families: somebody belongs to another one.
    pub(super) fn regroup(&mut self) {
        self.families.clear();
    }

    fn spent(&mut self, root: SessionId, at: Timestamp, cost_micros: u64) {
        if let Some((day, sum)) = &mut self.day
            && day.has(at)
        {
            *sum = sum.saturating_add(cost_micros);
        }
        if let Some(sum) = self.families.get_mut(&root) {
            *sum = sum.saturating_add(cost_micros);
        }
    }
}

impl Worker {
    /// Makes the sums known that decisions about a session need. It may commit what the round has so far, so signals that
    /// become true together call it before the first of them.
    pub(super) fn know_spending(&mut self, id: SessionId) -> Result<(), AskError> {
        if !self.rules.budgets.limits_sessions() {
            return Ok(());
        }
        let zone = self.settings.now().config.budgets.time_zone.clone();
        let current = self.spending.day.as_ref().is_some_and(|(day, _)| day.has(self.draft.now));
        let root = self.root_of(id)?;
        let known = self.spending.families.contains_key(&root);
        if current && known && zone == self.spending.zone {
            return Ok(());
        }
        self.flush()?;
        if !current || zone != self.spending.zone {
            let day = day_zone(&zone).day(self.draft.now);
            let spent = self.store.spent_since(quarter_of(day.start)).map_err(|error| unavailable(&error))?;
            self.spending.day = Some((day, spent));
            self.spending.zone = zone;
        }
        if !known {
            if self.spending.families.len() >= FAMILIES_MAX {
                self.spending.regroup();
            }
            let spent = self.store.spent_by_family(root).map_err(|error| unavailable(&error))?;
            self.spending.families.insert(root, spent);
        }
        Ok(())
    }

    /// The root of a session's family.
    fn root_of(&self, id: SessionId) -> Result<SessionId, AskError> {
        Ok(self.lineage(id)?.ancestors.last().copied().unwrap_or(id))
    }

    /// The budgets of a session, and what is spent of them.
    pub(super) fn budget_status(&mut self, id: SessionId) -> Result<BudgetStatus, AskError> {
        self.know_spending(id)?;
        let root = self.root_of(id)?;
        let session = self.resident(id)?;
        let forced = session.turn.as_ref().is_some_and(|turn| turn.forced);
        let (date, day) = match &self.spending.day {
            Some((day, spent)) => (day.date.clone(), *spent),
            None => (String::new(), 0),
        };
        let family = self.spending.families.get(&root).copied().unwrap_or_default();
        let spending = Spending { session: session.usage.cost_micros, family, day };
        Ok(BudgetStatus { session: id, root, date, lines: self.rules.budgets.lines(&spending), forced })
    }

    /// The budget that lets no turn of a session begin.
    fn spent_budget(&mut self, id: SessionId) -> Result<Option<BudgetLine>, AskError> {
        if !self.rules.budgets.limits_sessions() {
            return Ok(None);
        }
        Ok(self.budget_status(id)?.lines.into_iter().find(BudgetLine::is_spent))
    }

    /// The spent budget in the way of these events. A turn of a subagent has begun already.
    pub(super) fn over_budget(
        &mut self,
        id: SessionId,
        events: &[Event],
    ) -> Result<Option<BudgetLine>, AskError> {
        let session = self.resident(id)?;
        let mirrored = session.run.as_ref().is_some_and(|run| run.mirrored && run.is_live());
        let begins = starts_turn(session, events) || queues_turn(events);
        if mirrored || !begins {
            return Ok(None);
        }
        self.spent_budget(id)
    }

    /// The events of a signal, without the turn that would follow while a budget is spent.
    pub(super) fn within_budget(
        &mut self,
        id: SessionId,
        events: Vec<Event>,
    ) -> Result<Vec<Event>, AskError> {
        match self.over_budget(id, &events)? {
            Some(_) => Ok(held(self.resident(id)?, events, PauseReason::BudgetSpent)),
            None => Ok(events),
        }
    }

    /// Whether whoever asks may let a turn begin although a budget is spent.
    pub(super) fn may_force(request: &Request) -> bool {
        match request.actor.kind {
            ActorKind::Operator | ActorKind::System => true,
            ActorKind::Agent | ActorKind::Observer => false,
        }
    }

    /// Adds a report of cost that was written.
    pub(super) fn note_spending(&mut self, envelope: &Envelope) {
        if let Event::Transcript(TranscriptEvent::UsageReported { cost_micros, .. }) = &envelope.event
            && *cost_micros > 0
            && !envelope.is_imported()
            && let Ok(root) = self.root_of(envelope.session)
        {
            self.spending.spent(root, envelope.at, *cost_micros);
        }
    }
}

/// The zone of a setting. One that is unknown on this machine was reported at the start: UTC takes its place.
#[must_use]
pub fn day_zone(name: &str) -> DayZone {
    DayZone::named(name).unwrap_or_else(|_| DayZone::utc())
}
