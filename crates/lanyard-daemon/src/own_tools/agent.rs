//! `memory_agent`: taking one's place, handing off, ending, and looking at the others.

use lanyard_core::SessionId;
use lanyard_core::paper::{AgentSeat, Handover, TEXT_CHARS_MAX, optional};
use lanyard_core::session::{Command, Signal};
use lanyard_core::text::{NAME_CHARS_MAX, cut, one_line};
use lanyard_store::Store;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::families::{By, FamilyError, Said};
use crate::own_tools::args::{need, session_id};
use crate::own_tools::caller::{Mates, Me, ToolCaller, on_disk, place};
use crate::own_tools::orphans::{self, Choice};
use crate::own_tools::schema::{About, tool as describe};
use crate::own_tools::workspace::{self, Ended};
use crate::own_tools::{Answer, Told, steps};
use crate::shelf;
use crate::tool_refusal::Refused;
use lanyard_engine::engine::Ask;

pub(super) const NAME: &str = "memory_agent";

/// An agent that has not said what it is.
const UNNAMED: &str = "agent";

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// Take your place, once, before other work (`agent_type`; `plan` to join one). Answers your session id, role and
    /// nonce; a coordinator also hears of orphaned sessions.
    Init,
    /// Hand off `to` another agent with a `reason`, and `notes` on what is done and what is open. Complies with a stop.
    Handoff,
    /// End your session with a `summary`, and `evidence` if there is any. Complies with a stop.
    Complete,
    /// Say that you have seen a directive and are complying.
    Ack,
    /// The sessions of your workspace and plan (`all`: ended ones too).
    List,
    /// How the plan, or your session, went from hand to hand.
    Lineage,
    /// Decide on an orphaned `session` with `choice`. Only coordinators.
    Orphan,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What to do.
    action: Action,
    /// `init`: what you are, such as `Coordinator` or `Executor`.
    agent_type: Option<String>,
    /// `init`: the plan to join when your session has none. `list`, `lineage`: another plan of your workspace.
    plan: Option<String>,
    /// Only for callers without a session.
    workspace: Option<String>,
    /// `init`: the session id your host gave you, if it did.
    extension_session_id: Option<String>,
    /// `handoff`: whom to, such as `Coordinator`. Yourself is fine.
    to: Option<String>,
    /// `handoff`, `orphan`: why, in a sentence.
    reason: Option<String>,
    /// `handoff`: what is done, what is open, what is half done.
    notes: Option<String>,
    /// `complete`: what was achieved.
    summary: Option<String>,
    /// `complete`: what shows it, such as a test's output.
    evidence: Option<String>,
    /// `orphan`, `lineage`: the session's id.
    session: Option<String>,
    /// `orphan`: what becomes of it.
    choice: Option<Choice>,
    /// `list`: ended sessions too.
    all: Option<bool>,
}

pub(super) fn tool() -> Value {
    describe::<Args>(&About {
        name: NAME,
        title: "Agent",
        description: "Your own session: take your place (`init`) before other work, hand off, complete. After a stop \
                      directive, `handoff`, `complete` and `ack` are the calls to make. Coordinators decide here on \
                      orphaned sessions.",
        reads_only: false,
        destructive: true,
    })
}

pub(super) async fn call(caller: &ToolCaller, args: Args) -> Told {
    match args.action {
        Action::Init => init(caller, args).await,
        Action::Handoff => handoff(caller, args).await,
        Action::Complete => complete(caller, args).await,
        Action::Ack => ack(caller),
        Action::List => list(caller, args).await,
        Action::Lineage => lineage(caller, args).await,
        Action::Orphan => {
            let session = session_id(&need("session", args.session)?)?;
            orphans::settle(caller, session, need("choice", args.choice)?, args.reason).await
        }
    }
}

