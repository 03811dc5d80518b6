//! A controller in a world that does what it likes: agents finish, fail and are lost, people stop, pause, talk and delete,
//! the daemon is killed between any two steps. Whatever happens, a task comes to an end that says why, or rests where a
//! person has to say how it goes on.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::log::Record as _;
use crate::session::{InterruptCause, State, TurnStatus};
use crate::task::event::{TaskEnvelope, TaskEvent};
use crate::task::health::Remedy;
use crate::task::record::{Task, TaskEnding, TaskState, WorkerKind};
use crate::task::testing::{Given, cancel, deploy, pending_as, result, run_id, seen_new, short_ids};
use crate::task::{Kin, SeenRun, SeenSession, TaskCommand, TaskWant, observe, want};

/// Times a lost worker is started again.
const RESTARTS: u32 = 2;
/// Looks after which a world that does no more than it must has to be at rest.
const LOOKS_MAX: usize = 60;

/// Something that happens by itself, or that somebody does. One that cannot happen now does not.
#[derive(Debug, Clone)]
enum Move {
    /// The controller looks once and does what is wanted.
    Look,
    /// The daemon is killed after it wrote down what is new, before it did anything.
    LookAndDie,
    /// The daemon is killed after it did what is wanted, and does it again when it is back.
    LookTwice,
    TurnEnds(TurnStatus),
    Lost(InterruptCause),
    CancelTakes,
    UserTalks,
    Stop(u8),
    StopWithdrawn,
    StopTakes,
    RunGone,
    Quiet(State),
    EndedByHand(State),
    Deleted,
    Mail(usize),
    Children(usize),
    Waits(usize),
    Command(TaskCommand),
}

fn a_move() -> impl Strategy<Value = Move> {
    let statuses = [TurnStatus::Completed, TurnStatus::Failed, TurnStatus::Refused];
    prop_oneof![
        12 => Just(Move::Look),
        3 => Just(Move::LookAndDie),
        3 => Just(Move::LookTwice),
        3 => proptest::sample::select(statuses.to_vec()).prop_map(Move::TurnEnds),
        3 => proptest::sample::select(InterruptCause::ALL.to_vec()).prop_map(Move::Lost),
        2 => Just(Move::CancelTakes),
        1 => Just(Move::UserTalks),
        1 => (1..3_u8).prop_map(Move::Stop),
        1 => Just(Move::StopWithdrawn),
        2 => Just(Move::StopTakes),
        2 => Just(Move::RunGone),
        2 => proptest::sample::select(vec![State::Idle, State::Stale, State::Compacted]).prop_map(Move::Quiet),
        1 => proptest::sample::select(vec![State::Completed, State::Failed]).prop_map(Move::EndedByHand),
        1 => Just(Move::Deleted),
        1 => (0..2_usize).prop_map(Move::Mail),
        1 => (0..2_usize).prop_map(Move::Children),
        1 => (0..2_usize).prop_map(Move::Waits),
        3 => command().prop_map(Move::Command),
    ]
}

fn command() -> impl Strategy<Value = TaskCommand> {
    prop_oneof![
        2 => Just(deploy()),
        2 => Just(TaskCommand::Pause { reason: None }),
        3 => Just(TaskCommand::Resume { turns: 0 }),
        1 => any::<bool>().prop_map(|now| TaskCommand::Cancel { reason: None, now }),
        1 => Just(TaskCommand::Complete { result: result("done") }),
        1 => Just(TaskCommand::Fail { reason: "broken".to_owned() }),
        1 => Just(TaskCommand::Retry),
    ]
}

struct World {
    given: Given,
    session: Option<SeenSession>,
    kin: Kin,
    runs: u128,
}

impl World {
    fn new(kind: WorkerKind) -> Self {
        // A chat is there before its task.
        let session = (kind == WorkerKind::Chat).then(seen_new);
        let given = pending_as(kind).after(&deploy());
        Self { given, session, kin: Kin::default(), runs: 0 }
    }

