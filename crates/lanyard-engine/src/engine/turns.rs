//! Messages, each carried out once: whether one was sent before, what has become of it since, and what is kept so that
//! the next repeat finds it.

use lanyard_api::config::Switch;
use lanyard_core::session::{
    ChangeEvent, Command, Delivery, DrivenBy, Event, InboxChange, InboxCommand, InboxEvent, Intervention,
    Message, Opening, QueuedTurn, Refusal, TurnEvent, TurnResult, TurnStatus, decide, may_converse,
    message_hash,
};
use lanyard_core::{Actor, Outcome, Session, SessionId, Timestamp, TurnId};

use crate::engine::ask::unavailable;
use crate::engine::worker::Worker;
use crate::engine::{AskError, Key, Reply, Request};

/// How long the same words of the same sender count as a repeat, while the first are not over, when nobody gave them a
/// name of their own.
const TWIN_MS: u64 = 120_000;
/// Times one message can be sent again; a chain longer than that is a client in a loop.
const ATTEMPTS_MAX: usize = 64;

/// A message on its way to a session.
#[derive(Debug, Clone)]
pub struct Sending {
    pub message: Message,
    pub writer_epoch: Option<u64>,
    /// The client's own name for it, bound to who sent it and to its content.
    pub client: Option<Key>,
    /// The sessions that take turns from whoever sends it.
    pub intervention: Intervention,
    /// Somebody asks for what failed or was lost to be run once more.
    pub again: bool,
}

/// What a name stands for by now.
struct Known {
    outcome: Outcome,
    turn: TurnId,
    /// How often it was sent again.
    attempts: usize,
}

impl Worker {
    pub(super) fn send(
        &mut self,
        request: &Request,
        id: SessionId,
        sending: &Sending,
    ) -> Result<Reply, AskError> {
        let mut key = sending.client;
        let tells_repeats = self.features.dedupe == Switch::On;
        if tells_repeats
            && let Some(base) = sending.client
            && let Some(known) = self.known(base)?
        {
            let (turn, status) = (known.turn, self.status(id, known.turn)?);
            let repeats = sending.again && status.is_repeatable();
            match status {
                _ if repeats => key = Some(attempt(base, turn)),
                // Asked twice to run it again, it was run again once.
                _ if sending.again && known.attempts == 0 => {
                    return Err(AskError::Refused(Refusal::TurnNotRepeatable { turn, status }));
                }
                TurnStatus::Uncertain => return Err(AskError::Refused(Refusal::TurnUncertain { turn })),
                TurnStatus::Queued
                | TurnStatus::Running
                | TurnStatus::Completed
                | TurnStatus::Failed
                | TurnStatus::Refused
                | TurnStatus::Cancelled
                | TurnStatus::Interrupted
                | TurnStatus::Withdrawn
                | TurnStatus::Steered => return Ok(Reply { repeated: true, ..known.outcome.into() }),
            }
        }
        // The comments of a review are marked with their turn and cannot be sent again anyway.
        let review = sending.message.review.is_some();
        let unnamed = tells_repeats && !review && sending.client.is_none() && request.keys.is_empty();
        let now = self.draft.now;
        if unnamed && let Some(turn) = twin(self.resident(id)?, &sending.message, &request.actor, now) {
            let mut outcome = self.outcome(id, 0)?;
            outcome.turn = Some(turn);
            outcome.warnings = vec![format!(
                "these words came from you a moment ago and are turn {turn}; nothing new was begun. \
                 Give each message a client_turn_id to send the same words twice"
            )];
            return Ok(Reply { repeated: true, ..outcome.into() });
        }
        let reply = self.admit(request, id, sending)?;
        for key in request.keys.iter().chain(&key) {
            self.keep(*key, &reply.outcome);
        }
        Ok(reply)
    }

    fn admit(&mut self, request: &Request, id: SessionId, sending: &Sending) -> Result<Reply, AskError> {
        let message = Box::new(sending.message.clone());
        let (writer_epoch, change) = (sending.writer_epoch, InboxChange::Send(message));
        let inbox = InboxCommand { writer_epoch, change };
        if let Err(refusal) = may_converse(&self.lineage(id)?, sending.intervention) {
            return Err(self.refused(request, Some(id), inbox.change.name(), refusal));
        }
        if let Err(refusal) = sending.message.choice.check(request.actor.kind) {
            return Err(self.refused(request, Some(id), inbox.change.name(), refusal));
        }
        if sending.message.forced && !Self::may_force(request) {
            return Err(self.refused(request, Some(id), inbox.change.name(), Refusal::ForceForbidden));
        }
        self.words(request, id, &inbox)?;
        let command = Command::Inbox(inbox);
        let events = match decide(self.resident(id)?, &command, self.draft.now, &self.rules) {
            Ok(events) => events,
            Err(refusal) => return Err(self.refused(request, Some(id), command.name(), refusal)),
        };
        if self.engine.halting.is_on() {
            return Err(self.refused(request, Some(id), command.name(), Refusal::Halted));
        }
        if let Some(line) = self.over_budget(id, &events)? {
            return Err(self.refused(request, Some(id), command.name(), Refusal::BudgetSpent(line)));
        }
        let sent = sent(&events);
        let mut warnings = news(self.resident(id)?, &events);
        let written = self.write_all(id, events, request);
        let mut outcome = self.outcome(id, written)?;
        outcome.turn = Some(sending.message.turn);
        warnings.extend(self.held_back(id, sending.message.turn));
        outcome.warnings = warnings;
        Ok(Reply { sent, ..outcome.into() })
    }

