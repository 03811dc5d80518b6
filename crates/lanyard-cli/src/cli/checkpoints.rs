//! `lanyard checkpoints`: the workspace as it was, each time it was kept.

use lanyard_api::types::SnapshotList;
use lanyard_core::session::SnapshotReason;

use super::target::Target;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::table::{Column, table};
use crate::render::text::one_line;
use crate::render::time::ago;

const COLUMNS: [Column; 6] = [
    Column::whole("CHECKPOINT"),
    Column::whole("COMMIT"),
    Column::whole("TAKEN"),
    Column::whole("WHY"),
    Column::whole("CHANGED"),
    Column::whole("POSITION"),
];

const EXAMPLES: &str = "\
In a git repository the workspace is kept at the start and the end of every turn, at every stop,
before a rollback, and when `lanyard checkpoint` asks for it. Checkpoints are commits in a repository
of Lanyard's own; yours is not changed. Untracked files are part of it, ignored ones are not.

Examples:
  lanyard checkpoints fix-login
  lanyard diff fix-login at-12
  lanyard rollback fix-login at-12";

/// List the places a session's workspace can go back to
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Checkpoints {
    #[command(flatten)]
    target: Target,
}

impl Checkpoints {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let list: SnapshotList = client.get_patiently(&self.target.route(&["snapshots"])).await?;
        if context.out.is_json() {
            return context.out.list(&list.snapshots, None);
        }
        if list.snapshots.is_empty() {
            context.out.note("no checkpoints yet; `lanyard checkpoint` makes one");
            return Ok(());
        }
        let now = daemon_now(&mut client).await?;
        let cells: Vec<Vec<String>> = list
            .snapshots
            .iter()
            .map(|snapshot| {
                let reason = snapshot.reason.map(|reason| match reason {
                    SnapshotReason::TurnStart => "start of a turn",
                    SnapshotReason::TurnEnd => "end of a turn",
                    SnapshotReason::Stop => "stop",
                    SnapshotReason::Asked => "asked for",
                    SnapshotReason::Rollback => "before a rollback",
                });
                vec![
                    one_line(&snapshot.name),
                    snapshot.commit.chars().take(12).collect(),
                    snapshot.at.map(|at| ago(now, at)).unwrap_or_default(),
                    reason.unwrap_or_default().to_owned(),
                    snapshot.files_changed.to_string(),
                    snapshot.position.map(|position| position.to_string()).unwrap_or_default(),
                ]
            })
            .collect();
        context.out.data(&table(&COLUMNS, &cells, context.out.columns))
    }
}
