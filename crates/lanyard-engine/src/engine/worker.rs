//! A round of the engine: take what is ready, stage it, commit, answer.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lanyard_api::config::Features;
use lanyard_core::session::next_due;
use lanyard_core::{Rules, SessionId, Timestamp};
use lanyard_store::Store;

use crate::continuity::ContinuityCounter;
use crate::engine::calls::Deadlines;
use crate::engine::draft::Draft;
use crate::engine::residents::Residents;
use crate::engine::sharing::Sharing;
use crate::engine::spending::SpendingBook;
use crate::engine::{
    AgentEffects, Ask, AskError, Engine, Input, LoadResult, ParentNotice, Parts, Reply, TurnEnded, Work,
};
use crate::hub::Hub;
use crate::presence::Seen;
use lanyard_base::clock::Clock;
use lanyard_base::error_chain;
use lanyard_base::live_config::LiveConfig;

/// Inputs of one round. Bounds how long the first of them waits for the others.
const ROUND_MAX: usize = 256;
/// Requests that may wait for one session to be loaded.
const WAITING_MAX: usize = 1_024;
/// How long a failed journal is left alone before it is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

pub(super) struct Worker {
    pub(super) store: Arc<dyn Store>,
    pub(super) hub: Arc<Hub>,
    pub(super) clock: Arc<Clock>,
    pub(super) settings: LiveConfig,
    /// The rules of this round.
    pub(super) rules: Rules,
    pub(super) continuity: Arc<ContinuityCounter>,
    pub(super) features: Features,
    pub(super) turn_ended: Option<TurnEnded>,
    /// What a session may remember that is nobody's child and names nothing else.
    pub(super) memory: lanyard_core::memory::MemoryPolicy,
    pub(super) agents: AgentEffects,
    pub(super) seen: Seen,
    /// Since when connections can have been seen.
    pub(super) started: Timestamp,
    pub(super) runtime: tokio::runtime::Handle,
    pub(super) parent_notice: ParentNotice,
    pub(super) engine: Engine,
    pub(super) residents: Residents,
    /// Requests for sessions that are being loaded.
    waiting: HashMap<SessionId, Vec<Work>>,
    /// Signals that follow from what was committed, staged before anything else.
    pub(super) own: VecDeque<Work>,
    pub(super) draft: Draft,
    /// When stops rise and guidance expires.
    pub(super) deadlines: Deadlines,
    pub(super) sharing: Sharing,
    pub(super) spending: SpendingBook,
    /// This incarnation of the daemon: what another one sent may have been lost with it.
    pub(super) incarnation: String,
    /// Set while the journal cannot be written: when it was last tried, in the boot clock's milliseconds.
    pub(super) failed: Option<std::time::Instant>,
}

impl Worker {
    pub(super) fn new(parts: Parts, engine: Engine) -> Self {
        let draft = Draft::new(parts.clock.now());
        let incarnation = incarnation();
        Self {
            store: parts.store,
            hub: parts.hub,
            clock: parts.clock,
            rules: parts.settings.rules(),
            features: parts.settings.features(),
            settings: parts.settings,
            continuity: parts.continuity,
            turn_ended: parts.turn_ended,
            memory: parts.memory,
            agents: parts.agents,
            seen: parts.seen,
            started: draft.now,
            runtime: parts.runtime,
            parent_notice: parts.parent_notice,
            engine,
            residents: Residents::default(),
            waiting: HashMap::new(),
            own: VecDeque::new(),
            draft,
            deadlines: Deadlines::default(),
            sharing: Sharing::default(),
            spending: SpendingBook::default(),
            incarnation,
            failed: None,
        }
    }

    /// One round: what is ready, what follows from it, and everyone's answer. Answers whether to go on.
    pub(super) fn round(&mut self, first: Input, mut next: impl FnMut() -> Option<Input>) -> bool {
        self.draft.now = self.clock.now();
        (self.rules, self.features) = (self.settings.rules(), self.settings.features());
        let mut open = self.stage(first);
        for _ in 1..ROUND_MAX {
            match next() {
                Some(input) if open => open = self.stage(input),
                Some(_) | None => break,
            }
        }
        self.commit();
        while !self.own.is_empty() {
            self.draft.now = self.clock.now();
            while let Some(work) = self.own.pop_front() {
                self.take(work);
            }
            self.commit();
        }
        self.residents.evict();
        open
    }

