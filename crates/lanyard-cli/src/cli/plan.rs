//! `lanyard plan`: work in tasks that wait for each other.

mod end;
mod live_table;
mod progress;

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{
    Deploy, DeployedTasks, ImportPlan, NewPlanBody, PlanList, PlanMarkdown, PlanView, Reason,
};
use lanyard_client::Route;
use lanyard_core::paper::{PlanStatus, Priority};

use super::target::{folder, workspace};
use super::words;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::plan::{plan_card, plans};
use crate::render::text::{count, one_line};

const EXAMPLES: &str = "\
A plan is a list of tasks, some after others. Once it is started, Lanyard deploys each task as soon
as what it depends on is completed, a few at a time, each in a git worktree and branch of its own.
A paused plan begins nothing new; what runs goes on.

Examples:
  lanyard plan import release.md --start
  lanyard plan new \"Release 1.0\" --name release
  lanyard task add \"write the changelog\" --plan release --agent codex
  lanyard plan start release
  lanyard plan watch release
  lanyard plan wait release && lanyard plan merge release
  lanyard plan export release > release.md";

/// Make plans of tasks, start, watch, merge and cancel them
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Plan {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Make a plan and print its id
    #[command(after_help = NEW_EXAMPLES)]
    New(New),
    /// List plans
    #[command(after_help = LS_EXAMPLES)]
    Ls(Ls),
    /// Show a plan and its tasks
    Show(Target),
    /// Start a plan, or go on with a paused one
    Start(Because),
    /// Begin nothing new of a plan; running tasks go on
    Pause(Because),
    /// Deploy all that is ready, whatever the plan's status
    #[command(after_help = DEPLOY_EXAMPLES)]
    Deploy(DeployAll),
    /// Print each change of a plan's tasks until the plan is over
    #[command(after_help = progress::WATCH_EXAMPLES)]
    Watch(Target),
    /// Wait until a plan is over
    #[command(after_help = progress::WAIT_EXAMPLES)]
    Wait(progress::WaitPlan),
    /// Merge the branches of a plan's completed tasks, prerequisites first
    #[command(after_help = end::MERGE_EXAMPLES)]
    Merge(end::MergePlan),
    /// Cancel a plan and its open tasks
    #[command(after_help = end::CANCEL_EXAMPLES)]
    Cancel(end::CancelPlan),
    /// Put a plan away
    Archive(Because),
    /// Make a plan of a Markdown file
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportFile),
    /// Print a plan as Markdown
    Export(Target),
}

const NEW_EXAMPLES: &str = "\
Examples:
  lanyard plan new \"Release 1.0\" --name release --goal \"all that stands between us and the tag\"
  plan=$(lanyard plan new \"Release 1.0\")
  lanyard task add \"write the changelog\" --plan \"$plan\"";

#[derive(Debug, clap::Args)]
struct New {
    title: String,
    /// What it is for
    #[arg(long)]
    goal: Option<String>,
    /// A name by which it can be found beside its id
    #[arg(long)]
    name: Option<String>,
    /// Which plan goes first [default: normal]
    #[arg(long, value_parser = words::priority())]
    priority: Option<Priority>,
    /// The folder its tasks work in [default: this one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

const LS_EXAMPLES: &str = "\
Examples:
  lanyard plan ls --status active
  lanyard plan ls --all --json | jq -r '.items[].id'";

#[derive(Debug, clap::Args)]
struct Ls {
    /// By status
    #[arg(long, value_parser = words::plan_status())]
    status: Option<PlanStatus>,
    /// By workspace (`.` for this folder)
    #[arg(long, value_parser = workspace)]
    workspace: Option<String>,
    /// Show archived plans too
    #[arg(long, short)]
    all: bool,
}

#[derive(Debug, clap::Args)]
struct Target {
    /// The plan: its id or its name
    #[arg(value_name = "PLAN", value_parser = NonEmptyStringValueParser::new())]
    plan: String,
    /// The one in this workspace, when a name is used more than once
    #[arg(long, value_name = "WORKSPACE", value_parser = workspace)]
    workspace: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Because {
    #[command(flatten)]
    target: Target,
    /// Why, for the log
    #[arg(long)]
    reason: Option<String>,
}

const DEPLOY_EXAMPLES: &str = "\
Says what was deployed and what holds the rest.

Examples:
  lanyard plan deploy release
  lanyard plan deploy release --force";

#[derive(Debug, clap::Args)]
struct DeployAll {
    #[command(flatten)]
    target: Target,
    /// Whatever holds them
    #[arg(long)]
    force: bool,
}

const IMPORT_EXAMPLES: &str = "\
A heading is the plan's title, the text below it its goal, and each checklist item or heading below
that a task. `lanyard plan export` prints the form with everything a task can have.

Examples:
  lanyard plan import release.md --start
  lanyard plan import - < release.md";

#[derive(Debug, clap::Args)]
struct ImportFile {
    /// The file; `-` reads stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A name by which it can be found beside its id
    #[arg(long)]
    name: Option<String>,
    /// The folder its tasks work in [default: this one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Start it at once
    #[arg(long)]
    start: bool,
}

impl Plan {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            Verb::New(new) => new.run(context).await,
            Verb::Ls(ls) => ls.run(context).await,
            Verb::Show(target) => show(context, &target).await,
            Verb::Start(order) => order.run(context, "start").await,
            Verb::Pause(order) => order.run(context, "pause").await,
            Verb::Deploy(deploy) => deploy.run(context).await,
            Verb::Watch(target) => progress::watch(context, &target).await,
            Verb::Wait(wait) => wait.run(context).await,
            Verb::Merge(merge) => merge.run(context).await,
            Verb::Cancel(cancel) => cancel.run(context).await,
            Verb::Archive(order) => order.run(context, "archive").await,
            Verb::Import(import) => import.run(context).await,
            Verb::Export(target) => export(context, &target).await,
        }
    }
}

impl Target {
    fn route(&self, below: &[&str]) -> Route {
        let parts: Vec<&str> = ["plans", &self.plan].into_iter().chain(below.iter().copied()).collect();
        Route::to(&parts).with("workspace", self.workspace.as_ref())
    }
}

impl New {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let body = NewPlanBody {
            title: self.title,
            goal: self.goal,
            name: self.name,
            priority: self.priority.unwrap_or_default(),
            workspace: Some(folder(self.workspace, "--workspace")?),
            ..NewPlanBody::default()
        };
        let view: PlanView = context.client().await?.post(&Route::to(&["plans"]), &body).await?;
        made(context, &view)
    }
}

