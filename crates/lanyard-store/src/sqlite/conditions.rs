//! The conditions of a query, put together from what somebody asked for. It knows no table.

use rusqlite::types::Value;

/// Each on a column, with what it is held against.
#[derive(Default)]
pub(super) struct Conditions {
    pub(super) texts: Vec<String>,
    pub(super) values: Vec<Value>,
}

impl Conditions {
    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// What was not asked for is no condition.
    pub(super) fn is(&mut self, column: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.holds(&format!("{column} ="), value);
        }
    }

    /// `left` is a column and a way to compare.
    pub(super) fn holds(&mut self, left: &str, value: Value) {
        self.values.push(value);
        self.texts.push(format!("{left} ?{}", self.values.len()));
    }

    /// Empty where there are none.
    pub(super) fn text(&self) -> String {
        if self.texts.is_empty() { String::new() } else { format!("WHERE {}", self.texts.join(" AND ")) }
    }
}
