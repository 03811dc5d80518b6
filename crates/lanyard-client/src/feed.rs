//! A stream that is read in a task of its own, for a screen that has other things to do meanwhile.

use tokio::sync::mpsc;

use crate::error::ClientError;
use crate::follower::{FollowStep, StreamFollower, StreamSource};

/// Frames that may wait to be shown. A screen that is slow makes the socket wait, and the daemon knows what to do.
const FRAMES_MAX: usize = 1_024;

/// What a feed gives.
#[derive(Debug)]
pub enum Fed {
    Frame(String),
    Up,
    Down,
    /// The daemon refused for good, or did not come back in time. Nothing comes after this.
    Refused(ClientError),
}

/// A stream that outlives the daemon: it is resumed after the last event that came.
#[derive(Debug)]
pub struct StreamFeed {
    fed: mpsc::Receiver<Fed>,
    task: tokio::task::JoinHandle<()>,
}

impl StreamFeed {
    #[must_use]
    pub fn open<S: StreamSource + 'static>(follower: StreamFollower<S>) -> Self {
        let (sender, fed) = mpsc::channel(FRAMES_MAX);
        Self { fed, task: tokio::spawn(run(follower, sender)) }
    }

    /// What comes next. Never ends: a stream that cannot be resumed has said why.
    pub async fn next(&mut self) -> Fed {
        match self.fed.recv().await {
            Some(fed) => fed,
            None => std::future::pending().await,
        }
    }

    pub fn next_if_ready(&mut self) -> Option<Fed> {
        self.fed.try_recv().ok()
    }
}

impl Drop for StreamFeed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run<S: StreamSource>(mut follower: StreamFollower<S>, sender: mpsc::Sender<Fed>) {
    loop {
        let fed = tokio::select! {
            () = sender.closed() => return,
            step = follower.next() => match step {
                Ok(FollowStep::Frame(frame)) => Fed::Frame(frame),
                Ok(FollowStep::Open { .. }) => Fed::Up,
                Ok(FollowStep::Lost(_)) => Fed::Down,
                Err(error) => Fed::Refused(error),
            },
        };
        let over = matches!(fed, Fed::Refused(_));
        if sender.send(fed).await.is_err() || over {
            return;
        }
    }
}
