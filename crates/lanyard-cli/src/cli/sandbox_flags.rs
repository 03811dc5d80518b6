//! The least sandbox of a session and the most that it may use, as flags.

use lanyard_core::session::{BoundedResource, NetworkReach, ResourceBounds, SandboxLevel};

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
    /// At most this much of the machine, as `memory_mib=4096`, `processes=512`, `cpu_percent=200`, `open_files=4096` or
    /// `file_mib=1024`; may be given more than once
    #[arg(long = "bound", value_name = "NAME=NUMBER", help_heading = HEADING, value_parser = bound)]
    bounds: Vec<(String, u32)>,
}

fn bound(text: &str) -> Result<(String, u32), String> {
    let (name, amount) = text.split_once('=').ok_or("write it as `memory_mib=4096`")?;
    let amount = amount.parse().map_err(|_| format!("`{amount}` is no whole number"))?;
    if ResourceBounds::default().set(name, amount) {
        return Ok((name.to_owned(), amount));
    }
    let known = BoundedResource::ALL.map(BoundedResource::setting).join("`, `");
    Err(format!("the bounds are `{known}`"))
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
    /// Nothing where no flag was given.
    pub(super) fn bounds(&self) -> Option<ResourceBounds> {
        let mut bounds = ResourceBounds::default();
        for (name, amount) in &self.bounds {
            let _: bool = bounds.set(name, *amount);
        }
        Some(bounds).filter(|bounds| !bounds.is_empty())
    }

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
