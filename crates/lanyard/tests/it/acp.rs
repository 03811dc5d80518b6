//! `lanyard acp` as editors meet it: the official client of the protocol over real pipes, and bare lines where a client
//! would not say what is tried.

mod bad;
mod breaks;
mod choices;
mod gates;
mod history;
mod kit;
mod observers;
mod turns;
