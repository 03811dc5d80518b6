//! The pure core of Lanyard. No tokio, no clock, no files: time, ids and randomness arrive as data.
//!
//! A session is a log. A [`Command`](session::Command) may be refused, a [`Signal`](session::Signal) never is; both
//! become [`Event`](session::Event)s, and [`Session::apply`](session::Session::apply) is the only place where state
//! changes, the same when running and when replaying.

pub mod actor;
pub mod address;
pub mod attachment;
pub mod backoff;
pub mod budget;
pub mod continuity;
pub mod flow;
pub mod id;
pub mod insight;
pub mod journal;
pub mod log;
pub mod memory;
pub mod naming;
pub mod notification;
pub mod outcome;
pub mod paper;
pub mod policy;
pub mod redact;
pub mod refusal;
pub mod search;
pub mod session;
pub mod task;
pub mod text;
pub mod time;
pub mod tree;

pub use actor::{Actor, ActorKind, Cause};
pub use address::Address;
pub use attachment::AttachmentId;
pub use backoff::Backoff;
pub use flow::Flow;
pub use id::{
    CommentId, ComparisonId, ConnectionId, DeliveryId, FlowId, GateId, MailId, MemoryId, NodeId, NoteId,
    NotificationId, PlanId, RunId, SessionId, TaskId, TokenId, TurnId, WorkerId, WorkspaceId,
};
pub use log::{FollowedKind, Impossible, LogEntry, Record};
pub use outcome::Outcome;
pub use policy::{Limits, MemoryMode, Overlong, Rules, Staleness};
pub use session::Session;
pub use task::Task;
pub use time::Timestamp;
