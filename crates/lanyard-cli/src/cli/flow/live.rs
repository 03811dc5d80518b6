//! Watching a flow: what happens goes to stderr line by line, what it asks is asked in place, and the exit code is how it
//! ended. It decides nothing: the flow goes on the same whether or not anybody watches.

use std::time::Duration;

use lanyard_api::types::{FlowAnswer, FlowEventPage, FlowGateEntry, FlowView};
use lanyard_core::flow::{FlowEnvelope, FlowState};
use lanyard_core::{FlowId, GateId};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::at;
use super::follow::{FlowHeard, follow};
use super::status::Status;
use crate::cli::approve::Approvals;
use crate::cli::ask::Keyboard;
use crate::context::Context;
use crate::dialogue::{Dialogue, Next};
use crate::failure::{Exit, Failure};
use crate::render::flow::{elapsed, status, tokens};
use crate::render::flow_gate::{choices, commands, open_gate, question};
use crate::render::flow_log::Narrator;
use crate::render::ids::Shortener;
use crate::render::text::one_line;

const TICK: Duration = Duration::from_secs(1);
/// How long a flow that has ended is waited for to put its folder in order.
const SETTLING: Duration = Duration::from_secs(10);
/// The flow waits for an approval without a terminal: it has not ended.
pub(in crate::cli) const STILL_OPEN: u8 = Exit::Pending as u8;
const LEFT: u8 = Exit::Left as u8;

/// Where the telling begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Beginning,
    /// This many events before the last.
    Last(u64),
}

pub(super) async fn watch(context: &Context, flow: FlowId, from: From) -> Result<(), Failure> {
    let unheard = |error| Failure::local("signals", format!("cannot listen for Ctrl-C: {error}"), "");
    let mut interrupts = signal(SignalKind::interrupt()).map_err(unheard)?;
    let mut heard = follow(context, flow);
    let keyboard = if context.out.is_json() { Keyboard::nobody() } else { Keyboard::open() };
    let mut live = Live {
        context,
        flow,
        from,
        first_told: None,
        keyboard,
        narrator: Narrator::default(),
        seq: 0,
        view: None,
        dialogue: None,
        approvals: Approvals::default(),
        asked_approval: None,
        prompted: false,
        answered: None,
        posts: 0,
        status: Status::new(context),
        ended: None,
    };
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let done = tokio::select! {
            Some(heard) = heard.recv() => live.heard(heard)?,
            typed = live.keyboard.next() => live.line(typed).await?,
            _ = interrupts.recv() => return live.leave(),
            _ = ticks.tick() => live.tick(),
        };
        if done {
            return live.finish();
        }
    }
}

struct Live<'a> {
    context: &'a Context,
    flow: FlowId,
    from: From,
    /// The first event that is told; known with the first page.
    first_told: Option<u64>,
    keyboard: Keyboard,
    narrator: Narrator,
    /// The last event that came.
    seq: u64,
    /// The newest record, and when it came.
    view: Option<(Box<FlowView>, Instant)>,
    dialogue: Option<Dialogue>,
    /// What its agents wait to be allowed, and what was asked of that.
    approvals: Approvals,
    asked_approval: Option<GateId>,
    /// The cursor stands behind a prompt.
    prompted: bool,
    /// The gate that was answered from here: a page that was on its way still has it.
    answered: Option<GateId>,
    posts: u32,
    status: Status<'a>,
    /// When it was seen to have ended.
    ended: Option<Instant>,
}

