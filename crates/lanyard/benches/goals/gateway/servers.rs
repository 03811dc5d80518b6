//! What stands behind and beside the gateway, each in a process of its own: an MCP server that only echoes, over HTTP
//! (by the official SDK) and over stdio (as cheap as can be, so that the bridges are what is measured), and a proxy that
//! only passes on.

use parking_lot::Mutex;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use anyhow::{Context, Result, bail};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri, header, uri};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::echo;
use super::load::{PATH, PROTOCOL};
use crate::process::end_with_parent;

/// Connections to the server that are kept for the next request.
const KEPT_MAX: usize = 256;

pub(crate) fn play(role: &str, args: &[String]) -> Result<()> {
    // The stdio server speaks on the pipes by which the others are told to end.
    if role == "mcp-stdio" {
        return stdio();
    }
    end_with_parent();
    let port = args.first().and_then(|arg| arg.parse().ok());
    match (role, port) {
        ("mcp-http", None) => serve(echo::app()),
        ("mcp-raw", Some(port)) => {
            let pool = Arc::new(Pool { port, kept: Mutex::default() });
            serve(axum::Router::new().fallback(pass).with_state(pool))
        }
        _ => bail!("there is no role `{role}` with {args:?}"),
    }
}

fn serve(app: axum::Router) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        println!("{}", listener.local_addr()?.port());
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, app).await?;
        Ok(())
    })
}

/// The envelope of a message, and what `echo` needs.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Called<'a> {
    #[serde(borrow)]
    arguments: Said<'a>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
}

/// What the server says to a message; nothing to a notification.
fn answer(line: &[u8]) -> Option<String> {
    let message: Message<'_> = serde_json::from_slice(line).ok()?;
    let id = message.id?.get();
    let result = match message.method {
        "tools/call" => {
            let called: Called<'_> = serde_json::from_str(message.params?.get()).ok()?;
            let text = called.arguments.message.get();
            format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#)
        }
        "initialize" => format!(
            r#"{{"protocolVersion":"{PROTOCOL}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"echo","version":"1"}}}}"#
        ),
        "tools/list" => concat!(
            r#"{"tools":[{"name":"echo","description":"says it again","inputSchema":{"type":"object","#,
            r#""properties":{"message":{"type":"string"}},"required":["message"]}}]}"#
        )
        .to_owned(),
        "ping" => "{}".to_owned(),
        _ => {
            return Some(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no such method"}}}}"#
            ));
        }
    };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

/// Lines in, lines out; what has come together goes out together.
fn stdio() -> Result<()> {
    let mut input = BufReader::with_capacity(64 * 1024, std::io::stdin().lock());
    let mut output = BufWriter::with_capacity(64 * 1024, std::io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(text) = answer(&line) {
            output.write_all(text.as_bytes())?;
            output.write_all(b"\n")?;
        }
        line.clear();
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
    }
    Ok(output.flush()?)
}

type Sender = SendRequest<Body>;

/// Connections to the server behind the proxy.
struct Pool {
    port: u16,
    kept: Mutex<Vec<Sender>>,
}

impl Pool {
    /// A connection that takes a request: the one used last, else a new one.
    async fn take(&self) -> Result<Sender> {
        loop {
            let kept = self.kept.lock().pop();
            let Some(mut sender) = kept else { break };
            if sender.ready().await.is_ok() {
                return Ok(sender);
            }
        }
        let stream = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn give(&self, sender: Sender) {
        let mut kept = self.kept.lock();
        if kept.len() < KEPT_MAX {
            kept.push(sender);
        }
    }
}

/// The bare proxy: head and body as they come, in both directions.
async fn pass(State(pool): State<Arc<Pool>>, request: Request) -> Response {
    match forward(pool, request).await {
        Ok(response) => response,
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response(),
    }
}

async fn forward(pool: Arc<Pool>, mut request: Request) -> Result<Response> {
    let mut sender = pool.take().await?;
    *request.uri_mut() = Uri::from(uri::PathAndQuery::from_static(PATH));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, pool.port)).to_string();
    request.headers_mut().insert(header::HOST, address.parse().context("an address that is no header")?);
    let response = sender.send_request(request).await?;
    Ok(response.map(|body| Body::new(Passed { body, line: Some((pool, sender)) })))
}

/// A body on its way. Its connection is free for the next request when it has ended.
struct Passed {
    body: Incoming,
    line: Option<(Arc<Pool>, Sender)>,
}

impl hyper::body::Body for Passed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        // A connection whose body was not read to its end says so when it is asked for again.
        if let Some((pool, sender)) = self.line.take() {
            pool.give(sender);
        }
    }
}
