//! Where every tool call of a session passes, from every relay: the MCP gateway, a wrapped server, an agent's hook.
//!
//! The hot path is one atomic flag. Nothing pending: the call goes at once, and is recorded afterwards without anybody
//! waiting for the disk. Something pending: the engine decides, durably.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lanyard_api::config::CallRecording;
use lanyard_core::session::{
    Call, CallerProof, Channel, IN_FLIGHT_AFTER_MS, Lead, Passage, Returned, Signal,
};
use lanyard_core::{Actor, ActorKind, Cause, NoteId, SessionId};
use lanyard_store::Durability;
use tokio::time::Instant;

use lanyard_base::failpoint;
use lanyard_base::live_config::LiveConfig;
use lanyard_engine::call_flags::{Flag, Flags, ToldCall};
use lanyard_engine::engine::{Ask, AskError, Engine, Request};

/// Calls of one session that hooks and wrapped servers have told the beginning of; beyond that the oldest are forgotten.
const TOLD_MAX: usize = 64;
/// How often calls under way are looked at.
const LOOK: Duration = Duration::from_millis(IN_FLIGHT_AFTER_MS);
/// What hooks call moments at which no call is under way.
const ASIDES: [&str; 4] = ["SessionStart", "UserPromptSubmit", "BeforeAgent", "PostToolBatch"];

/// What the record of a call survives where it is all there is to write.
const fn durability(record: CallRecording) -> Durability {
    match record {
        CallRecording::After | CallRecording::Written => Durability::Written,
        CallRecording::Synced => Durability::Synced,
    }
}

/// What was last said of a session's calls.
#[derive(Debug, Clone, Copy, Default)]
struct Reported {
    calls: u32,
    returned: usize,
    /// Looks at which calls were under way, without one between at which none was.
    looks: u32,
}

/// Tells the engine of sessions whose calls take a while: a call under way is a sign of life, and all there is of an
/// agent that its own host runs. Short calls cost nothing here. Runs until the daemon ends.
pub async fn tell_of_calls(engine: Engine, settings: LiveConfig) {
    let mut reported: HashMap<SessionId, Reported> = HashMap::new();
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let lost_after = Duration::from_millis(settings.rules().staleness.stale_after_ms);
        for (session, calls) in look(&engine.flags, &mut reported, lost_after) {
            let signal = Signal::CallsInFlight { calls };
            let cause = Some(Cause::Signal(signal.name().to_owned()));
            let ask = Ask::Tell { session, signals: vec![signal] };
            let request = Request { ask, actor: Actor::system("gateway"), cause, keys: Vec::new() };
            if let Err(error) = engine.ask(request).await {
                tracing::debug!(%session, %error, "calls under way could not be told of");
            }
        }
    }
}

/// The sessions whose number of calls under way is news, and how many there are.
fn look(
    flags: &Flags,
    reported: &mut HashMap<SessionId, Reported>,
    lost_after: Duration,
) -> Vec<(SessionId, u32)> {
    let held = flags.held.read();
    reported.retain(|session, _| held.contains_key(session));
    let mut news = Vec::new();
    for (session, flag) in &*held {
        let calls = u32::try_from(flag.in_flight(lost_after)).unwrap_or(u32::MAX);
        let returned = flag.returned.load(Ordering::Acquire);
        let Some(before) = reported.get(session).copied().or((calls > 0).then(Reported::default)) else {
            continue;
        };
        let looks = if calls > 0 { before.looks + 1 } else { 0 };
        let is_news = calls != before.calls || (calls > 0 && returned != before.returned);
        // The first look may have caught a short one.
        if calls > 0 && looks < 2 {
            reported.insert(*session, Reported { looks, ..before });
        } else if is_news {
            news.push((*session, calls));
            reported.insert(*session, Reported { calls, returned, looks });
        }
        if calls == 0 {
            reported.remove(session);
        }
    }
    news
}

/// The sign of a session in every block that carries words to its agent.
pub type NonceOf = Arc<dyn Fn(SessionId) -> String + Send + Sync>;

/// Makes the places where calls pass.
#[derive(Clone)]
pub struct Interceptor {
    engine: Engine,
    nonce_of: NonceOf,
    record: CallRecording,
}

impl std::fmt::Debug for Interceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interceptor").field("record", &self.record).finish_non_exhaustive()
    }
}

impl Interceptor {
    #[must_use]
    pub fn new(engine: Engine, nonce_of: NonceOf, record: CallRecording) -> Self {
        Self { engine, nonce_of, record }
    }

    /// The place where the calls of one session pass. Cheap; keep it where many calls come by.
    #[must_use]
    pub fn of(&self, session: SessionId) -> Bound {
        let flag = self.engine.flags.of(session);
        let nonce = (self.nonce_of)(session).into();
        Bound { session, flag, nonce, engine: self.engine.clone(), record: self.record }
    }
}

/// Where the calls of one session pass.
#[derive(Debug, Clone)]
pub struct Bound {
    session: SessionId,
    flag: Arc<Flag>,
    nonce: Arc<str>,
    engine: Engine,
    record: CallRecording,
}

impl Bound {
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The session's own sign, in every block that carries words to its agent.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Before the call is carried out. A session that is not there any more is an error of its own
    /// ([`AskError::Unknown`], [`AskError::Deleted`]).
    /// A call that may be a subagent's is marked so.
    pub async fn begins(&self, call: &mut Call) -> Result<Passage, AskError> {
        if !self.flag.up.load(Ordering::Acquire) {
            return Ok(Passage::Go);
        }
        let ask = Ask::CallBegins { session: self.session, call: Box::new(call.clone()) };
        failpoint::hit("before_passage");
        let reply = self.engine.ask(self.request(ask, call.channel)).await?;
        failpoint::hit("after_passage");
        if reply.uncertain {
            call.proof = CallerProof::Uncertain;
        }
        Ok(reply.passage.unwrap_or(Passage::Go))
    }

