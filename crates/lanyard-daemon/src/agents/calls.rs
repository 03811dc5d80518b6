//! What an agent may ask its client to do: read and write files, run commands, inside the workspace only.

mod files;
mod terminals;

use std::collections::BTreeMap;
use std::path::PathBuf;

use lanyard_core::RunId;
use serde_json::Value;

use crate::agents::driver::{Call, CallError};
use terminals::Terminals;

/// The environment of the agent's own processes, which the commands it has run get too.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// Whether nothing else is inherited.
    pub(super) clear: bool,
    pub(super) env: BTreeMap<String, String>,
}

/// The client's side of one run.
#[derive(Debug)]
pub(super) struct Calls {
    workspace: PathBuf,
    terminals: Terminals,
}

impl Calls {
    pub(super) fn new(workspace: PathBuf, run: RunId, surroundings: Surroundings) -> Self {
        Self { terminals: Terminals::new(workspace.clone(), run, surroundings), workspace }
    }

    /// Does what is asked. Nothing when the answer comes later, from [`Calls::done`].
    pub(super) async fn run(&mut self, request: &str, call: Call) -> Option<Result<Value, CallError>> {
        let workspace = self.workspace.clone();
        let result = match call {
            Call::ReadFile { path, line, limit } => {
                on_disk(move || files::read(&workspace, &path, line, limit)).await
            }
            Call::WriteFile { path, text } => on_disk(move || files::write(&workspace, &path, &text)).await,
            Call::TerminalCreate { command, args, env, cwd, output_bytes_max } => {
                self.terminals.create(&command, &args, env, cwd, output_bytes_max)
            }
            Call::TerminalOutput { terminal } => self.terminals.output(&terminal),
            Call::TerminalWait { terminal } => {
                return self
                    .terminals
                    .wait(request, &terminal)
                    .map_or_else(|error| Some(Err(error)), |()| None);
            }
            Call::TerminalKill { terminal } => self.terminals.kill(&terminal).await,
            Call::TerminalRelease { terminal } => self.terminals.release(&terminal).await,
        };
        Some(result)
    }

    /// Waits for a command somebody waits for, and answers the request that asked.
    pub(super) async fn done(&mut self) -> (String, Result<Value, CallError>) {
        self.terminals.done().await
    }

    /// Whether a request waits for a command to end.
    pub(super) fn is_waited_for(&self) -> bool {
        self.terminals.waited_for > 0
    }

    pub(super) async fn end_all(&mut self) {
        self.terminals.end_all().await;
    }
}

async fn on_disk(
    work: impl FnOnce() -> Result<Value, CallError> + Send + 'static,
) -> Result<Value, CallError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(failed(error.to_string())))
}

fn failed(message: String) -> CallError {
    CallError { message, missing: false }
}
