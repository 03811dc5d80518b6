//! Reports of flows that went well, badly, and on.

use expect_test::expect;

use super::*;
use crate::actor::Actor;
use crate::flow::decide::FlowCommand;
use crate::flow::event::FailKind;
use crate::flow::testing::{
    Given, broken, complete, failed, needs_human, not_ready, phases, phases_with, ready, review, session_id,
    verdict, well,
};
use crate::flow::verdict::{Action, Verdict};
use crate::tree::{Captured, Tree};

fn told(given: &Given) -> FlowStory {
    let report = report(&given.flow, &given.log);
    // For programs: what is written is read back.
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<FlowStory>(&text).unwrap(), report);
    report
}

/// With short ids.
fn shown(given: &Given) -> String {
    let mut text = markdown(&told(given));
    for number in 0..20 {
        text = text.replace(&session_id(number).to_string(), &format!("session#{number}"));
    }
    text.replace(&given.flow.id.to_string(), "flow#1")
}

fn in_a_tree(mut given: Given) -> Given {
    let tree = Tree {
        path: "/w/tree".to_owned(),
        branch: "lanyard/flow".to_owned(),
        base: "0123456789abcdef".to_owned(),
        repository: "/w".to_owned(),
        removed: false,
    };
    given.add(FlowEvent::TreeMade { tree });
    given
}

/// A phase with everything in it, and one that was let pass.
fn eventful() -> Given {
    let given = in_a_tree(phases()).works(failed(FailKind::Transient)).works(needs_human());
    let given = given.answered(Choice::ContinueSession, Some("use the\n`other` one")).works(complete());
    let given = given.checked(&broken("e")).at_review();
    let given =
        given.works(verdict(Readiness::NotReady, &["Say | why"], Some(40))).at_review().works(ready());
    let given = given.answered(Choice::Approve, None).works(failed(FailKind::Timeout));
    let mut given = given.answered(Choice::Approve, None);
    let captured = Captured { commit: "fedcba9876543210".into(), files: vec!["a".into()], files_changed: 1 };
    given.add(FlowEvent::Settled { captured: Some(captured), tree_removed: true, failed: None });
    given
}

