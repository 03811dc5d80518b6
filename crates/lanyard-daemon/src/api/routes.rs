//! The table of routes. The router, the gate in front of each, the OpenAPI document and the authorisation test are all
//! made from it, so none of them can know less than the others.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, patch, post};
use lanyard_api::names::API;
use lanyard_api::types::{
    AdoptTask, AgentCheck, AgentDetail, AgentList, Anchors, AuditPage, BackupReceipt, BranchView,
    BudgetReport, Bulk, BulkAnswer, CallAnswer, CallEnded, CallLead, CallUnsent, CancelReceipt, CancelTask,
    CheckReport, CommentEdit, ComparisonList, ComparisonView, CompleteTask, ContinuityReport, DaemonStatus,
    Delegation, Deploy, DeployedTasks, DirectoryFrame, DiscardSession, DiscardedSession, DiscardedTask,
    EditSession, EventsPage, FamilyMember, FlowAnswer, FlowEventPage, FlowList, FlowReason, FlowReport,
    FlowView, Forget, Forgotten, GateAnswer, GateList, GcReport, GuidanceList, Halt, HaltReceipt, HaltState,
    HealthHistory, HeldWriter, HistoryPage, IdChain, ImportPlan, ImportReceipt, Imported, InboxEdit,
    InboxOrder, InboxPromotion, InboxView, InsightReport, KeepOne, KeptOne, MailPage, McpAddress, McpCheck,
    McpList, McpNames, Me, MemoryImport, MemoryPage, MemoryPolicyEdit, MemoryPolicySet, MemoryPolicyView,
    MemoryStatus, MergeSession, MergeTask, MergedFlow, MergedSession, MergedTask, Migration, NameMatches,
    NewAlias, NewBackup, NewCall, NewComment, NewComparison, NewFlowBody, NewFork, NewGc, NewGuidance,
    NewImport, NewLink, NewMail, NewMcpAddress, NewMemory, NewPlanBody, NewPullRequest, NewResume, NewReview,
    NewRollback, NewSeen, NewSessionMemory, NewShare, NewSignInLink, NewStop, NewSubagent, NewTerminalInput,
    NewToken, NewTurn, NewViewed, NewWindowSize, NewWriter, NotificationBulk, NotificationBulkAnswer,
    NotificationDetail, NotificationEdit, NotificationPage, NotificationPurge, NotificationsPurged, PlanList,
    PlanMarkdown, PlanView, PresenceList, PullRequest, PullRequestOffer, PurgeView, Reason, Rebuilt,
    RecordFrame, Reloaded, Resumed, RetryTask, ReviewView, RolledBack, RunReport, RunToken, SearchPage,
    SendAgain, SessionDetail, SessionPage, ShareLink, SignIn, SignInLink, SignedIn, SnapshotList,
    StopReceipt, Stopping, StreamFrame, Subagent, TaskDiff, TaskEdit, TaskLog, TaskPage, TaskView,
    TerminalFrame, TerminalReceipt, TerminalView, TokenInfo, TokenList, TreeNode, TrustSetup, TurnList,
    TurnReceipt, UploadedAttachment, WorkerList, WorkspaceDiff, WorktreeSetup, WriterAnswer, WriterView,
};
use lanyard_core::Outcome;
use lanyard_core::memory::MemoryEntry;
use lanyard_core::notification::Notification;
use lanyard_core::session::{AgentChoice, NewSession, Signal, TurnRow};
use lanyard_core::task::{Mail, NewTask};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::api::guard::guard;
use crate::api::mutations::{Recorded, record};
use crate::api::observed::{Observed, observe};
use crate::api::{
    App, agents, attach, attachments, audit, branches, bulk, calls, choices, comparisons, diff, directory,
    flows, gates, health, histories, ids, insight, journal, mailbox, mcp, memory, metrics, name_lookup,
    notifications, observed, pages, plans, pull_requests, records, review, search, sessions, shares, sign_in,
    snapshots, stops, streams, subagents, system, tasks, terminal, turns, worktrees, writer,
};
use crate::auth::Access;

type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// One thing the API can do.
#[derive(Debug, Clone)]
pub struct ApiRoute {
    pub method: &'static str,
    /// What stands before the path.
    pub base: &'static str,
    pub path: &'static str,
    pub access: Access,
    pub name: &'static str,
    pub summary: &'static str,
    /// Query parameters beside those that narrow an address.
    pub query: &'static [&'static str],
    /// It answers with frames for as long as the client stays.
    pub streams: bool,
    /// Where who did it and why is written down.
    pub recorded: Recorded,
    pub(super) body: Option<SchemaFn>,
    pub(super) answers: (u16, Option<SchemaFn>),
    handler: fn() -> MethodRouter<Arc<App>>,
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const LIST: &[&str] = &[
    "status",
    "lifecycle",
    "state",
    "operator_state",
    "source",
    "owner",
    "agent",
    "workspace",
    "plan",
    "parent",
    "memory_mode",
    "archived",
    "text",
    "live",
    "attention",
    "sort",
    "cursor",
    "limit",
];

const NAMES: &[&str] = &["name", "kind", "workspace", "plan", "here", "starting", "limit"];

const FLOWS: &[&str] = &["open", "workspace", "plan", "before", "limit"];
const MEMORY: &[&str] =
    &["query", "store", "scope", "workspace", "owner", "plan", "session", "tags", "cursor", "limit"];

const MEMORY_EXPORT: &[&str] = &["store", "workspace", "owner", "session", "tags"];

const SESSION_MEMORY: &[&str] = &["query", "store", "scope", "tags", "cursor", "limit"];

const AUDIT: &[&str] = &["session", "since", "until", "kind", "limit", "cursor"];

