//! What a session tells of the rules its agent works under (S1-01, S1-02).

use super::*;

fn named(id: &str, tool: &str) -> Value {
    json!({ "id": id, "server": "ev", "tool": tool, "channel": "mcp" })
}

/// FND-M9: level and languages are set when a session is made; first tool and violations are counted from its calls.
#[test]
fn fnd_m9_a_session_tells_of_its_governance() {
    let daemon = daemon();
    let session = made(
        &daemon,
        &json!({
            "source": "external", "agent": "someone", "governance_level": "strict",
            "language": { "communication": "German", "documents": "English" },
        }),
    );
    let view = get(&daemon, &session, "");
    assert_eq!(view["governance_level"], "strict");
    assert_eq!(view["language"], json!({ "communication": "German", "documents": "English" }));
    assert_eq!((&view["violation_count"], &view["first_tool"]), (&json!(0), &Value::Null));
    assert_eq!(view["governance_injected"], false);
    for (id, tool) in [("0", "grep"), ("1", "echo")] {
        assert_eq!(begins(&daemon, &session, &named(id, tool))["go"], true);
        ends(&daemon, &session, &named(id, tool));
    }
    assert!(until(|| get(&daemon, &session, "")["first_tool"]["name"] == "grep"));
    assert!(get(&daemon, &session, "")["first_tool"]["at"].is_string());
    stop(&daemon, &session, &json!({}));
    assert_eq!(whole(&daemon, &session, "2"), "⚠️ SESSION STOP REQUESTED");
    assert_eq!(get(&daemon, &session, "")["violation_count"], 0);
    assert_eq!(whole(&daemon, &session, "3"), "not carried out: 🛑 SESSION STOP — IMMEDIATE");
    assert_eq!(get(&daemon, &session, "")["violation_count"], 1);
    let child = made(&daemon, &json!({ "language": { "documents": "French" } }));
    assert_eq!(get(&daemon, &child, "")["language"], json!({ "documents": "French" }));
}

/// FND-M9: the command line sets them too, and a child has its parent's.
#[test]
fn fnd_m9_a_session_is_made_with_them_on_the_command_line() {
    let daemon = daemon();
    let new = |words: &[&str]| {
        let all: Vec<&str> = ["new"].into_iter().chain(words.iter().copied()).collect();
        let out = daemon.lanyard(&all);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    let parent = new(&["--governance", "strict", "--language", "German", "--documents", "English"]);
    let child = new(&["--parent", &parent, "--language", "French"]);
    let view = get(&daemon, &child, "");
    assert_eq!(view["governance_level"], "strict");
    assert_eq!(view["language"], json!({ "communication": "French", "documents": "English" }));
    let bad = daemon.request("POST", "/api/v1/sessions", &[], Some(r#"{"language":{"spoken":"x"}}"#));
    assert_eq!(bad.status, 422, "{}", bad.text());
}
