//! Journals of schema 10, in which each kind of record had tables of its own.

use std::path::Path;
use std::sync::{Arc, Mutex};

use lanyard_core::DeliveryId;
use lanyard_core::notification::NotificationDelivery;
use lanyard_core::task::MailTo;
use lanyard_store::{
    Backups, Failpoints, Flows, NotificationBatch, Notifications, SqliteJournal, SqliteOptions, StoreError,
    Tasks, Upkeep,
};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::conductor::{Conductor, plain};
use crate::foreman::{self, Foreman};
use crate::kit::{Teller, WriteRecords, at, open, options};
use crate::notifications::made;
use crate::sqlite::crash_image;

/// The values of a row with their checksum: over all of them, each with its type.
fn sealed(mut values: Vec<Value>) -> Vec<Value> {
    let mut bytes = Vec::new();
    for value in &values {
        let (kind, number, rest): (u64, u64, &[u8]) = match value {
            Value::Integer(value) => (1, value.cast_unsigned(), &[]),
            Value::Text(text) => (3, text.len() as u64, text.as_bytes()),
            Value::Blob(blob) => (4, blob.len() as u64, blob),
            Value::Null => {
                bytes.extend_from_slice(&0_u64.to_le_bytes());
                continue;
            }
            Value::Real(_) => panic!("no row has one"),
        };
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(rest);
    }
    values.push(Value::Integer(crc32fast::hash(&bytes).into()));
    values
}

fn insert(conn: &Connection, table: &str, values: Vec<Value>) {
    let values = sealed(values);
    let places: Vec<String> = (1..=values.len()).map(|place| format!("?{place}")).collect();
    let sql = format!("INSERT INTO {table} VALUES ({})", places.join(", "));
    conn.execute(&sql, params_from_iter(values)).unwrap();
}

fn rows(conn: &Connection, sql: &str) -> Vec<(Vec<u8>, i64, Vec<u8>)> {
    let mut list = conn.prepare(sql).unwrap();
    let found = list.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    found.map(Result::unwrap).collect()
}

