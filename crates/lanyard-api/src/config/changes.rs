//! The difference between two configs, setting by setting, and which settings a running daemon takes up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Config;

/// When a changed setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// With a reload, for what begins after it.
    Reload,
    /// With the next start of the daemon.
    Restart,
}

/// Settings that a reload takes up, by the beginning of their keys (`*` stands for a name), and what changes then. The
/// longest matching row decides; a setting without a row needs a restart.
pub const LIVE: [(&str, Takes, &str); 18] = [
    ("daemon.default_agent", Takes::Reload, "sessions, tasks and flows that are created from then on"),
    ("daemon.keep_outcomes_ms", Takes::Reload, "the next time outcomes are removed"),
    ("agents", Takes::Reload, "agents that are started from then on; running ones keep their settings"),
    ("agents.*.mcp", Takes::Restart, "the gateway opens MCP servers when the daemon starts"),
    ("staleness", Takes::Reload, "the next look at quiet sessions"),
    ("limits", Takes::Reload, "the next request"),
    ("stop", Takes::Reload, "stops that are requested or escalate from then on"),
    ("intervention", Takes::Reload, "the next message"),
    ("writer", Takes::Reload, "the next wish to write"),
    ("families", Takes::Reload, "the next task that starts"),
    ("budgets", Takes::Reload, "the next report of cost, and the next message"),
    ("health", Takes::Reload, "the next look at workers"),
    ("notifications", Takes::Reload, "the next notification, and deliveries that wait"),
    ("features", Takes::Reload, "the next request"),
    ("redaction", Takes::Reload, "events that are written from then on"),
    ("retention", Takes::Reload, "the next sweep"),
    ("storage", Takes::Reload, "the next look at the size of the journal"),
    ("mcp", Takes::Restart, "the gateway opens MCP servers when the daemon starts"),
];

/// One setting that differs between two configs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigChange {
    /// The setting as in the config file, such as `agents.claude.command`; a whole table when all of it is new or gone.
    pub key: String,
    pub change: ConfigChangeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfigChangeKind {
    Added,
    Changed,
    Removed,
}

impl ConfigChangeKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// When a setting takes effect, by the segments of its key.
#[must_use]
pub fn takes_effect<S: AsRef<str>>(key: &[S]) -> Takes {
    let matches = |pattern: &str| {
        let segments: Vec<&str> = pattern.split('.').collect();
        let fits = segments.len() <= key.len()
            && segments.iter().zip(key).all(|(wanted, found)| *wanted == "*" || *wanted == found.as_ref());
        fits.then_some(segments.len())
    };
    let rows = LIVE.iter().filter_map(|(pattern, takes, _)| Some((matches(pattern)?, *takes)));
    rows.max_by_key(|(length, _)| *length).map_or(Takes::Restart, |(_, takes)| takes)
}

/// The settings that differ: those a reload takes up, and those that need a restart. An agent that is new with MCP
/// servers of its own is in both lists.
#[must_use]
pub fn changes(old: &Config, new: &Config) -> (Vec<ConfigChange>, Vec<ConfigChange>) {
    let (mut live, mut restart) = (Vec::new(), Vec::new());
    let mut report = |path: &[String], change| {
        let found = ConfigChange { key: written(path), change };
        match takes_effect(path) {
            Takes::Reload => live.push(found),
            Takes::Restart => restart.push(found),
        }
    };
    compare(&mut Vec::new(), Some(&value(old)), Some(&value(new)), &mut report);
    let own = |config: &Config| -> Vec<String> {
        let agents = config.agents.iter();
        agents.filter(|(_, agent)| !agent.mcp.is_empty()).map(|(name, _)| name.clone()).collect()
    };
    for name in own(new).into_iter().filter(|name| !old.agents.contains_key(name)) {
        let path = ["agents".to_owned(), name, "mcp".to_owned()];
        restart.push(ConfigChange { key: written(&path), change: ConfigChangeKind::Added });
    }
    (live, restart)
}

fn value(config: &Config) -> Value {
    // A config has text keys only, so it can always be written as JSON.
    serde_json::to_value(config).unwrap_or_default()
}

/// Reports the topmost places in which two values differ. A setting without a value is none.
fn compare(
    path: &mut Vec<String>,
    old: Option<&Value>,
    new: Option<&Value>,
    report: &mut impl FnMut(&[String], ConfigChangeKind),
) {
    let set = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    match (old, new) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
            for name in names {
                path.push(name.clone());
                compare(path, before.get(name), after.get(name), report);
                path.pop();
            }
        }
        (old, new) if set(old) && set(new) => {
            if old != new {
                report(path, ConfigChangeKind::Changed);
            }
        }
        (old, new) if set(new) && !set(old) => report(path, ConfigChangeKind::Added),
        (old, new) if set(old) && !set(new) => report(path, ConfigChangeKind::Removed),
        (_, _) => {}
    }
}

/// A key as a config file has it: segments that are no bare words are quoted.
fn written(path: &[String]) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let segment = |name: &String| {
        if !name.is_empty() && name.chars().all(bare) { name.clone() } else { format!("{name:?}") }
    };
    path.iter().map(segment).collect::<Vec<_>>().join(".")
}