const NOTIFICATIONS: &[&str] =
    &["status", "kind", "severity", "session", "open", "lasting", "cursor", "limit", "after", "wait_ms"];

const SEARCH: &[&str] = &["q", "agent", "in", "session", "kind", "since", "cursor", "limit"];

const SESSION_SEARCH: &[&str] = &["q", "kind", "since", "cursor", "limit"];

const INSIGHT: &[&str] = &["days", "by", "zone", "limit"];

const HISTORIES: &[&str] = &["agent", "workspace", "cursor", "limit"];

const RECORDS: &[&str] = &["after", "kind", "plan", "record"];

const TERMINAL: &[&str] = &["client", "channel", "connection", "write"];

const ATTACH: &[&str] = &["mode", "after", "last", "client", "channel", "connection", "write"];

/// A change of a session is in its log, with the actor and the key; all other changes are recorded by a layer before their
/// handlers.
fn recorded(path: &str, name: &str) -> Recorded {
    match name {
        // Nobody is signed in yet, or no longer; and what agents do within their tool calls and tasks.
        "sign_in" | "sign_out" | "call_begins" | "call_ends" | "call_unsent" | "mcp_message"
        | "mcp_close" | "report_run" => Recorded::Nowhere,
        // Keys may be passwords, and a program on a terminal tells of its work itself.
        "type_terminal" | "resize_terminal" => Recorded::Nowhere,
        // It changes nothing, and it must work when the journal cannot be written.
        "backup" => Recorded::Nowhere,
        // It is kept under the hash of its content, and is nothing before a message refers to it.
        "upload_attachment" => Recorded::Nowhere,
        "new_token" | "new_sign_in_link" | "task_token" | "mcp_address" | "share_session" => {
            Recorded::WithoutAnswer
        }
        "add_memory" | "add_session_memory" => Recorded::WithoutAnswer,
        "compact_session" | "set_memory_policy" | "bulk" | "open_pull_request" | "merge_session"
        | "discard_session" => Recorded::Here,
        _ if path.starts_with("/sessions") || path.starts_with("/ops/sessions") => Recorded::InSession,
        _ => Recorded::Here,
    }
}

/// A row that changes something: `METHOD path access name summary body status answer handler`.
macro_rules! change {
    ($method:ident $path:literal $access:ident $name:literal $summary:literal
     $body:ty => $status:literal $answer:ty, $handler:path) => {
        ApiRoute {
            method: stringify!($method),
            base: API,
            path: $path,
            access: Access::$access,
            name: $name,
            summary: $summary,
            query: &[],
            streams: false,
            recorded: recorded($path, $name),
            body: Some(of::<$body>),
            answers: ($status, Some(of::<$answer>)),
            handler: || $method($handler),
        }
    };
}

/// A row that only looks.
macro_rules! look {
    ($path:literal $access:ident $name:literal $summary:literal $query:expr => $answer:ty, $handler:path) => {
        ApiRoute {
            method: "get",
            base: API,
            path: $path,
            access: Access::$access,
            name: $name,
            summary: $summary,
            query: $query,
            streams: false,
            recorded: Recorded::Nowhere,
            body: None,
            answers: (200, Some(of::<$answer>)),
            handler: || get($handler),
        }
    };
}

/// A row that looks for as long as the client stays.
macro_rules! stream {
    ($path:literal $access:ident $name:literal $summary:literal $query:expr => $frame:ty, $handler:path) => {
        ApiRoute { streams: true, ..look!($path $access $name $summary $query => $frame, $handler) }
    };
}

/// Every route there is.
#[must_use]
pub fn table() -> Vec<ApiRoute> {
    let mut routes = about_the_daemon();
    routes.extend(about_signing_in());
    routes.extend(about_sessions());
    routes.extend(about_comparisons());
    routes.extend(about_turns());
    routes.extend(about_reviews());
    routes.extend(about_control());
    routes.extend(about_agents());
    routes.extend(about_mcp());
    routes.extend(about_attaching());
    routes.extend(about_plans());
    routes.extend(about_tasks());
    routes.extend(about_families());
    routes.extend(about_flows());
    routes.extend(about_notifications());
    routes.extend(about_memory());
    routes.extend(for_operations());
    routes
}

#[rustfmt::skip]
fn about_the_daemon() -> Vec<ApiRoute> {
    vec![
        look!("/status" LookAll "status" "How the daemon is." &[] => DaemonStatus, system::status),
        look!("/check" Operate "check" "Read the whole journal and report damage." &[] => CheckReport, system::check),
        look!("/openapi.json" LookAll "openapi" "This document." &[] => serde_json::Value, system::openapi),
        change!(post "/rebuild" Operate "rebuild" "Make all projections again from the log." Reason => 200 Rebuilt, system::rebuild),
        ApiRoute { answers: (202, None), ..change!(post "/shutdown" Operate "shutdown" "End the daemon; sessions stay." Reason => 202 Reason, system::shutdown) },
        change!(post "/reload" Operate "reload" "Read the config file again and take up what can be taken up." Reason => 200 Reloaded, system::reload),
        change!(post "/gc" Operate "gc" "Remove what belongs to nothing; `dry_run` only counts." NewGc => 200 GcReport, journal::gc),
        look!("/worktree-setup" Operate "worktree_setup" "What the repository around a folder asks for in new worktrees, and whether that is allowed." &["workspace"] => WorktreeSetup, worktrees::get),
        change!(post "/worktree-setup" Operate "trust_worktree_setup" "Allow the content of a repository's setup file, or take that back." TrustSetup => 200 WorktreeSetup, worktrees::trust),
        change!(post "/backup" Operate "backup" "Write a checked copy of the journal to a file on the daemon's machine." NewBackup => 200 BackupReceipt, journal::backup),
        look!("/audit" LookAll "audit" "Stops, guidance and answers of all sessions, newest first." AUDIT => AuditPage, audit::list),
        look!("/tokens" Operate "list_tokens" "Tokens and what they may do." &[] => TokenList, system::list_tokens),
        change!(post "/tokens" Operate "new_token" "Make a token; it is shown once." NewToken => 201 TokenInfo, system::new_token),
        ApiRoute { answers: (204, None), ..change!(delete "/tokens/{token}" Operate "revoke_token" "Revoke a token." Reason => 204 Reason, system::revoke_token) },
    ]
}

