//! The receipt of a stop, made from the session's log: what was tried, by which channel, and what came of it.

use lanyard_api::types::{StopReceipt, StopStep};
use lanyard_core::Timestamp;
use lanyard_core::session::{
    ChangeEvent, ControlEvent, DEADLINE_PASSED, DrivenBy, Ending, Envelope, Event, Receipt, RunEnd, RunEvent,
    Session, Settled, Stop, StopLevel, StopScope, TurnEvent,
};
use lanyard_store::{Store, StoreError};

/// Events read at a time, from the end of the log backwards.
const PAGE: u64 = 500;
/// How far back the beginning of a stop is looked for.
const PAGES_MAX: u64 = 40;

/// Nothing when no stop was asked for, or the newest was taken back long ago.
pub(super) fn of(store: &dyn Store, session: &Session) -> Result<Option<StopReceipt>, StoreError> {
    let mut log = since_the_stop(store, session)?;
    // What came after a resume is no part of the stop.
    let resumed =
        log.iter().position(|event| matches!(event.event, Event::Change(ChangeEvent::Resumed { .. })));
    log.truncate(resumed.map_or(log.len(), |at| at + 1));
    let Some(first) = log.first() else { return Ok(None) };
    let Event::Control(ControlEvent::StopRequested { level, scope, reason, .. }) = &first.event else {
        return Ok(None);
    };
    let held = session.stop.clone().filter(|_| resumed.is_none()).unwrap_or(Stop {
        level: log.iter().filter_map(raised_to).next_back().unwrap_or(*level),
        scope: *scope,
        requested_at: first.at,
        level_at: first.at,
        by: first.actor.clone(),
        reason: reason.clone(),
        told: 0,
        complying: None,
    });
    let steps: Vec<StopStep> = log.iter().flat_map(step).collect();
    let withdrawn =
        log.iter().any(|event| matches!(event.event, Event::Control(ControlEvent::StopWithdrawn { .. })));
    let turn_over = held.scope == StopScope::Turn
        && log.iter().any(|event| matches!(event.event, Event::Control(ControlEvent::StopSettled {})));
    let over = session.state.is_ended() && session.live_run().is_none() || resumed.is_some();
    let unconfirmed = unconfirmed(session, &log, over).filter(|_| !turn_over && !withdrawn);
    Ok(Some(StopReceipt {
        session: session.id,
        state: session.state.name(),
        level: held.level,
        scope: held.scope,
        by: held.by,
        reason: held.reason,
        requested_at: held.requested_at,
        complying: held.complying,
        steps,
        confirmed: ((over && unconfirmed.is_none()) || turn_over) && !lives_on(&log),
        unconfirmed,
        withdrawn,
    }))
}

/// What may still live of a session that has ended: an agent of another host is known to have stopped only when it was
/// told the last level, did what was asked, or ended by itself.
fn unconfirmed(session: &Session, log: &[Envelope], over: bool) -> Option<String> {
    // A resume takes the conversation over from its host.
    let taken = !session.state.is_ended() && session.stopped_runs.back().is_some_and(|it| it.run.is_none());
    let host = over && (session.driver() == DrivenBy::Host || taken);
    let knows = |envelope: &Envelope| match &envelope.event {
        Event::Control(ControlEvent::StopApplied { level, refused, .. }) => {
            *refused && *level == StopLevel::Terminated
        }
        Event::Control(ControlEvent::StopComplied { .. }) => true,
        Event::Change(ChangeEvent::Ended { how, .. }) => *how != Ending::Stopped,
        Event::Control(_)
        | Event::Change(_)
        | Event::Turn(_)
        | Event::Inbox(_)
        | Event::Context(_)
        | Event::Transcript(_)
        | Event::Run(_)
        | Event::Gate(_)
        | Event::Writer(_)
        | Event::Review(_) => false,
    };
    (host && !log.iter().any(knows)).then(|| {
        "the agent runs under its own host and has not been told yet; its next tool call is refused"
            .to_owned()
    })
}

