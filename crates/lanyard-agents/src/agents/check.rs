//! Trying an agent: it is started in a run of its own without a session, greeted, asked what it can do, and ended. No
//! process and no folder is left of it; what a daemon that dies in between leaves, the next one ends as a run that no
//! session knows.

use std::path::Path;
use std::time::Duration;

use lanyard_api::agents::known;
use lanyard_api::agents::known::place;
use lanyard_api::agents::settings::{AgentSettings, DriverKind};
use lanyard_core::session::{AgentInfo, AgentOffer, Capabilities, Signal};
use lanyard_core::{RunId, SessionId};
use serde_json::json;

use crate::agents::command::identity;
use crate::agents::confine;
use crate::agents::driver::{Action, Actions, Begin, Driver, Tuned};
use crate::agents::roster::{CheckOutcome, Roster, version};
use crate::agents::runner::{add_conversation, driver, setting, spec};
use crate::runs::{How, Link};

/// Longest line of a greeting.
const LINE_BYTES_MAX: usize = 4 << 20;
/// The MCP servers of an agent that is only greeted.
const NO_SERVERS: &str = r#"{"mcpServers":{}}"#;
/// How long to wait for the end of a process that cannot be spoken to.
const END_WAIT: Duration = Duration::from_secs(5);
/// Characters of what the agent said on stderr that are repeated.
const STDERR_CHARS_MAX: usize = 300;

type Failure = (String, String);
/// Who an agent is, what it can do and what it offers to choose.
type Greeted = (AgentInfo, Capabilities, AgentOffer);

impl Roster {
    /// Tries an agent of the config. It is carried to its end even if nobody waits for it any more. Nothing when there
    /// is no such agent.
    pub async fn check(&self, name: &str) -> Option<CheckOutcome> {
        let settings = self.settings(name)?;
        let (roster, name) = (self.clone(), name.to_owned());
        let work = tokio::spawn(async move {
            let checked = roster.try_out(&name, &settings).await;
            roster.remember(&name, &checked);
            checked
        });
        let lost = |error: tokio::task::JoinError| fails("defect", error.to_string());
        Some(work.await.unwrap_or_else(lost))
    }

    async fn try_out(&self, name: &str, settings: &AgentSettings) -> CheckOutcome {
        let Ok(_turn) = self.checks.acquire().await else {
            return fails("daemon_closing", "the daemon is shutting down".to_owned());
        };
        if settings.driver == DriverKind::Command {
            return command(settings).await;
        }
        let run = RunId::mint(self.clock.now(), self.clock.random());
        let folder = self.folder.join(run.to_string());
        if let Err(error) = std::fs::create_dir_all(&folder) {
            return fails("run_no_disk", format!("cannot make {}: {error}", folder.display()));
        }
        let checked = self.in_folder(name, settings, run, &folder).await;
        // An agent may still be closing files when its folder goes; what is left is removed at the next start.
        let _ = std::fs::remove_dir_all(&folder);
        match checked {
            Ok((info, capabilities, offer)) => {
                self.heard_offer(name, settings, &offer);
                CheckOutcome::Works { info, capabilities, warnings: settings.warnings() }
            }
            Err((code, what)) => CheckOutcome::Fails { code, what },
        }
    }

    async fn in_folder(
        &self,
        name: &str,
        settings: &AgentSettings,
        run: RunId,
        folder: &Path,
    ) -> Result<Greeted, Failure> {
        let nobody = SessionId::mint(self.clock.now(), self.clock.random());
        // It has no token: `lanyard` in it is nobody, and no operator.
        let mut spec = spec(settings, folder, nobody, None)?;
        let setting = setting(settings, folder, run, Begin::New, Vec::new(), Tuned::default());
        add_conversation(&mut spec, settings, &setting, NO_SERVERS);
        let (rule, own, held) = (settings.sandbox_rule(), self.own_files.clone(), settings.clone());
        let place = folder.to_owned();
        let name_of_run = run.to_string();
        let made = tokio::task::spawn_blocking(move || {
            confine::make(&rule, &held, &place, (&own, None), &name_of_run)
        });
        let confined = made.await.map_err(|error| ("defect".to_owned(), error.to_string()))??;
        let door = self.runs.door(&run.to_string());
        spec.sandbox = confined.enclosure.map(|held| held.of_run(door, None));
        spec.bounds = confined.bounds;
        let about = json!({ "check": name });
        let link = self.runs.start(&run.to_string(), &about, &spec).await;
        let link = link.map_err(|error| (error.code().to_owned(), error.to_string()))?;
        let mut driver = driver(settings, setting);
        let patience = Duration::from_millis(settings.handshake_timeout_ms);
        let greeted = tokio::time::timeout(patience, greet(&mut *driver, &link)).await;
        let greeted = greeted.unwrap_or_else(|_| {
            let what = format!("it did not greet within {} ms", settings.handshake_timeout_ms);
            Err(("handshake_timeout".to_owned(), with_stderr(&what, &link)))
        });
        self.end(run, &link, Duration::from_millis(settings.kill_grace_ms)).await;
        greeted
    }

