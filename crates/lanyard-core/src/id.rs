//! Ids: a prefix that names the noun and a `UUIDv7` in Crockford base32 (the `TypeID` form).
//!
//! An id is a handle, never a secret and never parsed for meaning. Minting one needs a time and random bits, and both
//! arrive as data: nothing here reads a clock.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// 128 bits in groups of five, the first group holding only three.
pub(crate) const SUFFIX_LEN: usize = 26;

/// The fault of a text that is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("expected an id that starts with `{0}_`")]
    Prefix(&'static str),
    #[error("expected 26 characters of base32 after the prefix")]
    Suffix,
}

/// The 128 bits of a `UUIDv7` made of a time and random bits.
#[must_use]
pub fn uuid_v7(at: Timestamp, random: u128) -> u128 {
    let millis = u128::from(at.as_millis().max(0).unsigned_abs()) & 0xFFFF_FFFF_FFFF;
    let random_a = (random >> 64) & 0xFFF;
    let random_b = random & 0x3FFF_FFFF_FFFF_FFFF;
    (millis << 80) | (0x7 << 76) | (random_a << 64) | (0b10 << 62) | random_b
}

/// Bytes of the longest prefix there may be, and of the longest id.
const PREFIX_MAX: usize = 8;
const LEN_MAX: usize = PREFIX_MAX + 1 + SUFFIX_LEN;

/// An id as text, without a place on the heap.
struct Text {
    bytes: [u8; LEN_MAX],
    len: usize,
}

impl Text {
    fn of(prefix: &str, mut value: u128) -> Self {
        let mut bytes = [b'_'; LEN_MAX];
        let start = prefix.len() + 1;
        bytes[..prefix.len()].copy_from_slice(prefix.as_bytes());
        for place in bytes[start..start + SUFFIX_LEN].iter_mut().rev() {
            *place = ALPHABET[(value & 0x1F) as usize];
            value >>= 5;
        }
        Self { bytes, len: start + SUFFIX_LEN }
    }

    fn as_str(&self) -> &str {
        // Prefixes and the alphabet are ASCII.
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

/// The value of each byte; more than 31 for bytes outside the alphabet.
const VALUES: [u8; 256] = {
    let mut values = [u8::MAX; 256];
    let mut five: u8 = 0;
    while (five as usize) < ALPHABET.len() {
        values[ALPHABET[five as usize] as usize] = five;
        five += 1;
    }
    values
};

fn decode(prefix: &'static str, text: &str) -> Result<u128, IdError> {
    let suffix =
        text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')).ok_or(IdError::Prefix(prefix))?;
    let suffix: &[u8; SUFFIX_LEN] = suffix.as_bytes().try_into().map_err(|_| IdError::Suffix)?;
    let mut value: u128 = 0;
    for (at, byte) in suffix.iter().enumerate() {
        let five = VALUES[usize::from(*byte)];
        // The first character carries three bits; more would not fit.
        if five > if at == 0 { 7 } else { 31 } {
            return Err(IdError::Suffix);
        }
        value = (value << 5) | u128::from(five);
    }
    Ok(value)
}

/// The value of base32 characters, first character first; `None` for any other text.
pub(crate) fn base32(text: &str) -> Option<u128> {
    text.bytes().try_fold(0, |value: u128, byte| {
        let five = VALUES[usize::from(byte)];
        (five <= 31).then_some((value << 5) | u128::from(five))
    })
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {
    /// The prefixes of all ids.
    pub(crate) const PREFIXES: &[&str] = &[$($prefix),*];

    $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        const _: () = assert!($prefix.len() <= PREFIX_MAX);

        impl $name {
            /// The word before the underscore.
            pub const PREFIX: &'static str = $prefix;

            #[must_use]
            pub fn mint(at: Timestamp, random: u128) -> Self {
                Self(uuid_v7(at, random))
            }

            #[must_use]
            pub const fn from_u128(value: u128) -> Self {
                Self(value)
            }

            #[must_use]
            pub const fn as_u128(self) -> u128 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Text::of($prefix, self.0).as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                decode($prefix, text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(Text::of($prefix, self.0).as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": concat!("^", $prefix, "_[0-7][0-9a-hjkmnp-tv-z]{25}$"),
                })
            }
        }
    )*};
}

/// The prefix of a whole id of any kind; `None` for any other text.
#[must_use]
pub fn whole(text: &str) -> Option<&'static str> {
    PREFIXES.iter().copied().find(|prefix| decode(prefix, text).is_ok())
}

ids! {
    /// One conversation with one agent.
    SessionId = "sess";
    /// One prompt and everything the agent does until it stops.
    TurnId = "turn";
    /// A directory agents work in.
    WorkspaceId = "ws";
    /// The stable executor of a task.
    WorkerId = "worker";
    /// Words sent into a running agent.
    NoteId = "note";
    /// One incarnation of an agent.
    RunId = "run";
    /// A question that waits for a person.
    GateId = "gate";
    /// Work and its steps.
    PlanId = "plan";
    /// A piece of work that somebody is to do.
    TaskId = "task";
    /// A plan being worked through by an author and a reviewer.
    FlowId = "flow";
    /// A message between those who work for each other.
    MailId = "mail";
    /// A notification for operators.
    NotificationId = "ntf";
    /// A notification on its way to one receiver.
    DeliveryId = "dlv";
    /// An entry of memory.
    MemoryId = "mem";
    /// The same message to several agents, each in a worktree of its own.
    ComparisonId = "cmp";
    /// A comment on lines of a session's changes.
    CommentId = "cmt";
    /// A client attached to a session.
    ConnectionId = "conn";
    /// One daemon.
    NodeId = "node";
    /// A bearer token's handle; the token itself is never stored.
    TokenId = "tok";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_prefix_and_base32_and_round_trips() {
        let id = SessionId::mint(
            Timestamp::from_millis(1_794_729_600_000),
            0x0123_4567_89ab_cdef_0123_4567_89ab_cdef,
        );
        assert_eq!(id.to_string(), "sess_01m7f3gs00fqqr28t5cy4tqkff");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(serde_json::from_str::<SessionId>(&serde_json::to_string(&id).unwrap()).unwrap(), id);
    }

    #[test]
    fn other_texts_are_refused_with_what_was_expected() {
        let error = |text: &str| text.parse::<SessionId>().unwrap_err();
        assert_eq!(error("turn_01m7n5djg0fayvh8t5cxyjkdnf"), IdError::Prefix("sess"));
        assert_eq!(error("sess_short"), IdError::Suffix);
        assert_eq!(error("sess_81m7n5djg0fayvh8t5cxyjkdnf"), IdError::Suffix);
        assert_eq!(error("sess_01m7n5djg0fayvh8t5cxyjkdnu"), IdError::Suffix);
    }

    /// S4-B04: later ids sort after earlier ones, as text too.
    #[test]
    fn ids_sort_by_time() {
        let early = SessionId::mint(Timestamp::from_millis(1_000), u128::MAX);
        let late = SessionId::mint(Timestamp::from_millis(1_001), 0);
        assert!(early < late && early.to_string() < late.to_string());
    }
}
