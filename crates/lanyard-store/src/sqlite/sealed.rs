//! Rows whose last column is a checksum over all the others. Encoding and decoding only: it decides nothing.

use rusqlite::Row;
use rusqlite::types::{Value, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::StoreError;
use crate::sqlite::rows::{Sum, blob};

pub(super) const NOT_WHOLE: &str = "it is not as it was written";

/// The values with their checksum behind them.
pub(super) fn seal(mut values: Vec<Value>) -> Vec<Value> {
    let crc = sum(values.iter().map(ValueRef::from));
    values.push(Value::Integer(crc.into()));
    values
}

/// Whether the row is as it was written. `columns` counts those before the checksum.
pub(super) fn is_whole(row: &Row<'_>, columns: usize) -> bool {
    let values: Option<Vec<ValueRef<'_>>> = (0..columns).map(|at| row.get_ref(at).ok()).collect();
    let Some(values) = values else { return false };
    row.get_ref(columns).ok() == Some(ValueRef::Integer(sum(values.into_iter()).into()))
}

/// A value of another type has another checksum, whatever its bytes.
fn sum<'a>(values: impl Iterator<Item = ValueRef<'a>>) -> u32 {
    let add = |sum: Sum, value| match value {
        ValueRef::Null => sum.int(0),
        ValueRef::Integer(value) => sum.int(1).int(value),
        ValueRef::Real(value) => sum.int(2).bytes(&value.to_le_bytes()),
        ValueRef::Text(value) => sum.int(3).bytes(value),
        ValueRef::Blob(value) => sum.int(4).bytes(value),
    };
    values.fold(Sum::default(), add).done()
}

pub(super) fn encode<T: Serialize>(what: &str, value: &T) -> Result<Value, StoreError> {
    let body = serde_json::to_vec(value);
    body.map(Value::Blob).map_err(|error| StoreError::Damaged(format!("{what} cannot be written: {error}")))
}

/// The JSON in a column, or why there is none.
pub(super) fn decode<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> Result<T, String> {
    let body = blob(row, at).ok_or_else(|| "it holds something else".to_owned())?;
    serde_json::from_slice(body).map_err(|error| format!("it cannot be understood: {error}"))
}

pub(super) fn id(bits: u128) -> Value {
    Value::Blob(bits.to_be_bytes().to_vec())
}

pub(super) fn optional(value: Option<Value>) -> Value {
    value.unwrap_or(Value::Null)
}
