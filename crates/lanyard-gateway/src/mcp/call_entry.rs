//! A tool call on its way in: whose it is, whether it is carried out, and what of it the server gets to see.

use std::sync::Arc;

use bytes::Bytes;
use lanyard_api::annotate::{self, json};
use lanyard_core::session::{Call, CallerProof, Channel, Compliance, Passage, StopLevel};
use lanyard_core::{Address, SessionId};
use tokio::time::Instant;

use crate::mcp::RelayContext;
use crate::mcp::envelope::{Envelope, HINT, Thread};
use crate::mcp::mcp_session::{Known, McpSession};
use crate::mcp::work::{Passing, Work, said};
use lanyard_engine::engine::AskError;

/// Characters of a tool's name and of a call's id that are kept.
const NAME_CHARS_MAX: usize = 256;

/// What becomes of a call.
#[derive(Debug)]
pub(super) enum CallEntry {
    /// It goes on with this body, where it was changed.
    Goes(Option<Bytes>),
    /// It is answered with this result and not carried out.
    Answered(String),
}

/// Looks at a call before it is carried out. `server` is its name in the config.
pub(super) async fn enter(
    context: &Arc<RelayContext>,
    server: &str,
    envelope: &Envelope<'_>,
    body: &Bytes,
    compliance: Option<Compliance>,
    work: &mut Work,
) -> CallEntry {
    let hint = envelope.hint();
    let (session, proof) = match whose(context, work, envelope, hint.as_deref()).await {
        Ok(Some(found)) => found,
        // A call of no known session passes; without a name in it, byte for byte.
        Ok(None) => return CallEntry::Goes(unnamed(hint.as_deref(), body, envelope)),
        Err(Mismatch(named)) => {
            let what = format!(
                "session_mismatch: this address belongs to another session than `{named}`. \
                 Leave `{HINT}` out; the address says who you are."
            );
            return CallEntry::Answered(annotate::failure(&what, work.modern));
        }
    };
    let tool = envelope.tool().unwrap_or_default();
    let person = match &work.mcp_session {
        Some(mcp_session) if mcp_session.session() == session => mcp_session.person.clone(),
        Some(_) | None => context.gateway.sessions.person(&context.interceptor, session),
    };
    let mut call = Call {
        id: short(envelope.id().trim_matches('"')),
        server: Some(server.to_owned()),
        tool: short(&tool),
        channel: Channel::Mcp,
        compliance,
        proof,
        run: work.proof.run,
    };
    let stop = match person.bound.begins(&mut call).await {
        // Whatever the session does by now, this run does nothing for it.
        Ok(Passage::Go) if work.proof.spent => {
            let what = "run_ended: the run this token was made for has ended. End your work.";
            return CallEntry::Answered(annotate::failure(what, work.modern));
        }
        Ok(Passage::Go) => {
            person.remember(None);
            let (person, under_way) = (person.clone(), person.bound.under_way(&call));
            work.passing = Some(Passing { person, call, began: Instant::now(), under_way, ticket: None });
            None
        }
        Ok(Passage::Refused(stop)) => {
            person.remember(Some(&stop));
            Some(stop)
        }
        Err(AskError::Unknown(_) | AskError::Deleted(_)) => {
            return CallEntry::Goes(unnamed(hint.as_deref(), body, envelope));
        }
        Err(error) => {
            // A sick journal must not hold up work, and must not let a stopped agent go on either.
            said(&error, "a tool call goes on without being looked at");
            person.last_refusal()
        }
    };
    if let Some(stop) = stop {
        let is_error = stop.level == StopLevel::Terminated;
        return CallEntry::Answered(annotate::refusal(&stop.text(session), is_error, work.reader(&tool)));
    }
    CallEntry::Goes(unnamed(hint.as_deref(), body, envelope))
}

/// The body without the session's name, where it has one: the server never sees it, known or not.
fn unnamed(hint: Option<&str>, body: &Bytes, envelope: &Envelope<'_>) -> Option<Bytes> {
    hint.and_then(|_| stripped(body, envelope))
}

fn short(text: &str) -> String {
    // So many bytes hold no more characters.
    if text.len() <= NAME_CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(NAME_CHARS_MAX).collect()
}

