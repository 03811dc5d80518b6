//! Decisions about messages: whether one starts a turn, waits, goes into the running one or takes its place; and what
//! becomes of those that wait when a turn ends. Pure.

use crate::id::{NoteId, TurnId};
use crate::policy::{Limits, Rules};
use crate::session::decide::{
    alive, begin, exists, log_has_room, optional_name, resting_opening, start_turn, takes_turns, turn_memory,
    unhindered,
};
use crate::session::driven::{DrivenBy, takes_over};
use crate::session::event::{ChangeEvent, ControlEvent, Event, InboxEvent, Opening, Settled, TurnEvent};
use crate::session::guidance::{NoteKind, NoteStatus};
use crate::session::inbox::{
    Delivery, InboxChange, InboxCommand, Message, PauseReason, Promotion, QueuedTurn,
};
use crate::session::part::{PromptPart, message_hash};
use crate::session::record::Session;
use crate::session::refusal::Refusal;
use crate::session::review::{self, ReviewEvent};
use crate::session::sayable::sayable;
use crate::time::Timestamp;

/// Why a turn was cancelled that a message takes the place of.
const IN_ITS_PLACE: &str = "a message takes its place";
/// Why messages are withdrawn with their session.
pub(super) const SESSION_ENDED: &str = "the session ended";
pub(super) const SESSION_DELETED: &str = "the session was deleted";

pub(super) fn decide_inbox(
    session: &Session,
    command: &InboxCommand,
    now: Timestamp,
    rules: &Rules,
) -> Result<Vec<Event>, Refusal> {
    exists(session)?;
    match &command.change {
        InboxChange::Send(message) => send(session, message, now, &rules.limits),
        InboxChange::Edit { turn, prompt, delivery, note } => {
            edit(session, *turn, prompt.as_deref(), *delivery, *note, now, &rules.limits)
        }
        InboxChange::Withdraw { turn, reason } => {
            optional_name("reason", reason.as_deref())?;
            let waiting = find(session, *turn)?;
            Ok(withdraw(session, waiting, reason.as_deref()))
        }
        InboxChange::Order { turns } => order(session, turns),
        InboxChange::Promote { turn, to, note } => promote(session, *turn, *to, *note, now),
        InboxChange::Pause => {
            alive(session)?;
            if session.inbox_paused == Some(PauseReason::Asked) {
                return Ok(Vec::new());
            }
            Ok(vec![InboxEvent::Paused { reason: PauseReason::Asked }.into()])
        }
        InboxChange::Go => go(session, now),
    }
}

fn send(
    session: &Session,
    message: &Message,
    now: Timestamp,
    limits: &Limits,
) -> Result<Vec<Event>, Refusal> {
    // Told twice, it is one message, also when its turn has begun.
    let runs = session.turn.as_ref().is_some_and(|active| active.id == message.turn);
    if runs || session.waiting(message.turn).is_some() {
        return Ok(Vec::new());
    }
    let Some(placed) = &message.review else { return admit(session, message, &message.prompt, now, limits) };
    alive(session)?;
    let chosen = review::chosen(session, placed)?;
    let prompt = review::message(&message.prompt, &chosen);
    let comments = chosen.iter().map(|(comment, _)| comment.draft.comment).collect();
    let mut events = admit(session, message, &prompt, now, limits)?;
    events.push(ReviewEvent::Sent { turn: message.turn, comments }.into());
    Ok(events)
}

