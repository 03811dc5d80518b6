//! A message and its note change in one commit (S4-15, S4-16).

use std::sync::atomic::Ordering;

use lanyard_core::session::{Call, CallerProof, Channel, Returned};
use lanyard_core::task::{Mail, MailState, MailTo};
use lanyard_core::{Actor, MailId, SessionId};
use lanyard_store::{Batch, Durability, RecordBatch, WorkBatch};

use super::{PATIENCE, Room};
use crate::families::By;
use lanyard_engine::engine::{Ask, AskError};

fn call(id: &str) -> Call {
    Call {
        id: id.to_owned(),
        server: None,
        tool: "bash".to_owned(),
        channel: Channel::Hook,
        compliance: None,
        proof: CallerProof::default(),
        run: None,
    }
}

impl Room {
    fn commits(&self) -> u64 {
        self.app.engine.stats.commits.load(Ordering::Relaxed)
    }

    async fn letter(&self, to: SessionId, text: &str) -> Mail {
        let (to, text) = (to.to_string(), text.to_owned());
        let by = By { actor: Actor::operator("local"), session: None };
        self.app.families.ask(move |owner| owner.message(&to, &text, None, &by)).await.unwrap()
    }

    fn stored(&self, mail: &Mail) -> Mail {
        self.app.store.mail(mail.id).unwrap().unwrap()
    }

    async fn calls(&self, session: SessionId, id: &str) {
        self.ask(Ask::CallBegins { session, call: Box::new(call(id)) }).await;
        let returned = Returned { is_error: false, took_ms: 1, bytes: 1 };
        let durability = Durability::Synced;
        self.ask(Ask::CallEnds { session, call: Box::new(call(id)), returned, durability }).await;
    }
}

/// The sender's commit, and three of the receiver: queued and given, delivered, acknowledged and settled.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_takes_three_commits_of_its_receiver() {
    let room = Room::new();
    let hub = room.hub(None).await;
    let before = room.commits();
    let mail = room.letter(hub, "the answer is 42").await;
    room.until(|| room.stored(&mail).state != MailState::Pending).await;
    assert!(matches!(room.stored(&mail).state, MailState::Given { session, .. } if session == hub));
    assert_eq!((room.commits() - before, room.load(hub).guidance.len()), (2, 1), "one of each side");
    room.calls(hub, "one").await;
    assert!(matches!(room.stored(&mail).state, MailState::Given { .. }), "delivered is not heard");
    assert_eq!(room.commits() - before, 3);
    room.ask(Ask::CallBegins { session: hub, call: Box::new(call("two")) }).await;
    let settled = room.stored(&mail);
    assert!(matches!(settled.state, MailState::Acknowledged { session, .. } if session == Some(hub)));
    assert_eq!((settled.times, room.commits() - before), (1, 4));
    // The owner of mail takes that up and writes nothing.
    let looks = async {
        while !room
            .app
            .families
            .ask(move |owner| Ok(owner.unsettled(MailTo::Session(hub))))
            .await
            .unwrap()
            .is_empty()
        {
            // sleep: between two looks at what happens aside.
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looks).await.unwrap();
    assert_eq!(room.commits() - before, 4);
}

/// A defect in the records of one caller is refused alone; the round of the others is committed.
#[tokio::test(flavor = "multi_thread")]
async fn records_that_contradict_are_refused_alone() {
    let room = Room::new();
    let hub = room.hub(None).await;
    let mail = room.letter(hub, "one").await;
    room.until(|| room.stored(&mail).state != MailState::Pending).await;
    let taken = Mail { id: MailId::from_u128(7), ..room.stored(&mail) };
    let bad = WorkBatch { mail: vec![taken.clone()], ..WorkBatch::default() }.records().unwrap();
    let good = WorkBatch { mail: vec![Mail { seq: mail.seq + 1, ..taken }], ..WorkBatch::default() };
    let engine = &room.app.engine;
    let (refused, session, kept, nothing) = tokio::join!(
        engine.write(bad),
        room.hub(None),
        engine.write(good.records().unwrap()),
        engine.write(RecordBatch::default())
    );
    assert!(matches!(refused, Err(AskError::Defect(_))), "{refused:?}");
    assert!(kept.is_ok() && nothing.is_ok());
    assert!(room.find(session).is_some());
    assert_eq!(room.app.store.mail(MailId::from_u128(7)).unwrap().unwrap().seq, mail.seq + 1);
}

/// A daemon that queued the note and did not write the message with it left both behind: they find together.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_note_was_queued_before_is_settled_with_it() {
    let room = Room::new();
    let hub = room.hub(None).await;
    let mail = room.letter(hub, "one").await;
    room.until(|| room.stored(&mail).state != MailState::Pending).await;
    let records = WorkBatch { mail: vec![mail.clone()], ..WorkBatch::default() }.records().unwrap();
    room.app.store.append(&Batch { records, ..Batch::default() }).unwrap();
    assert_eq!(room.stored(&mail).state, MailState::Pending);
    room.calls(hub, "one").await;
    room.ask(Ask::CallBegins { session: hub, call: Box::new(call("two")) }).await;
    assert!(matches!(room.stored(&mail).state, MailState::Acknowledged { .. }));
}
