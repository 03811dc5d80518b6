//! The sandbox around an agent: what its processes can see, change and connect to.
//!
//! | module | what | |
//! |---|---|---|
//! | `places` | tables of folders: of the system, of secrets, of each agent's own state | pure |
//! | `facts` | what of those there is on this machine, for one run | looks |
//! | `plan` | the facts as rules for paths | pure |
//! | `bwrap` | the rules as arguments of `bwrap` | pure |
//! | `machine` | which mechanisms work here | tries |
//! | `inside` | the helper that is started in the sandbox and becomes the agent, or stays beside it | acts |
//! | `proxy` | connects to the hosts of a list | acts |
//! | `bridge` | carries the agent's connections out of a network of its own | acts |
//!
//! Knows nothing of sessions, runs or the daemon.

pub mod bridge;
mod bwrap;
mod facts;
pub mod inside;
mod machine;
mod places;
mod plan;
pub mod proxy;

use std::path::PathBuf;

use lanyard_core::session::{NetworkReach, SandboxLevel, SandboxMechanism};
use serde::{Deserialize, Serialize};

pub use bwrap::Parent;
pub use facts::{SandboxAsk, Surroundings, look_around};
pub use inside::InsideOrder;
pub use machine::{MachineSandbox, machine};
pub use plan::{MountRule, PathAccess, SandboxFacts, SandboxPlanError, rules};

/// The folder of a run that its sandbox sees, in the run's folder.
pub const DOOR: &str = "door";
/// The same folder as it is named in the sandbox.
pub const DOOR_INSIDE: &str = "/run/lanyard";
/// The socket by which the relay is reached from a network of its own.
pub const RELAY_SOCKET: &str = "relay";
/// The socket by which the proxy is reached.
pub const PROXY_SOCKET: &str = "proxy";
/// The port of the proxy in the sandbox, where nothing but the relay has one too.
const PROXY_PORTS: [u16; 2] = [3128, 3129];
/// What a client on loopback is told of the proxy, so that the relay is reached without it.
const NO_PROXY: &str = "127.0.0.1,localhost";
/// The file that stands for every hidden file: nobody may read it.
pub const BLANK: &str = "blank";

/// Lanyard's own files, which no sandbox shows.
#[derive(Debug, Clone, Default)]
pub struct OwnFiles {
    /// The data folder and the config.
    pub hidden: Vec<PathBuf>,
    /// Folders in them that workspaces may lie in.
    pub worktrees: Vec<PathBuf>,
    /// Folders in them that the run may read.
    pub shown: Vec<PathBuf>,
}

/// A sandbox in full, as the shim gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enclosure {
    pub level: SandboxLevel,
    pub mechanism: SandboxMechanism,
    /// The program `bwrap`.
    pub bwrap: PathBuf,
    pub rules: Vec<MountRule>,
    /// Links of the system in `strict`, with what they say.
    pub links: Vec<(PathBuf, PathBuf)>,
    pub network: NetworkReach,
    /// Lanyard's own program, which is the helper.
    pub helper: PathBuf,
    /// The folder of the run that is shown as [`DOOR_INSIDE`].
    pub door: PathBuf,
    /// The port of the run's relay.
    pub relay: Option<u16>,
    /// Whether its processes can make namespaces of users. Root's could write the control groups of others in them.
    #[serde(default)]
    pub nests: bool,
    /// Variables that lead to sockets of the user.
    pub unset: Vec<String>,
}

/// Variables that a sandbox takes from its processes.
#[must_use]
pub fn unset() -> Vec<String> {
    places::UNSET.iter().map(|name| (*name).to_owned()).collect()
}

impl Enclosure {
    /// For one run: with the folder of it that is shown, and the port of its relay.
    #[must_use]
    pub fn of_run(self, door: PathBuf, relay: Option<u16>) -> Self {
        Self { door, relay, ..self }
    }

    /// The port of the proxy in the sandbox, where there is a list of hosts.
    pub(crate) fn proxy_port(&self) -> Option<u16> {
        let NetworkReach::Hosts(_) = self.network else { return None };
        PROXY_PORTS.into_iter().find(|port| Some(*port) != self.relay)
    }

    /// Variables by which programs find the proxy.
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let Some(port) = self.proxy_port() else { return Vec::new() };
        let url = format!("http://127.0.0.1:{port}");
        let named =
            ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"].map(|name| (name, url.clone()));
        let past = ["NO_PROXY", "no_proxy"].map(|name| (name, NO_PROXY.to_owned()));
        let node = [("NODE_USE_ENV_PROXY", "1".to_owned())];
        named.into_iter().chain(past).chain(node).collect()
    }

    /// The command that runs `argv` in the sandbox.
    #[must_use]
    pub fn around(&self, argv: &[String], cwd: &std::path::Path, parent: Parent) -> Vec<String> {
        bwrap::arguments(self, argv, cwd, parent)
    }
}
