//! Commands an agent asks its client to run. They belong to the run: marked with its id, so that they are found and
//! ended with it, whatever becomes of the daemon. A daemon that comes back does not know them, and says so.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use lanyard_api::names::MARKER;
use lanyard_git::workspace_files;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};

use super::{Done, END_MAX, Stand, failed};
use crate::agents::driver::CallError;
use crate::runs::bounds::within;
use crate::sandbox::{Enclosure, Parent};
use lanyard_base::environment;

/// Commands one run may have at a time.
const TERMINALS_MAX: usize = 32;
/// Output of a command that is kept; an agent may ask for less.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Terminals {
    stand: Stand,
    made: u64,
    open: HashMap<String, Terminal>,
    /// Where answers go that come later.
    done: mpsc::Sender<Done>,
}

#[derive(Debug)]
struct Terminal {
    group: rustix::process::Pid,
    output: Arc<Mutex<Output>>,
    ended: watch::Receiver<Option<Value>>,
}

#[derive(Debug, Default)]
struct Output {
    bytes: Vec<u8>,
    truncated: bool,
    max: usize,
}

impl Terminals {
    pub(super) fn new(stand: Stand, done: mpsc::Sender<Done>) -> Self {
        Self { stand, made: 0, open: HashMap::new(), done }
    }

    pub(super) async fn create(
        &mut self,
        command: &str,
        args: &[String],
        env: Vec<(String, String)>,
        cwd: Option<PathBuf>,
        output_bytes_max: Option<u64>,
    ) -> Result<Value, CallError> {
        if self.open.len() >= TERMINALS_MAX {
            return Err(failed(format!("{TERMINALS_MAX} commands are open already")));
        }
        let cwd = self.inside(cwd).await?;
        // Agents give a whole command line as often as a program with arguments.
        let whole = || ["sh", "-c", command].map(str::to_owned).to_vec();
        let program = || std::iter::once(command.to_owned()).chain(args.iter().cloned()).collect();
        let plain = if args.is_empty() { whole() } else { program() };
        let around = (self.stand.enclosure.as_ref(), self.stand.bounds.as_ref());
        let words = within(around, &plain, &cwd, Parent::LeavesIt);
        let mut process = Command::new(words.first().map_or("", String::as_str));
        process.args(words.iter().skip(1));
        // An agent may not give its commands another session than its own.
        let own = self.stand.env.iter().filter(|(name, _)| name.starts_with("LANYARD_"));
        process
            .env_clear()
            .envs(environment::inherited(self.stand.clear_env))
            .envs(&self.stand.env)
            .envs(env)
            .envs(own)
            .env(MARKER, self.stand.run.to_string())
            .current_dir(cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        for name in self.stand.enclosure.iter().flat_map(|sandbox| &sandbox.unset) {
            process.env_remove(name);
        }
        process.envs(self.stand.enclosure.iter().flat_map(Enclosure::variables));
        let mut child = process.spawn().map_err(|error| failed(format!("{command}: {error}")))?;
        let group =
            child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw);
        let group = group.ok_or_else(|| failed("the command ended before it began".to_owned()))?;
        let max = output_bytes_max.and_then(|max| usize::try_from(max).ok()).unwrap_or(OUTPUT_BYTES_MAX);
        let output = Arc::new(Mutex::new(Output { max: max.min(OUTPUT_BYTES_MAX), ..Output::default() }));
        let readers = [
            child.stdout.take().map(|pipe| tokio::spawn(collect(pipe, output.clone()))),
            child.stderr.take().map(|pipe| tokio::spawn(collect(pipe, output.clone()))),
        ];
        let (ends, ended) = watch::channel(None);
        tokio::spawn(watch_over(child, readers, ends));
        self.made += 1;
        let id = format!("term_{}", self.made);
        self.open.insert(id.clone(), Terminal { group, output, ended });
        Ok(json!({ "terminalId": id }))
    }

    async fn inside(&self, cwd: Option<PathBuf>) -> Result<PathBuf, CallError> {
        let workspace = &self.stand.workspace;
        let Some(cwd) = cwd else { return Ok(workspace.clone()) };
        let inside = workspace_files::folder(workspace, &cwd).await;
        inside.map_err(|error| failed(format!("{}: {error}", cwd.display())))
    }

