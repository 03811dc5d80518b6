//! `lanyard insight`: what agents cost and did over days, and what is left of budgets.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use lanyard_api::types::{BudgetReport, BudgetStage, InsightReport};
use lanyard_client::Route;
use lanyard_core::insight::{InsightBy, InsightCounts};
use lanyard_core::text::dollars;

use super::duration::duration_ms;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Column, table};
use crate::render::text::one_line;
use crate::render::time::span;

const DAY_MS: u64 = 86_400_000;
/// The longest range of one answer.
const DAYS_MAX: u64 = 400;

const EXAMPLES: &str = "\
Costs are what agents report; an agent that reports none costs nothing here. Turns, calls and
times count when the turn ends; a subagent's tokens and calls count under its own name, and its
time is part of its parent's turn. Conversations that were imported do not count.

Days are those of the daemon's budgets ([budgets] time_zone in the config), or of --zone.

Examples:
  lanyard insight
  lanyard insight --by agent --since 30d
  lanyard insight --by model --zone Europe/Berlin
  lanyard insight --by folder --since 7d --json | jq -r '.rows[] | \"\\(.cost_micros) \\(.name)\"'";

/// Show cost, tokens, turns, failures and approvals over days
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct InsightArgs {
    /// What a row is
    #[arg(long, default_value = InsightBy::Day.as_str(), value_parser = by())]
    by: InsightBy,
    /// How far back, in whole days, today included: 1d, 7d, 30d
    #[arg(long, value_name = "DAYS", default_value = "7d", value_parser = days)]
    since: u64,
    /// The time zone of the days, such as Europe/Berlin, UTC or +05:30
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// Show this many rows at most; the others are added up
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100))]
    limit: u64,
}

fn by() -> impl TypedValueParser<Value = InsightBy> {
    PossibleValuesParser::new(InsightBy::ALL.map(InsightBy::as_str))
        .map(|text| InsightBy::ALL.into_iter().find(|by| by.as_str() == text).unwrap_or_default())
}

fn days(text: &str) -> Result<u64, String> {
    let days = duration_ms(text)?.div_ceil(DAY_MS);
    if days <= DAYS_MAX { Ok(days) } else { Err(format!("at most {DAYS_MAX}d")) }
}

impl InsightArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let route = Route::to(&["insight"])
            .with("days", Some(self.since))
            .with("by", Some(self.by.as_str()))
            .with("zone", self.zone.as_ref())
            .with("limit", Some(self.limit));
        let report: InsightReport = client.get(&route).await?;
        if context.out.is_json() {
            return context.out.json(&report);
        }
        let budgets: BudgetReport = client.get(&Route::to(&["budgets"])).await?;
        context.out.data(&table(&columns(self.by), &rows(&report), context.out.columns))?;
        for line in left(&budgets) {
            context.out.note(&line);
        }
        Ok(())
    }
}

fn columns(by: InsightBy) -> [Column; 9] {
    let name = match by {
        InsightBy::Day => Column::whole("DAY"),
        InsightBy::Agent => Column::elastic("AGENT", 10),
        InsightBy::Model => Column::elastic("MODEL", 10),
        InsightBy::Folder => Column::elastic("FOLDER", 16),
    };
    [
        name,
        Column::whole("COST"),
        Column::whole("IN"),
        Column::whole("OUT"),
        Column::whole("TURNS"),
        Column::whole("TIME"),
        Column::whole("CALLS"),
        Column::whole("APPROVALS"),
        Column::whole("WAITED"),
    ]
}

fn rows(report: &InsightReport) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = match report.by {
        InsightBy::Day => report.days.iter().map(|day| cells(&day.day, &day.counts)).collect(),
        InsightBy::Agent | InsightBy::Model | InsightBy::Folder => report
            .rows
            .iter()
            .map(|row| cells(if row.name.is_empty() { "(unknown)" } else { &row.name }, &row.counts))
            .collect(),
    };
    rows.extend(report.others.as_ref().map(|others| cells("(others)", &others.counts)));
    rows.push(cells("total", &report.total));
    rows
}

fn cells(name: &str, counts: &InsightCounts) -> Vec<String> {
    let nothing = || "-".to_owned();
    let number = |number: u64| if number == 0 { nothing() } else { number.to_string() };
    // So many, and so many of them failed.
    let of = |all: u64, failed: u64| match (all, failed) {
        (0, 0) => nothing(),
        (all, 0) => all.to_string(),
        (all, failed) => format!("{all}, {failed} failed"),
    };
    let lasted = |ms: u64| if ms == 0 { nothing() } else { span(ms) };
    vec![
        one_line(name),
        if counts.cost_micros == 0 { nothing() } else { dollars(counts.cost_micros) },
        number(counts.input_tokens),
        number(counts.output_tokens),
        of(counts.turns, counts.turns_failed),
        lasted(counts.turn_ms),
        of(counts.calls, counts.calls_failed),
        number(counts.approvals),
        lasted(counts.approval_wait_ms),
    ]
}

/// What is left of the day's budget, and the other budgets that are set.
fn left(report: &BudgetReport) -> Vec<String> {
    let mut lines: Vec<String> = report
        .budgets
        .iter()
        .map(|budget| {
            let stage = match budget.stage {
                BudgetStage::Within | BudgetStage::Near => "",
                BudgetStage::Spent => "; it is spent, and no turn begins",
            };
            let (spent, limit) = (dollars(budget.spent_micros), dollars(budget.limit_micros));
            format!("the {}'s budget: {spent} of {limit}{stage}", budget.scope.as_str())
        })
        .collect();
    let each =
        [("turn", report.turn_micros), ("session", report.session_micros), ("family", report.family_micros)];
    let set = each.into_iter().filter(|(_, limit)| *limit > 0);
    lines.extend(set.map(|(scope, limit)| format!("the budget of a {scope}: {}", dollars(limit))));
    let of_agent = |agent: &lanyard_api::types::AgentBudget| {
        format!("the budget of a turn of {}: {}", agent.agent, dollars(agent.limit_micros))
    };
    lines.extend(report.agents.iter().map(of_agent));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_whole_days() {
        assert_eq!(days("7d"), Ok(7));
        assert_eq!(days("1h"), Ok(1));
        assert_eq!(days("25h"), Ok(2));
        assert!(days("401d").is_err() && days("soon").is_err());
    }

    #[test]
    fn what_is_nothing_is_a_dash_and_failures_stand_beside_their_number() {
        let counts =
            InsightCounts { turns: 4, turns_failed: 1, cost_micros: 1_250_000, ..InsightCounts::default() };
        assert_eq!(
            cells("claude", &counts),
            ["claude", "$1.25", "-", "-", "4, 1 failed", "-", "-", "-", "-"]
        );
    }
}
