//! Removes secrets from text before it becomes part of a log, which is kept, searched and shown to observers. One pass
//! over the bytes finds candidates; text without a secret is not copied.
//!
//! Two kinds are recognised: known values (environment variables whose names say that they are secret), and shapes
//! (Lanyard's own tokens, and keys of services whose form is public). A shape counts only where its form is
//! unmistakable: hashes, UUIDs, base64 and ordinary words stay as they are.

mod shapes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use serde_json::Value;

use shapes::{SHAPES, Shape};

/// Shortest value of an environment variable that counts as a secret; shorter ones occur by chance.
pub const VALUE_CHARS_MIN: usize = 8;
/// Values that are looked for at most.
const VALUES_MAX: usize = 1_000;
/// Characters that follow a prefix of the user's own.
const CUSTOM_CHARS_MIN: usize = 8;
/// Ends of names that say that the value is a secret.
const SECRET_ENDS: [&str; 7] =
    ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_CREDENTIALS", "_APIKEY"];
/// Characters of a pattern at the end of a text that count in the middle of a word; fewer occur by chance.
const PART_CHARS_MIN: usize = 4;
const SECRET_NAMES: [&str; 4] = ["PASSWORD", "PASSWD", "TOKEN", "SECRET"];

/// The secrets that are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedactionScope {
    /// Every recognised secret: for output of agents, tools and programs.
    All,
    /// Lanyard's own tokens only: the words of people, which reach the agent from the log as they were said.
    OwnTokens,
}

/// Finds secrets, and puts a marker in their place.
#[derive(Debug, Clone)]
pub struct Redactor {
    finder: AhoCorasick,
    /// By pattern.
    kinds: Vec<Kind>,
    patterns: Vec<String>,
}

/// The kind of secret that a pattern begins.
#[derive(Debug, Clone)]
enum Kind {
    /// A value that is known, and the variable that holds it.
    Value(String),
    Shape(&'static Shape),
    /// A prefix of the user's own.
    Custom,
}

/// Values to remove beside the known shapes.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Environment variables as agents get them.
    pub variables: Vec<(String, String)>,
    /// Further names whose values are secret.
    pub names: Vec<String>,
    /// Beginnings of keys of the user's own.
    pub prefixes: Vec<String>,
    /// Remove Lanyard's own tokens only.
    pub own_only: bool,
}

impl Redactor {
    /// An error is a set of patterns too large to look for.
    pub fn new(wanted: &Wanted) -> Result<Self, String> {
        let mut patterns: Vec<(String, Kind)> = Vec::new();
        for shape in SHAPES.iter().filter(|shape| !wanted.own_only || shape.is_own) {
            patterns.extend(shape.prefixes.iter().map(|prefix| ((*prefix).to_owned(), Kind::Shape(shape))));
        }
        if !wanted.own_only {
            let prefixes = wanted.prefixes.iter().filter(|prefix| !prefix.is_empty());
            patterns.extend(prefixes.map(|prefix| (prefix.clone(), Kind::Custom)));
            let secret = |(name, value): &&(String, String)| {
                (is_secret_name(name) || wanted.names.contains(name)) && is_secret_value(value)
            };
            for (name, value) in wanted.variables.iter().filter(secret).take(VALUES_MAX) {
                let escaped = escaped(value);
                if escaped != *value {
                    patterns.push((escaped, Kind::Value(name.clone())));
                }
                patterns.push((value.clone(), Kind::Value(name.clone())));
            }
        }
        let finder = AhoCorasick::builder()
            // A value that is known is longer than the beginning of its shape.
            .match_kind(MatchKind::LeftmostLongest)
            .build(patterns.iter().map(|(pattern, _)| pattern))
            .map_err(|error| error.to_string())?;
        let (patterns, kinds) = patterns.into_iter().unzip();
        Ok(Self { finder, kinds, patterns })
    }

    /// Whether text, or the JSON it is written in, may hold a secret. Cheap, and sometimes wrong about a text that holds
    /// none.
    #[must_use]
    pub fn suspects(&self, text: &[u8]) -> bool {
        self.finder.is_match(text)
            && std::str::from_utf8(text)
                .is_ok_and(|text| self.next(text, 0, RedactionScope::All, Boundary::Ignored).is_some())
    }

    /// Length of an unfinished text that can be shown: its end may begin a secret, or the prefix of one.
    #[must_use]
    pub fn shown(&self, text: &str) -> usize {
        let mut from = 0;
        while let Some(hit) = self.finder.find(Input::new(text).range(from..)) {
            let kind = &self.kinds[hit.pattern().as_usize()];
            let free = kind.is_own() || starts_word(text, hit.start());
            if free && kind.reach(text, hit.end()) == text.len() {
                return hit.start().min(self.begun(text));
            }
            from = next_char(text, hit.start());
        }
        self.begun(text)
    }

