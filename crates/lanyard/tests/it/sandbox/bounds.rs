//! Bounds on what a run may use: held, told, never widened, and refused where nothing can hold them; and the control group
//! of a run, in which a stop finds everything.
//!
//! Control groups need cgroup v2 and a user who can make groups. Tests of them say so where they cannot be.

use std::path::Path;

use serde_json::{Value, json};

use super::kit::{OwnGroup, RunBy, SmallMachine};
use crate::support::until;

/// Writes its number and that it lives, with nothing left of its environment, its parent, its session and its group.
const HIDDEN: &str = "setsid -f env -i WORK=$WORK PATH=$PATH sh -c 'trap \"\" TERM HUP; setsid -f sh -c \"trap \\\"\\\" TERM HUP; \
    echo \\$\\$ > \\$WORK/hidden; while :; do date +%s%N > \\$WORK/alive; sleep 0.05; done\"'\n";

fn end_of(machine: &SmallMachine, session: &str) -> Value {
    machine.until(session, |shown| shown["run"]["phase"] == "ended");
    let log = machine.daemon.log_after(session, 0);
    log.into_iter().rfind(|event| event["type"] == "run.ended").unwrap()["data"].clone()
}

#[test]
fn a_run_without_a_sandbox_is_held_by_the_limits_of_its_processes() {
    let machine =
        SmallMachine::new("bounds = { memory_mib = 128, open_files = 64, file_mib = 1 }\n", RunBy::Same);
    let session = machine.session(&json!({}));
    let printed = machine.run(
        &session,
        "exec 2>&1\nulimit -n; ulimit -f\nperl -e '$x = \"a\" x (200 << 20)' && echo much\n\
         $L show $LANYARD_SESSION | head -1\ncd $WORK; head -c 3000000 /dev/zero > big || echo refused\n",
    );
    // Of 512 bytes each.
    assert!(printed.starts_with("64\n2048\n") && !printed.contains("much"), "{printed}");
    assert!(printed.contains(&session) && printed.ends_with("refused\n"), "{printed}");
    assert_eq!(machine.path("work/big").metadata().unwrap().len(), 1 << 20);
    let held = machine.show(&session)["run"]["sandbox"].clone();
    assert_eq!(
        held["bounds"][0],
        json!({ "what": "memory", "amount": 128, "limit": "128 MiB", "by": "rlimit" })
    );
    assert!(held["weaker"][0].as_str().unwrap().starts_with("memory is bounded for each process"), "{held}");
    let shown = machine.daemon.lanyard(&["show", &session]);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(
        text.contains("off, memory 128 MiB by rlimit, open files 64 by rlimit, file size 1 MiB by rlimit"),
        "{text}"
    );
}

/// The signal of the kernel for a file that may not grow is told with the bound that it comes from.
#[test]
fn an_agent_that_a_bound_ends_says_so_in_its_end() {
    let machine = SmallMachine::new("bounds = { file_mib = 1 }\n", RunBy::Same);
    let session = machine.session(&json!({}));
    machine.begin(&session, "cd $WORK; exec head -c 3000000 /dev/zero > big");
    let end = end_of(&machine, &session);
    assert_eq!(end["how"], json!({ "kind": "signalled", "signal": 25 }), "{end}");
    assert!(
        end["reason"].as_str().unwrap().contains("it wrote more than its bound of 1 MiB to a file"),
        "{end}"
    );
}

#[test]
fn a_bound_that_nothing_can_hold_refuses_the_run_unless_best_effort_is_set() {
    let machine = SmallMachine::new("bounds = { cpu_percent = 50 }\n", RunBy::Same);
    let session = machine.session(&json!({}));
    machine.begin(&session, "echo > $WORK/ran");
    let end = end_of(&machine, &session);
    assert_eq!(end["how"], json!({ "kind": "not_started", "code": "bounds_unavailable" }), "{end}");
    assert!(end["reason"].as_str().unwrap().contains("`cpu_percent` needs a cgroup"), "{end}");
    assert!(!machine.path("work/ran").exists());
    assert!(machine.show(&session)["last_turn"]["outcome"] != "completed");

    let lenient = SmallMachine::new("bounds = { cpu_percent = 50, mode = \"best_effort\" }\n", RunBy::Same);
    let session = lenient.session(&json!({}));
    lenient.run(&session, "echo > $WORK/ran");
    let held = lenient.show(&session)["run"]["sandbox"].clone();
    assert!(held["weaker"][0].as_str().unwrap().starts_with("not bounded: `cpu_percent`"), "{held}");
    assert!(lenient.path("work/ran").exists());

    let bad = lenient.post("/sessions", &json!({ "agent": "claude", "bounds": { "memory_mib": 1 } }));
    assert_eq!((bad.status, bad.code().as_str()), (422, "bound_too_small"));
}

