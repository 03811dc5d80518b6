//! The stream of events, and coming back to it when it breaks.

use std::time::Duration;

use lanyard_core::Backoff;
use serde_json::Value;
use tokio::sync::mpsc;

use super::http::Http;

/// Events read ahead of the loop; beyond it the server's connection waits.
pub(super) const FEED_MAX: usize = 256;
/// The server sends a heartbeat every 10 s; a stream that is silent for longer is dead.
const SILENCE_MAX: Duration = Duration::from_secs(45);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
/// About a minute; the server's process is watched besides.
const ATTEMPTS_MAX: u32 = 40;

#[derive(Debug)]
pub(super) enum Feed {
    Event(Value),
    /// The stream is back; events were missed.
    Back,
    /// It does not come back.
    Gone(String),
}

/// Reads events until the loop has gone away. The first connection is made before this returns.
pub(super) async fn follow(http: Http) -> Result<mpsc::Receiver<Feed>, super::BridgeError> {
    let mut stream = http.events().await?;
    let (sender, receiver) = mpsc::channel(FEED_MAX);
    tokio::spawn(async move {
        loop {
            while let Ok(Some(frame)) = tokio::time::timeout(SILENCE_MAX, stream.next()).await {
                // What is no JSON is no event.
                let Ok(event) = serde_json::from_str(&frame.data) else { continue };
                if sender.send(Feed::Event(event)).await.is_err() {
                    return;
                }
            }
            let (feed, next) = match again(&http).await {
                Ok(next) => (Feed::Back, Some(next)),
                Err(why) => (Feed::Gone(why), None),
            };
            if sender.send(feed).await.is_err() {
                return;
            }
            let Some(next) = next else { return };
            stream = next;
        }
    });
    Ok(receiver)
}

async fn again(http: &Http) -> Result<crate::client::Stream, String> {
    let mut backoff = BACKOFF;
    let mut last = String::new();
    for _ in 0..ATTEMPTS_MAX {
        tokio::time::sleep(backoff.pause()).await;
        match http.events().await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error.to_string(),
        }
    }
    Err(format!("the stream of events broke and does not come back: {last}"))
}
