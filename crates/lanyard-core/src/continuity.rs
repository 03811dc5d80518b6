//! Continuity as a measured promise: counters, time windows, and the limits at which an alert begins.
//!
//! Counting is a fold over events, and time arrives with them. This module knows neither where counts are kept nor how
//! alerts are delivered.

mod accident;
mod assess;
mod count;
mod window;

pub use accident::Accidents;
pub use assess::{Alert, AlertKind, ContinuityRules, ContinuityStatus, Rates, assess, rates, status};
pub use count::{Counter, Tally, counted};
pub use window::{SLOT_MS, Slot, Window, slot_of};

#[cfg(test)]
mod assess_tests;
#[cfg(test)]
mod count_tests;
