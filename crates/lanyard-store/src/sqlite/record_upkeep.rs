//! Looking after records: comparing rows and keys with what the logs add up to, and making them again.

use std::collections::{BTreeMap, BTreeSet};

use lanyard_core::task::is_key;
use rusqlite::Connection;

use crate::error::StoreError;
use crate::records::{Findings, KeyValue, RecordKind, RecordRef, RecordRow, SummedLog};
use crate::sqlite::boot::each_row;
use crate::sqlite::logs::{Complaint, Complaints, seq_of};
use crate::sqlite::records::{
    EVENT_COLUMNS, ROW_COLUMNS, body_of, keys, name_key, put_keys, put_name, put_row, record_of, row,
};

/// Checks records, their logs and their keys, and returns their faults.
pub(super) fn check(conn: &Connection) -> Result<Vec<Complaint>, StoreError> {
    let mut complaints = Complaints::default();
    let (mut records, mut held) = (0, 0);
    let logs_read = each_log(conn, |of, fold| {
        records += 1;
        let row = row(conn, of)?.and_then(|row| row.ok_or_else(|| "it is missing".to_owned()));
        compare(&mut complaints, of, fold, &row);
        let row = row.and_then(|body| of.kind.row(&body)).ok();
        let row = row.map_or_else(|| fold.row(), |row| Ok(Some(row)))?;
        held += check_keys(conn, &mut complaints, of, (row, Some(fold.findings())))?;
        Ok(())
    })?;
    let rows_read = each_kept(conn, |of, row| {
        records += 1;
        held += if let Ok(row) = row {
            check_keys(conn, &mut complaints, of, (Some(row), None))?
        } else {
            complaints.add((0, 0), format!("a kept {} is damaged", of.kind.as_str()));
            keys(conn, of)?.len() as u64
        };
        Ok(())
    })?;
    if !(logs_read && rows_read) {
        complaints.add((0, 0), "the records cannot all be read".to_owned());
    }
    complaints.count(conn, "record_rows", records)?;
    complaints.count(conn, "record_keys", held)?;
    Ok(complaints.0)
}

/// Compares a log with the row beside it and collects the faults.
fn compare(complaints: &mut Complaints, of: RecordRef, fold: &dyn SummedLog, row: &Result<Vec<u8>, String>) {
    let left_out = &fold.findings().left_out;
    for (seq, why) in left_out {
        complaints.add((*seq, *seq), format!("the log of {of} is damaged: {why}"));
    }
    // A damaged log cannot tell whether the row is right; a good row then is what is left.
    match row {
        Err(why) => complaints.add((0, 0), format!("the row of {of} is damaged: {why}")),
        Ok(body) if left_out.is_empty() && !fold.agrees(body) => {
            complaints.add((0, 0), format!("the row of {of} is not what its log adds up to"));
        }
        Ok(_) => {}
    }
}

/// Compares a record's keys with its row and its log. Answers how many there are.
fn check_keys(
    conn: &Connection,
    complaints: &mut Complaints,
    of: RecordRef,
    (row, findings): (Option<RecordRow>, Option<&Findings>),
) -> Result<u64, StoreError> {
    let names = findings.iter().flat_map(|findings| &findings.names);
    let mut wanted: BTreeSet<(String, KeyValue)> = names.map(|name| name_key(name)).collect();
    wanted.extend(row.into_iter().flat_map(|row| row.keys).map(|(key, value)| (key.to_owned(), value)));
    let held = keys(conn, of)?;
    let has_ended = findings.is_some_and(|findings| findings.has_ended);
    // The keys of requests are forgotten some time after the end.
    let may_lack = |value: &KeyValue| has_ended && matches!(value, KeyValue::Text(name) if is_key(name));
    if wanted.difference(&held).any(|(_, value)| !may_lack(value)) || !held.is_subset(&wanted) {
        complaints.add((0, 0), format!("the keys of {of} are not those of its record"));
    }
    Ok(held.len() as u64)
}

/// Makes the rows of records with a log again, and all keys and names.
pub(super) fn remake(conn: &Connection) -> Result<(), StoreError> {
    // What the logs can no longer tell, the rows may; so they are looked at before they are thrown away.
    let mut rest: BTreeMap<RecordRef, RecordRow> = BTreeMap::new();
    each_log(conn, |of, fold| {
        if !fold.findings().left_out.is_empty()
            && let Ok(Some(body)) = row(conn, of)?
            && let Ok(row) = of.kind.row(&body)
        {
            rest.insert(of, row);
        }
        Ok(())
    })?;
    conn.execute_batch("DELETE FROM record_keys")?;
    for kind in RecordKind::ALL.into_iter().filter(|kind| kind.has_log()) {
        conn.execute("DELETE FROM record_rows WHERE kind = ?1", [kind.as_str()])?;
    }
    each_kept(conn, |_, row| row.map_or(Ok(()), |row| put_keys(conn, &row)))?;
    each_log(conn, |of, fold| {
        fold.findings().names.iter().try_for_each(|name| put_name(conn, of, name))?;
        let Some(row) = rest.remove(&of).map_or_else(|| fold.row(), |row| Ok(Some(row)))? else {
            tracing::error!(kind = of.kind.as_str(), record = %of, "a record cannot be made from its log");
            return Ok(());
        };
        put_row(conn, &row)
    })?;
    Ok(())
}

/// Feeds every record without a log, or why it cannot be understood. Answers whether all of them could be read.
fn each_kept(
    conn: &Connection,
    mut each: impl FnMut(RecordRef, Result<RecordRow, String>) -> Result<(), StoreError>,
) -> Result<bool, StoreError> {
    let mut failed = None;
    let all = format!("SELECT {ROW_COLUMNS} FROM record_rows ORDER BY kind, id");
    let whole = each_row(conn, &all, |row| {
        let Some(of) = record_of(row) else { return false };
        if !of.kind.has_log() && failed.is_none() {
            failed = each(of, body_of(row).and_then(|body| of.kind.row(body))).err();
        }
        true
    })?;
    failed.map_or(Ok(whole), Err)
}

/// Feeds what each log adds up to. Answers whether all of them could be read to their end.
fn each_log(
    conn: &Connection,
    mut each: impl FnMut(RecordRef, &dyn SummedLog) -> Result<(), StoreError>,
) -> Result<bool, StoreError> {
    let mut open: Option<(RecordRef, Box<dyn SummedLog>)> = None;
    let mut failed = None;
    let mut close = |open: Option<(RecordRef, Box<dyn SummedLog>)>| {
        if let (Some((of, fold)), None) = (open, &failed) {
            failed = each(of, &*fold).err();
        }
    };
    let all = format!("SELECT {EVENT_COLUMNS} FROM record_events ORDER BY kind, record, seq");
    let whole = each_row(conn, &all, |row| {
        let Some(of) = record_of(row) else { return false };
        if open.as_ref().is_none_or(|(before, _)| *before != of) {
            let Some(fold) = of.kind.fold() else { return false };
            close(open.replace((of, fold)));
        }
        if let Some((_, fold)) = &mut open {
            fold.feed(seq_of(row), body_of(row));
        }
        true
    })?;
    close(open);
    failed.map_or(Ok(whole), Err)
}
