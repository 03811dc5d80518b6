//! The scripted agent over real pipes: every step, every misdeed and every flag is seen from the client's side.

mod client;
mod flags;
mod mcp;
mod steps;
mod wrong;
