//! The owner of live sessions, which commits everything, and what it works with: the hub that feeds readers, the counts of
//! continuity, the flags that tool calls look at, the runs that are alive, the secrets that are taken out. It knows neither
//! HTTP handlers nor agents: effects leave it as data.

pub mod call_flags;
pub mod continuity;
pub mod engine;
pub mod hub;
pub mod live_runs;
pub mod presence;
pub mod redaction;
