//! Watching a turn to its end, for `lanyard run`, `send` and `resume`. The agent's words go to stdout, everything else
//! to stderr; the exit code is how the turn ended.

mod show;

use std::collections::VecDeque;
use std::time::Duration;

use lanyard_api::types::Reason;
use lanyard_client::Route;
use lanyard_core::session::{
    ChangeEvent, ControlEvent, Ending, Envelope, Event, GateEvent, InboxEvent, InterruptCause, Question,
    TranscriptEvent, TurnEvent, TurnOutcome,
};
use lanyard_core::{GateId, Outcome, SessionId, Timestamp, TurnId};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::ask::Keyboard;
use super::follow::Follower;
use crate::context::Context;
use crate::dialogue::{approval_prompt, read_approval};
use crate::failure::{Exit, Failure};
use crate::render::text::one_line;
use crate::render::transcript::{session_end, turn_end};
use crate::seen::mark_seen;
use show::Show;

/// The part of the help that is the same for all commands that watch.
pub(super) const EXIT_CODES: &str = "\
Exit codes: 0 completed, 1 failed or refused, 2 not understood, 3 no daemon answers, 5 stopped,
6 cancelled, 7 interrupted otherwise (crash, timeout, limit), 130 left with Ctrl-C";

/// How long output must rest before a question that it moved away is shown again.
const REDRAW: Duration = Duration::from_millis(300);
/// Subagents whose logs are followed beside the session's own.
const CHILDREN_MAX: usize = 32;
/// Events of subagents that may wait to be shown.
const CHILD_EVENTS_MAX: usize = 256;

const LEFT: u8 = Exit::Left as u8;
const CANCELLED: u8 = Exit::Cancelled as u8;
const CUT_SHORT: u8 = Exit::Interrupted as u8;
const STOPPED: u8 = Exit::Stopped as u8;

/// The turn to watch: from its session's log after a position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watched {
    pub(super) session: SessionId,
    pub(super) turn: TurnId,
    pub(super) after: u64,
}

/// Shows a turn until it ends. Anything but a turn that was completed is a failure with its exit code.
pub(super) async fn watch(context: &Context, watched: Watched) -> Result<(), Failure> {
    let unheard = |error| Failure::local("signals", format!("cannot listen for Ctrl-C: {error}"), "");
    let mut interrupts = signal(SignalKind::interrupt()).map_err(unheard)?;
    let id = watched.session.to_string();
    let mut follower = Follower::after(context, &id, watched.after);
    let (sender, mut children) = mpsc::channel(CHILD_EVENTS_MAX);
    let keyboard = if context.out.is_json() { Keyboard::nobody() } else { Keyboard::open() };
    let mut watch = Watch {
        context,
        watched,
        show: Show::new(context),
        keyboard,
        asking: WatchPrompt::Nothing,
        gates: VecDeque::new(),
        followed: Vec::new(),
        sender,
        stopping: false,
        began: None,
        tokens: (0, 0),
        verdict: None,
        asked: 0,
        turn_end: None,
    };
    loop {
        let done = tokio::select! {
            event = follower.next() => watch.event(&event?)?,
            Some((child, event)) = children.recv() => watch.child_event(child, &event)?,
            line = watch.keyboard.line() => watch.line(line.trim()).await?,
            _ = interrupts.recv() => watch.interrupted()?,
            () = tokio::time::sleep(REDRAW), if watch.show.is_overwritten() => {
                watch.show.ask_again();
                false
            }
        };
        if done {
            watch.mark().await;
            return watch.end();
        }
        watch.ask_next();
    }
}

