//! Telling people that the journal has grown large, before the disk does.

use std::sync::Arc;

use lanyard_core::notification::{NewNotification, NotificationKind, Severity};

use crate::storage::StorageContext;

const KEY: &str = "journal-size";
const MEBI: u64 = 1 << 20;

pub(super) async fn look(context: &Arc<StorageContext>) {
    let limit = context.config.storage().storage.alarm_bytes;
    if limit == 0 {
        return;
    }
    let store = context.store.clone();
    let size = match tokio::task::spawn_blocking(move || store.size()).await {
        Ok(Ok(size)) => size.total(),
        Ok(Err(_)) | Err(_) => return,
    };
    let told = context.notifications.aside(move |all| {
        if size <= limit {
            return all.end(KEY, Some("the journal is within its limit again"), None).map(drop);
        }
        let (size, limit) = (size.div_ceil(MEBI), limit / MEBI);
        let new = NewNotification {
            kind: NotificationKind::JournalLarge,
            severity: Severity::Warning,
            key: KEY.to_owned(),
            title: "The journal is larger than its limit".to_owned(),
            text: format!(
                "{size} MB, the limit is {limit} MB. Delete sessions with `lanyard rm`, set [retention], then run \
                 `lanyard gc`."
            ),
            session: None,
            subject: None,
            lasts: true,
        };
        all.raise(new).map(drop)
    });
    if let Err(error) = told.await {
        tracing::warn!(%error, "people could not be told of the journal's size");
    }
}
