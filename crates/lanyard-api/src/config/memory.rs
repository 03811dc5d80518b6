//! Settings of memory in the config file.

use std::path::PathBuf;

use lanyard_core::MemoryMode;
use lanyard_core::memory::{MemoryAsk, MemoryPolicy, RetentionRules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Memory as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemorySwitch {
    /// Each session's policy says what it may remember.
    #[default]
    On,
    /// Nothing is written, read, swept or summarised. What there is stays as it is until memory is on again.
    Off,
}

/// What becomes of a session when it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummaryMode {
    /// Nothing is made of it.
    #[default]
    Off,
    /// A summary made from its log is put into its own memory, where its policy allows that.
    Session,
    /// The same, into long-term memory.
    LongTerm,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    pub mode: MemorySwitch,
    /// What a session may remember that names nothing else.
    pub default: MemoryMode,
    /// Tags of every session that is begun while this daemon runs.
    pub tags: Vec<String>,
    /// The allow-list of sessions that name none.
    pub allow: Vec<String>,
    pub summary: SummaryMode,
    pub discard_ms: u64,
    pub dev_test_ms: u64,
    pub usual_ms: u64,
    pub embeddings: Embeddings,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        let RetentionRules { discard_ms, dev_test_ms, usual_ms } = RetentionRules::default();
        Self {
            mode: MemorySwitch::default(),
            default: MemoryMode::default(),
            tags: Vec::new(),
            allow: Vec::new(),
            summary: SummaryMode::default(),
            discard_ms,
            dev_test_ms,
            usual_ms,
            embeddings: Embeddings::default(),
        }
    }
}

impl MemoryConfig {
    #[must_use]
    pub fn retention(&self) -> RetentionRules {
        let Self { discard_ms, dev_test_ms, usual_ms, .. } = *self;
        RetentionRules { discard_ms, dev_test_ms, usual_ms }
    }

    /// What sessions begin with, or a sentence of what is wrong with it.
    pub fn policy(&self) -> Result<MemoryPolicy, String> {
        let ask = MemoryAsk {
            mode: Some(self.default),
            session_memory: None,
            tags: Some(self.tags.clone()),
            allow: Some(self.allow.clone()),
        };
        let explain =
            |refusal: lanyard_core::memory::MemoryRefusal| format!("{refusal}; {}", refusal.advice());
        ask.onto(&MemoryPolicy::default()).map_err(explain)
    }
}

/// An OpenAI-compatible endpoint for embeddings. Without one, words alone find things.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Embeddings {
    /// The address of the endpoint itself, such as `http://127.0.0.1:11434/v1/embeddings`; empty for none.
    pub url: String,
    pub model: String,
    /// A file whose first line is the bearer token, so that no secret is in the config.
    pub key_file: Option<PathBuf>,
    /// PEM of CAs that are trusted besides the system's own.
    pub ca_file: Option<PathBuf>,
    /// How long an answer may take.
    pub timeout_ms: u64,
}

impl Default for Embeddings {
    fn default() -> Self {
        Self { url: String::new(), model: String::new(), key_file: None, ca_file: None, timeout_ms: 3_000 }
    }
}