    fn live(&mut self) -> Option<&mut SeenSession> {
        self.session.as_mut().filter(|session| !session.deleted && !session.state.is_ended())
    }

    fn start_turn(&mut self) {
        self.runs += 1;
        let fresh = SeenRun { id: run_id(self.runs), live: true };
        let Some(session) = self.live() else { return };
        if session.state == State::Executing || session.stop_level.is_some() {
            return;
        }
        session.run = session.run.filter(|run| run.live).or(Some(fresh));
        (session.state, session.cancelling) = (State::Executing, false);
        session.turns += 1;
        session.turn = Some((TurnStatus::Running, None));
    }

    /// The turn that runs ends, and the session is in this state.
    fn end_turn(&mut self, state: State, status: TurnStatus) {
        let Some(session) = self.live().filter(|session| session.state == State::Executing) else { return };
        session.state = state;
        session.turn = Some((status, None));
        session.cancelling = false;
        session.said = Some("it works".to_owned());
    }

    fn end(&mut self, state: State) {
        self.end_turn(State::BetweenTurn, TurnStatus::Cancelled);
        if let Some(session) = self.live() {
            session.state = state;
        }
    }

    fn take(&mut self, one: &Move) {
        match one {
            Move::Look => {
                self.look();
            }
            Move::LookAndDie => {
                self.write_what_is_new();
            }
            Move::LookTwice => {
                self.write_what_is_new();
                let wanted = want(&self.given.task, self.session.as_ref());
                if let Some(wanted) = &wanted {
                    self.carry_out(wanted);
                    if !self.given.task.state.is_ended() {
                        self.look();
                    }
                }
            }
            Move::TurnEnds(status) => self.end_turn(State::BetweenTurn, *status),
            Move::Lost(cause) => self.lose(*cause),
            Move::CancelTakes => {
                if self.live().is_some_and(|session| session.cancelling) {
                    self.lose(InterruptCause::User);
                }
            }
            Move::UserTalks => self.start_turn(),
            Move::Stop(level) => self.stop(*level),
            Move::StopWithdrawn => {
                if let Some(session) = self.live() {
                    session.stop_level = None;
                }
            }
            Move::StopTakes => {
                if self.live().is_some_and(|session| session.stop_level.is_some()) {
                    self.end(State::Stopped);
                }
            }
            Move::RunGone => self.lose_run(),
            Move::Quiet(state) => {
                if let Some(session) = self.live().filter(|session| session.state != State::Executing) {
                    session.state = *state;
                }
            }
            Move::EndedByHand(state) => self.end(*state),
            Move::Deleted => {
                if let Some(session) = &mut self.session {
                    session.deleted = true;
                }
            }
            Move::Mail(count) => self.kin.mail = *count,
            Move::Children(count) => self.kin.open_children = *count,
            Move::Waits(count) => {
                if let Some(session) = self.live() {
                    session.waiting = *count;
                }
            }
            Move::Command(command) => self.ask(command),
        }
    }

    fn lose(&mut self, cause: InterruptCause) {
        let status = match cause {
            InterruptCause::User => TurnStatus::Cancelled,
            InterruptCause::Crash => TurnStatus::Uncertain,
            InterruptCause::HostLost | InterruptCause::Timeout | InterruptCause::Limit => {
                TurnStatus::Interrupted
            }
        };
        self.end_turn(State::Interrupted { cause }, status);
        if cause == InterruptCause::Crash {
            self.lose_run();
        }
    }

    fn lose_run(&mut self) {
        let Some(session) = self.session.as_mut().filter(|session| session.state != State::Executing) else {
            return;
        };
        if let Some(run) = &mut session.run {
            run.live = false;
        }
    }

    fn stop(&mut self, level: u8) {
        if let Some(session) = self.live() {
            session.stop_level = session.stop_level.max(Some(level));
        }
    }

