//! A turn that met a limit of its provider, and the account that a run uses. What becomes of the turn the core decides.

use jiff::tz::TimeZone;
use lanyard_api::agents::accounts::AccountChoice;
use lanyard_api::agents::settings::{AgentSettings, DriverKind, OutputForm};
use lanyard_core::session::{ActiveTurn, Limit, LimitKind, LimitSeen, Session, Signal};
use lanyard_core::text::{one_line, without_escapes};
use lanyard_core::{Timestamp, TurnId};

use super::Runner;
use crate::agents::driver::TurnEnd;
use crate::agents::limits::{self, LimitSign};
use crate::agents::shared::Shared;

/// Characters of an agent's words about a limit.
const WORDS_CHARS_MAX: usize = 500;
/// What an agent that is run once per turn says of its end, where it says no more.
const EXITED: &str = "exited with ";
/// The words for a limit that another session met.
const KNOWN: &str = "the account reached its limit in another session";

impl Runner {
    /// The end of a turn, with the limit recognised that ended it. A program that only exits says why on stderr.
    pub(super) fn recognised(&self, end: TurnEnd) -> TurnEnd {
        let end = limits::recognised(end);
        let only_exited = matches!(&end, TurnEnd::Failed(words) if words.starts_with(EXITED));
        self.last_limit().filter(|_| only_exited).map_or(end, TurnEnd::Limited)
    }

    /// The limit that the last line on stderr tells of.
    pub(super) fn last_limit(&self) -> Option<LimitSign> {
        let tail = without_escapes(&self.link.stderr_tail());
        limits::in_words(tail.lines().rev().find(|line| !line.trim().is_empty())?)
    }

    /// The agent died in its turn with words about a limit.
    pub(super) fn died_of_limit(&mut self) {
        let at_work = self.turn.as_ref().is_some_and(|turn| !turn.over && turn.cancel.is_none());
        if at_work
            && !self.course.is_unwanted()
            && let Some(limit) = self.last_limit()
        {
            self.turn_over(self.here, TurnEnd::Limited(limit), lanyard_core::session::Receipt::default());
        }
    }

    /// Tells of a limit with everything that the decision needs, and makes it known to the account's other sessions.
    pub(super) fn limited(&self, turn: TurnId, sign: &LimitSign) -> Signal {
        let (clock, rules) = (&self.shared.clock, self.settings.limits);
        let (now, wall) = (clock.now(), clock.wall());
        // A reset is told by the wall clock, and waited for by recorded time.
        let after =
            sign.reset.as_ref().and_then(|reset| reset.after_ms(wall.as_millis(), &TimeZone::system()));
        let mut resets_at = after.map(|after| now.plus_millis(after));
        let mut elsewhere = false;
        if !sign.kind.is_transient() {
            let until = resets_at.unwrap_or_else(|| now.plus_millis(rules.unknown_reset_ms));
            self.shared.exhausted.note(&self.agent, self.account.as_deref(), until, now);
            match self.shared.account(&self.agent, &self.settings, self.account.as_deref(), now) {
                AccountChoice::Use(_) => elsewhere = true,
                AccountChoice::Exhausted { account, resets_at: soonest } if account != self.account => {
                    resets_at = Some(soonest);
                }
                AccountChoice::Exhausted { .. } => {}
            }
        }
        let text = one_line(&without_escapes(&sign.text), WORDS_CHARS_MAX);
        let limit = Limit { kind: sign.kind, text, resets_at, account: self.account.clone() };
        seen(&self.shared, &self.settings, turn, limit, elsewhere)
    }

    /// Whether the run's account can be used for a prompt. Otherwise the turn waits, or goes on in a run with another
    /// account.
    pub(super) async fn account_serves(&mut self, active: &ActiveTurn) -> bool {
        let (now, turn) = (self.shared.clock.now(), active.prompt_id());
        let exhausted = |runner: &Self| {
            runner.shared.exhausted.until(&runner.agent, runner.account.as_deref(), now).is_some()
        };
        if active.leg.as_ref().is_some_and(|leg| leg.asked) {
            self.shared.exhausted.forget(&self.agent, self.account.as_deref());
        }
        if !exhausted(self) {
            return true;
        }
        match self.shared.account(&self.agent, &self.settings, self.account.as_deref(), now) {
            AccountChoice::Use(account) if account == self.account => return true,
            AccountChoice::Use(_) => {
                self.waiting = Some(turn);
                self.end_run("the session goes on with another account").await;
            }
            AccountChoice::Exhausted { account, resets_at } => {
                let signal = known(&self.shared, &self.settings, turn, (account, resets_at));
                self.shared.note(self.session, signal).await;
            }
        }
        false
    }
}

/// The limit of an account that is known before the agent was asked.
pub(super) fn known(
    shared: &Shared,
    settings: &AgentSettings,
    turn: TurnId,
    (account, resets_at): (Option<String>, Timestamp),
) -> Signal {
    let (kind, text) = (LimitKind::Usage, KNOWN.to_owned());
    let limit = Limit { kind, text, resets_at: Some(resets_at), account };
    let mut signal = seen(shared, settings, turn, limit, false);
    if let Signal::TurnLimited(seen) = &mut signal {
        // The agent was not asked, so nothing is in doubt that was not before.
        (seen.continues, seen.blind) = (true, false);
    }
    signal
}

fn seen(shared: &Shared, settings: &AgentSettings, turn: TurnId, limit: Limit, elsewhere: bool) -> Signal {
    let now = shared.clock.now();
    let per_turn = settings.per_turn();
    let once = settings.driver == DriverKind::Command;
    Signal::TurnLimited(Box::new(LimitSeen {
        turn: Some(turn),
        limit,
        leg: TurnId::mint(now, shared.clock.random()),
        now,
        rules: settings.limits,
        continues: !once || !per_turn.next.is_empty(),
        blind: once && per_turn.output == OutputForm::Text,
        elsewhere,
    }))
}

/// The account of the conversation that a run is to take up; nothing for a new one.
pub(super) fn account_of(session: &Session) -> Option<&str> {
    session.native.as_ref()?;
    session.run.as_ref()?.account.as_deref()
}
