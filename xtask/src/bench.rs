//! `cargo xtask bench`: the performance goals, measured on this machine beside bare references.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;
use crate::test::{browser, real};

#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Only the goals of this group [default: all]
    #[arg(conflicts_with = "only")]
    group: Option<Group>,
    /// Only these goals, such as D1,F1 [default: all]
    #[arg(long, value_name = "GOALS")]
    only: Option<String>,
    /// Three short repetitions: to see that it works, not to judge by
    #[arg(long)]
    quick: bool,
    /// Write everything that was measured to this file as well
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where journals are made: on the disk that is to be measured [default: in the target directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Goals that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Group {
    /// MCP calls through Lanyard, beside a bare proxy and public ones, which are installed
    Gateway,
    /// The dashboard in Chromium: its first paint, and frames while events come in
    Dashboard,
}

impl Group {
    /// Goals of the program that measures; the dashboard is measured in a browser.
    fn goals(self) -> Option<&'static str> {
        match self {
            Group::Gateway => Some("P1,P2,P3,P4,P5,P6,guided"),
            Group::Dashboard => None,
        }
    }
}

impl BenchArgs {
    fn only(&self) -> Option<&str> {
        self.group.and_then(Group::goals).or(self.only.as_deref())
    }
}

pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    if args.group == Some(Group::Dashboard) {
        return process::run(&mut browser::bench()?);
    }
    let mut command = command(args)?;
    let bridged = args.only().is_some_and(|only| only.split(',').any(|goal| goal == "P5"));
    real::bridges(&mut command, bridged)?;
    process::run(&mut command)
}

/// Cargo builds the daemon with the same optimisations first: those of the profile `bench`.
fn command(args: &BenchArgs) -> Result<Command> {
    let mut command = process::cargo(["bench", "-p", "lanyard", "--bench", "goals", "--"]);
    if let Some(only) = args.only() {
        command.arg("--only").arg(only);
    }
    if args.quick {
        command.arg("--quick");
    }
    for (name, path) in [("--json", &args.json), ("--dir", &args.dir)] {
        if let Some(path) = path {
            command.arg(name).arg(whole(path)?);
        }
    }
    Ok(command)
}

/// Cargo starts a bench in its package's folder, so it needs whole paths.
fn whole(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot use the path {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_passed_on_and_paths_are_whole() {
        let dir = Some(PathBuf::from("/tmp/x"));
        let args = BenchArgs { group: None, only: Some("D1,F1".to_owned()), quick: true, json: None, dir };
        let shown = process::show(&command(&args).unwrap());
        assert!(
            shown.ends_with(" bench -p lanyard --bench goals -- --only D1,F1 --quick --dir /tmp/x"),
            "{shown}"
        );
        assert!(whole(Path::new("goals.json")).unwrap().is_absolute());
        let group = Some(Group::Gateway);
        let shown = process::show(&command(&BenchArgs { group, only: None, ..args }).unwrap());
        assert!(shown.contains(" --only P1,P2,P3,P4,P5,P6,guided --quick "), "{shown}");
    }
}
