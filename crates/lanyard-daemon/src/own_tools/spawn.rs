//! `memory_spawn_agent`: the child's session is made and linked first, then its prompt. A child
//! Lanyard is to start is a task, as those of the tool `tasks` are.

use lanyard_core::SessionId;
use lanyard_core::paper::{Bounds, Brief, NAME_CHARS_MAX, instructions};
use lanyard_core::session::{DrivenBy, NewSession};
use lanyard_core::task::{Isolation, NewTask};
use lanyard_core::text::cut;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::families::{Adding, By, FamilyError};
use crate::own_tools::args::need;
use crate::own_tools::caller::{ToolCaller, on_disk};
use crate::own_tools::schema::{About, tool as describe};
use crate::own_tools::{Answer, Told};
use crate::shelf;
use crate::tool_refusal::Refused;
use lanyard_engine::engine::Ask;

pub(super) const NAME: &str = "memory_spawn_agent";

/// Where sessions come from that agents make.
const SOURCE: &str = "spawn";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    #[default]
    /// Make the child's session and answer its id and the prompt. You start the agent, with that prompt as it is.
    Prepare,
    /// The same, and Lanyard starts the agent: `agent` must be one of its configured agents.
    Start,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What to do; `prepare` when left out.
    action: Option<Action>,
    /// Which agent, such as `Executor`, or a configured one such as `opencode` for `start`.
    agent: Option<String>,
    /// The task, in your own words.
    prompt: Option<String>,
    /// One line for listings.
    title: Option<String>,
    /// The plan it works on; yours when left out.
    plan: Option<String>,
    /// The phase it works in.
    phase: Option<String>,
    /// Where it works; your workspace when left out. Only callers without a session may name another.
    workspace: Option<String>,
    /// What it is to keep to.
    bounds: Option<Bounds>,
    /// Whether it may spawn agents itself. No when left out.
    may_spawn: Option<bool>,
}

pub(super) fn tool() -> Value {
    describe::<Args>(&About {
        name: NAME,
        title: "Spawn an agent",
        description: "Give part of your work to another agent. Its session is made and linked to yours before it starts, \
                      so that it can be watched, guided and stopped. The prompt you get back tells it its session, its \
                      bounds and how to answer a stop; pass it on as it is.",
        reads_only: false,
        destructive: false,
    })
}

pub(super) async fn call(caller: &ToolCaller, args: Args) -> Told {
    caller.may_write()?;
    let agent = need("agent", args.agent.clone())?;
    let prompt = need("prompt", args.prompt.clone())?;
    if args.action.unwrap_or_default() == Action::Start {
        return start(caller, args, agent, prompt).await;
    }
    let place = caller.workspace(args.workspace.as_deref())?;
    let plan = plan(caller, &place, args.plan.clone()).await?;
    let workspace = match &caller.me {
        Some(me) => me.session.workspace.clone(),
        None => Some(place).filter(|text| !text.is_empty()),
    };
    let id = SessionId::mint(caller.app.clock.now(), caller.app.clock.random());
    let bounds = args.bounds.clone().unwrap_or_default();
    let may_spawn = args.may_spawn.unwrap_or(false);
    let nonce = caller.app.tokens.nonce(id);
    // Made before the session, so that a prompt that cannot be used leaves no session behind.
    let text = Brief {
        workspace: workspace.as_deref(),
        plan: plan.as_deref(),
        phase: args.phase.as_deref(),
        session: id,
        parent: caller.id(),
        nonce: &nonce,
        // It is started by its parent's own means and uses the parent's connection.
        caller: instructions::CallAttribution::ByArgument,
        agent: &agent,
        bounds: &bounds,
        may_spawn,
        subagents: false,
        prompt: &prompt,
    }
    .text()?;
    let shown_workspace = workspace.clone();
    let new = NewSession {
        title: args.title.or_else(|| Some(title(&prompt))),
        agent: Some(agent.clone()),
        source: Some(SOURCE.to_owned()),
        workspace,
        plan: plan.clone(),
        phase: args.phase,
        leaf: !may_spawn,
        // Its own host starts it, whatever the agent is called: it is told of a stop in the answers to its calls.
        driven_by: Some(DrivenBy::Host),
        ..NewSession::default()
    };
    caller.ask(Ask::Create { id, new: Box::new(new), parent: caller.id() }).await?;
    let mut value = json!({
        "session_id": id, "parent_session_id": caller.id(), "agent": agent, "plan": plan, "started": false,
    });
    value["next"] = "start the agent with the prompt in the next block, word for word".into();
    let prep_config = json!({
        "session_id": id, "agent_name": value["agent"], "workspace_id": shown_workspace, "plan_id": value["plan"],
        "enriched_prompt": text,
    });
    let own = Map::from_iter([("prep_config".to_owned(), prep_config)]);
    Ok(Answer { value, own, texts: vec![text] })
}

/// A task of Lanyard's, in the caller's own workspace: its end comes into the caller's mailbox.
async fn start(caller: &ToolCaller, args: Args, agent: String, prompt: String) -> Told {
    if let Err(refusal) = caller.app.agents.named(&agent) {
        let advice = "name one of those, or use action prepare and start it yourself";
        return Err(Refused::new(refusal.code, refusal.title, advice));
    }
    let place = caller.workspace(args.workspace.as_deref())?;
    let workspace = match &caller.me {
        Some(me) => me.session.workspace.clone(),
        None => Some(place).filter(|text| !text.is_empty()),
    };
    let new = NewTask {
        title: args.title.unwrap_or_else(|| title(&prompt)),
        prompt: Some(prompt),
        agent: Some(agent.clone()),
        workspace,
        isolation: Isolation::Shared,
        may_spawn: Some(args.may_spawn.unwrap_or(false)),
        bounds: args.bounds,
        ..NewTask::default()
    };
    let by = By { actor: caller.actor.clone(), session: caller.id() };
    let task = caller
        .app
        .families
        .ask(move |owner| {
            let made = owner.add(Adding { tasks: vec![new], plan: None }, &by)?;
            let id = made.first().copied().ok_or_else(|| FamilyError::NoTask("new".to_owned()))?;
            owner.deploy(id, false, &by)?;
            Ok(owner.task(id)?.clone())
        })
        .await?;
    Ok(json!({
        "task_id": task.id, "session_id": task.session, "parent_session_id": caller.id(), "agent": agent,
        "started": true, "next": "wait for it with tasks, action await; its end also comes to you by itself",
    })
    .into())
}

/// The plan of the child, by its id where it is written down. Another than the caller's own must be.
async fn plan(
    caller: &ToolCaller,
    workspace: &str,
    asked: Option<String>,
) -> Result<Option<String>, Refused> {
    let own = caller.me.as_ref().and_then(|me| me.plan.clone());
    let Some(name) = asked.or_else(|| own.clone()) else { return Ok(None) };
    let workspace = workspace.to_owned();
    on_disk(&caller.app, move |store| match shelf::find_plan(store, &workspace, &name)? {
        Some(_) => Ok(Some(name)),
        None if own.as_deref() == Some(name.as_str()) => Ok(Some(name)),
        None => shelf::plan(store, &workspace, &name).map(|plan| Some(plan.id.to_string())),
    })
    .await
}

/// The beginning of the task, on one line.
pub(super) fn title(prompt: &str) -> String {
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("spawned");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    cut(&line, NAME_CHARS_MAX).0.to_owned()
}
