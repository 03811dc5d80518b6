//! The fold: which events fit where, what the record keeps, how it is shown, and how events look on the wire.

#![allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT=1` writes snapshots with them")]

use crate::session::testing::{START_MS, bound_met, pen};
use crate::session::{
    AskReason, Channel, Compliance, Delivery, InboxEvent, Limit, LimitKind, NoteKind, PauseReason, Promotion,
    ReleaseReason, ReviewEvent, StopScope, WriterEvent,
};
use crate::time::Timestamp;
use expect_test::expect;
use serde_json::{Value, json};

use crate::actor::{Actor, Cause};
use crate::id::WorkerId;
use crate::memory::{MemoryAsk, MemoryPolicy, Tags, tag};
use crate::policy::{MemoryMode, Staleness};
use crate::session::bounds::BoundedResource;
use crate::session::event::{
    ChangeEvent, CheckpointReason, ContextEvent, ControlEvent, Created, Ending, Envelope, Event, Fork, Hands,
    Opening, PlanEntry, PlanEntryState, Role, Settled, SnapshotReason, TranscriptEvent, TurnEvent,
    TurnOutcome,
};
use crate::session::sandbox::SandboxRule;
use crate::session::stall::StallKind;
use crate::session::state::InterruptCause;
use crate::session::testing::{
    Given, HOUR, Input, MINUTE, add_alias, ann, answer, archived, born, cancel_asked, cancel_turn,
    checkpoint, comment_id, compacted, complete, context_compacted, daemon_restarted, deleted, draft_of,
    ended, error_seen, file_changed, finished, gate_asked, gate_id, gate_withdrawn, given, greeting,
    guidance_delivered, guide, in_state, interrupted, interrupted_by, issue_seen, migrate_to_agent,
    mirrored_run_started, note_id, noted, output, planned, question, quiet, receipt, reset, run_adopted,
    run_began, run_ended, run_id, run_over, run_ready, run_started, said, session_id, set_anchors, short_ids,
    snapshot_skipped, snapshot_taken, start_turn, started, stop, stop_at, tool_called, tool_returned,
    tools_missing, turn_finished, turn_id, turn_lost, usage, work_ended,
};
use crate::session::{
    AgentChoice, AgentOffer, ApplyError, Continuity, GateEvent, Lifecycle, Lineage, NewSession, NoteStatus,
    OfferItem, OfferMenu, OfferedCommand, Policy, ResumeWay, RunEnd, RunEvent, RunReady, Session,
    SessionView, Signal, State, StateName, Status, StopLevel, TerminalActivity, replay, view,
};

/// S0-24, S1-B08: a log that was damaged is found out, never believed and never a crash.
mod damaged_logs {
    use super::*;

    #[test]
    fn an_empty_log_is_no_session() {
        assert_eq!(replay([]), Ok(None));
    }

    #[test]
    fn a_log_begins_with_the_creation() {
        let envelope = Envelope { seq: 1, event: started(1), ..next(&given([])) };
        assert_eq!(replay([&envelope]), Err(ApplyError::NotCreated));
    }

    #[test]
    fn a_log_begins_at_one() {
        let first = Envelope { seq: 2, ..given([]).log[0].clone() };
        assert_eq!(replay([&first]), Err(ApplyError::Gap { last: 0, found: 2 }));
    }

    /// S1-07: only two states are states to begin in.
    #[test]
    fn a_session_begins_as_beginning_or_custom() {
        for state in StateName::ALL {
            let mut first = given([]).log[0].clone();
            let Event::Change(ChangeEvent::Created(created)) = &mut first.event else { panic!() };
            created.state = state;
            let may = matches!(state, StateName::Beginning | StateName::Custom);
            let wanted = if may { Ok(state) } else { Err(ApplyError::BadBirth(state)) };
            assert_eq!(Session::born(&first).map(|session| session.state.name()), wanted);
        }
    }

    #[test]
    fn a_session_is_created_once() {
        let given = given([]);
        assert_eq!(apply(&given, given.log[0].event.clone()), Err(ApplyError::CreatedAgain));
    }

    /// S3-B05: a gap is found, whichever way it goes.
    #[test]
    fn a_gap_is_found() {
        let given = given([]);
        for found in [0, 1, 3, u64::MAX] {
            let envelope = Envelope { seq: found, ..next(&given) };
            assert_eq!(given.session.clone().apply(&envelope), Err(ApplyError::Gap { last: 1, found }));
        }
    }