    /// As the daemon does, with what it knows of the session.
    fn ask(&mut self, command: &TaskCommand) {
        let had = self.session.as_ref().map_or(0, |session| session.turns);
        let command = match command {
            TaskCommand::Deploy { session, worker, blocked, .. } => {
                let chat = self.given.task.spec.chat.is_some();
                let (worker, blocked) = (*worker, *blocked);
                TaskCommand::Deploy { session: *session, worker, blocked, turns: if chat { had } else { 0 } }
            }
            TaskCommand::Resume { .. } => TaskCommand::Resume { turns: had },
            TaskCommand::Pause { .. }
            | TaskCommand::Cancel { .. }
            | TaskCommand::Complete { .. }
            | TaskCommand::Fail { .. }
            | TaskCommand::Retry
            | TaskCommand::Edit { .. } => command.clone(),
        };
        if self.given.put(&command).is_ok() && command == TaskCommand::Retry {
            // The next attempt has a session of its own; a chat is what it was.
            self.session = self.session.take().filter(|_| self.given.task.spec.chat.is_some());
        }
    }

    fn write_what_is_new(&mut self) -> bool {
        let events = observe(&self.given.task, self.session.as_ref(), self.kin);
        for event in &events {
            self.given.add(event.clone());
        }
        !events.is_empty()
    }

    /// Whether there was anything new or anything to do.
    fn look(&mut self) -> bool {
        let new = self.write_what_is_new();
        let wanted = want(&self.given.task, self.session.as_ref());
        if let Some(wanted) = &wanted {
            self.carry_out(wanted);
        }
        new || wanted.is_some()
    }

    fn carry_out(&mut self, wanted: &TaskWant) {
        assert!(!self.given.task.state.is_ended(), "{wanted:?} after the end");
        match wanted {
            TaskWant::Create => {
                self.session.get_or_insert_with(seen_new);
            }
            TaskWant::Prompt { .. } => {
                self.start_turn();
                // In a chat whoever tells it says so.
                if self.given.task.spec.kind == WorkerKind::Chat {
                    self.given.add(TaskEvent::Started {});
                }
            }
            TaskWant::CancelTurn => {
                if let Some(session) = self.live() {
                    session.cancelling = true;
                }
            }
            TaskWant::Stop { now } => self.stop(if *now { 2 } else { 1 }),
            TaskWant::EndSession { completed } => {
                self.end(if *completed { State::Completed } else { State::Failed });
            }
            TaskWant::Settle { state, reason } => {
                self.given.add(TaskEvent::Ended { state: *state, reason: reason.clone() });
            }
            TaskWant::Restart => {
                let turns = self.session.as_ref().map_or(0, |session| session.turns);
                let why = "its agent was lost".to_owned();
                self.given.add(if self.given.task.remedies.restarts < RESTARTS {
                    TaskEvent::Remedied { remedy: Remedy::Restart, why, turns }
                } else {
                    TaskEvent::EndAsked { ending: TaskEnding::Fail, reason: Some(why) }
                });
            }
        }
    }

    /// What has been begun comes to its end, one thing at a time. Answers whether there was anything.
    fn finish_something(&mut self) -> bool {
        if self.kin != Kin::default() {
            self.kin = Kin::default();
            return true;
        }
        let Some(session) = &mut self.session else { return false };
        let over = session.deleted || session.state.is_ended();
        let next = if over {
            session.run.is_some_and(|run| run.live).then_some(Move::RunGone)
        } else if session.waiting > 0 {
            session.waiting = 0;
            return true;
        } else if session.stop_level.is_some() {
            Some(Move::StopTakes)
        } else if session.cancelling {
            Some(Move::CancelTakes)
        } else {
            (session.state == State::Executing).then_some(Move::TurnEnds(TurnStatus::Completed))
        };
        // A deleted session's turn is over with it.
        if over && session.state == State::Executing {
            session.state = State::BetweenTurn;
        }
        next.inspect(|next| self.take(next)).is_some()
    }

