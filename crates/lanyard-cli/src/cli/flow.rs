//! `lanyard flow`: a plan worked through by an author and judged by a reviewer, with a person asked only for approvals.

mod begin;
mod cancel;
mod follow;
mod live;
mod ls;
mod merge;
mod report;
mod resume;
mod review;
mod run;
mod show;
mod status;
mod watch;
mod which;

use lanyard_api::types::FlowView;
use lanyard_client::Route;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::flow::sentence;

pub(super) use live::{STILL_OPEN, stays_open, tell_gate};

const EXAMPLES: &str = "\
A plan is Markdown: a heading for each phase, and a checklist below it. Of each phase the author
does the work, the quality commands of the config check it and the reviewer judges it, until it is
found ready. The flow waits for a person only at approvals. Every step is on disk; after a crash the
flow continues where it was.

Examples:
  lanyard flow run PLAN.md
  lanyard flow run PLAN.md --from 2 --author codex --reviewer claude --auto
  lanyard flow review PLAN.md
  lanyard answer
  lanyard flow report -o report.md";

/// Work through a plan, phase by phase, with an author and a reviewer
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FlowArgs {
    #[command(subcommand)]
    verb: FlowVerb,
}

#[derive(Debug, clap::Subcommand)]
enum FlowVerb {
    /// Work through a plan's phases, and watch
    #[command(after_help = run::examples())]
    Run(Box<run::FlowRunArgs>),
    /// Have a plan itself reviewed and corrected until it is approved, and watch
    #[command(after_help = review::examples())]
    Review(Box<review::Review>),
    /// List flows
    #[command(after_help = ls::EXAMPLES)]
    Ls(ls::FlowLsArgs),
    /// Show all there is to know of a flow
    #[command(after_help = show::EXAMPLES)]
    Show(show::FlowShowArgs),
    /// Watch a flow, and answer its approvals
    #[command(after_help = watch::examples())]
    Watch(watch::FlowWatchArgs),
    /// Tell what came of a flow, as Markdown
    #[command(after_help = report::EXAMPLES)]
    Report(report::FlowReportArgs),
    /// End a flow; its work stays on its branch
    #[command(after_help = cancel::EXAMPLES)]
    Cancel(cancel::FlowCancelArgs),
    /// Merge the branch of a flow that has ended
    #[command(after_help = merge::EXAMPLES)]
    Merge(merge::MergeFlow),
    /// Take a flow up again that was aborted, where it was
    #[command(after_help = resume::EXAMPLES)]
    Resume(resume::FlowResumeArgs),
}

impl FlowArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            FlowVerb::Run(run) => run.run(context).await,
            FlowVerb::Review(review) => review.run(context).await,
            FlowVerb::Ls(ls) => ls.run(context).await,
            FlowVerb::Show(show) => show.run(context).await,
            FlowVerb::Watch(watch) => watch.run(context).await,
            FlowVerb::Report(report) => report.run(context).await,
            FlowVerb::Cancel(cancel) => cancel.run(context).await,
            FlowVerb::Merge(merge) => merge.run(context).await,
            FlowVerb::Resume(resume) => resume.run(context).await,
        }
    }
}

/// A flow's address, or that of something below it.
pub(super) fn at(flow: &str, below: &[&str]) -> Route {
    let parts: Vec<&str> = ["flows", flow].into_iter().chain(below.iter().copied()).collect();
    Route::to(&parts)
}

/// Programs get the flow, people a sentence of how it stands and what they can do next.
pub(super) fn told(context: &Context, view: &FlowView, next: &str) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.json(view);
    }
    let next = if next.is_empty() { String::new() } else { format!("; {next}") };
    context.out.note(&format!("{}{next}", sentence(view)));
    Ok(())
}
