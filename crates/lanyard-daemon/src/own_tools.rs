//! Lanyard's own MCP server, `lanyard`: seven tools with which agents take their place, hand off, plan, leave context,
//! spawn, and hear from those they spawned. Answers are text only, never structured content: clients that show their model only the latter would lose
//! what a stop or guidance puts in front.
//!
//! Stops, guidance and the log are the business of whoever calls this, as around any other server.

mod agent;
mod args;
mod caller;
mod context;
mod names;
mod orphans;
mod plan;
mod schema;
mod spawn;
mod steps;
mod tasks;
#[cfg(test)]
mod tests;
mod traces;
mod workspace;

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use lanyard_core::SessionId;
use lanyard_core::paper::instructions;
use lanyard_core::session::Compliance;
use lanyard_core::session::directive::defuse;
use lanyard_store::Store;
use serde_json::{Map, Value, json};

use crate::auth::TokenBook;
use crate::families::Families;
use crate::memory::{Memory, MemoryContext};
use crate::tool_refusal::Refused;
use caller::ToolCaller;
use lanyard_agents::agents::roster::Roster;
use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;
use lanyard_engine::engine::Engine;
use lanyard_gateway::mcp::{OwnServer, RpcError};

/// The name no other server may have.
const NAME: &str = "lanyard";

/// The newest first. Later ones ask with `server/discover` instead of `initialize`.
const VERSIONS: [&str; 5] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Answered to who asks for a version nobody knows: the newest that still begins with `initialize`.
const VERSION: &str = "2025-11-25";
/// How long a client may keep the list of tools.
const LIST_TTL_MS: u64 = 3_600_000;
/// Where a request of the newest protocol says which one it speaks.
const VERSION_META: &str = "io.modelcontextprotocol/protocolVersion";

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// What carrying out a call of one of Lanyard's own tools takes.
pub(crate) struct ToolContext {
    pub(crate) engine: Engine,
    pub(crate) families: Families,
    pub(crate) agents: Roster,
    /// Sessions whose workspace is being taken back: nothing is continued meanwhile.
    pub(crate) rollbacks: Arc<Mutex<HashSet<SessionId>>>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) memories: Arc<MemoryContext>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) config: LiveConfig,
    pub(crate) tokens: Arc<TokenBook>,
}

/// The tools as the gateway reaches them.
pub(crate) struct OwnTools(pub(crate) Arc<ToolContext>);

impl OwnServer for OwnTools {
    fn handle<'a>(
        &'a self,
        session: Option<SessionId>,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, RpcError>> {
        Box::pin(handle(&self.0, session, method, params))
    }

    fn compliance(&self, tool: &str, arguments: &Value) -> Option<Compliance> {
        compliance(tool, arguments)
    }
}

/// What a tool answers: a document, and texts that are shown as they are.
#[derive(Debug, Default)]
struct Answer {
    value: Value,
    /// Fields of the document with Lanyard's own words, which may hold the markers of directives.
    own: Map<String, Value>,
    /// Lanyard's own words, as blocks after the document.
    texts: Vec<String>,
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        Self { value, ..Self::default() }
    }
}

type Told = Result<Answer, Refused>;

static TOOLS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    vec![
        workspace::tool(),
        agent::tool(),
        plan::tool(),
        steps::tool(),
        context::tool(),
        spawn::tool(),
        tasks::tool(),
    ]
});

/// Answers one request of a session's agent, or of an operator without one.
async fn handle(
    app: &Arc<ToolContext>,
    session: Option<SessionId>,
    method: &str,
    params: Value,
) -> Result<Value, RpcError> {
    let newest = params.get("_meta").and_then(|meta| meta.get(VERSION_META)).is_some();
    match method {
        "initialize" => Ok(initialize(session, &params)),
        "server/discover" => Ok(discover(session)),
        "ping" => Ok(json!({})),
        "tools/list" if newest => Ok(json!({
            "resultType": "complete", "ttlMs": LIST_TTL_MS, "cacheScope": "public", "tools": *TOOLS,
        })),
        "tools/list" => Ok(json!({ "tools": *TOOLS })),
        "tools/call" => {
            let mut result = call(app, session, &params).await?;
            if newest && let Some(fields) = result.as_object_mut() {
                fields.insert("resultType".to_owned(), "complete".into());
            }
            Ok(result)
        }
        _ => {
            let message = format!("this server has no method `{method}`");
            Err(RpcError { code: METHOD_NOT_FOUND, message })
        }
    }
}

