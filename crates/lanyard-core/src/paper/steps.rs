//! The steps of a plan: the work, its acceptance criteria and its holder.
//!
//! A taken step stays with its session while that session may be working. The end of that session, or its coordinator,
//! frees the step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::paper::plan::Plan;
use crate::paper::{PaperRefusal, TEXT_CHARS_MAX, few, words};
use crate::time::Timestamp;

pub const STEPS_MAX: usize = 500;
/// Steps one call may add.
pub const BATCH_MAX: usize = 100;
pub const CRITERIA_MAX: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// 1, 2, 3 … in its plan; never given twice.
    pub number: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(rename = "type")]
    pub kind: StepKind,
    pub task: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Acceptance criteria.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<String>,
    pub done: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_by: Option<String>,
    /// Evidence that the step is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
}

/// The holder of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    pub by: SessionId,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    #[default]
    Code,
    Documentation,
    Test,
    Build,
    Validation,
}

impl StepKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Documentation => "documentation",
            Self::Test => "test",
            Self::Build => "build",
            Self::Validation => "validation",
        }
    }
}

/// A step to add.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NewStep {
    /// The work to do.
    pub task: String,
    /// One of the plan's phases.
    #[serde(default)]
    pub phase: Option<String>,
    /// The type of work.
    #[serde(default, rename = "type")]
    pub kind: StepKind,
    #[serde(default)]
    pub notes: Option<String>,
    /// Acceptance criteria.
    #[serde(default)]
    pub acceptance: Vec<String>,
}

/// A requested change; absent fields stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepChange {
    pub task: Option<String>,
    pub phase: Option<String>,
    pub kind: Option<StepKind>,
    pub notes: Option<String>,
    pub acceptance: Option<Vec<String>>,
    pub done: Option<bool>,
}

/// The actor of a step's change, and its time.
#[derive(Debug, Clone)]
pub struct Hand<'a> {
    /// The session, or nothing for a person.
    pub session: Option<SessionId>,
    pub name: &'a str,
    pub now: Timestamp,
}

impl Plan {
    /// Adds all steps, or none, and returns their numbers.
    pub fn add_steps(&mut self, new: Vec<NewStep>) -> Result<Vec<u32>, PaperRefusal> {
        self.open()?;
        few("steps", &new, BATCH_MAX)?;
        if new.is_empty() {
            return Err(PaperRefusal::Missing { field: "steps" });
        }
        if self.steps.len() + new.len() > STEPS_MAX {
            return Err(PaperRefusal::TooMany { field: "steps", max: STEPS_MAX });
        }
        let mut added = Vec::with_capacity(new.len());
        for step in new {
            let number = self.steps_added + u32::try_from(added.len()).unwrap_or(u32::MAX) + 1;
            added.push(self.checked(Step {
                number,
                phase: step.phase.or_else(|| self.current_phase.clone()),
                kind: step.kind,
                task: step.task,
                notes: step.notes,
                acceptance: step.acceptance,
                done: false,
                done_at: None,
                done_by: None,
                evidence: None,
                taken: None,
            })?);
        }
        let numbers: Vec<u32> = added.iter().map(|step| step.number).collect();
        self.steps_added = numbers.last().copied().unwrap_or(self.steps_added);
        self.steps.append(&mut added);
        Ok(numbers)
    }

    /// A step as it may stand in this plan.
    fn checked(&self, step: Step) -> Result<Step, PaperRefusal> {
        words("task", &step.task, TEXT_CHARS_MAX)?;
        if let Some(notes) = &step.notes {
            words("notes", notes, TEXT_CHARS_MAX)?;
        }
        few("acceptance", &step.acceptance, CRITERIA_MAX)?;
        step.acceptance.iter().try_for_each(|text| words("acceptance", text, TEXT_CHARS_MAX))?;
        if let Some(phase) = &step.phase {
            self.has_phase(phase)?;
        }
        Ok(step)
    }

