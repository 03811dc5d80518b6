//! Plans as people write them, odd ones too.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn check(text: &str, expect: &Expect) {
    expect.assert_eq(&shown(text));
}

/// The plan with each phase as one line, or what is wrong with the text and the line where.
fn shown(text: &str) -> String {
    let plan = match read(text) {
        Ok(plan) => plan,
        Err(error) => {
            let line = text.lines().nth(error.line - 1).unwrap_or_default();
            return format!("{error}: [{line:.40}]\n{}: {}\n", error.what.code(), error.what.advice());
        }
    };
    let mut shown = format!("{}\n", plan.title);
    for phase in plan.phases {
        let done = if phase.done { "x" } else { " " };
        let text = if phase.text.is_empty() { String::new() } else { format!(" {:?}", phase.text) };
        writeln!(shown, "[{done}] {}{text}", phase.title).unwrap();
    }
    shown
}

#[test]
fn phases_are_named_so_or_have_a_checklist() {
    check(
        "# The parser\n\nWhy.\n\n## Background\n\nIt is slow.\n\n## Phase 1: Lexer\n\nRead the grammar.\n\n- [x] a\n- [ ] b\n\n\
         ## Docs\n\n* [ ] write them\n\n## Notes\n- no box\n## phase two\n",
        &expect![[r#"
            The parser
            [ ] Phase 1: Lexer "Read the grammar.\n\n- [x] a\n- [ ] b"
            [ ] Docs "* [ ] write them"
            [ ] phase two
        "#]],
    );
}

#[test]
fn a_phase_is_done_when_it_or_all_of_its_items_are_ticked() {
    check(
        "# P\n## [x] Phase 1\n- [ ] open\n## Phase 2\n- [x] a\n1. [X] b\n## [ ] Phase 3\n- [x] a\n  + [ ] deeper\n\
         ## [X] Lexer\n## Phase 4\nnothing to tick\n## [ ] Phase 5\n- [x] all\n",
        &expect![[r#"
            P
            [x] Phase 1 "- [ ] open"
            [x] Phase 2 "- [x] a\n1. [X] b"
            [ ] Phase 3 "- [x] a\n  + [ ] deeper"
            [x] Lexer
            [ ] Phase 4 "nothing to tick"
            [x] Phase 5 "- [x] all"
        "#]],
    );
}

#[test]
fn what_stands_below_a_phase_belongs_to_it_headings_too() {
    check(
        "# P\n## Phase 1\n### Tasks\n- [ ] a\n#### Notes\nn\n### Phase of the moon?\n## After\ntext\n# Appendix\n- [ ] not a phase\n",
        &expect![[r####"
            P
            [ ] Phase 1 "### Tasks\n- [ ] a\n#### Notes\nn"
            [ ] Phase of the moon?
        "####]],
    );
    check(
        "# P\n## Phase 1\n### Tasks\n- [ ] a\n#### Notes\nn\n### Acceptance\n- [ ] b\n## After\ntext\n# Appendix\n- [ ] no\n",
        &expect![[r####"
            P
            [ ] Phase 1 "### Tasks\n- [ ] a\n#### Notes\nn\n### Acceptance\n- [ ] b"
        "####]],
    );
}

#[test]
fn a_group_is_no_phase_unless_it_has_a_checklist_of_its_own() {
    check(
        "# P\n## Implementation\nwords\n### Phase 1\n- [ ] a\n### Phase 2\n### Cleaning\n- [x] b\n### Remarks\n## Next\n- [ ] d\n### Phase 3\n",
        &expect![[r#"
            P
            [ ] Phase 1 "- [ ] a"
            [ ] Phase 2
            [x] Cleaning "- [x] b"
            [ ] Next "- [ ] d"
            [ ] Phase 3
        "#]],
    );
}

#[test]
fn a_title_is_found_wherever_it_is() {
    check(
        "## Overview\ntext\n## Phase 1\n",
        &expect![[r"
        Overview
        [ ] Phase 1
    "]],
    );
    check(
        "## Phase 1\n## Phase 2\n",
        &expect![[r"
        Plan
        [ ] Phase 1
        [ ] Phase 2
    "]],
    );
    check(
        "## Phase 1\n# Late\n",
        &expect![[r"
        Late
        [ ] Phase 1
    "]],
    );
    check(
        "# [ ] Boxed #\n",
        &expect![[r"
        Boxed
    "]],
    );
    check(
        "#\n#NoHeading\n##### Deep\n",
        &expect![[r"
        Deep
    "]],
    );
    check(
        "Only words, and a list:\n- [ ] a\n",
        &expect![[r"
        Plan
    "]],
    );
}

#[test]
fn words_that_only_look_like_it_are_no_phases() {
    check(
        "# P\n## Phases\n## Phased rollout\n##Phase 1\n    ## Phase 2\n#### Phase 3\n- [ ] a\n## Phase3\n## Phasé\n   ## Phase 4 ##\n\
         ## C#\n- [ ] b\n## Über\n- [] no box\n- [y] nor this\n> - [ ] nor quoted\n",
        &expect![[r###"
            P
            [ ] Phased rollout "##Phase 1\n    ## Phase 2\n#### Phase 3\n- [ ] a"
            [ ] Phase3
            [ ] Phase 4
            [ ] C# "- [ ] b"
        "###]],
    );
}

#[test]
fn code_comments_and_settings_at_the_top_are_only_text() {
    check(
        "---\n# setting\ntitle: x\n---\n# P\n## Phase 1\n```md\n## Phase 2\n- [ ] no\n```\n~~~~\n~~~\n## Phase 3\n~~~~\n- [x] yes\n\
         <!-- ## Phase 4 -->\n<!--\n## Phase 5\n- [ ] x\n-->\n## Phase 6\n",
        &expect![[r#"
            P
            [x] Phase 1 "```md\n## Phase 2\n- [ ] no\n```\n~~~~\n~~~\n## Phase 3\n~~~~\n- [x] yes\n<!-- ## Phase 4 -->\n<!--\n## Phase 5\n- [ ] x\n-->"
            [ ] Phase 6
        "#]],
    );
    // A rule is no setting.
    check(
        "---\n# P\n## Phase 1\n",
        &expect![[r"
        P
        [ ] Phase 1
    "]],
    );
}

#[test]
fn lines_may_end_and_begin_as_they_like() {
    check(
        "\u{feff}# P\r\n\r\n##\tPhase 1\r\n\r\n\t- [x]\ta\r\n\r\n\r\n## Phase 2",
        &expect![[r#"
            P
            [x] Phase 1 "\t- [x]\ta"
            [ ] Phase 2
        "#]],
    );
}

#[test]
fn each_fault_says_where_it_is_and_what_to_do() {
    check(
        "",
        &expect![[r"
            line 1: the plan is empty: []
            plan_empty: write a line `# Title`, and a heading `## Phase 1: Title` with a checklist below it for each phase
        "]],
    );
    check(
        " \n\u{a0}\n",
        &expect![[r"
            line 1: the plan is empty: [ ]
            plan_empty: write a line `# Title`, and a heading `## Phase 1: Title` with a checklist below it for each phase
        "]],
    );
    check(
        &"x".repeat(BYTES_MAX + 1),
        &expect![[r"
            line 1: the plan is longer than 1048576 bytes: [xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx]
            plan_too_large: make several plans of it
        "]],
    );
    check(
        "# P\n## Phase 1\n```\ncode\n## Phase 2\n",
        &expect![[r"
            line 3: a code block begins here and does not end: [```]
            plan_open_block: end it with a line of the same marks
        "]],
    );
    check(
        "# P\n\n<!-- later\n## Phase 2\n",
        &expect![[r"
            line 3: a comment begins here and does not end: [<!-- later]
            plan_open_comment: end it with `-->`
        "]],
    );
    check(
        "# P\n## [ ]\n- [ ] a\n",
        &expect![[r"
            line 2: the heading of a phase says nothing: [## [ ]]
            plan_phase_without_title: write `## Phase 1: Title`, or move its checklist to the phase it belongs to
        "]],
    );
    check(
        &format!("# P\n## Phase {}\n", "x".repeat(TITLE_CHARS_MAX)),
        &expect![[r"
            line 2: the heading is longer than 300 characters: [## Phase xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx]
            plan_title_too_long: say it shorter, and put the rest below the heading
        "]],
    );
    check(
        &format!("\n# {}\n", "x".repeat(TITLE_CHARS_MAX + 1)),
        &expect![[r"
            line 2: the heading is longer than 300 characters: [# xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx]
            plan_title_too_long: say it shorter, and put the rest below the heading
        "]],
    );
    check(
        &format!("# P\n## Phase 1\n{}\n", "x".repeat(PHASE_CHARS_MAX + 1)),
        &expect![[r"
            line 2: the text of the phase is longer than 100000 characters: [## Phase 1]
            plan_phase_too_long: make several phases of it, or put what is long into a file and name that
        "]],
    );
}

#[test]
fn there_are_only_so_many_phases() {
    check(
        &"## Phase\n".repeat(PHASES_MAX + 1),
        &expect![[r"
            line 201: there are more than 200 phases: [## Phase]
            plan_too_many_phases: make several plans of it
        "]],
    );
    assert_eq!(read(&"## Phase\n".repeat(PHASES_MAX)).unwrap().phases.len(), PHASES_MAX);
}

/// Pieces of plans, whole and broken.
fn piece() -> impl Strategy<Value = String> {
    let known = vec![
        "# P", "## ", "### ", "#### ", "Phase 1", "phase", "[ ] ", "[x]", "- [ ] a", "* [x] b", "1. [ ] c",
        "\n", "\n\n", "\r\n", "```", "~~~~", "<!--", "-->", "---", "\t", "    ", "> ", "\u{feff}", "é",
        "words",
    ];
    prop_oneof![4 => proptest::sample::select(known).prop_map(str::to_owned), 1 => any::<String>()]
}

proptest! {
    /// No text breaks it, and it makes nothing up: what it says of phases stands in the text, in this order.
    #[test]
    fn what_is_read_stands_in_the_text(pieces in proptest::collection::vec(piece(), 0..60)) {
        let text = pieces.concat();
        let Ok(plan) = read(&text) else { return Ok(()) };
        let plain = text.replace("\r\n", "\n");
        prop_assert!(plan.title == "Plan" || plain.contains(&plan.title));
        let mut rest = plain.as_str();
        for phase in &plan.phases {
            prop_assert!(!phase.title.is_empty());
            for part in [&phase.title, &phase.text] {
                let found = rest.find(part.as_str());
                prop_assert!(found.is_some(), "{part:?} does not stand in {rest:?}");
                rest = &rest[found.unwrap() + part.len()..];
            }
        }
        // With other ends of lines and a mark at the front it is the same plan.
        let other = format!("\u{feff}{}", plain.replace('\n', "\r\n"));
        prop_assert_eq!(read(&other), Ok(plan));
    }
}
