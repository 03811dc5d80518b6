//! The end of a run is the end of its last process. Until then nothing is confirmed.

use lanyard_core::session::{
    ActiveTurn, Attempt, Effect, EndedProcess, InterruptCause, Receipt, ResumeWay, RunEnd, Signal,
    SnapshotReason,
};
use lanyard_core::text::{one_line, without_escapes};
use tokio::time::{Duration, Instant};

use super::{Left, Runner};
use crate::agents::AgentWish;
use crate::agents::again::auto_resume;
use crate::agents::engine::AskFailure;
use crate::runs::{self, EndedBy, Exit, How};
use lanyard_base::failpoint;

/// Characters of what the agent said on stderr that go into the reason of its end.
const STDERR_CHARS_MAX: usize = 300;
/// How long to wait before what could not be ended is ended again.
const SWEEP_AGAIN: Duration = Duration::from_secs(5);
/// The code of an agent that ended before it had greeted, by itself.
const EXITED_EARLY: &str = "agent_exited_early";

impl Runner {
    /// Ends all processes of the run: TERM, grace, KILL.
    pub(super) async fn end_run(&mut self, reason: &str) {
        let grace = Duration::from_millis(self.settings.kill_grace_ms);
        if self.turn.is_none() && self.course.is_sound() {
            // An agent at rest is told goodbye. That ends nothing by itself, and it need not answer.
            self.say(|driver, out| driver.close(out));
            Box::pin(self.carry_out()).await;
        }
        self.signal_all(reason, grace, "term").await;
    }

    /// Ends them without grace.
    pub(super) async fn end_now(&mut self, reason: &str) {
        self.signal_all(reason, Duration::ZERO, "kill").await;
    }

    async fn signal_all(&mut self, reason: &str, grace: Duration, channel: &str) {
        self.try_channel(channel);
        self.end_reason.get_or_insert(reason.to_owned());
        if let Err(error) = self.link.end(grace).await {
            tracing::debug!(run = %self.run, %error, "the run could not be told to end");
        }
    }

    /// Remembers what was tried, and when.
    pub(super) fn try_channel(&mut self, channel: &str) {
        let tried = &mut self.tried;
        let since = *self.tried_since.get_or_insert_with(Instant::now);
        if tried.iter().all(|attempt| attempt.channel != channel) {
            tried.push(Attempt { channel: channel.to_owned(), after_ms: Self::spent(since) });
        }
        if channel != "agent" {
            self.course.end();
        }
    }

    /// The agent broke its protocol, or cannot go on with the conversation: another way, or the end.
    pub(super) async fn give_up(&mut self) {
        if self.course.is_ending() {
            return;
        }
        self.course.give_up(!self.ways.is_empty());
        self.end_run("the agent cannot be worked with").await;
    }