fn admit(
    session: &Session,
    message: &Message,
    prompt: &str,
    now: Timestamp,
    limits: &Limits,
) -> Result<Vec<Event>, Refusal> {
    let Message {
        turn,
        note,
        client_turn_id,
        parts,
        delivery,
        memory,
        choice,
        take_over,
        forced,
        prompt: _,
        review: _,
    } = message;
    let client = client_turn_id.as_deref();
    alive(session)?;
    takes_turns(session)?;
    let taken = takes_over(session, *take_over)?;
    log_has_room(session, limits)?;
    // Who queues means behind what waits already, also when that is held back.
    let joins = *delivery == Delivery::Queue && session.inbox_paused.is_some();
    let waits = *delivery != Delivery::Reject && (session.turn.is_some() || joins);
    if !waits {
        let started = start_turn(
            session,
            *turn,
            (client, prompt, parts),
            (*delivery, memory.as_ref(), choice, *forced),
            now,
        )?;
        let driven = taken.then(|| ChangeEvent::Driven { by: DrivenBy::Lanyard }.into());
        return Ok(driven.into_iter().chain(started).collect());
    }
    if session.archived {
        return Err(Refusal::Archived);
    }
    if session.is_stopping() {
        return Err(Refusal::Stopping);
    }
    sayable(prompt, parts)?;
    optional_name("client_turn_id", client)?;
    room(session, 1, prompt.len(), limits)?;
    turn_memory(session, memory.as_ref())?;
    // Words for the running turn come under its model.
    let steers = *delivery == Delivery::Steer && choice.is_empty() && takes_words(session, *note, parts);
    let mut events: Vec<Event> = vec![
        InboxEvent::Queued {
            turn: *turn,
            client_turn_id: client_turn_id.clone(),
            prompt: prompt.to_owned(),
            parts: parts.clone(),
            prompt_hash: message_hash(prompt, parts),
            delivery: *delivery,
            note: steers.then_some(*note),
            memory: memory.clone(),
            choice: choice.clone(),
            forced: *forced,
        }
        .into(),
    ];
    if steers {
        events.push(steering(*note, prompt));
    }
    if *delivery == Delivery::Interrupt {
        events.extend(cancel(session));
    }
    Ok(events)
}

/// Whether there is room for so many more messages with so many more bytes.
fn room(session: &Session, more: usize, bytes: usize, limits: &Limits) -> Result<(), Refusal> {
    if session.inbox.len() + more > limits.inbox_turns {
        return Err(Refusal::InboxFull { max: limits.inbox_turns, unit: "messages" });
    }
    if session.inbox_bytes() + bytes > limits.inbox_bytes {
        return Err(Refusal::InboxFull { max: limits.inbox_bytes, unit: "bytes" });
    }
    Ok(())
}

/// Whether words may still go into the running turn, under an id that no others have; otherwise they wait for their own.
/// What is attached goes only with a prompt or by the agent's own way into a running turn: the answer of a tool call
/// carries text alone.
fn takes_words(session: &Session, note: NoteId, parts: &[PromptPart]) -> bool {
    let open = session.turn.as_ref().is_some_and(|turn| !turn.cancel_requested);
    let carries = parts.is_empty() || steers_natively(session);
    open && carries && session.guidance.iter().chain(&session.guidance_settled).all(|held| held.id != note)
}

fn steers_natively(session: &Session) -> bool {
    session.live_run().is_some_and(|run| run.capabilities.steer)
}

fn steering(note: NoteId, text: &str) -> Event {
    let (kind, text) = (NoteKind::Steer, text.to_owned());
    ControlEvent::GuidanceQueued { note, kind, text, warnings: Vec::new(), about: None }.into()
}

/// The running turn makes room. Asked once: a message is no reason not to wait for the agent to agree.
fn cancel(session: &Session) -> Option<Event> {
    let turn = session.turn.as_ref().filter(|turn| !turn.cancel_requested)?;
    let reason = Some(IN_ITS_PLACE.to_owned());
    Some(TurnEvent::CancelRequested { turn: turn.id, reason, forced: false }.into())
}

fn find(session: &Session, turn: TurnId) -> Result<&QueuedTurn, Refusal> {
    session.waiting(turn).ok_or(Refusal::InboxTurnUnknown { turn })
}

/// The words are no longer on their way.
fn recall(session: &Session, waiting: &QueuedTurn) -> Option<Event> {
    let id = waiting.note?;
    let held = session.guidance.iter().find(|note| note.id == id && note.status == NoteStatus::Pending)?;
    Some(ControlEvent::GuidanceSettled { notes: vec![held.id], how: Settled::Withdrawn }.into())
}

pub(super) fn withdraw(session: &Session, waiting: &QueuedTurn, reason: Option<&str>) -> Vec<Event> {
    let gone = InboxEvent::Withdrawn { turn: waiting.turn, reason: reason.map(str::to_owned) };
    recall(session, waiting).into_iter().chain([gone.into()]).collect()
}

