//! Counts and notifications in memory.

use std::collections::BTreeMap;

use lanyard_core::continuity::{Counter, Slot, Tally, slot_of};
use lanyard_core::notification::{Delivery, Notification, NotificationStatus};
use lanyard_core::{DeliveryId, NotificationId, Timestamp};

use crate::error::{AppendError, StoreError};
use crate::journal::Durability;
use crate::memory::MemoryJournal;
use crate::notifications::{
    DeliveryFilter, NotificationBatch, NotificationFilter, NotificationOrder, Notifications, Tallies,
};

#[derive(Debug, Default, Clone)]
pub(super) struct Counts(BTreeMap<(Slot, Counter), u64>);

impl Counts {
    pub(super) fn add(&mut self, at: Timestamp, tally: &Tally) {
        for (counter, times) in tally.entries() {
            for slot in [0, slot_of(at)] {
                *self.0.entry((slot, counter)).or_default() += times;
            }
        }
    }
}

#[derive(Debug, Default, Clone)]
pub(super) struct Board {
    notifications: BTreeMap<NotificationId, Notification>,
    deliveries: BTreeMap<DeliveryId, Delivery>,
    last_change: u64,
}

impl Board {
    fn add(&mut self, batch: &NotificationBatch) -> Result<(), String> {
        for held in &batch.notifications {
            self.last_change = self.last_change.max(held.change);
            self.notifications.insert(held.id, held.clone());
        }
        for delivery in &batch.deliveries {
            self.deliveries.insert(delivery.id, delivery.clone());
        }
        for id in &batch.removed {
            self.notifications.remove(id);
            self.deliveries.retain(|_, delivery| delivery.notification != *id);
        }
        let mut keys = std::collections::BTreeSet::new();
        let lasting = self.notifications.values().filter(|held| held.over_at.is_none());
        match lasting.map(|held| &held.key).find(|key| !keys.insert(*key)) {
            Some(key) => Err(format!("two notifications of `{key}` that are not over")),
            None => Ok(()),
        }
    }
}

impl Tallies for MemoryJournal {
    fn add_tally(&self, at: Timestamp, tally: &Tally, _: Durability) -> Result<(), AppendError> {
        let mut kept = self.kept();
        kept.writable()?;
        kept.counts.add(at, tally);
        Ok(())
    }

    fn tallies(&self) -> Result<Vec<(Slot, Counter, u64)>, StoreError> {
        Ok(self.kept().counts.0.iter().map(|((slot, counter), times)| (*slot, *counter, *times)).collect())
    }

    fn forget_tallies(&self, before: Slot) -> Result<usize, StoreError> {
        let counts = &mut self.kept().counts.0;
        let all = counts.len();
        counts.retain(|(slot, _), _| *slot == 0 || *slot >= before);
        Ok(all - counts.len())
    }
}

impl Notifications for MemoryJournal {
    fn write_notifications(&self, batch: &NotificationBatch) -> Result<(), AppendError> {
        let mut kept = self.kept();
        kept.writable()?;
        // On a copy, so that a batch is written whole or not at all.
        let mut next = kept.board.clone();
        next.add(batch).map_err(AppendError::Contradiction)?;
        kept.board = next;
        Ok(())
    }

    fn notification(&self, id: NotificationId) -> Result<Option<Notification>, StoreError> {
        Ok(self.kept().board.notifications.get(&id).cloned())
    }

    fn lasting(&self, key: &str) -> Result<Option<Notification>, StoreError> {
        let kept = self.kept();
        let mut all = kept.board.notifications.values();
        Ok(all.find(|held| held.key == key && held.over_at.is_none()).cloned())
    }

    fn notifications(
        &self,
        filter: &NotificationFilter,
        order: NotificationOrder,
        limit: usize,
    ) -> Result<Vec<Notification>, StoreError> {
        let kept = self.kept();
        let mut found: Vec<&Notification> = kept
            .board
            .notifications
            .values()
            .rev()
            .filter(|held| filter.matches(held))
            .filter(|held| match order {
                NotificationOrder::Newest { before } => before.is_none_or(|before| held.id < before),
                NotificationOrder::Changed { after } => held.change > after,
            })
            .collect();
        if matches!(order, NotificationOrder::Changed { .. }) {
            found.sort_by_key(|held| held.change);
        }
        Ok(found.into_iter().take(limit).cloned().collect())
    }

    fn notification_counts(&self) -> Result<Vec<(NotificationStatus, u64)>, StoreError> {
        let kept = self.kept();
        let count = |status| kept.board.notifications.values().filter(|held| held.status == status).count();
        Ok(NotificationStatus::ALL.map(|status| (status, count(status) as u64)).into())
    }

    fn last_notification_change(&self) -> Result<u64, StoreError> {
        Ok(self.kept().board.last_change)
    }

    fn deliveries(&self, filter: &DeliveryFilter, limit: usize) -> Result<Vec<Delivery>, StoreError> {
        let kept = self.kept();
        let found = kept.board.deliveries.values().filter(|held| filter.matches(held));
        Ok(found.take(limit).cloned().collect())
    }

    fn delivery_counts(&self) -> Result<(u64, u64), StoreError> {
        let kept = self.kept();
        let count = |name: &str| {
            kept.board.deliveries.values().filter(|held| held.state.as_str() == name).count() as u64
        };
        Ok((count("pending"), count("dead")))
    }
}
