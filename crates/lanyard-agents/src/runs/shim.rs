//! The shim: the process that owns one agent's stdio and process tree, and outlives the daemon.
//!
//! One thread with one `poll` loop, a second one for the [`super::relay`], no runtime: there is one of these for
//! every running agent, and it should cost next to nothing. While the agent is quiet both sleep; the process table is only
//! read when something is to be ended.

mod client;
mod input;
mod pty;
mod recording;
mod spool;
mod supervise;

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lanyard_api::agents::known;
use lanyard_api::names::MARKER;
use lanyard_core::session::NetworkReach;
use rustix::process::Signal;
use signal_hook::consts::signal;

use super::bounds::within;
use super::folder::{Folder, ShimFile, is_disk_full};
use super::process::{Identity, adopt_orphans, look, send};
use super::record::Spec;
use super::relay::{self, Contacts, GivenOrder};
use super::wire::{self, Birth, Failed};
use crate::sandbox::bridge::carry_to_port;
use crate::sandbox::proxy::connect_for;
use crate::sandbox::{BLANK, DOOR, Enclosure, PROXY_SOCKET, Parent, RELAY_SOCKET};
use pty::PtyMaster;
use spool::{Spool, Tail};
use supervise::Supervisor;

/// The longest specification of an agent: the kernel takes no more than a few MiB of arguments and environment.
const SPEC_MAX: u64 = 16 * 1024 * 1024;
/// Sent by people and service managers to whole groups of processes. The shim ends when its run has, not before; the
/// last one tells of a file that may not grow, which the write reports too.
const SHRUGGED_OFF: [i32; 7] = [
    signal::SIGTERM,
    signal::SIGINT,
    signal::SIGHUP,
    signal::SIGQUIT,
    signal::SIGUSR1,
    signal::SIGUSR2,
    signal::SIGXFSZ,
];

/// The connections that were made for the agent and those that were refused, in the run's folder.
const PROXY_LOG: &str = "proxy.log";

/// Why there is no agent.
struct NotBorn {
    what: Failed,
    text: String,
}

impl From<io::Error> for NotBorn {
    fn from(error: io::Error) -> Self {
        let what = if is_disk_full(&error) { Failed::Disk } else { Failed::Shim };
        Self { what, text: error.to_string() }
    }
}

/// Runs one agent to its end. `dir` is the folder of the run; how to start the agent comes through stdin.
#[must_use]
pub fn main(dir: &Path) -> ExitCode {
    let born = birth(dir);
    let said = match &born {
        Ok(supervisor) => Birth::Started { agent: supervisor.agent_pid() },
        Err(reason) => Birth::Failed { what: reason.what, text: reason.text.clone() },
    };
    // A daemon that is gone already cannot hear it; the next one finds the run by its folder.
    if let Ok(line) = wire::line(&said) {
        let _ = io::stdout().write_all(&line).and_then(|()| io::stdout().flush());
    }
    let Ok(supervisor) = born else { return ExitCode::FAILURE };
    // The daemon's pipes are let go even if there were no /dev/null.
    let _ = free_stdio();
    match supervisor.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn birth(dir: &Path) -> Result<Supervisor, NotBorn> {
    let GivenOrder { spec, relay } = read_order()?;
    let run = dir.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let run = run.ok_or_else(|| io::Error::other("the folder is not named after a run"))?;
    // Fails only for the leader of a group, which has no need of it.
    let _ = rustix::process::setsid();
    adopt_orphans()?;
    let wake = catch_signals()?;
    let cwd = std::path::absolute(&spec.cwd)?;
    // From here on the folder is `.`: however long its path is, that of the socket is short.
    std::env::set_current_dir(dir)?;
    let folder = Folder { path: ".".into() };
    let listener = UnixListener::bind("sock")?;
    listener.set_nonblocking(true)?;
    let me = Identity::of(std::process::id())?
        .ok_or_else(|| io::Error::other("the process table does not show this process"))?;
    let mut owner = ShimFile { shim: Some(me.clone()), agent: None };
    if !folder.claim(&owner)? {
        return Err(io::Error::other("the run was given up before it began").into());
    }
    folder.reserve_exit()?;
    let out = Spool::create(&folder, spec.limits)?;
    let err = Tail::create(&folder)?;
    check_cwd(&cwd)?;
    if spec.sandbox.is_some() {
        make_door()?;
    }
    if let Some(socket) = relay {
        // The daemon opened the listener, since the agent's configuration names its port.
        let given = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3).map_err(io::Error::from)?;
        let listener = TcpListener::from(given);
        if let Some(sandbox) = &spec.sandbox {
            open_door(sandbox, listener.local_addr()?.port())?;
        }
        relay::start(listener, socket, Contacts::new(folder.path.clone()))?;
    }
    let mut terminal = spec.terminal.map(|spec| PtyMaster::open(&folder, spec)).transpose()?;
    let child = spawn(&spec, &run, &cwd, terminal.as_mut())?;
    let agent = match record_agent(&folder, &mut owner, child.id()) {
        Ok(agent) => agent,
        Err(error) => {
            give_back(child);
            return Err(error.into());
        }
    };
    Ok(Supervisor::new(supervise::Parts {
        run,
        folder,
        me,
        agent,
        child,
        terminal,
        out,
        err,
        listener,
        wake,
        spec,
    })?)
}

