//! The sandbox around an agent: the least that a session asks for, and what holds in a run of it. Names and orders only;
//! how a machine gives it is not known here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::bounds::{HeldBound, ResourceBounds};
use crate::session::refusal::Refusal;

/// Hosts in an allow-list.
const HOSTS_MAX: usize = 64;
/// The longest name in the domain name system.
const HOST_CHARS_MAX: usize = 253;
/// The port of a host that names none.
const HTTPS_PORT: u16 = 443;

/// How much of the machine an agent can see and change. Each level includes the one before.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// All that the user can do.
    #[default]
    Off,
    /// Writes the workspace, its worktree and the agent's own state; sees neither Lanyard's files nor keys.
    Workspace,
    /// Reads only system folders besides.
    Strict,
}

impl SandboxLevel {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::Strict => "strict",
        }
    }
}

/// Where an agent in a sandbox can connect to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkReach {
    /// Every address the machine reaches.
    #[default]
    All,
    /// Lanyard's gateway only.
    Gateway,
    /// The gateway, and these hosts through a proxy: `host`, `host:port` or `*.domain`; port 443 where none is named.
    #[serde(untagged)]
    Hosts(Vec<String>),
}

impl NetworkReach {
    /// Whether every name in the list is one.
    pub fn check(&self) -> Result<(), Refusal> {
        let Self::Hosts(hosts) = self else { return Ok(()) };
        if hosts.len() > HOSTS_MAX {
            return Err(Refusal::TooMany { field: "network", max: HOSTS_MAX });
        }
        match hosts.iter().find(|host| AllowedHost::read(host).is_none()) {
            Some(host) => {
                Err(Refusal::SandboxHost { host: crate::text::cut(host, HOST_CHARS_MAX).0.to_owned() })
            }
            None => Ok(()),
        }
    }

    /// What both allow.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::All, narrower) | (narrower, Self::All) => narrower.clone(),
            (Self::Gateway, _) | (_, Self::Gateway) => Self::Gateway,
            (Self::Hosts(left), Self::Hosts(right)) => {
                let mut both: Vec<String> = Vec::new();
                let within =
                    |entry: &&String, list: &[String]| list.iter().any(|other| includes(other, entry));
                let shared = left.iter().filter(|entry| within(entry, right));
                for entry in shared.chain(right.iter().filter(|entry| within(entry, left))) {
                    if !both.contains(entry) {
                        both.push(entry.clone());
                    }
                }
                if both.is_empty() { Self::Gateway } else { Self::Hosts(both) }
            }
        }
    }

    /// In a few words.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Gateway => "gateway only".to_owned(),
            Self::Hosts(hosts) => format!("gateway and {}", hosts.join(", ")),
        }
    }
}

/// Whether all that `entry` allows is allowed by `other` too.
fn includes(other: &str, entry: &str) -> bool {
    let (Some(other), Some(entry)) = (AllowedHost::read(other), AllowedHost::read(entry)) else {
        return false;
    };
    let named = match (other.any_below, entry.any_below) {
        (true, true) => entry.name == other.name || entry.name.ends_with(&format!(".{}", other.name)),
        (true, false) => entry.name.ends_with(&format!(".{}", other.name)),
        (false, true) => false,
        (false, false) => entry.name == other.name,
    };
    named && other.port == entry.port
}

/// One entry of an allow-list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    /// In lower case, without the `*.`.
    name: String,
    /// Any host below that domain, and not the domain itself.
    any_below: bool,
    port: u16,
}

