//! Retention of an entry, by its tags. `retain` outranks the other tags: an entry that has it is never swept. Of the
//! other two, the shorter one counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::memory::{Tag, Tags};

/// Of a test or an experiment.
pub const DEV_TEST: &str = "dev_test";
/// Never swept.
pub const RETAIN: &str = "retain";
/// Needed for a moment only.
pub const DISCARD: &str = "discard";

const HOUR_MS: u64 = 3_600_000;

/// The retention class of an entry, from its tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Retention {
    Discard,
    DevTest,
    /// No retention tag: kept as long as the rules say.
    Usual,
    Retain,
}

impl Retention {
    pub const ALL: [Self; 4] = [Self::Discard, Self::DevTest, Self::Usual, Self::Retain];

    #[must_use]
    pub fn of(tags: &Tags) -> Self {
        let has = |wanted: &str| tags.iter().map(Tag::as_str).any(|tag| tag == wanted);
        match () {
            () if has(RETAIN) => Self::Retain,
            () if has(DISCARD) => Self::Discard,
            () if has(DEV_TEST) => Self::DevTest,
            () => Self::Usual,
        }
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Discard => DISCARD,
            Self::DevTest => DEV_TEST,
            Self::Usual => "usual",
            Self::Retain => RETAIN,
        }
    }
}

/// Time that entries are kept after their last write, in milliseconds; 0 means without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionRules {
    pub discard_ms: u64,
    pub dev_test_ms: u64,
    pub usual_ms: u64,
}

impl Default for RetentionRules {
    fn default() -> Self {
        Self { discard_ms: HOUR_MS, dev_test_ms: 7 * 24 * HOUR_MS, usual_ms: 0 }
    }
}

impl RetentionRules {
    /// Time that entries of this class are kept; `None` means without a limit.
    #[must_use]
    pub fn keeps_ms(&self, retention: Retention) -> Option<u64> {
        let ms = match retention {
            Retention::Discard => self.discard_ms,
            Retention::DevTest => self.dev_test_ms,
            Retention::Usual => self.usual_ms,
            Retention::Retain => 0,
        };
        (ms > 0).then_some(ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tag;

    /// S3-31. FND-M12: the config promises that entries tagged `retain` are always kept.
    #[test]
    fn fnd_m12_retain_outranks_the_other_tags() {
        for (tags, wanted) in [
            (&["x"][..], Retention::Usual),
            (&["retain", "x"], Retention::Retain),
            (&["dev_test", "retain"], Retention::Retain),
            (&["retain", "dev_test", "discard"], Retention::Retain),
            (&["dev_test", "discard"], Retention::Discard),
        ] {
            assert_eq!(Retention::of(&tag::parse("tags", tags).unwrap()), wanted);
        }
    }

    #[test]
    fn what_is_to_be_retained_has_no_end() {
        let rules = RetentionRules { usual_ms: 5, ..RetentionRules::default() };
        assert_eq!(rules.keeps_ms(Retention::Retain), None);
        assert_eq!(rules.keeps_ms(Retention::Usual), Some(5));
        assert_eq!(RetentionRules::default().keeps_ms(Retention::Usual), None);
        assert!(rules.keeps_ms(Retention::Discard) < rules.keeps_ms(Retention::DevTest));
    }
}
