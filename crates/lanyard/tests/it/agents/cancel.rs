//! Cancelling a turn: through the agent itself, then by force, and never undone.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::kit::{Stage, ended_by, interrupted, pids_of, supervisors, tried, until};

/// S1-12, S1-22.
#[test]
fn an_obedient_agent_ends_its_turn_and_stays() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/tool-open dig\n/touch there\n/wait 60000\n/say never");
    stage.await_file("there");
    talk.cancel();
    interrupted(&talk.over(), "user");
    assert_eq!(talk.said(), "");
    assert_eq!(
        talk.answer_to("/recall"),
        "I know 1 earlier prompt: /tool-open dig /touch there /wait 60000 /say never"
    );
    assert_eq!(talk.runs(), 1, "the same process");
}

/// S0-B04: the receipt says which channels were tried and which processes were ended.
#[test]
fn an_agent_that_ignores_the_cancel_is_ended() {
    let stage = Stage::with(&[], "cancel_grace_ms = 200\n");
    let mut talk = stage.talk();
    talk.turn("/ignore-cancel\n/touch there\n/wait 60000");
    stage.await_file("there");
    talk.cancel();
    let ended = talk.run_over();
    assert_eq!(tried(&ended), ["agent", "term"], "{ended:#}");
    assert_eq!(ended_by(&ended), [("lanyard", "TERM")], "{ended:#}");
    interrupted(&talk.over(), "user");
    assert!(talk.answer_to("/recall").starts_with("I know 1 earlier prompt"));
    assert_eq!(talk.all("run.ready")[1]["data"]["continuity"], "native");
}

#[test]
fn an_agent_that_ignores_cancel_and_term_is_killed() {
    let stage = Stage::with(&[], "cancel_grace_ms = 200\n");
    let mut talk = stage.talk();
    talk.turn("/ignore-cancel\n/ignore-term\n/touch there\n/wait 60000");
    stage.await_file("there");
    talk.cancel();
    let ended = talk.run_over();
    assert_eq!(tried(&ended), ["agent", "term", "kill"], "{ended:#}");
    assert_eq!(ended_by(&ended), [("lanyard", "KILL")], "{ended:#}");
    interrupted(&talk.over(), "user");
}

#[test]
fn words_after_a_cancel_are_kept_and_the_turn_was_cancelled() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/stream-after-cancel 20\n/touch there\n/wait 60000");
    stage.await_file("there");
    talk.cancel();
    interrupted(&talk.over(), "user");
    assert!(talk.said().ends_with("after the cancel 20 "), "{}", talk.said());
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(talk.runs(), 1);
}

/// Output after a cancel is evidence that it is not heeded: the agent has less time than it would have in silence.
#[test]
fn an_agent_that_works_on_after_a_cancel_has_less_time() {
    const GRACE: u64 = 40_000;
    let stage = Stage::with(&[], &format!("cancel_grace_ms = {GRACE}\n"));
    let mut talk = stage.talk();
    talk.turn("/ignore-cancel\n/touch there\n/pace 50\n/repeat 2000 /say on and on");
    stage.await_file("there");
    talk.cancel();
    let ended = talk.run_over();
    assert_eq!(tried(&ended), ["agent", "term"]);
    let after = ended["data"]["receipt"]["tried"][1]["after_ms"].as_u64().unwrap();
    assert!(after < GRACE, "{after} ms");
    interrupted(&talk.over(), "user");
}

#[test]
fn a_late_answer_to_a_cancel_is_waited_for() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/answer-late 300\n/touch there\n/wait 60000");
    stage.await_file("there");
    talk.cancel();
    // The turn is not over before the agent says so: nobody else gets in between.
    let busy = talk.try_turn("/say too soon");
    assert_eq!((busy.status, busy.code()), (409, "turn_rejected_busy".to_owned()), "{}", busy.text());
    // Neither does somebody who wants the agent back.
    assert_eq!(talk.post("resume", &json!({})).code(), "turn_rejected_busy");
    interrupted(&talk.over(), "user");
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(talk.runs(), 1);
}

#[test]
fn a_second_cancel_does_not_wait() {
    let stage = Stage::with(&[], "cancel_grace_ms = 600000\n");
    let mut talk = stage.talk();
    talk.turn("/ignore-cancel\n/touch there\n/wait 60000");
    stage.await_file("there");
    talk.cancel();
    talk.cancel();
    let ended = talk.run_over();
    assert_eq!(tried(&ended), ["agent", "term"]);
    interrupted(&talk.over(), "user");
    assert_eq!(talk.all("turn.cancel_requested")[1]["data"]["forced"], true);
}

#[test]
fn a_turn_can_be_cancelled_before_the_agent_has_greeted() {
    let stage = Stage::with(&["--start-delay", "1000"], "");
    let mut talk = stage.talk();
    talk.turn("/say never");
    talk.until("run.started");
    talk.cancel();
    interrupted(&talk.over(), "user");
    assert_eq!(talk.answer_to("/recall"), "I know no earlier prompt.");
    assert_eq!(talk.said(), "I know no earlier prompt.");
    assert_eq!(talk.runs(), 1, "the process that was being greeted is used");
}

#[test]
fn an_agent_whose_cancel_waits_for_its_question_is_released() {
    let stage = Stage::with(&["--cancel-waits-for-permission"], "");
    let mut talk = stage.talk();
    talk.turn("/ask May I?");
    talk.until("gate.opened");
    talk.cancel();
    interrupted(&talk.over(), "user");
    let withdrawn = talk.until("gate.withdrawn");
    assert!(withdrawn["seq"].as_u64() > talk.all("gate.opened")[0]["seq"].as_u64());
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(talk.runs(), 1);
}

/// The cancel reaches the agent after it has answered. The agent is one whose next prompt such a cancel swallows.
#[test]
fn a_cancel_that_came_too_late_does_not_poison_the_next_turn() {
    let stage = Stage::with(&["--idle-cancel-poisons"], "");
    let mut talk = stage.talk();
    talk.turn("/touch there\n/wait-file go\n/touch past\n/say done");
    stage.await_file("there");
    talk.until("run.ready");
    // While its supervisor stands still, the agent ends its turn and nobody hears it.
    let [supervisor] = supervisors(&talk.run())[..] else { panic!("one supervisor") };
    let supervisor = Pid::from_raw(supervisor).unwrap();
    let stopped = StandsStill::new(supervisor);
    stage.touch("go");
    stage.await_file("past");
    let [agent] = pids_of(&talk.run(), "lanyard")[..] else { panic!("one agent") };
    until("the agent to come to rest", || is_at_rest(agent));
    talk.cancel();
    drop(stopped);
    let end = talk.over();
    interrupted(&end, "user");
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(talk.runs(), 1);
    let output = std::fs::read_to_string(stage.run_folder(&talk.run()).join("out")).unwrap();
    assert!(output.contains(":again\""), "its prompt was swallowed, and sent again");
}

/// A process that does nothing until this is dropped, also by a panic.
struct StandsStill(Pid);

impl StandsStill {
    fn new(pid: Pid) -> Self {
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for StandsStill {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// Whether all threads of a process wait: its turn's thread is gone or asleep.
fn is_at_rest(pid: i32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    threads.into_iter().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with('S'))
    })
}

#[test]
fn a_cancel_of_nothing_is_refused_and_changes_nothing() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    assert_eq!(talk.answer_to("/say one"), "one");
    let refused = talk.post("cancel", &json!({}));
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(talk.answer_to("/say two"), "two");
    assert_eq!(talk.runs(), 1);
}