/// Puts the records of a closed journal back into the tables they had at schema 10.
fn back_to_schema_10(path: &Path) {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(
        "CREATE TABLE flow_events (flow BLOB NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
             body BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (flow, seq));
         CREATE TABLE flows (id BLOB PRIMARY KEY, plan TEXT NOT NULL, workspace TEXT NOT NULL, state TEXT NOT NULL,
             ended INTEGER NOT NULL, settled INTEGER NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL,
             crc INTEGER NOT NULL);
         CREATE INDEX flows_plan ON flows (plan, id);
         CREATE TABLE task_events (task BLOB NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, crc INTEGER NOT NULL,
             PRIMARY KEY (task, seq));
         CREATE TABLE tasks (id BLOB PRIMARY KEY, plan BLOB, parent BLOB, reports_to BLOB, worker BLOB, session BLOB,
             workspace TEXT, state TEXT NOT NULL, ended INTEGER NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL,
             crc INTEGER NOT NULL);
         CREATE TABLE task_names (name TEXT NOT NULL, task BLOB NOT NULL, PRIMARY KEY (name, task)) WITHOUT ROWID;
         CREATE TABLE mail (id BLOB PRIMARY KEY, box BLOB NOT NULL, seq INTEGER NOT NULL, settled INTEGER NOT NULL,
             dead INTEGER NOT NULL, body BLOB NOT NULL, crc INTEGER NOT NULL);
         CREATE UNIQUE INDEX mail_box ON mail (box, seq);
         CREATE TABLE notifications (id BLOB PRIMARY KEY, key TEXT NOT NULL, status TEXT NOT NULL, session BLOB,
             lasting INTEGER NOT NULL, snoozed_until INTEGER, change INTEGER NOT NULL, body BLOB NOT NULL,
             crc INTEGER NOT NULL);
         CREATE TABLE deliveries (id BLOB PRIMARY KEY, notification BLOB NOT NULL, target TEXT NOT NULL,
             state TEXT NOT NULL, due_at INTEGER, body BLOB NOT NULL, crc INTEGER NOT NULL);
         INSERT INTO task_names SELECT value, id FROM record_keys WHERE kind = 'task' AND key = 'name';",
    )
    .unwrap();
    for (id, seq, body) in rows(&conn, "SELECT record, seq, body FROM record_events WHERE kind = 'flow'") {
        let values = vec![Value::Blob(id), Value::Integer(seq), Value::Integer(7), Value::Blob(body)];
        insert(&conn, "flow_events", values);
    }
    for (id, seq, body) in rows(&conn, "SELECT id, as_of, body FROM record_rows WHERE kind = 'flow'") {
        let texts = ["/w/plan.md", "/w", "execute"].map(|text| Value::Text(text.to_owned()));
        let numbers = [0, 0, seq].map(Value::Integer);
        let values = [vec![Value::Blob(id)], texts.to_vec(), numbers.to_vec(), vec![Value::Blob(body)]];
        insert(&conn, "flows", values.concat());
    }
    for (id, seq, body) in rows(&conn, "SELECT record, seq, body FROM record_events WHERE kind = 'task'") {
        insert(&conn, "task_events", vec![Value::Blob(id), Value::Integer(seq), Value::Blob(body)]);
    }
    for (id, seq, body) in rows(&conn, "SELECT id, as_of, body FROM record_rows WHERE kind = 'task'") {
        let state = [Value::Text("pending".to_owned()), Value::Integer(0), Value::Integer(seq)];
        let values = [vec![Value::Blob(id)], vec![Value::Null; 6], state.to_vec(), vec![Value::Blob(body)]];
        insert(&conn, "tasks", values.concat());
    }
    for (place, (id, _, body)) in
        (1..).zip(rows(&conn, "SELECT id, as_of, body FROM record_rows WHERE kind = 'mail' ORDER BY id"))
    {
        let numbers = [place, 0, 0].map(Value::Integer);
        let values = [vec![Value::Blob(id), Value::Blob(vec![0])], numbers.to_vec(), vec![Value::Blob(body)]];
        insert(&conn, "mail", values.concat());
    }
    let texts = ["a", "b"].map(|text| Value::Text(text.to_owned()));
    for (id, _, body) in rows(&conn, "SELECT id, as_of, body FROM record_rows WHERE kind = 'notification'") {
        let rest = [Value::Null, Value::Integer(1), Value::Null, Value::Integer(1), Value::Blob(body)];
        insert(&conn, "notifications", [vec![Value::Blob(id)], texts.to_vec(), rest.to_vec()].concat());
    }
    for (id, _, body) in rows(&conn, "SELECT id, as_of, body FROM record_rows WHERE kind = 'delivery'") {
        let ids = vec![Value::Blob(id.clone()), Value::Blob(id)];
        insert(&conn, "deliveries", [ids, texts.to_vec(), vec![Value::Null, Value::Blob(body)]].concat());
    }
    conn.execute_batch(
        "DROP TABLE record_events; DROP TABLE record_rows; DROP TABLE record_keys; PRAGMA user_version = 10",
    )
    .unwrap();
}

/// A journal of schema 10 with something of everything in it, closed.
fn older(path: &Path) -> (Teller, Foreman, Conductor) {
    let (mut teller, mut foreman, mut conductor) =
        (Teller::default(), Foreman::default(), Conductor::default());
    let journal = open(path);
    teller.plain();
    teller.append(&journal);
    let task = foreman.create(foreman::plain("one"));
    foreman.work_at(task, 1);
    foreman.send(MailTo::Task(task), "first");
    foreman.send(MailTo::Task(task), "second");
    foreman.write(&journal);
    let flows = [1, 2, 3].map(|number| conductor.create(plain(&format!("/w/{number}.md"))));
    conductor.work_at(flows[0]);
    conductor.end(flows[1]);
    conductor.write(&journal);
    let held = made(1, "a", 3);
    let deliveries =
        vec![NotificationDelivery::new(DeliveryId::from_u128(1), held.id, "x".to_owned(), at(1))];
    let told = NotificationBatch { notifications: vec![held], deliveries, removed: Vec::new() };
    journal.write_notifications(&told).unwrap();
    drop(journal);
    back_to_schema_10(path);
    (teller, foreman, conductor)
}

