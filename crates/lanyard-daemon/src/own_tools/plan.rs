//! `memory_plan`: plans with phases, a status, and who has them in hand.

use lanyard_core::PlanId;
use lanyard_core::paper::{NewPlan, Plan, PlanChange, PlanStatus, Priority};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::own_tools::Told;
use crate::own_tools::args::need;
use crate::own_tools::caller::{ToolCaller, on_disk};
use crate::own_tools::schema::{About, tool as describe};
use crate::shelf;
use crate::tool_refusal::Refused;

pub(super) const NAME: &str = "memory_plan";

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// Make a plan (`title`; also `goal`, `phases`, `priority`, `name`). It begins as a draft, and becomes yours when
    /// your session has none.
    Create,
    /// The whole plan: steps, notes, lineage.
    Get,
    /// The plans of the workspace, one line each.
    List,
    /// Change `title`, `goal`, `status`, `priority`, `phases`, `current_phase` or `current_agent`.
    Update,
    /// Add a note (`text`).
    Note,
    /// Put a plan away. It can be read and not changed.
    Archive,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What to do.
    action: Action,
    /// The plan's id (`plan_…`) or name; your session's own when left out.
    plan: Option<String>,
    /// Only for callers without a session.
    workspace: Option<String>,
    /// One line.
    title: Option<String>,
    /// What shall be true in the end.
    goal: Option<String>,
    /// `create`: another name for the plan, by which sessions may know it.
    name: Option<String>,
    /// From draft to active or failed; from active to paused, completed (all steps done) or failed; from paused to
    /// active or failed; from completed or failed back to active.
    status: Option<PlanStatus>,
    /// How urgent it is.
    priority: Option<Priority>,
    /// The phases, in order.
    phases: Option<Vec<String>>,
    /// One of the phases.
    current_phase: Option<String>,
    /// Who has it in hand, such as `Coordinator`.
    current_agent: Option<String>,
    /// `note`: the words.
    text: Option<String>,
    /// `list`: archived ones too.
    archived: Option<bool>,
}

pub(super) fn tool() -> Value {
    describe::<Args>(&About {
        name: NAME,
        title: "Plans",
        description: "Keep plans that outlive sessions: create one, read it, move its status and phase, note what was \
                      learned. Steps are memory_steps; hand-offs (memory_agent) are in the plan's lineage.",
        reads_only: false,
        destructive: false,
    })
}

pub(super) async fn call(caller: &ToolCaller, args: Args) -> Told {
    match args.action {
        Action::Create => create(caller, args).await,
        Action::Get => get(caller, args).await,
        Action::List => list(caller, args).await,
        Action::Update => {
            let change = PlanChange {
                title: args.title,
                goal: args.goal,
                status: args.status,
                priority: args.priority,
                phases: args.phases,
                current_phase: args.current_phase,
                current_agent: args.current_agent,
            };
            if change == PlanChange::default() {
                return Err(Refused::new("nothing_to_change", "nothing to change was named", "name a field"));
            }
            amend(caller, args.workspace, args.plan, move |plan| {
                check_status(plan, change.status)?;
                Ok(plan.update(change.clone())?)
            })
            .await
        }
        Action::Note => {
            let (text, by, now) = (need("text", args.text)?, caller.name(), caller.app.clock.now());
            amend(caller, args.workspace, args.plan, move |plan| Ok(plan.note(&text, &by, now)?)).await
        }
        Action::Archive => {
            amend(caller, args.workspace, args.plan, |plan| {
                plan.archive();
                Ok(())
            })
            .await
        }
    }
}

/// Cancelling a plan ends its tasks, and starting it again is for the operator who cancelled it.
fn check_status(plan: &Plan, to: Option<PlanStatus>) -> Result<(), Refused> {
    match to.filter(|to| *to != plan.status && plan.status.needs_operator(*to)) {
        Some(to) => Err(Refused::new(
            "plan_for_operator",
            format!("only an operator moves a plan from {} to {to}", plan.status),
            "ask the person you work for to run `lanyard plan cancel` or `lanyard plan start`",
        )),
        None => Ok(()),
    }
}

