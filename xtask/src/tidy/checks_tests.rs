//! Tests of the checks: text in, findings out.

use super::*;
use crate::tidy::rust_text::RustText;

/// Findings as the lines a user would read.
fn shown(findings: impl IntoIterator<Item = Finding>) -> Vec<String> {
    findings.into_iter().map(|finding| finding.to_string()).collect()
}

fn check_sizes(files: &[(&str, usize)], allowed: &[&str]) -> Vec<String> {
    let files: Vec<_> = files.iter().map(|&(path, lines)| (path.to_owned(), lines)).collect();
    let entry = |(line, key): (usize, &&str)| AllowEntry { line, key: (*key).to_owned() };
    let allowed: Vec<_> = (1..).zip(allowed).map(entry).collect();
    shown(sizes(&files, &allowed))
}

#[test]
fn a_long_file_is_a_warning_and_a_very_long_one_an_error() {
    assert_eq!(
        check_sizes(&[("a.rs", 500), ("b.rs", 501), ("c.rs", 800), ("d.rs", 801)], &[]),
        [
            "b.rs: warning: 501 lines, aim for 300",
            "c.rs: warning: 800 lines, aim for 300",
            "d.rs: error: 801 lines, more than 800: split it, or give the reason in tidy.allow",
        ]
    );
}

#[test]
fn an_exception_holds_while_it_is_needed_and_no_longer() {
    assert_eq!(check_sizes(&[("a.rs", 900)], &["a.rs"]), [""; 0]);
    assert_eq!(
        check_sizes(&[("a.rs", 700)], &["a.rs", "gone.rs"]),
        [
            "tidy.allow:1: error: `a.rs` needs no exception: remove the line",
            "tidy.allow:2: error: `gone.rs` needs no exception: remove the line",
        ]
    );
}

#[test]
fn sizes_are_for_sources_that_are_no_tests() {
    for path in ["crates/a/src/lib.rs", "web/src/App.svelte", "web/src/api.ts", "src/tests.rs"] {
        assert!(has_size_limit(path), "{path}");
    }
    for path in ["a/src/x_tests.rs", "crates/a/tests/it/main.rs", "tests/x.rs", "README.md"] {
        assert!(!has_size_limit(path), "{path}");
    }
}

#[test]
fn modules_start_with_their_doc() {
    let expected = ":1: error: starts without a `//!` line that says what the module is";
    for path in ["crates/a/src/main.rs", "crates/a/src/b/c.rs", "xtask/src/main.rs"] {
        assert_eq!(shown(module_doc(path, "use x;\n//! Late.\n")), [format!("{path}{expected}")]);
        assert_eq!(module_doc(path, "//! What it is.\n"), None);
    }
    assert_eq!(module_doc("crates/a/build.rs", "fn main() {}\n"), None);
    assert_eq!(module_doc("crates/a/tests/it/main.rs", "mod x;\n"), None);
}

#[test]
fn work_left_over_names_its_issue() {
    let text = concat!(
        "// TO",
        "DO later\n",
        "// TO",
        "DO(#12): later\n",
        "// FIX",
        "ME see #x\n",
        "// FIX",
        "ME see #7\n",
        "// TO",
        "DOS was an editor\n",
    );
    assert_eq!(
        shown(unnumbered_todos("a.rs", text)),
        [
            concat!("a.rs:1: error: TO", "DO without the number of an issue, as in TO", "DO(#12)"),
            concat!("a.rs:3: error: FIX", "ME without the number of an issue, as in FIX", "ME(#12)"),
        ]
    );
}

#[test]
fn comments_are_found_by_the_marks_of_the_language() {
    assert_eq!(comments("a.ts", "let a = 1; // one\nb()\n"), "// one\n");
    assert_eq!(comments("a.sql", "select 1 -- one"), "-- one");
    assert_eq!(comments(".ci/run", "set -e # stop"), "# stop");
    assert_eq!(comments("a.svelte", "<p>x</p> <!-- why -->"), "<!-- why -->");
    assert_eq!(comments("a.json", "{} // no"), "");
}