/// Everything is there after the upgrade, nothing is wrong with it, and it can be changed, backed up and rebuilt.
#[test]
fn a_journal_of_schema_10_is_brought_forward() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (teller, foreman, mut conductor) = older(&path);
    let report = SqliteJournal::verify(&path).unwrap();
    assert_eq!((report.schema, report.damage), (10, vec![]), "a backup is checked before it is restored");
    let journal = open(&path);
    let report = journal.check().unwrap();
    assert_eq!((report.schema, report.structure, report.damage), (13, vec![], vec![]));
    for _ in 0..2 {
        teller.assert_kept(&journal);
        foreman.assert_kept(&journal);
        conductor.assert_kept(&journal);
        assert_eq!(journal.lasting("a").unwrap(), Some(made(1, "a", 3)));
        assert_eq!(
            (journal.last_notification_change().unwrap(), journal.delivery_counts().unwrap()),
            (3, (1, 0))
        );
        let flow = conductor.create(plain("/w/later.md"));
        conductor.work_at(flow);
        conductor.write(&journal);
        journal.rebuild().unwrap();
    }
    let copy = folder.path().join("copy.db");
    assert_eq!(journal.back_up(&copy).unwrap().damage, []);
    conductor.assert_kept(&open(&copy));
    let tables = Connection::open(&path).unwrap();
    let old = "SELECT count(*) FROM sqlite_master WHERE name LIKE 'flow%' OR name LIKE 'task%' OR name LIKE 'mail%' \
               OR name IN ('notifications', 'deliveries')";
    assert_eq!(tables.query_row(old, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

/// Damage in an older journal is not made good by the upgrade: it is reported before and after.
#[test]
fn damage_of_an_older_journal_stays_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (_, foreman, conductor) = older(&path);
    let behind = Connection::open(&path).unwrap();
    let first = "(SELECT min(flow) FROM flow_events)";
    behind.execute(&format!("UPDATE flow_events SET crc = 0 WHERE seq = 2 AND flow = {first}"), []).unwrap();
    behind.execute("UPDATE flows SET crc = 0 WHERE id = (SELECT max(flow) FROM flow_events)", []).unwrap();
    behind.execute("UPDATE mail SET crc = 0 WHERE seq = 1", []).unwrap();
    drop(behind);
    let report = SqliteJournal::verify(&path).unwrap();
    let what: Vec<&str> = report.damage.iter().map(|damage| damage.what.as_str()).collect();
    assert_eq!(
        what,
        ["flow_events", "flows", "mail"].map(|table| format!("table {table} of an older journal is damaged"))
    );
    let journal = open(&path);
    // The first flow's row stands for its log, and the last one's log for its row.
    for (id, held) in &conductor.flows {
        assert_eq!(journal.flow(*id).unwrap().as_ref(), Some(held));
    }
    let mut mail = foreman.mail.keys();
    assert!(matches!(journal.mail(*mail.next().unwrap()), Err(StoreError::Damaged(_))));
    assert!(journal.mail(*mail.next().unwrap()).unwrap().is_some());
    let report = journal.check().unwrap();
    let one = conductor.flows.keys().next().unwrap();
    let what: Vec<&str> = report.damage.iter().map(|damage| damage.what.as_str()).collect();
    let (mail, logs) = what.split_last().unwrap();
    assert_eq!(*mail, "a kept mail is damaged");
    // Events after the damaged one may not fit without it.
    assert_eq!(logs[0], format!("the log of {one} is damaged: it is not as it was written"));
    assert!(logs.iter().all(|what| what.starts_with(&format!("the log of {one} is damaged"))), "{logs:?}");
}

/// A process that ends during the upgrade leaves a journal that is brought forward at the next start.
#[test]
fn a_crash_during_the_upgrade_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, image) = (folder.path().join("journal.db"), folder.path().join("image"));
    std::fs::create_dir(&image).unwrap();
    let (teller, foreman, conductor) = older(&path);
    let left = Arc::new(Mutex::new(Vec::new()));
    let failpoint: Failpoints = {
        let (path, left) = (path.clone(), Arc::clone(&left));
        Arc::new(move |point| {
            if point == "migration" {
                let mut left = left.lock().unwrap();
                let image = image.join(left.len().to_string());
                std::fs::create_dir(&image).unwrap();
                left.push(crash_image(&path, &image));
            }
        })
    };
    drop(SqliteJournal::open(SqliteOptions { failpoint: Some(failpoint), ..options(&path) }).unwrap());
    let left = left.lock().unwrap();
    assert_eq!(left.len(), 6, "before and after the commit of each of three steps");
    for image in left.iter() {
        let journal = open(image);
        teller.assert_kept(&journal);
        foreman.assert_kept(&journal);
        conductor.assert_kept(&journal);
        assert_eq!(journal.check().unwrap().damage, []);
    }
}
