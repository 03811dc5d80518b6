//! Memory: what is kept beyond the conversation, and the policy that says what may be. Two stores: a session's own
//! memory, and long-term memory. Pure types and rules; where entries are kept and who asks is not known here.

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
pub use entry::{Entry, NewEntry, Scope, Source, Where};
pub use policy::{MemoryAsk, MemoryPolicy};
pub use refusal::Refusal;
pub use retention::{Retention, RetentionRules};
pub use tag::{Tag, Tags};
