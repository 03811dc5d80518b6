//! Cards as bytes. Opening the journal reads all of them, so a card is one value that is checked and taken apart in
//! place, without copying its texts. States and modes are written as words: their order may change, their names not.

use lanyard_core::session::{DrivenBy, InterruptCause, Pending, StateName, TurnEnd};
use lanyard_core::{MemoryMode, SessionId, Timestamp};
use rusqlite::{CachedStatement, Row};

use crate::card::Card;
use crate::sqlite::rows::{Sid, blob, column};

/// The first byte, so that another layout can be told from this one.
const LAYOUT: u8 = 6;
/// The ones before knew nothing of what is still to be done for a session; those before them nothing of how the last turn
/// ended and whether it was seen, then nothing of who runs a session's agent, and the first nothing of what waits in one.
const WITHOUT_LIMIT: u8 = 5;
const WITHOUT_OWED: u8 = 4;
const WITHOUT_LAST_TURN: u8 = 3;
const WITHOUT_DRIVER: u8 = 2;
const WITHOUT_PENDING: u8 = 1;

pub(super) const GET: &str = "SELECT sid, crc, card FROM sessions WHERE sid = ?1";
pub(super) const GET_ALL: &str = "SELECT sid, crc, card FROM sessions ORDER BY sid";
pub(super) const PUT: &str = "INSERT OR REPLACE INTO sessions (sid, crc, card) VALUES (?1, ?2, ?3)";

pub(super) fn put(statement: &mut CachedStatement<'_>, sid: Sid, card: &Card) -> rusqlite::Result<()> {
    let bytes = encode(card);
    statement.execute((sid, sum(sid, &bytes), bytes))?;
    Ok(())
}

/// Reads `sid, crc, card`; nothing when it is not as it was written.
pub(super) fn read<'a>(row: &'a Row<'_>) -> Option<(Sid, Card<&'a str>)> {
    let (sid, bytes) = (column(row, 0)?, blob(row, 2)?);
    if column::<u32>(row, 1)? != sum(sid, bytes) {
        return None;
    }
    Some((sid, decode(bytes).ok()?))
}

fn sum(sid: Sid, bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(bytes);
    sum.update(&sid.to_le_bytes());
    sum.finalize()
}

fn encode(card: &Card) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(LAYOUT);
    bytes.extend_from_slice(&card.id.as_u128().to_le_bytes());
    // No session has number 0.
    bytes.extend_from_slice(&card.parent.map_or(0, SessionId::as_u128).to_le_bytes());
    bytes.extend_from_slice(&card.as_of.to_le_bytes());
    bytes.extend_from_slice(&card.turns.to_le_bytes());
    for time in [card.since, card.created_at, card.last_activity_at] {
        bytes.extend_from_slice(&time.as_millis().to_le_bytes());
    }
    bytes.extend_from_slice(&card.text_sum.to_le_bytes());
    bytes.extend([card.stopping, card.archived, card.deleted].map(u8::from));
    put_text(&mut bytes, Some(card.state.as_str()));
    put_text(&mut bytes, card.cause.map(InterruptCause::as_str));
    put_text(&mut bytes, Some(card.memory_mode.as_str()));
    put_text(&mut bytes, Some(&card.owner));
    put_text(&mut bytes, Some(&card.source));
    for text in [&card.title, &card.agent, &card.workspace, &card.plan] {
        put_text(&mut bytes, text.as_deref());
    }
    let waits = card.pending;
    bytes.extend([waits.gates, waits.guidance, waits.inbox, waits.stop_level]);
    bytes.extend([waits.paused, waits.in_call, waits.running].map(u8::from));
    bytes.extend_from_slice(&waits.turn_at.map_or(i64::MIN, Timestamp::as_millis).to_le_bytes());
    put_text(&mut bytes, card.driven_by.map(DrivenBy::as_str));
    bytes.push(u8::from(waits.unread));
    put_text(&mut bytes, waits.ended_as.map(TurnEnd::as_str));
    bytes.extend([waits.run_wanted, waits.notice_due].map(u8::from));
    bytes.push(u8::from(waits.limited));
    bytes.extend_from_slice(&waits.limit_until.map_or(i64::MIN, Timestamp::as_millis).to_le_bytes());
    bytes
}

/// The length plus one, or zero for no text at all; then the text.
fn put_text(bytes: &mut Vec<u8>, text: Option<&str>) {
    let length = text.map_or(0, |text| u32::try_from(text.len()).unwrap_or(u32::MAX - 1) + 1);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(text.unwrap_or_default().as_bytes());
}

/// The bytes are not a card.
#[derive(Debug)]
struct Torn;

