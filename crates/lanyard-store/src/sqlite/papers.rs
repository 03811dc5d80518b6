//! Papers in the file: versioned documents with a checksum over all that is kept of them.

use lanyard_core::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Rows};

use crate::error::StoreError;
use crate::journal::{Durability, Paper, PaperKey, Papers, Put};
use crate::sqlite::SqliteJournal;
use crate::sqlite::changes;
use crate::sqlite::rows::{Sum, signed, unsigned};

pub(super) const COLUMNS: &str = "kind, workspace, key, version, at, crc, body";

impl Papers for SqliteJournal {
    fn paper(&self, place: &PaperKey) -> Result<Option<Paper>, StoreError> {
        self.pool.read(|conn| {
            let mut get = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM papers WHERE kind = ?1 AND workspace = ?2 AND key = ?3"
            ))?;
            match get.query_row((&place.kind, &place.workspace, &place.key), read).optional()? {
                None => Ok(None),
                Some(Some(paper)) => Ok(Some(paper)),
                Some(None) => Err(StoreError::Damaged(format!(
                    "the {} `{}` is not as it was written",
                    place.kind, place.key
                ))),
            }
        })
    }

    fn papers(
        &self,
        kind: &str,
        workspace: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Paper>, StoreError> {
        self.pool.read(|conn| {
            let mut list = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM papers WHERE kind = ?1 AND workspace = ?2 AND (?3 IS NULL OR key > ?3) \
                 ORDER BY key LIMIT ?4"
            ))?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            readable(kind, &mut list.query((kind, workspace, after, limit))?)
        })
    }

    fn papers_named(&self, kind: &str, key: Option<&str>, limit: usize) -> Result<Vec<Paper>, StoreError> {
        self.pool.read(|conn| {
            let mut list = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM papers WHERE kind = ?1 AND (?2 IS NULL OR key = ?2) ORDER BY key LIMIT ?3"
            ))?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            readable(kind, &mut list.query((kind, key, limit))?)
        })
    }

    fn put_paper(&self, place: &PaperKey, from: u64, at: Timestamp, body: &str) -> Result<Put, StoreError> {
        let mut writer = self.writer();
        let (put, change) = writer.commit(
            Durability::Synced,
            |_| {},
            |conn, _| {
                let found = version(conn, place)?;
                if found != from {
                    return Ok((Put::Moved(found), None));
                }
                let next = from + 1;
                let crc = sum(place, signed(next), at.as_millis(), body);
                let mut put = conn.prepare_cached(&format!(
                    "INSERT OR REPLACE INTO papers ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
                ))?;
                let PaperKey { kind, workspace, key } = place;
                put.execute((kind, workspace, key, signed(next), at.as_millis(), crc, body))?;
                Ok((Put::Kept(next), changes::note_paper(conn, place)?))
            },
        )?;
        self.changed(change);
        self.tend_wal(&mut writer);
        Ok(put)
    }

    fn remove_paper(&self, place: &PaperKey) -> Result<bool, StoreError> {
        let (removed, change) = self.writer().commit(
            Durability::Synced,
            |_| {},
            |conn, _| {
                let mut remove = conn
                    .prepare_cached("DELETE FROM papers WHERE kind = ?1 AND workspace = ?2 AND key = ?3")?;
                let removed = remove.execute((&place.kind, &place.workspace, &place.key))? > 0;
                let change = if removed { changes::note_paper(conn, place)? } else { None };
                Ok((removed, change))
            },
        )?;
        self.changed(change);
        Ok(removed)
    }
}

/// The readable rows: a damaged one does not hide the others.
fn readable(kind: &str, rows: &mut Rows<'_>) -> Result<Vec<Paper>, StoreError> {
    let mut papers = Vec::new();
    while let Some(row) = rows.next()? {
        if let Ok(Some(paper)) = read(row) {
            papers.push(paper);
        } else {
            tracing::error!(kind, "a kept paper is damaged");
        }
    }
    Ok(papers)
}

/// 0 when there is none.
fn version(conn: &Connection, place: &PaperKey) -> rusqlite::Result<u64> {
    let mut get =
        conn.prepare_cached("SELECT version FROM papers WHERE kind = ?1 AND workspace = ?2 AND key = ?3")?;
    let found = get.query_row((&place.kind, &place.workspace, &place.key), |row| row.get(0)).optional()?;
    Ok(found.map_or(0, unsigned))
}

fn sum(place: &PaperKey, version: i64, at: i64, body: &str) -> u32 {
    let PaperKey { kind, workspace, key } = place;
    let sum = Sum::default().bytes(kind.as_bytes()).bytes(workspace.as_bytes()).bytes(key.as_bytes());
    sum.int(version).int(at).bytes(body.as_bytes()).done()
}

/// Reads [`COLUMNS`]; nothing when they are not as they were written.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Option<Paper>> {
    let place = PaperKey { kind: row.get(0)?, workspace: row.get(1)?, key: row.get(2)? };
    let (version, at): (i64, i64) = (row.get(3)?, row.get(4)?);
    let (crc, body): (u32, String) = (row.get(5)?, row.get(6)?);
    let good = crc == sum(&place, version, at, &body);
    Ok(good.then(|| Paper { place, version: unsigned(version), at: Timestamp::from_millis(at), body }))
}
