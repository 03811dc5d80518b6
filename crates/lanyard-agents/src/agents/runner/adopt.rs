//! Taking over a run that an earlier daemon started: exactly where the log stands.

use std::path::PathBuf;
use std::sync::Arc;

use lanyard_api::agents::settings::DriverKind;
use lanyard_core::session::{ActiveTurn, Continuity, Effect, Run, RunPhase, Session};
use lanyard_core::{SessionId, TurnId};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};

use super::start::{About, driver, past, servers, setting, tuned};
use super::{Mirror, Runner, tools};
use crate::agents::AgentWish;
use crate::agents::driver::{Begin, Opened, Readiness};
use crate::agents::given::GivenPrompt;
use crate::agents::shared::Shared;
use crate::runs::Link;
use crate::terminal::settings_of;
use lanyard_base::failpoint;

impl Runner {
    /// A runner for a run that lives, or that ended while nobody read what it said last.
    pub(in crate::agents) async fn adopted(
        shared: Arc<Shared>,
        session: &Session,
        held: &Run,
        about: &About,
        link: Link,
        orders: mpsc::Receiver<AgentWish>,
    ) -> Option<Self> {
        let agent = session.hands.agent.clone().unwrap_or_default();
        let settings = settings_of(session, shared.settings.agent(&agent)?);
        let workspace = PathBuf::from(session.workspace.clone()?);
        let family = shared.mirrors_of(session.id, held.id).await;
        let greeted = held.phase == RunPhase::Ready;
        let once = settings.driver == DriverKind::Command;
        let own_turn = if once { about.own_turn(session, held) } else { None };
        let turn = session.turn.as_ref().filter(|turn| !turn.is_waiting()).map(ActiveTurn::prompt_id);
        let begin = match &about.native {
            _ if greeted => begin_adopted(session, held, &family, if once { own_turn } else { turn }),
            Some(native) => Begin::Resume { native: native.clone() },
            None => Begin::New,
        };
        let mcp = servers(&shared.addresses.through(about.relay), session, held.id, &settings);
        // A run that an older daemon started goes past the relay, and nothing is known of its servers.
        let offered = about.relay.map(|_| tools::offered(&settings, &mcp)).unwrap_or_default();
        let tuned = tuned(&shared, session, &begin).await;
        let driver = driver(&settings, setting(&settings, &workspace, held.id, begin, mcp, tuned));
        let parts = (driver, link, (about.sandbox.clone(), about.bounds.clone()));
        let mut runner = Self::new(shared, session, settings, workspace, held.id, parts, orders);
        runner.has_past = session.turns > u64::from(session.turn.is_some());
        runner.offered = offered;
        runner.open_console(session);
        runner.ways.clone_from(&about.ways);
        runner.own_turn = own_turn;
        if let Some(how) = about.past.filter(|_| held.turns <= 1) {
            let text = match how {
                Continuity::Lost => Some(String::new()),
                Continuity::Exact | Continuity::Native | Continuity::Replayed | Continuity::Preamble => {
                    past(&runner.shared, session, how).await
                }
            };
            runner.past = text.map(|text| (how, text));
        }
        let calls = session.open_calls.iter().chain(family.iter().flat_map(|child| &child.open_calls));
        runner.driver.knows(&calls.cloned().collect::<Vec<_>>());
        runner.say(|driver, out| driver.begin(out));
        if !greeted {
            let patience = Duration::from_millis(runner.settings.handshake_timeout_ms);
            runner.course.await_greeting(Instant::now() + patience);
        }
        for child in &family {
            runner.take_child(child, session.native.as_deref().unwrap_or_default());
        }
        Some(runner)
    }

    /// Tells the agent again what it may have missed; what it knows reaches it no second time.
    pub(in crate::agents) async fn catch_up(&mut self, session: &Session) {
        failpoint::hit("before_catch_up");
        self.carry_out().await;
        if let Some(active) = session.turn.as_ref().filter(|active| !active.is_waiting()) {
            // The program of an agent that is run once per turn has its prompt, whether it greeted or not.
            let told = self.course.is_ready() || self.runs_once();
            if told && self.may_take(active.prompt_id()) {
                self.tell_prompt(session, active).await;
            } else {
                self.waiting = Some(active.prompt_id());
            }
        }
        self.carry_out().await;
        if self.runs_once() && self.turn.is_none() {
            // Its turn is over: it waits for nothing but the end of its input.
            let _ = self.link.close_input().await;
        }
        self.repeat_orders(session).await;
        let mirrors: Vec<SessionId> = self.children.values().map(|mirror| mirror.session).collect();
        for mirror in mirrors {
            if let Some(child) = self.shared.session(mirror).await {
                self.repeat_orders(&child).await;
            }
        }
        self.carry_out().await;
    }

