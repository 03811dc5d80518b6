//! Quality commands. Each is a run under a shim of its own, so that it outlives the daemon: one that came to its end while
//! nobody looked is found with its result, and not run again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lanyard_api::names::SESSION;
use lanyard_core::Actor;
use lanyard_core::flow::{Check, CheckResult, FlowEvent, Looked, QualityCommand, quality_ended};
use tokio::task::JoinHandle;

use crate::flow::FlowError;
use crate::flow::driver::{Driver, Next};
use lanyard_agents::runs::{
    Adopted, Exit, How, LastOutput, Link, Spec, SpoolLimits, StartError, last_output,
};
use lanyard_base::failpoint;

/// What a check finds as its session: none there can be.
const NO_SESSION: &str = "check";
/// How long its processes have after SIGTERM, before SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// Times a command whose supervisor was lost is begun again.
const BEGUN_MAX: u32 = 3;

/// A command that runs.
pub(super) struct Running {
    run: String,
    link: Link,
    reading: JoinHandle<LastOutput>,
    done: Option<LastOutput>,
    timed_out: bool,
}

impl Running {
    fn new(run: String, link: Link) -> Self {
        let reading = tokio::spawn(last_output(link.clone()));
        Self { run, link, reading, done: None, timed_out: false }
    }

    /// Returns when it has ended, also when it is asked again.
    pub(super) async fn ended(&mut self) {
        if self.done.is_none() {
            let lost = LastOutput { exit: None, text: String::new(), truncated: false };
            self.done = Some((&mut self.reading).await.unwrap_or(lost));
        }
    }
}

impl Driver {
    /// Writes down which command is to be run, before it is.
    pub(super) async fn begin_check(&mut self, place: usize) -> Result<Next, FlowError> {
        let run = format!("{}_{}_{place}", self.flow.id, self.flow.step);
        self.write(vec![FlowEvent::CheckBegun { place, run }], &Actor::system("flow")).await?;
        Ok(Next::Again)
    }

    pub(super) async fn attend_check(&mut self) -> Result<Next, FlowError> {
        let Some(check) = self.flow.check.clone() else { return Ok(Next::Again) };
        let Some(command) = self.flow.settings.quality.get(check.place).cloned() else {
            return Err(FlowError::Defect("there is no such quality command".to_owned()));
        };
        if self.check.as_ref().is_none_or(|running| running.run != check.run) {
            match self.find_or_start(&check, &command).await? {
                Ok(link) => self.check = Some(Running::new(check.run.clone(), link)),
                Err(error) => {
                    let ms = self.since(&check);
                    let result = result(&command, None, Some(error), false, ms);
                    return self.check_ended(result).await;
                }
            }
        }
        let late = command.timeout_ms > 0 && self.since(&check) >= command.timeout_ms;
        let Some(running) = &mut self.check else { return Ok(Next::Again) };
        if running.done.is_none() && late && !running.timed_out {
            running.timed_out = true;
            // Everything it started goes with it.
            let _ = running.link.end(GRACE).await;
        }
        let Some(tail) = running.done.clone() else { return Ok(Next::Wait) };
        if tail.exit.as_ref().is_none_or(Exit::is_lost) {
            return self.begin_again(&check, &command).await;
        }
        let killed = matches!(tail.exit.as_ref().map(|exit| exit.how), Some(How::Signalled(_)));
        let timed_out = running.timed_out || (killed && late);
        let ms = self.since(&check);
        self.check_ended(result(&command, Some(&tail), None, timed_out, ms)).await
    }

    fn since(&self, check: &Check) -> u64 {
        self.tools.clock.now().millis_since(check.begun_at)
    }

