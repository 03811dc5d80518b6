//! The thread that moves the write-ahead log into the file, so that appends need not wait for it. It knows nothing of
//! what is in either.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use crate::sqlite::Failpoints;

/// Dropping it stops the thread and waits for it.
pub(super) struct Checkpointer {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

struct Signal {
    wanted: Mutex<Wanted>,
    wake: Condvar,
    /// Held during a checkpoint: SQLite answers a second one with "busy" instead of letting it wait.
    running: Mutex<()>,
    /// Pages of the log up to which the last checkpoint moved everything; 0 where there is nothing to tell.
    moved: AtomicI32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Nothing,
    Checkpoint,
    Stop,
}

impl Checkpointer {
    pub(super) fn start(conn: Connection, failpoint: Option<Failpoints>) -> std::io::Result<Self> {
        let signal = Arc::new(Signal {
            wanted: Mutex::new(Wanted::Nothing),
            wake: Condvar::new(),
            running: Mutex::new(()),
            moved: AtomicI32::new(0),
        });
        let theirs = Arc::clone(&signal);
        let thread = std::thread::Builder::new()
            .name("journal-checkpoint".to_owned())
            .spawn(move || run(&theirs, &conn, failpoint.as_ref()))?;
        Ok(Self { signal, thread: Some(thread) })
    }

    /// Asks for a checkpoint and does not wait for it.
    pub(super) fn ask(&self) {
        self.signal.set(Wanted::Checkpoint);
    }

    /// Keeps the thread from checkpointing while the guard lives; waits for one that is under way.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        self.signal.running.lock()
    }

    /// As [`Self::hold`], where no checkpoint is under way.
    pub(super) fn try_hold(&self) -> Option<MutexGuard<'_, ()>> {
        self.signal.running.try_lock()
    }

    /// Progress of a checkpoint that has ended since the last call.
    pub(super) fn moved(&self) -> Option<i32> {
        // Asked after every commit, and almost never is there anything.
        let moved = self.signal.moved.load(Ordering::Acquire);
        (moved > 0).then(|| self.signal.moved.swap(0, Ordering::AcqRel))
    }

    /// Stops the thread and waits until its connection is closed.
    pub(super) fn stop(&mut self) {
        self.signal.set(Wanted::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the checkpoint thread had panicked");
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Signal {
    fn set(&self, wish: Wanted) {
        let mut wanted = self.wanted.lock();
        if *wanted != Wanted::Stop {
            *wanted = wish;
        }
        self.wake.notify_one();
    }

    fn wait(&self) -> Wanted {
        let mut wanted = self.wanted.lock();
        while *wanted == Wanted::Nothing {
            self.wake.wait(&mut wanted);
        }
        match *wanted {
            Wanted::Stop => Wanted::Stop,
            Wanted::Nothing | Wanted::Checkpoint => std::mem::replace(&mut *wanted, Wanted::Nothing),
        }
    }
}

fn run(signal: &Signal, conn: &Connection, failpoint: Option<&Failpoints>) {
    while signal.wait() == Wanted::Checkpoint {
        let _running = signal.running.lock();
        if let Some(failpoint) = failpoint {
            failpoint("checkpoint");
        }
        // A checkpoint that failed moved nothing: the next one writes the same pages again before it syncs them, so
        // no failed fsync is taken for a good one. Meanwhile the log grows, until the writer finds it too long,
        // checkpoints itself, and stops acknowledging if that fails as well.
        match conn.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE) {
            Ok((pages, moved)) if moved == pages => signal.moved.store(moved, Ordering::Release),
            // A reader is in the way.
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "a checkpoint failed"),
        }
    }
}