    /// Answers whether to go on.
    fn stage(&mut self, input: Input) -> bool {
        match input {
            Input::Ask(work) => self.take(*work),
            Input::Behind(requests) => {
                for request in requests {
                    self.take(Work { request, answer: None });
                }
            }
            Input::Loaded { session, result } => self.arrived(session, result),
            Input::Write(write) => self.write_records(*write),
            Input::Tick => {
                // Papers and memory have writers of their own; getting the journal going again is the engine's.
                if self.failed.is_none()
                    && let Some(why) = self.store.failure()
                {
                    self.fail(why);
                }
                self.try_recover();
                // What is due stays due until it can be written.
                if self.failed.is_none() {
                    self.look_at_deadlines();
                }
            }
            Input::Stop => return false,
        }
        true
    }

    /// Carries a request out, or lets it wait for a session it needs.
    fn take(&mut self, work: Work) {
        if let Err(error) = self.writable() {
            return self.answer(work, Err(error));
        }
        if let Some(session) = self.missing(&work.request.ask) {
            return self.wait_for(session, work);
        }
        let result = self.carry_out(&work.request);
        self.note_decision(&work.request, &result);
        self.answer(work, result);
    }

    /// Refuses while the journal cannot be written.
    pub(super) fn writable(&mut self) -> Result<(), AskError> {
        if self.failed.is_some() {
            self.try_recover();
        }
        match self.failed {
            Some(_) => Err(AskError::Unavailable(self.engine.stats.storage_error().unwrap_or_default())),
            None => Ok(()),
        }
    }

    /// Everyone is answered after the commit, in the order they were staged.
    pub(super) fn answer(&mut self, work: Work, result: Result<Reply, AskError>) {
        let call = matches!(work.request.ask, Ask::CallPassed { .. });
        match (work.answer, result) {
            (Some(answer), result) => self.draft.answers.push((answer, result)),
            (None, Ok(_)) => self.draft.behind += u64::from(call),
            // Who is gone has nothing to be written about.
            (None, Err(AskError::Unknown(_) | AskError::Deleted(_))) => {}
            (None, Err(_)) => self.engine.unrecorded(u64::from(call)),
        }
    }

    fn wait_for(&mut self, session: SessionId, work: Work) {
        let queue = self.waiting.entry(session).or_default();
        if queue.len() >= WAITING_MAX {
            return self.answer(work, Err(AskError::Overloaded));
        }
        queue.push(work);
        if queue.len() == 1 {
            let (store, engine) = (self.store.clone(), self.engine.clone());
            self.runtime.spawn_blocking(move || {
                let result = store.load(session).map(|loaded| loaded.map(Box::new));
                let result = result.map_err(|error| error_chain(&error));
                engine.loaded(session, result);
            });
        }
    }

    fn arrived(&mut self, session: SessionId, result: LoadResult) {
        let works = self.waiting.remove(&session).unwrap_or_default();
        let error = match result {
            Err(error) => Some(AskError::Unavailable(error)),
            Ok(None) => Some(match self.store.tombstone(session) {
                Ok(Some(_)) => AskError::Deleted(session),
                Ok(None) | Err(_) => AskError::Unknown(session),
            }),
            Ok(Some(loaded)) => match loaded.damage.first().cloned() {
                Some(damage) => Some(AskError::Damaged { session, damage }),
                None if loaded.session.deleted => Some(AskError::Deleted(session)),
                None => {
                    // What was due while nobody looked, or nobody was there, is due now.
                    self.deadlines.set(session, next_due(&loaded.session, &self.rules));
                    self.residents.insert(loaded.session, loaded.lineage);
                    None
                }
            },
        };
        for work in works {
            match &error {
                Some(error) => self.answer(work, Err(error.clone())),
                None => self.take(work),
            }
        }
    }

    /// A failed journal is tried again, but not more often than makes sense.
    #[expect(clippy::disallowed_methods, reason = "a pause between tries, not a time anyone records")]
    fn try_recover(&mut self) {
        let Some(since) = self.failed else { return };
        if since.elapsed() < RETRY_AFTER {
            return;
        }
        // What is held here may be ahead of what is on disk.
        self.residents.forget_all();
        self.spending.clear();
        match self.store.recover() {
            Ok(()) => {
                self.failed = None;
                self.engine.stats.set_storage_error(None);
                if let Err(error) = self.continuity.reload(&*self.store) {
                    tracing::warn!(%error, "the counts could not be read again");
                }
                tracing::warn!("the journal can be written again");
            }
            Err(error) => {
                self.failed = Some(std::time::Instant::now());
                self.engine.stats.set_storage_error(Some(error_chain(&error)));
            }
        }
    }
}

/// A name no other incarnation has. Never from a seed: a daemon that is started again with the same one is another.
#[must_use]
pub fn incarnation() -> String {
    let mut bits = [0; 8];
    // Without randomness there are no tokens either, and the daemon would not have come this far.
    let _ = getrandom::fill(&mut bits);
    format!("{:016x}", u64::from_be_bytes(bits))
}