    async fn end(&self, run: RunId, link: &Link, grace: Duration) {
        let _ = link.end(grace).await;
        let name = run.to_string();
        if link.exited().await.how == How::Lost
            && let Err(error) = self.runs.sweep(&name, grace).await
        {
            tracing::error!(%run, %error, "what a check of an agent left could not be ended");
            return;
        }
        if let Err(error) = self.runs.forget(&name) {
            tracing::warn!(%run, %error, "the folder of a check could not be removed");
        }
    }
}

/// Speaks with the agent until it is ready or breaks.
async fn greet(driver: &mut dyn Driver, link: &Link) -> Result<Greeted, Failure> {
    let mut offer = AgentOffer::default();
    let mut output = link.output(0);
    let mut unread: Vec<u8> = Vec::new();
    let mut actions = Actions::new();
    driver.begin(&mut actions);
    loop {
        for action in std::mem::take(&mut actions) {
            match action {
                Action::Send { key, mut line } => {
                    line.push('\n');
                    if let Err(error) = link.send(&key, line.as_bytes()).await {
                        return Err(unheard(&error.to_string(), link).await);
                    }
                }
                Action::Saw { signal: Signal::Offered(offered), .. } => offer = *offered,
                Action::Ready(readiness) => return Ok((readiness.info, readiness.capabilities, offer)),
                Action::Broken { code, what } => return Err((code.to_owned(), with_stderr(&what, link))),
                Action::Odd { what } => tracing::debug!(run = link.run(), what, "while an agent is tried"),
                // Nothing was asked of it yet: what it tells of work is not about this greeting.
                Action::Replayed(_)
                | Action::Text { .. }
                | Action::Image { .. }
                | Action::Saw { .. }
                | Action::Asked { .. }
                | Action::Unasked { .. }
                | Action::Child(_)
                | Action::Finished { .. }
                | Action::Call { .. } => {}
            }
        }
        let piece = match output.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => {
                let ended = ended(link).await;
                let what = ended.unwrap_or_else(|| "its supervisor died before it greeted".to_owned());
                return Err(("handshake_failed".to_owned(), with_stderr(&what, link)));
            }
            Err(error) => return Err(unheard(&error.to_string(), link).await),
        };
        unread.extend_from_slice(&piece);
        while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let whole: Vec<u8> = unread.drain(..=end).collect();
            let said = whole.trim_ascii_end();
            if !said.is_empty() {
                driver.line(said, &mut actions);
            }
        }
        if unread.len() > LINE_BYTES_MAX {
            let what = format!("it wrote a line of more than {LINE_BYTES_MAX} bytes");
            return Err(("line_too_long".to_owned(), what));
        }
    }
}

/// An agent that is run once per turn greets nobody: what can be seen of it is its program.
async fn command(settings: &AgentSettings) -> CheckOutcome {
    let Some(program) = place(settings) else { return missing(settings) };
    let version = version(&program).await;
    let (info, capabilities) = identity(&settings.per_turn(), version);
    CheckOutcome::Works { info, capabilities, warnings: settings.warnings() }
}

fn missing(settings: &AgentSettings) -> CheckOutcome {
    let program = settings.command.first().map_or("", String::as_str);
    let path = known::path_of(settings);
    let what = if Path::new(program).is_absolute() {
        format!("there is no program {program}")
    } else {
        format!("there is no program `{program}` on the PATH {path}")
    };
    fails("agent_program_missing", what)
}

fn fails(code: &str, what: String) -> CheckOutcome {
    CheckOutcome::Fails { code: code.to_owned(), what }
}

/// A program that exits at once is not there any more when it is spoken to: how it ended says more than that.
async fn unheard(what: &str, link: &Link) -> Failure {
    let ended = tokio::time::timeout(END_WAIT, ended(link)).await.ok().flatten();
    ("handshake_failed".to_owned(), with_stderr(ended.as_deref().unwrap_or(what), link))
}

/// How the agent's process ended; nothing when its supervisor took that along.
async fn ended(link: &Link) -> Option<String> {
    match link.exited().await.how {
        How::Exited(code) => Some(format!("it exited with {code} before it greeted")),
        How::Signalled(signal) => Some(format!("it was ended by signal {signal} before it greeted")),
        How::Lost => None,
    }
}

/// What the agent last said of itself often is the reason.
fn with_stderr(what: &str, link: &Link) -> String {
    let said = lanyard_core::text::without_escapes(&link.stderr_tail());
    let said: Vec<char> = said.trim().chars().collect();
    if said.is_empty() {
        return what.to_owned();
    }
    let tail: String = said[said.len().saturating_sub(STDERR_CHARS_MAX)..].iter().collect();
    format!("{what}; it said: {}", tail.trim())
}
