//! Names: the ways to refer to a session, a task, a plan and everything else with an id, and the rule that chooses
//! between candidates. Pure: candidates arrive as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{PREFIXES, SUFFIX_LEN, base32, whole};
use crate::text::distance;

/// Characters of an id that listings show, when they suffice to tell the ids on a screen apart.
pub const SHORT_CHARS: usize = 6;
/// Characters of an id that a name needs at least. Fewer would match words by chance.
pub const PART_CHARS_MIN: usize = 4;
/// Characters of a text that are compared to find the nearest name.
const COMPARED_CHARS_MAX: usize = 64;
/// Bits of all characters of an id; the highest two are always zero.
const BITS: usize = SUFFIX_LEN * 5;

/// A kind of thing that can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    Session,
    Task,
    Plan,
    Flow,
    Worker,
    Run,
    Mail,
    Notification,
    Gate,
}

impl NameKind {
    pub const ALL: [Self; 9] = [
        Self::Session,
        Self::Task,
        Self::Plan,
        Self::Flow,
        Self::Worker,
        Self::Run,
        Self::Mail,
        Self::Notification,
        Self::Gate,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Task => "task",
            Self::Plan => "plan",
            Self::Flow => "flow",
            Self::Worker => "worker",
            Self::Run => "run",
            Self::Mail => "mail",
            Self::Notification => "notification",
            Self::Gate => "gate",
        }
    }

    /// The word before the underscore of its ids.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Session => "sess",
            Self::Notification => "ntf",
            Self::Task | Self::Plan | Self::Flow | Self::Worker | Self::Run | Self::Mail | Self::Gate => {
                self.as_str()
            }
        }
    }

    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The way in which a name matched. The first way with a match wins: an alias is never shadowed by an id that happens
/// to end with the same characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchedBy {
    /// The whole id.
    Id,
    /// An alias, or the name of a plan.
    Alias,
    /// `last` or `.`.
    Newest,
    /// The key of a task, alone or after its plan.
    Key,
    /// The whole title, in any case.
    Title,
    /// The beginning or the end of the id.
    Part,
}

/// The beginning or the end of an id, with or without its kind: `sess_01m7n5`, `01m7n5`, `yjkdnf`, `sess_yjkdnf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdPart {
    prefix: Option<&'static str>,
    value: u128,
    chars: usize,
}

impl IdPart {
    /// Reads a part of an id; `None` for a text that can be no part of one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let (prefix, part) = match lower.split_once('_') {
            Some((word, part)) => (Some(*PREFIXES.iter().find(|prefix| **prefix == word)?), part),
            None => (None, lower.as_str()),
        };
        let fits = (PART_CHARS_MIN..=SUFFIX_LEN).contains(&part.len());
        let value = base32(part).filter(|_| fits)?;
        // 26 characters hold more bits than an id; those of an id begin with a digit up to 7.
        let whole = part.len() == SUFFIX_LEN;
        (!whole || part.as_bytes()[0] <= b'7').then_some(Self { prefix, value, chars: part.len() })
    }

    /// Whether ids of this prefix can be meant.
    #[must_use]
    pub fn is_of(&self, prefix: &str) -> bool {
        self.prefix.is_none_or(|wanted| wanted == prefix)
    }

    /// The first and the last id that begin with the part; `None` when no id can.
    #[must_use]
    pub fn range(&self) -> Option<(u128, u128)> {
        let free = BITS - self.chars * 5;
        let first = self.value.checked_shl(u32::try_from(free).ok()?)?;
        // Bits that were shifted out mean that the part begins with a character no id begins with.
        let rest = (1_u128 << free.min(127)) - 1;
        (first >> free == self.value).then_some((first, first | rest))
    }

    /// The last two bytes of the ids that end with the part: four characters determine more than sixteen bits.
    #[must_use]
    pub fn last_bytes(&self) -> [u8; 2] {
        let [.., high, low] = self.value.to_be_bytes();
        [high, low]
    }

    /// Whether an id begins or ends with the part.
    #[must_use]
    pub fn matches(&self, id: u128) -> bool {
        let mask = if self.chars >= SUFFIX_LEN { u128::MAX } else { (1 << (self.chars * 5)) - 1 };
        id & mask == self.value || self.range().is_some_and(|(first, last)| (first..=last).contains(&id))
    }
}

