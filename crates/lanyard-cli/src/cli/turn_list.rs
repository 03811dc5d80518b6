//! The turns of a session that began, for commands that name one.

use lanyard_api::types::TurnList;
use lanyard_client::Route;
use lanyard_core::TurnId;
use lanyard_core::naming::IdPart;
use lanyard_core::session::TurnRow;

use crate::client::Client;
use crate::failure::Failure;
use crate::render::text::one_line;

/// Turns asked for at a time, and pages that are read.
const PAGE_TURNS: u32 = 500;
const PAGES_MAX: usize = 40;
/// The word before the underscore of a turn's id.
const TURN: &str = "turn";

/// Turns that began, the oldest first. Of a session with more than 20,000, the newest of them.
pub(super) async fn turns_started(client: &mut Client<'_>, session: &str) -> Result<Vec<TurnRow>, Failure> {
    let mut turns: Vec<TurnRow> = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let route = Route::to(&["sessions", session, "turns"])
            .with("limit", Some(PAGE_TURNS))
            .with("cursor", cursor.as_ref());
        let page: TurnList = client.get(&route).await?;
        turns.extend(page.turns.into_iter().filter(|row| row.started_seq.is_some()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    turns.sort_by_key(|row| row.started_seq);
    Ok(turns)
}

/// The turn that a text names among `turns`: by the whole id, or by the beginning or the end of it. A whole id need not be
/// among them: the daemon then says what became of it.
pub(super) fn turn_named(turns: &[TurnId], named: &str) -> Result<TurnId, Failure> {
    if let Ok(turn) = named.trim().parse() {
        return Ok(turn);
    }
    let part = IdPart::parse(named).filter(|part| part.is_of(TURN));
    let is_meant = |turn: &&TurnId| part.is_some_and(|part| part.matches(turn.as_u128()));
    let found: Vec<&TurnId> = turns.iter().filter(is_meant).collect();
    match found.as_slice() {
        [only] => Ok(**only),
        [] => {
            let title = format!("no turn there is called `{}`", one_line(named));
            Err(Failure::local(
                "turn_not_found",
                title,
                "type the id, or at least four characters of its end",
            ))
        }
        several => {
            let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
            let title = format!("`{}` means {}", one_line(named), ids.join(" and "));
            Err(Failure::local("name_ambiguous", title, "type more of the id; nothing was done"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_named_by_the_beginning_or_the_end_of_its_id() {
        let turns = [TurnId::from_u128(7), TurnId::from_u128(1 << 100 | 8), TurnId::from_u128(1 << 90 | 8)];
        let named = |text: &str| turn_named(&turns, text);
        let id = turns[1].to_string();
        for text in [&id, &id[..16], &id["turn_".len()..20]] {
            assert_eq!(named(text).ok(), Some(turns[1]), "{text}");
        }
        assert_eq!(named("turn_000007").ok(), Some(turns[0]));
        for (text, code) in
            [("000008", "name_ambiguous"), ("000009", "turn_not_found"), ("sess_000007", "turn_not_found")]
        {
            let Err(Failure::Told { problem, .. }) = named(text) else { panic!("{text}") };
            assert_eq!(problem.code, code, "{text}");
        }
    }
}
