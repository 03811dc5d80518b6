//! The least sandbox of a session, as flags.

use lanyard_core::session::{NetworkReach, SandboxLevel};

const HEADING: &str = "Sandbox";

#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct SandboxFlags {
    /// At least this sandbox: `workspace` or `strict`; the agent's settings and the parent's sandbox hold besides
    #[arg(long, value_name = "LEVEL", help_heading = HEADING, value_parser = level)]
    pub(super) sandbox: Option<SandboxLevel>,
    /// What the sandbox can connect to: `all`, `gateway`, or a host (`host`, `host:port`, `*.domain`); hosts may be given
    /// more than once
    #[arg(long, value_name = "REACH", help_heading = HEADING)]
    network: Vec<String>,
}

fn level(word: &str) -> Result<SandboxLevel, String> {
    match word {
        "off" => Ok(SandboxLevel::Off),
        "workspace" => Ok(SandboxLevel::Workspace),
        "strict" => Ok(SandboxLevel::Strict),
        _ => Err("name `workspace` or `strict`".to_owned()),
    }
}

impl SandboxFlags {
    /// Nothing where no flag was given. The daemon checks the names of hosts.
    pub(super) fn network(&self) -> Option<NetworkReach> {
        match &self.network[..] {
            [] => None,
            [word] if word == "all" => Some(NetworkReach::All),
            [word] if word == "gateway" => Some(NetworkReach::Gateway),
            hosts => Some(NetworkReach::Hosts(hosts.to_vec())),
        }
    }
}
