//! Reloading the config: on request, and when the file changes.
//!
//! A file that cannot be used changes nothing: the settings that were read before stay in use, and the reason is shown
//! until the file is corrected. Work that runs keeps the settings it was started with.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lanyard_api::config::{Config, ConfigError, ConfigFile, changes};
use lanyard_api::types::{ConfigState, Reloaded};
use lanyard_core::redact::RedactionScope;
use parking_lot::Mutex;

use crate::notifications::NotificationHandle;
use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;
use lanyard_engine::hub::Hub;
use lanyard_engine::redaction::{given, redactor};

/// How often the file is looked at. A change is taken up when two looks in a row find the same file, so that a file that
/// is being written is not read in the middle: at most 4 s after the last write.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// When time comes from a file, a scenario should not wait for it.
const SCRIPTED_LOOK: Duration = Duration::from_millis(20);

/// Settings that the command line adds to every config of this daemon.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub memory_tags: Vec<String>,
    /// Replaces the allow-list of the file unless it is empty.
    pub memory_allow: Vec<String>,
}

impl Overrides {
    /// The config with them.
    #[must_use]
    pub fn onto(&self, mut config: Config) -> Config {
        config.memory.tags.extend(self.memory_tags.iter().cloned());
        if !self.memory_allow.is_empty() {
            config.memory.allow.clone_from(&self.memory_allow);
        }
        config
    }
}

/// A file as the system describes it. The time of the last change moves with the content, the name and the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    changed: (i64, i64),
    bytes: u64,
    inode: u64,
}

/// Takes up changes of the config file.
pub struct Reloader {
    live: LiveConfig,
    hub: Arc<Hub>,
    notifications: NotificationHandle,
    clock: Arc<Clock>,
    overrides: Overrides,
    /// Held while a reload is made, so that two of them are one after the other.
    state: Mutex<FileState>,
}

/// The file as it was read last.
struct FileState {
    shown: ConfigState,
    /// Whether the file that is in use exists: a file that vanishes is a mistake, one that never was is not.
    present: bool,
    /// Digest of the text that was tried last, whether it was used or not.
    tried: Option<String>,
    /// Variables that agents were given by any config since the start.
    given: Vec<(String, String)>,
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reloader").finish_non_exhaustive()
    }
}

impl Reloader {
    /// For the file that `live` was made from.
    #[must_use]
    pub fn new(
        file: &ConfigFile,
        overrides: Overrides,
        live: &LiveConfig,
        (hub, notifications, clock): (&Arc<Hub>, &NotificationHandle, &Arc<Clock>),
    ) -> Self {
        let shown = ConfigState {
            path: file.path.display().to_string(),
            digest: file.digest.clone(),
            loaded_at: Some(clock.now()),
            ..ConfigState::default()
        };
        let tried = if file.present { file.digest.clone() } else { digest_of(None) };
        let given = given(&live.now().config);
        let state = FileState { shown, present: file.present, tried: Some(tried), given };
        Self {
            live: live.clone(),
            hub: hub.clone(),
            notifications: notifications.clone(),
            clock: clock.clone(),
            overrides,
            state: Mutex::new(state),
        }
    }

    /// The file, and whether it is in use.
    #[must_use]
    pub fn state(&self) -> ConfigState {
        self.state.lock().shown.clone()
    }

    /// Reads the file and takes up what can be taken up. Blocks for the disk. The error says why nothing was changed.
    pub fn reload(&self) -> Result<Reloaded, String> {
        let mut known = self.state.lock();
        let path = known.shown.path.clone();
        let done = self.read(&mut known, Path::new(&path)).and_then(|file| self.take_up(&mut known, file));
        // The text of a config may hold secrets, and who sees a daemon's state need not be who may read the file.
        let done = done.map_err(|why| self.hub.redaction.text(why, RedactionScope::All));
        match &done {
            Ok(done) => {
                known.shown.error = None;
                told(done);
            }
            Err(why) => {
                if known.shown.error.as_ref() != Some(why) {
                    tracing::error!(why, "the config file is not used; the settings read before stay in use");
                }
                known.shown.error = Some(why.clone());
            }
        }
        done
    }

