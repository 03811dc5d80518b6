//! `lanyard rollback`: take a session's workspace back to a checkpoint.

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{NewRollback, RolledBack, WorkspaceDiff};
use lanyard_client::Route;
use lanyard_core::session::SessionView;

use super::ask::{agreed, can_ask};
use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::{count, one_line};

const EXAMPLES: &str = "\
Files and index become as they were; HEAD, branches, stash and ignored files stay as they are.
The workspace is kept as a checkpoint first, so a rollback can be undone. Refused while a turn runs.

Examples:
  lanyard rollback fix-login at-12
  lanyard rollback fix-login turn_01m7n5djg0fayvh8t5cxyjkdnf --yes";

/// Take a session's workspace back to a checkpoint
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Rollback {
    #[command(flatten)]
    target: Target,
    /// The checkpoint, as `lanyard checkpoints` shows it, or its commit
    #[arg(value_name = "CHECKPOINT", value_parser = NonEmptyStringValueParser::new())]
    to: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl Rollback {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        if !self.yes && !can_ask() {
            return Err(Failure::usage("there is no terminal to ask on", "say --yes if you are sure"));
        }
        let mut client = context.client().await?;
        let view: SessionView = client.get(&self.target.route(&[])).await?;
        // By its id: while the question stood, the alias may have become another's.
        let id = view.id.to_string();
        if !self.yes {
            let route = Route::to(&["sessions", &id, "diff"]).with("from", Some(&self.to));
            let diff: WorkspaceDiff = client.get_patiently(&route).await?;
            let place = one_line(view.workspace.as_deref().unwrap_or_default());
            let question =
                format!("take {place} back to {}, changing {}?", diff.from, count(diff.files.len(), "file"));
            if !agreed(context, &question)? {
                context.out.note("nothing was changed");
                return Ok(());
            }
        }
        let route = Route::to(&["sessions", &id, "rollback"]);
        let done: RolledBack = client.post_patiently(&route, &NewRollback { to: self.to }).await?;
        if context.out.is_json() {
            return context.out.json(&done);
        }
        let Some(restored) = done.restored else {
            context.out.note("done before with the same key; nothing was changed");
            return Ok(());
        };
        for note in &restored.notes {
            context.out.warn(note);
        }
        context.out.note(&format!(
            "back at {}: {} changed, {} brought back, {} removed; undo it with `lanyard rollback {id} {}`",
            restored.to, restored.changed, restored.added, restored.removed, restored.before
        ));
        Ok(())
    }
}
