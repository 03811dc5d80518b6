//! `lanyard config edit`: an editor on a copy, which replaces the file only if it is valid.

use std::path::{Path, PathBuf};
use std::process::Command;

use lanyard_api::config::{Config, ConfigFile, TEMPLATE};

use super::write::{ConfigLock, aside};
use super::{Keep, write_file};
use crate::cli::ask::{asked, can_ask};
use crate::context::Context;
use crate::failure::{Failure, chain};

/// The editor where the environment names none.
const EDITOR: &str = "vi";

/// Edits the file; answers where it was written, or nothing when it is as it was.
pub(super) fn edit(context: &Context) -> Result<Option<PathBuf>, Failure> {
    let path = std::fs::canonicalize(&context.config_path).unwrap_or_else(|_| context.config_path.clone());
    let read =
        || ConfigFile::text(&path).map_err(|error| Failure::local("config_unreadable", chain(&error), ""));
    let before = read()?;
    let copy = aside(&path, "edit.toml");
    write_file(&copy, before.as_deref().unwrap_or(TEMPLATE), Keep::Nothing)?;
    loop {
        run_editor(&copy)?;
        let text =
            ConfigFile::text(&copy).map_err(|error| Failure::local("editor_failed", chain(&error), ""))?;
        let text = text.unwrap_or_default();
        if Some(&text) == before.as_ref() {
            let _ = std::fs::remove_file(&copy);
            return Ok(None);
        }
        let Err(error) = Config::parse(&copy, &text) else {
            let _lock = ConfigLock::take(&path)?;
            if read()? != before {
                return Err(left(
                    "config_changed",
                    "the config was changed by another program meanwhile",
                    &copy,
                ));
            }
            let written = write_file(&path, &text, Keep::Nothing)?;
            let _ = std::fs::remove_file(&copy);
            return Ok(Some(written));
        };
        context.out.note(&chain(&error));
        let again = can_ask()
            && !matches!(asked(context, "Edit again? [Y/n] ")?.as_deref(), None | Some("n" | "N" | "no"));
        if !again {
            return Err(left("config_invalid", &error.brief(), &copy));
        }
    }
}

/// The edited text is kept: it may be the work of an hour.
fn left(code: &str, what: &str, copy: &Path) -> Failure {
    let shown = copy.display();
    let advice = format!("the file is as it was; your text is in {shown}: correct it and move it into place");
    Failure::local(code, what, advice)
}

fn run_editor(copy: &Path) -> Result<(), Failure> {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| EDITOR.to_owned());
    // As git does it: the variable may hold a command with arguments.
    let done = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(copy).status();
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(left("editor_failed", &format!("the editor `{editor}` ended with {status}"), copy)),
        Err(error) => Err(left("editor_failed", &format!("cannot start `{editor}`: {error}"), copy)),
    }
}
