//! Ids for people: short where they suffice to tell the things on a screen apart, whole where `--full-ids` asks for it.

use std::sync::atomic::{AtomicBool, Ordering};

use lanyard_core::id::whole;
use lanyard_core::naming::{NameKind, SHORT_CHARS, short, short_chars};

/// Set once, before anything is printed.
static WHOLE: AtomicBool = AtomicBool::new(false);

/// Prints whole ids from here on.
pub(crate) fn show_whole_ids() {
    WHOLE.store(true, Ordering::Relaxed);
}

/// Whether a text is the id of something that can be named by a part of it.
fn is_nameable(text: &str) -> bool {
    whole(text).is_some_and(|prefix| NameKind::ALL.iter().any(|kind| kind.prefix() == prefix))
}

/// How long the ids on one screen have to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shortener {
    chars: Option<usize>,
}

impl Shortener {
    pub(crate) fn of<T: AsRef<str>>(ids: &[T]) -> Self {
        let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
        Self { chars: (!WHOLE.load(Ordering::Relaxed)).then(|| short_chars(&ids)) }
    }

    /// Shows ids whole: for text from which they are copied into scripts.
    pub(crate) const fn whole() -> Self {
        Self { chars: None }
    }

    pub(crate) fn short<'a>(&self, id: &'a str) -> &'a str {
        self.chars.map_or(id, |chars| short(id, chars))
    }

    /// The short form with its kind, `sess_yjkdnf`. Commands take it as it stands.
    pub(crate) fn named(&self, id: &impl ToString) -> String {
        let id = id.to_string();
        match id.rsplit_once('_') {
            Some((kind, _)) if self.chars.is_some() => format!("{kind}_{}", self.short(&id)),
            Some(_) | None => id,
        }
    }
}

/// Shortens the ids in the cells of a table, column by column, so that no two different ones look the same.
pub(crate) fn shorten_cells(rows: &mut [Vec<String>], columns: usize) {
    for at in 0..columns {
        let ids: Vec<&str> = rows
            .iter()
            .filter_map(|row| row.get(at))
            .map(String::as_str)
            .filter(|cell| is_nameable(cell))
            .collect();
        let shorten = Shortener::of(&ids);
        for row in rows.iter_mut() {
            if let Some(cell) = row.get_mut(at).filter(|cell| is_nameable(cell)) {
                *cell = shorten.short(cell).to_owned();
            }
        }
    }
}

/// Shortens the ids in a sentence, with their kind: `sess_yjkdnf`. Commands take them as they stand there.
pub(crate) fn shorten_words(text: &str) -> String {
    if WHOLE.load(Ordering::Relaxed) {
        return text.to_owned();
    }
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words: Vec<&str> = text.split(|letter| !is_part(letter)).filter(|word| is_nameable(word)).collect();
    let chars = short_chars(&words);
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|letter| !is_part(letter)).unwrap_or(from.len()));
        shown.push_str(before);
        match word.split_once('_').filter(|_| is_nameable(word)) {
            Some((kind, _)) => {
                shown.push_str(kind);
                shown.push('_');
                shown.push_str(short(word, chars));
            }
            None => shown.push_str(word),
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// The end of an id that people type.
pub(crate) fn short_id(id: &str) -> &str {
    Shortener { chars: (!WHOLE.load(Ordering::Relaxed)).then_some(SHORT_CHARS) }.short(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_are_ids_are_short_and_differ() {
        let mut rows = [
            ["sess_01m7f3gs00fqqr28t5cy4tqkff", "task_01m7f3gs00fqqr28t5cy4tqkff", "a"],
            ["sess_01m7f3gs00fqqr28t5cz4tqkff", "", "turn_01m7f3gs00fqqr28t5cy4tqkff"],
        ]
        .map(|row| row.map(str::to_owned).to_vec());
        shorten_cells(&mut rows, 3);
        assert_eq!(rows[0], ["y4tqkff", "4tqkff", "a"]);
        assert_eq!(
            rows[1],
            ["z4tqkff", "", "turn_01m7f3gs00fqqr28t5cy4tqkff"],
            "no command takes a part of a turn's"
        );
    }

    #[test]
    fn ids_beside_each_other_keep_their_kind_and_differ() {
        let (one, two) = ("sess_01m7f3gs00fqqr28t5cy4tqkff", "gate_01m7f3gs00fqqr28t5cz4tqkff");
        let ids = Shortener::of(&[one, two]);
        assert_eq!([ids.named(&one), ids.named(&two)], ["sess_y4tqkff", "gate_z4tqkff"]);
        assert_eq!(Shortener::of(&[one]).named(&one), "sess_4tqkff");
        assert_eq!(Shortener::whole().named(&one), one);
    }

    #[test]
    fn ids_in_a_sentence_keep_their_kind() {
        let text = "`lanyard stop sess_01m7f3gs00fqqr28t5cy4tqkff` stops it; at /x/sess_short";
        assert_eq!(shorten_words(text), "`lanyard stop sess_4tqkff` stops it; at /x/sess_short");
        assert_eq!(shorten_words("grün – nothing"), "grün – nothing");
    }
}