    fn read(&self, known: &mut FileState, path: &Path) -> Result<ConfigFile, String> {
        let text = ConfigFile::text(path).map_err(|error| error.brief())?;
        known.tried = Some(digest_of(text.as_deref()));
        if text.is_none() && known.present {
            return Err(format!("{} is missing", path.display()));
        }
        let file = ConfigFile::of(path, text.as_deref()).map_err(|error: ConfigError| error.brief())?;
        Ok(ConfigFile { config: self.overrides.onto(file.config), ..file })
    }

    /// Secrets first, so that nothing new is written before they are known; then those who are told; then the work.
    fn take_up(&self, known: &mut FileState, file: ConfigFile) -> Result<Reloaded, String> {
        let old = self.live.now();
        let (applied, needs_restart) = changes(&old.config, &file.config);
        if !applied.is_empty() {
            let next = old.config.with_live(&file.config);
            // Agents that run have what earlier configs gave them.
            let mut all = known.given.clone();
            all.extend(given(&next).into_iter().filter(|variable| !known.given.contains(variable)));
            let secrets = redactor(&next, &all).map_err(|what| format!("[redaction]: {what}"))?;
            known.given = all;
            self.hub.redact_with(secrets);
            lanyard_base::environment::keep_private(next.notifications.secret_variables());
            self.notifications.reload(&next.notifications);
            self.live.replace(next);
        }
        known.present = file.present;
        known.shown.digest = file.digest;
        known.shown.loaded_at = Some(self.clock.now());
        known.shown.needs_restart.clone_from(&needs_restart);
        let warnings = self.warnings();
        Ok(Reloaded { path: known.shown.path.clone(), applied, needs_restart, warnings })
    }

    fn warnings(&self) -> Vec<String> {
        let in_use = self.live.now();
        let mut warnings: Vec<String> = Vec::new();
        if let Some(name) = in_use.config.default_agent().filter(|name| !in_use.agents.contains_key(name)) {
            warnings.push(format!("the default agent `{name}` is not configured"));
        }
        for (name, settings) in &in_use.agents {
            warnings.extend(settings.warnings().iter().map(|warning| format!("agent `{name}`: {warning}")));
        }
        warnings
    }

    /// Looks at the file until the daemon ends.
    pub(crate) async fn watch(self: Arc<Self>) {
        let period = if self.clock.is_scripted() { SCRIPTED_LOOK } else { LOOK_EVERY };
        let mut looks = tokio::time::interval(period);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut last, mut settled) = (None, None);
        loop {
            looks.tick().await;
            let reloader = self.clone();
            let Ok(found) = tokio::task::spawn_blocking(move || reloader.stamp()).await else { return };
            if last == Some(found) && settled != Some(found) {
                settled = Some(found);
                let reloader = self.clone();
                // What comes of it is in the log and in the state.
                let _ = tokio::task::spawn_blocking(move || reloader.reload_if_changed()).await;
            }
            last = Some(found);
        }
    }

    /// What tells one state of the file from another without reading it.
    fn stamp(&self) -> Option<FileStamp> {
        let path = self.state.lock().shown.path.clone();
        let found = std::fs::metadata(path).ok()?;
        Some(FileStamp {
            changed: (found.ctime(), found.ctime_nsec()),
            bytes: found.len(),
            inode: found.ino(),
        })
    }

    fn reload_if_changed(&self) {
        let (path, tried) = {
            let known = self.state.lock();
            (known.shown.path.clone(), known.tried.clone())
        };
        let digest = ConfigFile::text(Path::new(&path)).ok().map(|text| digest_of(text.as_deref()));
        if digest != tried {
            let _ = self.reload();
        }
    }
}

fn digest_of(text: Option<&str>) -> String {
    // A file that is missing is not a file that is empty.
    text.map_or_else(|| "missing".to_owned(), |text| lanyard_core::text::content_hash(text.as_bytes()))
}

fn told(done: &Reloaded) {
    let keys = |changes: &[lanyard_api::config::ConfigChange]| -> String {
        changes.iter().map(|change| change.key.as_str()).collect::<Vec<_>>().join(", ")
    };
    for warning in &done.warnings {
        tracing::warn!("{warning}");
    }
    if done.applied.is_empty() && done.needs_restart.is_empty() {
        tracing::info!(path = done.path, "config read: nothing changed");
        return;
    }
    let (applied, needs_restart) = (keys(&done.applied), keys(&done.needs_restart));
    tracing::info!(path = done.path, applied, needs_restart, "config reloaded");
}
