//! Agents: what is configured, how each is spoken to, and who looks after a run.
//!
//! The engine decides and writes; what follows from that for an agent is a wish put on the desk. A runner per run
//! carries it out and tells the engine what came of it. Agents run under shims of their own and outlive all of this.

mod acp;
pub mod addresses;
mod again;
mod calls;
mod check;
mod claude;
mod codex;
mod command;
mod confine;
mod desk;
mod driver;
pub mod engine;
mod exhausted;
mod given;
pub mod handover;
mod judge;
mod kept_images;
mod limits;
pub mod offers;
mod on_terminal;
mod opencode;
mod pen;
#[cfg(test)]
mod played;
mod recover;
pub mod roster;
mod runner;
mod shared;
mod tuning;
#[cfg(test)]
mod tuning_tests;
pub mod wanted;
mod words;

use lanyard_store::{Attachments, Store};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lanyard_core::SessionId;
use lanyard_core::session::Effect;
use lanyard_git::snapshot::CheckpointStore;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;

use crate::runs::Runs;
use crate::terminal::LiveTerminals;
use addresses::Addresses;
use desk::Desk;
use engine::AgentEngine;
use exhausted::ExhaustedAccounts;
use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;
use offers::KnownOffers;
use shared::Shared;

/// Wishes that may wait at the desk. The engine never waits for it: one that finds no place is refused.
const WISHES_MAX: usize = 16_384;

/// How long a compaction waits for the runner of the session's agent. A runner answers at once unless it is held up.
pub const COMPACT_WAIT: Duration = Duration::from_secs(5);

/// Something that is to be done for a session. Each may come twice, after a crash.
#[derive(Debug, Clone)]
pub(crate) enum AgentWish {
    Effect {
        session: SessionId,
        effect: Effect,
    },
    /// Have the agent compact its context; answers whether it can.
    Compact {
        session: SessionId,
        key: String,
        answer: mpsc::Sender<bool>,
    },
}

impl AgentWish {
    /// A wish of the engine's.
    const fn of(session: SessionId, effect: Effect) -> Self {
        Self::Effect { session, effect }
    }

    const fn session(&self) -> SessionId {
        match self {
            Self::Effect { session, .. } | Self::Compact { session, .. } => *session,
        }
    }

    /// Whether it ends a turn or the run, so that nothing the turn needs is worth waiting for.
    const fn ends(&self) -> bool {
        match self {
            Self::Effect {
                effect: Effect::CancelWork { .. } | Effect::StopWork { .. } | Effect::EndRun { .. },
                ..
            } => true,
            Self::Effect {
                effect:
                    Effect::RunTurn { .. }
                    | Effect::AnswerGate { .. }
                    | Effect::Steer { .. }
                    | Effect::Revive { .. }
                    | Effect::Choose { .. }
                    | Effect::TellParent,
                ..
            }
            | Self::Compact { .. } => false,
        }
    }
}

/// What became of asking an agent to compact its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionAnswer {
    Begun,
    /// The agent cannot do it when asked, or not now.
    NotOffered,
    /// No agent is running.
    NotRunning,
    /// The agent's runner did not answer in time; it does not pass the request on later.
    Unanswered,
}

/// Where the engine leaves what follows from its events.
#[derive(Debug, Clone)]
pub struct Wishes {
    terminals: LiveTerminals,
    sender: mpsc::Sender<AgentWish>,
}

impl Wishes {
    /// The programs on terminals that run now.
    #[must_use]
    pub fn terminals(&self) -> &LiveTerminals {
        &self.terminals
    }

