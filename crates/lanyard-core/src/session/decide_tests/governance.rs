//! What a session's agent is held to, and what it did first (S1-01, S1-02).

use super::*;
use crate::actor::{Actor, ActorKind};
use crate::session::testing::{ann, begins, ends};
use crate::session::{ControlEvent, FirstTool, Language};

/// FND-M9, S1-02: level and languages are the maker's, else the parent's.
#[test]
fn fnd_m9_level_and_languages_come_from_the_maker_or_the_parent() {
    let language = |spoken: Option<&str>, written: Option<&str>| Language {
        communication: spoken.map(str::to_owned),
        documents: written.map(str::to_owned),
    };
    let parent = born(&NewSession {
        governance_level: Some("strict".to_owned()),
        language: language(Some("German"), Some("English")),
        ..NewSession::default()
    });
    let limits = crate::policy::Limits::default();
    let lineage = crate::session::Lineage::default();
    let made = |new: &NewSession| {
        let event = crate::session::create(new, "ann", Some((&parent.session, &lineage)), &limits).unwrap();
        let ChangeEvent::Created(created) = event else { panic!("{event:?}") };
        (created.governance_level, created.language)
    };
    let own = NewSession { language: language(Some("French"), None), ..NewSession::default() };
    assert_eq!(made(&own), (Some("strict".to_owned()), language(Some("French"), Some("English"))));
    assert_eq!(
        parent.session.governance.sentences().unwrap(),
        "Governance level: strict. Write to people in German. Write documents in English."
    );
    let bad = NewSession { language: language(Some("a\nb"), None), ..NewSession::default() };
    let refused = crate::session::create(&bad, "ann", None, &limits).unwrap_err();
    assert_eq!(refused.code(), "field_bad_text");
}

/// FND-M9, S1-01: the first tool stays the first.
#[test]
fn fnd_m9_the_first_tool_is_kept() {
    let given = given([started(1)]).after(tool_called("1", "grep")).after(tool_called("2", "bash"));
    let first = given.session.first_tool.clone().unwrap();
    assert_eq!(first, FirstTool { name: "grep".to_owned(), at: first.at });
    assert_eq!(given.session.last_tool_call.as_ref().unwrap().tool, "bash");
    assert!(first.at < given.session.last_tool_call.unwrap().at);
}

/// FND-M9, S1-01: refused calls under a stop and refused commands of the agent count, those of people do not.
#[test]
fn fnd_m9_violations_of_the_agent_are_counted() {
    let refused = || ControlEvent::CommandRefused {
        command: "create".to_owned(),
        code: "leaf_cannot_delegate".to_owned(),
        state: StateName::Beginning,
    };
    let mut governance = given([]).session.governance;
    governance.saw(&refused(), &ann());
    assert_eq!(governance.violations, 0);
    governance.saw(&refused(), &Actor { kind: ActorKind::Agent, name: "a".to_owned() });
    assert_eq!(governance.violations, 1);
    let stopped =
        given([started(1)]).after(begins(0)).after(ends(0)).after(stop()).after(begins(1)).after(ends(1));
    assert_eq!(stopped.session.governance.violations, 0, "level 1 is told with the answer");
    let stopped = stopped.after(begins(2));
    assert_eq!(stopped.session.governance.violations, 1, "level 2 refuses the call");
}

/// FND-M4, S0-12: a session joins the plan its agent made, once; one that was made for a plan stays with it.
#[test]
fn fnd_m4_a_session_joins_a_plan() {
    let joins = |plan: &str| Input::from(Signal::PlanJoined { plan: plan.to_owned() });
    let free = given([]).after(joins("p1"));
    assert_eq!(free.session.plan.as_deref(), Some("p1"));
    let seq = free.session.seq;
    let free = free.after(joins("p1"));
    assert_eq!(free.session.seq, seq, "said again it says nothing");
    assert_eq!(free.after(joins("p2")).session.plan.as_deref(), Some("p2"));
    let made_for = born(&NewSession { plan: Some("mine".to_owned()), ..NewSession::default() });
    assert_eq!(made_for.after(joins("p1")).session.plan.as_deref(), Some("mine"));
}
