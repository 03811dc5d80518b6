//! Runs nobody needs, folders nobody can read, and a machine that was started anew.

use serde_json::{Value, json};

use super::kit::{Stage, kill_9, lives, state, wait};

/// The session ended; the daemon died before it ended the process.
#[test]
fn a_run_of_an_ended_session_is_ended() {
    let mut stage = Stage::new();
    let session = stage.session();
    stage.up_to("before_end:1");
    stage.prompt(&session, "/say done");
    stage.until(&session, |shown| shown["state"] == "between_turn");
    let agent = stage.agent();
    let _ = stage.try_post(&format!("/sessions/{session}/complete"), &json!({}));
    assert!(wait(|| !stage.daemon.is_alive()));
    assert!(lives(agent));
    stage.up();
    let shown = stage.until(&session, |shown| shown["run"]["phase"] == "ended");
    assert_eq!(shown["state"], "completed");
    assert!(!lives(agent));
    stage.nothing_is_left();
    stage.end();
}

/// The journal was put back from before the session: its run is nobody's.
#[test]
fn a_run_no_session_knows_is_ended() {
    let mut stage = Stage::new();
    stage.started("/fork-away sh -c 'echo $$ >> scattered; exec sleep 600'\n/touch began\n/wait-file never");
    stage.until_file("began");
    assert!(wait(|| !stage.pids("scattered").is_empty()));
    stage.daemon.kill_9();
    for entry in std::fs::read_dir(stage.daemon.home()).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().contains("journal") {
            std::fs::remove_file(path).unwrap();
        }
    }
    stage.up_anew();
    stage.nothing_is_left();
    assert!(!lives(stage.pids("scattered")[0]));
    stage.end();
}

#[test]
fn folders_of_garbage_are_swept() {
    let mut stage = Stage::new();
    let session = stage.started("/touch began\n/wait-file go\n/say done");
    stage.until_file("began");
    stage.daemon.kill_9();
    let runs = stage.daemon.home().join("runs");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
    let about = json!({"about": {"session": session, "agent": "scripted"}, "boot": boot}).to_string();
    let cases: [(&str, &[(&str, &str)]); 6] = [
        ("run_empty", &[]),
        (
            "run_noise",
            &[("run.json", "\u{0}\u{1}{{{"), ("shim.json", "[]"), ("exit.json", "x"), ("out", "hello")],
        ),
        ("run_deep", &[("run.json", "{\"about\": 7, \"boot\": []}"), ("exit.json", "{\"how\": \"odd\"}")]),
        ("run_claims", &[("run.json", &about)]),
        ("run_ended", &[("run.json", &about), ("exit.json", "{\"how\":{\"exited\":0}}"), ("out", "{}\n")]),
        (
            "run_shim",
            &[("run.json", &about), ("shim.json", "{\"shim\":{\"pid\":1,\"start\":1,\"boot\":\"x\"}}")],
        ),
    ];
    for (name, files) in cases {
        std::fs::create_dir(runs.join(name)).unwrap();
        for (file, text) in files {
            std::fs::write(runs.join(name).join(file), text).unwrap();
        }
    }
    std::fs::write(runs.join("a file"), "not a folder").unwrap();
    stage.up();
    assert!(wait(|| cases.iter().all(|(name, _)| !runs.join(name).exists())), "{:?}", stage.run_folders());
    std::fs::remove_file(runs.join("a file")).unwrap();
    // The real one went on beside them.
    stage.touch("go");
    let shown = stage.until_at_rest(&session);
    assert_eq!(shown["state"], "between_turn");
    assert_eq!(stage.events(&session, "run.started").len(), 1);
    stage.end();
}

#[test]
fn after_a_restart_of_the_machine_the_turn_is_lost_with_the_host() {
    let mut stage = Stage::new();
    let session = stage.started("/say hello\n/spawn child /wait-file never\n/touch began\n/wait-file never");
    stage.until_file("began");
    stage.until(&session, |_| stage.children(&session).len() == 1);
    let child = stage.children(&session).remove(0);
    stage.until(&child, |shown| !shown["active_turn"].is_null());
    stage.daemon.kill_9();
    let (agent, shim) = (stage.agent(), stage.shim());
    kill_9(shim);
    kill_9(agent);
    assert!(wait(|| !lives(agent) && !lives(shim)));
    let file = stage.run_folders().remove(0).join("run.json");
    let mut run: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    run["boot"] = json!("00000000-0000-0000-0000-000000000000");
    std::fs::write(&file, run.to_string()).unwrap();
    stage.up();
    for session in [&session, &child] {
        let shown = stage.until_at_rest(session);
        assert_eq!(state(&shown), "interrupted host_lost", "{:#?}", stage.log(session));
        assert_eq!(stage.events(session, "run.ended")[0]["data"]["how"], json!({"kind": "host_lost"}));
    }
    stage.nothing_is_left();
    stage.prompt(&session, "/recall");
    stage.until(&session, |shown| shown["state"] == "between_turn");
    stage.end();
}
