//! The loop that brings a screen to life: keys, frames and answers in, drawings and requests out. It decides nothing.

use std::time::Duration;

use lanyard_client::{Fed, StreamFeed};
use lanyard_core::Timestamp;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::key::Heard;
use super::message::{Asked, Call, Do, Exit, Link, Message, Refused, Screen};
use super::term::Term;
use crate::client::attached::{KeptPart, keep, read_named};
use crate::context::Context;
use crate::failure::{Exit as Code, Failure};

const TICK: Duration = Duration::from_millis(250);
/// Not drawn more often than this, however much happens.
const DRAW: Duration = Duration::from_millis(25);
/// Frames taken in one go before the screen is drawn again.
const BATCH_MAX: usize = 2_000;
/// Requests that may be under way; who wants more is told so.
const CALLS_MAX: usize = 32;
/// How long the last word to the daemon may take when one leaves.
const PARTING: Duration = Duration::from_secs(1);

type Answered = (Asked, Result<Value, Refused>);

/// Shows a screen until it is left.
pub(crate) async fn show(
    screen: &mut impl Screen,
    context: &Context,
    feed: &mut StreamFeed,
    clock: ScreenClock,
) -> Result<Exit, Failure> {
    let mut term = Term::open()?;
    let size = term.terminal.size().map_err(|error| undrawable(&error))?;
    screen.update(Message::Tick(clock.now()));
    screen.update(Message::Resized { columns: size.width, rows: size.height });
    let mut stage = Stage { screen, context: quiet(context), calls: JoinSet::new(), clock };
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut ends = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()]
        .map(|kind| signal(kind).ok());
    let [term_signal, hangup, interrupt] = &mut ends;
    let mut drawn = Instant::now() - DRAW;
    loop {
        let exit = tokio::select! {
            heard = term.next() => match heard {
                Some(heard) => stage.heard(heard),
                // The terminal is gone: that is leaving.
                None => Some(Exit::Quit),
            },
            came = feed.next() => stage.fed(came),
            Some(answered) = stage.calls.join_next() => stage.answered(answered),
            _ = ticks.tick() => stage.tell(Message::Tick(clock.now())),
            () = received(term_signal) => Some(Exit::Quit),
            () = received(hangup) => Some(Exit::Quit),
            () = received(interrupt) => Some(Exit::Quit),
        };
        let exit = match exit {
            Some(exit) => Some(exit),
            None => stage.drain(&mut term, feed),
        };
        if let Some(exit) = exit {
            return Ok(exit);
        }
        let rest = DRAW.saturating_sub(drawn.elapsed());
        if !rest.is_zero() {
            tokio::time::sleep(rest).await;
            if let Some(exit) = stage.drain(&mut term, feed) {
                return Ok(exit);
            }
        }
        stage.screen.settle();
        if term.terminal.draw(|frame| stage.screen.draw(frame)).is_err() {
            // A terminal that takes nothing any more is gone.
            return Ok(Exit::Quit);
        }
        drawn = Instant::now();
    }
}

/// A last request when a screen closes. Its answer is not waited for long.
pub(crate) async fn part(context: &Context, call: Call) {
    let context = quiet(context);
    let _ = tokio::time::timeout(PARTING, carry_out(&context, &call)).await;
}

/// The daemon's clock, read once and carried on: times on the screen are told by the clock that wrote them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScreenClock {
    read: Timestamp,
    at: Instant,
}

impl ScreenClock {
    pub(crate) fn set(now: Timestamp) -> Self {
        Self { read: now, at: Instant::now() }
    }

