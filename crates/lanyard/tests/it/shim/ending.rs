//! Ending: whatever a run became, nothing of it is left, and the receipt says who was ended and how.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use lanyard_agents::runs::{Adopted, EndedBy, Exit, How, Identity};
use rustix::process::Signal;

use super::kit::{Stage, kill, kill_9, memory_kib, wait_for, within};
use crate::support::binary;

const LONG: Duration = Duration::from_mins(10);

/// Four ways to get away, and a main process that obeys.
const FAMILY: &str = r#"
    sh -c 'trap "" TERM; echo $$ > stubborn; while :; do sleep 0.02; done' &
    (setsid sh -c 'echo $$ > escaped; exec sleep 1000' &)
    (setsid env -i sh -c 'echo $$ > bare; exec sleep 1000' > /dev/null 2>&1 &)
    sh -c 'echo $$ > child; exec sleep 1000' &
    trap 'exit 7' TERM
    echo $$ > main
    while :; do sleep 0.02; done
"#;

fn family(stage: &Stage) -> Vec<(Identity, EndedBy)> {
    let obedient = ["escaped", "bare", "child", "main"].map(|name| (stage.process(name), EndedBy::Term));
    obedient.into_iter().chain([(stage.process("stubborn"), EndedBy::Kill)]).collect()
}

fn assert_ended(exit: &Exit, family: &[(Identity, EndedBy)]) {
    for (process, by) in family {
        assert!(!process.is_alive(), "{process:?}");
        let entry = exit.ended.iter().find(|entry| entry.pid == process.pid);
        assert_eq!(entry.map(|entry| entry.by), Some(*by), "{process:?} in {exit:#?}");
    }
}

#[tokio::test]
async fn everything_of_a_run_is_ended_however_it_got_away() {
    let stage = Stage::new();
    let link = stage.start(&stage.run, FAMILY).await;
    let family = family(&stage);
    link.end(Duration::from_millis(400)).await.unwrap();
    let exit = within(link.exited()).await;
    assert_eq!(exit.how, How::Exited(7));
    assert_ended(&exit, &family);
    let Adopted::Ended(kept) = stage.runs.adopt(&stage.run).await.unwrap() else { panic!("it has ended") };
    assert_eq!(kept, exit);
}