/// The way in which a call complies with a stop.
fn compliance(tool: &str, arguments: &Value) -> Option<Compliance> {
    if tool != agent::NAME {
        return None;
    }
    match arguments.get("action")?.as_str()? {
        "handoff" => Some(Compliance::HandOff),
        "complete" => Some(Compliance::Complete),
        "ack" => Some(Compliance::Acknowledge),
        _ => None,
    }
}

fn info() -> Value {
    json!({ "name": NAME, "title": "Lanyard", "version": env!("CARGO_PKG_VERSION") })
}

/// What an agent has to know, for the connection it has.
fn told(session: Option<SessionId>) -> String {
    instructions::full(match session {
        Some(_) => instructions::CallAttribution::ByConnection,
        None => instructions::CallAttribution::ByArgument,
    })
}

fn initialize(session: Option<SessionId>, params: &Value) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let version = VERSIONS.iter().find(|known| **known == asked).copied().unwrap_or(VERSION);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": info(),
        "instructions": told(session),
    })
}

fn discover(session: Option<SessionId>) -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": VERSIONS,
        "capabilities": { "tools": {} },
        "instructions": told(session),
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "public",
        "_meta": { "io.modelcontextprotocol/serverInfo": info() },
    })
}

async fn call(app: &Arc<ToolContext>, session: Option<SessionId>, params: &Value) -> Result<Value, RpcError> {
    let invalid = |message: String| RpcError { code: INVALID_PARAMS, message };
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| invalid("the call names no tool".to_owned()))?;
    let tool = TOOLS.iter().find(|tool| tool["name"] == name);
    let tool = tool.ok_or_else(|| invalid(format!("this server has no tool `{name}`")))?;
    let mut arguments = match params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(invalid("the arguments are not an object".to_owned())),
    };
    // The gateway has looked at it already.
    arguments.remove("_session_id");
    let (arguments, ignored) = match names::resolve(tool, arguments) {
        Ok(resolved) => resolved,
        Err(refused) => return Ok(refused.shown()),
    };
    Ok(match run(app, session, name, arguments).await {
        Ok(answer) => shown(answer, &ignored),
        Err(refused) => refused.shown(),
    })
}

async fn run(app: &Arc<ToolContext>, session: Option<SessionId>, name: &str, arguments: Value) -> Told {
    let caller = ToolCaller::of(app, session).await?;
    match name {
        workspace::NAME => workspace::call(&caller, args::parse(arguments)?).await,
        agent::NAME => agent::call(&caller, args::parse(arguments)?).await,
        plan::NAME => plan::call(&caller, args::parse(arguments)?).await,
        steps::NAME => steps::call(&caller, args::parse(arguments)?).await,
        context::NAME => context::call(&caller, args::parse(arguments)?).await,
        spawn::NAME => spawn::call(&caller, args::parse(arguments)?).await,
        tasks::NAME => tasks::call(&caller, args::parse(arguments)?).await,
        other => Err(Refused::new("tool_unknown", format!("there is no tool `{other}`"), "list the tools")),
    }
}

/// What others wrote is defused as the output of any tool; Lanyard's own words stand beside it as they are.
fn shown(mut answer: Answer, ignored: &[String]) -> Value {
    if let (false, Some(fields)) = (ignored.is_empty(), answer.value.as_object_mut()) {
        fields.insert("ignored_arguments".to_owned(), ignored.into());
    }
    let document = serde_json::to_string_pretty(&answer.value).unwrap_or_default();
    let document = with_own(defuse(&document).unwrap_or(document), answer.own);
    let texts = std::iter::once(document).chain(answer.texts);
    let content: Vec<Value> = texts.map(|text| json!({ "type": "text", "text": text })).collect();
    json!({ "content": content, "isError": false })
}

/// Adds fields that are not defused.
fn with_own(document: String, own: Map<String, Value>) -> String {
    if own.is_empty() {
        return document;
    }
    match serde_json::from_str::<Map<String, Value>>(&document) {
        Ok(mut fields) => {
            fields.extend(own);
            serde_json::to_string_pretty(&fields).unwrap_or(document)
        }
        Err(_) => document,
    }
}
