//! Where `cargo xtask test real` put the agents.

use std::env;
use std::path::{Path, PathBuf};

/// Names the folder that holds one folder per package and version.
const FOLDER: &str = "LANYARD_REAL_AGENTS";
const PACKAGES: &str = include_str!("../packages.txt");

/// A program of an installed agent.
pub(crate) fn binary(agent: &str, program: &str) -> PathBuf {
    inside(agent, &format!("node_modules/.bin/{program}"))
}

/// A file of an installed package.
pub(crate) fn inside(agent: &str, file: &str) -> PathBuf {
    let Some(root) = env::var_os(FOLDER) else {
        panic!("{FOLDER} names no folder of agents: run this suite with `cargo xtask test real`");
    };
    let path = Path::new(&root).join(folder(agent)).join(file);
    assert!(path.exists(), "{agent} is not installed ({}): run `cargo xtask test real`", path.display());
    path
}

/// `@scope/name` in version `1.2.3` is in `scope+name@1.2.3`.
fn folder(agent: &str) -> String {
    let [package, version] = package(agent);
    format!("{}@{version}", package.trim_start_matches('@').replace(['/', ':'], "+"))
}

/// The version that is installed.
pub(crate) fn version(agent: &str) -> &'static str {
    package(agent)[1]
}

/// An agent's package and its version.
fn package(agent: &str) -> [&'static str; 2] {
    let fields = PACKAGES.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = fields.into_iter().find(|fields| fields.first() == Some(&agent));
    let Some([_, package, version, ..]) = found.as_deref() else {
        panic!("packages.txt has no line for {agent}");
    };
    [package, version]
}

/// The folder of the Node on PATH. An agent gets no other part of our PATH.
pub(super) fn node_dir() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).find(|dir| dir.join("node").is_file());
    found.expect("node is on PATH: `cargo xtask test real` checks that")
}