impl Config {
    /// This config with the settings of another that a reload takes up; all others stay.
    #[must_use]
    pub fn with_live(&self, new: &Self) -> Self {
        let mut agents = new.agents.clone();
        for (name, agent) in &mut agents {
            agent.mcp = self.agents.get(name).map(|old| old.mcp.clone()).unwrap_or_default();
        }
        let mut daemon = self.daemon.clone();
        daemon.default_agent.clone_from(&new.daemon.default_agent);
        daemon.keep_outcomes_ms = new.daemon.keep_outcomes_ms;
        Self {
            daemon,
            agents,
            staleness: new.staleness,
            limits: new.limits,
            stop: new.stop,
            intervention: new.intervention.clone(),
            writer: new.writer,
            families: new.families,
            health: new.health,
            budgets: new.budgets.clone(),
            notifications: new.notifications.clone(),
            features: new.features,
            redaction: new.redaction.clone(),
            retention: new.retention,
            storage: new.storage,
            gateway: self.gateway,
            flow: self.flow.clone(),
            continuity: self.continuity,
            memory: self.memory.clone(),
            mcp: self.mcp.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "[daemon]\ndefault_agent = \"a\"\n[agents.a]\ndriver = \"acp\"\ncommand = [\"x\"]\n\
        [agents.gone]\ndriver = \"acp\"\ncommand = [\"y\"]\n";
    const NEW: &str = "[daemon]\ndefault_agent = \"b\"\nlisten = \"127.0.0.1:1\"\n[limits]\ndepth = 9\n\
        guidance_chars = 500\n[flow]\nrules.steps = 7\n[mcp.files]\ncommand = [\"f\"]\n\
        [agents.a]\ndriver = \"acp\"\ncommand = [\"x\", \"y\"]\nenv = { A = \"1\" }\n\
        [agents.a.mcp.own]\ncommand = [\"o\"]\n\
        [agents.\"b c\"]\ndriver = \"acp\"\ncommand = [\"x\"]\n[agents.\"b c\".mcp.own]\ncommand = [\"o\"]\n";

    fn config(text: &str) -> Config {
        toml::from_str(text).unwrap()
    }

    fn told(found: &[ConfigChange]) -> Vec<String> {
        let mut told: Vec<String> =
            found.iter().map(|found| format!("{} {}", found.key, found.change.as_str())).collect();
        told.sort();
        told
    }

    #[test]
    fn every_difference_is_told_once_with_what_it_needs() {
        let (live, restart) = changes(&config(OLD), &config(NEW));
        assert_eq!(
            told(&live),
            [
                "agents.\"b c\" added",
                "agents.a.command changed",
                "agents.a.env added",
                "agents.gone removed",
                "daemon.default_agent changed",
                "limits.depth changed",
            ]
        );
        assert_eq!(
            told(&restart),
            [
                "agents.\"b c\".mcp added",
                "agents.a.mcp added",
                "daemon.listen changed",
                "flow.rules.steps changed",
                "mcp.files added",
            ]
        );
        let nothing: (Vec<ConfigChange>, Vec<ConfigChange>) = (Vec::new(), Vec::new());
        assert_eq!(changes(&config(OLD), &config(OLD)), nothing);
    }

    /// The table and the merge say the same: after a reload only differences that need a restart are left.
    #[test]
    fn what_a_reload_takes_up_is_what_the_table_says() {
        let (old, new) = (config(OLD), config(NEW));
        let (live, restart) = changes(&old.with_live(&new), &new);
        assert_eq!(told(&live), Vec::<String>::new());
        assert_eq!(told(&restart), told(&changes(&old, &new).1));
    }

    /// Changes each number and each switch of the default config alone.
    #[test]
    fn every_setting_is_taken_up_or_left_as_the_table_says() {
        let base = value(&Config::default());
        let mut tried = 0;
        for key in super::super::known_keys().iter().filter(|key| !key.contains('*')) {
            let mut changed = base.clone();
            let Some(leaf) = changed.pointer_mut(&format!("/{}", key.replace('.', "/"))) else { continue };
            *leaf = match &*leaf {
                Value::Bool(on) => Value::Bool(!on),
                Value::Number(number) if number.is_u64() => Value::from(number.as_u64().unwrap() + 1),
                Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                    continue;
                }
            };
            let new: Config = serde_json::from_value(changed).unwrap();
            let path: Vec<&str> = key.split('.').collect();
            let left = changes(&Config::default().with_live(&new), &new);
            let wanted = if takes_effect(&path) == Takes::Restart { vec![key.clone()] } else { Vec::new() };
            assert!(left.0.is_empty(), "{key}");
            assert_eq!(left.1.iter().map(|found| found.key.clone()).collect::<Vec<_>>(), wanted, "{key}");
            tried += 1;
        }
        assert!(tried > 40, "{tried} settings were tried");
    }

    #[test]
    fn the_longest_row_decides_and_without_one_a_restart_is_needed() {
        let takes = |key: &str| takes_effect(&key.split('.').collect::<Vec<_>>());
        assert_eq!(takes("agents.a.command"), Takes::Reload);
        assert_eq!(takes("agents.a.mcp.files"), Takes::Restart);
        assert_eq!(takes("daemon.listen"), Takes::Restart);
        assert_eq!(takes("daemon.default_agent"), Takes::Reload);
        assert_eq!(takes("memory.mode"), Takes::Restart);
        assert_eq!(takes("agents"), Takes::Reload);
    }

    /// A line of the table in docs/configuration.md.
    fn row((key, takes, note): &(&str, Takes, &str)) -> String {
        let when = match takes {
            Takes::Reload => "at a reload",
            Takes::Restart => "at a restart",
        };
        format!("| `{key}` | {when} | {note} |\n")
    }

    #[test]
    fn the_docs_have_every_row_of_the_table() {
        let page = include_str!("../../../../docs/configuration.md");
        let rows: String = LIVE.iter().map(row).collect();
        assert!(page.contains(&rows), "docs/configuration.md should have:\n{rows}");
    }
}
