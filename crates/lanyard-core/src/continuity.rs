//! Continuity as a measured promise: what is counted, over which time, and when it is bad enough to say so.
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
