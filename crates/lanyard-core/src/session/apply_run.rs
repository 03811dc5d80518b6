//! The fold of runs and gates.

use crate::actor::Cause;
use crate::id::RunId;
use crate::session::carrier::SeenCalls;
use crate::session::choice::{AgentChoice, OfferMark};
use crate::session::driven::DrivenBy;
use crate::session::event::Envelope;
use crate::session::gate::{Gate, GateEvent, GateKind, GateStatus, SETTLED_MAX};
use crate::session::record::Session;
use crate::session::run::{ActivityMark, Capabilities, Continuity, Run, RunEvent, RunPhase};

impl Session {
    pub(super) fn run(&mut self, event: &RunEvent, seq: u64) -> bool {
        let alive = !self.state.is_ended();
        match event {
            RunEvent::Started { run, number, mirrored, steers, sandbox, account, .. } => {
                self.forget_seen_calls();
                self.driven_by = Some(if *mirrored { DrivenBy::Parent } else { DrivenBy::Lanyard });
                let before = self.run.as_ref();
                let follows = before.is_none_or(|before| !before.is_live());
                let counts = *number == before.map_or(0, |before| before.number) + 1;
                self.run = Some(Run {
                    id: *run,
                    number: *number,
                    phase: RunPhase::Starting,
                    cursor: 0,
                    account: account.clone(),
                    turns: 0,
                    mirrored: *mirrored,
                    continuity: None,
                    opened: None,
                    info: None,
                    capabilities: Capabilities { steer: *steers, ..Capabilities::default() },
                    missing_tools: Vec::new(),
                    sandbox: sandbox.clone(),
                    activity: None,
                });
                alive && follows && counts
            }
            RunEvent::Ready(ready) => {
                self.native = Some(ready.native.clone());
                self.carries = None;
                self.run_wanted = None;
                let Some(run) = self.run.as_mut().filter(|run| run.id == ready.run && run.is_live()) else {
                    return false;
                };
                run.phase = RunPhase::Ready;
                run.turns = u64::from(self.turn.is_some());
                run.continuity = ready.continuity;
                run.opened = ready.continuity;
                run.info = Some(ready.info.clone());
                run.capabilities = ready.capabilities;
                alive
            }
            RunEvent::Adopted { run } => {
                self.living(*run).map(|held| held.continuity = Some(Continuity::Exact)).is_some()
            }
            RunEvent::Activity { run, activity, watched } => {
                let mark = ActivityMark { activity: *activity, seq, watched: *watched };
                self.living(*run).map(|held| held.activity = Some(mark)).is_some()
            }
            RunEvent::ToolsMissing { run, servers } => {
                self.living(*run).map(|held| held.missing_tools.clone_from(servers)).is_some()
            }
            RunEvent::BoundMet { run, what, times, .. } => {
                let held = self.living(*run).and_then(|held| held.sandbox.as_mut());
                let bound = held.and_then(|held| held.bounds.iter_mut().find(|bound| bound.what == *what));
                bound.map(|bound| bound.met = *times).is_some()
            }
            RunEvent::Ended { run, how, .. } => match &mut self.run {
                Some(held) if held.id == *run && held.is_live() => {
                    held.phase = RunPhase::Ended;
                    self.run_wanted = None;
                    if how.lost_the_conversation() {
                        held.continuity = Some(Continuity::Lost);
                    }
                    true
                }
                Some(_) | None => false,
            },
            RunEvent::Offered(offer) => {
                self.offered = Some(OfferMark { seq, hash: offer.hash() });
                self.live_run().is_some()
            }
            RunEvent::InForce(choice) => {
                self.in_force.clone_from(choice);
                self.live_run().is_some()
            }
            RunEvent::Wanted { ways } => {
                self.run_wanted = Some(ways.clone());
                alive
            }
        }
    }

    /// The run of this id, while it lives.
    fn living(&mut self, run: RunId) -> Option<&mut Run> {
        self.run.as_mut().filter(|held| held.id == run && held.is_live())
    }

    /// Whether the calls of a new run come by is yet to be seen, and what is in force in it.
    fn forget_seen_calls(&mut self) {
        self.in_force = AgentChoice::default();
        self.hears = false;
        self.seen_calls = SeenCalls::default();
    }

    pub(super) fn gate(&mut self, event: &GateEvent, envelope: &Envelope) -> bool {
        let at = envelope.at;
        let (id, status) = match event {
            GateEvent::Opened { gate, run, question } => {
                let live = self.run.as_ref().is_some_and(|held| held.id == *run && held.is_live());
                let asks = match question.kind {
                    GateKind::Permission => live && self.turn.is_some(),
                    // It belongs to no process and to no turn.
                    GateKind::Escalation => true,
                };
                let legal = asks && self.gates.iter().all(|held| held.id != *gate);
                self.gates.push(Gate {
                    id: *gate,
                    run: *run,
                    question: (**question).clone(),
                    opened_at: at,
                    status: GateStatus::Open,
                });
                return legal;
            }
            GateEvent::Answered { gate, option, message } => {
                let by = envelope.actor.clone();
                (*gate, GateStatus::Answered { option: option.clone(), message: message.clone(), by, at })
            }
            GateEvent::Withdrawn { gate, why } => (*gate, GateStatus::Withdrawn { why: why.clone(), at }),
        };
        let open = self.gates.iter_mut().find(|gate| gate.id == id && gate.status == GateStatus::Open);
        let Some(gate) = open else { return false };
        gate.status = status;
        let kind = gate.question.kind;
        self.forget_old_gates(kind);
        true
    }

    /// Keeps the record bounded: open gates stay, of the settled ones the newest of each kind. What an agent asks does not
    /// push out what a person said about it.
    fn forget_old_gates(&mut self, kind: GateKind) {
        let is_settled = |gate: &Gate| gate.question.kind == kind && gate.status != GateStatus::Open;
        let settled = self.gates.iter().filter(|gate| is_settled(gate)).count();
        let mut extra = settled.saturating_sub(SETTLED_MAX);
        self.gates.retain(|gate| {
            let goes = extra > 0 && is_settled(gate);
            extra -= usize::from(goes);
            !goes
        });
    }

    /// Advances the position up to which the agent's output was read.
    pub(super) fn read_output(&mut self, cause: Option<&Cause>) {
        if let (Some(Cause::Output { run, to }), Some(held)) = (cause, &mut self.run)
            && held.id == *run
        {
            held.cursor = held.cursor.max(*to);
        }
    }
}
