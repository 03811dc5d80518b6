//! `lanyard resume`: the way back to an agent, and what it still knows.

use serde_json::json;

use super::stage::{Stage, text};

/// The agent's process is gone as soon as nobody asks anything of it.
const SHORT_LIVED: &str = "keep_alive_ms = 50";

fn ended(stage: &Stage, session: &str) {
    stage.until(session, |shown| shown["run"]["phase"] == "ended");
}

#[test]
fn resume_says_how_the_conversation_goes_on() {
    let stage = Stage::new();
    let session = stage.detached("/say hello there");
    stage.until_at_rest(&session);
    let same = stage.lanyard(&["resume", &session]);
    assert_eq!(text(&same.stderr), "the agent is there, continuity exact: the same process\n");
    assert_eq!(same.status.code(), Some(0));

    let stage = Stage::with(&[], SHORT_LIVED);
    let session = stage.detached("/say hello there");
    stage.until_at_rest(&session);
    ended(&stage, &session);
    let back = stage.lanyard(&["resume", &session, "--prompt", "/recall"]);
    assert_eq!(back.status.code(), Some(0), "{}", text(&back.stderr));
    assert!(text(&back.stderr).contains("continuity native"), "{}", text(&back.stderr));
    assert!(text(&back.stdout).contains('1'), "it knows the first prompt: {}", text(&back.stdout));
}

#[test]
fn a_conversation_that_is_lost_is_told_and_not_silently_begun_anew() {
    for flag in ["--refuse-resume", "--resume-empty"] {
        let stage = Stage::with(&[flag], SHORT_LIVED);
        let session = stage.detached("/say hello there");
        stage.until_at_rest(&session);
        ended(&stage, &session);
        let back = stage.lanyard(&["resume", &session]);
        assert_eq!(back.status.code(), Some(1), "{flag}: {}", text(&back.stderr));
        assert!(text(&back.stderr).contains("continuity lost"), "{flag}: {}", text(&back.stderr));
        let back = stage.lanyard(&["resume", &session, "--way", "native", "--way", "preamble"]);
        assert_eq!(back.status.code(), Some(0), "{flag}: {}", text(&back.stderr));
        assert!(text(&back.stderr).contains("continuity preamble"), "{flag}: {}", text(&back.stderr));
    }
}

#[test]
fn a_session_whose_agent_is_not_run_here_is_not_resumed() {
    let stage = Stage::new();
    for body in [json!({}), json!({"agent": "somebody-elses", "driven_by": "nobody"})] {
        let session = stage.post("/sessions", &body).json()["session"].as_str().unwrap().to_owned();
        let refused = stage.post(&format!("/sessions/{session}/resume"), &json!({}));
        assert_eq!((refused.status, refused.code()), (409, "agent_not_configured".to_owned()));
    }
    let session = stage.detached("/wait-file go");
    let busy = stage.post(&format!("/sessions/{session}/resume"), &json!({}));
    assert_eq!(busy.code(), "turn_rejected_busy");
    let bad = stage.post(&format!("/sessions/{session}/resume"), &json!({"ways": ["magic"]}));
    assert_eq!(bad.code(), "body_invalid");
}
