//! What the suite has shown, as a table: agents and what was seen of them.

use std::fmt::Write;

/// The rows of the table of agents, in this order. What else was shown is in a table of its own.
const CAPABILITIES: [&str; 18] = [
    "text",
    "partial",
    "tools",
    "permission",
    "cancel",
    "native steer",
    "guidance by hook",
    "gateway",
    "children",
    "child stop",
    "compact",
    "resume native",
    "images",
    "models",
    "modes",
    "commands",
    "cost",
    "context size",
];
/// What nothing was told of: its test failed, or was not run.
const NOTHING: &str = "-";

/// A line the suite wrote: agent, version, capability and word, with tabs between.
struct Told<'a> {
    agent: String,
    capability: &'a str,
    word: &'a str,
}

/// The agents whose columns are in the table: those that Lanyard runs. Others are shown in some tests alone.
fn is_whole(told: &[Told<'_>], agent: &str) -> bool {
    told.iter().any(|one| one.agent == agent && one.capability == CAPABILITIES[0])
}

/// The table of a results file, one row per agent in order of their names.
pub(super) fn of(results: &str) -> String {
    let told: Vec<Told<'_>> = results.lines().filter_map(parse).collect();
    let columns: Vec<&str> = CAPABILITIES.into_iter().chain(others(&told)).collect();
    drawn(&rows(&told, &columns, |_| true))
}

/// For a page: one row per capability and one column per agent that went through all chapters.
pub(super) fn by_capability(results: &str) -> String {
    let told: Vec<Told<'_>> = results.lines().filter_map(parse).collect();
    drawn(&turned(&rows(&told, &CAPABILITIES, |agent| is_whole(&told, agent))))
}

/// For a page: what else was shown, by agent. A line for each agent, since no test of these is for all of them.
pub(super) fn others_by_agent(results: &str) -> String {
    let told: Vec<Told<'_>> = results.lines().filter_map(parse).collect();
    let mut agents: Vec<&str> = told.iter().map(|one| one.agent.as_str()).collect();
    agents.sort_unstable();
    agents.dedup();
    let mut list = String::new();
    for agent in agents {
        let mut shown: Vec<String> = told
            .iter()
            .filter(|one| one.agent == agent && !CAPABILITIES.contains(&one.capability))
            .map(|one| {
                if one.word == "ok" {
                    one.capability.to_owned()
                } else {
                    format!("{}: {}", one.capability, one.word)
                }
            })
            .collect();
        shown.sort_unstable();
        if !shown.is_empty() {
            let _ = writeln!(list, "- {agent}: {}", shown.join("; "));
        }
    }
    list
}

/// What was shown besides the capabilities, in the order in which it was first told.
fn others<'a>(told: &[Told<'a>]) -> Vec<&'a str> {
    let mut others: Vec<&str> = Vec::new();
    for one in told {
        if !CAPABILITIES.contains(&one.capability) && !others.contains(&one.capability) {
            others.push(one.capability);
        }
    }
    others
}

fn turned<'a>(rows: &[Vec<&'a str>]) -> Vec<Vec<&'a str>> {
    let width = rows.first().map_or(0, Vec::len);
    (0..width).map(|at| rows.iter().map(|row| row[at]).collect()).collect()
}

fn rows<'a>(told: &'a [Told<'a>], columns: &[&'a str], wanted: impl Fn(&str) -> bool) -> Vec<Vec<&'a str>> {
    let mut agents: Vec<&str> =
        told.iter().map(|one| one.agent.as_str()).filter(|agent| wanted(agent)).collect();
    agents.sort_unstable();
    agents.dedup();
    let mut rows = vec![std::iter::once("agent").chain(columns.iter().copied()).collect::<Vec<_>>()];
    for agent in agents {
        let word = |capability: &&str| {
            let found = told.iter().find(|one| one.agent == agent && one.capability == *capability);
            found.map_or(NOTHING, |one| one.word)
        };
        rows.push(std::iter::once(agent).chain(columns.iter().map(word)).collect());
    }
    rows
}

fn parse(line: &str) -> Option<Told<'_>> {
    let mut fields = line.split('\t');
    let agent = format!("{} {}", fields.next()?, fields.next()?);
    Some(Told { agent, capability: fields.next()?, word: fields.next()? })
}

fn drawn(rows: &[Vec<&str>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> =
        (0..columns).map(|at| rows.iter().map(|row| row[at].len()).max().unwrap_or(0)).collect();
    let mut table = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(table, "| {cell:width$} ");
        }
        table.push_str("|\n");
        if number == 0 {
            for width in &widths {
                let _ = write!(table, "| {} ", "-".repeat(*width));
            }
            table.push_str("|\n");
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_row_for_each_capability_and_a_column_for_each_agent_that_talks() {
        let told =
            "b\t1.0\ttext\tok\na\t2.0\ttext\tok\na\t2.0\twaltz\tok\na\t2.0\tsong\tlost\nc\t1\twaltz\tok\n";
        let table = by_capability(told);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), CAPABILITIES.len() + 2, "{table}");
        assert!(lines[0].starts_with("| agent ") && lines[0].ends_with("| a 2.0 | b 1.0 |"), "{table}");
        assert!(lines[2].starts_with("| text ") && lines[2].ends_with("| ok    | ok    |"), "{table}");
        assert!(!table.contains("waltz"), "{table}");
        assert_eq!(others_by_agent(told), "- a 2.0: song: lost; waltz\n- c 1: waltz\n");
    }

    #[test]
    fn agents_are_rows_and_what_was_not_shown_is_seen() {
        let table =
            of("b\t1.0\ttext\tok\nb\t1.0\tnative steer\tnot offered\na\t2.0\twaltz\tok\nbroken line\n");
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        assert!(lines[0].starts_with("| agent | text | partial |"), "{table}");
        assert!(lines[0].ends_with("| context size | waltz |"), "{table}");
        assert!(lines[2].starts_with("| a 2.0 | -    |") && lines[2].ends_with("| ok    |"), "{table}");
        assert!(lines[3].starts_with("| b 1.0 | ok   |") && lines[3].contains("| not offered "), "{table}");
    }
}
