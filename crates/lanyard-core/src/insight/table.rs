//! Sums of days and of groups, made from sums of quarters.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::insight::{InsightCounts, InsightKey, Quarter};

/// What sums are grouped by, beside days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InsightBy {
    /// Days alone.
    #[default]
    Day,
    Agent,
    Model,
    Folder,
}

impl InsightBy {
    pub const ALL: [Self; 4] = [Self::Day, Self::Agent, Self::Model, Self::Folder];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Folder => "folder",
        }
    }

    fn name(self, key: InsightKey) -> Option<String> {
        match self {
            Self::Day => None,
            Self::Agent => Some(key.agent),
            Self::Model => Some(key.model),
            Self::Folder => Some(key.folder),
        }
    }
}

/// The sums of one group: all of them, and by the number of the day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InsightGroup {
    pub sum: InsightCounts,
    pub daily: BTreeMap<usize, InsightCounts>,
}

impl InsightGroup {
    fn add(&mut self, day: usize, counts: &InsightCounts) {
        self.sum.add(counts);
        self.daily.entry(day).or_default().add(counts);
    }

    fn merge(&mut self, other: &Self) {
        other.daily.iter().for_each(|(day, counts)| self.add(*day, counts));
    }
}

/// Sums as they are added up.
#[derive(Debug)]
pub struct InsightTable {
    by: InsightBy,
    /// The first quarter of each day, and behind the last day the quarter that no longer counts.
    bounds: Vec<Quarter>,
    total: InsightGroup,
    groups: BTreeMap<String, InsightGroup>,
}

/// Sums of all days, and the groups that cost most.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct InsightSummary {
    pub total: InsightGroup,
    /// The most costly first; of the same cost the one with more tokens.
    pub groups: Vec<(String, InsightGroup)>,
    /// The groups beyond the limit, added up.
    pub others: Option<InsightGroup>,
}

impl InsightTable {
    #[must_use]
    pub fn new(by: InsightBy, bounds: Vec<Quarter>) -> Self {
        Self { by, bounds, total: InsightGroup::default(), groups: BTreeMap::new() }
    }

    /// Adds a quarter. One outside of the days is passed over.
    pub fn add(&mut self, quarter: Quarter, key: InsightKey, counts: &InsightCounts) {
        let Some(day) = self.bounds.partition_point(|first| *first <= quarter).checked_sub(1) else { return };
        if day + 1 >= self.bounds.len() {
            return;
        }
        self.total.add(day, counts);
        if let Some(name) = self.by.name(key) {
            self.groups.entry(name).or_default().add(day, counts);
        }
    }

    /// At most `limit` groups.
    #[must_use]
    pub fn summary(self, limit: usize) -> InsightSummary {
        let mut groups: Vec<_> = self.groups.into_iter().collect();
        let weight = |group: &InsightGroup| {
            let InsightCounts { cost_micros, input_tokens, output_tokens, turn_ms, .. } = group.sum;
            (cost_micros, input_tokens.saturating_add(output_tokens), turn_ms)
        };
        groups.sort_by(|(a, left), (b, right)| weight(right).cmp(&weight(left)).then_with(|| a.cmp(b)));
        let rest = groups.split_off(limit.min(groups.len()));
        let others = (!rest.is_empty()).then(|| {
            let mut others = InsightGroup::default();
            for (_, group) in &rest {
                others.merge(group);
            }
            others
        });
        InsightSummary { total: self.total, groups, others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(agent: &str) -> InsightKey {
        InsightKey { agent: agent.into(), model: "m".into(), folder: "/w".into() }
    }

    fn cost(cost_micros: u64) -> InsightCounts {
        InsightCounts { cost_micros, turns: 1, ..InsightCounts::default() }
    }

    /// Two days, the first of 92 quarters because a clock went forward.
    fn table(by: InsightBy) -> InsightTable {
        let mut table = InsightTable::new(by, vec![1_000, 1_092, 1_188]);
        for (quarter, agent, micros) in [
            (999, "a", 1),
            (1_000, "a", 10),
            (1_091, "b", 200),
            (1_092, "a", 3_000),
            (1_187, "c", 5),
            (1_188, "c", 1),
        ] {
            table.add(quarter, key(agent), &cost(micros));
        }
        table
    }

    #[test]
    fn a_quarter_counts_in_the_day_it_lies_in_and_outside_of_all_days_not() {
        let summary = table(InsightBy::Day).summary(9);
        let days: Vec<_> =
            summary.total.daily.iter().map(|(day, sums)| (*day, sums.cost_micros, sums.turns)).collect();
        assert_eq!(days, [(0, 210, 2), (1, 3_005, 2)]);
        assert_eq!((summary.total.sum.cost_micros, summary.groups.len()), (3_215, 0));
    }

    #[test]
    fn groups_beyond_the_limit_are_added_up_and_none_is_lost() {
        let names = |summary: &InsightSummary| {
            summary
                .groups
                .iter()
                .map(|(name, group)| (name.clone(), group.sum.cost_micros))
                .collect::<Vec<_>>()
        };
        let all = table(InsightBy::Agent).summary(9);
        assert_eq!(names(&all), [("a".into(), 3_010), ("b".into(), 200), ("c".into(), 5)]);
        assert_eq!(all.others, None);
        let some = table(InsightBy::Agent).summary(1);
        assert_eq!(names(&some), [("a".into(), 3_010)]);
        let others = some.others.unwrap();
        assert_eq!((others.sum.cost_micros, others.daily.len()), (205, 2));
        assert_eq!(table(InsightBy::Folder).summary(9).groups[0].1.sum.cost_micros, 3_215);
    }
}
