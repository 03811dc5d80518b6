//! Whether a write may go where it wants to. The one place that says so: tools, API, summaries, imports and children all
//! ask here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::memory::{MemoryPolicy, Tags, Where};
use crate::policy::MemoryMode;
use crate::refusals;

refusals! {
    /// Why a write may not go there.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, thiserror::Error)]
    #[serde(rename_all = "snake_case")]
    pub enum Rule {
        /// The stored policy cannot be read, so nothing is allowed.
        Unreadable => "memory_policy_unreadable", Conflict
            ("the session's memory policy cannot be read, so nothing may be written")
            ("an operator sets it again with `lanyard memory policy SESSION --mode …`");
        /// The mode is `off`.
        Off => "memory_off", Conflict
            ("the memory policy is off: nothing may be written")
            ("go on without it; an operator can change that with `lanyard memory policy`");
        /// The session has no memory of its own.
        NoSessionMemory => "memory_session_off", Conflict
            ("the memory policy gives the session no memory of its own")
            ("use the scope workspace where that is allowed; an operator can change it with `lanyard memory policy`");
        /// The mode is `session_only`, and the write was for long-term memory.
        SessionOnly => "memory_session_only", Conflict
            ("the memory policy is session_only: nothing may go into long-term memory")
            ("use the scope session; an operator can allow more with `lanyard memory policy SESSION --mode selective`");
        /// The mode is `selective`, and none of the write's tags is on the allow-list.
        NotAllowListed => "memory_tag_not_allowed", Conflict
            ("the memory policy is selective, and none of the write's tags is on its allow-list")
            ("tag it with one of the allow-list, or use the scope session; `lanyard memory policy` shows the list");
    }
}

impl Rule {
    pub const ALL: [Self; 5] =
        [Self::Unreadable, Self::Off, Self::NoSessionMemory, Self::SessionOnly, Self::NotAllowListed];
}

/// The store of an admitted write, and the tags that the entry has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    pub to: Where,
    pub tags: Tags,
}

/// Judges a write. The policy's own tags are put on it first, and count as its own.
pub fn admit(policy: &MemoryPolicy, to: Where, tags: &Tags) -> Result<Admitted, Rule> {
    if policy.unreadable.is_some() {
        return Err(Rule::Unreadable);
    }
    let tags: Tags = tags.union(&policy.tags).cloned().collect();
    match (to, policy.mode) {
        (_, MemoryMode::Off) => Err(Rule::Off),
        (Where::Session, _) if !policy.session_memory => Err(Rule::NoSessionMemory),
        (Where::Session, MemoryMode::SessionOnly | MemoryMode::Selective | MemoryMode::Full) => {
            Ok(Admitted { to, tags })
        }
        (Where::LongTerm, MemoryMode::SessionOnly) => Err(Rule::SessionOnly),
        (Where::LongTerm, MemoryMode::Selective) if tags.is_disjoint(&policy.allow) => {
            Err(Rule::NotAllowListed)
        }
        (Where::LongTerm, MemoryMode::Selective | MemoryMode::Full) => Ok(Admitted { to, tags }),
    }
}

/// Whether a session may look into a store: a mode that forbids writing to long-term memory does not forbid
/// reading it; `off` forbids both.
#[must_use]
pub fn readable(policy: &MemoryPolicy, from: Where) -> bool {
    let on = policy.mode != MemoryMode::Off && policy.unreadable.is_none();
    match from {
        Where::Session => on && policy.session_memory,
        Where::LongTerm => on,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tag;

    fn judged(policy: &MemoryPolicy, tags: &[&str]) -> [Result<String, &'static str>; 2] {
        let tags = tag::parse("tags", tags).unwrap();
        [Where::Session, Where::LongTerm].map(|to| {
            admit(policy, to, &tags).map(|admitted| tag::joined(&admitted.tags)).map_err(|rule| rule.code())
        })
    }

    #[expect(clippy::unnecessary_wraps, reason = "it stands beside what is refused")]
    fn ok(tags: &str) -> Result<String, &'static str> {
        Ok(tags.to_owned())
    }

    /// S3-26, S3-27, S3-28, S3-29, S3-T7.
    #[test]
    fn each_mode_allows_what_it_says() {
        let mode = MemoryPolicy::of;
        assert_eq!(judged(&mode(MemoryMode::Off), &[]), [Err("memory_off"), Err("memory_off")]);
        assert_eq!(judged(&mode(MemoryMode::SessionOnly), &[]), [ok(""), Err("memory_session_only")]);
        let selective =
            MemoryPolicy { allow: tag::parse("allow", &["design"]).unwrap(), ..mode(MemoryMode::Selective) };
        assert_eq!(judged(&selective, &["other"]), [ok("other"), Err("memory_tag_not_allowed")]);
        assert_eq!(judged(&selective, &["design", "x"]), [ok("design, x"), ok("design, x")]);
        assert_eq!(judged(&mode(MemoryMode::Selective), &["x"]), [ok("x"), Err("memory_tag_not_allowed")]);
        assert_eq!(judged(&mode(MemoryMode::Full), &["x"]), [ok("x"), ok("x")]);
        let alone = MemoryPolicy { session_memory: false, ..mode(MemoryMode::Full) };
        assert_eq!(judged(&alone, &[]), [Err("memory_session_off"), ok("")]);
        let unreadable = Err("memory_policy_unreadable");
        assert_eq!(judged(&MemoryPolicy::closed("torn"), &[]), [unreadable.clone(), unreadable]);
    }

    /// S3-31: the tags of the run are on everything, and count.
    #[test]
    fn tags_of_the_run_decorate_every_write() {
        let mut policy = MemoryPolicy::of(MemoryMode::Selective);
        policy.tags = tag::parse("tags", &["dev_test"]).unwrap();
        policy.allow = policy.tags.clone();
        assert_eq!(judged(&policy, &["x"]), [ok("dev_test, x"), ok("dev_test, x")]);
    }

    /// S3-30.
    #[test]
    fn what_may_not_be_written_may_still_be_read_unless_memory_is_off() {
        let both =
            |policy: &MemoryPolicy| [Where::Session, Where::LongTerm].map(|from| readable(policy, from));
        assert_eq!(both(&MemoryPolicy::of(MemoryMode::Off)), [false, false]);
        assert_eq!(both(&MemoryPolicy::closed("torn")), [false, false]);
        for mode in [MemoryMode::SessionOnly, MemoryMode::Selective, MemoryMode::Full] {
            assert_eq!(both(&MemoryPolicy::of(mode)), [true, true]);
            let without = MemoryPolicy { session_memory: false, ..MemoryPolicy::of(mode) };
            assert_eq!(both(&without), [false, true]);
        }
    }
}
