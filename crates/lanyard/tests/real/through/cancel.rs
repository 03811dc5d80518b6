//! A cancel in the middle of an answer reaches the model, and the conversation goes on.

use serde_json::json;

use super::cases::Case;
use super::kit::{AFTER, GREETING, Kit};
use crate::agents::Rights;
use crate::model::{Outcome, Role};
use crate::peer::PATIENCE;

pub(super) fn shows(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let session = kit.session();
    assert!(kit.turn(&session, "greet").ends_with(GREETING));
    let turn = kit.begin(&session, "hold");
    kit.is_held("hold");
    kit.post(&format!("/sessions/{session}/cancel"), &json!({}));
    let end = kit.ended(&session, &turn);
    assert_eq!((&end["type"], &end["data"]["cause"]), (&json!("turn.interrupted"), &json!("user")), "{end}");
    kit.model.wait("hung up", PATIENCE, |asked| asked.is("hold", 0) && asked.outcome == Outcome::HungUp);
    let after = kit.turn(&session, "after");
    assert!(after.ends_with(AFTER), "{after}\n{}", kit.told(&session));
    assert!(kit.answered("after", 0).asked.says(Role::Assistant, GREETING), "it remembers what was before");
    kit.ok("cancel");
}