fn decode(bytes: &[u8]) -> Result<Card<&str>, Torn> {
    let mut rest = Rest(bytes);
    let [layout] = rest.take()?;
    if !(WITHOUT_PENDING..=LAYOUT).contains(&layout) {
        return Err(Torn);
    }
    let mut card = Card {
        id: SessionId::from_u128(u128::from_le_bytes(rest.take()?)),
        parent: Some(u128::from_le_bytes(rest.take()?)).filter(|id| *id != 0).map(SessionId::from_u128),
        as_of: u64::from_le_bytes(rest.take()?),
        turns: u64::from_le_bytes(rest.take()?),
        since: rest.time()?,
        created_at: rest.time()?,
        last_activity_at: rest.time()?,
        text_sum: i64::from_le_bytes(rest.take()?),
        stopping: rest.take::<1>()? != [0],
        archived: rest.take::<1>()? != [0],
        deleted: rest.take::<1>()? != [0],
        state: rest.word(StateName::ALL, StateName::as_str)?.ok_or(Torn)?,
        cause: rest.word(InterruptCause::ALL, InterruptCause::as_str)?,
        memory_mode: rest.word(MemoryMode::ALL, MemoryMode::as_str)?.ok_or(Torn)?,
        owner: rest.text()?.ok_or(Torn)?,
        source: rest.text()?.ok_or(Torn)?,
        title: None,
        agent: None,
        workspace: None,
        plan: None,
        pending: Pending::default(),
        driven_by: None,
    };
    for text in [&mut card.title, &mut card.agent, &mut card.workspace, &mut card.plan] {
        *text = rest.text()?;
    }
    if layout > WITHOUT_PENDING {
        card.pending = rest.pending()?;
    }
    if layout > WITHOUT_DRIVER {
        card.driven_by = rest.word(DrivenBy::ALL, DrivenBy::as_str)?;
    }
    if layout > WITHOUT_LAST_TURN {
        card.pending.unread = rest.take::<1>()? != [0];
        card.pending.ended_as = rest.word(TurnEnd::ALL, TurnEnd::as_str)?;
    }
    if layout > WITHOUT_OWED {
        let [run_wanted, notice_due] = rest.take::<2>()?.map(|flag| flag != 0);
        (card.pending.run_wanted, card.pending.notice_due) = (run_wanted, notice_due);
    }
    if layout > WITHOUT_LIMIT {
        card.pending.limited = rest.take::<1>()? != [0];
        card.pending.limit_until = rest.optional_time()?;
    }
    if rest.0.is_empty() { Ok(card) } else { Err(Torn) }
}

/// The bytes that are still to be decoded.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Torn> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Torn)?;
        self.0 = rest;
        Ok(*head)
    }

    fn time(&mut self) -> Result<Timestamp, Torn> {
        Ok(Timestamp::from_millis(i64::from_le_bytes(self.take()?)))
    }

    fn optional_time(&mut self) -> Result<Option<Timestamp>, Torn> {
        let at = Some(i64::from_le_bytes(self.take()?)).filter(|at| *at != i64::MIN);
        Ok(at.map(Timestamp::from_millis))
    }

    fn pending(&mut self) -> Result<Pending, Torn> {
        let [gates, guidance, inbox, stop_level] = self.take()?;
        let [paused, in_call, running] = self.take::<3>()?.map(|flag| flag != 0);
        let turn_at = self.optional_time()?;
        let older = Pending::default();
        Ok(Pending { gates, guidance, inbox, paused, stop_level, in_call, running, turn_at, ..older })
    }

    fn text(&mut self) -> Result<Option<&'a str>, Torn> {
        let Some(length) = u32::from_le_bytes(self.take()?).checked_sub(1) else { return Ok(None) };
        let length = usize::try_from(length).map_err(|_| Torn)?;
        let (text, rest) = self.0.split_at_checked(length).ok_or(Torn)?;
        self.0 = rest;
        std::str::from_utf8(text).map(Some).map_err(|_| Torn)
    }

    fn word<T: Copy, const N: usize>(
        &mut self,
        all: [T; N],
        name: fn(T) -> &'static str,
    ) -> Result<Option<T>, Torn> {
        let Some(word) = self.text()? else { return Ok(None) };
        all.into_iter().find(|one| name(*one) == word).map(Some).ok_or(Torn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_comes_back_as_it_was_and_no_part_of_it_passes_for_one() {
        let time = Timestamp::from_millis;
        let mut card = Card {
            id: SessionId::from_u128(7),
            as_of: 9,
            title: Some("Größe".to_owned()),
            agent: None,
            owner: String::new(),
            source: "api".to_owned(),
            workspace: Some(String::new()),
            plan: Some("p".to_owned()),
            parent: Some(SessionId::from_u128(8)),
            state: StateName::Interrupted,
            cause: Some(InterruptCause::HostLost),
            stopping: true,
            memory_mode: MemoryMode::Selective,
            archived: false,
            deleted: true,
            turns: 3,
            since: time(-1),
            created_at: time(1),
            last_activity_at: time(2),
            text_sum: -5,
            pending: Pending {
                gates: 1,
                inbox: 2,
                running: true,
                turn_at: Some(time(5)),
                ..Pending::default()
            },
            driven_by: None,
        };
        for cause in [Some(InterruptCause::HostLost), None] {
            card.cause = cause;
            let bytes = encode(&card);
            assert_eq!(decode(&bytes).unwrap().into_owned(), card);
            assert!((0..bytes.len()).all(|end| decode(&bytes[..end]).is_err()));
            // A card of an older daemon is one of which less is known.
            let without = |layout: u8, less: usize| {
                let mut older = bytes[..bytes.len() - less].to_vec();
                older[0] = layout;
                decode(&older).unwrap().into_owned()
            };
            assert_eq!(without(WITHOUT_LIMIT, 9), card);
            assert_eq!(without(WITHOUT_OWED, 11), card);
            assert_eq!(without(WITHOUT_LAST_TURN, 16), card);
            assert_eq!(without(WITHOUT_DRIVER, 20), card);
            let known = Card { pending: Pending::default(), ..card.clone() };
            assert_eq!(without(WITHOUT_PENDING, 35), known);
        }
        card.driven_by = Some(DrivenBy::Host);
        (card.pending.unread, card.pending.ended_as) = (true, Some(TurnEnd::Refused));
        (card.pending.run_wanted, card.pending.notice_due) = (true, true);
        (card.pending.limited, card.pending.limit_until) = (true, Some(time(6)));
        assert_eq!(decode(&encode(&card)).unwrap().into_owned(), card);
    }
}