fn raised_to(envelope: &Envelope) -> Option<StopLevel> {
    match &envelope.event {
        Event::Control(ControlEvent::StopRaised { to, .. }) => Some(*to),
        Event::Control(_)
        | Event::Change(_)
        | Event::Turn(_)
        | Event::Inbox(_)
        | Event::Context(_)
        | Event::Transcript(_)
        | Event::Run(_)
        | Event::Gate(_)
        | Event::Writer(_)
        | Event::Review(_) => None,
    }
}

/// The log from the newest `stop.requested` on.
fn since_the_stop(store: &dyn Store, session: &Session) -> Result<Vec<Envelope>, StoreError> {
    let mut log: Vec<Envelope> = Vec::new();
    let mut end = session.seq;
    for _ in 0..PAGES_MAX {
        let after = end.saturating_sub(PAGE);
        let limit = usize::try_from(end - after).unwrap_or(usize::MAX);
        let page = store.events(session.id, after, limit)?;
        let bodies = page.events.iter().filter_map(|event| event.body.as_ref().ok());
        let mut older: Vec<Envelope> = bodies.filter_map(|body| serde_json::from_slice(body).ok()).collect();
        let begins = older
            .iter()
            .rposition(|event| matches!(event.event, Event::Control(ControlEvent::StopRequested { .. })));
        if let Some(at) = begins {
            older.drain(..at);
        }
        older.extend(log);
        log = older;
        if begins.is_some() {
            return Ok(log);
        }
        if after == 0 {
            break;
        }
        end = after;
    }
    Ok(Vec::new())
}

fn step(envelope: &Envelope) -> Vec<StopStep> {
    let at = envelope.at;
    let one = |channel: &str, what: String| vec![made(at, channel, what)];
    match &envelope.event {
        Event::Control(event) => {
            control(envelope, event).map_or(Vec::new(), |(channel, what)| one(channel, what))
        }
        Event::Turn(TurnEvent::Interrupted { reason, receipt, .. }) => {
            let mut steps = processes(at, receipt);
            steps.push(made(at, "turn", format!("the turn was interrupted{}", because(reason.as_deref()))));
            steps
        }
        Event::Turn(TurnEvent::Finished { .. }) => one("turn", "the turn came to its end".to_owned()),
        Event::Run(RunEvent::Ended { how, receipt, .. }) => {
            let mut steps: Vec<StopStep> = receipt
                .tried
                .iter()
                .map(|tried| made(at, &tried.channel, format!("tried after {} ms", tried.after_ms)))
                .collect();
            steps.extend(processes(at, receipt));
            steps.push(made(at, "process", ended(how)));
            steps
        }
        Event::Change(ChangeEvent::Ended { how, .. }) => {
            let how = match how {
                Ending::Completed => "completed",
                Ending::Failed => "failed",
                Ending::Stopped => "stopped",
            };
            one("end", format!("the session is {how}"))
        }
        Event::Change(ChangeEvent::Resumed { .. }) => {
            one("request", format!("{} resumed the session", envelope.actor.name))
        }
        Event::Turn(_)
        | Event::Inbox(_)
        | Event::Change(_)
        | Event::Context(_)
        | Event::Transcript(_)
        | Event::Run(_)
        | Event::Gate(_)
        | Event::Writer(_)
        | Event::Review(_) => Vec::new(),
    }
}

/// The processes of a receipt: those that were ended, those that may still live, and those that belong to the agent.
fn processes(at: Timestamp, receipt: &Receipt) -> Vec<StopStep> {
    let ended = receipt.processes.iter().map(|process| {
        let by = process.by.as_deref().map_or("by itself".to_owned(), |by| format!("by {by}"));
        format!("{} (pid {}) ended {by}", process.name, process.pid)
    });
    let left =
        receipt.left.iter().map(|process| format!("{} (pid {}) may still run", process.name, process.pid));
    let kept = receipt.kept.iter().map(|process| {
        format!("{} (pid {}) is a server of the agent itself and runs on", process.name, process.pid)
    });
    ended.chain(left).chain(kept).map(|what| made(at, "process", what)).collect()
}