/// Withdraws every waiting message.
pub(super) fn withdraw_all(session: &Session, reason: &str) -> Vec<Event> {
    session.inbox.iter().flat_map(|waiting| withdraw(session, waiting, Some(reason))).collect()
}

/// The message a note carries into the running turn.
pub(super) fn steered_by(session: &Session, note: NoteId) -> Option<&QueuedTurn> {
    session.inbox.iter().find(|waiting| waiting.note == Some(note))
}

/// The events of messages whose notes have reached the agent.
pub(super) fn steered(session: &Session, notes: &[NoteId], channel: &str) -> Vec<Event> {
    let Some(into) = session.turn.as_ref().map(|turn| turn.id) else { return Vec::new() };
    let channel = channel.to_owned();
    let gone = notes.iter().filter_map(|note| steered_by(session, *note));
    gone.map(|waiting| InboxEvent::Steered { turn: waiting.turn, into, channel: channel.clone() }.into())
        .collect()
}

fn edit(
    session: &Session,
    turn: TurnId,
    prompt: Option<&str>,
    delivery: Option<Delivery>,
    note: NoteId,
    now: Timestamp,
    limits: &Limits,
) -> Result<Vec<Event>, Refusal> {
    let waiting = find(session, turn)?;
    if delivery == Some(Delivery::Reject) {
        return Err(Refusal::DeliveryWaits);
    }
    if let Some(prompt) = prompt {
        sayable(prompt, &waiting.parts)?;
        let others = session.inbox_bytes() - waiting.prompt.len();
        if others + prompt.len() > limits.inbox_bytes {
            return Err(Refusal::InboxFull { max: limits.inbox_bytes, unit: "bytes" });
        }
    }
    let prompt = prompt.filter(|prompt| *prompt != waiting.prompt);
    let delivery = delivery.filter(|delivery| *delivery != waiting.delivery);
    if prompt.is_none() && delivery.is_none() {
        return Ok(Vec::new());
    }
    let wanted = delivery.unwrap_or(waiting.delivery);
    if session.turn.is_none() && delivery.is_some_and(|delivery| delivery != Delivery::Queue) {
        // What a message with this delivery does when nothing is running: it starts.
        let mut waiting = waiting.clone();
        waiting.prompt = prompt.map_or(waiting.prompt, str::to_owned);
        waiting.delivery = wanted;
        let edited = InboxEvent::Edited {
            turn,
            prompt: prompt.map(str::to_owned),
            prompt_hash: prompt.map(|prompt| message_hash(prompt, &waiting.parts)),
            delivery,
            note: None,
        };
        return Ok([edited.into(), start_now(session, &waiting, now)?].into());
    }
    let steers = wanted == Delivery::Steer
        && waiting.choice.is_empty()
        && takes_words(session, note, &waiting.parts)
        && (waiting.note.is_some() || delivery.is_some());
    let mut events: Vec<Event> = recall(session, waiting).into_iter().collect();
    events.push(
        InboxEvent::Edited {
            turn,
            prompt: prompt.map(str::to_owned),
            prompt_hash: prompt.map(|prompt| message_hash(prompt, &waiting.parts)),
            delivery,
            note: steers.then_some(note),
        }
        .into(),
    );
    if steers {
        events.push(steering(note, prompt.unwrap_or(&waiting.prompt)));
    }
    if delivery == Some(Delivery::Interrupt) {
        events.extend(cancel(session));
    }
    Ok(events)
}

fn order(session: &Session, turns: &[TurnId]) -> Result<Vec<Event>, Refusal> {
    let current: Vec<TurnId> = session.inbox.iter().map(|waiting| waiting.turn).collect();
    let (mut held, mut wanted) = (current.clone(), turns.to_vec());
    held.sort_unstable();
    wanted.sort_unstable();
    if held != wanted {
        return Err(Refusal::InboxOrderWrong { waiting: current.len() });
    }
    if current == turns {
        return Ok(Vec::new());
    }
    Ok(vec![InboxEvent::Reordered { turns: turns.to_vec() }.into()])
}

