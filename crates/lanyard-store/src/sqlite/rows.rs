//! How things are laid out in rows, and the checksum each row carries. Encoding and decoding only: it decides nothing.

use bytes::Bytes;
use lanyard_core::session::{InterruptCause, StateName};
use lanyard_core::{MemoryMode, Session, SessionId, Timestamp};
use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{CachedStatement, Row};

use crate::card::Card;
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
    pub(super) at: i64,
}

/// An event as its row holds it.
#[derive(Debug, Clone)]
pub(super) struct EventRow {
    pub(super) pos: Pos,
    pub(super) sid: Sid,
    pub(super) seq: u64,
    pub(super) prev: Pos,
    pub(super) at: i64,
    pub(super) body: Bytes,
}

/// What a row turned out to be.
#[derive(Debug)]
pub(super) enum Judged<T> {
    Intact(T),
    /// Readable, but not what was written: what it says may serve as a hint, never as a fact.
    Suspect(T),
    /// Not readable at all.
    Unreadable(String),
}

/// A checksum over a row's values. Numbers and lengths have a fixed width, so no two rows give the same bytes.
pub(super) struct Sum(crc32fast::Hasher);

impl Sum {
    pub(super) fn new() -> Self {
        Self(crc32fast::Hasher::new())
    }

    pub(super) fn int(mut self, value: i64) -> Self {
        self.0.update(&value.to_le_bytes());
        self
    }

    pub(super) fn bytes(mut self, value: &[u8]) -> Self {
        self.0.update(&(value.len() as u64).to_le_bytes());
        self.0.update(value);
        self
    }

    pub(super) fn text(self, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.int(1).bytes(value.as_bytes()),
            None => self.int(0),
        }
    }

    pub(super) fn done(self) -> u32 {
        self.0.finalize()
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

pub(super) fn event_sum(pos: Pos, sid: Sid, seq: i64, prev: Pos, at: i64, body: &[u8]) -> u32 {
    let mut head = [0; 40];
    for (slot, value) in head.chunks_exact_mut(8).zip([pos, sid, seq, prev, at]) {
        slot.copy_from_slice(&value.to_le_bytes());
    }
    let mut sum = crc32fast::Hasher::new();
    sum.update(&head);
    sum.update(body);
    sum.finalize()
}

/// A damaged page can turn any column into anything; a wrong type is damage, not a defect of this program.
fn column<T: FromSql>(row: &Row<'_>, at: usize) -> Option<T> {
    row.get_ref(at).ok().and_then(|value| T::column_result(value).ok())
}

fn blob<'a>(row: &'a Row<'_>, at: usize) -> Option<&'a [u8]> {
    match row.get_ref(at) {
        Ok(ValueRef::Blob(bytes)) => Some(bytes),
        Ok(ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_)) | Err(_) => None,
    }
}

/// Reads `pos, sid, seq, prev, at, crc, body`.
pub(super) fn read_event(row: &Row<'_>) -> Judged<EventRow> {
    let int = |at| column::<i64>(row, at);
    let (Some(pos), Some(sid), Some(seq), Some(prev), Some(at)) = (int(0), int(1), int(2), int(3), int(4))
    else {
        return Judged::Unreadable("the event's row holds something else".to_owned());
    };
    let body = blob(row, 6);
    let crc: Option<u32> = column(row, 5);
    let event = EventRow {
        pos,
        sid,
        seq: unsigned(seq),
        prev,
        at,
        body: Bytes::copy_from_slice(body.unwrap_or_default()),
    };
    match (body, crc) {
        (Some(body), Some(crc)) if crc == event_sum(pos, sid, seq, prev, at, body) => Judged::Intact(event),
        (_, _) => Judged::Suspect(event),
    }
}

pub(super) fn head_sum(sid: Sid, head: &Head) -> u32 {
    Sum::new().int(sid).int(signed(head.seq)).int(head.pos).int(head.at).done()
}

pub(super) const HEAD_COLUMNS: &str = "sid, seq, pos, at, crc";

pub(super) fn read_head(row: &Row<'_>) -> Option<(Sid, Head)> {
    let sid = column(row, 0)?;
    let head = Head { seq: unsigned(column(row, 1)?), pos: column(row, 2)?, at: column(row, 3)? };
    (column::<u32>(row, 4)? == head_sum(sid, &head)).then_some((sid, head))
}