    /// The output has ended: what is left is read, and the log learns how the run ended.
    pub(super) async fn finish(mut self) -> Left {
        let exit = self.link.exited().await;
        // Nothing of the run lives, so these come to their end too.
        while let Some(cleared) = self.clearing.join_next().await {
            self.cleared(cleared).await;
        }
        let code = match exit.how {
            How::Exited(code) => Some(code),
            How::Signalled(_) | How::Lost => None,
        };
        self.say(|driver, out| driver.exited(code, out));
        self.carry_out().await;
        self.died_of_limit();
        self.report().await;
        self.tell_missing_tools().await;
        self.tell_bounds_met().await;
        self.bound_behind = self.bound_behind(exit.how).await;
        self.calls.end_all().await;
        self.keep_terminal().await;
        let swept = match exit.how {
            How::Lost => self.sweep().await,
            How::Exited(_) | How::Signalled(_) => Vec::new(),
        };
        let lost = match self.shared.session(self.session).await {
            Some(held) if held.stop.is_none() && self.takes_turn_along() => {
                held.turn.filter(|turn| !turn.is_waiting())
            }
            Some(_) | None => None,
        };
        let signal = self.ended(&exit, &swept);
        self.tell_children(&signal).await;
        self.shared.unmirror(self.session);
        failpoint::hit("before_run_end");
        let told = self.shared.tell(self.session, None, vec![signal]).await;
        failpoint::hit("after_run_end");
        self.close_console();
        match told {
            // The daemon ends: the next one finds the folder and says it.
            Err(AskFailure::Closing) => return Left::default(),
            Err(error) => tracing::warn!(session = %self.session, %error, "the end of a run was not taken"),
            Ok(_) => {}
        }
        self.ended_turn = self.ended_turn.or(lost.as_ref().map(ActiveTurn::prompt_id));
        self.snapshot_end().await;
        self.snapshot_stop().await;
        if let Err(error) = self.shared.runs.forget(&self.run.to_string()) {
            tracing::warn!(run = %self.run, %error, "the folder of a run could not be removed");
        }
        self.orders.close();
        let next = self.shared.session(self.session).await.and_then(|held| held.turn);
        // One that waits for a limit goes on when its time comes.
        let next = next.filter(|next| !next.is_waiting());
        if let Some(lost) = lost {
            auto_resume(&self.shared, &self.settings, self.session, self.run, &lost).await;
        }
        let mut orders = Vec::new();
        // A turn that was not lost with this run is for the next one. Ordered twice, it is begun once.
        if let (Some(next), false) = (next, self.course.tries_again()) {
            orders.push(AgentWish::of(self.session, Effect::RunTurn { turn: next.prompt_id() }));
        }
        orders.extend(self.held_back.drain(..));
        while let Ok(order) = self.orders.try_recv() {
            orders.push(order);
        }
        Left { orders, again: self.course.tries_again().then(|| std::mem::take(&mut self.ways)) }
    }

    /// A turn that ended leaves a checkpoint, after the log has its end. A stop that comes with it leaves one of its own.
    pub(super) async fn snapshot_end(&mut self) {
        let Some(turn) = self.ended_turn.take().filter(|_| !self.course.is_stopping()) else { return };
        if let Some(held) = self.shared.session(self.session).await {
            self.snapshot(&held, SnapshotReason::TurnEnd, &format!("{turn}-end")).await;
        }
    }

    /// After a stop the workspace is as the agent left it, and nothing writes to it any more.
    async fn snapshot_stop(&mut self) {
        if !self.course.is_stopping() {
            return;
        }
        if let Some(held) = self.shared.session(self.session).await {
            let name = format!("stop-{}", held.seq);
            self.snapshot(&held, SnapshotReason::Stop, &name).await;
        }
    }

    /// Subagents end with the run, those at work and those at rest.
    async fn tell_children(&self, signal: &Signal) {
        let mut signal = signal.clone();
        let cancelled = self.turn.as_ref().is_some_and(|turn| turn.cancel.is_some() && !turn.over);
        if let Signal::RunEnded { cause, .. } = &mut signal {
            let asked = self.course.is_unwanted() || cancelled;
            *cause = Some(if asked { InterruptCause::User } else { InterruptCause::Crash });
        }
        for mirror in self.children.values() {
            self.shared.note(mirror.session, signal.clone()).await;
        }
    }

    /// Whether a turn is lost with this run: the one it was given, or the one that waits for its greeting, or an agent
    /// that cannot greet would be started for ever. Any other was admitted too late for this run.
    fn takes_turn_along(&self) -> bool {
        let given = self.turn.as_ref().is_some_and(|turn| !turn.over);
        // What waits for an agent that is run once per turn waits for its next run.
        let greeting = !self.course.is_ready() && self.waiting.is_some() && !self.runs_once();
        (given || greeting) && !self.course.tries_again()
    }

