//! Programs that follow a script in place of a model: an agent, and an MCP server. The product needs them, since the
//! agent's script without a prompt is the demo; the suites need them, since each misdeed of an agent or a server is a
//! step. They know neither the commands nor the daemon.

pub mod agent;
pub mod mcp_server;
