//! One HTTP/1 connection, over TCP or a Unix socket. It knows nothing of any API.

use std::path::Path;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, ToSocketAddrs, UnixStream};

/// Why a server gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("cannot connect: {0}")]
    Connect(#[from] std::io::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    /// The body broke off, or is longer than the limit.
    #[error("{0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
}

/// An answer that was read to its end.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: StatusCode,
    pub body: Bytes,
}

/// A connection that takes one request after the other. Its end is noticed by the request that is under way.
#[derive(Debug)]
pub struct HttpConnection(SendRequest<Full<Bytes>>);

impl HttpConnection {
    /// Over a stream that is connected already.
    pub async fn over<S>(stream: S) -> Result<Self, HttpError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Ends with the sender; whatever breaks the connection shows in the request that is under way.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self(sender))
    }

    pub async fn tcp(address: impl ToSocketAddrs) -> Result<Self, HttpError> {
        let stream = TcpStream::connect(address).await?;
        // Small requests, each waited for.
        let _ = stream.set_nodelay(true);
        Self::over(stream).await
    }

    pub async fn unix(socket: &Path) -> Result<Self, HttpError> {
        Self::over(UnixStream::connect(socket).await?).await
    }

    /// Whether it still stands and takes a further request.
    pub async fn is_ready(&mut self) -> bool {
        self.0.ready().await.is_ok()
    }

    /// Sends a request; the answer's body is the caller's to read.
    pub async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, HttpError> {
        Ok(self.0.send_request(request).await?)
    }

    /// Sends a request and reads the answer, of at most so many bytes.
    pub async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<HttpAnswer, HttpError> {
        HttpAnswer::read(self.send(request).await?, bytes_max).await
    }
}

impl HttpAnswer {
    /// Reads an answer to its end.
    pub async fn read(response: Response<Incoming>, bytes_max: usize) -> Result<Self, HttpError> {
        let status = response.status();
        let body = Limited::new(response.into_body(), bytes_max).collect().await.map_err(HttpError::Body)?;
        Ok(Self { status, body: body.to_bytes() })
    }
}
