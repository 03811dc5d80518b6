//! `lanyard init`: write a config file to start from.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};

use lanyard_api::agents::known::{Known, installed};
use lanyard_api::config::TEMPLATE;

use crate::context::Context;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Every setting is there with its default, commented out, and an entry for each agent that is
installed. The first of them becomes the default agent; change `default_agent` to have another.

Examples:
  lanyard init
  lanyard init --print | less";

/// Write a commented config file and print its path
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Init {
    /// Overwrite a file that is there
    #[arg(long)]
    force: bool,
    /// Print it instead of writing it
    #[arg(long)]
    print: bool,
}

impl Init {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let found: Vec<Known> = installed().into_iter().map(|(known, _)| known).collect();
        let text = text(&found);
        if self.print {
            return context.out.data(&text);
        }
        let path = &context.config_path;
        let write = || {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).create_new(!self.force);
            options.open(path)?.write_all(text.as_bytes())
        };
        write().map_err(|error: std::io::Error| {
            let shown = path.display();
            if error.kind() == ErrorKind::AlreadyExists {
                return Failure::local(
                    "config_exists",
                    format!("{shown} is there already"),
                    "overwrite it with --force",
                );
            }
            Failure::local("config_unwritable", format!("cannot write {shown}: {error}"), "")
        })?;
        if context.out.is_json() {
            let names: Vec<&str> = found.iter().map(|known| known.name).collect();
            let default = names.first();
            let told = serde_json::json!({ "config": path, "agents": names, "default_agent": default });
            return context.out.json(&told);
        }
        context.out.note(&told(&found));
        context.out.data(&path.display().to_string())
    }
}

/// What was found, and which of it is the default.
fn told(found: &[Known]) -> String {
    let Some(default) = found.first() else {
        return "no agent is installed that Lanyard knows; add one to the file, or try `lanyard run --agent demo`"
            .to_owned();
    };
    let names: Vec<&str> = found.iter().map(|known| known.name).collect();
    format!("found {}; the default agent is {}", names.join(", "), default.name)
}

/// The template, with a table for each agent that is installed here and the first of them as the default.
fn text(found: &[Known]) -> String {
    let mut text = TEMPLATE.to_owned();
    if let Some(default) = found.first() {
        let set = format!("default_agent = \"{}\"\n", default.name);
        text = text.replacen("# default_agent = \"example\"\n", &set, 1);
    }
    for known in found {
        text.push_str(&entry(known));
    }
    text
}

fn entry(known: &Known) -> String {
    let settings = known.settings();
    // A list of strings reads the same in JSON and in TOML.
    let list = |words: &[String]| serde_json::to_string(words).unwrap_or_default();
    let mut text = format!(
        "\n[agents.{}]\ndriver = \"{}\"\ncommand = {}\n",
        known.name,
        settings.driver.as_str(),
        list(&settings.command)
    );
    if let Some(files) = settings.client_files {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "client_files = \"{}\"", files.as_str());
    }
    text.push_str("# turn_timeout_ms = 0\n# abort_on_timeout = false\n");
    if let Some(per_turn) = &settings.per_turn {
        for line in known.reason().unwrap_or_default().lines() {
            let _ = writeln!(text, "# {line}");
        }
        let (first, next) = (list(&per_turn.first), list(&per_turn.next));
        let output = serde_json::to_string(&per_turn.output).unwrap_or_default();
        let _ = writeln!(
            text,
            "[agents.{}.per_turn]\nfirst = {first}\nnext = {next}\nprompt_on_stdin = {}\noutput = {output}",
            known.name, per_turn.prompt_on_stdin
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use lanyard_api::agents::known::KNOWN;
    use lanyard_api::config::Config;

    use super::*;

    /// FND-N4.
    #[test]
    fn fnd_n4_the_first_agent_that_is_found_is_set_as_the_default() {
        let read = |found: &[Known]| {
            let path = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(path.path(), text(found)).unwrap();
            Config::load(path.path()).unwrap()
        };
        assert_eq!(read(&[]).default_agent(), None);
        let several = read(&KNOWN);
        assert_eq!(several.default_agent().as_deref(), Some(KNOWN[0].name));
        assert_eq!(several.agents.len(), KNOWN.len());
        assert!(told(&KNOWN).ends_with(&format!("the default agent is {}", KNOWN[0].name)));
    }

    #[test]
    fn an_entry_is_read_back_as_the_settings_it_was_made_from() {
        for known in KNOWN {
            let path = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(path.path(), TEMPLATE.to_owned() + &entry(&known)).unwrap();
            let config = Config::load(path.path()).unwrap();
            assert_eq!(config.agents.get(known.name), Some(&known.settings()));
        }
    }
}
