//! A live connection to a shim, shared by everybody in the daemon who has to do with the run.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lanyard_core::session::WindowSize;
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};

use super::output::Output;
use super::talk::{self, Ask, Op, Reader};
use crate::runs::folder::{Folder, ScreenFile};
use crate::runs::process::Identity;
use crate::runs::pty_helper::RECORDING;
use crate::runs::record::Exit;
use crate::runs::wire::{Answer, INPUT_MAX, KEY_MAX, Message, Status};

/// How long a shim that lives may take to say hello.
const CONNECT_MAX: Duration = Duration::from_secs(5);
const CONNECT_PAUSE: Duration = Duration::from_millis(10);
/// How long it may take to answer. It never waits for the agent, so only a stopped machine is slower.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Requests on their way to the shim. Whoever comes then waits.
const ASKS_MAX: usize = 16;

/// A run that is spoken to. When the last one of them goes, so does the connection; the run goes on.
#[derive(Debug, Clone)]
pub struct Link(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    run: String,
    folder: Folder,
    agent: u32,
    asks: mpsc::Sender<Ask>,
    consumed: watch::Sender<u64>,
    view: View,
}

pub(super) type View = watch::Receiver<Seen>;

/// What is known of the run.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) spooled: u64,
    pub(super) exit: Option<Arc<Exit>>,
}

/// Whether this was the first time the input came with its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    First,
    Repeated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    #[error("the agent takes no more input")]
    InputClosed,
    #[error("too much input waits for the agent to read it")]
    InputFull,
    #[error("the input or its key is too long")]
    TooLong,
    #[error("the run has no terminal, or its window cannot have this size")]
    NoTerminal,
    #[error("the run has ended")]
    Ended,
    /// The same key may be sent again over a new connection.
    #[error("the connection to the agent's supervisor is lost, or another daemon has it")]
    Disconnected,
    #[error("the agent's supervisor does not answer")]
    NoAnswer,
}

/// Connects to a shim that should be alive.
pub(super) async fn connect(run: &str, folder: &Folder, shim: &Identity) -> io::Result<Link> {
    let greeted = tokio::time::timeout(CONNECT_MAX, greet(folder, shim)).await;
    let (reader, status) = greeted.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    Ok(Link::spawn(run, folder, shim, &status, Some(reader)))
}

async fn greet(folder: &Folder, shim: &Identity) -> io::Result<(Reader, Status)> {
    loop {
        let error = match try_greet(folder).await {
            Ok(greeted) => return Ok(greeted),
            Err(error) => error,
        };
        if !shim.is_alive() {
            return Err(error);
        }
        tokio::time::sleep(CONNECT_PAUSE).await;
    }
}

