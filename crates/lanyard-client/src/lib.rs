//! Lanyard's client: requests to a daemon over its Unix socket or TCP, streams that come back after a restart of the
//! daemon, and JSON-RPC lines on stdio. It starts no daemon, prints nothing and knows no command of the command line.

mod absence;
mod connection;
mod daemon;
mod error;
mod feed;
mod follower;
#[cfg(test)]
mod follower_tests;
mod given;
pub mod lines;
mod link;
pub mod names;
mod record_watch;
mod route;
pub mod rpc;
mod sse;
mod terminal_stream;

pub use absence::BACKOFF;
pub use connection::{HttpAnswer, HttpConnection, HttpError};
pub use daemon::{
    ANSWER_TIMEOUT, ApiRequest, DaemonAddress, DaemonConnection, SIGN_OF_LIFE_TIMEOUT, encode, random_key,
};
pub use error::{ClientError, is_passing_status};
pub use feed::{Fed, StreamFeed};
pub use follower::{
    DaemonStream, FollowStep, OpenStream, StreamCursor, StreamFollower, StreamSource, Transport,
};
pub use given::{GivenSession, inside};
pub use link::DaemonLink;
pub use record_watch::{RecordWatch, WatchSettings, Woken};
pub use route::Route;
pub use sse::{EventStream, SseFrame};
pub use terminal_stream::{TerminalStep, TerminalStream};
