//! `lanyard mcp wrap`: an MCP server on stdio with Lanyard in between. Lines pass byte for byte in both directions; only
//! a tool call is asked about, before it is carried out and before its answer goes out.
//!
//! Without a daemon it is the bare command. It knows nothing of what the tools do.

mod envelope;
mod minder;
mod process;

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use lanyard_api::annotate::{self, AnswerReader, Taste, Words, json};
use lanyard_api::home::Home;
use lanyard_client::rpc::{RpcEnvelope, answer_text};
use lanyard_client::{GivenSession, inside};
use lanyard_core::NoteId;
use lanyard_core::session::{Call, CallerProof, Channel, Returned, StopLevel};
use serde_json::value::RawValue;

use self::envelope::{CallParams, hint};
use self::minder::{BoundSession, CallOrigin, CallOwner, Minder, WrapSetting};
use crate::failure::Failure;
use crate::relay::call_id;

/// Requests under way that are kept in mind. Further ones pass without being asked about.
const PENDING_MAX: usize = 4_096;
/// Tools kept in mind that promise a structured result. With more than that, any tool may have promised one.
const PROMISING_MAX: usize = 10_000;
/// What an agent tells its MCP servers about its conversation.
const ALIAS_VARIABLES: [&str; 1] = ["CLAUDE_CODE_SESSION_ID"];

/// What was asked for on the command line.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) name: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) command: Vec<OsString>,
    /// Without one there is no daemon to ask.
    pub(crate) home: Option<Home>,
}

/// Runs the command until it ends, and gives its exit code.
pub(crate) async fn run(options: Options) -> Result<u8, Failure> {
    let named = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let given = GivenSession::from_environment();
    if let (Some(own), Some(other)) = (inside(), &options.session)
        && own != *other
    {
        let title = format!("`lanyard` runs inside session {own} and relays no calls for {other}");
        return Err(Failure::local("operator_only", title, "leave --session out"));
    }
    let setting = WrapSetting {
        home: options.home,
        session: if given.is_some() { None } else { options.session },
        given,
        server: options.name.unwrap_or_else(|| name_of(&options.command)),
        workspace: minder::workspace(),
        alias: ALIAS_VARIABLES.iter().find_map(named),
    };
    process::run(&options.command, Arc::new(Wrap::new(setting))).await
}

