//! One setting changed in the text of a config file: comments, order and all other lines stay.

use std::path::PathBuf;
use std::str::FromStr;

use lanyard_api::config::{Config, ConfigError, ConfigFile, known_keys};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::write::ConfigLock;
use super::{Keep, known, write_file};
use crate::context::Context;
use crate::failure::{Failure, chain};

/// Sets a value and writes the file, unless the result would not be valid.
pub(super) fn set(context: &Context, key: &[String], value: &str) -> Result<PathBuf, Failure> {
    let path = &context.config_path;
    let shown = key.join(".");
    known(&shown, key)?;
    if is_table(key) {
        let below = format!("`lanyard config get {shown}` shows what is in it");
        return Err(Failure::local(
            "config_key_is_table",
            format!("`{shown}` is a table of settings"),
            below,
        ));
    }
    // Held until the file is replaced: two changes at once are made one after the other.
    let _lock = ConfigLock::take(path)?;
    let text = ConfigFile::text(path).map_err(|error| invalid(&error))?.unwrap_or_default();
    // A file that is wrong already is not made more wrong.
    Config::parse(path, &text).map_err(|error| invalid(&error))?;
    let mut refused = None;
    for value in readings(value) {
        let changed = changed(&text, key, value)?;
        match Config::parse(path, &changed) {
            Ok(_) => return write_file(path, &changed, Keep::Nothing),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    let why = refused.map(|error| error.brief()).unwrap_or_default();
    Err(Failure::local(
        "config_value_invalid",
        format!("`{shown}` cannot be set to `{value}`: {why}"),
        "nothing was changed; `lanyard init --print` shows every setting with its values",
    ))
}

/// What a value may mean: TOML as it stands, then text.
fn readings(value: &str) -> Vec<Value> {
    let text = Value::from(value);
    match Value::from_str(value) {
        Ok(read) if read.is_str() => vec![read],
        Ok(read) => vec![read, text],
        Err(_) => vec![text],
    }
}

fn is_table(key: &[String]) -> bool {
    let fits = |pattern: &&String| {
        let segments: Vec<&str> = pattern.split('.').collect();
        segments.len() == key.len()
            && segments.iter().zip(key).all(|(known, own)| *known == "*" || known == own)
    };
    !known_keys().iter().any(|pattern| fits(&pattern))
}

/// The text with one setting changed.
fn changed(text: &str, key: &[String], value: Value) -> Result<String, Failure> {
    let unreadable =
        |error: toml_edit::TomlError| Failure::local("config_invalid", error.to_string(), "correct it first");
    let mut document = text.parse::<DocumentMut>().map_err(unreadable)?;
    let Some((name, tables)) = key.split_last() else { return Ok(text.to_owned()) };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for segment in tables {
        let below = table.entry(segment).or_insert_with(|| {
            let mut new = Table::new();
            // Its header is written only if it has settings of its own.
            new.set_implicit(true);
            Item::Table(new)
        });
        table = below.as_table_like_mut().ok_or_else(|| {
            let title = format!("`{segment}` is a value in the file, and no table");
            Failure::local("config_key_invalid", title, "edit the file with `lanyard config edit`")
        })?;
    }
    if let Some(old) = table.get_mut(name).and_then(Item::as_value_mut) {
        let mut value = value;
        // What stands behind a value in its line stays.
        *value.decor_mut() = old.decor().clone();
        *old = value;
    } else {
        table.insert(name, Item::Value(value));
    }
    Ok(document.to_string())
}

fn invalid(error: &ConfigError) -> Failure {
    Failure::local("config_invalid", chain(error), "correct it with `lanyard config edit`")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use lanyard_api::config::TEMPLATE;

    use super::*;

    fn with(text: &str, key: &str, value: &str) -> String {
        let key: Vec<String> = key.split('.').map(str::to_owned).collect();
        changed(text, &key, readings(value).remove(0)).unwrap()
    }

    #[test]
    fn comments_order_and_the_rest_of_the_line_stay() {
        let text = "# mine\n[limits]\n# deep\ndepth = 3 # levels\ninbox_turns = 5\n\n[agents.a] # first\ndriver = \"acp\"\ncommand = [ \"x\" ]\n";
        let mut after = with(text, "limits.depth", "4");
        after = with(&after, "agents.a.model", "fast one");
        after = with(&after, "daemon.default_agent", "a");
        after = with(&after, "agents.a.env.KEY", "v");
        expect![[r#"
            # mine
            [limits]
            # deep
            depth = 4 # levels
            inbox_turns = 5

            [agents.a] # first
            driver = "acp"
            command = [ "x" ]
            model = "fast one"

            [agents.a.env]
            KEY = "v"

            [daemon]
            default_agent = "a"
        "#]]
        .assert_eq(&after);
    }

    #[test]
    fn the_template_takes_a_setting_and_keeps_every_line() {
        let after = with(TEMPLATE, "daemon.default_agent", "claude");
        assert!(TEMPLATE.lines().all(|line| after.lines().any(|kept| kept == line)));
        assert_eq!(after.lines().count(), TEMPLATE.lines().count() + 1);
        let config = Config::parse(std::path::Path::new("c"), &after).unwrap();
        assert_eq!(config.daemon.default_agent.as_deref(), Some("claude"));
    }

    #[test]
    fn a_value_is_toml_or_text() {
        let first = |value: &str| readings(value).remove(0).to_string();
        assert_eq!(first("4"), "4");
        assert_eq!(first("[\"a\"]"), "[\"a\"]");
        assert_eq!(first("two words"), "\"two words\"");
        assert_eq!(readings("4").len(), 2, "a number may be meant as text");
    }

    #[test]
    fn tables_are_told_from_settings() {
        let table = |key: &str| is_table(&key.split('.').map(str::to_owned).collect::<Vec<_>>());
        assert!(table("daemon") && table("agents.a") && table("agents.a.env"));
        assert!(!table("daemon.listen") && !table("agents.a.command") && !table("agents.a.env.KEY"));
    }
}
