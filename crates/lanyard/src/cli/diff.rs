//! `lanyard diff`: what changed in a session's workspace.

use lanyard_api::types::{FileChange, WorkspaceDiff};

use super::target::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::{count, harmless, one_line};

const EXAMPLES: &str = "\
Without a range: from the newest checkpoint that is not the end of a turn (most often the start of
the last turn) to the workspace as it is. A checkpoint is named as `lanyard checkpoints` shows it, by
its position or by its commit. The diff goes to stdout, the summary to stderr.

Examples:
  lanyard diff fix-login
  lanyard diff fix-login at-12
  lanyard diff fix-login at-12..stop-40 | git apply -R";

/// Show what changed in a session's workspace
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Diff {
    #[command(flatten)]
    target: Target,
    /// From one checkpoint to another; with A alone, to the workspace as it is
    #[arg(value_name = "A[..B]")]
    range: Option<String>,
}

impl Diff {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let (from, to) = match self.range.as_deref() {
            None => (None, None),
            Some(range) => match range.split_once("..") {
                Some((from, to)) => (Some(from), Some(to)),
                None => (Some(range), None),
            },
        };
        let named = |name: Option<&str>| name.filter(|name| !name.is_empty()).map(str::to_owned);
        let route = self.target.route(&["diff"]).with("from", named(from)).with("to", named(to));
        let diff: WorkspaceDiff = context.client().await?.get_patiently(&route).await?;
        if context.out.is_json() {
            return context.out.json(&diff);
        }
        let to = diff.to.as_deref().unwrap_or("now");
        context.out.note(&format!("{} to {}: {}", diff.from, to, count(diff.files.len(), "file")));
        for file in &diff.files {
            let change = match file.change {
                FileChange::Added => "new ",
                FileChange::Modified => "",
                FileChange::Deleted => "gone ",
                FileChange::Renamed => "renamed ",
                FileChange::TypeChanged => "other kind ",
            };
            let lines =
                if file.binary { "binary".to_owned() } else { format!("+{} -{}", file.added, file.removed) };
            context.out.note(&format!("  {change}{} {lines}", one_line(&file.path)));
        }
        if diff.truncated {
            context.out.warn("the diff is longer than can be shown; what is here is its beginning");
        }
        // On a terminal nothing in a file may move the cursor; in a pipe every byte counts.
        match context.out.columns {
            Some(_) => context.out.data(&harmless(&diff.text)),
            None => context.out.data(&diff.text),
        }
    }
}
