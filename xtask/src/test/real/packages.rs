//! Which agents are installed, in which versions: a list shared with the suite that runs them.

use anyhow::{Context, Result};

/// Read by the suite too, so that both mean the same folders.
pub(super) const AGENTS: &str = "crates/lanyard/tests/real/packages.txt";
/// What the gateway is measured beside; read by the bench too.
pub(super) const BRIDGES: &str = "crates/lanyard/benches/goals/bridges.txt";
/// Before the name of a package that is not npm's but Python's.
const PYPI: &str = "pypi:";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package {
    /// The agent's name in the suite.
    pub(super) agent: String,
    name: String,
    version: String,
    /// What is installed beside it, as npm takes it.
    pub(super) beside: Vec<String>,
}

impl Package {
    /// As its registry takes it, and as it is shown.
    pub(super) fn spec(&self) -> String {
        match self.name.strip_prefix(PYPI) {
            Some(name) => format!("{name}=={}", self.version),
            None => format!("{}@{}", self.name, self.version),
        }
    }

    pub(super) fn is_pypi(&self) -> bool {
        self.name.starts_with(PYPI)
    }

    /// Its folder in the cache: `@scope/name` in version `1.2.3` is in `scope+name@1.2.3`.
    pub(super) fn folder(&self) -> String {
        format!("{}@{}", self.name.trim_start_matches('@').replace(['/', ':'], "+"), self.version)
    }
}

pub(super) fn pinned(list: &str) -> Result<Vec<Package>> {
    super::read(list)?
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| parse(line).with_context(|| format!("{list}: not `agent package version`: {line}")))
        .collect()
}

fn parse(line: &str) -> Option<Package> {
    let mut fields = line.split_whitespace().map(str::to_owned);
    let (agent, name, version) = (fields.next()?, fields.next()?, fields.next()?);
    let beside: Vec<String> = fields.collect();
    // Pinned like the package itself; the first character may be that of a scope.
    let whole = beside.iter().all(|spec| spec.rfind('@').is_some_and(|at| at > 0));
    (whole && (beside.is_empty() || !name.starts_with(PYPI))).then_some(Package {
        agent,
        name,
        version,
        beside,
    })
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

    #[test]
    fn a_package_may_be_of_pypi_or_have_others_beside_it() {
        let package = parse("mcp_python pypi:mcp 2.3.0").unwrap();
        assert_eq!(
            (package.spec(), package.folder()),
            ("mcp==2.3.0".to_owned(), "pypi+mcp@2.3.0".to_owned())
        );
        let package = parse("server @mcp/server 2.4.0 @mcp/node@2.1.2 zod@4.0.0").unwrap();
        assert_eq!(package.beside, ["@mcp/node@2.1.2", "zod@4.0.0"]);
        assert_eq!(parse("server @mcp/server 2.4.0 @mcp/node"), None);
    }
}