#[rustfmt::skip]
fn about_signing_in() -> Vec<ApiRoute> {
    vec![
        look!("/me" Known "me" "Who is calling, and the bounds that hold here." &[] => Me, sign_in::me),
        change!(post "/sign-in/links" Operate "new_sign_in_link" "Make a link that signs a browser in, once." NewSignInLink => 201 SignInLink, sign_in::new_link),
        change!(post "/sign-in" Anyone "sign_in" "Sign a browser in with the code of a link; the answer sets a cookie." SignIn => 200 SignedIn, sign_in::sign_in),
        ApiRoute { answers: (204, None), ..change!(post "/sign-out" Known "sign_out" "Revoke the token of the browser's cookie, and clear it." Reason => 204 Reason, sign_in::sign_out) },
    ]
}

#[rustfmt::skip]
fn about_sessions() -> Vec<ApiRoute> {
    vec![
        look!("/sessions" LookAll "list_sessions" "A page of sessions, newest first." LIST => SessionPage, directory::list),
        stream!("/directory/stream" LookAll "directory_stream" "Sessions as they are and as they change: server-sent events or a WebSocket." LIST => DirectoryFrame, streams::directory),
        stream!("/records/stream" LookAll "records_stream" "Changes of tasks, plans, flows, notifications and mail after a position, live: server-sent events or a WebSocket." RECORDS => RecordFrame, records::stream),
        look!("/search" LookAll "search" "Messages, tool calls and results of all sessions that have all words of a query." SEARCH => SearchPage, search::all),
        change!(post "/sessions" Operate "create_session" "Create a session." NewSession => 201 Outcome, sessions::create),
        change!(post "/sessions/bulk" Operate "bulk" "Do one thing to many sessions, each on its own; `dry_run` only tells." Bulk => 200 BulkAnswer, bulk::bulk),
        look!("/sessions/{id}" Shared "get_session" "One session." &[] => SessionDetail, directory::get),
        change!(delete "/sessions/{id}" Operate "delete_session" "Delete a session, leaving a tombstone." Reason => 200 Outcome, sessions::delete),
        change!(patch "/sessions/{id}" Operate "edit_session" "Give it another title." EditSession => 200 Outcome, branches::rename),
        look!("/sessions/{id}/purge" Look "purge_state" "How far the purge of a deleted session has come, and its tombstone." &[] => PurgeView, journal::purge),
        look!("/sessions/{id}/tree" Shared "get_tree" "A session and the family below it." &[] => TreeNode, directory::tree),
        look!("/sessions/{id}/events" Shared "list_events" "The log: a page, or a live stream as `text/event-stream`." &["after", "tail", "limit"] => EventsPage, directory::events),
        look!("/sessions/{id}/budgets" Look "session_budgets" "The budgets of a session, its family and the day, and what is left of them." &[] => BudgetReport, insight::budgets_of_session),
        look!("/sessions/{id}/search" Shared "search_session" "As `search`, in its log alone." SESSION_SEARCH => SearchPage, search::of_session),
        stream!("/sessions/{id}/attach" Shared "attach" "Its log from anywhere on, live: server-sent events, or a WebSocket that also takes requests." ATTACH => StreamFrame, attach::attach),
        look!("/sessions/{id}/terminal" Shared "get_terminal" "The screen of a program on a terminal, as text." &["transcript"] => TerminalView, terminal::view),
        stream!("/sessions/{id}/terminal/attach" Shared "attach_terminal" "A program on a terminal, live: a WebSocket with output in binary frames, that also takes requests." TERMINAL => TerminalFrame, terminal::attach),
        ApiRoute { answers: (200, None), ..look!("/sessions/{id}/terminal/recording" Shared "terminal_recording" "What it wrote, with times, as asciicast 2." &[] => TerminalView, terminal::recording) },
        change!(post "/sessions/{id}/terminal/input" Operate "type_terminal" "Type into it; once per key." NewTerminalInput => 200 TerminalReceipt, terminal::input),
        change!(post "/sessions/{id}/terminal/size" Operate "resize_terminal" "Give its window another size." NewWindowSize => 200 TerminalReceipt, terminal::resize),
        look!("/sessions/{id}/presence" Shared "list_presence" "Who is attached to it now." &[] => PresenceList, attach::presence),
        change!(post "/sessions/{id}/seen" LookAll "see_session" "Mark its log as seen by the caller, up to a position." NewSeen => 200 Outcome, sessions::see),
        change!(post "/sessions/{id}/link" Operate "link_session" "Make it a child of another session." NewLink => 200 Outcome, sessions::link),
        change!(post "/sessions/{id}/migrate" Operate "migrate_session" "Hand it to another agent, worker or owner." Migration => 200 Outcome, sessions::migrate),
        change!(post "/sessions/{id}/fork" Operate "fork_session" "Go on from its log in a new session." NewFork => 201 Outcome, sessions::fork),
        change!(post "/sessions/{id}/archive" Operate "archive_session" "Put it away; nothing is lost." Reason => 200 Outcome, sessions::archive),
        change!(post "/sessions/{id}/unarchive" Operate "unarchive_session" "Bring it back." Reason => 200 Outcome, sessions::unarchive),
        change!(post "/sessions/{id}/reset" Operate "reset_session" "Start its conversation over; the log goes on." Reason => 200 Outcome, sessions::reset),
        look!("/sessions/{id}/branch" LookAll "session_branch" "The branch of its own worktree: commits, files, what is not committed, and whether it is merged." &[] => BranchView, branches::view),
        change!(post "/sessions/{id}/merge" Operate "merge_session" "Merge the branch of its own worktree into what is checked out in the repository." MergeSession => 200 MergedSession, branches::merge),
        change!(post "/sessions/{id}/discard" Operate "discard_session" "Remove its own worktree and branch, and archive it; git keeps the work under a ref." DiscardSession => 200 DiscardedSession, branches::discard),
        change!(post "/sessions/{id}/shares" Operate "share_session" "Make a link with which others may look at it and those below, for a time." NewShare => 201 ShareLink, shares::share),
        look!("/sessions/{id}/shares" Operate "list_shares" "Its share links; a link ends when its token is revoked." &[] => TokenList, shares::list),
        change!(post "/sessions/{id}/aliases" Operate "add_alias" "Give it a further name." NewAlias => 201 Outcome, sessions::add_alias),
        change!(post "/sessions/{id}/anchors" Operate "set_anchors" "Set the facts that must survive a compaction." Anchors => 200 Outcome, sessions::set_anchors),
    ]
}

