//! Carries connections between a port on loopback and a Unix socket, byte by byte: in the sandbox from the port to the
//! socket, in the shim from the socket to the relay. Plain threads with blocking reads.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Connections of one bridge at a time: as many as the relay takes.
const CONNECTIONS_MAX: usize = 128;
/// Address space for each thread; only the part that is used becomes memory.
const STACK_BYTES: usize = 128 * 1024;
/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const PIECE: usize = 16 * 1024;

/// Both ends of a connection can be read and written at once, and closed one way.
pub(super) trait Pipe: Read + Write + Send + Sized + 'static {
    fn twin(&self) -> io::Result<Self>;
    fn close(&self, how: Shutdown);
}

impl Pipe for TcpStream {
    fn twin(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn close(&self, how: Shutdown) {
        let _ = self.shutdown(how);
    }
}

impl Pipe for UnixStream {
    fn twin(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn close(&self, how: Shutdown) {
        let _ = self.shutdown(how);
    }
}

/// In the sandbox. Serves until the process ends.
pub fn carry_to_socket(listener: TcpListener, socket: PathBuf) -> io::Result<()> {
    serve(
        move || listener.accept().map(|(stream, _)| stream),
        move |stream| {
            if let Ok(there) = UnixStream::connect(&socket) {
                let _ = both_ways(stream, &there);
            }
        },
    )
}

/// Outside of it. Serves until the process ends.
pub fn carry_to_port(listener: UnixListener, port: u16) -> io::Result<()> {
    serve(
        move || listener.accept().map(|(stream, _)| stream),
        move |stream| {
            if let Ok(there) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                let _ = both_ways(stream, &there);
            }
        },
    )
}

/// Accepts in a thread of its own, and works for each connection in another.
pub(super) fn serve<S: Send + 'static>(
    accept: impl Fn() -> io::Result<S> + Send + 'static,
    work: impl Fn(S) + Send + Sync + 'static,
) -> io::Result<()> {
    let work = Arc::new(work);
    let open = Arc::new(AtomicUsize::new(0));
    let accepting = move || {
        loop {
            let Ok(stream) = accept() else {
                // Out of descriptors, perhaps: connections that end give some back.
                std::thread::sleep(ACCEPT_PAUSE);
                continue;
            };
            if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (work, held) = (work.clone(), open.clone());
            let serving = move || {
                work(stream);
                held.fetch_sub(1, Ordering::Relaxed);
            };
            let named = std::thread::Builder::new().name("bridged".to_owned()).stack_size(STACK_BYTES);
            if named.spawn(serving).is_err() {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::Builder::new().name("bridge".to_owned()).stack_size(STACK_BYTES).spawn(accepting).map(drop)
}

/// Until both directions have ended.
pub(super) fn both_ways<A: Pipe, B: Pipe>(near: A, far: &B) -> io::Result<()> {
    let (near_too, far_too) = (near.twin()?, far.twin()?);
    let back =
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || one_way(far_too, &near_too))?;
    one_way(near, far);
    let _ = back.join();
    Ok(())
}

fn one_way<A: Pipe, B: Pipe>(mut from: A, to: &B) {
    let Ok(mut to) = to.twin() else { return };
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece) {
            Ok(read @ 1..) => {
                if to.write_all(piece.get(..read).unwrap_or_default()).is_err() {
                    // Nobody takes any more of it, so nobody should send any.
                    from.close(Shutdown::Both);
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => {
                to.close(Shutdown::Write);
                return;
            }
        }
    }
}
