//! What Lanyard's daemon and its clients share: the words of the HTTP API, the config file, the data folder, the agents
//! that are known, and the text of MCP answers. It knows neither a runtime nor a server nor the daemon.

pub mod agents;
pub mod annotate;
pub mod config;
pub mod home;
pub mod http_url;
pub mod names;
pub mod types;
