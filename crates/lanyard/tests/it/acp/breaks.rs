//! Editors and daemons that go away in the middle of things. The session goes on, and nothing is lost or told twice.

use agent_client_protocol::v1::schema::StopReason;

use super::kit::{Stage, plain, story};

#[test]
fn an_editor_that_is_killed_leaves_its_turn_running() {
    let stage = Stage::new();
    let mut editor = stage.editor();
    let session = editor.new_session(&stage);
    let _pending = editor.send(&session, "/say working\n/touch began\n/wait-file go\n/say finished");
    stage.await_file("began");
    editor.kill_9();
    stage.touch("go");
    let shown = stage.at_rest(&session);
    assert_eq!(shown["state"], "between_turn", "{shown:#}");
    let again = stage.editor();
    again.load(&stage, &session).unwrap();
    let told = plain(&again.updates(&session));
    assert!(told.ends_with("agent_message: working\nagent_message: \n\nfinished\n"), "{told}");
}

#[test]
fn a_closed_editor_and_a_signal_only_detach() {
    let stage = Stage::new();
    for how in ["closed", "terminated", "interrupted"] {
        let mut editor = stage.editor();
        let session = editor.new_session(&stage);
        let pending = editor.send(&session, &format!("/touch {how}\n/wait-file go\n/say finished"));
        stage.await_file(how);
        let status = match how {
            "closed" => editor.close(),
            name => {
                let signal = if name == "terminated" {
                    rustix::process::Signal::TERM
                } else {
                    rustix::process::Signal::INT
                };
                rustix::process::kill_process(editor.pid(), signal).unwrap();
                editor.ended()
            }
        };
        assert!(status.success(), "{how}: {status}");
        assert!(pending.wait().is_err(), "{how}: nobody is there to answer");
        stage.touch("go");
        assert_eq!(stage.at_rest(&session)["state"], "between_turn", "{how}");
        std::fs::remove_file(stage.work().join("go")).unwrap();
    }
}

#[test]
fn a_daemon_killed_in_the_middle_of_a_turn_is_waited_for() {
    let mut stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let script =
        "/say before it\n/tool step {}\n/touch began\n/wait-file go\n/say behind it\n/tool last {}\n/say end";
    let pending = editor.send(&session, script);
    stage.await_file("began");
    editor.until(&session, "the first step", |told| told.contains("tool_call_update"));
    stage.daemon.kill_9();
    // The agent goes on meanwhile.
    stage.touch("go");
    stage.up();
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::EndTurn);
    let streamed = story(&editor.updates(&session));
    let other = stage.editor();
    other.load(&stage, &session).unwrap();
    let loaded = story(&other.updates(&session));
    let prompt = format!(": {script}\n");
    assert_eq!(loaded.split_once(&prompt).unwrap().1, streamed, "each update once, in order");
    // A second break between turns is noticed by nobody.
    stage.daemon.kill_9();
    stage.up();
    assert_eq!(editor.prompt(&session, "/say again").unwrap().stop_reason, StopReason::EndTurn);
}

#[test]
fn a_prompt_sent_while_the_daemon_is_away_runs_once() {
    let mut stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    editor.prompt(&session, "/say hello").unwrap();
    stage.daemon.kill_9();
    let pending = editor.send(&session, "/say! after all");
    stage.up();
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::EndTurn);
    assert_eq!(plain(&editor.updates(&session)), "agent_message: hello\nagent_message: after all\n");
    assert_eq!(stage.at_rest(&session)["turns"], 2);
}
