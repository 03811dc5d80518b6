//! The keys a config file can have, found by writing out a config in which everything is set.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use lanyard_core::text::near;
use serde_json::Value;

use super::Config;

/// A config with a value for everything that is left out when it has none. Names that users choose are `NAME`.
const SPECIMEN: &str = r#"
[daemon]
default_agent = "NAME"
[intervention.channels]
NAME = "any"
[flow]
author.agent = "NAME"
reviewer.agent = "NAME"
quality = [{ name = "x", command = ["x"] }]
hooks = [{ command = ["x"] }]
[memory.embeddings]
key_file = "x"
ca_file = "x"
[notifications.webhooks.NAME]
url = "http://127.0.0.1/"
secret_env = "x"
secret_file = "x"
ca_file = "x"
[mcp.NAME]
command = ["x"]
env = { NAME = "x" }
timeout_ms = 1
once = ["x"]
[mcp.HTTP]
url = "http://127.0.0.1/"
headers = { NAME = "x" }
timeout_ms = 1
ca_file = "x"
once = ["x"]
[agents.NAME]
driver = "acp"
command = ["x"]
env = { NAME = "x" }
instructions = "x"
mode = "x"
model = "x"
permissions = { allow = ["x"], deny = ["x"], ask = ["x"] }
client_files = "write"
sandbox = "workspace"
network = ["x"]
sandbox_folders = { read = ["x"], write = ["x"] }
bounds = { memory_mib = 16, processes = 16, cpu_percent = 1, open_files = 16, file_mib = 1, mode = "best_effort" }
accounts = [{ name = "x" }]
local_history = true
per_turn = { first = ["x"] }
[agents.NAME.mcp.NAME]
command = ["x"]
env = { NAME = "x" }
timeout_ms = 1
once = ["x"]
[agents.NAME.mcp.HTTP]
url = "http://127.0.0.1/"
headers = { NAME = "x" }
timeout_ms = 1
ca_file = "x"
once = ["x"]
"#;

static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
    // A test holds the specimen against the parser.
    let specimen: Config = toml::from_str(SPECIMEN).unwrap_or_default();
    let mut keys = BTreeSet::new();
    collect("", &serde_json::to_value(&specimen).unwrap_or_default(), &mut keys);
    keys.into_iter().collect()
});

/// All keys, in order; `*` stands for a name that the user chooses.
#[must_use]
pub fn known_keys() -> &'static [String] {
    &KEYS
}

/// Whether a key, or a table of keys, can be in a config file.
#[must_use]
pub fn is_known<S: AsRef<str>>(key: &[S]) -> bool {
    let fits = |pattern: &str| {
        let mut segments = pattern.split('.');
        key.iter().all(|wanted| segments.next().is_some_and(|known| known == "*" || known == wanted.as_ref()))
    };
    !key.is_empty() && known_keys().iter().any(|pattern| fits(pattern))
}

/// The known key that a mistyped one resembles most, with the user's own names in it.
#[must_use]
pub fn nearest_key<S: AsRef<str>>(key: &[S]) -> Option<String> {
    let filled_in = |pattern: &String| {
        let segments = pattern.split('.').enumerate();
        let filled = segments.map(|(place, known)| match key.get(place) {
            Some(wanted) if known == "*" => wanted.as_ref().to_owned(),
            Some(_) | None => known.to_owned(),
        });
        filled.collect::<Vec<_>>().join(".")
    };
    let candidates: Vec<String> = known_keys().iter().map(filled_in).collect();
    let asked = key.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(".");
    let names: Vec<&str> = candidates.iter().map(String::as_str).collect();
    // A setting without its table is meant more often than one of a similar name.
    let last = |name: &&&str| name.rsplit('.').next() == Some(asked.as_str());
    let alone: Vec<&&str> = names.iter().filter(last).collect();
    match alone[..] {
        [only] if !only.contains('*') => Some((*only).to_owned()),
        _ => near(&asked, &names).map(str::to_owned),
    }
}

fn collect(path: &str, value: &Value, keys: &mut BTreeSet<String>) {
    let Value::Object(table) = value else {
        keys.insert(path.to_owned());
        return;
    };
    for (name, value) in table {
        let name = if name == "NAME" || name == "HTTP" { "*" } else { name };
        // The channels that are there without being configured are names too.
        let name = if path == "intervention.channels" { "*" } else { name };
        let below = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        collect(&below, value, keys);
    }
}

#[cfg(test)]
mod tests {
    use super::super::TEMPLATE;
    use super::*;

    fn known(key: &str) -> bool {
        is_known(&key.split('.').collect::<Vec<_>>())
    }

    #[test]
    fn the_specimen_is_a_config_and_every_setting_of_the_template_is_known() {
        assert!(toml::from_str::<Config>(SPECIMEN).is_ok());
        let mut table = String::new();
        for line in TEMPLATE.lines() {
            let line = line.strip_prefix("# ").unwrap_or(line);
            if let Some(head) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                head.clone_into(&mut table);
            } else if let Some((name, _)) = line.split_once(" = ") {
                assert!(known(&format!("{table}.{name}")), "{table}.{name}");
            }
        }
    }

    #[test]
    fn names_of_users_are_known_and_mistakes_are_not() {
        for key in ["daemon.listen", "agents.x.command", "agents.x", "agents", "mcp.files.url"] {
            assert!(known(key), "{key}");
        }
        for key in ["", "daemon.listn", "agents.x.comand", "daemon.listen.port", "nothing"] {
            assert!(!known(key), "{key}");
        }
        let nearest = |key: &str| nearest_key(&key.split('.').collect::<Vec<_>>());
        assert_eq!(nearest("daemon.listn").as_deref(), Some("daemon.listen"));
        assert_eq!(nearest("agents.x.comand").as_deref(), Some("agents.x.command"));
        assert_eq!(nearest("default_agent").as_deref(), Some("daemon.default_agent"));
        assert_eq!(nearest("zzz"), None);
    }
}
