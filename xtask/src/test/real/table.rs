//! What the suite has shown, as a table: agents and what was seen of them.

use std::fmt::Write;

/// The capabilities in the order of a session's life.
const COLUMNS: [&str; 11] = [
    "start",
    "text",
    "tool",
    "permission",
    "cancel",
    "steer",
    "children",
    "daemon killed",
    "agent killed",
    "two apart",
    "stop",
];
/// What nothing was told of: its test failed, or was not run.
const NOTHING: &str = "-";

/// A line the suite wrote: agent, version, capability and word, with tabs between.
struct Told<'a> {
    agent: String,
    capability: &'a str,
    word: &'a str,
}

/// The table of a results file, one row per agent in order of their names.
pub(super) fn of(results: &str) -> String {
    let told: Vec<Told<'_>> = results.lines().filter_map(parse).collect();
    drawn(&rows(&told))
}

/// The same table with one row per capability and one column per agent, for a page.
pub(super) fn by_capability(results: &str) -> String {
    let told: Vec<Told<'_>> = results.lines().filter_map(parse).collect();
    let rows = rows(&told);
    let width = rows.first().map_or(0, Vec::len);
    let turned: Vec<Vec<&str>> = (0..width).map(|at| rows.iter().map(|row| row[at]).collect()).collect();
    drawn(&turned)
}

fn rows<'a>(told: &'a [Told<'a>]) -> Vec<Vec<&'a str>> {
    let mut columns: Vec<&str> = COLUMNS.to_vec();
    for one in told {
        if !columns.contains(&one.capability) {
            columns.push(one.capability);
        }
    }
    let mut agents: Vec<&str> = told.iter().map(|one| one.agent.as_str()).collect();
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
    fn a_page_has_a_row_for_each_capability() {
        let table = by_capability("b\t1.0\tstart\tok\na\t2.0\tdance\tok\n");
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), COLUMNS.len() + 3, "{table}");
        assert!(lines[0].starts_with("| agent ") && lines[0].ends_with("| a 2.0 | b 1.0 |"), "{table}");
        assert!(
            lines.last().is_some_and(|row| row.starts_with("| dance ") && row.ends_with("| ok    | -     |"))
        );
    }

    #[test]
    fn agents_are_rows_and_what_was_not_shown_is_seen() {
        let table = of("b\t1.0\tstart\tok\nb\t1.0\tsteer\tnot offered\na\t2.0\tdance\tok\nbroken line\n");
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        assert!(lines[0].starts_with("| agent | start | text |"), "{table}");
        assert!(lines[0].ends_with("| stop | dance |"), "{table}");
        assert!(lines[2].starts_with("| a 2.0 | -     |") && lines[2].ends_with("| ok    |"), "{table}");
        assert!(lines[3].starts_with("| b 1.0 | ok    |") && lines[3].contains("| not offered |"), "{table}");
    }
}
