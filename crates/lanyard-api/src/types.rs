//! The words of the HTTP API: request and response bodies. Clients use these types too.

mod agents;
mod attach;
mod attachments;
mod audit;
mod branches;
mod bulk;
mod comparisons;
mod config;
mod control;
mod families;
mod flows;
mod glance;
mod histories;
mod insight;
mod mcp;
mod memory;
mod named;
mod notifications;
mod plans;
mod records;
mod review;
mod search;
mod shares;
mod sign_in;
mod snapshots;
mod storage;
mod subagents;
mod terminals;
mod turns;
mod worktrees;
mod writer;

use lanyard_core::journal::{Damage, Row};
use lanyard_core::session::{AgentLack, AgentOffer, OperatorState, SessionView, StateName};
use lanyard_core::{ActorKind, SessionId, Timestamp, TokenId, WorkerId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use agents::{
    AgentCheck, AgentDetail, AgentEntry, AgentList, AgentProblem, GateAnswer, GateEntry, GateList, NewResume,
};
pub use attach::{
    AttachMode, Connected, ConnectedSession, DirectoryFrame, PresenceList, PresenceMode, PresentConnection,
    PreviewKind, Runtime, SessionRow, StreamAsk, StreamFrame,
};
pub use attachments::{NewPart, UploadedAttachment};
pub use audit::{AuditEntry, AuditKind, AuditPage};
pub use branches::{BranchView, DiscardSession, DiscardedSession, EditSession, MergeSession, MergedSession};
pub use bulk::{Bulk, BulkAction, BulkAnswer, BulkFilter, BulkOutcome, BulkResult};
pub use comparisons::{
    COMPARED_MAX, COMPARED_MIN, ComparedSession, ComparisonList, ComparisonView, KeepOne, KeptOne,
    NewCompared, NewComparison, NotDiscarded,
};
pub use config::{ConfigState, Reloaded};
pub use control::{
    CallAnswer, CallEnded, CallLead, CallUnsent, GuidanceList, NewCall, NewStop, StopReceipt, StopStep,
    Stopping,
};
pub use families::{
    AdoptTask, CancelTask, Child, CompleteTask, Delegation, Deploy, DeployedTasks, DiffCommit, DiffFile,
    DiscardedTask, Halt, HaltLifted, HaltReceipt, HaltState, HeldTask, IdChain, IdKind, IdPlan, IdSession,
    MailPage, MergeTask, MergedTask, NewMail, NewTask, ReportKind, Resumed, ResumedHow, RetryTask, RunReport,
    RunToken, SendAgain, StackCaller, TaskDiff, TaskEdit, TaskLog, TaskPage, TaskView, WorkerList, WorkerRow,
};
pub use flows::{
    FlowAnswer, FlowEventPage, FlowGateEntry, FlowList, FlowReason, FlowReport, FlowView, MergedFlow,
    NewFlowBody,
};
pub use glance::{Glance, GlanceCall, HourlyCost};
pub use histories::{HistoryEntry, HistoryPage, HistoryProblem, ImportReceipt, NewImport};
pub use insight::{
    AgentBudget, BudgetReport, BudgetStage, BudgetView, HealthAlert, HealthHistory, HealthStep, InsightDay,
    InsightPart, InsightReport, InsightRow,
};
pub use mcp::{McpAddress, McpCheck, McpEntry, McpKind, McpList, McpState, NewMcpAddress};
pub use memory::{
    Forget, Forgotten, FoundBy, Imported, MemoryImport, MemoryPage, MemoryPolicyEdit, MemoryPolicySet,
    MemoryPolicyView, MemoryRow, MemoryStatus, NewMemory, NewSessionMemory, NotImported,
};
pub use named::{NameMatches, NamedItem};
pub use notifications::{
    ContinuityCounts, ContinuityLabels, ContinuityReport, NotificationBulk, NotificationBulkAnswer,
    NotificationCount, NotificationDetail, NotificationEdit, NotificationPage, NotificationPurge,
    NotificationWhich, NotificationsPurged, RefusedNotification,
};
pub use plans::{
    ImportPlan, NewPlanBody, PlanDetail, PlanList, PlanMarkdown, PlanRow, PlanView, StepView, TaskCount,
};
pub use records::RecordFrame;
pub use review::{
    CommentEdit, CommentView, NewComment, NewPullRequest, NewReview, NewViewed, PullRequest,
    PullRequestOffer, ReviewView,
};
pub use search::{SearchHit, SearchIndex, SearchPage};
pub use shares::{ClientKind, NewShare, SHARE_MS_MAX, SHARE_MS_MIN, ShareLink};
pub use sign_in::{Me, MyLimits, NewSignInLink, SignIn, SignInLink, SignInRole, SignedIn};
pub use snapshots::{
    ChangedFile, FileChange, NewRollback, Restored, RolledBack, SnapshotEntry, SnapshotList, WorkspaceDiff,
};
pub use storage::{BackupReceipt, GcCount, GcReport, JournalStatus, NewBackup, NewGc, PurgeView};
pub use subagents::{FamilyMember, McpNames, NewSubagent, Relation, Subagent};
pub use terminals::{
    CursorPlace, NewTerminalInput, NewWindowSize, TerminalConnected, TerminalFrame, TerminalReceipt,
    TerminalView,
};
pub use turns::{
    CancelReceipt, CancelRequested, InboxEdit, InboxOrder, InboxPromotion, InboxView, LogRange, NewTurn,
    TurnList, TurnReceipt,
};
pub use worktrees::{TrustSetup, WorktreeSetup};
pub use writer::{HeldWriter, NewWriter, WriterAnswer, WriterEntry, WriterResult, WriterView};

/// `application/problem+json` with a stable code, one sentence of what happened and one of what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// `about:blank`: the code says it all.
    #[serde(rename = "type")]
    pub kind: String,
    pub status: u16,
    /// Stable: clients branch on this.
    pub code: String,
    /// What happened.
    pub title: String,
    /// What to do.
    pub advice: String,
}

