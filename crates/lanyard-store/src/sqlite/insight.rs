//! The sums of usage in the file: a row per session, quarter of an hour, agent, model and folder. A projection, except for
//! the rows of session 0: those are what is left of sessions that were purged, and no log tells of them.

use std::collections::{BTreeMap, HashSet};

use lanyard_core::SessionId;
use lanyard_core::insight::{InsightCounts, InsightKey, InsightStep, Quarter};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::error::StoreError;
use crate::fold::InsightSums;
use crate::insights::Insights;
use crate::sqlite::SqliteJournal;
use crate::sqlite::plan::Plan;
use crate::sqlite::rows::{Sid, column, signed, unsigned};
use crate::sqlite::sealed::{is_whole, seal};

pub(super) const TABLE: &str = "
    CREATE TABLE insight (
        sid INTEGER NOT NULL, -- 0: sessions that were purged
        quarter INTEGER NOT NULL, -- a quarter of an hour since 1970
        agent TEXT NOT NULL,
        model TEXT NOT NULL,
        folder TEXT NOT NULL,
        cost INTEGER NOT NULL,
        input INTEGER NOT NULL,
        output INTEGER NOT NULL,
        turns INTEGER NOT NULL,
        turns_failed INTEGER NOT NULL,
        turn_ms INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        calls_failed INTEGER NOT NULL,
        approvals INTEGER NOT NULL,
        approval_wait_ms INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        PRIMARY KEY (sid, quarter, agent, model, folder)
    ) WITHOUT ROWID;
    CREATE INDEX insight_quarter ON insight (quarter);
";

pub(super) const COLUMNS: &str = "sid, quarter, agent, model, folder, cost, input, output, turns, turns_failed, \
                                  turn_ms, calls, calls_failed, approvals, approval_wait_ms, crc";
/// Columns before the sums.
const KEY: usize = 5;
/// The session of what is left of purged ones. Real sessions count from 1.
const NOBODY: Sid = 0;

type InsightRow = (Sid, Quarter, InsightKey, InsightCounts);

impl Insights for SqliteJournal {
    fn insight(
        &self,
        from: Quarter,
        to: Quarter,
        visit: &mut dyn FnMut(Quarter, InsightKey, InsightCounts),
    ) -> Result<(), StoreError> {
        self.pool.read(|conn| {
            let mut list = conn.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM insight WHERE quarter >= ?1 AND quarter < ?2 ORDER BY quarter"
            ))?;
            let mut rows = list.query((signed(from), signed(to)))?;
            while let Some(row) = rows.next()? {
                if let Some((_, quarter, key, counts)) = read(row) {
                    visit(quarter, key, counts);
                } else {
                    tracing::error!("a sum of usage is damaged");
                }
            }
            Ok(())
        })
    }

    fn spent_since(&self, from: Quarter) -> Result<u64, StoreError> {
        // The engine asks while it decides.
        self.prompt.read(|conn| {
            let mut sum =
                conn.prepare_cached("SELECT coalesce(sum(cost), 0) FROM insight WHERE quarter >= ?1")?;
            Ok(unsigned(sum.query_row([signed(from)], |row| row.get(0))?))
        })
    }

    fn spent_by_family(&self, root: SessionId) -> Result<u64, StoreError> {
        let family = self.family_of(root);
        self.prompt.read(|conn| {
            let mut sum = conn.prepare_cached("SELECT coalesce(sum(cost), 0) FROM insight WHERE sid = ?1")?;
            family.iter().try_fold(0_u64, |all, sid| {
                let spent: i64 = sum.query_row([sid], |row| row.get(0))?;
                Ok(all.saturating_add(unsigned(spent)))
            })
        })
    }
}

impl SqliteJournal {
    /// A session and all below it, from the catalog.
    fn family_of(&self, root: SessionId) -> Vec<Sid> {
        let Some(first) = self.catalog().of(root).map(|(sid, _)| sid) else { return Vec::new() };
        let (mut family, mut seen) = (vec![first], HashSet::from([root]));
        let mut generation = HashSet::from([root]);
        while !generation.is_empty() {
            let mut next = HashSet::new();
            self.survey(|sid, facts| {
                if facts.parent.is_some_and(|parent| generation.contains(&parent))
                    && !seen.contains(&facts.id)
                {
                    next.insert(facts.id);
                    family.push(sid);
                }
            });
            seen.extend(&next);
            generation = next;
        }
        family
    }
}

