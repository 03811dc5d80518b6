//! `lanyard task add`.

use std::path::PathBuf;

use lanyard_api::types::TaskView;
use lanyard_client::Route;
use lanyard_client::names::{A_PLAN, A_SESSION, A_TASK};
use lanyard_core::paper::Priority;
use lanyard_core::task::{Isolation, NewTask, ParentEnd, WorkerKind};

use crate::cli::target::{folder, text_or_stdin};
use crate::cli::words;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::task::sentence;

pub(super) const EXAMPLES: &str = "\
A background task gets a git worktree and branch of its own where its folder is a repository; what
its agent leaves uncommitted is committed for it when it ends.

Examples:
  lanyard task add \"fix the login test\" --agent codex --deploy
  lanyard task add \"write the notes\" --plan release --task-key notes --after changelog --alias notes
  lanyard task add \"review\" --prompt - --file 'src/**' < review.md
  lanyard task add \"talk it through\" --session fix-login --deploy
  lanyard task add \"one route of it\" --part-of task_01m7n5djg0fayvh8t5cxyjkdnf";

#[derive(Debug, clap::Args)]
pub(super) struct TaskAddArgs {
    /// What people see it under
    title: String,
    /// Message to its agent [default: the title]; `-` reads it from stdin
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// The agent that does it [default: the config's]
    #[arg(long)]
    agent: Option<String>,
    /// A foreign id by which it can be found too; may be given more than once
    #[arg(long = "alias", value_name = "ALIAS")]
    aliases: Vec<String>,
    /// Whether its worker may make tasks of its own; `--may-spawn=false` forbids it [default: true; false when an agent
    /// adds the task]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    may_spawn: Option<bool>,
    /// Deploy it at once
    #[arg(long)]
    deploy: bool,
    #[command(flatten)]
    order: Order,
    #[command(flatten)]
    place: WorkPlace,
}

/// Its place among others.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Among other tasks")]
struct Order {
    /// The plan it belongs to: id or name
    #[arg(long)]
    plan: Option<String>,
    /// What its plan calls it; --after and --part-of can name it so
    #[arg(long, value_name = "KEY")]
    task_key: Option<String>,
    /// The task it is a part of, which hears of its end
    #[arg(long, value_name = "TASK")]
    part_of: Option<String>,
    /// A task that must be completed first; may be given more than once
    #[arg(long, value_name = "TASK")]
    after: Vec<String>,
    /// Which goes first [default: normal]
    #[arg(long, value_parser = words::priority())]
    priority: Option<Priority>,
    /// Tasks of a plan run beside each other when they have the same group, or none
    #[arg(long)]
    group: Option<String>,
    /// What it will write, a file or pattern; two tasks that name the same are not run at once
    #[arg(long = "file", value_name = "PATTERN")]
    files: Vec<String>,
    /// What becomes of it when the task it is a part of ends first [default: adopt]
    #[arg(long, value_name = "THEN", value_parser = words::when_parent_ends())]
    when_parent_ends: Option<ParentEnd>,
}

/// Where it is done, and by what kind of worker.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Where it is done")]
struct WorkPlace {
    /// What kind of worker does it [default: background, or chat with --session]
    #[arg(long, value_parser = words::kind())]
    kind: Option<WorkerKind>,
    /// The chat session that does it: id or alias
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// The folder it is done in [default: its plan's, or this one]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Whether it has a git worktree of its own [default: auto]
    #[arg(long, value_name = "HOW", value_parser = words::isolation())]
    isolation: Option<Isolation>,
    /// The branch, tag or commit its worktree begins at [default: HEAD]
    #[arg(long, value_name = "REF")]
    base: Option<String>,
}

impl TaskAddArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut new = self.body()?;
        let deploy = new.deploy;
        let mut client = context.client().await?;
        new.plan = client.id_if(A_PLAN, new.plan).await?;
        new.session = client.id_if(A_SESSION, new.session).await?;
        // Within a plan the daemon knows tasks by their keys.
        if new.plan.is_none() {
            new.parent = client.id_if(A_TASK, new.parent).await?;
            new.depends_on = client.ids_of(A_TASK, new.depends_on).await?;
        }
        let view: TaskView = client.post(&Route::to(&["tasks"]), &new).await?;
        if context.out.is_json() {
            return context.out.json(&view);
        }
        let id = view.task.id;
        let next = match (deploy, view.task.plan) {
            (true, _) => format!("`lanyard task wait {id}` waits for its end"),
            (false, Some(plan)) => format!("it begins with its plan, `lanyard plan start {plan}`"),
            (false, None) => format!("`lanyard task deploy {id}` starts it"),
        };
        context.out.note(&format!("{}; {next}", sentence(&view)));
        context.out.data(&id.to_string())
    }

    fn body(self) -> Result<NewTask, Failure> {
        let (order, place) = (self.order, self.place);
        // The daemon knows where the tasks of a plan are done.
        let workspace = match place.workspace {
            None if order.plan.is_some() => None,
            asked => Some(folder(asked, "--workspace")?),
        };
        let chat = place.session.is_some().then_some(WorkerKind::Chat);
        let kind = place.kind.or(chat).unwrap_or_default();
        Ok(NewTask {
            title: self.title,
            prompt: self.prompt.map(text_or_stdin).transpose()?,
            agent: self.agent,
            plan: order.plan,
            key: order.task_key,
            parent: order.part_of,
            depends_on: order.after,
            priority: order.priority.unwrap_or_default(),
            group: order.group,
            files: order.files,
            base: place.base,
            kind,
            isolation: place.isolation.unwrap_or_default(),
            when_parent_ends: order.when_parent_ends.unwrap_or_default(),
            session: place.session,
            workspace,
            aliases: self.aliases,
            may_spawn: self.may_spawn,
            subagents: false,
            bounds: None,
            deploy: self.deploy,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        add: TaskAddArgs,
    }

    fn body(words: &[&str]) -> NewTask {
        Line::parse_from(["add"].iter().chain(words)).add.body().unwrap()
    }

    #[test]
    fn a_task_of_its_own_is_done_here_and_one_of_a_plan_where_its_plan_is() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(body(&["x"]).workspace.as_deref(), here.to_str());
        assert_eq!(body(&["x", "--plan", "release"]).workspace, None);
        assert_eq!(body(&["x", "--plan", "p", "--workspace", "/"]).workspace.as_deref(), Some("/"));
    }

    #[test]
    fn spawning_is_left_to_the_daemon_unless_it_is_said() {
        assert_eq!(body(&["x"]).may_spawn, None);
        assert_eq!(body(&["--may-spawn", "x"]).may_spawn, Some(true));
        assert_eq!(body(&["--may-spawn=false", "x"]).may_spawn, Some(false));
    }

    /// S4-B05: the kind is a field; a chat session on the command line only chooses its default.
    #[test]
    fn a_session_makes_it_a_chat() {
        assert_eq!(body(&["x"]).kind, WorkerKind::Background);
        assert_eq!(body(&["x", "--session", "fix-login"]).kind, WorkerKind::Chat);
        assert_eq!(body(&["x", "--kind", "external"]).kind, WorkerKind::External);
    }
}
