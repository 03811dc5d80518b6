//! Counting tests from what the runners print: nextest's one summary line, or the standard
//! harness's line per test binary.

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
    fn plus(self, other: Tally) -> Tally {
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
        total = match runner {
            Runner::Nextest => nextest(&text).or(total),
            Runner::Harness => match (total, harness(&text)) {
                (Some(total), Some(found)) => Some(total.plus(found)),
                (total, found) => total.or(found),
            },
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