#[rustfmt::skip]
fn about_comparisons() -> Vec<ApiRoute> {
    vec![
        look!("/comparisons" LookAll "list_comparisons" "Comparisons, newest first." &[] => ComparisonList, comparisons::list),
        change!(post "/comparisons" Operate "new_comparison" "Give the same message to two to four agents, each in a session and a worktree of its own." NewComparison => 201 ComparisonView, comparisons::create),
        look!("/comparisons/{comparison}" LookAll "get_comparison" "A comparison and its sessions." &[] => ComparisonView, comparisons::get),
        change!(post "/comparisons/{comparison}/keep" Operate "keep_one" "Keep one of its sessions, merged where asked, and discard the others." KeepOne => 200 KeptOne, comparisons::keep),
    ]
}

#[rustfmt::skip]
fn about_turns() -> Vec<ApiRoute> {
    vec![
        change!(post "/sessions/{id}/turns" Operate "start_turn" "Send a message: it starts a turn, waits, steers or interrupts." NewTurn => 201 TurnReceipt, turns::send),
        ApiRoute { body: None, query: &["name"], ..change!(post "/attachments" Operate "upload_attachment" "Keep content that messages can refer to. The body is the content; the same content is the same attachment." Reason => 201 UploadedAttachment, attachments::upload) },
        ApiRoute { query: &["name"], ..look!("/sessions/{id}/attachments/{attachment}" Shared "get_attachment" "The content of an attachment that the session refers to." &[] => serde_json::Value, attachments::fetch) },
        look!("/sessions/{id}/turns" Shared "list_turns" "Its turns and what became of them, newest first." &["cursor", "limit"] => TurnList, turns::list),
        look!("/sessions/{id}/turns/{turn}" Shared "get_turn" "One turn." &[] => TurnRow, turns::get),
        look!("/sessions/{id}/inbox" Shared "get_inbox" "Messages that wait for their turn, the next one first." &[] => InboxView, turns::inbox),
        change!(post "/sessions/{id}/inbox/order" Operate "order_inbox" "Put the messages that wait in another order." InboxOrder => 200 Outcome, turns::order),
        change!(post "/sessions/{id}/inbox/pause" Operate "pause_inbox" "Pause the inbox until it is resumed." Reason => 200 Outcome, turns::pause),
        change!(post "/sessions/{id}/inbox/go" Operate "resume_inbox" "Let the inbox go on." Reason => 200 Outcome, turns::go),
        change!(patch "/sessions/{id}/inbox/{turn}" Operate "edit_turn" "Change a message that waits." InboxEdit => 200 Outcome, turns::edit),
        change!(delete "/sessions/{id}/inbox/{turn}" Operate "withdraw_turn" "Take a message back that waits." Reason => 200 Outcome, turns::withdraw),
        change!(post "/sessions/{id}/inbox/{turn}/promote" Operate "promote_turn" "Move a message that waits to the front, into the running turn, or in its place." InboxPromotion => 200 Outcome, turns::promote),
    ]
}

#[rustfmt::skip]
fn about_reviews() -> Vec<ApiRoute> {
    vec![
        look!("/sessions/{id}/review" LookAll "get_review" "Comments on its changes with their states, and files that were viewed." &[] => ReviewView, review::get),
        change!(post "/sessions/{id}/review/comments" Operate "draft_comment" "Keep a comment on lines of its changes as a draft." NewComment => 201 Outcome, review::add),
        change!(patch "/sessions/{id}/review/comments/{comment}" Operate "edit_comment" "Change the text of a comment that was not sent." CommentEdit => 200 Outcome, review::edit),
        change!(delete "/sessions/{id}/review/comments/{comment}" Operate "remove_comment" "Remove a comment that waits in no message." Reason => 200 Outcome, review::remove),
        change!(post "/sessions/{id}/review/send" Operate "send_review" "Send comments as one message: it starts a turn, waits, steers or interrupts." NewReview => 201 TurnReceipt, review::send),
        change!(post "/sessions/{id}/review/viewed" Operate "view_file" "Mark a file as viewed with its content, or take the mark away." NewViewed => 200 Outcome, review::view),
        look!("/sessions/{id}/pull-request" Operate "pull_request_offer" "Whether a pull request can be opened for its branch, and where." &[] => PullRequestOffer, pull_requests::offer),
        change!(post "/sessions/{id}/pull-request" Operate "open_pull_request" "Push its branch and open a pull request with the user's `gh` or `glab`." NewPullRequest => 201 PullRequest, pull_requests::open),
    ]
}

