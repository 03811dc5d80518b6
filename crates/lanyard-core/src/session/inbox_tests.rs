//! Turns and the inbox against a model that fits on a page: whatever is sent, cancelled, lost, delivered or restarted,
//! every message that was admitted is started, steered, withdrawn or still waiting, each once; never two turns run; and
//! a log that is read again adds up to the same session (S3-15, S3-19, S3-B01, S3-B04).

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use crate::id::TurnId;
use crate::session::event::{Event, InboxEvent, TurnEvent, TurnOutcome};
use crate::session::state::InterruptCause;
use crate::session::testing::{
    Answer, Given, Input, begins, cancel_turn, complete, daemon_restarted, edit, ends, given,
    guidance_delivered, inbox, order, promote, send, stop, turn_delivered, turn_finished_as, turn_lost,
    withdraw_stop, withdraw_turn, work_ended,
};
use crate::session::{Delivery, InboxChange, Promotion, Session, TurnRow, TurnStatus, TurnStep, replay};

#[derive(Debug, Clone, Copy)]
enum Step {
    Send(usize),
    /// Of those that wait, the one at this place.
    Withdraw(usize),
    Promote(usize, usize),
    Edit(usize, usize),
    Turn,
    Pause,
    Go,
    Delivered,
    Finish(usize),
    Cancel,
    Ended,
    Lost(usize),
    NotesDelivered,
    Call,
    Stop,
    Unstop,
    Complete,
    /// The daemon is killed; nothing of the turn's work is left.
    Restart,
    /// It is killed and the record is read from the log again.
    Replay,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0..4_usize).prop_map(Step::Send),
        2 => (0..4_usize).prop_map(Step::Withdraw),
        2 => (0..4_usize, 0..3_usize).prop_map(|(at, to)| Step::Promote(at, to)),
        2 => (0..4_usize, 0..3_usize).prop_map(|(at, to)| Step::Edit(at, to)),
        1 => Just(Step::Turn),
        1 => Just(Step::Pause),
        3 => Just(Step::Go),
        3 => Just(Step::Delivered),
        6 => (0..4_usize).prop_map(Step::Finish),
        2 => Just(Step::Cancel),
        2 => Just(Step::Ended),
        1 => (0..5_usize).prop_map(Step::Lost),
        2 => Just(Step::NotesDelivered),
        2 => Just(Step::Call),
        1 => Just(Step::Stop),
        1 => Just(Step::Unstop),
        1 => prop::bool::weighted(0.1).prop_map(|end| if end { Step::Complete } else { Step::Go }),
        2 => Just(Step::Restart),
        2 => Just(Step::Replay),
    ]
}

const PROMOTIONS: [Promotion; 3] = [Promotion::Front, Promotion::Steer, Promotion::Interrupt];

/// What has become of each message, told from the answers alone.
#[derive(Debug, Default)]
struct Model {
    next: u128,
    admitted: BTreeSet<TurnId>,
    started: Vec<TurnId>,
    steered: BTreeSet<TurnId>,
    withdrawn: BTreeSet<TurnId>,
    running: Option<TurnId>,
    rows: BTreeMap<TurnId, TurnRow>,
}

impl Model {
    fn see(&mut self, answer: &Answer) {
        for event in &answer.events {
            match event {
                Event::Turn(TurnEvent::Started { turn, .. }) => {
                    assert_eq!(self.running, None, "two turns run");
                    assert!(!self.started.contains(turn), "{turn} ran twice");
                    assert!(!self.withdrawn.contains(turn) && !self.steered.contains(turn));
                    self.admitted.insert(*turn);
                    self.started.push(*turn);
                    self.running = Some(*turn);
                }
                Event::Turn(TurnEvent::Finished { turn, .. } | TurnEvent::Interrupted { turn, .. }) => {
                    assert_eq!(self.running.take(), Some(*turn));
                }
                Event::Inbox(InboxEvent::Queued { turn, .. }) => {
                    assert!(self.admitted.insert(*turn));
                }
                Event::Inbox(InboxEvent::Steered { turn, into, .. }) => {
                    assert_eq!(self.running, Some(*into));
                    assert!(self.steered.insert(*turn));
                }
                Event::Inbox(InboxEvent::Withdrawn { turn, .. }) => {
                    assert!(self.withdrawn.insert(*turn));
                }
                Event::Turn(_)
                | Event::Inbox(_)
                | Event::Change(_)
                | Event::Context(_)
                | Event::Control(_)
                | Event::Transcript(_)
                | Event::Run(_)
                | Event::Gate(_)
                | Event::Writer(_)
                | Event::Review(_) => {}
            }
        }
    }

