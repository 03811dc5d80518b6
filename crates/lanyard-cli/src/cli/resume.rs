//! `lanyard resume`: have a session's agent, or the worker of a task, there again, and say what it still knows.

use std::time::Duration;

use lanyard_api::types::{IdChain, IdKind, NewResume, Reason, Resumed, ResumedHow};
use lanyard_client::Route;
use lanyard_core::session::{
    Continuity, Envelope, Event, ResumeWay, RunEnd, RunEvent, SessionView, StateName,
};
use lanyard_core::task::WorkerKind;
use lanyard_core::{Outcome, SessionId};

use super::ask::{agreed, can_ask};
use super::follow::Follower;
use super::send::send;
use super::target::{Target, text_or_stdin};
use super::watch::EXIT_CODES;
use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::one_line;
use crate::render::time::stamp;

/// How long after a run that could not go on the next way is waited for.
const NEXT_WAY: Duration = Duration::from_secs(2);

/// The status of a refusal because there is no such thing.
const NOT_FOUND: u16 = 404;

const ABOUT: &str = "\
Says how the conversation goes on: `exact` (the same process), `native` (the agent's own load or
resume), `replayed` (the transcript goes with the next prompt), `preamble` (a summary does), or
`lost`. Never a silent new conversation: if no way works, it ends with 1 and says why.

A turn that waits for a usage limit goes on now instead of at the reset.

A stopped session is brought back with a new run: its log, its workspace and the agent's own
conversation are kept. On a terminal you are asked first; without one, say --yes. Calls of the run
that was stopped stay refused. A session that completed or failed has ended: fork it instead.

A session that its agent's own host ran, in a terminal for example, is adopted: when that program has
ended, Lanyard goes on with the same conversation (`native`). While it may have the conversation
open, resuming is refused; `lanyard adopt` is the same command.

For a task, or its worker or session, the same worker comes back: still running, in the same
session, or deployed again.

Examples:
  lanyard resume fix-login
  lanyard adopt 1b2c3d4e-0000-4000-8000-123456789abc
  lanyard resume task_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard resume fix-login --prompt \"go on where you were\"
  lanyard resume fix-login --way native --way preamble

";

/// Bring a session's agent or a task's worker back, and say what it still knows
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{ABOUT}{EXIT_CODES}"))]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    target: Target,
    /// Go on with this prompt, and watch the turn; `-` reads it from stdin
    #[arg(long, value_name = "PROMPT")]
    prompt: Option<String>,
    /// A way to go on; may be given more than once, in order [default: the agent's settings]
    #[arg(long = "way", value_name = "WAY")]
    ways: Vec<Way>,
    /// Although the agent's own program runs in the folder and may have the conversation open
    #[arg(long)]
    force: bool,
    /// Resume a stopped session without asking
    #[arg(long, short)]
    yes: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Way {
    Native,
    Replay,
    Preamble,
}

impl From<Way> for ResumeWay {
    fn from(way: Way) -> Self {
        match way {
            Way::Native => Self::Native,
            Way::Replay => Self::Replay,
            Way::Preamble => Self::Preamble,
        }
    }
}