async fn init(caller: &ToolCaller, args: Args) -> Told {
    caller.may_write()?;
    let workspace = caller.workspace(args.workspace.as_deref())?;
    let agent_type = args.agent_type.or_else(|| caller.me.as_ref().and_then(|me| me.agent_type.clone()));
    let plan = match &caller.me {
        Some(me) => joined(caller, me, &workspace, args.plan).await?,
        None => args.plan,
    };
    let mut value = json!({
        "session_id": caller.id(),
        "agent_type": agent_type,
        "role": if caller.is_hub() { "hub" } else { "subagent" },
        "workspace": caller.me.as_ref().map_or(Some(&workspace), |me| me.session.workspace.as_ref()),
        "plan": plan,
    });
    let mut texts = Vec::new();
    if let Some(me) = &caller.me {
        let id = me.session.id;
        let nonce = caller.app.tokens.nonce(id);
        value["parent_session_id"] = json!(me.session.parent);
        value["nonce"] = nonce.as_str().into();
        let depth = me.lineage.depth();
        value["can_delegate"] = (!me.session.policy.leaf && depth < me.session.policy.depth_limit).into();
        let short = lanyard_core::paper::instructions::short(id, &nonce);
        // An agent that Lanyard runs has a connection of its own.
        texts.push(match me.session.live_run() {
            Some(_) => short,
            None => format!(
                "Put \"_session_id\": \"{id}\" into the input of every call of an MCP tool, and of no built-in \
                 tool.\n{short}"
            ),
        });
        let seat = AgentSeat { agent_type, plan: plan.clone(), ..AgentSeat::of(id) };
        record_init(caller, &workspace, seat, args.extension_session_id).await?;
        if let Some(plan) = &plan {
            caller.join(plan).await?;
        }
    }
    // Without anything to report the shape stays as it is.
    if let Some(name) = plan.clone() {
        let released = release(caller, workspace.clone(), name).await?;
        if !released.is_empty() {
            value["released_steps"] = released.into();
        }
    }
    if caller.is_hub() {
        let found = orphans::find(caller, &workspace, plan.as_deref()).await?;
        if !found.is_empty() {
            value["warning"] = orphans::warning(found.len()).into();
            value["orphaned_sessions"] = found.into();
        }
    }
    Ok(Answer { value, texts, ..Answer::default() })
}

/// The plan the session is at after this, checked: its own cannot be exchanged for another.
async fn joined(
    caller: &ToolCaller,
    me: &Me,
    workspace: &str,
    asked: Option<String>,
) -> Result<Option<String>, Refused> {
    let Some(asked) = asked else { return Ok(me.plan.clone()) };
    let made_for = me.session.plan.clone().filter(|_| !me.session.plan_joined);
    let (own, workspace) = (made_for, workspace.to_owned());
    on_disk(&caller.app, move |store| {
        let Some(own) = own else {
            return Ok(Some(shelf::plan(store, &workspace, &asked)?.id.to_string()));
        };
        let found = shelf::find_plan(store, &workspace, &own)?;
        if asked == own || found.is_some_and(|plan| plan.is_called(&asked)) {
            return Ok(Some(own));
        }
        Err(Refused::new(
            "plan_mismatch",
            format!("your session was made for the plan `{own}`, not for `{asked}`"),
            "leave `plan` out",
        ))
    })
    .await
}

/// Keeps what the agent said of itself, and the id it knows the session by, in the session's log and its seat.
async fn record_init(
    caller: &ToolCaller,
    workspace: &str,
    said: AgentSeat,
    extension: Option<String>,
) -> Result<(), Refused> {
    for (field, text) in [("agent_type", &said.agent_type), ("extension_session_id", &extension)] {
        optional(field, text.as_deref())?;
    }
    let id = said.session;
    let signal = Signal::Introduced {
        agent: said.agent_type.clone().unwrap_or_else(|| UNNAMED.to_owned()),
        // Where the host minted none, Lanyard did.
        extension_session_id: Some(extension.clone().unwrap_or_else(|| id.to_string())),
    };
    caller.ask(Ask::Tell { session: id, signals: vec![signal] }).await?;
    let (workspace, now) = (workspace.to_owned(), caller.app.clock.now());
    on_disk(&caller.app, move |store| {
        shelf::amend_seat(store, &workspace, id, now, |seat| {
            seat.agent_type.clone_from(&said.agent_type);
            seat.plan.clone_from(&said.plan);
            seat.extension_session_id = extension.clone().or_else(|| seat.extension_session_id.take());
            seat.taken_at = Some(now);
            seat.taken = seat.taken.saturating_add(1);
            Ok(())
        })
    })
    .await
}

