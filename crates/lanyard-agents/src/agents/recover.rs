//! After a start: what an earlier daemon's runs have come to. Those that live are taken over, exactly where the log
//! stands; of the others the log learns how they ended, and nothing of them is left behind.

use std::collections::HashSet;
use std::time::Duration;

use lanyard_core::SessionId;
use lanyard_core::session::{InterruptCause, Receipt, Run, RunEnd, Session, Signal};
use tokio::sync::mpsc;

use crate::agents::again::auto_resume;
use crate::agents::desk::Desk;
use crate::agents::runner::{About, ORDERS_MAX, Runner, how_of, process_of};
use crate::runs::cgroup;
use crate::runs::{Adopted, Exit, How, KnownRun, Link, Runs};
use lanyard_base::failpoint;

/// Grace for what a run left behind when its supervisor died.
const SWEEP_GRACE: Duration = Duration::from_secs(2);
/// Runs that are looked at side by side: each may take the grace.
const AT_ONCE: usize = 32;

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
    for group in known.chunks(AT_ONCE) {
        let looks = group.iter().map(|known| tokio::spawn(look(desk.shared.runs.clone(), known.run.clone())));
        let looks: Vec<_> = looks.collect();
        for (known, found) in group.iter().zip(looks) {
            let found = found.await.unwrap_or_else(|_| Found::Ended(Exit::lost(0)));
            if let Some(session) = Box::pin(recover_one(desk, known, found)).await {
                adopted.insert(session);
            }
        }
    }
    sweep_groups(&desk.shared.runs);
    // The subagents of those that live go on with them.
    let mirrored = desk.shared.mirrored();
    for session in &mirrored {
        desk.shared.look_at(*session).await;
    }
    adopted.extend(mirrored);
    adopted
}

/// Removes the control groups of runs that are no more. Those of runs without a folder were made just before a crash.
fn sweep_groups(runs: &Runs) {
    if let (Ok(delegated), Ok(known)) = (cgroup::delegated(), runs.list()) {
        delegated.sweep(&known.into_iter().map(|known| known.run).collect::<Vec<_>>());
    }
}

/// What became of a run. One without a supervisor has been swept, so that nothing of it lives.
enum Found {
    Live(Link),
    Ended(Exit),
    HostLost,
}

async fn look(runs: Runs, run: String) -> Found {
    match runs.adopt(&run).await {
        Ok(Adopted::Live(link)) => return Found::Live(link),
        Ok(Adopted::Gone { host_lost: true }) => return Found::HostLost,
        Ok(Adopted::Ended(exit)) if !exit.is_lost() => return Found::Ended(exit),
        // An earlier sweep may have been cut short.
        Ok(Adopted::Ended(_) | Adopted::Gone { host_lost: false }) => {}
        Err(error) => {
            tracing::warn!(run, %error, "a run cannot be taken over; what is left of it is ended");
        }
    }
    Found::Ended(sweep(&runs, &run).await)
}

async fn recover_one(desk: &mut Desk, known: &KnownRun, found: Found) -> Option<SessionId> {
    failpoint::hit("in_recover");
    let about = known.about.clone().and_then(|about| serde_json::from_value::<About>(about).ok());
    let session = match &about {
        Some(about) => desk.shared.session(about.session).await,
        None => None,
    };
    let held = session.as_ref().and_then(|session| session.live_run());
    let held = held.filter(|held| held.id.to_string() == known.run).cloned();
    let ours = about.zip(session).zip(held).map(|((about, session), held)| Ours { about, session, held });
    match (found, ours) {
        (Found::Live(link), Some(ours)) if ours.session.state.is_ended() || ours.session.deleted => {
            let exit = end_stray(desk, known, &link).await;
            tell_end(desk, &ours, &exit, "the session needed it no more").await;
            None
        }
        (Found::Live(link), Some(ours)) => go_on(desk, ours, known, link).await,
        (Found::Live(link), None) => {
            tracing::warn!(run = known.run, "a run that no session knows is ended");
            end_stray(desk, known, &link).await;
            None
        }
        (Found::Ended(exit), Some(ours)) => read_rest(desk, ours, known, exit).await,
        (Found::HostLost, Some(ours)) => {
            let how = RunEnd::HostLost;
            // An agent that is run once per turn is started with its prompt.
            if let Some(turn) = ours.about.turn {
                desk.shared.note(ours.session.id, Signal::TurnDelivered { turn }).await;
            }
            tell(desk, &ours, how, "the machine was started anew", Receipt::default()).await;
            forget(desk, known);
            None
        }
        (Found::Ended(_) | Found::HostLost, None) => {
            forget(desk, known);
            None
        }
    }
}

/// A run that a session knows.
struct Ours {
    about: About,
    session: Session,
    held: Run,
}

