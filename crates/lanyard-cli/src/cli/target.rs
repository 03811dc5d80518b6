//! What a command is about: a session, a folder, words.

use std::path::{Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;
use lanyard_client::Route;
use lanyard_core::Outcome;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;

#[derive(Debug, Clone, clap::Args)]
pub(super) struct Target {
    /// The session: its id or one of its aliases
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(super) id: String,
    #[command(flatten)]
    narrow: Narrow,
}

const AMBIGUOUS: &str = "When an alias is used more than once";

/// Two sessions in different workspaces may go by the same alias.
#[derive(Debug, Clone, clap::Args)]
struct Narrow {
    /// The one in this workspace
    #[arg(long, value_name = "WORKSPACE", value_parser = workspace, help_heading = AMBIGUOUS)]
    workspace: Option<String>,
    /// The one of this plan
    #[arg(long, value_name = "PLAN", help_heading = AMBIGUOUS)]
    plan: Option<String>,
}

impl Target {
    /// A session by its id alone.
    pub(super) const fn of(id: String) -> Self {
        Self { id, narrow: Narrow { workspace: None, plan: None } }
    }

    /// Whether only one of several with the same alias is meant.
    pub(super) const fn is_narrow(&self) -> bool {
        self.narrow.workspace.is_some() || self.narrow.plan.is_some()
    }

    /// The session's address, or that of something below it.
    pub(super) fn route(&self, below: &[&str]) -> Route {
        let parts: Vec<&str> = ["sessions", &self.id].into_iter().chain(below.iter().copied()).collect();
        Route::to(&parts)
            .with("workspace", self.narrow.workspace.as_ref())
            .with("plan", self.narrow.plan.as_ref())
    }

    /// Asks for a change of the session.
    pub(super) async fn change(
        &self,
        context: &Context,
        below: &[&str],
        body: &impl Serialize,
    ) -> Result<Outcome, Failure> {
        context.client().await?.post(&self.route(below), body).await
    }
}

/// A workspace is a folder or just a name; a relative folder means the one the user stands in, not the daemon's.
#[expect(clippy::unnecessary_wraps, reason = "the form clap asks of a value parser")]
pub(super) fn workspace(text: &str) -> Result<String, std::convert::Infallible> {
    let relative = matches!(text, "." | "..") || text.starts_with("./") || text.starts_with("../");
    let whole = if relative { std::fs::canonicalize(text).ok() } else { None };
    Ok(whole.and_then(|path| path.into_os_string().into_string().ok()).unwrap_or_else(|| text.to_owned()))
}

/// A name to give. Two words mean the newest session, and would be hidden by a name like that.
pub(super) fn new_name(text: &str) -> Result<String, String> {
    match text {
        "" => Err("a name has at least one character".to_owned()),
        "last" | "." => Err(format!("`{text}` already means the newest session")),
        _ => Ok(text.to_owned()),
    }
}

/// The folder to work in, by its whole path: the daemon stands in another one. `option` is how another can be named.
pub(super) fn folder(asked: Option<PathBuf>, option: &str) -> Result<String, Failure> {
    let path = asked.map_or_else(|| PathBuf::from("."), at_home);
    let whole = std::fs::canonicalize(&path).and_then(|whole| {
        if whole.is_dir() { Ok(whole) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
    });
    let whole = whole.map_err(|error| {
        let title = format!("cannot work in {}: {error}", path.display());
        Failure::usage(title, format!("name a folder that exists with {option}"))
    })?;
    whole.into_os_string().into_string().map_err(|path| {
        let title = format!("the folder's name is not UTF-8: {}", PathBuf::from(path).display());
        Failure::usage(title, "work in a folder whose name is")
    })
}

/// A `~/` that the shell did not expand, in quotes for example.
fn at_home(path: PathBuf) -> PathBuf {
    let below = path.strip_prefix("~").ok().map(Path::to_owned);
    match (below, std::env::var_os("HOME")) {
        (Some(below), Some(home)) => PathBuf::from(home).join(below),
        (Some(_), None) | (None, _) => path,
    }
}

/// Whether these words stand for all of stdin.
pub(super) fn is_stdin(words: &[String]) -> bool {
    words.len() == 1 && words[0] == "-"
}

/// Text in one or several words, as it was typed with or without quotes; all of stdin for `-` alone.
pub(super) fn words_or_stdin(words: &[String]) -> Result<String, Failure> {
    text_or_stdin(words.join(" "))
}

/// Text from the command line, or all of stdin for `-`.
pub(super) fn text_or_stdin(text: String) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text);
    }
    std::io::read_to_string(std::io::stdin())
        .map_err(|error| Failure::local("stdin_unreadable", format!("cannot read stdin: {error}"), ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_none_that_means_something_already() {
        assert_eq!(new_name("login").as_deref(), Ok("login"));
        assert!(["", "last", "."].into_iter().all(|name| new_name(name).is_err()));
    }

    #[test]
    fn a_relative_workspace_is_made_whole_and_a_name_is_left_alone() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(workspace(".").unwrap(), here.to_str().unwrap());
        assert_eq!(workspace("web").unwrap(), "web");
        assert_eq!(workspace("/srv/web").unwrap(), "/srv/web");
        assert_eq!(workspace("./does-not-exist").unwrap(), "./does-not-exist");
    }
}