fn promote(
    session: &Session,
    turn: TurnId,
    to: Promotion,
    note: NoteId,
    now: Timestamp,
) -> Result<Vec<Event>, Refusal> {
    let waiting = find(session, turn)?;
    let first = session.inbox.first().is_some_and(|first| first.turn == turn);
    let running = session.turn.is_some();
    match to {
        Promotion::Front if first => Ok(Vec::new()),
        Promotion::Front => Ok(vec![InboxEvent::Promoted { turn, to, note: waiting.note }.into()]),
        Promotion::Steer | Promotion::Interrupt if !running => {
            let promoted = InboxEvent::Promoted { turn, to, note: None };
            let delivery = if to == Promotion::Steer { Delivery::Steer } else { Delivery::Interrupt };
            let waiting = QueuedTurn { delivery, ..waiting.clone() };
            Ok([promoted.into(), start_now(session, &waiting, now)?].into())
        }
        Promotion::Steer if waiting.note.is_some() => Ok(Vec::new()),
        Promotion::Steer => {
            let taken = waiting.choice.is_empty() && takes_words(session, note, &waiting.parts);
            let note = taken.then_some(note);
            let promoted: Event = InboxEvent::Promoted { turn, to, note }.into();
            let words = note.map(|note| steering(note, &waiting.prompt));
            Ok([promoted].into_iter().chain(words).collect())
        }
        Promotion::Interrupt => {
            let promoted = InboxEvent::Promoted { turn, to, note: None };
            let mut events: Vec<Event> = recall(session, waiting).into_iter().collect();
            events.push(promoted.into());
            events.extend(cancel(session));
            Ok(events)
        }
    }
}

fn go(session: &Session, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    alive(session)?;
    let first = session.inbox.first().filter(|_| session.turn.is_none());
    let mut events: Vec<Event> = Vec::new();
    if session.inbox_paused.is_some() {
        events.push(InboxEvent::Resumed {}.into());
    }
    if let Some(first) = first {
        events.push(start_now(session, first, now)?);
    }
    Ok(events)
}

/// A message that waits becomes the running turn, because somebody says so.
fn start_now(session: &Session, waiting: &QueuedTurn, now: Timestamp) -> Result<Event, Refusal> {
    alive(session)?;
    takes_over(session, false)?;
    if session.archived {
        return Err(Refusal::Archived);
    }
    unhindered(session)?;
    Ok(start(session, waiting, resting_opening(session, now)))
}

fn start(session: &Session, waiting: &QueuedTurn, opening: Opening) -> Event {
    let by = Some(waiting.actor.clone());
    let client = waiting.client_turn_id.as_deref();
    // The session may have been allowed less since the message came.
    let held = &session.policy.memory;
    let asked = waiting.memory.as_ref().and_then(|ask| ask.onto(held).ok());
    let memory = asked.map_or_else(|| held.clone(), |asked| asked.under(held));
    begin(
        session,
        waiting.turn,
        (client, &waiting.prompt, &waiting.parts),
        opening,
        (waiting.delivery, by),
        (memory, &waiting.choice, waiting.forced),
    )
}

/// The end of a turn, as it concerns the messages behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Completed,
    /// The turn was cancelled.
    Cut,
    /// The turn failed or was lost.
    Failed,
}

/// The inbox after the running turn. A completed turn is followed by the next message at once. After any other end the
/// rest waits until the inbox is resumed, except a message that was sent to replace the turn.
pub(super) fn after_turn(session: &Session, over: Over) -> Vec<Event> {
    // What did not get into the turn is a turn of its own.
    let mut events: Vec<Event> =
        session.inbox.iter().filter_map(|waiting| recall(session, waiting)).collect();
    let free = !session.is_stopping();
    let follows = over == Over::Completed && free;
    let replaces = |waiting: &&QueuedTurn| waiting.delivery == Delivery::Interrupt;
    let next = match session.inbox_paused {
        None if follows => session.inbox.first(),
        None | Some(_) => session.inbox.iter().find(replaces).filter(|_| free),
    };
    let left = session.inbox.len() - usize::from(next.is_some());
    if left > 0 && !follows && session.inbox_paused.is_none() {
        let reason = if over == Over::Failed { PauseReason::Failed } else { PauseReason::Interrupted };
        events.push(InboxEvent::Paused { reason }.into());
    }
    events.extend(next.map(|next| start(session, next, Opening::Continued)));
    events
}