/// Of the settings, the session and the sessions above, the smallest of each holds.
#[test]
fn a_child_never_uses_more_than_its_parent() {
    let machine = SmallMachine::new("bounds = { open_files = 300 }\n", RunBy::Same);
    let parent = machine.session(&json!({ "bounds": { "open_files": 100, "memory_mib": 512 } }));
    let asked = json!({ "parent": parent, "bounds": { "open_files": 200, "memory_mib": 256 } });
    let child = machine.session(&asked);
    let printed = machine.run(&child, "ulimit -n; ulimit -d");
    assert_eq!(printed, "100\n262144\n");
    let stranger = machine.session(&json!({}));
    assert_eq!(machine.run(&stranger, "ulimit -n"), "300\n");
    let linked = machine.post(&format!("/sessions/{stranger}/parent"), &json!({ "parent": parent }));
    assert_eq!((linked.status, linked.code().as_str()), (409, "policy_wider"), "{}", linked.text());
}

/// In a sandbox the kernel counts the processes of a plain user for that sandbox alone.
#[test]
fn a_plain_user_s_fork_bomb_stays_in_its_bound() {
    let settings = "sandbox = \"workspace\"\nbounds = { processes = 40 }\n";
    let user = if rustix::process::geteuid().is_root() { RunBy::Plain } else { RunBy::Same };
    let machine = SmallMachine::new(settings, user);
    let session = machine.session(&json!({}));
    let bomb = "my $n = 0; for (1 .. 200) { my $p = fork; last unless defined $p; \
        if (!$p) { sleep 60; exit } $n++ } print \"$n\\n\"";
    let again = "perl -e 'exit(defined(fork) ? 0 : 1)' || echo refused";
    let printed = machine.run(&session, &format!("exec 2>&1\nperl -e '{bomb}'\n{again}\n"));
    let begun: u32 = printed.lines().next().unwrap().parse().unwrap();
    assert!((20..40).contains(&begun), "{printed}");
    assert!(printed.contains("refused") || printed.contains("fork"), "{printed}");
    let held = machine.show(&session)["run"]["sandbox"]["bounds"][0].clone();
    assert_eq!((&held["what"], &held["by"]), (&json!("processes"), &json!("rlimit")), "{held}");
    // Another run counts anew, and nothing is left of the first.
    let next = machine.session(&json!({}));
    assert_eq!(machine.run(&next, "perl -e 'print defined(fork) ? 1 : 0'"), "11");
}

fn skipped(what: &str) {
    eprintln!("this user can make no cgroup here: {what} was not tried");
}

