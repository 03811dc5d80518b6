//! What nobody waits for: gathered for a few milliseconds and handed to the engine at once, so that a busy gateway costs
//! a commit now and then and not one per call.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::engine::{AskError, Input, Request, place_in};

/// Requests that may wait to be gathered. Beyond that a caller waits: nothing is dropped, a flood is slowed.
const WAITING_MAX: usize = 8_192;
/// Requests handed over at once.
const BATCH_MAX: usize = 1_024;
/// How long the first waits for others.
const GATHER: Duration = Duration::from_millis(20);

#[derive(Debug)]
enum Item {
    Request(Box<Request>),
    /// Answered when everything before it is with the engine.
    Flush(oneshot::Sender<()>),
}

/// Where requests without an answer are left.
#[derive(Debug, Clone)]
pub(super) struct Behind(mpsc::Sender<Item>);

impl Behind {
    pub(super) fn start(inbox: mpsc::Sender<Input>, runtime: &tokio::runtime::Handle) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        runtime.spawn(gather(receiver, inbox));
        Self(sender)
    }

    pub(super) async fn put(&self, request: Request) -> Result<(), AskError> {
        let place = place_in(&self.0).await?;
        place.send(Item::Request(Box::new(request)));
        Ok(())
    }

    /// Waits until everything that was put is with the engine.
    pub(super) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.0.send(Item::Flush(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }
}

async fn gather(mut items: mpsc::Receiver<Item>, inbox: mpsc::Sender<Input>) {
    let mut held = Vec::with_capacity(BATCH_MAX);
    while items.recv_many(&mut held, BATCH_MAX).await > 0 {
        if held.iter().all(|item| matches!(item, Item::Request(_))) && held.len() < BATCH_MAX {
            tokio::time::sleep(GATHER).await;
            while held.len() < BATCH_MAX
                && let Ok(item) = items.try_recv()
            {
                held.push(item);
            }
        }
        let mut flushes = Vec::new();
        let mut requests = Vec::with_capacity(held.len());
        for item in held.drain(..) {
            match item {
                Item::Request(request) => requests.push(*request),
                Item::Flush(done) => flushes.push(done),
            }
        }
        if !requests.is_empty() && inbox.send(Input::Behind(requests)).await.is_err() {
            return;
        }
        for done in flushes {
            let _ = done.send(());
        }
    }
}