/// Reads [`COLUMNS`]; nothing when they are not as they were written.
pub(super) fn read(row: &Row<'_>) -> Option<InsightRow> {
    if !is_whole(row, KEY + InsightCounts::LEN) {
        return None;
    }
    let key = InsightKey { agent: column(row, 2)?, model: column(row, 3)?, folder: column(row, 4)? };
    let mut numbers = [0; InsightCounts::LEN];
    for (at, number) in numbers.iter_mut().enumerate() {
        *number = unsigned(column(row, KEY + at)?);
    }
    Some((column(row, 0)?, unsigned(column(row, 1)?), key, InsightCounts::of_numbers(numbers)))
}

/// Writes what the events of a batch add.
pub(super) fn write(conn: &Connection, steps: &[InsightStep], plan: &Plan) -> Result<(), StoreError> {
    let mut sums: BTreeMap<(Sid, Quarter, &InsightKey), InsightCounts> = BTreeMap::new();
    for step in steps {
        if let Some(touched) = plan.touched.get(&step.session) {
            sums.entry((touched.sid, step.quarter, &step.key)).or_default().add(&step.counts);
        }
    }
    sums.iter().try_for_each(|((sid, quarter, key), counts)| add(conn, *sid, *quarter, key, counts))
}

/// Adds to a row. Part of a transaction.
fn add(
    conn: &Connection,
    sid: Sid,
    quarter: Quarter,
    key: &InsightKey,
    counts: &InsightCounts,
) -> Result<(), StoreError> {
    let InsightKey { agent, model, folder } = key;
    let mut get = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM insight WHERE sid = ?1 AND quarter = ?2 AND agent = ?3 AND model = ?4 AND folder = ?5"
    ))?;
    let held = get.query_row((sid, signed(quarter), agent, model, folder), |row| Ok(read(row))).optional()?;
    // A damaged sum starts over: it was reported, and a wrong number would only hide that.
    let mut sum = held.flatten().map_or_else(InsightCounts::default, |(_, _, _, held)| held);
    sum.add(counts);
    let mut values = vec![
        Value::Integer(sid),
        Value::Integer(signed(quarter)),
        Value::Text(agent.clone()),
        Value::Text(model.clone()),
        Value::Text(folder.clone()),
    ];
    values.extend(sum.numbers().map(|number| Value::Integer(signed(number))));
    let mut put = conn.prepare_cached(&format!(
        "INSERT OR REPLACE INTO insight ({COLUMNS}) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
    ))?;
    put.execute(params_from_iter(seal(values)))?;
    Ok(())
}

/// Writes what a whole log counts for, where nothing of it is stored yet.
pub(super) fn fill(conn: &Connection, sid: Sid, sums: &InsightSums) -> Result<(), StoreError> {
    sums.iter().try_for_each(|((quarter, key), counts)| add(conn, sid, *quarter, key, counts))
}

/// Removes what can be made again from logs. Nothing to remove in a file that has no such table yet.
pub(super) fn reset(conn: &Connection) -> rusqlite::Result<()> {
    let there: bool = conn.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'insight')",
        [],
        |row| row.get(0),
    )?;
    if there {
        conn.execute("DELETE FROM insight WHERE sid <> ?1", [NOBODY])?;
    } else {
        conn.execute_batch(TABLE)?;
    }
    Ok(())
}

/// Takes a purged session and its folder out of its sums, and keeps the numbers.
pub(super) fn forget(conn: &Connection, sid: Sid) -> Result<(), StoreError> {
    for (_, quarter, key, counts) in rows_of(conn, sid)? {
        add(conn, NOBODY, quarter, &InsightKey { folder: String::new(), ..key }, &counts)?;
    }
    conn.prepare_cached("DELETE FROM insight WHERE sid = ?1")?.execute([sid])?;
    Ok(())
}

/// Whether the rows of a session are what its log says.
pub(super) fn agrees(conn: &Connection, sid: Sid, sums: &InsightSums) -> Result<bool, StoreError> {
    let held: InsightSums =
        rows_of(conn, sid)?.into_iter().map(|(_, quarter, key, counts)| ((quarter, key), counts)).collect();
    Ok(held == *sums)
}

/// The rows of a session that are as they were written.
fn rows_of(conn: &Connection, sid: Sid) -> Result<Vec<InsightRow>, StoreError> {
    let mut list = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM insight WHERE sid = ?1"))?;
    let mut rows = list.query([sid])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.extend(read(row));
    }
    Ok(found)
}
