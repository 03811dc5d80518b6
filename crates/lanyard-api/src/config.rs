//! The config file: one TOML file, every value optional, unknown names refused.

mod budgets;
mod changes;
mod features;
mod file;
mod keys;
mod memory;
mod notifications;
mod storage;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use lanyard_core::continuity::ContinuityRules;
use lanyard_core::flow::{FlowEvent, FlowSettings};
use lanyard_core::policy::{Limits, Staleness, StopRules, WriterRules};
use lanyard_core::session::Intervention;
use lanyard_core::task::health::HealthRules;
use lanyard_core::task::schedule::FamilyRules;
use lanyard_core::{Actor, ActorKind, Rules};
use serde::{Deserialize, Serialize};

use crate::agents::settings::{AgentSettings, DriverKind, McpSettings};
use crate::http_url::HttpUrl;
use crate::names::OWN_SERVER;

pub use budgets::BudgetConfig;
pub use changes::{ConfigChange, ConfigChangeKind, LIVE, Takes, changes, takes_effect};
pub use features::{Features, Switch};
pub use file::{CONFIG_BYTES_MAX, ConfigError, ConfigFile};
pub use keys::{is_known, known_keys, nearest_key};
pub use memory::{Embeddings, MemoryConfig, MemorySwitch, SummaryMode};
pub use notifications::{BodyKind, DESKTOP, Desktop, NotificationSettings, Webhook};
pub use storage::{SessionRetention, StorageRules, StorageSettings};

/// The address the daemon listens on unless told otherwise: loopback only.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:7717";

/// Streams the operator's own token, which is in the data folder, may have open: a fifth of the connections there are
/// stays free for everybody else. An idle stream takes about 15 KiB in a debug build: all of them 120 MB.
pub const OPERATOR_STREAMS_MAX: usize = 8_000;

/// Tokens of these names belong to chat channels, whatever others the config lists.
const CHAT_CHANNELS: [&str; 2] = ["chat", "telegram"];

/// The agent that needs no account: it plays a small piece of work, or whatever its prompt says.
pub const DEMO: &str = "demo";

/// The agent of sessions that are programs on terminals, where no agent of the config is meant. It has no settings.
pub const TERMINAL: &str = "terminal";

/// What `lanyard init` writes: every setting with its default, commented out.
pub const TEMPLATE: &str = include_str!("config.toml");

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub daemon: DaemonConfig,
    pub staleness: Staleness,
    pub limits: Limits,
    pub stop: StopRules,
    /// Which sessions people may send turns to.
    pub intervention: InterventionConfig,
    pub writer: WriterRules,
    pub families: FamilyRules,
    pub health: HealthRules,
    /// What may be spent.
    pub budgets: BudgetConfig,
    pub gateway: GatewayConfig,
    /// How plans are worked through.
    pub flow: FlowSettings,
    pub continuity: ContinuityRules,
    pub notifications: NotificationSettings,
    pub features: Features,
    pub memory: MemoryConfig,
    /// When ended sessions are deleted.
    pub retention: SessionRetention,
    /// How large the journal may grow before people are told.
    pub storage: StorageSettings,
    /// What is taken out of logs.
    pub redaction: RedactionConfig,
    /// The agents Lanyard runs, by name.
    pub agents: BTreeMap<String, AgentSettings>,
    /// MCP servers offered to every agent, by name.
    pub mcp: BTreeMap<String, McpSettings>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DaemonConfig {
    pub listen: SocketAddr,
    /// How long the outcome of a mutation is kept for a repeat of its key; that it made a task, after the task's end.
    pub keep_outcomes_ms: u64,
    /// Streams the operator's own token may have open at a time.
    pub operator_streams: usize,
    /// The agent of sessions, tasks and flows that name none.
    pub default_agent: Option<String>,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7717)),
            keep_outcomes_ms: 7 * 24 * 60 * 60 * 1_000,
            operator_streams: OPERATOR_STREAMS_MAX,
            default_agent: None,
        }
    }
}

/// Which sessions people may send turns to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InterventionConfig {
    pub operators: Intervention,
    /// By channel: the name of the token a channel uses. A channel that is not listed is an operator.
    pub channels: BTreeMap<String, Intervention>,
}

impl Default for InterventionConfig {
    fn default() -> Self {
        let chats = CHAT_CHANNELS.iter().map(|name| ((*name).to_owned(), Intervention::RootOnly));
        Self { operators: Intervention::Any, channels: chats.collect() }
    }
}

