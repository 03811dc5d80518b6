//! What a word is: a run of letters and digits, in small letters and without accents. A name in humps (`fooBar`) is also
//! its parts, and scripts without spaces are pairs of neighbouring characters.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// Changes whenever the same text gives other words: an index of another version is made again.
pub const WORDS_VERSION: i64 = 1;
/// Characters of a word that count; the rest of a longer one is not looked at.
pub(super) const WORD_CHARS_MAX: usize = 64;
/// Bytes of a word that may have parts: longer ones are encoded data.
const HUMPED_BYTES_MAX: usize = 64;

/// A run of characters that belong together, and its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WordRun {
    pub(super) at: Range<usize>,
    /// Of a script that puts no spaces between words.
    pub(super) unspaced: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Letter,
    Unspaced,
    /// An accent that belongs to the character before it.
    Accent,
    Other,
}

fn class(c: char) -> CharClass {
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() { CharClass::Letter } else { CharClass::Other };
    }
    match u32::from(c) {
        // Thai and Lao, Myanmar, Khmer, Kana and Han, Hangul, Han beyond the first plane.
        0x0E00..=0x0EFF
        | 0x1000..=0x109F
        | 0x1100..=0x11FF
        | 0x1780..=0x17FF
        | 0x3040..=0x30FF
        | 0x3130..=0x318F
        | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7AF
        | 0xF900..=0xFAFF
        | 0xFF66..=0xFF9F
        | 0x2_0000..=0x3_FFFF => CharClass::Unspaced,
        _ if canonical_combining_class(c) != 0 => CharClass::Accent,
        _ if c.is_alphanumeric() => CharClass::Letter,
        _ => CharClass::Other,
    }
}

/// The runs of a text, in order.
pub(super) fn runs(text: &str) -> impl Iterator<Item = WordRun> + '_ {
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (start, first) = chars.next()?;
            let unspaced = match class(first) {
                CharClass::Letter => false,
                CharClass::Unspaced => true,
                CharClass::Accent | CharClass::Other => continue,
            };
            let own = if unspaced { CharClass::Unspaced } else { CharClass::Letter };
            let mut end = start + first.len_utf8();
            while let Some((at, next)) = chars.next_if(|(_, c)| {
                let class = class(*c);
                class == own || class == CharClass::Accent
            }) {
                end = at + next.len_utf8();
            }
            return Some(WordRun { at: start..end, unspaced });
        }
    })
}

/// A word in the form in which it is compared; empty when nothing of it counts.
pub(super) fn folded(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        let cut = &word[..word.len().min(WORD_CHARS_MAX)];
        return if cut.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(cut.to_ascii_lowercase())
        } else {
            Cow::Borrowed(cut)
        };
    }
    let plain = word.nfkd().flat_map(char::to_lowercase);
    let plain = plain.filter(|c| c.is_alphanumeric() && canonical_combining_class(*c) == 0);
    Cow::Owned(plain.take(WORD_CHARS_MAX).collect())
}

/// A character of a script without spaces, as it is compared: half-width forms count as their full ones.
pub(super) fn folded_char(c: char) -> char {
    std::iter::once(c).nfkc().next().unwrap_or(c)
}

/// The places of a word's parts, when it is written in humps: `fooBar` is `foo` and `Bar`.
pub(super) fn humps(word: &str) -> Vec<Range<usize>> {
    if word.len() > HUMPED_BYTES_MAX || !word.chars().skip(1).any(char::is_uppercase) {
        return Vec::new();
    }
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    let mut parts = Vec::new();
    let mut start = 0;
    for (nth, &(at, c)) in chars.iter().enumerate().skip(1) {
        let before = chars[nth - 1].1;
        let after_is_small = chars.get(nth + 1).is_some_and(|(_, next)| next.is_lowercase());
        if c.is_uppercase() && (!before.is_uppercase() || after_is_small) {
            parts.push(start..at);
            start = at;
        }
    }
    if parts.is_empty() {
        return Vec::new();
    }
    parts.push(start..word.len());
    parts
}

/// What an index holds of a text: words with single spaces between them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexedWords {
    /// Whole words, in the order in which they stand.
    pub whole: String,
    /// Parts of words in humps, and pairs of characters of scripts without spaces. The last character of a run stands
    /// alone, so that each character begins one of them.
    pub parts: String,
}

/// The words of a text, as an index holds them. Each is made of letters and digits only.
#[must_use]
pub fn indexed_words(text: &str) -> IndexedWords {
    let mut words = IndexedWords { whole: String::with_capacity(text.len()), parts: String::new() };
    for run in runs(text) {
        let word = &text[run.at];
        if run.unspaced {
            let chars: Vec<char> = word.chars().map(folded_char).collect();
            for (nth, c) in chars.iter().enumerate() {
                words.parts.push(*c);
                words.parts.extend(chars.get(nth + 1));
                words.parts.push(' ');
            }
            continue;
        }
        push(&mut words.whole, word);
        for part in humps(word) {
            push(&mut words.parts, &word[part]);
        }
    }
    words
}

fn push(words: &mut String, word: &str) {
    let word = folded(word);
    if !word.is_empty() {
        words.push_str(&word);
        words.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (String, String) {
        let words = indexed_words(text);
        (words.whole.trim().to_owned(), words.parts.trim().to_owned())
    }

    #[test]
    fn words_are_small_letters_without_accents() {
        for (text, whole, parts) in [
            ("", "", ""),
            (" -- !? \u{1f388} ", "", ""),
            ("Größe und Straße", "große und straße", ""),
            ("Cafe\u{301} CAFÉ", "cafe cafe", ""),
            ("parse_config(path/to.rs)", "parse config path to rs", ""),
            ("fooBar HTTPServer v2Config A", "foobar httpserver v2config a", "foo bar http server v2 config"),
            ("ＡＢＣ ﬁt ½", "abc fit 12", ""),
            ("日本語", "", "日本 本語 語"),
            ("設定config を", "config", "設定 定 を"),
            ("ｶﾀ カタ", "", "カタ タ カタ タ"),
            ("검색 엔진", "", "검색 색 엔진 진"),
        ] {
            assert_eq!(of(text), (whole.to_owned(), parts.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn a_word_longer_than_any_name_is_cut_and_has_no_parts() {
        let (whole, parts) = of(&"aB".repeat(500));
        assert_eq!((whole.chars().count(), parts.as_str()), (WORD_CHARS_MAX, ""));
        assert_eq!(of(&"é".repeat(500)).0.chars().count(), WORD_CHARS_MAX);
    }
}
