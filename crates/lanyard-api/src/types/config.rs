//! The config of a running daemon: which file it is, whether the file is in use, and what a reload changed.

use lanyard_core::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::ConfigChange;

/// The config file of a running daemon.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigState {
    pub path: String,
    /// Hash of the text that is in use.
    pub digest: String,
    /// When the settings in use were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_at: Option<Timestamp>,
    /// Why the file as it is now is not used. The settings that were read before stay in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Settings of the file that the daemon takes up when it starts again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<ConfigChange>,
}

/// Outcome of a reload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reloaded {
    pub path: String,
    /// Settings that are in use now.
    pub applied: Vec<ConfigChange>,
    /// Settings that the daemon takes up when it starts again.
    pub needs_restart: Vec<ConfigChange>,
    /// Settings that are accepted and probably not meant so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
