//! A runner looks after one run: it shows the driver what the agent wrote, carries out what the driver wants, keeps the
//! turn's time and budget, and sees to it that the run really ends.

mod act;
mod adopt;
mod bounds;
mod budget;
mod choosing;
mod clear;
mod console;
mod course;
mod end;
mod limited;
mod order;
mod spent;
mod start;
mod time;
mod tools;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use lanyard_api::agents::settings::{AgentSettings, DriverKind};
use lanyard_core::session::{Attempt, Continuity, ResumeWay, Session};
use lanyard_core::{RunId, SessionId, TurnId};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::agents::AgentWish;
use crate::agents::calls::Calls;
use crate::agents::driver::{Action, Actions, Driver};
use crate::agents::pen::Pen;
use crate::agents::shared::Shared;
use crate::runs::{Link, Output};

use clear::Cleared;
use console::{RunConsole, next_resize};
use course::Course;
pub(super) use end::{how_of, process_of};
use spent::SpentOutput;
pub(super) use start::{About, Start, add_conversation, driver, setting, spec, start};

/// Longest line an agent may write.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Orders that may wait for a runner.
pub(super) const ORDERS_MAX: usize = 256;

pub(super) struct Runner {
    shared: Arc<Shared>,
    session: SessionId,
    agent: String,
    /// The account that the run was started with.
    account: Option<String>,
    settings: AgentSettings,
    workspace: PathBuf,
    run: RunId,
    driver: Box<dyn Driver>,
    link: Link,
    output: Output,
    /// The screen of a program on a terminal.
    console: Option<RunConsole>,
    /// What was read and holds no whole line yet, and where it begins.
    unread: Vec<u8>,
    position: u64,
    /// The place in the output that what is being carried out came from.
    here: u64,
    orders: mpsc::Receiver<AgentWish>,
    /// Orders that came while something else was waited for.
    held_back: VecDeque<AgentWish>,
    /// What the driver wants, each with the place in the output it came from.
    actions: VecDeque<(u64, Action)>,
    pen: Pen,
    /// When text that waits is reported at the latest.
    report_at: Option<Instant>,
    /// Since when text waits that may end in the middle of a secret.
    held_since: Option<Instant>,
    /// How far the output has become events.
    reported: u64,
    /// The same for each session. What is told of a place before that does not come from the output.
    told: HashMap<SessionId, u64>,
    spent: SpentOutput,
    course: Course,
    turn: Option<Turn>,
    /// When the newest turn began, in clock ticks since boot; nothing where a daemon that did not write it down began it.
    began: Option<u64>,
    /// A turn that may begin once the agent is ready.
    waiting: Option<TurnId>,
    /// The turn an agent that is run once per turn was started for. Its run takes no other.
    own_turn: Option<TurnId>,
    children: HashMap<String, Mirror>,
    end_reason: Option<String>,
    /// What was tried to end the turn or the run, and since when.
    tried: Vec<Attempt>,
    tried_since: Option<Instant>,
    /// The turn that has just ended, and whose end has no checkpoint yet.
    ended_turn: Option<TurnId>,
    calls: Calls,
    /// Processes of turns that were cancelled, being ended. The log learns of the end of such a turn after that.
    clearing: JoinSet<Cleared>,
    /// Words the agent must be given with the first prompt, since it lost the conversation.
    past: Option<(Continuity, String)>,
    /// Turns of subagents, which the agent began by itself.
    own_turns: HashSet<TurnId>,
    /// Ways to go on with the conversation that were not tried yet.
    ways: Vec<ResumeWay>,
    /// Whether the agent should know something of the conversation.
    has_past: bool,
    /// Messages played back before the agent was ready.
    replayed: u64,
    odd: u32,
    /// The MCP servers that the agent was told of, by their names in addresses.
    offered: Vec<String>,
    /// What the end of the agent has to do with a bound, in words.
    bound_behind: String,
    idle_since: Instant,
    /// The turn whose prompt the driver holds back, and the session that its words were made from.
    undelivered: Option<(TurnId, Option<Box<Session>>)>,
    /// The turn has a model, mode or effort of its own.
    chosen_for_turn: bool,
    /// The turn wrote more than it may: what follows is counted and dropped.
    flood: Option<u64>,
    /// A cost was reported that no wider budget was compared with.
    unmeasured: bool,
}

