//! What agents used over days, and what they may use.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use lanyard_api::types::{
    AgentBudget, BudgetReport, BudgetStage, BudgetView, InsightDay, InsightPart, InsightReport, InsightRow,
};
use lanyard_base::day_zone::{DayZone, LocalDay};
use lanyard_core::SessionId;
use lanyard_core::budget::{BudgetLine, BudgetRules, BudgetScope, Dollars, Spending};
use lanyard_core::insight::{InsightBy, InsightCounts, InsightGroup, InsightTable, Quarter, quarter_of};
use lanyard_store::{Store, StoreError};
use serde::Deserialize;

use crate::api::App;
use crate::api::context::{Target, load, on_disk, query};
use crate::problem::Problem;
use lanyard_engine::engine::day_zone;

type Shared = State<Arc<App>>;

const DAYS_DEFAULT: u32 = 7;
/// Days of one answer: more than a year, so that a year and its eve fit.
pub(super) const DAYS_MAX: u32 = 400;
const ROWS_DEFAULT: usize = 20;
pub(super) const ROWS_MAX: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Asked {
    days: Option<u32>,
    by: InsightBy,
    zone: Option<String>,
    limit: Option<usize>,
}

pub(super) async fn report(State(app): Shared, uri: Uri) -> Result<Json<InsightReport>, Problem> {
    let Asked { days, by, zone, limit } = query(&uri)?;
    let (days, limit) = (days.unwrap_or(DAYS_DEFAULT), limit.unwrap_or(ROWS_DEFAULT));
    if !(1..=DAYS_MAX).contains(&days) {
        let title = format!("`days` is {days}");
        return Err(Problem::bad_request("query_invalid", title, format!("use 1 to {DAYS_MAX}")));
    }
    if !(1..=ROWS_MAX).contains(&limit) {
        let title = format!("`limit` is {limit}");
        return Err(Problem::bad_request("query_invalid", title, format!("use 1 to {ROWS_MAX}")));
    }
    let zone = zone_of(&app, zone)?;
    let days = zone.days(app.clock.now(), days);
    let name = zone.name();
    let summed = on_disk(&app, move |store| summed(store, by, &days, (name, limit))).await?;
    Ok(Json(summed))
}

/// The zone of a caller, or the one of the config.
fn zone_of(app: &App, asked: Option<String>) -> Result<DayZone, Problem> {
    let Some(name) = asked else { return Ok(day_zone(&app.config.now().config.budgets.time_zone)) };
    DayZone::named(&name).map_err(|why| {
        let title = format!("`{name}` is no time zone: {why}");
        Problem::bad_request("time_zone_unknown", title, "name one as `Europe/Berlin`, `UTC` or `+05:30`")
    })
}

fn summed(
    store: &dyn Store,
    by: InsightBy,
    days: &[LocalDay],
    (zone, limit): (String, usize),
) -> Result<InsightReport, StoreError> {
    let mut bounds: Vec<Quarter> = days.iter().map(|day| quarter_of(day.start)).collect();
    bounds.extend(days.last().map(|day| quarter_of(day.end)));
    let (from, to) = (bounds.first().copied().unwrap_or(0), bounds.last().copied().unwrap_or(0));
    let mut table = InsightTable::new(by, bounds);
    store.insight(from, to, &mut |quarter, key, counts| table.add(quarter, key, &counts))?;
    let summary = table.summary(limit);
    let of_day = |(index, day): (usize, &LocalDay)| InsightDay {
        day: day.date.clone(),
        counts: summary.total.daily.get(&index).copied().unwrap_or_default(),
    };
    Ok(InsightReport {
        zone,
        by,
        days: days.iter().enumerate().map(of_day).collect(),
        total: summary.total.sum,
        rows: summary.groups.into_iter().map(|(name, group)| row(name, &group)).collect(),
        others: summary.others.map(|others| row(String::new(), &others)),
    })
}

fn row(name: String, group: &InsightGroup) -> InsightRow {
    let part = |(index, sums): (&usize, &InsightCounts)| InsightPart {
        index: u32::try_from(*index).unwrap_or(u32::MAX),
        cost_micros: sums.cost_micros,
        tokens: sums.input_tokens.saturating_add(sums.output_tokens),
        turns: sums.turns,
        turn_ms: sums.turn_ms,
    };
    InsightRow { name, counts: group.sum, daily: group.daily.iter().map(part).collect() }
}

pub(super) async fn budgets(State(app): Shared) -> Result<Json<BudgetReport>, Problem> {
    budget_report(&app, None).await.map(Json)
}

pub(super) async fn budgets_of_session(
    State(app): Shared,
    target: Target,
) -> Result<Json<BudgetReport>, Problem> {
    budget_report(&app, Some(target.0)).await.map(Json)
}

async fn budget_report(app: &Arc<App>, session: Option<SessionId>) -> Result<BudgetReport, Problem> {
    let (in_use, now) = (app.config.now(), app.clock.now());
    let rules = in_use.config.budgets.rules();
    let zone = day_zone(&in_use.config.budgets.time_zone);
    let today = zone.day(now);
    let held = match session {
        Some(session) => Some(load(app, session).await?),
        None => None,
    };
    let since = quarter_of(today.start);
    let lines = on_disk(app, move |store| {
        let mut spending = Spending { day: store.spent_since(since)?, ..Spending::default() };
        let mut asked =
            BudgetRules { session_usd: Dollars::default(), family_usd: Dollars::default(), ..rules };
        if let Some(held) = held {
            let root = held.lineage.ancestors.last().copied().unwrap_or(held.session.id);
            spending.family = store.spent_by_family(root)?;
            spending.session = held.session.usage.cost_micros;
            asked = rules;
        }
        Ok(asked.lines(&spending))
    })
    .await?;
    let view = |line: &BudgetLine| BudgetView {
        scope: line.scope,
        limit_micros: line.limit.micros(),
        spent_micros: line.spent.micros(),
        left_micros: line.left().micros(),
        stage: match (line.is_spent(), line.is_near(rules.warn_percent)) {
            (true, _) => BudgetStage::Spent,
            (false, true) => BudgetStage::Near,
            (false, false) => BudgetStage::Within,
        },
        resets_at: (line.scope == BudgetScope::Day).then_some(today.end),
    };
    let of_agent = |(name, settings): (&String, &lanyard_api::agents::settings::AgentSettings)| {
        let limit = settings.budget.cost_usd;
        (!limit.is_zero()).then(|| AgentBudget { agent: name.clone(), limit_micros: limit.micros() })
    };
    Ok(BudgetReport {
        session,
        zone: zone.name(),
        warn_percent: rules.warn_percent,
        budgets: lines.iter().map(view).collect(),
        turn_micros: rules.turn_usd.micros(),
        session_micros: rules.session_usd.micros(),
        family_micros: rules.family_usd.micros(),
        agents: in_use.agents.iter().filter_map(of_agent).collect(),
    })
}
