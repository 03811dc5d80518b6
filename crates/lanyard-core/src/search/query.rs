//! The language of queries: words, `"phrases"`, `prefix*`, `-without`, and filters such as `agent:claude`. Every text is
//! either understood or refused; none is an error of a database.

use std::fmt;
use std::str::FromStr;

use crate::refusals;
use crate::search::document::SearchKind;
use crate::search::words::{folded, folded_char, runs};
use crate::time::Timestamp;

/// Longest query, in characters.
pub const QUERY_CHARS_MAX: usize = 500;
/// The most words of a query, those of phrases included.
pub const QUERY_WORDS_MAX: usize = 16;
/// Letters that a `prefix*` has at least: shorter ones begin too many words.
pub const PREFIX_CHARS_MIN: usize = 2;

refusals! {
    /// Why a query cannot be asked.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum SearchRefusal {
        Empty => "search_empty", Invalid
            ("the query has no word to look for") ("give at least one word; filters alone find nothing");
        TooLong => "search_too_long", Invalid
            ("the query has more than {QUERY_CHARS_MAX} characters") ("look for fewer words");
        TooManyWords => "search_too_many_words", Invalid
            ("the query has more than {QUERY_WORDS_MAX} words") ("look for fewer words");
        OnlyExcluded => "search_only_excluded", Invalid
            ("the query only says what not to find") ("give at least one word without `-`");
        PrefixShort { word: String } => "search_prefix_short", Invalid
            ("`{word}*` begins with fewer than {PREFIX_CHARS_MIN} letters") ("write more of the word before `*`");
        BadFilter { key: &'static str, value: String } => "search_filter_bad", Invalid
            ("`{value}` is no value of the filter `{key}:`")
            ("use kind:message, kind:tool or kind:result, since:2h, since:7d or since:2026-11-15; quotes make it a text");
        FilterTwice { key: &'static str } => "search_filter_twice", Invalid
            ("the filter `{key}:` is given twice") ("give it once");
    }
}

/// A query that can be asked: at least one of its terms is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchQuery {
    pub terms: Vec<SearchTerm>,
    pub filters: SearchFilters,
}

/// A word or a phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchTerm {
    /// Texts with it are not wanted.
    pub not: bool,
    /// The last word may go on.
    pub prefix: bool,
    /// All of them have to be there; none is empty.
    pub pieces: Vec<SearchPiece>,
}

/// A part of a term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchPiece {
    /// Words one after the other.
    Words(Vec<String>),
    /// Characters one after the other, of a script without spaces.
    Unspaced(Vec<char>),
}

/// Conditions beside the words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchFilters {
    pub agent: Option<String>,
    /// A folder, or the last parts of its path; sessions in it and below.
    pub folder: Option<String>,
    /// An id or a name of a session.
    pub session: Option<String>,
    pub kind: Option<SearchKind>,
    /// Not older than this.
    pub since: Option<Timestamp>,
}

impl SearchQuery {
    /// Reads a query. `now` is the time from which spans such as `since:2h` are counted.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, SearchRefusal> {
        if text.chars().count() > QUERY_CHARS_MAX {
            return Err(SearchRefusal::TooLong);
        }
        let mut query = Self::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (token, after) = QueryToken::next(rest);
            rest = after.trim_start();
            match token.filter() {
                Some((key, value)) => query.filters.put(key, value, now)?,
                None => query.terms.extend(token.term()?),
            }
        }
        let words: usize = query.terms.iter().flat_map(|term| &term.pieces).map(SearchPiece::words).sum();
        if words > QUERY_WORDS_MAX {
            return Err(SearchRefusal::TooManyWords);
        }
        if query.terms.is_empty() {
            return Err(SearchRefusal::Empty);
        }
        if query.terms.iter().all(|term| term.not) {
            return Err(SearchRefusal::OnlyExcluded);
        }
        Ok(query)
    }

    /// The terms that have to be there.
    pub fn wanted(&self) -> impl Iterator<Item = &SearchTerm> {
        self.terms.iter().filter(|term| !term.not)
    }

    /// The terms that must not be there.
    pub fn unwanted(&self) -> impl Iterator<Item = &SearchTerm> {
        self.terms.iter().filter(|term| term.not)
    }
}

impl SearchPiece {
    fn words(&self) -> usize {
        match self {
            Self::Words(words) => words.len(),
            // As many as pairs are looked up for it, at a fourth: pairs are words of the same text.
            Self::Unspaced(chars) => chars.len().div_ceil(4),
        }
    }
}

/// A part of a query as it is written.
struct QueryToken<'a> {
    not: bool,
    /// What stands before the colon of `key:"value"`.
    key: Option<&'a str>,
    quoted: bool,
    text: &'a str,
    prefix: bool,
}

const KEYS: [&str; 5] = ["agent", "in", "session", "kind", "since"];

