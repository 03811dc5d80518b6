//! The session a command is about.

use clap::builder::NonEmptyStringValueParser;
use lanyard_core::Outcome;
use serde::Serialize;

use crate::client::Route;
use crate::context::Context;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// The session: its id or one of its aliases
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(super) id: String,
    #[command(flatten)]
    narrow: Narrow,
}

const AMBIGUOUS: &str = "When an alias is used more than once";

/// Two sessions in different workspaces may go by the same alias.
#[derive(Debug, clap::Args)]
struct Narrow {
    /// The one in this workspace
    #[arg(long, value_name = "WORKSPACE", value_parser = workspace, help_heading = AMBIGUOUS)]
    workspace: Option<String>,
    /// The one of this plan
    #[arg(long, value_name = "PLAN", help_heading = AMBIGUOUS)]
    plan: Option<String>,
}

impl Target {
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
    fn a_relative_workspace_is_made_whole_and_a_name_is_left_alone() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(workspace(".").unwrap(), here.to_str().unwrap());
        assert_eq!(workspace("web").unwrap(), "web");
        assert_eq!(workspace("/srv/web").unwrap(), "/srv/web");
        assert_eq!(workspace("./does-not-exist").unwrap(), "./does-not-exist");
    }
}