#[rustfmt::skip]
fn about_control() -> Vec<ApiRoute> {
    vec![
        change!(post "/sessions/{id}/cancel" Operate "cancel_turn" "End the running turn; asked twice, without waiting." Reason => 202 CancelReceipt, turns::cancel),
        change!(post "/sessions/{id}/stop" Operate "stop_session" "Ask it to stop, or raise the stop that is pending." NewStop => 202 Stopping, stops::stop),
        look!("/sessions/{id}/stop" Shared "stop_receipt" "What its stop has reached so far, and by which channel." &[] => StopReceipt, stops::receipt),
        change!(post "/sessions/{id}/stop/withdraw" Operate "withdraw_stop" "Take a stop back before level 3." Reason => 200 Stopping, stops::withdraw),
        look!("/sessions/{id}/guidance" Shared "list_guidance" "Its guidance: what waits, and the newest that is settled." &[] => GuidanceList, stops::guidance),
        change!(post "/sessions/{id}/guidance" Operate "guide_session" "Send words into the running agent." NewGuidance => 201 Outcome, sessions::guide),
        change!(delete "/sessions/{id}/guidance/{note}" Operate "withdraw_guidance" "Take words back that were not delivered." Reason => 200 Outcome, sessions::withdraw_guidance),
        change!(post "/sessions/{id}/complete" Own "complete_session" "End it as completed." Reason => 200 Outcome, sessions::complete),
        change!(post "/sessions/{id}/fail" Own "fail_session" "End it as failed." Reason => 200 Outcome, sessions::fail),
        change!(post "/sessions/{id}/checkpoints" Own "checkpoint_session" "Name this place in the log, and keep the workspace." Reason => 201 Outcome, snapshots::checkpoint),
        change!(post "/sessions/{id}/calls" Call "call_begins" "Before a tool call is carried out." NewCall => 200 CallAnswer, calls::begins),
        change!(post "/sessions/{id}/calls/end" Call "call_ends" "Before its answer goes out: what to put in front of it." CallEnded => 200 CallLead, calls::ends),
        ApiRoute { answers: (204, None), ..change!(post "/sessions/{id}/calls/unsent" Call "call_unsent" "An answer did not get out; what it carried goes again." CallUnsent => 204 Reason, calls::unsent) },
        change!(post "/sessions/{id}/subagents" Own "enlist_subagent" "The session of a subagent that works in this agent's own process, found by the agent's name for it or made." NewSubagent => 200 Subagent, subagents::enlist),
        look!("/sessions/{id}/family/{name}" Look "family_member" "Whether a name is this session's own, or that of a session below it." &[] => FamilyMember, subagents::family),
        look!("/sessions/{id}/mcp" Look "session_mcp" "Names of the MCP servers whose calls pass the gateway." &[] => McpNames, subagents::mcp_names),
        change!(post "/sessions/{id}/signals" Own "report_signal" "Report what the agent did." Signal => 201 Outcome, sessions::signal),
    ]
}

#[rustfmt::skip]
fn about_agents() -> Vec<ApiRoute> {
    vec![
        look!("/agents" LookAll "list_agents" "Agents that are configured, and those that are installed." &["versions"] => AgentList, agents::list),
        look!("/agents/{name}" LookAll "get_agent" "One agent, with the models, modes, effort levels and commands it last offered." &[] => AgentDetail, choices::agent),
        change!(post "/sessions/{id}/choice" Operate "set_choice" "Set its own model, mode and effort; what is left out is the agent's default." AgentChoice => 200 Outcome, choices::set),
        change!(post "/agents/{name}/check" Operate "check_agent" "Start an agent, greet it, and end it." Reason => 200 AgentCheck, agents::check),
        change!(post "/sessions/{id}/compact" Operate "compact_session" "Have its agent compact its context; `context.compacted` follows." Reason => 202 Outcome, agents::compact),
        change!(post "/sessions/{id}/resume" Operate "resume_session" "Have its agent there again, without a prompt yet." NewResume => 202 Outcome, agents::resume),
        look!("/histories" Operate "list_histories" "Conversations in the agents' own histories on the daemon's machine, newest first." HISTORIES => HistoryPage, histories::list),
        change!(post "/histories/import" Operate "import_history" "Make a session of a conversation, with its transcript; again, and it is the same session." NewImport => 201 ImportReceipt, histories::import),
        look!("/gates" LookAll "list_gates" "Every open approval." &[] => GateList, gates::list),
        look!("/sessions/{id}/gates" Shared "list_session_gates" "A session's approvals, with the newest that are settled." &[] => GateList, gates::of_session),
        change!(post "/sessions/{id}/gates/{gate}" Operate "answer_gate" "Answer an approval; the first answer stands." GateAnswer => 200 Outcome, gates::answer),
        look!("/sessions/{id}/snapshots" Shared "list_snapshots" "The checkpoints that the workspace can be taken back to." &[] => SnapshotList, snapshots::list),
        look!("/sessions/{id}/diff" Shared "diff_workspace" "What differs between two checkpoints, or from one to now; `from` is a checkpoint, `turn`, `session` or `branch`." &["from", "to"] => WorkspaceDiff, diff::get),
        change!(post "/sessions/{id}/rollback" Operate "roll_back" "Take the workspace back to a checkpoint." NewRollback => 200 RolledBack, snapshots::rollback),
    ]
}

