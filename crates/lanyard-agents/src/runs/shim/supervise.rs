//! The shim's loop: output to the spool, input to the agent, one client, and the end of everything.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use lanyard_core::session::WindowSize;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, WaitStatus, wait};

use super::client::{Client, Frame, is_later};
use super::input::Input;
use super::pty::PtyMaster;
use super::spool::{Spool, Tail};
use crate::runs::folder::Folder;
use crate::runs::process::{Identity, RunEnding, RunScope, now_ms};
use crate::runs::record::{Exit, How, Spec};
use crate::runs::wire::{Answer, Message, Request, Status};

/// Read at once: what a pipe holds.
const BUFFER: usize = 64 * 1024;
/// How often the writing of `exit.json` is tried, and the pause between.
const EXIT_TRIES_MAX: u32 = 50;
const EXIT_PAUSE: Duration = Duration::from_millis(200);
/// Before the next try when the system cannot even wait.
const POLL_PAUSE: Duration = Duration::from_millis(100);

/// What a supervisor is made of.
pub(super) struct Parts {
    pub(super) run: String,
    pub(super) folder: Folder,
    pub(super) me: Identity,
    pub(super) agent: Identity,
    pub(super) child: Child,
    /// None where the agent has pipes.
    pub(super) terminal: Option<PtyMaster>,
    pub(super) out: Spool,
    pub(super) err: Tail,
    pub(super) listener: UnixListener,
    pub(super) wake: UnixStream,
    pub(super) spec: Spec,
}

pub(super) struct Supervisor {
    run: String,
    folder: Folder,
    me: Identity,
    agent: Identity,
    grace_ms: u64,
    /// In a sandbox the main process is its keeper, which takes all in it along: it is not told to end before they are.
    keeper: bool,
    /// The control group of the run.
    group: Option<PathBuf>,
    input: Input,
    stdout: Option<File>,
    stderr: Option<File>,
    terminal: Option<PtyMaster>,
    out: Spool,
    err: Tail,
    listener: UnixListener,
    client: Option<Client>,
    /// Readable when a child has ended.
    wake: UnixStream,
    /// How the agent's main process ended, once it has.
    how: Option<How>,
    ending: Option<RunEnding>,
    /// Nothing of the scope lives.
    over: bool,
    buffer: Box<[u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Wake,
    Listener,
    Client,
    Stdout,
    Stderr,
    Stdin,
}

impl Supervisor {
    pub(super) fn new(parts: Parts) -> io::Result<Self> {
        let Parts { run, folder, me, agent, mut child, terminal, out, err, listener, wake, spec } = parts;
        let (stdin, stdout) = match &terminal {
            Some(terminal) => (Some(terminal.end()?), Some(terminal.end()?)),
            None => (file(child.stdin.take()), file(child.stdout.take())),
        };
        let stderr = file(child.stderr.take());
        for pipe in [
            stdin.as_ref().map(AsFd::as_fd),
            stdout.as_ref().map(AsFd::as_fd),
            stderr.as_ref().map(AsFd::as_fd),
        ] {
            let Some(pipe) = pipe else { continue };
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Self {
            run,
            folder,
            me,
            agent,
            grace_ms: spec.grace_ms,
            keeper: spec.sandbox.is_some(),
            group: spec.bounds.and_then(|bounds| bounds.group),
            input: Input::new(stdin),
            stdout,
            stderr,
            terminal,
            out,
            err,
            listener,
            client: None,
            wake,
            how: None,
            ending: None,
            over: false,
            buffer: vec![0; BUFFER].into(),
        })
    }

    pub(super) fn agent_pid(&self) -> u32 {
        self.agent.pid
    }

    /// Until nothing of the run lives and all is written.
    pub(super) fn run(mut self) -> io::Result<()> {
        loop {
            for source in self.wait() {
                self.serve(source);
            }
            self.settle();
            if self.over && self.drain() {
                return self.finish();
            }
            let len = self.out.len();
            self.with_client(|client| client.tell_output(len));
        }
    }

