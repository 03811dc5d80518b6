//! `tidy.ceilings`: measures of the tree that may only go down.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::product::{self, Source, listed};
use super::{Finding, cycles};

/// The file with the ceilings, one `measure number` per line, `#` for comments.
const CEILINGS: &str = "tidy.ceilings";

/// What is counted in the tree.
#[derive(Debug)]
pub(super) struct Measures {
    lines: BTreeMap<String, usize>,
    duplicates: product::Duplicates,
    cycles: BTreeMap<String, Vec<Vec<String>>>,
}

impl Measures {
    pub(super) fn of(sources: &[Source]) -> Measures {
        Measures {
            lines: product::lines(sources),
            duplicates: product::duplicates(sources),
            cycles: cycles::of_crates(sources),
        }
    }

    /// The measures that have a ceiling.
    fn limited(&self) -> BTreeMap<String, usize> {
        let mut limited: BTreeMap<String, usize> = self
            .cycles
            .iter()
            .map(|(name, cycles)| (format!("modules-in-cycles:{name}"), cycles.iter().map(Vec::len).sum()))
            .collect();
        limited.insert("type-names-twice".to_owned(), self.duplicates.all.len());
        limited.insert("public-type-names-twice".to_owned(), self.duplicates.public.len());
        limited
    }

    pub(super) fn print(&self) {
        println!("product code lines: {} ({})", self.lines.values().sum::<usize>(), listed(&self.lines, ""));
        let product::Duplicates { all, public } = &self.duplicates;
        println!("type names defined more than once: {} ({})", all.len(), listed(all, "x"));
        println!("public type names defined more than once: {} ({})", public.len(), listed(public, "x"));
        for (name, cycles) in &self.cycles {
            let modules: usize = cycles.iter().map(Vec::len).sum();
            let shown: Vec<String> = cycles.iter().map(|cycle| format!(" ({})", cycle.join(" "))).collect();
            println!("modules in dependency cycles of {name}: {modules}{}", shown.concat());
        }
    }
}

/// Compares the measures with their ceilings. A measure without a ceiling must be 0.
pub(super) fn check(root: &Path, measures: &Measures) -> Result<Vec<Finding>> {
    let path = root.join(CEILINGS);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let ceilings = parse(&text).with_context(|| format!("in {CEILINGS}"))?;
    Ok(compare(&measures.limited(), &ceilings))
}

fn compare(measured: &BTreeMap<String, usize>, ceilings: &BTreeMap<String, (usize, usize)>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (measure, &count) in measured {
        let (line, ceiling) = ceilings.get(measure).copied().unwrap_or_default();
        if count > ceiling {
            let message = format!(
                "{measure} is {count}, above its ceiling of {ceiling}; `cargo xtask tidy --count` names them"
            );
            findings.push(Finding::error(CEILINGS, line, message));
        } else if count < ceiling {
            let message = format!("{measure} is {count}: lower its ceiling of {ceiling}");
            findings.push(Finding::warning(CEILINGS, line, message));
        }
    }
    for (measure, (line, _)) in ceilings.iter().filter(|(measure, _)| !measured.contains_key(*measure)) {
        findings.push(Finding::error(
            CEILINGS,
            *line,
            format!("`{measure}` is not measured: remove the line"),
        ));
    }
    findings
}

/// Each measure with its line and its ceiling.
fn parse(text: &str) -> Result<BTreeMap<String, (usize, usize)>> {
    let mut ceilings = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let ceiling = line.split_once(' ').and_then(|(key, value)| Some((key, value.trim().parse().ok()?)));
        let Some((key, ceiling)) = ceiling else { bail!("line {number}: `{line}` is not `measure number`") };
        if ceilings.insert(key.to_owned(), (number, ceiling)).is_some() {
            bail!("line {number}: `{key}` stands twice");
        }
    }
    Ok(ceilings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(count: usize, ceilings: &str) -> Vec<String> {
        let measured = BTreeMap::from([("twice".to_owned(), count)]);
        compare(&measured, &parse(ceilings).unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_measure_may_only_go_down() {
        assert_eq!(compared(3, "# why\ntwice 3\n"), [""; 0]);
        assert_eq!(compared(0, ""), [""; 0]);
        assert_eq!(
            compared(4, "# why\ntwice 3\n"),
            [
                "tidy.ceilings:2: error: twice is 4, above its ceiling of 3; `cargo xtask tidy --count` names them"
            ]
        );
        assert_eq!(
            compared(2, "twice 3\n"),
            ["tidy.ceilings:1: warning: twice is 2: lower its ceiling of 3"]
        );
        assert_eq!(
            compared(0, "other 3\n"),
            ["tidy.ceilings:1: error: `other` is not measured: remove the line"]
        );
    }

    #[test]
    fn a_ceiling_is_a_name_and_a_number() {
        assert_eq!(
            parse("twice many\n").unwrap_err().to_string(),
            "line 1: `twice many` is not `measure number`"
        );
        assert_eq!(parse("a 1\na 2\n").unwrap_err().to_string(), "line 2: `a` stands twice");
    }
}
