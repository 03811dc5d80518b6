//! Completions of the config: its keys, and values for settings that name something. They come from the file, so they need
//! no daemon.

use std::collections::BTreeSet;

use lanyard_api::agents::settings::DriverKind;
use lanyard_api::config::{Config, known_keys};
use serde_json::Value;

const DRIVERS: [DriverKind; 5] =
    [DriverKind::Acp, DriverKind::Opencode, DriverKind::Claude, DriverKind::Codex, DriverKind::Command];

/// Every setting, with the names that the file has in place of those that its user chooses.
pub(super) fn keys(config: &Config) -> Vec<String> {
    let written = serde_json::to_value(config).unwrap_or_default();
    let mut keys = BTreeSet::new();
    for pattern in known_keys() {
        expand("", pattern, &written, &mut keys);
    }
    keys.into_iter().collect()
}

/// Adds the keys that a pattern stands for. A `*` for which the file has no name is left out.
fn expand(above: &str, rest: &str, table: &Value, keys: &mut BTreeSet<String>) {
    let (first, below) = rest.split_once('.').unwrap_or((rest, ""));
    let names: Vec<&str> = match (first, table.as_object()) {
        ("*", Some(table)) => table.keys().map(String::as_str).collect(),
        ("*", None) => Vec::new(),
        (name, _) => vec![name],
    };
    for name in names {
        // Names that need quotes are typed by hand.
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
            continue;
        }
        let key = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
        if below.is_empty() {
            keys.insert(key);
        } else {
            expand(&key, below, table.get(name).unwrap_or(&Value::Null), keys);
        }
    }
}

/// Values that a setting can have, where they are known: agents, models that agents of the file have, drivers, switches.
pub(super) fn values(config: &Config, key: &str) -> Vec<String> {
    let segments: Vec<&str> = key.split('.').collect();
    let known: BTreeSet<String> = match segments.as_slice() {
        ["daemon", "default_agent"] | ["flow", "author" | "reviewer", "agent"] => {
            config.agents.keys().cloned().collect()
        }
        ["agents", _, "model"] => config.agents.values().filter_map(|agent| agent.model.clone()).collect(),
        ["agents", _, "mode"] => config.agents.values().filter_map(|agent| agent.mode.clone()).collect(),
        ["agents", _, "driver"] => DRIVERS.map(|driver| driver.as_str().to_owned()).into(),
        _ if is_switch(config, &segments) => ["false", "true"].map(str::to_owned).into(),
        _ => BTreeSet::new(),
    };
    known.into_iter().collect()
}

fn is_switch(config: &Config, segments: &[&str]) -> bool {
    let written = serde_json::to_value(config).unwrap_or_default();
    let found = segments.iter().try_fold(&written, |value, segment| value.get(segment));
    found.is_some_and(Value::is_boolean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let text = "[agents.claude]\ndriver = \"claude\"\ncommand = [\"claude\"]\nmodel = \"opus\"\n\
                    [agents.gemini]\ndriver = \"acp\"\ncommand = [\"gemini\"]\nmodel = \"flash\"\n[agents.gemini.env]\nK = \"v\"\n";
        Config::parse(std::path::Path::new("c"), text).unwrap()
    }

    #[test]
    fn keys_have_the_names_of_the_file() {
        let keys = keys(&config());
        for key in ["daemon.listen", "agents.claude.model", "agents.gemini.env.K", "limits.depth"] {
            assert!(keys.iter().any(|known| known == key), "{key}");
        }
        assert!(keys.iter().all(|key| !key.contains('*')));
    }

    #[test]
    fn values_are_those_that_are_known() {
        let of = |key: &str| values(&config(), key);
        assert_eq!(of("agents.gemini.model"), ["flash", "opus"]);
        assert!(of("daemon.default_agent").contains(&"gemini".to_owned()));
        assert!(of("agents.new.driver").contains(&"acp".to_owned()));
        assert_eq!(of("agents.gemini.abort_on_timeout"), ["false", "true"]);
        assert_eq!(of("daemon.listen"), Vec::<String>::new());
    }
}
