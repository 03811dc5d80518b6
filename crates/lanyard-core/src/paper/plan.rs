//! A plan: work in phases and steps, who has it in hand, and how it went from hand to hand.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{PlanId, SessionId};
use crate::paper::steps::Step;
use crate::paper::{PaperRefusal, TEXT_CHARS_MAX, few, name, optional, words};
use crate::time::Timestamp;

pub const PHASES_MAX: usize = 50;
/// Notes a plan keeps; the oldest go first.
pub const NOTES_MAX: usize = 100;
/// Hand-offs a plan keeps; the oldest go first. The sessions' logs keep all.
pub const LINEAGE_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub id: PlanId,
    /// The name that sessions use, when it differs from the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    pub status: PlanStatus,
    pub priority: Priority,
    pub phases: Vec<String>,
    pub current_phase: Option<String>,
    pub current_agent: Option<String>,
    pub steps: Vec<Step>,
    /// Number of steps ever added; step numbers are never reused.
    pub steps_added: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<PlanNote>,
    pub lineage: Vec<Handover>,
    #[serde(default)]
    pub archived: bool,
    pub created_at: Timestamp,
    /// The session or person that made it.
    pub created_by: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    Draft,
    Active,
    Paused,
    Completed,
    Failed,
    /// An operator ended the plan. No task of it starts until an operator starts the plan again.
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    Low,
    #[default]
    Normal,
    High,
    Critical,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanNote {
    pub at: Timestamp,
    pub by: String,
    pub text: String,
}

/// A hand-off. From and to may be the same: a coordinator that takes stock hands off to itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Handover {
    pub timestamp: Timestamp,
    pub from: String,
    pub to: String,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// The session that handed off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// The request for a new plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewPlan {
    pub name: Option<String>,
    pub title: String,
    pub goal: Option<String>,
    pub priority: Priority,
    pub phases: Vec<String>,
    pub current_agent: Option<String>,
}

/// A requested change of a plan; absent fields stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanChange {
    pub title: Option<String>,
    pub goal: Option<String>,
    pub status: Option<PlanStatus>,
    pub priority: Option<Priority>,
    pub phases: Option<Vec<String>>,
    pub current_phase: Option<String>,
    pub current_agent: Option<String>,
}

