//! Which agents there are, whether one works, and having one there again.

use std::path::Path;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path as PathOf, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use lanyard_api::agents::naming;
use lanyard_api::agents::settings::DriverKind;
use lanyard_api::types::{AgentCheck, AgentEntry, AgentList, AgentProblem, NewResume, Reason};
use lanyard_core::session::{
    AgentAbility, Command, DrivenBy, IMPORTED, ResumeWay, Run, State as SessionState, lacks_of_capabilities,
};
use lanyard_core::{Outcome, Session};

use crate::api::App;
use crate::api::branches::BranchRefusal;
use crate::api::context::{Change, Target, load, missing, query};
use crate::api::lacks;
use crate::api::sessions::{command_on, not_rolling_back};
use crate::problem::Problem;
use lanyard_agents::agents::roster::{CheckOutcome, Listed};
use lanyard_agents::agents::{COMPACT_WAIT, CompactionAnswer};
use lanyard_agents::history::history_of;
use lanyard_agents::runs::foreign;

type Shared = State<Arc<App>>;

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ListQuery {
    versions: bool,
}

pub(super) async fn list(State(app): Shared, uri: Uri) -> Result<Json<AgentList>, Problem> {
    let query: ListQuery = query(&uri)?;
    let listed = app.agents.list(query.versions).await;
    let default = app.agents.default_name().ok();
    Ok(Json(AgentList { agents: listed.into_iter().map(entry).collect(), default }))
}

pub(super) async fn check(
    State(app): Shared,
    PathOf(name): PathOf<String>,
    _: Change<Reason>,
) -> Result<Json<AgentCheck>, Problem> {
    let Some(checked) = app.agents.check(&name).await else {
        let refusal = app.agents.named(&name).err();
        let refusal = refusal.unwrap_or_else(|| naming::unknown(&name, &[], false));
        return Err(Problem::of_agent(StatusCode::NOT_FOUND, refusal));
    };
    Ok(Json(report(name, checked)))
}

pub(super) async fn resume(
    State(app): Shared,
    target: Target,
    change: Change<NewResume>,
) -> Result<Response, Problem> {
    not_rolling_back(&app, target.0)?;
    let session = load(&app, target.0).await?.session;
    let command = resume_command(&app, &session, change.body.ways.clone())?;
    if !change.body.force {
        not_open_elsewhere(&app, &session, true).await?;
    }
    command_on(&app, target, change, command, StatusCode::ACCEPTED).await
}

/// The command that brings a session's agent back. An agent that is started again for each turn has no process between
/// turns, so only a stopped session of it can be resumed.
pub(super) fn resume_command(app: &App, session: &Session, ways: Vec<ResumeWay>) -> Result<Command, Problem> {
    let stopped = session.state == SessionState::Stopped;
    // Turns of a session without an agent are reported by a client of the API, which may report more of them.
    if !stopped || session.hands.agent.is_some() {
        can_be_run(app, session)?;
    }
    let agent = session.hands.agent.as_deref().unwrap_or_default();
    let per_turn = session.terminal.is_none()
        && app.agents.settings(agent).is_some_and(|settings| settings.driver == DriverKind::Command);
    if per_turn && !session.state.is_ended() && session.turn.is_none() && !session.archived {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "agent_per_turn",
            format!("the agent `{agent}` is started again for each turn; there is no process to bring back"),
            "send a prompt with `lanyard send`; the turn says how the conversation goes on",
        ));
    }
    Ok(Command::Resume { ways, per_turn })
}

/// Refuses to continue a conversation that the agent's own program may have open: one that its own host ran so far, or
/// that was imported and has no run yet. The program is looked for in the folder of the session.
pub(super) async fn not_open_elsewhere(
    app: &App,
    session: &Session,
    takes_over: bool,
) -> Result<(), Problem> {
    let foreign = match session.driver() {
        DrivenBy::Host => takes_over,
        DrivenBy::Lanyard | DrivenBy::Nobody => {
            session.source == IMPORTED && session.run.is_none() && session.run_wanted.is_none()
        }
        DrivenBy::Parent => false,
    };
    let settings = session.hands.agent.as_deref().and_then(|agent| app.agents.settings(agent));
    let kind = settings.as_ref().and_then(history_of);
    let (true, Some(kind), Some(folder)) =
        (foreign && session.native.is_some(), kind, session.workspace.clone())
    else {
        return Ok(());
    };
    let (program, place) = (kind.as_str(), folder.clone());
    let found = tokio::task::spawn_blocking(move || {
        let place = Path::new(&place);
        foreign::foreign(program, &place.canonicalize().unwrap_or_else(|_| place.to_owned()))
    });
    let Some(pid) = found.await.map_err(|_| missing("process table"))? else { return Ok(()) };
    Err(Problem::new(
        StatusCode::CONFLICT,
        "conversation_open_elsewhere",
        format!("process {pid} runs {} in {folder} and may have this conversation open", kind.title()),
        "end that process and repeat it; if it has another conversation open, use `lanyard resume --force`",
    ))
}