#[rustfmt::skip]
fn about_mcp() -> Vec<ApiRoute> {
    vec![
        look!("/mcp" LookAll "list_mcp" "MCP servers, and how they do." &[] => McpList, mcp::list),
        change!(post "/mcp/{server}/address" Operate "mcp_address" "Where a session reaches a server; without a session a new one is registered." NewMcpAddress => 200 McpAddress, mcp::address),
        change!(post "/mcp/{server}/check" Operate "check_mcp" "Start or reach a server, greet it, and count its tools." Reason => 200 McpCheck, mcp::check),
        ApiRoute { base: "", ..change!(post "/mcp/{id}/{server}" Message "mcp_message" "A message of an MCP client (streamable HTTP); `-` for no session." serde_json::Value => 200 serde_json::Value, mcp::post) },
        ApiRoute { base: "", ..look!("/mcp/{id}/{server}" Own "mcp_listen" "The stream of an MCP client for what belongs to no request." &[] => serde_json::Value, mcp::listen) },
        ApiRoute { base: "", body: None, answers: (204, None), ..change!(delete "/mcp/{id}/{server}" Own "mcp_close" "An MCP client is done." Reason => 204 Reason, mcp::close) },
    ]
}

#[rustfmt::skip]
fn about_attaching() -> Vec<ApiRoute> {
    vec![
        look!("/sessions/{id}/writer" Shared "get_writer" "Who writes, of all that are attached." &[] => WriterView, writer::get),
        change!(post "/sessions/{id}/writer" Operate "claim_writer" "Become the writer, or ask the writer to hand over." NewWriter => 200 WriterAnswer, writer::claim),
        change!(post "/sessions/{id}/writer/grant" Operate "grant_writer" "Hand over to the client that asked." HeldWriter => 200 WriterAnswer, writer::grant),
        change!(post "/sessions/{id}/writer/deny" Operate "deny_writer" "Keep it." HeldWriter => 200 WriterAnswer, writer::deny),
        change!(post "/sessions/{id}/writer/release" Operate "release_writer" "Be done with it." HeldWriter => 200 WriterAnswer, writer::release),
    ]
}

const TASKS: &[&str] =
    &["plan", "parent", "reports_to", "worker", "session", "workspace", "state", "ended", "cursor", "limit"];

#[rustfmt::skip]
fn about_plans() -> Vec<ApiRoute> {
    vec![
        look!("/plans" LookAll "list_plans" "Plans, newest first." &["workspace", "status", "archived"] => PlanList, plans::list),
        change!(post "/plans" Operate "new_plan" "Make a plan, with its tasks." NewPlanBody => 201 PlanView, plans::add),
        change!(post "/plans/import" Operate "import_plan" "Make a plan of a Markdown text." ImportPlan => 201 PlanView, plans::import),
        look!("/plans/{plan}" LookAll "get_plan" "A plan and its tasks." &["workspace"] => PlanView, plans::get),
        look!("/plans/{plan}/markdown" LookAll "export_plan" "A plan as a Markdown text." &["workspace"] => PlanMarkdown, plans::export),
        change!(post "/plans/{plan}/start" Operate "start_plan" "Start its tasks, each after its prerequisites." Reason => 200 PlanView, plans::start),
        change!(post "/plans/{plan}/pause" Operate "pause_plan" "Begin nothing more of it." Reason => 200 PlanView, plans::pause),
        change!(post "/plans/{plan}/deploy" Operate "deploy_plan" "Begin all of it that is ready, once." Deploy => 200 DeployedTasks, plans::deploy),
        change!(post "/plans/{plan}/cancel" Operate "cancel_plan" "End it: begin nothing more of it, and cancel its open tasks." CancelTask => 202 PlanView, plans::cancel),
        change!(post "/plans/{plan}/archive" Operate "archive_plan" "Put it away." Reason => 200 PlanView, plans::archive),
    ]
}

#[rustfmt::skip]
fn about_tasks() -> Vec<ApiRoute> {
    vec![
        look!("/tasks" LookAll "list_tasks" "A page of tasks, oldest first." TASKS => TaskPage, tasks::list),
        change!(post "/tasks" Operate "new_task" "Make a task." NewTask => 201 TaskView, tasks::add),
        look!("/tasks/{task}" LookAll "get_task" "A task, by its id, alias, worker, session or run." &[] => TaskView, tasks::get),
        change!(patch "/tasks/{task}" Operate "edit_task" "Change a task that is not running." TaskEdit => 200 TaskView, tasks::edit),
        look!("/tasks/{task}/log" LookAll "task_log" "What happened to it." &["after", "limit"] => TaskLog, tasks::log),
        change!(post "/tasks/{task}/deploy" Operate "deploy_task" "Start it now." Deploy => 202 TaskView, tasks::deploy),
        change!(post "/tasks/{task}/pause" Operate "pause_task" "Hold it until it is resumed." Reason => 200 TaskView, tasks::pause),
        change!(post "/tasks/{task}/resume" Operate "resume_task" "Go on after a pause or an interruption." Reason => 200 TaskView, tasks::resume),
        change!(post "/tasks/{task}/cancel" Operate "cancel_task" "End it; what it did so far is kept." CancelTask => 202 TaskView, tasks::cancel),
        change!(post "/tasks/{task}/retry" Operate "retry_task" "Run it again, by the same worker." RetryTask => 200 TaskView, tasks::retry),
        change!(post "/tasks/{task}/complete" Operate "complete_task" "Say that it is done, and what came of it." CompleteTask => 200 TaskView, tasks::complete),
        change!(post "/tasks/{task}/fail" Operate "fail_task" "Say that it cannot be done." Reason => 200 TaskView, tasks::fail),
        change!(post "/tasks/{task}/adopt" Operate "adopt_task" "Have another hear of it." AdoptTask => 200 TaskView, tasks::adopt),
        look!("/tasks/{task}/diff" LookAll "task_diff" "What its branch holds." &[] => TaskDiff, tasks::diff),
        change!(post "/tasks/{task}/merge" Operate "merge_task" "Merge its branch into its workspace." MergeTask => 200 MergedTask, tasks::merge),
        change!(post "/tasks/{task}/discard" Operate "discard_task" "Drop its branch; git keeps it under a ref." Reason => 200 DiscardedTask, tasks::discard),
        change!(post "/tasks/{task}/token" Operate "task_token" "The token with which an external program runs it." Reason => 200 RunToken, tasks::token),
        change!(post "/tasks/{task}/mail" Operate "send_mail" "A message to its worker." NewMail => 201 Mail, mailbox::send),
    ]
}