/// The body without the session's name among the arguments; all else keeps its bytes.
fn stripped(body: &Bytes, envelope: &Envelope<'_>) -> Option<Bytes> {
    let text = std::str::from_utf8(body).ok()?;
    let arguments = envelope.arguments()?;
    // The arguments lie inside the body.
    let start = (arguments.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let without = json::without(arguments, HINT)?;
    json::replaced(text, start..start + arguments.len(), &without).map(Bytes::from)
}

/// A session was named that this address does not belong to.
struct Mismatch(String);

/// The session a call belongs to, and what says so. The address says it; a name in the call may only narrow it to one of
/// the family below.
async fn whose(
    context: &Arc<RelayContext>,
    work: &Work,
    envelope: &Envelope<'_>,
    hint: Option<&str>,
) -> Result<Option<(SessionId, CallerProof)>, Mismatch> {
    let Some(mcp_session) = &work.mcp_session else {
        let Some(hint) = hint else { return Ok(None) };
        return Ok(Box::pin(known(context, hint)).await.map(|session| (session, CallerProof::Named)));
    };
    let own = mcp_session.session();
    // A run that was stopped speaks for nobody else: its call is refused as its own session's.
    if work.proof.spent {
        return Ok(Some((own, CallerProof::Address)));
    }
    if let Some(hint) = hint {
        if hint == own.to_string() {
            return Ok(Some((own, CallerProof::Named)));
        }
        return match Box::pin(relative(context, mcp_session, hint)).await {
            Some(session) => Ok(Some((session, CallerProof::Named))),
            None => Err(Mismatch(hint.to_owned())),
        };
    }
    // The agent's own word for a subagent. One that Lanyard has not seen yet is certainly not its parent.
    Ok(Some(match envelope.thread() {
        None => (own, CallerProof::Address),
        Some(Thread::Main) => (own, CallerProof::Named),
        Some(Thread::Sub(thread)) => match Box::pin(relative(context, mcp_session, &thread)).await {
            Some(session) => (session, CallerProof::Named),
            None => (own, CallerProof::Uncertain),
        },
    }))
}

/// The session of this name, if it is the MCP session's own or one of the family below it.
async fn relative(
    context: &Arc<RelayContext>,
    mcp_session: &Arc<McpSession>,
    name: &str,
) -> Option<SessionId> {
    match mcp_session.hint(name) {
        Known::As(session) => return Some(session),
        Known::Nobody => return None,
        Known::NotYet => {}
    }
    let (own, store, wanted) = (mcp_session.session(), context.store.clone(), name.to_owned());
    let found = tokio::task::spawn_blocking(move || {
        let id: Option<SessionId> = wanted.parse().ok();
        let ids = match id {
            Some(id) => vec![id],
            None => store
                .find(&Address::of(wanted))?
                .iter()
                .filter(|it| !it.deleted)
                .map(|it| it.session)
                .collect(),
        };
        let lineages = store.lineages(&ids)?;
        let below = ids.iter().zip(&lineages);
        let mut below = below.filter(|(id, line)| **id == own || line.ancestors.contains(&own));
        Ok::<_, lanyard_store::StoreError>(below.next().map(|(id, _)| *id))
    });
    let who = found.await.ok().and_then(Result::ok)?;
    mcp_session.learn_hint(name, who);
    who
}

/// A session that is there, by its id or alias.
async fn known(context: &Arc<RelayContext>, name: &str) -> Option<SessionId> {
    let id: Option<SessionId> = name.parse().ok();
    if let Some(id) = id
        && context.gateway.sessions.known(id).is_some()
    {
        return Some(id);
    }
    let (store, wanted) = (context.store.clone(), name.to_owned());
    let found = tokio::task::spawn_blocking(move || {
        if let Some(id) = id {
            let loaded = store.load(id)?.filter(|loaded| !loaded.session.deleted);
            return Ok::<_, lanyard_store::StoreError>(loaded.map(|_| id));
        }
        let found = store.find(&Address::of(wanted))?;
        let mut living = found.iter().filter(|found| !found.deleted);
        // A name that more than one session has names none.
        let only = living.next().filter(|_| living.next().is_none());
        Ok(only.map(|found| found.session))
    });
    found.await.ok().and_then(Result::ok).flatten()
}
