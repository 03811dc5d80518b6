//! Continuity that is degraded is told of once when it begins and once when it ends.

use lanyard_core::Timestamp;
use lanyard_core::continuity::{Alert, AlertKind};
use lanyard_core::notification::{NewNotification, NotificationKind, Severity};

use crate::notifications::{NotificationError, NotificationHandle};
use lanyard_engine::continuity::ContinuityCounter;

fn key(kind: AlertKind) -> String {
    format!("continuity:{}", kind.as_str())
}

impl NotificationHandle {
    /// What an earlier daemon told of and did not take back still holds, as far as anybody knows.
    pub(crate) fn recall_alerts(&self, continuity: &ContinuityCounter) -> Result<(), NotificationError> {
        for kind in AlertKind::ALL {
            if self.inner.store.lasting(&key(kind))?.is_some() {
                continuity.told(kind, true);
            }
        }
        Ok(())
    }

    /// Tells what began and what ended since the last look. Each is one transaction: a kill in between tells neither.
    pub(super) fn look_at_continuity(
        &self,
        continuity: &ContinuityCounter,
        now: Timestamp,
    ) -> Result<(), NotificationError> {
        let (alerts, told) = continuity.alerts(now);
        for alert in alerts.iter().filter(|alert| !told.contains(&alert.code)) {
            self.raise(began(alert))?;
            continuity.told(alert.code, true);
        }
        for kind in told.into_iter().filter(|kind| alerts.iter().all(|alert| alert.code != *kind)) {
            self.end(&key(kind), None, Some(ended(kind)))?;
            continuity.told(kind, false);
        }
        Ok(())
    }
}

fn began(alert: &Alert) -> NewNotification {
    let name = alert.code.as_str();
    NewNotification {
        kind: NotificationKind::ContinuityAlert,
        severity: Severity::Critical,
        key: key(alert.code),
        title: format!(
            "Continuity is degraded: {name} is {:.3}, the limit is {:.3}",
            alert.actual, alert.threshold
        ),
        text: format!("{}. Look with `lanyard metrics`.", alert.text),
        session: None,
        subject: Some(name.to_owned()),
        lasts: true,
    }
}

fn ended(kind: AlertKind) -> NewNotification {
    let name = kind.as_str();
    NewNotification {
        kind: NotificationKind::ContinuityRecovered,
        severity: Severity::Info,
        key: format!("continuity_recovered:{name}"),
        title: format!("Continuity has recovered: {name}"),
        text: String::new(),
        session: None,
        subject: Some(name.to_owned()),
        lasts: false,
    }
}