/// Frees the steps of sessions that have ended, and of no others. A plan nobody wrote down has none.
async fn release(caller: &ToolCaller, workspace: String, name: String) -> Result<Vec<u32>, Refused> {
    let now = caller.app.clock.now();
    on_disk(&caller.app, move |store| {
        if shelf::find_plan(store, &workspace, &name)?.is_none_or(|plan| plan.holders().is_empty()) {
            return Ok(Vec::new());
        }
        let (_, released) = shelf::amend_plan(store, &workspace, &name, now, |plan| {
            let left = steps::left(store, &plan.holders())?;
            Ok(plan.release(|id| left.contains(&id)))
        })?;
        Ok(released)
    })
    .await
}

async fn handoff(caller: &ToolCaller, args: Args) -> Told {
    let me = caller.me()?;
    caller.may_write()?;
    let workspace = caller.workspace(args.workspace.as_deref())?;
    let handover = Handover {
        timestamp: caller.app.clock.now(),
        from: me.agent_type.clone().unwrap_or_else(|| UNNAMED.to_owned()),
        to: need("to", args.to)?,
        reason: need("reason", args.reason)?,
        notes: args.notes,
        session: Some(me.session.id),
    };
    handover.check()?;
    let (id, plan) = (me.session.id, me.plan.clone());
    let stopping = me.session.stop.is_some();
    let Handover { from, to, reason, .. } = handover.clone();
    caller.ask(Ask::Tell { session: id, signals: vec![Signal::HandedOff { from, to, reason }] }).await?;
    on_disk(&caller.app, move |store| {
        let now = handover.timestamp;
        shelf::amend_seat(store, &workspace, id, now, |seat| Ok(seat.hand_over(handover.clone())?))?;
        let in_plan = in_lineage(store, &workspace, plan.as_deref(), &handover)?;
        let mut value = json!({ "handed_off": handover, "in_lineage_of_plan": in_plan });
        if stopping {
            value["next"] = "now end your session: memory_agent, action complete".into();
        }
        Ok(value.into())
    })
    .await
}

/// Adds to the lineage of the plan, where there is one that somebody wrote down.
fn in_lineage(
    store: &dyn Store,
    workspace: &str,
    plan: Option<&str>,
    handover: &Handover,
) -> Result<Value, Refused> {
    let Some(name) = plan else { return Ok(Value::Null) };
    if shelf::find_plan(store, workspace, name)?.is_none() {
        return Ok(Value::Null);
    }
    let (_, id) = shelf::amend_plan(store, workspace, name, handover.timestamp, |plan| {
        plan.hand_over(handover.clone())?;
        Ok(plan.id)
    })?;
    Ok(json!(id))
}

async fn complete(caller: &ToolCaller, args: Args) -> Told {
    let id = caller.me()?.session.id;
    let summary = need("summary", args.summary)?;
    for (field, text) in [("summary", Some(&summary)), ("evidence", args.evidence.as_ref())] {
        if text.is_some_and(|text| cut(text, TEXT_CHARS_MAX).1) {
            return Err(lanyard_core::paper::PaperRefusal::TooLong { field, max: TEXT_CHARS_MAX }.into());
        }
    }
    // The note comes first: once the session has ended, its agent may be gone before anything else is done.
    caller.may_write()?;
    let args_evidence = args.evidence.clone();
    let evidence = args.evidence.map_or(String::new(), |evidence| format!("\nEvidence: {evidence}"));
    note(caller, format!("Completed: {summary}{evidence}")).await?;
    report(caller, id, &summary, args_evidence).await?;
    let command = Command::Complete { reason: Some(one_line(&summary, NAME_CHARS_MAX)) };
    let outcome = caller.ask(Ask::Do { session: id, command }).await?;
    Ok(json!({ "session_id": id, "state": outcome.state, "completed": true }).into())
}

