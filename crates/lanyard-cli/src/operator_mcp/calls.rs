//! Tool calls of an assistant, as requests to the daemon.

use std::time::Duration;

use lanyard_api::types::{
    AgentList, EventsPage, GateAnswer, GateList, NameMatches, NewGuidance, NewStop, NewTurn, SessionPage,
};
use lanyard_client::names::{A_SESSION, NameBook};
use lanyard_client::{Route, random_key};
use lanyard_core::Outcome;
use lanyard_core::session::{Delivery, NewSession};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::ServedRole;
use super::arguments::{
    AnswerApproval, FindSession, GuideSession, ListSessions, NoArguments, OfSession, ReadTranscript,
    SendMessage, StartSession, StopSession,
};
use super::own_token;
use super::tools::OperatorTool;
use super::transcript_page;
use crate::chosen_agent::chosen;
use crate::client::Client;
use crate::context::Context;
use crate::failure::{Exit, Failure};

const LIST_DEFAULT: u16 = 20;
const LIST_MAX: u16 = 50;
const EVENTS_DEFAULT: u16 = 50;
const EVENTS_MAX: u16 = 200;
/// Candidates of a name.
const CANDIDATES: usize = 10;
/// The source of sessions that an assistant starts.
const SOURCE: &str = "mcp";
/// The pause before a call looks for the daemon again.
const PAUSE: Duration = Duration::from_millis(200);

/// Fields of a session that say how it is; the rest is for those who ask for the whole record.
const OF_ROW: [&str; 13] = [
    "id",
    "title",
    "agent",
    "workspace",
    "plan",
    "parent",
    "state",
    "operator_state",
    "status",
    "attention",
    "unread",
    "created_at",
    "last_activity_at",
];

/// Where calls are carried out, for one assistant.
pub(super) struct OperatorDesk {
    context: Context,
    role: ServedRole,
    /// The name that was given on the command line, else the assistant's own.
    client: Mutex<Option<String>>,
    named: bool,
    /// The context with the assistant's own token, once it is there.
    own: OnceCell<Context>,
}

impl OperatorDesk {
    pub(super) fn new(context: &Context, role: ServedRole, client: Option<String>) -> Self {
        // One key cannot stand for all that an assistant will ask.
        let context = Context { key: None, ..context.clone() };
        Self { context, role, named: client.is_some(), client: Mutex::new(client), own: OnceCell::new() }
    }

    pub(super) const fn role(&self) -> ServedRole {
        self.role
    }

    /// The assistant says what it is called.
    pub(super) fn greeted(&self, name: Option<&str>) {
        if !self.named {
            *self.client.lock() = name.map(str::to_owned);
        }
    }

    /// The result of a call: what it asked for, or why not.
    pub(super) async fn carry_out(&self, tool: OperatorTool, arguments: Value) -> Value {
        match self.attempts(tool, arguments).await {
            Ok(answer) => result(&answer, false),
            Err(Failure::Told { problem, .. }) => {
                let told = json!({ "code": problem.code, "error": problem.title, "advice": problem.advice });
                result(&told, true)
            }
            Err(Failure::Shown | Failure::Ended(_) | Failure::ClosedPipe) => {
                result(&json!({ "code": "failed", "error": "the call failed" }), true)
            }
        }
    }

    /// Waits for a daemon that is away, and asks again under the same key: a change is made once.
    async fn attempts(&self, tool: OperatorTool, arguments: Value) -> Result<Value, Failure> {
        let key = random_key("mcp")?;
        let mut waited = Duration::ZERO;
        loop {
            let failure = match self.attempt(tool, &arguments, &key).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let away = matches!(&failure, Failure::Told { exit: Exit::Unreachable, .. });
            if !away || waited >= self.context.daemon_wait {
                return Err(self.explained(failure));
            }
            tokio::time::sleep(PAUSE).await;
            waited += PAUSE;
        }
    }

    async fn attempt(&self, tool: OperatorTool, arguments: &Value, key: &str) -> Result<Value, Failure> {
        let own = self.own.get_or_try_init(|| self.with_own_token()).await?;
        // Names are looked up by each call: `last` is another session after a while.
        let context = Context { key: Some(key.to_owned()), names: NameBook::default(), ..own.clone() };
        let mut client = context.client().await?;
        let client = &mut client;
        match tool {
            OperatorTool::ListSessions => list(client, read(arguments)?).await,
            OperatorTool::FindSession => find(client, read(arguments)?).await,
            OperatorTool::GetSession => get(client, read(arguments)?).await,
            OperatorTool::ReadTranscript => transcript(client, read(arguments)?).await,
            OperatorTool::ListApprovals => {
                read::<NoArguments>(arguments)?;
                let gates: GateList = client.get(&Route::to(&["gates"])).await?;
                Ok(json!(gates))
            }
            OperatorTool::ListAgents => {
                read::<NoArguments>(arguments)?;
                let agents: AgentList = client.get(&Route::to(&["agents"])).await?;
                Ok(json!(agents))
            }
            OperatorTool::StartSession => start(client, read(arguments)?).await,
            OperatorTool::SendMessage => send(client, read(arguments)?).await,
            OperatorTool::GuideSession => {
                let GuideSession { session, text } = read(arguments)?;
                let route = Route::to(&["sessions", &session, "guidance"]);
                client.post::<Value>(&route, &NewGuidance { text }).await
            }
            OperatorTool::StopSession => {
                let StopSession { session, reason, scope, now } = read(arguments)?;
                let stop = NewStop { reason: Some(reason), scope, now };
                client.post::<Value>(&Route::to(&["sessions", &session, "stop"]), &stop).await
            }
            OperatorTool::AnswerApproval => {
                let AnswerApproval { session, approval, option, message } = read(arguments)?;
                let route = Route::to(&["sessions", &session, "gates", &approval]);
                client.post::<Value>(&route, &GateAnswer { option, message }).await
            }
        }
    }