/// The command's file name, without what stands behind a dot.
fn name_of(command: &[OsString]) -> String {
    let stem = command.first().and_then(|program| Path::new(program).file_stem());
    stem.map_or_else(|| "server".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// With stderr closed the message is lost.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[derive(Debug)]
struct Wrap {
    server: String,
    minder: Arc<Minder>,
    /// Calls under way that the daemon was asked about, by the id the client gave.
    calls: Mutex<HashMap<String, PendingCall>>,
    /// Questions for the list of tools.
    lists: Mutex<HashSet<String>>,
    taste: Mutex<Taste>,
    met: AtomicBool,
    /// Tools the client was told to promise a structured result; nothing while it has seen no list.
    promising: Mutex<Option<HashSet<String>>>,
}

#[derive(Debug)]
struct PendingCall {
    bound: BoundSession,
    call: Call,
    began: Instant,
    /// The client is of a revision whose results say of what type they are.
    modern: bool,
}

/// Where a line of the client goes.
#[derive(Debug)]
enum Onward {
    AsItIs,
    /// To the server, changed.
    Server(String),
    /// Back to the client: the server does not see it.
    Client(String),
}

/// What goes to the client in the place of a line of the server.
#[derive(Debug)]
struct ServerLine {
    /// Nothing: as it is.
    line: Option<String>,
    /// Guidance in it, to be reported if it does not get out.
    carries: Option<(BoundSession, Vec<NoteId>)>,
}

impl ServerLine {
    const AS_IT_IS: Self = Self { line: None, carries: None };
}

impl Wrap {
    fn new(setting: WrapSetting) -> Self {
        Self {
            server: setting.server.clone(),
            minder: Minder::new(setting),
            calls: Mutex::default(),
            lists: Mutex::default(),
            taste: Mutex::new(Taste::Unknown),
            met: AtomicBool::new(false),
            promising: Mutex::default(),
        }
    }

    async fn heard_client(&self, line: &[u8]) -> Onward {
        let Some(message) = RpcEnvelope::read(line) else { return Onward::AsItIs };
        let (Some(method), Some(id)) = (message.method.as_deref(), message.id) else { return Onward::AsItIs };
        match method {
            "initialize" | "server/discover" => self.meet(&message.params()),
            "tools/list" => {
                self.meet(&message.params());
                let mut lists = self.lists.lock();
                if lists.len() < PENDING_MAX {
                    lists.insert(id.get().to_owned());
                }
            }
            "tools/call" => {
                let params: CallParams<'_> = message.params();
                self.meet(&params);
                return self.call(line, id, &params).await;
            }
            _ => {}
        }
        Onward::AsItIs
    }

    fn meet(&self, params: &CallParams<'_>) {
        if let Some(name) = params.client()
            && !self.met.swap(true, Ordering::Relaxed)
        {
            *self.taste.lock() = Taste::of(name);
            self.minder.meet(name);
        }
    }

    async fn call(&self, line: &[u8], id: &RawValue, params: &CallParams<'_>) -> Onward {
        let Some(tool) = params.name.as_deref() else { return Onward::AsItIs };
        let hint = hint(params.arguments);
        let origin = CallOrigin {
            thread: params.meta.thread.clone(),
            root: params.meta.root.clone(),
            hint: hint.clone(),
        };
        let (bound, proof) = match self.minder.owner(&origin).await {
            CallOwner::Nobody => return Onward::AsItIs,
            CallOwner::Foreign => {
                return Onward::Client(answer_text(id, &annotate::failure(FOREIGN, params.meta.is_modern())));
            }
            CallOwner::Denied => return self.denied(id, params),
            CallOwner::Session(bound, proof) => (bound, proof),
        };
        let mut call = Call {
            run: None,
            id: call_id(params.meta.call().unwrap_or(id.get())),
            server: Some(self.server.clone()),
            tool: tool.to_owned(),
            channel: Channel::Mcp,
            compliance: None,
            proof,
        };
        match bound.desk.begins(&bound.session, &call).await {
            Ok(answer) if !answer.go => {
                let is_error = answer.level == Some(StopLevel::Terminated);
                let reader = self.reader(tool, params.meta.is_modern());
                let text = answer.text.unwrap_or_default();
                return Onward::Client(answer_text(id, &annotate::refusal(&text, is_error, reader)));
            }
            Ok(answer) if answer.uncertain => call.proof = CallerProof::Uncertain,
            Ok(_) => {}
            Err(error) if error.is_denied() => return self.denied(id, params),
            Err(error) => {
                self.minder.failed(&bound, &error).await;
                return Onward::AsItIs;
            }
        }
        let mut calls = self.calls.lock();
        if calls.len() < PENDING_MAX {
            calls.insert(
                id.get().to_owned(),
                PendingCall { bound, call, began: now(), modern: params.meta.is_modern() },
            );
        }
        match hint.and_then(|_| without_hint(line)) {
            Some(line) => Onward::Server(line),
            None => Onward::AsItIs,
        }
    }

    /// The daemon is there and says no: what it cannot supervise does not pass.
    fn denied(&self, id: &RawValue, params: &CallParams<'_>) -> Onward {
        self.minder.say(DENIED);
        Onward::Client(answer_text(id, &annotate::failure(DENIED, params.meta.is_modern())))
    }

    async fn heard_server(&self, line: &[u8]) -> ServerLine {
        let Some(message) = RpcEnvelope::read(line) else { return ServerLine::AS_IT_IS };
        let (None, Some(id)) = (message.method, message.id) else { return ServerLine::AS_IT_IS };
        let Ok(text) = std::str::from_utf8(line) else { return ServerLine::AS_IT_IS };
        if self.lists.lock().remove(id.get()) {
            return self.list(text).await;
        }
        let Some(pending) = self.calls.lock().remove(id.get()) else { return ServerLine::AS_IT_IS };
        self.answer(text, pending).await
    }

    /// For unknown clients the promises are taken out, while there is a session whose answers may carry words.
    async fn list(&self, line: &str) -> ServerLine {
        let promising = annotate::promising(line).unwrap_or_default();
        let known = *self.taste.lock() != Taste::Unknown;
        if known
            || promising.is_empty()
            || !matches!(self.minder.owner(&CallOrigin::default()).await, CallOwner::Session(..))
        {
            self.promised(promising);
            return ServerLine::AS_IT_IS;
        }
        self.promised(Vec::new());
        ServerLine { line: annotate::without_schemas(line), carries: None }
    }

    fn promised(&self, tools: Vec<String>) {
        let mut promising = self.promising.lock();
        let known = promising.get_or_insert_with(HashSet::new);
        if known.len() + tools.len() <= PROMISING_MAX {
            known.extend(tools);
        } else {
            *promising = None;
        }
    }

    fn reader(&self, tool: &str, modern: bool) -> AnswerReader {
        let promised = self.promising.lock().as_ref().is_none_or(|tools| tools.contains(tool));
        // A promise that stands must be kept, or an unknown client may refuse the whole answer.
        let taste = match *self.taste.lock() {
            Taste::Unknown if promised => Taste::Unlisted,
            taste @ (Taste::Keeps | Taste::Drops | Taste::Unknown | Taste::Unlisted) => taste,
        };
        AnswerReader { taste, promised, modern }
    }

    async fn answer(&self, line: &str, pending: PendingCall) -> ServerLine {
        let PendingCall { bound, call, began, modern } = pending;
        let returned = Returned {
            is_error: is_error(line),
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            bytes: u64::try_from(line.len()).unwrap_or(u64::MAX),
        };
        let reader = self.reader(&call.tool, modern);
        let lead = match bound.desk.ends(&bound.session, call, returned).await {
            Ok(lead) => lead,
            Err(error) => {
                self.minder.failed(&bound, &error).await;
                return ServerLine::AS_IT_IS;
            }
        };
        let words = Words { blocks: lead.blocks, withhold: lead.withhold, is_error: lead.is_error };
        let defused = annotate::defused(Bytes::copy_from_slice(line.as_bytes()));
        let text = std::str::from_utf8(&defused).unwrap_or(line);
        let changed = (text != line).then(|| text.trim_end().to_owned());
        if words.is_empty() {
            return ServerLine { line: changed, carries: None };
        }
        let Some(line) = annotate::annotate(text.trim_end(), &words, reader) else {
            let _ = bound.desk.unsent(&bound.session, lead.notes).await;
            return ServerLine { line: changed, carries: None };
        };
        ServerLine { line: Some(line), carries: Some((bound, lead.notes)) }
    }
}

const FOREIGN: &str = "This call was not carried out: its argument `_session_id` names a session that does not \
                       belong to this connection. Leave the argument out.";

const DENIED: &str = "This call was not carried out: the daemon refused the token in LANYARD_TOKEN for the session in \
                      LANYARD_SESSION. Start the agent again, or ask your operator.";

/// The line without the hint, which is not meant for the server; all else keeps its bytes.
fn without_hint(line: &[u8]) -> Option<String> {
    let message = std::str::from_utf8(line).ok()?.trim_end();
    let params = json::member(message, "params")?;
    let arguments = json::without(json::member(params, "arguments")?, envelope::HINT)?;
    let params = json::with(params, "arguments", &arguments)?;
    json::with(message, "params", &params)
}

fn is_error(line: &str) -> bool {
    match json::member(line, "result") {
        Some(result) => json::member(result, "isError") == Some("true"),
        None => true,
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a call took is told, nothing is decided by it")]
fn now() -> Instant {
    Instant::now()
}
