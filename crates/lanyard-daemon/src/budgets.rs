//! Budgets that come near their limit or are spent are told of once, and taken back when there is something left again: a
//! new day began, or somebody raised the budget.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;
use lanyard_core::budget::{BudgetLine, BudgetRules, BudgetScope, Dollars};
use lanyard_core::insight::quarter_of;
use lanyard_core::notification::{NewNotification, NotificationKind, Severity};
use lanyard_core::session::{Command, InboxChange, PauseReason};
use lanyard_core::{Actor, Cause, SessionId};
use lanyard_store::{NotificationFilter, NotificationOrder, Store, StoreError};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use crate::families::halt::paused_by;
use crate::notifications::{BULK_MAX, NotificationError, NotificationHandle};
use lanyard_engine::engine::{Ask, BudgetStatus, Engine, Request, day_zone};

/// How often budgets that were told of are looked at, and inboxes that wait for them.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// When time comes from a file, a scenario should not wait for it.
const SCRIPTED_LOOK: Duration = Duration::from_millis(50);
/// Beginning of the keys of these notifications.
const PREFIX: &str = "spending:";

/// How far a budget is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Near,
    Spent,
}

impl Stage {
    const ALL: [Self; 2] = [Self::Near, Self::Spent];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Spent => "spent",
        }
    }

    fn holds(self, line: &BudgetLine, percent: u8) -> bool {
        match self {
            Self::Near => line.is_near(percent) && !line.is_spent(),
            Self::Spent => line.is_spent(),
        }
    }
}

/// A key of such a notification: how far, which budget, and whose.
fn key(stage: Stage, scope: BudgetScope, whose: &str) -> String {
    format!("{PREFIX}{}:{}:{whose}", stage.as_str(), scope.as_str())
}

fn parsed(key: &str) -> Option<(Stage, BudgetScope, &str)> {
    let (stage, rest) = key.strip_prefix(PREFIX)?.split_once(':')?;
    let (scope, whose) = rest.split_once(':')?;
    let stage = Stage::ALL.into_iter().find(|one| one.as_str() == stage)?;
    let scopes = [BudgetScope::Session, BudgetScope::Family, BudgetScope::Day];
    Some((stage, scopes.into_iter().find(|one| one.as_str() == scope)?, whose))
}

/// Tells people of budgets.
pub(crate) struct BudgetTeller {
    notifications: NotificationHandle,
    store: Arc<dyn Store>,
    /// The keys that were told of and are not over; nothing until those of an earlier daemon were read.
    told: Mutex<Option<BTreeSet<String>>>,
}

impl BudgetTeller {
    pub(crate) fn new(notifications: NotificationHandle, store: Arc<dyn Store>) -> Self {
        Self { notifications, store, told: Mutex::default() }
    }

    /// Tells of the budgets that came near their limit, or are spent, since they were last told of. Blocks for the disk.
    pub(crate) fn tell(&self, status: &BudgetStatus, percent: u8) -> Result<(), NotificationError> {
        for line in &status.lines {
            let whose = match line.scope {
                BudgetScope::Turn | BudgetScope::Session => status.session.to_string(),
                BudgetScope::Family => status.root.to_string(),
                BudgetScope::Day => status.date.clone(),
            };
            for stage in Stage::ALL.into_iter().filter(|stage| stage.holds(line, percent)) {
                let key = key(stage, line.scope, &whose);
                // Raised twice at a time it is one notification, since its condition lasts.
                if !self.told()?.contains(&key) {
                    self.notifications.raise(told(stage, line, status, key.clone()))?;
                    self.told()?.insert(key);
                }
            }
        }
        Ok(())
    }

    fn told(&self) -> Result<MappedMutexGuard<'_, BTreeSet<String>>, StoreError> {
        let mut told = self.told.lock();
        if told.is_none() {
            let mut keys = BTreeSet::new();
            for kind in [NotificationKind::BudgetWarning, NotificationKind::BudgetSpent] {
                let filter = NotificationFilter {
                    kind: Some(kind),
                    lasting: Some(true),
                    ..NotificationFilter::default()
                };
                let order = NotificationOrder::Newest { before: None };
                let held = self.store.notifications(&filter, order, BULK_MAX)?;
                keys.extend(held.into_iter().map(|held| held.key).filter(|key| key.starts_with(PREFIX)));
            }
            *told = Some(keys);
        }
        Ok(MutexGuard::map(told, |told| told.get_or_insert_with(BTreeSet::new)))
    }

    /// Takes back what no longer holds. Blocks for the disk.
    fn end(
        &self,
        holds: impl Fn(Stage, BudgetScope, &str) -> Result<bool, StoreError>,
    ) -> Result<(), NotificationError> {
        let told: Vec<String> = self.told()?.iter().cloned().collect();
        for key in told {
            let lasts = match parsed(&key) {
                Some((stage, scope, whose)) => holds(stage, scope, whose)?,
                None => false,
            };
            if !lasts {
                self.notifications.end(&key, Some("the budget has something left again"), None)?;
                self.told()?.remove(&key);
            }
        }
        Ok(())
    }
}