impl AllowedHost {
    /// Nothing for text that is no host.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok().filter(|port| *port != 0)?),
            None => (text, HTTPS_PORT),
        };
        let (name, any_below) = match name.strip_prefix("*.") {
            Some(domain) => (domain, true),
            None => (name, false),
        };
        let plain = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        let whole = !name.is_empty() && name.len() <= HOST_CHARS_MAX && name.split('.').all(plain);
        whole.then(|| Self { name: name.to_ascii_lowercase(), any_below, port })
    }

    /// Whether a connection to this host and port is allowed. `host` is compared without regard to case and a final dot.
    #[must_use]
    pub fn allows(&self, host: &str, port: u16) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let named = if self.any_below {
            host.strip_suffix(&self.name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        } else {
            host == self.name
        };
        named && port == self.port
    }

    /// Whether the entry names one host by its number or as this machine. Only then may it lead to a private address.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        !self.any_below && (self.name == "localhost" || self.name.parse::<std::net::Ipv4Addr>().is_ok())
    }
}

/// The least sandbox of a session, and the most that its runs may use. It only ever adds to what the agent's own settings
/// ask for, and to what its parent has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxRule {
    #[serde(skip_serializing_if = "is_off")]
    pub level: SandboxLevel,
    #[serde(skip_serializing_if = "reaches_all")]
    pub network: NetworkReach,
    #[serde(skip_serializing_if = "ResourceBounds::is_empty")]
    pub bounds: ResourceBounds,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_off(level: &SandboxLevel) -> bool {
    *level == SandboxLevel::Off
}

fn reaches_all(network: &NetworkReach) -> bool {
    *network == NetworkReach::All
}

impl SandboxRule {
    /// A network that is narrower than all is only held by a sandbox, so it asks for one.
    #[must_use]
    pub fn new(level: SandboxLevel, network: NetworkReach) -> Self {
        let least = if network == NetworkReach::All { SandboxLevel::Off } else { SandboxLevel::Workspace };
        Self { level: level.max(least), network, bounds: ResourceBounds::default() }
    }

    #[must_use]
    pub fn bounded(self, bounds: ResourceBounds) -> Self {
        Self { bounds, ..self }
    }

    /// Both together: the stricter level, the network that both allow, and the smaller bounds.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self::new(self.level.max(other.level), self.network.and(&other.network))
            .bounded(self.bounds.and(&other.bounds))
    }

    /// Whether it asks for a sandbox. Bounds alone need none.
    #[must_use]
    pub fn encloses(&self) -> bool {
        self.level != SandboxLevel::Off
    }

    /// Whether it asks for nothing at all.
    #[must_use]
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// Whether something is allowed here that `above` forbids.
    #[must_use]
    pub fn is_wider_than(&self, above: &Self) -> bool {
        let both = self.and(above);
        both.level != self.level || both.network != self.network || both.bounds != self.bounds
    }
}

/// How a sandbox is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMechanism {
    /// Namespaces, by the program `bwrap`.
    Bubblewrap,
}

impl SandboxMechanism {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
        }
    }
}

/// The sandbox and the bounds that hold in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Containment {
    pub level: SandboxLevel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<SandboxMechanism>,
    #[serde(default)]
    pub network: NetworkReach,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<HeldBound>,
    /// What this machine gives less of than the level promises and the bounds ask for, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weaker: Vec<String>,
}

impl Containment {
    /// The rule for the children of a session in whose run this holds.
    #[must_use]
    pub fn rule(&self) -> SandboxRule {
        let mut bounds = ResourceBounds::default();
        for held in &self.bounds {
            let _: bool = bounds.set(held.what.setting(), held.amount);
        }
        SandboxRule::new(self.level, self.network.clone()).bounded(bounds)
    }