/// Why, for the log. Commands that need nothing else take this.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Reason {
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGuidance {
    pub text: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLink {
    /// The parent's id or alias.
    pub parent: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Migration {
    #[serde(default)]
    pub agent: Option<String>,
    #[serde(default)]
    pub worker: Option<WorkerId>,
    #[serde(default)]
    pub owner: Option<String>,
    pub reason: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewFork {
    /// The position to fork at; the end of the log when left out.
    pub at: Option<u64>,
    pub title: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAlias {
    pub alias: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Anchors {
    pub anchors: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSeen {
    /// The last position of the log that was shown.
    pub seq: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionPage {
    pub sessions: Vec<SessionRow>,
    /// Give it back as `cursor` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A session with what could not be read of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionDetail {
    #[serde(flatten)]
    pub view: SessionView,
    #[serde(flatten)]
    pub runtime: Runtime,
    /// What its agent offers to choose; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<AgentOffer>,
    /// What cannot be asked of its agent, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<AgentLack>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
}

/// Events as they are stored: `{seq, session, at, actor, cause, type, data}`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EventsPage {
    pub events: Vec<serde_json::Value>,
    /// The session's last position when the page was read. There is more while the last event's `seq` is below it.
    pub head: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TreeNode {
    #[serde(flatten)]
    pub session: Row,
    pub children: Vec<TreeNode>,
    /// Children left out because the tree is larger than one answer may be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// `operator`, `observer` or `agent`.
    pub role: ActorKind,
    pub name: String,
    /// The session an agent's token acts as; required for that role and only for it.
    #[serde(default)]
    pub session: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TokenInfo {
    pub id: TokenId,
    pub role: ActorKind,
    pub name: String,
    pub session: Option<SessionId>,
    pub created_at: Timestamp,
    /// The end of a share link. Other tokens have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The browser and system that signed in with it, as the browser names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The minute of its last request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// The kind of program that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_client: Option<ClientKind>,
    /// Only in the answer that made it; it cannot be shown again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    pub tokens: Vec<TokenInfo>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageState {
    Ok,
    /// Writing failed; nothing is acknowledged until it works again.
    Unavailable,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStatus {
    pub version: String,
    pub pid: u32,
    pub address: String,
    pub data_dir: String,
    pub started_at: Timestamp,
    pub now: Timestamp,
    pub storage: StorageState,
    /// What went wrong with storage last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_error: Option<String>,
    /// Size of the journal on disk.
    #[serde(default)]
    pub journal: JournalStatus,
    /// Sessions held in memory now; all others live in the journal.
    pub sessions_in_memory: u64,
    /// Connections reading a live stream now.
    pub readers: u64,
    /// Commits since the start, and the events in them.
    pub commits: u64,
    pub events: u64,
    /// Tool calls that passed and could not be written down.
    #[serde(default)]
    pub calls_unrecorded: u64,
    /// Sessions by state.
    pub states: Vec<StateCount>,
    /// Sessions by the operator's word for them.
    #[serde(default)]
    pub operator_states: Vec<OperatorStateCount>,
    /// Whether all work is halted, since when, by whom and why.
    #[serde(default)]
    pub halt: HaltState,
    /// The config file, and whether it is in use as it is now.
    #[serde(default)]
    pub config: ConfigState,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StateCount {
    pub state: StateName,
    pub sessions: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct OperatorStateCount {
    pub operator_state: OperatorState,
    pub sessions: u64,
}

/// What a check of the journal found.
pub use lanyard_core::journal::Report as CheckReport;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Rebuilt {
    pub sessions: u64,
}