/// A thing that a name may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameCandidate<T> {
    pub by: MatchedBy,
    /// A task that has ended gives way to one that has not.
    pub ended: bool,
    pub item: T,
}

/// Keeps the candidates that a name means: one, or several when the name is ambiguous. Candidates arrive newest first.
///
/// Only those matched in the best way count. Of several, those that have ended give way to the only one that has not; of
/// several with the same alias that all have ended, the newest is meant.
#[must_use]
pub fn choose<T>(candidates: Vec<NameCandidate<T>>) -> Option<(MatchedBy, Vec<T>)> {
    let best = candidates.iter().map(|candidate| candidate.by).min()?;
    let mut kept: Vec<NameCandidate<T>> =
        candidates.into_iter().filter(|candidate| candidate.by == best).collect();
    match kept.iter().filter(|candidate| !candidate.ended).count() {
        1 => kept.retain(|candidate| !candidate.ended),
        0 if best == MatchedBy::Alias => kept.truncate(1),
        _ => {}
    }
    Some((best, kept.into_iter().map(|candidate| candidate.item).collect()))
}

/// Whether a text needs no look-up: it is a whole id.
#[must_use]
pub fn is_whole(text: &str) -> bool {
    whole(text.trim()).is_some()
}

/// Whether two names are the same to a person: in any case, and however many blanks there are.
#[must_use]
pub fn same_words(one: &str, other: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
    words(one) == words(other)
}

/// Every way to read `plan/key`.
pub fn in_plan(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let cuts = text.match_indices('/').map(|(at, _)| (&text[..at], &text[at + 1..]));
    cuts.filter(|(plan, key)| !plan.is_empty() && !key.is_empty())
}

/// How far a name is from the typed text: 0 when the name holds it, else the number of letters to change; `None` when they
/// have too little in common.
#[must_use]
pub fn how_far(typed: &str, name: &str) -> Option<usize> {
    let cut = |text: &str| text.to_lowercase().chars().take(COMPARED_CHARS_MAX).collect::<String>();
    let (typed, name) = (cut(typed), cut(name));
    if typed.is_empty() || name.is_empty() {
        return None;
    }
    let far = if name.contains(&typed) { 0 } else { distance(&typed, &name) };
    (far <= typed.chars().count().div_ceil(3)).then_some(far)
}

/// The last characters of an id, without its kind.
#[must_use]
pub fn short(id: &str, chars: usize) -> &str {
    let part = id.rsplit_once('_').map_or(id, |(_, part)| part);
    part.len().checked_sub(chars).and_then(|at| part.get(at..)).unwrap_or(part)
}

