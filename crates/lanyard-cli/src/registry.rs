//! The registry of agents that speak ACP: a pinned copy in the form of the public one, and the search in it. It reads and
//! installs nothing by itself.

pub(crate) mod install;

use std::collections::BTreeMap;
use std::path::Path;

use lanyard_core::text::near;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

const PINNED: &str = include_str!("registry/acp-registry.json");
/// Bytes of a registry file.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// The agents that can be added.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct AgentRegistry {
    agents: Vec<RegistryAgent>,
}

/// An agent of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RegistryAgent {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) license: String,
    pub(crate) distribution: Distribution,
}

/// The ways to get an agent. Others than these are not offered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Distribution {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) npx: Option<AgentPackage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) uvx: Option<AgentPackage>,
}

/// A package of npm or `PyPI` with its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentPackage {
    /// Its name and version, as npm or uv take it.
    #[serde(rename = "package")]
    pub(crate) spec: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) args: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,
    /// The program of the package, where its name does not say which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bin: Option<String>,
    /// The checksum of the package, as npm writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) integrity: Option<String>,
}

/// The program that installs a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Installer {
    Npm,
    Uv,
}

impl Installer {
    pub(crate) const fn program(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Uv => "uv",
        }
    }
}

impl RegistryAgent {
    /// The package to install, and with which program.
    pub(crate) fn package(&self) -> Result<(Installer, &AgentPackage), Failure> {
        let npm = self.distribution.npx.as_ref().map(|package| (Installer::Npm, package));
        let uv = self.distribution.uvx.as_ref().map(|package| (Installer::Uv, package));
        npm.or(uv).ok_or_else(|| {
            let title = format!("the registry has no npm or PyPI package of `{}`", self.id);
            Failure::local("registry_no_package", title, "install it by hand, and add it with `lanyard init`")
        })
    }
}

impl AgentRegistry {
    /// The pinned copy, or the registry in a file.
    pub(crate) fn open(file: Option<&Path>) -> Result<Self, Failure> {
        let refused = |why: String| {
            let advice = "give the path of a registry.json in the form of the ACP registry";
            Failure::local("registry_unreadable", why, advice)
        };
        let text = match file {
            None => PINNED.to_owned(),
            Some(path) => {
                let told =
                    |error: std::io::Error| refused(format!("cannot read {}: {error}", path.display()));
                if path.metadata().map_err(told)?.len() > FILE_BYTES_MAX {
                    return Err(refused(format!("{} is larger than {FILE_BYTES_MAX} bytes", path.display())));
                }
                std::fs::read_to_string(path).map_err(told)?
            }
        };
        let mut registry: Self = serde_json::from_str(&text)
            .map_err(|error| refused(format!("the registry is no registry: {error}")))?;
        // An id becomes the name of a folder and of a config entry.
        registry.agents.retain(|agent| is_name(&agent.id));
        registry.agents.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(registry)
    }

    pub(crate) fn named(&self, id: &str) -> Result<&RegistryAgent, Failure> {
        self.agents.iter().find(|agent| agent.id == id).ok_or_else(|| {
            let names: Vec<&str> = self.agents.iter().map(|agent| agent.id.as_str()).collect();
            let advice = match near(id, &names) {
                Some(near) => format!("did you mean `{near}`? `lanyard agents search` lists all"),
                None => "`lanyard agents search` lists all".to_owned(),
            };
            Failure::local("registry_agent_unknown", format!("the registry has no agent `{id}`"), advice)
        })
    }

    /// The agents in whose texts each of the words is.
    pub(crate) fn search(&self, words: &[String]) -> Vec<&RegistryAgent> {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let text = |agent: &RegistryAgent| {
            format!("{}\n{}\n{}", agent.id, agent.name, agent.description).to_lowercase()
        };
        self.agents
            .iter()
            .filter(|agent| {
                let text = text(agent);
                words.iter().all(|word| text.contains(word.as_str()))
            })
            .collect()
    }
}

/// Lowercase letters, digits and hyphens, a letter first.
pub(crate) fn is_name(id: &str) -> bool {
    const NAME_BYTES_MAX: usize = 64;
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    id.len() <= NAME_BYTES_MAX
        && id.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
        && id.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pinned_registry_names_every_version_and_the_checksum_of_every_npm_package() {
        let registry = AgentRegistry::open(None).unwrap();
        assert!(registry.agents.len() >= 8);
        for agent in &registry.agents {
            let (installer, package) = agent.package().unwrap();
            assert!(package.spec.ends_with(&agent.version), "{}", agent.id);
            let pinned = package.integrity.as_deref().is_some_and(|sum| sum.starts_with("sha512-"));
            assert_eq!(pinned, installer == Installer::Npm, "{}", agent.id);
        }
    }

    #[test]
    fn a_search_needs_each_word_and_an_unknown_name_has_advice() {
        let registry = AgentRegistry::open(None).unwrap();
        let ids = |words: &[&str]| -> Vec<&str> {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            registry.search(&words).iter().map(|agent| agent.id.as_str()).collect()
        };
        assert_eq!(ids(&["codex"]), ["codex-acp"]);
        assert_eq!(ids(&["ACP", "claude"]), ["claude-agent-acp"]);
        assert_eq!(ids(&["nothing like it"]), [""; 0]);
        assert_eq!(ids(&[]).len(), registry.agents.len());
        let Err(Failure::Told { problem, .. }) = registry.named("gemni") else { panic!("it is there") };
        assert_eq!(problem.code, "registry_agent_unknown");
        assert!(problem.advice.contains("did you mean `gemini`?"), "{}", problem.advice);
    }

    #[test]
    fn an_id_that_could_leave_its_folder_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.json");
        let agent = |id: &str| {
            format!(r#"{{"id":"{id}","name":"x","version":"1.0.0","distribution":{{"binary":{{}}}}}}"#)
        };
        let agents = [agent("../../etc"), agent("ok"), agent("UPPER"), agent("")].join(",");
        std::fs::write(&path, format!(r#"{{"agents":[{agents}]}}"#)).unwrap();
        let registry = AgentRegistry::open(Some(&path)).unwrap();
        assert_eq!(registry.agents.len(), 1);
        let Err(Failure::Told { problem, .. }) = registry.agents[0].package() else { panic!("a package") };
        assert_eq!(problem.code, "registry_no_package");
        std::fs::write(&path, "no JSON").unwrap();
        assert!(AgentRegistry::open(Some(&path)).is_err());
        assert!(AgentRegistry::open(Some(&folder.path().join("none"))).is_err());
    }
}
