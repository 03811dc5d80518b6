//! What an agent may ask its client to do: read and write files, run commands, inside the workspace only.
//!
//! Calls are carried out in order by a task of their own. The runner never waits for one, so that a stop does not
//! either; the answers come from [`Calls::done`].

mod files;
mod terminals;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lanyard_api::agents::settings::AgentSettings;
use lanyard_core::{RunId, SessionId};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Duration;

use crate::agents::driver::{Call, CallError};
use crate::agents::runner::spec;
use crate::agents::shared::Shared;
use crate::runs::bounds::RunLimits;
use crate::sandbox::Enclosure;
use terminals::Terminals;

/// Calls of one run without an answer.
const WAITING_MAX: usize = 256;
/// How long commands have to be gone after SIGKILL. What is left is found by the mark of its run.
const END_MAX: Duration = Duration::from_secs(5);

type Asked = (String, Call);
type Done = (String, Result<Value, CallError>);

/// Where and as whom calls are carried out.
#[derive(Debug, Clone)]
pub(super) struct Stand {
    pub(super) workspace: PathBuf,
    pub(super) run: RunId,
    /// Variables for commands, over those of the daemon that may be passed on.
    pub(super) env: BTreeMap<String, String>,
    pub(super) clear_env: bool,
    /// The sandbox of the run, in which its commands run too.
    pub(super) enclosure: Option<Enclosure>,
    /// The bounds of the run, which hold for its commands too.
    pub(super) bounds: Option<RunLimits>,
}

impl Stand {
    /// With the environment of the agent itself: a command of it is nobody else.
    pub(super) fn of(
        shared: &Shared,
        settings: &AgentSettings,
        workspace: &Path,
        session: SessionId,
        run: RunId,
    ) -> Self {
        let spec = spec(settings, workspace, session, None).map(|spec| spec.env);
        let mut env = spec.unwrap_or_default();
        env.extend(shared.addresses.environment(session, run));
        let (workspace, clear_env) = (workspace.to_owned(), settings.clear_env);
        Self { workspace, run, env, clear_env, enclosure: None, bounds: None }
    }
}

/// The client's side of one run. Dropping it ends the commands.
#[derive(Debug)]
pub(super) struct Calls {
    asked: mpsc::Sender<Asked>,
    done: mpsc::Receiver<Done>,
    waiting: usize,
    close: Option<oneshot::Sender<()>>,
    worker: JoinHandle<()>,
}

impl Calls {
    pub(super) fn new(stand: Stand) -> Self {
        let (asked, asks) = mpsc::channel(WAITING_MAX);
        let (answers, done) = mpsc::channel(WAITING_MAX);
        let (close, closing) = oneshot::channel();
        let worker = tokio::spawn(work(stand, asks, answers, closing));
        Self { asked, done, waiting: 0, close: Some(close), worker }
    }

    /// Begins what is asked.
    pub(super) fn begin(&mut self, request: &str, call: Call) -> Result<(), CallError> {
        if self.waiting >= WAITING_MAX || self.asked.try_send((request.to_owned(), call)).is_err() {
            return Err(failed(format!("{WAITING_MAX} calls wait for their answer already")));
        }
        self.waiting += 1;
        Ok(())
    }

    /// The next answer, and the request it belongs to.
    pub(super) async fn done(&mut self) -> Done {
        match self.done.recv().await {
            Some(done) => {
                self.waiting = self.waiting.saturating_sub(1);
                done
            }
            // The worker has ended, and with it the run.
            None => std::future::pending().await,
        }
    }

    /// Whether a request has no answer yet.
    pub(super) fn is_waited_for(&self) -> bool {
        self.waiting > 0
    }

    /// Gives up what is being done, and ends all commands.
    pub(super) async fn end_all(&mut self) {
        self.close = None;
        if tokio::time::timeout(END_MAX * 2, &mut self.worker).await.is_err() {
            tracing::warn!("commands of an agent are not gone after SIGKILL");
        }
    }
}