    /// Lets everything come to rest. Answers whether it did.
    fn settle_down(&mut self) -> bool {
        (0..LOOKS_MAX).any(|_| !self.look() && !self.finish_something())
    }

    /// Whether somebody has to say how it goes on.
    fn is_held(&self) -> bool {
        let task = &self.given.task;
        match task.state {
            TaskState::Pending | TaskState::Paused => true,
            TaskState::Interrupted => {
                task.spec.kind != WorkerKind::Background
                    || matches!(task.interrupted_by, Some(InterruptCause::User | InterruptCause::Limit))
            }
            // Whoever works at it in a chat or from outside says when it is done.
            TaskState::Running => task.spec.kind != WorkerKind::Background,
            TaskState::Deploying | TaskState::Completed | TaskState::Failed | TaskState::Cancelled => false,
        }
    }

    fn describe(&self) -> String {
        let log: Vec<String> = self.given.log.iter().map(|entry| format!("{:?}", entry.event)).collect();
        short_ids(&format!("{:#?}\n{:?}\n{}", self.session, self.kin, log.join("\n")))
    }
}

fn kinds() -> impl Strategy<Value = WorkerKind> {
    proptest::sample::select(vec![
        WorkerKind::Background,
        WorkerKind::Background,
        WorkerKind::Chat,
        WorkerKind::External,
    ])
}

/// Whoever looks at it afterwards is told why.
fn says_why(task: &Task) -> bool {
    task.reason.is_some() || (task.state == TaskState::Completed && task.result.is_some())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// S4-B07, S4-B09: it ends with a reason or a result, or it waits for a person; and when that person has enough, it
    /// ends.
    #[test]
    fn a_task_always_comes_to_rest(kind in kinds(), moves in vec(a_move(), 0..40)) {
        let mut world = World::new(kind);
        for one in &moves {
            world.take(one);
        }
        prop_assert!(world.settle_down(), "there is always something to do:\n{}", world.describe());
        if !world.given.task.state.is_ended() {
            prop_assert!(world.is_held(), "nothing is done about it:\n{}", world.describe());
            let pending = world.given.task.state == TaskState::Pending;
            world.given.put(&cancel()).unwrap();
            prop_assert!(world.settle_down(), "there is always something to do:\n{}", world.describe());
            prop_assert!(world.given.task.state.is_ended(), "it does not end:\n{}", world.describe());
            prop_assert!(!pending || world.given.task.state == TaskState::Cancelled);
        }
        prop_assert!(says_why(&world.given.task), "it does not say why:\n{}", world.describe());
        // Nothing follows, whatever else happens.
        let ended = world.given.task.clone();
        for one in moves.iter().filter(|one| !matches!(one, Move::Command(_))) {
            world.take(one);
        }
        prop_assert_eq!(&world.given.task, &ended);
    }

    /// S4-B06: the log alone makes the task again, before and after a trip through JSON. S4-14: one worker.
    #[test]
    fn a_log_always_adds_up_to_the_task(kind in kinds(), moves in vec(a_move(), 0..60)) {
        let mut world = World::new(kind);
        let worker = world.given.task.worker;
        for one in &moves {
            world.take(one);
        }
        let Given { task, log } = world.given;
        prop_assert_eq!(task.worker, worker);
        let read: Vec<TaskEnvelope> = log
            .iter()
            .map(|entry| serde_json::from_str(&serde_json::to_string(entry).unwrap()).unwrap())
            .collect();
        prop_assert_eq!(&read, &log);
        let mut again = Task::born(&read[0]).unwrap();
        for entry in &read[1..] {
            again.apply(entry).unwrap();
        }
        prop_assert_eq!(&again, &task);
        let record = serde_json::to_string(&task).unwrap();
        prop_assert_eq!(serde_json::from_str::<Task>(&record).unwrap(), task);
    }
}
