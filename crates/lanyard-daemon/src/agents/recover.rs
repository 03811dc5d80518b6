//! After a start: what an earlier daemon's runs have come to. Those that live are taken over, exactly where the log
//! stands; of the others the log learns how they ended, and nothing of them is left behind.

use std::collections::HashSet;
use std::time::Duration;

use lanyard_core::session::{InterruptCause, Receipt, RunEnd, RunPhase, Session, Signal};
use lanyard_core::{RunId, SessionId};
use tokio::sync::mpsc;

use crate::agents::again::auto_resume;
use crate::agents::desk::Desk;
use crate::agents::runner::{ORDERS_MAX, Runner, how_of, process_of};
use crate::runs::{Adopted, Exit, How, Known, Link};

/// Grace for what a run left behind when its supervisor died.
const SWEEP_GRACE: Duration = Duration::from_secs(2);

/// Takes over what lives. Answers which sessions have a process that goes on with their turn.
pub(super) async fn recover(desk: &mut Desk) -> HashSet<SessionId> {
    let mut adopted = HashSet::new();
    let known = match desk.shared.runs.list() {
        Ok(known) => known,
        Err(error) => {
            tracing::error!(%error, "the folders of runs cannot be listed");
            return adopted;
        }
    };
    for known in known {
        if let Some(session) = recover_one(desk, &known).await {
            adopted.insert(session);
        }
    }
    // The subagents of those that live go on with them.
    adopted.extend(desk.shared.mirrored());
    adopted
}

async fn recover_one(desk: &mut Desk, known: &Known) -> Option<SessionId> {
    let session = known.about.as_ref().and_then(|about| about["session"].as_str()?.parse::<SessionId>().ok());
    let session = match session {
        Some(session) => desk.shared.session(session).await,
        None => None,
    };
    let held = session.as_ref().and_then(|session| session.live_run());
    let held = held.filter(|held| held.id.to_string() == known.run).cloned();
    match (desk.shared.runs.adopt(&known.run).await, session, held) {
        (Ok(Adopted::Live(link)), Some(session), Some(held)) => {
            let (sender, orders) = mpsc::channel(ORDERS_MAX);
            let id = session.id;
            let runner = Runner::adopted(desk.shared.clone(), &session, &held, link.clone(), orders).await;
            let Some(mut runner) = runner else {
                tracing::warn!(session = %id, run = known.run, "its agent is configured no more; the run is ended");
                end_stray(desk, known, &link).await;
                tell_end(desk, &session, held.id, RunEnd::Lost, None, Receipt::default()).await;
                return None;
            };
            if held.phase == RunPhase::Ready {
                desk.shared.note(id, Signal::RunAdopted { run: held.id }).await;
            }
            tracing::info!(session = %id, run = known.run, "goes on with a run of an earlier daemon");
            desk.employ(id, sender, async move {
                runner.catch_up(&session).await;
                runner.run().await
            });
            Some(id)
        }
        (Ok(Adopted::Live(link)), _, None) | (Ok(Adopted::Live(link)), None, _) => {
            tracing::warn!(run = known.run, "a run that no session knows is ended");
            end_stray(desk, known, &link).await;
            None
        }
        (Ok(Adopted::Ended(exit)), Some(session), Some(held)) => {
            read_rest(desk, &session, &held, known, exit).await
        }
        (Ok(Adopted::Gone { host_lost }), Some(session), Some(held)) => {
            sweep(desk, &session, held.id, known, host_lost).await;
            None
        }
        (Err(error), session, held) => {
            tracing::warn!(run = known.run, %error, "a run cannot be taken over; what is left of it is ended");
            if let (Some(session), Some(held)) = (session, held) {
                sweep(desk, &session, held.id, known, false).await;
            } else {
                let _ = desk.shared.runs.sweep(&known.run, SWEEP_GRACE).await;
                let _ = desk.shared.runs.forget(&known.run);
            }
            None
        }
        (Ok(Adopted::Gone { .. } | Adopted::Ended(_)), _, _) => {
            let _ = desk.shared.runs.sweep(&known.run, SWEEP_GRACE).await;
            let _ = desk.shared.runs.forget(&known.run);
            None
        }
    }
}

/// It ended while no daemon was there: a runner reads what it said last, and tells how it ended.
async fn read_rest(
    desk: &mut Desk,
    session: &Session,
    held: &lanyard_core::session::Run,
    known: &Known,
    exit: Exit,
) -> Option<SessionId> {
    let link = match desk.shared.runs.ended(&known.run, &exit) {
        Ok(link) => link,
        Err(error) => {
            tracing::error!(run = known.run, %error, "the last words of a run cannot be read");
            let how = how_of(exit.how);
            let processes = exit.ended.iter().map(process_of).collect();
            let receipt = Receipt { tried: Vec::new(), processes };
            tell_end(desk, session, held.id, how, None, receipt).await;
            let _ = desk.shared.runs.forget(&known.run);
            return None;
        }
    };
    let (sender, orders) = mpsc::channel(ORDERS_MAX);
    let runner = Runner::adopted(desk.shared.clone(), session, held, link, orders).await?;
    let (id, session) = (session.id, session.clone());
    desk.employ(id, sender, async move {
        let mut runner = runner;
        runner.catch_up(&session).await;
        runner.run().await
    });
    Some(id)
}

async fn sweep(desk: &Desk, session: &Session, run: RunId, known: &Known, host_lost: bool) {
    let swept = desk.shared.runs.sweep(&known.run, SWEEP_GRACE).await.unwrap_or_default();
    let receipt = Receipt { tried: Vec::new(), processes: swept.iter().map(process_of).collect() };
    let (how, cause) =
        if host_lost { (RunEnd::HostLost, Some(InterruptCause::HostLost)) } else { (RunEnd::Lost, None) };
    tell_end(desk, session, run, how, cause, receipt).await;
    let _ = desk.shared.runs.forget(&known.run);
    let agent = session.hands.agent.as_deref().unwrap_or_default();
    if let (Some(settings), Some(lost), None) =
        (desk.shared.settings.get(agent), &session.turn, &session.stop)
    {
        auto_resume(&desk.shared, settings, session.id, run, lost).await;
    }
}

async fn tell_end(
    desk: &Desk,
    session: &Session,
    run: RunId,
    how: RunEnd,
    cause: Option<InterruptCause>,
    receipt: Receipt,
) {
    let reason = match how {
        RunEnd::HostLost => "the machine was started anew",
        RunEnd::Lost | RunEnd::Exited { .. } | RunEnd::Signalled { .. } | RunEnd::NotStarted { .. } => {
            "its supervisor died while no daemon was there"
        }
    };
    let cause = Some(cause.unwrap_or(InterruptCause::Crash));
    let reason = Some(reason.to_owned());
    let signal = Signal::RunEnded { run, how, cause, reason, receipt };
    desk.shared.note(session.id, signal).await;
}

async fn end_stray(desk: &Desk, known: &Known, link: &Link) {
    let _ = link.end(SWEEP_GRACE).await;
    let exit = link.exited().await;
    if exit.how == How::Lost {
        let _ = desk.shared.runs.sweep(&known.run, SWEEP_GRACE).await;
    }
    let _ = desk.shared.runs.forget(&known.run);
}
