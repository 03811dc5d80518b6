//! `lanyard resume`: have a session's agent there again, and say what it still knows.

use std::time::Duration;

use lanyard_core::session::{Continuity, Envelope, Event, ResumeWay, RunEnd, RunEvent};
use lanyard_core::{Outcome, SessionId};
use lanyard_daemon::api::types::NewResume;

use super::follow::Follower;
use super::send::send;
use super::target::{Target, text_or_stdin};
use super::watch::EXIT_CODES;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::one_line;

/// How long after a run that could not go on the next way is waited for.
const NEXT_WAY: Duration = Duration::from_secs(2);

const ABOUT: &str = "\
Says how the conversation goes on: `exact` (the same process), `native` (the agent's own load or
resume), `replayed` (the transcript goes with the next prompt), `preamble` (a summary does), or
`lost`. Never a silent new conversation: if no way works, it ends with 1 and says why.

Examples:
  lanyard resume ses_4f2a
  lanyard resume ses_4f2a --prompt \"go on where you were\"
  lanyard resume ses_4f2a --way native --way preamble

";

/// Bring a session's agent back, and say what it still knows
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{ABOUT}{EXIT_CODES}"))]
pub(super) struct Resume {
    #[command(flatten)]
    target: Target,
    /// Go on with this prompt, and watch the turn; `-` reads it from stdin
    #[arg(long, value_name = "PROMPT")]
    prompt: Option<String>,
    /// A way to go on; may be given more than once, in order [default: the agent's settings]
    #[arg(long = "way", value_name = "WAY")]
    ways: Vec<Way>,
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

impl Resume {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let prompt = self.prompt.map(text_or_stdin).transpose()?;
        let body = NewResume { ways: self.ways.into_iter().map(ResumeWay::from).collect() };
        let mut client = context.client().await?;
        let outcome: Outcome = client.post_part("resume", &self.target.route(&["resume"]), &body).await?;
        drop(client);
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
            Some(prompt) => send(context, &self.target, prompt, false).await,
            None => Ok(()),
        }
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
            RunEvent::Adopted { .. } | RunEvent::Wanted { .. } => {}
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
