//! Connections to the daemon that are kept and used again: a call is asked about twice, and many calls may be under way.

use std::time::Duration;

use hyper::Method;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::connection::HttpAnswer;
use crate::daemon::{ApiRequest, DaemonAddress, DaemonConnection, encode};
use crate::error::ClientError;
use crate::route::Route;

/// How long one answer may take. An agent waits for it, so it is short; a commit that takes longer is not waited for.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Connections kept for later; as many calls as an agent makes at once.
const IDLE_MAX: usize = 8;
/// Larger answers are not read.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// One daemon and the right to ask it.
#[derive(Debug)]
pub struct DaemonLink {
    address: DaemonAddress,
    idle: Mutex<Vec<DaemonConnection>>,
}

impl DaemonLink {
    #[must_use]
    pub fn new(address: DaemonAddress) -> Self {
        Self { address, idle: Mutex::default() }
    }

    pub async fn get<T: DeserializeOwned>(&self, route: &Route) -> Result<T, ClientError> {
        self.ask(&ApiRequest::question(route, None)).await
    }

    pub async fn post<T: DeserializeOwned>(
        &self,
        route: &Route,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.ask(&ApiRequest::change(Method::POST, route, Some(encode(body)?), None, None)).await
    }

    async fn ask<T: DeserializeOwned>(&self, request: &ApiRequest<'_>) -> Result<T, ClientError> {
        let answer = tokio::time::timeout(ANSWER_WAIT, self.exchange(request)).await;
        answer.unwrap_or(Err(ClientError::Silent(ANSWER_WAIT)))?.accepted()?.json()
    }

    async fn exchange(&self, request: &ApiRequest<'_>) -> Result<HttpAnswer, ClientError> {
        let mut connection = self.connection().await?;
        let answer = connection.attempt(request).await?;
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
        Ok(answer)
    }

    /// A kept connection that still stands, or a new one.
    async fn connection(&self) -> Result<DaemonConnection, ClientError> {
        loop {
            let kept = self.idle.lock().pop();
            let Some(mut kept) = kept else { break };
            if kept.is_ready().await {
                return Ok(kept);
            }
        }
        let connected = self.address.connect().await?.ok_or(ClientError::Away)?;
        Ok(connected.limited(ANSWER_BYTES_MAX))
    }
}
