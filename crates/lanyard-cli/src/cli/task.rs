//! `lanyard task`: a piece of work for an agent, a chat or an external program.

mod add;
mod edit;
mod ls;
mod merging;
mod order;
mod show;
mod tree;
mod wait;

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::TaskView;
use lanyard_client::Route;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::task::sentence;

pub(super) use merging::{MergedTasks, merge_in_order};

const EXAMPLES: &str = "\
A task is a durable address: it keeps its id, its worker's id and its mailbox however often it is
deployed, and over every restart. Name it by its id, its address `orchestrator:/task_…`, an alias,
or the id of its worker, session or run.

Marks: [ ] pending, [+] deploying, [>] running, [=] paused, [?] interrupted, [x] completed,
[!] failed, [-] cancelled.

Examples:
  task=$(lanyard task add \"fix the login test\" --agent codex --deploy)
  lanyard task ls
  lanyard task wait \"$task\" && lanyard task diff \"$task\"
  lanyard task merge \"$task\"
  lanyard task message \"$task\" \"the staging key is in vault\"
  lanyard task cancel \"$task\" --reason \"wrong branch\"
  lanyard task retry \"$task\" --deploy";

/// Make tasks, deploy, watch, cancel and merge them
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TaskArgs {
    #[command(subcommand)]
    verb: TaskVerb,
}

#[derive(Debug, clap::Subcommand)]
enum TaskVerb {
    /// Make a task and print its id
    #[command(after_help = add::EXAMPLES)]
    Add(Box<add::TaskAddArgs>),
    /// List tasks
    #[command(after_help = ls::EXAMPLES)]
    Ls(ls::TaskLsArgs),
    /// Show all there is to know of a task
    #[command(after_help = show::EXAMPLES)]
    Show(show::TaskShowArgs),
    /// Change a task that is not running
    #[command(after_help = edit::EXAMPLES)]
    Edit(Box<edit::Edit>),
    /// Start tasks
    #[command(after_help = order::DEPLOY_EXAMPLES)]
    Deploy(order::Deploys),
    /// Hold a task until it is resumed
    Pause(order::Because),
    /// Go on with a task that is paused or was interrupted
    Resume(order::Because),
    /// Cancel a task; what it has done so far is kept
    #[command(after_help = order::CANCEL_EXAMPLES)]
    Cancel(order::TaskCancelArgs),
    /// Have a task done again that has ended
    #[command(after_help = order::RETRY_EXAMPLES)]
    Retry(order::Retry),
    /// Say that a task is done
    Complete(order::TaskCompleteArgs),
    /// Say that a task cannot be done
    Fail(order::TaskFailArgs),
    /// Show what a task's branch holds
    #[command(after_help = tree::DIFF_EXAMPLES)]
    Diff(tree::TaskDiffArgs),
    /// Merge the branches of tasks, prerequisites first
    #[command(after_help = tree::MERGE_EXAMPLES)]
    Merge(tree::Merge),
    /// Throw a task's branch away; git keeps what it held
    Discard(order::Because),
    /// Have a task report to another task or session
    #[command(after_help = order::ADOPT_EXAMPLES)]
    Adopt(order::Adopt),
    /// Send a message to a task's worker
    #[command(after_help = order::MESSAGE_EXAMPLES)]
    Message(order::TaskMessageArgs),
    /// Print the tokens with which an external program runs a task of kind `external`
    Token(order::Because),
    /// Wait until tasks have ended
    #[command(after_help = wait::EXAMPLES)]
    Wait(wait::Wait),
}

/// The task a command is about.
#[derive(Debug, clap::Args)]
struct Target {
    /// Task: its id, an alias, or the id of its worker
    #[arg(value_name = "TASK", value_parser = NonEmptyStringValueParser::new())]
    task: String,
}

impl Target {
    fn route(&self, below: &[&str]) -> Route {
        at(&self.task, below)
    }
}

/// A task's address, or that of something below it.
fn at(task: &str, below: &[&str]) -> Route {
    let parts: Vec<&str> = ["tasks", task].into_iter().chain(below.iter().copied()).collect();
    Route::to(&parts)
}

/// Programs get the task, people a sentence of how it stands and what they can do next.
fn told(context: &Context, view: &TaskView, next: &str) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.json(view);
    }
    let next = if next.is_empty() { String::new() } else { format!("; {next}") };
    context.out.note(&format!("{}{next}", sentence(view)));
    Ok(())
}

impl TaskArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            TaskVerb::Add(add) => add.run(context).await,
            TaskVerb::Ls(ls) => ls.run(context).await,
            TaskVerb::Show(show) => show.run(context).await,
            TaskVerb::Edit(edit) => edit.run(context).await,
            TaskVerb::Deploy(deploy) => deploy.run(context).await,
            TaskVerb::Pause(order) => order.pause(context).await,
            TaskVerb::Resume(order) => order.resume(context).await,
            TaskVerb::Cancel(cancel) => cancel.run(context).await,
            TaskVerb::Retry(retry) => retry.run(context).await,
            TaskVerb::Complete(complete) => complete.run(context).await,
            TaskVerb::Fail(fail) => fail.run(context).await,
            TaskVerb::Diff(diff) => diff.run(context).await,
            TaskVerb::Merge(merge) => merge.run(context).await,
            TaskVerb::Discard(order) => order.discard(context).await,
            TaskVerb::Adopt(adopt) => adopt.run(context).await,
            TaskVerb::Message(message) => message.run(context).await,
            TaskVerb::Token(order) => order.token(context).await,
            TaskVerb::Wait(wait) => wait.run(context).await,
        }
    }
}
