//! The policy of a session or of one turn: a value that travels with what it governs, never a setting of the
//! process. Below, it is only ever tightened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::memory::tag::{self, TAGS_MAX};
use crate::memory::{MemoryRefusal, Tags};
use crate::policy::MemoryMode;
use crate::text::cut;

/// Characters of the reason why a stored policy could not be read.
const WHY_CHARS_MAX: usize = 200;

/// A memory policy.
///
/// A stored policy that cannot be read allows nothing, and `unreadable` says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryPolicy {
    pub mode: MemoryMode,
    /// Whether the session has a memory of its own.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub session_memory: bool,
    /// Put on everything that is written.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// Tags under which the mode `selective` writes long-term memory.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub allow: Tags,
    /// Why the stored policy could not be read; it then allows nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

impl Default for MemoryPolicy {
    fn default() -> Self {
        Self::of(MemoryMode::default())
    }
}

/// The same, as strict as it was written.
#[derive(Deserialize)]
struct Stored {
    mode: MemoryMode,
    #[serde(default = "yes")]
    session_memory: bool,
    #[serde(default)]
    tags: Tags,
    #[serde(default)]
    allow: Tags,
    #[serde(default)]
    unreadable: Option<String>,
}

impl<'de> Deserialize<'de> for MemoryPolicy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::read)
    }
}

impl MemoryPolicy {
    #[must_use]
    pub fn of(mode: MemoryMode) -> Self {
        Self { mode, session_memory: true, tags: Tags::new(), allow: Tags::new(), unreadable: None }
    }

    /// Allows nothing, because what was stored cannot be read.
    #[must_use]
    pub fn closed(why: &str) -> Self {
        let unreadable = Some(cut(why, WHY_CHARS_MAX).0.to_owned());
        Self { session_memory: false, unreadable, ..Self::of(MemoryMode::Off) }
    }

    /// Reads a stored policy. An unreadable policy allows nothing.
    #[must_use]
    pub fn read(stored: Value) -> Self {
        // Always in the same words: what is read from the log and from a record made of it must be equal.
        let Ok(read) = serde_json::from_value::<Stored>(stored) else {
            return Self::closed("it holds what this Lanyard does not understand");
        };
        let Stored { mode, session_memory, tags, allow, unreadable } = read;
        if tags.len() > TAGS_MAX || allow.len() > TAGS_MAX {
            return Self::closed("it has more tags than a policy may have");
        }
        match unreadable {
            Some(why) => Self::closed(&why),
            None => Self { mode, session_memory, tags, allow, unreadable },
        }
    }

    /// This policy, limited to what `above` allows.
    #[must_use]
    pub fn under(&self, above: &Self) -> Self {
        let allow = match (above.mode, self.mode) {
            // There is no list in `full`: one that is narrowed takes the list it is narrowed to.
            (MemoryMode::Selective, MemoryMode::Full) => above.allow.clone(),
            (MemoryMode::Selective, MemoryMode::Off | MemoryMode::SessionOnly | MemoryMode::Selective) => {
                self.allow.intersection(&above.allow).cloned().collect()
            }
            (MemoryMode::Off | MemoryMode::SessionOnly | MemoryMode::Full, _) => self.allow.clone(),
        };
        Self {
            mode: if self.mode.rank() > above.mode.rank() { above.mode } else { self.mode },
            session_memory: self.session_memory && above.session_memory,
            tags: self.tags.union(&above.tags).cloned().collect(),
            allow,
            unreadable: self.unreadable.clone().or_else(|| above.unreadable.clone()),
        }
    }

    /// Whether it allows anything that `above` does not, or leaves out a tag that one puts on everything.
    #[must_use]
    pub fn is_wider_than(&self, above: &Self) -> bool {
        let allows = self.mode == MemoryMode::Selective && above.mode == MemoryMode::Selective;
        self.mode.rank() > above.mode.rank()
            || (self.session_memory && !above.session_memory)
            || (allows && !self.allow.is_subset(&above.allow))
            || !self.tags.is_superset(&above.tags)
    }
}

/// A requested change of a policy; absent fields stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryAsk {
    /// `off`: no memory at all. `session_only`: the session's own. `selective`: long-term too, for tags on the
    /// allow-list. `full`: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<MemoryMode>,
    /// Whether the session has a memory of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_memory: Option<bool>,
    /// Tags that are put on everything that is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Tags that may go into long-term memory in the mode `selective`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
}

impl MemoryAsk {
    /// Asks for exactly this.
    #[must_use]
    pub fn of(policy: &MemoryPolicy) -> Self {
        let texts = |tags: &Tags| Some(tags.iter().map(ToString::to_string).collect());
        Self {
            mode: Some(policy.mode),
            session_memory: Some(policy.session_memory),
            tags: texts(&policy.tags),
            allow: texts(&policy.allow),
        }
    }

    /// The requested values, with `usual` for absent ones. Usual tags are always added.
    #[must_use]
    pub fn or(self, mode: Option<MemoryMode>, usual: &MemoryPolicy) -> Self {
        let Self { mode: own, session_memory, tags, allow } = self;
        let rest = Self::of(usual);
        let tags = tags.unwrap_or_default().into_iter().chain(rest.tags.unwrap_or_default()).collect();
        Self {
            mode: own.or(mode).or(rest.mode),
            session_memory: session_memory.or(rest.session_memory),
            tags: Some(tags),
            allow: allow.or(rest.allow),
        }
    }

