//! `lanyard rm`: delete a session.

use std::time::Duration;

use lanyard_api::types::{PurgeView, Reason};
use lanyard_client::Route;
use lanyard_core::journal::PurgeStage;
use lanyard_core::session::SessionView;
use lanyard_core::{Outcome, SessionId};

use super::ask::{agreed, can_ask};
use super::target::Target;
use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::{count, one_line, quoted};

const EXAMPLES: &str = "\
A deleted session is gone for good: its log, turns, memory, checkpoints and the files of its runs
are purged in the background, within seconds. A worktree of its own goes too; work in it that is in
no commit is committed to its branch first, and the branch stays. A tombstone with its id, who
deleted it, when and why stays. Other sessions keep what their own logs say of it, and backups made
before keep all of it. `lanyard archive` puts a session away instead. --wait returns when nothing of
it is left in the journal's files.

Examples:
  lanyard rm fix-login
  lanyard rm fix-login --yes --wait --reason \"held a customer's data\"";

/// Looks at a purge: 5 minutes in all, told of every 5 seconds.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS_MAX: u32 = 3_000;
const LOOKS_TOLD: u32 = 50;

/// Delete a session and purge what is kept of it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Rm {
    #[command(flatten)]
    target: Target,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Return when the purge is complete
    #[arg(long, short)]
    wait: bool,
    /// Why, for the tombstone
    #[arg(long)]
    reason: Option<String>,
}

impl Rm {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        if !self.yes && !can_ask() {
            return Err(Failure::usage("there is no terminal to ask on", "say --yes if you are sure"));
        }
        let mut client = context.client().await?;
        let route = if self.yes {
            self.target.route(&[])
        } else {
            let view: SessionView = client.get(&self.target.route(&[])).await?;
            if !agreed(context, &question(&view))? {
                context.out.note("nothing was deleted");
                return Ok(());
            }
            // By its id: while the question stood, the alias may have become another's.
            Route::to(&["sessions", &view.id.to_string()])
        };
        let outcome: Outcome = client.delete(&route, &Reason { reason: self.reason }).await?;
        if self.wait {
            let purged = wait(context, &mut client, outcome.session).await?;
            if context.out.is_json() {
                return context.out.json(&purged);
            }
            return context.out.receipt(
                &outcome,
                None,
                &format!("{} was deleted and purged", outcome.session),
            );
        }
        context.out.receipt(&outcome, None, &format!("{} was deleted", outcome.session))
    }
}

/// Waits until nothing is left. A reader may hold the journal's older pages for a while.
async fn wait(context: &Context, client: &mut Client<'_>, session: SessionId) -> Result<PurgeView, Failure> {
    let route = Route::to(&["sessions", &session.to_string(), "purge"]);
    for look in 1..=LOOKS_MAX {
        let view: PurgeView = client.get(&route).await?;
        if view.complete {
            return Ok(view);
        }
        if look % LOOKS_TOLD == 0 {
            let stage = match view.stage {
                None => "waiting for its processes to end",
                Some(PurgeStage::Purging) => "removing its events",
                Some(PurgeStage::Purged | PurgeStage::Wiped) => "overwriting free space",
            };
            context.out.note(stage);
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(Failure::local(
        "purge_not_complete",
        format!("{session} is deleted, and its purge is not complete after 5 minutes"),
        "the daemon goes on with it; see how far it is with `lanyard gc --dry-run`",
    ))
}

fn question(view: &SessionView) -> String {
    let title = view.title.as_deref().map(|title| format!(" {}", quoted(title))).unwrap_or_default();
    let tree = view.tree.as_ref().map(|tree| {
        let branch = one_line(&tree.branch);
        format!("; its worktree goes, and what it holds is committed to the branch {branch}, which stays")
    });
    let tree = tree.unwrap_or_default();
    format!("delete {}{title}, {}, {}{tree}?", view.id, view.state, count(view.last_seq, "event"))
}
