//! Requirement ids: tests name them, product source does not, and one page lists them all.

use std::collections::BTreeSet;

use super::Finding;
use super::checks::{extension, is_test_file};
use super::product::{is_product, without_tests};

/// The page that lists every id.
const PAGE: &str = "docs/requirements.md";
/// Files that may name an id, by extension: sources, pages, and scenarios with their transcripts.
const EXTENSIONS: [&str; 7] = ["rs", "ts", "svelte", "json", "md", "txt", "out"];

/// A requirement id and the place that names it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention {
    path: String,
    line: usize,
    id: String,
    in_product: bool,
}

/// The requirement ids that a file names.
pub(super) fn mentions(path: &str, text: &str) -> Vec<Mention> {
    let product = if extension(path) == "rs" {
        is_product(path)
    } else {
        ["web/src/", "editors/vscode/src/", "schema/"].iter().any(|folder| path.starts_with(folder))
            && !is_test_file(path)
    };
    let product_lines: BTreeSet<usize> =
        if product { without_tests(text).map(|(number, _)| number).collect() } else { BTreeSet::new() };
    let mut found = Vec::new();
    for (line, words) in (1..).zip(text.lines()).filter(|_| EXTENSIONS.contains(&extension(path))) {
        let in_product = product_lines.contains(&line);
        found.extend(ids(words).map(|id| Mention {
            path: path.to_owned(),
            line,
            id: id.to_owned(),
            in_product,
        }));
    }
    found
}

/// The ids of a line: an area, a hyphen, perhaps a letter, and digits.
fn ids(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
    words.filter(|word| {
        let Some((area, number)) = word.split_once('-') else { return false };
        let digits = number.strip_prefix(['B', 'O', 'T']).unwrap_or(number);
        ["S0", "S1", "S2", "S3", "S4", "X"].contains(&area)
            && !digits.is_empty()
            && digits.chars().all(|c| c.is_ascii_digit())
    })
}

/// Ids in product source, and ids that the page does not list.
pub(super) fn check(mentions: &[Mention]) -> Vec<Finding> {
    let listed: BTreeSet<&str> =
        mentions.iter().filter(|mention| mention.path == PAGE).map(|mention| mention.id.as_str()).collect();
    let wrong = mentions.iter().filter_map(|Mention { path, line, id, in_product }| {
        if !in_product && listed.contains(id.as_str()) {
            return None;
        }
        let message = if *in_product {
            format!("`{id}` belongs in a test: say the reason in words, or leave it out")
        } else {
            format!("`{id}` is not listed in {PAGE}")
        };
        Some(Finding::error(path, *line, message))
    });
    wrong.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings about these files, beside a page that lists three ids.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let page = (PAGE, "| S0-01 | A promise. |\n| S0-B09 | Another. |\n| X-02 | A third. |\n");
        let files = files.iter().chain([&page]);
        let named: Vec<_> = files.flat_map(|(path, text)| mentions(path, text)).collect();
        check(&named).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_id_in_product_source_is_an_error_and_in_a_test_it_is_not() {
        let inline =
            "//! Doc.\n/// Kept (S0-01, S0-B09).\nfn a() {}\n#[cfg(test)]\nmod tests {\n    // X-02\n}\n";
        let message = |path: &str, line, id| {
            format!(
                "{path}:{line}: error: `{id}` belongs in a test: say the reason in words, or leave it out"
            )
        };
        let path = "crates/a/src/b.rs";
        assert_eq!(found(&[(path, inline)]), [message(path, 2, "S0-01"), message(path, 2, "S0-B09")]);
        for path in
            ["web/src/lib/a.ts", "web/src/lib/A.svelte", "editors/vscode/src/a.ts", "schema/openapi.json"]
        {
            assert_eq!(found(&[(path, "// X-02\n")]), [message(path, 1, "X-02")]);
        }
        for path in [
            "crates/a/tests/it/b.rs",
            "crates/a/src/b_tests.rs",
            "web/src/lib/a.test.ts",
            "web/e2e/a.spec.ts",
        ] {
            assert_eq!(found(&[(path, inline)]), [""; 0], "{path}");
        }
    }

    #[test]
    fn an_id_that_the_page_does_not_list_is_an_error() {
        let unknown = concat!("fine: S0-01\n/// X-02, S0", "-77.\n");
        for path in ["crates/a/tests/it/b.rs", "crates/a/tests/scenarios/b.txt", "docs/decisions/0001-b.md"] {
            let message = format!("{path}:2: error: `{}` is not listed in {PAGE}", concat!("S0", "-77"));
            assert_eq!(found(&[(path, unknown)]), [message]);
        }
        assert_eq!(
            found(&[("crates/a/tests/it/b.rs", "UTF-8, MAX-12, S0-, S0-B, aS0-77, S0-77-x\n")]),
            [""; 0]
        );
    }
}
