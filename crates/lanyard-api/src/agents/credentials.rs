//! Whether an agent is signed in, as far as files and variables tell. Nothing here uses the network or reads a secret.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Bytes of a file with credentials that are looked at: enough to see whether it holds anything.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Where an agent documents that it keeps its credentials.
struct Keeps {
    /// Agents that share them.
    agents: &'static [&'static str],
    /// The variable that names the folder, and what is below it.
    folder_variable: Option<(&'static str, &'static str)>,
    /// The folder below the home folder otherwise.
    folder: &'static str,
    file: &'static str,
    /// Variables that serve instead of the file.
    variables: &'static [&'static str],
}

const KEEPS: [Keeps; 4] = [
    Keeps {
        agents: &["opencode"],
        folder_variable: Some(("XDG_DATA_HOME", "opencode")),
        folder: ".local/share/opencode",
        file: "auth.json",
        variables: &["OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"],
    },
    Keeps {
        agents: &["claude", "claude-agent-acp"],
        folder_variable: Some(("CLAUDE_CONFIG_DIR", "")),
        folder: ".claude",
        file: ".credentials.json",
        variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    },
    Keeps {
        agents: &["codex", "codex-acp"],
        folder_variable: Some(("CODEX_HOME", "")),
        folder: ".codex",
        file: "auth.json",
        variables: &["OPENAI_API_KEY", "CODEX_API_KEY"],
    },
    Keeps {
        agents: &["gemini"],
        folder_variable: None,
        folder: ".gemini",
        file: "oauth_creds.json",
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    },
];

/// What can be told of an agent's credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "from", rename_all = "snake_case")]
pub enum Credentials {
    /// They are there: in this file, or in this variable. Whether they are still accepted, only the network tells.
    Found(String),
    /// The agent was never set up for this user, and no variable has them.
    Missing,
    /// The agent was set up, and may keep them where they cannot be seen, such as in a keyring.
    Unknown,
}

impl Credentials {
    /// As people read it.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Found(place) => format!("signed in ({place})"),
            Self::Missing => "not signed in".to_owned(),
            Self::Unknown => "cannot tell whether it is signed in".to_owned(),
        }
    }
}

/// What can be told of an agent's credentials, with these variables as the environment.
#[must_use]
pub fn credentials(agent: &str, variable: impl Fn(&str) -> Option<OsString>) -> Credentials {
    let Some(keeps) = KEEPS.iter().find(|keeps| keeps.agents.contains(&agent)) else {
        return Credentials::Unknown;
    };
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(name) = keeps.variables.iter().find(|name| set(name).is_some()) {
        return Credentials::Found((*name).to_owned());
    }
    let named = keeps.folder_variable.and_then(|(name, below)| Some(PathBuf::from(set(name)?).join(below)));
    let Some(folder) = named.or_else(|| Some(PathBuf::from(set("HOME")?).join(keeps.folder))) else {
        return Credentials::Unknown;
    };
    let file = folder.join(keeps.file);
    if holds_something(&file) {
        Credentials::Found(file.display().to_string())
    } else if folder.exists() {
        Credentials::Unknown
    } else {
        Credentials::Missing
    }
}

/// Whether a file is a JSON document with something in it. Agents leave `{}` after a sign-out.
fn holds_something(file: &Path) -> bool {
    use std::io::Read as _;
    let mut text = Vec::new();
    if !file.is_file() {
        return false;
    }
    let read = std::fs::File::open(file).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut text));
    if read.is_err() {
        return false;
    }
    match serde_json::from_slice::<serde_json::Value>(&text) {
        Ok(serde_json::Value::Object(fields)) => !fields.is_empty(),
        Ok(_) | Err(_) => !text.is_empty() && text.len() as u64 == FILE_BYTES_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::KNOWN;
    use super::*;

    #[test]
    fn every_known_agent_has_a_place_for_its_credentials() {
        for known in KNOWN {
            assert!(KEEPS.iter().any(|keeps| keeps.agents.contains(&known.name)), "{}", known.name);
        }
    }

    #[test]
    fn a_file_or_a_variable_is_found_and_an_unknown_place_is_not_guessed() {
        let home = tempfile::tempdir().unwrap();
        let told = |agent: &str, more: &[(&str, &str)]| {
            let more: Vec<(String, OsString)> =
                more.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
            credentials(agent, |name| {
                let other = || more.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
                if name == "HOME" { Some(home.path().into()) } else { other() }
            })
        };
        assert_eq!(told("claude", &[]), Credentials::Missing);
        assert_eq!(told("claude", &[("ANTHROPIC_API_KEY", "")]), Credentials::Missing);
        let variable = Credentials::Found("ANTHROPIC_API_KEY".to_owned());
        assert_eq!(told("claude", &[("ANTHROPIC_API_KEY", "sk")]), variable);
        std::fs::create_dir(home.path().join(".claude")).unwrap();
        assert_eq!(told("claude", &[]), Credentials::Unknown);
        let file = home.path().join(".claude/.credentials.json");
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(told("claude", &[]), Credentials::Unknown, "signed out");
        std::fs::write(&file, r#"{"claudeAiOauth":{}}"#).unwrap();
        assert_eq!(told("claude", &[]), Credentials::Found(file.display().to_string()));
        assert_eq!(told("claude-agent-acp", &[]), told("claude", &[]));
        assert_eq!(told("other", &[]), Credentials::Unknown);
        let elsewhere = home.path().join("codex");
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("auth.json"), r#"{"tokens":{}}"#).unwrap();
        let named = told("codex", &[("CODEX_HOME", elsewhere.to_str().unwrap())]);
        assert!(matches!(named, Credentials::Found(_)), "{named:?}");
    }
}
