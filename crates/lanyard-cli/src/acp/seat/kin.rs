//! Subagents of a session. They have logs of their own, and their questions must reach a person: here only their
//! questions are heard.

use std::collections::HashSet;
use std::sync::Arc;

use lanyard_api::types::{SessionDetail, TreeNode};
use lanyard_client::Route;
use lanyard_core::SessionId;
use lanyard_core::session::{ChangeEvent, Event, GateEvent, GateStatus, Lifecycle};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::super::follow::{Follow, FollowDepth, Told};
use super::super::host::Host;

/// Subagents that are followed at a time.
const FOLLOWED_MAX: usize = 32;
/// Subagents that are remembered as followed.
const KNOWN_MAX: usize = 4_096;
/// What they sent and was not read yet.
const NEWS_MAX: usize = 64;

/// What was heard of a subagent.
#[derive(Debug)]
pub(super) enum News {
    Born { child: SessionId, agent: Option<String> },
    Gate { session: SessionId, name: String, event: Box<GateEvent> },
}

pub(super) struct Kin {
    host: Arc<Host>,
    sender: mpsc::Sender<News>,
    known: HashSet<SessionId>,
    /// Dropped with this, which ends the following.
    tasks: JoinSet<()>,
}

impl Kin {
    pub(super) fn new(host: Arc<Host>) -> (Self, mpsc::Receiver<News>) {
        let (sender, news) = mpsc::channel(NEWS_MAX);
        (Self { host, sender, known: HashSet::new(), tasks: JoinSet::new() }, news)
    }

    /// Looks for subagents that are at work already.
    pub(super) fn find(&mut self, session: String) {
        let (host, sender) = (Arc::clone(&self.host), self.sender.clone());
        self.tasks.spawn(async move {
            let route = Route::to(&["sessions", &session, "tree"]);
            let Ok(tree) = host.get::<TreeNode>(&route).await else { return };
            let mut rest = tree.children;
            while let Some(node) = rest.pop() {
                let born = News::Born { child: node.session.id, agent: node.session.agent };
                if node.session.lifecycle != Lifecycle::Terminal && sender.send(born).await.is_err() {
                    return;
                }
                rest.extend(node.children);
            }
        });
    }

    pub(super) fn follow(&mut self, child: SessionId, agent: Option<&str>) {
        while self.tasks.try_join_next().is_some() {}
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        if self.tasks.len() < FOLLOWED_MAX && self.known.insert(child) {
            let name = agent.unwrap_or("subagent").to_owned();
            self.tasks.spawn(listen(Arc::clone(&self.host), child, name, self.sender.clone()));
        }
    }
}

/// Passes on what a subagent asks, until it has ended.
async fn listen(host: Arc<Host>, child: SessionId, name: String, sender: mpsc::Sender<News>) {
    let id = child.to_string();
    let Ok(detail) = host.get::<SessionDetail>(&Route::to(&["sessions", &id])).await else { return };
    if detail.view.lifecycle == Lifecycle::Terminal {
        return;
    }
    let gate_news =
        |event: GateEvent| News::Gate { session: child, name: name.clone(), event: Box::new(event) };
    for gate in detail.view.gates.into_iter().filter(|gate| gate.status == GateStatus::Open) {
        let event = GateEvent::Opened { gate: gate.id, run: gate.run, question: Box::new(gate.question) };
        if sender.send(gate_news(event)).await.is_err() {
            return;
        }
    }
    let mut follow = Follow::after(&host.context, &id, detail.view.last_seq, FollowDepth::Log);
    loop {
        let news = match follow.next().await {
            Told::Over(_) => return,
            Told::Preview { .. } => continue,
            Told::Event(envelope) => match envelope.event {
                Event::Gate(event) => gate_news(event),
                Event::Change(ChangeEvent::ChildLinked { child, agent }) => News::Born { child, agent },
                Event::Change(ChangeEvent::Ended { .. } | ChangeEvent::Deleted { .. }) => return,
                Event::Change(_)
                | Event::Turn(_)
                | Event::Inbox(_)
                | Event::Context(_)
                | Event::Control(_)
                | Event::Transcript(_)
                | Event::Run(_)
                | Event::Writer(_)
                | Event::Review(_) => continue,
            },
        };
        if sender.send(news).await.is_err() {
            return;
        }
    }
}
