//! Dependency cycles between the top modules of a crate.
//!
//! An edge is a path that begins with `crate::`, or with `super::` where that is the crate's root. A name that the root
//! re-exports leads to the module that defines it.

use std::collections::{BTreeMap, BTreeSet};

use super::product::Source;
use super::rust_text::RustText;

/// The modules that each module of a crate uses.
pub(super) type Graph = BTreeMap<String, BTreeSet<String>>;

/// The modules of each crate that depend on each other in a circle, each circle sorted.
pub(super) fn of_crates(sources: &[Source]) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        crates.entry(source.crate_name()).or_default().push(source);
    }
    crates.into_iter().map(|(name, sources)| (name.to_owned(), cycles(&graph(&sources)))).collect()
}

fn graph(sources: &[&Source]) -> Graph {
    let texts: Vec<(Vec<&str>, String)> = sources
        .iter()
        .filter_map(|source| {
            Some((module_path(&source.path)?, RustText::split(&source.lines.join("\n")).code))
        })
        .collect();
    let modules: BTreeSet<&str> = texts.iter().filter_map(|(path, _)| path.first().copied()).collect();
    let exported = texts.iter().filter(|(path, _)| path.is_empty()).flat_map(|(_, text)| exports(text));
    let exported: BTreeMap<&str, &str> = exported.filter(|(_, module)| modules.contains(module)).collect();
    let mut graph: Graph = modules.iter().map(|module| ((*module).to_owned(), BTreeSet::new())).collect();
    for (path, text) in &texts {
        let Some(from) = path.first() else { continue };
        let mut used = used_names(text, "crate::");
        if path.len() == 1 {
            used.extend(used_names(text, "super::"));
        }
        for name in used {
            let to = exported.get(name).copied().unwrap_or(name);
            if to != *from && modules.contains(to) {
                graph.entry((*from).to_owned()).or_default().insert(to.to_owned());
            }
        }
    }
    graph
}

/// The modules a file is in, from the crate's root; none for the root itself. Nothing for files outside of `src`.
fn module_path(path: &str) -> Option<Vec<&str>> {
    let (_, within) = path.split_once("/src/")?;
    let mut parts: Vec<&str> = within.strip_suffix(".rs")?.split('/').collect();
    if ["lib", "main", "mod"].contains(parts.last()?) {
        parts.pop();
    }
    Some(parts)
}

/// First names of the paths that begin with `root`; of a group in braces, the first name of each.
fn used_names<'a>(text: &'a str, root: &str) -> BTreeSet<&'a str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    text.match_indices(root)
        .filter(|(at, _)| !text[..*at].ends_with(is_word))
        .flat_map(|(at, root)| first_names(&text[at + root.len()..]))
        .collect()
}

fn first_names(text: &str) -> Vec<&str> {
    let Some(group) = text.strip_prefix('{') else { return vec![word(text)] };
    let mut depth = 1;
    let mut start = 0;
    let mut names = Vec::new();
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (c == ',' && depth == 1) {
            names.push(word(group[start..at].trim_start()));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    names
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// Names that the root re-exports, with the module each comes from.
fn exports(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let statement = text[at + 4..].split(';').next().unwrap_or_default();
        let Some((module, rest)) = statement.trim_start_matches("self::").split_once("::") else { continue };
        let names = rest.split(|c: char| !c.is_alphanumeric() && c != '_');
        found.extend(names.filter(|name| !name.is_empty() && *name != "as").map(|name| (name, module)));
    }
    found
}

/// Groups of modules that all reach each other.
fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|module| (module.as_str(), reached(graph, module))).collect();
    let reaches = |from: &str, to: &str| reach.get(from).is_some_and(|reached| reached.contains(to));
    let mut groups: Vec<Vec<String>> = Vec::new();
    for module in graph.keys().filter(|module| reaches(module, module)) {
        match groups.iter_mut().find(|group| reaches(&group[0], module) && reaches(module, &group[0])) {
            Some(group) => group.push(module.clone()),
            None => groups.push(vec![module.clone()]),
        }
    }
    groups
}

/// All modules that can be reached from `from` over at least one edge.
fn reached<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for next in graph.get(module).into_iter().flatten() {
            if found.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources: Vec<Source> = files
            .iter()
            .filter_map(|(path, text)| Source::read(&format!("crates/a/src/{path}"), text))
            .collect();
        of_crates(&sources).remove("a").unwrap_or_default()
    }

    #[test]
    fn modules_that_use_each_other_are_a_cycle() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\n"),
            ("a.rs", "use crate::b::B;\n"),
            ("b/deep.rs", "use crate::{c::{C, D}, d};\n"),
            ("c.rs", "fn f() { super::a::g() }\n"),
            ("d.rs", "use crate::d::own;\n"),
        ];
        assert_eq!(found(&files), [["a", "b", "c"]]);
    }

    #[test]
    fn a_re_export_leads_to_its_module() {
        let files = [
            ("lib.rs", "pub use a::{A, Other as Renamed};\n"),
            ("a.rs", "use crate::b::B;\n"),
            ("b.rs", "use crate::Renamed;\n"),
        ];
        assert_eq!(found(&files), [["a", "b"]]);
    }

    #[test]
    fn tests_strings_and_the_parents_own_module_are_no_edges() {
        let files = [
            ("lib.rs", ""),
            ("a.rs", "use crate::b::B;\n"),
            ("b.rs", "const A: &str = \"crate::a\";\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
            ("b/deep.rs", "use super::a;\n"),
        ];
        assert_eq!(found(&files), Vec::<Vec<String>>::new());
    }
}