    /// Ends what a dead supervisor left behind. As long as something of it lives nothing is confirmed.
    async fn sweep(&self) -> Vec<runs::ProcessEnd> {
        let grace = Duration::from_millis(self.settings.kill_grace_ms);
        loop {
            match self.shared.runs.sweep(&self.run.to_string(), grace).await {
                Ok(ended) => return ended,
                Err(error) => {
                    tracing::error!(run = %self.run, %error, "what a run left behind could not be ended");
                    tokio::time::sleep(SWEEP_AGAIN).await;
                }
            }
        }
    }

    fn ended(&mut self, exit: &Exit, swept: &[runs::ProcessEnd]) -> Signal {
        let greeting = !self.course.is_ready();
        if greeting && self.course.is_sound() {
            let what = self.reason_of(exit);
            self.course.break_with(EXITED_EARLY, what);
        }
        let how = match self.course.broken() {
            Some(broken) if greeting => RunEnd::NotStarted { code: broken.code.clone() },
            Some(_) | None => how_of(exit.how),
        };
        let processes: Vec<_> = exit.ended.iter().chain(swept).map(process_of).collect();
        let mut tried = std::mem::take(&mut self.tried);
        // The supervisor went on to it by itself when the grace was over.
        let term = tried.iter().find(|attempt| attempt.channel == "term").map(|attempt| attempt.after_ms);
        let killed = exit.ended.iter().any(|process| process.by == EndedBy::Kill);
        if let (Some(after), true) = (term, killed && tried.iter().all(|attempt| attempt.channel != "kill")) {
            let after_ms = after.saturating_add(self.settings.kill_grace_ms);
            tried.push(Attempt { channel: "kill".to_owned(), after_ms });
        }
        let receipt = Receipt { tried, processes, ..Receipt::default() };
        let cause = self.takes_turn_along().then_some(InterruptCause::Crash);
        Signal::RunEnded { run: self.run, how, cause, reason: Some(self.reason_of(exit)), receipt }
    }

    fn reason_of(&self, exit: &Exit) -> String {
        if let Some(broken) = self.course.broken() {
            // An early end has its last words already.
            let last_words = if broken.code == EXITED_EARLY { String::new() } else { self.last_words() };
            return format!("{}{last_words}", broken.reason());
        }
        if let Some(error) = &exit.spool_error {
            return format!("spool_failed: its output could not be kept: {error}");
        }
        if let Some(reason) = &self.end_reason {
            return format!("{reason}{}", self.dropped());
        }
        match exit.how {
            How::Exited(code) => format!("the agent exited with {code}{}", self.last_words()),
            How::Signalled(signal) => {
                let behind = &self.bound_behind;
                format!("the agent was ended by signal {signal}{behind}{}", self.last_words())
            }
            How::Lost => "the agent's supervisor died".to_owned(),
        }
    }

    /// The last line on stderr, which often says why.
    fn last_words(&self) -> String {
        let tail = without_escapes(&self.link.stderr_tail());
        let last = tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let last = one_line(last, STDERR_CHARS_MAX);
        if last.is_empty() { String::new() } else { format!("; its last words: {last}") }
    }
}

pub(in crate::agents) fn how_of(how: How) -> RunEnd {
    match how {
        How::Exited(code) => RunEnd::Exited { code },
        How::Signalled(signal) => RunEnd::Signalled { signal },
        How::Lost => RunEnd::Lost,
    }
}

pub(in crate::agents) fn process_of(process: &runs::ProcessEnd) -> EndedProcess {
    let by = match process.by {
        EndedBy::Hangup => "HUP",
        EndedBy::Term => "TERM",
        EndedBy::Kill => "KILL",
    };
    EndedProcess { pid: process.pid, name: process.name.clone(), by: Some(by.to_owned()) }
}

/// The ways that are left after one was tried.
pub(super) fn ways_after(ways: &[ResumeWay], tried: ResumeWay) -> Vec<ResumeWay> {
    ways.iter().copied().skip_while(|way| *way != tried).skip(1).collect()
}
