//! The writer: of all who are attached to a session, the one whose words go into the conversation. A lease anyone can
//! inspect. It passes by asking: the holder may deny within a window, and who wrote under an older epoch is refused.
//! Whether the holder is still there is seen outside and comes in as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::ConnectionId;
use crate::policy::{Rules, WriterRules};
use crate::session::decide::{alive, optional_name};
use crate::session::event::{Envelope, Event};
use crate::session::record::Session;
use crate::session::refusal::Refusal;
use crate::time::Timestamp;

/// A connection that writes or wants to, and who is behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pen {
    pub connection: ConnectionId,
    /// The kind of client: `cli`, `web`, `acp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    pub actor: Actor,
}

/// The lease in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Writer {
    #[serde(flatten)]
    pub pen: Pen,
    pub since: Timestamp,
    /// Grows with every change of hands and never goes back.
    pub epoch: u64,
    /// The client that asks to take over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Takeover>,
    /// Time of the holder's last refusal; another request within the window is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_at: Option<Timestamp>,
}

/// A wish to take over, which comes true at `until` unless the holder denies it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Takeover {
    #[serde(flatten)]
    pub pen: Pen,
    pub at: Timestamp,
    pub until: Timestamp,
}

/// Commands to the writer's lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriterCommand {
    Claim {
        pen: Pen,
        /// Ask the holder to hand over.
        take: bool,
        /// The holder was not seen for longer than the lease lasts without it.
        holder_gone: bool,
    },
    /// The holder hands over to who asked.
    Grant { pen: Pen, epoch: u64 },
    /// The holder keeps it.
    Deny { pen: Pen, epoch: u64 },
    /// The holder is done.
    Release { pen: Pen, epoch: u64 },
}

impl WriterCommand {
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Claim { .. } => "claim_writer",
            Self::Grant { .. } => "grant_writer",
            Self::Deny { .. } => "deny_writer",
            Self::Release { .. } => "release_writer",
        }
    }
}

/// The lease changed hands, or somebody wants it to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum WriterEvent {
    #[serde(rename = "writer.granted")]
    Granted { pen: Pen, epoch: u64 },
    #[serde(rename = "writer.asked")]
    Asked { pen: Pen, until: Timestamp },
    #[serde(rename = "writer.denied")]
    Denied { connection: ConnectionId },
    #[serde(rename = "writer.released")]
    Released { epoch: u64, why: ReleaseReason },
}

/// Why a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// The holder released the lease.
    Released,
    /// The holder was away for too long.
    Lapsed,
    /// The lease passed to the client that had asked for it.
    Taken,
}

pub(super) fn decide(
    session: &Session,
    command: &WriterCommand,
    now: Timestamp,
    rules: &Rules,
) -> Result<Vec<Event>, Refusal> {
    alive(session)?;
    match command {
        WriterCommand::Claim { pen, take, holder_gone } => {
            optional_name("client", pen.client.as_deref())?;
            claim(session, pen, *take, *holder_gone, now, &rules.writer)
        }
        WriterCommand::Grant { pen, epoch } => {
            let writer = held_by(session, pen, *epoch)?;
            let asked = writer.asked.as_ref().ok_or(Refusal::NobodyAsked)?;
            Ok(passes(session, writer, &asked.pen, ReleaseReason::Taken))
        }
        WriterCommand::Deny { pen, epoch } => {
            let writer = held_by(session, pen, *epoch)?;
            let asked = writer.asked.as_ref().ok_or(Refusal::NobodyAsked)?;
            Ok(vec![WriterEvent::Denied { connection: asked.pen.connection }.into()])
        }
        WriterCommand::Release { pen, epoch } => {
            let writer = held_by(session, pen, *epoch)?;
            Ok(match &writer.asked {
                Some(asked) => passes(session, writer, &asked.pen, ReleaseReason::Released),
                None => vec![released(writer, ReleaseReason::Released)],
            })
        }
    }
}

fn claim(
    session: &Session,
    pen: &Pen,
    take: bool,
    holder_gone: bool,
    now: Timestamp,
    rules: &WriterRules,
) -> Result<Vec<Event>, Refusal> {
    let Some(writer) = &session.writer else { return Ok(vec![granted(session, pen)]) };
    if writer.pen.is(pen) {
        return Ok(Vec::new());
    }
    if holder_gone {
        return Ok(passes(session, writer, pen, ReleaseReason::Lapsed));
    }
    if !take {
        return Err(held(writer));
    }
    let denied = writer.denied_at.is_some_and(|at| now.millis_since(at) < rules.deny_ms);
    match &writer.asked {
        Some(asked) if asked.pen.is(pen) => Ok(Vec::new()),
        Some(asked) => Err(Refusal::TakeoverPending { by: asked.pen.connection }),
        None if denied => Err(Refusal::TakeoverDenied { by: writer.pen.connection }),
        None => {
            let until = now.plus_millis(rules.deny_ms);
            Ok(vec![WriterEvent::Asked { pen: pen.clone(), until }.into()])
        }
    }
}

