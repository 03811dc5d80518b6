//! What all parts of the daemon share, below all of them: time and randomness, the settings in use, the variables that other
//! programs inherit, the places where tests end the process, and wakes within one task. It knows nothing of sessions.

pub mod clock;
pub mod day_zone;
pub mod environment;
mod error_chain;
pub mod failpoint;
pub mod live_config;
pub mod self_waking;

pub use error_chain::error_chain;
