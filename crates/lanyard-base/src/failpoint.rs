//! Named places where the crash suite kills the daemon. `LANYARD_FAILPOINT=name:n` ends the process with SIGKILL the
//! n-th time it comes to `name`; `name:n+us` lets it run on for that many microseconds first, to die in the middle.
//! Unset, a failpoint costs one look at a static.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Places in the life of an agent's run, in the order in which a turn comes to them.
pub const OF_AGENTS: [&str; 21] = [
    // A turn was admitted, and the log knows of no run for it.
    "before_run",
    // The log knows of a run that has no process.
    "before_spawn",
    // The process is there and was told nothing.
    "after_spawn",
    "after_ready",
    "before_prompt",
    "after_prompt",
    // Around each part of the agent's output that becomes events.
    "before_report",
    "after_report",
    // The log has the agent's question; no rule has judged it.
    "after_gate",
    // The log has the answer; the agent does not.
    "before_answer",
    "after_answer",
    // A subagent has a session, which knows nothing of its run yet.
    "after_child",
    "after_child_turn",
    // The log has an order to end that nobody carried out.
    "before_cancel",
    "before_stop",
    "before_end",
    // The agent was asked to end its turn.
    "after_cancel",
    // Nothing of the run lives, and the log does not know it.
    "before_run_end",
    "after_run_end",
    // A new daemon found a run of the last one.
    "in_recover",
    // It is about to go on with it.
    "before_catch_up",
];

/// Places on the way of a tool call while something is pending.
pub const OF_CALLS: [&str; 4] = [
    // The call has come, and nothing was decided.
    "before_passage",
    // What an earlier answer carried is acknowledged; the call was not carried out yet.
    "after_passage",
    // The tool has answered.
    "before_lead",
    // The log has words as delivered; the answer that carries them has not left.
    "after_lead",
];

/// Places where something is remembered.
pub const OF_MEMORY: [&str; 2] = [
    // It was judged and is allowed, and not on disk.
    "memory_before_write",
    // It is on disk, and nobody was told.
    "memory_after_write",
];

/// Places in the care for tasks and mail.
pub const OF_FAMILIES: [&str; 6] = [
    // What became of tasks is decided, and not on disk.
    "families_before_write",
    // It is on disk, and nobody was told.
    "families_after_write",
    // A task wants something done outside: a worktree, a session, a prompt, an end.
    "families_before_act",
    // It was done, and the task does not know.
    "families_after_act",
    // A message is in its box, and its session does not have it.
    "families_before_give",
    // The session has it, and the box does not know.
    "families_after_give",
];

/// Places in the care for flows.
pub const OF_FLOWS: [&str; 4] = [
    // What became of a flow is decided, and not on disk.
    "flows_before_write",
    // It is on disk, and nobody was told.
    "flows_after_write",
    // A flow wants something done outside: a worktree, a session, a prompt, a command, an end.
    "flows_before_act",
    // It was done, and the flow does not know.
    "flows_after_act",
];

/// Places on the way of a session with a worktree of its own.
pub const OF_TREES: [&str; 3] = [
    // It is noted that a worktree is made, and nothing is.
    "trees_after_note",
    // The worktree is there and set up; the session is not.
    "trees_after_make",
    // The session is there, and so is the note.
    "trees_after_create",
];

/// Places on the way of a comparison, and of a branch that is merged or discarded.
pub const OF_COMPARISONS: [&str; 4] = [
    // The comparison is noted, and no session is there.
    "comparison_after_note",
    // A session is there and has no message.
    "comparison_after_session",
    // Git has merged or removed the branch, and the session's log does not know.
    "branch_after_git",
    // One is merged, and none is discarded.
    "comparison_after_merge",
];

/// It is on disk that a person is to be asked about a worker, and nobody was.
pub const BEFORE_ESCALATION: &str = "families_before_escalation";
/// The cancels of a plan's tasks are on disk, and the plan's mark is not.
pub const IN_PLAN_CANCEL: &str = "families_in_plan_cancel";

struct Armed {
    name: String,
    at: u64,
    delay: Duration,
    hits: AtomicU64,
}

static ARMED: OnceLock<Option<Armed>> = OnceLock::new();

/// Dies here if this is the place and the time.
pub fn hit(name: &'static str) {
    let Some(armed) = ARMED.get_or_init(from_env) else { return };
    if armed.name != name || armed.hits.fetch_add(1, Ordering::Relaxed) + 1 != armed.at {
        return;
    }
    if armed.delay.is_zero() {
        die();
    }
    let delay = armed.delay;
    std::thread::spawn(move || {
        std::thread::sleep(delay);
        die();
    });
}

fn die() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

fn from_env() -> Option<Armed> {
    let text = std::env::var("LANYARD_FAILPOINT").ok()?;
    let (name, when) = text.rsplit_once(':')?;
    let (at, delay) = when.split_once('+').unwrap_or((when, "0"));
    Some(Armed {
        name: name.to_owned(),
        at: at.parse().ok()?,
        delay: Duration::from_micros(delay.parse().ok()?),
        hits: AtomicU64::new(0),
    })
}
