//! Creating sessions: defaults, limits and what a child inherits.

use super::*;

/// S0-09, S1-03: as plain as can be.
#[test]
fn a_session_begins() {
    check_made(
        make(&NewSession::default()),
        expect![[r#"
            session.created driven_by=nobody owner=ann policy={depth_limit=3 leaf=false memory_mode=session_only} source=api state=beginning
        "#]],
    );
}

/// S1-24: made with a purpose, it is custom, and so is its phase.
#[test]
fn a_purpose_makes_a_session_custom() {
    check_made(
        make(&NewSession { purpose: Some("try it".into()), ..NewSession::default() }),
        expect![[r#"
            session.created driven_by=nobody owner=ann phase=custom policy={depth_limit=3 leaf=false memory_mode=session_only} purpose="try it" source=api state=custom
        "#]],
    );
}

#[test]
fn a_phase_makes_a_session_custom() {
    check_made(
        make(&NewSession { phase: Some("review".into()), ..NewSession::default() }),
        expect![[r#"
            session.created driven_by=nobody owner=ann phase=review policy={depth_limit=3 leaf=false memory_mode=session_only} source=api state=custom
        "#]],
    );
}

#[test]
fn a_parent_makes_a_session_custom() {
    check_made(
        make_under(&given([]).session, &NewSession::default()),
        expect![[r#"
            session.created driven_by=nobody owner=ann parent=sess#1 phase=custom policy={depth_limit=3 leaf=false memory_mode=session_only} source=api state=custom
        "#]],
    );
}

#[test]
fn everything_that_is_asked_for_is_kept() {
    let new = NewSession {
        title: Some("Fix the test".into()),
        agent: Some("executor".into()),
        owner: Some("bob".into()),
        source: Some("telegram".into()),
        workspace: Some("/src/app".into()),
        worktree: None,
        tree: None,
        comparison: None,
        setup: Vec::new(),
        plan: Some("plan-1".into()),
        phase: Some("execute".into()),
        purpose: Some("fix".into()),
        parent: None,
        aliases: texts(&["chat::7", "b", "chat::7"]),
        anchors: texts(&["never push"]),
        governance_level: Some("strict".into()),
        language: crate::session::Language { communication: Some("German".into()), documents: None },
        memory_mode: Some(MemoryMode::Full),
        memory: None,
        sandbox: Some(crate::session::SandboxLevel::Strict),
        network: Some(crate::session::NetworkReach::Gateway),
        bounds: Some(crate::session::ResourceBounds {
            memory_mib: Some(512),
            ..crate::session::ResourceBounds::default()
        }),
        choice: crate::session::AgentChoice { mode: Some("plan".into()), ..Default::default() },
        leaf: true,
        depth_limit: Some(2),
        task: Some((crate::TaskId::from_u128(5), crate::WorkerId::from_u128(6))),
        observed: false,
        driven_by: None,
        native: Some("native-1".into()),
        terminal: None,
    };
    check_made(
        make(&new),
        expect![[r#"
            session.created agent=executor aliases=[chat::7, b] anchors=["never push"] choice={mode=plan} driven_by=lanyard governance_level=strict language={communication=German} native=native-1 owner=bob phase=execute plan=plan-1 policy={depth_limit=2 leaf=true memory_mode=full sandbox={bounds={memory_mib=512} level=strict network=gateway}} purpose=fix source=telegram state=custom task=task_00000000000000000000000005 title="Fix the test" worker=worker#6 workspace=/src/app
        "#]],
    );
}

/// S1-30: a leaf delegates nothing; a subagent its agent has all the same is shown below it, as deep as a family goes.
#[test]
fn the_own_subagent_of_a_leaf_is_shown() {
    let mut parent = given([]).session;
    parent.policy.leaf = true;
    let child = |observed| make_under(&parent, &NewSession { observed, ..NewSession::default() });
    assert_eq!(child(false).unwrap_err().code(), "leaf_cannot_delegate");
    child(true).unwrap();
    let limits = Limits::default();
    let deep = Lineage { ancestors: vec![parent.id; limits.depth as usize] };
    let new = NewSession { observed: true, ..NewSession::default() };
    let refused = create(&new, "ann", Some((&parent, &deep)), &limits).unwrap_err();
    assert_eq!(refused.code(), "depth_exceeded");
}

/// S0-01: a child works where its parent works unless told otherwise.
#[test]
fn workspace_and_plan_come_from_the_parent() {
    let parent =
        born(&NewSession { workspace: Some("/a".into()), plan: Some("p".into()), ..NewSession::default() });
    check_made(
        make_under(&parent.session, &NewSession::default()),
        expect![[r#"
            session.created driven_by=nobody owner=ann parent=sess#1 phase=custom plan=p policy={depth_limit=3 leaf=false memory_mode=session_only} source=api state=custom workspace=/a
        "#]],
    );
    let elsewhere = NewSession { workspace: Some("/b".into()), ..NewSession::default() };
    check_made(
        make_under(&parent.session, &elsewhere),
        expect![[r#"
            session.created driven_by=nobody owner=ann parent=sess#1 phase=custom plan=p policy={depth_limit=3 leaf=false memory_mode=session_only} source=api state=custom workspace=/b
        "#]],
    );
}

/// DESIGN: policy is inherited and never widened by a child.
#[test]
fn a_child_remembers_no_more_than_its_parent() {
    for inherited in MemoryMode::ALL {
        let parent = born(&NewSession { memory_mode: Some(inherited), ..NewSession::default() });
        let mode = |wanted| {
            let new = NewSession { memory_mode: wanted, ..NewSession::default() };
            created_as(&make_under(&parent.session, &new).unwrap()).policy.memory.mode
        };
        assert_eq!(mode(None), inherited);
        for (rank, wanted) in MemoryMode::ALL.into_iter().enumerate() {
            let limit = MemoryMode::ALL.iter().position(|&mode| mode == inherited).unwrap();
            assert_eq!(mode(Some(wanted)), MemoryMode::ALL[rank.min(limit)]);
        }
    }
}

#[test]
fn a_root_remembers_its_own_session_unless_told_otherwise() {
    assert_eq!(born(&NewSession::default()).session.policy.memory.mode, MemoryMode::SessionOnly);
}

/// DESIGN: a limit can be tightened on the way down, never widened.
#[test]
fn a_depth_limit_is_only_ever_tightened() {
    let limits = Limits { depth: 5, ..Limits::default() };
    let limit = |parent: Option<&Session>, depth_limit| {
        let new = NewSession { depth_limit, ..NewSession::default() };
        let lineage = Lineage::default();
        let made = create(&new, "ann", parent.map(|parent| (parent, &lineage)), &limits).unwrap();
        created_as(&made.into()).policy.depth_limit
    };
    assert_eq!(
        [limit(None, None), limit(None, Some(2)), limit(None, Some(9)), limit(None, Some(0))],
        [5, 2, 5, 1]
    );
    let parent = born(&NewSession { depth_limit: Some(2), ..NewSession::default() }).session;
    let under = |depth_limit| limit(Some(&parent), depth_limit);
    assert_eq!([under(None), under(Some(1)), under(Some(9))], [2, 1, 2]);
}

#[test]
fn a_depth_limit_of_nothing_still_allows_a_root() {
    let limits = Limits { depth: 0, ..Limits::default() };
    let made = create(&NewSession::default(), "ann", None, &limits).unwrap();
    assert_eq!(created_as(&made.into()).policy.depth_limit, 1);
}

/// S1-28, S1-31, S1-B02, S1-B04: level and depth come from the chain, whatever the agents are called.
#[test]
fn depth_and_level_are_derived_from_the_chain_of_parents() {
    let seen: Vec<_> = (0..5).map(|ancestors| (chain(ancestors).depth(), chain(ancestors).level())).collect();
    assert_eq!(seen, [(1, 1), (2, 2), (3, 3), (4, 3), (5, 3)]);
}

/// S1-34: which session started all this.
#[test]
fn the_root_is_the_farthest_ancestor() {
    assert_eq!(chain(0).root(), None);
    assert_eq!(chain(3).root(), Some(session_id(102)));
}

/// S1-30, S1-32, X-07, S1-B04: depth 3 is the last, and the refusal says so and halts nothing.
#[test]
fn a_family_is_three_deep() {
    let parent = given([]).session;
    let under = |ancestors| {
        create(&NewSession::default(), "ann", Some((&parent, &chain(ancestors))), &Limits::default())
    };
    assert!(under(0).is_ok());
    assert!(under(1).is_ok());
    check_made(
        under(2).map(Event::from),
        expect![[r#"
            refused depth_exceeded: the family would be 4 deep and the limit is 3; delegate from a session higher up, or raise `limits.depth`
        "#]],
    );
}

/// X-07: a policy per family.
#[test]
fn a_family_is_as_deep_as_its_policy_says() {
    let parent = born(&NewSession { depth_limit: Some(1), ..NewSession::default() }).session;
    check_made(
        make_under(&parent, &NewSession::default()),
        expect![[r#"
            refused depth_exceeded: the family would be 2 deep and the limit is 1; delegate from a session higher up, or raise `limits.depth`
        "#]],
    );
}

/// S1-28, S1-30.
#[test]
fn a_leaf_does_not_delegate() {
    let leaf = born(&NewSession { leaf: true, ..NewSession::default() }).session;
    check_made(
        make_under(&leaf, &NewSession::default()),
        expect![[r#"
            refused leaf_cannot_delegate: parent sess#1 is a leaf and cannot delegate; create the session under the leaf's parent instead
        "#]],
    );
}

#[test]
fn an_ended_parent_gets_no_children() {
    check_made(
        make_under(&in_state(StateName::Failed).session, &NewSession::default()),
        expect![[r#"
            refused parent_ended: parent sess#1 has ended; choose a parent that is still alive
        "#]],
    );
}

#[test]
fn a_deleted_parent_gets_no_children() {
    check_made(
        make_under(&given([deleted()]).session, &NewSession::default()),
        expect![[r#"
            refused parent_ended: parent sess#1 has ended; choose a parent that is still alive
        "#]],
    );
}

#[test]
fn every_text_is_checked() {
    type Field = fn(&mut NewSession) -> &mut Option<String>;
    let fields: [(&str, Field); 8] = [
        ("title", |new| &mut new.title),
        ("agent", |new| &mut new.agent),
        ("owner", |new| &mut new.owner),
        ("source", |new| &mut new.source),
        ("workspace", |new| &mut new.workspace),
        ("plan", |new| &mut new.plan),
        ("phase", |new| &mut new.phase),
        ("purpose", |new| &mut new.purpose),
    ];
    let refused = |field: Field, text: String| {
        let mut new = NewSession::default();
        *field(&mut new) = Some(text);
        make(&new).unwrap_err()
    };
    for (name, field) in fields {
        assert_eq!(refused(field, String::new()), Refusal::Empty { field: name });
        assert_eq!(refused(field, "a\tb".into()), Refusal::BadText { field: name });
        let long = Refusal::TooLong { field: name, max: NAME_CHARS_MAX, unit: "characters" };
        assert_eq!(refused(field, "é".repeat(NAME_CHARS_MAX + 1)), long);
    }
}

#[test]
fn lists_are_checked() {
    let many = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
    let aliases = |aliases| make(&NewSession { aliases, ..NewSession::default() });
    let anchors = |anchors| make(&NewSession { anchors, ..NewSession::default() });
    assert!(aliases(many(16)).is_ok() && anchors(many(64)).is_ok());
    assert_eq!(aliases(many(17)), Err(Refusal::TooMany { field: "aliases", max: 16 }));
    assert_eq!(anchors(many(65)), Err(Refusal::TooMany { field: "anchors", max: 64 }));
    assert_eq!(aliases(texts(&["a", "\0"])), Err(Refusal::BadText { field: "aliases" }));
    assert_eq!(anchors(texts(&[" "])), Err(Refusal::Empty { field: "anchors" }));
}

fn created_as(event: &Event) -> &crate::session::Created {
    let Event::Change(ChangeEvent::Created(created)) = event else { panic!("{event:?}") };
    created
}
