//! Entries of agents in the config file that Lanyard installed: written, replaced and removed under the lock of changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lanyard_api::config::{Config, ConfigFile};
use toml_edit::{Array, DocumentMut, Item, Table, Value};

use super::write::ConfigLock;
use super::{Keep, write_file};
use crate::context::Context;
use crate::failure::{Failure, chain};

/// The command of an agent's entry, if there is one.
pub(in crate::cli) fn command_of(context: &Context, name: &str) -> Result<Option<Vec<String>>, Failure> {
    let file = context.config_file()?;
    Ok(file.config.agents.get(name).map(|agent| agent.command.clone()))
}

/// Writes the entry of an ACP agent, or only its command where there is an entry.
pub(in crate::cli) fn put(
    context: &Context,
    name: &str,
    command: &[String],
    env: &BTreeMap<String, String>,
) -> Result<PathBuf, Failure> {
    change(context, |document| {
        let agents = table(document.as_table_mut(), "agents")?;
        let fresh = !agents.contains_key(name);
        let entry = table(agents, name)?;
        entry.set_implicit(false);
        if fresh {
            entry.insert("driver", Item::Value(Value::from("acp")));
        }
        entry.insert("command", Item::Value(Value::Array(command.iter().collect::<Array>())));
        if fresh && !env.is_empty() {
            let below = table(entry, "env")?;
            below.set_implicit(false);
            for (variable, value) in env {
                below.insert(variable, Item::Value(Value::from(value.as_str())));
            }
        }
        Ok(())
    })
}

/// Removes the entry.
pub(in crate::cli) fn remove(context: &Context, name: &str) -> Result<PathBuf, Failure> {
    change(context, |document| {
        table(document.as_table_mut(), "agents")?.remove(name);
        let is_default =
            document.get("daemon").and_then(|daemon| daemon.get("default_agent")).and_then(Item::as_str)
                == Some(name);
        if is_default {
            table(document.as_table_mut(), "daemon")?.remove("default_agent");
        }
        Ok(())
    })
}

fn change(
    context: &Context,
    make: impl FnOnce(&mut DocumentMut) -> Result<(), Failure>,
) -> Result<PathBuf, Failure> {
    let path: &Path = &context.config_path;
    let invalid = |why: String| {
        Failure::local("config_invalid", why, "nothing was changed; correct it with `lanyard config edit`")
    };
    let _lock = ConfigLock::take(path)?;
    let text = ConfigFile::text(path).map_err(|error| invalid(chain(&error)))?.unwrap_or_default();
    Config::parse(path, &text).map_err(|error| invalid(chain(&error)))?;
    let mut document = text.parse::<DocumentMut>().map_err(|error| invalid(error.to_string()))?;
    make(&mut document)?;
    let changed = document.to_string();
    Config::parse(path, &changed).map_err(|error| invalid(chain(&error)))?;
    write_file(path, &changed, Keep::Nothing)
}

fn table<'a>(above: &'a mut Table, name: &str) -> Result<&'a mut Table, Failure> {
    let below = above.entry(name).or_insert_with(|| {
        let mut new = Table::new();
        new.set_implicit(true);
        Item::Table(new)
    });
    below.as_table_mut().ok_or_else(|| {
        let title = format!("`{name}` is written in one line in the config, and is left as it is");
        Failure::local("config_key_invalid", title, "edit the file with `lanyard config edit`")
    })
}