async fn try_greet(folder: &Folder) -> io::Result<(Reader, Status)> {
    let mut reader = BufReader::new(open_socket(folder).await?);
    match talk::hear(&mut reader).await? {
        Some(Message::Hello { status }) => Ok((reader, status)),
        Some(Message::Answer { .. } | Message::Output { .. } | Message::Exit { .. }) => {
            Err(io::ErrorKind::InvalidData.into())
        }
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Connects to the socket in the folder of a run. A socket's path has at most 107 bytes; through the open folder it is
/// short wherever the folder lies.
#[cfg(target_os = "linux")]
async fn open_socket(folder: &Folder) -> io::Result<UnixStream> {
    use std::os::fd::AsRawFd;
    let dir = std::fs::File::open(&folder.path)?;
    UnixStream::connect(format!("/proc/self/fd/{}/sock", dir.as_raw_fd())).await
}

/// Connects to the socket in the folder of a run, through a short link: a socket's path has at most 103 bytes.
#[cfg(not(target_os = "linux"))]
async fn open_socket(folder: &Folder) -> io::Result<UnixStream> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static LINKS: AtomicU32 = AtomicU32::new(0);
    let link = format!("/tmp/lanyard-{}-{}", std::process::id(), LINKS.fetch_add(1, Ordering::Relaxed));
    // A name that is taken is refused, so a link of another user is never followed.
    std::os::unix::fs::symlink(std::path::absolute(&folder.path)?, &link)?;
    let stream = UnixStream::connect(format!("{link}/sock")).await;
    let _ = std::fs::remove_file(&link);
    stream
}

impl Link {
    /// A run whose shim was quicker to end than we to connect.
    pub(super) fn to_ended(run: &str, folder: &Folder, shim: &Identity, agent: u32, consumed: u64) -> Self {
        let agent = Identity { pid: agent, ..shim.clone() };
        let output = folder.spooled();
        let status = Status { agent, output, consumed, input_open: false, input_waiting: 0, ending: true };
        Self::spawn(run, folder, shim, &status, None)
    }

    fn spawn(run: &str, folder: &Folder, shim: &Identity, status: &Status, reader: Option<Reader>) -> Self {
        let (asks, asked) = mpsc::channel(ASKS_MAX);
        let (consumed, consumed_seen) = watch::channel(status.consumed);
        let (seen, view) = watch::channel(Seen { spooled: status.output, exit: None });
        let task =
            talk::Task { folder: folder.clone(), shim: shim.clone(), asked, consumed: consumed_seen, seen };
        tokio::spawn(task.run(reader));
        Self(Arc::new(Inner {
            run: run.to_owned(),
            folder: folder.clone(),
            agent: status.agent.pid,
            asks,
            consumed,
            view,
        }))
    }

    #[must_use]
    pub fn run(&self) -> &str {
        &self.0.run
    }

    #[must_use]
    pub fn agent_pid(&self) -> u32 {
        self.0.agent
    }

    /// The offset up to which output was consumed, by this daemon or an earlier one. Nothing before it can be read.
    #[must_use]
    pub fn consumed_to(&self) -> u64 {
        *self.0.consumed.borrow()
    }

    /// Writes to the agent's stdin, once per key however often it is called, also by a later daemon.
    pub async fn send(&self, key: &str, bytes: &[u8]) -> Result<Sent, LinkError> {
        if bytes.len() > INPUT_MAX || key.len() > KEY_MAX {
            return Err(LinkError::TooLong);
        }
        match self.ask(Op::Send { key: key.to_owned(), bytes: bytes.to_vec() }).await? {
            Answer::First => Ok(Sent::First),
            Answer::Repeated => Ok(Sent::Repeated),
            Answer::InputClosed => Err(LinkError::InputClosed),
            Answer::InputFull => Err(LinkError::InputFull),
            Answer::Done | Answer::Status(_) | Answer::Resized { .. } | Answer::NoTerminal => {
                Err(LinkError::NoAnswer)
            }
        }
    }

    /// Gives the terminal's window another size, once per key. Answers the place in the output from which on it has it;
    /// nothing where it was asked before.
    pub async fn resize(&self, key: &str, size: WindowSize) -> Result<Option<u64>, LinkError> {
        if key.len() > KEY_MAX {
            return Err(LinkError::TooLong);
        }
        let WindowSize { cols, rows } = size;
        match self.ask(Op::Resize { key: key.to_owned(), cols, rows }).await? {
            Answer::Resized { at } => Ok(Some(at)),
            Answer::Repeated => Ok(None),
            Answer::NoTerminal => Err(LinkError::NoTerminal),
            Answer::Done | Answer::First | Answer::InputClosed | Answer::InputFull | Answer::Status(_) => {
                Err(LinkError::NoAnswer)
            }
        }
    }

    /// From which place in the output on the terminal's window had which size.
    #[must_use]
    pub fn sizes(&self) -> Vec<(u64, WindowSize)> {
        self.0.folder.sizes().unwrap_or_default()
    }

    /// The screen that an earlier daemon kept.
    #[must_use]
    pub fn screen(&self) -> Option<ScreenFile> {
        self.0.folder.screen().ok().flatten()
    }

    pub fn keep_screen(&self, screen: &ScreenFile) -> io::Result<()> {
        self.0.folder.write_screen(screen)
    }

    /// The recording of the terminal.
    #[must_use]
    pub fn recording(&self) -> PathBuf {
        self.0.folder.file(RECORDING)
    }

    /// Bytes of output that were told of so far.
    #[must_use]
    pub fn spooled(&self) -> u64 {
        self.0.view.borrow().spooled
    }

    /// Closes the agent's stdin when all that waits is written.
    pub async fn close_input(&self) -> Result<(), LinkError> {
        self.ask(Op::CloseInput).await.map(drop)
    }

    /// TERM to everything of the run, KILL after the grace. Said again with a shorter grace it shortens it. Returns
    /// when the order is taken; `exited` tells when it is done.
    pub async fn end(&self, grace: Duration) -> Result<(), LinkError> {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.ask(Op::End { grace_ms }).await.map(drop)
    }

    /// Bytes of input the agent has not read yet.
    pub async fn input_waiting(&self) -> Result<usize, LinkError> {
        match self.ask(Op::Status).await? {
            Answer::Status(status) => Ok(status.input_waiting),
            Answer::Done
            | Answer::First
            | Answer::Repeated
            | Answer::InputClosed
            | Answer::InputFull
            | Answer::Resized { .. }
            | Answer::NoTerminal => Err(LinkError::NoAnswer),
        }
    }

    async fn ask(&self, op: Op) -> Result<Answer, LinkError> {
        let (answer, answered) = oneshot::channel();
        let asked = async {
            self.0.asks.send(Ask { op, answer }).await.map_err(|_| LinkError::Disconnected)?;
            answered.await.map_err(|_| LinkError::Disconnected)?
        };
        tokio::time::timeout(ANSWER_MAX, asked).await.unwrap_or(Err(LinkError::NoAnswer))
    }

    /// The agent's stdout from an offset on.
    #[must_use]
    pub fn output(&self, from: u64) -> Output {
        Output::of_live(self.0.folder.clone(), from, self.clone(), self.0.view.clone())
    }

    /// Nobody needs what lies before `to` any more: the shim gives its place on disk back, and counts it as read.
    pub fn consumed(&self, to: u64) {
        self.0.consumed.send_if_modified(|held| {
            let more = to > *held;
            *held = (*held).max(to);
            more
        });
    }

    /// Waits for the end of the run.
    pub async fn exited(&self) -> Exit {
        let mut view = self.0.view.clone();
        match view.wait_for(|seen| seen.exit.is_some()).await {
            Ok(seen) => seen.exit.as_deref().cloned(),
            Err(_) => None,
        }
        .unwrap_or_else(|| Exit::lost(self.0.folder.spooled()))
    }

    /// The end of what the agent said on stderr.
    #[must_use]
    pub fn stderr_tail(&self) -> String {
        self.0.folder.stderr_tail()
    }
}
