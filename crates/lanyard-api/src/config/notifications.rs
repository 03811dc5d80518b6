//! What the config says about notifications: who gets them, as what, and when not.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hyper::Uri;
use lanyard_core::notification::{NotificationKind, QuietHours, RetryRules, Severity};
use serde::{Deserialize, Serialize};

/// The name under which the desktop gets its deliveries.
pub const DESKTOP: &str = "desktop";
/// Receivers one daemon may have.
const WEBHOOKS_MAX: usize = 32;
/// The longest pause between two tries.
const PAUSE_MS_MAX: u64 = 10 * 60_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NotificationSettings {
    pub desktop: Desktop,
    /// When nothing but what is critical goes out, in the daemon's local time; empty for never.
    pub quiet_hours: String,
    /// How long a dismissed notification is kept.
    pub keep_ms: u64,
    pub webhooks: BTreeMap<String, Webhook>,
}

impl Default for NotificationSettings {
    fn default() -> Self {
        Self {
            desktop: Desktop::default(),
            quiet_hours: String::new(),
            keep_ms: 30 * 24 * 60 * 60 * 1_000,
            webhooks: BTreeMap::new(),
        }
    }
}

impl NotificationSettings {
    /// Variables of the daemon's environment that hold secrets.
    #[must_use]
    pub fn secret_variables(&self) -> Vec<String> {
        self.webhooks.values().filter_map(|webhook| webhook.secret_env.clone()).collect()
    }
}

/// Notifications on the desktop of the daemon's user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Desktop {
    #[default]
    Off,
    /// With `notify-send`, where that and a desktop are there.
    Auto,
}

/// An address notifications are posted to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    pub url: String,
    #[serde(default)]
    pub body: BodyKind,
    /// The variable of the daemon's environment that holds the secret.
    #[serde(default)]
    pub secret_env: Option<String>,
    /// The file that holds it.
    #[serde(default)]
    pub secret_file: Option<PathBuf>,
    /// CAs that are trusted besides the system's own.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    #[serde(default)]
    pub min_severity: Severity,
    /// Only these; all when it is empty.
    #[serde(default)]
    pub kinds: Vec<NotificationKind>,
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
    #[serde(default = "attempts")]
    pub attempts: u32,
    #[serde(default = "retry_ms")]
    pub retry_ms: u64,
}

fn timeout_ms() -> u64 {
    10_000
}

fn attempts() -> u32 {
    10
}

fn retry_ms() -> u64 {
    2_000
}

/// What is posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyKind {
    /// The notification as the API shows it.
    #[default]
    Json,
    /// `{"text": …}`, as Slack and those who follow it take it.
    Slack,
    /// Text with headers, as ntfy takes it.
    Ntfy,
}

impl Webhook {
    #[must_use]
    pub fn retry(&self) -> RetryRules {
        RetryRules {
            attempts_max: self.attempts,
            first_pause_ms: self.retry_ms,
            pause_ms_max: PAUSE_MS_MAX.max(self.retry_ms),
        }
    }

    #[must_use]
    pub fn takes(&self, kind: NotificationKind, severity: Severity) -> bool {
        severity >= self.min_severity && (self.kinds.is_empty() || self.kinds.contains(&kind))
    }

    fn check(&self) -> Result<(), String> {
        let url: Uri = self.url.parse().map_err(|_| "`url` is no address".to_owned())?;
        if !matches!(url.scheme_str(), Some("http" | "https")) {
            return Err("`url` begins with neither http:// nor https://".to_owned());
        }
        if url.authority().is_none_or(|place| place.as_str().contains('@')) {
            return Err("`url` must name a host, and no password".to_owned());
        }
        if self.secret_env.is_some() && self.secret_file.is_some() {
            return Err("choose one of `secret_env` and `secret_file`".to_owned());
        }
        if self.attempts == 0 || self.timeout_ms == 0 {
            return Err("`attempts` and `timeout_ms` must be at least 1".to_owned());
        }
        Ok(())
    }
}

impl NotificationSettings {
    /// What is wrong with it, with the table it is in.
    pub fn check(&self) -> Result<(), String> {
        self.quiet().map_err(|what| format!("[notifications]: `quiet_hours`: {what}"))?;
        if self.webhooks.len() > WEBHOOKS_MAX {
            return Err(format!("[notifications.webhooks]: at most {WEBHOOKS_MAX} are possible"));
        }
        for (name, webhook) in &self.webhooks {
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if name.is_empty() || name == DESKTOP || !name.chars().all(allowed) {
                return Err(format!(
                    "[notifications.webhooks.{name}]: a name has only letters, digits, `-` and `_`, and is not `{DESKTOP}`"
                ));
            }
            webhook.check().map_err(|what| format!("[notifications.webhooks.{name}]: {what}"))?;
        }
        Ok(())
    }

    pub fn quiet(&self) -> Result<Option<QuietHours>, String> {
        match self.quiet_hours.trim() {
            "" => Ok(None),
            text => text.parse().map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_said_at_the_start() {
        let check = |text: &str| {
            toml::from_str::<NotificationSettings>(text).map_err(|error| error.to_string())?.check()
        };
        assert_eq!(check(""), Ok(()));
        assert_eq!(
            check("quiet_hours = \"22:00-07:00\"\n[webhooks.a]\nurl = \"https://x.test/\"\nbody = \"ntfy\""),
            Ok(())
        );
        for (bad, word) in [
            ("quiet_hours = \"at night\"", "quiet_hours"),
            ("[webhooks.a]\nurl = \"x.test\"", "http://"),
            ("[webhooks.a]\nurl = \"http://a:b@x.test/\"", "password"),
            ("[webhooks.desktop]\nurl = \"http://x.test/\"", "desktop"),
            ("[webhooks.a]\nurl = \"http://x.test/\"\nattempts = 0", "attempts"),
            (
                "[webhooks.a]\nurl = \"http://x.test/\"\nsecret_env = \"A\"\nsecret_file = \"/b\"",
                "choose one",
            ),
            ("[webhooks.a]\nurl = \"http://x.test/\"\nsecret = \"plain\"", "unknown field"),
            ("[webhooks.a]\nurl = \"http://x.test/\"\nbody = \"xml\"", "unknown variant"),
        ] {
            let error = check(bad).unwrap_err();
            assert!(error.contains(word), "{bad}: {error}");
        }
    }
}
