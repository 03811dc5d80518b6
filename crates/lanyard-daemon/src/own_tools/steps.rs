//! `memory_steps`: the steps of a plan. A step that a session has taken stays its own until it is done or the session has
//! ended.

use std::collections::HashSet;

use lanyard_core::SessionId;
use lanyard_core::paper::steps::Hand;
use lanyard_core::paper::{NewStep, Plan, Step, StepChange, StepKind};
use lanyard_store::Store;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::own_tools::Told;
use crate::own_tools::args::need;
use crate::own_tools::caller::{ToolCaller, on_disk};
use crate::own_tools::schema::{About, tool as describe};
use crate::shelf;
use crate::tool_refusal::Refused;

pub(super) const NAME: &str = "memory_steps";

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// Add `steps`, all or none.
    Add,
    /// Change one `step`: `task`, `phase`, `type`, `notes`, `acceptance`, `done`.
    Update,
    /// The steps, of one `phase` or those that are `done` or not.
    List,
    /// Take the next open step (of one `phase`) and work on it. Asking again gives the one you have.
    Next,
    /// One `step` is done; say in `evidence` what shows it.
    Complete,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What to do.
    action: Action,
    /// The plan's id or name; your session's own when left out.
    plan: Option<String>,
    /// Only for callers without a session.
    workspace: Option<String>,
    /// `add`: the steps.
    steps: Option<Vec<NewStep>>,
    /// The step's number.
    step: Option<u32>,
    /// What is to be done.
    task: Option<String>,
    /// One of the plan's phases.
    phase: Option<String>,
    /// What sort of work it is.
    #[serde(rename = "type")]
    kind: Option<StepKind>,
    /// What is worth knowing about it.
    notes: Option<String>,
    /// How one knows that it is done.
    acceptance: Option<Vec<String>>,
    /// Whether it is done.
    done: Option<bool>,
    /// `complete`: what shows that it is done, such as a test's output.
    evidence: Option<String>,
}

pub(super) fn tool() -> Value {
    describe::<Args>(&About {
        name: NAME,
        title: "Steps",
        description: "Work through a plan: add steps with acceptance criteria, take the next one, complete it with \
                      evidence. Agents that share a plan never get the same step.",
        reads_only: false,
        destructive: false,
    })
}

pub(super) async fn call(caller: &ToolCaller, args: Args) -> Told {
    match args.action {
        Action::List => list(caller, args).await,
        Action::Add => {
            let steps = need("steps", args.steps)?;
            amend(caller, args.workspace, args.plan, move |plan, _, _| {
                let added = plan.add_steps(steps.clone())?;
                Ok(json!({ "added": added }))
            })
            .await
        }
        Action::Next => {
            let phase = args.phase;
            amend(caller, args.workspace, args.plan, move |plan, hand, left| {
                let step = plan.next_step(phase.as_deref(), hand, |id| left.contains(&id))?.cloned();
                let open = plan.steps.iter().filter(|step| !step.done).count();
                Ok(json!({ "step": step, "open": open }))
            })
            .await
        }
        Action::Update => {
            let number = need("step", args.step)?;
            let change = StepChange {
                task: args.task,
                phase: args.phase,
                kind: args.kind,
                notes: args.notes,
                acceptance: args.acceptance,
                done: args.done,
            };
            if change == StepChange::default() {
                return Err(Refused::new("nothing_to_change", "nothing to change was named", "name a field"));
            }
            amend(caller, args.workspace, args.plan, move |plan, hand, left| {
                let step = plan.update_step(number, change.clone(), hand, |id| left.contains(&id))?;
                Ok(json!({ "step": step }))
            })
            .await
        }
        Action::Complete => {
            let number = need("step", args.step)?;
            let evidence = args.evidence;
            amend(caller, args.workspace, args.plan, move |plan, hand, left| {
                let step =
                    plan.complete_step(number, evidence.clone(), hand, |id| left.contains(&id))?.clone();
                let open = plan.steps.iter().filter(|step| !step.done).count();
                Ok(json!({ "step": step, "open": open }))
            })
            .await
        }
    }
}

async fn list(caller: &ToolCaller, args: Args) -> Told {
    let workspace = caller.workspace(args.workspace.as_deref())?;
    let name = caller.plan_name(args.plan)?;
    let (phase, kind, done) = (args.phase, args.kind, args.done);
    on_disk(&caller.app, move |store| {
        let plan = shelf::plan(store, &workspace, &name)?;
        let wanted = |step: &&Step| {
            (phase.is_none() || step.phase == phase)
                && kind.is_none_or(|kind| step.kind == kind)
                && done.is_none_or(|done| step.done == done)
        };
        let steps: Vec<&Step> = plan.steps.iter().filter(wanted).collect();
        Ok(json!({ "plan": plan.id, "steps": steps }).into())
    })
    .await
}

async fn amend(
    caller: &ToolCaller,
    workspace: Option<String>,
    plan: Option<String>,
    mut change: impl FnMut(&mut Plan, &Hand<'_>, &HashSet<SessionId>) -> Result<Value, Refused> + Send + 'static,
) -> Told {
    caller.may_write()?;
    let workspace = caller.workspace(workspace.as_deref())?;
    let name = caller.plan_name(plan)?;
    let (now, session, by) = (caller.app.clock.now(), caller.id(), caller.name());
    on_disk(&caller.app, move |store| {
        let (_, (id, mut answer)) = shelf::amend_plan(store, &workspace, &name, now, |plan| {
            let left = left(store, &plan.holders())?;
            let answer = change(plan, &Hand { session, name: &by, now }, &left)?;
            Ok((plan.id, answer))
        })?;
        answer["plan"] = json!(id);
        Ok(answer.into())
    })
    .await
}

/// Those that will not come back to what they took: ended, deleted or unknown. One that is only quiet has not left.
pub(super) fn left(store: &dyn Store, holders: &[SessionId]) -> Result<HashSet<SessionId>, Refused> {
    let mut left = HashSet::new();
    for id in holders {
        let gone = store.load(*id)?.is_none_or(|held| held.session.state.is_ended() || held.session.deleted);
        if gone {
            left.insert(*id);
        }
    }
    Ok(left)
}
