//! Attaching to a session, over both kinds of stream: real daemons, real sockets.

mod churn;
mod directory;
mod doors;
mod drop_in;
mod frames;
mod kit;
mod modes;
mod presence;
mod records;
mod requests;
mod slow;
