//! Orders to a task: deploy, pause, cancel, retry, and messages to its worker.

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::{
    AdoptTask, CancelTask, CompleteTask, Deploy, DiscardedTask, NewMail, Reason, RetryTask, RunToken,
    TaskView,
};
use lanyard_client::names::A_TASK;
use lanyard_core::task::{Mail, MailState};

use super::{Target, at, told};
use crate::cli::target::text_or_stdin;
use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::one_line;

pub(super) const DEPLOY_EXAMPLES: &str = "\
Its worker's id is the one it had before, its chat session's, or a new one, and is kept from then on.

Examples:
  lanyard task deploy task_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard task deploy notes changelog --force";

#[derive(Debug, clap::Args)]
pub(super) struct Deploys {
    /// Tasks: ids, aliases, or ids of their workers
    #[arg(value_name = "TASK", required = true, value_parser = NonEmptyStringValueParser::new())]
    tasks: Vec<String>,
    /// Whatever holds them
    #[arg(long)]
    force: bool,
}

impl Deploys {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        if let [task] = self.tasks.as_slice() {
            let view = self.deploy(&mut client, task).await?;
            return told(context, &view, &format!("`lanyard task wait {}` waits for its end", view.task.id));
        }
        let mut deployed: Vec<TaskView> = Vec::new();
        let mut refused = false;
        for task in &self.tasks {
            match self.deploy(&mut client, task).await {
                Ok(view) => deployed.push(view),
                // One that cannot be deployed holds up none of the others.
                Err(Failure::Told { problem, .. }) => {
                    refused = true;
                    context
                        .out
                        .warn(&format!("{} [{}]; try: {}", problem.title, problem.code, problem.advice));
                }
                Err(failure @ (Failure::Shown | Failure::Ended(_) | Failure::ClosedPipe)) => {
                    return Err(failure);
                }
            }
        }
        if context.out.is_json() {
            context.out.json(&deployed)?;
        } else {
            deployed.iter().try_for_each(|view| told(context, view, ""))?;
        }
        if refused { Err(Failure::Shown) } else { Ok(()) }
    }

    async fn deploy(&self, client: &mut Client<'_>, task: &str) -> Result<TaskView, Failure> {
        client.post_part(task, &at(task, &["deploy"]), &Deploy { force: self.force }).await
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct Because {
    #[command(flatten)]
    target: Target,
    /// Why, for the log
    #[arg(long)]
    reason: Option<String>,
}

impl Because {
    pub(super) async fn pause(self, context: &Context) -> Result<(), Failure> {
        let view: TaskView = self.ask(context, "pause").await?;
        told(context, &view, &format!("`lanyard task resume {}` goes on", view.task.id))
    }

    pub(super) async fn resume(self, context: &Context) -> Result<(), Failure> {
        let view: TaskView = self.ask(context, "resume").await?;
        told(context, &view, "")
    }

    pub(super) async fn discard(self, context: &Context) -> Result<(), Failure> {
        let gone: DiscardedTask = self.ask(context, "discard").await?;
        if context.out.is_json() {
            return context.out.json(&gone);
        }
        let kept = one_line(&gone.reference);
        context.out.note(&format!(
            "the branch of {} is gone; git has what it held: `git branch NAME {kept}` brings it back",
            gone.task
        ));
        Ok(())
    }

    pub(super) async fn token(self, context: &Context) -> Result<(), Failure> {
        let token: RunToken = self.ask(context, "token").await?;
        if context.out.is_json() {
            return context.out.json(&token);
        }
        context.out.note(&format!(
            "for run {} of {} in {}; both are secrets. An older run's token is refused from here on",
            token.run, token.worker, token.session
        ));
        let (run, session) = (one_line(&token.run_token), one_line(&token.session_token));
        context.out.data(&format!(
            "session        {}\nrun_token      {run}\nsession_token  {session}\n",
            token.session
        ))
    }

    async fn ask<T: serde::de::DeserializeOwned>(self, context: &Context, verb: &str) -> Result<T, Failure> {
        context.client().await?.post(&self.target.route(&[verb]), &Reason { reason: self.reason }).await
    }
}

pub(super) const CANCEL_EXAMPLES: &str = "\
Its agent is asked to stop, as `lanyard stop` does, and so are all tasks below it. What its worktree
holds is committed to its branch.

Examples:
  lanyard task cancel notes --reason \"wrong branch\"
  lanyard task cancel notes --now";

#[derive(Debug, clap::Args)]
pub(super) struct TaskCancelArgs {
    #[command(flatten)]
    target: Target,
    /// At once, whatever its agent is doing
    #[arg(long)]
    now: bool,
    /// Why, for the agent and the log
    #[arg(long)]
    reason: Option<String>,
}

impl TaskCancelArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let body = CancelTask { reason: self.reason, now: self.now };
        let view: TaskView = context.client().await?.post(&self.target.route(&["cancel"]), &body).await?;
        let id = view.task.id;
        let next = if view.task.state.is_ended() {
            format!("`lanyard task retry {id}` has it done again")
        } else {
            format!("`lanyard task wait {id}` waits for its end")
        };
        told(context, &view, &next)
    }
}

