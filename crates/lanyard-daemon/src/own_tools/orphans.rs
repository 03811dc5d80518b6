//! Sessions of a plan that seem to have no agent any more: what is known of them, and what the coordinator
//! decides. None is ever marked as completed, and nothing happens to one that shows a sign of life.

use lanyard_core::paper::{Facts, Liveness, judge, looks_after};
use lanyard_core::session::{Command, InterruptCause, Receipt, Signal, StopScope};
use lanyard_core::text::{NAME_CHARS_MAX, one_line};
use lanyard_core::{Session, SessionId};
use lanyard_store::{Loaded, Store};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::own_tools::ToolContext;
use crate::own_tools::caller::{Mates, Me, ToolCaller, load, on_disk, place};
use crate::own_tools::workspace::{self, Ended};
use crate::own_tools::{Told, traces};
use crate::shelf;
use crate::tool_refusal::Refused;
use lanyard_engine::engine::Ask;

/// Sessions whose logs are looked into for one report.
const LOOKED_AT_MAX: usize = 200;
/// Orphans that are told at once.
const TOLD_MAX: usize = 50;
/// Why a session ended that was cleaned up.
const CLEANED: &str = "orphaned_auto_cleanup";

/// What becomes of an orphan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Choice {
    /// It becomes your child, with all below it.
    Adopt,
    /// Its agent is brought back, where Lanyard runs it. Only when it is really orphaned.
    Resume,
    /// A stop is asked for; it takes the usual way.
    Stop,
    /// It is ended as failed, and its steps are free again. Only when it is really orphaned.
    Clean,
}

pub(super) fn warning(count: usize) -> String {
    let (what, them) = match count {
        1 => ("1 session seems".to_owned(), "it"),
        count => (format!("{count} sessions seem"), "them"),
    };
    format!(
        "{what} to have nobody working on {them} any more. Look at what is known and decide: memory_agent, action \
         orphan, with session and choice (adopt, resume, stop or clean). One that is only suspected may be thinking."
    )
}

/// The orphans of the workspace and plan, and of the caller's own family.
pub(super) async fn find(
    caller: &ToolCaller,
    workspace: &str,
    plan: Option<&str>,
) -> Result<Vec<Value>, Refused> {
    let (app, me) = (caller.app.clone(), caller.me.clone());
    let (workspace, plan) = (workspace.to_owned(), plan.map(str::to_owned));
    on_disk(&caller.app, move |store| {
        let mates = Mates::in_workspace(store, &workspace)?;
        let family = me.as_ref().map(|me| me.session.id);
        let mut rows = workspace::sessions(store, &workspace, family, Ended::Without)?;
        let suspect_after = app.config.rules().staleness.suspect_after_ms;
        rows.retain(|row| app.clock.elapsed_ms(row.last_activity_at) >= suspect_after);
        let mut found = Vec::new();
        for row in rows.into_iter().take(LOOKED_AT_MAX) {
            let loaded = load(store, row.id)?;
            if is_above(me.as_ref(), row.id) || found.len() >= TOLD_MAX {
                continue;
            }
            let mine = is_below(me.as_ref(), &loaded);
            if !mine && !mates.is_at(row.id, row.plan.as_deref(), plan.as_deref())? {
                continue;
            }
            let (facts, verdict) = look(&app, store, me.as_ref(), &loaded.session)?;
            if let Liveness::Suspected | Liveness::Orphaned = verdict {
                found.push(told(store, &loaded, &facts, verdict)?);
            }
        }
        Ok(found)
    })
    .await
}

/// Itself, or one it belongs to.
fn is_above(me: Option<&Me>, id: SessionId) -> bool {
    me.is_some_and(|me| me.session.id == id || me.lineage.ancestors.contains(&id))
}

fn is_below(me: Option<&Me>, loaded: &Loaded) -> bool {
    me.is_some_and(|me| loaded.lineage.ancestors.contains(&me.session.id))
}

fn look(
    app: &ToolContext,
    store: &dyn Store,
    me: Option<&Me>,
    session: &Session,
) -> Result<(Facts, Liveness), Refused> {
    let staleness = &app.config.rules().staleness;
    let quiet_ms = app.clock.elapsed_ms(session.last_activity_at);
    let other_parent = session.parent.filter(|parent| me.is_none_or(|me| me.session.id != *parent));
    let looked_after = match other_parent {
        Some(parent) => store.load(parent)?.is_some_and(|parent| {
            let quiet_ms = app.clock.elapsed_ms(parent.session.last_activity_at);
            looks_after(&parent.session, quiet_ms, staleness)
        }),
        None => false,
    };
    let facts = Facts::of(session, quiet_ms, looked_after, store.waits_below(session.id)?);
    Ok((facts, judge(&facts, staleness)))
}

fn told(store: &dyn Store, loaded: &Loaded, facts: &Facts, verdict: Liveness) -> Result<Value, Refused> {
    let session = &loaded.session;
    let place = place(store, session, &loaded.lineage)?;
    let traces = traces::of(store, session.id, &place)?;
    let seat = shelf::seat(store, &place, session.id)?;
    let called = session.last_tool_call.as_ref();
    Ok(json!({
        "sessionId": session.id,
        "agentType": seat.agent_type.as_ref().or(session.hands.agent.as_ref()),
        "startedAt": session.created_at,
        "lastToolCall": called.map(|call| json!({
            "toolName": call.tool, "timestamp": call.at, "callCount": call.count,
        })),
        "state": verdict,
        "what_is_known": {
            "session_state": session.state.name(),
            "cause": session.state.cause(),
            "process": facts.process,
            "quiet_ms": facts.quiet_ms,
            "turns": session.turns,
            "turn_running": session.turn.is_some(),
            "open_calls": session.open_calls.len(),
            "calls_in_flight": session.calls_in_flight,
            "waits_for_person": facts.waits_for_person,
            "parent": session.parent,
            "stop_level": session.stop.as_ref().map(|stop| stop.level),
            "last_message": traces.last_words,
            "files": traces.files,
        },
    }))
}