    /// The run of an earlier daemon, or a new one. The inner error is for a person to read.
    async fn find_or_start(
        &self,
        check: &Check,
        command: &QualityCommand,
    ) -> Result<Result<Link, String>, FlowError> {
        let unavailable = |error: std::io::Error| FlowError::Unavailable(error.to_string());
        let known = self.tools.checks.list().map_err(unavailable)?;
        if known.iter().any(|known| known.run == check.run) {
            match self.tools.checks.adopt(&check.run).await.map_err(unavailable)? {
                Adopted::Live(link) => return Ok(Ok(link)),
                Adopted::Ended(exit) if !exit.is_lost() => {
                    return self.tools.checks.ended(&check.run, &exit).map(Ok).map_err(unavailable);
                }
                // It did not come to its end: whatever is left of it goes, and it is begun again.
                Adopted::Ended(_) | Adopted::Gone { .. } => self.clear(&check.run).await?,
            }
        }
        let spec = Spec {
            argv: command.command.clone(),
            // A check runs what an agent wrote: `lanyard` in there is nobody, and no operator.
            env: BTreeMap::from([
                ("LANYARD_FLOW".to_owned(), self.flow.id.to_string()),
                (SESSION.to_owned(), NO_SESSION.to_owned()),
            ]),
            clear_env: false,
            cwd: PathBuf::from(self.flow.folder()),
            grace_ms: u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX),
            limits: SpoolLimits::default(),
            sandbox: None,
            bounds: None,
            terminal: None,
        };
        let about = serde_json::json!({ "flow": self.flow.id, "check": command.name });
        failpoint::hit("flows_before_act");
        let started = self.tools.checks.start(&check.run, &about, &spec).await;
        failpoint::hit("flows_after_act");
        match started {
            Ok(link) => {
                let _ = link.close_input().await;
                Ok(Ok(link))
            }
            Err(error @ (StartError::NoDisk(_) | StartError::Shim(_) | StartError::Taken(_))) => {
                Err(FlowError::Unavailable(error.to_string()))
            }
            Err(
                error @ (StartError::ProgramMissing(_)
                | StartError::NotExecutable(_)
                | StartError::CwdUnusable(_)
                | StartError::NotStarted(_)),
            ) => Ok(Err(format!("`{}`: {error}", command.name))),
        }
    }

    async fn begin_again(&mut self, check: &Check, command: &QualityCommand) -> Result<Next, FlowError> {
        self.check = None;
        self.lost_checks += 1;
        if self.lost_checks >= BEGUN_MAX {
            let error = format!("`{}`: its supervisor was lost {BEGUN_MAX} times", command.name);
            let result = result(command, None, Some(error), false, self.since(check));
            return self.check_ended(result).await;
        }
        self.clear(&check.run).await?;
        Ok(Next::Again)
    }

    async fn check_ended(&mut self, result: CheckResult) -> Result<Next, FlowError> {
        let run = self.flow.check.as_ref().map(|check| check.run.clone());
        let looked = match self.flow.sessions.last().map(|worked| worked.session) {
            Some(session) => self.looked(session, None).await?,
            None => Looked::default(),
        };
        let events = quality_ended(&self.flow, result, looked, self.tools.fresh());
        self.write(events, &Actor::system("flow")).await?;
        self.check = None;
        self.lost_checks = 0;
        if let Some(run) = run {
            self.clear(&run).await?;
        }
        Ok(Next::Again)
    }

    /// Ends what is left of a run, and forgets it.
    async fn clear(&self, run: &str) -> Result<(), FlowError> {
        let known = self.tools.checks.list().map_err(|error| FlowError::Unavailable(error.to_string()))?;
        if !known.iter().any(|known| known.run == run) {
            return Ok(());
        }
        let swept = self.tools.checks.sweep(run, GRACE).await;
        swept.map_err(|error| FlowError::Unavailable(error.to_string()))?;
        self.tools.checks.forget(run).map_err(|error| FlowError::Unavailable(error.to_string()))
    }

    /// Ends every command of this flow.
    pub(super) async fn end_checks(&mut self) {
        self.check = None;
        let mark = format!("{}_", self.flow.id);
        let Ok(known) = self.tools.checks.list() else { return };
        for known in known.iter().filter(|known| known.run.starts_with(&mark)) {
            if let Err(error) = self.clear(&known.run).await {
                tracing::warn!(flow = %self.flow.id, %error, "what is left of a check could not be ended");
            }
        }
    }
}

fn result(
    command: &QualityCommand,
    tail: Option<&LastOutput>,
    error: Option<String>,
    timed_out: bool,
    ms: u64,
) -> CheckResult {
    let exit_code = match tail.and_then(|tail| tail.exit.as_ref()).map(|exit| exit.how) {
        Some(How::Exited(code)) => Some(code),
        Some(How::Signalled(_) | How::Lost) | None => None,
    };
    CheckResult {
        name: command.name.clone(),
        passed: exit_code == Some(0) && !timed_out && error.is_none(),
        exit_code,
        timed_out,
        error,
        output: tail.map(|tail| tail.text.clone()).unwrap_or_default(),
        truncated: tail.is_some_and(|tail| tail.truncated),
        ms,
    }
}
