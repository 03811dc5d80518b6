//! Rates over a window, and whether they are bad enough to alert: with a minimum of attempts, and with hysteresis, so
//! that a rate at its limit does not flap.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::continuity::count::{Counter, Tally};

/// Limits beyond which continuity counts as degraded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ContinuityRules {
    /// The time rates are taken over, in milliseconds; counted in whole minutes.
    pub window_ms: u64,
    /// Attempts in the window below which a rate says nothing.
    pub min_attempts: u64,
    /// The share of attaches that must succeed.
    pub attach_success_min: f64,
    /// The share of resumes that must succeed.
    pub resume_success_min: f64,
    /// The share of new sessions that may come from a failure to get back to an old one.
    pub accidental_new_max: f64,
    /// Margin by which a rate must be better than its limit before its alert ends.
    pub recovery_margin: f64,
    /// Attaches that may fail in the window, however many succeed; 0 for any number.
    pub attach_failures_max: u64,
    /// Resumes that may fail in the window, however many succeed; 0 for any number.
    pub resume_failures_max: u64,
    /// The share of its limit to which a number of failures must fall before its alert ends.
    pub failures_clear_share: f64,
    /// Time after a failure within which a new session counts as made by accident, in milliseconds.
    pub accident_ms: u64,
}

impl Default for ContinuityRules {
    fn default() -> Self {
        Self {
            window_ms: 60 * 60 * 1_000,
            min_attempts: 10,
            attach_success_min: 0.95,
            resume_success_min: 0.9,
            accidental_new_max: 0.1,
            recovery_margin: 0.03,
            attach_failures_max: 50,
            resume_failures_max: 20,
            failures_clear_share: 0.5,
            accident_ms: 60_000,
        }
    }
}

/// Longest window; older counts are not kept.
const WINDOW_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1_000;

impl ContinuityRules {
    /// Returns an error sentence for the first invalid number.
    pub fn check(&self) -> Result<(), String> {
        if !(60_000..=WINDOW_MS_MAX).contains(&self.window_ms) {
            return Err(format!("`window_ms` must be 60000 to {WINDOW_MS_MAX}"));
        }
        if self.min_attempts == 0 {
            return Err("`min_attempts` must be at least 1".to_owned());
        }
        let shares = [
            ("attach_success_min", self.attach_success_min),
            ("resume_success_min", self.resume_success_min),
            ("accidental_new_max", self.accidental_new_max),
            ("recovery_margin", self.recovery_margin),
            ("failures_clear_share", self.failures_clear_share),
        ];
        match shares.iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            Some((name, _)) => Err(format!("`{name}` is a share, from 0 to 1")),
            None => Ok(()),
        }
    }
}

/// Rates derived from counts. Without attempts a rate is absent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    pub attach_success_rate: Option<f64>,
    pub resume_success_rate: Option<f64>,
    /// New sessions that came right after a failure to get back to an old one, of all new sessions.
    pub accidental_new_session_rate: Option<f64>,
    /// Turns that were kept from running a second time.
    pub duplicate_turn_prevention_count: u64,
}

#[must_use]
pub fn rates(tally: &Tally) -> Rates {
    let share = |kind: AlertKind| {
        let (good, bad) = kind.evidence(tally);
        let part = if kind.counts_the_bad() { bad } else { good };
        (good + bad > 0).then(|| ratio(part, good + bad))
    };
    Rates {
        attach_success_rate: share(AlertKind::AttachSuccessRate),
        resume_success_rate: share(AlertKind::ResumeSuccessRate),
        accidental_new_session_rate: share(AlertKind::AccidentalNewSessionRate),
        duplicate_turn_prevention_count: tally.get(Counter::DuplicateTurns),
    }
}

/// A condition that raises an alert when it begins and clears it when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    AttachSuccessRate,
    ResumeSuccessRate,
    AccidentalNewSessionRate,
    /// Too many attaches failed, whatever their share.
    AttachFailures,
    /// Too many resumes failed, whatever their share.
    ResumeFailures,
}