    /// Start of a pattern that the end of the text cuts off.
    fn begun(&self, text: &str) -> usize {
        let ends = self.patterns.iter().filter_map(|pattern| {
            let most = pattern.len().saturating_sub(1).min(text.len());
            let fits = |size: &usize| {
                text.as_bytes().ends_with(&pattern.as_bytes()[..*size])
                    && text.is_char_boundary(text.len() - size)
                    && (*size >= PART_CHARS_MIN || starts_word(text, text.len() - size))
            };
            (1..=most).rev().find(fits)
        });
        text.len() - ends.max().unwrap_or(0)
    }

    /// The text without its secrets, and how many there were; nothing when there are none.
    #[must_use]
    pub fn redacted(&self, text: &str, scope: RedactionScope) -> Option<(String, u64)> {
        let mut found = self.next(text, 0, scope, Boundary::Kept)?;
        let (mut out, mut from, mut count) = (String::with_capacity(text.len()), 0, 0);
        loop {
            out.push_str(&text[from..found.start]);
            out.push_str("[redacted:");
            out.push_str(&found.label);
            out.push(']');
            (from, count) = (found.end, count + 1);
            match self.next(text, from, scope, Boundary::Kept) {
                Some(next) => found = next,
                None => break,
            }
        }
        out.push_str(&text[from..]);
        Some((out, count))
    }

    /// Takes the secrets out of every text in a JSON value, and counts them.
    pub fn redact(&self, value: &mut Value, scope: RedactionScope) -> u64 {
        match value {
            Value::String(text) => match self.redacted(text, scope) {
                Some((clean, count)) => {
                    *text = clean;
                    count
                }
                None => 0,
            },
            Value::Array(all) => all.iter_mut().map(|one| self.redact(one, scope)).sum(),
            Value::Object(fields) => fields.values_mut().map(|one| self.redact(one, scope)).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }

    fn next(
        &self,
        text: &str,
        mut from: usize,
        scope: RedactionScope,
        boundary: Boundary,
    ) -> Option<Found<'_>> {
        while let Some(hit) = self.finder.find(Input::new(text).range(from..)) {
            let kind = &self.kinds[hit.pattern().as_usize()];
            let end = match kind {
                Kind::Value(_) if scope == RedactionScope::All => Some(hit.end()),
                Kind::Shape(shape) if scope == RedactionScope::All || shape.is_own => {
                    let free =
                        boundary == Boundary::Ignored || shape.is_own || starts_word(text, hit.start());
                    (shape.ends)(text, hit.start(), hit.end()).filter(|_| free)
                }
                Kind::Custom if scope == RedactionScope::All => {
                    let end = shapes::run(text, hit.end(), shapes::is_word);
                    let free = boundary == Boundary::Ignored || starts_word(text, hit.start());
                    (free && end - hit.end() >= CUSTOM_CHARS_MIN).then_some(end)
                }
                Kind::Value(_) | Kind::Shape(_) | Kind::Custom => None,
            };
            if let Some(end) = end {
                return Some(Found { start: hit.start(), end, label: kind.label() });
            }
            from = next_char(text, hit.start());
        }
        None
    }
}

impl Kind {
    fn is_own(&self) -> bool {
        matches!(self, Self::Shape(shape) if shape.is_own)
    }

    /// Farthest end of a secret whose pattern ends at `from`, as far as the text shows.
    fn reach(&self, text: &str, from: usize) -> usize {
        match self {
            Self::Shape(shape) => (shape.reach)(text, from),
            Self::Value(_) | Self::Custom => shapes::run(text, from, shapes::is_word),
        }
    }

    fn label(&self) -> Cow<'_, str> {
        match self {
            Self::Value(name) => format!("env {name}").into(),
            Self::Shape(shape) => shape.label.into(),
            Self::Custom => "custom".into(),
        }
    }
}

/// Whether what stands before a shape matters. In JSON text a line break before it looks like a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Boundary {
    Kept,
    Ignored,
}

struct Found<'a> {
    start: usize,
    end: usize,
    label: Cow<'a, str>,
}

/// Whether a variable's name says that its value is secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_NAMES.contains(&name.as_str()) || SECRET_ENDS.iter().any(|end| name.ends_with(end))
}

/// A path or a number is no secret, whatever it is called.
fn is_secret_value(value: &str) -> bool {
    let is_path = value.starts_with(['/', '~', '.']);
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    value.chars().count() >= VALUE_CHARS_MIN && !is_path && !is_number
}

fn starts_word(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

fn next_char(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(1, char::len_utf8)
}

/// As it stands inside of a JSON string.
fn escaped(text: &str) -> String {
    let json = serde_json::to_string(text).unwrap_or_default();
    json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned()
}
