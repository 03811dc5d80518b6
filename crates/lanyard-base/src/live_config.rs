//! The settings in use: one value that is read again for each piece of work, and that a reload replaces whole.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use lanyard_api::agents::settings::{AgentSettings, DriverKind};
use lanyard_api::config::{Config, Features, StorageRules, TERMINAL};
use lanyard_core::Rules;
use parking_lot::RwLock;

/// The settings in use; clones share them.
#[derive(Clone)]
pub struct LiveConfig {
    inner: Arc<ConfigCell>,
}

struct ConfigCell {
    /// The program of the built-in agent.
    program: PathBuf,
    in_use: RwLock<Arc<InUse>>,
}

/// A config, and what is made of it.
#[derive(Debug)]
pub struct InUse {
    pub config: Config,
    /// The agents of the config and the built-in one, with the servers that are offered to all.
    pub agents: BTreeMap<String, AgentSettings>,
}

impl std::fmt::Debug for LiveConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveConfig").finish_non_exhaustive()
    }
}

impl LiveConfig {
    #[must_use]
    pub fn new(config: Config, program: PathBuf) -> Self {
        let in_use = InUse { agents: config.agents(&program), config };
        Self { inner: Arc::new(ConfigCell { program, in_use: RwLock::new(Arc::new(in_use)) }) }
    }

    /// The settings of this moment, whole: what is done with them does not see a reload in the middle.
    #[must_use]
    pub fn now(&self) -> Arc<InUse> {
        self.inner.in_use.read().clone()
    }

    pub fn replace(&self, config: Config) {
        let in_use = InUse { agents: config.agents(&self.inner.program), config };
        *self.inner.in_use.write() = Arc::new(in_use);
    }

    #[must_use]
    pub fn rules(&self) -> Rules {
        self.inner.in_use.read().config.rules()
    }

    #[must_use]
    pub fn features(&self) -> Features {
        self.inner.in_use.read().config.features
    }

    #[must_use]
    pub fn storage(&self) -> StorageRules {
        self.inner.in_use.read().config.storage_rules()
    }

    /// The settings of an agent. A run keeps those it was started with.
    #[must_use]
    pub fn agent(&self, name: &str) -> Option<AgentSettings> {
        let set = self.inner.in_use.read().agents.get(name).cloned();
        set.or_else(|| (name == TERMINAL).then(|| AgentSettings::of(DriverKind::Terminal, Vec::new())))
    }

    #[must_use]
    pub fn has_agent(&self, name: &str) -> bool {
        name == TERMINAL || self.inner.in_use.read().agents.contains_key(name)
    }
}