#[tokio::test]
async fn an_obedient_agent_ends_by_term_and_the_shim_leaves_no_zombie() {
    let stage = Stage::new();
    let link = stage.start(&stage.run, "exec sleep 1000").await;
    let shim = stage.shim(&stage.run);
    let agent = Identity::of(link.agent_pid()).unwrap().unwrap();
    link.end(LONG).await.unwrap();
    let exit = within(link.exited()).await;
    assert_eq!(exit.how, How::Signalled(15));
    assert_ended(&exit, &[(agent, EndedBy::Term)]);
    // Only the runtime of the test reaps, so give it the chance.
    within(async {
        while Identity::of(shim.pid).unwrap().is_some_and(|now| now.start == shim.start) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_second_order_with_a_shorter_grace_shortens_it() {
    let stage = Stage::new();
    let link = stage.start(&stage.run, "trap '' TERM; echo $$ > main; while :; do sleep 0.02; done").await;
    let main = stage.process("main");
    link.end(LONG).await.unwrap();
    link.end(LONG * 2).await.unwrap();
    assert!(main.is_alive());
    link.end(Duration::from_millis(10)).await.unwrap();
    let exit = within(link.exited()).await;
    assert_eq!(exit.how, How::Signalled(9));
    assert_ended(&exit, &[(main, EndedBy::Kill)]);
}

#[tokio::test]
async fn what_an_agent_leaves_behind_is_ended_when_it_exits() {
    let stage = Stage::new();
    let script = "setsid sh -c 'echo $$ > left; exec sleep 1000' &
                  while [ ! -s left ]; do sleep 0.02; done; read go; exit 3";
    let link = stage.start(&stage.run, script).await;
    let left = stage.process("left");
    link.send("go", b"go\n").await.unwrap();
    let exit = within(link.exited()).await;
    assert_eq!(exit.how, How::Exited(3));
    assert_eq!(exit.ended.len(), 1, "{exit:?}");
    assert_ended(&exit, &[(left, EndedBy::Term)]);
}

#[tokio::test]
async fn a_killed_agent_is_told_as_killed() {
    let stage = Stage::new();
    let link =
        stage.start(&stage.run, "(setsid sh -c 'echo $$ > left; exec sleep 1000' &); exec sleep 1000").await;
    let left = stage.process("left");
    kill_9(&Identity::of(link.agent_pid()).unwrap().unwrap());
    let exit = within(link.exited()).await;
    assert_eq!(exit.how, How::Signalled(9));
    assert_ended(&exit, &[(left, EndedBy::Term)]);
}

#[tokio::test]
async fn a_dead_shim_is_noticed_and_what_it_left_is_swept() {
    let stage = Stage::new();
    // Without a shim a process that has neither parent, session nor environment of the run is a stranger; one that
    // still has its parent is not.
    let script = "(setsid sh -c 'echo $$ > escaped; exec sleep 1000' &)
                  setsid env -i sh -c 'echo $$ > bare; exec sleep 1000' &
                  sh -c 'trap \"\" TERM; echo $$ > stubborn; while :; do sleep 0.02; done' &
                  echo $$ > main; while :; do sleep 0.02; done";
    let link = stage.start(&stage.run, script).await;
    let family: Vec<_> = ["escaped", "bare", "stubborn", "main"].map(|name| stage.process(name)).into();
    kill_9(&stage.shim(&stage.run));
    assert_eq!(within(link.exited()).await.how, How::Lost);
    let gone = stage.runs.adopt(&stage.run).await.unwrap();
    assert!(matches!(gone, Adopted::Gone { host_lost: false }), "{gone:?}");

    let ended = within(stage.runs.sweep(&stage.run, Duration::from_millis(300))).await.unwrap();
    for process in &family {
        assert!(!process.is_alive(), "{process:?}");
        assert!(ended.iter().any(|entry| entry.pid == process.pid), "{process:?} in {ended:#?}");
    }
    let Adopted::Ended(exit) = stage.runs.adopt(&stage.run).await.unwrap() else { panic!("it was swept") };
    assert_eq!((exit.how, exit.ended), (How::Lost, ended));
}

#[tokio::test]
async fn a_shim_that_hangs_is_swept_with_its_run() {
    let stage = Stage::new();
    let _link = stage.start(&stage.run, FAMILY).await;
    let family = family(&stage);
    let shim = stage.shim(&stage.run);
    kill(&shim, Signal::STOP);
    within(stage.runs.sweep(&stage.run, Duration::from_millis(100))).await.unwrap();
    assert!(family.iter().all(|(process, _)| !process.is_alive()));
    assert!(!shim.is_alive());
}

#[tokio::test]
async fn signals_do_not_end_the_shim_and_the_agent_does_not_inherit_its_deafness() {
    let stage = Stage::new();
    let link = stage.start(&stage.run, "cat").await;
    let shim = stage.shim(&stage.run);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::PIPE] {
        kill(&shim, signal);
    }
    within(link.send("k", b"x\n")).await.unwrap();
    assert!(shim.is_alive());
    let status = std::fs::read_to_string(format!("/proc/{}/status", link.agent_pid())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    // SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE.
    let ours = (1 << 14) | (1 << 1) | 1 | (1 << 2) | (1 << 12);
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & ours, 0, "{ignored}");
    println!("a shim at rest holds {} KiB", memory_kib(&shim, "VmRSS"));
}

#[tokio::test]
async fn a_run_inside_a_run_is_not_ended_with_it() {
    let stage = Stage::new();
    let script = "LANYARD_RUN=run_b setsid sh -c 'echo $$ > other; exec sleep 1000' & echo $$ > main; wait";
    let link = stage.start(&stage.run, script).await;
    let (other, main) = (stage.process("other"), stage.process("main"));
    link.end(Duration::from_millis(200)).await.unwrap();
    within(link.exited()).await;
    assert!(!main.is_alive());
    assert!(other.is_alive());
    kill(&other, Signal::KILL);
}

#[tokio::test]
async fn a_shim_that_comes_after_the_sweep_starts_nothing() {
    let stage = Stage::new();
    // A daemon that died just before it started the shim left this.
    let folder = stage.root().join(&stage.run);
    std::fs::create_dir_all(&folder).unwrap();
    assert!(matches!(stage.runs.adopt(&stage.run).await.unwrap(), Adopted::Gone { host_lost: false }));
    assert_eq!(stage.runs.sweep(&stage.run, Duration::ZERO).await.unwrap(), []);

    let spec = stage.spec("echo $$ > main");
    let mut late = Command::new(binary());
    late.arg("shim").arg(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut late = late.spawn().unwrap();
    late.stdin.take().unwrap().write_all(&serde_json::to_vec(&spec).unwrap()).unwrap();
    let said = late.wait_with_output().unwrap();
    assert!(!said.status.success());
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("given up before it began"), "{said}");
    assert!(!stage.work().join("main").exists());
}

#[tokio::test]
async fn a_run_of_another_boot_is_lost_with_its_host() {
    let stage = Stage::new();
    let folder = stage.root().join(&stage.run);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("run.json"), r#"{"about":{},"boot":"another"}"#).unwrap();
    // Of the machine's crash this is what was left of a file that was not synced.
    std::fs::write(folder.join("shim.json"), "").unwrap();
    assert!(matches!(stage.runs.adopt(&stage.run).await.unwrap(), Adopted::Gone { host_lost: true }));
    assert_eq!(stage.runs.sweep(&stage.run, Duration::ZERO).await.unwrap(), []);
}

#[tokio::test]
async fn a_crowd_of_forking_children_is_ended_too() {
    let stage = Stage::new();
    let script = "for i in 1 2 3 4 5; do (while :; do sh -c 'sleep 0.05' & sleep 0.02; done) & done
                  echo $$ > main; wait";
    let link = stage.start(&stage.run, script).await;
    let main = stage.process("main");
    link.end(Duration::ZERO).await.unwrap();
    let exit = within(link.exited()).await;
    assert!(!main.is_alive());
    assert!(exit.ended.len() >= 6, "{exit:?}");
    wait_for("the crowd to be gone", || !works_in(&stage.work()));
}

/// Whether any process works in the folder.
fn works_in(folder: &Path) -> bool {
    let ours = |entry: std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder)
    };
    std::fs::read_dir("/proc").unwrap().flatten().any(ours)
}