impl PlanStatus {
    pub const ALL: [Self; 6] =
        [Self::Draft, Self::Active, Self::Paused, Self::Completed, Self::Failed, Self::Cancelled];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The statuses that can follow. An ended plan can be reopened.
    #[must_use]
    pub const fn next(self) -> &'static [Self] {
        match self {
            Self::Draft | Self::Paused => &[Self::Active, Self::Failed, Self::Cancelled],
            Self::Active => &[Self::Paused, Self::Completed, Self::Failed, Self::Cancelled],
            // A failed plan may still have tasks that wait for one that failed.
            Self::Failed => &[Self::Active, Self::Cancelled],
            Self::Completed | Self::Cancelled => &[Self::Active],
        }
    }

    /// Whether only an operator moves a plan from this status to the other. An agent neither cancels a plan nor takes a
    /// cancelled one up again.
    #[must_use]
    pub const fn needs_operator(self, to: Self) -> bool {
        matches!((self, to), (Self::Cancelled, _) | (_, Self::Cancelled))
    }

    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for PlanStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Plan {
    pub fn new(id: PlanId, new: NewPlan, by: &str, now: Timestamp) -> Result<Self, PaperRefusal> {
        name("title", &new.title)?;
        optional("name", new.name.as_deref())?;
        optional("current_agent", new.current_agent.as_deref())?;
        if let Some(goal) = &new.goal {
            words("goal", goal, TEXT_CHARS_MAX)?;
        }
        check_phases(&new.phases)?;
        Ok(Self {
            id,
            name: new.name,
            title: new.title,
            goal: new.goal,
            status: PlanStatus::Draft,
            priority: new.priority,
            current_phase: new.phases.first().cloned(),
            phases: new.phases,
            current_agent: new.current_agent,
            steps: Vec::new(),
            steps_added: 0,
            notes: Vec::new(),
            lineage: Vec::new(),
            archived: false,
            created_at: now,
            created_by: by.to_owned(),
        })
    }

    /// Whether sessions that name `plan` mean this one.
    #[must_use]
    pub fn is_called(&self, plan: &str) -> bool {
        self.name.as_deref() == Some(plan) || plan.parse() == Ok(self.id)
    }

    /// Applies the whole change, or none of it.
    pub fn update(&mut self, change: PlanChange) -> Result<(), PaperRefusal> {
        self.open()?;
        let mut next = self.clone();
        if let Some(title) = change.title {
            name("title", &title)?;
            next.title = title;
        }
        if let Some(goal) = change.goal {
            words("goal", &goal, TEXT_CHARS_MAX)?;
            next.goal = Some(goal);
        }
        if let Some(phases) = change.phases {
            check_phases(&phases)?;
            next.phases = phases;
        }
        next.priority = change.priority.unwrap_or(next.priority);
        if let Some(agent) = change.current_agent {
            name("current_agent", &agent)?;
            next.current_agent = Some(agent);
        }
        if let Some(phase) = change.current_phase {
            next.has_phase(&phase)?;
            next.current_phase = Some(phase);
        }
        if let Some(status) = change.status {
            next.become_status(status)?;
        }
        *self = next;
        Ok(())
    }

    fn become_status(&mut self, to: PlanStatus) -> Result<(), PaperRefusal> {
        if to == self.status {
            return Ok(());
        }
        if !self.status.next().contains(&to) {
            return Err(PaperRefusal::Transition { from: self.status, to });
        }
        let open = self.steps.iter().filter(|step| !step.done).count();
        if to == PlanStatus::Completed && open > 0 {
            return Err(PaperRefusal::StepsOpen { open });
        }
        self.status = to;
        Ok(())
    }

    pub fn note(&mut self, text: &str, by: &str, now: Timestamp) -> Result<(), PaperRefusal> {
        self.open()?;
        words("text", text, TEXT_CHARS_MAX)?;
        push(&mut self.notes, PlanNote { at: now, by: by.to_owned(), text: text.to_owned() }, NOTES_MAX);
        Ok(())
    }

    /// Adds to the lineage. The one it goes to has the plan in hand from now on. An archived plan still tells its story.
    pub fn hand_over(&mut self, handover: Handover) -> Result<(), PaperRefusal> {
        handover.check()?;
        self.current_agent = Some(handover.to.clone());
        push(&mut self.lineage, handover, LINEAGE_MAX);
        Ok(())
    }

    /// Whether nothing is left to do in it.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.archived || self.status.is_over()
    }

    /// Answers whether anything changed.
    pub fn archive(&mut self) -> bool {
        !std::mem::replace(&mut self.archived, true)
    }

    pub(super) fn open(&self) -> Result<(), PaperRefusal> {
        if self.archived { Err(PaperRefusal::Archived) } else { Ok(()) }
    }

    pub(super) fn has_phase(&self, phase: &str) -> Result<(), PaperRefusal> {
        if self.phases.iter().any(|known| known == phase) {
            return Ok(());
        }
        Err(PaperRefusal::NoSuchPhase { phase: phase.to_owned(), phases: self.phases.clone() })
    }
}

impl Handover {
    pub fn check(&self) -> Result<(), PaperRefusal> {
        name("from", &self.from)?;
        name("to", &self.to)?;
        words("reason", &self.reason, TEXT_CHARS_MAX)?;
        self.notes.as_deref().map_or(Ok(()), |notes| words("notes", notes, TEXT_CHARS_MAX))
    }
}

fn check_phases(phases: &[String]) -> Result<(), PaperRefusal> {
    few("phases", phases, PHASES_MAX)?;
    phases.iter().try_for_each(|phase| name("phases", phase))
}

/// Adds, and forgets the oldest when there are too many.
pub(super) fn push<T>(items: &mut Vec<T>, item: T, max: usize) {
    if items.len() >= max {
        items.drain(..=items.len() - max);
    }
    items.push(item);
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
