//! The log itself: appending, reading, loading, outcomes, tokens.

use lanyard_core::session::{
    Delivery, Ending, InboxEvent, InterruptCause, TranscriptEvent, TurnEvent, TurnStatus,
};
use lanyard_core::{Actor, SessionId, TokenId, TurnId};
use lanyard_store::{AppendError, Batch, Durability, StoredToken};

use crate::kit::{Store, Teller, at, on_every_journal, outcome};

on_every_journal! {
    an_appended_batch_is_there_as_it_was_told
    an_unknown_session_is_none_and_empty
    a_gap_or_a_repeat_is_refused_and_the_journal_goes_on
    a_batch_is_written_whole_or_not_at_all
    a_session_needs_its_record_at_birth_and_as_of_its_head
    pages_have_no_gaps_at_any_boundary
    transcript_batches_need_no_record
    outcomes_are_kept_until_they_are_swept
    tokens_are_kept_until_they_are_revoked
    written_and_synced_batches_follow_each_other
    an_empty_batch_is_fine
    the_latest_time_is_known
    a_sound_journal_has_nothing_to_report
    turns_are_what_their_log_adds_up_to
}

/// S0-23: every mutation is there once it is acknowledged.
fn an_appended_batch_is_there_as_it_was_told(store: &dyn Store) {
    let mut teller = Teller::default();
    let (one, two) = (teller.plain(), teller.plain());
    teller.append(store);
    teller.assert_kept(store);
    teller.start_turn(one);
    teller.say(one, "hello");
    teller.say(two, "hi");
    teller.finish_turn(one);
    teller.append(store);
    teller.assert_kept(store);
}

/// S0-10.
fn an_unknown_session_is_none_and_empty(store: &dyn Store) {
    let nobody = SessionId::from_u128(7);
    assert!(store.load(nobody).unwrap().is_none());
    let page = store.events(nobody, 0, 10).unwrap();
    assert!(page.events.is_empty() && page.head == 0);
    assert!(store.outcome(&[0; 16]).unwrap().is_none());
}

fn a_gap_or_a_repeat_is_refused_and_the_journal_goes_on(store: &dyn Store) {
    let mut teller = Teller::default();
    let id = teller.plain();
    teller.append(store);
    let before = teller.clone();
    teller.say(id, "two");
    let repeat = teller.batch();
    store.append(&repeat).unwrap();
    assert!(matches!(store.append(&repeat), Err(AppendError::Contradiction(_))));
    teller.say(id, "three");
    let _skipped = teller.clone().batch();
    let mut gap = teller.clone();
    let _ = gap.batch();
    gap.say(id, "four");
    assert!(matches!(store.append(&gap.batch()), Err(AppendError::Contradiction(_))));
    assert_eq!(store.events(id, 0, 10).unwrap().head, 2);
    assert_eq!(before.logs[&id].len(), 1);
    teller.append(store);
    teller.assert_kept(store);
}

fn a_batch_is_written_whole_or_not_at_all(store: &dyn Store) {
    let mut teller = Teller::default();
    let id = teller.plain();
    teller.append(store);
    let mut other = teller.clone();
    other.say(id, "fine");
    let stranger = other.plain();
    let mut batch = other.batch();
    batch.outcomes.push(outcome(1, id, 5));
    batch.entries.last_mut().unwrap().seq = 9;
    assert!(matches!(store.append(&batch), Err(AppendError::Contradiction(_))));
    assert!(store.load(stranger).unwrap().is_none());
    assert!(store.outcome(&[1; 16]).unwrap().is_none());
    teller.assert_kept(store);
    teller.say(id, "the number is free");
    teller.append(store);
    teller.assert_kept(store);
}

fn a_session_needs_its_record_at_birth_and_as_of_its_head(store: &dyn Store) {
    let refused = |batch: &Batch| assert!(matches!(store.append(batch), Err(AppendError::Contradiction(_))));
    let mut teller = Teller::default();
    teller.plain();
    let mut batch = teller.clone().batch();
    batch.sessions.clear();
    refused(&batch);
    let mut batch = teller.clone().batch();
    batch.entries.clear();
    refused(&batch);
    let mut batch = teller.clone().batch();
    batch.sessions[0].seq = 2;
    refused(&batch);
    teller.append(store);
    teller.assert_kept(store);
}

