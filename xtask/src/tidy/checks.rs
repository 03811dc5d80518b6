//! The checks of single files, and of the sizes of all of them.

use super::Finding;
use crate::allow::AllowEntry;

/// From here on a file is worth splitting.
const LINES_WARN: usize = 500;
/// A longer file is not read from top to bottom.
const LINES_MAX: usize = 800;

/// Files that hold tests only. Long ones are fine: tests are read one at a time.
pub(super) fn is_test_file(path: &str) -> bool {
    let named = ["_tests.rs", ".test.ts", ".spec.ts"].iter().any(|end| path.ends_with(end));
    named
        || path.starts_with("tests/")
        || path.contains("/tests/")
        || path.starts_with("crates/lanyard-testkit/")
}

pub(super) fn has_size_limit(path: &str) -> bool {
    let source = matches!(extension(path), "rs" | "ts" | "svelte");
    source && !is_test_file(path)
}

/// Compares files and their numbers of lines with the limits and the list of exceptions.
pub(super) fn sizes(files: &[(String, usize)], allowed: &[AllowEntry]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, lines) in files {
        let excused = allowed.iter().any(|entry| entry.key == *path);
        if *lines > LINES_MAX && !excused {
            let message = format!(
                "{lines} lines, more than {LINES_MAX}: split it, or give the reason in {}",
                super::ALLOW
            );
            findings.push(Finding::error(path, 0, message));
        } else if *lines > LINES_WARN && !excused {
            findings.push(Finding::warning(path, 0, format!("{lines} lines, aim for 300")));
        }
    }
    for entry in allowed {
        let needed = files.iter().any(|(path, lines)| *path == entry.key && *lines > LINES_MAX);
        if !needed {
            let message = format!("`{}` needs no exception: remove the line", entry.key);
            findings.push(Finding::error(super::ALLOW, entry.line, message));
        }
    }
    findings
}

/// Every module says first what it is.
pub(super) fn module_doc(path: &str, text: &str) -> Option<Finding> {
    let mut parts = path.split('/');
    let is_module = match parts.next() {
        Some("crates") => parts.nth(1) == Some("src"),
        Some("xtask") => parts.next() == Some("src"),
        _ => false,
    };
    let message = "starts without a `//!` line that says what the module is";
    (is_module && !text.starts_with("//!")).then(|| Finding::error(path, 1, message))
}

/// A note of work left over must name the issue that tracks it, or it is never found again.
/// Takes only the comments of a file, or the prose of a page.
pub(super) fn unnumbered_todos(path: &str, comments: &str) -> Vec<Finding> {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME")];
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(comments.lines()) {
        for mark in marks {
            if word_in(line, mark).is_some_and(|rest| !names_an_issue(rest)) {
                let message = format!("{mark} without the number of an issue, as in {mark}(#12)");
                findings.push(Finding::error(path, number, message));
            }
        }
    }
    findings
}

fn names_an_issue(text: &str) -> bool {
    text.split('#').skip(1).any(|after| after.starts_with(|c: char| c.is_ascii_digit()))
}

/// What comes after a word, if it stands in the line as a word of its own.
fn word_in<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).find_map(|(at, _)| {
        let after = &line[at + word.len()..];
        (!line[..at].ends_with(is_word) && !after.starts_with(is_word)).then_some(after)
    })
}

/// What stands after the first comment mark of each line. Rough, and good enough for languages
/// we write little of; Rust is taken apart properly elsewhere.
pub(super) fn comments(path: &str, text: &str) -> String {
    let marks: &[&str] = match extension(path) {
        "ts" | "js" | "mjs" | "svelte" | "css" | "html" => &["//", "/*", "<!--", " * "],
        "sql" => &["--"],
        "toml" | "sh" | "yml" | "yaml" | "py" | "" => &["#"],
        _ => &[],
    };
    let comment = |line: &str| {
        let start = marks.iter().filter_map(|mark| line.find(mark)).min();
        start.map(|start| line[start..].to_owned()).unwrap_or_default()
    };
    text.lines().map(comment).collect::<Vec<_>>().join("\n")
}

