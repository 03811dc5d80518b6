//! Families of sessions, drawn.

use std::collections::{BTreeMap, BTreeSet};

use lanyard_api::types::TreeNode;
use lanyard_core::SessionId;
use lanyard_core::journal::Row;

use crate::render::ids::Shortener;
use crate::render::text::{fit, width};

/// Draws families, one session per line. `line` says what stands on it.
pub(crate) fn draw(roots: &[TreeNode], line: &impl Fn(&Row) -> String, max: Option<usize>) -> String {
    let mut ids = Vec::new();
    for root in roots {
        collect(root, &mut ids);
    }
    let shorten = Shortener::of(&ids);
    let line = |row: &Row| {
        let id = row.id.to_string();
        line(row).replacen(&id, shorten.short(&id), 1)
    };
    let mut text = String::new();
    for root in roots {
        push(&mut text, "", &line(&root.session), max);
        push_children(&mut text, root, "", &line, max);
    }
    text
}

fn collect(node: &TreeNode, ids: &mut Vec<String>) {
    ids.push(node.session.id.to_string());
    for child in &node.children {
        collect(child, ids);
    }
}

fn push_children(
    text: &mut String,
    node: &TreeNode,
    indent: &str,
    line: &impl Fn(&Row) -> String,
    max: Option<usize>,
) {
    let last = node.children.len().saturating_sub(1);
    for (at, child) in node.children.iter().enumerate() {
        let is_last = at == last && !node.truncated;
        let (branch, below) = if is_last { ("└── ", "    ") } else { ("├── ", "│   ") };
        push(text, &format!("{indent}{branch}"), &line(&child.session), max);
        push_children(text, child, &format!("{indent}{below}"), line, max);
    }
    if node.truncated {
        push(text, &format!("{indent}└── "), "… more were left out", max);
    }
}

fn push(text: &mut String, branches: &str, line: &str, max: Option<usize>) {
    let whole = format!("{branches}{line}");
    // The first word is an id, which is never cut.
    let id = width(branches) + width(line.split(' ').next().unwrap_or_default());
    text.push_str(&max.map_or_else(|| whole.clone(), |max| fit(&whole, max.max(id + 1))));
    text.push('\n');
}

/// Puts listed sessions under their parents, oldest first. One whose parent is not in the list is a root.
pub(crate) fn forest(rows: Vec<Row>) -> Vec<TreeNode> {
    let listed: BTreeSet<SessionId> = rows.iter().map(|row| row.id).collect();
    let mut below: BTreeMap<Option<SessionId>, Vec<Row>> = BTreeMap::new();
    for row in rows {
        let parent = row.parent.filter(|parent| listed.contains(parent));
        below.entry(parent).or_default().push(row);
    }
    grow(&mut below, None)
}

fn grow(below: &mut BTreeMap<Option<SessionId>, Vec<Row>>, parent: Option<SessionId>) -> Vec<TreeNode> {
    let mut rows = below.remove(&parent).unwrap_or_default();
    rows.sort_by_key(|row| row.id);
    rows.into_iter()
        .map(|session| {
            let children = grow(below, Some(session.id));
            TreeNode { session, children, truncated: false }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::render::session::testing::row;

    fn family() -> Vec<Row> {
        vec![
            row(5, Some(2), "grandchild works"),
            row(4, None, "alone"),
            row(3, Some(1), "second"),
            row(2, Some(1), "first"),
            row(1, None, "hub"),
            row(6, Some(99), "its parent is elsewhere"),
        ]
    }

    fn name(row: &Row) -> String {
        row.title.clone().unwrap_or_default()
    }

    #[test]
    fn children_hang_below_their_parents_oldest_first() {
        let drawn = draw(&forest(family()), &name, None);
        expect![[r"
            hub
            ├── first
            │   └── grandchild works
            └── second
            alone
            its parent is elsewhere
        "]]
        .assert_eq(&drawn);
    }

    #[test]
    fn what_was_left_out_is_said_and_lines_fit_the_terminal_but_ids_stay_whole() {
        let mut roots = forest(family());
        roots[0].truncated = true;
        expect![[r"
            hub
            ├── first
            │   └── grandchild…
            ├── second
            └── … more were…
        "]]
        .assert_eq(&draw(&roots[..1], &name, Some(16)));
    }
}