struct Watch<'a> {
    context: &'a Context,
    watched: Watched,
    show: Show<'a>,
    keyboard: Keyboard,
    asking: WatchPrompt,
    /// Open approvals of the session and its subagents.
    gates: VecDeque<(SessionId, GateId, Box<Question>)>,
    followed: Vec<(SessionId, tokio::task::JoinHandle<()>)>,
    sender: mpsc::Sender<(SessionId, String)>,
    /// A stop is pending: the end of the session is waited for, not only that of the turn.
    stopping: bool,
    began: Option<Timestamp>,
    tokens: (u64, u64),
    verdict: Option<Verdict>,
    /// Orders given from here, to tell their keys apart.
    asked: u32,
    /// The end of the turn, once it was shown.
    turn_end: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchPrompt {
    Nothing,
    Gate(SessionId, GateId),
    Leave,
}

/// How the turn ended: an exit code and a sentence.
type Verdict = (u8, String);

impl Watch<'_> {
    /// Shows an event of the session. True when there is nothing more to wait for.
    fn event(&mut self, text: &str) -> Result<bool, Failure> {
        if self.context.out.is_json() {
            self.context.out.data(text)?;
        }
        let Ok(envelope) = serde_json::from_str::<Envelope>(text) else {
            self.context.out.warn("an event came that this version does not know");
            return Ok(false);
        };
        self.show.tell(None, &envelope)?;
        self.note_gate(&envelope);
        self.count(&envelope.event);
        let at = envelope.at;
        match &envelope.event {
            Event::Turn(event) => {
                let ended = self.turn(event, at);
                self.turn_end = self.verdict.as_ref().map(|_| envelope.seq).or(self.turn_end);
                Ok(ended)
            }
            Event::Control(ControlEvent::StopRequested { .. } | ControlEvent::StopRaised { .. }) => {
                self.stopping = true;
                Ok(false)
            }
            Event::Control(ControlEvent::StopWithdrawn { .. }) => {
                self.stopping = false;
                Ok(self.verdict.is_some())
            }
            Event::Change(event) => Ok(self.change(event)),
            Event::Inbox(event) => Ok(self.inbox(event)),
            Event::Control(_)
            | Event::Context(_)
            | Event::Transcript(_)
            | Event::Run(_)
            | Event::Gate(_)
            | Event::Writer(_)
            | Event::Review(_) => Ok(false),
        }
    }

    /// A message that waits may never become a turn.
    fn inbox(&mut self, event: &InboxEvent) -> bool {
        let verdict = match event {
            InboxEvent::Withdrawn { turn, reason } if *turn == self.watched.turn => {
                let reason = reason.as_deref().map(|reason| format!(": {}", one_line(reason)));
                (1, format!("the message was withdrawn{}", reason.unwrap_or_default()))
            }
            InboxEvent::Steered { turn, .. } if *turn == self.watched.turn => {
                (0, "its words went into the running turn".to_owned())
            }
            InboxEvent::Withdrawn { .. }
            | InboxEvent::Steered { .. }
            | InboxEvent::Queued { .. }
            | InboxEvent::Edited { .. }
            | InboxEvent::Promoted { .. }
            | InboxEvent::Delivered { .. }
            | InboxEvent::Reordered { .. }
            | InboxEvent::Paused { .. }
            | InboxEvent::Resumed {} => return false,
        };
        self.verdict = Some(verdict);
        true
    }

    fn count(&mut self, event: &Event) {
        if let Event::Transcript(TranscriptEvent::UsageReported { input_tokens, output_tokens, .. }) = event {
            self.tokens.0 = self.tokens.0.saturating_add(*input_tokens);
            self.tokens.1 = self.tokens.1.saturating_add(*output_tokens);
        }
    }

    fn turn(&mut self, event: &TurnEvent, at: Timestamp) -> bool {
        let (turn, code) = match event {
            TurnEvent::Started { turn, .. } => {
                if *turn == self.watched.turn {
                    self.began = Some(at);
                }
                return false;
            }
            TurnEvent::CancelRequested { .. } | TurnEvent::Waiting { .. } | TurnEvent::Continued { .. } => {
                return false;
            }
            TurnEvent::Finished { turn, outcome, .. } => (turn, finished(*outcome)),
            TurnEvent::Interrupted { turn, cause, .. } => (turn, interrupted(*cause)),
        };
        if *turn != self.watched.turn {
            return false;
        }
        let took_ms = self.began.map(|began| at.millis_since(began));
        self.verdict = turn_end(event, took_ms).map(|sentence| (code, sentence));
        !self.stopping
    }

    fn change(&mut self, event: &ChangeEvent) -> bool {
        match event {
            ChangeEvent::ChildLinked { child, agent } => {
                self.follow_child(*child, agent.as_deref());
                false
            }
            ChangeEvent::Ended { how, reason } => {
                let code = match how {
                    Ending::Completed => 0,
                    Ending::Failed => 1,
                    Ending::Stopped => STOPPED,
                };
                self.verdict = Some((code, session_end(*how, reason.as_deref())));
                true
            }
            ChangeEvent::Deleted { .. } => {
                self.verdict = Some((1, "the session was deleted".to_owned()));
                true
            }
            ChangeEvent::Created(_)
            | ChangeEvent::Linked { .. }
            | ChangeEvent::ChildUnlinked { .. }
            | ChangeEvent::Migrated { .. }
            | ChangeEvent::Driven { .. }
            | ChangeEvent::AliasAdded { .. }
            | ChangeEvent::Renamed { .. }
            | ChangeEvent::Imported(_)
            | ChangeEvent::PlanJoined { .. }
            | ChangeEvent::MemorySet { .. }
            | ChangeEvent::ChoiceSet { .. }
            | ChangeEvent::Archived {}
            | ChangeEvent::Seen { .. }
            | ChangeEvent::Unarchived {}
            | ChangeEvent::Reset { .. }
            | ChangeEvent::Resumed { .. }
            | ChangeEvent::WentIdle { .. }
            | ChangeEvent::WentStale { .. } => false,
        }
    }

    /// A subagent has a log of its own; its approvals open there and are shown here.
    fn follow_child(&mut self, child: SessionId, agent: Option<&str>) {
        let known = self.followed.iter().any(|(held, _)| *held == child);
        if known || self.followed.len() >= CHILDREN_MAX {
            return;
        }
        self.show.name(child, agent);
        let (context, sender) = (self.context.clone(), self.sender.clone());
        let task = tokio::spawn(async move {
            let mut follower = Follower::after(&context, &child.to_string(), 0).silently();
            while let Ok(event) = follower.next().await {
                if sender.send((child, event)).await.is_err() {
                    return;
                }
            }
        });
        self.followed.push((child, task));
    }

    fn child_event(&mut self, child: SessionId, text: &str) -> Result<bool, Failure> {
        let Ok(envelope) = serde_json::from_str::<Envelope>(text) else { return Ok(false) };
        self.show.tell(Some(child), &envelope)?;
        self.note_gate(&envelope);
        if let Event::Change(ChangeEvent::ChildLinked { child, agent }) = &envelope.event {
            self.follow_child(*child, agent.as_deref());
        }
        Ok(false)
    }

    fn note_gate(&mut self, envelope: &Envelope) {
        let Event::Gate(event) = &envelope.event else { return };
        match event {
            GateEvent::Opened { gate, question, .. } => {
                self.gates.push_back((envelope.session, *gate, question.clone()));
            }
            GateEvent::Answered { gate, .. } | GateEvent::Withdrawn { gate, .. } => {
                self.gates.retain(|(_, held, _)| held != gate);
                if matches!(self.asking, WatchPrompt::Gate(_, held) if held == *gate) {
                    self.asking = WatchPrompt::Nothing;
                    self.show.unask();
                }
            }
        }
    }

    /// Prompts for the next open approval, on a terminal without another prompt.
    fn ask_next(&mut self) {
        if self.asking != WatchPrompt::Nothing || !self.keyboard.is_there() {
            return;
        }
        let Some((session, gate, question)) = self.gates.front() else { return };
        self.asking = WatchPrompt::Gate(*session, *gate);
        let text = approval_prompt(question);
        self.show.ask(&text);
    }

    async fn line(&mut self, line: &str) -> Result<bool, Failure> {
        self.show.typed();
        match std::mem::replace(&mut self.asking, WatchPrompt::Nothing) {
            WatchPrompt::Nothing => {}
            WatchPrompt::Gate(session, gate) => self.answer(session, gate, line).await,
            WatchPrompt::Leave => match line {
                "" | "d" | "detach" => return self.leave(),
                "c" | "cancel" => self.order("cancel").await,
                "s" | "stop" => self.order("stop").await,
                _ => self.show.line("going on"),
            },
        }
        Ok(false)
    }

    async fn answer(&mut self, session: SessionId, gate: GateId, line: &str) {
        let Some((_, _, question)) = self.gates.iter().find(|(_, held, _)| *held == gate) else { return };
        let body = match read_approval(question, line) {
            Ok(body) => body,
            // Asked again.
            Err(why) => return self.show.line(&why),
        };
        let route = Route::to(&["sessions", &session.to_string(), "gates", &gate.to_string()]);
        if self.post(&format!("answer.{gate}"), &route, &body).await {
            self.gates.retain(|(_, held, _)| *held != gate);
        }
    }

    async fn order(&mut self, verb: &str) {
        let route = Route::to(&["sessions", &self.watched.session.to_string(), verb]);
        let reason = Reason { reason: Some("asked for while watching".to_owned()) };
        let _taken = self.post(&format!("{verb}.{}", self.asked), &route, &reason).await;
    }

    /// What was not taken is told; watching goes on.
    async fn post(&mut self, part: &str, route: &Route, body: &impl serde::Serialize) -> bool {
        self.asked += 1;
        let sent = async {
            let mut client = self.context.client().await?;
            client.post_part::<Outcome>(part, route, body).await
        };
        let sent = sent.await;
        if let Err(Failure::Told { problem, .. }) = &sent {
            self.show.line(&format!("not taken: {} [{}]", one_line(&problem.title), problem.code));
        }
        sent.is_ok()
    }

    fn interrupted(&mut self) -> Result<bool, Failure> {
        if !self.keyboard.is_there() || self.asking == WatchPrompt::Leave {
            return self.leave();
        }
        self.asking = WatchPrompt::Leave;
        self.show.ask("detach (d), cancel the turn (c), stop the session (s), or go on (g)? [d] ");
        Ok(false)
    }

    fn leave(&mut self) -> Result<bool, Failure> {
        let id = self.watched.session;
        self.show.line(&format!("it goes on without you; see it with `lanyard log -f {id}`"));
        Err(Failure::Ended(LEFT))
    }

    /// The caller has the result, whether or not a terminal showed it.
    async fn mark(&self) {
        if let Some(seq) = self.turn_end {
            mark_seen(self.context, &self.watched.session.to_string(), seq).await;
        }
    }

    fn end(mut self) -> Result<(), Failure> {
        for (_, task) in &self.followed {
            task.abort();
        }
        let (code, mut sentence) = self.verdict.take().unwrap_or((0, String::new()));
        if self.tokens != (0, 0) {
            sentence = format!("{sentence}, tokens: {} in, {} out", self.tokens.0, self.tokens.1);
        }
        self.show.finish(&sentence, code == 0)?;
        if code == 0 { Ok(()) } else { Err(Failure::Ended(code)) }
    }
}

fn finished(outcome: TurnOutcome) -> u8 {
    match outcome {
        TurnOutcome::Completed => 0,
        TurnOutcome::Failed | TurnOutcome::Refused => 1,
    }
}

fn interrupted(cause: InterruptCause) -> u8 {
    match cause {
        InterruptCause::User => CANCELLED,
        InterruptCause::Crash
        | InterruptCause::Timeout
        | InterruptCause::HostLost
        | InterruptCause::Limit => CUT_SHORT,
    }
}
