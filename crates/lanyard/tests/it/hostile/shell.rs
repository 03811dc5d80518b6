//! `lanyard` in the shell of an agent acts as that agent's session and nothing else.

use std::fmt::Write as _;

use serde_json::json;

use super::kit::{CLEARED, INHERITED, Stage, ask};

/// Commands of an operator, as a hostile agent would use them.
const OPERATORS: [&str; 26] = [
    "ls",
    "approvals",
    "answer gate_00000000000000000000000001 allow",
    "memory policy $LANYARD_SESSION --mode full",
    "token ls",
    "token new evil --role operator",
    "stop $LANYARD_SESSION",
    "unstop $LANYARD_SESSION",
    "send $LANYARD_SESSION hello",
    "guide $LANYARD_SESSION hello",
    "new --agent shell",
    "run hello",
    "rm $OTHER",
    "link $LANYARD_SESSION $OTHER",
    "migrate $LANYARD_SESSION --agent other --reason x",
    "down",
    "up --detach",
    "doctor",
    "reload",
    "worktree trust",
    "config set daemon.default_agent evil",
    "demo",
    "open",
    "task ls",
    "halt",
    "mcp ls",
];

/// FND-K3: whatever the agent's shell inherits, it finds no operator's token.
#[test]
fn fnd_k3_an_agent_with_a_shell_is_not_the_operator() {
    for settings in [INHERITED, CLEARED] {
        let stage = Stage::new(settings);
        let (session, other) = (stage.session(), stage.session());
        let mut script = format!("OTHER={other}\nexec 2>&1\n");
        for command in OPERATORS {
            writeln!(script, "$L {command} </dev/null; echo \"= $?\"").unwrap();
        }
        script
            .push_str("$L --data-dir \"$HOME/.local/share/lanyard\" show $LANYARD_SESSION; echo \"= $?\"\n");
        let said = stage.run(&session, &script);
        let refusals = said.matches("[operator_only]").count();
        assert_eq!(refusals, OPERATORS.len() + 1, "{settings:?}\n{said}");
        assert_eq!(said.matches("= 1\n").count(), OPERATORS.len() + 1, "{said}");
        assert!(stage.daemon.is_alive());
        assert_eq!(stage.show(&other)["state"], "beginning");
        let tokens = stage.daemon.request("GET", "/api/v1/tokens", &[], None).json();
        assert_eq!(tokens["tokens"], json!([]));
    }
}

/// FND-K3: data folder and config are not passed on; what is the session's own works by its address and token.
#[test]
fn fnd_k3_a_session_sees_itself_and_no_other_and_no_data_folder() {
    for settings in [INHERITED, CLEARED] {
        let stage = Stage::new(settings);
        let (session, other) = (stage.session(), stage.session());
        let script = format!(
            "exec 2>&1\n\
             env | grep -c '^LANYARD_\\(DATA_DIR\\|CONFIG\\|NO_START\\|LOG\\)='\n\
             $L show $LANYARD_SESSION --json | grep -q {session} && echo shown\n\
             $L logs $LANYARD_SESSION >/dev/null && echo logs\n\
             $L show $LANYARD_SESSION >/dev/null && echo card\n\
             $L show {other}\n\
             $L checkpoint $LANYARD_SESSION >/dev/null && echo checkpoint\n\
             $L signal $LANYARD_SESSION '{{\"type\": \"thought\", \"text\": \"hm\"}}' >/dev/null && echo signal\n\
             LANYARD_TOKEN= $L show $LANYARD_SESSION\n\
             LANYARD_URL=http://127.0.0.1:1 $L show $LANYARD_SESSION\n"
        );
        let said = stage.run(&session, &script);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[..4], ["0", "shown", "logs", "card"], "{said}");
        for code in ["[not_your_session]", "[session_token_missing]", "[daemon_not_running]"] {
            assert!(said.contains(code), "{code}\n{said}");
        }
        assert!(said.contains("checkpoint\n") && said.contains("signal\n"), "{said}");
    }
}

/// FND-K3: a run's token ends with its run; a stopped agent still gets the refusal of its stop, and nothing else.
#[test]
fn fnd_k3_a_runs_token_ends_with_its_run() {
    let stage = Stage::new(INHERITED);
    let session = stage.session();
    let agent = stage.held_token(&session);
    let own = format!("/sessions/{session}");
    assert_eq!(ask(&agent, "GET", &own, None).status, 200);
    stage.touch("go");
    stage.until_at_rest(&session);
    assert_eq!(ask(&agent, "GET", &own, None).code(), "run_ended");
    let call = json!({ "id": "1", "tool": "shell", "channel": "hook" });
    let begins = format!("{own}/calls");
    assert_eq!(ask(&agent, "POST", &begins, Some(&call)).code(), "run_ended");

    // The next run has a token of its own, and the old one stays what it is, also over a restart of the daemon.
    std::fs::remove_file(stage.file("go")).unwrap();
    std::fs::remove_file(stage.file("token")).unwrap();
    let next = stage.held_token(&session);
    assert_ne!(agent.token, next.token);
    assert_eq!(ask(&next, "GET", &own, None).status, 200);
    assert_eq!(ask(&agent, "GET", &own, None).code(), "run_ended");

    for _ in 0..3 {
        stage.post(&format!("{own}/stop"), &json!({}));
    }
    stage.until_at_rest(&session);
    let answer = ask(&next, "POST", &begins, Some(&call)).json();
    assert_eq!((&answer["go"], &answer["level"]), (&json!(false), &json!(3)), "{answer}");
    assert_eq!(ask(&next, "GET", &own, None).code(), "run_ended");
    assert_eq!(ask(&next, "POST", &format!("{own}/complete"), Some(&json!({}))).code(), "run_ended");
}

/// FND-K3: the token of a session whose agent somebody else runs is listed, and its operator can revoke it.
#[test]
fn fnd_k3_the_token_of_a_session_that_its_host_runs_can_be_revoked() {
    let stage = Stage::new(INHERITED);
    let address = || {
        let made = stage.post("/mcp/lanyard/address", &json!({ "agent": "claude", "alias": "one" }));
        let id = made.json()["session"].as_str().map(str::to_owned);
        (id, made)
    };
    let (session, made) = address();
    let session = session.unwrap();
    let header = made.json()["headers"]["Authorization"].as_str().unwrap().to_owned();
    let again = stage.post("/mcp/lanyard/address", &json!({ "session": session })).json();
    assert_eq!(again["headers"]["Authorization"], header.as_str(), "asked for again, it is the same");
    let token = header.trim_start_matches("Bearer ").to_owned();
    let agent = crate::support::Caller { token, ..stage.daemon.caller() };
    let own = format!("/sessions/{session}");
    assert_eq!(ask(&agent, "GET", &own, None).status, 200);
    let listed = stage.daemon.request("GET", "/api/v1/tokens", &[], None).json();
    let held = &listed["tokens"][0];
    assert_eq!((&held["role"], &held["session"]), (&json!("agent"), &json!(session)), "{listed}");
    let path = format!("/api/v1/tokens/{}", held["id"].as_str().unwrap());
    assert_eq!(stage.daemon.request("DELETE", &path, &[], None).status, 204);
    assert_eq!(ask(&agent, "GET", &own, None).code(), "token_unknown");
    let fresh = stage.post("/mcp/lanyard/address", &json!({ "session": session })).json();
    assert_ne!(fresh["headers"]["Authorization"], header.as_str());
}
