//! Where a run stands: how far its greeting has come, whether its session still wants it, and whether its processes are
//! being ended. The runner changes it only by the methods here; `course_table.txt` shows each change in each state.

use lanyard_core::text::without_escapes;
use tokio::time::Instant;

use crate::agents::driver::Readiness;

/// The beginning of the codes with which an agent refuses to take a conversation up again.
const RESUME_FAILED: &str = "resume_";

/// How far the greeting has come.
#[derive(Debug)]
pub(super) enum GreetingStage {
    Greeting {
        until: Instant,
    },
    /// A conversation was taken up again; the agent may still be playing it back.
    Settling {
        readiness: Box<Readiness>,
        replayed: u64,
        quiet_at: Instant,
        until: Instant,
    },
    Ready,
}

/// Whether the session wants the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunNeed {
    Kept,
    /// The session needs the run no more.
    LetGo,
    /// A stop of the session waits for the end of the run. It may be withdrawn until then.
    Stopped {
        let_go: bool,
    },
}

/// Whether the processes of the run are being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndOrder {
    None,
    Given,
    /// Given because the conversation could not be taken up again, and another way is left.
    GivenToTryAgain,
}

/// Why the agent cannot be worked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Breakage {
    pub(super) code: String,
    pub(super) what: String,
}

impl Breakage {
    /// The reason as the log has it.
    pub(super) fn reason(&self) -> String {
        format!("{}: {}", self.code, without_escapes(&self.what))
    }
}

#[derive(Debug)]
pub(super) struct Course {
    stage: GreetingStage,
    wanted: RunNeed,
    end: EndOrder,
    broken: Option<Breakage>,
}

impl Course {
    /// A run whose agent takes prompts.
    pub(super) const fn ready() -> Self {
        Self { stage: GreetingStage::Ready, wanted: RunNeed::Kept, end: EndOrder::None, broken: None }
    }

    pub(super) const fn stage(&self) -> &GreetingStage {
        &self.stage
    }

    /// The agent has to greet before this moment.
    pub(super) fn await_greeting(&mut self, until: Instant) {
        self.stage = GreetingStage::Greeting { until };
    }

    /// The agent greeted and may be playing the conversation back.
    pub(super) fn settle(&mut self, readiness: Readiness, replayed: u64, quiet_at: Instant, until: Instant) {
        self.stage = GreetingStage::Settling { readiness: Box::new(readiness), replayed, quiet_at, until };
    }

    /// Counts messages that were played back after the greeting. Answers false at any other time.
    pub(super) fn count_replayed(&mut self, messages: u64, now_quiet_at: Instant) -> bool {
        match &mut self.stage {
            GreetingStage::Settling { replayed, quiet_at, .. } => {
                *replayed += messages;
                *quiet_at = now_quiet_at;
                true
            }
            GreetingStage::Greeting { .. } | GreetingStage::Ready => false,
        }
    }

    /// The agent takes prompts from now on.
    pub(super) fn greeted(&mut self) {
        self.stage = GreetingStage::Ready;
    }

    pub(super) const fn is_ready(&self) -> bool {
        matches!(self.stage, GreetingStage::Ready)
    }

    /// Whether a turn may begin: the agent is ready and is not being ended.
    pub(super) fn takes_turns(&self) -> bool {
        self.is_ready() && !self.is_ending()
    }

    /// A stop of the session waits for the end of the run.
    pub(super) fn stop(&mut self) {
        let let_go = self.wanted == RunNeed::LetGo || self.wanted == RunNeed::Stopped { let_go: true };
        self.wanted = RunNeed::Stopped { let_go };
    }

    /// The stop was withdrawn.
    pub(super) fn withdraw_stop(&mut self) {
        if let RunNeed::Stopped { let_go } = self.wanted {
            self.wanted = if let_go { RunNeed::LetGo } else { RunNeed::Kept };
        }
    }

    /// The session needs the run no more.
    pub(super) fn let_go(&mut self) {
        self.wanted = match self.wanted {
            RunNeed::Kept | RunNeed::LetGo => RunNeed::LetGo,
            RunNeed::Stopped { .. } => RunNeed::Stopped { let_go: true },
        };
    }

    pub(super) const fn is_stopping(&self) -> bool {
        matches!(self.wanted, RunNeed::Stopped { .. })
    }

    /// Whether the run ends because its session was stopped or has no use for it.
    pub(super) fn is_unwanted(&self) -> bool {
        self.wanted != RunNeed::Kept
    }

