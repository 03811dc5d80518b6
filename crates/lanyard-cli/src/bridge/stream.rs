//! The stream of events, and coming back to it when it breaks.

use std::time::Duration;

use lanyard_client::{ClientError, FollowStep, OpenStream, StreamCursor, StreamFollower, StreamSource};
use serde_json::Value;
use tokio::sync::mpsc;

use super::http::OpenCodeHttp;

/// Events read ahead of the loop; beyond it the server's connection waits.
pub(super) const FEED_MAX: usize = 256;
/// How long a stream may take to come back; the server's process is watched besides.
const BACK_WAIT: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) enum ServerFeed {
    Event(Value),
    /// The stream is back; events were missed.
    Back,
    /// It does not come back.
    Gone(String),
}

/// The server's events; it gives no way to resume after one of them.
struct ServerEvents {
    http: OpenCodeHttp,
    /// Why the last try failed.
    fault: String,
}

impl StreamSource for ServerEvents {
    async fn open(&mut self, _: &StreamCursor) -> Result<Option<OpenStream>, ClientError> {
        match self.http.events().await {
            Ok(stream) => Ok(Some(OpenStream::Events(stream))),
            Err(error) => {
                self.fault = error.to_string();
                Ok(None)
            }
        }
    }
}

/// Reads events until the loop has ended. The first connection is made before this returns.
pub(super) async fn follow(http: OpenCodeHttp) -> Result<mpsc::Receiver<ServerFeed>, super::BridgeError> {
    let first = OpenStream::Events(http.events().await?);
    let source = ServerEvents { http, fault: String::new() };
    let follower = StreamFollower::new(source, StreamCursor::default(), Some(BACK_WAIT), String::new());
    let mut follower = follower.resuming(first);
    let (sender, receiver) = mpsc::channel(FEED_MAX);
    tokio::spawn(async move {
        loop {
            let feed = match follower.next().await {
                Ok(FollowStep::Frame(frame)) => match serde_json::from_str(&frame) {
                    Ok(event) => ServerFeed::Event(event),
                    // What is no JSON is no event.
                    Err(_) => continue,
                },
                Ok(FollowStep::Open { .. }) => ServerFeed::Back,
                Ok(FollowStep::Lost(_)) => continue,
                Err(_) => {
                    let fault = &follower.source().fault;
                    ServerFeed::Gone(format!("the stream of events broke and does not come back: {fault}"))
                }
            };
            let over = matches!(feed, ServerFeed::Gone(_));
            if sender.send(feed).await.is_err() || over {
                return;
            }
        }
    });
    Ok(receiver)
}
