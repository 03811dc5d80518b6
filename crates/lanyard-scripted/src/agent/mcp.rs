//! A small MCP client: enough to call a tool of a server that was named when the session was made.

mod http;
mod stdio;

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use agent_client_protocol_schema::v1::{Error, McpServer, ToolKind};
use serde_json::{Value, json};

use self::http::Http;
use self::stdio::Stdio;
use super::tools::Ended;
use super::turn::{Halt, Turn};

/// The revision of the protocol that is asked for; any answer is taken.
const PROTOCOL: &str = "2025-06-18";

/// A connection to one server, kept for the turn.
#[derive(Debug)]
pub(super) struct Link {
    kind: Kind,
    greeted: AtomicBool,
    next: AtomicI64,
}

#[derive(Debug)]
enum Kind {
    Http(Http),
    Stdio(Stdio),
}

/// Why a call came to nothing, as a sentence.
#[derive(Debug, thiserror::Error)]
enum LinkError {
    #[error("the MCP server {0} was not given to this session")]
    Unknown(String),
    #[error("MCP servers of this kind are not supported")]
    Kind,
    #[error("cannot start the MCP server: {0}")]
    Start(std::io::Error),
    #[error("cannot reach the MCP server: {0}")]
    Unreachable(String),
    #[error("the MCP server answered {0}")]
    Status(u16),
    /// The server has forgotten the connection, as after a restart.
    #[error("the MCP server does not know this connection any more")]
    Forgotten,
    #[error("the MCP server closed the connection without an answer")]
    Closed,
    #[error("the MCP server answered with an error: {0}")]
    Refused(String),
}

impl Turn {
    pub(super) fn call_mcp(&mut self, server: &str, tool: &str, input: &Value) -> Result<(), Halt> {
        let id = self.open_titled(tool, &format!("{server}: {tool}"), ToolKind::Other, input.clone());
        let link = match self.link(server) {
            Ok(link) => link,
            Err(error) => {
                self.close_tool(&id, Ended::text(false, error.to_string()));
                return Ok(());
            }
        };
        self.flush();
        // In a thread of its own, so that a cancel need not wait for the server.
        let number = self.agent.wire.number();
        let (inbox, calling) = (Arc::clone(&self.inbox), Arc::clone(&link));
        let request = json!({"name": tool, "arguments": input});
        let call = link.number();
        std::thread::spawn(move || {
            let answer = calling.call(call, &request);
            inbox.deliver(number, answer.map_err(|error| Error::new(-32000, error.to_string())));
        });
        let answer = match self.inbox.answer(number) {
            Ok(answer) => answer,
            Err(cancelled) => {
                link.give_up(call);
                self.links.remove(server);
                return Err(cancelled.into());
            }
        };
        self.close_tool(&id, ended(answer.map_err(|error| error.message)));
        Ok(())
    }

    fn link(&mut self, name: &str) -> Result<Arc<Link>, LinkError> {
        let link = match self.links.entry(name.to_owned()) {
            Entry::Occupied(link) => link.into_mut(),
            Entry::Vacant(place) => {
                let servers = &self.session.place.servers;
                let server = servers.iter().find(|server| name_of(server) == Some(name));
                let server = server.ok_or_else(|| LinkError::Unknown(name.to_owned()))?;
                place.insert(Arc::new(Link::open(server, &self.session.place.cwd)?))
            }
        };
        Ok(Arc::clone(link))
    }
}

fn name_of(server: &McpServer) -> Option<&str> {
    if let McpServer::Http(server) = server {
        return Some(&server.name);
    }
    if let McpServer::Stdio(server) = server { Some(&server.name) } else { None }
}

/// The text of a result as content, all of it as output.
fn ended(answer: Result<Value, String>) -> Ended {
    let result = match answer {
        Ok(result) => result,
        Err(error) => return Ended::text(false, error),
    };
    let failed = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let blocks = result.get("content").and_then(Value::as_array).into_iter().flatten();
    let texts = blocks.filter_map(|block| block.get("text")?.as_str());
    let content = texts.map(|text| text.to_owned().into()).collect();
    Ended { ok: !failed, content, output: Some(result) }
}

impl Link {
    fn open(server: &McpServer, cwd: &std::path::Path) -> Result<Self, LinkError> {
        let kind = if let McpServer::Http(server) = server {
            Kind::Http(Http::new(server)?)
        } else if let McpServer::Stdio(server) = server {
            Kind::Stdio(Stdio::start(server, cwd).map_err(LinkError::Start)?)
        } else {
            return Err(LinkError::Kind);
        };
        Ok(Self { kind, greeted: AtomicBool::new(false), next: AtomicI64::new(1) })
    }

    fn number(&self) -> i64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Calls a tool. A server that has forgotten the connection is greeted again, once.
    fn call(&self, id: i64, params: &Value) -> Result<Value, LinkError> {
        if !self.greeted.load(Ordering::Relaxed) {
            self.greet()?;
        }
        match self.request(id, "tools/call", params) {
            Err(LinkError::Forgotten) => {
                self.greet()?;
                self.request(id, "tools/call", params)
            }
            other => other,
        }
    }

    fn greet(&self) -> Result<(), LinkError> {
        if let Kind::Http(http) = &self.kind {
            http.forget();
        }
        let params = json!({
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "lanyard-scripted", "version": env!("CARGO_PKG_VERSION")},
        });
        self.request(self.number(), "initialize", &params)?;
        self.notify(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        self.greeted.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn request(&self, id: i64, method: &str, params: &Value) -> Result<Value, LinkError> {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answer = match &self.kind {
            Kind::Http(http) => http.request(&message, id)?,
            Kind::Stdio(stdio) => stdio.request(&message, id)?,
        };
        if let Some(error) = answer.get("error") {
            return Err(LinkError::Refused(error.to_string()));
        }
        Ok(answer.get("result").cloned().unwrap_or_default())
    }

    fn notify(&self, message: &Value) -> Result<(), LinkError> {
        match &self.kind {
            Kind::Http(http) => http.notify(message),
            Kind::Stdio(stdio) => stdio.send(message),
        }
    }

    /// Tells the server that its answer is not waited for. A server that must be asked twice is not worth waiting for.
    fn give_up(self: &Arc<Self>, id: i64) {
        let link = Arc::clone(self);
        let reason = json!({"requestId": id, "reason": "cancelled"});
        std::thread::spawn(move || {
            let _ = link
                .notify(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": reason}));
            if let Kind::Stdio(stdio) = &link.kind {
                stdio.end();
            }
        });
    }
}

/// Whether a message is the answer to this question.
fn answers(message: &Value, id: i64) -> bool {
    message.get("id").and_then(Value::as_i64) == Some(id) && message.get("method").is_none()
}