    /// The call is being carried out, as long as this is held. For relays in here, which cannot forget a call: a hook
    /// may never tell how one ended. An answer that may be a subagent's carries nothing.
    #[must_use]
    pub fn under_way(&self, call: &Call) -> UnderWay {
        let carries = !call.is_uncertain();
        if carries {
            self.flag.open.fetch_add(1, Ordering::AcqRel);
        }
        // Who does not wait for the log need not know who else does.
        let present = (self.record != CallRecording::After).then(|| Present::new(&self.flag));
        UnderWay { carried_out: carries.then(|| CarriedOut(self.flag.clone())), present }
    }

    /// A hook or a wrapped server tells that it carries a call out.
    pub fn told_begins(&self, call: &Call) {
        if call.is_uncertain() {
            return;
        }
        let mut told = self.flag.told.lock();
        told.retain(|held| held.id != call.id);
        if told.len() >= TOLD_MAX {
            told.pop_front();
        }
        told.push_back(ToldCall { id: call.id.clone(), channel: call.channel, began: Instant::now() });
    }

    /// It has come back. A hook that tells of a prompt or of the end of all calls tells that none of its calls is left:
    /// one that a person denied has no end of its own.
    pub fn told_ends(&self, call: &Call) {
        let all = call.channel == Channel::Hook && ASIDES.contains(&call.tool.as_str());
        let mut told = self.flag.told.lock();
        told.retain(|held| held.id != call.id && !(all && held.channel == Channel::Hook));
        self.flag.returned.fetch_add(1, Ordering::AcqRel);
    }

    /// Before its answer goes out, with what is left of its way where that is known. A relay lets the answer pass when
    /// this fails; that nobody could write it down is counted.
    pub async fn ends(
        &self,
        call: Call,
        returned: Returned,
        present: Option<Present>,
    ) -> Result<Lead, AskError> {
        let (session, channel, call) = (self.session, call.channel, Box::new(call));
        let pending = self.flag.up.load(Ordering::Acquire);
        // A hook that names its caller says when a subagent works and when it is done: the order of these must hold.
        let in_order = channel == Channel::Hook && call.proof == CallerProof::Named;
        let lead = if self.record == CallRecording::After && !pending && !in_order {
            let ask = Ask::CallPassed { session, call, returned };
            self.engine.ask_later(self.request(ask, channel)).await.map(|()| Lead::default())
        } else {
            let durability = durability(self.record);
            let ask = Ask::CallEnds { session, call, returned, durability };
            let request = self.request(ask, channel);
            failpoint::hit("before_lead");
            // With others on their way it is better to be written with them.
            let alone = !pending && present.as_ref().is_some_and(Present::is_alone);
            let reply =
                if alone { self.engine.ask_here(request).await } else { self.engine.ask(request).await };
            failpoint::hit("after_lead");
            reply.map(|reply| reply.lead)
        };
        if lead.as_ref().is_err_and(|error| !matches!(error, AskError::Unknown(_) | AskError::Deleted(_))) {
            self.engine.unrecorded(1);
        }
        lead
    }

    /// The answer that carried these did not get out: they go again, marked as a repeat.
    pub async fn unsent(&self, notes: &[NoteId]) {
        if notes.is_empty() {
            return;
        }
        let signal = Signal::AnswerLost { notes: notes.to_vec() };
        let cause = Some(Cause::Signal(signal.name().to_owned()));
        let ask = Ask::Tell { session: self.session, signals: vec![signal] };
        let request = Request { ask, actor: Actor::system("gateway"), cause, keys: Vec::new() };
        if let Err(error) = self.engine.ask(request).await {
            tracing::warn!(session = %self.session, %error, "an answer that did not get out could not be recorded");
        }
    }

    fn request(&self, ask: Ask, channel: Channel) -> Request {
        let actor = Actor { kind: ActorKind::Agent, name: self.session.to_string() };
        Request { ask, actor, cause: Some(Cause::Signal(channel.as_str().to_owned())), keys: Vec::new() }
    }
}

/// A call on its way.
#[derive(Debug)]
pub struct UnderWay {
    carried_out: Option<CarriedOut>,
    present: Option<Present>,
}

impl UnderWay {
    /// Its answer is decided: what comes now waits for another. It is on its way until what is left is dropped.
    #[must_use]
    pub fn answered(self) -> Option<Present> {
        let Self { carried_out, present } = self;
        drop(carried_out);
        present
    }
}

/// A call that is being carried out: its answer can carry what is to be said.
#[derive(Debug)]
struct CarriedOut(Arc<Flag>);

impl Drop for CarriedOut {
    fn drop(&mut self) {
        self.0.returned.fetch_add(1, Ordering::AcqRel);
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A call whose answer waits for the log, and is not yet in it.
#[derive(Debug)]
pub struct Present(Arc<Flag>);

impl Present {
    fn new(flag: &Arc<Flag>) -> Self {
        flag.present.fetch_add(1, Ordering::Relaxed);
        Self(flag.clone())
    }

    fn is_alone(&self) -> bool {
        self.0.present.load(Ordering::Relaxed) == 1
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.present.fetch_sub(1, Ordering::Relaxed);
    }
}
