//! Sending outward: each receiver has its own line, so that one that hangs delays no other.
//!
//! A try is written down before it is made. So a daemon that is killed in the middle tries again, and says so: the same
//! delivery, with a higher `Lanyard-Attempt`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lanyard_api::config::{DESKTOP, Desktop, NotificationSettings, Webhook};
use lanyard_core::Timestamp;
use lanyard_core::notification::{
    Notification, NotificationDelivery, NotificationStatus, QuietHours, RetryRules, Severity,
};
use lanyard_store::{DeliveryFilter, NotificationBatch};
use tokio::task::JoinSet;

use crate::notifications::secret::Secret;
use crate::notifications::{NotificationError, NotificationHandle, desktop, webhook};
use crate::outward::Address;
use lanyard_base::failpoint;

/// Deliveries one line looks at together.
const PAGE: usize = 64;
/// How often a line looks for what is due.
const TICK: Duration = Duration::from_secs(1);
const SCRIPTED_TICK: Duration = Duration::from_millis(20);

/// Who gets notifications.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    by_name: BTreeMap<String, Arc<Target>>,
    quiet: Option<QuietHours>,
    /// How long a dismissed notification is kept.
    pub(super) keep_ms: u64,
}

#[derive(Debug)]
pub(crate) enum Target {
    Webhook(Box<Webhook>),
    Desktop(PathBuf),
}

impl Targets {
    pub(super) fn of(settings: &NotificationSettings) -> Self {
        let webhook = |(name, webhook): (&String, &Webhook)| {
            (name.clone(), Arc::new(Target::Webhook(webhook.clone().into())))
        };
        let mut by_name: BTreeMap<String, Arc<Target>> = settings.webhooks.iter().map(webhook).collect();
        match settings.desktop {
            Desktop::Off => {}
            Desktop::Auto => {
                let program = desktop::program();
                if program.is_none() {
                    tracing::info!("no desktop, or no notify-send: notifications are not shown there");
                }
                let shown = program.map(|program| (DESKTOP.to_owned(), Arc::new(Target::Desktop(program))));
                by_name.extend(shown);
            }
        }
        // Checked when the config was read.
        Self { by_name, quiet: settings.quiet().unwrap_or_default(), keep_ms: settings.keep_ms }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    pub(super) fn takers(&self, held: &Notification) -> impl Iterator<Item = &str> {
        let takes = |target: &Target| match target {
            Target::Webhook(webhook) => webhook.takes(held.kind, held.severity),
            Target::Desktop(_) => true,
        };
        self.by_name.iter().filter(move |(_, target)| takes(target)).map(|(name, _)| name.as_str())
    }
}

impl Target {
    fn retry(&self) -> RetryRules {
        match self {
            Self::Webhook(webhook) => webhook.retry(),
            Self::Desktop(_) => desktop::RETRY,
        }
    }
}

impl NotificationHandle {
    /// Runs a line for each receiver until the daemon ends. A reload starts those of new receivers; the line of one that
    /// is gone ends by itself.
    pub(crate) async fn send_outward(self) {
        let mut lines = JoinSet::new();
        let mut served = BTreeSet::new();
        loop {
            if let Err(error) = self.aside(Self::give_up_abandoned).await {
                tracing::warn!(%error, "deliveries to receivers that are no more could not be looked at");
            }
            for name in self.targets().names().filter(|name| served.insert((*name).to_owned())) {
                lines.spawn(self.clone().line(name.to_owned()));
            }
            tokio::select! {
                () = self.inner.reloaded.notified() => {}
                Some(ended) = lines.join_next() => {
                    if let Ok(name) = ended {
                        served.remove(&name);
                    }
                }
            }
        }
    }

    /// What is left for receivers the config no longer names is given up, visibly.
    fn give_up_abandoned(&self) -> Result<(), NotificationError> {
        let filter = DeliveryFilter { pending: Some(true), ..DeliveryFilter::default() };
        let now = self.inner.clock.now();
        let pending = self.inner.store.deliveries(&filter, usize::MAX)?;
        let targets = self.targets();
        let abandoned = pending.iter().filter(|held| !targets.by_name.contains_key(&held.to));
        let deliveries: Vec<_> =
            abandoned.map(|held| held.dead("no receiver of that name is in the config", now)).collect();
        self.settle(deliveries)
    }

