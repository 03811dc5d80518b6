//! `lanyard stop`: ask a session to end, or insist, and watch it come true.

use std::time::Duration;

use lanyard_api::types::{StopReceipt, StopStep, Stopping};
use lanyard_client::Route;
use lanyard_core::session::StopLevel;
use lanyard_core::{Outcome, SessionId};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::session_watch::SessionWatch;
use super::target::Target;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::render::event::stop_level;
use crate::render::text::{count, one_line, pad};
use crate::render::time::stamp;

/// How long an end is waited for when nothing else is said.
const TIMEOUT_S_DEFAULT: u64 = 60;
/// Columns for the name of a channel; the longest is `deadline`.
const CHANNEL_COLUMNS: usize = 8;
/// The stop is pending: its outcome is not known yet.
const STILL_PENDING: u8 = Exit::Pending as u8;
/// Left with Ctrl-C.
const LEFT: u8 = Exit::Left as u8;

const EXAMPLES: &str = "\
The first stop is graceful (level 1). Each further one raises it: immediate (2), terminated (3). An
agent whose tool calls come by is asked in the answer to its next one, and has time to hand off; any
other gets its own cancel at once. By deadline its processes are ended. Shows what was tried and
what came of it until the work has really ended; Ctrl-C leaves the stop standing. `lanyard unstop`
takes it back before level 3. A stopped session keeps its log and its conversation; `lanyard resume`
brings it back with a new run.

Examples:
  lanyard stop fix-login --reason \"wrong approach\"
  lanyard stop fix-login --subtree --now
  lanyard stop fix-login --turn --no-wait

Exit codes: 0 ended (or, with --no-wait, asked to), 1 refused or taken back, 3 no daemon that
answers, 4 not ended within --timeout or not confirmed, 130 left with Ctrl-C";

/// Ask a session to end; again to insist
#[expect(clippy::struct_excessive_bools, reason = "one per flag of the command line")]
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StopArgs {
    #[command(flatten)]
    target: Target,
    /// Why, for the agent and the log
    #[arg(long)]
    reason: Option<String>,
    /// The session and all below it, those born later too
    #[arg(long, conflicts_with = "turn")]
    subtree: bool,
    /// Only the running turn; the session can go on with another
    #[arg(long)]
    turn: bool,
    /// Begin at level 2: no further tool call is carried out
    #[arg(long)]
    now: bool,
    /// Do not wait for the end
    #[arg(long)]
    no_wait: bool,
    /// How long to wait for the end
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT_S_DEFAULT, conflicts_with = "no_wait")]
    timeout: u64,
}

impl StopArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut body = json!({ "reason": self.reason });
        if self.subtree || self.turn {
            body["scope"] = json!(if self.turn { "turn" } else { "subtree" });
        }
        if self.now {
            body["now"] = json!(true);
        }
        let mut client = context.client().await?;
        let stopping: Stopping = client.post(&self.target.route(&["stop"]), &body).await?;
        if self.no_wait {
            return asked(context, &stopping);
        }
        if !context.out.is_json() {
            tell(context, &stopping);
        }
        let watched = watch(context, stopping.outcome.session);
        if let Ok(ended) = tokio::time::timeout(Duration::from_secs(self.timeout), watched).await {
            return ended;
        }
        let session = stopping.outcome.session;
        context.out.note(&format!(
            "{session} has not ended after {} s; the stop stands, `lanyard stop {session}` raises it",
            self.timeout
        ));
        Err(Failure::Ended(STILL_PENDING))
    }
}

fn asked(context: &Context, stopping: &Stopping) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.json(stopping);
    }
    tell(context, stopping);
    Ok(())
}

/// What was done at once.
fn tell(context: &Context, stopping: &Stopping) {
    for warning in &stopping.outcome.warnings {
        context.out.warn(warning);
    }
    if stopping.outcome.events == 0 {
        context.out.note("nothing to change");
    } else {
        context.out.note(&how_far(&stopping.outcome));
    }
    if !stopping.below.is_empty() {
        context.out.note(&format!("with {} below it", count(stopping.below.len(), "session")));
    }
    if stopping.untouched > 0 {
        let left = count(stopping.untouched, "session");
        context.out.note(&format!("{left} below it go on; --subtree stops them too"));
    }
}

fn how_far(outcome: &Outcome) -> String {
    let level = outcome.stop_level.and_then(|level| StopLevel::try_from(level).ok());
    match level {
        _ if outcome.state.is_ended() => format!("{} is {}", outcome.session, outcome.state),
        Some(level) => {
            format!("{} is asked to stop, {}; it is {}", outcome.session, stop_level(level), outcome.state)
        }
        None => format!("{} is asked to stop; it is {}", outcome.session, outcome.state),
    }
}

/// Shows the receipt as it grows, until there is nothing more to come.
async fn watch(context: &Context, session: SessionId) -> Result<(), Failure> {
    let unheard = |error| Failure::local("signals", format!("cannot listen for Ctrl-C: {error}"), "");
    let mut interrupts = signal(SignalKind::interrupt()).map_err(unheard)?;
    let route = Route::to(&["sessions", &session.to_string(), "stop"]);
    let again = format!("lanyard stop {session}");
    let mut watch = SessionWatch::open(context, &mut context.client().await?, session, again).await?;
    let mut shown = 0;
    loop {
        let receipt: StopReceipt = context.client().await?.get(&route).await?;
        if !context.out.is_json() {
            for step in receipt.steps.get(shown..).unwrap_or_default() {
                context.out.data(&line(step))?;
            }
        }
        shown = shown.max(receipt.steps.len());
        if receipt.confirmed || receipt.withdrawn || receipt.unconfirmed.is_some() {
            return end(context, &receipt);
        }
        tokio::select! {
            came = watch.changed() => came?,
            _ = interrupts.recv() => {
                context.out.note(&format!(
                    "the stop of {session} stands; `lanyard stop {session}` raises it, `lanyard unstop {session}` \
                     takes it back"
                ));
                return Err(Failure::Ended(LEFT));
            }
        }
    }
}

fn line(step: &StopStep) -> String {
    let channel = pad(&one_line(&step.channel), CHANNEL_COLUMNS);
    format!("{}  {channel}  {}", stamp(step.at), one_line(&step.what))
}

fn end(context: &Context, receipt: &StopReceipt) -> Result<(), Failure> {
    if context.out.is_json() {
        context.out.json(receipt)?;
    } else if receipt.withdrawn {
        context.out.note(&format!("the stop was taken back; {} is {}", receipt.session, receipt.state));
    } else {
        context.out.note(&format!("{} is {}", receipt.session, receipt.state));
    }
    match &receipt.unconfirmed {
        _ if receipt.withdrawn => Err(Failure::Shown),
        Some(why) => {
            context.out.note(&format!("not confirmed: {why}"));
            Err(Failure::Ended(STILL_PENDING))
        }
        None => Ok(()),
    }
}
