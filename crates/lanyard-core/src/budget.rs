//! Budgets: how much may be used, how much is, and what follows. Pure; the sums arrive as data.
//!
//! One rule for all of them, in whatever unit they count: near a limit people are told, beyond it the turn is cut off,
//! and with nothing left no further turn begins.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::dollars;

/// Millionths of a dollar in one.
const MICROS: f64 = 1_000_000.0;
/// The largest amount that a budget may name: a million dollars.
const DOLLARS_MAX: f64 = 1_000_000.0;
/// The largest sum that one report of an agent may add, in millionths of a dollar: a thousand dollars. What is more is a
/// mistake of the agent, and no reason to refuse all work of the day.
pub const REPORT_MICROS_MAX: u64 = 1_000_000_000;

/// An amount of US dollars, in millionths. Written as a number of dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Dollars(u64);

impl Dollars {
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&dollars(self.0))
    }
}

impl Serialize for Dollars {
    #[expect(clippy::cast_precision_loss, reason = "a budget is far below 2^52 millionths")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / MICROS)
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        // NaN is in no range.
        if !(0.0..=DOLLARS_MAX).contains(&dollars) {
            let what = format!("an amount of dollars is a number from 0 to {DOLLARS_MAX}");
            return Err(serde::de::Error::custom(what));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        let micros = (dollars * MICROS).round() as u64;
        Ok(Self(micros))
    }
}

impl JsonSchema for Dollars {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Dollars".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0 })
    }
}

/// What may be spent in money, as agents report it; 0 is without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetRules {
    /// By one turn, its subagents included.
    pub turn_usd: Dollars,
    /// By one session.
    pub session_usd: Dollars,
    /// By a session without a parent and all sessions below it.
    pub family_usd: Dollars,
    /// By all sessions in a local day.
    pub day_usd: Dollars,
    /// The share of a budget, in percent, at which people are told.
    pub warn_percent: u8,
}

impl Default for BudgetRules {
    fn default() -> Self {
        let none = Dollars(0);
        Self { turn_usd: none, session_usd: none, family_usd: none, day_usd: none, warn_percent: 80 }
    }
}

impl BudgetRules {
    /// Returns an error sentence for the first invalid number.
    pub fn check(&self) -> Result<(), String> {
        match self.warn_percent {
            1..=100 => Ok(()),
            0 | 101.. => Err("`warn_percent` must be 1 to 100".to_owned()),
        }
    }

    /// Whether spending of more than one turn is limited.
    #[must_use]
    pub const fn limits_sessions(&self) -> bool {
        !(self.session_usd.is_zero() && self.family_usd.is_zero() && self.day_usd.is_zero())
    }

    /// The budget of a turn: the smaller of the agent's and the one of all agents.
    #[must_use]
    pub const fn of_turn(&self, agent: Dollars) -> Dollars {
        match (self.turn_usd.is_zero(), agent.is_zero()) {
            (true, _) => agent,
            (false, true) => self.turn_usd,
            (false, false) if agent.0 < self.turn_usd.0 => agent,
            (false, false) => self.turn_usd,
        }
    }

    /// The budgets beyond one turn that are set, each with what is spent of it. The narrowest scope comes first.
    #[must_use]
    pub fn lines(&self, spending: &Spending) -> Vec<BudgetLine> {
        let all = [
            (BudgetScope::Session, self.session_usd, spending.session),
            (BudgetScope::Family, self.family_usd, spending.family),
            (BudgetScope::Day, self.day_usd, spending.day),
        ];
        let of = |(scope, limit, spent): (_, Dollars, _)| BudgetLine { scope, limit, spent: Dollars(spent) };
        all.into_iter().filter(|(_, limit, _)| !limit.is_zero()).map(of).collect()
    }
}

/// What a budget is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    Turn,
    Session,
    Family,
    Day,
}

impl BudgetScope {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Session => "session",
            Self::Family => "family",
            Self::Day => "day",
        }
    }

    /// The setting of the budget.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Turn => "budgets.turn_usd",
            Self::Session => "budgets.session_usd",
            Self::Family => "budgets.family_usd",
            Self::Day => "budgets.day_usd",
        }
    }
}

/// What was spent in the scopes of a session, in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spending {
    pub session: u64,
    pub family: u64,
    pub day: u64,
}

/// A budget in money, and what is spent of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetLine {
    pub scope: BudgetScope,
    pub limit: Dollars,
    pub spent: Dollars,
}

impl BudgetLine {
    #[must_use]
    pub const fn left(&self) -> Dollars {
        Dollars(self.limit.0.saturating_sub(self.spent.0))
    }

    #[must_use]
    pub const fn is_spent(&self) -> bool {
        self.limit.0 > 0 && self.spent.0 >= self.limit.0
    }

    #[must_use]
    pub const fn is_near(&self, percent: u8) -> bool {
        is_near(self.limit.0, self.spent.0, percent)
    }
}

impl fmt::Display for BudgetLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, limit, spent } = self;
        write!(f, "the {}'s budget of {limit} is spent: {spent}", scope.as_str())
    }
}

