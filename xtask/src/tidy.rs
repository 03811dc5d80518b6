//! `cargo xtask tidy`: the habits of the tree that no compiler checks.
//!
//! This file lists the files and reports; the checks themselves are pure functions from text to
//! findings, in the modules below.

mod ceilings;
mod checks;
mod cycles;
mod file_access;
mod markdown;
mod product;
mod requirements;
mod rust_text;
mod walls;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use self::ceilings::Measures;
use self::product::Source;
use self::rust_text::RustText;
use crate::{allow, process};

/// The list of files that may be longer than the limit, each with its reason.
const ALLOW: &str = "tidy.allow";

/// Something found in a file. Warnings are shown, errors fail the check.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    path: String,
    /// Counted from 1; 0 when the finding is about the file as a whole.
    line: usize,
    level: Level,
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Warning,
    Error,
}

impl Finding {
    fn error(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, level: Level::Error, message: message.into() }
    }

    fn warning(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, level: Level::Warning, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Warning => "warning",
            Level::Error => "error",
        };
        match self.line {
            0 => write!(f, "{}: {level}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {level}: {}", self.path, self.message),
        }
    }
}

#[derive(Debug, Default, clap::Args)]
pub(crate) struct TidyArgs {
    /// Print the lines of product code, the type names defined more than once and the modules in cycles
    #[arg(long)]
    count: bool,
}

pub(crate) fn run(args: &TidyArgs) -> Result<()> {
    let root = process::root();
    let paths = list(&root)?;
    let allowed = allow::load(&root.join(ALLOW))?;
    let mut findings = Vec::new();
    let mut sizes = Vec::new();
    let mut sources = Vec::new();
    let mut requirements = Vec::new();
    let mut pages = BTreeMap::new();
    for path in &paths {
        let bytes = fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        // Pictures and fonts have no lines to check.
        let Ok(text) = String::from_utf8(bytes) else { continue };
        findings.extend(check_file(path, &text, &paths));
        sources.extend(Source::read(path, &text));
        requirements.extend(requirements::mentions(path, &text));
        if checks::has_size_limit(path) {
            sizes.push((path.clone(), text.lines().count()));
        }
        if checks::extension(path) == "md" {
            pages.insert(path.clone(), text);
        }
    }
    findings.extend(checks::sizes(&sizes, &allowed));
    findings.extend(requirements::check(&requirements));
    findings.extend(markdown::missing_headings(&pages));
    findings.extend(markdown::outside_of_the_book(&pages));
    let measures = Measures::of(&sources);
    if args.count {
        measures.print();
    }
    findings.extend(ceilings::check(&root, &measures)?);
    report(&findings, paths.len())
}

/// The checks of one file. Which apply depends on its path alone.
fn check_file(path: &str, text: &str, paths: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = checks::whitespace(path, text);
    match checks::extension(path) {
        "rs" => {
            let split = RustText::split(text);
            findings.extend(checks::module_doc(path, text));
            findings.extend(checks::ignored_tests(path, &split.code));
            findings.extend(checks::sleeps(path, &split.code, &split.comments));
            findings.extend(file_access::check(path, &split.code));
            findings.extend(checks::forgotten_seeds(path, &split.code));
            findings.extend(checks::unnumbered_todos(path, &split.comments));
        }
        "md" => {
            let prose = markdown::prose(text);
            findings.extend(markdown::broken_links(path, &prose, paths));
            findings.extend(checks::unnumbered_todos(path, &prose));
        }
        _ => {
            findings.extend(walls::check(path, text));
            findings.extend(checks::sleeps(path, text, text));
            findings.extend(checks::retries(path, text));
            findings.extend(checks::unnumbered_todos(path, &checks::comments(path, text)));
        }
    }
    findings
}

/// Every file that is, or could be, committed: tracked or new, not ignored, not deleted.
fn list(root: &Path) -> Result<BTreeSet<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let listed = process::read(&mut git).context("tidy needs a git checkout")?;
    // Submodules and links are files of other repositories.
    let is_file =
        |path: &&str| fs::symlink_metadata(root.join(path)).is_ok_and(|metadata| metadata.is_file());
    Ok(listed.split_terminator('\0').filter(is_file).map(str::to_owned).collect())
}

fn report(findings: &[Finding], files: usize) -> Result<()> {
    for finding in findings {
        eprintln!("{finding}");
    }
    let errors = findings.iter().filter(|finding| finding.level == Level::Error).count();
    let warnings = findings.len() - errors;
    if errors > 0 {
        bail!("tidy found problems: {errors} (and warnings: {warnings})");
    }
    eprintln!("tidy: {files} files checked, warnings: {warnings}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_like_a_compilers() {
        let finding = Finding::error("a.rs", 3, "trailing whitespace");
        assert_eq!(finding.to_string(), "a.rs:3: error: trailing whitespace");
        let finding = Finding::warning("a.rs", 0, "501 lines");
        assert_eq!(finding.to_string(), "a.rs: warning: 501 lines");
    }

    #[test]
    fn words_in_strings_are_no_comments_and_no_code() {
        let text = concat!("//! Doc.\nconst A: &str = \"// TO", "DO, #[ignore], sleep(1)\";\n");
        assert_eq!(check_file("crates/a/tests/it/main.rs", text, &BTreeSet::new()), []);
    }
}
