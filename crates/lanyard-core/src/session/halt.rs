//! Holding work back: during a halt no turn begins and no agent starts, and with a spent budget no turn begins. Whether
//! there is a halt, and what is spent, arrives from outside; this module filters decisions by it.

use crate::session::event::{ChangeEvent, Event, InboxEvent, TurnEvent};
use crate::session::inbox::PauseReason;
use crate::session::record::Session;
use crate::session::run::RunEvent;

/// Whether the events start work: a turn begins, an agent is wanted, or a stopped session comes back.
#[must_use]
pub fn starts_work(events: &[Event]) -> bool {
    let resumed = |event: &Event| matches!(event, Event::Change(ChangeEvent::Resumed { .. }));
    starts_run(events) || events.iter().any(resumed)
}

/// Whether the events have an agent's process started.
#[must_use]
pub fn starts_run(events: &[Event]) -> bool {
    events.iter().any(|event| {
        is_start(event) || goes_on(event) || matches!(event, Event::Run(RunEvent::Wanted { .. }))
    })
}

/// Whether a turn begins with these events, or goes on after a limit, that no operator forced.
#[must_use]
pub fn starts_turn(session: &Session, events: &[Event]) -> bool {
    let forced = session.turn.as_ref().is_some_and(|turn| turn.forced);
    events.iter().any(|event| {
        if let Event::Turn(TurnEvent::Started { forced, .. }) = event {
            return !forced;
        }
        goes_on(event) && !forced
    })
}

/// Whether a message comes in with these events that waits for a turn of its own, and that no operator forced.
#[must_use]
pub fn queues_turn(events: &[Event]) -> bool {
    let waits =
        |event: &Event| matches!(event, Event::Inbox(InboxEvent::Queued { note: None, forced: false, .. }));
    events.iter().any(waits)
}

/// The events of a signal while work is held back: a message that would follow a turn stays in the inbox, which is
/// paused for this reason.
#[must_use]
pub fn held(session: &Session, events: Vec<Event>, reason: PauseReason) -> Vec<Event> {
    let is_pause = |event: &Event| matches!(event, Event::Inbox(InboxEvent::Paused { .. }));
    let paused = session.inbox_paused.is_some() || events.iter().any(is_pause);
    let keep = |event: Event| match is_start(&event) {
        // A turn that waits for a limit waits on.
        _ if goes_on(&event) => None,
        true if paused => None,
        true => Some(InboxEvent::Paused { reason }.into()),
        false => Some(event),
    };
    events.into_iter().filter_map(keep).collect()
}

fn is_start(event: &Event) -> bool {
    matches!(event, Event::Turn(TurnEvent::Started { .. }))
}

fn goes_on(event: &Event) -> bool {
    matches!(event, Event::Turn(TurnEvent::Continued { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Rules;
    use crate::session::inbox::Delivery;
    use crate::session::testing::{Given, Input, given, send, started};
    use crate::session::{Signal, TurnOutcome, decide, observe};

    fn with_a_message() -> Given {
        given([started(1)]).after(send(2, Delivery::Queue))
    }

    fn finished(session: &Session) -> Vec<Event> {
        let signal = Signal::TurnFinished { turn: None, outcome: TurnOutcome::Completed, reason: None };
        observe(session, &signal, &Rules::default())
    }

    /// FND-K6. What would follow a turn waits in the inbox while all work is halted.
    #[test]
    fn fnd_k6_the_next_turn_waits_for_the_end_of_the_halt() {
        let given = with_a_message();
        let events = finished(&given.session);
        assert!(starts_work(&events), "{events:?}");
        let events = held(&given.session, events, PauseReason::Halted);
        assert!(!starts_work(&events), "{events:?}");
        let pause = Event::from(InboxEvent::Paused { reason: PauseReason::Halted });
        assert_eq!(events.last(), Some(&pause));
    }

    /// FND-K6. An inbox that is paused for another reason stays paused for that reason.
    #[test]
    fn fnd_k6_a_pause_keeps_its_own_reason() {
        let mut session = with_a_message().session;
        let events = finished(&session);
        session.inbox_paused = Some(PauseReason::Asked);
        let paused = held(&session, events, PauseReason::Halted);
        assert!(
            !paused
                .iter()
                .any(|event| matches!(event, Event::Inbox(_) | Event::Turn(TurnEvent::Started { .. })))
        );
    }

    /// A turn that an operator forced is not held back by a spent budget, and words for a running turn begin none.
    #[test]
    fn only_turns_that_nobody_forced_count_against_a_budget() {
        let given = with_a_message();
        let session = &given.session;
        let events = finished(session);
        assert!(starts_turn(session, &events));
        let paused = held(session, events, PauseReason::BudgetSpent);
        assert!(!starts_turn(session, &paused));
        assert_eq!(paused.last(), Some(&InboxEvent::Paused { reason: PauseReason::BudgetSpent }.into()));
        let mut forced = session.clone();
        forced.inbox[0].forced = true;
        assert!(!starts_turn(&forced, &finished(&forced)));
        let queued = |delivery| given_events(session, send(9, delivery));
        assert!(queues_turn(&queued(Delivery::Queue)));
        assert!(!queues_turn(&queued(Delivery::Steer)));
    }

    fn given_events(session: &Session, input: Input) -> Vec<Event> {
        let Input::Command(command) = input else { panic!("it is a command") };
        decide(session, &command, session.last_activity_at, &Rules::default()).unwrap()
    }
}