/// A test that does not run is no test: fix it or delete it.
pub(super) fn ignored_tests(path: &str, code: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(code.lines()) {
        let ignored = line.match_indices("#[ignore").any(|(at, mark)| {
            let rest = line[at + mark.len()..].trim_start();
            rest.starts_with(']') || rest.starts_with('=')
        });
        if ignored {
            findings.push(Finding::error(path, number, "a test must not be ignored"));
        }
    }
    findings
}

/// A test that sleeps is slow when it is right and flaky when it is wrong; the few that must
/// say why in `// sleep: reason`, on the line or the one above.
pub(super) fn sleeps(path: &str, code: &str, comments: &str) -> Vec<Finding> {
    if !matches!(extension(path), "rs" | "ts") {
        return Vec::new();
    }
    let comments: Vec<&str> = comments.lines().collect();
    let excused = |index: usize| {
        comments[index.saturating_sub(1)..=index]
            .iter()
            .any(|line| line.split_once("// sleep:").is_some_and(|(_, reason)| !reason.trim().is_empty()))
    };
    let message = "a test sleeps; wait for a condition, or say why in `// sleep: reason`";
    let start = if is_test_file(path) { 0 } else { inline_tests(code) };
    let mut findings = Vec::new();
    for (index, line) in code.lines().enumerate().skip(start) {
        let calls = word_in(line, "sleep").is_some_and(|rest| rest.starts_with('('));
        if calls && !excused(index) {
            findings.push(Finding::error(path, index + 1, message));
        }
    }
    findings
}

/// A counterexample that is not kept is found again by luck only: the seeds of property tests go into files.
pub(super) fn forgotten_seeds(path: &str, code: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(code.lines()) {
        let off = ["failure_persistence: None", "FileFailurePersistence::Off", "TestRunner::deterministic"];
        if off.iter().any(|off| line.contains(off)) {
            findings.push(Finding::error(path, number, "a property test must keep its failing seeds"));
        }
        // `proptest!` knows its file; a runner made by hand has to be told.
        let by_hand = line.contains("TestRunner::new(") || line.contains("TestRunner::default(");
        if by_hand && !code.contains("source_file: Some(file!())") {
            let message = "a test runner must keep its failing seeds: set `source_file: Some(file!())`";
            findings.push(Finding::error(path, number, message));
        }
    }
    findings
}

/// A retry hides a counterexample, so no test runner may be told to try again.
pub(super) fn retries(path: &str, text: &str) -> Vec<Finding> {
    let is_config =
        path.ends_with("nextest.toml") || (path.contains("playwright") && extension(path) == "ts");
    let mut findings = Vec::new();
    let is_comment = |line: &str| line.trim_start().starts_with('#') || line.trim_start().starts_with("//");
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| is_config && !is_comment(line)) {
        let Some(value) =
            word_in(line, "retries").and_then(|rest| rest.trim_start().strip_prefix(['=', ':']))
        else {
            continue;
        };
        let value = value.trim_start();
        if !value.starts_with('0') || value[1..].starts_with(|c: char| c.is_ascii_digit()) {
            findings.push(Finding::error(path, number, "a test that fails must not be tried again"));
        }
    }
    findings
}

/// The index of the line where a file's own test module begins; its length if it has none.
/// By convention that module is the last thing in the file.
pub(super) fn inline_tests(code: &str) -> usize {
    let lines: Vec<&str> = code.lines().map(str::trim).collect();
    let begins =
        |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    lines.windows(2).position(begins).unwrap_or(lines.len())
}

/// No blanks at the ends of lines, and a newline at the end of the file.
pub(super) fn whitespace(path: &str, text: &str) -> Vec<Finding> {
    // Recorded output and generated text are kept byte for byte.
    if matches!(extension(path), "txt" | "snap" | "svg" | "lock" | "diff" | "patch") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.split('\n')) {
        if line.ends_with(char::is_whitespace) {
            findings.push(Finding::error(path, number, "trailing whitespace"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        findings.push(Finding::error(path, text.lines().count(), "no newline at the end"));
    }
    findings
}

/// What follows the last dot of a file's name; empty for names such as `run` or `.gitignore`.
pub(super) fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension,
        _ => "",
    }
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