    /// Sleeps until something is ready or due.
    fn wait(&self) -> Vec<Source> {
        let mut watched: Vec<(Source, BorrowedFd<'_>, PollFlags)> = vec![
            (Source::Wake, self.wake.as_fd(), PollFlags::IN),
            (Source::Listener, self.listener.as_fd(), PollFlags::IN),
        ];
        if let Some(client) = &self.client {
            watched.push((Source::Client, client.fd(), client.interest()));
        }
        // A pipe that is not read is not watched either: the agent waits, and the loop does not spin.
        if let Some(stdout) = self.stdout.as_ref().filter(|_| self.out.has_room()) {
            watched.push((Source::Stdout, stdout.as_fd(), PollFlags::IN));
        }
        if let Some(stderr) = &self.stderr {
            watched.push((Source::Stderr, stderr.as_fd(), PollFlags::IN));
        }
        if let Some(stdin) = self.input.wants_to_write() {
            watched.push((Source::Stdin, stdin, PollFlags::OUT));
        }
        let mut fds: Vec<PollFd<'_>> =
            watched.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        match poll(&mut fds, self.timeout().as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Vec::new(),
            Err(_) => {
                // Short of memory, perhaps. Giving up would leave the agent alone.
                std::thread::sleep(POLL_PAUSE);
                return Vec::new();
            }
        }
        let ready = watched.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|((source, _, _), _)| *source).collect()
    }

    /// None: nothing is due, however long it takes.
    fn timeout(&self) -> Option<Timespec> {
        let ending = self.ending.as_ref().filter(|_| !self.over).map(RunEnding::next_at);
        let due = ending.into_iter().chain(self.out.retry_at()).min()?;
        let left = Duration::from_millis(due.saturating_sub(now_ms()));
        Timespec::try_from(left).ok()
    }

    fn serve(&mut self, source: Source) {
        match source {
            Source::Wake => {
                while matches!((&self.wake).read(&mut self.buffer), Ok(read) if read > 0) {}
                if let Some(ending) = &mut self.ending {
                    ending.look_again(now_ms());
                }
            }
            Source::Listener => self.accept(),
            Source::Client => self.listen(),
            Source::Stdout => drop(self.read_stdout()),
            Source::Stderr => drop(self.read_stderr()),
            Source::Stdin => self.input.write(),
        }
    }

    /// True if something was read.
    fn read_stdout(&mut self) -> bool {
        let Some(pipe) = &mut self.stdout else { return false };
        match pipe.read(&mut self.buffer) {
            Ok(read) if read > 0 => {
                let now = now_ms();
                self.out.write(&self.buffer[..read], now);
                if let Some(terminal) = &mut self.terminal {
                    terminal.record(&self.buffer[..read], now);
                }
                true
            }
            Err(error) if is_later(&error) => false,
            Ok(_) | Err(_) => {
                self.stdout = None;
                false
            }
        }
    }

    /// True if something was read.
    fn read_stderr(&mut self) -> bool {
        let Some(pipe) = &mut self.stderr else { return false };
        match pipe.read(&mut self.buffer) {
            Ok(read) if read > 0 => {
                self.err.write(&self.buffer[..read]);
                true
            }
            Err(error) if is_later(&error) => false,
            Ok(_) | Err(_) => {
                self.stderr = None;
                false
            }
        }
    }

