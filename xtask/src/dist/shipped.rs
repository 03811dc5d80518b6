//! The third-party packages whose code is in the programs and in the dashboard, and their licences. Packages that only
//! build or test them are not among these.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{process, web};

/// Packages in the dashboard, as its build lists them (`web/vite.config.ts`).
const BUNDLED: &str = ".vite/packages.json";
/// Beginnings of the names of files that hold a licence.
const LICENCE_FILES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Shipped {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: Option<String>,
    pub(super) source: Option<String>,
    manifest_path: PathBuf,
    #[serde(skip)]
    pub(super) registry: Registry,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Registry {
    #[default]
    Cargo,
    Npm,
}

/// A package of the dashboard.
#[derive(Debug, Deserialize)]
struct Bundled {
    name: String,
    version: String,
    license: Option<String>,
    /// Its folder, below `web`.
    folder: PathBuf,
}

#[derive(Debug, Deserialize)]
struct PackageGraph {
    packages: Vec<Shipped>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Debug, Deserialize)]
struct EdgeKind {
    /// `dev` or `build`; nothing for a dependency of the program itself.
    kind: Option<String>,
}

/// The packages of the programs and of the dashboard they hold, sorted by name and version.
pub(super) fn packages(target: &str) -> Result<Vec<Shipped>> {
    let mut shipped = crates(target)?;
    shipped.extend(bundled()?);
    shipped.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(shipped)
}

/// The packages of the dashboard; none where it was not built, since the programs do not hold it then.
fn bundled() -> Result<Vec<Shipped>> {
    let list = web::dist().join(BUNDLED);
    if !list.is_file() {
        eprintln!("the dashboard was not built: no package of it is listed");
        return Ok(Vec::new());
    }
    let found: Vec<Bundled> = serde_json::from_str(&fs::read_to_string(&list)?)
        .with_context(|| format!("{} holds something unknown", list.display()))?;
    let folder = process::root().join("web");
    Ok(found.into_iter().map(|package| package.shipped(&folder)).collect())
}

impl Bundled {
    fn shipped(self, web: &Path) -> Shipped {
        Shipped {
            id: format!("npm {} {}", self.name, self.version),
            name: self.name,
            version: self.version,
            license: self.license,
            source: None,
            manifest_path: web.join(self.folder).join("package.json"),
            registry: Registry::Npm,
        }
    }
}

fn crates(target: &str) -> Result<Vec<Shipped>> {
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
    let graph: PackageGraph = serde_json::from_str(&process::read(&mut process::cargo(arguments))?)
        .context("`cargo metadata` printed something unknown")?;
    Ok(reached(&graph))
}

/// Third-party packages that `lanyard` depends on to run.
fn reached(graph: &PackageGraph) -> Vec<Shipped> {
    let edges: BTreeMap<&str, &[Edge]> =
        graph.resolve.nodes.iter().map(|node| (node.id.as_str(), node.deps.as_slice())).collect();
    let mut seen = BTreeSet::new();
    let mut next: Vec<&str> = graph
        .packages
        .iter()
        .filter(|package| package.name == "lanyard")
        .map(|package| package.id.as_str())
        .collect();
    while let Some(id) = next.pop() {
        if seen.insert(id) {
            let runs = |edge: &&Edge| edge.dep_kinds.iter().any(|kind| kind.kind.is_none());
            next.extend(
                edges.get(id).into_iter().copied().flatten().filter(runs).map(|edge| edge.pkg.as_str()),
            );
        }
    }
    let is_shipped = |package: &&Shipped| package.source.is_some() && seen.contains(package.id.as_str());
    graph.packages.iter().filter(is_shipped).cloned().collect()
}

/// The licences of all packages as one text; equal ones once.
pub(super) fn notices(shipped: &[Shipped]) -> Result<String> {
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut text = "Lanyard contains code of these packages.\n\n".to_owned();
    for package in shipped {
        let name = format!("{} {}", package.name, package.version);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}: {}", package.license.as_deref().unwrap_or("no licence named"));
        let folder = package.manifest_path.parent().context("a manifest is in a folder")?;
        for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            let file = entry.file_name().to_string_lossy().to_uppercase();
            if entry.file_type()?.is_file() && LICENCE_FILES.iter().any(|start| file.starts_with(start)) {
                let licence = String::from_utf8_lossy(&fs::read(entry.path())?).trim().to_owned();
                users.entry(licence).or_default().push(name.clone());
            }
        }
    }
    for (licence, names) in users {
        let _ = write!(text, "\n{}\n{}\n\n{licence}\n", "-".repeat(72), names.join(", "));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_builds_or_tests_the_program_is_not_shipped() {
        let package = |name: &str, source: &str| {
            format!(
                r#"{{"id":"{name}","name":"{name}","version":"1.0.0","license":"MIT","source":{source},"manifest_path":"/x"}}"#
            )
        };
        let edge = |name: &str, kind: &str| format!(r#"{{"pkg":"{name}","dep_kinds":[{{"kind":{kind}}}]}}"#);
        let packages = [package("lanyard", "null"), package("ours", "null")]
            .into_iter()
            .chain(["run", "deep", "test", "build"].map(|name| package(name, r#""registry""#)));
        let nodes = [
            ("lanyard", vec![edge("ours", "null"), edge("test", r#""dev""#)]),
            ("ours", vec![edge("run", "null"), edge("build", r#""build""#)]),
            ("run", vec![edge("deep", "null")]),
        ];
        let nodes = nodes.map(|(id, deps)| format!(r#"{{"id":"{id}","deps":[{}]}}"#, deps.join(",")));
        let text = format!(
            r#"{{"packages":[{}],"resolve":{{"nodes":[{}]}}}}"#,
            packages.collect::<Vec<_>>().join(","),
            nodes.join(",")
        );
        let found = reached(&serde_json::from_str(&text).unwrap());
        assert_eq!(found.iter().map(|package| package.name.as_str()).collect::<Vec<_>>(), ["run", "deep"]);
    }
}
