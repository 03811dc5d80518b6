//! Messages with something attached: what is kept of it, and how it reaches an agent.

use Delivery::{Queue, Reject, Steer};

use super::*;
use crate::attachment::AttachmentId;
use crate::session::event::{Envelope, TurnEvent};
use crate::session::testing::{begins, ends};
use crate::session::{AttachedContent, Capabilities, Message, PromptPart};

fn shot() -> PromptPart {
    let id = AttachmentId::of(b"a picture");
    let name = Some("shot.png".to_owned());
    PromptPart::Image(AttachedContent { id, media_type: "image/png".to_owned(), bytes: 9, name })
}

fn send_shot(turn: u128, prompt: &str, delivery: Delivery) -> Input {
    let message = Message {
        turn: turn_id(turn),
        note: note_id(turn),
        client_turn_id: None,
        prompt: prompt.into(),
        parts: vec![shot()],
        delivery,
        memory: None,
        choice: crate::session::AgentChoice::default(),
        forced: false,
        take_over: false,
        review: None,
    };
    to_inbox(InboxChange::Send(Box::new(message)))
}

/// At work for an agent that takes words into its turn by itself, or does not.
fn at_work(steer: bool) -> Given {
    let capabilities = Capabilities { steer, ..Capabilities::default() };
    let ready = Signal::RunReady(Box::new(RunReady { capabilities, ..greeting(1) }));
    in_state(StateName::Beginning).after_each([start_turn(1), run_started(1), ready.into()])
}

/// The parts and the words with which the last turn began.
fn begun(given: &Given) -> (Vec<PromptPart>, String) {
    let begun = |envelope: &Envelope| {
        let Event::Turn(TurnEvent::Started { parts, prompt, .. }) = &envelope.event else { return None };
        Some((parts.clone(), prompt.clone()))
    };
    given.log.iter().rev().find_map(begun).unwrap()
}

#[test]
fn a_picture_alone_is_a_message_and_waits_with_it() {
    let given = in_state(StateName::Beginning).after(send_shot(1, "", Reject));
    assert_eq!(begun(&given), (vec![shot()], String::new()));
    let waits = [send_shot(2, "", Queue), edit(2, Some("what is this?"), None)];
    let given = in_state(StateName::Executing).after_each(waits);
    assert_eq!(given.session.waiting(turn_id(2)).unwrap().parts, [shot()]);
    let given = given.after(turn_finished());
    assert_eq!(begun(&given), (vec![shot()], "what is this?".to_owned()));
}

/// An answer of a tool call carries text alone, so that a picture waits for the next turn of an agent that cannot take it
/// in mid-turn.
#[test]
fn a_picture_is_steered_only_where_the_agent_takes_it() {
    let given = at_work(false).after(send_shot(2, "look", Steer));
    assert!(given.session.guidance.is_empty() && given.session.waiting(turn_id(2)).unwrap().note.is_none());
    let given = at_work(true).after_each([send_shot(2, "look", Steer), begins(1), ends(1)]);
    let [note] = &given.session.guidance[..] else { panic!("{:?}", given.session.guidance) };
    assert_eq!(
        (note.id, note.status),
        (note_id(2), crate::session::NoteStatus::Pending),
        "no call carried it"
    );
    let given = given.after(turn_finished());
    assert_eq!(begun(&given), (vec![shot()], "look".to_owned()));
}
