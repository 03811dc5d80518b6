//! Counting tests from what the runners print: nextest's one summary line, the standard harness's
//! line per test binary, and the summaries of the dashboard's two.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};

/// How many tests went which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
    /// Known to the runner but never started, because an earlier failure ended the run.
    not_run: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        if self.not_run > 0 {
            write!(f, ", {} not run", self.not_run)?;
        }
        Ok(())
    }
}

impl Tally {
    pub(super) fn plus(self, other: Tally) -> Tally {
        Tally {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
            not_run: self.not_run + other.not_run,
        }
    }
}

/// Who runs the tests. Each has its own lines, and shows those of the other when a test that
/// printed them fails, so only one kind is ever looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runner {
    Nextest,
    Harness,
    /// The dashboard's unit tests.
    Vitest,
    /// Its browser tests.
    Playwright,
}

impl Runner {
    /// What a line says of the tests, if it is one of those that do.
    fn read(self, line: &str) -> Option<Tally> {
        match self {
            Runner::Nextest => nextest(line),
            Runner::Harness => harness(line),
            Runner::Vitest => vitest(line),
            Runner::Playwright => playwright(line),
        }
    }

    /// Whether one such line tells all, so that the last one counts; else they are added up.
    fn tells_all_at_once(self) -> bool {
        match self {
            Runner::Nextest | Runner::Vitest => true,
            Runner::Harness | Runner::Playwright => false,
        }
    }
}

/// Copies a stream line by line and adds up the result lines in it. `None` when there were none:
/// the build failed, or the format is not one we know, and a guess would be worse than silence.
pub(super) fn copy(runner: Runner, from: impl Read, mut to: impl Write) -> io::Result<Option<Tally>> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    let mut total: Option<Tally> = None;
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        let text = without_colour(&String::from_utf8_lossy(&line));
        total = match (total, runner.read(&text)) {
            (Some(total), Some(found)) if !runner.tells_all_at_once() => Some(total.plus(found)),
            (total, found) => found.or(total),
        };
        line.clear();
    }
    Ok(total)
}

