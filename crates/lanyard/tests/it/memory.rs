//! Memory as its users meet it: policies that do not reach each other, a switch that loses nothing, writes that outlive a
//! kill, retention, summaries, an endpoint that misbehaves, and the command line.

mod cli;
mod endpoint;
mod kills;
mod kit;
mod policies;
mod retention;
