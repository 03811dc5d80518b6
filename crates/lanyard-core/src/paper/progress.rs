//! Progress of a plan, over its steps and its tasks together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::paper::plan::Plan;
use crate::paper::steps::Step;
use crate::task::TaskState;

/// Progress of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    Pending,
    /// A session has taken it.
    Active,
    Done,
}

/// Finished and remaining work of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PlanProgress {
    /// Steps and tasks that are done.
    pub done: u64,
    /// Steps and tasks in all; cancelled tasks are not counted.
    pub total: u64,
    pub steps_done: u64,
    pub steps: u64,
    pub tasks_done: u64,
    pub tasks: u64,
}

/// A phase of a plan with how far its steps are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanPhase {
    pub name: String,
    /// The plan is in this phase.
    pub current: bool,
    pub steps: u64,
    pub done: u64,
}

impl Step {
    #[must_use]
    pub const fn state(&self) -> StepState {
        match (self.done, &self.taken) {
            (true, _) => StepState::Done,
            (false, Some(_)) => StepState::Active,
            (false, None) => StepState::Pending,
        }
    }
}

impl Plan {
    /// The plan's progress; `tasks` are the states of its tasks.
    #[must_use]
    pub fn progress(&self, tasks: impl IntoIterator<Item = TaskState>) -> PlanProgress {
        let mut progress = PlanProgress::default();
        for step in &self.steps {
            progress.steps += 1;
            progress.steps_done += u64::from(step.done);
        }
        for state in tasks {
            progress.tasks += u64::from(state != TaskState::Cancelled);
            progress.tasks_done += u64::from(state == TaskState::Completed);
        }
        progress.done = progress.steps_done + progress.tasks_done;
        progress.total = progress.steps + progress.tasks;
        progress
    }

    /// The phases in their order, with what each has of the steps.
    #[must_use]
    pub fn phase_progress(&self) -> Vec<PlanPhase> {
        let one = |name: &String| {
            let mine = self.steps.iter().filter(|step| step.phase.as_ref() == Some(name));
            let (steps, done) = mine.fold((0, 0), |(all, done), step| (all + 1, done + u64::from(step.done)));
            PlanPhase { name: name.clone(), current: self.current_phase.as_ref() == Some(name), steps, done }
        };
        self.phases.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{PlanId, SessionId};
    use crate::paper::steps::Hand;
    use crate::paper::{NewPlan, NewStep};
    use crate::time::Timestamp;

    fn plan() -> Plan {
        let now = Timestamp::from_millis(0);
        let phases = vec!["design".to_owned(), "build".to_owned()];
        let new = NewPlan { title: "x".to_owned(), phases, ..NewPlan::default() };
        let mut plan = Plan::new(PlanId::from_u128(1), new, "hub", now).unwrap();
        let step = |task: &str, phase: &str| NewStep {
            task: task.to_owned(),
            phase: Some(phase.to_owned()),
            ..NewStep::default()
        };
        plan.add_steps(vec![step("a", "design"), step("b", "build"), step("c", "build")]).unwrap();
        let hand = Hand { session: Some(SessionId::from_u128(7)), name: "e", now };
        plan.complete_step(1, None, &hand, |_| false).unwrap();
        plan.next_step(Some("build"), &hand, |_| false).unwrap();
        plan
    }

    /// FND-M4.
    #[test]
    fn fnd_m4_progress_counts_steps_and_tasks() {
        let plan = plan();
        let states: Vec<StepState> = plan.steps.iter().map(Step::state).collect();
        assert_eq!(states, [StepState::Done, StepState::Active, StepState::Pending]);
        let alone = plan.progress([]);
        assert_eq!((alone.done, alone.total), (1, 3));
        let tasks = [TaskState::Completed, TaskState::Running, TaskState::Cancelled, TaskState::Failed];
        let both = plan.progress(tasks);
        assert_eq!((both.tasks_done, both.tasks, both.done, both.total), (1, 3, 2, 6));
    }

    #[test]
    fn fnd_m4_phases_tell_how_far_they_are() {
        let told: Vec<(String, bool, u64, u64)> = plan()
            .phase_progress()
            .into_iter()
            .map(|phase| (phase.name, phase.current, phase.done, phase.steps))
            .collect();
        assert_eq!(told, [("design".to_owned(), true, 1, 1), ("build".to_owned(), false, 0, 2)]);
    }
}
