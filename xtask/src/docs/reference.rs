//! Pages of the book that are made from the program: commands, routes and refusals.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// A page that the book has and the repository has not.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// From the root of the book's source.
    pub(super) path: String,
    pub(super) title: String,
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
struct Commands {
    items: Vec<Command>,
}

#[derive(Debug, Deserialize)]
struct Command {
    name: String,
    about: String,
    help: String,
}

/// One page for each command, with its subcommands below it.
pub(super) fn commands(printed: &str) -> Result<Vec<Page>> {
    let listed: Commands =
        serde_json::from_str(printed).context("`lanyard schema --commands` printed something else")?;
    let mut pages: Vec<Page> = Vec::new();
    for command in listed.items {
        let Command { name, about, help } = command;
        let first = name.split(' ').next().unwrap_or_default();
        let path = format!("reference/commands/{first}.md");
        let shown = format!("{about}.\n\n```text\n{}\n```\n", help.trim_end());
        if let Some(page) = pages.last_mut().filter(|page| page.path == path) {
            // Writing to a string cannot fail.
            let _ = write!(page.text, "\n## lanyard {name}\n\n{shown}");
        } else {
            let text = format!("# lanyard {name}\n\n{shown}");
            pages.push(Page { path, title: format!("lanyard {name}"), text });
        }
    }
    Ok(pages)
}

/// Every route of the API with what it is for.
pub(super) fn api(document: &str) -> Result<Page> {
    let document: Value = serde_json::from_str(document).context("schema/openapi.json is not JSON")?;
    let paths = document["paths"].as_object().context("schema/openapi.json has no paths")?;
    let mut text =
        String::from("# Routes\n\nThe whole document is [openapi.json](../schema/openapi.json).\n\n");
    text.push_str("| route | what it does |\n|---|---|\n");
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let summary = operation["summary"].as_str().unwrap_or_default().replace('|', "\\|");
            let _ = writeln!(text, "| `{} {path}` | {summary} |", method.to_uppercase());
        }
    }
    Ok(Page { path: "reference/api.md".to_owned(), title: "Routes".to_owned(), text })
}

/// One page for each code: every sentence it comes with, and what to do about it.
pub(super) fn refusals(table: &str) -> Vec<Page> {
    let mut codes: BTreeMap<&str, Vec<[&str; 3]>> = BTreeMap::new();
    for line in table.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [code, status, happened, advice] = cells.as_slice() else { continue };
        // An anchor may stand before the code.
        let Some(code) = code.strip_suffix('`').and_then(|code| code.rsplit('`').next()) else { continue };
        codes.entry(code).or_default().push([status, happened, advice]);
    }
    let page = |(code, rows): (&str, Vec<[&str; 3]>)| {
        let mut text = format!("# {code}\n");
        for [status, happened, advice] in rows {
            let _ =
                write!(text, "\n**What happened** (HTTP {status}): {happened}\n\n**What to do**: {advice}\n");
        }
        Page { path: format!("reference/refusals/{code}.md"), title: code.to_owned(), text }
    };
    codes.into_iter().map(page).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commands_page_has_its_subcommands() {
        let printed = r#"{"items": [
            {"name": "plan", "about": "Plans", "help": "Usage: lanyard plan\n"},
            {"name": "plan ls", "about": "List plans", "help": "Usage: lanyard plan ls\n"},
            {"name": "run", "about": "Run", "help": "Usage: lanyard run\n"}], "next": null}"#;
        let pages = commands(printed).unwrap();
        let shown: Vec<(&str, &str)> = pages.iter().map(|page| (&*page.path, &*page.title)).collect();
        assert_eq!(
            shown,
            [("reference/commands/plan.md", "lanyard plan"), ("reference/commands/run.md", "lanyard run")]
        );
        assert!(
            pages[0]
                .text
                .contains("## lanyard plan ls\n\nList plans.\n\n```text\nUsage: lanyard plan ls\n```")
        );
    }

    #[test]
    fn a_refusals_page_has_every_sentence_of_its_code() {
        let table = "# Refusals\n\n| code | status | what happened | what to do |\n|---|---|---|---|\n\
                     | <a id=\"x_gone\"></a>`x_gone` | 404 | it is gone | look with `lanyard ls` |\n\
                     | `a_full` | 409 | 64 wait | wait |\n| `x_gone` | 410 | it was purged | make another |\n";
        let pages = refusals(table);
        assert_eq!(pages.len(), 2);
        assert_eq!(pages[1].path, "reference/refusals/x_gone.md");
        assert!(pages[1].text.contains("(HTTP 404): it is gone") && pages[1].text.contains("make another"));
    }
}
