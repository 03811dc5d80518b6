//! Refusals: their codes, and how many of them the log holds.

use super::*;
use crate::budget::{BudgetLine, BudgetScope, Dollars};
use crate::refusal::RefusalKind;
use crate::session::testing::pen;

/// S1-17, X-04: refused and recorded.
#[test]
fn a_refusal_is_recorded_with_code_and_state() {
    check(
        given([]),
        cancel_turn(),
        expect![[r"
            refused no_active_turn: no turn is running; look at its state with `lanyard show`
            command.refused code=no_active_turn command=cancel_turn state=beginning
            beginning
        "]],
    );
}

#[test]
fn a_fault_of_the_request_is_answered_and_not_recorded() {
    check(
        given([]),
        guide(1, ""),
        expect![[r"
            refused field_empty: text is empty; give at least one visible character
            beginning
        "]],
    );
}

/// A client in a loop cannot fill the disk: 32 in a row are written, the rest only answered.
#[test]
fn the_thirty_third_refusal_in_a_row_is_only_answered() {
    let given = given([]).after_each((0..31).map(|_| cancel_turn()));
    story(
        given,
        [cancel_turn(), cancel_turn()],
        expect![[r"
            > cancel_turn
            refused no_active_turn: no turn is running; look at its state with `lanyard show`
            command.refused code=no_active_turn command=cancel_turn state=beginning
            beginning
            > cancel_turn
            refused no_active_turn: no turn is running; look at its state with `lanyard show`
            beginning
        "]],
    );
}

#[test]
fn unexpected_signals_count_in_the_same_row() {
    let given = given([]).after_each((0..16).flat_map(|_| [cancel_turn(), turn_finished()]));
    story(
        given,
        [cancel_turn(), turn_finished()],
        expect![[r"
            > cancel_turn
            refused no_active_turn: no turn is running; look at its state with `lanyard show`
            beginning
            > turn_finished
            beginning
        "]],
    );
}

#[test]
fn anything_that_happens_ends_the_row() {
    let given = given([]).after_each((0..40).map(|_| cancel_turn())).after(checkpoint());
    assert_eq!(given.session.refused_in_row, 0);
    check(
        given,
        cancel_turn(),
        expect![[r"
            refused no_active_turn: no turn is running; look at its state with `lanyard show`
            command.refused code=no_active_turn command=cancel_turn state=beginning
            beginning
        "]],
    );
}

/// S0-B13: whoever asks in vain keeps nothing alive.
#[test]
fn a_refusal_is_no_activity() {
    let given = given([]);
    let before = given.session.last_activity_at;
    assert_eq!(given.later(HOUR).after(cancel_turn()).session.last_activity_at, before);
}

/// Every refusal has its own stable code and says what to do.
#[test]
fn codes_are_distinct_and_every_refusal_has_advice() {
    let refusals = every_refusal();
    let codes: std::collections::BTreeSet<&str> = refusals.iter().map(Refusal::code).collect();
    assert_eq!(codes.len(), refusals.len());
    for refusal in &refusals {
        assert!(!refusal.advice().is_empty() && !refusal.advice().ends_with('.'), "{refusal}");
        assert!(!refusal.to_string().ends_with('.'), "{refusal}");
    }
}

fn refusal_line(refusal: &Refusal) -> String {
    let recorded = if refusal.record(&given([]).session, "x").is_some() { "recorded" } else { "" };
    let fault = if refusal.kind() == RefusalKind::Invalid { "bad request" } else { "" };
    format!("{:22} {:8} {:11} {refusal}", refusal.code(), recorded, fault)
}

/// Clients branch on these: a changed line here breaks them.
#[test]
fn the_codes_of_refusals() {
    let lines: Vec<String> = every_refusal().iter().map(refusal_line).collect();
    expect![[r#"
        turn_rejected_busy     recorded             turn turn#1 is running
        session_ended          recorded             the session has ended as failed
        session_deleted        recorded             the session was deleted
        session_stopping       recorded             a stop is pending
        session_host_run       recorded             the session's agent runs under its own host; Lanyard runs none of its turns
        session_archived       recorded             the session is archived
        session_not_archived   recorded             the session is not archived
        no_active_turn         recorded             no turn is running
        no_stop_pending        recorded             no stop is pending
        stop_final             recorded             the stop has reached level 3
        guidance_not_pending                        guidance note#1 is not pending
        guidance_full                               64 pieces of guidance are already pending
        field_empty                     bad request title is empty
        field_too_long                  bad request title is longer than 1000 characters
        field_too_many                  bad request aliases has more than 16 entries
        field_bad_text                  bad request title holds a control character
        choice_unavailable              bad request the agent offers no choice of effort
        choice_not_known                bad request the agent offers no model `opsu`; it offers opus, haiku
        mode_needs_operator                         an agent cannot choose the mode `bypassPermissions`, in which no approvals are asked for
        nothing_to_migrate              bad request nothing was named to hand over to
        parent_ended           recorded             parent sess#2 has ended
        leaf_cannot_delegate   recorded             parent sess#2 is a leaf and cannot delegate
        depth_exceeded         recorded             the family would be 4 deep and the limit is 3
        policy_wider           recorded             the session's policy is wider than that of parent sess#2
        sandbox_host_invalid            bad request `a b` is no host for the network of a sandbox
        bound_too_small                 bad request `memory_mib` is too small for an agent to work with
        link_cycle             recorded             sess#2 is the session itself or one of its descendants
        already_linked                              the session is already a child of sess#2
        has_children           recorded             2 live sessions are its children
        fork_ahead_of_log                           the log ends at 7
        position_ahead_of_log           bad request position 8 is past the end of the log, which is 7
        gate_not_found                              the session has no approval gate#1
        gate_option_unknown             bad request the approval has no option `maybe`; it has yes, no
        gate_already_answered                       approval gate#1 was answered with `no`
        gate_void                                   approval gate#1 is void: the turn ended
        writer_held                                 ann writes in this session, from connection conn_00000000000000000000000001 (cli)
        writer_superseded                           the writer has changed; the epoch is 3
        takeover_pending                            connection conn_00000000000000000000000001 has already asked to take over
        takeover_denied                             connection conn_00000000000000000000000001 has just denied to hand over
        takeover_not_asked                          no client asked to take over
        inbox_full                                  the inbox holds at most 32 messages
        log_full                                    the session's log has reached its limit of 1000000 events
        inbox_turn_unknown                          no message turn#1 waits in the inbox
        inbox_order_wrong                           the order does not name each of the 2 messages that wait once
        delivery_waits                  bad request a message that waits cannot have the delivery `reject`
        client_turn_conflict                        client_turn_id stands for turn turn#1, which had other content
        turn_uncertain                              turn turn#1 was handed to the agent and lost: it may have been carried out, or part of it
        turn_not_repeatable                         turn turn#1 is completed, and is not run again
        comment_not_found                           the session has no comment cmt#1
        comment_already_sent                        comment cmt#1 was sent with turn turn#1
        review_empty                                the session has no draft comments
        review_full                                 the drafts of a review hold at most 100 comments
        line_range_invalid              bad request the lines are no range of 1 to 200 lines
        quote_differs                   bad request the quoted text does not have 2 lines
        review_forbidden                            only an operator reviews a session's changes
        window_size_bad                 bad request a window of 0 columns and 24 rows cannot be used
        terminal_command_bad            bad request the command of the terminal run names no program, or is too long
        terminal_takes_no_turns                      the session is a program on a terminal, which takes keys and no messages
        signal_forbidden       recorded             an agent cannot report `turn_finished` about its own session
        calls_open             recorded             tool calls of the session are under way, so its turn has not ended
        halted                                      an operator halted all work
        budget_spent                                the day's budget of $5.00 is spent: $5.12
        force_forbidden                             only an operator may begin a turn although a budget is spent
        intervention_root_only recorded             turns of people go to sessions of level 1, and this one is of level 2
        memory_tag_bad                  bad request `a,b` cannot be a tag
        memory_policy_wider                         the memory policy would allow more than the session's does"#]]
    .assert_eq(&short_ids(&lines.join("\n")));
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn every_refusal() -> Vec<Refusal> {
    let parent = session_id(2);
    let all = vec![
        Refusal::Busy { turn: turn_id(1) },
        Refusal::Ended { session: session_id(9), state: StateName::Failed },
        Refusal::Deleted,
        Refusal::Stopping,
        Refusal::HostRun { native: true },
        Refusal::Archived,
        Refusal::NotArchived,
        Refusal::NoTurn,
        Refusal::NoStop,
        Refusal::StopFinal,
        Refusal::NoSuchGuidance { note: note_id(1) },
        Refusal::GuidanceFull { max: 64 },
        Refusal::Empty { field: "title" },
        Refusal::TooLong { field: "title", max: 1_000, unit: "characters" },
        Refusal::TooMany { field: "aliases", max: 16 },
        Refusal::BadText { field: "title" },
        Refusal::ChoiceNotOffered { what: "effort" },
        Refusal::ChoiceUnknown { what: "model", wanted: "opsu".into(), nearest: texts(&["opus", "haiku"]) },
        Refusal::ModeNeedsOperator { mode: "bypassPermissions".into() },
        Refusal::NothingToMigrate,
        Refusal::ParentEnded { parent },
        Refusal::LeafCannotDelegate { parent },
        Refusal::DepthExceeded { depth: 4, limit: 3 },
        Refusal::PolicyWider { parent },
        Refusal::SandboxHost { host: "a b".into() },
        Refusal::BoundTooSmall { setting: "memory_mib", min: 16 },
        Refusal::Cycle { parent },
        Refusal::AlreadyLinked { parent },
        Refusal::HasChildren { children: 2 },
        Refusal::ForkAhead { head: 7 },
        Refusal::SeenAhead { seq: 8, head: 7 },
        Refusal::NoSuchGate { gate: gate_id(1) },
        Refusal::NoSuchOption { option: "maybe".into(), known: texts(&["yes", "no"]) },
        Refusal::GateAnswered { gate: gate_id(1), option: "no".into() },
        Refusal::GateVoid { gate: gate_id(1), why: "the turn ended".into() },
        Refusal::WriterHeld { by: "ann".into(), client: Some("cli".into()), connection: pen(1).connection },
        Refusal::WriterSuperseded { epoch: 3 },
        Refusal::TakeoverPending { by: pen(1).connection },
        Refusal::TakeoverDenied { by: pen(1).connection },
        Refusal::NobodyAsked,
        Refusal::InboxFull { max: 32, unit: "messages" },
        Refusal::LogFull { max: 1_000_000, unit: "events" },
        Refusal::InboxTurnUnknown { turn: turn_id(1) },
        Refusal::InboxOrderWrong { waiting: 2 },
        Refusal::DeliveryWaits,
        Refusal::ClientTurnConflict { turn: turn_id(1) },
        Refusal::TurnUncertain { turn: turn_id(1) },
        Refusal::TurnNotRepeatable { turn: turn_id(1), status: crate::session::TurnStatus::Completed },
        Refusal::CommentUnknown { comment: comment_id(1) },
        Refusal::CommentSent { comment: comment_id(1), turn: turn_id(1) },
        Refusal::ReviewEmpty,
        Refusal::ReviewFull { max: 100, unit: "comments" },
        Refusal::LineRange { max: 200 },
        Refusal::QuoteDiffers { lines: 2 },
        Refusal::ReviewForbidden,
        Refusal::WindowSize { cols: 0, rows: 24 },
        Refusal::TerminalCommand,
        Refusal::TerminalTurns,
        Refusal::SignalForbidden { signal: "turn_finished" },
        Refusal::CallsOpen,
        Refusal::Halted,
        Refusal::BudgetSpent(BudgetLine {
            scope: BudgetScope::Day,
            limit: Dollars::from_micros(5_000_000),
            spent: Dollars::from_micros(5_120_000),
        }),
        Refusal::ForceForbidden,
        Refusal::RootOnly { level: 2, root: session_id(1) },
        Refusal::Memory(crate::memory::MemoryRefusal::BadTag { tag: "a,b".into() }),
        Refusal::Memory(crate::memory::MemoryRefusal::Wider { of: "the session's" }),
    ];
    for refusal in &all {
        // A new refusal does not compile before it stands here, and above.
        match refusal {
            Refusal::Busy { .. }
            | Refusal::Ended { .. }
            | Refusal::Deleted
            | Refusal::Stopping
            | Refusal::HostRun { .. }
            | Refusal::Archived
            | Refusal::NotArchived
            | Refusal::NoTurn
            | Refusal::NoStop
            | Refusal::StopFinal
            | Refusal::NoSuchGuidance { .. }
            | Refusal::GuidanceFull { .. }
            | Refusal::Empty { .. }
            | Refusal::TooLong { .. }
            | Refusal::TooMany { .. }
            | Refusal::BadText { .. }
            | Refusal::ChoiceNotOffered { .. }
            | Refusal::ChoiceUnknown { .. }
            | Refusal::ModeNeedsOperator { .. }
            | Refusal::WindowSize { .. }
            | Refusal::TerminalCommand
            | Refusal::TerminalTurns
            | Refusal::NothingToMigrate
            | Refusal::ParentEnded { .. }
            | Refusal::LeafCannotDelegate { .. }
            | Refusal::DepthExceeded { .. }
            | Refusal::PolicyWider { .. }
            | Refusal::SandboxHost { .. }
            | Refusal::BoundTooSmall { .. }
            | Refusal::Cycle { .. }
            | Refusal::AlreadyLinked { .. }
            | Refusal::HasChildren { .. }
            | Refusal::ForkAhead { .. }
            | Refusal::SeenAhead { .. }
            | Refusal::NoSuchGate { .. }
            | Refusal::NoSuchOption { .. }
            | Refusal::GateAnswered { .. }
            | Refusal::GateVoid { .. }
            | Refusal::WriterHeld { .. }
            | Refusal::WriterSuperseded { .. }
            | Refusal::TakeoverPending { .. }
            | Refusal::TakeoverDenied { .. }
            | Refusal::NobodyAsked
            | Refusal::InboxFull { .. }
            | Refusal::LogFull { .. }
            | Refusal::InboxTurnUnknown { .. }
            | Refusal::InboxOrderWrong { .. }
            | Refusal::DeliveryWaits
            | Refusal::ClientTurnConflict { .. }
            | Refusal::TurnUncertain { .. }
            | Refusal::TurnNotRepeatable { .. }
            | Refusal::CommentUnknown { .. }
            | Refusal::CommentSent { .. }
            | Refusal::ReviewEmpty
            | Refusal::ReviewFull { .. }
            | Refusal::LineRange { .. }
            | Refusal::QuoteDiffers { .. }
            | Refusal::ReviewForbidden
            | Refusal::SignalForbidden { .. }
            | Refusal::CallsOpen
            | Refusal::Halted
            | Refusal::BudgetSpent(_)
            | Refusal::ForceForbidden
            | Refusal::RootOnly { .. }
            | Refusal::Memory(_) => {}
        }
    }
    all
}
