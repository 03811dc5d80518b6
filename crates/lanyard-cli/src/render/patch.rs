//! The lines that differ between two texts, with a few unchanged lines around them.

/// Unchanged lines shown before and after a change.
const CONTEXT_LINES: usize = 3;
/// Cells of the comparison table. A larger change is shown as all old lines, then all new ones.
const CELLS_MAX: usize = 1 << 20;

/// A line of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatchLine {
    Kept(String),
    Added(String),
    Removed(String),
    /// Unchanged lines that are left out.
    Skipped(usize),
}

/// The patch from `old` to `new`. Equal texts have an empty patch.
pub(crate) fn patch(old: &str, new: &str) -> Vec<PatchLine> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(same).count();
    let middle = compare(&old[head..old.len() - tail], &new[head..new.len() - tail]);
    if middle.is_empty() {
        return Vec::new();
    }
    let kept = |line: &&str| PatchLine::Kept((*line).to_owned());
    let before = old[..head].iter().map(kept);
    let after = old[old.len() - tail..].iter().map(kept);
    shorten(before.chain(middle).chain(after).collect())
}

/// Compares by the longest common subsequence of lines.
fn compare(old: &[&str], new: &[&str]) -> Vec<PatchLine> {
    let removed = |line: &&str| PatchLine::Removed((*line).to_owned());
    let added = |line: &&str| PatchLine::Added((*line).to_owned());
    let columns = new.len() + 1;
    if (old.len() + 1).saturating_mul(columns) > CELLS_MAX {
        return old.iter().map(removed).chain(new.iter().map(added)).collect();
    }
    // common[i * columns + j]: length of the common subsequence of old[i..] and new[j..].
    let mut common = vec![0_u32; (old.len() + 1) * columns];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * columns + j] = if old[i] == new[j] {
                common[(i + 1) * columns + j + 1] + 1
            } else {
                common[(i + 1) * columns + j].max(common[i * columns + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            lines.push(PatchLine::Kept(old[i].to_owned()));
            (i, j) = (i + 1, j + 1);
        } else if common[(i + 1) * columns + j] >= common[i * columns + j + 1] {
            lines.push(removed(&old[i]));
            i += 1;
        } else {
            lines.push(added(&new[j]));
            j += 1;
        }
    }
    lines.extend(old[i..].iter().map(removed));
    lines.extend(new[j..].iter().map(added));
    lines
}

/// Leaves out unchanged lines that are far from every change.
fn shorten(lines: Vec<PatchLine>) -> Vec<PatchLine> {
    let is_kept = |line: &PatchLine| matches!(line, PatchLine::Kept(_));
    let changes: Vec<usize> = (0..lines.len()).filter(|&at| !is_kept(&lines[at])).collect();
    let near = |at: usize| {
        let next = changes.partition_point(|&change| change < at);
        let close =
            |change: Option<&usize>| change.is_some_and(|&change| change.abs_diff(at) <= CONTEXT_LINES);
        close(changes.get(next)) || close(next.checked_sub(1).and_then(|before| changes.get(before)))
    };
    let mut shown = Vec::new();
    for (at, line) in lines.into_iter().enumerate() {
        if !is_kept(&line) || near(at) {
            shown.push(line);
        } else if let Some(PatchLine::Skipped(count)) = shown.last_mut() {
            *count += 1;
        } else {
            shown.push(PatchLine::Skipped(1));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(old: &str, new: &str, expected: &Expect) {
        let text = patch(old, new).into_iter().fold(String::new(), |text, line| {
            text + &match line {
                PatchLine::Kept(line) => format!(" {line}\n"),
                PatchLine::Added(line) => format!("+{line}\n"),
                PatchLine::Removed(line) => format!("-{line}\n"),
                PatchLine::Skipped(count) => format!("@{count}\n"),
            }
        });
        expected.assert_eq(&text);
    }

    #[test]
    fn changed_lines_are_shown_with_their_neighbours() {
        check(
            "",
            "one\ntwo\n",
            &expect![[r"
            +one
            +two
        "]],
        );
        check("same\n", "same\n", &expect![""]);
        check(
            "a\nb\nc\n",
            "a\nB\nc\n",
            &expect![[r"
             a
            -b
            +B
             c
        "]],
        );
        check(
            "a\nb\nc",
            "b\nc\nd",
            &expect![[r"
            -a
             b
             c
            +d
        "]],
        );
    }

    #[test]
    fn lines_far_from_a_change_are_counted() {
        let old: String = (1..=30).fold(String::new(), |text, n| format!("{text}line {n}\n"));
        let new = old.replace("line 5\n", "LINE 5\n").replace("line 25\n", "");
        check(
            &old,
            &new,
            &expect![[r"
            @1
             line 2
             line 3
             line 4
            -line 5
            +LINE 5
             line 6
             line 7
             line 8
            @13
             line 22
             line 23
             line 24
            -line 25
             line 26
             line 27
             line 28
            @2
        "]],
        );
    }

    #[test]
    fn a_change_too_large_to_compare_is_all_old_lines_and_all_new_ones() {
        let text = |word: &str| (0..2_000).fold(String::new(), |text, n| format!("{text}{word}{n}\n"));
        let lines = patch(&text("old"), &text("new"));
        assert_eq!(lines.len(), 4_000);
        assert_eq!(lines[0], PatchLine::Removed("old0".to_owned()));
        assert_eq!(lines[3_999], PatchLine::Added("new1999".to_owned()));
    }
}
