//! Whether two tasks would write the same files. Patterns are compared by what stands before their first wildcard, so
//! that a doubt counts as a conflict.

/// A file or pattern of `one` that may name the same as one of `other`.
#[must_use]
pub fn conflict<'a>(one: &'a [String], other: &[String]) -> Option<&'a str> {
    one.iter().find(|one| other.iter().any(|other| overlap(one, other))).map(String::as_str)
}

fn overlap(one: &str, other: &str) -> bool {
    let (one, one_open) = stem(one);
    let (other, other_open) = stem(other);
    within(one, other, other_open) || within(other, one, one_open)
}

/// The literal start of a pattern, and whether any text may follow.
fn stem(pattern: &str) -> (&str, bool) {
    let pattern = pattern.trim().trim_start_matches("./");
    match pattern.find(['*', '?', '[']) {
        Some(at) => (&pattern[..at], true),
        None => (pattern.trim_end_matches('/'), false),
    }
}

/// Whether `path` may be the same as `place`, or lie in it.
fn within(path: &str, place: &str, open: bool) -> bool {
    match path.strip_prefix(place) {
        Some(rest) => open || rest.is_empty() || rest.starts_with('/') || place.is_empty(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_conflict_when_they_may_be_the_same() {
        for (one, other, expected) in [
            ("src/a.rs", "src/a.rs", true),
            ("src/a.rs", "src/b.rs", false),
            ("src", "src/a.rs", true),
            ("src/", "./src/a.rs", true),
            ("src/a", "src/ab.rs", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/**", "tests/a.rs", false),
            ("src/a*", "src/ab/c.rs", true),
            ("*", "anything", true),
            ("docs/x.md", "doc", false),
        ] {
            let both = [(one, other), (other, one)];
            for (one, other) in both {
                let found = conflict(&[one.to_owned()], &[other.to_owned()]).is_some();
                assert_eq!(found, expected, "{one} and {other}");
            }
        }
        assert_eq!(conflict(&[], &["a".to_owned()]), None);
    }
}