    /// Asks the session's agent to compact its context, and waits for its runner as long as this.
    pub async fn compact(&self, session: SessionId, key: String, wait: Duration) -> CompactionAnswer {
        let (answer, mut answers) = mpsc::channel(1);
        let wish = AgentWish::Compact { session, key, answer };
        match self.sender.try_send(wish) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return CompactionAnswer::Unanswered,
            Err(TrySendError::Closed(_)) => return CompactionAnswer::NotRunning,
        }
        match tokio::time::timeout(wait, answers.recv()).await {
            Ok(Some(true)) => CompactionAnswer::Begun,
            Ok(Some(false)) => CompactionAnswer::NotOffered,
            Ok(None) => CompactionAnswer::NotRunning,
            Err(_) => CompactionAnswer::Unanswered,
        }
    }

    /// False when too many wishes wait.
    #[must_use]
    pub fn put(&self, session: SessionId, effect: Effect) -> bool {
        // The engine sees to that itself.
        effect == Effect::TellParent || self.sender.try_send(AgentWish::of(session, effect)).is_ok()
    }
}

/// The desk before it is opened: wishes may be put already.
pub struct Agents {
    settings: LiveConfig,
    terminals: LiveTerminals,
    wishes: mpsc::Receiver<AgentWish>,
}

impl std::fmt::Debug for Agents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agents").finish_non_exhaustive()
    }
}

/// Sets the desk up with the agents of the config.
#[must_use]
pub fn agents(settings: &LiveConfig, terminals: LiveTerminals) -> (Agents, Wishes) {
    let (sender, wishes) = mpsc::channel(WISHES_MAX);
    let agents = Agents { settings: settings.clone(), terminals: terminals.clone(), wishes };
    (agents, Wishes { terminals, sender })
}

impl Agents {
    /// Opens the desk: takes over what an earlier daemon left, then works. Answers which sessions have a live agent.
    pub async fn open(
        self,
        (engine, store, clock, runs): (Arc<dyn AgentEngine>, Arc<dyn Store>, Arc<Clock>, Runs),
        addresses: Addresses,
        (checkpoints, attachments): (&CheckpointStore, &Arc<Attachments>),
        offers: KnownOffers,
    ) -> (HashSet<SessionId>, JoinHandle<()>) {
        let (settings, terminals, mirrors) = (self.settings, self.terminals, Mutex::new(HashMap::new()));
        let (checkpoints, attachments) = (checkpoints.clone(), attachments.clone());
        let exhausted = ExhaustedAccounts::open(runs.beside(exhausted::FILE));
        let shared = Shared {
            engine,
            store,
            clock,
            runs,
            settings,
            terminals,
            mirrors,
            addresses,
            checkpoints,
            attachments,
            exhausted,
            offers,
        };
        let mut desk = Desk::new(Arc::new(shared), self.wishes);
        let adopted = Box::pin(recover::recover(&mut desk)).await;
        (adopted, tokio::spawn(desk.run()))
    }
}

/// The program that is this daemon, for the supervisors and the built-in agent. Its path is read once, at boot: an upgrade
/// replaces the file under a running daemon, and the system then names the old one `lanyard (deleted)`.
#[must_use]
pub fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| std::env::current_exe().unwrap_or_else(|_| PathBuf::from("lanyard"))).clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::TerminalArchive;

    /// FND-K13: an agent whose runner is silent is not waited for beyond the bound, and the runner sees that the caller has
    /// left.
    #[tokio::test]
    async fn fnd_k13_a_compaction_that_nobody_answers_ends_with_its_bound() {
        let (mut silent, wishes) = agents(
            &LiveConfig::new(lanyard_api::config::Config::default(), "lanyard".into()),
            LiveTerminals::new(TerminalArchive::in_data("data".as_ref())),
        );
        let session = SessionId::from_u128(7);
        let asked = || wishes.compact(session, "k".to_owned(), Duration::ZERO);
        assert_eq!(asked().await, CompactionAnswer::Unanswered);
        let Some(AgentWish::Compact { answer, .. }) = silent.wishes.recv().await else { panic!("no order") };
        assert!(answer.is_closed());
        drop(silent);
        assert_eq!(asked().await, CompactionAnswer::NotRunning);
    }
}