    /// The policy that is asked for, starting from `base`. Bad input is refused, never made into something else.
    pub fn onto(&self, base: &MemoryPolicy) -> Result<MemoryPolicy, MemoryRefusal> {
        let list = |field, asked: &Option<Vec<String>>, held: &Tags| match asked {
            Some(texts) => tag::parse(field, texts),
            None => Ok(held.clone()),
        };
        Ok(MemoryPolicy {
            mode: self.mode.unwrap_or(base.mode),
            session_memory: self.session_memory.unwrap_or(base.session_memory),
            tags: list("tags", &self.tags, &base.tags)?,
            allow: list("allow", &self.allow, &base.allow)?,
            // Somebody has looked: what is asked for stands in place of what could not be read.
            unreadable: base.unreadable.clone().filter(|_| self.mode.is_none()),
        })
    }

    /// The policy of a turn: the session's, tightened. Asking for more is refused, not cut.
    pub fn within(&self, session: &MemoryPolicy) -> Result<MemoryPolicy, MemoryRefusal> {
        let mut wanted = self.onto(session)?;
        wanted.tags.extend(session.tags.iter().cloned());
        if wanted.is_wider_than(session) {
            return Err(MemoryRefusal::Wider { of: "the session's" });
        }
        Ok(wanted.under(session))
    }
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
const fn is_true(value: &bool) -> bool {
    *value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selective(allow: &[&str]) -> MemoryPolicy {
        MemoryPolicy { allow: tag::parse("allow", allow).unwrap(), ..MemoryPolicy::of(MemoryMode::Selective) }
    }

    /// S3-25.
    #[test]
    fn the_default_remembers_within_the_session_only() {
        let policy = MemoryPolicy::default();
        assert_eq!((policy.mode, policy.session_memory), (MemoryMode::SessionOnly, true));
        assert_eq!(serde_json::to_value(&policy).unwrap(), json!({ "mode": "session_only" }));
        assert_eq!(MemoryPolicy::read(json!({ "mode": "session_only" })), policy);
    }

    /// S3-B08: only what is stored falls back, to the one that allows least, and says so.
    #[test]
    fn a_stored_policy_that_cannot_be_read_allows_nothing_and_says_so() {
        for stored in [
            json!({ "mode": "everything" }),
            json!({}),
            json!(null),
            json!("full"),
            json!({ "mode": "full", "tags": ["a,b"] }),
            json!({ "mode": "full", "session_memory": "yes" }),
            json!({ "mode": "full", "allow": (0..99).map(|n| format!("t{n}")).collect::<Vec<_>>() }),
        ] {
            let policy: MemoryPolicy = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!((policy.mode, policy.session_memory), (MemoryMode::Off, false), "{stored}");
            assert!(policy.unreadable.is_some(), "{stored}");
            // It stays what it is, however often it is written and read.
            assert_eq!(MemoryPolicy::read(serde_json::to_value(&policy).unwrap()), policy);
        }
    }

    #[test]
    fn what_is_asked_for_is_strict_and_normalised() {
        let ask = |value| serde_json::from_value::<MemoryAsk>(value);
        assert!(ask(json!({ "mode": "ful" })).unwrap_err().to_string().contains("session_only"));
        assert!(ask(json!({ "mod": "full" })).is_err());
        let asked =
            ask(json!({ "tags": ["Run 7", "run-7"] })).unwrap().onto(&MemoryPolicy::default()).unwrap();
        assert_eq!(tag::joined(&asked.tags), "run-7");
        let bad = ask(json!({ "allow": ["a,b"] })).unwrap();
        assert_eq!(bad.onto(&MemoryPolicy::default()).unwrap_err().code(), "memory_tag_bad");
    }

    #[test]
    fn a_turn_may_ask_for_less_and_not_for_more() {
        let session = selective(&["design", "api"]);
        let ask = |value| serde_json::from_value::<MemoryAsk>(value).unwrap().within(&session);
        assert_eq!(ask(json!({ "mode": "off" })).unwrap().mode, MemoryMode::Off);
        assert_eq!(tag::joined(&ask(json!({ "allow": ["api"] })).unwrap().allow), "api");
        assert_eq!(tag::joined(&ask(json!({ "tags": ["run-7"] })).unwrap().tags), "run-7");
        for wider in [json!({ "mode": "full" }), json!({ "allow": ["other"] })] {
            assert_eq!(ask(wider).unwrap_err().code(), "memory_policy_wider");
        }
    }

    #[test]
    fn narrowing_full_to_selective_takes_the_list_above() {
        let below = MemoryPolicy::of(MemoryMode::Full).under(&selective(&["api"]));
        assert_eq!(below, selective(&["api"]));
    }

    /// Somebody who sets the mode has looked, and the warning is over.
    #[test]
    fn setting_the_mode_ends_the_fallback() {
        let closed = MemoryPolicy::closed("torn");
        let ask = MemoryAsk { tags: Some(Vec::new()), ..MemoryAsk::default() };
        assert!(ask.onto(&closed).unwrap().unreadable.is_some());
        let ask = MemoryAsk { mode: Some(MemoryMode::Full), ..ask };
        assert_eq!(ask.onto(&closed).unwrap().unreadable, None);
    }
}