impl<'a> QueryToken<'a> {
    /// The first token of a text that begins with none of white space, and what follows.
    fn next(text: &'a str) -> (Self, &'a str) {
        let minus = text.strip_prefix('-').filter(|rest| {
            // Two of them are how options are written, and one alone is a dash.
            rest.chars().next().is_some_and(|c| c != '-' && !c.is_whitespace())
        });
        let (not, text) = (minus.is_some(), minus.unwrap_or(text));
        let key = KEYS.into_iter().find_map(|key| {
            let rest = text.get(key.len()..)?.strip_prefix(":\"")?;
            text[..key.len()].eq_ignore_ascii_case(key).then_some((key, rest))
        });
        let (key, quoted) = match key.filter(|_| !not) {
            Some((key, rest)) => (Some(key), Some(rest)),
            None => (None, text.strip_prefix('"')),
        };
        if let Some(rest) = quoted {
            let (inner, after) = rest.split_once('"').unwrap_or((rest, ""));
            let starred = after.strip_prefix('*').filter(|_| key.is_none());
            let token = Self { not, key, quoted: true, text: inner, prefix: starred.is_some() };
            return (token, starred.unwrap_or(after));
        }
        // A quote within a word belongs to it: `don"t` is what somebody typed.
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (word, after) = text.split_at(end);
        let bare = word.strip_suffix('*');
        (Self { not, key: None, quoted: false, text: bare.unwrap_or(word), prefix: bare.is_some() }, after)
    }

    /// The filter this is, and its value.
    fn filter(&self) -> Option<(&'static str, &'a str)> {
        if let Some(key) = self.key {
            return KEYS
                .into_iter()
                .find(|known| known.eq_ignore_ascii_case(key))
                .map(|key| (key, self.text));
        }
        if self.quoted || self.not {
            return None;
        }
        let (key, value) = self.text.split_once(':')?;
        let known = KEYS.into_iter().find(|known| known.eq_ignore_ascii_case(key))?;
        // `in::` and `session:` alone are texts, as in code.
        (!value.is_empty() && !value.starts_with(':')).then_some((known, value))
    }

    /// The term this is; `None` where it has nothing that is searched.
    fn term(&self) -> Result<Option<SearchTerm>, SearchRefusal> {
        let mut pieces: Vec<SearchPiece> = Vec::new();
        for run in runs(self.text) {
            let word = &self.text[run.at];
            if run.unspaced {
                pieces.push(SearchPiece::Unspaced(word.chars().map(folded_char).collect()));
                continue;
            }
            let word = folded(word).into_owned();
            if word.is_empty() {
                continue;
            }
            match pieces.last_mut() {
                Some(SearchPiece::Words(words)) => words.push(word),
                Some(SearchPiece::Unspaced(_)) | None => pieces.push(SearchPiece::Words(vec![word])),
            }
        }
        if self.prefix
            && let Some(SearchPiece::Words(words)) = pieces.last()
            && let Some(word) = words.last()
            && word.chars().count() < PREFIX_CHARS_MIN
        {
            return Err(SearchRefusal::PrefixShort { word: word.clone() });
        }
        let term = SearchTerm { not: self.not, prefix: self.prefix, pieces };
        Ok((!term.pieces.is_empty()).then_some(term))
    }
}

impl SearchFilters {
    fn put(&mut self, key: &'static str, value: &str, now: Timestamp) -> Result<(), SearchRefusal> {
        let bad = || SearchRefusal::BadFilter { key, value: value.to_owned() };
        if value.is_empty() {
            return Err(bad());
        }
        let before = match key {
            "agent" => self.agent.replace(value.to_owned()).is_some(),
            "in" => self.folder.replace(value.to_owned()).is_some(),
            "session" => self.session.replace(value.to_owned()).is_some(),
            "kind" => self.kind.replace(value.parse().map_err(|()| bad())?).is_some(),
            _ => self.since.replace(since(value, now).ok_or_else(bad)?).is_some(),
        };
        if before { Err(SearchRefusal::FilterTwice { key }) } else { Ok(()) }
    }

    /// These and others: what both say is refused.
    pub fn and(self, other: Self) -> Result<Self, SearchRefusal> {
        fn one<T>(key: &'static str, a: Option<T>, b: Option<T>) -> Result<Option<T>, SearchRefusal> {
            match (a, b) {
                (Some(_), Some(_)) => Err(SearchRefusal::FilterTwice { key }),
                (a, b) => Ok(a.or(b)),
            }
        }
        Ok(Self {
            agent: one("agent", self.agent, other.agent)?,
            folder: one("in", self.folder, other.folder)?,
            session: one("session", self.session, other.session)?,
            kind: one("kind", self.kind, other.kind)?,
            since: one("since", self.since, other.since)?,
        })
    }
}

/// A span before now, a time, or a day.
fn since(text: &str, now: Timestamp) -> Option<Timestamp> {
    let units = [("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];
    let span = units
        .into_iter()
        .find_map(|(unit, ms)| text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(ms));
    if let Some(ms) = span {
        return Some(now.minus_millis(ms));
    }
    text.parse().or_else(|_| format!("{text}T00:00:00Z").parse()).ok()
}

impl FromStr for SearchKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(text)).ok_or(())
    }
}

impl fmt::Display for SearchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
