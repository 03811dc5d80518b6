//! Continuity as a measured promise: what is counted, over which time, and when it is bad enough to say so.
//!
//! Counting is a fold over what happened, and time arrives with it. Nothing here knows where counts are kept or who is
//! told (S3-34 … S3-38, S3-B11).

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
