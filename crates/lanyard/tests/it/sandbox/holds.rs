//! What goes on working in a sandbox, and what is told of it.

use serde_json::json;

use super::kit::{RunBy, SmallMachine};
use crate::support::until;

/// The tools of the session, its workspace, git and the agent's own state are there at every level.
#[test]
fn an_agent_in_a_sandbox_can_do_its_work() {
    let script = "set -e\ncd $WORK\n\
        echo new > file\n\
        git -c user.name=a -c user.email=a@b add file\n\
        git -c user.name=a -c user.email=a@b commit -qm one\n\
        echo state > $HOME/.claude/history\n\
        echo '{\"a\":1}' > $HOME/.claude.json\n\
        echo mine > /tmp/mine && cat /tmp/mine\n\
        $L show $LANYARD_SESSION | head -1\n\
        echo done\n";
    for settings in ["sandbox = \"workspace\"", "sandbox = \"strict\"", "network = \"gateway\""] {
        let machine = SmallMachine::new(&format!("{settings}\n"), RunBy::Same);
        let session = machine.session(&json!({}));
        let printed = machine.run(&session, &format!("exec 2>&1\n{script}"));
        assert!(printed.ends_with("done\n"), "{settings}\n{printed}");
        assert!(printed.contains(&session), "{settings}\n{printed}");
        assert_eq!(std::fs::read_to_string(machine.path("home/.claude/history")).unwrap(), "state\n");
        assert_eq!(std::fs::read_to_string(machine.path("home/.claude.json")).unwrap(), "{\"a\":1}\n");
        assert!(machine.path("work/.git/refs/heads").read_dir().unwrap().next().is_some(), "a commit");
    }
}

/// What is attached to the session's messages can be read there and not changed; what belongs to others is not seen.
#[test]
fn an_agent_in_a_sandbox_reads_what_is_attached_to_its_messages() {
    let machine = SmallMachine::new("sandbox = \"strict\"\n", RunBy::Same);
    let kind = [("content-type", "text/plain")];
    let kept = machine.daemon.request("POST", "/api/v1/attachments", &kind, Some("remember the milk")).json();
    let parts = json!([{ "kind": "attachment", "id": kept["id"], "name": "notes.txt" }]);
    let session = machine.session(&json!({}));
    let script = "exec 2>&1\nshown=$DATA/attachments/shown/$LANYARD_SESSION\ncat $shown/*-notes.txt; echo\n\
        ls $DATA/attachments $DATA/attachments/shown | tr '\\n' ' '; echo\n\
        (echo changed > $shown/*-notes.txt) 2> /dev/null || echo refused\nexit\n";
    let printed = machine.run_with(&session, script, &parts);
    assert!(printed.starts_with("remember the milk\n"), "{printed}");
    assert!(printed.ends_with("refused\n") && !printed.contains("content"), "{printed}");
}

/// The record, `show` and the log say what holds.
#[test]
fn a_session_says_which_sandbox_holds() {
    let machine = SmallMachine::new("", RunBy::Same);
    let session = machine.session(&json!({ "sandbox": "strict", "network": "gateway" }));
    machine.run(&session, "echo hello");
    let held = machine.show(&session)["run"]["sandbox"].clone();
    let mut bare = held.clone();
    let weaker = bare.as_object_mut().unwrap().remove("weaker").unwrap();
    assert_eq!(bare, json!({ "level": "strict", "mechanism": "bubblewrap", "network": "gateway" }));
    // The home folder has one of the two files of settings.
    assert_eq!(weaker.as_array().unwrap().len(), 1, "{weaker}");
    let shown = machine.daemon.lanyard(&["show", &session]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("strict by bubblewrap, network gateway only"), "{text}");
    let started = machine.daemon.log_after(&session, 0);
    let started = started.iter().find(|event| event["type"] == "run.started").unwrap();
    assert_eq!(started["data"]["sandbox"], held);
    let open = machine.session(&json!({}));
    machine.run(&open, "echo hello");
    assert!(machine.show(&open)["run"].get("sandbox").is_none());
}

/// A child is never in less of a sandbox than its parent, whatever it asks for.
#[test]
fn a_child_is_never_in_less_than_its_parent() {
    let machine = SmallMachine::new("", RunBy::Same);
    let parent = machine.session(&json!({ "sandbox": "workspace", "network": "gateway" }));
    let child = machine.session(&json!({ "parent": parent, "sandbox": "off", "network": "all" }));
    machine.run(&child, "echo hello");
    let held = machine.show(&child)["run"]["sandbox"].clone();
    assert_eq!((&held["level"], &held["network"]), (&json!("workspace"), &json!("gateway")));
    // Nor does it get a folder that its parent has not.
    let elsewhere = machine.session(&json!({ "parent": parent, "workspace": machine.path("out") }));
    machine.begin(&elsewhere, "echo hello");
    let shown = machine.until(&elsewhere, |shown| shown["run"]["phase"] == "ended");
    let log = machine.daemon.log_after(&elsewhere, 0);
    let ended = log.iter().find(|event| event["type"] == "run.ended").unwrap();
    assert_eq!(ended["data"]["how"]["code"], "sandbox_impossible", "{shown:#}");
}

