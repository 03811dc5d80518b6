//! The table of what was seen of each agent, in the page about agents.

use anyhow::{Context, Result};

use super::table;
use crate::process;

const PAGE: &str = "docs/agents.md";
const BEGIN: &str = "<!-- seen: cargo xtask test real --write -->\n";
const END: &str = "<!-- /seen -->";

/// Replaces the table of the page.
pub(super) fn write(results: &str) -> Result<()> {
    let path = process::root().join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    let page = with(
        &page,
        &format!(
            "{}\nBesides, tests of one agent or of a few showed:\n\n{}",
            table::by_capability(results),
            table::others_by_agent(results)
        ),
    )
    .with_context(|| format!("{PAGE} has no place for the table: {} … {END}", BEGIN.trim_end()))?;
    std::fs::write(&path, page).with_context(|| format!("cannot write {PAGE}"))
}

/// The page with another table between the two comments; none where a comment is missing.
fn with(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_replaced_and_the_rest_kept() {
        let page = format!("# A\n{BEGIN}| old |\n{END}\nmore\n");
        assert_eq!(with(&page, "| new |\n").unwrap(), format!("# A\n{BEGIN}| new |\n{END}\nmore\n"));
        assert_eq!(with("# A\n", "| new |\n"), None);
        let kept = std::fs::read_to_string(process::root().join(PAGE)).unwrap();
        assert!(with(&kept, "").is_some(), "{PAGE} has no place for the table");
    }
}
