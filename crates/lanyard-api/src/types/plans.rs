//! The words of plans.

use lanyard_core::paper::{
    Handover, Plan, PlanNote, PlanPhase, PlanProgress, PlanStatus, Priority, Step, StepState,
};
use lanyard_core::task::{NewTask, TaskState};
use lanyard_core::{PlanId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GateEntry;

use super::TaskView;

/// A plan to be, with its tasks if they are known already.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewPlanBody {
    pub title: String,
    pub goal: Option<String>,
    /// By which it can be found beside its id.
    pub name: Option<String>,
    pub priority: Priority,
    /// The folder its tasks work in.
    pub workspace: Option<String>,
    /// Its tasks; they may name each other by `key` in `depends_on` and `parent`.
    pub tasks: Vec<NewTask>,
    /// Start it at once.
    pub start: bool,
}

/// A plan as readable Markdown.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImportPlan {
    pub markdown: String,
    pub name: Option<String>,
    pub workspace: Option<String>,
    /// Start it at once.
    pub start: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PlanMarkdown {
    pub plan: PlanId,
    pub markdown: String,
}

/// A plan in one line.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PlanRow {
    pub id: PlanId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub title: String,
    pub status: PlanStatus,
    pub priority: Priority,
    pub workspace: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    pub created_at: Timestamp,
    pub created_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_phase: Option<String>,
    /// The agent that has the plan in hand, by the name agents gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_agent: Option<String>,
    /// What is done, over steps and tasks.
    pub progress: PlanProgress,
    /// Its tasks by state; states without one are left out.
    pub tasks: Vec<TaskCount>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskCount {
    pub state: TaskState,
    pub tasks: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PlanList {
    pub plans: Vec<PlanRow>,
}

/// A step that agents keep in a plan with `memory_steps`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StepView {
    #[serde(flatten)]
    pub step: Step,
    pub state: StepState,
}

/// What agents keep in a plan: phases, steps, notes and hand-offs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct PlanDetail {
    pub phases: Vec<PlanPhase>,
    pub steps: Vec<StepView>,
    pub notes: Vec<PlanNote>,
    /// The hand-offs between agents, oldest first.
    pub lineage: Vec<Handover>,
}

/// A plan with its steps, and its tasks in the order they would be begun.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PlanView {
    #[serde(flatten)]
    pub plan: PlanRow,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    #[serde(flatten)]
    pub detail: PlanDetail,
    pub all: Vec<TaskView>,
    /// What agents of its tasks wait to be allowed, as `GET /gates` lists it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<GateEntry>,
}

impl PlanRow {
    #[must_use]
    pub fn of(plan: &Plan, workspace: &str, tasks: Vec<TaskCount>) -> Self {
        let states = tasks.iter().flat_map(|count| (0..count.tasks).map(move |_| count.state));
        Self {
            id: plan.id,
            name: plan.name.clone(),
            title: plan.title.clone(),
            status: plan.status,
            priority: plan.priority,
            workspace: workspace.to_owned(),
            archived: plan.archived,
            created_at: plan.created_at,
            created_by: plan.created_by.clone(),
            current_phase: plan.current_phase.clone(),
            current_agent: plan.current_agent.clone(),
            progress: plan.progress(states),
            tasks,
        }
    }
}

impl PlanDetail {
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let steps = plan.steps.iter().map(|step| StepView { step: step.clone(), state: step.state() });
        Self {
            phases: plan.phase_progress(),
            steps: steps.collect(),
            notes: plan.notes.clone(),
            lineage: plan.lineage.clone(),
        }
    }
}