/// Does what the coordinator decided.
pub(super) async fn settle(
    caller: &ToolCaller,
    id: SessionId,
    choice: Choice,
    reason: Option<String>,
) -> Told {
    caller.may_write()?;
    if !caller.is_hub() {
        return Err(Refused::new(
            "hub_only",
            "only a session without a parent decides on orphans",
            "tell whoever coordinates you",
        ));
    }
    let loaded = caller.visible(id).await?;
    if is_above(caller.me.as_ref(), id) {
        return Err(Refused::new("not_orphaned", "that is your own session", "name another one"));
    }
    let (app, me, session) = (caller.app.clone(), caller.me.clone(), loaded.session.clone());
    let (facts, verdict) =
        on_disk(&caller.app, move |store| look(&app, store, me.as_ref(), &session)).await?;
    check(id, choice, verdict)?;
    match choice {
        Choice::Adopt => adopt(caller, &loaded.session).await?,
        Choice::Resume => resume(caller, &loaded.session).await?,
        Choice::Stop => {
            let reason = Some(one_line(reason.as_deref().unwrap_or("orphaned"), NAME_CHARS_MAX));
            caller
                .ask(Ask::Do {
                    session: id,
                    command: Command::Stop { reason, scope: StopScope::Session, now: false },
                })
                .await?;
        }
        Choice::Clean => {
            let command = Command::Fail { reason: Some(CLEANED.to_owned()) };
            caller.ask(Ask::Do { session: id, command }).await?;
        }
    }
    let released = if choice == Choice::Clean { release(caller, &loaded).await? } else { Vec::new() };
    let after = caller.visible(id).await?.session;
    let mut value = json!({
        "session_id": id, "choice": format!("{choice:?}").to_lowercase(), "was": verdict, "process": facts.process,
        "state": after.state.name(), "parent": after.parent,
        "stop_level": after.stop.as_ref().map(|stop| stop.level),
    });
    if !released.is_empty() {
        value["released_steps"] = released.into();
    }
    Ok(value.into())
}

fn check(id: SessionId, choice: Choice, verdict: Liveness) -> Result<(), Refused> {
    match (verdict, choice) {
        (Liveness::Live, _) => Err(Refused::new(
            "not_orphaned",
            format!("session {id} shows signs of life, or rests as it should"),
            "leave it; guide or stop it if it should end",
        )),
        (Liveness::Ended, _) => Err(Refused::new(
            "session_ended",
            format!("session {id} has ended"),
            "there is nothing to decide",
        )),
        (Liveness::Suspected, Choice::Resume | Choice::Clean) => Err(Refused::new(
            "only_suspected",
            format!("session {id} is quiet, and nobody knows yet that it is gone"),
            "wait, or choose stop or adopt",
        )),
        (Liveness::Suspected, Choice::Adopt | Choice::Stop) | (Liveness::Orphaned, _) => Ok(()),
    }
}

async fn adopt(caller: &ToolCaller, orphan: &Session) -> Result<(), Refused> {
    let me = caller.me()?.session.id;
    // One of its own is adopted already.
    if orphan.parent != Some(me) {
        caller.ask(Ask::Link { child: orphan.id, parent: me }).await?;
    }
    Ok(())
}

async fn resume(caller: &ToolCaller, orphan: &Session) -> Result<(), Refused> {
    let app = &caller.app;
    let agent = orphan.hands.agent.as_deref().unwrap_or_default();
    if app.agents.settings(agent).is_none() {
        return Err(Refused::new(
            "agent_not_configured",
            format!("Lanyard does not run `{agent}`"),
            "adopt the session and spawn another agent for its work, or clean it up",
        ));
    }
    if app.rollbacks.lock().contains(&orphan.id) {
        return Err(Refused::new(
            "rollback_running",
            "its workspace is being taken back to a checkpoint",
            "try again in a moment",
        ));
    }
    if orphan.turn.is_some() {
        // Nobody works on that turn any more; it cannot go on, and nothing new begins beside it.
        let signal = Signal::TurnLost {
            cause: InterruptCause::Crash,
            reason: Some("nobody works on it any more".to_owned()),
            receipt: Receipt::default(),
        };
        caller.ask(Ask::Tell { session: orphan.id, signals: vec![signal] }).await?;
    }
    let command = Command::Resume { ways: Vec::new(), per_turn: false };
    caller.ask(Ask::Do { session: orphan.id, command }).await?;
    Ok(())
}

/// What it had taken is free again.
async fn release(caller: &ToolCaller, orphan: &Loaded) -> Result<Vec<u32>, Refused> {
    let (id, now) = (orphan.session.id, caller.app.clock.now());
    let (orphan, made_for) = (orphan.clone(), orphan.session.plan.clone());
    on_disk(&caller.app, move |store| {
        let place = place(store, &orphan.session, &orphan.lineage)?;
        let plan = match made_for {
            Some(plan) => Some(plan),
            None => shelf::seat(store, &place, id)?.plan,
        };
        let Some(name) = plan else { return Ok(Vec::new()) };
        if shelf::find_plan(store, &place, &name)?.is_none_or(|plan| !plan.holders().contains(&id)) {
            return Ok(Vec::new());
        }
        let (_, released) =
            shelf::amend_plan(store, &place, &name, now, |plan| Ok(plan.release(|by| by == id)))?;
        Ok(released)
    })
    .await
}