/// Refuses a session whose agent the config does not have: Lanyard could not start one.
pub(super) fn can_be_run(app: &App, session: &Session) -> Result<(), Problem> {
    let agent = session.hands.agent.as_deref().unwrap_or_default();
    if app.agents.settings(agent).is_none() {
        let title = match &session.hands.agent {
            Some(agent) => format!("the session's agent `{agent}` is not in the config"),
            None => "the session has no agent".to_owned(),
        };
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "agent_not_configured",
            title,
            "hand it to an agent of `lanyard agents` with `lanyard migrate --agent`",
        ));
    }
    Ok(())
}

/// Refuses a turn that no process could carry out: its agent is not in the config, or its program is missing. A session
/// that somebody else runs, one whose agent is there already, and one that is over are for the engine to judge.
pub(super) fn can_take_turn(app: &App, session: &Session) -> Result<(), Problem> {
    let over = session.state.is_ended() || session.deleted;
    if over || session.driver() != DrivenBy::Lanyard || session.live_run().is_some() {
        return Ok(());
    }
    can_be_run(app, session)?;
    if let Some(tree) = session.tree.as_ref().filter(|tree| tree.removed) {
        let (session, branch) = (session.id, tree.branch.clone());
        return Err(BranchRefusal::Discarded { session, branch }.into());
    }
    let agent = session.hands.agent.as_deref().unwrap_or_default();
    app.agents
        .can_start(agent, session.terminal.as_ref())
        .map_err(|refusal| Problem::of_agent(StatusCode::CONFLICT, refusal))
}

/// The agent's own event says when it is done, and with what sizes.
pub(super) async fn compact(
    State(app): Shared,
    target: Target,
    _: Change<Reason>,
) -> Result<Response, Problem> {
    let session = load(&app, target.0).await?.session;
    // Without a process that is the reason, whatever the agent can do.
    if session.run.as_ref().is_some_and(Run::is_live) {
        lacks::admit(&app, &session, AgentAbility::Compact).await?;
    }
    let key = format!("{:032x}", app.clock.random());
    match app.wishes.compact(target.0, key, COMPACT_WAIT).await {
        CompactionAnswer::Begun => {
            let (seq, state) = (session.seq, session.state.name());
            let stop_level = session.stop.as_ref().map(|stop| stop.level.into());
            let outcome = Outcome {
                session: target.0,
                seq,
                events: 0,
                state,
                turn: None,
                note: None,
                comment: None,
                delivery: None,
                continuity: None,
                stop_level,
                warnings: Vec::new(),
            };
            Ok((StatusCode::ACCEPTED, Json(outcome)).into_response())
        }
        CompactionAnswer::NotOffered => Err(Problem::new(
            StatusCode::CONFLICT,
            "compact_not_offered",
            "the agent cannot compact its context now",
            "wait for the turn to end and try again",
        )),
        CompactionAnswer::NotRunning => Err(Problem::new(
            StatusCode::CONFLICT,
            "agent_not_running",
            "no process of the session's agent is running",
            "have it there with `lanyard resume`",
        )),
        CompactionAnswer::Unanswered => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "agent_not_answering",
            format!(
                "the agent's runner did not answer within {} s; nothing was done",
                COMPACT_WAIT.as_secs()
            ),
            "try again; if it lasts, end the run with `lanyard stop` and bring it back with `lanyard resume`",
        )),
    }
}

pub(super) fn entry(listed: Listed) -> AgentEntry {
    AgentEntry {
        checked: listed.checked.map(|checked| report(listed.name.clone(), checked)),
        name: listed.name,
        configured: listed.configured,
        driver: listed.driver,
        command: listed.command,
        found: listed.found.map(|place| place.display().to_string()),
        version: listed.version,
    }
}

fn report(name: String, checked: CheckOutcome) -> AgentCheck {
    match checked {
        CheckOutcome::Works { info, capabilities, warnings } => {
            let lacks = lacks_of_capabilities(&name, capabilities);
            let (info, capabilities) = (Some(info), Some(capabilities));
            AgentCheck { name, works: true, info, capabilities, lacks, warnings, problem: None }
        }
        CheckOutcome::Fails { code, what } => {
            let problem = Some(AgentProblem { code, what });
            let (lacks, warnings) = (Vec::new(), Vec::new());
            AgentCheck { name, works: false, info: None, capabilities: None, lacks, warnings, problem }
        }
    }
}