    /// Says the prompt of the running turn again.
    async fn tell_prompt(&mut self, session: &Session, active: &ActiveTurn) {
        let Some((text, parts)) = self.whole_prompt(session, active).await else { return };
        let turn = active.prompt_id();
        self.take_turn(active);
        self.began = self.shared.runs.turn_began(&self.run.to_string(), &turn.to_string());
        // A prompt that has arrived is not held back any more.
        if !active.prompt_arrived() {
            self.choose(&turn.to_string(), session);
        }
        self.chosen_for_turn = !active.choice.is_empty();
        self.say(|driver, out| driver.prompt(turn, None, GivenPrompt { text: &text, parts: &parts }, out));
        self.carry_out().await;
        self.given(turn, None).await;
        if self.runs_once() {
            // The daemon before may have ended before it did so, and the program would wait for more.
            self.close_unless_two_way().await;
        }
    }

    /// Goes through what is left of the output that an earlier daemon read, for requests it never answered.
    pub(in crate::agents) async fn recall(&mut self) {
        if self.console.is_some() {
            return;
        }
        let to = self.reported;
        let mut output = self.link.output(self.link.consumed_to());
        let mut rest = Vec::new();
        while output.at() < to {
            let Ok(Some(piece)) = output.next().await else { return };
            let extra = usize::try_from(output.at().saturating_sub(to)).unwrap_or(usize::MAX);
            rest.extend_from_slice(&piece[..piece.len().saturating_sub(extra)]);
            let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            for line in rest[..whole].split(|byte| *byte == b'\n') {
                self.say(|driver, out| driver.recall(line, out));
            }
            rest.drain(..whole);
        }
    }

    /// What was decided about a session, and may not have been carried out.
    async fn repeat_orders(&mut self, session: &Session) {
        let run = self.run;
        for gate in session.open_gates().filter(|gate| gate.run == run) {
            self.judge_gate(session.id, gate.id, &gate.question).await;
        }
        self.pass_answers(session, None);
        if let Some(active) = session.turn.as_ref().filter(|active| active.cancel_requested) {
            let effect = Effect::CancelWork { turn: active.prompt_id(), forced: false };
            self.obey(AgentWish::of(session.id, effect)).await;
        }
        if let Some(stop) = &session.stop {
            let (level, scope, executing) = (stop.level, stop.scope, session.turn.is_some());
            let effect = Effect::StopWork { level, scope, executing, answered: false };
            self.obey(AgentWish::of(session.id, effect)).await;
        }
    }

    /// A session that shows one of this run's subagents.
    fn take_child(&mut self, child: &Session, native: &str) {
        // The names a hook goes by are no names of the driver's.
        let of_hook = format!("{native}/");
        let named = child.aliases.iter().find(|alias| !alias.starts_with(&of_hook));
        let (Some(run), Some(native)) = (&child.run, named) else { return };
        let turn = child.turn.as_ref().map(|turn| turn.id);
        self.shared.mirror(child.id, self.session);
        self.told.insert(child.id, run.cursor);
        self.own_turns.extend(turn);
        self.told.insert(child.id, run.cursor);
        let (done, cancelled) = (turn.is_none(), false);
        let mirror = Mirror { session: child.id, turn, cursor: run.cursor, done, cancelled };
        self.children.insert(native.clone(), mirror);
    }
}

/// What the log knows of a run that was greeted.
fn begin_adopted(session: &Session, held: &Run, family: &[Session], turn: Option<TurnId>) -> Begin {
    let how = match held.opened {
        Some(Continuity::Native) if held.turns == 0 => Opened::Resumed,
        _ => Opened::New,
    };
    let readiness = Readiness {
        native: session.native.clone().unwrap_or_default(),
        info: held.info.clone().unwrap_or_default(),
        capabilities: held.capabilities,
        how,
    };
    let gates = session.open_gates().chain(family.iter().flat_map(Session::open_gates));
    let open = gates.filter(|gate| gate.run == held.id).map(|gate| gate.question.clone()).collect();
    Begin::Adopted { readiness, turn, open }
}
