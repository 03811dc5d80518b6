//! Which packages are built in more than one version, read from `cargo tree`.
//!
//! `cargo metadata` would be easier to read, but its graph has edges that no build follows: an
//! optional package that only a weak feature (`package?/feature`) names is in it. The tree is
//! what cargo really builds for this host.

use std::collections::{BTreeMap, BTreeSet};

/// What to ask cargo for: the lines that [`duplicates`] reads. Without dev dependencies: a second
/// version in tests costs only this repository.
pub(super) const TREE: &[&str] =
    &["tree", "--locked", "--workspace", "--edges=normal,build", "--prefix=none", "--format={p}"];

/// Packages built in more than one version, each with its version lines, oldest first.
pub(super) fn duplicates(tree: &str) -> BTreeMap<String, Vec<String>> {
    let mut versions: BTreeMap<&str, BTreeSet<Version>> = BTreeMap::new();
    for (name, version) in tree.lines().filter_map(package) {
        let _new = versions.entry(name).or_default().insert(version);
    }
    let lines = |all: BTreeSet<Version>| all.into_iter().map(line).collect();
    let duplicates = versions.into_iter().filter(|(_, all)| all.len() > 1);
    duplicates.map(|(name, all)| (name.to_owned(), lines(all))).collect()
}

/// `name v1.2.3`, perhaps with remarks in brackets after it.
fn package(text: &str) -> Option<(&str, Version)> {
    let mut words = text.split_whitespace();
    let name = words.next()?;
    Some((name, version(words.next()?.strip_prefix('v')?)))
}

/// A version as far as it orders: what comes after `-` or `+` is left out.
type Version = [u64; 3];

fn version(text: &str) -> Version {
    let mut numbers = text.split(['-', '+']).next().unwrap_or_default().split('.');
    std::array::from_fn(|_| numbers.next().and_then(|n| n.parse().ok()).unwrap_or_default())
}

/// The part of a version that does not change in compatible updates. Cargo never picks two
/// versions of one line, so it is as precise as the whole, and outlives `cargo update`.
fn line([major, minor, patch]: Version) -> String {
    match (major, minor) {
        (0, 0) => format!("0.0.{patch}"),
        (0, _) => format!("0.{minor}"),
        _ => major.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_listed_oldest_first() {
        let tree = "ours v0.1.0 (/src/ours)\na v1.0.0 (proc-macro)\nx v0.10.2\n\nother v0.1.0\n\
            x v0.9.1\nx v0.10.2\na v1.0.0 (proc-macro)\n";
        let expected = ("x".to_owned(), vec!["0.9".to_owned(), "0.10".to_owned()]);
        assert_eq!(duplicates(tree), BTreeMap::from([expected]));
    }

    #[test]
    fn a_line_is_what_compatible_updates_keep() {
        let check = |text| line(version(text));
        assert_eq!(check("1.2.3"), "1");
        assert_eq!(check("0.15.5"), "0.15");
        assert_eq!(check("0.0.7"), "0.0.7");
        assert_eq!(check("1.0.0-rc.1+meta"), "1");
    }
}