    /// Sends to one receiver for as long as the config names it; answers its name.
    async fn line(self, name: String) -> String {
        let Some(wake) = self.inner.wake.read().get(&name).cloned() else { return name };
        let tick = if self.inner.clock.is_scripted() { SCRIPTED_TICK } else { TICK };
        let mut next_due = Some(Timestamp::from_millis(0));
        while let Some(target) = self.targets().by_name.get(&name).cloned() {
            if next_due.is_some_and(|due| due <= self.inner.clock.now()) {
                next_due = match self.send_due(&name, &target).await {
                    Ok(next_due) => next_due,
                    Err(error) => {
                        tracing::warn!(to = name, %error, "deliveries cannot be read or written");
                        Some(Timestamp::from_millis(0))
                    }
                };
            }
            tokio::select! {
                () = wake.notified() => next_due = Some(Timestamp::from_millis(0)),
                () = tokio::time::sleep(tick) => {}
            }
        }
        name
    }

    /// Sends what is due to one receiver, in order. Answers when to look again.
    async fn send_due(&self, name: &str, target: &Target) -> Result<Option<Timestamp>, NotificationError> {
        let to = name.to_owned();
        let due = self.aside(move |all| all.due(&to)).await?;
        for (delivery, held) in &due {
            let id = delivery.id;
            let settled = self.send(delivery, held.as_ref(), target).await?;
            tracing::info!(delivery = %id, to = name, attempt = settled.attempts, state = settled.state.as_str(), why = settled.last_error, "delivery");
            self.aside(move |all| all.settle(vec![settled])).await?;
        }
        let to = name.to_owned();
        self.aside(move |all| all.next_due(&to)).await
    }

    /// Deliveries to a receiver whose time has come, the oldest first, with what they carry. What is put off stands in
    /// nobody's way.
    fn due(&self, to: &str) -> Result<Vec<(NotificationDelivery, Option<Notification>)>, NotificationError> {
        let due_by = Some(self.inner.clock.now());
        let filter = DeliveryFilter { to: Some(to.to_owned()), due_by, ..DeliveryFilter::default() };
        let found = self.inner.store.deliveries(&filter, PAGE)?;
        let with = |delivery: NotificationDelivery| {
            let held = self.inner.store.notification(delivery.notification)?;
            Ok((delivery, held))
        };
        found.into_iter().map(with).collect()
    }

    /// When the next of those that wait for a receiver is due.
    fn next_due(&self, to: &str) -> Result<Option<Timestamp>, NotificationError> {
        let (to, pending) = (Some(to.to_owned()), Some(true));
        let filter = DeliveryFilter { to, pending, ..DeliveryFilter::default() };
        let waiting = self.inner.store.deliveries(&filter, usize::MAX)?;
        Ok(waiting.iter().filter_map(|delivery| delivery.state.due_at()).min())
    }

    /// One try; answers with the delivery as it then is.
    async fn send(
        &self,
        delivery: &NotificationDelivery,
        held: Option<&Notification>,
        target: &Target,
    ) -> Result<NotificationDelivery, NotificationError> {
        let now = self.inner.clock.now();
        let Some(held) = held else { return Ok(delivery.dropped(now)) };
        if held.status == NotificationStatus::Dismissed && delivery.attempts == 0 {
            return Ok(delivery.dropped(now));
        }
        if let Some(until) = self.quiet_until(held, now) {
            return Ok(delivery.put_off(until));
        }
        let rules = target.retry();
        let begun = delivery.begun(&rules, now);
        let written = begun.clone();
        self.aside(move |all| all.settle(vec![written])).await?;
        failpoint::hit("before_delivery");
        let sent = match target {
            Target::Webhook(webhook) => self.post(webhook, held, &begun, now).await,
            Target::Desktop(program) => desktop::show(program, held).await,
        };
        failpoint::hit("after_delivery");
        let now = self.inner.clock.now();
        Ok(match sent {
            Ok(()) => begun.succeeded(now),
            Err(why) => begun.failed(&why, &rules, now),
        })
    }

