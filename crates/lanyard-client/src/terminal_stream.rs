//! The stream of a program on a terminal: output in binary frames, all else in text, over any restart of the daemon.

use std::time::Duration;

use bytes::Bytes;

use crate::absence::Absence;
use crate::daemon::DaemonAddress;
use crate::error::ClientError;
use crate::follower::{SocketFrame, WebSocketFrames};
use crate::route::Route;

/// What comes from the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum TerminalStep {
    /// The stream is open: everything that is known begins anew.
    Open,
    Text(String),
    Output(Bytes),
    /// The daemon does not answer, once for each absence. It is tried again, for this long where there is a bound.
    Lost(Option<Duration>),
}

/// The route of the stream, for a connection that comes back.
type RouteFor = Box<dyn Fn(Option<&str>) -> Route + Send + Sync>;

/// The stream of a terminal.
pub struct TerminalStream {
    address: DaemonAddress,
    route: RouteFor,
    connection: Option<String>,
    stream: Option<WebSocketFrames>,
    absence: Absence,
    again: String,
}

impl std::fmt::Debug for TerminalStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TerminalStream").field("address", &self.address).finish_non_exhaustive()
    }
}

impl TerminalStream {
    /// `wait` bounds each absence of the daemon; `again` is the command that continues after a longer one.
    pub fn new(
        address: DaemonAddress,
        wait: Option<Duration>,
        again: String,
        route: impl Fn(Option<&str>) -> Route + Send + Sync + 'static,
    ) -> Self {
        Self {
            address,
            route: Box::new(route),
            connection: None,
            stream: None,
            absence: Absence::within(wait),
            again,
        }
    }

    /// Comes back as this connection.
    pub fn known_as(&mut self, connection: String) {
        self.connection = Some(connection);
    }

    /// The next step. Nothing is lost when this is dropped before it is done. An error is final.
    pub async fn next(&mut self) -> Result<TerminalStep, ClientError> {
        loop {
            let Some(stream) = &mut self.stream else {
                if self.absence.lasts() {
                    let paused = self.absence.pause().await;
                    paused.map_err(|over| ClientError::StayedAway {
                        bound: over.0,
                        again: self.again.clone(),
                    })?;
                }
                let route = (self.route)(self.connection.as_deref());
                match WebSocketFrames::open(&self.address, &route).await {
                    Ok(stream) => {
                        self.stream = Some(stream);
                        self.absence.ends();
                        return Ok(TerminalStep::Open);
                    }
                    Err(error) if error.is_passing() => {
                        if self.absence.begins() {
                            return Ok(TerminalStep::Lost(self.absence.bound()));
                        }
                    }
                    Err(error) => return Err(error),
                }
                continue;
            };
            match stream.next().await {
                Some(SocketFrame::Text(text)) => return Ok(TerminalStep::Text(text)),
                Some(SocketFrame::Binary(bytes)) => return Ok(TerminalStep::Output(bytes)),
                None => {
                    self.stream = None;
                    if self.absence.begins() {
                        return Ok(TerminalStep::Lost(self.absence.bound()));
                    }
                }
            }
        }
    }
}
