//! Names that the daemon, its clients and the processes it starts have to agree on.

/// The prefix of every path of the API.
pub const API: &str = "/api/v1";

/// The name of Lanyard's own MCP server.
pub const OWN_SERVER: &str = "lanyard";

/// The code of the problem that a run's relay answers with while no daemon runs.
pub const DAEMON_AWAY: &str = "daemon_away";

/// The variable that marks every process of a run, and the run it belongs to.
pub const MARKER: &str = "LANYARD_RUN";
/// The variable that names the session a process works in. With it, `lanyard` acts as that session and nothing else.
pub const SESSION: &str = "LANYARD_SESSION";
/// The variable that names a folder to read the dashboard's files from.
pub const DASHBOARD_DIR: &str = "LANYARD_DASHBOARD_DIR";