/// A stop ends all of it, also what left its parent, its group and its environment.
#[test]
fn a_stop_ends_what_hides_from_it() {
    let machine = SmallMachine::new("sandbox = \"workspace\"\n", RunBy::Same);
    let session = machine.session(&json!({}));
    // Each line that the hidden process writes says that it lives.
    let hidden = "while :; do date +%s%N > $WORK/alive; sleep 0.05; done";
    machine.begin(
        &session,
        &format!("WORK=$WORK setsid -f sh -c 'trap \"\" TERM; exec env -i WORK=$WORK PATH=$PATH sh -c \"{}\"'\nsleep 600", hidden.replace('$', "\\$")),
    );
    let alive = machine.path("work/alive");
    assert!(until(|| alive.exists()), "it did not begin: {:#}", machine.show(&session));
    let stopped = machine.post(&format!("/sessions/{session}/stop"), &json!({ "now": true }));
    assert!(stopped.status < 300, "{}", stopped.text());
    machine.until(&session, |shown| shown["state"] == "stopped");
    std::fs::remove_file(&alive).unwrap();
    // sleep: what is looked for is that nothing happens in a time in which it would twenty times.
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(!alive.exists(), "a process outlived the stop");
}

/// The sandbox's network is none, and the agent reaches its tools all the same, also with the next daemon.
#[test]
fn an_agent_outlives_the_daemon_and_goes_on_in_its_sandbox() {
    let mut machine = SmallMachine::new("network = \"gateway\"\n", RunBy::Same);
    let session = machine.session(&json!({}));
    machine.begin(
        &session,
        "cd $WORK; echo > begun; while ! test -e go; do sleep 0.05; done; $L show $LANYARD_SESSION | head -1; echo > ended",
    );
    assert!(until(|| machine.path("work/begun").exists()));
    machine.daemon.kill_9();
    machine.daemon.try_start().unwrap();
    std::fs::write(machine.path("work/go"), "").unwrap();
    machine.until(&session, |shown| shown["run"]["phase"] == "ended");
    assert!(machine.path("work/ended").exists());
    let log = machine.daemon.log_after(&session, 0);
    assert!(log.iter().any(
        |event| event["type"] == "message" && event["data"]["text"].as_str().unwrap().contains(&session)
    ));
}

/// A workspace that would show Lanyard's own files, and a machine that can give no sandbox, are refused by a code.
#[test]
fn what_cannot_be_given_is_refused() {
    let machine = SmallMachine::new("sandbox = \"workspace\"\n", RunBy::Same);
    let session = machine.session(&json!({ "workspace": machine.daemon.home() }));
    machine.begin(&session, "echo hello");
    machine.until(&session, |shown| shown["run"]["phase"] == "ended");
    let log = machine.daemon.log_after(&session, 0);
    let ended = log.iter().find(|event| event["type"] == "run.ended").unwrap();
    assert_eq!(ended["data"]["how"], json!({ "kind": "not_started", "code": "sandbox_impossible" }));
    let bad = machine.post("/sessions", &json!({ "agent": "claude", "network": ["http://a.org/"] }));
    assert_eq!((bad.status, bad.code().as_str()), (422, "sandbox_host_invalid"));
}

/// A list of hosts is all that can be reached, by name and port, through the proxy that the variables name.
#[test]
fn a_list_of_hosts_is_reached_and_nothing_else() {
    let machine = SmallMachine::new("", RunBy::Same);
    let list = [format!("127.0.0.1:{}", machine.port())];
    let session = machine.session(&json!({ "network": list }));
    let ask = "perl -MIO::Socket::INET -e '\
        my ($proxy) = $ENV{HTTPS_PROXY} =~ m{^http://(.*)$}; \
        my $s = IO::Socket::INET->new($proxy) or die; \
        print $s \"$ARGV[0] HTTP/1.1\\r\\n\\r\\n\"; print scalar <$s>;'";
    let script = format!(
        "exec 2>&1\n{ask} \"CONNECT 127.0.0.1:$TPORT\"\n{ask} \"CONNECT 127.0.0.1:$DPORT\"\n\
         {ask} \"CONNECT localhost:$TPORT\"\n{ask} \"GET http://127.0.0.1:$TPORT/\"\n\
         perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(\"127.0.0.1:$ENV{{TPORT}}\") ? \"past\\n\" : \"not past\\n\"'\n\
         $L show $LANYARD_SESSION | head -1\n"
    );
    let printed = machine.run(&session, &script);
    let lines: Vec<&str> = printed.lines().map(str::trim_end).collect();
    assert_eq!(
        lines[..5],
        [
            "HTTP/1.1 200 Connection established",
            "HTTP/1.1 403 Forbidden",
            "HTTP/1.1 403 Forbidden",
            "HTTP/1.1 405 Method Not Allowed",
            "not past",
        ],
        "{printed}"
    );
    assert!(lines[5].contains(&session), "{printed}");
    assert_eq!(machine.show(&session)["run"]["sandbox"]["network"], json!(list));
}