/// `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s`
fn harness(line: &str) -> Option<Tally> {
    let (_verdict, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut tally = Tally::default();
    for (count, word) in counts.split(';').filter_map(count_and_word) {
        match word {
            "passed" => tally.passed += count,
            "failed" => tally.failed += count,
            "ignored" | "filtered out" => tally.skipped += count,
            _ => {}
        }
    }
    Some(tally)
}

/// `Summary [ 1.2s] 7/9 tests run: 5 passed (1 slow, 1 leaky), 1 failed, 1 timed out, 3 skipped`
fn nextest(line: &str) -> Option<Tally> {
    let (_elapsed, rest) = line.trim().strip_prefix("Summary ")?.split_once("] ")?;
    let (ran, counts) = rest.split_once(" run: ")?;
    let (ran, _tests) = ran.split_once(' ')?;
    let mut tally = Tally::default();
    if let Some((ran, known)) = ran.split_once('/') {
        tally.not_run = known.parse::<usize>().ok()?.saturating_sub(ran.parse().ok()?);
    }
    for (count, word) in without_brackets(counts).split(',').filter_map(count_and_word) {
        match word {
            "passed" => tally.passed += count,
            "skipped" => tally.skipped += count,
            // Failed, timed out, failed to execute: all of them are a failure.
            _ => tally.failed += count,
        }
    }
    let details = counts.split(['(', ')', ',']).filter_map(count_and_word);
    let flaky: usize = details.filter(|(_, word)| *word == "flaky").map(|(count, _)| count).sum();
    tally.passed = tally.passed.saturating_sub(flaky);
    tally.failed += flaky;
    Some(tally)
}

/// `Tests  1 failed | 5 passed | 2 skipped (8)`
fn vitest(line: &str) -> Option<Tally> {
    let counts = line.trim().strip_prefix("Tests  ")?;
    let mut tally = Tally::default();
    for (count, word) in without_brackets(counts).split('|').filter_map(count_and_word) {
        match word {
            "passed" => tally.passed += count,
            "failed" => tally.failed += count,
            _ => tally.skipped += count,
        }
    }
    Some(tally)
}

/// One line for each of `2 failed`, `1 flaky`, `3 did not run`, `12 passed (1.2m)`.
fn playwright(line: &str) -> Option<Tally> {
    let (count, word) = count_and_word(line)?;
    let mut tally = Tally::default();
    match word.split(" (").next()? {
        "passed" => tally.passed = count,
        "failed" | "flaky" | "interrupted" => tally.failed = count,
        "skipped" => tally.skipped = count,
        "did not run" => tally.not_run = count,
        _ => return None,
    }
    Some(tally)
}

fn count_and_word(part: &str) -> Option<(usize, &str)> {
    let (count, word) = part.trim().split_once(' ')?;
    Some((count.parse().ok()?, word.trim()))
}

/// Drops what is in round brackets: details of a count, with commas of their own.
fn without_brackets(text: &str) -> String {
    let mut depth = 0_usize;
    let mut kept = String::new();
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept
}

/// Drops terminal escapes, which CI systems ask for even though the output is a file.
fn without_colour(text: &str) -> String {
    let mut kept = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            let _sequence = chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            kept.push(c);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(runner: Runner, output: &str) -> Option<String> {
        let mut copied = Vec::new();
        let tally = copy(runner, output.as_bytes(), &mut copied).unwrap();
        assert_eq!(copied, output.as_bytes());
        tally.map(|tally| tally.to_string())
    }

    #[test]
    fn nextests_summary_is_understood() {
        let output = "     Summary [   0.006s] 4 tests run: 4 passed, 0 skipped\n";
        assert_eq!(count(Runner::Nextest, output).as_deref(), Some("4 passed, 0 failed"));
    }

    #[test]
    fn a_run_cut_short_says_what_was_not_run() {
        let output =
            "Summary [ 1.2s] 7/9 tests run: 5 passed (1 slow, 1 leaky), 1 failed, 1 timed out, 3 skipped\n";
        assert_eq!(
            count(Runner::Nextest, output).as_deref(),
            Some("5 passed, 2 failed, 3 skipped, 2 not run")
        );
    }

    /// FND-K14. A test that passed at its second try is a failure, counted once.
    #[test]
    fn fnd_k14_a_flaky_test_is_a_failure() {
        let output = "  TRY 1 FAIL [   0.004s] (1/2) xtask tests::sometimes\n\
            \x20 TRY 2 PASS [   0.003s] (1/2) xtask tests::sometimes\n\
            Summary [ 1.0s] 2 tests run: 2 passed (1 flaky), 0 skipped\n\
            \x20  FLAKY 2/2 [   0.003s] (1/2) xtask tests::sometimes\n";
        assert_eq!(count(Runner::Nextest, output).as_deref(), Some("1 passed, 1 failed"));
        let output = "TRY 2 FAIL [ 0.1s] a b\nSummary [ 1.0s] 2 tests run: 1 passed, 1 failed, 0 skipped\n";
        assert_eq!(count(Runner::Nextest, output).as_deref(), Some("1 passed, 1 failed"));
    }

    #[test]
    fn the_dashboards_tests_are_counted() {
        let output = " Test Files  2 passed (2)\n      Tests  1 failed | 12 passed | 1 skipped (14)\n";
        assert_eq!(count(Runner::Vitest, output).as_deref(), Some("12 passed, 1 failed, 1 skipped"));
        let output = "Running 17 tests using 2 workers\n  2 failed\n    [chromium] \u{203a} a.spec.ts:1:1\n\
            \x20 1 flaky\n  3 did not run\n  11 passed (1.2m)\n";
        assert_eq!(count(Runner::Playwright, output).as_deref(), Some("11 passed, 3 failed, 3 not run"));
    }

    #[test]
    fn colours_do_not_hide_the_summary() {
        let output = "\x1b[32;1m     Summary\x1b[0m [   0.1s] \x1b[1m1\x1b[0m test run: \x1b[1m1\x1b[0m \x1b[32;1mpassed\x1b[0m\n";
        assert_eq!(count(Runner::Nextest, output).as_deref(), Some("1 passed, 0 failed"));
    }

    #[test]
    fn the_standard_harness_is_added_up() {
        let output = "test a ... ok\n\
            test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
            test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        assert_eq!(count(Runner::Harness, output).as_deref(), Some("7 passed, 1 failed, 1 skipped"));
    }

    #[test]
    fn the_output_of_a_failed_test_is_not_counted_again() {
        let output = "    test result: FAILED. 0 passed; 1 failed; 0 ignored\n\
            test result: FAILED. 0 passed; 1 failed; 0 ignored\n\
            Summary [ 0.1s] 2 tests run: 1 passed, 1 failed, 0 skipped\n";
        assert_eq!(count(Runner::Nextest, output).as_deref(), Some("1 passed, 1 failed"));
    }

    #[test]
    fn a_failed_build_counts_nothing() {
        assert_eq!(count(Runner::Nextest, "error[E0425]: cannot find value `x`\n"), None);
    }
}
