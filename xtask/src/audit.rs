//! `cargo xtask audit`: what we build upon, by licence and by duplicate versions.
//!
//! Licences are checked for every platform, because we may ship to it. Duplicates are checked
//! for this host only: a package that is not compiled here costs nothing here.

mod spdx;
mod versions;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::allow::{self, AllowEntry};
use crate::process;

/// The list of duplicates we live with: `name@version reason…`.
const ALLOW: &str = "audit.allow";

/// Licences that ask for no more than attribution, or, as MPL-2.0, leave our own files alone.
/// A new one is a decision: record it.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// Where it came from; our own packages come from nowhere.
    source: Option<String>,
}

pub(crate) fn run() -> Result<()> {
    let metadata = ["metadata", "--format-version", "1", "--locked"];
    let metadata: Metadata = serde_json::from_str(&process::read(&mut process::cargo(metadata))?)
        .context("`cargo metadata` printed something unknown")?;
    let third_party: Vec<&Package> =
        metadata.packages.iter().filter(|package| package.source.is_some()).collect();
    let licences = licences(&third_party);
    let duplicates = versions::duplicates(&process::read(&mut process::cargo(versions::TREE))?);
    let allowed = allow::load(&process::root().join(ALLOW))?;

    let mut errors = licences.errors;
    errors.extend(compare(&duplicates, &allowed));
    println!("packages    {} third-party", third_party.len());
    println!("licences    {} expressions", licences.expressions.len());
    println!("duplicates  {}", list(&duplicates));
    for error in &errors {
        eprintln!("error: {error}");
    }
    if !errors.is_empty() {
        bail!("audit found problems: {}", errors.len());
    }
    Ok(())
}

struct Licences<'a> {
    expressions: BTreeSet<&'a str>,
    errors: Vec<String>,
}

fn licences<'a>(packages: &[&'a Package]) -> Licences<'a> {
    let mut found = Licences { expressions: BTreeSet::new(), errors: Vec::new() };
    for Package { name, version, license, .. } in packages {
        let Some(expression) = license else {
            found.errors.push(format!("{name} {version} names no licence"));
            continue;
        };
        let _known = found.expressions.insert(expression);
        match spdx::satisfiable(expression, LICENCES) {
            Ok(true) => {}
            Ok(false) => found
                .errors
                .push(format!("{name} {version} has the licence `{expression}`, which is not on our list")),
            Err(error) => found
                .errors
                .push(format!("{name} {version} has a licence we cannot read, `{expression}`: {error}")),
        }
    }
    found
}

/// Every version line but the newest must be excused; every excuse must be needed.
fn compare(duplicates: &BTreeMap<String, Vec<String>>, allowed: &[AllowEntry]) -> Vec<String> {
    let mut errors = Vec::new();
    let mut needed = BTreeSet::new();
    for (name, lines) in duplicates {
        let Some((newest, older)) = lines.split_last() else { continue };
        for line in older {
            let key = format!("{name}@{line}");
            if !allowed.iter().any(|entry| entry.key == key) {
                errors.push(format!(
                    "{key} is built beside {name}@{newest}: \
                     get rid of one (`cargo tree -i {key}`), or add `{key} REASON` to {ALLOW}"
                ));
            }
            let _new = needed.insert(key);
        }
    }
    for entry in allowed.iter().filter(|entry| !needed.contains(&entry.key)) {
        let AllowEntry { line, key } = entry;
        errors.push(format!("{ALLOW}:{line}: `{key}` is no duplicate: remove the line"));
    }
    errors
}

fn list(duplicates: &BTreeMap<String, Vec<String>>) -> String {
    if duplicates.is_empty() {
        return "none".to_owned();
    }
    let one = |(name, lines): (&String, &Vec<String>)| format!("{name} {}", lines.join(" + "));
    let all: Vec<String> = duplicates.iter().map(one).collect();
    format!("{} ({})", duplicates.len(), all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(duplicates: &[(&str, &[&str])], allowed: &[&str]) -> Vec<String> {
        let duplicates = duplicates
            .iter()
            .map(|(name, lines)| ((*name).to_owned(), lines.iter().map(ToString::to_string).collect()))
            .collect();
        let entry = |(line, key): (usize, &&str)| AllowEntry { line, key: (*key).to_owned() };
        compare(&duplicates, &(1..).zip(allowed).map(entry).collect::<Vec<_>>())
    }

    #[test]
    fn all_but_the_newest_need_an_excuse() {
        assert_eq!(check(&[("syn", &["2", "3"])], &["syn@2"]), [""; 0]);
        assert_eq!(
            check(&[("syn", &["1", "2", "3"])], &["syn@1"]),
            ["syn@2 is built beside syn@3: get rid of one (`cargo tree -i syn@2`), \
              or add `syn@2 REASON` to audit.allow"]
        );
    }

    #[test]
    fn an_excuse_that_is_not_needed_is_an_error() {
        assert_eq!(check(&[], &["syn@2"]), ["audit.allow:1: `syn@2` is no duplicate: remove the line"]);
        assert_eq!(check(&[("syn", &["2", "3"])], &["syn@2", "syn@3"]).len(), 1);
    }

    #[test]
    fn a_licence_is_named_readable_and_on_the_list() {
        let package = |license: Option<&str>| Package {
            name: "p".to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            source: Some("registry".to_owned()),
        };
        let packages = [None, Some("MIT/GPL-3.0"), Some("GPL-3.0"), Some("MIT OR")].map(package);
        assert_eq!(
            licences(&packages.iter().collect::<Vec<_>>()).errors,
            [
                "p 1.0.0 names no licence",
                "p 1.0.0 has the licence `GPL-3.0`, which is not on our list",
                "p 1.0.0 has a licence we cannot read, `MIT OR`: a licence is missing at the end",
            ]
        );
    }
}
