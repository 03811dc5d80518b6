//! What agents used, and what they may use.

use lanyard_core::budget::BudgetScope;
use lanyard_core::continuity::{AlertKind, Rates};
use lanyard_core::insight::{InsightBy, InsightCounts};
use lanyard_core::{SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cost, tokens, turns, failures, approvals and time over local days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InsightReport {
    /// The time zone of the days.
    pub zone: String,
    pub by: InsightBy,
    /// Every day of the range, oldest first.
    pub days: Vec<InsightDay>,
    /// By agent, model or folder, the most costly first; none by day.
    pub rows: Vec<InsightRow>,
    /// Groups beyond the limit, added up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<InsightRow>,
    pub total: InsightCounts,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InsightDay {
    /// As `2026-11-19`.
    pub day: String,
    #[serde(flatten)]
    pub counts: InsightCounts,
}

/// The sums of an agent, a model or a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InsightRow {
    /// Empty where logs do not name one, and for folders of deleted sessions.
    pub name: String,
    #[serde(flatten)]
    pub counts: InsightCounts,
    /// The days on which there was anything.
    pub daily: Vec<InsightPart>,
}

/// The share of one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InsightPart {
    /// The place of the day in `days`, from 0.
    pub index: u32,
    pub cost_micros: u64,
    /// In and out.
    pub tokens: u64,
    pub turns: u64,
    pub turn_ms: u64,
}

/// How far a budget is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetStage {
    Within,
    /// People were told.
    Near,
    /// No turn begins.
    Spent,
}

/// A budget in money, in millionths of a dollar, and what is spent of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetView {
    pub scope: BudgetScope,
    pub limit_micros: u64,
    pub spent_micros: u64,
    pub left_micros: u64,
    pub stage: BudgetStage,
    /// When it begins anew: only a day's does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
}

/// What one turn of an agent may cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentBudget {
    pub agent: String,
    pub limit_micros: u64,
}

/// The budgets that are set; one that is absent or 0 is without limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetReport {
    /// The session they are of, where one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The time zone of the day.
    pub zone: String,
    pub warn_percent: u8,
    /// What is spent: of the day, and of a session and its family where one was named.
    pub budgets: Vec<BudgetView>,
    pub turn_micros: u64,
    pub session_micros: u64,
    pub family_micros: u64,
    /// Agents with a budget of their own for a turn.
    pub agents: Vec<AgentBudget>,
}

/// How well people got back to their sessions, over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HealthHistory {
    pub from: Timestamp,
    pub to: Timestamp,
    /// Length of a step.
    pub step_ms: u64,
    /// The steps in which something was counted, oldest first.
    pub steps: Vec<HealthStep>,
    /// Alerts that held in this time, oldest first.
    pub alerts: Vec<HealthAlert>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HealthStep {
    pub at: Timestamp,
    pub rates: Rates,
    pub attach_attempts: u64,
    pub attach_failed: u64,
    pub resume_attempts: u64,
    pub resume_failed: u64,
    pub sessions_created: u64,
    pub busy_rejections: u64,
}

/// An alert of continuity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthAlert {
    pub code: AlertKind,
    pub title: String,
    pub began_at: Timestamp,
    /// Absent while it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}