    /// The processes of the run are being ended.
    pub(super) fn end(&mut self) {
        if self.end == EndOrder::None {
            self.end = EndOrder::Given;
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        self.end != EndOrder::None
    }

    /// The agent cannot be worked with. The first reason stays.
    pub(super) fn break_with(&mut self, code: &str, what: String) {
        self.broken.get_or_insert(Breakage { code: code.to_owned(), what });
    }

    pub(super) const fn broken(&self) -> Option<&Breakage> {
        self.broken.as_ref()
    }

    /// Whether the run goes on as far as is known, so that the agent can be told goodbye.
    pub(super) fn is_sound(&self) -> bool {
        self.broken.is_none() && !self.is_ending()
    }

    /// A broken run is to be ended. Where it could not take the conversation up again, another way is tried as long as one
    /// is left and the session is not stopped.
    pub(super) fn give_up(&mut self, ways_are_left: bool) {
        let resumable = self.broken.as_ref().is_some_and(|broken| broken.code.starts_with(RESUME_FAILED));
        if self.end == EndOrder::None && resumable && ways_are_left && !self.is_stopping() {
            self.end = EndOrder::GivenToTryAgain;
        }
    }

    /// Whether another run is to try another way.
    pub(super) fn tries_again(&self) -> bool {
        self.end == EndOrder::GivenToTryAgain
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect_file;

    use super::*;

    const WANTED: [(&str, RunNeed); 4] = [
        ("kept", RunNeed::Kept),
        ("let-go", RunNeed::LetGo),
        ("stopped", RunNeed::Stopped { let_go: false }),
        ("stopped+let-go", RunNeed::Stopped { let_go: true }),
    ];
    const ENDS: [(&str, EndOrder); 3] =
        [("runs", EndOrder::None), ("ends", EndOrder::Given), ("tries-again", EndOrder::GivenToTryAgain)];
    const BROKEN: [&str; 3] = ["sound", "resume_lost", "line_too_long"];
    type CourseChange = fn(&mut Course);
    const CHANGES: [(&str, CourseChange); 8] = [
        ("stop", Course::stop),
        ("withdraw_stop", Course::withdraw_stop),
        ("let_go", Course::let_go),
        ("end", Course::end),
        ("break_with resume_lost", |course| course.break_with("resume_lost", String::new())),
        ("break_with line_too_long", |course| course.break_with("line_too_long", String::new())),
        ("give_up, ways left", |course| course.give_up(true)),
        ("give_up, no way left", |course| course.give_up(false)),
    ];

    fn course(wanted: RunNeed, end: EndOrder, broken: &str) -> Course {
        let mut course = Course { wanted, end, ..Course::ready() };
        if broken != "sound" {
            course.break_with(broken, String::new());
        }
        course
    }

    fn name(course: &Course) -> String {
        let wanted = WANTED.iter().find(|(_, wanted)| *wanted == course.wanted).unwrap().0;
        let end = ENDS.iter().find(|(_, end)| *end == course.end).unwrap().0;
        format!("{wanted} {end} {}", course.broken().map_or("sound", |broken| &broken.code))
    }

    /// Each state against each change. A change that a state does not take is left out.
    #[test]
    fn every_change_in_every_state() {
        let mut table = String::new();
        for (_, wanted) in WANTED {
            for (_, end) in ENDS {
                for broken in BROKEN {
                    let before = name(&course(wanted, end, broken));
                    writeln!(table, "{before}").unwrap();
                    for (change, make) in CHANGES {
                        let mut course = course(wanted, end, broken);
                        make(&mut course);
                        let after = name(&course);
                        if after != before {
                            writeln!(table, "    {change} -> {after}").unwrap();
                        }
                    }
                }
            }
        }
        expect_file!["course_table.txt"].assert_eq(&table);
    }

    #[test]
    fn a_run_takes_turns_only_once_it_greeted_and_until_it_ends() {
        let now = Instant::now();
        let mut course = Course::ready();
        course.await_greeting(now);
        assert!(!course.is_ready() && !course.takes_turns() && !course.count_replayed(1, now));
        let readiness = Readiness {
            native: String::new(),
            info: lanyard_core::session::AgentInfo::default(),
            capabilities: lanyard_core::session::Capabilities::default(),
            how: crate::agents::driver::Opened::Resumed,
        };
        course.settle(readiness, 0, now, now);
        assert!(!course.is_ready() && !course.takes_turns() && course.count_replayed(2, now));
        assert!(matches!(course.stage(), GreetingStage::Settling { replayed: 2, .. }));
        course.greeted();
        assert!(course.is_ready() && course.takes_turns() && !course.count_replayed(1, now));
        course.stop();
        assert!(course.takes_turns() && course.is_stopping() && course.is_unwanted());
        course.end();
        assert!(course.is_ready() && !course.takes_turns() && !course.is_sound());
    }
}
