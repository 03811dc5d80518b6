//! The gateway before real MCP clients and servers: the protocol's own conformance suite, its inspector, and the SDKs in
//! TypeScript and Python. Each does the same without Lanyard and through it, and what it sees must be the same.
//!
//! None of this needs an agent or a model: `cargo xtask test real --only mcp`.

mod clients;
mod conformance;
pub(crate) mod forward;
mod guided;
pub(crate) mod kit;
pub(crate) mod servers;
