//! Budgets in money: `[budgets]`.

use lanyard_core::budget::{BudgetRules, Dollars};
use serde::{Deserialize, Serialize};

/// What may be spent, and when a day begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    pub turn_usd: Dollars,
    pub session_usd: Dollars,
    pub family_usd: Dollars,
    pub day_usd: Dollars,
    pub warn_percent: u8,
    /// The name of a time zone, or an offset from UTC; empty for the machine's own.
    pub time_zone: String,
}

impl Default for BudgetConfig {
    fn default() -> Self {
        let BudgetRules { turn_usd, session_usd, family_usd, day_usd, warn_percent } = BudgetRules::default();
        Self { turn_usd, session_usd, family_usd, day_usd, warn_percent, time_zone: String::new() }
    }
}

impl BudgetConfig {
    #[must_use]
    pub const fn rules(&self) -> BudgetRules {
        let Self { turn_usd, session_usd, family_usd, day_usd, warn_percent, .. } = *self;
        BudgetRules { turn_usd, session_usd, family_usd, day_usd, warn_percent }
    }
}