    pub(crate) fn now(self) -> Timestamp {
        self.read.plus_millis(u64::try_from(self.at.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

struct Stage<'a, S> {
    screen: &'a mut S,
    context: Context,
    calls: JoinSet<Answered>,
    clock: ScreenClock,
}

impl<S: Screen> Stage<'_, S> {
    fn tell(&mut self, message: Message) -> Option<Exit> {
        let mut exit = None;
        for one in self.screen.update(message) {
            match one {
                Do::Leave(how) => exit = Some(how),
                Do::Call(asked, call) => {
                    let context = self.context.clone();
                    self.ask(asked, async move { carry_out(&context, &call).await });
                }
                Do::Keep(asked, named) => {
                    let context = self.context.clone();
                    self.ask(asked, async move { keep_file(&context, named).await });
                }
            }
        }
        exit
    }

    fn ask(&mut self, asked: Asked, answer: impl Future<Output = Result<Value, Refused>> + Send + 'static) {
        if self.calls.len() >= CALLS_MAX {
            let title = "too many requests are under way".to_owned();
            let advice = "wait for the daemon".to_owned();
            let refused = Refused { code: "too_busy".to_owned(), title, advice, unheard: false };
            self.calls.spawn(async move { (asked, Err(refused)) });
            return;
        }
        self.calls.spawn(async move { (asked, answer.await) });
    }

    fn heard(&mut self, heard: Heard) -> Option<Exit> {
        self.tell(Message::Now(self.clock.now()));
        self.tell(match heard {
            Heard::Key(key) => Message::Key(key),
            Heard::Paste(text) => Message::Paste(text),
            Heard::Resized { columns, rows } => Message::Resized { columns, rows },
        })
    }

    fn fed(&mut self, fed: Fed) -> Option<Exit> {
        match fed {
            Fed::Frame(text) => match serde_json::from_str(&text) {
                Ok(frame) => self.tell(Message::Frame(frame)),
                // Not JSON: nothing a screen could show.
                Err(_) => None,
            },
            Fed::Up => self.tell(Message::Link(Link::Up)),
            Fed::Down => self.tell(Message::Link(Link::Down)),
            Fed::Refused(error) => Some(Exit::Refused(refused(error.into()))),
        }
    }

    fn answered(&mut self, answered: Result<Answered, tokio::task::JoinError>) -> Option<Exit> {
        let Ok((asked, result)) = answered else { return None };
        self.tell(Message::Reply(asked, result))
    }

    /// Everything that is there already, up to a bound.
    fn drain(&mut self, term: &mut Term, feed: &mut StreamFeed) -> Option<Exit> {
        for _ in 0..BATCH_MAX {
            let exit = if let Some(heard) = term.next_if_ready() {
                self.heard(heard)
            } else if let Some(answered) = self.calls.try_join_next() {
                self.answered(answered)
            } else if let Some(fed) = feed.next_if_ready() {
                self.fed(fed)
            } else {
                return None;
            };
            if exit.is_some() {
                return exit;
            }
        }
        None
    }
}

async fn received(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

async fn carry_out(context: &Context, call: &Call) -> Result<Value, Refused> {
    let client = context.client_if_running().await.map_err(refused)?;
    let Some(mut client) = client else { return Err(refused(context.not_running(""))) };
    client.carry_out(call).await.map_err(refused)
}

/// Reads a file beside the screen's loop, and has the daemon keep it. The answer is the part of a message that names it.
async fn keep_file(context: &Context, named: String) -> Result<Value, Refused> {
    let reading = tokio::task::spawn_blocking(move || read_named(&named)).await;
    let read =
        reading.map_err(|_| refused(Failure::local("attachment_unreadable", "reading it failed", "")))?;
    let read = read.map_err(refused)?;
    let client = context.client_if_running().await.map_err(refused)?;
    let Some(mut client) = client else { return Err(refused(context.not_running(""))) };
    let KeptPart { part, is_image } = keep(&mut client, read).await.map_err(refused)?;
    Ok(json!({"part": part, "image": is_image}))
}

/// Notes would be written across the screen.
fn quiet(context: &Context) -> Context {
    let mut context = context.clone();
    context.out.quiet = true;
    context
}

pub(crate) fn refused(failure: Failure) -> Refused {
    match failure {
        Failure::Told { problem, exit } => Refused {
            code: problem.code,
            title: problem.title,
            advice: problem.advice,
            unheard: exit == Code::Unreachable,
        },
        Failure::Shown | Failure::Ended(_) | Failure::ClosedPipe => Refused {
            code: "ended".to_owned(),
            title: "it ended".to_owned(),
            advice: String::new(),
            unheard: false,
        },
    }
}

fn undrawable(error: &std::io::Error) -> Failure {
    Failure::local("terminal_unusable", format!("cannot draw on the terminal: {error}"), "")
}