impl AlertKind {
    pub const ALL: [Self; 5] = [
        Self::AttachSuccessRate,
        Self::ResumeSuccessRate,
        Self::AccidentalNewSessionRate,
        Self::AttachFailures,
        Self::ResumeFailures,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AttachSuccessRate => "attach_success_rate",
            Self::ResumeSuccessRate => "resume_success_rate",
            Self::AccidentalNewSessionRate => "accidental_new_session_rate",
            Self::AttachFailures => "attach_failures",
            Self::ResumeFailures => "resume_failures",
        }
    }

    /// Whether the measure is what went wrong, or the share of it.
    const fn counts_the_bad(self) -> bool {
        match self {
            Self::AttachSuccessRate | Self::ResumeSuccessRate => false,
            Self::AccidentalNewSessionRate | Self::AttachFailures | Self::ResumeFailures => true,
        }
    }

    /// Whether the measure is a number of failures and not a rate.
    const fn is_count(self) -> bool {
        match self {
            Self::AttachSuccessRate | Self::ResumeSuccessRate | Self::AccidentalNewSessionRate => false,
            Self::AttachFailures | Self::ResumeFailures => true,
        }
    }

    /// The rate or the number that is compared with the limit.
    fn actual(self, tally: &Tally) -> f64 {
        let (good, bad) = self.evidence(tally);
        if self.is_count() {
            return ratio(bad, 1);
        }
        ratio(if self.counts_the_bad() { bad } else { good }, good + bad)
    }

    /// Successes and failures.
    fn evidence(self, tally: &Tally) -> (u64, u64) {
        let of = |counter| tally.get(counter);
        match self {
            Self::AttachSuccessRate | Self::AttachFailures => {
                (of(Counter::AttachSucceeded), of(Counter::AttachFailed))
            }
            Self::ResumeSuccessRate | Self::ResumeFailures => {
                (of(Counter::ResumeSucceeded), of(Counter::ResumeFailed))
            }
            Self::AccidentalNewSessionRate => {
                let bad = of(Counter::AccidentalNewSessions);
                (of(Counter::SessionsCreated).saturating_sub(bad), bad)
            }
        }
    }

    fn threshold(self, rules: &ContinuityRules) -> f64 {
        match self {
            Self::AttachSuccessRate => rules.attach_success_min,
            Self::ResumeSuccessRate => rules.resume_success_min,
            Self::AccidentalNewSessionRate => rules.accidental_new_max,
            Self::AttachFailures => ratio(rules.attach_failures_max, 1),
            Self::ResumeFailures => ratio(rules.resume_failures_max, 1),
        }
    }

    /// The value at which an alert ends. A rate of all or nothing can always be reached.
    fn clears_at(self, rules: &ContinuityRules) -> f64 {
        let threshold = self.threshold(rules);
        if self.is_count() {
            (threshold * rules.failures_clear_share).floor()
        } else if self.counts_the_bad() {
            (threshold - rules.recovery_margin).max(0.0)
        } else {
            (threshold + rules.recovery_margin).min(1.0)
        }
    }
}

/// A rate or a number of failures that is beyond its limit, or was and has not come back far enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    pub code: AlertKind,
    pub text: String,
    pub actual: f64,
    pub threshold: f64,
    /// The value at which the alert ends.
    pub clears_at: f64,
    /// Attempts in the window.
    pub attempts: u64,
    pub failed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContinuityStatus {
    Ok,
    Degraded,
}

#[must_use]
pub fn status(alerts: &[Alert]) -> ContinuityStatus {
    if alerts.is_empty() { ContinuityStatus::Ok } else { ContinuityStatus::Degraded }
}

/// The alerts that hold now, given those that held before and what the window has.
///
/// One begins when there are enough attempts and the rate is beyond its limit. It ends when the rate, of enough
/// attempts, is better than the limit by the margin, or when nothing that went wrong is left in the window. Too few
/// attempts begin nothing and end nothing: an alert must not come and go with the number of attempts.
///
/// One of a number of failures begins above its limit and ends at the share of it that the rules name.
#[must_use]
pub fn assess(window: &Tally, rules: &ContinuityRules, before: &BTreeSet<AlertKind>) -> Vec<Alert> {
    let holds = |kind: &AlertKind| {
        let (good, bad) = kind.evidence(window);
        let enough = good + bad >= rules.min_attempts;
        let beyond = |limit: f64| {
            let actual = kind.actual(window);
            if kind.counts_the_bad() { actual > limit } else { actual < limit }
        };
        if kind.is_count() {
            let limit = if before.contains(kind) { kind.clears_at(rules) } else { kind.threshold(rules) };
            return kind.threshold(rules) > 0.0 && beyond(limit);
        }
        if before.contains(kind) {
            bad > 0 && (!enough || beyond(kind.clears_at(rules)))
        } else {
            enough && beyond(kind.threshold(rules))
        }
    };
    AlertKind::ALL.into_iter().filter(holds).map(|kind| alert(kind, window, rules)).collect()
}

fn alert(kind: AlertKind, window: &Tally, rules: &ContinuityRules) -> Alert {
    let (good, bad) = kind.evidence(window);
    let attempts = good + bad;
    let actual = kind.actual(window);
    let (threshold, clears_at) = (kind.threshold(rules), kind.clears_at(rules));
    let minutes = rules.window_ms.div_ceil(60_000);
    let text = match kind {
        AlertKind::AttachSuccessRate | AlertKind::AttachFailures => {
            format!("{bad} of {attempts} attaches failed in the last {minutes} minutes")
        }
        AlertKind::ResumeSuccessRate | AlertKind::ResumeFailures => {
            format!("{bad} of {attempts} resumes failed in the last {minutes} minutes")
        }
        AlertKind::AccidentalNewSessionRate => format!(
            "{bad} of {attempts} new sessions came right after a failure to get back to an old one, in the last \
             {minutes} minutes"
        ),
    };
    Alert { code: kind, text, actual, threshold, clears_at, attempts, failed: bad }
}

/// Counts are far below what a float can hold exactly.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
