//! The roster: which agents there are, for those who ask. Nothing here touches a session.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use lanyard_api::agents::known::{self, KNOWN, place};
use lanyard_api::agents::naming::{self, AgentRefusal};
use lanyard_api::agents::settings::{AgentSettings, DriverKind};
use lanyard_api::config::DEMO;
use lanyard_core::session::{AgentInfo, AgentOffer, Capabilities, TerminalProgram};
use tokio::sync::Semaphore;

use crate::agents::offers::{self, KnownOffer, KnownOffers};
use crate::runs::Runs;
use crate::sandbox::OwnFiles;
use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;

/// Agents that may be checked at a time: each is a whole process tree.
const CHECKS_MAX: usize = 4;

/// The agents of the config, those that are installed, and a way to try one.
#[derive(Clone)]
pub struct Roster {
    settings: LiveConfig,
    pub(super) runs: Runs,
    pub(super) clock: Arc<Clock>,
    /// Where an agent that is tried finds itself: empty folders, one per try.
    pub(super) folder: PathBuf,
    pub(super) checks: Arc<Semaphore>,
    checked: Arc<Mutex<BTreeMap<String, CheckOutcome>>>,
    offers: KnownOffers,
    /// What no sandbox shows.
    pub(super) own_files: OwnFiles,
}

impl std::fmt::Debug for Roster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Roster").finish_non_exhaustive()
    }
}

/// One agent that is configured or installed.
#[derive(Debug, Clone)]
pub struct Listed {
    pub name: String,
    pub configured: bool,
    pub driver: DriverKind,
    pub command: Vec<String>,
    /// Where its program is.
    pub found: Option<PathBuf>,
    pub version: Option<String>,
    /// What came of its last check since this daemon started.
    pub checked: Option<CheckOutcome>,
}

/// What came of trying an agent.
#[derive(Debug, Clone)]
pub enum CheckOutcome {
    Works {
        info: AgentInfo,
        capabilities: Capabilities,
        /// What works and probably surprises.
        warnings: Vec<String>,
    },
    Fails {
        code: String,
        what: String,
    },
}

impl Roster {
    /// What agents last offered, for those who hear of it.
    #[must_use]
    pub fn offers(&self) -> KnownOffers {
        self.offers.clone()
    }

    /// What an agent of the config last offered to choose, if it is known. That of an agent that is run once per turn is in
    /// its settings.
    #[must_use]
    pub fn offer(&self, name: &str) -> Option<KnownOffer> {
        let settings = self.settings(name)?;
        if settings.driver == DriverKind::Command {
            return Some(KnownOffer::new(settings.offer(), &settings, self.clock.now()));
        }
        self.offers.of(name, &settings)
    }

    pub(super) fn heard_offer(&self, name: &str, settings: &AgentSettings, offer: &AgentOffer) {
        self.offers.note(name, settings, offer, self.clock.now());
    }

    /// The folders of all runs.
    #[must_use]
    pub fn runs(&self) -> Runs {
        self.runs.clone()
    }

    /// What tries of an earlier daemon left behind in `folder` is removed.
    #[must_use]
    pub fn new(
        settings: &LiveConfig,
        runs: Runs,
        clock: Arc<Clock>,
        folder: PathBuf,
        own_files: OwnFiles,
    ) -> Self {
        if let Err(error) = std::fs::remove_dir_all(&folder)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %folder.display(), %error, "what checks of agents left could not be removed");
        }
        for (name, settings) in &settings.now().agents {
            for warning in settings.warnings() {
                tracing::warn!(agent = name, "{warning}");
            }
        }
        let (settings, checked) = (settings.clone(), Arc::default());
        let checks = Arc::new(Semaphore::new(CHECKS_MAX));
        let offers = KnownOffers::open(runs.beside(offers::FILE));
        Self { settings, runs, clock, folder, checks, checked, offers, own_files }
    }

    /// The agent used where none is named.
    pub fn default_name(&self) -> Result<String, AgentRefusal> {
        let in_use = self.settings.now();
        let names =
            || in_use.agents.keys().map(String::as_str).filter(|name| *name != DEMO).collect::<Vec<_>>();
        in_use.config.default_agent().ok_or_else(|| naming::undecided(&names()))
    }

    /// The settings of an agent by a name that somebody chose.
    pub fn named(&self, name: &str) -> Result<AgentSettings, AgentRefusal> {
        self.settings(name).ok_or_else(|| {
            let in_use = self.settings.now();
            let names: Vec<&str> = in_use.agents.keys().map(String::as_str).collect();
            let known = KNOWN.iter().find(|known| known.name == name);
            let installed = known.is_some_and(|known| place(&known.settings()).is_some());
            naming::unknown(name, &names, installed)
        })
    }

    /// Whether the agent is configured and its program, or the one that takes its place on a terminal, is on this machine.
    /// Looks at files, so it may block for a moment.
    pub fn can_start(&self, name: &str, terminal: Option<&TerminalProgram>) -> Result<(), AgentRefusal> {
        let mut settings = self.named(name)?;
        if let Some(terminal) = terminal {
            settings.command.clone_from(&terminal.command);
        }
        if place(&settings).is_some() {
            return Ok(());
        }
        Err(naming::program_missing(name, settings.command.first().map_or("", String::as_str)))
    }

    #[must_use]
    pub fn settings(&self, name: &str) -> Option<AgentSettings> {
        self.settings.agent(name)
    }

    /// Everything configured, then what is installed beside it.
    pub async fn list(&self, with_versions: bool) -> Vec<Listed> {
        let checked = self.checked.lock().clone();
        let row = |name: &str, settings: &AgentSettings, configured| Listed {
            name: name.to_owned(),
            configured,
            driver: settings.driver,
            command: settings.command.clone(),
            found: place(settings),
            version: None,
            checked: checked.get(name).cloned(),
        };
        let in_use = self.settings.now();
        let mut listed: Vec<Listed> =
            in_use.agents.iter().map(|(name, settings)| row(name, settings, true)).collect();
        let others = KNOWN.iter().filter(|known| !in_use.agents.contains_key(known.name));
        let others = others.map(|known| row(known.name, &known.settings(), false));
        listed.extend(others.filter(|row| row.found.is_some()));
        if with_versions {
            let asks: Vec<_> = listed
                .iter()
                .map(|row| row.found.clone().map(|place| tokio::spawn(version(place))))
                .collect();
            for (row, ask) in listed.iter_mut().zip(asks) {
                if let Some(ask) = ask {
                    row.version = ask.await.ok().flatten();
                }
            }
        }
        listed
    }

    /// What came of an agent's last check since this daemon started.
    #[must_use]
    pub fn checked(&self, name: &str) -> Option<CheckOutcome> {
        self.checked.lock().get(name).cloned()
    }

    pub(super) fn remember(&self, name: &str, checked: &CheckOutcome) {
        self.checked.lock().insert(name.to_owned(), checked.clone());
    }
}

/// The first line of what a program says to `--version`, without any variable of the daemon's own.
pub(super) async fn version(program: impl AsRef<Path>) -> Option<String> {
    let mut command = Command::new(program.as_ref());
    crate::runs::withhold(&mut command);
    tokio::task::spawn_blocking(move || known::version(command)).await.ok().flatten()
}