impl InterventionConfig {
    /// The sessions that take turns from this caller. What Lanyard itself sends is nobody's intervention.
    #[must_use]
    pub fn of(&self, actor: &Actor) -> Intervention {
        match actor.kind {
            ActorKind::Operator => match self.channels.get(&actor.name) {
                Some(set) => *set,
                None if CHAT_CHANNELS.contains(&actor.name.as_str()) => Intervention::RootOnly,
                None => self.operators,
            },
            ActorKind::Observer | ActorKind::Agent | ActorKind::System => Intervention::Any,
        }
    }
}

/// How tool calls pass.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// When a call is in the log: soon after its answer went out, or before, and how safe it is then.
    pub record: CallRecording,
}

/// When a call is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallRecording {
    /// Soon after its answer went out; nobody waits for it.
    #[default]
    After,
    /// Before its answer goes out, safe from the end of the daemon, however sudden.
    Written,
    /// Before its answer goes out, and on disk: safe from a power cut too.
    Synced,
}

/// Secrets in logs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedactionConfig {
    /// Lanyard's own tokens are taken out in any case.
    pub enabled: bool,
    /// Environment variables whose values are secret, beside those whose names say so.
    pub names: Vec<String>,
    /// Beginnings of keys of your own.
    pub prefixes: Vec<String>,
}

impl Default for RedactionConfig {
    fn default() -> Self {
        Self { enabled: true, names: Vec::new(), prefixes: Vec::new() }
    }
}