    #[test]
    fn a_foreign_event_is_found() {
        let given = given([]);
        let envelope = Envelope { session: session_id(2), ..next(&given) };
        assert_eq!(given.session.clone().apply(&envelope), Err(ApplyError::Foreign));
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        let errors = [
            ApplyError::Gap { last: 4, found: 6 },
            ApplyError::Foreign,
            ApplyError::NotCreated,
            ApplyError::CreatedAgain,
            ApplyError::BadBirth(StateName::Idle),
            ApplyError::Illegal { seq: 7, state: StateName::Completed },
        ];
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        expect![[r#"
            event 6 follows event 4
            the event belongs to another session
            the log does not begin with `session.created`
            `session.created` in the middle of a log
            a session cannot begin as idle
            event 7 cannot happen while the session is completed"#]]
        .assert_eq(&lines.join("\n"));
    }

    /// The log up to the damage is still good.
    #[test]
    fn a_log_is_good_up_to_its_damage() {
        let given = given([started(1), finished(1), noted(1)]);
        let whole: Vec<_> = given.log.iter().collect();
        assert_eq!(replay(whole[..2].iter().copied()).unwrap().unwrap().state, State::Executing);
        assert_eq!(replay([whole[0], whole[1], whole[3]]), Err(ApplyError::Gap { last: 2, found: 4 }));
        assert_eq!(replay(whole), Ok(Some(given.session)));
    }
}

/// S1-17, X-04: what `decide` would refuse, a log cannot hold.
mod illegal_events {
    use super::*;

    #[test]
    fn a_turn_inside_a_turn() {
        fits_not(&in_state(StateName::Executing), started(2));
    }

    #[test]
    fn a_turn_of_an_archived_session() {
        fits_not(&given([archived()]), started(1));
    }

    #[test]
    fn a_turn_under_a_stop() {
        fits_not(&given([stop_at(StopLevel::Graceful)]), started(1));
    }

    #[test]
    fn the_end_of_another_turn() {
        let given = in_state(StateName::Executing);
        fits_not(&given, finished(2));
        fits_not(&given, interrupted(2, InterruptCause::Crash));
        fits_not(&given, cancel_asked(2));
    }

    #[test]
    fn the_end_of_no_turn() {
        let given = in_state(StateName::BetweenTurn);
        fits_not(&given, finished(1));
        fits_not(&given, interrupted(1, InterruptCause::Crash));
        fits_not(&given, cancel_asked(1));
    }

    #[test]
    fn an_end_in_mid_turn() {
        fits_not(&in_state(StateName::Executing), ended(Ending::Completed));
    }

    #[test]
    fn putting_away_in_mid_turn() {
        let given = in_state(StateName::Executing);
        fits_not(&given, archived());
        fits_not(&given, deleted());
        fits_not(&given, ChangeEvent::Reset { reason: None });
    }

    #[test]
    fn a_reset_under_a_stop() {
        fits_not(&given([stop_at(StopLevel::Terminated)]), ChangeEvent::Reset { reason: None });
    }

    #[test]
    fn archiving_twice_and_unarchiving_what_is_not() {
        fits_not(&given([archived()]), archived());
        fits_not(&given([]), ChangeEvent::Unarchived {});
    }

    #[test]
    fn going_idle_or_stale_out_of_order() {
        use StateName::{BetweenTurn, Compacted, Idle, Interrupted};
        for state in StateName::ALL {
            let idle = apply(&in_state(state), ChangeEvent::WentIdle { quiet_ms: 1 });
            let stale = apply(&in_state(state), ChangeEvent::WentStale { quiet_ms: 1 });
            assert_eq!(idle.is_ok(), matches!(state, BetweenTurn | Compacted | Interrupted), "{state}");
            // From between turns: logs of before the calls of a host's agent counted.
            let fits = matches!(state, Idle | BetweenTurn | Compacted | Interrupted);
            assert_eq!(stale.is_ok(), fits, "{state}");
        }
    }

    #[test]
    fn a_stop_that_does_not_follow_from_the_one_before() {
        let raised = |from, to| ControlEvent::StopRaised { from, to, scope: None, reason: None };
        fits_not(&given([]), raised(StopLevel::Graceful, StopLevel::Immediate));
        let stopping = given([stop_at(StopLevel::Immediate)]);
        fits_not(&stopping, stop_at(StopLevel::Graceful));
        fits_not(&stopping, raised(StopLevel::Graceful, StopLevel::Immediate));
        fits_not(&stopping, raised(StopLevel::Immediate, StopLevel::Immediate));
        fits_not(&stopping, raised(StopLevel::Immediate, StopLevel::Graceful));
    }

    #[test]
    fn the_withdrawal_of_no_stop_or_of_a_final_one() {
        fits_not(&given([]), ControlEvent::StopWithdrawn { reason: None });
        fits_not(&given([stop_at(StopLevel::Terminated)]), ControlEvent::StopWithdrawn { reason: None });
    }

    #[test]
    fn a_checkpoint_ahead_of_the_log() {
        let ahead = |position| ContextEvent::Checkpoint { position, reason: CheckpointReason::Asked };
        let given = given([noted(1)]);
        assert!(apply(&given, ahead(2)).is_ok());
        fits_not(&given, ahead(3));
    }

    #[test]
    fn a_hand_off_from_other_hands() {
        let hands = |owner: &str| Hands { agent: None, worker: None, owner: owner.into() };
        let migrated = |from: &str| ChangeEvent::Migrated {
            from: hands(from),
            to: hands("cid"),
            reason: "r".into(),
            continuity: None,
        };
        assert!(apply(&given([]), migrated("ann")).is_ok());
        fits_not(&given([]), migrated("bob"));
    }

    #[test]
    fn a_link_from_another_parent() {
        let linked = |previous| ChangeEvent::Linked { parent: session_id(9), previous };
        assert!(apply(&given([]), linked(None)).is_ok());
        fits_not(&given([]), linked(Some(session_id(8))));
    }

    /// One run at a time, and each has its number.
    #[test]
    fn a_run_that_does_not_follow_from_the_one_before() {
        let numbered = |run, number| {
            let (agent, driver) = ("executor".into(), "acp".into());
            RunEvent::Started {
                run: run_id(run),
                number,
                agent,
                driver,
                mirrored: false,
                account: None,
                steers: false,
                sandbox: None,
            }
        };
        fits_not(&given([]), numbered(1, 2));
        fits_not(&given([run_began(1)]), numbered(2, 2));
        let over = given([run_began(1), run_over(1)]);
        fits_not(&over, numbered(2, 1));
        assert!(apply(&over, numbered(2, 2)).is_ok());
    }

    /// S4-B01: what another run did is not what this one did.
    #[test]
    fn the_life_of_another_run() {
        let ready = |run| RunEvent::Ready(Box::new(greeting(run)));
        let live = given([run_began(1)]);
        for wrong in [ready(2), RunEvent::Adopted { run: run_id(2) }] {
            fits_not(&live, wrong);
        }
        fits_not(&live, run_over(2));
        let over = given([run_began(1), run_over(1)]);
        for wrong in [ready(1), RunEvent::Adopted { run: run_id(1) }] {
            fits_not(&over, wrong);
        }
        fits_not(&over, run_over(1));
    }

    #[test]
    fn a_gate_that_nobody_can_wait_at() {
        let opened = |gate, run| {
            let question = Box::new(question("7"));
            GateEvent::Opened { gate: gate_id(gate), run: run_id(run), question }
        };
        let live = in_state(StateName::Executing).with_run();
        assert!(apply(&live, opened(1, 1)).is_ok());
        fits_not(&live, opened(1, 2));
        fits_not(&live.clone().with_gate(1), opened(1, 1));
        fits_not(&in_state(StateName::BetweenTurn).with_run(), opened(1, 1));
        fits_not(&in_state(StateName::Executing), opened(1, 1));
        fits_not(&live.event(run_over(1)), opened(1, 1));
    }

    /// The first answer wins.
    #[test]
    fn a_gate_settled_twice() {
        let answered = || GateEvent::Answered { gate: gate_id(1), option: "yes".into(), message: None };
        let withdrawn = || GateEvent::Withdrawn { gate: gate_id(1), why: "x".into() };
        let open = in_state(StateName::Executing).with_run().with_gate(1);
        for first in [Event::from(answered()), withdrawn().into()] {
            let settled = open.clone().event(first);
            fits_not(&settled, answered());
            fits_not(&settled, withdrawn());
        }
        fits_not(&in_state(StateName::Executing).with_run(), answered());
    }

    /// After the end only notes in the margin: names, the shelf, deletion, guidance settled, what was refused.
    #[test]
    fn almost_anything_after_the_end() {
        let ended = in_state(StateName::Completed);
        let fitting: Vec<String> = samples()
            .into_iter()
            .filter(|event| apply(&ended, event.clone()).is_ok())
            .map(|event| type_of(&event))
            .collect();
        expect![[r#"
            session.child_linked
            session.child_unlinked
            session.alias_added
            session.renamed
            session.seen
            session.archived
            session.deleted
            session.choice_set
            session.memory_set
            end.blocked
            guidance.delivered
            guidance.settled
            command.refused
            signal.unexpected
            context.snapshot
            context.snapshot_skipped
            context.rolled_back
            context.branch_merged
            context.branch_discarded
            review.drafted
            review.viewed"#]]
        .assert_eq(&fitting.join("\n"));
    }

    #[test]
    fn almost_anything_after_the_deletion() {
        let deleted = given([deleted()]);
        let fitting: Vec<String> = samples()
            .into_iter()
            .filter(|event| apply(&deleted, event.clone()).is_ok())
            .map(|event| type_of(&event))
            .collect();
        expect![[r#"
            command.refused
            signal.unexpected"#]]
        .assert_eq(&fitting.join("\n"));
    }

    #[track_caller]
    fn fits_not(given: &Given, event: impl Into<Event>) {
        let (seq, state) = (given.session.seq + 1, given.session.state.name());
        assert_eq!(apply(given, event), Err(ApplyError::Illegal { seq, state }));
    }
}

mod the_record {
    use super::*;

    /// S1-07, S1-08, S1-B11: previous state and history; every transition appends.
    #[test]
    fn every_transition_is_in_the_history() {
        let given = given([]).after_each([
            start_turn(1),
            turn_finished(),
            quiet(HOUR),
            quiet(48 * HOUR),
            start_turn(2),
            work_ended(),
            complete(),
        ]);
        let history: Vec<String> =
            given.session.history.iter().map(|change| format!("{} {}", change.at, change.state)).collect();
        expect![[r#"
            2026-11-15T08:00:00.000Z beginning
            2026-11-15T08:00:01.000Z executing
            2026-11-15T08:00:02.000Z between_turn
            2026-11-15T08:00:03.000Z idle
            2026-11-15T08:00:04.000Z stale
            2026-11-15T08:00:05.000Z executing
            2026-11-15T08:00:06.000Z interrupted
            2026-11-15T08:00:07.000Z completed"#]]
        .assert_eq(&history.join("\n"));
        assert_eq!(given.session.previous_state(), Some(StateName::Interrupted));
        assert_eq!(given.session.since, given.session.history.back().unwrap().at);
    }

    #[test]
    fn a_new_session_has_no_previous_state() {
        let session = given([]).session;
        assert_eq!((session.previous_state(), session.history.len()), (None, 1));
        assert_eq!((session.since, session.last_activity_at), (session.created_at, session.created_at));
    }

    #[test]
    fn what_leaves_the_state_as_it_is_leaves_the_history_as_it_is() {
        let before = given([]);
        let after = before.clone().after_each([guide(1, "x"), said("y"), checkpoint(), cancel_turn()]);
        assert_eq!(
            (after.session.history, after.session.since),
            (before.session.history, before.session.since)
        );
    }

    #[test]
    fn entering_the_same_state_again_is_no_transition() {
        let given =
            given([]).after_each([reset(), context_compacted(9, 1, &[]), context_compacted(8, 1, &[])]);
        let history: Vec<StateName> = given.session.history.iter().map(|change| change.state).collect();
        assert_eq!(history, [StateName::Beginning, StateName::Compacted]);
        assert_eq!(given.session.since, given.log[2].at);
    }

    /// S1-B11: sixteen of each, the newest, whatever the log's length.
    #[test]
    fn histories_keep_their_newest_sixteen() {
        let mut given = given([]);
        for number in 0..50_u128 {
            let name = number.to_string();
            given = given.after_each([
                migrate_to_agent(&name),
                start_turn(number),
                issue_seen(&name, Some(0.5)),
                turn_finished(),
                context_compacted(number.try_into().unwrap(), 0, &[]),
            ]);
        }
        let session = given.session;
        assert_eq!(
            [session.history.len(), session.handoffs.len(), session.compaction_history.len()],
            [16; 3]
        );
        assert_eq!(
            [session.checkpoints.len(), session.stall.issues.len(), session.stall.scores.len()],
            [16; 3]
        );
        assert_eq!((session.turns, session.compactions), (50, 50));
        assert_eq!(session.handoffs.back().unwrap().to.agent.as_deref(), Some("49"));
        assert_eq!(session.compaction_history.front().unwrap().size_before, 34);
        assert_eq!(session.stall.issues.front().map(String::as_str), Some("34"));
    }

    /// S1-20: {timestamp, size before, size after, anchors that survived}.
    /// S1-05.
    #[test]
    fn compactions_are_remembered_with_sizes_and_survivors() {
        let given = given([]).after_each([set_anchors(&["a", "b"]), context_compacted(9_000, 800, &["b"])]);
        expect![[r#"[{"at":"2026-11-15T08:00:02.000Z","size_before":9000,"size_after":800,"anchors_survived":["b"]}]"#]].assert_eq(&serde_json::to_string(&given.session.compaction_history).unwrap());
        assert_eq!(given.session.anchors_due, ["a"]);
    }

    /// S0-06, S0-20, S0-B13: name, time and count; a repeated call refreshes the time.
    #[test]
    fn tool_calls_are_counted_and_dated() {
        let given = in_state(StateName::Executing).after(tool_called("c1", "read")).later(HOUR);
        let first = given.session.last_tool_call.clone().unwrap();
        let given = given.after(tool_called("c2", "read"));
        let second = given.session.last_tool_call.clone().unwrap();
        assert_eq!((first.count, second.count, second.tool.as_str()), (1, 2, "read"));
        assert!(second.at.millis_since(first.at) > HOUR);
        assert_eq!(given.session.last_activity_at, second.at);
        let third = given.after(tool_called("c3", "bash")).session.last_tool_call.unwrap();
        assert_eq!((third.count, third.tool.as_str()), (3, "bash"));
    }

    #[test]
    fn tokens_add_up_and_the_context_is_the_latest() {
        let given = in_state(StateName::Executing).after_each([
            usage(100, 10, Some(5_000)),
            usage(50, 5, None),
            usage(u64::MAX, 0, Some(200)),
        ]);
        let used = given.session.usage;
        assert_eq!((used.input_tokens, used.output_tokens, used.context_tokens), (u64::MAX, 15, Some(200)));
    }

    /// S3-24: a reset forgets the conversation and keeps the session.
    #[test]
    fn a_reset_forgets_the_conversation_only() {
        let busy = given([noted(1)]).after_each([
            set_anchors(&["a"]),
            start_turn(1),
            issue_seen("i", None),
            turn_finished(),
            context_compacted(9, 1, &[]),
            migrate_to_agent("reviewer"),
            add_alias("x"),
        ]);
        let fresh = busy.clone().after(reset()).session;
        assert_eq!((fresh.compactions, fresh.compaction_history.len(), fresh.anchors_due.len()), (0, 0, 0));
        assert!(fresh.stall.is_default());
        assert_eq!((fresh.turns, fresh.aliases, fresh.anchors), (1, vec!["x".into()], vec!["a".into()]));
        assert_eq!((fresh.guidance, fresh.handoffs), (busy.session.guidance, busy.session.handoffs));
        assert_eq!(fresh.seq, busy.session.seq + 1);
    }

    /// S1-B10: time that runs backwards does not take activity back.
    #[test]
    fn the_last_activity_never_moves_back() {
        let mut given = in_state(StateName::Executing).later(HOUR).after(said("x"));
        let latest = given.session.last_activity_at;
        given.now = crate::Timestamp::from_millis(0);
        assert_eq!(given.after(said("y")).session.last_activity_at, latest);
    }

    /// S0-05: what waits says who wrote it and when.
    #[test]
    fn a_note_says_who_and_when() {
        let given = given([]).later(HOUR).after(guide(1, "left"));
        let note = &given.session.guidance[0];
        assert_eq!(
            (note.by.clone(), note.queued_at, note.status),
            (ann(), given.log[1].at, NoteStatus::Pending)
        );
        let given = given.after(guidance_delivered(&[1]));
        assert_eq!(given.session.guidance[0].status, NoteStatus::Delivered);
    }

    /// S0-24: how much of the agent's output has become events, so that after a crash nothing is read twice.
    #[test]
    fn the_cursor_moves_forward_and_only_for_its_own_run() {
        let cursor = |given: &Given| given.session.run.as_ref().unwrap().cursor;
        let given = in_state(StateName::Executing).with_run().after(output(1, 100, said("a")));
        assert_eq!(cursor(&given), 100);
        let given = given.after_each([output(1, 40, said("b")), output(9, 900, said("c")), said("d")]);
        assert_eq!(cursor(&given), 100);
        let given = given.after(output(1, 250, tool_called("c1", "bash")));
        assert_eq!(cursor(&given), 250);
        let over = given.after(output(1, 300, run_ended(1, InterruptCause::Crash)));
        assert_eq!(cursor(&over), 300);
        assert_eq!(cursor(&over.after(run_started(2))), 0);
    }

    #[test]
    fn output_before_any_run_moves_nothing() {
        assert_eq!(in_state(StateName::Executing).after(output(1, 100, said("a"))).session.run, None);
    }

    /// A prompt may carry what only the first prompt of a run must.
    #[test]
    fn turns_of_a_run_are_counted_from_when_it_was_ready() {
        let turns = |given: &Given| given.session.run.as_ref().unwrap().turns;
        let given = given([]).after_each([start_turn(1), run_started(1), run_ready(1)]);
        assert_eq!(turns(&given), 1);
        let given = given.after_each([turn_finished(), start_turn(2)]);
        assert_eq!(turns(&given), 2);
        let given = given.after_each([turn_finished(), run_ended(1, None), run_started(2), run_ready(2)]);
        assert_eq!(turns(&given), 0);
        assert_eq!(turns(&given.after(start_turn(3))), 1);
    }

    #[test]
    fn a_mirrored_run_is_not_the_sessions_own() {
        let mirrored = in_state(StateName::Executing).after(mirrored_run_started(1)).session;
        assert!(mirrored.run.as_ref().unwrap().is_live());
        assert_eq!(mirrored.live_run(), None);
    }

    /// Where a turn began is where its prompt is.
    #[test]
    fn a_turn_knows_its_place_in_the_log() {
        let given = given([noted(1)]).after(start_turn(1));
        assert_eq!(given.session.turn.unwrap().seq, given.log.last().unwrap().seq);
    }

    /// S0-B13: calls the running turn waits for.
    #[test]
    fn open_calls_belong_to_the_running_turn() {
        let open = |given: &Given| given.session.open_calls.iter().cloned().collect::<Vec<_>>();
        let given = in_state(StateName::Executing).after_each([tool_called("a", "x"), tool_called("b", "x")]);
        assert_eq!(open(&given), ["a", "b"]);
        assert_eq!(open(&given.clone().after_each([tool_returned("a"), tool_returned("zz")])), ["b"]);
        for end in [turn_finished(), work_ended(), complete()] {
            assert!(open(&given.clone().after(end)).is_empty());
        }
        assert!(open(&in_state(StateName::BetweenTurn).after(tool_called("a", "x"))).is_empty());
    }
}

mod the_view {
    use super::*;
    use crate::session::testing::resume;

    /// S0-02, S0-13, S0-14, S0-16, X-04: status in S0's words.
    #[test]
    fn status_is_active_stopping_stopped_or_completed() {
        let lines: Vec<String> = StateName::ALL
            .into_iter()
            .map(|state| {
                format!(
                    "{state}: {:?}, with a stop {:?}; {:?}",
                    state.status(false),
                    state.status(true),
                    state.lifecycle()
                )
            })
            .collect();
        expect![[r#"
            beginning: Active, with a stop Stopping; Idle
            custom: Active, with a stop Stopping; Idle
            executing: Active, with a stop Stopping; Running
            between_turn: Active, with a stop Stopping; Idle
            compacted: Active, with a stop Stopping; Idle
            interrupted: Active, with a stop Stopping; Idle
            idle: Active, with a stop Stopping; Idle
            stale: Active, with a stop Stopping; Idle
            completed: Completed, with a stop Completed; Terminal
            failed: Stopped, with a stop Stopped; Terminal
            stopped: Stopped, with a stop Stopped; Terminal"#]]
        .assert_eq(&lines.join("\n"));
    }

    /// S0-02, S3-07: exactly these words.
    #[test]
    fn the_words_of_the_views() {
        let words = |value: Value| value.as_str().map(str::to_owned);
        let statuses = [Status::Active, Status::Stopping, Status::Stopped, Status::Completed];
        let names: Vec<_> = statuses.iter().filter_map(|status| words(json!(status))).collect();
        assert_eq!(names, ["active", "stopping", "stopped", "completed"]);
        let lifecycles = [Lifecycle::Running, Lifecycle::Idle, Lifecycle::Terminal];
        let names: Vec<_> = lifecycles.iter().filter_map(|lifecycle| words(json!(lifecycle))).collect();
        assert_eq!(names, ["running", "idle", "terminal"]);
    }

    /// S0-14, S0-16, S0-T7: a stop shows while the session lives.
    #[test]
    fn a_pending_stop_shows_as_stopping() {
        let status = |given: Given| given.session.status();
        assert_eq!(status(given([])), Status::Active);
        assert_eq!(status(given([]).after(stop())), Status::Stopping);
        assert_eq!(status(given([]).after_each([stop(), work_ended()])), Status::Stopped);
        assert_eq!(status(given([]).after_each([stop(), complete()])), Status::Completed);
        assert_eq!(status(in_state(StateName::Failed)), Status::Stopped);
    }

    /// S1-07: the states in words.
    #[test]
    fn states_are_named() {
        let names: Vec<&str> = StateName::ALL.iter().map(|state| state.as_str()).collect();
        expect!["beginning custom executing between_turn compacted interrupted idle stale completed failed stopped"].assert_eq(&names.join(" "));
        for state in StateName::ALL {
            assert_eq!(json!(state), json!(state.as_str()));
            assert_eq!(state.to_string(), state.as_str());
        }
    }

    /// S1-B07: the cause is data of the state.
    #[test]
    fn an_interrupted_session_shows_its_cause() {
        for cause in InterruptCause::ALL {
            let given = interrupted_by(cause);
            assert_eq!(json!(given.session.state), json!({ "name": "interrupted", "cause": cause.as_str() }));
            assert_eq!(seen(&given).cause, Some(cause));
        }
        assert_eq!(seen(&in_state(StateName::Idle)).cause, None);
    }

    /// S1-21, S1-22: what can go on, and what cannot.
    #[test]
    fn a_session_is_resumable_when_a_resume_would_be_accepted() {
        for state in StateName::ALL {
            for given in [in_state(state), with_stop(in_state(state)), shelved(in_state(state))] {
                let accepted = given.clone().put(&resume()).refusal.is_none();
                assert_eq!(seen(&given).resumable, accepted, "{state}");
            }
        }
        assert!(!seen(&given([deleted()])).resumable);
    }

    /// X-03, S0-60: exactly at ten minutes.
    #[test]
    fn a_turn_nobody_hears_of_is_a_suspected_orphan() {
        let given = in_state(StateName::Executing);
        let suspected = |quiet_ms| seen_after(&given, quiet_ms).suspected_orphan;
        assert!(!suspected(10 * MINUTE - 1));
        assert!(suspected(10 * MINUTE));
    }

    /// X-03, S0-B13: idle is not orphaned, and neither is waiting for a tool.
    #[test]
    fn a_turn_that_waits_for_a_tool_is_no_orphan() {
        let waiting = in_state(StateName::Executing).after(tool_called("c", "cargo"));
        assert!(!seen_after(&waiting, 10 * HOUR).suspected_orphan);
        assert!(seen_after(&waiting.after(tool_returned("c")), 10 * HOUR).suspected_orphan);
        assert!(!seen_after(&in_state(StateName::BetweenTurn), 10 * HOUR).suspected_orphan);
    }

    /// X-03, S1-B10: stale for a week is critical; exactly at the limit.
    #[test]
    fn a_session_stale_for_a_week_is_critical() {
        let given = in_state(StateName::Stale);
        let critical = |given: &Given, quiet_ms| seen_after(given, quiet_ms).critical;
        assert!(!critical(&given, 168 * HOUR - 1));
        assert!(critical(&given, 168 * HOUR));
        assert!(!critical(&in_state(StateName::Idle), 168 * HOUR));
    }

    /// X-03: the one table.
    #[test]
    fn the_numbers_of_staleness() {
        expect![[r#"{"suspect_after_ms":600000,"idle_after_ms":3600000,"stale_after_ms":172800000,"critical_after_ms":604800000,"prune_after_ms":86400000}"#]].assert_eq(&serde_json::to_string(&Staleness::default()).unwrap());
    }

    /// S1-28, S1-30, S1-34: place in the family.
    #[test]
    fn level_depth_and_root_come_from_the_lineage() {
        let session = given([]).session;
        let at = |ancestors: &[u128]| {
            let lineage = Lineage { ancestors: ancestors.iter().copied().map(session_id).collect() };
            let view = view(&session, &lineage, session.created_at, &Staleness::default());
            (view.level, view.depth, view.root, view.can_delegate)
        };
        assert_eq!(at(&[]), (1, 1, session_id(1), true));
        assert_eq!(at(&[7]), (2, 2, session_id(7), true));
        assert_eq!(at(&[8, 7]), (3, 3, session_id(7), false));
        assert_eq!(at(&[9, 8, 7]), (3, 4, session_id(7), false));
    }

    #[test]
    fn who_cannot_have_children_says_so() {
        let can = |given: &Given| seen(given).can_delegate;
        assert!(can(&given([])));
        assert!(!can(&born(&NewSession { leaf: true, ..NewSession::default() })));
        assert!(!can(&born(&NewSession { depth_limit: Some(1), ..NewSession::default() })));
        assert!(!can(&in_state(StateName::Completed)));
        assert!(!can(&given([deleted()])));
    }

    /// S0-07, S1-02, S3-09: everything there is to know, in one shape.
    #[test]
    #[expect(clippy::too_many_lines, reason = "most of them are the snapshot")]
    fn the_whole_view() {
        let new = NewSession {
            title: Some("Fix the test".into()),
            agent: Some("executor".into()),
            plan: Some("plan-1".into()),
            purpose: Some("fix".into()),
            anchors: vec!["never push".into()],
            ..NewSession::default()
        };
        let given = born(&new).after_each([
            start_turn(1),
            tool_called("c1", "bash"),
            usage(100, 20, Some(5_000)),
            guide(1, "left"),
            context_compacted(9_000, 1_000, &[]),
            run_started(1),
            run_ready(1),
            output(1, 812, gate_asked(1, 1)),
            stop(),
        ]);
        expect![[r#"
            {
              "id": "sess#1",
              "title": "Fix the test",
              "agent": "executor",
              "worker": null,
              "owner": "ann",
              "source": "api",
              "driven_by": "lanyard",
              "workspace": null,
              "plan": "plan-1",
              "phase": "custom",
              "purpose": "fix",
              "state": "executing",
              "status": "stopping",
              "lifecycle": "running",
              "operator_state": "needs_answer",
              "unread": false,
              "previous_state": "custom",
              "since": "2026-11-15T08:00:01.000Z",
              "resumable": false,
              "suspected_orphan": false,
              "critical": false,
              "parent": null,
              "root": "sess#1",
              "level": 1,
              "depth": 1,
              "depth_limit": 3,
              "can_delegate": true,
              "forked_from": null,
              "aliases": [],
              "memory_mode": "session_only",
              "memory": {
                "mode": "session_only"
              },
              "governance_level": null,
              "language": {},
              "governance_injected": false,
              "violation_count": 0,
              "first_tool": {
                "name": "bash",
                "at": "2026-11-15T08:00:02.000Z"
              },
              "created_at": "2026-11-15T08:00:00.000Z",
              "last_activity_at": "2026-11-15T08:00:09.000Z",
              "last_seq": 11,
              "turns": 1,
              "active_turn": {
                "id": "turn#1",
                "prompt_hash": "c0e199065eef9b207692f6ae9db665a4",
                "seq": 2,
                "started_at": "2026-11-15T08:00:01.000Z",
                "by": {
                  "kind": "operator",
                  "name": "ann"
                },
                "delivered": true,
                "cancel_requested": false,
                "worked": true,
                "memory": {
                  "mode": "session_only"
                },
                "calls": 1,
                "tokens": 120
              },
              "stop": {
                "level": 1,
                "requested_at": "2026-11-15T08:00:09.000Z",
                "level_at": "2026-11-15T08:00:09.000Z",
                "by": {
                  "kind": "operator",
                  "name": "ann"
                },
                "told": 0
              },
              "guidance": [
                {
                  "id": "note#1",
                  "text": "left",
                  "queued_at": "2026-11-15T08:00:04.000Z",
                  "by": {
                    "kind": "operator",
                    "name": "ann"
                  },
                  "status": "pending"
                }
              ],
              "writer": null,
              "writer_epoch": 0,
              "choice": {},
              "in_force": {},
              "bypasses_approvals": false,
              "run": {
                "id": "run#1",
                "number": 1,
                "phase": "ready",
                "cursor": 812,
                "turns": 1,
                "info": {
                  "name": "scripted",
                  "version": "1.2.3",
                  "protocol": "acp 1"
                },
                "capabilities": {
                  "load": true,
                  "resume": false,
                  "fork": false,
                  "list": false,
                  "close": false,
                  "cancel": true,
                  "steer": false,
                  "compact": false,
                  "children": false,
                  "permissions": true,
                  "images": false,
                  "mcp_stdio": false,
                  "mcp_http": false,
                  "mcp_sse": false
                }
              },
              "native": "thread-7",
              "gates": [
                {
                  "id": "gate#1",
                  "run": "run#1",
                  "kind": "permission",
                  "title": "Run the tests",
                  "call": "c1",
                  "detail": {
                    "command": "cargo test"
                  },
                  "options": [
                    {
                      "id": "yes",
                      "name": "Allow",
                      "kind": "allow_once"
                    },
                    {
                      "id": "yes-all",
                      "name": "Always",
                      "kind": "allow_always"
                    },
                    {
                      "id": "no",
                      "name": "Reject",
                      "kind": "reject_once"
                    }
                  ],
                  "request": "1",
                  "opened_at": "2026-11-15T08:00:08.000Z",
                  "status": {
                    "name": "open"
                  }
                }
              ],
              "snapshots": 0,
              "last_tool_call": {
                "tool": "bash",
                "at": "2026-11-15T08:00:02.000Z",
                "count": 1
              },
              "usage": {
                "input_tokens": 100,
                "output_tokens": 20,
                "context_tokens": 5000
              },
              "anchors": [
                "never push"
              ],
              "compactions": 1,
              "compaction_history": [
                {
                  "at": "2026-11-15T08:00:05.000Z",
                  "size_before": 9000,
                  "size_after": 1000,
                  "anchors_survived": []
                }
              ],
              "checkpoints": [
                {
                  "position": 2,
                  "at": "2026-11-15T08:00:02.000Z",
                  "reason": "risky_tool"
                },
                {
                  "position": 6,
                  "at": "2026-11-15T08:00:05.000Z",
                  "reason": "compaction"
                }
              ],
              "state_history": [
                {
                  "state": "custom",
                  "at": "2026-11-15T08:00:00.000Z"
                },
                {
                  "state": "executing",
                  "at": "2026-11-15T08:00:01.000Z"
                }
              ],
              "handoffs": [],
              "stall": {
                "issue_repeats": 0,
                "error_repeats": 0,
                "stalls": 0
              },
              "archived": false,
              "end_reason": null
            }"#]]
        .assert_eq(&short_ids(&serde_json::to_string_pretty(&seen(&given)).unwrap()));
    }

    fn seen(given: &Given) -> SessionView {
        view(&given.session, &Lineage::default(), given.now, &Staleness::default())
    }

    fn seen_after(given: &Given, quiet_ms: u64) -> SessionView {
        let mut given = given.clone();
        given.now = given.session.last_activity_at;
        seen(&given.later(quiet_ms))
    }

    fn with_stop(given: Given) -> Given {
        given.after(stop())
    }

    fn shelved(mut given: Given) -> Given {
        given.session.archived = given.session.turn.is_none();
        given
    }
}

mod the_wire {
    use super::*;

    /// One line for each type of event: what clients read and what is stored.
    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn every_event_on_the_wire() {
        let lines: Vec<String> =
            samples().into_iter().map(|event| serde_json::to_string(&event).unwrap()).collect();
        expect![[r#"
            {"type":"session.created","data":{"state":"custom","title":"t","agent":"executor","owner":"ann","source":"api","driven_by":"lanyard","native":"n","workspace":"/a","tree":{"path":"/data/trees/x","branch":"b","base":"0a","repository":"/a"},"setup":[{"command":"make","output":"ok","ms":3}],"plan":"p","phase":"custom","purpose":"fix","task":"task_00000000000000000000000005","worker":"worker#6","parent":"sess#2","forked_from":{"session":"sess#3","seq":7},"aliases":["x"],"anchors":["a"],"governance_level":"strict","language":{"communication":"German"},"choice":{"model":"opus","mode":"plan","effort":"high"},"policy":{"depth_limit":3,"leaf":true,"memory_mode":"selective"}}}
            {"type":"session.linked","data":{"parent":"sess#2","previous":"sess#3"}}
            {"type":"session.child_linked","data":{"child":"sess#4","agent":"executor"}}
            {"type":"session.child_unlinked","data":{"child":"sess#4"}}
            {"type":"session.migrated","data":{"from":{"agent":"a","worker":"worker#1","owner":"ann"},"to":{"agent":"b","worker":"worker#1","owner":"ann"},"reason":"r"}}
            {"type":"session.alias_added","data":{"alias":"y"}}
            {"type":"session.driven","data":{"by":"host"}}
            {"type":"session.renamed","data":{"title":"t"}}
            {"type":"session.imported","data":{"from":"claude","messages":2,"events":3,"left_out":4,"unreadable":1,"began_at":"1970-01-01T00:00:00.001Z","ended_at":"1970-01-01T00:00:00.002Z"}}
            {"type":"session.plan_joined","data":{"plan":"p"}}
            {"type":"session.seen","data":{"seq":1}}
            {"type":"tool.in_flight","data":{"calls":2}}
            {"type":"session.archived","data":{}}
            {"type":"session.unarchived","data":{}}
            {"type":"session.reset","data":{"reason":"r"}}
            {"type":"session.resumed","data":{}}
            {"type":"session.deleted","data":{"reason":"r"}}
            {"type":"session.idle","data":{"quiet_ms":3600000}}
            {"type":"session.stale","data":{"quiet_ms":172800000}}
            {"type":"session.ended","data":{"how":"failed","reason":"r"}}
            {"type":"session.choice_set","data":{"choice":{"model":"opus","mode":"plan","effort":"high"}}}
            {"type":"session.memory_set","data":{"policy":{"mode":"selective","session_memory":false,"tags":["dev_test"],"allow":["api"]}}}
            {"type":"turn.started","data":{"turn":"turn#1","client_turn_id":"mine","prompt":"go","prompt_hash":"00","opening":{"kind":"returned","after_ms":5},"anchors":["a"],"governance":true,"delivery":"interrupt","queued":true,"by":{"kind":"operator","name":"ann"},"memory":{"mode":"session_only"},"choice":{"model":"opus","mode":"plan","effort":"high"},"forced":true}}
            {"type":"turn.cancel_requested","data":{"turn":"turn#1","reason":"r","forced":true}}
            {"type":"turn.waiting","data":{"turn":"turn#1","limit":{"kind":"usage","text":"no more","resets_at":"2026-11-15T08:00:00.000Z","account":"second"},"leg":"turn#2","until":"2026-11-15T08:00:00.000Z","asks":"too_long","again":true}}
            {"type":"turn.continued","data":{"turn":"turn#1","leg":"turn#2","asked":true}}
            {"type":"turn.finished","data":{"turn":"turn#1","outcome":"refused","reason":"not allowed to","review":true}}
            {"type":"turn.interrupted","data":{"turn":"turn#1","cause":"host_lost","reason":"r","uncertain":true,"receipt":{"tried":[{"channel":"agent","after_ms":0},{"channel":"term","after_ms":5000},{"channel":"kill","after_ms":7000}],"processes":[{"pid":4711,"name":"agent","by":"KILL"},{"pid":4712,"name":"sleep"}],"left":[{"pid":4713,"name":"make"}],"kept":[{"pid":4714,"name":"gopls"}]},"review":true}}
            {"type":"context.anchors_set","data":{"anchors":["a"]}}
            {"type":"context.compacted","data":{"size_before":9,"size_after":1,"anchors_survived":[],"anchors_lost":[],"nth":1,"checkpoint":1}}
            {"type":"context.checkpoint","data":{"position":1,"reason":"risky_tool"}}
            {"type":"context.issue_seen","data":{"hash":"h","score":0.1}}
            {"type":"context.error_seen","data":{"hash":"h","text":"no space left"}}
            {"type":"context.stalled","data":{"kind":"issue","hash":"h","repeats":3}}
            {"type":"message","data":{"role":"user","text":"hi"}}
            {"type":"thought","data":{"text":"hm"}}
            {"type":"tool.called","data":{"call":"c","tool":"t","arguments":{"a":[1,null]}}}
            {"type":"tool.returned","data":{"call":"c","is_error":true,"content":"no"}}
            {"type":"usage.reported","data":{"input_tokens":1,"output_tokens":2,"context_tokens":3,"cost_micros":4}}
            {"type":"plan.updated","data":{"entries":[{"text":"find the fault","status":"completed"},{"text":"mend it","status":"in_progress"},{"text":"run the tests","status":"pending"}]}}
            {"type":"file.changed","data":{"path":"src/lib.rs","added":3,"removed":1}}
            {"type":"tool.relayed","data":{"call":"7","server":"ev","tool":"echo","channel":"hook","is_error":false,"took_ms":12,"bytes":340,"uncertain":true}}
            {"type":"turn.queued","data":{"turn":"turn#1","client_turn_id":"mine","prompt":"go","prompt_hash":"00","delivery":"steer","note":"note#1","memory":{"mode":"off"},"choice":{"model":"opus","mode":"plan","effort":"high"},"forced":true}}
            {"type":"turn.edited","data":{"turn":"turn#1","prompt":"stay","prompt_hash":"01","delivery":"queue","note":"note#1"}}
            {"type":"turn.withdrawn","data":{"turn":"turn#1","reason":"r"}}
            {"type":"turn.promoted","data":{"turn":"turn#1","to":"steer","note":"note#1"}}
            {"type":"turn.delivered","data":{"turn":"turn#1"}}
            {"type":"turn.steered","data":{"turn":"turn#1","into":"turn#2","channel":"mcp"}}
            {"type":"inbox.reordered","data":{"turns":["turn#2","turn#1"]}}
            {"type":"inbox.paused","data":{"reason":"asked"}}
            {"type":"inbox.resumed","data":{}}
            {"type":"stop.requested","data":{"level":1,"scope":"subtree","reason":"r","inherited":"sess#2"}}
            {"type":"stop.raised","data":{"from":1,"to":2,"scope":"subtree","reason":"r"}}
            {"type":"stop.applied","data":{"level":2,"channel":"mcp","call":"7","tool":"echo","refused":true}}
            {"type":"stop.complied","data":{"how":"hand_off"}}
            {"type":"stop.settled","data":{}}
            {"type":"end.blocked","data":{"why":"w"}}
            {"type":"agent.handed_off","data":{"from":"a","to":"b","reason":"r"}}
            {"type":"guidance.returned","data":{"notes":["note#1"]}}
            {"type":"notice.sent","data":{"to":"sess#2","note":"note#1"}}
            {"type":"agent.introduced","data":{"agent":"executor","extension_session_id":"s-1"}}
            {"type":"stop.withdrawn","data":{"reason":"r"}}
            {"type":"guidance.queued","data":{"note":"note#1","kind":"notice","text":"left","warnings":["cut"],"about":"sess#2"}}
            {"type":"guidance.delivered","data":{"notes":["note#1"],"channel":"mcp","call":"7","by":"9f","preview":"left"}}
            {"type":"guidance.settled","data":{"notes":["note#1"],"how":"acknowledged"}}
            {"type":"command.refused","data":{"command":"stop","code":"c","state":"idle"}}
            {"type":"signal.unexpected","data":{"signal":"said","state":"idle"}}
            {"type":"run.started","data":{"run":"run#1","number":1,"agent":"executor","driver":"acp","mirrored":true,"account":"second"}}
            {"type":"run.ready","data":{"run":"run#1","native":"thread-7","info":{"name":"scripted","version":"1.2.3","protocol":"acp 1"},"capabilities":{"load":true,"resume":false,"fork":false,"list":false,"close":false,"cancel":true,"steer":false,"compact":false,"children":false,"permissions":true,"images":false,"mcp_stdio":false,"mcp_http":false,"mcp_sse":false},"continuity":"native","history":12}}
            {"type":"run.adopted","data":{"run":"run#1"}}
            {"type":"run.ended","data":{"run":"run#1","how":{"kind":"signalled","signal":9},"reason":"the session was terminated","receipt":{"tried":[{"channel":"agent","after_ms":0},{"channel":"term","after_ms":5000},{"channel":"kill","after_ms":7000}],"processes":[{"pid":4711,"name":"agent","by":"KILL"},{"pid":4712,"name":"sleep"}],"left":[{"pid":4713,"name":"make"}],"kept":[{"pid":4714,"name":"gopls"}]}}}
            {"type":"run.wanted","data":{"ways":["native","replay","preamble"]}}
            {"type":"run.tools_missing","data":{"run":"run#1","servers":["lanyard"]}}
            {"type":"run.activity","data":{"run":"run#1","activity":"rang","watched":true}}
            {"type":"run.bound_met","data":{"run":"run#1","what":"memory","limit":"512 MiB","times":2}}
            {"type":"run.offered","data":{"modes":{"items":[{"id":"yolo","name":"Yolo","about":"asks nothing","unguarded":true}],"default":"yolo","open":true,"option":"mode"},"commands":[{"name":"review","about":"reviews","hint":"[files]"}]}}
            {"type":"run.in_force","data":{"model":"opus","mode":"plan","effort":"high"}}
            {"type":"gate.opened","data":{"gate":"gate#1","run":"run#1","kind":"permission","title":"Run the tests","call":"c1","detail":{"command":"cargo test"},"options":[{"id":"yes","name":"Allow","kind":"allow_once"},{"id":"yes-all","name":"Always","kind":"allow_always"},{"id":"no","name":"Reject","kind":"reject_once"}],"request":"7"}}
            {"type":"gate.answered","data":{"gate":"gate#1","option":"no","message":"not on main"}}
            {"type":"gate.withdrawn","data":{"gate":"gate#1","why":"the turn ended"}}
            {"type":"context.snapshot","data":{"name":"stop-41","commit":"9fceb02d0ae598e95dc970b74767f19372d61af8","position":40,"reason":"stop","files_changed":2}}
            {"type":"context.snapshot_skipped","data":{"code":"no_git","why":"the workspace is no git repository"}}
            {"type":"context.rolled_back","data":{"from":"rollback-42","to":"turn-12","changed":2,"added":1,"removed":0}}
            {"type":"context.branch_merged","data":{"branch":"b","commit":"0a","into":"main"}}
            {"type":"context.branch_discarded","data":{"branch":"b","reference":"refs/x"}}
            {"type":"writer.granted","data":{"pen":{"connection":"conn_00000000000000000000000001","client":"cli","actor":{"kind":"operator","name":"ann"}},"epoch":1}}
            {"type":"writer.asked","data":{"pen":{"connection":"conn_00000000000000000000000002","client":"cli","actor":{"kind":"operator","name":"ann"}},"until":"2026-11-15T08:00:10.000Z"}}
            {"type":"writer.denied","data":{"connection":"conn_00000000000000000000000002"}}
            {"type":"writer.released","data":{"epoch":1,"why":"released"}}
            {"type":"review.drafted","data":{"comment":"cmt#1","path":"src/a.rs","lines":{"first":3,"last":3},"quote":"line 3","text":"why 1?","base":{"kind":"turn_start","name":"turn-1","commit":"0a"}}}
            {"type":"review.edited","data":{"comment":"cmt#1","text":"x"}}
            {"type":"review.removed","data":{"comment":"cmt#1"}}
            {"type":"review.sent","data":{"turn":"turn#1","comments":["cmt#1"]}}
            {"type":"review.viewed","data":{"path":"a.rs","hash":"0a"}}"#]].assert_eq(&short_ids(&lines.join("\n")));
    }

    /// `{seq, session, at, actor, cause, type, data}`.
    #[test]
    fn an_event_in_its_envelope() {
        let envelope = Envelope { cause: Some(Cause::Request("key-1".into())), ..enclosed(finished(1)) };
        expect![[r#"
            {
              "seq": 2,
              "session": "sess_00000000000000000000000001",
              "at": "2026-11-15T08:00:01.000Z",
              "actor": {
                "kind": "system",
                "name": "runner"
              },
              "cause": {
                "request": "key-1"
              },
              "type": "turn.finished",
              "data": {
                "turn": "turn_00000000000000000000000001",
                "outcome": "completed",
                "review": true
              }
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&envelope).unwrap());
        let seen = Envelope { cause: Some(Cause::Signal("turn_finished".into())), ..enclosed(finished(1)) };
        assert_eq!(json!(seen)["cause"], json!({ "signal": "turn_finished" }));
        let read =
            Envelope { cause: Some(Cause::Output { run: run_id(1), to: 812 }), ..enclosed(finished(1)) };
        assert_eq!(json!(read)["cause"], json!({ "output": { "run": run_id(1), "to": 812 } }));
        assert_eq!(serde_json::from_value::<Envelope>(json!(read)).unwrap(), read);
        assert_eq!(json!(enclosed(finished(1))).get("cause"), None);
    }

    #[test]
    fn every_event_round_trips() {
        for event in samples() {
            let envelope = enclosed(event);
            let text = serde_json::to_string(&envelope).unwrap();
            assert_eq!(serde_json::from_str::<Envelope>(&text).unwrap(), envelope, "{text}");
            let value = serde_json::to_value(&envelope).unwrap();
            assert_eq!(serde_json::from_value::<Envelope>(value).unwrap(), envelope);
        }
    }

    #[test]
    fn every_event_has_a_type_of_its_own_and_data() {
        let mut types: Vec<String> = samples().iter().map(type_of).collect();
        assert_eq!(types.len(), EVENTS);
        types.sort();
        types.dedup();
        assert_eq!(types.len(), EVENTS);
        for event in samples() {
            assert!(json!(event)["data"].is_object(), "{event:?}");
        }
    }

    #[test]
    fn an_unknown_type_is_an_error() {
        let mut value = json!(enclosed(finished(1)));
        value["type"] = json!("turn.sublimated");
        assert!(serde_json::from_value::<Envelope>(value).is_err());
    }

    #[test]
    fn wrong_data_is_an_error() {
        let broken = |path: &str, wrong: Value| {
            let mut value = json!(enclosed(stop_at(StopLevel::Graceful)));
            *value.pointer_mut(path).unwrap() = wrong;
            serde_json::from_value::<Envelope>(value).is_err()
        };
        assert!(broken("/data/level", json!(4)));
        assert!(broken("/data/level", json!(0)));
        assert!(broken("/data/level", json!("1")));
        assert!(broken("/data", json!(null)));
        assert!(broken("/session", json!("sess_1")));
        assert!(broken("/at", json!("yesterday")));
        assert!(broken("/seq", json!(-1)));
        assert!(broken("/actor/kind", json!("god")));
        assert!(serde_json::from_str::<Envelope>("{}").is_err());
        assert!(serde_json::from_str::<Envelope>("[]").is_err());
        assert!(serde_json::from_str::<Envelope>("").is_err());
    }

    /// A newer daemon may say more about an event; what an older one knows of it still reads.
    #[test]
    fn unknown_fields_are_passed_over() {
        let mut value = json!(enclosed(finished(1)));
        value["data"]["weather"] = json!("fine");
        value["mood"] = json!("good");
        assert_eq!(serde_json::from_value::<Envelope>(value).unwrap(), enclosed(finished(1)));
    }

    /// S0-03: levels are numbers.
    #[test]
    fn a_stop_level_is_one_two_or_three() {
        for (number, level) in
            [(1, StopLevel::Graceful), (2, StopLevel::Immediate), (3, StopLevel::Terminated)]
        {
            assert_eq!(json!(level), json!(number));
            assert_eq!(StopLevel::try_from(number), Ok(level));
        }
        expect!["a stop level is 1, 2 or 3, not 4"].assert_eq(&StopLevel::try_from(4).unwrap_err());
    }

    /// Only what is said and done leaves a session's row as it is.
    #[test]
    fn transcript_events_are_not_structural() {
        let loose: Vec<String> =
            samples().iter().filter(|event| !event.is_structural()).map(type_of).collect();
        expect![
            "tool.in_flight message thought tool.called tool.returned usage.reported plan.updated file.changed tool.relayed"
        ]
        .assert_eq(&loose.join(" "));
    }

    /// Strange text travels unharmed.
    #[test]
    fn any_text_round_trips() {
        for text in [
            "",
            "\0\u{1b}[31m",
            "\u{202e}evil",
            "👩‍👩‍👧‍👦",
            "\"type\":\"session.deleted\"",
            "\u{fffd}\u{10ffff}",
            "a\r\nb",
        ] {
            let envelope = enclosed(TranscriptEvent::Message {
                role: Role::Agent,
                text: text.into(),
                message_id: None,
                parts: Vec::new(),
            });
            let json = serde_json::to_string(&envelope).unwrap();
            assert!(!json.contains('\n'));
            assert_eq!(serde_json::from_str::<Envelope>(&json).unwrap(), envelope);
        }
    }

    /// What could be written can be read again, however deep the arguments of a call were nested.
    #[test]
    fn the_deepest_arguments_a_client_can_send_can_be_stored() {
        let text = format!(
            r#"{{"type":"tool_called","call":"c","tool":"t","arguments":{}1{}}}"#,
            "[".repeat(126),
            "]".repeat(126)
        );
        let signal: Signal = serde_json::from_str(&text).unwrap();
        let given = in_state(StateName::Executing).after(signal);
        let stored = serde_json::to_string(given.log.last().unwrap()).unwrap();
        assert_eq!(&serde_json::from_str::<Envelope>(&stored).unwrap(), given.log.last().unwrap());
    }

    /// S0-23, S0-T3: persist, then restore, yields the same data.
    #[test]
    fn the_record_round_trips() {
        let full =
            born(&NewSession { agent: Some("x".into()), anchors: vec!["a".into()], ..NewSession::default() })
                .after_each([
                    start_turn(1),
                    tool_called("c", "bash"),
                    usage(1, 2, Some(3)),
                    guide(1, "x"),
                    issue_seen("i", Some(0.1)),
                    context_compacted(9, 1, &[]),
                    run_started(1),
                    run_ready(1),
                    gate_asked(1, 1),
                    gate_asked(2, 1),
                    answer(1, "deny"),
                    gate_asked(3, 1),
                    gate_withdrawn("3"),
                    snapshot_taken("turn-1"),
                    snapshot_skipped("no_git"),
                    cancel_turn(),
                    stop(),
                ]);
        let all = StateName::ALL.map(in_state).into_iter().chain([full, given([archived(), deleted()])]);
        for Given { session, .. } in all {
            let text = serde_json::to_string(&session).unwrap();
            assert_eq!(serde_json::from_str::<Session>(&text).unwrap(), session, "{text}");
        }
    }

    /// What is not there takes no space.
    #[test]
    fn a_plain_record_is_small() {
        expect![[r#"
            {
              "id": "sess#1",
              "seq": 1,
              "state": {
                "name": "beginning"
              },
              "since": "2026-11-15T08:00:00.000Z",
              "history": [
                {
                  "state": "beginning",
                  "at": "2026-11-15T08:00:00.000Z"
                }
              ],
              "created_at": "2026-11-15T08:00:00.000Z",
              "last_activity_at": "2026-11-15T08:00:00.000Z",
              "hands": {
                "owner": "ann"
              },
              "source": "api",
              "driven_by": "nobody",
              "policy": {
                "depth_limit": 3,
                "leaf": false,
                "memory_mode": "session_only"
              },
              "governance": {
                "injected": false
              },
              "turns": 0,
              "snapshots": 0,
              "compactions": 0,
              "refused_in_row": 0
            }"#]]
        .assert_eq(&short_ids(&serde_json::to_string_pretty(&given([]).session).unwrap()));
    }

    #[test]
    fn signals_are_read_from_agents() {
        let read = |text: &str| serde_json::from_str::<Signal>(text);
        assert_eq!(
            read(r#"{"type":"tool_returned","call":"c"}"#).unwrap(),
            Signal::ToolReturned { call: "c".into(), is_error: false, content: Value::Null },
        );
        assert_eq!(
            read(r#"{"type":"turn_finished","outcome":"completed"}"#).unwrap(),
            Signal::TurnFinished { turn: None, outcome: TurnOutcome::Completed, reason: None },
        );
        assert!(
            read(r#"{"type":"said","role":"agent","text":"x","loud":true}"#).is_err(),
            "an unknown field"
        );
        assert!(read(r#"{"type":"shouted","text":"x"}"#).is_err(), "an unknown type");
        assert!(read(r#"{"type":"said","role":"god","text":"x"}"#).is_err(), "an unknown role");
    }

    /// A client that could send these could stop a session's clock, or speak for a process it does not own.
    #[test]
    fn some_signals_are_for_lanyard_alone() {
        let internal = [
            daemon_restarted(),
            quiet(1),
            run_started(1),
            run_ready(1),
            run_adopted(1),
            tools_missing(1, &["lanyard"]),
            bound_met(1, 1),
            run_ended(1, None),
            gate_asked(1, 1),
            gate_withdrawn("1"),
            snapshot_taken("turn-1"),
            snapshot_skipped("no_git"),
        ];
        let open = [
            said("x"),
            Signal::Thought { text: "x".into() }.into(),
            tool_called("c", "t"),
            tool_returned("c"),
            usage(1, 2, None),
            turn_finished(),
            turn_lost(InterruptCause::Limit),
            context_compacted(9, 1, &[]),
            issue_seen("i", None),
            error_seen("e"),
            guidance_delivered(&[1]),
            planned(&["x"]),
            file_changed("x"),
            work_ended(),
        ];
        let are = |inputs: &[Input], internal: bool| {
            inputs
                .iter()
                .all(|input| matches!(input, Input::Signal(signal) if signal.is_internal() == internal))
        };
        assert!(are(&internal, true) && are(&open, false));
        assert_eq!(internal.len() + open.len(), 26, "each signal there is");
    }
}

/// One event of every type. The numbers below do not compile when one is missing.
fn samples() -> Vec<Event> {
    let mut events = change_samples();
    events.extend(work_samples());
    events.extend(inbox_samples());
    events.extend(control_samples());
    events.extend(run_samples());
    events.extend(gate_samples());
    events.extend(writer_samples());
    events.extend(review_samples());
    let mut numbers: Vec<usize> = events.iter().map(number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..EVENTS).collect::<Vec<_>>());
    events
}

const EVENTS: usize = 94;

#[expect(clippy::too_many_lines, reason = "a table")]
fn number(event: &Event) -> usize {
    match event {
        Event::Change(event) => match event {
            ChangeEvent::Created(_) => 0,
            ChangeEvent::Linked { .. } => 1,
            ChangeEvent::ChildLinked { .. } => 2,
            ChangeEvent::ChildUnlinked { .. } => 3,
            ChangeEvent::Migrated { .. } => 4,
            ChangeEvent::AliasAdded { .. } => 5,
            ChangeEvent::Archived {} => 6,
            ChangeEvent::Unarchived {} => 7,
            ChangeEvent::Reset { .. } => 8,
            ChangeEvent::Deleted { .. } => 9,
            ChangeEvent::WentIdle { .. } => 10,
            ChangeEvent::WentStale { .. } => 11,
            ChangeEvent::Ended { .. } => 12,
            ChangeEvent::MemorySet { .. } => 69,
            ChangeEvent::Driven { .. } => 70,
            ChangeEvent::PlanJoined { .. } => 74,
            ChangeEvent::Seen { .. } => 76,
            ChangeEvent::Resumed { .. } => 77,
            ChangeEvent::Imported(_) => 78,
            ChangeEvent::ChoiceSet { .. } => 86,
            ChangeEvent::Renamed { .. } => 89,
        },
        Event::Turn(event) => match event {
            TurnEvent::Started { .. } => 13,
            TurnEvent::CancelRequested { .. } => 14,
            TurnEvent::Finished { .. } => 15,
            TurnEvent::Interrupted { .. } => 16,
            TurnEvent::Waiting { .. } => 79,
            TurnEvent::Continued { .. } => 80,
        },
        Event::Inbox(event) => match event {
            InboxEvent::Queued { .. } => 56,
            InboxEvent::Edited { .. } => 57,
            InboxEvent::Withdrawn { .. } => 58,
            InboxEvent::Promoted { .. } => 59,
            InboxEvent::Delivered { .. } => 60,
            InboxEvent::Steered { .. } => 61,
            InboxEvent::Reordered { .. } => 62,
            InboxEvent::Paused { .. } => 63,
            InboxEvent::Resumed {} => 64,
        },
        Event::Context(event) => match event {
            ContextEvent::AnchorsSet { .. } => 17,
            ContextEvent::Compacted { .. } => 18,
            ContextEvent::Checkpoint { .. } => 19,
            ContextEvent::IssueSeen { .. } => 20,
            ContextEvent::ErrorSeen { .. } => 21,
            ContextEvent::Stalled { .. } => 22,
            ContextEvent::Snapshot { .. } => 36,
            ContextEvent::SnapshotSkipped { .. } => 37,
            ContextEvent::RolledBack { .. } => 71,
            ContextEvent::BranchMerged { .. } => 90,
            ContextEvent::BranchDiscarded { .. } => 91,
        },
        Event::Control(event) => match event {
            ControlEvent::StopRequested { .. } => 23,
            ControlEvent::StopRaised { .. } => 24,
            ControlEvent::StopWithdrawn { .. } => 25,
            ControlEvent::GuidanceQueued { .. } => 26,
            ControlEvent::GuidanceDelivered { .. } => 27,
            ControlEvent::GuidanceSettled { .. } => 28,
            ControlEvent::CommandRefused { .. } => 29,
            ControlEvent::SignalUnexpected { .. } => 30,
            ControlEvent::StopApplied { .. } => 48,
            ControlEvent::StopComplied { .. } => 49,
            ControlEvent::StopSettled {} => 50,
            ControlEvent::GuidanceReturned { .. } => 51,
            ControlEvent::NoticeSent { .. } => 52,
            ControlEvent::Introduced { .. } => 53,
            ControlEvent::HandedOff { .. } => 55,
            ControlEvent::EndBlocked { .. } => 72,
        },
        Event::Writer(event) => match event {
            WriterEvent::Granted { .. } => 65,
            WriterEvent::Asked { .. } => 66,
            WriterEvent::Denied { .. } => 67,
            WriterEvent::Released { .. } => 68,
        },
        Event::Review(event) => match event {
            ReviewEvent::Drafted(_) => 81,
            ReviewEvent::Edited { .. } => 82,
            ReviewEvent::Removed { .. } => 83,
            ReviewEvent::Sent { .. } => 84,
            ReviewEvent::Viewed { .. } => 85,
        },
        Event::Transcript(event) => match event {
            TranscriptEvent::Message { .. } => 31,
            TranscriptEvent::Thought { .. } => 32,
            TranscriptEvent::ToolCalled { .. } => 33,
            TranscriptEvent::ToolReturned { .. } => 34,
            TranscriptEvent::UsageReported { .. } => 35,
            TranscriptEvent::Planned { .. } => 38,
            TranscriptEvent::FileChanged { .. } => 39,
            TranscriptEvent::ToolRelayed { .. } => 54,
            TranscriptEvent::InFlight { .. } => 75,
        },
        Event::Run(event) => match event {
            RunEvent::Started { .. } => 40,
            RunEvent::Ready(_) => 41,
            RunEvent::Adopted { .. } => 42,
            RunEvent::Ended { .. } => 43,
            RunEvent::Wanted { .. } => 44,
            RunEvent::ToolsMissing { .. } => 73,
            RunEvent::BoundMet { .. } => 92,
            RunEvent::Offered(_) => 87,
            RunEvent::InForce(_) => 88,
            RunEvent::Activity { .. } => 93,
        },
        Event::Gate(event) => match event {
            GateEvent::Opened { .. } => 45,
            GateEvent::Answered { .. } => 46,
            GateEvent::Withdrawn { .. } => 47,
        },
    }
}

fn tags(texts: &[&str]) -> Tags {
    tag::parse("tags", texts).unwrap()
}

fn imported() -> Event {
    ChangeEvent::Imported(crate::session::Import {
        from: "claude".into(),
        messages: 2,
        events: 3,
        left_out: 4,
        unreadable: 1,
        began_at: Some(crate::Timestamp::from_millis(1)),
        ended_at: Some(crate::Timestamp::from_millis(2)),
    })
    .into()
}

fn created() -> Event {
    let created = Created {
        state: StateName::Custom,
        title: Some("t".into()),
        agent: Some("executor".into()),
        owner: "ann".into(),
        source: "api".into(),
        driven_by: Some(crate::session::DrivenBy::Lanyard),
        native: Some("n".into()),
        workspace: Some("/a".into()),
        tree: Some(crate::tree::Tree {
            path: "/data/trees/x".into(),
            branch: "b".into(),
            base: "0a".into(),
            repository: "/a".into(),
            removed: false,
        }),
        setup: vec![crate::tree::SetupStep { command: "make".into(), output: "ok".into(), ms: 3 }],
        plan: Some("p".into()),
        phase: Some("custom".into()),
        purpose: Some("fix".into()),
        task: Some(crate::TaskId::from_u128(5)),
        worker: Some(crate::WorkerId::from_u128(6)),
        parent: Some(session_id(2)),
        forked_from: Some(Fork { session: session_id(3), seq: 7 }),
        comparison: None,
        aliases: vec!["x".into()],
        anchors: vec!["a".into()],
        governance_level: Some("strict".into()),
        language: crate::session::Language { communication: Some("German".into()), documents: None },
        choice: chosen(),
        terminal: None,
        policy: Policy {
            depth_limit: 3,
            leaf: true,
            sandbox: SandboxRule::default(),
            memory: MemoryPolicy::of(MemoryMode::Selective),
        },
    };
    ChangeEvent::Created(Box::new(created)).into()
}

fn change_samples() -> Vec<Event> {
    let hands = |agent: &str| Hands {
        agent: Some(agent.into()),
        worker: Some(WorkerId::from_u128(1)),
        owner: "ann".into(),
    };
    vec![
        created(),
        ChangeEvent::Linked { parent: session_id(2), previous: Some(session_id(3)) }.into(),
        ChangeEvent::ChildLinked { child: session_id(4), agent: Some("executor".into()) }.into(),
        ChangeEvent::ChildUnlinked { child: session_id(4) }.into(),
        ChangeEvent::Migrated { from: hands("a"), to: hands("b"), reason: "r".into(), continuity: None }
            .into(),
        ChangeEvent::AliasAdded { alias: "y".into() }.into(),
        ChangeEvent::Driven { by: crate::session::DrivenBy::Host }.into(),
        ChangeEvent::Renamed { title: "t".into() }.into(),
        imported(),
        ChangeEvent::PlanJoined { plan: "p".into() }.into(),
        ChangeEvent::Seen { seq: 1 }.into(),
        TranscriptEvent::InFlight { calls: 2 }.into(),
        archived(),
        ChangeEvent::Unarchived {}.into(),
        ChangeEvent::Reset { reason: Some("r".into()) }.into(),
        ChangeEvent::Resumed { notify: false }.into(),
        ChangeEvent::Deleted { reason: Some("r".into()) }.into(),
        ChangeEvent::WentIdle { quiet_ms: HOUR }.into(),
        ChangeEvent::WentStale { quiet_ms: 48 * HOUR }.into(),
        ChangeEvent::Ended { how: Ending::Failed, reason: Some("r".into()) }.into(),
        ChangeEvent::ChoiceSet { choice: chosen() }.into(),
        ChangeEvent::MemorySet {
            policy: MemoryPolicy {
                mode: MemoryMode::Selective,
                session_memory: false,
                tags: tags(&["dev_test"]),
                allow: tags(&["api"]),
                unreadable: None,
            },
        }
        .into(),
    ]
}

fn chosen() -> AgentChoice {
    AgentChoice { model: Some("opus".into()), mode: Some("plan".into()), effort: Some("high".into()) }
}

fn offer_sample() -> AgentOffer {
    let items = vec![OfferItem {
        id: "yolo".into(),
        name: Some("Yolo".into()),
        about: Some("asks nothing".into()),
        unguarded: true,
    }];
    let menu = OfferMenu { items, default: Some("yolo".into()), open: true, option: Some("mode".into()) };
    let (about, hint) = (Some("reviews".into()), Some("[files]".into()));
    let commands = vec![OfferedCommand { name: "review".into(), about, hint }];
    AgentOffer { models: OfferMenu::default(), modes: menu, efforts: OfferMenu::default(), commands }
}

fn inbox_samples() -> Vec<Event> {
    let (turn, note) = (turn_id(1), Some(note_id(1)));
    vec![
        InboxEvent::Queued {
            turn,
            client_turn_id: Some("mine".into()),
            prompt: "go".into(),
            parts: Vec::new(),
            prompt_hash: "00".into(),
            delivery: Delivery::Steer,
            note,
            memory: Some(MemoryAsk { mode: Some(MemoryMode::Off), ..MemoryAsk::default() }),
            choice: chosen(),
            forced: true,
        }
        .into(),
        InboxEvent::Edited {
            turn,
            prompt: Some("stay".into()),
            prompt_hash: Some("01".into()),
            delivery: Some(Delivery::Queue),
            note,
        }
        .into(),
        InboxEvent::Withdrawn { turn, reason: Some("r".into()) }.into(),
        InboxEvent::Promoted { turn, to: Promotion::Steer, note }.into(),
        InboxEvent::Delivered { turn }.into(),
        InboxEvent::Steered { turn, into: turn_id(2), channel: "mcp".into() }.into(),
        InboxEvent::Reordered { turns: vec![turn_id(2), turn] }.into(),
        InboxEvent::Paused { reason: PauseReason::Asked }.into(),
        InboxEvent::Resumed {}.into(),
    ]
}

fn lost_turn() -> Event {
    let (cause, reason) = (InterruptCause::HostLost, Some("r".into()));
    let (turn, receipt) = (turn_id(1), receipt());
    TurnEvent::Interrupted { turn, cause, reason, uncertain: true, receipt, review: true }.into()
}

fn limit_sample() -> Event {
    TurnEvent::Waiting {
        turn: turn_id(1),
        limit: Limit {
            kind: LimitKind::Usage,
            text: "no more".into(),
            resets_at: Some(Timestamp::from_millis(START_MS)),
            account: Some("second".into()),
        },
        leg: turn_id(2),
        until: Some(Timestamp::from_millis(START_MS)),
        asks: Some(AskReason::TooLong),
        again: true,
    }
    .into()
}

fn started_sample() -> Event {
    TurnEvent::Started {
        turn: turn_id(1),
        client_turn_id: Some("mine".into()),
        prompt: "go".into(),
        parts: Vec::new(),
        prompt_hash: "00".into(),
        opening: Opening::Returned { after_ms: 5 },
        anchors: vec!["a".into()],
        governance: true,
        delivery: Delivery::Interrupt,
        queued: true,
        by: Some(ann()),
        memory: Some(MemoryPolicy::default()),
        choice: chosen(),
        forced: true,
    }
    .into()
}

fn work_samples() -> Vec<Event> {
    vec![
        started_sample(),
        TurnEvent::CancelRequested { turn: turn_id(1), reason: Some("r".into()), forced: true }.into(),
        limit_sample(),
        TurnEvent::Continued { turn: turn_id(1), leg: turn_id(2), asked: true }.into(),
        TurnEvent::Finished {
            turn: turn_id(1),
            outcome: TurnOutcome::Refused,
            reason: Some("not allowed to".into()),
            review: true,
        }
        .into(),
        lost_turn(),
        ContextEvent::AnchorsSet { anchors: vec!["a".into()] }.into(),
        compacted(9, 1),
        ContextEvent::Checkpoint { position: 1, reason: CheckpointReason::RiskyTool }.into(),
        ContextEvent::IssueSeen { hash: "h".into(), score: Some(0.1) }.into(),
        ContextEvent::ErrorSeen { hash: "h".into(), text: Some("no space left".into()) }.into(),
        ContextEvent::Stalled { kind: StallKind::Issue, hash: "h".into(), repeats: 3 }.into(),
        TranscriptEvent::Message { role: Role::User, text: "hi".into(), message_id: None, parts: Vec::new() }
            .into(),
        TranscriptEvent::Thought { text: "hm".into() }.into(),
        TranscriptEvent::ToolCalled {
            call: "c".into(),
            tool: "t".into(),
            arguments: json!({ "a": [1, null] }),
        }
        .into(),
        TranscriptEvent::ToolReturned { call: "c".into(), is_error: true, content: json!("no") }.into(),
        TranscriptEvent::UsageReported {
            input_tokens: 1,
            output_tokens: 2,
            context_tokens: Some(3),
            cost_micros: 4,
        }
        .into(),
        TranscriptEvent::Planned {
            entries: vec![
                PlanEntry { text: "find the fault".into(), status: PlanEntryState::Completed },
                PlanEntry { text: "mend it".into(), status: PlanEntryState::InProgress },
                PlanEntry { text: "run the tests".into(), status: PlanEntryState::Pending },
            ],
        }
        .into(),
        TranscriptEvent::FileChanged { path: "src/lib.rs".into(), added: Some(3), removed: Some(1) }.into(),
        TranscriptEvent::ToolRelayed {
            call: "7".into(),
            server: Some("ev".into()),
            tool: "echo".into(),
            channel: Channel::Hook,
            is_error: false,
            took_ms: 12,
            bytes: 340,
            uncertain: true,
        }
        .into(),
    ]
}

fn control_samples() -> Vec<Event> {
    let (from, to) = (StopLevel::Graceful, StopLevel::Immediate);
    vec![
        ControlEvent::StopRequested {
            level: StopLevel::Graceful,
            scope: StopScope::Subtree,
            reason: Some("r".into()),
            inherited: Some(session_id(2)),
        }
        .into(),
        ControlEvent::StopRaised { from, to, scope: Some(StopScope::Subtree), reason: Some("r".into()) }
            .into(),
        ControlEvent::StopApplied {
            level: StopLevel::Immediate,
            channel: Channel::Mcp,
            call: "7".into(),
            tool: "echo".into(),
            refused: true,
        }
        .into(),
        ControlEvent::StopComplied { how: Compliance::HandOff }.into(),
        ControlEvent::StopSettled {}.into(),
        ControlEvent::EndBlocked { why: "w".into() }.into(),
        ControlEvent::HandedOff { from: "a".into(), to: "b".into(), reason: "r".into() }.into(),
        ControlEvent::GuidanceReturned { notes: vec![note_id(1)] }.into(),
        ControlEvent::NoticeSent { to: Some(session_id(2)), note: Some(note_id(1)) }.into(),
        ControlEvent::Introduced { agent: "executor".into(), extension_session_id: Some("s-1".into()) }
            .into(),
        ControlEvent::StopWithdrawn { reason: Some("r".into()) }.into(),
        ControlEvent::GuidanceQueued {
            note: note_id(1),
            kind: NoteKind::Notice,
            text: "left".into(),
            warnings: vec!["cut".into()],
            about: Some(session_id(2)),
        }
        .into(),
        ControlEvent::GuidanceDelivered {
            notes: vec![note_id(1)],
            channel: "mcp".into(),
            call: Some("7".into()),
            by: Some("9f".into()),
            preview: Some("left".into()),
        }
        .into(),
        ControlEvent::GuidanceSettled { notes: vec![note_id(1)], how: Settled::Acknowledged }.into(),
        ControlEvent::CommandRefused { command: "stop".into(), code: "c".into(), state: StateName::Idle }
            .into(),
        ControlEvent::SignalUnexpected { signal: "said".into(), state: StateName::Idle }.into(),
    ]
}

fn run_samples() -> Vec<Event> {
    let (agent, driver) = ("executor".into(), "acp".into());
    let ready = RunReady { continuity: Some(Continuity::Native), history: Some(12), ..greeting(1) };
    let (how, reason) = (RunEnd::Signalled { signal: 9 }, Some("the session was terminated".into()));
    vec![
        RunEvent::Started {
            run: run_id(1),
            number: 1,
            agent,
            driver,
            mirrored: true,
            account: Some("second".into()),
            steers: false,
            sandbox: None,
        }
        .into(),
        RunEvent::Ready(Box::new(ready)).into(),
        RunEvent::Adopted { run: run_id(1) }.into(),
        RunEvent::Ended { run: run_id(1), how, reason, receipt: receipt() }.into(),
        RunEvent::Wanted { ways: vec![ResumeWay::Native, ResumeWay::Replay, ResumeWay::Preamble] }.into(),
        RunEvent::ToolsMissing { run: run_id(1), servers: vec!["lanyard".into()] }.into(),
        RunEvent::Activity { run: run_id(1), activity: TerminalActivity::Rang, watched: true }.into(),
        RunEvent::BoundMet {
            run: run_id(1),
            what: BoundedResource::Memory,
            limit: "512 MiB".into(),
            times: 2,
        }
        .into(),
        RunEvent::Offered(Box::new(offer_sample())).into(),
        RunEvent::InForce(chosen()).into(),
    ]
}

fn gate_samples() -> Vec<Event> {
    let gate = gate_id(1);
    let (name, commit) = ("stop-41".into(), "9fceb02d0ae598e95dc970b74767f19372d61af8".into());
    vec![
        GateEvent::Opened { gate, run: run_id(1), question: Box::new(question("7")) }.into(),
        GateEvent::Answered { gate, option: "no".into(), message: Some("not on main".into()) }.into(),
        GateEvent::Withdrawn { gate, why: "the turn ended".into() }.into(),
        ContextEvent::Snapshot {
            name,
            commit,
            position: Some(40),
            reason: SnapshotReason::Stop,
            files_changed: 2,
        }
        .into(),
        ContextEvent::SnapshotSkipped {
            code: "no_git".into(),
            why: "the workspace is no git repository".into(),
        }
        .into(),
        ContextEvent::RolledBack {
            from: "rollback-42".into(),
            to: "turn-12".into(),
            changed: 2,
            added: 1,
            removed: 0,
        }
        .into(),
        ContextEvent::BranchMerged { branch: "b".into(), commit: "0a".into(), into: "main".into() }.into(),
        ContextEvent::BranchDiscarded { branch: "b".into(), reference: "refs/x".into() }.into(),
    ]
}

fn type_of(event: &Event) -> String {
    json!(event)["type"].as_str().unwrap().to_owned()
}

fn enclosed(event: impl Into<Event>) -> Envelope {
    Envelope { event: event.into(), ..next(&given([])) }
}

/// The envelope that would come next.
fn next(given: &Given) -> Envelope {
    Envelope {
        seq: given.session.seq + 1,
        session: given.session.id,
        at: given.now,
        actor: Actor::system("runner"),
        cause: None,
        event: noted(9),
    }
}

fn apply(given: &Given, event: impl Into<Event>) -> Result<(), ApplyError> {
    given.session.clone().apply(&Envelope { event: event.into(), ..next(given) })
}

fn writer_samples() -> Vec<Event> {
    let until = Timestamp::from_millis(START_MS + 10_000);
    vec![
        WriterEvent::Granted { pen: pen(1), epoch: 1 }.into(),
        WriterEvent::Asked { pen: pen(2), until }.into(),
        WriterEvent::Denied { connection: pen(2).connection }.into(),
        WriterEvent::Released { epoch: 1, why: ReleaseReason::Released }.into(),
    ]
}

fn review_samples() -> Vec<Event> {
    let comment = comment_id(1);
    vec![
        ReviewEvent::Drafted(Box::new(draft_of(1, 3))).into(),
        ReviewEvent::Edited { comment, text: "x".into() }.into(),
        ReviewEvent::Removed { comment }.into(),
        ReviewEvent::Sent { turn: turn_id(1), comments: vec![comment] }.into(),
        ReviewEvent::Viewed { path: "a.rs".into(), hash: Some("0a".into()) }.into(),
    ]
}
