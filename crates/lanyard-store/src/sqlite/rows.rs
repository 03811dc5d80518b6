//! The layout of rows, and the checksum that each row carries. Encoding and decoding only.

use bytes::Bytes;
use lanyard_core::{Session, SessionId};
use rusqlite::Row;
use rusqlite::types::{FromSql, ValueRef};

use crate::error::StoreError;

/// A session's place among the rows of the file: dense, from 1, in order of creation.
pub(super) type Sid = i64;
/// An event's place in the log of all sessions: from 1, in order of arrival.
pub(super) type Pos = i64;

/// The last event of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Head {
    pub(super) seq: u64,
    pub(super) pos: Pos,
    /// Position of the last event with a number divisible by `RUNG`; 0 for none.
    pub(super) rung: Pos,
    pub(super) at: i64,
}

/// Events between two rungs of a session's log. Each event names the rung before it as well as its neighbour, so that
/// a walk back takes most of its way in long steps.
pub(super) const RUNG: u64 = 8;

impl Head {
    /// The head after one more event.
    pub(super) fn advanced(&self, seq: u64, pos: Pos, at: i64) -> Self {
        Self { seq, pos, rung: if seq.is_multiple_of(RUNG) { pos } else { self.rung }, at }
    }

    /// The head that follows from an event of the log, if it is the last.
    pub(super) fn at(row: &EventRow) -> Self {
        Self { rung: row.rung, ..Self::default() }.advanced(row.seq, row.pos, row.at)
    }
}

/// An event as its row holds it.
#[derive(Debug, Clone)]
pub(super) struct EventRow {
    pub(super) pos: Pos,
    pub(super) sid: Sid,
    pub(super) seq: u64,
    pub(super) prev: Pos,
    pub(super) rung: Pos,
    pub(super) at: i64,
    pub(super) body: Bytes,
}

/// The verdict on a row.
#[derive(Debug)]
pub(super) enum Judged<T> {
    Intact(T),
    /// Readable, but not as written: its content may serve as a hint, never as a fact.
    Suspect(T),
    /// Not readable at all.
    Unreadable(String),
}

/// A checksum over a row's values. Numbers and lengths have a fixed width, so no two rows give the same bytes; they
/// are put together first, because a checksum of many small pieces takes longer than of one large one.
#[derive(Default)]
pub(super) struct Sum(Vec<u8>);

impl Sum {
    pub(super) fn int(mut self, value: i64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn bytes(mut self, value: &[u8]) -> Self {
        self.0.extend_from_slice(&(value.len() as u64).to_le_bytes());
        self.0.extend_from_slice(value);
        self
    }

    pub(super) fn done(self) -> u32 {
        crc32fast::hash(&self.0)
    }
}

/// SQLite's integers are signed. Counters never get near the border.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

pub(super) fn id_bytes(id: SessionId) -> [u8; 16] {
    id.as_u128().to_be_bytes()
}

/// Whether the database says that its own pages are wrong, as opposed to a disk that does not answer.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::{Error, ErrorCode};
    let wrong_page =
        matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase));
    let wrong_value = matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
            | Error::InvalidColumnType(..)
    );
    wrong_page || wrong_value
}

/// `numbers` are `pos, sid, seq, prev, rung, at`.
pub(super) fn event_sum(numbers: [i64; 6], body: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(packed(numbers).as_flattened());
    sum.update(body);
    sum.finalize()
}

/// A damaged page can turn any column into anything; a wrong type is damage, not a defect of this program.
pub(super) fn column<T: FromSql>(row: &Row<'_>, at: usize) -> Option<T> {
    row.get_ref(at).ok().and_then(|value| T::column_result(value).ok())
}

pub(super) fn blob<'a>(row: &'a Row<'_>, at: usize) -> Option<&'a [u8]> {
    match row.get_ref(at) {
        Ok(ValueRef::Blob(bytes)) => Some(bytes),
        Ok(ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_)) | Err(_) => None,
    }
}

/// Reads `pos, sid, seq, prev, rung, at, crc, body`.
pub(super) fn read_event(row: &Row<'_>) -> Judged<EventRow> {
    let mut numbers = [0; 6];
    for (at, number) in numbers.iter_mut().enumerate() {
        let Some(found) = column(row, at) else {
            return Judged::Unreadable("the event's row holds something else".to_owned());
        };
        *number = found;
    }
    let [pos, sid, seq, prev, rung, at] = numbers;
    let (crc, body) = (column::<u32>(row, 6), blob(row, 7));
    let copy = Bytes::copy_from_slice(body.unwrap_or_default());
    let event = EventRow { pos, sid, seq: unsigned(seq), prev, rung, at, body: copy };
    match (body, crc) {
        (Some(body), Some(crc)) if crc == event_sum(numbers, body) => Judged::Intact(event),
        (_, _) => Judged::Suspect(event),
    }
}

pub(super) fn head_sum(sid: Sid, head: &Head) -> u32 {
    crc32fast::hash(packed([sid, signed(head.seq), head.pos, head.rung, head.at]).as_flattened())
}

/// Numbers as the checksums take them.
fn packed<const N: usize>(numbers: [i64; N]) -> [[u8; 8]; N] {
    numbers.map(i64::to_le_bytes)
}

pub(super) const HEAD_COLUMNS: &str = "sid, seq, pos, rung, at, crc";

pub(super) fn read_head(row: &Row<'_>) -> Option<(Sid, Head)> {
    let (sid, seq) = (column(row, 0)?, unsigned(column(row, 1)?));
    let head = Head { seq, pos: column(row, 2)?, rung: column(row, 3)?, at: column(row, 4)? };
    (column::<u32>(row, 5)? == head_sum(sid, &head)).then_some((sid, head))
}

pub(super) fn record_sum(sid: Sid, as_of: u64, body: &[u8]) -> u32 {
    Sum::default().int(sid).int(signed(as_of)).bytes(body).done()
}

pub(super) fn encode_record(session: &Session) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(session)
        .map_err(|error| StoreError::Damaged(format!("the record cannot be written: {error}")))
}

/// Reads `as_of, crc, body` of a record.
pub(super) fn read_record(row: &Row<'_>, sid: Sid) -> Result<Session, String> {
    let (Some(as_of), Some(crc), Some(body)) =
        (column(row, 0).map(unsigned), column::<u32>(row, 1), blob(row, 2))
    else {
        return Err("the session's record holds something else".to_owned());
    };
    if crc != record_sum(sid, as_of, body) {
        return Err("the session's record is not as it was written".to_owned());
    }
    match serde_json::from_slice::<Session>(body) {
        Ok(session) if session.seq == as_of => Ok(session),
        Ok(_) => Err("the session's record disagrees with its row".to_owned()),
        Err(error) => Err(format!("the session's record cannot be understood: {error}")),
    }
}
