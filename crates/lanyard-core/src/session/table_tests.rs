//! The transition table: every state against every command and every signal, printed into `transitions.txt`. A change
//! of behaviour is a diff of that file. Beside it, DESIGN's table of legal transitions, checked against each cell.

use crate::session::Compliance;
use crate::session::testing::{
    START_MS, ann, begins, bound_met, calls_in_flight, claim, comment_id, complies, draft, edit, ends, inbox,
    note_id, notify, order, promote, release, see, send, turn_delivered, view, withdraw_turn,
};
use crate::time::Timestamp;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::expect_file;

use crate::policy::MemoryMode;
use crate::session::event::{Ending, TurnOutcome};
use crate::session::limit_tests::limited;
use crate::session::state::InterruptCause;
use crate::session::testing::{
    Answer, Given, HOUR, Input, activity, add_alias, answer, archive, archived, asked_again, born,
    branch_discarded, branch_merged, cancel_asked, cancel_turn, checkpoint, choose, complete,
    context_compacted, daemon_restarted, delete, deleted, ended, error_seen, fail, file_changed, gate_asked,
    gate_withdrawn, guidance_delivered, guide, in_force, in_state, interrupted_by, issue_seen,
    migrate_to_agent, migrate_to_owner, noted, offered, planned, quiet, rename, reset, resume, rolled_back,
    run_adopted, run_ended, run_ready, run_started, said, set_anchors, set_memory, snapshot_skipped,
    snapshot_taken, start_turn, stop, stop_at, tool_called, tool_returned, tools_missing, turn_finished,
    turn_finished_as, turn_lost, unarchive, usage, withdraw_guidance, withdraw_stop, work_ended,
};
use crate::session::{
    Command, Delivery, InboxChange, LimitKind, NewSession, Promotion, ReviewCommand, Signal, State,
    StateName, StopLevel, TerminalActivity,
};

const LEGEND: &str = "\
What each input does to a session in each state. A change of behaviour is a change of this file; `UPDATE_EXPECT=1`
writes it anew.

  executing        the session enters this state; `a > b` passes through a
  =                something is recorded and the state stays
  ?                recorded as unexpected, nothing else changes
  !code            refused with this code
  ·                nothing happens

Every session has one piece of guidance pending; where a message waits it is turn 7. `interrupted` behaves the same
whatever its cause. `run` is the first run of the session, alive and ready; a gate that is open is gate 1, its
question's handle is 1 as well.
";

/// S1-09..S1-17, X-04, S0-25: the whole table.
#[test]
fn every_state_answers_every_input() {
    let mut text = LEGEND.to_owned();
    for (title, columns) in tables() {
        let mut rows = vec![vec![title.to_owned()]];
        rows[0].extend(columns.iter().map(|(name, _)| (*name).to_owned()));
        for (name, given) in situations() {
            let mut row = vec![name.to_owned()];
            row.extend(columns.iter().map(|(_, input)| cell(&given, input)));
            rows.push(row);
        }
        text.push('\n');
        text += &aligned(&rows);
    }
    expect_file!["transitions.txt"].assert_eq(&text);
}

/// The printed row `interrupted` stands for all five causes.
#[test]
fn interrupted_sessions_answer_alike_whatever_the_cause() {
    let user = interrupted_by(InterruptCause::User).event(noted(1));
    for cause in InterruptCause::ALL {
        let other = interrupted_by(cause).event(noted(1));
        for (name, input) in columns() {
            assert_eq!(
                cell(&user, &input),
                cell(&other, &input),
                "{name} while interrupted by {}",
                cause.as_str()
            );
        }
    }
}

/// S1-17, X-04: no cell changes the state in a way DESIGN does not list, step by step and from end to end, and all that
/// DESIGN lists can happen.
#[test]
fn the_table_holds_exactly_the_transitions_of_the_design() {
    let legal: BTreeSet<(StateName, StateName)> = LEGAL
        .iter()
        .flat_map(|(from, to)| from.iter().flat_map(|&from| to.iter().map(move |&to| (from, to))))
        .filter(|(from, to)| from != to)
        .collect();
    let mut reached = BTreeSet::new();
    for (state, given) in situations() {
        for (name, input) in columns() {
            let Answer { states, .. } = given.clone().put(&input);
            let whole = (states[0], states[states.len() - 1]);
            let steps = states.windows(2).map(|pair| (pair[0], pair[1]));
            for pair in steps.chain([whole]).filter(|(from, to)| from != to) {
                assert!(legal.contains(&pair), "{name} in {state} goes from {} to {}", pair.0, pair.1);
                reached.insert(pair);
            }
        }
    }
    let missing: Vec<_> = legal.difference(&reached).collect();
    assert!(missing.is_empty(), "no input makes these legal changes: {missing:?}");
}