/// Whether words of `actor` may go into the conversation. Events come first where the lease ends with it.
pub fn may_write(
    session: &Session,
    epoch: Option<u64>,
    actor: &Actor,
    holder_gone: bool,
) -> Result<Vec<Event>, Refusal> {
    match (&session.writer, epoch) {
        (None, None) => Ok(Vec::new()),
        (Some(writer), Some(epoch)) if writer.epoch == epoch && writer.pen.actor == *actor => Ok(Vec::new()),
        // A late word of somebody who lost the lease, also when nobody has it now.
        (Some(_) | None, Some(_)) => Err(Refusal::WriterSuperseded { epoch: session.writer_epoch }),
        (Some(writer), None) if holder_gone => Ok(vec![released(writer, ReleaseReason::Lapsed)]),
        (Some(writer), None) => Err(held(writer)),
    }
}

/// A wish to take over that nobody denied comes true.
pub(super) fn due(session: &Session, now: Timestamp) -> Vec<Event> {
    let Some(writer) = &session.writer else { return Vec::new() };
    match &writer.asked {
        Some(asked) if asked.until <= now => passes(session, writer, &asked.pen, ReleaseReason::Taken),
        Some(_) | None => Vec::new(),
    }
}

pub(super) fn next_due(session: &Session) -> Option<Timestamp> {
    session.writer.as_ref()?.asked.as_ref().map(|asked| asked.until)
}

fn held_by<'a>(session: &'a Session, pen: &Pen, epoch: u64) -> Result<&'a Writer, Refusal> {
    let holder = session.writer.as_ref().filter(|writer| writer.pen.is(pen) && writer.epoch == epoch);
    holder.ok_or(Refusal::WriterSuperseded { epoch: session.writer_epoch })
}

fn held(writer: &Writer) -> Refusal {
    let Pen { connection, client, actor } = &writer.pen;
    Refusal::WriterHeld { by: actor.name.clone(), client: client.clone(), connection: *connection }
}

fn granted(session: &Session, pen: &Pen) -> Event {
    WriterEvent::Granted { pen: pen.clone(), epoch: session.writer_epoch + 1 }.into()
}

fn released(writer: &Writer, why: ReleaseReason) -> Event {
    WriterEvent::Released { epoch: writer.epoch, why }.into()
}

fn passes(session: &Session, writer: &Writer, to: &Pen, why: ReleaseReason) -> Vec<Event> {
    vec![released(writer, why), granted(session, to)]
}

impl Pen {
    /// A connection's id is a handle and no secret: it counts together with who is behind it.
    fn is(&self, other: &Self) -> bool {
        self.connection == other.connection && self.actor == other.actor
    }
}

impl Session {
    pub(super) fn writing(&mut self, event: &WriterEvent, envelope: &Envelope) -> bool {
        let alive = !self.state.is_ended();
        match event {
            WriterEvent::Granted { pen, epoch } => {
                let legal = self.writer.is_none() && *epoch == self.writer_epoch + 1;
                let (pen, since) = (pen.clone(), envelope.at);
                self.writer_epoch = *epoch;
                self.writer = Some(Writer { pen, since, epoch: *epoch, asked: None, denied_at: None });
                alive && legal
            }
            WriterEvent::Asked { pen, until } => match &mut self.writer {
                Some(writer) if writer.asked.is_none() => {
                    writer.asked = Some(Takeover { pen: pen.clone(), at: envelope.at, until: *until });
                    alive
                }
                Some(_) | None => false,
            },
            WriterEvent::Denied { connection } => match &mut self.writer {
                Some(writer) => {
                    writer.denied_at = Some(envelope.at);
                    let asked = writer.asked.take();
                    alive && asked.is_some_and(|asked| asked.pen.connection == *connection)
                }
                None => false,
            },
            WriterEvent::Released { epoch, .. } => {
                alive && self.writer.take().is_some_and(|writer| writer.epoch == *epoch)
            }
        }
    }
}
