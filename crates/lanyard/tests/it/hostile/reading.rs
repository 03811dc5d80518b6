//! What an agent prints of its environment is in nobody's log.

use super::kit::{INHERITED, Stage};
use crate::support::Setup;

/// FND-K8: an agent that shows its environment shows no token, and no secret of its operator.
#[test]
fn fnd_k8_no_log_holds_a_token_or_a_secret_of_the_environment() {
    let setup = Setup::default().env("DEPLOY_TOKEN", "not-for-the-log-1234");
    let stage = Stage::with(INHERITED, "", setup);
    let session = stage.session();
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let said = stage.run(&session, &format!("env | sort; printf %s \"$LANYARD_TOKEN\" > token; echo {key}"));
    let token = stage.await_file("token");
    for secret in [token.as_str(), "not-for-the-log-1234"] {
        let log = serde_json::to_string(&stage.log(&session)).unwrap();
        assert!(!log.contains(secret), "{secret}");
    }
    for marker in [
        "LANYARD_TOKEN=[redacted:lanyard-token]",
        "DEPLOY_TOKEN=[redacted:env DEPLOY_TOKEN]",
        "[redacted:github-token]",
    ] {
        assert!(said.contains(marker), "{marker}\n{said}");
    }
    assert!(said.contains(&format!("LANYARD_SESSION={session}")), "ids stay\n{said}");
    let metrics = stage.daemon.request("GET", "/metrics", &[], None).text();
    let counted = metrics.lines().find(|line| line.starts_with("lanyard_redactions_total")).unwrap();
    assert!(counted.split(' ').nth(1).unwrap().parse::<u64>().unwrap() >= 3, "{counted}");
}

/// FND-K8: what a person wrote reaches the agent as it was written.
#[test]
fn fnd_k8_an_agent_gets_its_users_words_whole() {
    let stage = Stage::new(INHERITED);
    let session = stage.session();
    let key = format!("ghp_{}", "a1B2".repeat(9));
    stage.run(&session, &format!("printf %s {key} > got"));
    assert_eq!(stage.await_file("got"), key);
    let started = stage.log(&session).into_iter().find(|event| event["type"] == "turn.started").unwrap();
    assert!(started["data"]["prompt"].as_str().unwrap().contains(&key), "{started}");
}