fn pages_have_no_gaps_at_any_boundary(store: &dyn Store) {
    let mut teller = Teller::default();
    let sizes = [1, 2, 63, 64, 65, 127, 128, 129, 1_000];
    let ids: Vec<SessionId> = sizes.iter().map(|_| teller.plain()).collect();
    // Interleaved, so that no session's events are neighbours.
    for round in 1..1_000 {
        for (id, size) in ids.iter().zip(sizes) {
            if round < size {
                teller.say(*id, &format!("{round}"));
            }
        }
        if round % 7 == 0 {
            teller.append(store);
        }
    }
    teller.append(store);
    teller.assert_kept(store);
    let mut rng = fastrand::Rng::with_seed(64);
    for (id, size) in ids.iter().zip(sizes) {
        let log = &teller.logs[id];
        assert_eq!(log.len(), size);
        let edges = [0, 1, 62, 63, 64, 65, 66, 127, 128, 129, size - 1, size, size + 1, size + 64];
        let random = (0..50).map(|_| (rng.usize(0..=size + 3), rng.usize(0..=size + 3))).collect::<Vec<_>>();
        let all = edges.iter().flat_map(|&after| edges.map(|limit| (after, limit))).chain(random);
        for (after, limit) in all {
            let page = store.events(*id, after as u64, limit).unwrap();
            let wanted = log.iter().enumerate().skip(after).take(limit);
            let found =
                page.events.iter().map(|event| (event.seq as usize - 1, event.body.as_ref().unwrap()));
            assert!(found.eq(wanted), "{limit} after {after} of {size}");
            assert_eq!(page.head, size as u64);
        }
    }
}

fn transcript_batches_need_no_record(store: &dyn Store) {
    let mut teller = Teller::default();
    let id = teller.plain();
    teller.start_turn(id);
    teller.append(store);
    for count in 0..100 {
        let call = format!("call-{count}");
        teller.push(
            id,
            TranscriptEvent::ToolCalled { call, tool: "sh".to_owned(), arguments: serde_json::json!({}) },
        );
        let batch = teller.batch();
        assert!(batch.sessions.is_empty());
        store.append(&batch).unwrap();
    }
    teller.assert_kept(store);
    assert_eq!(store.load(id).unwrap().unwrap().session.last_tool_call.unwrap().count, 100);
    teller.finish_turn(id);
    teller.end(id, Ending::Completed);
    teller.append(store);
    teller.assert_kept(store);
}

/// the first outcome again, as long as it is kept.
fn outcomes_are_kept_until_they_are_swept(store: &dyn Store) {
    let mut teller = Teller::default();
    let id = teller.plain();
    let mut batch = teller.batch();
    batch.outcomes = (0..10).map(|key| outcome(key, id, 100 + i64::from(key))).collect();
    store.append(&batch).unwrap();
    for kept in &batch.outcomes {
        assert_eq!(store.outcome(&kept.key).unwrap().as_ref(), Some(kept));
    }
    assert_eq!(store.sweep(at(105), 3).unwrap(), 3);
    assert_eq!(store.sweep(at(105), 3).unwrap(), 2);
    assert_eq!(store.sweep(at(105), 3).unwrap(), 0);
    for kept in &batch.outcomes {
        assert_eq!(store.outcome(&kept.key).unwrap().is_some(), kept.at >= at(105));
    }
    // A key that was used again after its time has the later outcome.
    let later = Batch { outcomes: vec![outcome(9, id, 500)], ..Batch::default() };
    store.append(&later).unwrap();
    assert_eq!(store.outcome(&[9; 16]).unwrap().unwrap().at, at(500));
}

fn tokens_are_kept_until_they_are_revoked(store: &dyn Store) {
    let token = |number: u128, session| StoredToken {
        id: TokenId::from_u128(number),
        hash: [u8::try_from(number).unwrap(); 32],
        actor: Actor::operator("alex"),
        session,
        created_at: at(7),
    };
    let (one, two) = (token(1, None), token(2, Some(SessionId::from_u128(9))));
    store.put_token(&one).unwrap();
    store.put_token(&two).unwrap();
    assert_eq!(store.tokens().unwrap(), [one.clone(), two.clone()]);
    let renamed = StoredToken { actor: Actor::operator("sam"), ..one };
    store.put_token(&renamed).unwrap();
    assert_eq!(store.tokens().unwrap(), [renamed.clone(), two.clone()]);
    assert!(store.revoke_token(renamed.id).unwrap());
    assert!(!store.revoke_token(renamed.id).unwrap());
    assert_eq!(store.tokens().unwrap(), [two]);
}