fn told(stage: Stage, line: &BudgetLine, status: &BudgetStatus, key: String) -> NewNotification {
    let BudgetLine { scope, limit, spent } = line;
    let (kind, severity, title) = match stage {
        Stage::Near => (
            NotificationKind::BudgetWarning,
            Severity::Warning,
            format!("Most of the {}'s budget is spent: {spent} of {limit}", scope.as_str()),
        ),
        Stage::Spent => (
            NotificationKind::BudgetSpent,
            Severity::Critical,
            format!("The {}'s budget is spent: {spent} of {limit}", scope.as_str()),
        ),
    };
    let then = match stage {
        Stage::Near => "Turns are interrupted when all of it is spent.",
        Stage::Spent => "Turns are interrupted at their next report of cost, and no further turn begins.",
    };
    let (session, text) = match scope {
        BudgetScope::Day => (None, format!("{then} It begins anew with the next day. ")),
        BudgetScope::Family => (Some(status.root), format!("{then} ")),
        BudgetScope::Session | BudgetScope::Turn => (Some(status.session), format!("{then} ")),
    };
    let text = format!("{text}Raise `{}` and run `lanyard reload` to go on.", scope.setting());
    NewNotification { kind, severity, key, title, text, session, subject: None, lasts: true }
}

/// Looks after budgets that were told of, and after inboxes that wait for one.
pub(crate) struct BudgetWatch {
    pub(crate) teller: Arc<BudgetTeller>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: Engine,
    pub(crate) live: LiveConfig,
    pub(crate) clock: Arc<Clock>,
}

impl BudgetWatch {
    /// Runs until the daemon ends.
    pub(crate) async fn run(self) {
        let period = if self.clock.is_scripted() { SCRIPTED_LOOK } else { LOOK_EVERY };
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut known = None;
        loop {
            ticks.tick().await;
            let rules = self.live.rules().budgets;
            let changed = known != Some(rules);
            if let Err(error) = self.look(rules, changed).await {
                tracing::warn!(%error, "budgets could not be looked after");
                continue;
            }
            known = Some(rules);
            if changed || rules.limits_sessions() {
                self.release().await;
            }
        }
    }

    async fn look(&self, rules: BudgetRules, changed: bool) -> Result<(), NotificationError> {
        let (store, now) = (self.store.clone(), self.clock.now());
        let today = day_zone(&self.live.now().config.budgets.time_zone).day(now);
        let teller = self.teller.clone();
        let look = move || {
            teller.end(|stage, scope, whose| {
                // What a session has spent does not become less: only another limit changes anything.
                if scope != BudgetScope::Day && !changed {
                    return Ok(true);
                }
                if scope == BudgetScope::Day && whose != today.date {
                    return Ok(false);
                }
                let spent = match (scope, whose.parse::<SessionId>()) {
                    (BudgetScope::Family, Ok(root)) => store.spent_by_family(root)?,
                    (BudgetScope::Session | BudgetScope::Turn, Ok(session)) => {
                        store.load(session)?.map_or(0, |held| held.session.usage.cost_micros)
                    }
                    (BudgetScope::Day, _) => store.spent_since(quarter_of(today.start))?,
                    (BudgetScope::Family | BudgetScope::Session | BudgetScope::Turn, Err(_)) => 0,
                };
                let limit = match scope {
                    BudgetScope::Session | BudgetScope::Turn => rules.session_usd,
                    BudgetScope::Family => rules.family_usd,
                    BudgetScope::Day => rules.day_usd,
                };
                let line = BudgetLine { scope, limit, spent: Dollars::from_micros(spent) };
                Ok(stage.holds(&line, rules.warn_percent))
            })
        };
        let looked = tokio::task::spawn_blocking(look).await;
        looked.unwrap_or_else(|_| Err(NotificationError::Store("the work was cut off".to_owned())))
    }

    /// Lets inboxes go on that wait for a budget. The engine refuses those whose budget is still spent.
    async fn release(&self) {
        let store = self.store.clone();
        let paused = tokio::task::spawn_blocking(move || paused_by(&*store, PauseReason::BudgetSpent)).await;
        let Ok(Ok(paused)) = paused else { return };
        for session in paused {
            let command = Command::Inbox(InboxChange::Go.into());
            let ask = Ask::Do { session, command };
            let (actor, cause) = (Actor::system("budgets"), Some(Cause::Signal("budget".to_owned())));
            let request = Request { ask, actor, cause, keys: Vec::new() };
            if self.engine.ask(request).await.is_ok() {
                tracing::info!(%session, "an inbox goes on: its budget has something left again");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_how_far_which_and_whose() {
        for stage in Stage::ALL {
            for scope in [BudgetScope::Session, BudgetScope::Family, BudgetScope::Day] {
                let key = key(stage, scope, "2026-11-19");
                assert_eq!(parsed(&key), Some((stage, scope, "2026-11-19")));
            }
        }
        assert_eq!(parsed("budget:sess:5"), None);
        assert_eq!(parsed("spending:far:day:x"), None);
    }
}
