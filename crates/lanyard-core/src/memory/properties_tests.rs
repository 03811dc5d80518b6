//! For every policy and every write: nothing gets into a store that any policy above it forbids.

use proptest::prelude::*;

use crate::memory::{MemoryAsk, MemoryPolicy, Retention, RetentionRules, Tag, Tags, Where, admit, readable};
use crate::policy::MemoryMode;

fn tag() -> impl Strategy<Value = Tag> {
    prop::sample::select(&["api", "design", "dev_test", "retain", "discard"][..])
        .prop_map(|text| text.parse().unwrap())
}

fn tags() -> impl Strategy<Value = Tags> {
    prop::collection::btree_set(tag(), 0..4)
}

fn policy() -> impl Strategy<Value = MemoryPolicy> {
    let unreadable = prop::option::weighted(0.1, Just("torn"));
    (prop::sample::select(&MemoryMode::ALL[..]), any::<bool>(), tags(), tags(), unreadable).prop_map(
        |(mode, session_memory, tags, allow, unreadable)| match unreadable {
            Some(why) => MemoryPolicy::closed(why),
            None => MemoryPolicy { mode, session_memory, tags, allow, unreadable: None },
        },
    )
}

fn ask() -> impl Strategy<Value = MemoryAsk> {
    let words = || prop::option::of(tags().prop_map(|tags| tags.iter().map(ToString::to_string).collect()));
    (prop::option::of(prop::sample::select(&MemoryMode::ALL[..])), any::<Option<bool>>(), words(), words())
        .prop_map(|(mode, session_memory, tags, allow)| MemoryAsk { mode, session_memory, tags, allow })
}

fn to() -> impl Strategy<Value = Where> {
    prop::sample::select(&Where::ALL[..])
}

proptest! {
    /// S3-26 to S3-29, said once more and differently.
    #[test]
    fn nothing_is_admitted_that_its_policy_forbids(policy in policy(), to in to(), tags in tags()) {
        if let Ok(admitted) = admit(&policy, to, &tags) {
            prop_assert_eq!(admitted.to, to);
            prop_assert!(policy.mode != MemoryMode::Off && policy.unreadable.is_none());
            prop_assert!(admitted.tags.is_superset(&tags) && admitted.tags.is_superset(&policy.tags));
            match to {
                Where::Session => prop_assert!(policy.session_memory),
                Where::LongTerm => prop_assert!(
                    policy.mode == MemoryMode::Full
                        || (policy.mode == MemoryMode::Selective && !admitted.tags.is_disjoint(&policy.allow))
                ),
            }
        }
    }

    /// FND-M12, S3-31: whatever else an entry and its session are tagged with, `retain` keeps it for ever.
    #[test]
    fn fnd_m12_what_is_tagged_retain_is_never_due(
        policy in policy(),
        to in to(),
        tags in tags(),
        (discard_ms, dev_test_ms, usual_ms) in any::<(u64, u64, u64)>(),
    ) {
        let rules = RetentionRules { discard_ms, dev_test_ms, usual_ms };
        let kept = admit(&policy, to, &tags).map_or(tags, |admitted| admitted.tags);
        let keeps = rules.keeps_ms(Retention::of(&kept));
        if kept.iter().any(|tag| tag.as_str() == "retain") {
            prop_assert_eq!(keeps, None);
        } else {
            // Without it the shortest time of its tags counts.
            let has = |wanted: &str| kept.iter().any(|tag| tag.as_str() == wanted);
            let ms = if has("discard") { discard_ms } else if has("dev_test") { dev_test_ms } else { usual_ms };
            prop_assert_eq!(keeps, (ms > 0).then_some(ms));
        }
    }

    /// A family is never widened from below, however deep: what gets through at the bottom would have at every level.
    #[test]
    fn what_is_admitted_below_is_admitted_above(
        chain in prop::collection::vec(policy(), 1..5),
        to in to(),
        tags in tags(),
    ) {
        let root = chain[0].clone();
        let bottom = chain.iter().skip(1).fold(root, |above, below| below.under(&above));
        if let Ok(admitted) = admit(&bottom, to, &tags) {
            for above in &chain {
                prop_assert!(admit(above, to, &admitted.tags).is_ok(), "{above:?}");
            }
        }
        for from in Where::ALL {
            if readable(&bottom, from) {
                prop_assert!(chain.iter().all(|above| readable(above, from)));
            }
        }
        prop_assert!(!bottom.is_wider_than(&chain[0]));
    }

    /// What a turn is granted is never more than its session has.
    #[test]
    fn a_turn_is_never_wider_than_its_session(session in policy(), ask in ask()) {
        if let Ok(turn) = ask.within(&session) {
            prop_assert!(!turn.is_wider_than(&session));
            prop_assert_eq!(turn.under(&session), turn);
        }
    }

    /// S3-25: written and read again it is the same, and so is what was normalised.
    #[test]
    fn a_policy_survives_being_stored(policy in policy()) {
        let stored = serde_json::to_value(&policy).unwrap();
        prop_assert_eq!(MemoryPolicy::read(stored), policy);
    }

    #[test]
    fn no_stored_text_makes_it_panic_or_opens_it(text in "\\PC{0,80}") {
        let stored = serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text));
        let policy = MemoryPolicy::read(stored);
        prop_assert!(policy.unreadable.is_none() || policy.mode == MemoryMode::Off);
    }
}