    /// In one line: `workspace by bubblewrap, network gateway only`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let level = match self.mechanism {
            Some(mechanism) => {
                let (level, network) = (self.level.as_str(), self.network.in_words());
                format!("{level} by {}, network {network}", mechanism.as_str())
            }
            None => self.level.as_str().to_owned(),
        };
        let bounds = self.bounds.iter().map(HeldBound::in_words);
        std::iter::once(level).chain(bounds).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str]) -> NetworkReach {
        NetworkReach::Hosts(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_list_of_hosts_is_a_list_and_the_others_are_words() {
        for (reach, json) in [
            (NetworkReach::All, r#""all""#),
            (NetworkReach::Gateway, r#""gateway""#),
            (hosts(&["a.org", "*.b.org:8443"]), r#"["a.org","*.b.org:8443"]"#),
        ] {
            assert_eq!(serde_json::to_string(&reach).unwrap(), json);
            assert_eq!(serde_json::from_str::<NetworkReach>(json).unwrap(), reach);
        }
        assert!(serde_json::from_str::<NetworkReach>(r#""none""#).is_err());
    }

    #[test]
    fn a_host_is_allowed_by_its_name_and_port() {
        for (entry, host, port, allowed) in [
            ("api.example.org", "api.example.org", 443, true),
            ("api.example.org", "API.Example.ORG.", 443, true),
            ("api.example.org", "api.example.org", 80, false),
            ("api.example.org", "evil-api.example.org", 443, false),
            ("api.example.org:8443", "api.example.org", 8443, true),
            ("*.example.org", "a.example.org", 443, true),
            ("*.example.org", "a.b.example.org", 443, true),
            ("*.example.org", "example.org", 443, false),
            ("*.example.org", ".example.org", 443, false),
            ("*.example.org", "evilexample.org", 443, false),
            ("*.example.org", "a.example.org.evil.net", 443, false),
            ("127.0.0.1:8080", "127.0.0.1", 8080, true),
        ] {
            assert_eq!(
                AllowedHost::read(entry).unwrap().allows(host, port),
                allowed,
                "{entry} {host} {port}"
            );
        }
        for bad in [
            "",
            "*",
            "*.",
            "a b",
            "http://a.org",
            "a.org/x",
            "a..org",
            "a.org:0",
            "a.org:x",
            "*.*.org",
            "[::1]",
        ] {
            assert_eq!(AllowedHost::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn two_reaches_allow_what_both_do() {
        let (all, gateway) = (NetworkReach::All, NetworkReach::Gateway);
        let some = hosts(&["a.org", "*.b.org"]);
        for (left, right, both) in [
            (&all, &all, all.clone()),
            (&all, &some, some.clone()),
            (&some, &gateway, gateway.clone()),
            (&some, &hosts(&["a.org", "c.org"]), hosts(&["a.org"])),
            (&some, &hosts(&["x.b.org", "*.y.b.org"]), hosts(&["x.b.org", "*.y.b.org"])),
            (&some, &hosts(&["a.org:80"]), gateway.clone()),
        ] {
            assert_eq!(left.and(right), both, "{left:?} {right:?}");
            assert_eq!(right.and(left), both, "{right:?} {left:?}");
        }
    }

    #[test]
    fn a_rule_is_never_widened_by_another() {
        let rule = SandboxRule::new;
        let workspace = rule(SandboxLevel::Workspace, NetworkReach::All);
        let strict = rule(SandboxLevel::Strict, NetworkReach::All);
        let closed = rule(SandboxLevel::Off, NetworkReach::Gateway);
        assert_eq!(closed.level, SandboxLevel::Workspace, "only a sandbox closes the network");
        assert!(SandboxRule::default().is_wider_than(&workspace) && workspace.is_wider_than(&closed));
        assert!(!strict.is_wider_than(&workspace) && !closed.is_wider_than(&workspace));
        assert_eq!(strict.and(&closed), rule(SandboxLevel::Strict, NetworkReach::Gateway));
        assert_eq!(serde_json::to_string(&SandboxRule::default()).unwrap(), "{}");
        let most = |memory_mib| ResourceBounds { memory_mib: Some(memory_mib), ..ResourceBounds::default() };
        let (small, large) = (strict.clone().bounded(most(100)), strict.clone().bounded(most(200)));
        assert!(large.is_wider_than(&small) && strict.is_wider_than(&large));
        assert!(!small.is_wider_than(&large) && !large.is_wider_than(&strict));
        assert!(!SandboxRule::default().bounded(most(100)).encloses());
    }
}
