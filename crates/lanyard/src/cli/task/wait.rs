//! `lanyard task wait`: until tasks have ended, however often the daemon is restarted meanwhile.

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::TaskView;
use lanyard_core::GateId;
use lanyard_core::task::TaskState;

use super::at;
use crate::cli::approve::Approvals;
use crate::cli::ask::Keyboard;
use crate::client::{RecordWatch, Woken};
use crate::context::{Context, daemon_now};
use crate::failure::{Exit, Failure};
use crate::render::task::{listing, sentence};

/// Tasks of one wait: as many as one stream of records names.
const TASKS_MAX: usize = 100;
/// They have not ended, and nobody knows yet how they will.
const STILL_OPEN: u8 = Exit::Pending as u8;

pub(super) const EXAMPLES: &str = "\
How they stand goes to stderr as it changes, and all of them to stdout at the end.

Examples:
  lanyard task wait notes changelog
  lanyard task wait notes --timeout 600 && lanyard task merge notes

A daemon that restarts is waited for, up to a minute (LANYARD_DAEMON_WAIT_MS).

Exit codes: 0 all were completed, 1 one was not, 3 no daemon that answers, 4 not all had ended
within --timeout";

#[derive(Debug, clap::Args)]
pub(super) struct Wait {
    /// The tasks: ids, aliases, or the ids of who works at them
    #[arg(value_name = "TASK", required = true, num_args = 1..=TASKS_MAX, value_parser = NonEmptyStringValueParser::new())]
    tasks: Vec<String>,
    /// How long to wait [default: until they have ended]
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

impl Wait {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        // By their ids from here on: an alias could come to mean another task while this one is waited for.
        let mut views: Vec<TaskView> = Vec::new();
        for task in &self.tasks {
            views.push(client.get(&at(task, &[])).await?);
        }
        for view in &views {
            context.out.note(&sentence(view));
        }
        let all = all_ended(context, &mut views);
        let in_time = match self.timeout {
            None => {
                all.await?;
                true
            }
            Some(seconds) => match tokio::time::timeout(Duration::from_secs(seconds), all).await {
                Ok(ended) => {
                    ended?;
                    true
                }
                Err(_) => false,
            },
        };
        show(context, &views).await?;
        if !in_time {
            context.out.note("not all of them have ended; they go on");
            return Err(Failure::Ended(STILL_OPEN));
        }
        let completed = views.iter().all(|view| view.task.state == TaskState::Completed);
        if completed { Ok(()) } else { Err(Failure::Shown) }
    }
}

/// Comes back when all have ended. Restarts of the daemon are waited for, within their bound.
async fn all_ended(context: &Context, views: &mut [TaskView]) -> Result<(), Failure> {
    let keyboard = if context.out.is_json() { Keyboard::nobody() } else { Keyboard::open() };
    let mut asking = Asking { context, keyboard, approvals: Approvals::default(), asked: None };
    let ids: Vec<String> = views.iter().map(|view| view.task.id.to_string()).collect();
    let again = format!("lanyard task wait {}", ids.join(" "));
    let mut watch = RecordWatch::of(context, &ids.join(","), again);
    asking.look(views);
    while views.iter().any(is_open) {
        let woken = tokio::select! {
            typed = asking.keyboard.next() => {
                asking.take(typed).await;
                continue;
            }
            woken = watch.next() => woken?,
        };
        let said = match woken {
            Woken::Lost(sentence) => Some(sentence),
            Woken::Back => Some("the daemon is back".to_owned()),
            Woken::Look => match look_again(context, views).await {
                Err(failure) if failure.is_passing() => watch.lost(),
                looked => {
                    looked?;
                    asking.look(views);
                    None
                }
            },
        };
        if let Some(said) = said {
            context.out.note(&said);
        }
    }
    Ok(())
}

fn is_open(view: &TaskView) -> bool {
    !view.task.state.is_ended()
}

/// Shows what became of the tasks since the last look.
async fn look_again(context: &Context, views: &mut [TaskView]) -> Result<(), Failure> {
    let client = context.client_if_running().await?;
    let mut client = client.ok_or_else(|| context.not_running(""))?;
    for view in views.iter_mut().filter(|view| is_open(view)) {
        let newer: TaskView = client.get(&at(&view.task.id.to_string(), &[])).await?;
        let said = sentence(&newer);
        if said != sentence(view) {
            context.out.note(&said);
        }
        *view = newer;
    }
    Ok(())
}

/// What the agents of the tasks wait to be allowed.
struct Asking<'a> {
    context: &'a Context,
    keyboard: Keyboard,
    approvals: Approvals,
    asked: Option<GateId>,
}

impl Asking<'_> {
    fn look(&mut self, views: &[TaskView]) {
        let open: Vec<_> = views.iter().flat_map(|view| view.approvals.iter().cloned()).collect();
        for line in self.approvals.update(&open) {
            self.context.out.note(&line);
        }
        self.prompt();
    }

    fn prompt(&mut self) {
        let next = self.approvals.prompt().filter(|_| self.keyboard.is_there());
        if let Some((_, text)) = next.as_ref().filter(|(gate, _)| self.asked != Some(*gate)) {
            self.context.out.question(text);
        }
        self.asked = next.map(|(gate, _)| gate);
    }

    /// Takes a line that was typed; nothing when there will be no more.
    async fn take(&mut self, typed: Option<String>) {
        self.asked = None;
        if let Some(line) = typed
            && let Some(told) = self.approvals.line(self.context, &line).await
        {
            self.context.out.question(&format!("{told}\n"));
        }
        self.prompt();
    }
}

async fn show(context: &Context, views: &[TaskView]) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.list(views, None);
    }
    let now = daemon_now(&mut context.client().await?).await?;
    context.out.data(&listing(views, now, context.out.columns))
}
