//! Folding the log of a record that may be damaged: as far as it can be read, and never in silence. No database here.

use std::collections::BTreeSet;

use lanyard_core::{LogEntry, Record};

use super::{RecordRow, Stored, decode};
use crate::error::StoreError;

/// The sum of a log, whatever the kind of its record.
pub(crate) trait SummedLog {
    /// The body of the log's next event, or why it cannot be read.
    fn feed(&mut self, seq: u64, body: Result<&[u8], String>);

    /// The record's row; none when the log makes no record.
    fn row(&self) -> Result<Option<RecordRow>, StoreError>;

    /// Whether a row's body is what the log adds up to.
    fn agrees(&self, body: &[u8]) -> bool;

    fn findings(&self) -> &Findings;
}

/// Findings in a log beside its record.
#[derive(Default)]
pub(crate) struct Findings {
    /// Number of the last event that was fed.
    last: u64,
    /// Every name its events gave the record.
    pub(crate) names: BTreeSet<String>,
    /// The record has ended once; from then on its keys of requests may have been forgotten.
    pub(crate) has_ended: bool,
    /// Events that were left out, with the reason.
    pub(crate) left_out: Vec<(u64, String)>,
}

/// A record while its log is fed to it.
pub(crate) struct LogFold<R> {
    pub(crate) record: Option<R>,
    pub(crate) findings: Findings,
}

impl<R> Default for LogFold<R> {
    fn default() -> Self {
        Self { record: None, findings: Findings::default() }
    }
}

impl<R: Stored + Record> SummedLog for LogFold<R> {
    fn feed(&mut self, seq: u64, body: Result<&[u8], String>) {
        match body.and_then(decode::<R::Entry>) {
            Ok(entry) => self.entry(seq, Ok(&entry)),
            Err(why) => self.entry(seq, Err(why)),
        }
    }

    fn row(&self) -> Result<Option<RecordRow>, StoreError> {
        self.record.as_ref().map(Stored::row).transpose()
    }

    fn agrees(&self, body: &[u8]) -> bool {
        decode::<R>(body).ok() == self.record
    }

    fn findings(&self) -> &Findings {
        &self.findings
    }
}

impl<R: Record> LogFold<R> {
    /// The next event of the log, or why it cannot be read. One that is not there, cannot be read or does not fit is left
    /// out, and the fold goes on after it.
    pub(crate) fn entry(&mut self, seq: u64, entry: Result<&R::Entry, String>) {
        let due = self.findings.last + 1;
        if due < seq {
            self.leave_out(seq - 1, format!("there is nothing from {due} to {}", seq - 1));
        }
        self.findings.last = seq;
        match entry {
            Ok(entry) => self.apply(entry, seq),
            Err(why) => self.leave_out(seq, why),
        }
    }

    fn apply(&mut self, entry: &R::Entry, seq: u64) {
        let applied = match &self.record {
            None if seq > 1 => return self.leave_out(seq, "what it begins with is lost".to_owned()),
            None => R::born(entry),
            Some(record) => {
                let mut next = record.clone();
                next.apply(entry).map(|()| next)
            }
        };
        match applied {
            Ok(record) => {
                self.findings.names.extend(entry.names());
                self.findings.has_ended |= record.is_ended();
                self.record = Some(record);
            }
            Err(error) => self.leave_out(seq, error.to_string()),
        }
    }

    fn leave_out(&mut self, seq: u64, why: String) {
        if let Some(record) = &mut self.record {
            record.skip_to(seq);
        }
        self.findings.left_out.push((seq, why));
    }
}
