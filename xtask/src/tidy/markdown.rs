//! Markdown: relative links lead to files and headings that exist, and the book has every page.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

/// The text without its code: fenced blocks and `code spans` are blanked, lines keep their numbers.
pub(super) fn prose(text: &str) -> String {
    let mut kept = String::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => kept.push_str(&without_code_spans(line)),
        }
        kept.push('\n');
    }
    kept
}

/// A span is closed by as many backticks as opened it; unclosed ones are ordinary characters.
fn without_code_spans(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let (before, from_ticks) = rest.split_at(start);
        let (ticks, after) = from_ticks.split_at(run_of_ticks(from_ticks));
        kept.push_str(before);
        if let Some(end) = closing(after, ticks.len()) {
            kept.push(' ');
            rest = &after[end..];
        } else {
            kept.push_str(ticks);
            rest = after;
        }
    }
    kept + rest
}

fn run_of_ticks(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

/// Where a span opened by `ticks` backticks ends in what follows them.
fn closing(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let length = run_of_ticks(&text[start..]);
        at = start + length;
        if length == ticks {
            return Some(at);
        }
    }
    None
}

pub(super) fn broken_links(path: &str, prose: &str, paths: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(prose.lines()) {
        for target in targets(line).into_iter().filter(|target| is_relative(target)) {
            let exists = resolve(path, target).is_some_and(|file| is_in(paths, &file));
            if !exists {
                let message = format!("the link `{target}` leads nowhere in this tree");
                findings.push(Finding::error(path, number, message));
            }
        }
    }
    findings
}

/// Links to a heading that its page does not have. `pages` are all Markdown files with their texts.
pub(super) fn missing_headings(pages: &BTreeMap<String, String>) -> Vec<Finding> {
    let headings: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|(path, text)| (path.as_str(), slugs(text))).collect();
    let mut findings = Vec::new();
    for (path, text) in pages {
        for (number, line) in (1..).zip(prose(text).lines()) {
            for target in targets(line) {
                let Some((file, heading)) = target.split_once('#') else { continue };
                let page = if file.is_empty() { Some(path.clone()) } else { resolve(path, file) };
                let known = page.and_then(|page| headings.get(page.as_str()));
                if known.is_some_and(|known| !known.contains(heading)) {
                    let message = format!("the link `{target}` names a heading that its page does not have");
                    findings.push(Finding::error(path, number, message));
                }
            }
        }
    }
    findings
}

/// The names by which the headings of a page can be linked to.
fn slugs(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if !fenced && title.len() < line.len() && title.starts_with(' ') {
            let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            found.insert(kept.collect::<String>().to_lowercase().replace(' ', "-"));
        }
    }
    found
}

/// Pages of `docs/` that the book's table of contents leaves out.
pub(super) fn outside_of_the_book(pages: &BTreeMap<String, String>) -> Vec<Finding> {
    const SUMMARY: &str = "docs/SUMMARY.md";
    let Some(summary) = pages.get(SUMMARY) else {
        return vec![Finding::error(SUMMARY, 0, "the book has no table of contents")];
    };
    let listed: BTreeSet<String> =
        summary.lines().flat_map(targets).filter_map(|target| resolve(SUMMARY, target)).collect();
    let is_page = |path: &&String| {
        path.strip_prefix("docs/").is_some_and(|name| !name.contains('/')) && path.as_str() != SUMMARY
    };
    let left_out = pages.keys().filter(is_page).filter(|path| !listed.contains(*path));
    left_out.map(|path| Finding::error(path, 0, format!("{SUMMARY} does not list this page"))).collect()
}

/// Link targets on a line: `[text](target "title")`, images, and `[label]: target`.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find("](") {
        rest = &rest[start + 2..];
        found.extend(target(&rest[..closing_bracket(rest)]));
    }
    let definition = line.trim_start().strip_prefix('[').and_then(|line| line.split_once("]: "));
    // `[^1]: …` is a footnote: prose, not a target.
    if let Some((_label, value)) = definition.filter(|(label, _)| !label.starts_with('^')) {
        found.extend(target(value));
    }
    found
}