    /// Changes a step that nobody else is at. `freed` says whether a session that took one has left it.
    pub fn update_step(
        &mut self,
        number: u32,
        change: StepChange,
        hand: &Hand<'_>,
        freed: impl Fn(SessionId) -> bool,
    ) -> Result<&Step, PaperRefusal> {
        self.open()?;
        let mut step = self.mine(number, hand, freed)?.clone();
        step.task = change.task.unwrap_or(step.task);
        step.phase = change.phase.or(step.phase);
        step.kind = change.kind.unwrap_or(step.kind);
        step.notes = change.notes.or(step.notes);
        step.acceptance = change.acceptance.unwrap_or(step.acceptance);
        match change.done {
            Some(true) if !step.done => step.finish(hand),
            Some(false) => {
                step.done = false;
                step.done_at = None;
                step.done_by = None;
            }
            Some(true) | None => {}
        }
        let step = self.checked(step)?;
        self.put(number, step)
    }

    /// The step is done; `evidence` shows it.
    pub fn complete_step(
        &mut self,
        number: u32,
        evidence: Option<String>,
        hand: &Hand<'_>,
        freed: impl Fn(SessionId) -> bool,
    ) -> Result<&Step, PaperRefusal> {
        self.open()?;
        if let Some(evidence) = &evidence {
            words("evidence", evidence, TEXT_CHARS_MAX)?;
        }
        let mut step = self.mine(number, hand, freed)?.clone();
        if step.done {
            return Err(PaperRefusal::StepDone { step: number });
        }
        step.evidence = evidence.or(step.evidence);
        step.finish(hand);
        self.put(number, step)
    }

    /// The first open and free step, in the phase if one is named. A session takes the step; a session that already
    /// holds one gets that one again, so a repeated request takes no second step. A person only looks.
    pub fn next_step(
        &mut self,
        phase: Option<&str>,
        hand: &Hand<'_>,
        freed: impl Fn(SessionId) -> bool,
    ) -> Result<Option<&Step>, PaperRefusal> {
        self.open()?;
        if let Some(phase) = phase {
            self.has_phase(phase)?;
        }
        let wanted = |step: &&mut Step| !step.done && (phase.is_none() || step.phase.as_deref() == phase);
        let own = |step: &Step| step.taken.is_some_and(|taken| Some(taken.by) == hand.session);
        let free = |step: &Step| step.taken.is_none_or(|taken| freed(taken.by));
        let mut open: Vec<&mut Step> = self.steps.iter_mut().filter(wanted).collect();
        let place =
            open.iter().position(|step| own(step)).or_else(|| open.iter().position(|step| free(step)));
        let Some(place) = place else { return Ok(None) };
        let step = open.swap_remove(place);
        if let Some(by) = hand.session
            && !own(step)
        {
            step.taken = Some(Taken { by, at: hand.now });
        }
        Ok(Some(step))
    }

    /// Frees the open steps of sessions that have left. Answers which.
    pub fn release(&mut self, left: impl Fn(SessionId) -> bool) -> Vec<u32> {
        let mut released = Vec::new();
        for step in self.steps.iter_mut().filter(|step| !step.done) {
            if step.taken.is_some_and(|taken| left(taken.by)) {
                step.taken = None;
                released.push(step.number);
            }
        }
        released
    }

    /// The sessions that are at open steps, each once.
    #[must_use]
    pub fn holders(&self) -> Vec<SessionId> {
        let open = self.steps.iter().filter(|step| !step.done);
        let mut holders: Vec<SessionId> = open.filter_map(|step| step.taken.map(|taken| taken.by)).collect();
        holders.sort_unstable();
        holders.dedup();
        holders
    }

    fn mine(
        &self,
        number: u32,
        hand: &Hand<'_>,
        freed: impl Fn(SessionId) -> bool,
    ) -> Result<&Step, PaperRefusal> {
        let step = self.steps.iter().find(|step| step.number == number);
        let step = step.ok_or(PaperRefusal::NoSuchStep { step: number })?;
        match (step.taken, hand.session) {
            (Some(taken), Some(session)) if !step.done && taken.by != session && !freed(taken.by) => {
                Err(PaperRefusal::StepTaken { step: number, by: taken.by })
            }
            (Some(_) | None, _) => Ok(step),
        }
    }

    fn put(&mut self, number: u32, step: Step) -> Result<&Step, PaperRefusal> {
        let held = self.steps.iter_mut().find(|held| held.number == number);
        let held = held.ok_or(PaperRefusal::NoSuchStep { step: number })?;
        *held = step;
        Ok(held)
    }
}

impl Step {
    fn finish(&mut self, hand: &Hand<'_>) {
        self.done = true;
        self.done_at = Some(hand.now);
        self.done_by = Some(hand.name.to_owned());
        self.taken = None;
    }
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
