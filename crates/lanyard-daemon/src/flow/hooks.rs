//! Programs that are told what happens to a flow. Told at least once, in order, one at a time; how far it came is in the
//! flow's log. What a hook does or fails to do changes nothing about the flow.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use bytes::Bytes;
use lanyard_core::flow::{Flow, FlowEnvelope, FlowEvent, Hook};
use lanyard_core::text::cut;
use tokio::io::AsyncWriteExt;
use tokio::sync::{Notify, oneshot};

use crate::flow::Tools;
use crate::outward::Address;

/// How long a hook may take.
const HOOK_MAX: Duration = Duration::from_secs(30);
/// Events told at a time.
const EVENTS_MAX: usize = 50;
/// Characters of what went wrong that are kept.
const WHY_CHARS: usize = 300;

/// How far hooks were told.
pub(super) struct Hooks {
    /// Including what concerned nobody.
    to: u64,
    seq: u64,
    telling: Option<oneshot::Receiver<Told>>,
    none: bool,
}

#[derive(Debug, Default)]
struct Told {
    to: u64,
    /// A hook was run.
    any: bool,
    failed: Vec<String>,
}

impl Hooks {
    pub(super) fn new(flow: &Flow) -> Self {
        Self { to: flow.hooked, seq: flow.seq, telling: None, none: flow.settings.hooks.is_empty() }
    }

    /// Whether all that happened was told.
    pub(super) fn is_done(&self) -> bool {
        self.none || (self.telling.is_none() && self.to >= self.seq)
    }

    /// Goes on telling. Answers what is to be written about it.
    pub(super) fn go_on(&mut self, flow: &Flow, tools: &Arc<Tools>, poke: &Arc<Notify>) -> Option<FlowEvent> {
        self.seq = flow.seq;
        if self.none {
            return None;
        }
        let mut event = None;
        match self.telling.as_mut().map(oneshot::Receiver::try_recv) {
            Some(Ok(told)) => {
                self.telling = None;
                self.to = self.to.max(told.to);
                event = told.any.then_some(FlowEvent::Hooked { to: told.to, failed: told.failed });
            }
            Some(Err(oneshot::error::TryRecvError::Closed)) => self.telling = None,
            Some(Err(oneshot::error::TryRecvError::Empty)) | None => {}
        }
        if self.telling.is_none() && self.to < flow.seq {
            let (tools, id, after, hooks) = (tools.clone(), flow.id, self.to, flow.settings.hooks.clone());
            let (answer, telling) = oneshot::channel();
            self.telling = Some(telling);
            let poke = poke.clone();
            tokio::spawn(async move {
                let read = tools.on_disk(move |store| Ok(store.flow_events(id, after, EVENTS_MAX)?)).await;
                let _ = answer.send(tell(&read.unwrap_or_default(), &hooks, after).await);
                poke.notify_one();
            });
        }
        event
    }
}

async fn tell(events: &[FlowEnvelope], hooks: &[Hook], after: u64) -> Told {
    let mut told = Told { to: after, ..Told::default() };
    for envelope in events {
        told.to = envelope.seq;
        let name = envelope.event.name();
        let wanted = |hook: &&Hook| {
            name != "flow.hooked" && (hook.on.is_empty() || hook.on.iter().any(|on| on == name))
        };
        for hook in hooks.iter().filter(wanted) {
            told.any = true;
            let run = tokio::time::timeout(HOOK_MAX, run(hook, envelope)).await;
            let result = run.unwrap_or_else(|_| Err("it took too long".to_owned()));
            if let Err(why) = result {
                tracing::warn!(flow = %envelope.flow, event = name, why, "a hook failed");
                told.failed.push(cut(&format!("{name}: {why}"), WHY_CHARS).0.to_owned());
            }
        }
    }
    told
}

async fn run(hook: &Hook, envelope: &FlowEnvelope) -> Result<(), String> {
    let body = serde_json::to_vec(envelope).map_err(|error| error.to_string())?;
    if let Some(url) = &hook.url {
        return post(url, body.into()).await;
    }
    let Some((program, arguments)) = hook.command.as_ref().and_then(|command| command.split_first()) else {
        return Ok(());
    };
    let mut command = tokio::process::Command::new(program);
    lanyard_agents::runs::withhold(command.as_std_mut());
    let mut child = command
        .args(arguments)
        .env("LANYARD_FLOW", envelope.flow.to_string())
        .env("LANYARD_EVENT", envelope.event.name())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read is fine.
        let _ = stdin.write_all(&body).await;
        let _ = stdin.shutdown().await;
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{program} ended with {status}")) }
}

async fn post(url: &str, body: Bytes) -> Result<(), String> {
    let address = Address::new(url, None)?;
    let json = HeaderValue::from_static("application/json");
    let status = address.post(HeaderMap::from_iter([(CONTENT_TYPE, json)]), body, HOOK_MAX).await?;
    if status.is_success() { Ok(()) } else { Err(format!("{url} answered {status}")) }
}