pub(super) const RETRY_EXAMPLES: &str = "\
The same worker does it again, in a new session and on the same branch.

Examples:
  lanyard task retry notes --deploy
  lanyard task retry notes && lanyard task edit notes --agent codex";

#[derive(Debug, clap::Args)]
pub(super) struct Retry {
    #[command(flatten)]
    target: Target,
    /// Deploy it as soon as nothing holds it
    #[arg(long)]
    deploy: bool,
}

impl Retry {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let body = RetryTask { deploy: self.deploy };
        let view: TaskView = context.client().await?.post(&self.target.route(&["retry"]), &body).await?;
        let id = view.task.id;
        let next = match (view.task.plan, &view.held) {
            (Some(plan), Some(_)) => {
                format!(
                    "`lanyard plan start {plan}` goes on with its plan, `lanyard task deploy {id}` with it alone"
                )
            }
            (None, _) if !self.deploy => format!("`lanyard task deploy {id}` starts it"),
            (_, _) => format!("`lanyard task wait {id}` waits for its end"),
        };
        told(context, &view, &next)
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct TaskCompleteArgs {
    #[command(flatten)]
    target: Target,
    /// What came of it; `-` reads it from stdin
    #[arg(long, value_name = "TEXT")]
    summary: String,
    /// What shows it
    #[arg(long, value_name = "TEXT")]
    evidence: Option<String>,
}

impl TaskCompleteArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let body = CompleteTask { summary: text_or_stdin(self.summary)?, evidence: self.evidence };
        let view: TaskView = context.client().await?.post(&self.target.route(&["complete"]), &body).await?;
        told(context, &view, "")
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct TaskFailArgs {
    #[command(flatten)]
    target: Target,
    /// Why it cannot be done
    #[arg(long)]
    reason: String,
}

impl TaskFailArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let body = Reason { reason: Some(self.reason) };
        let view: TaskView = context.client().await?.post(&self.target.route(&["fail"]), &body).await?;
        told(context, &view, &format!("`lanyard task retry {}` has it done again", view.task.id))
    }
}

pub(super) const ADOPT_EXAMPLES: &str = "\
Examples:
  lanyard task adopt notes --by task_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard task adopt notes";

#[derive(Debug, clap::Args)]
pub(super) struct Adopt {
    #[command(flatten)]
    target: Target,
    /// The task or session it reports to from now on [default: none]
    #[arg(long, value_name = "WHO")]
    by: Option<String>,
}

impl Adopt {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let body = AdoptTask { parent: client.id_if(A_TASK, self.by).await? };
        let view: TaskView = client.post(&self.target.route(&["adopt"]), &body).await?;
        let heard = view.task.reports_to.map_or_else(|| "nobody".to_owned(), |to| to.to_string());
        told(context, &view, &format!("it reports to {heard}"))
    }
}

pub(super) const MESSAGE_EXAMPLES: &str = "\
The message is mail to the task: its worker gets it, now or after the next deploy.

Examples:
  lanyard task message notes \"only what users notice\"
  lanyard task message notes - < remarks.md";

#[derive(Debug, clap::Args)]
pub(super) struct TaskMessageArgs {
    #[command(flatten)]
    target: Target,
    /// The message; `-` reads it from stdin
    text: String,
}

impl TaskMessageArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let body = NewMail { text: text_or_stdin(self.text)? };
        let mail: Mail = context.client().await?.post(&self.target.route(&["mail"]), &body).await?;
        if context.out.is_json() {
            return context.out.json(&mail);
        }
        let state = match &mail.state {
            MailState::Pending => "waits for the task's next worker",
            MailState::Given { .. } | MailState::Shown { .. } => "is on its way to its worker",
            MailState::Acknowledged { .. } => "was heard",
            MailState::Dead { .. } => "has no recipient",
        };
        context.out.note(&format!("it {state}; `lanyard mailbox show {}` shows what becomes of it", mail.id));
        context.out.data(&mail.id.to_string())
    }
}