/// What is left to do after a run.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) orders: Vec<AgentWish>,
    /// The conversation could not be taken up again; these ways are left.
    pub(super) again: Option<Vec<ResumeWay>>,
}

#[derive(Debug)]
struct Turn {
    /// The prompt that the agent was given.
    id: TurnId,
    /// The turn that the prompt is part of.
    of: TurnId,
    deadline: Option<Instant>,
    budget_at: Option<Instant>,
    /// When most of its time is spent; nothing once people were told of its budget.
    warn_at: Option<Instant>,
    warned: bool,
    tool_calls: u64,
    tokens: u64,
    /// Reported cost, in millionths of a dollar, that of its subagents included.
    cost: u64,
    /// Where in the output it began.
    from: u64,
    cancel: Option<Cancel>,
    /// The log has its end already; only the agent has still to come to rest.
    over: bool,
    /// The agent came to rest, and what its commands left is being ended.
    clearing: bool,
}

#[derive(Debug, Clone, Copy)]
struct Cancel {
    since: Instant,
    until: Instant,
    /// The agent went on working after it.
    ignored: bool,
}

/// A subagent of the agent, with a session of its own.
#[derive(Debug)]
struct Mirror {
    session: SessionId,
    turn: Option<TurnId>,
    /// What came before this was reported by an earlier daemon.
    cursor: u64,
    done: bool,
    /// Its end was ordered.
    cancelled: bool,
}

impl Runner {
    /// Runs to the end of the run, and gives back what was ordered too late for it.
    pub(super) async fn run(mut self) -> Left {
        loop {
            self.carry_out().await;
            self.give_held().await;
            if self.course.broken().is_some() {
                self.give_up().await;
            }
            if self.pen.is_pressing() {
                self.report_safe().await;
            }
            self.stem_flood().await;
            if self.ended_turn.is_some() {
                self.tell_missing_tools().await;
                self.tell_bounds_met().await;
                self.snapshot_end().await;
                self.rest().await;
                continue;
            }
            if let Some(order) = self.held_back.pop_front() {
                self.obey(order).await;
                self.begin_held_up().await;
                continue;
            }
            let wake = self.next_wake();
            tokio::select! {
                biased;
                order = self.orders.recv(), if !self.orders.is_closed() || !self.orders.is_empty() => {
                    if let Some(order) = order {
                        self.obey(order).await;
                    }
                }
                // Before the output: an agent that writes without end still gets its answers.
                (request, result) = self.calls.done() => {
                    self.say(|driver, out| driver.called(&request, result, out));
                }
                order = next_resize(&mut self.console) => self.resize_console(order).await,
                piece = self.output.next() => match piece {
                    Ok(Some(piece)) if self.console.is_some() => self.draw(&piece).await,
                    Ok(Some(piece)) => self.read(&piece),
                    Ok(None) => break,
                    Err(error) => {
                        tracing::error!(run = %self.run, %error, "the agent's output cannot be read");
                        break;
                    }
                },
                Some(cleared) = self.clearing.join_next(), if !self.clearing.is_empty() => {
                    self.cleared(cleared).await;
                }
                () = tokio::time::sleep_until(wake) => self.on_time().await,
            }
        }
        self.finish().await
    }