impl ResumeArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut prompt = self.prompt.clone().map(text_or_stdin).transpose()?;
        let mut client = context.client().await?;
        if let Some(outcome) = self.sent_on(&mut client).await? {
            return sent_on(context, &outcome, &self.target, prompt).await;
        }
        if let Some(any) = with_a_task(&mut client, &self.target).await? {
            if !self.ways.is_empty() {
                let advice = "leave out --way: its worker comes back as its agent's settings say";
                return Err(Failure::usage("this session is the work of a task", advice));
            }
            return resume_work(context, client, &any, prompt).await;
        }
        let Some(target) = self.confirmed(context, &mut client).await? else {
            context.out.note("nothing was changed");
            return Ok(());
        };
        let body =
            NewResume { ways: self.ways.into_iter().map(ResumeWay::from).collect(), force: self.force };
        let asked = client.post_part::<Outcome>("resume", &target.route(&["resume"]), &body).await;
        drop(client);
        let outcome = match (asked, prompt) {
            // Its process comes with the prompt, and the turn says how the conversation goes on.
            (Err(Failure::Told { problem, .. }), Some(prompt)) if problem.code == "agent_per_turn" => {
                return send(context, &target, prompt, false).await;
            }
            (asked, kept) => {
                prompt = kept;
                asked?
            }
        };
        if let Some(later) = outcome.warnings.first() {
            return resumed_later(context, &outcome, later, &target, prompt).await;
        }
        let back = if outcome.events == 0 {
            Back { continuity: Some(Continuity::Exact), agent: String::new(), history: None }
        } else {
            wait(context, outcome.session, outcome.seq).await?
        };
        if prompt.is_none() && context.out.is_json() {
            let continuity = back.continuity.map(Continuity::as_str);
            let session = outcome.session;
            context.out.json(&serde_json::json!({
                "session": session, "continuity": continuity, "agent": back.agent, "history": back.history,
            }))?;
        } else {
            context.out.note(&back.sentence());
        }
        if back.continuity == Some(Continuity::Lost) {
            return Err(Failure::Shown);
        }
        match prompt {
            Some(prompt) => send(context, &target, prompt, false).await,
            None => Ok(()),
        }
    }

    /// Sends a turn on that waits for a limit, where there is one.
    async fn sent_on(&self, client: &mut Client<'_>) -> Result<Option<Outcome>, Failure> {
        let route = self.target.route(&[]);
        let view = client.get::<SessionView>(&route).await.ok();
        let waits = view.and_then(|view| view.active_turn).is_some_and(|turn| turn.wait.is_some());
        if !waits {
            return Ok(None);
        }
        let body = NewResume { ways: Vec::new(), force: self.force };
        client.post_part("resume", &self.target.route(&["resume"]), &body).await.map(Some)
    }

    /// The session to resume: a stopped one by its id, once the user agreed; otherwise none.
    async fn confirmed(&self, context: &Context, client: &mut Client<'_>) -> Result<Option<Target>, Failure> {
        if self.yes {
            return Ok(Some(self.target.clone()));
        }
        let view: SessionView = match client.get(&self.target.route(&[])).await {
            Ok(view) => view,
            // The route that resumes says best what is wrong.
            Err(Failure::Told { .. }) => return Ok(Some(self.target.clone())),
            Err(failure) => return Err(failure),
        };
        if view.state != StateName::Stopped {
            return Ok(Some(self.target.clone()));
        }
        let stopped = stopped_by(&view);
        if !can_ask() {
            let advice = "say --yes to resume it with a new run";
            return Err(Failure::local("confirmation_needed", format!("the session was {stopped}"), advice));
        }
        let question = format!("This session was {stopped}. Resume it with a new run?");
        Ok(agreed(context, &question)?.then(|| Target::of(view.id.to_string())))
    }
}

/// Who stopped a session, and when.
fn stopped_by(view: &SessionView) -> String {
    let by = view.stop.as_ref().map_or_else(String::new, |stop| format!(" by {}", one_line(&stop.by.name)));
    format!("stopped{by} at {}", stamp(view.since))
}

/// The turn of a session goes on after a limit.
async fn sent_on(
    context: &Context,
    outcome: &Outcome,
    target: &Target,
    prompt: Option<String>,
) -> Result<(), Failure> {
    if let Some(prompt) = prompt {
        return send(context, target, prompt, false).await;
    }
    if context.out.is_json() {
        return context.out.json(outcome);
    }
    context.out.note("the turn goes on now");
    Ok(())
}

/// A session that is live again although no process was started for it.
async fn resumed_later(
    context: &Context,
    outcome: &Outcome,
    later: &str,
    target: &Target,
    prompt: Option<String>,
) -> Result<(), Failure> {
    if let Some(prompt) = prompt {
        return send(context, target, prompt, false).await;
    }
    if context.out.is_json() {
        return context.out.json(outcome);
    }
    context.out.note(&format!("resumed; {later}"));
    Ok(())
}

