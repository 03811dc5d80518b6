//! A process's way to an MCP address through this suite: it sees the calls that pass, can hold them back, and adds the
//! header that a client cannot be told to send.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

type Body = BoxBody<Bytes, hyper::Error>;
type Error = Box<dyn std::error::Error + Send + Sync>;

/// Ends with its connections when dropped.
pub(crate) struct Forward {
    pub(crate) url: String,
    to: Arc<To>,
    runtime: Option<Runtime>,
}

struct To {
    address: SocketAddr,
    bearer: Option<HeaderValue>,
    /// Our own port as it stands in a Host or an Origin, and what the other side knows instead.
    ports: [String; 2],
    /// The calls that came by, as they were sent.
    calls: Mutex<Vec<Value>>,
    /// Whether calls wait before they go on.
    held: watch::Sender<bool>,
}

impl Forward {
    /// To the address of a target, with its header if it has one.
    pub(crate) fn to(target: &Value) -> Forward {
        let url = target["url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let (address, path) = url.split_once('/').unwrap();
        let address: SocketAddr = address.parse().unwrap();
        let bearer = target["headers"]["Authorization"].as_str().map(|bearer| bearer.parse().unwrap());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("forward")
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0))).unwrap();
        let own = listener.local_addr().unwrap();
        let ports = [own, address].map(|address| format!(":{}", address.port()));
        let (calls, held) = (Mutex::default(), watch::Sender::new(false));
        let to = Arc::new(To { address, bearer, ports, calls, held });
        runtime.spawn(serve(listener, to.clone()));
        Forward { url: format!("http://{own}/{path}"), to, runtime: Some(runtime) }
    }

    /// From here on calls wait; they are seen all the same.
    pub(crate) fn hold(&self) {
        self.to.held.send_replace(true);
    }

    pub(crate) fn release(&self) {
        self.to.held.send_replace(false);
    }

    /// The tools that were called so far, in order.
    pub(crate) fn called(&self) -> Vec<String> {
        let calls = self.to.calls.lock().unwrap();
        calls.iter().map(|call| call["params"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn serve(listener: TcpListener, to: Arc<To>) {
    while let Ok((stream, _)) = listener.accept().await {
        let to = to.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| pass(request, to.clone()));
            let connection = hyper::server::conn::http1::Builder::new();
            // A client that goes away is nothing to report.
            drop(connection.serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn pass(request: Request<Incoming>, to: Arc<To>) -> Result<Response<Body>, Infallible> {
    let answer = forward(request, &to).await;
    Ok(answer.unwrap_or_else(|error| {
        let mut response = Response::new(whole(Bytes::from(error.to_string())));
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        response
    }))
}

fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}

async fn forward(request: Request<Incoming>, to: &To) -> Result<Response<Body>, Error> {
    let (mut head, body) = request.into_parts();
    to.headers(&mut head.headers)?;
    let body = body.collect().await?.to_bytes();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    if message["method"] == "tools/call" {
        to.calls.lock().unwrap().push(message);
        // An error means that the test is over.
        let _ = to.held.subscribe().wait_for(|is_held| !is_held).await;
    }
    let stream = TcpStream::connect(to.address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let answer = sender.send_request(Request::from_parts(head, whole(body))).await?;
    // The connection lives as long as what is left of the answer.
    Ok(answer.map(|body| {
        let line = sender;
        body.map_frame(move |frame| {
            let _ = &line;
            frame
        })
        .boxed()
    }))
}

impl To {
    fn headers(&self, headers: &mut HeaderMap) -> Result<(), Error> {
        if let Some(bearer) = &self.bearer {
            headers.insert(AUTHORIZATION, bearer.clone());
        }
        for name in [HOST, ORIGIN] {
            // A foreign name stays foreign, since it must be refused.
            let Some(value) = headers.get(&name).and_then(|value| value.to_str().ok()) else { continue };
            let Some(host) = value.strip_suffix(&self.ports[0]) else { continue };
            let value = format!("{host}{}", self.ports[1]).parse()?;
            headers.insert(name, value);
        }
        Ok(())
    }
}