#[rustfmt::skip]
fn about_families() -> Vec<ApiRoute> {
    vec![
        change!(post "/sessions/{id}/report" Own "report_run" "What a run says of its task, with the token of that run." RunReport => 200 TaskView, mailbox::report),
        look!("/sessions/{id}/delegation" Look "delegation" "Level, depth, agents above and children below." &[] => Delegation, ids::delegation),
        look!("/workers" LookAll "list_workers" "Workers with their tasks and health." &["plan", "all"] => WorkerList, mailbox::workers),
        look!("/mail" LookAll "list_mail" "Mail that is not settled; of one box, dead or settled where asked." &["box", "dead", "settled", "cursor", "limit"] => MailPage, mailbox::list),
        look!("/mail/{mail}" LookAll "get_mail" "One message." &[] => Mail, mailbox::get),
        change!(post "/mail/{mail}/ack" Operate "acknowledge_mail" "It was handled." Reason => 200 Mail, mailbox::acknowledge),
        change!(post "/mail/{mail}/again" Operate "send_mail_again" "Send a settled or dead message again." SendAgain => 200 Mail, mailbox::again),
        look!("/ids" LookAll "find_ids" "The things a name means: one, several when it is ambiguous, or the nearest." NAMES => NameMatches, name_lookup::find),
        look!("/ids/{any}" LookAll "explain_id" "What an id or name stands for, and all it is linked to." &[] => IdChain, ids::explain),
        change!(post "/resume/{any}" Operate "resume_any" "Bring back what an id names, under the same worker." Reason => 202 Resumed, ids::resume),
        look!("/halt" LookAll "get_halt" "Whether everything is halted." &[] => HaltState, mailbox::halted),
        change!(post "/halt" Operate "halt" "Emergency stop: a task, a worker, a plan, or everything." Halt => 202 HaltReceipt, mailbox::halt),
        change!(post "/halt/lift" Operate "lift_halt" "Let work begin again." Reason => 200 HaltState, mailbox::lift),
    ]
}

#[rustfmt::skip]
fn about_notifications() -> Vec<ApiRoute> {
    vec![
        look!("/metrics/continuity" LookAll "continuity" "How well people get back to their sessions: counts, rates, alerts." &[] => ContinuityReport, metrics::continuity),
        look!("/metrics/continuity/history" LookAll "continuity_history" "How that was over time, and the alerts of that time." &["hours"] => HealthHistory, health::history),
        look!("/insight" LookAll "insight" "Cost, tokens, turns, failures, approvals and time over days: by day, agent, model or folder." INSIGHT => InsightReport, insight::report),
        look!("/budgets" LookAll "budgets" "The budgets in money, and what is left of the day's." &[] => BudgetReport, insight::budgets),
        look!("/ops/metrics/session-continuity" LookAll "ops_continuity" "As `continuity`." &[] => ContinuityReport, metrics::continuity),
        ApiRoute { base: "", answers: (200, None), ..look!("/metrics" LookAll "metrics" "All numbers, as Prometheus reads them." &[] => ContinuityReport, metrics::prometheus) },
        look!("/notifications" LookAll "list_notifications" "A page of notifications, newest first; with `after`, what changed since." NOTIFICATIONS => NotificationPage, notifications::list),
        change!(post "/notifications/bulk" Operate "bulk_notifications" "Change all notifications that match." NotificationBulk => 200 NotificationBulkAnswer, notifications::bulk),
        change!(post "/notifications/purge" Operate "purge_notifications" "Take away those that were dismissed and are over." NotificationPurge => 200 NotificationsPurged, notifications::purge),
        look!("/notifications/{notification}" LookAll "get_notification" "One notification, and how its deliveries went." &[] => NotificationDetail, notifications::get),
        change!(patch "/notifications/{notification}" Operate "edit_notification" "Read, acknowledge, snooze or dismiss it." NotificationEdit => 200 Notification, notifications::edit),
        ApiRoute { answers: (204, None), ..change!(delete "/notifications/{notification}" Operate "remove_notification" "Take one away that is over." Reason => 204 Reason, notifications::remove) },
        look!("/dashboard/notifications" LookAll "dashboard_notifications" "As `list_notifications`." NOTIFICATIONS => NotificationPage, notifications::list),
        change!(post "/dashboard/notifications/bulk" Operate "dashboard_bulk_notifications" "As `bulk_notifications`." NotificationBulk => 200 NotificationBulkAnswer, notifications::bulk),
        change!(patch "/dashboard/notifications/{notification}" Operate "dashboard_edit_notification" "As `edit_notification`." NotificationEdit => 200 Notification, notifications::edit),
    ]
}