/// The number of characters at the end that tell all of these ids apart, at least [`SHORT_CHARS`].
#[must_use]
pub fn short_chars(ids: &[&str]) -> usize {
    let mut all: Vec<&str> = ids.to_vec();
    all.sort_unstable();
    all.dedup();
    (SHORT_CHARS..SUFFIX_LEN)
        .find(|chars| {
            let mut shorts: Vec<&str> = all.iter().map(|id| short(id, *chars)).collect();
            shorts.sort_unstable();
            shorts.windows(2).all(|pair| pair[0] != pair[1])
        })
        .unwrap_or(SUFFIX_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionId;

    const ID: &str = "sess_01m7f3gs00fqqr28t5cy4tqkff";

    #[test]
    fn a_part_of_an_id_is_its_beginning_or_its_end() {
        let id: SessionId = ID.parse().unwrap();
        for (text, meant) in [
            (ID, true),
            ("01m7f3gs00fqqr28t5cy4tqkff", true),
            ("sess_01m7", true),
            ("01m7f3", true),
            ("4tqkff", true),
            ("sess_4tqkff", true),
            ("4TQKFF", true),
            (" qkff ", true),
            ("4tqkfe", false),
            ("m7f3gs", false),
            ("z1m7f3", false),
            ("kffk", false),
        ] {
            let part = IdPart::parse(text).unwrap();
            assert_eq!(part.matches(id.as_u128()) && part.is_of("sess"), meant, "{text}");
        }
        assert!(!IdPart::parse("task_4tqkff").unwrap().is_of("sess"), "another kind");
        for text in ["", "kff", "sess_", "sess_kff", "login", "fix-login", "what_4tqkff", "last", "."] {
            assert_eq!(IdPart::parse(text), None, "{text}");
        }
        assert_eq!(IdPart::parse("z1m7f3gs00fqqr28t5cy4tqkff"), None, "no id has that many bits");
    }

    #[test]
    fn the_range_of_a_beginning_holds_exactly_the_ids_that_begin_with_it() {
        let (first, last) = IdPart::parse("sess_01m7f3").unwrap().range().unwrap();
        assert_eq!(SessionId::from_u128(first).to_string(), "sess_01m7f300000000000000000000");
        assert_eq!(SessionId::from_u128(last).to_string(), "sess_01m7f3zzzzzzzzzzzzzzzzzzzz");
        let (first, last) = IdPart::parse(ID).unwrap().range().unwrap();
        assert_eq!((first, last), (first, first));
        assert_eq!(IdPart::parse("8123").unwrap().range(), None, "no id begins with an 8");
        assert_eq!(IdPart::parse("7zzz").unwrap().range().unwrap().1, u128::MAX);
    }

    #[test]
    fn the_best_way_to_match_wins_and_ended_tasks_give_way() {
        use MatchedBy::{Alias, Key, Part, Title};
        let choose = |of: &[(MatchedBy, bool)]| {
            let of = of.iter().enumerate();
            choose(of.map(|(item, (by, ended))| NameCandidate { by: *by, ended: *ended, item }).collect())
        };
        assert_eq!(choose(&[]), None);
        assert_eq!(choose(&[(Part, false), (Alias, false)]), Some((Alias, vec![1])));
        assert_eq!(choose(&[(Title, false), (Title, false), (Part, false)]), Some((Title, vec![0, 1])));
        assert_eq!(choose(&[(Key, true), (Key, false), (Key, true)]), Some((Key, vec![1])));
        assert_eq!(choose(&[(Key, false), (Key, false), (Key, true)]), Some((Key, vec![0, 1, 2])));
        assert_eq!(choose(&[(Alias, true), (Alias, true)]), Some((Alias, vec![0])), "the newest");
        assert_eq!(choose(&[(Part, true), (Part, true)]), Some((Part, vec![0, 1])));
    }

    #[test]
    fn short_ids_on_one_screen_differ() {
        let ids = ["sess_01m7f3gs00fqqr28t5cy4tqkff", "sess_01m7f3gs00fqqr28t5cz4tqkff"];
        assert_eq!(short_chars(&ids[..1]), 6);
        assert_eq!(short_chars(&[ids[0], ids[0]]), 6, "the same one twice is one");
        assert_eq!(short_chars(&ids), 7);
        assert_eq!(short(ids[0], 6), "4tqkff");
        assert_eq!(short(ids[1], 7), "z4tqkff");
        assert_eq!(short("at-12", 6), "at-12");
        assert_eq!(short("grün", 2), "grün", "no character is cut in two");
    }

    #[test]
    fn the_nearest_name_is_one_that_holds_the_text_or_nearly_is_it() {
        for (typed, name, far) in [
            ("login", "fix the login test", Some(0)),
            ("LOGIN", "fix-login", Some(0)),
            ("fix-logn", "fix-login", Some(1)),
            ("fx-lgin", "fix-login", Some(2)),
            ("release", "fix-login", None),
            ("", "fix-login", None),
            ("x", "", None),
        ] {
            assert_eq!(how_far(typed, name), far, "{typed} {name}");
        }
    }

    #[test]
    fn a_key_follows_its_plan() {
        assert_eq!(in_plan("shop/api").collect::<Vec<_>>(), [("shop", "api")]);
        assert_eq!(in_plan("a/b/c").collect::<Vec<_>>(), [("a", "b/c"), ("a/b", "c")]);
        assert_eq!(in_plan("/api").count() + in_plan("shop/").count() + in_plan("shop").count(), 0);
    }

    #[test]
    fn titles_are_the_same_in_any_case_and_with_any_blanks() {
        assert!(same_words("Fix  the login", "fix the Login "));
        assert!(!same_words("fix the login", "fix the login test"));
    }

    #[test]
    fn the_prefix_of_a_kind_is_that_of_its_ids() {
        let prefixes: Vec<&str> = NameKind::ALL.map(NameKind::prefix).to_vec();
        assert!(prefixes.iter().all(|prefix| PREFIXES.contains(prefix)), "{prefixes:?}");
        assert!(NameKind::ALL.into_iter().all(|kind| NameKind::named(kind.as_str()) == Some(kind)));
    }
}
