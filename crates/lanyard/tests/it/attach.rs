//! Attaching to a session, over server-sent events and over WebSockets: real daemons, real sockets.

mod churn;
mod directory;
mod doors;
mod drop_in;
mod frames;
mod kit;
mod modes;
mod presence;
mod requests;
mod slow;