/// It lives, and somebody looks after it again.
async fn go_on(desk: &mut Desk, ours: Ours, known: &KnownRun, link: Link) -> Option<SessionId> {
    let id = ours.session.id;
    let (sender, orders) = mpsc::channel(ORDERS_MAX);
    let runner =
        Runner::adopted(desk.shared.clone(), &ours.session, &ours.held, &ours.about, link.clone(), orders);
    let Some(mut runner) = runner.await else {
        tracing::warn!(session = %id, run = known.run, "its agent is configured no more; the run is ended");
        let exit = end_stray(desk, known, &link).await;
        tell_end(desk, &ours, &exit, "its agent is configured no more").await;
        return None;
    };
    desk.shared.note(id, Signal::RunAdopted { run: ours.held.id }).await;
    tracing::info!(session = %id, run = known.run, "goes on with a run of an earlier daemon");
    desk.employ(id, sender, async move {
        runner.recall().await;
        Box::pin(runner.catch_up(&ours.session)).await;
        Box::pin(runner.run()).await
    });
    Some(id)
}

/// It ended while no daemon was there: a runner reads what it said last, and tells how it ended.
async fn read_rest(desk: &mut Desk, ours: Ours, known: &KnownRun, exit: Exit) -> Option<SessionId> {
    const WHY: &str = "it ended while no daemon was there";
    let link = match desk.shared.runs.ended(&known.run, &exit) {
        Ok(link) => link,
        Err(error) => {
            tracing::warn!(run = known.run, %error, "the last words of a run cannot be read");
            tell_end(desk, &ours, &exit, WHY).await;
            forget(desk, known);
            return None;
        }
    };
    let (sender, orders) = mpsc::channel(ORDERS_MAX);
    let runner = Runner::adopted(desk.shared.clone(), &ours.session, &ours.held, &ours.about, link, orders);
    let Some(mut runner) = runner.await else {
        tell_end(desk, &ours, &exit, WHY).await;
        forget(desk, known);
        return None;
    };
    let id = ours.session.id;
    desk.employ(id, sender, async move {
        Box::pin(runner.catch_up(&ours.session)).await;
        Box::pin(runner.run()).await
    });
    Some(id)
}

/// Ends what is left of a run without a supervisor. What that took is kept with the run.
async fn sweep(runs: &Runs, run: &str) -> Exit {
    if let Err(error) = runs.sweep(run, SWEEP_GRACE).await {
        tracing::error!(run, %error, "what is left of a run could not be ended");
    }
    match runs.adopt(run).await {
        Ok(Adopted::Ended(exit)) => exit,
        Ok(Adopted::Live(_) | Adopted::Gone { .. }) | Err(_) => Exit::lost(0),
    }
}

fn forget(desk: &Desk, known: &KnownRun) {
    if let Err(error) = desk.shared.runs.forget(&known.run) {
        tracing::warn!(run = known.run, %error, "the folder of a run could not be removed");
    }
}

async fn tell_end(desk: &Desk, ours: &Ours, exit: &Exit, why: &str) {
    let receipt = Receipt { processes: exit.ended.iter().map(process_of).collect(), ..Receipt::default() };
    tell(desk, ours, how_of(exit.how), why, receipt).await;
}

/// The log of the session, and those of the subagents that lived in the same process, learn of the end.
async fn tell(desk: &Desk, ours: &Ours, how: RunEnd, why: &str, receipt: Receipt) {
    let cause = match how {
        RunEnd::HostLost => InterruptCause::HostLost,
        RunEnd::Lost | RunEnd::Exited { .. } | RunEnd::Signalled { .. } | RunEnd::NotStarted { .. } => {
            InterruptCause::Crash
        }
    };
    let (run, reason) = (ours.held.id, Some(why.to_owned()));
    let signal = Signal::RunEnded { run, how, cause: Some(cause), reason, receipt };
    for child in desk.shared.mirrors_of(ours.session.id, run).await {
        desk.shared.note(child.id, signal.clone()).await;
    }
    desk.shared.note(ours.session.id, signal).await;
    let session = &ours.session;
    let settings = desk.shared.settings.agent(session.hands.agent.as_deref().unwrap_or_default());
    if let (Some(settings), Some(lost), None) = (&settings, &session.turn, &session.stop) {
        auto_resume(&desk.shared, settings, session.id, run, lost).await;
    }
}

async fn end_stray(desk: &Desk, known: &KnownRun, link: &Link) -> Exit {
    let _ = link.end(SWEEP_GRACE).await;
    let mut exit = link.exited().await;
    if exit.how == How::Lost {
        exit = sweep(&desk.shared.runs, &known.run).await;
    }
    forget(desk, known);
    exit
}
