//! The MCP gateway between real clients and real servers: an address in this process, and a program that is this very
//! test binary in another role.

mod address;
mod agents;
mod identity;
pub(crate) mod kit;
mod modern;
mod older;
mod once;
mod outlived;
mod own_tools;
mod program;
mod recorded;
mod server;
mod sharing;
mod spawned;
mod spoken;
mod strict;
mod tls;
mod trouble;
mod words;