    async fn with_own_token(&self) -> Result<Context, Failure> {
        let file = own_token::file(&self.context, &self.token_name(), self.role).await?;
        Ok(Context { token: Some(file), ..self.context.clone() })
    }

    fn token_name(&self) -> String {
        own_token::token_name(self.client.lock().as_deref().unwrap_or_default())
    }

    /// A token that was revoked is not made again unasked.
    fn explained(&self, failure: Failure) -> Failure {
        let revoked = matches!(&failure, Failure::Told { problem, .. } if problem.status == 401);
        match self.own.get().and_then(|own| own.token.as_ref()).filter(|_| revoked) {
            Some(file) => failure.advising(format!(
                "the token `{}` was revoked; to allow this assistant again, remove {} and call again",
                self.token_name(),
                file.display()
            )),
            None => failure,
        }
    }
}

async fn list(client: &mut Client<'_>, asked: ListSessions) -> Result<Value, Failure> {
    let limit = within("limit", asked.limit.unwrap_or(LIST_DEFAULT), LIST_MAX)?;
    let route = Route::to(&["sessions"])
        .with("text", asked.text)
        .with("workspace", asked.workspace)
        .with("agent", asked.agent)
        .with("status", asked.status)
        .with("live", asked.live)
        .with("attention", asked.attention)
        .with("limit", Some(limit))
        .with("cursor", asked.cursor);
    let page: SessionPage = client.get(&route).await?;
    let rows = page.sessions.iter().map(|row| brief(&json!(row)));
    Ok(json!({ "sessions": rows.collect::<Vec<_>>(), "next": page.next }))
}

async fn find(client: &mut Client<'_>, asked: FindSession) -> Result<Value, Failure> {
    let kinds: Vec<&str> = A_SESSION.iter().map(|kind| kind.as_str()).collect();
    let route = Route::to(&["ids"])
        .with("name", Some(asked.name))
        .with("kind", Some(kinds.join(",")))
        .with("limit", Some(CANDIDATES));
    let found: NameMatches = client.get(&route).await?;
    Ok(json!({ "exact": found.matched.is_some() && found.items.len() == 1, "candidates": found.items }))
}

async fn get(client: &mut Client<'_>, asked: OfSession) -> Result<Value, Failure> {
    client.get::<Value>(&Route::to(&["sessions", &asked.session])).await
}

async fn transcript(client: &mut Client<'_>, asked: ReadTranscript) -> Result<Value, Failure> {
    let limit = within("limit", asked.limit.unwrap_or(EVENTS_DEFAULT), EVENTS_MAX)?;
    let route = Route::to(&["sessions", &asked.session, "events"]);
    let route = match asked.after {
        Some(after) => route.with("after", Some(after)).with("limit", Some(limit)),
        None => route.with("tail", Some(limit)),
    };
    let page: EventsPage = client.get(&route).await?;
    Ok(transcript_page::page(&page.events, page.head))
}

async fn start(client: &mut Client<'_>, asked: StartSession) -> Result<Value, Failure> {
    let agents: AgentList = client.get(&Route::to(&["agents"])).await?;
    let agent = chosen(&agents, asked.agent.as_deref())?;
    let new = NewSession {
        title: asked.title,
        agent: Some(agent),
        source: Some(SOURCE.to_owned()),
        workspace: Some(asked.workspace),
        aliases: asked.name.into_iter().collect(),
        ..NewSession::default()
    };
    let made: Outcome = client.post_part("session", &Route::to(&["sessions"]), &new).await?;
    let id = made.session.to_string();
    let turn = NewTurn { prompt: asked.prompt, ..NewTurn::default() };
    client.post_part("turn", &Route::to(&["sessions", &id, "turns"]), &turn).await
}

async fn send(client: &mut Client<'_>, asked: SendMessage) -> Result<Value, Failure> {
    let delivery = Some(asked.delivery.unwrap_or(Delivery::Queue));
    let turn = NewTurn { prompt: asked.prompt, delivery, ..NewTurn::default() };
    client.post(&Route::to(&["sessions", &asked.session, "turns"]), &turn).await
}

/// The fields of a row that say how a session is.
fn brief(row: &Value) -> Value {
    let held = OF_ROW.iter().map(|name| (*name, &row[*name])).filter(|(_, value)| !value.is_null());
    Value::Object(held.map(|(name, value)| (name.to_owned(), value.clone())).collect())
}

fn within(name: &str, value: u16, max: u16) -> Result<u16, Failure> {
    if (1..=max).contains(&value) {
        return Ok(value);
    }
    Err(Failure::local("arguments_bad", format!("`{name}` is {value}"), format!("use 1 to {max}")))
}

/// The arguments of a call; absent ones are none.
fn read<T: DeserializeOwned>(arguments: &Value) -> Result<T, Failure> {
    let given = if arguments.is_null() { json!({}) } else { arguments.clone() };
    serde_json::from_value(given).map_err(|error| {
        let advice = "compare them with the tool's inputSchema; nothing was done";
        Failure::local("arguments_bad", format!("the arguments do not fit: {error}"), advice)
    })
}

fn result(answer: &Value, is_error: bool) -> Value {
    let text = serde_json::to_string_pretty(answer).unwrap_or_default();
    json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
}