#[test]
fn no_test_is_ignored() {
    let check = |source: &str| shown(ignored_tests("a.rs", &RustText::split(source).code));
    let expected = ["a.rs:2: error: a test must not be ignored"];
    assert_eq!(check("#[test]\n#[ignore]\nfn a() {}\n"), expected);
    assert_eq!(check("#[test]\n  #[ignore = \"slow\"]\nfn a() {}\n"), expected);
    assert_eq!(check("// #[ignore] is forbidden\n#[ignore_case]\n"), [""; 0]);
}

fn check_sleeps(path: &str, source: &str) -> Vec<String> {
    let text = RustText::split(source);
    shown(sleeps(path, &text.code, &text.comments))
}

#[test]
fn a_sleeping_test_says_why() {
    let line = |number| {
        format!(
            "a_tests.rs:{number}: error: a test sleeps; wait for a condition, or say why in \
             `// sleep: reason`"
        )
    };
    let path = "a_tests.rs";
    assert_eq!(check_sleeps(path, "fn a() {\n    thread::sleep(ms(5));\n}\n"), [line(2)]);
    assert_eq!(check_sleeps(path, "sleep(1); // sleep: the OS has no event for it\n"), [""; 0]);
    assert_eq!(check_sleeps(path, "// sleep: as above\ntime::sleep(x).await;\n"), [""; 0]);
    assert_eq!(check_sleeps(path, "// sleep:\nsleep(x);\n"), [line(2)]);
    assert_eq!(check_sleeps(path, "// sleep: too far\n\nsleep(x);\n"), [line(3)]);
    assert_eq!(check_sleeps(path, "oversleep(1); sleep_until(x); \"sleep(1)\";\n"), [""; 0]);
}

#[test]
fn inline_tests_must_not_sleep_but_the_code_above_them_may() {
    let source = "fn a() { sleep(x) }\n#[cfg(test)]\nmod tests {\n    fn b() { sleep(x) }\n}\n";
    let found = check_sleeps("a.rs", source);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("a.rs:4: "), "{found:?}");
    assert_eq!(check_sleeps("a.rs", "#[cfg(test)]\nmod x;\nfn a() { sleep(x) }\n"), [""; 0]);
}

#[test]
fn lines_and_files_end_cleanly() {
    assert_eq!(
        shown(whitespace("a.md", "a \nb\r\nc\t\nd")),
        [
            "a.md:1: error: trailing whitespace",
            "a.md:2: error: trailing whitespace",
            "a.md:3: error: trailing whitespace",
            "a.md:4: error: no newline at the end",
        ]
    );
    assert_eq!(whitespace("a.md", "a\n\nb\n"), []);
    assert_eq!(whitespace("a.md", ""), []);
    assert_eq!(whitespace("tests/scenarios/a.txt", "recorded  "), []);
}

/// FND-K14.
#[test]
fn fnd_k14_property_tests_keep_their_seeds() {
    let found = |code: &str| shown(forgotten_seeds("a.rs", code));
    assert_eq!(
        found(
            "proptest! {\n#![proptest_config(ProptestConfig { cases: 9, ..ProptestConfig::default() })]\n}"
        ),
        [""; 0]
    );
    assert_eq!(found("TestRunner::new(Config { source_file: Some(file!()), ..Config::default() })"), [""; 0]);
    assert_eq!(
        found("Config { cases: 48, failure_persistence: None, ..Config::default() }"),
        ["a.rs:1: error: a property test must keep its failing seeds"]
    );
    assert_eq!(
        found("\nlet runner = TestRunner::new(Config::default());"),
        ["a.rs:2: error: a test runner must keep its failing seeds: set `source_file: Some(file!())`"]
    );
}

/// FND-K14.
#[test]
fn fnd_k14_no_runner_tries_again() {
    let found = |path: &str, text: &str| shown(retries(path, text));
    assert_eq!(found(".config/nextest.toml", "# No retries: why\nretries = 0\n"), [""; 0]);
    assert_eq!(found("web/playwright.config.ts", "  retries: 0,\n"), [""; 0]);
    assert_eq!(found("crates/a/config.toml", "retries = 3\n"), [""; 0]);
    assert_eq!(
        found(".config/nextest.toml", "retries = { count = 1 }\n"),
        [".config/nextest.toml:1: error: a test that fails must not be tried again"]
    );
    assert_eq!(
        found("web/playwright.config.ts", "  retries: process.env.CI ? 2 : 0,\n"),
        ["web/playwright.config.ts:1: error: a test that fails must not be tried again"]
    );
}