impl Live<'_> {
    /// True when there is nothing more to wait for.
    fn heard(&mut self, heard: FlowHeard) -> Result<bool, Failure> {
        match heard {
            FlowHeard::Page(page) => self.page(*page),
            FlowHeard::Lost(sentence) => {
                self.say(&sentence);
                Ok(false)
            }
            FlowHeard::Back => {
                self.say(&format!("the daemon is back; going on after event {}", self.seq));
                self.prompt();
                Ok(false)
            }
            FlowHeard::Refused(failure) => {
                self.fresh();
                Err(failure)
            }
        }
    }

    fn page(&mut self, page: FlowEventPage) -> Result<bool, Failure> {
        let from = self.from;
        let first = *self.first_told.get_or_insert_with(|| match from {
            From::Beginning => 0,
            From::Last(last) => page.head.saturating_sub(last) + 1,
        });
        let mut told = false;
        for event in &page.events {
            self.seq = event.seq;
            told |= self.event(event, event.seq >= first)?;
        }
        let caught_up = self.seq >= page.head;
        self.view = Some((Box::new(page.flow), Instant::now()));
        if !caught_up {
            return Ok(false);
        }
        self.approve();
        self.ask()?;
        if told && !self.prompted {
            self.prompt();
        }
        Ok(self.is_over())
    }

    /// True when a line was told.
    fn event(&mut self, event: &FlowEnvelope, aloud: bool) -> Result<bool, Failure> {
        if self.context.out.is_json() {
            if aloud {
                let text = serde_json::to_string(event)
                    .map_err(|error| Failure::local("output_failed", error.to_string(), ""))?;
                self.context.out.data(&text)?;
            }
            return Ok(false);
        }
        let lines = self.narrator.tell(event);
        if !aloud || lines.is_empty() {
            return Ok(false);
        }
        for line in lines {
            self.say(&line);
        }
        Ok(true)
    }

    /// Prints approvals of its agents, and prompts for them on a terminal.
    fn approve(&mut self) {
        let open = self.view.as_ref().map(|(view, _)| view.approvals.clone()).unwrap_or_default();
        for line in self.approvals.update(&open) {
            self.say(&line);
        }
        let asked = self.approvals.prompt().map(|(gate, _)| gate);
        if self.asked_approval != asked {
            self.fresh();
            self.asked_approval = asked;
            self.prompt();
        }
    }

    /// Prompts for the flow's approval, or prints the commands that answer it.
    fn ask(&mut self) -> Result<(), Failure> {
        let entry = self.view.as_ref().and_then(|(view, _)| open_gate(view));
        let Some(entry) = entry.filter(|entry| self.answered != Some(entry.gate.id)) else {
            if self.dialogue.take().is_some() {
                self.fresh();
            }
            return Ok(());
        };
        if !self.keyboard.is_there() {
            self.status.wipe();
            return unasked(self.context, &entry);
        }
        match &mut self.dialogue {
            Some(dialogue) if dialogue.gate().id == entry.gate.id => {
                if dialogue.renew(entry.gate) {
                    self.fresh();
                    self.prompt();
                }
            }
            Some(_) | None => {
                self.fresh();
                tell_gate(self.context, &entry);
                self.dialogue = Some(Dialogue::new(entry.gate));
                self.prompt();
            }
        }
        Ok(())
    }

    fn prompt(&mut self) {
        if !self.keyboard.is_there() {
            return;
        }
        let text = match &self.dialogue {
            Some(dialogue) => Some(dialogue.prompt()),
            None => self.approvals.prompt().map(|(_, text)| text),
        };
        if let Some(text) = text {
            self.status.wipe();
            self.context.out.question(&text);
            self.prompted = true;
        }
    }

    async fn line(&mut self, line: Option<String>) -> Result<bool, Failure> {
        // The typed line has its end already.
        self.prompted = false;
        let Some(dialogue) = &mut self.dialogue else {
            self.approval_line(line).await;
            return Ok(false);
        };
        let gate = dialogue.gate().id;
        let Some(line) = line else {
            self.context.out.question("\n");
            self.context.out.note(&stays_open(gate));
            return Err(Failure::Ended(STILL_OPEN));
        };
        match dialogue.line(&line) {
            Next::Again(why) => {
                self.context.out.question(&format!("{why}\n"));
                self.prompt();
            }
            Next::Guidance => self.prompt(),
            Next::Answer(answer) => self.post(gate, &answer).await,
        }
        Ok(false)
    }

    async fn approval_line(&mut self, line: Option<String>) {
        let Some((gate, _)) = self.approvals.prompt() else { return };
        let Some(line) = line else {
            self.context.out.note(&format!("{gate} stays open; `lanyard answer {gate} allow` answers it"));
            return;
        };
        if let Some(told) = self.approvals.line(self.context, &line).await {
            self.context.out.question(&format!("{told}\n"));
        }
        self.asked_approval = self.approvals.prompt().map(|(gate, _)| gate);
        self.prompt();
    }

    /// What is not taken is told, and asked again where it is still asked.
    async fn post(&mut self, gate: GateId, answer: &FlowAnswer) {
        self.posts += 1;
        let route = at(&self.flow.to_string(), &["gates", &gate.to_string()]);
        let part = format!("answer.{gate}.{}", self.posts);
        let sent = async {
            let mut client = self.context.client().await?;
            client.post_part::<FlowView>(&part, &route, answer).await
        };
        let Err(failure) = sent.await else {
            self.dialogue = None;
            self.answered = Some(gate);
            return;
        };
        let Failure::Told { problem, .. } = failure else { return };
        self.context.out.question(&format!("not taken: {} [{}]\n", one_line(&problem.title), problem.code));
        if is_settled(&problem.code) {
            self.dialogue = None;
            self.answered = Some(gate);
            return;
        }
        self.dialogue = self.dialogue.take().map(|dialogue| Dialogue::new(dialogue.gate().clone()));
        self.prompt();
    }

    fn is_over(&mut self) -> bool {
        let Some((view, _)) = &self.view else { return false };
        if !view.flow.state.is_ended() {
            self.ended = None;
            return false;
        }
        let since = *self.ended.get_or_insert_with(Instant::now);
        view.flow.settled || since.elapsed() >= SETTLING
    }

    fn tick(&mut self) -> bool {
        if self.dialogue.is_none()
            && !self.prompted
            && self.status.is_on()
            && let Some((view, came)) = &self.view
        {
            let later = u64::try_from(came.elapsed().as_millis()).unwrap_or(0);
            let text = status(view, if view.flow.state.is_ended() { 0 } else { later });
            self.status.show(&text);
        }
        self.ended.is_some() && self.is_over()
    }

    fn say(&mut self, line: &str) {
        self.fresh();
        self.context.out.note(line);
    }

    /// Nothing is told behind the status or in the middle of an answer.
    fn fresh(&mut self) {
        self.status.wipe();
        if std::mem::replace(&mut self.prompted, false) {
            self.context.out.question("\n");
        }
    }

    fn leave(mut self) -> Result<(), Failure> {
        self.status.wipe();
        let id = self.flow;
        self.context.out.question("\n");
        self.context.out.note(&format!(
            "the flow goes on; `lanyard flow watch {id}` watches it again, `lanyard flow cancel {id}` ends it"
        ));
        Err(Failure::Ended(LEFT))
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.status.wipe();
        let Some((view, _)) = self.view else { return Ok(()) };
        let good = matches!(view.flow.state, FlowState::Completed | FlowState::Approved);
        if !self.context.out.is_json() {
            let used = tokens(view.flow.spent).map(|tokens| format!(", {tokens}")).unwrap_or_default();
            let verb = if good { "report" } else { "resume" };
            let next = if good { "tells what came of it" } else { "takes it up again" };
            self.context.out.note(&format!(
                "{} after {}{used}; `lanyard flow {verb} {}` {next}",
                view.flow.state,
                elapsed(view.elapsed_ms),
                view.flow.id
            ));
        }
        if good { Ok(()) } else { Err(Failure::Shown) }
    }
}

/// The approval with its answers, for a prompt.
pub(in crate::cli) fn tell_gate(context: &Context, entry: &FlowGateEntry) {
    let answers = choices(&entry.gate).join("\n  ");
    context.out.question(&format!("{}  {answers}\n", question(entry, Shortener::whole(), None)));
}

/// Without a terminal: the approval stays open, and the commands that answer it are printed.
pub(in crate::cli) fn unasked(context: &Context, entry: &FlowGateEntry) -> Result<(), Failure> {
    if !context.out.is_json() {
        let commands = commands(&entry.gate);
        let asked = question(entry, Shortener::whole(), None);
        context.out.question(&format!("{asked}no terminal to answer on; answer with one of\n{commands}"));
        context.out.note(&format!(
            "the flow waits; after that `lanyard flow watch {}` continues watching",
            entry.flow
        ));
    }
    Err(Failure::Ended(STILL_OPEN))
}

pub(in crate::cli) fn stays_open(gate: GateId) -> String {
    format!("{gate} stays open and the flow waits; `lanyard answer {gate}` answers it")
}

/// Whether no further answer can be given to the gate.
pub(in crate::cli) fn is_settled(code: &str) -> bool {
    matches!(code, "gate_answered" | "gate_not_open" | "flow_ended")
}