#[test]
fn a_flow_with_everything_in_it() {
    expect![[r#"
        # A plan

        - Flow `flow#1` is **completed**
        - Plan: `/w/PLAN.md`
        - Folder: `/w`
        - Branch: `lanyard/flow`, from `0123456789ab`
        - What was left uncommitted is in `fedcba987654`
        - Begun 2026-11-15T08:00:00.000Z, ended 2026-11-15T08:00:47.000Z, 47 s in 14 steps
        - Tokens: 800 in, 80 out
        - Agents worked 8 s

        ## Phases

        | # | Phase | State | Commit | Steps | Reviews | Approvals |
        | --- | --- | --- | --- | --- | --- | --- |
        | 1 | Lexer | complete | `abcd1234` | 12 | 2 | 2 |
        | 2 | Parser | overridden |  | 2 | 0 | 1 |

        ## 1. Lexer

        The author was sent back by checks once.

        A lost turn was continued once.

        ### Checks

        | Step | Check | Result | Time |
        | --- | --- | --- | --- |
        | 5 | test | failed | 5 ms |
        | 7 | test | passed | 5 ms |
        | 10 | test | passed | 5 ms |

        ### Reviews

        | Step | Verdict | Score | Items | Summary |
        | --- | --- | --- | --- | --- |
        | 8 | not_ready | 40 | 1 | summary |
        | 11 | ready |  | 0 | summary |

        Asked for in step 8:

        - P1 `i0`: Say \| why (auto_fix)

        ### Approvals

        | Step | Why | Reason | Answer | By | Waited |
        | --- | --- | --- | --- | --- | --- |
        | 3 | needs_human | The author needs a person: which one? | continue_session | ann | 1 s |
        | 12 | phase | "Lexer" was found ready. | approve | ann | 1 s |

        Said in step 3: use the `other` one

        ## 2. Parser

        ### Approvals

        | Step | Why | Reason | Answer | By | Waited |
        | --- | --- | --- | --- | --- | --- |
        | 14 | timeout | The author took too long: it broke | approve | ann | 1 s |

        ## Sessions

        | Step | Session | Role | State | How | Result | Time |
        | --- | --- | --- | --- | --- | --- | --- |
        | 1 | `session#1` | author | execute | new | transient | 1 s |
        | 2 | `session#1` | author | execute | continued | needs_human | 1 s |
        | 4 | `session#1` | author | execute | continued | complete | 1 s |
        | 6 | `session#2` | author | quality_retry | new | complete | 1 s |
        | 8 | `session#3` | reviewer | review | new | not_ready | 1 s |
        | 9 | `session#4` | author | auto_fix | new | complete | 1 s |
        | 11 | `session#5` | reviewer | review | new | ready | 1 s |
        | 13 | `session#6` | author | execute | new | timeout | 1 s |
    "#]]
    .assert_eq(&shown(&eventful()));
}

#[test]
fn what_it_says_is_what_happened() {
    let report = told(&eventful());
    assert_eq!((report.state, report.steps), (FlowState::Completed, 14));
    assert_eq!(report.phases.iter().map(|phase| phase.steps).sum::<u32>(), report.steps);
    let first = &report.phases[0];
    assert_eq!((first.auto_retries, first.quality_retries), (1, 1));
    assert_eq!((first.reviews.len(), first.checks.len(), first.gates.len()), (2, 3, 2));
    assert_eq!(first.commit.as_deref(), Some("abcd1234"));
    let gate = &first.gates[0];
    assert_eq!(
        (gate.code.as_str(), gate.choice, gate.by.as_deref()),
        ("needs_human", Some(Choice::ContinueSession), Some("ann"))
    );
    assert_eq!(gate.guidance.as_deref(), Some("use the\n`other` one"));
    assert_eq!(gate.waited_ms, 1_000);
    let results: Vec<&str> =
        report.sessions.iter().map(|session| session.result.as_deref().unwrap()).collect();
    assert_eq!(
        results,
        ["transient", "needs_human", "complete", "complete", "not_ready", "complete", "ready", "timeout"]
    );
    let continued: Vec<bool> = report.sessions.iter().map(|session| session.continued).collect();
    assert_eq!(continued, [false, true, true, false, false, false, false, false]);
    assert_eq!(report.spent.input_tokens, 800);
    assert_eq!(report.elapsed_ms, report.ended_at.unwrap().millis_since(report.begun_at));
}

#[test]
fn a_flow_that_waits() {
    let given = phases().works(needs_human());
    let gate = &told(&given).phases[0].gates[0];
    assert_eq!((gate.choice, gate.waited_ms), (None, 0));
    expect![[r"
        # A plan

        - Flow `flow#1` is **escalate**: The author needs a person: which one?
        - Plan: `/w/PLAN.md`
        - Folder: `/w`
        - Begun 2026-11-15T08:00:00.000Z, 4 s in 2 steps
        - Tokens: 100 in, 10 out
        - Agents worked 1 s

        ## Phases

        | # | Phase | State | Commit | Steps | Reviews | Approvals |
        | --- | --- | --- | --- | --- | --- | --- |
        | 1 | Lexer | active |  | 2 | 0 | 1 |
        | 2 | Parser | open |  | 0 | 0 | 0 |

        ## 1. Lexer

        ### Approvals

        | Step | Why | Reason | Answer | By | Waited |
        | --- | --- | --- | --- | --- | --- |
        | 2 | needs_human | The author needs a person: which one? | none |  | 0 ms |

        ## Sessions

        | Step | Session | Role | State | How | Result | Time |
        | --- | --- | --- | --- | --- | --- | --- |
        | 1 | `session#1` | author | execute | new | needs_human | 1 s |
    "]]
    .assert_eq(&shown(&given));
}

#[test]
fn a_flow_that_was_aborted_and_goes_on_has_not_ended() {
    let given = phases().invoked().after(&FlowCommand::Cancel { reason: None });
    let report = told(&given);
    assert!(report.ended_at.is_some());
    assert_eq!(
        (report.reason.as_deref(), report.sessions[0].result.as_deref()),
        (Some("cancelled by ann"), None)
    );
    assert_eq!(told(&given.after(&FlowCommand::Resume)).ended_at, None);
}

#[test]
fn the_review_of_a_plan() {
    let given = review().works(not_ready("No tests")).works(complete());
    assert_eq!(told(&given).phases[0].state, PhaseState::Active);
    let passed = given.clone().works(ready());
    assert_eq!(told(&passed).phases[0].state, PhaseState::Complete);
    let given = given.works(verdict(Readiness::NotReady, &[], None)).answered(Choice::Approve, None);
    assert_eq!(told(&given).phases[0].state, PhaseState::Overridden);
    expect![[r"
        # A plan

        - Review `flow#1` is **approved**: approved by ann
        - Plan: `/w/PLAN.md`
        - Folder: `/w`
        - Begun 2026-11-15T08:00:00.000Z, ended 2026-11-15T08:00:12.000Z, 12 s in 4 steps
        - Tokens: 300 in, 30 out
        - Agents worked 3 s

        ## The review

        ### Reviews

        | Step | Verdict | Score | Items | Summary |
        | --- | --- | --- | --- | --- |
        | 1 | not_ready |  | 1 | summary |
        | 3 | not_ready |  | 0 | summary |

        Asked for in step 1:

        - P1 `i0`: No tests (auto_fix)

        ### Approvals

        | Step | Why | Reason | Answer | By | Waited |
        | --- | --- | --- | --- | --- | --- |
        | 4 | review_without_items | The reviewer says it is not ready and does not say why. | approve | ann | 1 s |

        ## Sessions

        | Step | Session | Role | State | How | Result | Time |
        | --- | --- | --- | --- | --- | --- | --- |
        | 1 | `session#1` | reviewer | review | new | not_ready | 1 s |
        | 2 | `session#2` | author | auto_fix | new | complete | 1 s |
        | 3 | `session#3` | reviewer | review | new | not_ready | 1 s |
    "]].assert_eq(&shown(&given));
}

/// What others write cannot make a table, a heading, a link or a tag of its own.
#[test]
fn words_of_others_stay_words() {
    let nasty = "a | b\n| --- |\n## c <b>x</b> [l](u) *s* `k` \\ \u{7}";
    let mut given = phases_with(|settings| settings.quality.clear()).at_review();
    given.invoke();
    let one = Item {
        reason: Some(nasty.into()),
        ..crate::flow::testing::item(nasty, nasty, Action::HumanRequired)
    };
    let verdict = Verdict {
        readiness: Readiness::NotReady,
        items: vec![one],
        score: None,
        summary: Some(nasty.into()),
    };
    given.conclude(Conclusion::Verdict(verdict), well());
    let mut given = given.answered(Choice::Continue, Some(nasty)).invoked();
    given.flow.title = nasty.to_owned();
    given.flow.phases[0].title = nasty.to_owned();
    let long = "x".repeat(1_000);
    let command = FlowCommand::Cancel { reason: Some(format!("{nasty} {long}")) };
    given.put_as(&command, &Actor::operator(nasty)).unwrap();
    let text = markdown(&told(&given));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.iter().filter(|line| line.starts_with('#')).count(), 6, "{text}");
    for line in lines.iter().filter(|line| line.starts_with('|')) {
        let bars = line.replace("\\|", "").matches('|').count();
        assert!((6..=8).contains(&bars), "{line}");
        assert!(line.chars().count() < 500, "{line}");
    }
    assert!(!text.contains("<b>") && !text.contains("[l]") && !text.contains('\u{7}'), "{text}");
}
