//! Notifications and their deliveries in the file: sealed rows with the columns they are looked for by.

use lanyard_core::NotificationId;
use lanyard_core::notification::{Delivery, Notification, NotificationStatus};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::error::{AppendError, StoreError};
use crate::journal::Durability;
use crate::notifications::{
    DeliveryFilter, NotificationBatch, NotificationFilter, NotificationOrder, Notifications,
};
use crate::sqlite::SqliteJournal;
use crate::sqlite::rows::{signed, unsigned};
use crate::sqlite::sealed::{self, encode, is_whole, optional, seal};

pub(super) const COLUMNS: &str = "id, key, status, session, lasting, snoozed_until, change, body, crc";
pub(super) const DELIVERY_COLUMNS: &str = "id, notification, target, state, due_at, body, crc";

const NOT_WHOLE: &str = "it is not as it was written";

impl Notifications for SqliteJournal {
    fn write_notifications(&self, batch: &NotificationBatch) -> Result<(), AppendError> {
        let mut writer = self.writer();
        let conn = writer.usable().map_err(AppendError::Unavailable)?;
        match contradiction(conn, batch) {
            Ok(None) => {}
            Ok(Some(what)) => return Err(AppendError::Contradiction(what)),
            Err(error) => {
                writer.fail(&error);
                return Err(AppendError::Unavailable(error));
            }
        }
        let written =
            writer.commit(Durability::Synced, |point| self.pass(point), |conn, _| write(conn, batch));
        written.map_err(AppendError::Unavailable)?;
        self.tend_wal(&mut writer);
        Ok(())
    }

    fn notification(&self, id: NotificationId) -> Result<Option<Notification>, StoreError> {
        self.pool.read(|conn| {
            let mut get =
                conn.prepare_cached(&format!("SELECT {COLUMNS} FROM notifications WHERE id = ?1"))?;
            let found = get.query_row([sealed::id(id.as_u128())], |row| Ok(read(row))).optional()?;
            found
                .transpose()
                .map_err(|why| StoreError::Damaged(format!("notification {id} is damaged: {why}")))
        })
    }

    fn lasting(&self, key: &str) -> Result<Option<Notification>, StoreError> {
        self.pool.read(|conn| {
            let mut get = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM notifications WHERE key = ?1 AND lasting = 1"
            ))?;
            let found = get.query_row([key], |row| Ok(read(row))).optional()?;
            found
                .transpose()
                .map_err(|why| StoreError::Damaged(format!("the notification of `{key}` is damaged: {why}")))
        })
    }

    fn notifications(
        &self,
        filter: &NotificationFilter,
        order: NotificationOrder,
        limit: usize,
    ) -> Result<Vec<Notification>, StoreError> {
        self.pool.read(|conn| list(conn, filter, order, limit))
    }

    fn notification_counts(&self) -> Result<Vec<(NotificationStatus, u64)>, StoreError> {
        self.pool.read(|conn| {
            let mut count = conn.prepare_cached("SELECT count(*) FROM notifications WHERE status = ?1")?;
            NotificationStatus::ALL
                .into_iter()
                .map(|status| Ok((status, unsigned(count.query_row([status.as_str()], |row| row.get(0))?))))
                .collect()
        })
    }

    fn last_notification_change(&self) -> Result<u64, StoreError> {
        self.pool.read(|conn| {
            let mut last = conn.prepare_cached(
                "SELECT max(value) FROM (SELECT max(change) AS value FROM notifications \
                 UNION ALL SELECT value FROM meta WHERE key = 'notification_change')",
            )?;
            let last: Option<i64> = last.query_row([], |row| row.get(0))?;
            Ok(last.map_or(0, unsigned))
        })
    }

    fn deliveries(&self, filter: &DeliveryFilter, limit: usize) -> Result<Vec<Delivery>, StoreError> {
        self.pool.read(|conn| list_deliveries(conn, filter, limit))
    }

    fn delivery_counts(&self) -> Result<(u64, u64), StoreError> {
        self.pool.read(|conn| {
            let mut count = conn.prepare_cached("SELECT count(*) FROM deliveries WHERE state = ?1")?;
            let mut of = |state: &str| count.query_row([state], |row| row.get(0)).map(unsigned);
            Ok((of("pending")?, of("dead")?))
        })
    }
}

/// A second notification of a key whose first is not over.
fn contradiction(conn: &Connection, batch: &NotificationBatch) -> Result<Option<String>, StoreError> {
    let mut find = conn.prepare_cached("SELECT id FROM notifications WHERE key = ?1 AND lasting = 1")?;
    let mut mine = std::collections::BTreeMap::new();
    for held in batch.notifications.iter().filter(|held| held.over_at.is_none()) {
        let other: Option<[u8; 16]> = find.query_row([&held.key], |row| row.get(0)).optional()?;
        let other = other.map(|id| NotificationId::from_u128(u128::from_be_bytes(id)));
        let ends = |id| batch.notifications.iter().any(|one| one.id == id && one.over_at.is_some());
        let goes = |id| batch.removed.contains(&id) || ends(id);
        let taken = other.is_some_and(|other| other != held.id && !goes(other));
        if taken || mine.insert(&held.key, held.id).is_some_and(|other| other != held.id) {
            return Ok(Some(format!("two notifications of `{}` that are not over", held.key)));
        }
    }
    Ok(None)
}

