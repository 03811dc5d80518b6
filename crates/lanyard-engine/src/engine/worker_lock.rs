//! Lock around the engine's worker. The engine thread normally holds it; a lone caller may take it and run the round
//! inline, which saves two thread hops.

use std::sync::{Arc, Mutex, TryLockError};

use tokio::sync::mpsc;

use crate::engine::worker::Worker;
use crate::engine::{Input, Work};

/// Nobody's once the engine has stopped.
#[derive(Clone, Default)]
pub(super) struct WorkerLock(Arc<Mutex<Option<Worker>>>);

impl std::fmt::Debug for WorkerLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerLock").finish_non_exhaustive()
    }
}

impl WorkerLock {
    pub(super) fn put(&self, worker: Worker) {
        // Poison means that a round has panicked: the engine has ended and takes no worker.
        if let Ok(mut held) = self.0.lock() {
            *held = Some(worker);
        }
    }

    /// The engine's thread. A round that ended in a panic, whoever made it, is the last: memory may be anything.
    pub(super) fn run(&self, mut inbox: mpsc::Receiver<Input>) {
        while let Some(first) = inbox.blocking_recv() {
            let Ok(mut held) = self.0.lock() else {
                tracing::error!("the engine ended in the middle of a round");
                return;
            };
            let open = held.as_mut().is_some_and(|worker| worker.round(first, || inbox.try_recv().ok()));
            if !open {
                // Who still waits for a session to be loaded is told by the closing of its channel.
                *held = None;
                tracing::debug!("engine stopped");
                return;
            }
        }
    }

    /// Makes a round of this one request; it comes back where another holds the lock.
    pub(super) fn round(&self, work: Box<Work>) -> Option<Box<Work>> {
        let mut held = match self.0.try_lock() {
            Ok(held) => held,
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => return Some(work),
        };
        let Some(worker) = held.as_mut() else { return Some(work) };
        worker.round(Input::Ask(work), || None);
        None
    }
}