/// The share of a limit at which people are told; nothing of one without limit.
#[must_use]
pub const fn warn_at(limit: u64, percent: u8) -> u64 {
    // Divided first: no limit is too large for it.
    let percent = percent as u64;
    limit / 100 * percent + limit % 100 * percent / 100
}

/// Whether most of a limit is used; never of 0, which is none.
#[must_use]
pub const fn is_near(limit: u64, used: u64, percent: u8) -> bool {
    let at = warn_at(limit, percent);
    limit > 0 && used >= if at == 0 { 1 } else { at }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules(session: u64, family: u64, day: u64) -> BudgetRules {
        BudgetRules {
            session_usd: Dollars(session),
            family_usd: Dollars(family),
            day_usd: Dollars(day),
            ..BudgetRules::default()
        }
    }

    #[test]
    fn most_of_a_budget_is_its_share() {
        assert_eq!([0, 1, 5, 10, 9].map(|limit| warn_at(limit, 80)), [0, 0, 4, 8, 7]);
        assert_eq!(warn_at(u64::MAX, 100), u64::MAX);
        assert!(!is_near(0, 1_000, 80) && !is_near(10, 7, 80) && is_near(10, 8, 80));
        assert!(is_near(1, 1, 80) && !is_near(1, 0, 80));
    }

    #[test]
    fn amounts_are_numbers_of_dollars_and_nothing_else() {
        let read = |text: &str| serde_json::from_str::<Dollars>(text).map(Dollars::micros);
        assert_eq!(read("2.5").unwrap(), 2_500_000);
        assert_eq!(read("7").unwrap(), 7_000_000);
        assert_eq!(read("0").unwrap(), 0);
        for wrong in ["-1", "1000001", "\"5\"", "null"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let nan =
            Dollars::deserialize(serde::de::value::F64Deserializer::<serde::de::value::Error>::new(f64::NAN));
        assert!(nan.is_err());
        assert_eq!(serde_json::to_string(&Dollars(2_500_000)).unwrap(), "2.5");
    }

    /// What is spent and what is near, by the table: limit, spent, and the two words.
    #[test]
    fn a_budget_is_near_and_spent_by_this_table() {
        for (limit, spent, near, over) in [
            (0, 0, false, false),
            (0, 9_000_000, false, false),
            (100, 79, false, false),
            (100, 80, true, false),
            (100, 99, true, false),
            (100, 100, true, true),
            (100, 250, true, true),
        ] {
            let line = BudgetLine { scope: BudgetScope::Day, limit: Dollars(limit), spent: Dollars(spent) };
            assert_eq!((line.is_near(80), line.is_spent()), (near, over), "{limit} {spent}");
        }
    }

    #[test]
    fn only_budgets_that_are_set_have_a_line() {
        let spending = Spending { session: 5, family: 7, day: 9 };
        assert_eq!(rules(0, 0, 0).lines(&spending), []);
        assert!(!rules(0, 0, 0).limits_sessions());
        let lines = rules(0, 6, 10).lines(&spending);
        let told: Vec<_> =
            lines.iter().map(|line| (line.scope.as_str(), line.is_spent(), line.left().micros())).collect();
        assert_eq!(told, [("family", true, 0), ("day", false, 1)]);
    }

    #[test]
    fn a_share_that_is_none_is_refused() {
        let with = |warn_percent| BudgetRules { warn_percent, ..BudgetRules::default() }.check();
        assert!(with(0).is_err() && with(101).is_err() && with(1).is_ok() && with(100).is_ok());
    }

    proptest! {
        /// No agent's budget makes that of a turn wider than what all agents have.
        #[test]
        fn the_budget_of_a_turn_is_never_wider_than_either(all in 0_u64..100, agent in 0_u64..100) {
            let rules = BudgetRules { turn_usd: Dollars(all), ..BudgetRules::default() };
            let of = rules.of_turn(Dollars(agent)).micros();
            let no_limit = |limit: u64| if limit == 0 { u64::MAX } else { limit };
            prop_assert_eq!(no_limit(of), no_limit(all).min(no_limit(agent)));
        }

        /// Spending more, by whichever child, never gives anything back.
        #[test]
        fn what_is_spent_stays_spent(
            limits in (0_u64..100, 0_u64..100, 0_u64..100),
            spent in (0_u64..200, 0_u64..200, 0_u64..200),
            more in (0_u64..50, 0_u64..50, 0_u64..50),
        ) {
            let rules = rules(limits.0, limits.1, limits.2);
            let before = Spending { session: spent.0, family: spent.1, day: spent.2 };
            let after = Spending { session: spent.0 + more.0, family: spent.1 + more.1, day: spent.2 + more.2 };
            for (was, is) in rules.lines(&before).iter().zip(rules.lines(&after)) {
                prop_assert!(!was.is_spent() || is.is_spent());
                prop_assert!(!was.is_near(80) || is.is_near(80));
                prop_assert!(is.left() <= was.left());
            }
        }
    }
}
