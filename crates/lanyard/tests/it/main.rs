//! The binary as its users meet it: real processes, real sockets, real files.

mod api;
mod auth;
mod crash;
mod faults;
mod help;
mod scenario;
mod starting;
mod stream;
mod support;
mod surface;
