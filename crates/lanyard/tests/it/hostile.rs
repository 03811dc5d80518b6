//! A hostile agent: one with a shell, `lanyard` in it, and every intent to be more than its session.

mod forging;
mod kit;
mod reading;
mod shell;
mod streams;
