//! Product code: the lines of each crate, and type names that are defined in more than one file.
//!
//! Tests, blank lines and comments do not count.

use std::collections::{BTreeMap, BTreeSet};

/// Folders that hold no product code.
const OTHER_FOLDERS: [&str; 6] = ["benches", "examples", "fixtures", "lanyard-testkit", "traces", "testing"];
/// Names shown of a long list.
const NAMED_MAX: usize = 8;

/// A Rust file without its tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) lines: Vec<String>,
}

impl Source {
    /// The product code of a file; nothing when the file holds only tests.
    pub(super) fn read(path: &str, text: &str) -> Option<Source> {
        let lines = || without_tests(text).map(|(_, line)| line.to_owned()).collect();
        is_product(path).then(|| Source { path: path.to_owned(), lines: lines() })
    }

    /// The crate a file belongs to.
    pub(super) fn crate_name(&self) -> &str {
        let within = self.path.strip_prefix("crates/").unwrap_or(&self.path);
        within.split('/').next().unwrap_or(within)
    }
}

/// Whether a Rust file belongs to the product, by its path.
pub(super) fn is_product(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let Some(stem) = name.strip_suffix(".rs") else { return false };
    let is_word = |folder: &str| folder.chars().all(|c| c.is_alphanumeric() || c == '_');
    let other = |folder: &str| {
        let tests = is_word(folder) && (folder.ends_with("test") || folder.ends_with("tests"));
        tests || OTHER_FOLDERS.contains(&folder) || folder.contains("proptest-regressions")
    };
    let tests = stem.ends_with("_test") || stem.ends_with("_tests") || ["tests", "testing"].contains(&stem);
    !tests && !folders.split('/').any(other)
}

/// The lines of a file without the items under `#[cfg(test)]`, with their numbers from 1.
pub(super) fn without_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // Inside of such an item: its open braces, and whether there was one.
    let mut skipped: Option<(isize, bool)> = None;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let Some((depth, opened)) = skipped.as_mut() else {
            if line.trim_start().starts_with("#[cfg(test)]") {
                skipped = Some((0, false));
            }
            return skipped.is_none();
        };
        for c in line.chars() {
            match c {
                '{' => (*depth, *opened) = (*depth + 1, true),
                '}' => *depth -= 1,
                _ => {}
            }
        }
        let ended = if *opened { *depth <= 0 } else { line.trim_end().ends_with(';') };
        if ended {
            skipped = None;
        }
        false
    })
}

/// Lines of product code of each crate.
pub(super) fn lines(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for source in sources {
        let is_code = |line: &&String| !line.trim().is_empty() && !line.trim().starts_with("//");
        *counts.entry(source.crate_name().to_owned()).or_default() +=
            source.lines.iter().filter(is_code).count();
    }
    counts
}

/// Type names that more than one file defines, with the number of files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Duplicates {
    pub(super) all: BTreeMap<String, usize>,
    /// Counts only definitions that are `pub`.
    pub(super) public: BTreeMap<String, usize>,
}

pub(super) fn duplicates(sources: &[Source]) -> Duplicates {
    let mut all: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut public: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for source in sources {
        for (name, is_public) in source.lines.iter().filter_map(|line| defined_type(line)) {
            all.entry(name.to_owned()).or_default().insert(&source.path);
            if is_public {
                public.entry(name.to_owned()).or_default().insert(&source.path);
            }
        }
    }
    let repeated = |names: BTreeMap<String, BTreeSet<&str>>| {
        names.into_iter().map(|(name, files)| (name, files.len())).filter(|(_, files)| *files > 1).collect()
    };
    Duplicates { all: repeated(all), public: repeated(public) }
}

/// The type that a line defines, and whether it is `pub`.
fn defined_type(line: &str) -> Option<(&str, bool)> {
    let line = line.trim();
    let rest = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let rest = ["struct ", "enum ", "trait ", "union "].iter().find_map(|word| rest.strip_prefix(word))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (end > 0).then(|| (&rest[..end], line.starts_with("pub ")))
}

/// Counts with the largest first, as `lanyard-core 12, xtask 3`.
pub(super) fn listed(counts: &BTreeMap<String, usize>, before_count: &str) -> String {
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), name.as_str()));
    let shown: Vec<_> =
        sorted.iter().take(NAMED_MAX).map(|(name, count)| format!("{name} {before_count}{count}")).collect();
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Vec<Source> {
        files.iter().filter_map(|(path, text)| Source::read(path, text)).collect()
    }

    #[test]
    fn tests_are_no_product() {
        for path in ["crates/a/src/b.rs", "crates/a/src/b/c.rs", "xtask/src/test.rs", "crates/a/build.rs"] {
            assert!(is_product(path), "{path}");
        }
        for path in [
            "crates/a/tests/it/main.rs",
            "crates/a/src/b_tests.rs",
            "crates/a/src/b/tests.rs",
            "crates/a/src/b_tests/c.rs",
            "xtask/src/test/left.rs",
            "crates/a/benches/goals/main.rs",
            "crates/a/examples/x.rs",
            "crates/a/src/testing.rs",
            "README.md",
        ] {
            assert!(!is_product(path), "{path}");
        }
    }

    #[test]
    fn blanks_comments_and_inline_tests_do_not_count() {
        let text = "//! Doc.\n\nfn a() {\n    // why\n    b();\n}\n\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n#[cfg(test)]\n#[path = \"x\"]\nmod other;\nfn d() {}\n";
        let counts =
            lines(&sources(&[("crates/a/src/lib.rs", text), ("xtask/src/main.rs", "fn main() {}\n")]));
        assert_eq!(listed(&counts, ""), "a 4, xtask 1");
    }

    #[test]
    fn a_name_in_two_files_is_a_duplicate_and_one_file_may_repeat_it() {
        let found = duplicates(&sources(&[
            (
                "crates/a/src/x.rs",
                "pub struct Place;\npub(crate) enum Told {}\nstruct Own;\nstruct Own<T>;\n",
            ),
            ("crates/b/src/y.rs", "pub trait Place {}\nstruct Told;\npub union Other {}\n"),
        ]));
        assert_eq!(listed(&found.all, "x"), "Place x2, Told x2");
        assert_eq!(listed(&found.public, "x"), "Place x2");
    }
}
