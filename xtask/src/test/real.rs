//! `cargo xtask test real`: installs pinned releases of real agents into a cache folder and runs the suite
//! that drives them against the project's scripted model. Apart from CI's steps: it downloads gigabytes.

mod install;
mod packages;
mod page;
mod table;

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use self::packages::Package;
use crate::process;

/// Tells the suite where the agents are.
const FOLDER: &str = "LANYARD_REAL_AGENTS";
/// Tells the suite where to write what it has shown.
const RESULTS: &str = "LANYARD_REAL_RESULTS";
/// An agent takes up to 600 MB while it runs.
const TESTS_AT_ONCE: &str = "--test-threads=2";
/// The MCP server that every agent is given.
const SERVER: &str = "mcp_everything";

#[derive(Debug, clap::Args)]
pub(crate) struct RealArgs {
    /// Only agents and tests with this in their name, such as codex or smoke
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Show the agents, their versions and whether they are installed
    #[arg(long)]
    list: bool,
    /// Put the table into docs/agents.md
    #[arg(long, conflicts_with_all = ["only", "list"])]
    write: bool,
}

pub(crate) fn run(args: &RealArgs) -> Result<()> {
    let folder = folder(|name| env::var_os(name).map(PathBuf::from))?;
    let packages = packages::pinned(packages::AGENTS)?;
    if args.list {
        for package in &packages {
            let word = if install::is_there(&folder, package) { "installed" } else { "not installed" };
            println!("{:<17}{:<52}{word}", package.agent, package.spec());
        }
        return Ok(());
    }
    let wanted = wanted(&packages, args.only.as_deref());
    install::all(&folder, &wanted)?;
    let results = results()?;
    let done = process::run(suite(args.only.as_deref()).env(FOLDER, &folder).env(RESULTS, &results));
    // Also after a failure, since it says what else was shown.
    let shown = std::fs::read_to_string(&results)
        .with_context(|| format!("cannot read what was shown in {}", results.display()));
    let _ = std::fs::remove_file(&results);
    let shown = shown?;
    println!("{}", table::of(&shown));
    done?;
    if args.write {
        page::write(&shown)?;
    }
    Ok(())
}

/// Installs what the gateway is measured beside, as far as that can be had, and says where a bench finds it.
pub(crate) fn bridges(cargo: &mut Command, wanted: bool) -> Result<()> {
    let folder = folder(|name| env::var_os(name).map(PathBuf::from))?;
    if wanted {
        for package in packages::pinned(packages::BRIDGES)? {
            if let Err(error) = install::needed(&folder, &package) {
                eprintln!("{} is left out: {error:#}", package.spec());
            }
        }
    }
    cargo.env(FOLDER, folder);
    Ok(())
}

/// An empty file for what the suite shows.
fn results() -> Result<PathBuf> {
    let path = env::temp_dir().join(format!("lanyard-real-{}.tsv", std::process::id()));
    std::fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// The agents a name asks for. A name that is no agent's is a test's, which may need any of them.
fn wanted<'a>(packages: &'a [Package], only: Option<&str>) -> Vec<&'a Package> {
    let is_named = |package: &&Package| only.is_some_and(|name| package.agent.contains(name));
    if packages.iter().any(|package| is_named(&package)) {
        packages.iter().filter(|package| is_named(package) || package.agent == SERVER).collect()
    } else {
        packages.iter().collect()
    }
}

fn suite(only: Option<&str>) -> Command {
    let mut command = process::cargo(["test", "-p", "lanyard", "--test", "real", "--", TESTS_AT_ONCE]);
    command.args(only);
    command
}

/// `$XDG_CACHE_HOME/lanyard/agents`, or `~/.cache/lanyard/agents`.
fn folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf> {
    // A relative path is to be ignored, says the specification.
    let cache = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = match (cache, variable("HOME")) {
        (Some(cache), _) => cache,
        (None, Some(home)) if home.is_absolute() => home.join(".cache"),
        (None, _) => bail!("neither XDG_CACHE_HOME nor HOME says where the agents can be kept"),
    };
    Ok(cache.join("lanyard/agents"))
}

/// The text of a file of the workspace.
fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(process::root().join(path)).with_context(|| format!("cannot read {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_chooses_agents_and_any_other_name_keeps_all() {
        let packages = packages::pinned(packages::AGENTS).unwrap();
        let names = |only| wanted(&packages, only).iter().map(|it| it.agent.as_str()).collect::<Vec<_>>();
        assert_eq!(names(Some("codex")), ["codex", "codex_acp", SERVER]);
        assert!(names(Some("mcp")).iter().all(|name| name.starts_with("mcp_")));
        assert_eq!(names(Some("smoke")).len(), packages.len());
        assert_eq!(names(None).len(), packages.len());
        assert!(process::show(&suite(Some("codex"))).ends_with("--test real -- --test-threads=2 codex"));
    }

    #[test]
    fn the_cache_folder_follows_the_environment() {
        let given = |xdg: Option<&str>, home: Option<&str>| {
            let (xdg, home) = (xdg.map(PathBuf::from), home.map(PathBuf::from));
            folder(|name| if name == "HOME" { home.clone() } else { xdg.clone() })
        };
        assert_eq!(given(Some("/c"), Some("/h")).unwrap(), PathBuf::from("/c/lanyard/agents"));
        assert_eq!(given(Some("c"), Some("/h")).unwrap(), PathBuf::from("/h/.cache/lanyard/agents"));
        assert!(given(None, None).is_err());
    }
}
