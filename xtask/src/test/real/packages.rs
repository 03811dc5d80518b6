//! Which agents are installed, in which versions: a list shared with the suite that runs them.

use anyhow::{Context, Result};

/// Read by the suite too, so that both mean the same folders.
const LIST: &str = "crates/lanyard/tests/real/packages.txt";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package {
    /// The agent's name in the suite.
    pub(super) agent: String,
    name: String,
    version: String,
}

impl Package {
    /// As npm takes it.
    pub(super) fn spec(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// Its folder in the cache: `@scope/name` in version `1.2.3` is in `scope+name@1.2.3`.
    pub(super) fn folder(&self) -> String {
        self.spec().trim_start_matches('@').replace('/', "+")
    }
}

pub(super) fn pinned() -> Result<Vec<Package>> {
    super::read(LIST)?
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| parse(line).with_context(|| format!("{LIST}: not `agent package version`: {line}")))
        .collect()
}

fn parse(line: &str) -> Option<Package> {
    let mut fields = line.split_whitespace().map(str::to_owned);
    let package = Package { agent: fields.next()?, name: fields.next()?, version: fields.next()? };
    fields.next().is_none().then_some(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_an_agent_a_package_and_a_version() {
        let package = parse("codex  @openai/codex 0.166.0").unwrap();
        assert_eq!(package.spec(), "@openai/codex@0.166.0");
        assert_eq!(package.folder(), "openai+codex@0.166.0");
        assert_eq!(parse("codex @openai/codex"), None);
        assert_eq!(parse("codex @openai/codex 1 2"), None);
    }
}