fn write(conn: &Connection, batch: &NotificationBatch) -> Result<(), StoreError> {
    // What ends goes first: its key may be taken by what begins.
    let (over, lasting): (Vec<_>, Vec<_>) =
        batch.notifications.iter().partition(|held| held.over_at.is_some());
    for held in over.into_iter().chain(lasting) {
        put(conn, held)?;
    }
    for delivery in &batch.deliveries {
        put_delivery(conn, delivery)?;
    }
    for id in &batch.removed {
        let id = sealed::id(id.as_u128());
        // The number of the last change must not go with the row that has it.
        conn.prepare_cached(
            "INSERT INTO meta (key, value, crc) SELECT 'notification_change', max(change), 0 FROM notifications \
             WHERE true ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)",
        )?
        .execute([])?;
        conn.prepare_cached("DELETE FROM deliveries WHERE notification = ?1")?.execute([&id])?;
        conn.prepare_cached("DELETE FROM notifications WHERE id = ?1")?.execute([&id])?;
    }
    Ok(())
}

fn put(conn: &Connection, held: &Notification) -> Result<(), StoreError> {
    let values = seal(vec![
        sealed::id(held.id.as_u128()),
        Value::Text(held.key.clone()),
        Value::Text(held.status.as_str().to_owned()),
        optional(held.session.map(|session| sealed::id(session.as_u128()))),
        Value::from(held.over_at.is_none()),
        optional(held.snoozed_until.map(|until| Value::Integer(until.as_millis()))),
        Value::Integer(signed(held.change)),
        encode("the notification", held)?,
    ]);
    // Not `OR REPLACE`: that would also take away another one that has its key.
    let mut put = conn.prepare_cached(&format!(
        "INSERT INTO notifications ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
         ON CONFLICT (id) DO UPDATE SET key = ?2, status = ?3, session = ?4, lasting = ?5, snoozed_until = ?6, \
         change = ?7, body = ?8, crc = ?9"
    ))?;
    put.execute(params_from_iter(values))?;
    Ok(())
}

fn put_delivery(conn: &Connection, delivery: &Delivery) -> Result<(), StoreError> {
    let values = seal(vec![
        sealed::id(delivery.id.as_u128()),
        sealed::id(delivery.notification.as_u128()),
        Value::Text(delivery.to.clone()),
        Value::Text(delivery.state.as_str().to_owned()),
        optional(delivery.state.due_at().map(|due| Value::Integer(due.as_millis()))),
        encode("the delivery", delivery)?,
    ]);
    let mut put = conn.prepare_cached(&format!(
        "INSERT OR REPLACE INTO deliveries ({DELIVERY_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
    ))?;
    put.execute(params_from_iter(values))?;
    Ok(())
}

/// Reads [`COLUMNS`].
pub(super) fn read(row: &Row<'_>) -> Result<Notification, String> {
    if is_whole(row, 8) { sealed::decode(row, 7) } else { Err(NOT_WHOLE.to_owned()) }
}

/// Reads [`DELIVERY_COLUMNS`].
pub(super) fn read_delivery(row: &Row<'_>) -> Result<Delivery, String> {
    if is_whole(row, 6) { sealed::decode(row, 5) } else { Err(NOT_WHOLE.to_owned()) }
}

fn list(
    conn: &Connection,
    filter: &NotificationFilter,
    order: NotificationOrder,
    limit: usize,
) -> Result<Vec<Notification>, StoreError> {
    let (mut texts, mut values) = (Vec::new(), Vec::new());
    let mut when = |text: &str, value: Value| {
        values.push(value);
        texts.push(text.replace('?', &format!("?{}", values.len())));
    };
    if let Some(session) = filter.session {
        when("session = ?", sealed::id(session.as_u128()));
    }
    if let Some(key) = &filter.key {
        when("key = ?", Value::Text(key.clone()));
    }
    if let Some(by) = filter.snoozed_until {
        when("snoozed_until <= ?", Value::Integer(by.as_millis()));
    }
    if let Some(status) = filter.status {
        when("status = ?", Value::Text(status.as_str().to_owned()));
    }
    let order = match order {
        NotificationOrder::Newest { before } => {
            if let Some(before) = before {
                when("id < ?", sealed::id(before.as_u128()));
            }
            "id DESC"
        }
        NotificationOrder::Changed { after } => {
            when("change > ?", Value::Integer(signed(after)));
            "change"
        }
    };
    let texts = if texts.is_empty() { "true".to_owned() } else { texts.join(" AND ") };
    let mut list =
        conn.prepare_cached(&format!("SELECT {COLUMNS} FROM notifications WHERE {texts} ORDER BY {order}"))?;
    let mut rows = list.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        match read(row) {
            Ok(held) => found.extend(Some(held).filter(|held| filter.matches(held))),
            Err(why) => tracing::error!(why, "a kept notification is damaged"),
        }
    }
    Ok(found)
}

fn list_deliveries(
    conn: &Connection,
    filter: &DeliveryFilter,
    limit: usize,
) -> Result<Vec<Delivery>, StoreError> {
    let (mut texts, mut values) = (vec!["true".to_owned()], Vec::new());
    let mut when = |text: &str, value: Value| {
        values.push(value);
        texts.push(text.replace('?', &format!("?{}", values.len())));
    };
    if let Some(notification) = filter.notification {
        when("notification = ?", sealed::id(notification.as_u128()));
    }
    if let Some(by) = filter.due_by {
        when("due_at <= ?", Value::Integer(by.as_millis()));
    }
    if filter.pending == Some(true) {
        when("state = ?", Value::Text("pending".to_owned()));
    }
    let mut list = conn.prepare_cached(&format!(
        "SELECT {DELIVERY_COLUMNS} FROM deliveries WHERE {} ORDER BY id",
        texts.join(" AND ")
    ))?;
    let mut rows = list.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        match read_delivery(row) {
            Ok(held) => found.extend(Some(held).filter(|held| filter.matches(held))),
            Err(why) => tracing::error!(why, "a kept delivery is damaged"),
        }
    }
    Ok(found)
}
