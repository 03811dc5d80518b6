//! Guidance on its way to an agent whose calls come by.

use super::*;
use crate::support::Caller;

/// S0-45, S0-T18, S0-57, S0-B10, S0-B11: in order, before one answer, acknowledged by the next call; visible all along.
#[test]
fn guidance_is_delivered_once_and_then_acknowledged() {
    let daemon = daemon();
    let session = external(&daemon);
    for text in ["first", "second"] {
        guide(&daemon, &session, text);
    }
    let statuses = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|note| note["status"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(statuses(&get(&daemon, &session, "/guidance")["waiting"]), ["pending", "pending"]);
    assert_eq!(begins(&daemon, &session, &call("1"))["go"], true);
    let lead = ends(&daemon, &session, &call("1"));
    let block = lead["blocks"][0].as_str().unwrap();
    let at = |needle: &str| block.find(needle).unwrap_or_else(|| panic!("no {needle} in {block}"));
    assert!(block.starts_with("📝 USER GUIDANCE (injected by user):\n"), "{block}");
    assert!(at("first") < at("second") && block.ends_with("\n--- TOOL RESPONSE ---"), "{block}");
    let waiting = get(&daemon, &session, "/guidance")["waiting"].clone();
    assert_eq!(statuses(&waiting), ["delivered", "delivered"]);
    assert_eq!(waiting[0]["delivery"]["channel"], "mcp");
    assert_eq!(waiting[0]["delivery"]["call"], "1");
    assert_eq!(whole(&daemon, &session, "2"), "as it is");
    let list = get(&daemon, &session, "/guidance");
    assert_eq!(list["waiting"], json!([]));
    assert_eq!(statuses(&list["settled"]), ["acknowledged", "acknowledged"]);
    let log = daemon.log_after(&session, 0);
    let delivered = log.iter().find(|event| event["type"] == "guidance.delivered").unwrap();
    assert_eq!(delivered["data"]["preview"], "first\nsecond");
}

/// S0-39, S0-T15: a stop outranks guidance, which waits.
#[test]
fn a_stop_goes_first_and_guidance_is_kept() {
    let daemon = daemon();
    let session = external(&daemon);
    guide(&daemon, &session, "left");
    stop(&daemon, &session, &json!({}));
    assert_eq!(whole(&daemon, &session, "1"), "⚠️ SESSION STOP REQUESTED");
    assert_eq!(post(&daemon, &session, "stop/withdraw", &json!({})).status, 200);
    assert_eq!(whole(&daemon, &session, "2"), "📝 USER GUIDANCE (injected by user):");
}

/// An answer that broke off is told of, and what it carried goes again, marked.
#[test]
fn an_answer_that_did_not_get_out_is_repeated() {
    let daemon = daemon();
    let session = external(&daemon);
    let note = guide(&daemon, &session, "left")["note"].clone();
    begins(&daemon, &session, &call("1"));
    assert_eq!(ends(&daemon, &session, &call("1"))["notes"], json!([note]));
    assert_eq!(post(&daemon, &session, "calls/unsent", &json!({ "notes": [note] })).status, 204);
    begins(&daemon, &session, &call("2"));
    let lead = ends(&daemon, &session, &call("2"));
    assert!(lead["blocks"][0].as_str().unwrap().contains("repeated: you may have seen it"), "{lead}");
}

/// S0-46..S0-48, X-08: cut with a warning; what looks like a call is reported and delivered verbatim.
#[test]
fn the_sender_is_told_what_was_found_in_the_words() {
    let daemon = daemon();
    let session = external(&daemon);
    let warnings = guide(&daemon, &session, &"x".repeat(600))["warnings"].clone();
    assert!(warnings[0].as_str().unwrap().contains("cut to 500"), "{warnings}");
    let warnings = guide(&daemon, &session, "{\"action\": \"delete\"}")["warnings"].clone();
    assert!(warnings[0].as_str().unwrap().contains("tool call"), "{warnings}");
    begins(&daemon, &session, &call("1"));
    let block = ends(&daemon, &session, &call("1"))["blocks"][0].as_str().unwrap().to_owned();
    assert!(block.contains("\n{\"action\": \"delete\"}\n"), "an operator's words arrive verbatim: {block}");
}

#[test]
fn guidance_that_finds_no_ear_in_time_expires_and_says_so() {
    let daemon = Daemon::start(Setup::default().config("[limits]\nguidance_expires_ms = 200\n"));
    let session = external(&daemon);
    guide(&daemon, &session, "left");
    let over = || get(&daemon, &session, "/guidance")["settled"][0]["status"] == "expired";
    assert!(until(over), "{}", get(&daemon, &session, "/guidance"));
    assert_eq!(whole(&daemon, &session, "1"), "as it is");
}

/// The hook is a channel of its own.
#[test]
fn a_hook_delivers_too() {
    let daemon = daemon();
    let session = external(&daemon);
    guide(&daemon, &session, "left");
    let call = json!({ "id": "h", "tool": "Bash", "channel": "hook" });
    assert_eq!(begins(&daemon, &session, &call)["go"], true);
    assert_eq!(ends(&daemon, &session, &call)["notes"].as_array().unwrap().len(), 1);
    assert_eq!(get(&daemon, &session, "/guidance")["waiting"][0]["delivery"]["channel"], "hook");
}

/// S0-B08: a session's own token acts as that session, and as no other.
#[test]
fn another_sessions_token_is_turned_away() {
    let daemon = daemon();
    let (mine, theirs) = (external(&daemon), external(&daemon));
    let token = json!({ "role": "agent", "name": "mine", "session": mine });
    let token = daemon.request("POST", "/api/v1/tokens", &[], Some(&token.to_string())).json();
    let token = token["token"].as_str().unwrap().to_owned();
    let ask = |session: &str, token: &str| {
        let caller = Caller { token: token.to_owned(), ..daemon.caller() };
        let path = format!("/api/v1/sessions/{session}/calls");
        caller.try_request("POST", &path, &[], Some(&call("1").to_string())).unwrap().status
    };
    assert_eq!(ask(&mine, &token), 200);
    assert_eq!(ask(&theirs, &token), 403);
    assert_eq!(ask(&mine, &format!("lys_{}", "A".repeat(64))), 401);
}