/// The table of DESIGN.md, "The session's states", row by row, and the one change it leaves to S3-24.
const LEGAL: &[(&[StateName], &[StateName])] = {
    use StateName::{
        Beginning, BetweenTurn, Compacted, Completed, Custom, Executing, Failed, Idle, Interrupted, Stale,
        Stopped,
    };
    &[
        // Turn admitted. S1-09, S1-10, S1-14 and S1-16 in DESIGN's words: a message starts a turn.
        (&[Beginning, Custom, BetweenTurn, Compacted, Interrupted, Idle, Stale], &[Executing]),
        // Turn finished (S1-11).
        (&[Executing], &[BetweenTurn]),
        // Cancelled, stopped short, process lost, timeout, budget spent (S1-12).
        (&[Executing], &[Interrupted]),
        // Context compacted; while a turn runs the session stays executing (S1-13).
        (&[Beginning, Custom, BetweenTurn, Compacted, Interrupted, Idle, Stale], &[Compacted]),
        // No activity for `idle_after`.
        (&[BetweenTurn, Compacted, Interrupted], &[Idle]),
        // No activity for `stale_after` (S1-15).
        (&[Idle, Compacted, Interrupted], &[Stale]),
        // Completed, failed, stop confirmed.
        (
            &[Beginning, Custom, Executing, BetweenTurn, Compacted, Interrupted, Idle, Stale],
            &[Completed, Failed, Stopped],
        ),
        // Reset (S3-24): the conversation starts over, never under a running turn (S3-B14).
        (&[Beginning, Custom, BetweenTurn, Compacted, Interrupted, Idle, Stale], &[Beginning]),
        // Resumed by an operator: a conversation that had begun was interrupted, one that had not begins.
        (&[Stopped], &[Beginning, Custom, Interrupted]),
    ]
};

/// Every state, and every state again where something pending changes the answers.
fn situations() -> Vec<(&'static str, Given)> {
    use StateName::{Beginning, BetweenTurn, Compacted, Custom, Executing, Idle, Interrupted, Stale};
    let pending = |state| stopping(state, StopLevel::Graceful);
    let mut all = vec![
        ("beginning", noted_in(Beginning)),
        ("beginning, stop 1", pending(Beginning)),
        ("custom", noted_in(Custom)),
        ("custom, stop 1", pending(Custom)),
        ("executing", noted_in(Executing)),
        ("executing, cancel requested", noted_in(Executing).event(cancel_asked(1))),
        ("executing, stop 1", pending(Executing)),
        ("executing, stop 3", stopping(Executing, StopLevel::Terminated)),
        ("executing, run", noted_in(Executing).with_run()),
        ("executing, run, stop 1", pending(Executing).with_run()),
        ("executing, run, open gate", noted_in(Executing).with_run().with_gate(1)),
        ("executing, mirrored run, stop 1", pending(Executing).with_mirrored_run()),
        ("executing, one waits", waits_in(Executing)),
        ("interrupted, one waits", waits_in(Executing).after(turn_lost(InterruptCause::User))),
        ("between_turn", noted_in(BetweenTurn)),
        ("between_turn, stop 1", pending(BetweenTurn)),
        ("between_turn, stop 2", stopping(BetweenTurn, StopLevel::Immediate)),
        ("between_turn, stop 3", stopping(BetweenTurn, StopLevel::Terminated)),
        ("between_turn, run", noted_in(BetweenTurn).with_run()),
        ("between_turn, run, stop 1", pending(BetweenTurn).with_run()),
        ("between_turn, archived", noted_in(BetweenTurn).event(archived())),
        ("between_turn, deleted", noted_in(BetweenTurn).event(deleted())),
    ];
    all.extend(vec![
        ("compacted", noted_in(Compacted)),
        ("compacted, stop 1", pending(Compacted)),
        ("interrupted", noted_in(Interrupted)),
        ("interrupted, stop 1", pending(Interrupted)),
        ("idle", noted_in(Idle)),
        ("idle, stop 1", pending(Idle)),
        ("stale", noted_in(Stale)),
        ("stale, stop 1", pending(Stale)),
        ("completed", noted_before(Ending::Completed)),
        ("completed, archived", noted_before(Ending::Completed).event(archived())),
        ("completed, deleted", noted_before(Ending::Completed).event(deleted())),
        ("failed", noted_before(Ending::Failed)),
        ("stopped", stopping(Beginning, StopLevel::Graceful).event(ended(Ending::Stopped))),
        ("stopped, custom", stopping(Custom, StopLevel::Graceful).event(ended(Ending::Stopped))),
        ("stopped after a turn", stopping(BetweenTurn, StopLevel::Graceful).event(ended(Ending::Stopped))),
        ("stopped, archived", pending(Idle).event(ended(Ending::Stopped)).event(archived())),
    ]);
    all
}