/// A whole document or nothing: a daemon that dies while it writes has started no agent.
fn read_order() -> io::Result<GivenOrder> {
    let mut text = Vec::new();
    io::stdin().lock().take(SPEC_MAX).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidData, format!("no specification of an agent: {error}"))
    })
}

/// Handlers, not `SIG_IGN`: what is ignored stays ignored in the agent, handlers do not.
fn catch_signals() -> io::Result<UnixStream> {
    let unheeded = Arc::new(AtomicBool::new(false));
    for signal in SHRUGGED_OFF {
        signal_hook::flag::register(signal, Arc::clone(&unheeded))?;
    }
    let (wake, waker) = UnixStream::pair()?;
    wake.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal::SIGCHLD, waker)?;
    Ok(wake)
}

/// Asked before the start, because a missing folder and a missing program fail alike.
fn check_cwd(cwd: &Path) -> Result<(), NotBorn> {
    let usable = std::fs::metadata(cwd).and_then(|meta| {
        if !meta.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        rustix::fs::access(cwd, rustix::fs::Access::EXEC_OK).map_err(io::Error::from)
    });
    usable.map_err(|error| NotBorn {
        what: Failed::Cwd,
        text: format!("cannot work in {}: {error}", cwd.display()),
    })
}

fn spawn(spec: &Spec, run: &str, cwd: &Path, terminal: Option<&mut PtyMaster>) -> Result<Child, NotBorn> {
    if spec.argv.is_empty() {
        return Err(NotBorn { what: Failed::Program, text: "no program is named".to_owned() });
    }
    if spec.sandbox.is_some() || spec.bounds.is_some() {
        check_program(spec)?;
    }
    let argv = within((spec.sandbox.as_ref(), spec.bounds.as_ref()), &spec.argv, cwd, Parent::TakesItAlong);
    let Some((program, arguments)) = argv.split_first() else {
        return Err(NotBorn { what: Failed::Program, text: "no program is named".to_owned() });
    };
    let mut command = match terminal {
        Some(terminal) => {
            check_program(spec)?;
            terminal.command(program)?
        }
        None => piped(program),
    };
    if spec.clear_env {
        command.env_clear();
    }
    command
        .args(arguments)
        // Some agents believe this rather than the kernel.
        .env("PWD", cwd)
        .envs(&spec.env)
        .env(MARKER, run)
        .current_dir(cwd);
    for name in spec.sandbox.iter().flat_map(|sandbox| &sandbox.unset) {
        command.env_remove(name);
    }
    command.envs(spec.sandbox.iter().flat_map(Enclosure::variables));
    command.spawn().map_err(|error| {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the list of kinds is open")]
        let what = match error.kind() {
            io::ErrorKind::NotFound => Failed::Program,
            io::ErrorKind::PermissionDenied => Failed::Permission,
            _ => Failed::Other,
        };
        NotBorn { what, text: format!("cannot start {program}: {error}") }
    })
}

/// A program with pipes, in a group of its own.
fn piped(program: &str) -> Command {
    let mut command = Command::new(program);
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A helper starts the program, and a program that is missing should be told as one.
fn check_program(spec: &Spec) -> Result<(), NotBorn> {
    let Some(program) = spec.argv.first() else { return Ok(()) };
    let inherited = || std::env::var("PATH").unwrap_or_default();
    let path = spec.env.get("PATH").cloned().unwrap_or_else(inherited);
    match known::find(program, &path) {
        Some(_) => Ok(()),
        None => {
            Err(NotBorn { what: Failed::Program, text: format!("there is no program {program} on the PATH") })
        }
    }
}

/// Makes the folder of the run that its sandbox sees. Called in the run's folder.
fn make_door() -> io::Result<()> {
    std::fs::DirBuilder::new().mode(0o700).create(DOOR)?;
    let blank = Path::new(DOOR).join(BLANK);
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o000).open(blank).map(drop)
}

/// Opens the way from the sandbox to the relay. Called in the run's folder.
fn open_door(sandbox: &Enclosure, relay: u16) -> io::Result<()> {
    if sandbox.network == NetworkReach::All {
        return Ok(());
    }
    // A path below the current folder is short enough for a socket.
    let door = Path::new(DOOR);
    if let NetworkReach::Hosts(hosts) = &sandbox.network {
        connect_for(UnixListener::bind(door.join(PROXY_SOCKET))?, hosts, PROXY_LOG.into())?;
    }
    carry_to_port(UnixListener::bind(door.join(RELAY_SOCKET))?, relay)
}

/// A later daemon must be able to tell the agent from whoever gets its number next.
fn record_agent(folder: &Folder, owner: &mut ShimFile, pid: u32) -> io::Result<Identity> {
    let agent = Identity::of(pid)?.ok_or_else(|| io::Error::other("the agent left no trace"))?;
    owner.agent = Some(agent.clone());
    folder.update_shim(owner)?;
    Ok(agent)
}

/// The agent that was just started must not run without a record of it.
fn give_back(mut child: Child) {
    if let Some(process) = look(child.id()) {
        let _ = send(&process, Signal::KILL);
    }
    let _ = child.wait();
}

fn free_stdio() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}
