//! `lanyard reload`: have the daemon read its config again.

use std::fmt::Write as _;

use lanyard_api::config::ConfigChange;
use lanyard_api::types::{Reason, Reloaded};
use lanyard_client::Route;

use crate::context::Context;
use crate::failure::Failure;

/// How the daemon is started again so that it takes up the rest.
pub(super) const RESTART: &str = "lanyard down && lanyard up --detach";

const EXAMPLES: &str = "\
The daemon also reads the file by itself within 4 seconds of a change. Sessions that run keep the settings
they were started with; settings that need a restart are listed. A file that is not valid changes
nothing: the settings read before stay in use, and `lanyard status` and `lanyard doctor` say so.

Examples:
  lanyard reload
  lanyard reload --json | jq '.needs_restart'";

/// Read the config file again
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Reload {}

impl Reload {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        let Some(done) = ask(context).await? else {
            return Err(context.not_running("start one with `lanyard up --detach`; it reads the file then"));
        };
        show(context, &done)
    }
}

/// Has a daemon that runs read its config; nothing when none runs.
pub(super) async fn ask(context: &Context) -> Result<Option<Reloaded>, Failure> {
    let Some(mut client) = context.client_if_running().await? else { return Ok(None) };
    client.post(&Route::to(&["reload"]), &Reason::default()).await.map(Some)
}

/// Says what changed and what needs a restart.
pub(super) fn show(context: &Context, done: &Reloaded) -> Result<(), Failure> {
    for warning in &done.warnings {
        context.out.warn(warning);
    }
    if context.out.is_json() {
        return context.out.json(done);
    }
    context.out.data(&text(done))
}

fn text(done: &Reloaded) -> String {
    if done.applied.is_empty() && done.needs_restart.is_empty() {
        return format!("nothing changed in {}\n", done.path);
    }
    let rows = |changes: &[ConfigChange]| {
        changes.iter().fold(String::new(), |text, change| {
            text + &format!("  {} ({})\n", change.key, change.change.as_str())
        })
    };
    let mut text = String::new();
    if !done.applied.is_empty() {
        text.push_str("in use now:\n");
        text.push_str(&rows(&done.applied));
    }
    if !done.needs_restart.is_empty() {
        text.push_str("needs a restart (agents keep running):\n");
        text.push_str(&rows(&done.needs_restart));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  restart with: {RESTART}");
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use lanyard_api::config::ConfigChangeKind;

    use super::*;

    #[test]
    fn a_reload_says_what_is_in_use_and_what_needs_a_restart() {
        let change = |key: &str, change| ConfigChange { key: key.to_owned(), change };
        let done = Reloaded {
            path: "/c.toml".to_owned(),
            applied: vec![change("agents.claude", ConfigChangeKind::Added)],
            needs_restart: vec![change("daemon.listen", ConfigChangeKind::Changed)],
            warnings: Vec::new(),
        };
        expect![[r"
            in use now:
              agents.claude (added)
            needs a restart (agents keep running):
              daemon.listen (changed)
              restart with: lanyard down && lanyard up --detach
        "]]
        .assert_eq(&text(&done));
        assert_eq!(text(&Reloaded { path: "/c".into(), ..Reloaded::default() }), "nothing changed in /c\n");
    }
}
