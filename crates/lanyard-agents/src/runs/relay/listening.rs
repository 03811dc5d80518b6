//! The stream a client opens for what belongs to none of its requests. The client's end stays open while daemons come
//! and go.

use super::PAUSED;
use super::asker::{Asker, RelayRefusal, Request};
use super::carry::{Gone, pass};
use super::heads::Body;
use super::place::{Cut, Exchange, Patience, RelayPlace, pause_for};

/// Pause before a stream that was cut off is opened again.
const AGAIN_MS: u64 = 100;
/// Longest id of an event that is kept.
const EVENT_ID_MAX: usize = 1_024;

/// How a stream of the daemon ended.
enum End {
    /// With the daemon: the next one has the rest.
    Daemon,
    /// As the server wanted it.
    Server,
    /// It was answered otherwise, and there was no stream.
    None,
}

pub(super) fn listen(asker: &mut Asker, request: &Request, place: &RelayPlace) -> Result<(), Gone> {
    let mut tail = Tail::default();
    let mut begun = false;
    loop {
        let patience = if begun { Patience::Listening } else { Patience::Ms(place.wait_ms) };
        let stream = match place.connect(asker, patience) {
            Ok(stream) => stream,
            Err(Cut::Late | Cut::Unread | Cut::Read) => {
                return Ok(asker.refuse(&RelayRefusal::away("no daemon runs that could open the stream"))?);
            }
            Err(Cut::Client) => return Err(Gone),
        };
        let id = tail.id();
        let more: Vec<(&str, &str)> = id.iter().map(|id| ("last-event-id", id.as_str())).collect();
        let exchange = Exchange::begin(stream, request, &more);
        match follow(asker, exchange, &mut begun, &mut tail)? {
            End::Daemon => pause_for(asker, AGAIN_MS)?,
            End::Server => return Ok(asker.last_chunk()?),
            End::None => return Ok(()),
        }
    }
}

/// Passes one daemon's part of the stream on.
fn follow(asker: &mut Asker, mut exchange: Exchange, begun: &mut bool, tail: &mut Tail) -> Result<End, Gone> {
    let head = match exchange.head(asker) {
        Ok(head) => head,
        Err(Cut::Client) => return Err(Gone),
        Err(Cut::Unread | Cut::Read | Cut::Late) => return Ok(End::Daemon),
    };
    let mut body = Body::new(head.length().map_err(|_| Gone)?);
    if head.status != 200 || !head.is_event_stream() {
        if *begun {
            // The next daemon does not know the stream: its client notices the end and asks again.
            return Ok(End::Server);
        }
        pass(asker, &mut exchange, &head, &mut body, &[])?;
        return Ok(End::None);
    }
    tail.begins();
    if !std::mem::replace(begun, true) {
        asker.begin(&head, None)?;
    }
    loop {
        match exchange.piece(&mut body, asker) {
            Ok(Some(piece)) => {
                tail.take(piece);
                asker.chunk(piece)?;
            }
            Ok(None) if tail.is_paused() => return Ok(End::Daemon),
            Ok(None) => return Ok(End::Server),
            Err(Cut::Client) => return Err(Gone),
            Err(Cut::Unread | Cut::Read | Cut::Late) => {
                if tail.is_in_event() {
                    asker.chunk(b"\n\n")?;
                }
                return Ok(End::Daemon);
            }
        }
    }
}

/// What is remembered of the bytes of a stream.
#[derive(Debug, Default)]
pub(super) struct Tail {
    line: Vec<u8>,
    id: Option<String>,
    last: Vec<u8>,
}

impl Tail {
    /// Another daemon's part of the stream.
    fn begins(&mut self) {
        self.line.clear();
        self.last.clear();
    }

    pub(super) fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                self.line_ended();
            } else if self.line.len() <= EVENT_ID_MAX {
                self.line.push(byte);
            }
        }
        let kept = bytes.get(bytes.len().saturating_sub(PAUSED.len())..).unwrap_or_default();
        self.last.extend_from_slice(kept);
        let extra = self.last.len().saturating_sub(PAUSED.len());
        self.last.drain(..extra);
    }

    fn line_ended(&mut self) {
        let line = std::mem::take(&mut self.line);
        let Some(id) = line.strip_prefix(b"id:") else { return };
        let id = id.trim_ascii();
        // An id that does not fit into a header is of no use.
        if line.len() <= EVENT_ID_MAX && id.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
            self.id = String::from_utf8(id.to_vec()).ok();
        }
    }

    pub(super) fn id(&self) -> Option<String> {
        self.id.clone().filter(|id| !id.is_empty())
    }

    pub(super) fn is_paused(&self) -> bool {
        self.last == PAUSED
    }

    fn is_in_event(&self) -> bool {
        !self.last.is_empty() && !self.last.ends_with(b"\n\n")
    }
}
