//! Runs under the real shim: real processes that obey, ignore, fork away and die, and nothing of them is left.

mod console;
mod ending;
mod kit;
mod spool;

use lanyard_agents::runs::{Adopted, How, LinkError, Sent};

use kit::{Stage, read_until, within};

#[tokio::test]
async fn output_goes_on_while_nobody_listens_and_every_byte_is_there() {
    let stage = Stage::new();
    let link = stage.start(&stage.run, "seq 1 1000; read go; seq 1001 100000; read bye; echo over").await;
    let mut output = link.output(0);
    let mut all = read_until(&mut output, b"\n1000\n").await;
    assert_eq!(link.send("go", b"go\n").await, Ok(Sent::First));
    let at = output.at();
    drop((link, output));

    let link = stage.adopt_live(&stage.run).await;
    let mut output = link.output(at);
    all.extend(read_until(&mut output, b"\n100000\n").await);
    assert_eq!(link.send("bye", b"bye\n").await, Ok(Sent::First));
    while let Some(piece) = within(output.next()).await.unwrap() {
        all.extend_from_slice(&piece);
    }
    let mut expected: Vec<u8> = (1..=100_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
    expected.extend_from_slice(b"over\n");
    assert!(all == expected, "{} bytes of {}", all.len(), expected.len());
    let exit = within(link.exited()).await;
    assert_eq!((exit.how, exit.output), (How::Exited(0), expected.len() as u64));

    // A later daemon finds the same in the folder.
    let Adopted::Ended(again) = stage.runs.adopt(&stage.run).await.unwrap() else { panic!("it has ended") };
    assert_eq!(again, exit);
    let mut kept = stage.runs.output(&stage.run, at).unwrap();
    let mut rest = Vec::new();
    while let Some(piece) = within(kept.next()).await.unwrap() {
        rest.extend_from_slice(&piece);
    }
    assert!(rest == expected[usize::try_from(at).unwrap()..]);
    stage.runs.forget(&stage.run).unwrap();
    assert_eq!(stage.runs.list().unwrap(), []);
}

#[tokio::test]
async fn input_reaches_the_agent_once_per_key_over_any_number_of_connections() {
    let stage = Stage::new();
    let link = stage.start(&stage.run, "cat").await;
    assert_eq!(link.send("k1", b"one\n").await, Ok(Sent::First));
    assert_eq!(link.send("k1", b"one\n").await, Ok(Sent::Repeated));
    drop(link);
    for _ in 0..3 {
        let link = stage.adopt_live(&stage.run).await;
        assert_eq!(link.send("k1", b"one\n").await, Ok(Sent::Repeated));
    }
    let link = stage.adopt_live(&stage.run).await;
    assert_eq!(link.send("k2", b"two\n").await, Ok(Sent::First));
    assert_eq!(link.send("k2", b"two\n").await, Ok(Sent::Repeated));
    link.close_input().await.unwrap();
    assert_eq!(within(link.exited()).await.how, How::Exited(0));
    assert_eq!(link.send("k3", b"three\n").await, Err(LinkError::Ended));
    assert_eq!(stage.spooled(&stage.run), b"one\ntwo\n");
}

#[tokio::test]
async fn an_agent_that_does_not_read_blocks_nobody() {
    let stage = Stage::new();
    let link = stage.start(&stage.run, "while [ ! -e go ]; do sleep 0.02; done; cksum").await;
    let half = vec![b'x'; 40 * 1024 * 1024];
    assert_eq!(within(link.send("k1", &half)).await, Ok(Sent::First));
    assert_eq!(within(link.send("k2", &half)).await, Err(LinkError::InputFull));
    assert_eq!(within(link.send("k3", &vec![0; 64 * 1024 * 1024 + 1])).await, Err(LinkError::TooLong));
    assert!(within(link.input_waiting()).await.unwrap() > 39 * 1024 * 1024);
    assert_eq!(within(link.send("k4", b"tail")).await, Ok(Sent::First));
    link.close_input().await.unwrap();
    assert_eq!(link.send("k5", b"late").await, Err(LinkError::InputClosed));
    stage.write("go");
    assert_eq!(within(link.exited()).await.how, How::Exited(0));
    let said = String::from_utf8(stage.spooled(&stage.run)).unwrap();
    assert_eq!(said.split(' ').nth(1).map(str::trim), Some("41943044"), "{said}");
}

#[tokio::test]
async fn the_newest_connection_counts_and_the_one_before_still_hears_of_the_end() {
    let stage = Stage::new();
    let first = stage.start(&stage.run, "cat").await;
    let second = stage.adopt_live(&stage.run).await;
    assert_eq!(within(second.send("k", b"x\n")).await, Ok(Sent::First));
    assert_eq!(within(first.send("k", b"x\n")).await, Err(LinkError::Disconnected));
    let mut output = first.output(0);
    second.close_input().await.unwrap();
    assert_eq!(within(first.exited()).await.how, How::Exited(0));
    assert_eq!(within(output.next()).await.unwrap().as_deref(), Some(b"x\n".as_slice()));
    assert_eq!(within(output.next()).await.unwrap(), None);
}

#[tokio::test]
async fn an_agent_that_is_over_at_once_is_seen_whole() {
    let stage = Stage::new();
    for number in 0..20 {
        let run = format!("{}_{number}", stage.run);
        let link = stage.start(&run, "echo hello; exit 4").await;
        assert_eq!(within(link.exited()).await.how, How::Exited(4));
        assert_eq!(within(link.output(0).next()).await.unwrap().as_deref(), Some(b"hello\n".as_slice()));
    }
}

#[tokio::test]
async fn an_agent_that_cannot_start_says_why_and_leaves_nothing() {
    let stage = Stage::new();
    let cases = [
        ("/nowhere/agent", "", "agent_program_missing"),
        ("no-such-agent-anywhere", "", "agent_program_missing"),
        ("./plain-file", "", "agent_not_executable"),
        ("sh", "gone", "agent_cwd_unusable"),
        ("sh", "plain-file", "agent_cwd_unusable"),
    ];
    stage.write("plain-file");
    for (program, cwd, code) in cases {
        let mut spec = stage.spec("exit 0");
        program.clone_into(&mut spec.argv[0]);
        spec.cwd = stage.work().join(cwd);
        let error = stage.runs.start(&stage.run, &serde_json::json!({}), &spec).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(stage.runs.list().unwrap(), [], "{error}");
    }
    let nobody = lanyard_agents::runs::Runs::new(stage.root(), "/nowhere/lanyard".into());
    let error = nobody.start(&stage.run, &serde_json::json!({}), &stage.spec("exit 0")).await.unwrap_err();
    assert_eq!(error.code(), "shim_failed", "{error}");
    for run in ["", "../run_a", "a/b", "."] {
        let error = stage.runs.start(run, &serde_json::json!({}), &stage.spec("exit 0")).await.unwrap_err();
        assert_eq!(error.code(), "shim_failed", "{error}");
    }
    assert_eq!(stage.runs.list().unwrap(), []);
    let _running = stage.start(&stage.run, "cat").await;
    let error =
        stage.runs.start(&stage.run, &serde_json::json!({}), &stage.spec("exit 0")).await.unwrap_err();
    assert_eq!(error.code(), "run_taken", "{error}");
    assert!(matches!(stage.runs.adopt(&stage.run).await, Ok(Adopted::Live(_))));
}

#[tokio::test]
async fn a_folder_with_a_very_long_path_works() {
    let stage = Stage::under(&"a-long-name/".repeat(20));
    assert!(stage.root().as_os_str().len() > 200);
    let link = stage.start(&stage.run, "cat").await;
    drop(link);
    let link = stage.adopt_live(&stage.run).await;
    link.send("k", b"far away\n").await.unwrap();
    link.close_input().await.unwrap();
    assert_eq!(within(link.exited()).await.how, How::Exited(0));
    assert_eq!(stage.spooled(&stage.run), b"far away\n");
}

#[tokio::test]
async fn the_agent_gets_its_environment_its_folder_and_its_marker() {
    let stage = Stage::new();
    let mut spec = stage.spec(r#"echo "$LANYARD_RUN $MINE ${HOME-unset}"; pwd; echo "$PWD""#);
    spec.clear_env = true;
    spec.env.insert("MINE".into(), "secret".into());
    assert!(!format!("{spec:?}").contains("secret"));
    let about = serde_json::json!({"session": "sess_1"});
    let link = stage.runs.start(&stage.run, &about, &spec).await.unwrap();
    assert_eq!(within(link.exited()).await.how, How::Exited(0));
    let work = stage.work().display().to_string();
    let said = String::from_utf8(stage.spooled(&stage.run)).unwrap();
    assert_eq!(said, format!("{} secret unset\n{work}\n{work}\n", stage.run));
    assert_eq!(stage.runs.list().unwrap()[0].about, Some(about));
}
