//! The words of tasks, workers and mail.

use lanyard_core::paper::{PlanStatus, Priority};
use lanyard_core::session::StateName;
use lanyard_core::task::health::Condition;
use lanyard_core::task::{
    Isolation, Mail, ParentEnd, Remedies, Task, TaskEnvelope, TaskState, WorkerKind, WorkerSource,
};
use lanyard_core::{PlanId, RunId, SessionId, TaskId, Timestamp, WorkerId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GateEntry;

pub use lanyard_core::task::NewTask;

/// A task, and what only the daemon knows of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskView {
    #[serde(flatten)]
    pub task: Task,
    /// By which chat hosts address it.
    pub uri: String,
    /// Why nobody works at it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// How its worker does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// Tasks that report to it and have not ended.
    #[serde(default)]
    pub open_children: u64,
    /// Mail in its box that is not settled.
    #[serde(default)]
    pub mail: u64,
    /// What its agent waits to be allowed, as `GET /gates` lists it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<GateEntry>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskPage {
    pub tasks: Vec<TaskView>,
    /// Give it back as `cursor` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What is to be different; what is left out stays.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskEdit {
    pub title: Option<String>,
    pub prompt: Option<String>,
    pub agent: Option<String>,
    pub depends_on: Option<Vec<String>>,
    pub priority: Option<Priority>,
    pub group: Option<String>,
    pub files: Option<Vec<String>>,
    pub base: Option<String>,
    pub isolation: Option<Isolation>,
    pub when_parent_ends: Option<ParentEnd>,
    pub may_spawn: Option<bool>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Deploy {
    /// Whatever holds it.
    pub force: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CancelTask {
    pub reason: Option<String>,
    /// At once, whatever its agent is doing.
    pub now: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetryTask {
    /// Deploy it as soon as nothing holds it.
    pub deploy: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
    pub summary: String,
    #[serde(default)]
    pub evidence: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdoptTask {
    /// The task or session that hears of it from now on; nobody when left out.
    pub parent: Option<String>,
}

/// What was deployed of a plan, and what holds the rest.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DeployedTasks {
    pub deployed: Vec<TaskId>,
    pub held: Vec<HeldTask>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HeldTask {
    pub task: TaskId,
    pub title: String,
    pub why: String,
}

/// What a task's branch holds beside what it began at.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskDiff {
    pub task: TaskId,
    pub branch: String,
    pub base: String,
    pub commits: Vec<DiffCommit>,
    pub files: Vec<DiffFile>,
    /// Work in its worktree that is not committed yet is part of this.
    pub uncommitted: bool,
    pub patch: String,
    /// The patch was longer than one answer may be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DiffCommit {
    pub commit: String,
    pub subject: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DiffFile {
    pub path: String,
    /// As git says it: `A`, `M`, `D`, `R`.
    pub status: String,
    /// Lines; nothing for a file that is not text.
    pub added: Option<u64>,
    pub removed: Option<u64>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MergeTask {
    /// The folder to merge into; the task's workspace when left out.
    pub into: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MergedTask {
    pub task: TaskId,
    pub commit: String,
    /// The branch it was merged into.
    pub into: String,
    /// There was nothing to merge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DiscardedTask {
    pub task: TaskId,
    /// Where git still has what was discarded.
    pub reference: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskLog {
    pub events: Vec<TaskEnvelope>,
    /// The task's last number when this was read. There is more while the last event's `seq` is below it.
    pub head: u64,
}

/// With what a program outside works at a task of kind `external`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunToken {
    pub task: TaskId,
    pub worker: WorkerId,
    pub session: SessionId,
    pub run: u32,
    /// Of this run and of no other: what comes with an older one is refused as `stale_run`.
    pub run_token: String,
    /// The bearer token that acts as the task's session.
    pub session_token: String,
}

/// What a run says of its task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunReport {
    pub run_token: String,
    pub kind: ReportKind,
    pub text: String,
    #[serde(default)]
    pub evidence: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportKind {
    Progress,
    Question,
    Error,
    /// The task is done; `text` says what came of it.
    Completed,
    /// It cannot be done; `text` says why.
    Failed,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkerList {
    pub workers: Vec<WorkerRow>,
}

/// Who works at what, and how they do.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkerRow {
    pub worker: WorkerId,
    /// Where its id came from.
    pub source: WorkerSource,
    pub kind: WorkerKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub task: TaskId,
    pub title: String,
    pub task_state: TaskState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_state: Option<StateName>,
    /// The number of its newest run, and that run's process.
    pub run: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<RunId>,
    pub live: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    #[serde(default)]
    pub remedies: Remedies,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activity_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MailPage {
    pub mail: Vec<Mail>,
    /// Give it back as `cursor` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A word to whoever works at a task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMail {
    pub text: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SendAgain {
    /// The task or session whose box it goes into; the one it was in when left out.
    pub to: Option<String>,
}

/// What an id stands for, and everything it is linked to.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct IdChain {
    /// As it was asked for.
    pub id: String,
    pub kind: IdKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<IdPlan>,
    /// The task, or the newest of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskView>,
    /// Further tasks the name stands for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_tasks: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<IdSession>,
    /// Whose mailbox hears of the task, from the nearest up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports_to: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<Mail>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdKind {
    Session,
    Task,
    Worker,
    Run,
    Plan,
    Mail,
    Alias,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct IdPlan {
    pub id: PlanId,
    pub title: String,
    pub status: PlanStatus,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct IdSession {
    pub id: SessionId,
    pub state: StateName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<RunId>,
    pub live: bool,
}

/// What came of bringing something back.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    pub how: ResumedHow,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResumedHow {
    /// It is at work already.
    AtWork,
    /// Its agent is brought back in the same session.
    Resumed,
    /// The task is worked at anew, by the same worker.
    Redeployed,
}

/// Where a session stands in its family.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Delegation {
    pub session: SessionId,
    pub level: u8,
    pub depth: u32,
    pub depth_limit: u32,
    pub can_delegate: bool,
    /// Agents from the root to this session.
    pub call_stack: Vec<StackCaller>,
    pub children: Vec<Child>,
    /// Children left out because there are more than one answer may hold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Caller")]
pub struct StackCaller {
    pub session: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Child {
    pub session: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub created_at: Timestamp,
    pub state: StateName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_state: Option<TaskState>,
    /// Whether anybody works there: found by its process, its open calls and its turn, never by silence alone.
    pub liveness: lanyard_core::paper::Liveness,
}

/// What to stop: a task, a worker or a plan by its id; everything when left out.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Halt {
    pub what: Option<String>,
    pub reason: Option<String>,
    /// At once, whatever agents are doing.
    pub now: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HaltReceipt {
    /// Tasks that are being cancelled.
    pub tasks: Vec<TaskId>,
    /// Sessions without a task that were asked to stop.
    pub sessions: Vec<SessionId>,
    /// Nothing is begun until it is lifted.
    pub halted: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct HaltState {
    /// Whether all work is halted. Then no session, turn, run, task or step of a flow begins.
    pub halted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The end of the last halt, while nothing is halted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted: Option<HaltLifted>,
}

/// Who lifted a halt, when and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HaltLifted {
    pub at: Timestamp,
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the halt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halted_at: Option<Timestamp>,
}
