//! One writer, many observers: the lease is claimed, asked for, denied, handed over, and lapses (S3-14, S3-19, S3-B13).

use proptest::prelude::*;

use super::*;
use crate::actor::Actor;
use crate::session::testing::{ann, claim, pen, release, take_over};
use crate::session::{WriterCommand, may_write};
use crate::time::Timestamp;

fn due(given: &Given) -> Input {
    Signal::Due { now: given.now }.into()
}

fn deny(connection: u128, epoch: u64) -> Input {
    WriterCommand::Deny { pen: pen(connection), epoch }.into()
}

fn grant(connection: u128, epoch: u64) -> Input {
    WriterCommand::Grant { pen: pen(connection), epoch }.into()
}

fn after_a_lapse(connection: u128) -> Input {
    WriterCommand::Claim { pen: pen(connection), take: false, holder_gone: true }.into()
}

fn refused(given: &Given, input: impl Into<Input>) -> &'static str {
    given.clone().put(&input.into()).refusal.map_or("", |refusal| refusal.code())
}

#[test]
fn a_free_lease_is_granted_and_the_same_connection_keeps_it() {
    check(
        given([]),
        claim(1),
        expect![[r#"
            writer.granted epoch=1 pen={actor={kind=operator name=ann} client=cli connection=conn_00000000000000000000000001}
            beginning
        "#]],
    );
    assert!(given([]).after(claim(1)).put(&claim(1)).events.is_empty(), "it has it already");
}

/// A connection's id is no secret: somebody else who uses it has nothing.
#[test]
fn a_connection_counts_with_who_is_behind_it() {
    let mut forged = pen(1);
    forged.actor = Actor::operator("bob");
    let held = given([]).after(claim(1));
    let command = WriterCommand::Claim { pen: forged.clone(), take: false, holder_gone: false };
    assert_eq!(refused(&held, command), "writer_held");
    assert_eq!(refused(&held, WriterCommand::Release { pen: forged, epoch: 1 }), "writer_superseded");
    assert!(may_write(&held.session, Some(1), &Actor::operator("bob"), false).is_err());
}

/// The holder has a window to say no, and then it passes.
#[test]
fn a_wish_to_take_over_comes_true_when_nobody_denies_it() {
    let asked = given([]).after(claim(1)).after(take_over(2));
    assert_eq!(refused(&asked, take_over(3)), "takeover_pending");
    let early = due(&asked);
    assert!(asked.clone().put(&early).events.is_empty(), "the window is open");
    let next = crate::session::next_due(&asked.session, &asked.rules).map(Timestamp::as_millis);
    let until =
        asked.session.writer.as_ref().and_then(|writer| writer.asked.as_ref()).map(|asked| asked.until);
    assert_eq!(next, until.map(Timestamp::as_millis));
    let late = asked.later(10_000);
    check(
        late.clone(),
        due(&late),
        expect![[r#"
            writer.released epoch=1 why=taken
            writer.granted epoch=2 pen={actor={kind=operator name=ann} client=cli connection=conn_00000000000000000000000002}
            beginning
        "#]],
    );
}

#[test]
fn a_holder_can_deny_or_hand_over_and_only_the_holder() {
    let asked = given([]).after(claim(1)).after(take_over(2));
    assert_eq!(refused(&asked, deny(2, 1)), "writer_superseded");
    assert_eq!(refused(&asked, grant(1, 7)), "writer_superseded");
    let denied = asked.clone().after(deny(1, 1));
    assert_eq!(refused(&denied, take_over(2)), "takeover_denied");
    assert_eq!(refused(&denied, deny(1, 1)), "takeover_not_asked");
    assert!(denied.later(10_000).put(&take_over(2)).refusal.is_none(), "later one may ask again");
    let handed = asked.clone().after(grant(1, 1));
    assert_eq!(handed.session.writer.as_ref().map(|writer| writer.epoch), Some(2));
    let passed = asked.after(release(1, 1));
    assert_eq!(passed.session.writer.map(|writer| writer.pen), Some(pen(2)), "to who waits for it");
}

#[test]
fn a_lease_lapses_with_its_holder_and_ends_with_the_session() {
    let lapsed = given([]).after(claim(1)).after(after_a_lapse(2));
    assert_eq!(lapsed.session.writer.map(|writer| (writer.pen, writer.epoch)), Some((pen(2), 2)));
    let held = given([]).after(claim(1));
    assert_eq!(may_write(&held.session, None, &ann(), true).map(|events| events.len()), Ok(1));
    assert!(held.clone().after(complete()).session.writer.is_none());
    assert!(held.after(archive()).session.writer.is_none());
}

/// S3-09: who is there is not what the session does.
#[test]
fn a_change_of_hands_is_no_activity() {
    let before = given([]);
    let after = before.clone().later(HOUR).after(claim(1)).after(take_over(2)).after(release(1, 1));
    assert_eq!(before.session.last_activity_at, after.session.last_activity_at);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Claim(u128, bool),
    /// The holder, as somebody remembers it, answers.
    Deny(u128, u64),
    Grant(u128, u64),
    Release(u128, u64),
    Wait(u64),
    /// The daemon is killed: the log is all that is left.
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    let who = 1..4_u128;
    let epoch = 0..8_u64;
    prop_oneof![
        4 => (who.clone(), any::<bool>()).prop_map(|(who, take)| Step::Claim(who, take)),
        1 => (who.clone(), epoch.clone()).prop_map(|(who, epoch)| Step::Deny(who, epoch)),
        1 => (who.clone(), epoch.clone()).prop_map(|(who, epoch)| Step::Grant(who, epoch)),
        2 => (who, epoch).prop_map(|(who, epoch)| Step::Release(who, epoch)),
        2 => (1..15_u64).prop_map(Step::Wait),
        1 => Just(Step::Kill),
    ]
}

proptest! {
    /// S3-19: whatever is claimed, asked, denied and killed: one holder, an epoch that only grows, and only the
    /// holder's epoch writes.
    #[test]
    fn there_is_one_writer_and_late_words_are_refused(steps in proptest::collection::vec(step(), 1..60)) {
        let mut given = given([]);
        let mut seen: Vec<(u128, u64)> = Vec::new();
        for step in steps {
            let before = given.session.writer_epoch;
            match step {
                Step::Claim(who, take) => { given.put(&if take { take_over(who) } else { claim(who) }); }
                Step::Deny(who, epoch) => { given.put(&deny(who, epoch)); }
                Step::Grant(who, epoch) => { given.put(&grant(who, epoch)); }
                Step::Release(who, epoch) => { given.put(&release(who, epoch)); }
                Step::Wait(seconds) => {
                    given = given.later(seconds * 1_000);
                    let due = due(&given);
                    given.put(&due);
                }
                Step::Kill => {
                    let replayed = crate::session::replay(&given.log).unwrap().unwrap();
                    prop_assert_eq!(&replayed, &given.session);
                    given.session = replayed;
                }
            }
            prop_assert!(given.session.writer_epoch >= before);
            let holder = given.session.writer.as_ref().map(|writer| (writer.pen.connection.as_u128(), writer.epoch));
            if let Some(holder) = holder && !seen.contains(&holder) {
                prop_assert!(seen.iter().all(|(_, epoch)| *epoch < holder.1), "an epoch has one holder");
                seen.push(holder);
            }
            for (_, epoch) in &seen {
                let may = may_write(&given.session, Some(*epoch), &ann(), false).is_ok();
                prop_assert_eq!(may, holder.is_some_and(|(_, held)| held == *epoch));
            }
            prop_assert_eq!(may_write(&given.session, None, &ann(), false).is_ok(), holder.is_none());
        }
    }
}
