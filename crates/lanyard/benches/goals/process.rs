//! The processes that are measured: daemons, and this program started again as a reference. None outlives its handle.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// How long anything may take to start or to end.
const PATIENCE: Duration = Duration::from_mins(1);

/// Killed, if it still runs, when dropped.
#[derive(Debug)]
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A real daemon with a data folder of its own.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Owned,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl Daemon {
    pub(crate) fn start(home: &Path) -> Result<Self> {
        let mut child = spawn_daemon(home)?;
        let line = first_line(&mut child.0).context("the daemon did not say its address")?;
        let address = line.trim().trim_start_matches("http://").parse();
        let address = address.with_context(|| format!("the daemon said `{}`", line.trim()))?;
        let token = token(home)?;
        Ok(Self { child, address, token })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Ends it in good order, as `lanyard down` does.
    pub(crate) fn stop(mut self) -> Result<()> {
        terminate(&mut self.child)
    }
}

/// Starts a daemon and answers how long it took until `ready` said yes; then ends it.
pub(crate) fn time_daemon(home: &Path, ready: impl Fn() -> bool) -> Result<Duration> {
    let began = Instant::now();
    let mut child = spawn_daemon(home)?;
    while !ready() {
        ensure!(began.elapsed() < PATIENCE, "the daemon did not serve in time");
        if let Some(status) = child.0.try_wait()? {
            bail!("the daemon ended with {status}; see {}", home.join("bench.log").display());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let took = began.elapsed();
    terminate(&mut child)?;
    Ok(took)
}

fn spawn_daemon(home: &Path) -> Result<Owned> {
    std::fs::create_dir_all(home)?;
    let log = OpenOptions::new().create(true).append(true).open(home.join("bench.log"))?;
    let child = Command::new(env!("CARGO_BIN_EXE_lanyard"))
        .arg("--data-dir")
        .arg(home)
        .arg("--config")
        .arg(home.join("config.toml"))
        .args(["--quiet", "up", "--listen", "127.0.0.1:0"])
        .env("LANYARD_LOG", "warn")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .context("cannot start the daemon")?;
    Ok(Owned(child))
}

fn terminate(child: &mut Owned) -> Result<()> {
    let pid = i32::try_from(child.0.id()).ok().and_then(Pid::from_raw).context("a process without an id")?;
    kill_process(pid, Signal::TERM)?;
    let asked = Instant::now();
    while child.0.try_wait()?.is_none() {
        ensure!(asked.elapsed() < PATIENCE, "the daemon did not end in time");
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

pub(crate) fn token(home: &Path) -> Result<String> {
    let text = std::fs::read_to_string(home.join("token")).context("the daemon made no token")?;
    Ok(text.trim().to_owned())
}

/// This program as something else. It ends when its standard input does, so also when this process is killed.
#[derive(Debug)]
pub(crate) struct Reference {
    child: Owned,
    /// The one line it says when it is ready.
    pub(crate) said: String,
}

impl Reference {
    /// `role` is one of the roles in `references`, `args` what it needs.
    pub(crate) fn start(role: &str, args: &[String]) -> Result<Self> {
        let child = Command::new(std::env::current_exe()?)
            .args(["--bench", "--role", role])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start the reference `{role}`"))?;
        let mut child = Owned(child);
        let said =
            first_line(&mut child.0).with_context(|| format!("the reference `{role}` said nothing"))?;
        Ok(Self { child, said: said.trim().to_owned() })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// The numbers it said.
    pub(crate) fn numbers<const N: usize>(&self) -> Result<[u16; N]> {
        let numbers: Vec<u16> = self.said.split(' ').filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().ok().with_context(|| format!("the reference said `{}`", self.said))
    }
}

/// In a reference's own process: ends it when nobody holds its standard input any more.
pub(crate) fn end_with_parent() {
    std::thread::spawn(|| {
        let mut stdin = std::io::stdin().lock();
        while stdin.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        std::process::exit(0);
    });
}

/// A server of somebody else's, if there is one on this machine.
#[derive(Debug)]
pub(crate) struct Foreign(Owned);

impl Foreign {
    pub(crate) fn start(command: &mut Command) -> Option<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        Some(Self(Owned(child)))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.0.id()
    }
}

fn first_line(child: &mut Child) -> Result<String> {
    let stdout = child.stdout.take().context("no standard output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    ensure!(!line.trim().is_empty(), "it ended without a word");
    Ok(line)
}