#[rustfmt::skip]
fn about_flows() -> Vec<ApiRoute> {
    vec![
        look!("/flows" LookAll "list_flows" "A page of flows, newest first." FLOWS => FlowList, flows::list),
        change!(post "/flows" Operate "begin_flow" "Have a plan worked through, or reviewed." NewFlowBody => 201 FlowView, flows::begin),
        look!("/flows/{flow}" LookAll "get_flow" "A flow as it stands." &[] => FlowView, flows::get),
        look!("/flows/{flow}/events" LookAll "flow_events" "A piece of its log; with `wait_ms`, once there is something." &["after", "limit", "wait_ms", "approvals"] => FlowEventPage, flows::events),
        look!("/flows/{flow}/report" LookAll "flow_report" "What came of it, for programs and as Markdown." &[] => FlowReport, flows::tell),
        change!(post "/flows/{flow}/cancel" Operate "cancel_flow" "End it; it can be taken up again." FlowReason => 200 FlowView, flows::cancel),
        change!(post "/flows/{flow}/merge" Operate "merge_flow" "Merge the branch of a flow that has ended into what is checked out in its folder." MergeTask => 200 MergedFlow, flows::merge),
        change!(post "/flows/{flow}/resume" Operate "resume_flow" "Take up a flow that was aborted, where it was." FlowReason => 200 FlowView, flows::resume),
        change!(post "/flows/{flow}/gates/{gate}" Operate "answer_flow_gate" "Answer its approval; the first answer stands." FlowAnswer => 200 FlowView, flows::answer),
    ]
}

#[rustfmt::skip]
fn about_memory() -> Vec<ApiRoute> {
    vec![
        look!("/memory" LookAll "list_memory" "What is remembered, newest first; with `query`, what is found, best first." MEMORY => MemoryPage, memory::list),
        change!(post "/memory" Operate "add_memory" "Remember something; in a session's name, its policy judges it." NewMemory => 201 MemoryEntry, memory::add),
        look!("/memory/status" LookAll "memory_status" "How much is remembered, and how memory is." &[] => MemoryStatus, memory::status),
        look!("/memory/export" LookAll "export_memory" "All of it as JSON lines." MEMORY_EXPORT => MemoryEntry, memory::export),
        change!(post "/memory/import" Operate "import_memory" "Take over entries as they are; the same ones again change nothing." MemoryImport => 200 Imported, memory::import),
        change!(post "/memory/forget" Operate "forget_memory" "Forget entries, by id or by what they have in common; `dry_run` only tells." Forget => 200 Forgotten, memory::forget),
        look!("/memory/{memory}" LookAll "get_memory" "One entry." &[] => MemoryEntry, memory::get),
        change!(delete "/memory/{memory}" Operate "forget_one_memory" "Forget an entry." Reason => 200 Forgotten, memory::forget_one),
        look!("/sessions/{id}/memory" Look "session_memory" "What a session sees of memory, as its policy has it." SESSION_MEMORY => MemoryPage, memory::of_session),
        change!(post "/sessions/{id}/memory" Own "add_session_memory" "Remember something in a session's name." NewSessionMemory => 201 MemoryEntry, memory::add_to_session),
        look!("/sessions/{id}/memory-policy" Look "memory_policy" "What a session may remember, and what was refused." &[] => MemoryPolicyView, memory::policy),
        change!(patch "/sessions/{id}/memory-policy" Operate "set_memory_policy" "Change what a session may remember; those below are tightened with it." MemoryPolicyEdit => 200 MemoryPolicySet, memory::set_policy),
    ]
}

/// The same things under the paths operations consoles know.
#[rustfmt::skip]
fn for_operations() -> Vec<ApiRoute> {
    vec![
        look!("/ops/sessions" LookAll "ops_list_sessions" "As `list_sessions`." LIST => SessionPage, directory::list),
        look!("/ops/sessions/{id}" Look "ops_get_session" "As `get_session`." &[] => SessionDetail, directory::get),
        change!(delete "/ops/sessions/{id}" Operate "ops_delete_session" "As `delete_session`." Reason => 200 Outcome, sessions::delete),
        change!(post "/ops/sessions/{id}/archive" Operate "ops_archive_session" "As `archive_session`." Reason => 200 Outcome, sessions::archive),
        change!(post "/ops/sessions/{id}/cancel" Operate "ops_cancel_turn" "As `cancel_turn`." Reason => 202 CancelReceipt, turns::cancel),
        change!(post "/ops/sessions/{id}/reset" Operate "ops_reset_session" "As `reset_session`." Reason => 200 Outcome, sessions::reset),
    ]
}

/// The whole API.
pub fn router(app: &Arc<App>) -> Router {
    let mut api = Router::new();
    let mut beside = Router::new();
    for route in table() {
        let gate = from_fn_with_state((app.clone(), (route.access, route.base)), guard);
        let observed = Observed {
            name: route.name,
            method: route.method,
            path: route.path,
            of: observed::Of::route(route.name),
        };
        let mut handler = (route.handler)();
        if matches!(route.recorded, Recorded::Here | Recorded::WithoutAnswer) {
            let of = (app.clone(), route.name, route.recorded);
            handler = handler.route_layer(from_fn_with_state(of, record));
        }
        let mut handler = handler.route_layer(gate);
        if observed.of != observed::Of::Other || (route.base == API && app.telemetry.is_some()) {
            handler = handler.route_layer(from_fn_with_state((app.clone(), observed), observe));
        }
        match route.base {
            API => api = api.route(route.path, handler),
            _ => beside = beside.route(route.path, handler),
        }
    }
    Router::new()
        .nest(API, api)
        .merge(beside)
        .fallback(pages::page)
        .method_not_allowed_fallback(pages::other_method)
        .with_state(app.clone())
}