/// The id on stdout, and what can be done next on stderr.
fn made(context: &Context, view: &PlanView) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.json(view);
    }
    let id = view.plan.id;
    let next = match view.plan.status {
        PlanStatus::Draft if view.all.is_empty() => {
            format!("add to it with `lanyard task add TITLE --plan {id}`")
        }
        PlanStatus::Draft | PlanStatus::Paused => format!("start it with `lanyard plan start {id}`"),
        PlanStatus::Active | PlanStatus::Completed | PlanStatus::Failed | PlanStatus::Cancelled => {
            format!("`lanyard plan show {id}` shows how far it is")
        }
    };
    let tasks = count(view.all.len(), "task");
    context.out.note(&format!("{}, {}, {tasks}; {next}", one_line(&view.plan.title), view.plan.status));
    context.out.data(&id.to_string())
}

impl Ls {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let route = Route::to(&["plans"])
            .with("workspace", self.workspace.as_ref())
            .with("status", self.status)
            .with("archived", self.all.then_some("true"));
        let mut client = context.client().await?;
        let list: PlanList = client.get(&route).await?;
        if context.out.is_json() {
            return context.out.list(&list.plans, None);
        }
        if list.plans.is_empty() {
            context
                .out
                .note("no plans; make one with `lanyard plan new TITLE` or `lanyard plan import FILE`");
            return Ok(());
        }
        let now = daemon_now(&mut client).await?;
        context.out.data(&plans(&list.plans, now, context.out.columns))
    }
}

async fn show(context: &Context, target: &Target) -> Result<(), Failure> {
    let mut client = context.client().await?;
    let view: PlanView = client.get(&target.route(&[])).await?;
    if context.out.is_json() {
        return context.out.json(&view);
    }
    let now = daemon_now(&mut client).await?;
    context.out.data(&plan_card(&view, now, context.out.columns))
}

impl Because {
    async fn run(self, context: &Context, verb: &str) -> Result<(), Failure> {
        let body = Reason { reason: self.reason };
        let view: PlanView = context.client().await?.post(&self.target.route(&[verb]), &body).await?;
        if context.out.is_json() {
            return context.out.json(&view);
        }
        let id = view.plan.id;
        let away = if view.plan.archived { " and archived" } else { "" };
        context
            .out
            .note(&format!("{id} is {}{away}; `lanyard plan show {id}` shows its tasks", view.plan.status));
        Ok(())
    }
}

impl DeployAll {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let body = Deploy { force: self.force };
        let done: DeployedTasks =
            context.client().await?.post(&self.target.route(&["deploy"]), &body).await?;
        if context.out.is_json() {
            return context.out.json(&done);
        }
        for held in &done.held {
            context.out.note(&format!(
                "{} {} is held: {}",
                held.task,
                one_line(&held.title),
                one_line(&held.why)
            ));
        }
        if done.deployed.is_empty() {
            context.out.note("nothing was deployed");
        }
        let ids: String = done.deployed.iter().map(|task| task.to_string() + "\n").collect();
        context.out.data(&ids)
    }
}

impl ImportFile {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let read = if self.file.as_os_str() == "-" {
            std::io::read_to_string(std::io::stdin())
        } else {
            std::fs::read_to_string(&self.file)
        };
        let markdown = read.map_err(|error| {
            let title = format!("cannot read {}: {error}", self.file.display());
            Failure::local("file_unreadable", title, "name a Markdown file, or `-` for stdin")
        })?;
        let body = ImportPlan {
            markdown,
            name: self.name,
            workspace: Some(folder(self.workspace, "--workspace")?),
            start: self.start,
        };
        let view: PlanView = context.client().await?.post(&Route::to(&["plans", "import"]), &body).await?;
        made(context, &view)
    }
}

async fn export(context: &Context, target: &Target) -> Result<(), Failure> {
    let plan: PlanMarkdown = context.client().await?.get(&target.route(&["markdown"])).await?;
    if context.out.is_json() {
        return context.out.json(&plan);
    }
    context.out.data(&plan.markdown)
}
