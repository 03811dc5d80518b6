//! Vectors of entries, made elsewhere from their words. Only a help: one that is lost or damaged is made again.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use lanyard_core::memory::rank::likeness;

use crate::error::StoreError;
use crate::sqlite::memory_rows::Pos;
use crate::sqlite::rows::blob;
use crate::sqlite::sealed;

pub(super) fn put(conn: &Connection, pos: Pos, model: &str, vector: &[f32]) -> Result<(), StoreError> {
    let bytes = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    let row = sealed::seal(vec![Value::Integer(pos), Value::Text(model.to_owned()), Value::Blob(bytes)]);
    let mut put = conn.prepare_cached(
        "INSERT OR REPLACE INTO memory_vectors (pos, model, vector, crc) VALUES (?1, ?2, ?3, ?4)",
    )?;
    put.execute(params_from_iter(row))?;
    Ok(())
}

/// Reads `pos, model, vector, crc`; nothing when they are not as they were written.
pub(super) fn read(row: &Row<'_>) -> Option<(Pos, Vec<f32>)> {
    if !sealed::is_whole(row, 3) {
        return None;
    }
    let (numbers, rest) = blob(row, 2)?.as_chunks::<4>();
    let vector = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    rest.is_empty().then_some((row.get(0).ok()?, vector))
}

/// Positions of the newest `among` rows that meet the condition, the most alike first.
pub(super) fn nearest(
    conn: &Connection,
    condition: &str,
    mut values: Vec<Value>,
    wanted: &[f32],
    among: usize,
) -> Result<Vec<Pos>, StoreError> {
    values.push(Value::Integer(i64::try_from(among).unwrap_or(i64::MAX)));
    let mut list = conn.prepare_cached(&format!(
        "SELECT v.pos, v.model, v.vector, v.crc FROM memory_vectors v JOIN memories m ON m.pos = v.pos \
         WHERE {condition} ORDER BY v.pos DESC LIMIT ?{}",
        values.len()
    ))?;
    let mut rows = list.query(params_from_iter(values))?;
    let mut near = Vec::new();
    while let Some(row) = rows.next()? {
        if let Some((pos, vector)) = read(row) {
            near.push((pos, likeness(&vector, wanted)));
        }
    }
    near.retain(|(_, likeness)| *likeness > 0.0);
    near.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
    Ok(near.into_iter().map(|(pos, _)| pos).collect())
}
