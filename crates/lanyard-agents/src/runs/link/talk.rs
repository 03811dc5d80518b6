//! The task behind a link: it speaks to the shim and listens, and when the shim goes it finds out why.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot, watch};

use super::connection::{LinkError, Seen};
use crate::runs::folder::Folder;
use crate::runs::process::Identity;
use crate::runs::record::Exit;
use crate::runs::wire::{self, Answer, Message, Request};

/// The longest message of a shim: a receipt of a thousand processes fits easily.
const MESSAGE_MAX: u64 = 1024 * 1024;
/// Between two looks at a run that another daemon is connected to.
const FOLLOW_PAUSE: Duration = Duration::from_millis(100);

pub(super) type Reader = BufReader<UnixStream>;

/// Something to ask the shim, and who wants to know.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) op: Op,
    pub(super) answer: oneshot::Sender<Result<Answer, LinkError>>,
}

#[derive(Debug)]
pub(super) enum Op {
    Send { key: String, bytes: Vec<u8> },
    CloseInput,
    Resize { key: String, cols: u16, rows: u16 },
    End { grace_ms: u64 },
    Status,
}

/// Who waits for which answer.
type Waiting = Mutex<HashMap<u64, oneshot::Sender<Result<Answer, LinkError>>>>;

/// One message; none at the end of the connection.
pub(super) async fn hear(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Message>> {
    let mut line = Vec::new();
    reader.take(MESSAGE_MAX).read_until(b'\n', &mut line).await?;
    if line.last() != Some(&b'\n') {
        return Ok(None);
    }
    serde_json::from_slice(&line).map(Some).map_err(io::Error::other)
}

pub(super) struct Task {
    pub(super) folder: Folder,
    pub(super) shim: Identity,
    pub(super) asked: mpsc::Receiver<Ask>,
    pub(super) consumed: watch::Receiver<u64>,
    pub(super) seen: watch::Sender<Seen>,
}

impl Task {
    /// Until nobody has the link any more.
    pub(super) async fn run(mut self, connection: Option<Reader>) {
        let said = match connection {
            Some(connection) => self.converse(connection).await,
            None => None,
        };
        let exit = match said {
            Some(exit) => exit,
            None => match self.follow().await {
                Some(exit) => exit,
                None => return,
            },
        };
        let exit = Arc::new(exit);
        self.seen.send_modify(|seen| {
            seen.spooled = exit.output;
            seen.exit = Some(exit);
        });
        while let Some(ask) = self.asked.recv().await {
            let _ = ask.answer.send(Err(LinkError::Ended));
        }
    }

    /// As long as the connection holds. Returns the exit if the shim told it.
    async fn converse(&mut self, connection: Reader) -> Option<Exit> {
        // What was read ahead of the greeting's end belongs to the reader.
        let ahead = connection.buffer().to_vec();
        let (read, write) = connection.into_inner().into_split();
        let waiting = Waiting::default();
        let exit = tokio::select! {
            exit = listen(&ahead, read, &waiting, &self.seen) => exit,
            () = speak(write, &mut self.asked, &mut self.consumed, &waiting) => None,
        };
        let left = std::mem::take(&mut *waiting.lock());
        for answer in left.into_values() {
            let _ = answer.send(Err(LinkError::Disconnected));
        }
        exit
    }

    /// Without a connection: the folder tells how the run ended. None when nobody wants to know any more.
    async fn follow(&mut self) -> Option<Exit> {
        loop {
            // Asked in this order: the last thing a shim does is to say how it ended.
            let alive = self.shim.is_alive();
            if let Ok(Some(exit)) = self.folder.exit() {
                return Some(exit);
            }
            let spooled = self.folder.spooled();
            if !alive {
                return Some(Exit::lost(spooled));
            }
            self.seen.send_if_modified(|seen| std::mem::replace(&mut seen.spooled, spooled) != spooled);
            tokio::select! {
                ask = self.asked.recv() => {
                    let _ = ask?.answer.send(Err(LinkError::Disconnected));
                }
                () = tokio::time::sleep(FOLLOW_PAUSE) => {}
            }
        }
    }
}

async fn listen(
    ahead: &[u8],
    read: OwnedReadHalf,
    waiting: &Waiting,
    seen: &watch::Sender<Seen>,
) -> Option<Exit> {
    let mut reader = BufReader::new(ahead.chain(read));
    loop {
        match hear(&mut reader).await.ok()?? {
            Message::Output { to } => seen.send_modify(|seen| seen.spooled = to),
            Message::Answer { id, result } => {
                let asker = waiting.lock().remove(&id);
                if let Some(asker) = asker {
                    let _ = asker.send(Ok(result));
                }
            }
            Message::Exit { exit } => return Some(exit),
            Message::Hello { .. } => {}
        }
    }
}

/// Until nobody asks any more, or the shim takes no more.
async fn speak(
    mut write: OwnedWriteHalf,
    asked: &mut mpsc::Receiver<Ask>,
    consumed: &mut watch::Receiver<u64>,
    waiting: &Waiting,
) {
    let mut id = 0;
    loop {
        let (request, bytes) = tokio::select! {
            // In this order, so that an answer means that the shim has heard what was consumed before the question.
            biased;
            Ok(()) = consumed.changed() => {
                (Request::Consumed { to: *consumed.borrow_and_update() }, Vec::new())
            }
            ask = asked.recv() => {
                let Some(Ask { op, answer }) = ask else { return };
                id += 1;
                waiting.lock().insert(id, answer);
                match op {
                    Op::Send { key, bytes } => (Request::Send { id, key, len: bytes.len() }, bytes),
                    Op::CloseInput => (Request::CloseInput { id }, Vec::new()),
                    Op::Resize { key, cols, rows } => (Request::Resize { id, key, cols, rows }, Vec::new()),
                    Op::End { grace_ms } => (Request::End { id, grace_ms }, Vec::new()),
                    Op::Status => (Request::Status { id }, Vec::new()),
                }
            }
        };
        let Ok(line) = wire::line(&request) else { return };
        if write.write_all(&line).await.is_err() || write.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