/// Carries calls out, one after the other, until the run ends.
async fn work(
    stand: Stand,
    mut asks: mpsc::Receiver<Asked>,
    answers: mpsc::Sender<Done>,
    closing: oneshot::Receiver<()>,
) {
    let mut terminals = Terminals::new(stand.clone(), answers.clone());
    let answering = async {
        while let Some((request, call)) = asks.recv().await {
            if let Some(result) = carry_out(&stand, &mut terminals, &request, call).await
                && answers.send((request, result)).await.is_err()
            {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        _ = closing => {}
        () = answering => {}
    }
    terminals.end_all().await;
}

/// Does what is asked. Nothing when the answer comes later.
async fn carry_out(
    stand: &Stand,
    terminals: &mut Terminals,
    request: &str,
    call: Call,
) -> Option<Result<Value, CallError>> {
    let workspace = &stand.workspace;
    Some(match call {
        Call::ReadFile { path, line, limit } => files::read(workspace, &path, line, limit).await,
        Call::WriteFile { path, text } => files::write(workspace, &path, text).await,
        Call::TerminalCreate { command, args, env, cwd, output_bytes_max } => {
            terminals.create(&command, &args, env, cwd, output_bytes_max).await
        }
        Call::TerminalOutput { terminal } => terminals.output(&terminal),
        Call::TerminalWait { terminal } => match terminals.wait(request, &terminal) {
            Ok(()) => return None,
            Err(error) => Err(error),
        },
        Call::TerminalKill { terminal } => terminals.kill(&terminal).await,
        Call::TerminalRelease { terminal } => terminals.release(&terminal).await,
    })
}

fn failed(message: String) -> CallError {
    CallError { message, missing: false }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn calls(workspace: &Path) -> Calls {
        let run = RunId::from_u128(1);
        let (workspace, env) = (workspace.to_owned(), BTreeMap::new());
        Calls::new(Stand { workspace, run, env, clear_env: false, enclosure: None, bounds: None })
    }

    fn create(command: &str) -> Call {
        let (command, args, env) = (command.to_owned(), Vec::new(), Vec::new());
        Call::TerminalCreate { command, args, env, cwd: None, output_bytes_max: None }
    }

    /// FND-K1.
    #[tokio::test]
    async fn fnd_k1_a_call_on_a_fifo_is_answered_and_the_next_one_too() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let mut calls = calls(folder.path());
        let read = Call::ReadFile { path: fifo.clone(), line: None, limit: None };
        calls.begin("1", read).unwrap();
        calls.begin("2", Call::WriteFile { path: fifo, text: "x".to_owned() }).unwrap();
        calls.begin("3", create("echo there")).unwrap();
        assert!(calls.is_waited_for());
        for request in ["1", "2"] {
            let (answered, result) = calls.done().await;
            assert_eq!(answered, request);
            assert!(result.unwrap_err().message.contains("not a regular file"));
        }
        assert_eq!(calls.done().await, ("3".to_owned(), Ok(json!({ "terminalId": "term_1" }))));
        assert!(!calls.is_waited_for());
        calls.end_all().await;
    }

    /// FND-K1: a stop ends the run's calls, and with them the commands that somebody waits for.
    #[tokio::test]
    async fn fnd_k1_the_end_of_a_run_waits_for_no_call() {
        let folder = tempfile::tempdir().unwrap();
        let mut calls = calls(folder.path());
        calls.begin("1", create("cat /dev/zero > /dev/null")).unwrap();
        let (_, made) = calls.done().await;
        assert_eq!(made.unwrap()["terminalId"], "term_1");
        calls.begin("2", Call::TerminalWait { terminal: "term_1".to_owned() }).unwrap();
        calls.end_all().await;
        assert!(calls.worker.is_finished());
    }

    #[tokio::test]
    async fn only_so_many_calls_wait_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut calls = calls(folder.path());
        for n in 0..WAITING_MAX {
            calls.begin(&n.to_string(), Call::TerminalOutput { terminal: "none".to_owned() }).unwrap();
        }
        let one_more = calls.begin("more", Call::TerminalOutput { terminal: "none".to_owned() });
        assert!(one_more.unwrap_err().message.contains("already"));
    }
}
