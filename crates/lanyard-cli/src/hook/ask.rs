//! One call of a hook: read what happened, find the session, ask, answer.

use std::io::{Read, Write};
use std::time::Duration;

use lanyard_api::home::Home;
use lanyard_api::types::NewSubagent;
use lanyard_client::{ClientError, DaemonAddress, GivenSession, inside};
use lanyard_core::NoteId;
use lanyard_core::session::{Call, Channel};

use super::answer::{Verdict, answer};
use super::input::{Happened, Harness, Moment};
use crate::relay::{Desk, Newcomer, is_marked};

/// All of it may take this long; then the agent goes on without an answer. Shorter than what harnesses wait.
pub(super) const HOOK_WAIT: Duration = Duration::from_secs(8);
/// More input than this is not read: it holds what a tool answered, which may be large.
const INPUT_BYTES_MAX: u64 = 64 << 20;
/// Lanyard's own tools.
const OWN_SERVER: &str = "lanyard";

/// Reads stdin, asks, and prints the answer. Never fails: an agent does not wait for what goes wrong here.
pub(crate) async fn run(harness: Harness, home: Option<Home>) {
    let _ = tokio::time::timeout(HOOK_WAIT, work(harness, home)).await;
}

async fn work(harness: Harness, home: Option<Home>) {
    let Ok(Some(happened)) = read(harness).await else { return };
    let Some(Said { at, verdict, notes }) = ask(&happened, home.as_ref()).await else { return };
    let printed = match answer(&happened, verdict) {
        Some(answer) => print(&answer.to_string()),
        None => Ok(()),
    };
    if printed.is_err() {
        let _ = at.desk.unsent(&at.session, notes).await;
    }
}

/// In a thread: a harness that never closes stdin must not keep the hook for ever.
fn read(harness: Harness) -> tokio::sync::oneshot::Receiver<Option<Happened>> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = std::io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut text);
        let happened = read.ok().and_then(|_| std::str::from_utf8(&text).ok().map(str::to_owned));
        let _ = sender.send(happened.and_then(|text| Happened::read(harness, &text)));
    });
    receiver
}

fn print(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

/// A session and where to ask about it.
struct At {
    desk: Desk,
    session: String,
}

struct Said {
    at: At,
    verdict: Verdict,
    notes: Vec<NoteId>,
}

async fn ask(happened: &Happened, home: Option<&Home>) -> Option<Said> {
    let at = if inside().is_some() {
        within(happened, &GivenSession::from_environment()?).await.ok()??
    } else {
        find(happened, home).await.ok()??
    };
    if passes_elsewhere(happened, &at).await {
        return None;
    }
    if happened.moment == Moment::AfterAll {
        let text = at.desk.over(&at.session).await.ok()??;
        return Some(Said { at, verdict: Verdict::Over { text }, notes: Vec::new() });
    }
    let call = Call {
        run: None,
        id: happened.call.clone(),
        server: happened.servers.first().cloned(),
        tool: happened.tool.clone(),
        channel: Channel::Hook,
        compliance: None,
        proof: happened.proof(),
    };
    if happened.moment != Moment::AfterTool {
        let answer = at.desk.begins(&at.session, &call).await.ok()?;
        if !answer.go {
            let verdict = Verdict::Refused { text: answer.text.unwrap_or_default(), level: answer.level };
            return Some(Said { at, verdict, notes: Vec::new() });
        }
        if happened.moment == Moment::BeforeTool {
            return None;
        }
    }
    let lead = at.desk.ends(&at.session, call, happened.returned).await.ok()?;
    let verdict = Verdict::Words { blocks: lead.blocks, withhold: lead.withhold, level: lead.level };
    Some(Said { at, verdict, notes: lead.notes })
}

/// The session it happened in, inside of a session that Lanyard runs: that one, or its subagent's. Its own token is all
/// there is.
async fn within(happened: &Happened, given: &GivenSession) -> Result<Option<At>, ClientError> {
    let Some(desk) = given.address().ok().map(Desk::at) else { return Ok(None) };
    let mut session = given.session.clone();
    if let Some(sub) = &happened.sub {
        let agent = sub.role.clone().unwrap_or_else(|| happened.harness.as_str().to_owned());
        let workspace = happened.workspace.clone();
        let sub = NewSubagent { alias: sub.alias.clone(), agent: Some(agent), workspace };
        // A family that may not grow any deeper refuses it: then it counts as its parent.
        session = desk.enlist_below(&given.session, &sub).await.unwrap_or(session);
    }
    Ok(Some(At { desk, session }))
}

/// The session it happened in, seen by its operator. One that Lanyard does not know yet is made known.
async fn find(happened: &Happened, home: Option<&Home>) -> Result<Option<At>, ClientError> {
    let mut newcomer = Newcomer {
        agent: happened.harness.as_str().to_owned(),
        workspace: happened.workspace.clone(),
        alias: Some(happened.native.clone()),
        parent: None,
        resumable: true,
    };
    let Some(home) = home else { return Ok(None) };
    let desk = Desk::at(DaemonAddress::of(home));
    let Some(sub) = &happened.sub else {
        let session = desk.enlist(&newcomer).await?;
        return Ok(Some(At { desk, session }));
    };
    newcomer.alias = Some(sub.of.clone());
    let parent = desk.enlist(&newcomer).await?;
    let session = below(&desk, newcomer, happened, &parent).await.unwrap_or(parent);
    Ok(Some(At { desk, session }))
}

/// The session of a subagent. A family that may not grow any deeper refuses it.
async fn below(
    desk: &Desk,
    newcomer: Newcomer,
    happened: &Happened,
    parent: &str,
) -> Result<String, ClientError> {
    let Some(sub) = &happened.sub else { return Ok(parent.to_owned()) };
    let agent = sub.role.clone().unwrap_or(newcomer.agent);
    let (alias, parent, resumable) = (Some(sub.alias.clone()), Some(parent.to_owned()), false);
    desk.enlist(&Newcomer { agent, alias, parent, resumable, ..newcomer }).await
}

/// Whether the call is asked about where its MCP server is reached, so that it must not count twice. A server knows
/// nothing of subagents, so theirs are asked about here in any case: it is another session.
async fn passes_elsewhere(happened: &Happened, at: &At) -> bool {
    if happened.servers.is_empty() {
        return false;
    }
    if happened.servers.iter().any(|server| server == OWN_SERVER) {
        return true;
    }
    if happened.sub.is_some() {
        return false;
    }
    if happened.servers.iter().any(|server| is_marked(&at.session, server)) {
        return true;
    }
    let listed = at.desk.gateway_servers(&at.session).await.unwrap_or_default();
    happened.servers.iter().any(|server| listed.contains(server))
}
