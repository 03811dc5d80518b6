//! A look at one server: it is started or reached, greeted, and asked for its tools.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use bytes::Bytes;
use lanyard_api::annotate::json;
use lanyard_api::names::OWN_SERVER;
use lanyard_api::types::McpCheck;
use serde_json::Value;

use crate::http_endpoint::{HttpEndpoint, Lent, Outgoing, Trouble};
use crate::mcp::envelope::LEGACY;
use crate::mcp::http;
use crate::mcp::server::{ANSWER_BYTES_MAX, Server, Upstream};
use crate::mcp::translate::{self, Modern};
use crate::mcp::{OwnServer, RelayContext, stdio};

fn params() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        r#"{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"lanyard","version":"{version}"}}}}"#
    )
}

pub(super) async fn check(context: &Arc<RelayContext>, server: &Arc<Server>) -> McpCheck {
    let looked = async {
        match &server.upstream {
            Upstream::Unusable(why) => Err(Trouble::NotStarted(why.clone())),
            Upstream::Stdio(upstream) => stdio::check(context, upstream, &params()).await,
            Upstream::Http(upstream) => look(server, upstream).await,
        }
    };
    match looked.await {
        Ok((greeting, tools)) => {
            server.worked();
            found(&server.name, &greeting, &tools)
        }
        Err(trouble) => failed(&server.name, server.failed(&trouble)),
    }
}

pub(super) async fn own(server: &dyn OwnServer) -> McpCheck {
    let params = serde_json::from_str(&params()).unwrap_or_default();
    let greeting = server.handle(None, "initialize", params).await;
    let tools = server.handle(None, "tools/list", Value::Object(serde_json::Map::default())).await;
    match (greeting, tools) {
        (Ok(greeting), Ok(tools)) => {
            let tools = serde_json::json!({ "result": tools });
            found(OWN_SERVER, &greeting.to_string(), &tools.to_string())
        }
        (Err(error), _) | (_, Err(error)) => failed(OWN_SERVER, error.message),
    }
}

fn failed(name: &str, what: String) -> McpCheck {
    McpCheck {
        name: name.to_owned(),
        ok: false,
        protocol: None,
        server: None,
        version: None,
        tools: None,
        error: Some(what),
    }
}

fn found(name: &str, greeting: &str, tools: &str) -> McpCheck {
    let greeting: Value = serde_json::from_str(greeting).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let tools = json::member(tools, "result").and_then(|result| json::member(result, "tools"));
    McpCheck {
        name: name.to_owned(),
        ok: true,
        protocol: text(&greeting["protocolVersion"]),
        server: text(&greeting["serverInfo"]["name"]),
        version: text(&greeting["serverInfo"]["version"]),
        tools: tools.and_then(json::elements).map(|tools| tools.len() as u64),
        error: None,
    }
}

async fn look(server: &Server, upstream: &HttpEndpoint) -> Result<(String, String), Trouble> {
    let greet = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}}"#, params());
    let answer = upstream.send(plain(greet, None), server.timeout).await?;
    if matches!(answer.status().as_u16(), 401 | 403) {
        return Err(Trouble::Denied(answer.status().as_u16()));
    }
    let session = answer.headers().get("mcp-session-id").cloned();
    let status = answer.status();
    let said = message(answer).await?;
    if translate::refuses_greeting(&said) {
        return look_modern(server, upstream).await;
    }
    let Some(greeting) = json::member(&said, "result").map(str::to_owned) else {
        return Err(Trouble::Nonsense(format!(
            "it answered the greeting with status {status}: {}",
            short(&said)
        )));
    };
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned();
    upstream.send(plain(initialized, session.as_ref()), server.timeout).await?;
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#.to_owned();
    let tools = message(upstream.send(plain(list, session.as_ref()), server.timeout).await?).await?;
    if session.is_some() {
        let bye = Outgoing { method: Method::DELETE, ..plain(String::new(), session.as_ref()) };
        let _ = upstream.send(bye, server.timeout).await;
    }
    Ok((greeting, tools))
}

async fn look_modern(server: &Server, upstream: &HttpEndpoint) -> Result<(String, String), Trouble> {
    let version = crate::mcp::envelope::MODERN;
    let modern = Modern::of(&params(), version);
    let ask = async |method: &str| {
        let bare = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#);
        let out = Outgoing::modern(modern.dress(&bare).unwrap_or(bare), method, None, version);
        message(upstream.send(out, server.timeout).await?).await
    };
    let said = ask("server/discover").await?;
    let Some(found) = json::member(&said, "result") else {
        return Err(Trouble::Nonsense(format!(
            "it knows neither greeting nor server/discover: {}",
            short(&said)
        )));
    };
    let greeting = translate::greeting(found, None, &server.name);
    let greeting = json::with(&greeting, "protocolVersion", &json::quoted(version)).unwrap_or(greeting);
    Ok((greeting, ask("tools/list").await?))
}

fn short(text: &str) -> String {
    text.chars().take(200).collect()
}

fn plain(body: String, session: Option<&HeaderValue>) -> Outgoing {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers.insert("mcp-protocol-version", HeaderValue::from_static(LEGACY));
    if let Some(session) = session {
        headers.insert("mcp-session-id", session.clone());
    }
    Outgoing { method: Method::POST, headers, body: Bytes::from(body) }
}

async fn message(answer: Response<Lent>) -> Result<String, Trouble> {
    let said = answer.into_body().whole(ANSWER_BYTES_MAX).await?;
    http::message_of(&said)
        .ok_or_else(|| Trouble::Nonsense(format!("it answered `{}`", short(&String::from_utf8_lossy(&said)))))
}
