//! Reading what sessions did: the transcript, the diff, and what needs a person.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::stage::{Stage, text};
use crate::support::binary;

fn command(stage: &Stage, words: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command
        .args(words)
        .env("LANYARD_DATA_DIR", stage.daemon.home())
        .env("LANYARD_CONFIG", stage.daemon.config())
        .env("LANYARD_NO_START", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn typed(stage: &Stage, words: &[&str], lines: &str) -> Output {
    let mut child = command(stage, words).spawn().unwrap();
    // A command that has read enough does not read on.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    child.wait_with_output().unwrap()
}

#[track_caller]
fn ok(stage: &Stage, words: &[&str]) -> String {
    let output = stage.lanyard(words);
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The transcript without times: `[TIME]` stands for each.
fn timeless(shown: &str) -> String {
    let is_time =
        |word: &str| word.len() == 8 && word.bytes().all(|byte| byte == b':' || byte.is_ascii_digit());
    let line = |line: &str| match line.split_at_checked(8) {
        Some((time, rest)) if is_time(time) => format!("[TIME]{rest}\n"),
        _ => format!("{line}\n"),
    };
    shown.lines().map(line).collect()
}

/// A transcript has speakers with their words, tools with results, diffs and ends of turns; `--full` the output too.
#[test]
fn fnd_n16_a_session_reads_as_a_transcript() {
    let stage = Stage::new();
    let script = "/think let me see\n/say! I will look.\n/run printf 'one\\ntwo\\n'\n/edit new.txt fresh\n/say! All done.";
    let session = stage.detached(script);
    stage.until_at_rest(&session);
    assert!(stage.lanyard(&["send", &session, "/say! <b>the second answer</b>"]).status.success());
    let shown = timeless(&ok(&stage, &["log", &session]));
    for line in [
        "[TIME]  ┊ let me see\n",
        "[TIME]  scripted: I will look.\n",
        "[TIME]  · run printf 'one\\ntwo\\n': ok, 2 lines\n",
        "            │ + fresh\n",
        "[TIME]  scripted: All done.\n",
        "[TIME]  ── completed after ",
        "[TIME]  scripted: <b>the second answer</b>\n",
    ] {
        assert!(shown.contains(line), "{line:?} is missing in\n{shown}");
    }
    assert!(shown.contains(": /think let me see\n"), "the prompt is whole, with its speaker:\n{shown}");
    assert!(!shown.contains("│ two"), "output is closed:\n{shown}");
    assert!(shown.contains(&session) && shown.contains(&stage.workspace().display().to_string()), "{shown}");

    let full = ok(&stage, &["log", &session, "--full"]);
    assert!(full.contains("output\n            │ one\n            │ two\n"), "{full}");
    let last = ok(&stage, &["log", &session, "--since", "turn"]);
    assert!(last.contains("the second answer") && !last.contains("I will look"), "{last}");
    let all = ok(&stage, &["log", &session, "--since", "1d"]);
    assert!(all.contains("I will look"), "{all}");
    let none = ok(&stage, &["log", &session, "--since", "2999-01-01"]);
    assert!(!none.contains("scripted:"), "{none}");
    let bad = stage.lanyard(&["log", &session, "--since", "yesterday"]);
    assert_eq!(bad.status.code(), Some(2), "{}", text(&bad.stderr));
    let gone = stage.lanyard(&["log", &session, "--since", "turn_01m7n5djg0fayvh8t5cxyjkdnt"]);
    assert!(text(&gone.stderr).contains("[turn_not_found]"), "{}", text(&gone.stderr));

    let page = ok(&stage, &["log", &session, "--html"]);
    assert!(
        page.contains("&lt;b&gt;the second answer&lt;/b&gt;") && page.contains("<ins>+ fresh</ins>"),
        "{page}"
    );
    assert!(!page.contains("<script") && page.ends_with("</body></html>\n"), "{page}");
    let markdown = ok(&stage, &["log", &session, "--markdown"]);
    assert!(markdown.contains("### scripted · ") && markdown.contains("```diff\n"), "{markdown}");
    let events = ok(&stage, &["log", &session, "--json"]);
    assert!(events.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{events}");
}

/// A running session is shown as far as it is, and `-f` follows it to its end.
#[test]
fn a_running_session_is_read_and_followed() {
    let stage = Stage::new();
    let session = stage.detached("/say! begin\n/wait-file go\n/say! the end");
    stage.until(&session, |_| {
        stage.daemon.log_after(&session, 0).iter().any(|event| event["data"]["text"] == "begin")
    });
    let shown = ok(&stage, &["log", &session]);
    assert!(shown.contains("scripted: begin") && !shown.contains("──"), "{shown}");
    let following = command(&stage, &["log", "-f", &session]).spawn().unwrap();
    std::fs::write(stage.workspace().join("go"), "").unwrap();
    stage.until_at_rest(&session);
    assert!(stage.lanyard(&["complete", &session]).status.success());
    let followed = following.wait_with_output().unwrap();
    let told = text(&followed.stdout);
    assert!(followed.status.success(), "{}", text(&followed.stderr));
    assert_eq!(told.matches("scripted: begin").count(), 1, "{told}");
    assert_eq!(told.matches("scripted: the end").count(), 1, "{told}");
    assert!(told.contains("── the session was completed"), "{told}");
}

/// A long log is written as it is read: a reader that waits keeps the rest in the daemon, not in the command.
#[test]
fn a_long_log_is_streamed_and_not_collected() {
    const CALLS: usize = 4_000;
    let stage = Stage::new();
    let long = "x".repeat(70);
    let session = stage.detached(&format!("/repeat {CALLS} /tool look {{\"path\": \"{long}\"}}"));
    stage.until_at_rest(&session);
    let whole = ok(&stage, &["log", &session]);
    assert_eq!(whole.matches("· look x").count(), CALLS);

    let mut reading = command(&stage, &["log", &session]).spawn().unwrap();
    let mut output = reading.stdout.take().unwrap();
    let mut shown = vec![0; 4_096];
    output.read_exact(&mut shown).unwrap();
    // The pipe is full, and the command waits for its reader in the middle of the log.
    stage.daemon.kill_9();
    output.read_to_end(&mut shown).unwrap();
    let ended = reading.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3), "{}", text(&ended.stderr));
    let lines = text(&shown).matches("· look x").count();
    assert!(lines > 0 && lines < CALLS, "{lines} of {CALLS} lines came without a daemon");
}

/// `diff` is the session's work, `--turn` one turn's, `--stat` the numbers.
#[test]
fn fnd_n16_a_diff_is_what_the_session_did() {
    let stage = Stage::new();
    stage.git();
    let session = stage.detached("/edit first.txt one");
    stage.until(&session, |shown| shown["snapshots"] == 2);
    assert!(
        stage.lanyard(&["send", &session, "/edit second.txt two\n/edit kept.txt changed"]).status.success()
    );
    stage.until(&session, |shown| shown["snapshots"] == 4);
    let diff = |words: &[&str]| ok(&stage, &[&["diff", &session], words].concat());
    let whole = diff(&[]);
    assert!(whole.contains("+one") && whole.contains("+two") && whole.contains("-first"), "{whole}");
    for words in [&["--turn"][..], &["--turn", "2"]] {
        let last = diff(words);
        assert!(!last.contains("+one") && last.contains("+two"), "{words:?}: {last}");
    }
    let first = diff(&["--turn", "1"]);
    assert!(first.contains("+one") && !first.contains("+two"), "{first}");
    let turns = stage.get(&format!("/sessions/{session}/turns"));
    let oldest = turns["turns"][1]["turn"].as_str().unwrap();
    assert_eq!(diff(&["--turn", oldest]), first);
    let stat = diff(&["--stat"]);
    assert!(stat.contains(" to now: 3 files, +3 -1\n  new first.txt +1 -0\n"), "{stat}");
    assert!(!stat.contains("+one"), "{stat}");
    let missing = stage.lanyard(&["diff", &session, "--turn", "9"]);
    let told = text(&missing.stderr);
    assert!(told.contains("it had 2 turns [turn_not_found]") && told.contains("lanyard turns"), "{told}");
    assert_eq!(stage.lanyard(&["diff", &session, "at-1", "--turn"]).status.code(), Some(2));
}

/// A question is shown whole with its session, and answered at a prompt, by `gate` and by `answer`.
#[test]
fn fnd_n16_a_question_is_shown_whole_and_answered_at_a_prompt() {
    let stage = Stage::new();
    let nobody = typed(&stage, &["answer"], "");
    assert!(nobody.status.success() && text(&nobody.stderr).contains("no approval is open"));
    let long = format!("May I remove {}?", "a/very/long/path/".repeat(12));
    let session = stage.detached(&format!("/ask {long}"));
    stage.until(&session, |shown| shown["gates"] != json!([]));
    let shown = ok(&stage, &["approvals"]);
    let workspace = stage.workspace().display().to_string();
    let end = &session[session.len() - 6..];
    for words in
        [&long, end, &workspace, "\"/ask May I", "scripted asks for approval, ", "1  ", "(allow_once)"]
    {
        assert!(shown.contains(words), "{words:?} is missing in\n{shown}");
    }
    assert!(!shown.contains(&session), "listings show short ids: {shown}");
    assert!(ok(&stage, &["approvals", "--full-ids"]).contains(&session));
    let rows: Value = serde_json::from_str(&ok(&stage, &["approvals", "--json"])).unwrap();
    let row = &rows["items"][0];
    let id = row["id"].as_str().unwrap();
    assert!(shown.contains(&format!("answer   lanyard answer gate_{}\n", &id[id.len() - 6..])), "{shown}");
    assert_eq!(row["workspace"], json!(workspace), "{row:#}");
    assert!(row["session_title"].as_str().unwrap().starts_with("/ask May I"), "{row:#}");

    let how = format!("`lanyard answer {id}` answers it");
    assert!(ok(&stage, &["log", &session]).contains(&how));
    let silent = typed(&stage, &["answer"], "");
    assert_eq!(silent.status.code(), Some(4), "{}", text(&silent.stderr));
    let answered = typed(&stage, &["answer", &session], "maybe\n\n1\n");
    let told = text(&answered.stderr);
    assert!(answered.status.success(), "{told}");
    assert!(
        told.contains("`maybe` is no answer; type 1 (") && told.contains("answered: allow_once"),
        "{told}"
    );
    stage.until_at_rest(&session);
    let read = ok(&stage, &["log", &session]);
    assert!(read.contains("permission: allow_once") && read.contains("answered by "), "{read}");
    assert!(
        read.contains("asks for approval: ") && !read.contains(&how),
        "an answered one needs no hint: {read}"
    );

    let second = stage.detached("/ask And now?");
    stage.until(&second, |shown| shown["gates"] != json!([]));
    // As the page of approvals shows it.
    let shown = ok(&stage, &["approvals"]);
    let named = shown.lines().find_map(|line| line.trim().strip_prefix("answer   lanyard answer ")).unwrap();
    let answered = typed(&stage, &["answer", named], "d\n");
    assert!(answered.status.success(), "{}", text(&answered.stderr));
    stage.until_at_rest(&second);
    assert!(ok(&stage, &["log", &second]).contains("permission: reject_once"));
    let half = stage.lanyard(&["answer", &second, "--message", "x"]);
    assert_eq!(half.status.code(), Some(2), "{}", text(&half.stderr));
}

/// With several questions and nobody to choose, all are shown and one has to be named.
#[test]
fn of_several_questions_one_is_named() {
    let stage = Stage::new();
    let sessions = [stage.detached("/ask One?"), stage.detached("/ask Two?")];
    for session in &sessions {
        stage.until(session, |shown| shown["gates"] != json!([]));
    }
    let several = typed(&stage, &["answer"], "1\n");
    assert_eq!(several.status.code(), Some(1));
    let (shown, told) = (text(&several.stdout), text(&several.stderr));
    assert!(shown.contains("One?") && shown.contains("Two?"), "{shown}");
    assert!(told.contains("2 approvals wait [gate_ambiguous]"), "{told}");
}

/// One screen: a halt, what needs a person, what runs, each with the command that comes next.
#[test]
fn status_shows_what_needs_a_person_and_what_runs() {
    let stage = Stage::new();
    let idle = ok(&stage, &["status"]);
    assert!(idle.contains("nothing needs you and nothing runs"), "{idle}");
    let asking = stage.detached("/ask May I count?");
    let done = stage.detached("/say finished");
    let failed = stage.detached("/error -32000 no more");
    let running = stage.detached("/say! at it\n/wait 600000");
    stage.until(&asking, |shown| shown["gates"] != json!([]));
    stage.until(&done, |shown| shown["operator_state"] == "ready_for_review");
    stage.until(&failed, |shown| shown["operator_state"] == "failed");
    stage.until(&running, |shown| shown["operator_state"] == "working");
    let shown = ok(&stage, &["status"]);
    let gate = stage.get("/gates")["gates"][0]["id"].as_str().unwrap().to_owned();
    for words in [
        "waiting for approval (1)\n",
        "  May I count? (scripted ",
        &format!("\n      lanyard answer {gate}\n"),
        "failed (1)\n",
        &format!("\n      lanyard log {failed} --since turn\n"),
        "ready for review (1)\n",
        &format!("\n      lanyard log {done} --since turn\n"),
        "running (1)\n",
        &format!("\n      lanyard attach {running}\n"),
        "daemon       http://",
    ] {
        assert!(shown.contains(words), "{words:?} is missing in\n{shown}");
    }
    let status: Value = serde_json::from_str(&ok(&stage, &["status", "--json"])).unwrap();
    assert!(
        status["pid"].is_u64() && status["address"].is_string() && status["states"].is_array(),
        "{status:#}"
    );
    assert_eq!(status["needs"][0]["kind"], "approval", "{status:#}");
    assert_eq!(status["running"][0]["id"], json!(running), "{status:#}");
    assert!(stage.lanyard(&["halt", "--reason", "enough"]).status.success());
    let halted = ok(&stage, &["status"]);
    assert!(halted.starts_with("! work is halted") && halted.contains("lanyard halt --lift"), "{halted}");
    assert!(stage.lanyard(&["halt", "--lift"]).status.success());
}
