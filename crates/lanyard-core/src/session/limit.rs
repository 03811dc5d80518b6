//! Limits of a provider: a usage window or a quota that is spent, an overload, an error on the way. A turn that meets one
//! keeps its place and waits. How long it waits, and whether it goes on by itself, is decided here. Pure: the time and
//! the salt of the jitter arrive as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TurnId;
use crate::session::decide::void_gates;
use crate::session::event::{Event, TurnEvent, TurnOutcome};
use crate::session::observe::{interrupted, turn_finished, unexpected};
use crate::session::record::{ActiveTurn, Session, is_default};
use crate::session::signal::Signal;
use crate::session::state::InterruptCause;
use crate::text::{NAME_CHARS_MAX, cut};
use crate::time::Timestamp;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// The kind of a provider's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// A rate or a usage window of the account. It resets.
    Usage,
    /// The account's quota or credit is spent. It may need a person.
    Quota,
    /// The provider has too much to do.
    Overloaded,
    /// The provider failed, or could not be reached.
    Unavailable,
}

impl LimitKind {
    pub const ALL: [Self; 4] = [Self::Usage, Self::Quota, Self::Overloaded, Self::Unavailable];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Quota => "quota",
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
        }
    }

    /// The kind in words for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Usage => "usage limit",
            Self::Quota => "quota",
            Self::Overloaded => "overload of the provider",
            Self::Unavailable => "error of the provider",
        }
    }

    /// Whether the provider is at fault and another try soon is right. The other kinds concern an account.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        match self {
            Self::Overloaded | Self::Unavailable => true,
            Self::Usage | Self::Quota => false,
        }
    }
}

/// A limit that a turn met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    pub kind: LimitKind,
    /// The agent's own words.
    pub text: String,
    /// The time at which the account can be used again, as far as the provider tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    /// The account of the agent that reached it, where it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// The policy of an agent for limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitRules {
    /// Go on by itself at the reset. Without it a person says when.
    pub go_on: bool,
    /// Waits for a reset in one turn; after that a person is asked.
    pub waits: u32,
    /// Longest wait in milliseconds; for a later reset a person is asked.
    pub wait_max_ms: u64,
    /// Milliseconds to wait for a usage limit whose reset the provider does not tell.
    pub unknown_reset_ms: u64,
    /// Milliseconds within which sessions go on after a reset, so that they do not all begin at once.
    pub jitter_ms: u64,
    /// Tries of one turn after an overload or an error of the provider; after that the turn has failed.
    pub retries: u32,
    /// Milliseconds before the first of these tries. Each further pause is twice as long.
    pub retry_ms: u64,
    /// Longest of these pauses in milliseconds.
    pub retry_max_ms: u64,
}

impl Default for LimitRules {
    fn default() -> Self {
        Self {
            go_on: true,
            waits: 10,
            wait_max_ms: 24 * HOUR_MS,
            unknown_reset_ms: 30 * MINUTE_MS,
            jitter_ms: 30 * SECOND_MS,
            retries: 5,
            retry_ms: 5 * SECOND_MS,
            retry_max_ms: 5 * MINUTE_MS,
        }
    }
}

/// Why a person says when a turn goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskReason {
    /// The agent's settings say so.
    Policy,
    /// The turn has waited as often as it may.
    TooOften,
    /// The reset is further away than the turn may wait.
    TooLong,
    /// The quota is spent, and no reset is known.
    NoReset,
    /// The agent cannot continue its conversation, and what the turn did must not be done twice unasked.
    SideEffects,
}

impl AskReason {
    /// The reason in words for people.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Policy => "the agent's settings leave it to a person",
            Self::TooOften => "the turn has waited as often as it may",
            Self::TooLong => "the reset is further away than a turn may wait",
            Self::NoReset => "no reset is known",
            Self::SideEffects => {
                "the agent cannot continue its conversation, and the turn may have done part of its work"
            }
        }
    }
}

/// A turn's wait for a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitWait {
    pub limit: Limit,
    pub since: Timestamp,
    /// The time at which the turn goes on by itself; absent while a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<AskReason>,
    /// The prompt with which it goes on.
    pub leg: TurnId,
}

/// A turn that went on after a limit: the prompt that the agent works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnLeg {
    /// The prompt's own id, under which the agent is given it.
    pub id: TurnId,
    /// The limit before it.
    pub limit: Limit,
    pub at: Timestamp,
    /// A person said so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// The agent has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delivered: bool,
}

