//! Where a server's messages go: an answer to whoever asked, progress to the call it is of, a question to the client
//! whose call is at work, and everything else to the client's own stream.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use lanyard_api::annotate::json;

use super::link::Link;
use super::process::Process;
use crate::mcp::envelope::{Said, id_key};
use crate::mcp::rpc;

/// The code of an error that says nobody can be asked.
const NOBODY: i64 = -32000;
/// Questions of one server that may wait for an answer.
const ASKED_MAX: usize = 1_024;

/// Takes one message of the server. Never waits.
pub(super) fn dispatch(process: &Arc<Process>, line: &Bytes) {
    let Some(said) = Said::read(line) else {
        tracing::debug!(bytes = line.len(), "an MCP server said something that is no message");
        return;
    };
    match (&said.method, said.id) {
        (None, Some(id)) => {
            let key = id_key(id.get());
            process.answered(&key, line.clone());
        }
        (None, None) => tracing::debug!("an MCP server said something that is no message"),
        (Some(_), Some(id)) => question(process, id.get(), line),
        (Some(method), None) => {
            let params = said.params.map_or("{}", |params| params.get());
            notice(process, method, params, line);
        }
    }
}

/// The server asks: sampling, elicitation, roots.
fn question(process: &Arc<Process>, id: &str, line: &Bytes) {
    let Some(client) = at_work(process) else {
        let text = rpc::error_text(id, NOBODY, "no client is there to be asked");
        return process.try_send(text.into());
    };
    let mut asked = process.asked.lock();
    if asked.len() >= ASKED_MAX {
        drop(asked);
        let text = rpc::error_text(id, NOBODY, "too many questions wait for an answer");
        return process.try_send(text.into());
    }
    asked.insert(id_key(id), Arc::downgrade(&client));
    drop(asked);
    client.ask(process, id, line.clone());
}

fn notice(process: &Arc<Process>, method: &str, params: &str, line: &Bytes) {
    match method {
        "notifications/progress" => progress(process, params, line),
        "notifications/cancelled" => {
            // It takes back a question of its own.
            let key = json::member(params, "requestId").map(id_key).unwrap_or_default();
            let asked = process.asked.lock().remove(&key);
            if let Some(link) = asked.and_then(|link| link.upgrade()) {
                link.tell(process, line.clone());
            }
        }
        "notifications/resources/updated" => {
            let uri = json::member(params, "uri").unwrap_or_default();
            for link in links(process).iter().filter(|link| !process.is_shared || link.has_subscribed(uri)) {
                link.tell_apart(process, line.clone());
            }
        }
        method if method.ends_with("/list_changed") => {
            for link in links(process) {
                link.tell_apart(process, line.clone());
            }
        }
        _ => {
            if let Some(link) = alone_at_work(process) {
                link.tell(process, line.clone());
            }
        }
    }
}

fn progress(process: &Arc<Process>, params: &str, line: &Bytes) {
    let Some(token) = json::member(params, "progressToken") else { return };
    let pending = process.pending.lock();
    // Where the server was given an id of Lanyard's own, that is its token too.
    if let Some(waiting) = pending.get(token).filter(|waiting| waiting.id.is_some()) {
        let line = waiting.token.as_ref().and_then(|own| with_token(line, own));
        if let Some(line) = line {
            let _ = waiting.others.try_send(line);
        }
        return;
    }
    let waiting = pending.values().find(|waiting| waiting.token.as_deref() == Some(token));
    if let Some(waiting) = waiting.filter(|waiting| waiting.id.is_none()) {
        let _ = waiting.others.try_send(line.clone());
    }
}

pub(super) fn links(process: &Process) -> Vec<Arc<Link>> {
    let mut links = process.links.lock();
    links.retain(|link| link.strong_count() > 0);
    links.iter().filter_map(Weak::upgrade).collect()
}

/// The client whose call is the newest at work; the only one there is where none is.
fn at_work(process: &Process) -> Option<Arc<Link>> {
    let pending = process.pending.lock();
    let mut waiting: Vec<_> = pending.values().collect();
    waiting.sort_by_key(|waiting| std::cmp::Reverse(waiting.order));
    if let Some(link) = waiting.iter().find_map(|waiting| waiting.link.upgrade()) {
        return Some(link);
    }
    drop(pending);
    only(process)
}

/// The only client this can be meant for. Words that might be another's are not passed on.
fn alone_at_work(process: &Process) -> Option<Arc<Link>> {
    if let Some(link) = only(process) {
        return Some(link);
    }
    let pending = process.pending.lock();
    let mut at_work = pending.values().filter_map(|waiting| waiting.link.upgrade());
    let first = at_work.next()?;
    at_work.all(|other| Arc::ptr_eq(&first, &other)).then_some(first)
}

fn only(process: &Process) -> Option<Arc<Link>> {
    match links(process).as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// The message with another id.
pub(super) fn with_id(line: &Bytes, id: &str) -> Option<Bytes> {
    let text = std::str::from_utf8(line).ok()?;
    json::with(text, "id", id).map(Bytes::from)
}

fn with_token(line: &Bytes, token: &str) -> Option<Bytes> {
    let text = std::str::from_utf8(line).ok()?;
    let params = json::with(json::member(text, "params")?, "progressToken", token)?;
    json::with(text, "params", &params).map(Bytes::from)
}
