//! The relay: the address of an agent's MCP servers, served by the shim, so that it outlives the daemon.
//!
//! Each request is forwarded over the data folder's socket to the daemon that runs at that moment. While there is none,
//! requests wait for the next one. A call that the daemon had read when it ended is answered with an error and never
//! sent again, because its tool may have run ([decision 0032](../../../docs/decisions/0032-relay.md)).
//!
//! The relay adds no rights: it holds no token, and the daemon checks the one in each request. Plain threads with
//! blocking reads: an idle agent costs one sleeping thread.

mod asker;
mod carry;
mod contacts;
mod heads;
mod listening;
mod message;
mod place;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::asker::Asker;
use self::place::{RelayPlace, away_wait_ms};
use super::record::Spec;

pub(crate) use contacts::{Contacts, read as read_contacts};

/// The variable that shortens the time a request waits for a daemon, for tests.
pub(crate) const RELAY_WAIT: &str = "LANYARD_RELAY_WAIT_MS";
/// Connections of one agent at a time. Agents open one for each call under way and one for each server's stream.
const CONNECTIONS_MAX: usize = 128;
/// Address space for each thread; only the part that is used becomes memory.
const STACK_BYTES: usize = 256 * 1024;
/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The last comment of a stream that ends because the daemon does. The relay resumes such a stream with the next daemon;
/// to other clients it is a comment like any other.
pub const PAUSED: &[u8] = b": the daemon ends; this stream resumes with the next one\n\n";

/// What the shim reads from its stdin: the agent, and where to forward its requests.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order<S> {
    #[serde(flatten)]
    pub(crate) spec: S,
    /// The daemon's socket. With it the shim's stderr is the listener of the relay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) relay: Option<PathBuf>,
}

/// An order as the shim reads it.
pub(crate) type GivenOrder = Order<Spec>;

/// A relay's listener before its shim is started, and the socket that its requests are forwarded to.
#[derive(Debug)]
pub struct Inlet {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) socket: PathBuf,
}

impl Inlet {
    /// Opens a listener on a free loopback port. The system closes it in every program that is executed.
    pub fn open(socket: PathBuf) -> io::Result<Self> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, socket: std::path::absolute(socket)? })
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves until the process ends.
pub(crate) fn start(listener: TcpListener, socket: PathBuf, contacts: Contacts) -> io::Result<()> {
    let address = listener.local_addr()?;
    let place = Arc::new(RelayPlace { socket, address, contacts, wait_ms: away_wait_ms() });
    let serve = move || accept(&listener, &place);
    std::thread::Builder::new().name("relay".to_owned()).stack_size(STACK_BYTES).spawn(serve).map(drop)
}

fn accept(listener: &TcpListener, place: &Arc<RelayPlace>) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Out of descriptors, perhaps: connections that end give some back.
            std::thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        let Some(held) = Held::take(&open) else { continue };
        let place = place.clone();
        let serve = move || {
            let _held = held;
            serve(stream, &place);
        };
        // A connection that gets no thread is closed, and its client tries again or reports it.
        let _ = std::thread::Builder::new().name("relayed".to_owned()).stack_size(STACK_BYTES).spawn(serve);
    }
}

/// One of the connections that may be open at a time.
struct Held(Arc<AtomicUsize>);

impl Held {
    fn take(open: &Arc<AtomicUsize>) -> Option<Self> {
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Self(open.clone()))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Requests of one connection, one after the other.
fn serve(stream: TcpStream, place: &RelayPlace) {
    let Ok(mut asker) = Asker::new(stream, place.address) else { return };
    loop {
        let request = match asker.next() {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(refusal) => {
                if asker.refuse(&refusal).is_ok() {
                    asker.linger();
                }
                return;
            }
        };
        if carry::carry(&mut asker, &request, place).is_err() || !asker.keeps() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
