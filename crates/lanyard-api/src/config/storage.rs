//! How much is kept, and for how long.

use serde::{Deserialize, Serialize};

/// One day in milliseconds.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Bytes of the journal beyond which people are told: 4 GiB.
const ALARM_BYTES: u64 = 4 << 30;
/// Bytes of one attachment: 16 MiB.
const ATTACHMENT_BYTES: u64 = 16 << 20;
/// Bytes of all attachments: 4 GiB.
const ATTACHMENTS_BYTES: u64 = 4 << 30;

/// Sessions that ended long ago are deleted, by the same purge as `lanyard rm`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionRetention {
    /// Days after its end at which a session is deleted; 0 keeps all.
    pub ended_after_days: u64,
    /// Whether archived sessions are deleted too.
    pub archived: bool,
}

impl SessionRetention {
    /// Milliseconds after its end at which a session is deleted; none when all are kept.
    #[must_use]
    pub fn after_ms(&self) -> Option<u64> {
        (self.ended_after_days > 0).then(|| self.ended_after_days.saturating_mul(DAY_MS))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StorageSettings {
    /// Bytes of the journal and its write-ahead log beyond which people are told; 0 for never.
    pub alarm_bytes: u64,
    /// Bytes of one attachment.
    pub attachment_bytes: u64,
    /// Bytes of all attachments together.
    pub attachments_bytes: u64,
    /// How long an upload is kept that no message refers to, in milliseconds.
    pub keep_uploads_ms: u64,
}

impl Default for StorageSettings {
    fn default() -> Self {
        Self {
            alarm_bytes: ALARM_BYTES,
            attachment_bytes: ATTACHMENT_BYTES,
            attachments_bytes: ATTACHMENTS_BYTES,
            keep_uploads_ms: DAY_MS,
        }
    }
}

/// What the config says about all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StorageRules {
    pub retention: SessionRetention,
    pub storage: StorageSettings,
    /// How long outcomes of requests are kept, in milliseconds.
    pub keep_outcomes_ms: u64,
}
