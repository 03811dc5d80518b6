//! Where the words of a query stand in a text, how well the text fits, and the part of it that shows it.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::search::query::{SearchPiece, SearchQuery};
use crate::search::words::{WordRun, folded, folded_char, humps, runs};

/// Characters of a snippet, at most.
pub const SNIPPET_CHARS: usize = 240;
/// Of them before the first mark.
const LEAD_CHARS: usize = 40;
/// Marks that are looked for in one text.
const MARKS_MAX: usize = 256;
/// Bytes of a text that say how well it fits.
const JUDGED_BYTES_MAX: usize = 8 * 1024;
/// Bytes within which words count as near each other.
const NEAR_BYTES: usize = 80;

/// A part of a text on one line, with the places of what was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Snippet {
    pub text: String,
    /// From and to, counted in Unicode characters; in order, and none overlaps another.
    pub marks: Vec<[u32; 2]>,
}

/// The place of a term in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    at: Range<usize>,
    /// Which of the wanted terms.
    term: usize,
}

/// The places of a query's terms in a text, in order; at most [`MARKS_MAX`].
fn marks(text: &str, query: &SearchQuery) -> Vec<Mark> {
    let (mut whole, mut parts, mut unspaced) = (Vec::new(), Vec::new(), Vec::new());
    for WordRun { at, unspaced: spaceless } in runs(text) {
        if spaceless {
            unspaced.push(at);
            continue;
        }
        let start = at.start;
        parts.extend(humps(&text[at.clone()]).into_iter().map(|part| start + part.start..start + part.end));
        whole.push(at);
    }
    let mut marks = Vec::new();
    for (term, wanted) in query.wanted().enumerate() {
        let last = wanted.pieces.len() - 1;
        for (nth, piece) in wanted.pieces.iter().enumerate() {
            match piece {
                SearchPiece::Words(words) => {
                    let prefix = wanted.prefix && nth == last;
                    for places in [&whole, &parts] {
                        marks.extend(phrases(text, places, words, prefix).map(|at| Mark { at, term }));
                    }
                }
                SearchPiece::Unspaced(chars) => {
                    for run in &unspaced {
                        let found = within(&text[run.clone()], chars);
                        marks.extend(
                            found.map(|at| Mark { at: run.start + at.start..run.start + at.end, term }),
                        );
                    }
                }
            }
            marks.truncate(MARKS_MAX * (term + 1));
        }
    }
    marks.sort_by_key(|mark| (mark.at.start, std::cmp::Reverse(mark.at.end)));
    marks.truncate(MARKS_MAX);
    marks
}

/// The places where words stand one after the other.
fn phrases<'a>(
    text: &'a str,
    places: &'a [Range<usize>],
    words: &'a [String],
    prefix: bool,
) -> impl Iterator<Item = Range<usize>> + 'a {
    places.windows(words.len()).filter_map(move |window| {
        let last = words.len() - 1;
        let fits = window.iter().zip(words).enumerate().all(|(nth, (at, word))| {
            let is = &text[at.clone()];
            if prefix && nth == last { begins(is, word) } else { same(is, word) }
        });
        Some(window.first()?.start..window.last()?.end).filter(|_| fits)
    })
}

fn same(text: &str, word: &str) -> bool {
    // Most words are plain, and most of them another.
    if text.is_ascii() && text.len() <= word.len() {
        text.eq_ignore_ascii_case(word)
    } else {
        folded(text) == word
    }
}

fn begins(text: &str, word: &str) -> bool {
    folded(text).starts_with(word)
}

/// The places of characters in a run of a script without spaces.
fn within<'a>(run: &'a str, chars: &'a [char]) -> impl Iterator<Item = Range<usize>> + 'a {
    run.char_indices().filter_map(move |(start, _)| {
        let mut here = run[start..].char_indices();
        let mut end = start;
        for wanted in chars {
            let (at, c) = here.next()?;
            if folded_char(c) != *wanted {
                return None;
            }
            end = start + at + c.len_utf8();
        }
        Some(start..end)
    })
}

/// How well a text fits a query: how often its words are there, how near to each other, and in how short a text.
#[must_use]
pub fn relevance(text: &str, query: &SearchQuery) -> u32 {
    let text = &text[..text.floor_char_boundary(JUDGED_BYTES_MAX)];
    let marks = marks(text, query);
    let terms = query.wanted().count();
    let often = |term| marks.iter().filter(|mark| mark.term == term).count().min(4);
    let times: usize = (0..terms).map(often).sum();
    let near = marks.iter().map(|mark| gathered(&marks, mark.at.start, NEAR_BYTES)).max().unwrap_or(0);
    let short = [500, 2_000].into_iter().filter(|bytes| text.len() <= *bytes).count();
    let score = 2 * times + 4 * near * usize::from(terms > 1) + 2 * short;
    u32::try_from(score).unwrap_or(u32::MAX)
}

/// The number of terms that have a mark within a distance after a place.
fn gathered(marks: &[Mark], from: usize, bytes: usize) -> usize {
    let mut terms: Vec<usize> = Vec::new();
    for mark in marks.iter().skip_while(|mark| mark.at.start < from) {
        if mark.at.end > from + bytes {
            break;
        }
        if !terms.contains(&mark.term) {
            terms.push(mark.term);
        }
    }
    terms.len()
}

