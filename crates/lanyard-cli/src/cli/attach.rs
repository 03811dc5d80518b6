//! `lanyard attach`: a screen of one session, to watch it and to step in.

use std::io::IsTerminal;

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::types::TerminalView;
use lanyard_client::{DaemonStream, Route, StreamCursor, StreamFeed, StreamFollower, Transport};
use lanyard_core::SessionId;
use lanyard_core::session::{Run, SessionView};

use super::logs::EventLines;
use super::printer::Printer;
use super::target::workspace;
use crate::console;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::tui::attach::{Mode, Model};
use crate::tui::message::{Exit, Refused};
use crate::tui::paint::Paint;
use crate::tui::pick::{self, Purpose};
use crate::tui::stage::{ScreenClock, part, show};

/// Events a stream can begin with; what is older is read when one scrolls up to it.
const LAST_MAX: u64 = 10_000;

/// Screens one can go down to from one another.
const OPEN_MAX: usize = 16;

const EXAMPLES: &str = "\
Shows what was said and done, follows what happens, and lets you type: a turn, guidance, answers.
Leaving (Ctrl-D) detaches: the session goes on. `?` shows all keys. Without a session you choose
one from a list. A program on a terminal (`lanyard run --pty`) is shown as it is: all keys are the
program's, Ctrl-\\ d detaches, Ctrl-\\ w asks to write. A restart of the daemon is survived and nothing is missed; a daemon that stays away
for a minute (LANYARD_DAEMON_WAIT_MS) ends it with code 3.

Examples:
  lanyard attach
  lanyard attach fix-login
  lanyard attach -r fix-login
  lanyard attach fix-login --full | less";

/// Watch a session on a screen, and step in
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct AttachArgs {
    /// The session: its id or one of its aliases [default: choose from a list]
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    session: Option<String>,
    /// Only watch: nothing that is pressed changes anything
    #[arg(long, short)]
    read_only: bool,
    /// Begin with the last N events
    #[arg(long, short = 'n', value_name = "N", default_value_t = 200)]
    tail: u64,
    /// Begin with the first event
    #[arg(long, conflicts_with = "tail")]
    full: bool,
    /// Of several sessions with the same alias, the one in this workspace
    #[arg(long, value_name = "WORKSPACE", value_parser = workspace)]
    workspace: Option<String>,
    /// Of several sessions with the same alias, the one of this plan
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,
}

/// How a session is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    pub(super) mode: Mode,
    /// Events to begin with; all of them when nothing is said.
    pub(super) last: Option<u64>,
}

impl AttachArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mode = if self.read_only { Mode::ReadOnly } else { Mode::Write };
        let how = How { mode, last: (!self.full).then_some(self.tail) };
        let screen =
            std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !context.out.is_json();
        let Some(named) = self.session else {
            if !screen {
                return Err(Failure::usage(
                    "no session is named, and there is no terminal to choose one in",
                    "name one: `lanyard ls` lists them",
                ));
            }
            return match pick(context, Purpose::Attach).await? {
                Some(id) => on_screen(context, id, how).await,
                None => Ok(()),
            };
        };
        let mut client = context.client().await?;
        let route = Route::to(&["sessions", &named])
            .with("workspace", self.workspace.as_ref())
            .with("plan", self.plan.as_ref());
        let view: SessionView = client.get(&route).await?;
        drop(client);
        // One that was only just made is about to run.
        if view.terminal.is_some() && view.run.as_ref().is_none_or(Run::is_live) {
            return if screen {
                console::show(context, &view, mode).await
            } else {
                as_text(context, &view).await
            };
        }
        if screen { on_screen(context, view.id, how).await } else { plain(context, &view, how).await }
    }
}

async fn clock(context: &Context) -> Result<ScreenClock, Failure> {
    let mut client = context.client().await?;
    Ok(ScreenClock::set(daemon_now(&mut client).await?))
}

