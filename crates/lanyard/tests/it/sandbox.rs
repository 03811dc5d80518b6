//! Agents in a sandbox, under the real daemon: a hostile one that tries every way out, and what has to go on working.
//!
//! The tests need `bwrap`, which `cargo xtask test` installs, and user namespaces.

mod bounds;
mod escapes;
mod holds;
mod kit;
mod ways;
