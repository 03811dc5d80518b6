//! Memory: entries that outlast the conversation, and the policy that limits them. There are two stores: a session's
//! own memory, and long-term memory. Pure types and rules; this module knows neither storage nor callers.

pub mod admit;
pub mod entry;
pub mod policy;
pub mod rank;
mod refusal;
pub mod retention;
pub mod summary;
pub mod tag;

#[cfg(test)]
mod properties_tests;

pub use admit::{Admitted, Rule, admit, readable};
pub use entry::{MemoryEntry, MemoryScope, NewEntry, Source, Where};
pub use policy::{MemoryAsk, MemoryPolicy};
pub use refusal::MemoryRefusal;
pub use retention::{Retention, RetentionRules};
pub use tag::{Tag, Tags};
