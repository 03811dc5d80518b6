//! What `lanyard flow run` and `lanyard flow review` have in common: a plan, who works at it, and watching it.

use std::path::{Path, PathBuf};

use lanyard_api::types::{FlowView, NewFlowBody};
use lanyard_client::Route;
use lanyard_core::flow::{Asking, FlowKind};

use super::live::{From, watch};
use super::told;
use crate::cli::target::folder;
use crate::context::Context;
use crate::failure::Failure;

/// The part of the help that is the same for all commands that watch a flow.
pub(super) const EXIT_CODES: &str = "\
Exit codes: 0 completed or approved, 1 aborted, refused or failed, 2 not understood, 3 no daemon that
answers, 4 it waits for an approval and stdin is no terminal, 130 left with Ctrl-C";

#[derive(Debug, clap::Args)]
pub(super) struct FlowBeginArgs {
    /// The plan, a Markdown file
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// The agent that does the work [default: the config's]
    #[arg(long, value_name = "AGENT")]
    author: Option<String>,
    /// The agent that judges it [default: the config's]
    #[arg(long, value_name = "AGENT")]
    reviewer: Option<String>,
    /// The folder to work in [default: the plan's repository, or its folder]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Ask before the author makes the corrections a reviewer wants
    #[arg(long)]
    ask_reviews: bool,
    /// Work in the folder itself, not in a worktree on a branch of its own
    #[arg(long)]
    no_worktree: bool,
    /// Do not watch: print the flow's id
    #[arg(long, short)]
    detach: bool,
}

impl FlowBeginArgs {
    pub(super) fn body(&self, kind: FlowKind) -> Result<NewFlowBody, Failure> {
        let workspace = self.workspace.clone().map(|asked| folder(Some(asked), "--workspace"));
        Ok(NewFlowBody {
            kind,
            plan: whole(&self.plan)?,
            workspace: workspace.transpose()?,
            author: self.author.clone(),
            reviewer: self.reviewer.clone(),
            from: None,
            phase_gate: None,
            review_gate: self.ask_reviews.then_some(Asking::Ask),
            worktree: self.no_worktree.then_some(false),
            quality: None,
        })
    }

    pub(super) async fn begin(&self, context: &Context, body: &NewFlowBody) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let view: FlowView = client.post(&Route::to(&["flows"]), body).await?;
        drop(client);
        let id = view.flow.id;
        if self.detach {
            if !context.out.is_json() {
                context.out.data(&id.to_string())?;
            }
            return told(context, &view, &format!("watch it with `lanyard flow watch {id}`"));
        }
        if !context.out.is_json() {
            context.out.data(&id.to_string())?;
        }
        watch(context, id, From::Beginning).await
    }
}

/// The plan by its whole path: the daemon stands in another folder.
fn whole(plan: &Path) -> Result<String, Failure> {
    let whole = std::fs::canonicalize(plan).map_err(|error| {
        let title = format!("cannot read the plan {}: {error}", plan.display());
        Failure::local("plan_unreadable", title, "name a Markdown file that has phases")
    })?;
    whole.into_os_string().into_string().map_err(|path| {
        let title = format!("the plan's name is not UTF-8: {}", PathBuf::from(path).display());
        Failure::usage(title, "give it a name that is")
    })
}
