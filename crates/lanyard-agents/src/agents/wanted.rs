//! Runs that were asked for and were not there yet when the last daemon ended. A resume that was acknowledged has an
//! outcome: the run is started now, unless all work is halted.

use std::collections::HashSet;
use std::hash::BuildHasher;

use lanyard_core::journal::Row;
use lanyard_core::session::{Effect, Receipt, ResumeWay, RunEnd, Signal};
use lanyard_core::{Actor, Cause, RunId, SessionId};
use lanyard_store::{Filter, Owed, Store, StoreError};

use crate::agents::Wishes;
use crate::agents::engine::{AgentAsk, AgentEngine, AgentRequest};
use lanyard_base::clock::Clock;

/// Sessions that are listed at a time.
const PAGE: usize = 256;

/// A run that a session waits for.
#[derive(Debug)]
pub struct WantedRun {
    pub session: SessionId,
    agent: String,
    ways: Vec<ResumeWay>,
}

/// What was wanted. Asked before anything is settled: the end of a run that had begun settles the wish for it.
pub fn wanted(store: &dyn Store) -> Result<Vec<WantedRun>, StoreError> {
    let mut wanted = Vec::new();
    for row in owed(store, Owed::Run)? {
        if let Some(ways) = store.load(row.id)?.and_then(|held| held.session.run_wanted) {
            wanted.push(WantedRun { session: row.id, agent: row.agent.unwrap_or_default(), ways });
        }
    }
    Ok(wanted)
}

/// All sessions for which something is still to be done, however many there are.
pub fn owed(store: &dyn Store, owed: Owed) -> Result<Vec<Row>, StoreError> {
    let filter = Filter { owed: Some(owed), ..Filter::default() };
    let (mut rows, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.list(&filter, cursor.as_ref(), PAGE)?;
        rows.extend(page.rows);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(rows);
        }
    }
}

/// Starts those that nobody works for. While all work is halted, their log learns that they did not come to be.
pub async fn revive(
    wanted: Vec<WantedRun>,
    adopted: &HashSet<SessionId, impl BuildHasher>,
    (engine, wishes, clock): (&dyn AgentEngine, &Wishes, &Clock),
) {
    for run in wanted.into_iter().filter(|run| !adopted.contains(&run.session)) {
        let session = run.session;
        if engine.is_halted() {
            give_up(run, engine, RunId::mint(clock.now(), clock.random())).await;
        } else if !wishes.put(session, Effect::Revive { ways: run.ways }) {
            tracing::warn!(%session, "too much waits for the agents; a run that was asked for is not started");
        }
    }
}

async fn give_up(WantedRun { session, agent, .. }: WantedRun, engine: &dyn AgentEngine, run: RunId) {
    let driver = "none".to_owned();
    let begun = Signal::RunStarted {
        run,
        agent,
        driver,
        mirrored: false,
        steers: false,
        sandbox: None,
        account: None,
    };
    let (how, reason) = (
        RunEnd::NotStarted { code: "halted".to_owned() },
        Some("halted: an operator halted all work".to_owned()),
    );
    let ended = Signal::RunEnded { run, how, cause: None, reason, receipt: Receipt::default() };
    let cause = Some(Cause::Signal(begun.name().to_owned()));
    // A run that had begun and has no process ends first.
    let ask = AgentAsk::Tell { session, signals: vec![Signal::DaemonRestarted, begun, ended] };
    let request = AgentRequest { ask, actor: Actor::system("boot"), cause, once: None };
    if let Err(error) = engine.ask(request).await {
        tracing::warn!(%session, %error, "a run that was asked for could not be settled");
    }
}