    /// Why a message that waits may wait for long.
    fn held_back(&self, id: SessionId, turn: TurnId) -> Vec<String> {
        let Ok(session) = self.resident(id) else { return Vec::new() };
        let (Some(reason), Some(_)) = (session.inbox_paused, session.waiting(turn)) else {
            return Vec::new();
        };
        vec![format!("the inbox is paused ({}); it goes on with `lanyard inbox SESSION go`", reason.as_str())]
    }

    /// The newest attempt under a name. Each further one has a key made of the one before, so that asking twice for the
    /// same is one.
    fn known(&self, base: Key) -> Result<Option<Known>, AskError> {
        let mut known: Option<Known> = None;
        let mut key = base;
        for attempts in 0..=ATTEMPTS_MAX {
            let Some(kept) = self.kept_under(key)? else { return Ok(known) };
            let Some(turn) = kept.outcome.turn else { return Ok(known) };
            if kept.request != key.request {
                return Err(AskError::Refused(Refusal::ClientTurnConflict { turn }));
            }
            known = Some(Known { outcome: kept.outcome, turn, attempts });
            key = attempt(base, turn);
        }
        Err(AskError::Refused(Refusal::TooMany { field: "attempts", max: ATTEMPTS_MAX }))
    }

    /// What has become of a turn. One nothing is known of any more may have done anything.
    fn status(&mut self, id: SessionId, turn: TurnId) -> Result<TurnStatus, AskError> {
        let session = self.resident(id)?;
        if session.turn.as_ref().is_some_and(|running| running.id == turn) {
            return Ok(TurnStatus::Running);
        }
        if session.waiting(turn).is_some() {
            return Ok(TurnStatus::Queued);
        }
        let read = |worker: &Self| worker.store.turn(id, turn).map_err(|error| unavailable(&error));
        let mut row = read(self)?;
        // Its end is part of this round.
        if row.as_ref().is_none_or(|row| row.status.is_open()) {
            self.flush()?;
            row = read(self)?;
        }
        Ok(row.map_or(TurnStatus::Uncertain, |row| row.status))
    }
}

fn attempt(base: Key, turn: TurnId) -> Key {
    base.part(&format!("again {turn}"))
}

/// A turn of the same sender with the same words that is not over and not old.
fn twin(session: &Session, message: &Message, actor: &Actor, now: Timestamp) -> Option<TurnId> {
    let fresh = |since: Timestamp| now.millis_since(since) < TWIN_MS;
    let running = session.turn.as_ref().filter(|turn| {
        let same = turn.prompt_hash == message_hash(&message.prompt, &message.parts)
            && turn.choice == message.choice;
        same && turn.by.as_ref() == Some(actor) && fresh(turn.started_at) && !turn.cancel_requested
    });
    let waiting = session
        .inbox
        .iter()
        .filter(|waiting| waiting.choice == message.choice)
        .find(|waiting| same_words(waiting, message) && waiting.actor == *actor && fresh(waiting.at));
    running.map(|turn| turn.id).or(waiting.map(|waiting| waiting.turn))
}

fn same_words(waiting: &QueuedTurn, message: &Message) -> bool {
    waiting.prompt == message.prompt && waiting.parts == message.parts
}

/// What the sender should know of the conversation the turn is part of: that it is a new one although the session has
/// names from elsewhere, or that Lanyard takes it over.
fn news(session: &Session, events: &[Event]) -> Vec<String> {
    let opens =
        |event: &Event| matches!(event, Event::Turn(TurnEvent::Started { opening: Opening::New, .. }));
    let takes = |event: &Event| matches!(event, Event::Change(ChangeEvent::Driven { .. }));
    if events.iter().any(takes) {
        return vec![
            "Lanyard takes the conversation over from the agent's own host and resumes it by the agent's own id. \
             End the agent there, or both go on with it"
                .to_owned(),
        ];
    }
    let named = session.driver() == DrivenBy::Lanyard && session.native.is_none();
    match session.aliases.first() {
        Some(alias) if named && events.iter().any(opens) => vec![format!(
            "a new conversation begins: alias `{alias}` only names the session. To resume a conversation of the \
             agent's own, make the session with `lanyard new --native ID`"
        )],
        Some(_) | None => Vec::new(),
    }
}

fn sent(events: &[Event]) -> Option<TurnResult> {
    events.iter().find_map(|event| match event {
        Event::Turn(TurnEvent::Started { .. }) => Some(TurnResult::Accepted),
        Event::Inbox(InboxEvent::Queued { delivery, note, .. }) => Some(match delivery {
            Delivery::Steer if note.is_some() => TurnResult::Steered,
            Delivery::Interrupt => TurnResult::Interrupting,
            Delivery::Queue | Delivery::Steer | Delivery::Reject => TurnResult::Queued,
        }),
        Event::Turn(_)
        | Event::Inbox(_)
        | Event::Change(_)
        | Event::Context(_)
        | Event::Control(_)
        | Event::Transcript(_)
        | Event::Run(_)
        | Event::Gate(_)
        | Event::Writer(_)
        | Event::Review(_) => None,
    })
}