/// What came of its task, where it works at one: whoever it works for hears it in these words.
async fn report(
    caller: &ToolCaller,
    id: SessionId,
    summary: &str,
    evidence: Option<String>,
) -> Result<(), Refused> {
    if caller.me()?.session.task.is_none() {
        return Ok(());
    }
    let said = Said::Completed { summary: summary.to_owned(), evidence };
    let by = By { actor: caller.actor.clone(), session: Some(id) };
    match caller.app.families.ask(move |owner| owner.report(id, said, None, &by)).await {
        // Its task has ended, or went on without it: the session may end all the same.
        Ok(_) | Err(FamilyError::Task(_) | FamilyError::Refused { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The whole summary, where the plan's readers find it.
async fn note(caller: &ToolCaller, words: String) -> Result<(), Refused> {
    let me = caller.me()?;
    let Some(plan) = me.plan.clone() else { return Ok(()) };
    let (workspace, by, now) = (caller.workspace(None)?, caller.name(), caller.app.clock.now());
    on_disk(&caller.app, move |store| {
        // One that is archived or not written down takes no notes, and keeps nobody from ending.
        if shelf::find_plan(store, &workspace, &plan)?.is_none_or(|plan| plan.archived) {
            return Ok(());
        }
        let (words, _) = cut(&words, TEXT_CHARS_MAX);
        shelf::amend_plan(store, &workspace, &plan, now, |plan| Ok(plan.note(words, &by, now)?))?;
        Ok(())
    })
    .await
}

fn ack(caller: &ToolCaller) -> Told {
    let me = caller.me()?;
    let stop = me.session.stop.as_ref();
    let mut value = json!({
        "session_id": me.session.id,
        "acknowledged": true,
        "stop_level": stop.map(|stop| stop.level),
    });
    if stop.is_some() {
        value["next"] = "hand off (action handoff), then complete (action complete)".into();
    }
    Ok(value.into())
}

async fn list(caller: &ToolCaller, args: Args) -> Told {
    let workspace = caller.workspace(args.workspace.as_deref())?;
    let plan = args.plan.or_else(|| caller.me.as_ref().and_then(|me| me.plan.clone()));
    let (me, everyone) = (caller.me.clone(), caller.me.is_none() && plan.is_none());
    let all = if args.all.unwrap_or(false) { Ended::With } else { Ended::Without };
    on_disk(&caller.app, move |store| {
        let mates = Mates::in_workspace(store, &workspace)?;
        let mut listed = Vec::new();
        let family = me.as_ref().map(|me| me.session.id);
        for row in workspace::sessions(store, &workspace, family, all)? {
            let mine = me.as_ref().is_some_and(|me| row.parent == Some(me.session.id) || row.id == me.session.id);
            if everyone || mine || mates.is_at(row.id, row.plan.as_deref(), plan.as_deref())? {
                listed.push(json!({
                    "session_id": row.id, "agent_type": row.agent, "title": row.title, "state": row.state,
                    "status": row.status, "parent_session_id": row.parent, "plan": row.plan, "level": row.level,
                    "last_activity_at": row.last_activity_at,
                }));
            }
        }
        Ok(json!({ "workspace": workspace, "plan": plan, "sessions": listed }).into())
    })
    .await
}

async fn lineage(caller: &ToolCaller, args: Args) -> Told {
    let workspace = caller.workspace(args.workspace.as_deref())?;
    if let Some(session) = args.session {
        let session: SessionId = session_id(&session)?;
        let seen = caller.visible(session).await?;
        return on_disk(&caller.app, move |store| {
            let place = place(store, &seen.session, &seen.lineage)?;
            let seat = shelf::seat(store, &place, session)?;
            Ok(json!({ "session_id": session, "lineage": seat.lineage }).into())
        })
        .await;
    }
    let plan = args.plan.or_else(|| caller.me.as_ref().and_then(|me| me.plan.clone()));
    let me = caller.id();
    on_disk(&caller.app, move |store| match (plan, me) {
        (Some(plan), _) => {
            let plan = shelf::plan(store, &workspace, &plan)?;
            Ok(json!({ "plan": plan.id, "current_agent": plan.current_agent, "lineage": plan.lineage })
                .into())
        }
        (None, Some(me)) => {
            let seat = shelf::seat(store, &workspace, me)?;
            Ok(json!({ "session_id": me, "lineage": seat.lineage }).into())
        }
        (None, None) => Err(Refused::missing("plan")),
    })
    .await
}
