//! The statement of a search for records.

use rusqlite::types::Value;

use crate::records::{KeyRange, KeyValue, RecordOrder, RecordQuery};
use crate::sqlite::sealed;

/// The statement of a search. One key leads to the rows, that of the order or else the first; the others are looked up for
/// each row.
pub(super) fn search(query: &RecordQuery) -> (String, Vec<Value>) {
    let mut when = Conditions::default();
    let by_key = matches!(query.order, RecordOrder::Key(_));
    let (from, table) = if query.keys.is_empty() && !by_key {
        ("record_rows r", "r")
    } else {
        ("record_keys k CROSS JOIN record_rows r ON r.kind = k.kind AND r.id = k.id", "k")
    };
    when.holds(&format!("{table}.kind ="), Value::Text(query.kind.as_str().to_owned()));
    for (place, (key, value)) in query.keys.iter().enumerate() {
        when.values.extend([Value::Text((*key).to_owned()), sql(value)]);
        let (key, value) = (when.values.len() - 1, when.values.len());
        when.texts.push(if place == 0 && !by_key {
            format!("k.key = ?{key} AND k.value = ?{value}")
        } else {
            format!(
                "EXISTS (SELECT 1 FROM record_keys o WHERE o.kind = ?1 AND o.key = ?{key} AND o.value = ?{value} \
                 AND o.id = k.id)"
            )
        });
    }
    let order = match &query.order {
        RecordOrder::Oldest { after } => {
            if let Some(after) = after {
                when.holds(&format!("{table}.id >"), sealed::id(*after));
            }
            format!("{table}.id")
        }
        RecordOrder::Newest { before } => {
            if let Some(before) = before {
                when.holds(&format!("{table}.id <"), sealed::id(*before));
            }
            format!("{table}.id DESC")
        }
        RecordOrder::Key(KeyRange { key, after, before }) => {
            when.holds("k.key =", Value::Text((*key).to_owned()));
            when.holds("k.value >", sql(after));
            when.holds("k.value <", sql(before));
            "k.value, k.id".to_owned()
        }
    };
    let columns = "r.kind, r.id, r.as_of, r.body, r.crc";
    (format!("SELECT {columns} FROM {from} WHERE {} ORDER BY {order}", when.texts.join(" AND ")), when.values)
}

/// Conditions on columns, and the values they are compared with.
#[derive(Default)]
struct Conditions {
    texts: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// `left` is a column and a way to compare.
    fn holds(&mut self, left: &str, value: Value) {
        self.values.push(value);
        self.texts.push(format!("{left} ?{}", self.values.len()));
    }
}

pub(super) fn sql(value: &KeyValue) -> Value {
    match value {
        KeyValue::Number(number) => Value::Integer(*number),
        KeyValue::Text(text) => Value::Text(text.clone()),
        KeyValue::Bytes(bytes) => Value::Blob(bytes.clone()),
    }
}