/// The part of a text that has most of the query's words, on one line.
#[must_use]
pub fn snippet(text: &str, query: &SearchQuery) -> Snippet {
    let marks = marks(text, query);
    let best =
        marks.iter().rev().max_by_key(|mark| gathered(&marks, mark.at.start, SNIPPET_CHARS - LEAD_CHARS));
    let first = best.map_or(0, |mark| mark.at.start);
    let start = text[..first].char_indices().rev().take(LEAD_CHARS).last().map_or(first, |(at, _)| at);
    // A word that begins before is left out whole, where there is a space to begin after.
    let start = match text[start..first].find(char::is_whitespace) {
        Some(space) if start > 0 => start + space,
        Some(_) | None => start,
    };
    let mut line = Line::default();
    line.begin(start > 0);
    for (at, c) in text[start..].char_indices() {
        if line.chars >= SNIPPET_CHARS {
            line.push('…', None);
            break;
        }
        let at = start + at;
        line.push(c, marks.iter().position(|mark| mark.at.contains(&at)));
    }
    line.done()
}

/// A snippet as it grows.
#[derive(Default)]
struct Line {
    snippet: Snippet,
    chars: usize,
    /// The mark that the last character belongs to.
    marked: Option<usize>,
    space: bool,
}

impl Line {
    fn begin(&mut self, cut: bool) {
        if cut {
            self.push('…', None);
        }
    }

    fn push(&mut self, c: char, mark: Option<usize>) {
        if c.is_whitespace() || c.is_control() {
            self.space = self.chars > 0;
            return;
        }
        let apart = std::mem::take(&mut self.space);
        if apart {
            self.add(' ', mark.filter(|_| mark == self.marked));
        }
        self.add(c, mark);
    }

    fn add(&mut self, c: char, mark: Option<usize>) {
        let at = u32::try_from(self.chars).unwrap_or(u32::MAX);
        match (mark, self.snippet.marks.last_mut()) {
            (Some(_), Some(last)) if mark == self.marked && last[1] == at => last[1] = at + 1,
            (Some(_), _) => self.snippet.marks.push([at, at + 1]),
            (None, _) => {}
        }
        self.marked = mark;
        self.snippet.text.push(c);
        self.chars += 1;
    }

    fn done(self) -> Snippet {
        self.snippet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    fn query(text: &str) -> SearchQuery {
        SearchQuery::parse(text, Timestamp::from_millis(0)).unwrap()
    }

    /// The snippet with its marks in brackets.
    fn shown(text: &str, words: &str) -> String {
        let snippet = snippet(text, &query(words));
        let mut shown = String::new();
        for (nth, c) in (0..).zip(snippet.text.chars().chain(['\0'])) {
            let begins = snippet.marks.iter().any(|mark| mark[0] == nth);
            let ends = snippet.marks.iter().any(|mark| mark[1] == nth);
            shown.push_str(if ends { "]" } else { "" });
            shown.push_str(if begins { "[" } else { "" });
            shown.push(c);
        }
        shown.trim_end_matches('\0').to_owned()
    }

    #[test]
    fn words_are_marked_as_they_stand() {
        for (text, words, marked) in [
            ("The login fails", "LOGIN fails", "The [login] [fails]"),
            ("Die Größe zählt", "grosse größe zahlt", "Die [Größe] [zählt]"),
            ("fn parse_config() {", "parse_config", "fn [parse_config]() {"),
            ("let fooBar = HTTPServer;", "bar server", "let foo[Bar] = HTTP[Server];"),
            ("let fooBar", "foobar", "let [fooBar]"),
            ("configure it", "conf*", "[configure] it"),
            ("one two, two one", "\"two one\"", "one two, [two one]"),
            ("全文検索の設定", "検索", "全文[検索]の設定"),
            ("two\n\n  lines\there", "lines here", "two [lines] [here]"),
            ("nothing of it", "else", "nothing of it"),
            ("a login", "login -fails", "a [login]"),
        ] {
            assert_eq!(shown(text, words), marked, "{words:?}");
        }
    }

    #[test]
    fn a_snippet_shows_the_place_with_most_of_the_words() {
        let far = "padding ".repeat(100);
        let text = format!("login {far} the login of it fails today {far}");
        let shown = shown(&text, "login fails");
        assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        assert!(shown.contains("the [login] of it [fails] today"), "{shown}");
        assert!(shown.chars().count() <= SNIPPET_CHARS + 10);
    }

    #[test]
    fn a_text_fits_better_with_more_of_the_words_nearer_to_each_other() {
        let far = "padding ".repeat(30);
        let near = relevance("the login fails", &query("login fails"));
        let apart = relevance(&format!("login {far} fails"), &query("login fails"));
        assert!(near > apart, "{near} {apart}");
        assert!(relevance("login login", &query("login")) > relevance("login once", &query("login")));
        assert_eq!(relevance("", &query("login")), 4);
    }
}
