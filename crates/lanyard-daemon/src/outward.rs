//! Posting to an address of the config: one request on a connection of its own. A redirect is not followed, so nothing
//! goes anywhere the config does not name.

use std::path::Path;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use lanyard_api::http_url::HttpUrl;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use lanyard_gateway::tls::Tls;

/// Bytes of an answer that are read, only to free the connection.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Somewhere to post to.
#[derive(Debug)]
pub(crate) struct Address {
    host: String,
    port: u16,
    host_header: HeaderValue,
    target: Uri,
    tls: Option<Tls>,
}

impl Address {
    /// An `http://` or `https://` address; or a sentence of what is wrong with it.
    pub(crate) fn new(url: &str, ca_file: Option<&Path>) -> Result<Self, String> {
        let HttpUrl { secure, host, port, authority, path_and_query } = HttpUrl::parse(url)?;
        let tls = if secure { Some(Tls::new(&host, ca_file)?) } else { None };
        Ok(Self {
            port,
            host_header: HeaderValue::from_str(&authority).map_err(|error| error.to_string())?,
            target: path_and_query.parse().map_err(|_| "its path cannot be sent".to_owned())?,
            host,
            tls,
        })
    }

    /// Posts, and answers with the status. All of it has to be done within `patience`.
    pub(crate) async fn post(
        &self,
        headers: HeaderMap,
        body: Bytes,
        patience: Duration,
    ) -> Result<StatusCode, String> {
        let posted = tokio::time::timeout(patience, Box::pin(self.try_post(headers, body))).await;
        posted.unwrap_or_else(|_| Err(format!("no answer within {} ms", patience.as_millis())))
    }

    async fn try_post(&self, headers: HeaderMap, body: Bytes) -> Result<StatusCode, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| format!("cannot connect: {error}"))?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = headers;
        request.headers_mut().insert(header::HOST, self.host_header.clone());
        request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        match &self.tls {
            None => exchange(stream, request).await,
            Some(tls) => {
                let stream = tls.wrap(stream).await.map_err(|trouble| trouble.to_string())?;
                exchange(stream, request).await
            }
        }
    }
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<StatusCode, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |error: hyper::Error| format!("the connection broke off: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let asked = async move {
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        // Used up, so that the other side does not see its answer cut off; too much of it is left there.
        let _ = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        Ok(status)
    };
    let mut asked = std::pin::pin!(asked);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        done = &mut asked => done,
        // It may have carried the whole answer before it ended.
        _ = &mut connection => asked.await,
    }
}