    /// Waits for something that takes a while, such as a file system, but for nothing once the turn or the run is to
    /// end: no stop waits for a file. Orders that come meanwhile are carried out afterwards.
    async fn unless_ended<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        while !self.held_back.iter().any(AgentWish::ends) {
            let room = self.held_back.len() < ORDERS_MAX && !self.orders.is_closed();
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                Some(order) = self.orders.recv(), if room => self.held_back.push_back(order),
            }
        }
        None
    }

    /// A turn that was held up by an order begins, unless the order was its end.
    async fn begin_held_up(&mut self) {
        let free = self.turn.is_none() && !self.course.is_stopping() && self.held_back.is_empty();
        if free && self.course.takes_turns() {
            self.begin_waiting().await;
        }
    }

    /// Shows the driver every whole line.
    fn read(&mut self, piece: &Bytes) {
        if let Some(dropped) = &mut self.flood {
            *dropped += piece.len() as u64;
            self.position += std::mem::take(&mut self.unread).len() as u64 + piece.len() as u64;
            return;
        }
        // No line ends in what was unread before: a long line is searched once, not again with each piece.
        let searched = self.unread.len();
        self.unread.extend_from_slice(piece);
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', &self.unread[searched..]).map(|at| searched + at) {
            let line = self.unread[begin..end].trim_ascii_end();
            begin = end + 1;
            let at = self.position + begin as u64;
            if !line.is_empty() {
                let mut actions = Actions::new();
                self.driver.line(line, &mut actions);
                // What a line brings is reported at once or not at all, except that a subagent is made before it, and
                // a question is answered after it.
                actions.sort_by_key(|action| {
                    let (child, asked) =
                        (matches!(action, Action::Child(_)), matches!(action, Action::Asked { .. }));
                    (!child, asked)
                });
                self.actions.extend(actions.into_iter().map(|action| (at, action)));
            }
            if !self.driver.is_midway() {
                self.spent.note(at);
            }
        }
        self.unread.drain(..begin);
        self.position += begin as u64;
        if self.unread.len() > LINE_BYTES_MAX {
            self.unread.clear();
            self.break_with("line_too_long", format!("it wrote a line of more than {LINE_BYTES_MAX} bytes"));
        }
        self.measure_output();
    }

    /// Lets the driver say something that does not follow from a line.
    fn say(&mut self, say: impl FnOnce(&mut dyn Driver, &mut Actions)) {
        let mut actions = Actions::new();
        say(&mut *self.driver, &mut actions);
        let at = self.position;
        self.actions.extend(actions.into_iter().map(|action| (at, action)));
    }

    /// A turn is over: a stop that waited for it goes on, or the turn that waited for it begins.
    async fn rest(&mut self) {
        if self.course.is_stopping() {
            // It may have been withdrawn while the turn came to its end.
            let held = self.shared.session(self.session).await;
            if held.is_some_and(|held| held.stop.is_none()) {
                self.course.withdraw_stop();
            }
        }
        if self.course.is_stopping() {
            return self.end_run("the session was stopped").await;
        }
        if !self.course.is_ending() {
            self.choose_own().await;
            self.tried.clear();
            self.tried_since = None;
            self.begin_waiting().await;
            if self.runs_once() {
                // One that takes lines while it works waits for more until its input is closed.
                let _ = self.link.close_input().await;
            }
        }
    }

    /// Begins the turn that waits, unless it has to wait for the next run.
    async fn begin_waiting(&mut self) {
        if let Some(turn) = self.waiting.filter(|turn| self.may_take(*turn)) {
            self.waiting = None;
            self.begin_turn(turn).await;
        }
    }

    /// Whether this run may be given a turn. The process of an agent that is run once per turn has read the prompt of
    /// its own turn, and would pass the end of that off as the end of another.
    fn may_take(&self, turn: TurnId) -> bool {
        !self.runs_once() || self.own_turn == Some(turn)
    }

    fn runs_once(&self) -> bool {
        self.settings.driver == DriverKind::Command
    }

    fn break_with(&mut self, code: &str, what: String) {
        self.course.break_with(code, what);
    }

    fn spent(since: Instant) -> u64 {
        u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