async fn create(caller: &ToolCaller, args: Args) -> Told {
    caller.may_write()?;
    let workspace = caller.workspace(args.workspace.as_deref())?;
    let own = caller.me.as_ref().and_then(|me| me.plan.clone());
    // A session that was made for a plan stays with it.
    let bound = caller.me.as_ref().is_some_and(|me| me.session.plan.is_some() && !me.session.plan_joined);
    let new = NewPlan {
        name: args.name,
        title: need("title", args.title)?,
        goal: args.goal,
        priority: args.priority.unwrap_or_default(),
        phases: args.phases.unwrap_or_default(),
        current_agent: args.current_agent.or_else(|| caller.me.as_ref().and_then(|me| me.agent_type.clone())),
    };
    let (now, by, me) = (caller.app.clock.now(), caller.name(), caller.id());
    let id = PlanId::mint(now, caller.app.clock.random());
    let status = args.status;
    let (joins, answer) = on_disk(&caller.app, move |store| {
        let known = shelf::plans(store, &workspace)?;
        if known.len() >= shelf::PLANS_MAX {
            let what = format!("this workspace has {} plans already", known.len());
            return Err(Refused::new("plans_full", what, "go on with one of them"));
        }
        let mut new = new;
        // A session made for a plan that nobody has written down yet writes it down.
        let unwritten = own.as_ref().filter(|own| !known.iter().any(|plan| plan.is_called(own)));
        new.name = new.name.or_else(|| unwritten.cloned());
        if let Some(name) = &new.name
            && known.iter().any(|plan| plan.is_called(name))
        {
            let what = format!("another plan here is called `{name}`");
            return Err(Refused::new(
                "plan_name_taken",
                what,
                "choose another name, or go on with that plan",
            ));
        }
        let mut plan = Plan::new(id, new, &by, now)?;
        if let Some(status) = status {
            check_status(&plan, Some(status))?;
            plan.update(PlanChange { status: Some(status), ..PlanChange::default() })?;
        }
        let version =
            shelf::create(store, &shelf::place(shelf::PLAN, &workspace, id.to_string()), now, &plan)?;
        // Of several plans a session has made, it is at the first that is not over.
        let at_work = |own: &String| known.iter().any(|plan| plan.is_called(own) && !plan.is_over());
        let joins = me.filter(|_| !bound && !own.as_ref().is_some_and(at_work));
        if let Some(me) = joins {
            shelf::amend_seat(store, &workspace, me, now, |seat| {
                seat.plan = Some(id.to_string());
                Ok(())
            })?;
        }
        Ok((joins.is_some(), whole(&plan, version).into()))
    })
    .await?;
    if joins {
        caller.join(&id.to_string()).await?;
    }
    Ok(answer)
}

async fn get(caller: &ToolCaller, args: Args) -> Told {
    let workspace = caller.workspace(args.workspace.as_deref())?;
    let name = caller.plan_name(args.plan)?;
    on_disk(&caller.app, move |store| {
        let id = shelf::plan(store, &workspace, &name)?.id;
        let paper = store.paper(&shelf::place(shelf::PLAN, &workspace, id.to_string()))?;
        let paper =
            paper.ok_or_else(|| Refused::new("plan_not_found", "the plan is gone", "list the plans"))?;
        Ok(whole(&shelf::decode(&paper)?, paper.version).into())
    })
    .await
}

async fn list(caller: &ToolCaller, args: Args) -> Told {
    let workspace = caller.workspace(args.workspace.as_deref())?;
    let archived = args.archived.unwrap_or(false);
    let status = args.status;
    on_disk(&caller.app, move |store| {
        let plans = shelf::plans(store, &workspace)?.into_iter();
        let plans = plans.filter(|plan| archived || !plan.archived);
        let plans = plans.filter(|plan| status.is_none_or(|status| plan.status == status));
        let plans: Vec<Value> = plans.map(|plan| line(&plan)).collect();
        Ok(json!({ "workspace": workspace, "plans": plans }).into())
    })
    .await
}

async fn amend(
    caller: &ToolCaller,
    workspace: Option<String>,
    plan: Option<String>,
    mut change: impl FnMut(&mut Plan) -> Result<(), Refused> + Send + 'static,
) -> Told {
    caller.may_write()?;
    let workspace = caller.workspace(workspace.as_deref())?;
    let name = caller.plan_name(plan)?;
    let now = caller.app.clock.now();
    on_disk(&caller.app, move |store| {
        let (version, plan) = shelf::amend_plan(store, &workspace, &name, now, |plan| {
            change(plan)?;
            Ok(plan.clone())
        })?;
        let mut shown = line(&plan);
        shown["version"] = version.into();
        Ok(shown.into())
    })
    .await
}

/// A plan in one line.
pub(super) fn line(plan: &Plan) -> Value {
    let done = plan.steps.iter().filter(|step| step.done).count();
    let mut line = json!({
        "id": plan.id, "title": plan.title, "status": plan.status, "priority": plan.priority,
        "current_phase": plan.current_phase, "current_agent": plan.current_agent,
        "steps": plan.steps.len(), "done": done,
    });
    if let Some(name) = &plan.name {
        line["name"] = name.as_str().into();
    }
    if plan.archived {
        line["archived"] = true.into();
    }
    line
}

fn whole(plan: &Plan, version: u64) -> Value {
    let mut whole = serde_json::to_value(plan).unwrap_or_default();
    whole["version"] = version.into();
    whole
}