    async fn post(
        &self,
        settings: &Webhook,
        held: &Notification,
        delivery: &NotificationDelivery,
        now: Timestamp,
    ) -> Result<(), String> {
        let secret = Secret::of(settings)?;
        let address = Address::new(&settings.url, settings.ca_file.as_deref())?;
        let (headers, body) = webhook::post(settings.body, held, delivery, secret.as_ref(), now);
        let status = address.post(headers, body, Duration::from_millis(settings.timeout_ms)).await?;
        if status.is_success() { Ok(()) } else { Err(format!("it answered {status}")) }
    }

    /// Until when something has to wait for quiet hours to be over.
    fn quiet_until(&self, held: &Notification, now: Timestamp) -> Option<Timestamp> {
        if held.severity == Severity::Critical {
            return None;
        }
        let rest = self.targets().quiet?.rest(self.inner.clock.minute_of_day(now))?;
        Some(now.plus_millis(u64::from(rest) * 60_000))
    }

    fn settle(&self, deliveries: Vec<NotificationDelivery>) -> Result<(), NotificationError> {
        if deliveries.is_empty() {
            return Ok(());
        }
        // Not beside a removal: a delivery must not outlive its notification.
        let _held = self.lock();
        let mut kept = Vec::new();
        for delivery in deliveries {
            // One that cannot be read is there all the same.
            if self.inner.store.notification(delivery.notification).is_ok_and(|found| found.is_none()) {
                continue;
            }
            kept.push(delivery);
        }
        let batch = NotificationBatch { deliveries: kept, ..NotificationBatch::default() };
        self.commit(&batch)
    }
}

#[cfg(test)]
mod tests {
    use lanyard_core::notification::{NewNotification, NotificationKind};
    use lanyard_core::{DeliveryId, NotificationId};
    use lanyard_store::{Batch, Journal as _, SqliteJournal, SqliteOptions};

    use super::*;
    use lanyard_base::clock::Clock;

    /// More of them than are looked at together, held back by quiet hours or a pause: something pressing still goes out.
    #[test]
    fn what_is_put_off_stands_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteJournal::open(SqliteOptions::at(folder.path().join("journal.db"))).unwrap();
        let (store, clock) = (Arc::new(store), Arc::new(Clock::from_env().unwrap()));
        let written = store.clone();
        let sink = move |records| {
            written.append(&Batch { records, ..Batch::default() }).unwrap();
            Ok(())
        };
        let settings = NotificationSettings::default();
        let all = NotificationHandle::open(store.clone(), sink, clock.clone(), &settings).unwrap();
        let now = clock.now();
        let new = NewNotification {
            kind: NotificationKind::ContinuityAlert,
            severity: Severity::Critical,
            key: "k".to_owned(),
            title: "t".to_owned(),
            text: String::new(),
            session: None,
            subject: None,
            lasts: true,
        };
        let held = new.made(NotificationId::from_u128(1), now, 1);
        let delivery =
            |number| NotificationDelivery::new(DeliveryId::from_u128(number), held.id, "x".to_owned(), now);
        let later = now.plus_millis(3_600_000);
        let count = u128::try_from(PAGE).unwrap() + 6;
        let mut deliveries: Vec<NotificationDelivery> =
            (1..=count).map(|number| delivery(number).put_off(later)).collect();
        let pressing = delivery(count + 1);
        deliveries.push(pressing.clone());
        let notifications = vec![held.clone()];
        let batch = NotificationBatch { notifications, deliveries, ..NotificationBatch::default() };
        all.commit(&batch).unwrap();
        assert_eq!(all.due("x").unwrap(), [(pressing.clone(), Some(held))]);
        assert_eq!(all.next_due("x").unwrap(), Some(now));
        all.settle(vec![pressing.succeeded(now)]).unwrap();
        assert!(all.due("x").unwrap().is_empty());
        assert_eq!(all.next_due("x").unwrap(), Some(later));
    }
}