/// Whether something of what was to end may still live. The end of the run is the end of it.
fn lives_on(log: &[Envelope]) -> bool {
    log.iter().fold(false, |lives, envelope| match &envelope.event {
        Event::Turn(TurnEvent::Interrupted { receipt, .. }) => !receipt.left.is_empty(),
        Event::Run(RunEvent::Ended { .. }) => false,
        Event::Turn(_)
        | Event::Inbox(_)
        | Event::Change(_)
        | Event::Context(_)
        | Event::Control(_)
        | Event::Transcript(_)
        | Event::Run(_)
        | Event::Gate(_)
        | Event::Writer(_)
        | Event::Review(_) => lives,
    })
}

fn control(envelope: &Envelope, event: &ControlEvent) -> Option<(&'static str, String)> {
    let who = &envelope.actor.name;
    match event {
        ControlEvent::StopRequested { level, scope, reason, inherited } => {
            let level = u8::from(*level);
            let from = inherited.map_or(String::new(), |parent| format!(", inherited from {parent}"));
            let what = format!("{who} asked for level {level}, the {}{from}", scope.as_str());
            Some(("request", what + &because(reason.as_deref())))
        }
        ControlEvent::StopRaised { to, reason, .. } => {
            let by_deadline = reason.as_deref() == Some(DEADLINE_PASSED);
            let channel = if by_deadline { "deadline" } else { "request" };
            Some((channel, format!("raised to level {}{}", u8::from(*to), because(reason.as_deref()))))
        }
        ControlEvent::StopApplied { level, channel, tool, refused, .. } => {
            let how = if *refused { "instead of carrying out" } else { "in the answer to" };
            Some((channel.as_str(), format!("level {} told {how} {tool}", u8::from(*level))))
        }
        ControlEvent::StopComplied { how } => {
            Some(("agent", format!("the agent complies: {}", complies(*how))))
        }
        ControlEvent::StopWithdrawn { reason } => {
            Some(("request", format!("{who} took it back{}", because(reason.as_deref()))))
        }
        ControlEvent::EndBlocked { why } => Some(("agent", why.clone())),
        ControlEvent::StopSettled {} => Some(("end", "the turn is over; the session can go on".to_owned())),
        ControlEvent::NoticeSent { to, .. } => Some((
            "parent",
            to.map_or("no ancestor lives; operators are notified".to_owned(), |to| {
                format!("{to} is notified")
            }),
        )),
        ControlEvent::GuidanceSettled { notes, how: Settled::Undelivered } => {
            Some(("guidance", format!("not delivered, because the session ended: {}", notes.len())))
        }
        ControlEvent::GuidanceQueued { .. }
        | ControlEvent::GuidanceDelivered { .. }
        | ControlEvent::GuidanceReturned { .. }
        | ControlEvent::GuidanceSettled { .. }
        | ControlEvent::Introduced { .. }
        | ControlEvent::HandedOff { .. }
        | ControlEvent::CommandRefused { .. }
        | ControlEvent::SignalUnexpected { .. } => None,
    }
}

fn complies(how: lanyard_core::session::Compliance) -> &'static str {
    use lanyard_core::session::Compliance;
    match how {
        Compliance::HandOff => "it handed off",
        Compliance::Complete => "it completes",
        Compliance::Acknowledge => "it heard",
    }
}

fn ended(how: &RunEnd) -> String {
    match how {
        RunEnd::Exited { code } => format!("nothing of the agent lives; it exited with {code}"),
        RunEnd::Signalled { signal } => format!("nothing of the agent lives; it ended by signal {signal}"),
        RunEnd::Lost => "nothing of the agent lives".to_owned(),
        RunEnd::HostLost => "the machine was restarted".to_owned(),
        RunEnd::NotStarted { .. } => "the agent had not started".to_owned(),
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map_or(String::new(), |reason| format!(": {reason}"))
}

fn made(at: Timestamp, channel: &str, what: String) -> StopStep {
    StopStep { at, channel: channel.to_owned(), what }
}