impl Config {
    /// A missing file is the default config; a file that cannot be read or understood is an error.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        ConfigFile::read(path).map(|file| file.config)
    }

    /// The config of a text, checked. The path is only named in errors.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| ConfigError::syntax(path, text, &error))?;
        config.check().map_err(|message| ConfigError::refused(path, message))?;
        Ok(config)
    }

    /// The rules that no type expresses.
    fn check(&self) -> Result<(), String> {
        self.check_mcp()?;
        self.check_sandboxes()?;
        self.check_flow()?;
        self.budgets.rules().check().map_err(|what| format!("[budgets]: {what}"))?;
        self.continuity.check().map_err(|what| format!("[continuity]: {what}"))?;
        self.notifications.check()?;
        self.memory.policy().map_err(|what| format!("[memory]: {what}")).map(drop)
    }

    fn check_sandboxes(&self) -> Result<(), String> {
        for (agent, settings) in &self.agents {
            settings.network.check().map_err(|refusal| format!("agents.{agent}.network: {refusal}"))?;
            settings.bounds.check().map_err(|refusal| format!("agents.{agent}.bounds: {refusal}"))?;
        }
        Ok(())
    }

    /// A server's name is part of addresses, and of tools' names in most agents.
    fn check_mcp(&self) -> Result<(), String> {
        let own = self.agents.iter().flat_map(|(agent, settings)| {
            settings.mcp.keys().map(move |name| (format!("agents.{agent}.mcp.{name}"), name))
        });
        for (table, name) in self.mcp.keys().map(|name| (format!("mcp.{name}"), name)).chain(own) {
            if name == OWN_SERVER {
                return Err(format!("[{table}]: `{name}` is Lanyard's own server; choose another name"));
            }
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if name.is_empty() || !name.chars().all(allowed) {
                return Err(format!("[{table}]: a server's name has only letters, digits, `-` and `_`"));
            }
        }
        Ok(())
    }

    /// Commands that check, and hooks, are found wrong before a flow needs them.
    fn check_flow(&self) -> Result<(), String> {
        for (place, check) in self.flow.quality.iter().enumerate() {
            if check.name.trim().is_empty() || check.command.is_empty() {
                return Err(format!("[[flow.quality]] {}: it needs a `name` and a `command`", place + 1));
            }
        }
        for (place, hook) in self.flow.hooks.iter().enumerate() {
            let number = place + 1;
            if hook.command.as_ref().is_none_or(Vec::is_empty) == hook.url.is_none() {
                return Err(format!("[[flow.hooks]] {number}: it needs either a `command` or a `url`"));
            }
            if let Some(Err(what)) = hook.url.as_ref().map(|url| HttpUrl::parse(url)) {
                return Err(format!("[[flow.hooks]] {number}: `url`: {what}"));
            }
            if let Some(odd) = hook.on.iter().find(|name| !FlowEvent::NAMES.contains(&name.as_str())) {
                let known = FlowEvent::NAMES.join(", ");
                return Err(format!("[[flow.hooks]] {number}: there is no event `{odd}`; there are {known}"));
            }
        }
        Ok(())
    }

    /// The agents of the config, and the demo agent that is always there.
    #[must_use]
    pub fn agents(&self, program: &Path) -> BTreeMap<String, AgentSettings> {
        let command = vec![program.display().to_string(), "scripted-agent".to_owned()];
        let mut agents = BTreeMap::from([(DEMO.to_owned(), AgentSettings::of(DriverKind::Acp, command))]);
        agents.extend(self.agents.clone());
        for agent in agents.values_mut() {
            for (name, server) in &self.mcp {
                agent.mcp.entry(name.clone()).or_insert_with(|| server.clone());
            }
        }
        agents
    }

    /// The agent used where none is named: `default_agent`, else the only one in the config. The demo agent only by name.
    #[must_use]
    pub fn default_agent(&self) -> Option<String> {
        if let Some(name) = &self.daemon.default_agent {
            return Some(name.clone());
        }
        let mut names = self.agents.keys();
        names.next().filter(|_| names.next().is_none()).cloned()
    }

    /// What is kept, and for how long.
    #[must_use]
    pub fn storage_rules(&self) -> StorageRules {
        let keep_outcomes_ms = self.daemon.keep_outcomes_ms;
        StorageRules { retention: self.retention, storage: self.storage, keep_outcomes_ms }
    }

    #[must_use]
    pub fn rules(&self) -> Rules {
        Rules {
            staleness: self.staleness,
            limits: self.limits,
            stop: self.stop,
            writer: self.writer,
            families: self.families,
            health: self.health,
            budgets: self.budgets.rules(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_with_all_comments_removed_is_the_default_config() {
        let text: String = TEMPLATE
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|rest| is_setting(rest)).unwrap_or(line))
            .fold(String::new(), |text, line| text + line + "\n");
        let config: Config = toml::from_str(&text).unwrap();
        assert_eq!(config.rules(), Rules::default());
        assert_eq!(config.gateway.record, CallRecording::default());
        assert_eq!(config.intervention, InterventionConfig::default());
        assert_eq!(config.flow, FlowSettings::default());
        assert_eq!(config.continuity, ContinuityRules::default());
        assert_eq!(config.features, Features::default());
        assert_eq!(config.notifications.check(), Ok(()));
        assert_eq!(config.notifications.keep_ms, NotificationSettings::default().keep_ms);
        assert!(config.notifications.webhooks.contains_key("example"));
        assert_eq!(config.memory, MemoryConfig::default());
        assert_eq!(config.retention, SessionRetention::default());
        assert_eq!(config.storage, StorageSettings::default());
        assert_eq!(config.daemon.listen, DEFAULT_LISTEN.parse().unwrap());
        assert_eq!(config.daemon.keep_outcomes_ms, DaemonConfig::default().keep_outcomes_ms);
        assert_eq!(config.daemon.default_agent.as_deref(), Some("example"));
        let example = AgentSettings::of(DriverKind::Acp, vec!["gemini".to_owned(), "--acp".to_owned()]);
        assert_eq!(config.agents.get("example"), Some(&example));
        assert_eq!(TEMPLATE.matches(" = ").count(), text.matches(" = ").count());
    }

    /// A setting, or the head of a table of them.
    fn is_setting(line: &str) -> bool {
        line.contains(" = ") || line.starts_with('[')
    }

    #[test]
    fn fnd_n4_the_default_agent_is_the_named_one_or_the_only_one_and_never_the_demo_in_silence() {
        let default = |text: &str| toml::from_str::<Config>(text).unwrap().default_agent();
        let agent = |name: &str| format!("[agents.{name}]\ndriver = \"acp\"\ncommand = [\"x\"]\n");
        assert_eq!(default(""), None);
        assert_eq!(default(&agent("one")).as_deref(), Some("one"));
        assert_eq!(default(&(agent("one") + &agent("two"))), None);
        assert_eq!(
            default(&("[daemon]\ndefault_agent = \"two\"\n".to_owned() + &agent("one") + &agent("two")))
                .as_deref(),
            Some("two")
        );
    }

    #[test]
    fn names_of_mcp_servers_fit_into_an_address() {
        let check = |text: &str| toml::from_str::<Config>(text).unwrap().check_mcp();
        let server = |table: &str| format!("[{table}]\ncommand = [\"x\"]\n");
        assert_eq!(check(&(server("mcp.files") + "share = true\ntimeout_ms = 5\n")), Ok(()));
        for bad in ["mcp.lanyard", "mcp.\"a b\"", "mcp.\"a/b\"", "mcp.\"\"", "mcp.\"a@b\""] {
            assert!(check(&server(bad)).is_err(), "{bad}");
        }
        let agent = "[agents.a]\ndriver = \"acp\"\ncommand = [\"x\"]\n";
        assert!(check(&(agent.to_owned() + &server("agents.a.mcp.lanyard"))).is_err());
        let shared = "[mcp.x]\nurl = \"http://127.0.0.1:1/\"\nshare = true\n";
        assert!(toml::from_str::<Config>(shared).is_err(), "only a program can be shared");
    }

    #[test]
    fn an_unknown_name_is_an_error_and_not_ignored() {
        assert!(toml::from_str::<Config>("[limits]\ndeepth = 4\n").is_err());
    }
}
