//! The MCP gateway, the place where the tool calls of sessions pass, and connections to servers that the config names. It
//! asks the engine, and knows neither the API's handlers nor tasks, flows and memory: Lanyard's own tools are reached by a
//! trait.

pub mod http_endpoint;
pub mod intercept;
pub mod mcp;
pub mod tls;