/// What to resume by, when the id is a task's or its worker's.
async fn with_a_task(client: &mut Client<'_>, target: &Target) -> Result<Option<String>, Failure> {
    let any = if target.is_narrow() {
        let view: SessionView = client.get(&target.route(&[])).await?;
        view.id.to_string()
    } else {
        target.id.clone()
    };
    match client.get::<IdChain>(&Route::to(&["ids", &any])).await {
        Ok(chain) => Ok(is_work(&chain).then_some(any)),
        // The session's own route says best what there is not.
        Err(Failure::Told { problem, .. }) if problem.status == NOT_FOUND => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Whether bringing it back is about a task. A chat goes on after the task that was worked at in it, and a stopped session
/// keeps its conversation: asked for as a session, it is one again, and the task is not done a second time.
fn is_work(chain: &IdChain) -> bool {
    let Some(view) = &chain.task else { return false };
    let by_task = match chain.kind {
        IdKind::Task | IdKind::Worker | IdKind::Plan | IdKind::Mail => true,
        IdKind::Session | IdKind::Run => false,
        IdKind::Alias => view.task.aliases.contains(&chain.id),
    };
    // A stopped session whose task is over is named for its conversation.
    let stopped = chain.session.as_ref().is_some_and(|session| session.state == StateName::Stopped);
    let over = view.task.state.is_ended();
    by_task || !(over && (stopped || view.task.spec.kind == WorkerKind::Chat))
}

async fn resume_work(
    context: &Context,
    mut client: Client<'_>,
    any: &str,
    prompt: Option<String>,
) -> Result<(), Failure> {
    let resumed: Resumed =
        client.post_part("resume", &Route::to(&["resume", any]), &Reason::default()).await?;
    drop(client);
    if prompt.is_none() && context.out.is_json() {
        return context.out.json(&resumed);
    }
    context.out.note(&work_sentence(&resumed));
    match (prompt, resumed.session) {
        (None, _) => Ok(()),
        (Some(prompt), Some(session)) => send(context, &Target::of(session.to_string()), prompt, false).await,
        (Some(_), None) => {
            let advice = "send the words to its task with `lanyard task message`";
            Err(Failure::local("no_worker", "it has no session yet that takes a prompt", advice))
        }
    }
}

fn work_sentence(resumed: &Resumed) -> String {
    let who = resumed.worker.map_or_else(|| "its worker".to_owned(), |worker| worker.to_string());
    let task = resumed.task.map(|task| format!(" {task}")).unwrap_or_default();
    let place = resumed.session.map(|session| format!(" in {session}")).unwrap_or_default();
    match resumed.how {
        ResumedHow::AtWork => format!("{who} is at work already{place}"),
        ResumedHow::Resumed => format!("{who} goes on{place}"),
        ResumedHow::Redeployed => format!("{who} starts its task{task} again{place}"),
    }
}

/// An agent that is there again.
#[derive(Debug)]
struct Back {
    /// Nothing when there was no conversation to go on with.
    continuity: Option<Continuity>,
    agent: String,
    /// Messages the agent played back.
    history: Option<u64>,
}

impl Back {
    fn sentence(&self) -> String {
        let who = if self.agent.is_empty() { "the agent" } else { &self.agent };
        let kept = match self.continuity {
            None => "a new conversation".to_owned(),
            Some(how @ Continuity::Exact) => format!("continuity {}: the same process", how.as_str()),
            Some(how @ Continuity::Native) => match self.history {
                Some(messages) => format!("continuity {}: it played back {messages} messages", how.as_str()),
                None => format!("continuity {}: by its own word", how.as_str()),
            },
            Some(how @ Continuity::Replayed) => {
                format!("continuity {}: it gets the transcript with the next prompt", how.as_str())
            }
            Some(how @ Continuity::Preamble) => {
                format!("continuity {}: it gets a summary with the next prompt", how.as_str())
            }
            Some(how @ Continuity::Lost) => format!("continuity {}: it knows nothing of it", how.as_str()),
        };
        format!("{who} is there, {kept}")
    }
}

/// Waits until the agent is ready or no way is left.
async fn wait(context: &Context, session: SessionId, after: u64) -> Result<Back, Failure> {
    let mut follower = Follower::after(context, &session.to_string(), after);
    let mut ended: Option<Failure> = None;
    loop {
        let text = match ended.take() {
            None => follower.next().await?,
            Some(failure) => match tokio::time::timeout(NEXT_WAY, follower.next()).await {
                Ok(next) => {
                    ended = Some(failure);
                    next?
                }
                Err(_) => return Err(failure),
            },
        };
        let Ok(envelope) = serde_json::from_str::<Envelope>(&text) else { continue };
        let Event::Run(event) = envelope.event else { continue };
        match event {
            RunEvent::Ready(ready) => {
                let version = ready.info.version.as_deref().map(|text| format!(" {}", one_line(text)));
                let agent = format!("{}{}", one_line(&ready.info.name), version.unwrap_or_default());
                return Ok(Back { continuity: ready.continuity, agent, history: ready.history });
            }
            RunEvent::Ended { how, reason, .. } => ended = Some(why(&how, reason.as_deref())),
            // The next way is being tried.
            RunEvent::Started { .. } => ended = None,
            RunEvent::Adopted { .. }
            | RunEvent::ToolsMissing { .. }
            | RunEvent::Activity { .. }
            | RunEvent::BoundMet { .. }
            | RunEvent::Offered(_)
            | RunEvent::InForce(_)
            | RunEvent::Wanted { .. } => {}
        }
    }
}

fn why(how: &RunEnd, reason: Option<&str>) -> Failure {
    let code = match how {
        RunEnd::NotStarted { code } => code.as_str(),
        RunEnd::Exited { .. } | RunEnd::Signalled { .. } | RunEnd::Lost | RunEnd::HostLost => "run_ended",
    };
    let lost = if code.starts_with("resume_") { "continuity lost: " } else { "" };
    let title = format!("{lost}the agent is not there: {}", one_line(reason.unwrap_or("its process ended")));
    let advice = "allow another way with --way replay or --way preamble, or fork the session";
    Failure::local(code, title, if lost.is_empty() { "look at it with `lanyard logs`" } else { advice })
}

#[cfg(test)]
mod tests {
    use lanyard_core::task::TaskState;

    use super::*;
    use crate::render::task::testing::{session_id, task, worker_id};

    fn chain(id: &str, kind: IdKind, worker: WorkerKind, state: TaskState) -> IdChain {
        let mut view = task(1, state, "talk it through");
        view.task.spec.kind = worker;
        view.task.aliases = vec!["chat-7".to_owned()];
        IdChain {
            id: id.to_owned(),
            kind,
            plan: None,
            task: Some(view),
            more_tasks: Vec::new(),
            worker: None,
            session: None,
            reports_to: Vec::new(),
            mail: None,
        }
    }

    /// S4-21: the agent of a task is brought back under the same worker; a chat that is done with it stays a chat.
    #[test]
    fn an_id_is_about_a_task_unless_it_is_a_chat_whose_task_is_over() {
        use TaskState::{Completed, Running};
        use WorkerKind::{Background, Chat};
        let asked = |id, kind, worker, state| is_work(&chain(id, kind, worker, state));
        assert!(asked("sess_1", IdKind::Session, Background, Completed));
        assert!(asked("sess_1", IdKind::Session, Chat, Running));
        assert!(!asked("sess_1", IdKind::Session, Chat, Completed));
        assert!(asked("task_1", IdKind::Task, Chat, Completed));
        assert!(asked("chat-7", IdKind::Alias, Chat, Completed));
        assert!(!asked("a-session", IdKind::Alias, Chat, Completed));
        let mut plain = chain("sess_1", IdKind::Session, Background, Running);
        plain.task = None;
        assert!(!is_work(&plain));
    }

    #[test]
    fn what_came_of_it_names_the_worker_and_where_it_works() {
        let mut resumed = Resumed {
            how: ResumedHow::AtWork,
            session: Some(session_id(7)),
            task: None,
            worker: Some(worker_id(5)),
        };
        let said = work_sentence(&resumed);
        assert_eq!(
            said,
            "worker_00000000000000000000000005 is at work already in sess_00000000000000000000000007"
        );
        resumed.how = ResumedHow::Redeployed;
        resumed.worker = None;
        assert_eq!(
            work_sentence(&resumed),
            "its worker starts its task again in sess_00000000000000000000000007"
        );
    }
}