/// A limit as a runner reports it, with everything the decision needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitSeen {
    /// The turn, or the prompt of it that ran; without an id, whichever turn is running.
    #[serde(default)]
    pub turn: Option<TurnId>,
    pub limit: Limit,
    /// Id for the prompt with which the turn goes on.
    pub leg: TurnId,
    pub now: Timestamp,
    pub rules: LimitRules,
    /// The agent's own conversation can continue, so that nothing is done twice.
    pub continues: bool,
    /// The agent does not tell what it does.
    #[serde(default, skip_serializing_if = "is_default")]
    pub blind: bool,
    /// Another account can be used at once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub elsewhere: bool,
}

/// What a turn does that met a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitHold {
    Until(Timestamp),
    /// A person says when.
    Asks(AskReason),
    /// The turn has failed: the provider did not come back.
    GivesUp,
}

/// How often a turn has waited, and what it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waited {
    pub waits: u32,
    pub retries: u32,
    /// It may have done something that must not be done twice.
    pub worked: bool,
}

/// Decides about a turn that met a limit. The salt spreads sessions that wait for the same reset.
#[must_use]
pub fn hold(seen: &LimitSeen, waited: Waited, salt: u128) -> LimitHold {
    let LimitSeen { limit, rules, now, .. } = seen;
    if (waited.worked || seen.blind) && !seen.continues {
        return LimitHold::Asks(AskReason::SideEffects);
    }
    if limit.kind.is_transient() {
        if waited.retries >= rules.retries {
            return LimitHold::GivesUp;
        }
        let doubled = rules.retry_ms.saturating_mul(1 << waited.retries.min(32));
        let told = limit.resets_at.map_or(0, |at| at.millis_since(*now)).min(rules.retry_max_ms);
        let pause = doubled.min(rules.retry_max_ms).max(told);
        return LimitHold::Until(now.plus_millis(pause.saturating_add(jitter(pause / 4, salt))));
    }
    if !rules.go_on {
        return LimitHold::Asks(AskReason::Policy);
    }
    if waited.waits >= rules.waits {
        return LimitHold::Asks(AskReason::TooOften);
    }
    if seen.elsewhere {
        return LimitHold::Until(*now);
    }
    let reset = match (limit.resets_at, limit.kind) {
        (Some(at), _) => at.max(*now),
        (None, LimitKind::Quota) => return LimitHold::Asks(AskReason::NoReset),
        (None, LimitKind::Usage | LimitKind::Overloaded | LimitKind::Unavailable) => {
            now.plus_millis(rules.unknown_reset_ms)
        }
    };
    if reset.millis_since(*now) > rules.wait_max_ms {
        return LimitHold::Asks(AskReason::TooLong);
    }
    LimitHold::Until(reset.plus_millis(jitter(rules.jitter_ms, salt)))
}

/// A part of `max`, the same for the same salt.
fn jitter(max: u64, salt: u128) -> u64 {
    // The low bits of an id are random; its high bits are a time.
    let salt = u64::try_from(salt & u128::from(u64::MAX)).unwrap_or(0);
    salt.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_right(17) % max.saturating_add(1)
}

impl ActiveTurn {
    /// The id of the prompt that the agent works on, or is to be given: the turn's own until it went on after a limit.
    #[must_use]
    pub fn prompt_id(&self) -> TurnId {
        self.leg.as_ref().map_or(self.id, |leg| leg.id)
    }

    /// Whether a report about this id is about this turn as it now runs.
    pub(super) fn answers_to(&self, id: TurnId) -> bool {
        id == self.prompt_id() || (self.leg.is_none() && id == self.id)
    }

    /// Whether the turn waits for a limit.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.wait.is_some()
    }
}

impl ActiveTurn {
    /// Whether it could begin to wait.
    pub(super) fn begin_wait(&mut self, wait: LimitWait, again: bool) -> bool {
        let transient = wait.limit.kind.is_transient();
        self.waits += u32::from(!transient && !again);
        self.retries += u32::from(transient && !again);
        self.leg = None;
        self.wait.replace(Box::new(wait)).is_none()
    }

    /// Whether it waited for this prompt.
    pub(super) fn end_wait(&mut self, leg: TurnId, asked: bool, at: Timestamp) -> bool {
        let Some(wait) = self.wait.take() else { return false };
        let due = wait.leg == leg;
        self.leg = Some(Box::new(TurnLeg { id: leg, limit: wait.limit, at, asked, delivered: false }));
        due
    }
}