/// A batch that is only written is as visible, as whole and as much in order as a synced one.
fn written_and_synced_batches_follow_each_other(store: &dyn Store) {
    let mut teller = Teller::default();
    let id = teller.plain();
    teller.append(store);
    for durability in [Durability::Written, Durability::Written, Durability::Synced, Durability::Written] {
        teller.say(id, &format!("{durability:?}"));
        let batch = Batch { durability, ..teller.batch() };
        store.append(&batch).unwrap();
        assert!(matches!(store.append(&batch), Err(AppendError::Contradiction(_))));
        teller.assert_kept(store);
    }
    store.recover().unwrap();
    teller.assert_kept(store);
}

fn an_empty_batch_is_fine(store: &dyn Store) {
    store.append(&Batch::default()).unwrap();
    assert_eq!(store.check().unwrap().events, 0);
}

fn the_latest_time_is_known(store: &dyn Store) {
    assert_eq!(store.latest_at().unwrap(), None);
    let mut teller = Teller::default();
    let id = teller.plain();
    teller.plain();
    teller.say(id, "last");
    teller.append(store);
    assert_eq!(store.latest_at().unwrap(), Some(at(teller.now)));
}

fn a_sound_journal_has_nothing_to_report(store: &dyn Store) {
    let mut teller = Teller::default();
    for _ in 0..5 {
        let id = teller.plain();
        teller.alias(id, &format!("alias-{id}"));
        for count in 0..70 {
            teller.say(id, &format!("{count}"));
        }
        teller.append(store);
    }
    let gone = teller.ids[0];
    teller.delete(gone);
    teller.append(store);
    let report = store.check().unwrap();
    assert_eq!((report.sessions, report.events), (5, 5 * 72 + 1));
    assert_eq!((report.structure, report.damage), (Vec::new(), Vec::new()));
}

/// S3-B01: what became of each turn, however long ago, also when all of it is made again.
fn turns_are_what_their_log_adds_up_to(store: &dyn Store) {
    let mut teller = Teller::default();
    let (id, other) = (teller.plain(), teller.plain());
    for _ in 0..5 {
        teller.start_turn(id);
        teller.finish_turn(id);
        teller.append(store);
    }
    let waits = TurnId::from_u128(u128::MAX);
    teller.start_turn(id);
    let lost = teller.sessions[&id].turn.as_ref().unwrap().id;
    teller.push(id, InboxEvent::Delivered { turn: lost });
    let queued = InboxEvent::Queued {
        turn: waits,
        client_turn_id: Some("mine".to_owned()),
        prompt: "x".repeat(500),
        parts: Vec::new(),
        prompt_hash: "0".to_owned(),
        delivery: Delivery::Queue,
        note: None,
        memory: None,
        choice: lanyard_core::session::AgentChoice::default(),
        forced: false,
    };
    teller.push(id, queued);
    let (cause, reason) = (InterruptCause::Crash, Some("gone".to_owned()));
    teller.push(
        id,
        TurnEvent::Interrupted {
            turn: lost,
            cause,
            reason,
            uncertain: true,
            receipt: lanyard_core::session::Receipt::default(),
            review: false,
        },
    );
    teller.append(store);
    let before = store.turns(id, None, 100).unwrap();
    assert!(!before.more);
    let statuses: Vec<TurnStatus> = before.turns.iter().map(|row| row.status).collect();
    let done = TurnStatus::Completed;
    assert_eq!(statuses, [TurnStatus::Queued, TurnStatus::Uncertain, done, done, done, done, done]);
    assert_eq!(before.turns[0].prompt_preview.len(), 120);
    assert_eq!(before.turns[0].client_turn_id.as_deref(), Some("mine"));
    assert_eq!(before.turns[1].reason.as_deref(), Some("gone"));
    assert!(before.turns[1].delivered_at.is_some());
    let first = store.turns(id, None, 3).unwrap();
    assert!(first.more && first.turns == before.turns[..3]);
    let rest = store.turns(id, Some(first.turns[2].turn), 100).unwrap();
    assert!(!rest.more && rest.turns == before.turns[3..]);
    assert_eq!(store.turn(id, lost).unwrap().as_ref(), Some(&before.turns[1]));
    assert_eq!(store.turn(other, lost).unwrap(), None, "another session's");
    assert!(store.turns(SessionId::from_u128(7), None, 10).unwrap().turns.is_empty());
    assert_eq!(store.check().unwrap().damage, []);
    store.rebuild().unwrap();
    assert_eq!(store.turns(id, None, 100).unwrap(), before);
    teller.push(id, InboxEvent::Withdrawn { turn: waits, reason: None });
    teller.append(store);
    assert_eq!(store.turn(id, waits).unwrap().unwrap().status, TurnStatus::Withdrawn);
    assert_eq!(store.check().unwrap().damage, []);
}