/// Lets the user choose; nothing when they left.
pub(super) async fn pick(context: &Context, purpose: Purpose) -> Result<Option<SessionId>, Failure> {
    let clock = clock(context).await?;
    let mut feed = open_feed(context, "lanyard attach".to_owned(), |_| {
        Route::to(&["directory", "stream"]).with("archived", Some("false"))
    })?;
    let mut model = pick::Model::new(Paint::from_env(), purpose);
    match show(&mut model, context, &mut feed, clock).await? {
        Exit::Attach(id) => Ok(Some(id)),
        Exit::Quit => Ok(None),
        Exit::Refused(refused) => Err(failed(refused)),
    }
}

/// The screen of a session, until it is left. Leaving a session below it returns to it.
pub(super) async fn on_screen(context: &Context, id: SessionId, how: How) -> Result<(), Failure> {
    let mut open = vec![id];
    let mut farewell = String::new();
    while let Some(top) = open.last().copied() {
        let (exit, words) = one(context, top, how).await?;
        farewell = words;
        match exit {
            Exit::Refused(refused) => return Err(failed(refused)),
            Exit::Attach(below) if open.len() < OPEN_MAX => open.push(below),
            Exit::Attach(_) | Exit::Quit => {
                open.pop();
            }
        }
    }
    context.out.note(&farewell);
    Ok(())
}

async fn one(context: &Context, id: SessionId, how: How) -> Result<(Exit, String), Failure> {
    let clock = clock(context).await?;
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).map_err(|error| {
        Failure::local("no_randomness", format!("cannot make ids for turns: {error}"), "")
    })?;
    let mut model = Model::new(id, how.mode, Paint::from_env(), u128::from_ne_bytes(bits));
    let mut feed =
        open_feed(context, format!("lanyard attach {id}"), move |cursor| address(id, how, cursor))?;
    let exit = show(&mut model, context, &mut feed, clock).await?;
    for text in model.undelivered() {
        context.out.warn(&format!("not delivered: {text}"));
    }
    if let Some(call) = model.parting() {
        part(context, call).await;
    }
    Ok((exit, model.farewell()))
}

/// A stream for a screen. `again` is the command that continues when the daemon does not come back.
pub(super) fn open_feed(
    context: &Context,
    again: String,
    route: impl Fn(&StreamCursor) -> Route + Send + Sync + 'static,
) -> Result<StreamFeed, Failure> {
    let source = DaemonStream::new(context.address()?, Transport::WebSocket, route);
    let follower = StreamFollower::new(source, StreamCursor::default(), Some(context.daemon_wait), again);
    Ok(StreamFeed::open(follower))
}

fn address(id: SessionId, how: How, cursor: &StreamCursor) -> Route {
    let route = Route::to(&["sessions", &id.to_string(), "attach"])
        .with("client", Some("cli"))
        .with("write", (how.mode == Mode::Write).then_some("true"))
        .with("connection", cursor.connection.as_ref());
    match (cursor.seq, how.last) {
        (Some(seq), _) => route.with("after", Some(seq)),
        (None, Some(last)) => route.with("last", Some(last.min(LAST_MAX))),
        (None, None) => route.with("mode", Some("full")),
    }
}

pub(super) fn failed(refused: Refused) -> Failure {
    if refused.unheard {
        return Failure::unreachable(&refused.code, refused.title, refused.advice);
    }
    Failure::local(&refused.code, refused.title, refused.advice)
}

/// The screen of a program as text, for output that is no terminal.
async fn as_text(context: &Context, view: &SessionView) -> Result<(), Failure> {
    context.out.note("there is no terminal to draw on: showing the program's screen as text");
    let mut client = context.client().await?;
    let shown: TerminalView = client.get(&Route::to(&["sessions", &view.id.to_string(), "terminal"])).await?;
    if context.out.is_json() { context.out.json(&shown) } else { context.out.data(&shown.text) }
}

/// One line per event, for output that is no terminal.
async fn plain(context: &Context, view: &SessionView, how: How) -> Result<(), Failure> {
    let out = &context.out;
    out.note("there is no terminal to draw on: showing the log as text, as `lanyard logs -f` does");
    let id = view.id.to_string();
    let last = how.last.map_or(0, |last| view.last_seq.saturating_sub(last));
    let mut printer = Printer::new(context, view, last, EventLines::new(context));
    let mut client = context.client().await?;
    printer.read(&mut client, &id, view.last_seq).await?;
    drop(client);
    printer.follow(&id).await
}
