//! Tables: columns apart by two blanks, nothing drawn. Ids are never cut.

use crate::render::ids::shorten_cells;
use crate::render::text::{fit, pad, width};

const GAP: usize = 2;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) shrink: Shrink,
}

/// What may happen to a column when the terminal is too narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shrink {
    Never,
    /// Down to this many columns.
    To(usize),
}

impl Column {
    pub(crate) const fn whole(title: &'static str) -> Self {
        Self { title, shrink: Shrink::Never }
    }

    pub(crate) const fn elastic(title: &'static str, min: usize) -> Self {
        Self { title, shrink: Shrink::To(min) }
    }
}

/// Draws the table. Ids are shown short. A column that is empty in every row is left out. `max` is the width of the terminal, if there is
/// one.
pub(crate) fn table(columns: &[Column], rows: &[Vec<String>], max: Option<usize>) -> String {
    let mut rows = rows.to_vec();
    shorten_cells(&mut rows, columns.len());
    let used: Vec<usize> =
        (0..columns.len()).filter(|&at| rows.iter().any(|row| !row[at].is_empty())).collect();
    let mut widths: Vec<usize> = used
        .iter()
        .map(|&at| {
            rows.iter().map(|row| width(&row[at])).chain([width(columns[at].title)]).max().unwrap_or(0)
        })
        .collect();
    if let Some(max) = max {
        let shrinks: Vec<Shrink> = used.iter().map(|&at| columns[at].shrink).collect();
        squeeze(&mut widths, &shrinks, max);
    }
    let mut text = String::new();
    let titles: Vec<&str> = used.iter().map(|&at| columns[at].title).collect();
    push_row(&mut text, &titles, &widths);
    for row in &rows {
        let cells: Vec<&str> = used.iter().map(|&at| row[at].as_str()).collect();
        push_row(&mut text, &cells, &widths);
    }
    text
}

/// Takes from the widest elastic column first, one column at a time, until the row fits or nothing can give.
fn squeeze(widths: &mut [usize], shrinks: &[Shrink], max: usize) {
    let gaps = GAP * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > max {
        let widest = (0..widths.len())
            .filter(|&at| match shrinks[at] {
                Shrink::Never => false,
                Shrink::To(min) => widths[at] > min,
            })
            .max_by_key(|&at| widths[at]);
        let Some(at) = widest else { return };
        widths[at] -= 1;
    }
}

fn push_row(text: &mut String, cells: &[&str], widths: &[usize]) {
    let mut line = String::new();
    for (cell, &columns) in cells.iter().zip(widths) {
        line.push_str(&pad(&fit(cell, columns), columns + GAP));
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    const COLUMNS: [Column; 4] = [
        Column::whole("ID"),
        Column::whole("STATE"),
        Column::elastic("AGENT", 5),
        Column::elastic("TITLE", 8),
    ];

    fn check(rows: &[[&str; 4]], max: Option<usize>, expected: &Expect) {
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|&cell| cell.to_owned()).collect()).collect();
        expected.assert_eq(&table(&COLUMNS, &rows, max));
    }

    const TWO: [[&str; 4]; 2] = [
        [
            "sess_01m7n5djg0fayvh8t5cxyjkdnf",
            "executing",
            "opencode",
            "fix the failing login test before lunch",
        ],
        ["sess_01m7n5djg0fayvh8t5cxyjkdng", "idle", "", "漢字のタイトル"],
    ];

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        check(
            &TWO,
            None,
            &expect![[r"
                ID      STATE      AGENT     TITLE
                yjkdnf  executing  opencode  fix the failing login test before lunch
                yjkdng  idle                 漢字のタイトル
            "]],
        );
    }

    #[test]
    fn the_widest_elastic_column_gives_first() {
        check(
            &TWO,
            Some(72),
            &expect![[r"
                ID      STATE      AGENT     TITLE
                yjkdnf  executing  opencode  fix the failing login test before lunch
                yjkdng  idle                 漢字のタイトル
            "]],
        );
    }

    #[test]
    fn ids_and_states_are_whole_even_when_the_terminal_is_too_narrow() {
        check(
            &TWO,
            Some(20),
            &expect![[r"
                ID      STATE      AGENT  TITLE
                yjkdnf  executing  open…  fix the…
                yjkdng  idle              漢字の…
            "]],
        );
    }

    #[test]
    fn a_column_without_any_value_is_left_out() {
        check(
            &[["sess_1", "idle", "", "x"]],
            None,
            &expect![[r"
                ID      STATE  TITLE
                sess_1  idle   x
            "]],
        );
    }
}