/// Ends a run whose supervisor was killed, with a process that hides from everything but its control group.
fn hide(group: Option<&OwnGroup>) -> (SmallMachine, bool) {
    let machine = match group {
        Some(group) => SmallMachine::grouped("", group),
        None => SmallMachine::new("", RunBy::Same),
    };
    let session = machine.session(&json!({}));
    machine.begin(&session, &format!("{HIDDEN}sleep 600"));
    let alive = machine.path("work/alive");
    assert!(until(|| alive.exists()), "it did not begin: {:#}", machine.show(&session));
    let runs = machine.daemon.home().join("runs");
    let run = runs.read_dir().unwrap().next().unwrap().unwrap().path();
    let shim: Value = serde_json::from_slice(&std::fs::read(run.join("shim.json")).unwrap()).unwrap();
    let pid = i32::try_from(shim["shim"]["pid"].as_i64().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    machine.until(&session, |shown| shown["run"]["phase"] == "ended");
    std::fs::remove_file(&alive).unwrap();
    // sleep: what is looked for is that nothing happens in a time in which it would twenty times.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let lives = alive.exists();
    let text = std::fs::read_to_string(machine.path("work/hidden")).unwrap();
    if lives {
        let pid = rustix::process::Pid::from_raw(text.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    (machine, lives)
}

/// FND-K3: what left its parent, its session, its group and its environment, when the supervisor was killed as well, is
/// found by the group alone.
#[test]
fn fnd_k3_nothing_outlives_a_run_with_a_group() {
    let (machine, lives) = hide(None);
    assert!(lives, "nothing else finds it, or the test shows nothing");
    drop(machine);
    let Some(group) = OwnGroup::make() else { return skipped("the end of a hidden process") };
    let (machine, lives) = hide(Some(&group));
    assert!(!lives, "a process outlived its run: {}", machine.daemon.stderr());
    assert!(until(|| group.names() == ["daemon"]), "{:?}", group.names());
    drop(machine);
}

/// Groups of runs end with them, those that a crash left behind with the next start, and others are left alone.
#[test]
fn groups_are_made_and_removed_with_runs() {
    let Some(group) = OwnGroup::make() else { return skipped("the life of a group") };
    let mut machine = SmallMachine::grouped("sandbox = \"workspace\"\n", &group);
    let session = machine.session(&json!({}));
    machine.begin(&session, "cat /proc/self/cgroup > $WORK/groups; echo > $WORK/begun; sleep 600");
    assert!(until(|| machine.path("work/begun").exists()), "{:#}", machine.show(&session));
    let run = machine.show(&session)["run"]["id"].as_str().unwrap().to_owned();
    let made = group.names();
    assert!(
        made.len() == 2 && made.iter().any(|name| run.ends_with(name.as_str()) || name.ends_with(&run)),
        "{made:?} {run}"
    );
    let own = std::fs::read_to_string(machine.path("work/groups")).unwrap();
    assert!(own.lines().any(|line| line == "0::/"), "the sandbox shows no more than its own group: {own}");
    std::fs::create_dir(group.base().join("run_left")).unwrap();
    std::fs::create_dir(group.base().join("other")).unwrap();
    machine.daemon.kill_9();
    machine.daemon.try_start().unwrap();
    assert!(until(|| !group.base().join("run_left").exists()), "{:?}", group.names());
    assert_eq!(group.names().len(), 3, "{:?}", group.names());
    let stopped = machine.post(&format!("/sessions/{session}/stop"), &json!({ "now": true }));
    assert!(stopped.status < 300, "{}", stopped.text());
    machine.until(&session, |shown| shown["state"] == "stopped");
    assert!(until(|| group.names() == ["daemon", "other"]), "{:?}", group.names());
    drop(machine);
}

fn has(group: &Path, wanted: &str) -> bool {
    let text = std::fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
    text.split_whitespace().any(|one| one == wanted)
}

/// The group holds a run as a whole, the log tells of each time, and so does the end.
#[test]
fn a_group_holds_all_of_a_run_together_and_the_log_tells_of_it() {
    let group = OwnGroup::make().filter(|group| has(group.base(), "memory") && has(group.base(), "pids"));
    let Some(group) = group else { return skipped("memory and processes by a group") };
    let settings = "bounds = { memory_mib = 64, processes = 30, cpu_percent = 80 }\n";
    let machine = SmallMachine::grouped(settings, &group);
    let session = machine.session(&json!({}));
    let printed = machine.run(
        &session,
        "exec 2>&1\nfor n in 1 2 3 4; do perl -e '$x = \"a\" x (30 << 20); sleep 2; print \"one\\n\"' & done; wait\n\
         perl -e 'my $n = 0; for (1 .. 100) { my $p = fork; last unless defined $p; exit sleep 1 unless $p; $n++ } print \"forked $n\\n\"'\n",
    );
    assert!(printed.matches("one\n").count() < 4, "{printed}");
    let forked = printed.lines().find_map(|line| line.strip_prefix("forked ")).unwrap();
    assert!(forked.parse::<u32>().unwrap() < 30, "{printed}");
    let held = machine.show(&session)["run"]["sandbox"].clone();
    let by: Vec<&str> =
        held["bounds"].as_array().unwrap().iter().map(|one| one["by"].as_str().unwrap()).collect();
    assert_eq!(by, ["cgroup"; 3], "{held}");
    let log = machine.daemon.log_after(&session, 0);
    let met: Vec<&Value> = log.iter().filter(|event| event["type"] == "run.bound_met").collect();
    assert!(met.iter().any(|event| event["data"]["what"] == "memory"), "{met:?}");
    assert!(met.iter().any(|event| event["data"]["what"] == "processes"), "{met:?}");

    let session = machine.session(&json!({}));
    machine.begin(&session, "exec perl -e 'push @x, \"a\" x (1 << 20) for 1 .. 200'");
    let end = end_of(&machine, &session);
    assert_eq!(end["how"], json!({ "kind": "signalled", "signal": 9 }), "{end}");
    assert!(end["reason"].as_str().unwrap().contains("reached its bound of 64 MiB of memory"), "{end}");
    drop(machine);
}