    /// The newest client counts: the one before is a daemon that is gone or should be.
    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let status = self.status();
            self.client = Client::new(stream, status.output).ok();
            self.with_client(|client| client.say(&Message::Hello { status }));
        }
    }

    fn listen(&mut self) {
        let Some(client) = &mut self.client else { return };
        let heard = client.flush().and_then(|()| client.read(&mut self.buffer));
        match heard {
            Ok(frames) => frames.into_iter().for_each(|frame| self.obey(frame)),
            Err(_) => self.client = None,
        }
    }

    fn obey(&mut self, frame: Frame) {
        let (id, result) = match frame.request {
            Request::Consumed { to } => return self.out.consume(to),
            Request::Send { id, key, .. } => (id, self.input.send(&key, frame.body)),
            Request::CloseInput { id } => {
                self.input.close();
                (id, Answer::Done)
            }
            Request::Resize { id, key, cols, rows } => (id, self.resize(&key, cols, rows)),
            Request::End { id, grace_ms } => {
                self.end(grace_ms);
                (id, Answer::Done)
            }
            Request::Status { id } => (id, Answer::Status(self.status())),
        };
        self.with_client(|client| client.say(&Message::Answer { id, result }));
    }

    /// Gives the terminal's window another size, once per key.
    fn resize(&mut self, key: &str, cols: u16, rows: u16) -> Answer {
        let at = self.out.len();
        match &mut self.terminal {
            None => Answer::NoTerminal,
            Some(_) if !self.input.is_first(key) => Answer::Repeated,
            Some(terminal) => terminal.resize(WindowSize { cols, rows }, (at, self.out.consumed()), now_ms()),
        }
    }

    /// A client that cannot be told is gone.
    fn with_client(&mut self, speak: impl FnOnce(&mut Client) -> io::Result<()>) {
        if let Some(client) = &mut self.client
            && speak(client).is_err()
        {
            self.client = None;
        }
    }

    fn status(&self) -> Status {
        Status {
            agent: self.agent.clone(),
            output: self.out.len(),
            consumed: self.out.consumed(),
            input_open: self.input.is_open(),
            input_waiting: self.input.waiting(),
            ending: self.ending.is_some(),
        }
    }

    fn end(&mut self, grace_ms: u64) {
        let now = now_ms();
        if let Some(ending) = &mut self.ending {
            return ending.hasten(now, grace_ms);
        }
        let scope = RunScope::new(&self.run, Some(self.me.clone()), Some(self.agent.clone()))
            .in_group(self.group.clone());
        let keeper = self.keeper.then_some(self.agent.pid);
        let ending = RunEnding::new(scope, now, grace_ms).sparing(keeper);
        self.ending = Some(if self.terminal.is_some() { ending.hanging_up(now) } else { ending });
    }

    /// What became of the agent, and the next step of its end.
    fn settle(&mut self) {
        self.reap();
        if self.out.retry(now_ms()) {
            self.end(self.grace_ms);
        }
        if self.how.is_some() && self.ending.is_none() {
            self.end(self.grace_ms);
        }
        let now = now_ms();
        let Some(ending) = self.ending.as_mut().filter(|ending| !self.over && now >= ending.next_at()) else {
            return;
        };
        // A process table that cannot be read proves nothing: the next look may.
        if matches!(ending.step(now), Ok(0)) {
            self.reap();
            self.over = self.how.is_some();
        }
    }

    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if u32::try_from(pid.as_raw_nonzero().get()) == Ok(self.agent.pid) {
                self.how = self.how.or(how(status));
                self.input.abandon();
            }
        }
    }

    /// Takes what the dead left in the pipes. True when all of it is written.
    fn drain(&mut self) -> bool {
        while self.out.is_settled() && self.read_stdout() {}
        while self.read_stderr() {}
        self.out.is_settled()
    }

    fn finish(self) -> io::Result<()> {
        let (ended, ended_more) = self.ending.map(RunEnding::receipt).unwrap_or_default();
        let exit = Exit {
            how: self.how.unwrap_or(How::Lost),
            ended,
            ended_more,
            spool_error: self.out.error(),
            output: self.out.len(),
            consumed: self.out.consumed(),
        };
        let mut written = self.folder.write_exit(&exit);
        for _ in 1..EXIT_TRIES_MAX {
            if written.is_ok() {
                break;
            }
            std::thread::sleep(EXIT_PAUSE);
            written = self.folder.write_exit(&exit);
        }
        if let Some(client) = self.client {
            // A daemon that is not connected reads the result from the run folder.
            let _ = client.farewell(&Message::Exit { exit });
        }
        written
    }
}

fn file(pipe: Option<impl Into<OwnedFd>>) -> Option<File> {
    pipe.map(|pipe| File::from(pipe.into()))
}

/// None if it has only been stopped.
fn how(status: WaitStatus) -> Option<How> {
    status.exit_status().map(How::Exited).or_else(|| status.terminating_signal().map(How::Signalled))
}