/// The length of a target up to its closing bracket; brackets inside it come in pairs.
fn closing_bracket(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return at,
            ')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// The target without its title: `<may have spaces>` or everything up to the first blank.
fn target(text: &str) -> Option<&str> {
    let text = text.trim();
    match text.strip_prefix('<') {
        Some(rest) => rest.split('>').next(),
        None => text.split_whitespace().next(),
    }
}

/// Neither a place in the same page nor something with a scheme, such as `https:` or `mailto:`.
fn is_relative(target: &str) -> bool {
    let scheme = target.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    !target.is_empty() && !target.starts_with('#') && !target.starts_with("//") && !scheme
}

/// The path a link names, from the root of the tree; `None` when it leaves the tree.
fn resolve(page: &str, target: &str) -> Option<String> {
    let target = target.split(['#', '?']).next().unwrap_or_default().replace("%20", " ");
    let folder = page.rsplit_once('/').map_or("", |(folder, _page)| folder);
    let start = if target.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = start.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A file, or a folder that holds one. Asked of git's list and not of the disk: what is ignored
/// exists on one machine only.
fn is_in(paths: &BTreeSet<String>, path: &str) -> bool {
    let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
    paths.contains(path) || paths.range(folder.clone()..).next().is_some_and(|next| next.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages for a page `docs/page.md` in a small tree.
    fn check(text: &str) -> Vec<String> {
        let paths = ["README.md", "docs/page.md", "docs/a b.md", "docs/decisions/0001-x.md"];
        let paths = paths.into_iter().map(str::to_owned).collect();
        broken_links("docs/page.md", &prose(text), &paths).iter().map(ToString::to_string).collect()
    }

    fn pages(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_link_to_a_heading_needs_the_heading() {
        let found = missing_headings(&pages(&[
            (
                "docs/a.md",
                "# One `word`, two\n[here](#one-word-two) [there](b.md#gone) [other](b.md#what-it-is)\n",
            ),
            ("docs/b.md", "## What it is\n```\n# gone\n```\n"),
        ]));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            ["docs/a.md:2: error: the link `b.md#gone` names a heading that its page does not have"]
        );
    }

    #[test]
    fn a_page_that_the_book_leaves_out_is_found() {
        let texts =
            [("docs/SUMMARY.md", "- [A](a.md)"), ("docs/a.md", ""), ("docs/b.md", ""), ("docs/x/c.md", "")];
        let found = outside_of_the_book(&pages(&texts));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, "docs/b.md");
    }

    #[test]
    fn links_to_files_and_folders_resolve() {
        let fine = "[a](../README.md) [b](decisions/) ![c](./decisions/0001-x.md#why \"title\")\n\
            [d](/docs/page.md) [e](<a b.md>) [f](a%20b.md) [g](..)\n\n[h]: ../README.md\n";
        assert_eq!(check(fine), [""; 0]);
    }

    #[test]
    fn a_link_to_nothing_is_found_with_its_line() {
        assert_eq!(
            check("fine\n[a](gone.md) and [b](../../outside.md)\n[c]: README.md\n"),
            [
                "docs/page.md:2: error: the link `gone.md` leads nowhere in this tree",
                "docs/page.md:2: error: the link `../../outside.md` leads nowhere in this tree",
                "docs/page.md:3: error: the link `README.md` leads nowhere in this tree",
            ]
        );
    }

    #[test]
    fn the_web_and_the_same_page_are_not_checked() {
        assert_eq!(check("[a](https://x.org/gone.md) [b](#here) [c](mailto:a@b.c)\n[^1]: gone\n"), [""; 0]);
    }

    #[test]
    fn code_is_not_prose() {
        assert_eq!(check("`[a](gone.md)` and ``[b](`gone.md)``\n```\n[c](gone.md)\n```\n"), [""; 0]);
        assert_eq!(check("an ` unclosed [d](gone.md)\n").len(), 1);
        assert_eq!(check("[`code`](gone.md)\n").len(), 1);
    }
}
