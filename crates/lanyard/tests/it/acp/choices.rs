//! Models, modes and commands of the agent below, as an editor is offered them and changes them.

use agent_client_protocol::v1::schema::{
    NewSessionRequest, SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use serde_json::{Value, json};

use super::kit::{Stage, plain};

const OFFERS: [&str; 6] = ["--models", "small,large", "--modes", "ask,plan", "--commands", "say"];

fn shown(answer: &impl serde::Serialize) -> Value {
    serde_json::to_value(answer).unwrap()
}

#[test]
fn an_editor_is_offered_what_the_agent_offers_and_its_choice_holds() {
    let stage = Stage::with(&OFFERS);
    assert_eq!(stage.post("/agents/a/check", &json!({})).json()["works"], true);
    let editor = stage.editor();
    let made = editor.request(NewSessionRequest::new(stage.work())).unwrap();
    let offered = shown(&made);
    assert_eq!(offered["modes"]["currentModeId"], "ask");
    assert_eq!(offered["configOptions"][0]["currentValue"], "small");
    let session = made.session_id;
    editor.request(SetSessionModeRequest::new(session.clone(), "plan")).unwrap();
    let set = editor.request(SetSessionConfigOptionRequest::new(session.clone(), "model", "large")).unwrap();
    assert_eq!(shown(&set)["configOptions"][0]["currentValue"], "large");
    editor.prompt(&session, "/choices").unwrap();
    assert!(plain(&editor.updates(&session)).contains("model=large mode=plan effort=-"));
    assert_eq!(stage.at_rest(&session)["choice"], json!({ "model": "large", "mode": "plan" }));
    // Commands are told with the run, and choices of others as they are made.
    let told = || shown(&editor.updates(&session)).to_string();
    super::kit::until("the commands", || told().contains("available_commands_update"));
    let answer = stage.post(&format!("/sessions/{session}/choice"), &json!({ "mode": "ask" }));
    assert_eq!(answer.status, 200, "{}", answer.text());
    super::kit::until("the other choice", || told().contains(r#""currentModeId":"ask""#));
    let refused = editor.request(SetSessionModeRequest::new(session, "dance"));
    assert_eq!(i32::from(refused.unwrap_err().code), -32602);
}
