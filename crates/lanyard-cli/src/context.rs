//! What every command works with: where the data is, how to talk to the daemon, and where output goes.

use std::path::PathBuf;
use std::time::Duration;

use lanyard_api::config::ConfigFile;
use lanyard_api::home::Home;
use lanyard_api::types::{DaemonStatus, Me};
use lanyard_client::names::NameBook;
use lanyard_client::{
    ANSWER_TIMEOUT, DaemonAddress, DaemonConnection, GivenSession, RecordWatch, Route, WatchSettings,
};
use lanyard_core::{PlanId, Timestamp};

use crate::client::{Client, IfGone};
use crate::failure::{Failure, chain};
use crate::launch::{self, Launched};
use crate::out::Out;

/// The default of [`Context::daemon_wait`].
const DAEMON_WAIT: Duration = Duration::from_mins(1);
const DAEMON_WAIT_ENV: &str = "LANYARD_DAEMON_WAIT_MS";
const REDIAL: Duration = Duration::from_millis(50);
const REDIALS_MAX: u32 = 100;

#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) home: Home,
    pub(crate) config_path: PathBuf,
    pub(crate) out: Out,
    /// The idempotency key the user chose for this change.
    pub(crate) key: Option<String>,
    /// Whether a daemon may be started when none runs.
    pub(crate) may_start: bool,
    /// How long a command that follows something waits for a daemon that went away.
    pub(crate) daemon_wait: Duration,
    /// The session this command runs inside of. It acts as that one then, and there is no data folder and no config.
    pub(crate) given: Option<GivenSession>,
    /// A file with the token to use in place of the operator's own.
    pub(crate) token: Option<PathBuf>,
    /// Names that were looked up.
    pub(crate) names: NameBook,
}

impl Context {
    /// A client of the daemon; of a fresh one when none runs.
    pub(crate) async fn client(&self) -> Result<Client<'_>, Failure> {
        Ok(Client::new(self, self.connect(IfGone::Start).await?, IfGone::Start))
    }

    /// A client of the daemon that runs, if one does.
    pub(crate) async fn client_if_running(&self) -> Result<Option<Client<'_>>, Failure> {
        let connection = self.address()?.connect().await?;
        Ok(connection.map(|connection| Client::new(self, connection, IfGone::Leave)))
    }

    /// The address of the session this runs inside of, else the socket in the data folder.
    pub(crate) fn address(&self) -> Result<DaemonAddress, Failure> {
        match &self.given {
            Some(given) => Ok(given.address()?),
            None => Ok(match &self.token {
                Some(token) => DaemonAddress::Folder { socket: self.home.socket(), token: token.clone() },
                None => DaemonAddress::of(&self.home),
            }),
        }
    }

    /// Watches records; their ids are separated by commas. `again` is the command that continues after a daemon that
    /// stayed away.
    pub(crate) fn watch(&self, records: &str, again: String) -> Result<RecordWatch, Failure> {
        Ok(RecordWatch::of(self.watching(again)?, records))
    }

    /// Watches a plan and its tasks, also those that are added later.
    pub(crate) fn watch_plan(&self, plan: PlanId, again: String) -> Result<RecordWatch, Failure> {
        Ok(RecordWatch::of_plan(self.watching(again)?, plan))
    }

    /// Watches what a route streams.
    pub(crate) fn watch_at(&self, route: Route, again: String) -> Result<RecordWatch, Failure> {
        Ok(RecordWatch::at(self.watching(again)?, route))
    }

    fn watching(&self, again: String) -> Result<WatchSettings, Failure> {
        Ok(WatchSettings { address: self.address()?, wait: Some(self.daemon_wait), again })
    }

    async fn connect(&self, if_gone: IfGone) -> Result<DaemonConnection, Failure> {
        if let Some(connection) = self.address()?.connect().await? {
            return Ok(connection);
        }
        if let Some(given) = &self.given {
            let title = format!("no daemon answers at {}, where this session's daemon was", given.url);
            return Err(Failure::unreachable("daemon_not_running", title, "ask your operator to start it"));
        }
        if if_gone == IfGone::Leave {
            return Err(self.not_running("start one with `lanyard up --detach`"));
        }
        if !self.may_start {
            return Err(self.not_running(
                "start one with `lanyard up --detach`; LANYARD_NO_START keeps this from being done for you",
            ));
        }
        if let Launched::Here(daemon) = launch::detached(self, None, (&[], &[])).await? {
            self.out.note(&format!("started a daemon at {} (pid {})", daemon.url(), daemon.pid));
        }
        self.address()?
            .connect()
            .await?
            .ok_or_else(|| self.not_running("look at `daemon.log` in the data folder"))
    }

    /// A connection after one that broke. The daemon may be about to end and still take connections, so this one is
    /// tried before it is given out.
    pub(crate) async fn connect_again(&self, if_gone: IfGone) -> Result<DaemonConnection, Failure> {
        for _ in 0..REDIALS_MAX {
            let mut connection = self.connect(if_gone).await?;
            if connection.greets(self.given.is_some(), ANSWER_TIMEOUT).await? {
                return Ok(connection);
            }
            tokio::time::sleep(REDIAL).await;
        }
        Err(self.not_running("run `lanyard doctor`"))
    }

    pub(crate) fn not_running(&self, advice: &str) -> Failure {
        let title = format!("no daemon is running for {}", self.home.dir.display());
        Failure::unreachable("daemon_not_running", title, advice)
    }

    pub(crate) fn config_file(&self) -> Result<ConfigFile, Failure> {
        ConfigFile::read(&self.config_path).map_err(|error| {
            Failure::local(
                "config_invalid",
                chain(&error),
                "correct it with `lanyard config edit`, or see what it can hold with `lanyard init --print`",
            )
        })
    }
}

/// What `LANYARD_DAEMON_WAIT_MS` says, or the default.
pub(crate) fn daemon_wait() -> Result<Duration, Failure> {
    let Some(set) = std::env::var_os(DAEMON_WAIT_ENV).filter(|value| !value.is_empty()) else {
        return Ok(DAEMON_WAIT);
    };
    set.to_str().and_then(|text| text.parse().ok()).map(Duration::from_millis).ok_or_else(|| {
        let title = format!("{DAEMON_WAIT_ENV} is `{}`, which is no number of milliseconds", set.display());
        Failure::usage(title, format!("unset it, or set for example {DAEMON_WAIT_ENV}=60000"))
    })
}

/// The daemon's clock. Times in tables are told relative to the clock that wrote them: this machine's may differ, and a
/// scripted one always does.
pub(crate) async fn daemon_now(client: &mut Client<'_>) -> Result<Timestamp, Failure> {
    // A session's token says nothing of the daemon as a whole.
    if client.is_session() {
        let me: Me = client.get(&Route::to(&["me"])).await?;
        return Ok(me.now);
    }
    Ok(daemon_status(client).await?.now)
}

pub(crate) async fn daemon_status(client: &mut Client<'_>) -> Result<DaemonStatus, Failure> {
    client.get(&Route::to(&["status"])).await
}
