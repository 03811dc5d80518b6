//! Where the histories are, and which agent of the config goes on with a conversation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lanyard_api::agents::settings::{AgentSettings, DriverKind};

use super::HistoryKind;

/// The folder of each history.
#[derive(Debug, Clone, Default)]
pub struct HistoryPlaces(BTreeMap<HistoryKind, PathBuf>);

impl HistoryPlaces {
    /// The places that agents of the config use, and those that the daemon's environment names for the rest. An agent
    /// that Lanyard starts looks for its conversations in the same places.
    pub fn new<'a>(agents: impl Iterator<Item = (&'a String, &'a AgentSettings)>) -> Self {
        let agents: Vec<(&String, &AgentSettings)> = agents.collect();
        let place = |kind: HistoryKind| {
            let own = runs(kind, agents.iter().copied()).map(|(_, settings)| &settings.env);
            let variable = |name: &str| {
                let set = own.and_then(|env| env.get(name).cloned()).or_else(|| std::env::var(name).ok());
                set.map(PathBuf::from).filter(|path| path.is_absolute())
            };
            Some((kind, of(kind, &variable)?))
        };
        Self(HistoryKind::ALL.into_iter().filter_map(place).collect())
    }

    #[cfg(test)]
    pub(super) fn below(home: &Path) -> Self {
        let variable = |name: &str| (name == "HOME").then(|| home.to_owned());
        Self(HistoryKind::ALL.into_iter().filter_map(|kind| Some((kind, of(kind, &variable)?))).collect())
    }

    pub(super) fn root(&self, kind: HistoryKind) -> Option<&Path> {
        self.0.get(&kind).map(PathBuf::as_path)
    }
}

/// As each program documents it.
fn of(kind: HistoryKind, variable: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let or_home = |name: &str, below: &str| variable(name).or_else(|| Some(variable("HOME")?.join(below)));
    Some(match kind {
        HistoryKind::Claude => or_home("CLAUDE_CONFIG_DIR", ".claude")?.join("projects"),
        HistoryKind::Codex => or_home("CODEX_HOME", ".codex")?.join("sessions"),
        HistoryKind::Opencode => or_home("XDG_DATA_HOME", ".local/share")?.join("opencode"),
        HistoryKind::Gemini => variable("HOME")?.join(".gemini/tmp"),
    })
}

/// The agent of the config that goes on with a conversation of this kind: the one of that name, else the first whose
/// program has such a history.
pub fn runs<'a>(
    kind: HistoryKind,
    agents: impl Iterator<Item = (&'a String, &'a AgentSettings)>,
) -> Option<(&'a String, &'a AgentSettings)> {
    let of_kind = agents.filter(|(_, settings)| history_of(settings) == Some(kind));
    of_kind.min_by_key(|(name, _)| (name.as_str() != kind.as_str(), name.as_str()))
}

/// The history in which an agent's conversations are.
#[must_use]
pub fn history_of(settings: &AgentSettings) -> Option<HistoryKind> {
    let program = settings.command.first().map(Path::new).and_then(Path::file_name)?.to_str()?;
    match settings.driver {
        DriverKind::Claude => Some(HistoryKind::Claude),
        DriverKind::Codex => Some(HistoryKind::Codex),
        DriverKind::Opencode => Some(HistoryKind::Opencode),
        DriverKind::Acp | DriverKind::Command | DriverKind::Terminal => match program {
            "claude" | "claude-agent-acp" | "claude-code-acp" => Some(HistoryKind::Claude),
            "codex" | "codex-acp" => Some(HistoryKind::Codex),
            "opencode" => Some(HistoryKind::Opencode),
            "gemini" => Some(HistoryKind::Gemini),
            _ => None,
        },
    }
}