    fn get(&self, id: &str) -> Result<&Terminal, CallError> {
        self.open.get(id).ok_or_else(|| CallError {
            message: format!("there is no terminal {id}; it may have been lost with an earlier daemon"),
            missing: true,
        })
    }

    pub(super) fn output(&self, id: &str) -> Result<Value, CallError> {
        let terminal = self.get(id)?;
        let output = terminal.output.lock();
        let text = String::from_utf8_lossy(&output.bytes);
        let mut answer = json!({ "output": text, "truncated": output.truncated });
        if let Some(status) = terminal.ended.borrow().clone() {
            answer["exitStatus"] = status;
        }
        Ok(answer)
    }

    /// The answer comes when the command has ended.
    pub(super) fn wait(&mut self, request: &str, id: &str) -> Result<(), CallError> {
        let mut ended = self.get(id)?.ended.clone();
        let (done, request) = (self.done.clone(), request.to_owned());
        tokio::spawn(async move {
            let status = match ended.wait_for(Option::is_some).await {
                Ok(status) => status.clone().unwrap_or(Value::Null),
                Err(_) => json!({ "exitCode": null, "signal": "unknown" }),
            };
            let _ = done.send((request, Ok(status))).await;
        });
        Ok(())
    }

    pub(super) async fn kill(&self, id: &str) -> Result<Value, CallError> {
        end(self.get(id)?).await
    }

    pub(super) async fn release(&mut self, id: &str) -> Result<Value, CallError> {
        self.get(id)?;
        match self.open.remove(id) {
            Some(terminal) => end(&terminal).await,
            None => Ok(json!({})),
        }
    }

    /// Ends all commands: all are told before one is waited for.
    pub(super) async fn end_all(&mut self) {
        for terminal in self.open.values() {
            kill(terminal);
        }
        let all = async {
            for (_, terminal) in self.open.drain() {
                let _ = end(&terminal).await;
            }
        };
        let _ = tokio::time::timeout(END_MAX, all).await;
    }
}

fn kill(terminal: &Terminal) {
    if terminal.ended.borrow().is_none() {
        // The child is not reaped before it is seen to have ended, so its number is still its own.
        let _ = rustix::process::kill_process_group(terminal.group, rustix::process::Signal::KILL);
    }
}

async fn end(terminal: &Terminal) -> Result<Value, CallError> {
    kill(terminal);
    let mut ended = terminal.ended.clone();
    match tokio::time::timeout(END_MAX, ended.wait_for(Option::is_some)).await {
        Ok(_) => Ok(json!({})),
        Err(_) => Err(failed(format!("the command is not gone {} s after SIGKILL", END_MAX.as_secs()))),
    }
}

async fn watch_over(
    mut child: Child,
    readers: [Option<tokio::task::JoinHandle<()>>; 2],
    ends: watch::Sender<Option<Value>>,
) {
    let status = child.wait().await;
    for reader in readers.into_iter().flatten() {
        // A grandchild may keep the pipe open; what it writes later is nobody's answer.
        let _ = tokio::time::timeout(std::time::Duration::from_millis(500), reader).await;
    }
    let status = match status {
        Ok(status) => {
            let signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|n| n.to_string());
            json!({ "exitCode": status.code(), "signal": signal })
        }
        Err(_) => json!({ "exitCode": null, "signal": "unknown" }),
    };
    let _ = ends.send(Some(status));
}

async fn collect(mut pipe: impl tokio::io::AsyncRead + Unpin, output: Arc<Mutex<Output>>) {
    let mut piece = [0; 8_192];
    while let Ok(read @ 1..) = pipe.read(&mut piece).await {
        let mut output = output.lock();
        output.bytes.extend_from_slice(&piece[..read]);
        // The newest is kept, from a whole character on.
        let extra = output.bytes.len().saturating_sub(output.max);
        if extra > 0 {
            let whole = output.bytes[extra..].iter().position(|byte| byte & 0xC0 != 0x80).unwrap_or(0);
            output.bytes.drain(..extra + whole);
            output.truncated = true;
        }
    }
}