    fn check(&self, session: &Session) {
        assert_eq!(session.turn.as_ref().map(|turn| turn.id), self.running);
        let waiting: BTreeSet<TurnId> = session.inbox.iter().map(|waiting| waiting.turn).collect();
        assert_eq!(waiting.len(), session.inbox.len(), "each waits once");
        let started: BTreeSet<TurnId> = self.started.iter().copied().collect();
        let ends = [&started, &self.steered, &self.withdrawn, &waiting];
        assert_eq!(ends.iter().map(|set| set.len()).sum::<usize>(), self.admitted.len(), "nothing is lost");
        assert!(ends.iter().all(|set| set.is_subset(&self.admitted)));
        // Whatever waits with nothing running waits for a reason that is told.
        assert!(session.turn.is_some() || session.inbox.is_empty() || session.inbox_paused.is_some());
        assert!(!session.state.is_ended() || session.inbox.is_empty());
        // A note that is on its way has its message, and only while a turn runs.
        assert!(session.turn.is_some() || session.inbox.iter().all(|waiting| waiting.note.is_none()));
        assert_eq!(self.rows.len(), self.admitted.len(), "each has its row");
        for (turn, row) in &self.rows {
            let right = match row.status {
                TurnStatus::Queued => waiting.contains(turn),
                TurnStatus::Running => self.running == Some(*turn),
                TurnStatus::Steered => self.steered.contains(turn),
                TurnStatus::Withdrawn => self.withdrawn.contains(turn),
                TurnStatus::Completed
                | TurnStatus::Failed
                | TurnStatus::Refused
                | TurnStatus::Cancelled
                | TurnStatus::Interrupted
                | TurnStatus::Uncertain => started.contains(turn) && self.running != Some(*turn),
            };
            assert!(right, "{turn} is {}", row.status.as_str());
        }
    }
}

fn waits(given: &Given, at: usize) -> Option<u128> {
    let inbox = &given.session.inbox;
    (!inbox.is_empty()).then(|| inbox[at % inbox.len()].turn.as_u128())
}

/// The input a step is, as the session stands.
fn input(step: Step, given: &Given, model: &mut Model) -> Option<Input> {
    let running = given.session.turn.as_ref().map(|turn| turn.id.as_u128());
    Some(match step {
        Step::Send(delivery) => {
            model.next += 1;
            send(model.next, Delivery::ALL[delivery])
        }
        Step::Withdraw(at) => withdraw_turn(waits(given, at)?),
        Step::Promote(at, to) => promote(waits(given, at)?, PROMOTIONS[to]),
        Step::Edit(at, to) => edit(waits(given, at)?, Some("other words"), Some(Delivery::ALL[to + 1])),
        Step::Turn => {
            let mut turns: Vec<u128> =
                given.session.inbox.iter().map(|waiting| waiting.turn.as_u128()).collect();
            turns.reverse();
            order(&turns)
        }
        Step::Pause => inbox(InboxChange::Pause),
        Step::Go => inbox(InboxChange::Go),
        Step::Delivered => turn_delivered(running?),
        Step::Finish(how) => {
            let all =
                [TurnOutcome::Completed, TurnOutcome::Completed, TurnOutcome::Failed, TurnOutcome::Refused];
            turn_finished_as(running?, all[how])
        }
        Step::Cancel => cancel_turn(),
        Step::Ended => work_ended(),
        Step::Lost(cause) => turn_lost(InterruptCause::ALL[cause]),
        Step::NotesDelivered => {
            let notes: Vec<u128> = given.session.guidance.iter().map(|note| note.id.as_u128()).collect();
            guidance_delivered(&notes)
        }
        Step::Call => begins(1),
        Step::Stop => stop(),
        Step::Unstop => withdraw_stop(),
        Step::Complete => complete(),
        Step::Restart => daemon_restarted(),
        Step::Replay => return None,
    })
}

proptest! {
    #[test]
    fn every_message_is_carried_out_once_or_waits(steps in vec(step(), 1..80)) {
        let mut given = given([]);
        let mut model = Model::default();
        for step in steps {
            let told = given.log.len();
            let before: Vec<TurnId> = given.session.inbox.iter().map(|waiting| waiting.turn).collect();
            match input(step, &given, &mut model) {
                Some(input) => {
                    let answer = given.put(&input);
                    model.see(&answer);
                    if matches!(step, Step::Call) {
                        let answer = given.put(&ends(1));
                        model.see(&answer);
                    }
                }
                None => given.session = replay(&given.log).unwrap().unwrap(),
            }
            for envelope in &given.log[told..] {
                if let Some(turn_step) = TurnStep::of(envelope) {
                    let row = turn_step.onto(model.rows.remove(&turn_step.turn)).unwrap();
                    model.rows.insert(row.turn, row);
                }
            }
            model.check(&given.session);
            // Those that only wait keep their order among themselves.
            if !matches!(step, Step::Promote(..) | Step::Edit(..) | Step::Turn) {
                let after: Vec<TurnId> = given.session.inbox.iter().map(|waiting| waiting.turn).collect();
                let kept: Vec<TurnId> = after.into_iter().filter(|turn| before.contains(turn)).collect();
                let left: Vec<TurnId> = before.into_iter().filter(|turn| kept.contains(turn)).collect();
                prop_assert_eq!(kept, left);
            }
            let again = replay(&given.log).unwrap().unwrap();
            prop_assert_eq!(&again, &given.session);
        }
    }
}