/// The turn met a limit: it waits, goes on elsewhere, or fails. Told again, it says nothing new.
pub(super) fn turn_limited(session: &Session, seen: &LimitSeen) -> Vec<Event> {
    let unexpected = || unexpected(session, &Signal::TurnLimited(Box::new(seen.clone())));
    limited(session, seen).unwrap_or_else(unexpected)
}

fn limited(session: &Session, seen: &LimitSeen) -> Option<Vec<Event>> {
    let turn = session.turn.as_ref().filter(|turn| seen.turn.is_none_or(|id| turn.answers_to(id)))?;
    if turn.is_waiting() {
        return Some(Vec::new());
    }
    if turn.cancel_requested || session.stop.is_some() {
        return Some(interrupted(session, InterruptCause::User, Some("cancelled")));
    }
    let waited = Waited { waits: turn.waits, retries: turn.retries, worked: turn.worked };
    let held = hold(seen, waited, seen.leg.as_u128());
    let (until, asks) = match held {
        LimitHold::Until(at) => (Some(at), None),
        LimitHold::Asks(why) => (None, Some(why)),
        LimitHold::GivesUp => {
            let (tries, said) = (turn.retries, &seen.limit.text);
            let reason = format!("{}, given up after {tries} more tries: {said}", seen.limit.kind.label());
            return Some(turn_finished(session, turn, TurnOutcome::Failed, Some(&reason)));
        }
    };
    let mut events: Vec<Event> = void_gates(session, "the turn waits for a limit").collect();
    events.push(waiting(turn.id, bounded(&seen.limit), seen.leg, until, asks));
    if seen.elsewhere && until == Some(seen.now) {
        events.push(TurnEvent::Continued { turn: turn.id, leg: seen.leg, asked: false }.into());
    }
    Some(events)
}

fn waiting(
    turn: TurnId,
    limit: Limit,
    leg: TurnId,
    until: Option<Timestamp>,
    asks: Option<AskReason>,
) -> Event {
    TurnEvent::Waiting { turn, limit, leg, until, asks, again: false }.into()
}

/// The record keeps the words, and a signal cannot be refused.
fn bounded(limit: &Limit) -> Limit {
    let short = |text: &str| cut(text, NAME_CHARS_MAX).0.to_owned();
    Limit { text: short(&limit.text), account: limit.account.as_deref().map(short), ..limit.clone() }
}

/// The turn goes on once its time has come. A stop or a cancel that is pending ends it instead.
pub(super) fn limit_over(session: &Session, now: Timestamp) -> Option<Event> {
    let turn = session.turn.as_ref().filter(|turn| !turn.cancel_requested && session.stop.is_none())?;
    let wait = turn.wait.as_ref().filter(|wait| wait.until.is_some_and(|until| until <= now))?;
    Some(TurnEvent::Continued { turn: turn.id, leg: wait.leg, asked: false }.into())
}

/// A person says that the turn goes on now.
pub(super) fn go_on_now(session: &Session) -> Option<Event> {
    let turn = session.turn.as_ref()?;
    let leg = turn.wait.as_ref()?.leg;
    Some(TurnEvent::Continued { turn: turn.id, leg, asked: true }.into())
}

/// The time at which a waiting turn goes on.
pub(super) fn next_due(session: &Session) -> Option<Timestamp> {
    let turn = session.turn.as_ref().filter(|turn| !turn.cancel_requested && session.stop.is_none())?;
    turn.wait.as_ref()?.until
}

/// Waits of one turn, of any kind, after which a lost process is no longer a reason to try again.
const LEGS_MAX: u32 = 64;

/// The daemon ended between the decision to go on and the prompt's delivery, and no process is left that could have it:
/// the turn waits again, and goes on at once. `again` where it counts as the same wait.
pub(super) fn put_back(session: &Session, again: bool) -> Option<Event> {
    let turn = session.turn.as_ref().filter(|turn| !turn.cancel_requested && session.stop.is_none())?;
    let leg = turn.leg.as_ref().filter(|leg| !leg.delivered)?;
    if turn.waits.saturating_add(turn.retries) > LEGS_MAX {
        return None;
    }
    let limit = leg.limit.clone();
    Some(
        TurnEvent::Waiting { turn: turn.id, limit, leg: leg.id, until: Some(leg.at), asks: None, again }
            .into(),
    )
}
