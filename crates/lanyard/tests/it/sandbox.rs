//! Agents in a sandbox, under the real daemon: a hostile one that tries every way out, and what has to go on working.
//!
//! The tests need `bwrap` and user namespaces; without them the sandbox itself is refused, which the last test looks at.

mod escapes;
mod holds;
mod kit;
mod ways;
