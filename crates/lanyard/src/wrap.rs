//! `lanyard mcp wrap`: an MCP server on stdio with Lanyard in between. Lines pass byte for byte in both directions; only
//! a tool call is asked about, before it is carried out and before its answer goes out.
//!
//! Without a daemon it is the bare command (S0-27). It knows nothing of what the tools do.

mod annotate;
mod envelope;
mod lines;
mod minder;
mod process;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use lanyard_core::NoteId;
use lanyard_core::session::{Call, Channel, Returned, StopLevel};
use lanyard_daemon::home::Home;
use serde_json::value::RawValue;

use self::annotate::{Annotated, Manner};
use self::envelope::{Envelope, Params, hint};
use self::minder::{Bound, Minder, Origin, Owner, Setting};
use crate::failure::Failure;
use crate::relay::{Given, Pairs, call_id};

/// Requests under way that are kept in mind. Further ones pass without being asked about.
const PENDING_MAX: usize = 4_096;
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
    let setting = Setting {
        home: options.home,
        given: if options.session.is_some() { None } else { Given::from_environment() },
        session: options.session,
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

/// With stderr closed there is nobody to tell.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[derive(Debug)]
struct Wrap {
    server: String,
    minder: Arc<Minder>,
    /// Calls under way that somebody was asked about, by the id the client gave.
    calls: Mutex<HashMap<String, Pending>>,
    /// Questions for the list of tools.
    lists: Mutex<HashSet<String>>,
    manner: Mutex<Manner>,
    met: AtomicBool,
    /// The promise of structured content was taken out of the list of tools.
    unpromised: AtomicBool,
}

#[derive(Debug)]
struct Pending {
    bound: Bound,
    call: Call,
    began: Instant,
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
struct Outgoing {
    /// Nothing: as it is.
    line: Option<String>,
    /// Guidance in it, to be reported if it does not get out.
    carries: Option<(Bound, Vec<NoteId>)>,
}

impl Outgoing {
    const AS_IT_IS: Self = Self { line: None, carries: None };
}

impl Wrap {
    fn new(setting: Setting) -> Self {
        Self {
            server: setting.server.clone(),
            minder: Minder::new(setting),
            calls: Mutex::default(),
            lists: Mutex::default(),
            manner: Mutex::new(Manner::Unpromise),
            met: AtomicBool::new(false),
            unpromised: AtomicBool::new(false),
        }
    }

    async fn heard_client(&self, line: &[u8]) -> Onward {
        let Some(message) = Envelope::read(line) else { return Onward::AsItIs };
        let (Some(method), Some(id)) = (message.method.as_deref(), message.id) else { return Onward::AsItIs };
        match method {
            "initialize" | "server/discover" => self.meet(&message.params()),
            "tools/list" => {
                self.meet(&message.params());
                let mut lists = held(&self.lists);
                if lists.len() < PENDING_MAX {
                    lists.insert(id.get().to_owned());
                }
            }
            "tools/call" => {
                let params: Params<'_> = message.params();
                self.meet(&params);
                return self.call(line, id, &params).await;
            }
            _ => {}
        }
        Onward::AsItIs
    }

    fn meet(&self, params: &Params<'_>) {
        if let Some(name) = params.client()
            && !self.met.swap(true, Ordering::Relaxed)
        {
            *held(&self.manner) = Manner::of(name);
            self.minder.meet(name);
        }
    }

    async fn call(&self, line: &[u8], id: &RawValue, params: &Params<'_>) -> Onward {
        let Some(tool) = params.name.as_deref() else { return Onward::AsItIs };
        let hint = hint(params.arguments);
        let origin =
            Origin { thread: params.meta.thread.clone(), root: params.meta.root.clone(), hint: hint.clone() };
        let bound = match self.minder.owner(&origin).await {
            Owner::Nobody => return Onward::AsItIs,
            Owner::Foreign => return Onward::Client(annotate::refusal(id, FOREIGN, true)),
            Owner::Session(bound) => bound,
        };
        let call = Call {
            id: call_id(params.meta.call().unwrap_or(id.get())),
            server: Some(self.server.clone()),
            tool: tool.to_owned(),
            channel: Channel::Mcp,
            compliance: None,
        };
        match bound.desk.begins(&bound.session, &call).await {
            Ok(answer) if !answer.go => {
                let is_error = answer.level == Some(StopLevel::Terminated);
                return Onward::Client(annotate::refusal(id, &answer.text.unwrap_or_default(), is_error));
            }
            Ok(_) => {}
            Err(error) => {
                self.minder.failed(&bound, &error).await;
                return Onward::AsItIs;
            }
        }
        let mut calls = held(&self.calls);
        if calls.len() < PENDING_MAX {
            calls.insert(id.get().to_owned(), Pending { bound, call, began: now() });
        }
        match hint.and_then(|_| without_hint(line)) {
            Some(line) => Onward::Server(line),
            None => Onward::AsItIs,
        }
    }

    async fn heard_server(&self, line: &[u8]) -> Outgoing {
        let Some(message) = Envelope::read(line) else { return Outgoing::AS_IT_IS };
        let (None, Some(id)) = (message.method, message.id) else { return Outgoing::AS_IT_IS };
        let Ok(text) = std::str::from_utf8(line) else { return Outgoing::AS_IT_IS };
        if held(&self.lists).remove(id.get()) {
            return self.list(text).await;
        }
        let Some(pending) = held(&self.calls).remove(id.get()) else { return Outgoing::AS_IT_IS };
        self.answer(text, pending).await
    }

    /// For clients nobody knows, while there is a session whose answers may be annotated.
    async fn list(&self, line: &str) -> Outgoing {
        if *held(&self.manner) != Manner::Unpromise {
            return Outgoing::AS_IT_IS;
        }
        if !matches!(self.minder.owner(&Origin::default()).await, Owner::Session(_)) {
            return Outgoing::AS_IT_IS;
        }
        let line = annotate::unpromised(line);
        if line.is_some() {
            self.unpromised.store(true, Ordering::Relaxed);
        }
        Outgoing { line, carries: None }
    }

    async fn answer(&self, line: &str, pending: Pending) -> Outgoing {
        let Pending { bound, call, began } = pending;
        let returned = Returned {
            is_error: is_error(line),
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            bytes: u64::try_from(line.len()).unwrap_or(u64::MAX),
        };
        let lead = match bound.desk.ends(&bound.session, call, returned).await {
            Ok(lead) => lead,
            Err(error) => {
                self.minder.failed(&bound, &error).await;
                return Outgoing::AS_IT_IS;
            }
        };
        if lead.blocks.is_empty() && !lead.withhold && !annotate::is_suspect(line) {
            return Outgoing::AS_IT_IS;
        }
        // A promise that stands must be kept, or the client refuses the whole answer.
        let drop_structured = match *held(&self.manner) {
            Manner::Drop => true,
            Manner::Keep => false,
            Manner::Unpromise => self.unpromised.load(Ordering::Relaxed),
        };
        match annotate::answer(line, &lead, drop_structured) {
            Annotated::Changed(line) => Outgoing { line: Some(line), carries: Some((bound, lead.notes)) },
            Annotated::Untouched | Annotated::NoPlace => {
                let _ = bound.desk.unsent(&bound.session, lead.notes).await;
                Outgoing::AS_IT_IS
            }
        }
    }
}

const FOREIGN: &str = "This call was not carried out: its argument `_session_id` names a session that does not \
                       belong to this connection. Leave the argument out.";

/// The line without the hint, which is not meant for the server.
fn without_hint(line: &[u8]) -> Option<String> {
    let mut message = Pairs::read(std::str::from_utf8(line).ok()?)?;
    let mut params = Pairs::read(message.get("params")?.get())?;
    let mut arguments = Pairs::read(params.get("arguments")?.get())?;
    arguments.remove(envelope::HINT)?;
    params.set("arguments", arguments.raw()?);
    message.set("params", params.raw()?);
    Some(message.raw()?.get().to_owned())
}

fn is_error(line: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Answer {
        result: Option<Result>,
    }
    #[derive(serde::Deserialize)]
    struct Result {
        #[serde(rename = "isError", default)]
        is_error: bool,
    }
    let answer: Option<Answer> = serde_json::from_str(line).ok();
    answer.and_then(|answer| answer.result).is_none_or(|result| result.is_error)
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "how long a call took is told, nothing is decided by it")]
fn now() -> Instant {
    Instant::now()
}
