//! Consequences of a committed event: work for the daemon, as data. Effects come only from events that are on disk.

use crate::actor::ActorKind;
use crate::id::{GateId, NoteId, TurnId};
use crate::session::event::{ChangeEvent, ControlEvent, Envelope, Event, TurnEvent};
use crate::session::gate::GateEvent;
use crate::session::guidance::NoteKind;
use crate::session::record::{ActiveTurn, Session};
use crate::session::run::{ResumeWay, RunEvent};
use crate::session::stop::{StopLevel, StopScope};

/// Work for the daemon. Its result returns as a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Hand the turn's prompt to the agent. After a limit it is the id of the prompt that follows.
    RunTurn { turn: TurnId },
    /// End the work on this prompt; `forced` when it was asked before.
    CancelWork { turn: TurnId, forced: bool },
    /// End all work of the session. `executing` says whether a turn was running when it was ordered.
    StopWork {
        level: StopLevel,
        scope: StopScope,
        executing: bool,
        /// The agent is being told in the answer to the call that raised the stop.
        answered: bool,
    },
    /// Tell the parent that this session ended under a stop, and what it left; or that it was resumed.
    TellParent,
    /// Give the agent the answer it waits for.
    AnswerGate { gate: GateId },
    /// Words wait that a running agent may be able to take.
    Steer { note: NoteId },
    /// The session has no more use for its agent's process.
    EndRun {
        /// The agent ended its session by a call whose answer is on its way.
        answered: bool,
    },
    /// Have the agent there, without a prompt yet.
    Revive { ways: Vec<ResumeWay> },
    /// Tell a running agent of the session's model, mode and effort. `seq` is the position of the change.
    Choose { seq: u64 },
}

/// The effects of an event on the session to which it was just applied.
#[must_use]
pub fn react(session: &Session, envelope: &Envelope) -> Vec<Effect> {
    let tells =
        matches!(&envelope.event, Event::Change(ChangeEvent::Ended { .. } | ChangeEvent::Resumed { .. }));
    let notice = (tells && session.notice_due).then_some(Effect::TellParent);
    first(session, envelope).into_iter().chain(notice).collect()
}

fn first(session: &Session, envelope: &Envelope) -> Option<Effect> {
    let executing = session.turn.is_some();
    match &envelope.event {
        Event::Turn(TurnEvent::Started { turn, .. }) => Some(Effect::RunTurn { turn: *turn }),
        Event::Turn(TurnEvent::Continued { leg, .. }) => Some(Effect::RunTurn { turn: *leg }),
        Event::Turn(TurnEvent::CancelRequested { turn, forced, .. }) => {
            let prompt = session.turn.as_ref().map_or(*turn, ActiveTurn::prompt_id);
            Some(Effect::CancelWork { turn: prompt, forced: *forced })
        }
        Event::Turn(
            TurnEvent::Waiting { .. } | TurnEvent::Finished { .. } | TurnEvent::Interrupted { .. },
        ) => None,
        Event::Control(ControlEvent::StopRequested { level, scope, .. }) => {
            Some(Effect::StopWork { level: *level, scope: *scope, executing, answered: false })
        }
        Event::Control(ControlEvent::StopRaised { to, .. }) => {
            let scope = session.stop.as_ref().map_or(StopScope::default(), |stop| stop.scope);
            // Raised by its own call, the agent is told in the answer and has its time; what ends it comes with the
            // last level.
            let answered = envelope.actor.kind == ActorKind::Agent;
            let waits = answered && *to < StopLevel::Terminated;
            (!waits).then_some(Effect::StopWork { level: *to, scope, executing, answered })
        }
        // A notice has a form of its own, for an answer or a prompt.
        Event::Control(ControlEvent::GuidanceQueued {
            note,
            kind: NoteKind::Guidance | NoteKind::Steer,
            ..
        }) if executing => Some(Effect::Steer { note: *note }),
        Event::Gate(GateEvent::Answered { gate, .. }) => Some(Effect::AnswerGate { gate: *gate }),
        Event::Run(RunEvent::Wanted { ways }) => Some(Effect::Revive { ways: ways.clone() }),
        Event::Change(ChangeEvent::ChoiceSet { .. }) if session.live_run().is_some() => {
            Some(Effect::Choose { seq: envelope.seq })
        }
        Event::Change(event) if session.live_run().is_some() && lets_go(event) => {
            Some(Effect::EndRun { answered: envelope.actor.kind == ActorKind::Agent })
        }
        Event::Control(_)
        | Event::Change(_)
        | Event::Inbox(_)
        | Event::Context(_)
        | Event::Transcript(_)
        | Event::Run(_)
        | Event::Gate(_)
        | Event::Writer(_)
        | Event::Review(_) => None,
    }
}

/// Whether the session has no more use for the process that worked for it. A new owner keeps it, also in mid-turn.
fn lets_go(event: &ChangeEvent) -> bool {
    match event {
        ChangeEvent::Ended { .. }
        | ChangeEvent::Deleted { .. }
        | ChangeEvent::Reset { .. }
        | ChangeEvent::Archived {} => true,
        ChangeEvent::Migrated { from, to, .. } => from.agent != to.agent || from.worker != to.worker,
        ChangeEvent::Created(_)
        | ChangeEvent::Linked { .. }
        | ChangeEvent::ChildLinked { .. }
        | ChangeEvent::ChildUnlinked { .. }
        | ChangeEvent::Driven { .. }
        | ChangeEvent::AliasAdded { .. }
        | ChangeEvent::Renamed { .. }
        | ChangeEvent::Imported(_)
        | ChangeEvent::PlanJoined { .. }
        | ChangeEvent::MemorySet { .. }
        | ChangeEvent::ChoiceSet { .. }
        | ChangeEvent::Seen { .. }
        | ChangeEvent::Unarchived {}
        | ChangeEvent::Resumed { .. }
        | ChangeEvent::WentIdle { .. }
        | ChangeEvent::WentStale { .. } => false,
    }
}
