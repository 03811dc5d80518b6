//! The ladder and the outbox against a model that fits on a page: what an agent is told must be what the model says,
//! whatever is pressed, written, lost or killed in between (S0-38..S0-46, S0-B02, S0-B03, S0-B06, S0-B10).

use proptest::collection::vec;
use proptest::prelude::*;

use crate::session::calls::{Compliance, Lead, Passage};
use crate::session::testing::{
    Answer, Given, Input, Said, begins, born, complies, ends, guide, note_id, stop, withdraw_stop, work_ended,
};
use crate::session::{NewSession, NoteStatus, Signal};

#[derive(Debug, Clone, Copy)]
enum Step {
    Press,
    Withdraw,
    Write,
    /// A call that does not comply, and whether its answer gets out.
    Call {
        arrives: bool,
    },
    HandOff,
    /// The clock goes on, in seconds.
    Wait(u64),
    /// The daemon is killed and comes back.
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Press),
        1 => Just(Step::Withdraw),
        3 => Just(Step::Write),
        6 => prop::bool::weighted(0.8).prop_map(|arrives| Step::Call { arrives }),
        1 => Just(Step::HandOff),
        1 => (1..40_u64).prop_map(Step::Wait),
        1 => Just(Step::Kill),
    ]
}

/// What an answer should be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    AsItIs,
    /// The directive with the answer.
    Graceful,
    /// The directive instead of it; the tool did not run.
    Refused(u8),
    /// Notes, each with whether it is a repeat.
    Notes(Vec<(u128, bool)>),
}

/// Numbers and queues; no events, no log.
#[derive(Debug, Default)]
struct Model {
    level: u8,
    told: bool,
    next: u128,
    pending: Vec<(u128, bool)>,
    /// Sent and not acknowledged, with the daemon that sent it.
    out: Vec<(u128, u32)>,
    daemon: u32,
    ended: bool,
}

impl Model {
    fn rise(&mut self) {
        self.level = (self.level + 1).min(3);
        self.told = false;
    }

    fn call(&mut self, arrives: bool) -> Expected {
        if self.ended {
            return Expected::Refused(3);
        }
        let (seen, lost): (Vec<_>, Vec<_>) = self.out.drain(..).partition(|(_, by)| *by == self.daemon);
        drop(seen);
        self.pending.extend(lost.into_iter().map(|(note, _)| (note, true)));
        self.pending.sort_unstable();
        if self.level > 0 {
            if self.told {
                self.rise();
            }
            self.told = true;
            self.ended = self.level == 3;
            return if self.level == 1 { Expected::Graceful } else { Expected::Refused(self.level) };
        }
        if self.pending.is_empty() {
            return Expected::AsItIs;
        }
        let notes = std::mem::take(&mut self.pending);
        if arrives {
            self.out = notes.iter().map(|(note, _)| (*note, self.daemon)).collect();
        } else {
            self.pending = notes.iter().map(|(note, _)| (*note, true)).collect();
        }
        Expected::Notes(notes)
    }
}

/// Carries a whole call out: before it, and if it runs, its answer.
fn call(given: &mut Given, n: u32, arrives: bool) -> Expected {
    let Answer { said, .. } = given.put(&begins(n));
    match said {
        Some(Said::Passage(Passage::Refused(stop))) => {
            if u8::from(stop.level) == 3 && !given.session.state.is_ended() {
                given.put(&work_ended());
            }
            return Expected::Refused(stop.level.into());
        }
        Some(Said::Passage(Passage::Go) | Said::Lead(_)) | None => {}
    }
    let Some(Said::Lead(lead)) = given.put(&ends(n)).said else { return Expected::AsItIs };
    let Lead { stop, notes } = lead;
    if let Some(stop) = stop {
        assert_eq!(u8::from(stop.level), 1, "above level 1 the tool does not run");
        return Expected::Graceful;
    }
    if notes.is_empty() {
        return Expected::AsItIs;
    }
    if !arrives {
        given.put(&Signal::AnswerLost { notes: notes.iter().map(|told| told.note).collect() }.into());
    }
    Expected::Notes(notes.iter().map(|told| (told.note.as_u128(), told.again)).collect())
}

proptest! {
    #[test]
    fn agents_are_told_what_the_model_says(steps in vec(step(), 1..60)) {
        let mut given = born(&NewSession { source: Some("external".into()), ..NewSession::default() });
        let mut model = Model { daemon: 1, ..Model::default() };
        for (n, step) in (1..).zip(&steps) {
            // The harness moves on by a second with each input; the model only counts what it waits.
            match *step {
                Step::Press if !model.ended => {
                    given.put(&stop());
                    if model.level < 3 { model.rise(); }
                    if model.level == 3 {
                        given.put(&work_ended());
                        model.ended = true;
                    }
                }
                Step::Withdraw if !model.ended => {
                    given.put(&withdraw_stop());
                    if model.level < 3 { model.level = 0; model.told = false; }
                }
                Step::Write if !model.ended && model.pending.len() + model.out.len() < 20 => {
                    model.next += 1;
                    given.put(&guide(model.next, "words"));
                    model.pending.push((note_id(model.next).as_u128(), false));
                }
                Step::Call { arrives } => {
                    let expected = model.call(arrives);
                    prop_assert_eq!(call(&mut given, n, arrives), expected, "step {}", n);
                }
                Step::HandOff => {
                    let said = given.put(&Input::Begins(complies(Compliance::HandOff))).said;
                    prop_assert_eq!(said, Some(Said::Passage(Passage::Go)));
                    if !model.ended {
                        let (_, lost): (Vec<_>, Vec<_>) =
                            model.out.drain(..).partition(|(_, by)| *by == model.daemon);
                        model.pending.extend(lost.into_iter().map(|(note, _)| (note, true)));
                        model.pending.sort_unstable();
                    }
                }
                Step::Wait(seconds) => {
                    // Only whole levels of waiting, so that the harness's own seconds do not matter.
                    given = given.later(seconds * 1_000);
                    let before = given.session.stop.as_ref().map(|stop| stop.level);
                    given.put(&Signal::Due { now: given.now }.into());
                    let after = given.session.stop.as_ref().map(|stop| stop.level);
                    if before != after {
                        prop_assert!(before < after && !model.ended, "a deadline only raises, by one");
                        model.rise();
                        prop_assert_eq!(after.map(u8::from), Some(model.level));
                    }
                    if model.level == 3 && !model.ended {
                        given.put(&work_ended());
                        model.ended = true;
                    }
                }
                Step::Kill => {
                    given.put(&Input::Restarted);
                    model.daemon += 1;
                }
                Step::Press | Step::Withdraw | Step::Write => {}
            }
            // What waits when a session ends is settled as not delivered.
            if model.ended {
                model.pending.clear();
            }
            let waiting = given.session.guidance.iter().filter(|note| note.status == NoteStatus::Pending);
            prop_assert_eq!(waiting.count(), model.pending.len(), "nothing that waits is lost, step {}", n);
            prop_assert_eq!(given.session.state.is_ended(), model.ended);
            let level = given.session.stop.as_ref().map_or(0, |stop| u8::from(stop.level));
            prop_assert_eq!(level, model.level, "step {}", n);
        }
    }
}
