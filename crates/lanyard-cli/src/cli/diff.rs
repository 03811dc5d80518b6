//! `lanyard diff`: what changed in a session's workspace.

use lanyard_api::types::{ChangedFile, FileChange, SnapshotList, WorkspaceDiff};
use lanyard_core::session::SessionView;

use super::target::Target;
use super::turn_list::{turn_named, turns_started};
use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::{count, harmless, one_line};

const EXAMPLES: &str = "\
Without a range: what the session did, from its first checkpoint to the workspace as it is. --turn
shows one turn: the last one, or the one with that number or id (`lanyard turns` lists them). A
checkpoint is named as `lanyard checkpoints` shows it, by its position or by its commit. The diff
goes to stdout, the summary to stderr; --stat prints the summary alone, to stdout.

Examples:
  lanyard diff fix-login
  lanyard diff fix-login --stat
  lanyard diff fix-login --turn
  lanyard diff fix-login --turn 1
  lanyard diff fix-login at-12..stop-40 | git apply -R";

/// The word for the last turn.
const LAST: &str = "last";

/// Show what a session changed in its workspace
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DiffArgs {
    #[command(flatten)]
    target: Target,
    /// From one checkpoint to another; with A alone, to the workspace as it is
    #[arg(value_name = "A[..B]", conflicts_with = "turn")]
    range: Option<String>,
    /// Of one turn: its number from 1, or its id [default: the last one]
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = LAST)]
    turn: Option<String>,
    /// Only the files and the numbers of their changed lines
    #[arg(long)]
    stat: bool,
}

impl DiffArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let (from, to) = match (&self.range, &self.turn) {
            (Some(range), _) => match range.split_once("..") {
                Some((from, to)) => (from.to_owned(), to.to_owned()),
                None => (range.clone(), String::new()),
            },
            (None, Some(turn)) => self.turn(&mut client, turn).await?,
            (None, None) => (first(&self.checkpoints(&mut client).await?), String::new()),
        };
        let named = |name: String| Some(name).filter(|name| !name.is_empty());
        let route = self.target.route(&["diff"]).with("from", named(from)).with("to", named(to));
        let diff: WorkspaceDiff = client.get_patiently(&route).await?;
        if context.out.is_json() {
            return context.out.json(&diff);
        }
        let summary = summary(&diff);
        if diff.truncated {
            context.out.warn("the diff is longer than can be shown; what is here is its beginning");
        }
        if self.stat {
            return context.out.data(&summary);
        }
        let view: SessionView = client.get(&self.target.route(&[])).await?;
        if let Some(tree) = &view.tree {
            context.out.note(&format!("branch {} in {}", one_line(&tree.branch), tree.path));
        }
        context.out.note(summary.trim_end());
        // On a terminal nothing in a file may move the cursor; in a pipe every byte counts.
        match context.out.columns {
            Some(_) => context.out.data(&harmless(&diff.text)),
            None => context.out.data(&diff.text),
        }
    }

    async fn checkpoints(&self, client: &mut Client<'_>) -> Result<SnapshotList, Failure> {
        client.get_patiently(&self.target.route(&["snapshots"])).await
    }

    /// The checkpoints at the start and the end of a turn; a turn that runs ends now.
    async fn turn(&self, client: &mut Client<'_>, named: &str) -> Result<(String, String), Failure> {
        let view: SessionView = client.get(&self.target.route(&[])).await?;
        let id = view.id.to_string();
        let turns = turns_started(client, &id).await?;
        let number =
            |text: &str| text.parse::<usize>().ok().and_then(|number| turns.get(number.checked_sub(1)?));
        let turn = match named {
            LAST => turns.last(),
            named => number(named).or_else(|| {
                let meant = turn_named(&turns.iter().map(|row| row.turn).collect::<Vec<_>>(), named).ok()?;
                turns.iter().find(|row| row.turn == meant)
            }),
        };
        let advice = format!("list its turns with `lanyard turns {id}`");
        let Some(turn) = turn.map(|row| row.turn.to_string()) else {
            let title = if turns.is_empty() {
                "the session had no turn yet".to_owned()
            } else {
                let (named, turns) = (one_line(named), count(turns.len(), "turn"));
                format!("the session has no turn `{named}`; it had {turns}")
            };
            return Err(Failure::local("turn_not_found", title, advice));
        };
        let taken = self.checkpoints(client).await?.snapshots;
        let has = |name: &str| taken.iter().any(|snapshot| snapshot.name == name);
        if !has(&turn) {
            let title = format!("no checkpoint was taken when {turn} began");
            let advice = format!("see which there are with `lanyard checkpoints {id}`");
            return Err(Failure::local("snapshot_not_found", title, advice));
        }
        let end = format!("{turn}-end");
        Ok((turn, if has(&end) { end } else { String::new() }))
    }
}

/// The first checkpoint; without one the daemon says that there is none.
fn first(list: &SnapshotList) -> String {
    list.snapshots.first().map(|snapshot| snapshot.name.clone()).unwrap_or_default()
}

fn summary(diff: &WorkspaceDiff) -> String {
    let to = diff.to.as_deref().unwrap_or("now");
    let (added, removed) = diff.files.iter().fold((0_u64, 0_u64), |(added, removed), file| {
        (added + u64::from(file.added), removed + u64::from(file.removed))
    });
    let files = count(diff.files.len(), "file");
    let head = format!("{} to {to}: {files}, +{added} -{removed}\n", one_line(&diff.from));
    diff.files.iter().fold(head, |text, file| text + &changed(file))
}

fn changed(file: &ChangedFile) -> String {
    let change = match file.change {
        FileChange::Added => "new ",
        FileChange::Modified => "",
        FileChange::Deleted => "gone ",
        FileChange::Renamed => "renamed ",
        FileChange::TypeChanged => "other kind ",
    };
    let lines = if file.binary { "binary".to_owned() } else { format!("+{} -{}", file.added, file.removed) };
    format!("  {change}{} {lines}\n", one_line(&file.path))
}
