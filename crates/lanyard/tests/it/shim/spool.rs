//! The spool: bounded, patient with a disk that fails, and honest when it gives up.

use std::os::unix::fs::MetadataExt;

use lanyard_agents::runs::{How, SpoolLimits};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::kit::{Stage, memory_kib, read_until, wait_for, within};

const MIB: u64 = 1024 * 1024;

#[tokio::test]
async fn an_agent_waits_when_too_much_lies_unread_and_nothing_is_lost() {
    let stage = Stage::new();
    let mut spec = stage.spec("yes | head -c 8000000; touch done");
    spec.limits.spool_max = MIB;
    let link = stage.start_spec(&stage.run, &spec).await;
    let len = || std::fs::metadata(stage.file(&stage.run, "out")).unwrap().len();
    wait_for("a full spool", || len() >= MIB);
    assert_eq!(link.input_waiting().await, Ok(0), "it still answers");
    assert!(len() < MIB + 64 * 1024, "{}", len());
    assert!(!stage.work().join("done").exists());

    let mut output = link.output(0);
    let mut read = 0;
    while let Some(piece) = within(output.next()).await.unwrap() {
        assert!(piece.iter().enumerate().all(|(at, byte)| *byte == b"y\n"[(read + at) % 2]));
        read += piece.len();
        link.consumed(output.at());
    }
    assert_eq!(read, 8_000_000);
    assert_eq!(within(link.exited()).await.how, How::Exited(0));
    let file = std::fs::metadata(stage.file(&stage.run, "out")).unwrap();
    println!("of {} bytes {} are on disk", file.len(), file.blocks() * 512);
}

#[tokio::test]
async fn a_later_daemon_learns_what_was_consumed() {
    let stage = Stage::new();
    let link = stage.start(&stage.run, "echo 0123456789; cat").await;
    read_until(&mut link.output(0), b"9\n").await;
    link.consumed(5);
    link.consumed(3);
    link.send("k", b"x\n").await.unwrap();
    drop(link);
    let link = stage.adopt_live(&stage.run).await;
    assert_eq!(link.consumed_to(), 5);
    let gone = within(link.output(4).next()).await.unwrap_err();
    assert!(gone.to_string().contains("output before 5 was consumed"), "{gone}");
    assert_eq!(within(link.output(5).next()).await.unwrap().unwrap()[0], b'5');
    assert!(stage.runs.forget(&stage.run).is_err(), "it still runs");
    link.close_input().await.unwrap();
    within(link.exited()).await;
    assert!(within(stage.runs.output(&stage.run, 4).unwrap().next()).await.is_err());
    assert!(within(stage.runs.output(&stage.run, 5).unwrap().next()).await.is_ok());
}

#[tokio::test]
async fn without_a_place_for_the_spool_the_agent_is_ended_and_the_error_told() {
    let stage = Stage::limited("ulimit -f 128");
    let mut spec = stage.spec("yes");
    spec.limits = SpoolLimits { spool_patience_ms: 300, ..SpoolLimits::default() };
    let link = stage.start_spec(&stage.run, &spec).await;
    let exit = within(link.exited()).await;
    assert!(exit.spool_error.is_some(), "{exit:?}");
    assert_eq!(exit.output, std::fs::metadata(stage.file(&stage.run, "out")).unwrap().len());
    assert!(exit.ended.iter().any(|entry| entry.name == "yes"), "{exit:?}");
    let mut output = link.output(0);
    let mut read = 0;
    while let Some(piece) = within(output.next()).await.unwrap() {
        read += piece.len() as u64;
    }
    assert_eq!(read, exit.output);
}

#[tokio::test]
async fn a_disk_that_recovers_in_time_loses_nothing() {
    let stage = Stage::limited("ulimit -S -f 128");
    let link = stage.start(&stage.run, "seq 1 100000").await;
    let shim = Pid::from_raw(i32::try_from(stage.shim(&stage.run).pid).unwrap()).unwrap();
    let out = stage.file(&stage.run, "out");
    wait_for("the limit", || std::fs::metadata(&out).is_ok_and(|meta| meta.len() == 64 * 1024));
    let free =
        Rlimit { current: getrlimit(Resource::Fsize).maximum, maximum: getrlimit(Resource::Fsize).maximum };
    prlimit(Some(shim), Resource::Fsize, free).unwrap();
    let exit = within(link.exited()).await;
    assert_eq!((exit.how, exit.spool_error), (How::Exited(0), None));
    let expected: Vec<u8> = (1..=100_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
    assert!(stage.spooled(&stage.run) == expected);
}

#[tokio::test]
async fn of_stderr_the_newest_is_kept() {
    let stage = Stage::new();
    let link = stage.start(&stage.run, "seq 1 400000 >&2; echo 'last words' >&2; exit 1").await;
    assert_eq!(within(link.exited()).await.how, How::Exited(1));
    let tail = link.stderr_tail();
    assert!(tail.ends_with("399999\n400000\nlast words\n"), "{}", &tail[tail.len() - 100..]);
    assert!(tail.len() >= 16 * 1024);
    let size = |name| std::fs::metadata(stage.file(&stage.run, name)).unwrap().len();
    assert!(size("err") + size("err.old") <= 2 * (128 + 64) * 1024);
    assert_eq!(stage.runs.stderr_tail(&stage.run).unwrap(), tail);
}

#[tokio::test]
async fn endless_output_without_a_line_does_not_grow_the_shim() {
    let stage = Stage::new();
    let link = stage.start(&stage.run, "read go; head -c 50000000 /dev/zero; read bye").await;
    let shim = stage.shim(&stage.run);
    let before = memory_kib(&shim, "VmRSS");
    link.send("go", b"go\n").await.unwrap();
    let mut output = link.output(0);
    while output.at() < 50_000_000 {
        within(output.next()).await.unwrap().expect("more output");
        link.consumed(output.at());
    }
    let most = memory_kib(&shim, "VmHWM");
    println!("{before} KiB before, {most} KiB at most");
    assert!(most < before + 4 * 1024, "{before} KiB before, {most} KiB at most");
    link.send("bye", b"bye\n").await.unwrap();
    assert_eq!(within(link.exited()).await.how, How::Exited(0));
}