fn noted_in(state: StateName) -> Given {
    in_state(state).event(noted(1))
}

fn waits_in(state: StateName) -> Given {
    noted_in(state).after(send(7, Delivery::Queue))
}

fn noted_before(end: Ending) -> Given {
    noted_in(StateName::Beginning).event(ended(end))
}

fn stopping(state: StateName, level: StopLevel) -> Given {
    noted_in(state).event(stop_at(level))
}

type Columns = Vec<(&'static str, Input)>;

/// The columns, by theme, so that each table fits a page.
fn tables() -> Vec<(&'static str, Columns)> {
    let mut all = work_tables();
    all.extend(run_tables());
    all.extend(other_tables());
    all
}

fn work_tables() -> Vec<(&'static str, Columns)> {
    vec![
        (
            "TURNS",
            vec![
                ("start_turn", start_turn(2)),
                ("cancel_turn", cancel_turn()),
                ("send, queue", send(2, Delivery::Queue)),
                ("send, steer", send(2, Delivery::Steer)),
                ("send, interrupt", send(2, Delivery::Interrupt)),
                ("turn_delivered", turn_delivered(1)),
                ("turn_finished", turn_finished()),
                ("turn_finished, other", turn_finished_as(9, TurnOutcome::Completed)),
                ("turn_lost", turn_lost(InterruptCause::Timeout)),
                ("turn_limited", limited(LimitKind::Usage, None)),
                ("context_compacted", context_compacted(900, 100, &[])),
            ],
        ),
        (
            "INBOX",
            vec![
                ("withdraw_turn", withdraw_turn(7)),
                ("edit_turn", edit(7, Some("go slowly"), None)),
                ("order_inbox", order(&[7])),
                ("promote, front", promote(7, Promotion::Front)),
                ("promote, interrupt", promote(7, Promotion::Interrupt)),
                ("pause_inbox", inbox(InboxChange::Pause)),
                ("resume_inbox", inbox(InboxChange::Go)),
            ],
        ),
        (
            "ENDS",
            vec![
                ("complete", complete()),
                ("fail", fail()),
                ("stop", stop()),
                ("withdraw_stop", withdraw_stop()),
                ("work_ended", work_ended()),
                ("daemon_restarted", daemon_restarted()),
            ],
        ),
    ]
}

fn run_tables() -> Vec<(&'static str, Columns)> {
    vec![
        (
            "RUNS",
            vec![
                ("resume", resume()),
                ("run_started", run_started(2)),
                ("run_ready", run_ready(1)),
                ("run_adopted", run_adopted(1)),
                ("tools_missing", tools_missing(1, &["lanyard"])),
                ("terminal_activity", activity(1, TerminalActivity::Working)),
                ("bound_met", bound_met(1, 1)),
                ("offered", offered(&["opus"])),
                ("in_force", in_force("opus")),
                ("run_ended", run_ended(1, InterruptCause::Crash)),
                ("run_ended, another follows", run_ended(1, None)),
                ("run_ended, other", run_ended(9, InterruptCause::Crash)),
                ("end_blocked", Signal::EndBlocked { why: "it cannot".into() }.into()),
            ],
        ),
        (
            "GATES AND SNAPSHOTS",
            vec![
                ("gate_asked", gate_asked(2, 1)),
                ("gate_asked, again", asked_again(2, 1, "1")),
                ("gate_withdrawn", gate_withdrawn("1")),
                ("answer_gate", answer(1, "allow")),
                ("answer_gate, other", answer(9, "allow")),
                ("snapshot_taken", snapshot_taken("turn-1")),
                ("snapshot_skipped", snapshot_skipped("no_git")),
                ("rolled_back", rolled_back()),
                ("branch_merged", branch_merged()),
                ("branch_discarded", branch_discarded()),
            ],
        ),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn other_tables() -> Vec<(&'static str, Columns)> {
    vec![
        ("THE WRITER", vec![("claim_writer", claim(1)), ("release_writer", release(1, 1))]),
        review_table(),
        (
            "TIME AND PLACE",
            vec![
                ("quiet 59 min", quiet(HOUR - 60_000)),
                ("quiet 1 h", quiet(HOUR)),
                ("quiet 48 h", quiet(48 * HOUR)),
                ("reset", reset()),
                ("see", see(ann(), 1)),
                ("calls_in_flight", calls_in_flight(1)),
                ("archive", archive()),
                ("unarchive", unarchive()),
                ("delete", delete(0)),
                ("delete, children", delete(2)),
            ],
        ),
        (
            "WORDS AND HANDS",
            vec![
                ("guide", guide(2, "look left")),
                ("withdraw_guidance", withdraw_guidance(1)),
                ("guidance_delivered", guidance_delivered(&[1])),
                ("set_anchors", set_anchors(&["anchor"])),
                ("set_memory", set_memory(MemoryMode::Full)),
                ("choose", choose("opus")),
                ("rename", rename("t")),
                ("checkpoint", checkpoint()),
                ("migrate, agent", migrate_to_agent("reviewer")),
                ("migrate, owner", migrate_to_owner("bob")),
                ("add_alias", add_alias("chat-7")),
            ],
        ),
        (
            "CALLS THAT COME BY",
            vec![
                ("call", begins(1)),
                ("answer", ends(1)),
                ("call that complies", Input::Begins(complies(Compliance::Complete))),
                ("answer_lost", Signal::AnswerLost { notes: vec![note_id(1)] }.into()),
                ("due in 1 min", Signal::Due { now: minutes(1) }.into()),
                ("due in 2 days", Signal::Due { now: minutes(2 * 24 * 60) }.into()),
                ("notify", notify(3)),
                (
                    "handed_off",
                    Signal::HandedOff { from: "a".into(), to: "b".into(), reason: "r".into() }.into(),
                ),
                ("notice_sent", Signal::NoticeSent { to: None, note: None, since: None }.into()),
                ("plan_joined", Signal::PlanJoined { plan: "p".into() }.into()),
                (
                    "introduced",
                    Signal::Introduced { agent: "executor".into(), extension_session_id: None }.into(),
                ),
            ],
        ),
        (
            "TRANSCRIPT",
            vec![
                ("said", said("hello")),
                ("thought", Signal::Thought { text: "hm".into() }.into()),
                ("tool_called", tool_called("c1", "read")),
                ("tool_returned", tool_returned("c1")),
                ("planned", planned(&["look", "leap"])),
                ("file_changed", file_changed("src/lib.rs")),
                ("usage_reported", usage(1, 1, None)),
                ("issue_seen", issue_seen("i", None)),
                ("error_seen", error_seen("e")),
            ],
        ),
    ]
}

fn review_table() -> (&'static str, Columns) {
    (
        "THE REVIEW",
        vec![
            ("draft_comment", draft(1, 3)),
            ("edit_comment", ReviewCommand::Edit { comment: comment_id(1), text: "x".into() }.into()),
            ("remove_comment", ReviewCommand::Remove { comment: comment_id(1) }.into()),
            ("view_file", view("a.rs", Some("0a"))),
        ],
    )
}

fn minutes(after: i64) -> Timestamp {
    Timestamp::from_millis(START_MS + after * 60_000)
}

fn columns() -> Columns {
    tables().into_iter().flat_map(|(_, columns)| columns).collect()
}

fn cell(given: &Given, input: &Input) -> String {
    let mut given = given.clone();
    let Answer { events, refusal, states, .. } = given.put(input);
    if let Some(refusal) = refusal {
        assert!(states.len() == 1, "a refusal changes no state");
        return format!("!{}", refusal.code());
    }
    if events.is_empty() {
        return "·".to_owned();
    }
    if given.session.refused_in_row > 0 {
        assert!(states.len() == 1, "what is unexpected changes no state");
        return "?".to_owned();
    }
    if states.len() == 1 {
        return "=".to_owned();
    }
    let names: Vec<&str> = states[1..].iter().map(|state| state.as_str()).collect();
    names.join(" > ")
}

fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (field, width) in row.iter().zip(&widths) {
            write!(line, "{field:width$}  ").unwrap();
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// A new command, signal or state does not compile here before it has a number, and fails below before it has a column.
#[test]
fn the_table_leaves_no_input_and_no_state_out() {
    let columns = columns();
    let numbers = |number: fn(&Input) -> Option<usize>| -> BTreeSet<usize> {
        columns.iter().filter_map(|(_, input)| number(input)).collect()
    };
    assert_eq!(numbers(command_number), (0..25).collect());
    assert_eq!(numbers(signal_number), (0..42).collect());
    let states: BTreeSet<usize> =
        situations().iter().map(|(_, given)| state_number(given.session.state)).collect();
    assert_eq!(states, (0..11).collect());
}

fn command_number(input: &Input) -> Option<usize> {
    let Input::Command(command) = input else { return None };
    Some(match command {
        Command::StartTurn { .. } => 0,
        Command::CancelTurn { .. } => 1,
        Command::Complete { .. } => 2,
        Command::Fail { .. } => 3,
        Command::Stop { .. } => 4,
        Command::WithdrawStop { .. } => 5,
        Command::Guide { .. } => 6,
        Command::WithdrawGuidance { .. } => 7,
        Command::Migrate { .. } => 8,
        Command::AddAlias { .. } => 9,
        Command::SetAnchors { .. } => 10,
        Command::Checkpoint => 11,
        Command::Archive => 12,
        Command::Unarchive => 13,
        Command::Reset { .. } => 14,
        Command::Delete { .. } => 15,
        Command::AnswerGate { .. } => 16,
        Command::Resume { .. } => 17,
        Command::Notify { .. } => 18,
        Command::Writer(_) => 19,
        Command::Inbox(_) => 20,
        Command::SetMemory { .. } => 21,
        Command::See { .. } => 22,
        Command::Review(_) => 23,
        Command::Choose { .. } => 23,
        Command::Rename { .. } => 24,
    })
}

fn signal_number(input: &Input) -> Option<usize> {
    let Input::Signal(signal) = input else { return None };
    Some(match signal {
        Signal::Said { .. } => 0,
        Signal::Thought { .. } => 1,
        Signal::ToolCalled { .. } => 2,
        Signal::ToolReturned { .. } => 3,
        Signal::UsageReported { .. } => 4,
        Signal::TurnFinished { .. } => 5,
        Signal::TurnLost { .. } => 6,
        Signal::ContextCompacted { .. } => 7,
        Signal::IssueSeen { .. } => 8,
        Signal::ErrorSeen { .. } => 9,
        Signal::GuidanceDelivered { .. } => 10,
        Signal::WorkEnded { .. } => 11,
        Signal::DaemonRestarted => 12,
        Signal::Quiet { .. } => 13,
        Signal::Planned { .. } => 14,
        Signal::FileChanged { .. } => 15,
        Signal::RunStarted { .. } => 16,
        Signal::RunReady(_) => 17,
        Signal::RunAdopted { .. } => 18,
        Signal::RunEnded { .. } => 19,
        Signal::GateAsked { .. } => 20,
        Signal::GateWithdrawn { .. } => 21,
        Signal::SnapshotTaken { .. } => 22,
        Signal::SnapshotSkipped { .. } => 23,
        Signal::AnswerLost { .. } => 24,
        Signal::Introduced { .. } => 25,
        Signal::NoticeSent { .. } => 26,
        Signal::Due { .. } => 27,
        Signal::HandedOff { .. } => 28,
        Signal::TurnDelivered { .. } => 29,
        Signal::EndBlocked { .. } => 30,
        Signal::RolledBack { .. } => 31,
        Signal::ToolsMissing { .. } => 32,
        Signal::PlanJoined { .. } => 33,
        Signal::CallsInFlight { .. } => 34,
        Signal::TurnLimited(_) => 35,
        Signal::Offered(_) => 36,
        Signal::InForce(_) => 37,
        Signal::TerminalActivity { .. } => 41,
        Signal::BranchMerged { .. } => 38,
        Signal::BranchDiscarded { .. } => 39,
        Signal::BoundMet { .. } => 40,
    })
}

fn state_number(state: State) -> usize {
    match state {
        State::Beginning => 0,
        State::Custom => 1,
        State::Executing => 2,
        State::BetweenTurn => 3,
        State::Compacted => 4,
        State::Interrupted { .. } => 5,
        State::Idle => 6,
        State::Stale => 7,
        State::Completed => 8,
        State::Failed => 9,
        State::Stopped => 10,
    }
}

/// DESIGN's first row: a session begins as `beginning` or `custom`, and `StateName::ALL` is all there is.
#[test]
fn a_session_begins_in_one_of_two_states() {
    assert_eq!(born(&NewSession::default()).session.state, State::Beginning);
    let custom = NewSession { phase: Some("review".into()), ..NewSession::default() };
    assert_eq!(born(&custom).session.state, State::Custom);
    for state in StateName::ALL {
        assert_eq!(in_state(state).session.state.name(), state);
    }
}