pub(super) const CARD_COLUMNS: &str = "sid, id, as_of, title, agent, owner, source, workspace, plan, parent, state, \
     cause, stopping, memory_mode, archived, deleted, turns, since, created_at, last_activity_at, text_sum, crc";

pub(super) const PUT_CARD: &str = "INSERT OR REPLACE INTO sessions (sid, id, as_of, title, agent, owner, source, \
     workspace, plan, parent, state, cause, stopping, memory_mode, archived, deleted, turns, since, created_at, \
     last_activity_at, text_sum, crc) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)";

fn card_sum(sid: Sid, card: &Card) -> u32 {
    Sum::new()
        .int(sid)
        .bytes(&id_bytes(card.id))
        .int(signed(card.as_of))
        .text(card.title.as_deref())
        .text(card.agent.as_deref())
        .text(Some(&card.owner))
        .text(Some(&card.source))
        .text(card.workspace.as_deref())
        .text(card.plan.as_deref())
        .bytes(&card.parent.map(id_bytes).unwrap_or_default())
        .text(Some(card.state.as_str()))
        .text(card.cause.map(InterruptCause::as_str))
        .int(i64::from(card.stopping))
        .text(Some(card.memory_mode.as_str()))
        .int(i64::from(card.archived))
        .int(i64::from(card.deleted))
        .int(signed(card.turns))
        .int(card.since.as_millis())
        .int(card.created_at.as_millis())
        .int(card.last_activity_at.as_millis())
        .int(card.text_sum)
        .done()
}

pub(super) fn put_card(statement: &mut CachedStatement<'_>, sid: Sid, card: &Card) -> rusqlite::Result<()> {
    statement.execute(rusqlite::params![
        sid,
        id_bytes(card.id),
        signed(card.as_of),
        card.title,
        card.agent,
        card.owner,
        card.source,
        card.workspace,
        card.plan,
        card.parent.map(id_bytes),
        card.state.as_str(),
        card.cause.map(InterruptCause::as_str),
        card.stopping,
        card.memory_mode.as_str(),
        card.archived,
        card.deleted,
        signed(card.turns),
        card.since.as_millis(),
        card.created_at.as_millis(),
        card.last_activity_at.as_millis(),
        card.text_sum,
        card_sum(sid, card),
    ])?;
    Ok(())
}

/// Reads a row of `CARD_COLUMNS`; nothing when it is not as it was written.
pub(super) fn read_card(row: &Row<'_>) -> Option<(Sid, Card)> {
    let sid = column(row, 0)?;
    let id = |at| Some(SessionId::from_u128(u128::from_be_bytes(blob(row, at)?.try_into().ok()?)));
    let time = |at| Some(Timestamp::from_millis(column(row, at)?));
    let state: String = column(row, 10)?;
    let cause: Option<String> = column(row, 11)?;
    let memory_mode: String = column(row, 13)?;
    let card = Card {
        id: id(1)?,
        as_of: unsigned(column(row, 2)?),
        title: column(row, 3)?,
        agent: column(row, 4)?,
        owner: column(row, 5)?,
        source: column(row, 6)?,
        workspace: column(row, 7)?,
        plan: column(row, 8)?,
        parent: id(9),
        state: StateName::ALL.into_iter().find(|name| name.as_str() == state)?,
        cause: InterruptCause::ALL.into_iter().find(|name| cause.as_deref() == Some(name.as_str())),
        stopping: column(row, 12)?,
        memory_mode: MemoryMode::ALL.into_iter().find(|mode| mode.as_str() == memory_mode)?,
        archived: column(row, 14)?,
        deleted: column(row, 15)?,
        turns: unsigned(column(row, 16)?),
        since: time(17)?,
        created_at: time(18)?,
        last_activity_at: time(19)?,
        text_sum: column(row, 20)?,
    };
    (column::<u32>(row, 21)? == card_sum(sid, &card)).then_some((sid, card))
}

pub(super) fn record_sum(sid: Sid, as_of: u64, body: &[u8]) -> u32 {
    Sum::new().int(sid).int(signed(as_of)).bytes(body).done()
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
