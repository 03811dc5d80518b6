//! Checkpoints: places in the log to come back to.

use super::*;

/// S1-22, S1-B06: a checkpoint names a position in the journal.
#[test]
fn a_checkpoint_can_be_asked_for() {
    check(
        given([noted(1), noted(2)]),
        checkpoint(),
        expect![[r#"
            context.checkpoint position=3 reason=asked
            beginning
        "#]],
    );
}

#[test]
fn a_checkpoint_can_be_asked_for_in_mid_turn() {
    check(
        in_state(StateName::Executing),
        checkpoint(),
        expect![[r#"
            context.checkpoint position=2 reason=asked
            executing
        "#]],
    );
}

#[test]
fn an_ended_session_has_nothing_left_to_check() {
    check(
        in_state(StateName::Completed),
        checkpoint(),
        expect![[r#"
            refused session_ended: the session has ended as completed; fork it with `lanyard fork` to go on from its log
            command.refused code=session_ended command=checkpoint state=completed
            completed
        "#]],
    );
}

/// S1-23: a place to come back to before a tool that can change a lot.
#[test]
fn a_risky_tool_is_preceded_by_a_checkpoint() {
    check(
        in_state(StateName::Executing),
        tool_called("c1", "bash"),
        expect![[r#"
            context.checkpoint position=2 reason=risky_tool
            tool.called call=c1 tool=bash
            executing
        "#]],
    );
}

#[test]
fn a_harmless_tool_is_not() {
    check(
        in_state(StateName::Executing),
        tool_called("c1", "read_file"),
        expect![[r#"
            tool.called call=c1 tool=read_file
            executing
        "#]],
    );
}

/// S0-O5, S1-23: whatever a harness calls its tools.
#[test]
fn risky_tools_are_known_by_their_names() {
    let makes_checkpoint =
        |tool: &str| in_state(StateName::Executing).put(&tool_called("c", tool)).events.len() == 2;
    let risky = [
        "Bash",
        "mcp__shell__run",
        "exec",
        "fs.writeFile",
        "MultiEdit",
        "apply_patch",
        "file-delete",
        "terminal",
    ];
    for tool in risky {
        assert!(makes_checkpoint(tool), "{tool}");
    }
    for tool in ["read", "grep", "memory_plan", "web.search", "", "ls"] {
        assert!(!makes_checkpoint(tool), "{tool}");
    }
}

/// S1-19, S1-22, S1-B06: turn ends, interruptions, risky tools and compactions each leave a place to come back to.
#[test]
fn the_record_lists_the_places_to_come_back_to() {
    let given = given([]).after_each([
        start_turn(1),
        tool_called("c", "bash"),
        turn_finished(),
        context_compacted(9, 1, &[]),
        start_turn(2),
        work_ended(),
        checkpoint(),
    ]);
    let places: Vec<String> = given
        .session
        .checkpoints
        .iter()
        .map(|place| format!("{:?} at {}", place.reason, place.position))
        .collect();
    expect![[r#"
        RiskyTool at 2
        TurnEnd at 4
        Compaction at 6
        Interruption at 8
        Asked at 10"#]]
    .assert_eq(&places.join("\n"));
}
