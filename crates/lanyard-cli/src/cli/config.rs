//! `lanyard config`: look at the config file and change it, without breaking it.

pub(super) mod agent_entry;
mod edit;
mod set;
mod write;

use std::fmt::Write as _;

use lanyard_api::config::{Config, ConfigFile, is_known, nearest_key};
use lanyard_api::types::Reloaded;
use serde_json::{Map, Value};

use super::reload;
use crate::context::Context;
use crate::failure::Failure;

pub(super) use write::{Keep, write_file};

const EXAMPLES: &str = "\
A key is a setting with its tables in front: `daemon.default_agent`, `agents.claude.model`. `set` keeps
comments and order, checks the whole file before it is replaced, and has a running daemon read it.
`show` leaves out settings that have their default; values of variables and headers are hidden.

Examples:
  lanyard config show
  lanyard config get daemon.default_agent
  lanyard config set daemon.default_agent claude
  lanyard config set limits.depth 4
  lanyard config edit";

/// Show or change the config file
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigVerb {
    /// Print the value of a setting, the default where the file has none
    Get {
        /// The setting, such as `daemon.listen`
        key: String,
    },
    /// Change a setting in the file
    Set {
        /// The setting, such as `daemon.default_agent`
        key: String,
        /// The value as TOML; text needs no quotes
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Open the file in an editor, and replace it only with a file that is valid
    Edit,
    /// Print where the file is
    Path,
    /// Print the settings that differ from their defaults
    Show {
        /// Print settings with their default too
        #[arg(long)]
        all: bool,
    },
}

impl ConfigArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            ConfigVerb::Get { key } => get(context, &key),
            ConfigVerb::Set { key, value } => {
                let path = set::set(context, &segments(&key)?, &value)?;
                context.out.note(&format!("wrote {}", path.display()));
                tell_daemon(context).await
            }
            ConfigVerb::Edit => {
                let Some(path) = edit::edit(context)? else {
                    context.out.note("Nothing changed.");
                    return Ok(());
                };
                context.out.note(&format!("wrote {}", path.display()));
                tell_daemon(context).await
            }
            ConfigVerb::Path => {
                if context.out.is_json() {
                    return context.out.json(&serde_json::json!({ "config": context.config_path }));
                }
                context.out.data(&context.config_path.display().to_string())
            }
            ConfigVerb::Show { all } => show(context, all),
        }
    }
}

/// Has a running daemon read the file, and says what came of it.
async fn tell_daemon(context: &Context) -> Result<(), Failure> {
    match reload::ask(context).await? {
        Some(done) => reload::show(context, &done),
        None if context.out.is_json() => context
            .out
            .json(&Reloaded { path: context.config_path.display().to_string(), ..Reloaded::default() }),
        None => {
            context.out.note("No daemon is running; the next one starts with this config.");
            Ok(())
        }
    }
}

fn get(context: &Context, key: &str) -> Result<(), Failure> {
    let path = segments(key)?;
    known(key, &path)?;
    let config = value(&context.config_file()?.config);
    let found = path.iter().try_fold(&config, |value, segment| value.get(segment));
    let Some(found) = found.filter(|found| !found.is_null()) else {
        return Err(Failure::local(
            "config_value_missing",
            format!("`{key}` is not set"),
            format!("set it with `lanyard config set {key} VALUE`"),
        ));
    };
    if context.out.is_json() {
        return context.out.json(found);
    }
    match found {
        Value::Object(table) => context.out.data(&lines(key, table)),
        Value::String(text) => context.out.data(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            context.out.data(&found.to_string())
        }
    }
}

fn show(context: &Context, all: bool) -> Result<(), Failure> {
    let ConfigFile { config, path, present, .. } = context.config_file()?;
    let mut shown = value(&config);
    if !all {
        prune(&mut shown, &value(&Config::default()));
    }
    hide(&mut shown);
    let empty = Map::new();
    let table = shown.as_object().unwrap_or(&empty);
    if context.out.is_json() {
        return context
            .out
            .json(&serde_json::json!({ "config": path, "present": present, "settings": table }));
    }
    if !present {
        context.out.note(&format!("{} does not exist; `lanyard init` writes it", path.display()));
    }
    context.out.data(&lines("", table))
}

fn value(config: &Config) -> Value {
    // A config has text keys only, so it can always be written as JSON.
    serde_json::to_value(config).unwrap_or_default()
}

/// Takes out settings that are the same in both.
fn prune(shown: &mut Value, default: &Value) {
    let (Value::Object(shown), Value::Object(default)) = (shown, default) else { return };
    shown.retain(|name, value| {
        if let Some(other) = default.get(name) {
            prune(value, other);
            return value != other && !value.as_object().is_some_and(Map::is_empty);
        }
        true
    });
}

/// Hides values that are given to programs and servers: they may be secrets.
fn hide(shown: &mut Value) {
    if let Value::Array(items) = shown {
        return items.iter_mut().for_each(hide);
    }
    let Value::Object(table) = shown else { return };
    for (name, value) in table {
        if (name == "env" || name == "headers")
            && let Value::Object(values) = &mut *value
        {
            values.values_mut().for_each(|value| *value = Value::from("(hidden)"));
        } else {
            hide(value);
        }
    }
}

/// One line for each setting: `key = value`.
fn lines(above: &str, table: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (name, value) in table {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match value {
            Value::Null => {}
            Value::Object(below) => text.push_str(&lines(&key, below)),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{key} = {value}");
            }
        }
    }
    text
}

/// The segments of a key; quotes hold one together that has a dot in it.
fn segments(key: &str) -> Result<Vec<String>, Failure> {
    let read = toml_edit::Key::parse(key).map_err(|_| {
        Failure::local(
            "config_key_invalid",
            format!("`{key}` is no key"),
            "write a setting with its tables in front, such as `daemon.listen`",
        )
    })?;
    Ok(read.iter().map(|segment| segment.get().to_owned()).collect())
}

/// Refuses a key that no config can have, with the nearest one.
fn known(key: &str, path: &[String]) -> Result<(), Failure> {
    if is_known(path) {
        return Ok(());
    }
    let advice = match nearest_key(path) {
        Some(near) => format!("did you mean `{near}`? `lanyard config show --all` lists all settings"),
        None => "`lanyard config show --all` lists all settings".to_owned(),
    };
    Err(Failure::local("config_key_unknown", format!("there is no setting `{key}`"), advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_from_the_default_is_shown_and_secrets_are_hidden() {
        let text = "[limits]\ndepth = 9\n[agents.a]\ndriver = \"acp\"\ncommand = [\"x\"]\nenv = { T = \"s3cret\" }\naccounts = [{ name = \"b\", env = { U = \"s3cret\" } }]\n";
        let config = Config::parse(std::path::Path::new("c"), text).unwrap();
        let mut shown = value(&config);
        prune(&mut shown, &value(&Config::default()));
        hide(&mut shown);
        let text = lines("", shown.as_object().unwrap());
        assert!(
            text.contains("limits.depth = 9\n") && text.contains("agents.a.command = [\"x\"]\n"),
            "{text}"
        );
        assert!(text.contains("agents.a.env.T = \"(hidden)\"\n") && !text.contains("s3cret"), "{text}");
        assert!(!text.contains("limits.overlong") && !text.contains("daemon."), "{text}");
    }

    #[test]
    fn a_key_with_quotes_keeps_its_dots() {
        assert_eq!(segments("agents.\"a.b\".command").unwrap(), ["agents", "a.b", "command"]);
        assert!(segments("a..b").is_err() && segments("").is_err());
    }
}
