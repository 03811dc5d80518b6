//! The form of every parameter in a path, a query or a header, for the OpenAPI document. A value of that form is never
//! refused because of its form; a test sends the bounds of each to its route.

use lanyard_agents::history::HistoryKind;
use lanyard_api::types::AuditKind;
use lanyard_core::insight::InsightBy;
use lanyard_core::memory::{MemoryScope, Where};
use lanyard_core::naming::NameKind;
use lanyard_core::notification::{NotificationKind, NotificationStatus, Severity};
use lanyard_core::paper::PlanStatus;
use lanyard_core::search::{QUERY_CHARS_MAX, SearchKind};
use lanyard_core::session::{Lifecycle, OperatorState, StateName};
use lanyard_core::task::TaskState;
use lanyard_core::text::NAME_CHARS_MAX;
use lanyard_core::{
    AttachmentId, CommentId, ComparisonId, ConnectionId, FlowId, FollowedKind, GateId, MailId, MemoryId,
    MemoryMode, NoteId, NotificationId, SessionId, TaskId, Timestamp, TurnId, WorkerId,
};
use lanyard_store::Sort;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::api::directory::StatusWord;
use crate::api::routes::ApiRoute;
use crate::api::{
    audit, context, directory, flows, health, histories, insight, mailbox, memory, name_lookup,
    notifications, records, search, streams, tasks, turns,
};

/// The largest position a client can name: the largest whole number every JSON reader keeps.
const POSITION_MAX: u64 = (1 << 53) - 1;

pub(super) fn parameters(route: &ApiRoute, generator: &mut SchemaGenerator) -> Vec<Value> {
    let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = Vec::new();
    for name in names {
        let schema = in_path(name, generator);
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    let narrowing: &[&str] = if route.path.contains("{id}") { &["workspace", "plan"] } else { &[] };
    for name in narrowing.iter().chain(route.query) {
        let mut parameter =
            json!({ "name": name, "in": "query", "schema": in_query(route, name, generator) });
        if let Some(description) = described(route, name) {
            parameter["description"] = description.into();
        }
        if is_required(route, name) {
            parameter["required"] = true.into();
        }
        parameters.push(parameter);
    }
    let mut header = |name: &str, schema: Value| {
        parameters.push(json!({ "name": name, "in": "header", "schema": schema }));
    };
    if route.body.is_some() {
        let pattern = format!("^[!-~]{{1,{}}}$", context::KEY_CHARS_MAX);
        header("Idempotency-Key", json!({ "type": "string", "pattern": pattern }));
    }
    if route.name == "start_turn" {
        header("Lanyard-Writer", position());
    }
    if ["list_events", "attach", "records_stream"].contains(&route.name) {
        header("Last-Event-ID", position());
    }
    parameters
}

/// Whether a route has no answer without this parameter of its query.
fn is_required(route: &ApiRoute, name: &str) -> bool {
    matches!((route.name, name), ("worktree_setup", "workspace") | ("search" | "search_session", "q"))
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    Value::from(generator.subschema_for::<T>())
}

fn position() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": POSITION_MAX })
}

fn words() -> Value {
    json!({ "type": "string" })
}

/// An id where only an id will do; elsewhere any name is looked up.
fn in_path(name: &str, generator: &mut SchemaGenerator) -> Value {
    match name {
        "turn" => of::<TurnId>(generator),
        "note" => of::<NoteId>(generator),
        "gate" => of::<GateId>(generator),
        "mail" => of::<MailId>(generator),
        "notification" => of::<NotificationId>(generator),
        "memory" => of::<MemoryId>(generator),
        "flow" => of::<FlowId>(generator),
        "attachment" => of::<AttachmentId>(generator),
        "comment" => of::<CommentId>(generator),
        "comparison" => of::<ComparisonId>(generator),
        _ => json!({ "type": "string", "minLength": 1 }),
    }
}

fn in_query(route: &ApiRoute, name: &str, generator: &mut SchemaGenerator) -> Value {
    match name {
        // A whole path; elsewhere it is compared with the workspaces of sessions.
        "workspace" if is_required(route, name) => pattern("^~?/"),
        "limit" => json!({ "type": "integer", "minimum": 1, "maximum": limit_max(route) }),
        "after" | "tail" => position(),
        "last" => json!({ "type": "integer", "minimum": 0, "maximum": super::attach::LAST_MAX }),
        "wait_ms" => json!({ "type": "integer", "minimum": 0, "maximum": wait_max(route) }),
        "archived" | "live" | "attention" | "open" | "lasting" | "versions" | "write" | "all" | "dead"
        | "settled" | "ended" | "transcript" => json!({ "type": "boolean" }),
        "status" => status(route, generator),
        "kind" => match route.name {
            "audit" => of::<AuditKind>(generator),
            "records_stream" => {
                let kinds = FollowedKind::ALL.map(FollowedKind::as_str).join("|");
                pattern(&format!("^({kinds})(,({kinds}))*$"))
            }
            "find_ids" => {
                let kinds = NameKind::ALL.map(NameKind::as_str).join("|");
                pattern(&format!("^({kinds})(,({kinds}))*$"))
            }
            "search" | "search_session" => of::<SearchKind>(generator),
            _ => of::<NotificationKind>(generator),
        },
        "agent" if route.name == "list_histories" => {
            json!({ "type": "string", "enum": HistoryKind::ALL.map(HistoryKind::as_str) })
        }
        "days" => json!({ "type": "integer", "minimum": 1, "maximum": insight::DAYS_MAX }),
        "hours" => json!({ "type": "integer", "minimum": 1, "maximum": health::HOURS_MAX }),
        "by" => of::<InsightBy>(generator),
        "q" => json!({ "type": "string", "minLength": 1, "maxLength": QUERY_CHARS_MAX }),
        "state" if route.name == "list_tasks" => of::<TaskState>(generator),
        "state" => of::<StateName>(generator),
        "operator_state" => of::<OperatorState>(generator),
        "lifecycle" => of::<Lifecycle>(generator),
        "memory_mode" => of::<MemoryMode>(generator),
        "sort" => of::<Sort>(generator),
        "severity" => of::<Severity>(generator),
        "store" => of::<Where>(generator),
        "scope" => of::<MemoryScope>(generator),
        "since" | "until" => of::<Timestamp>(generator),
        "mode" => json!({ "type": "string", "enum": ["tail", "full"] }),
        "connection" => of::<ConnectionId>(generator),
        "worker" => of::<WorkerId>(generator),
        "before" => of::<FlowId>(generator),
        "client" | "channel" => {
            json!({ "type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX, "pattern": "^\\P{Cc}*$" })
        }
        "session" if route.path.contains("notifications") => of::<SessionId>(generator),
        "cursor" => cursor(route, generator),
        "record" => {
            let id = an_id("(task|plan|flow|ntf|mail)");
            pattern(&format!("^{id}(,{id}){{0,{}}}$", records::RECORDS_MAX - 1))
        }
        "approvals" => pattern(&format!("^{0}(,{0})*$|^$", an_id("gate"))),
        _ => words(),
    }
}

fn status(route: &ApiRoute, generator: &mut SchemaGenerator) -> Value {
    if route.path.contains("notifications") {
        return of::<NotificationStatus>(generator);
    }
    match route.name {
        "list_plans" => of::<PlanStatus>(generator),
        _ => of::<StatusWord>(generator),
    }
}

/// What the page before gave as `next`.
fn cursor(route: &ApiRoute, generator: &mut SchemaGenerator) -> Value {
    match route.name {
        "list_turns" => of::<TurnId>(generator),
        "list_tasks" => of::<TaskId>(generator),
        "list_memory" | "session_memory" => of::<MemoryId>(generator),
        "list_notifications" | "dashboard_notifications" => of::<NotificationId>(generator),
        "search" | "search_session" => pattern("^[0-9a-f]{1,15}\\.[0-9a-f]{1,4}\\.[0-9a-f]{8}$"),
        "list_histories" => pattern("^-?[0-9]{1,15}\\.[0-9A-Za-z][0-9A-Za-z_-]{0,127}$"),
        "list_mail" => pattern(&format!("^{}\\.[0-9]{{1,15}}$", an_id("(task|sess)"))),
        "audit" => pattern(&format!("^-?[0-9]{{1,15}}\\.({}|-)\\.[0-9]{{1,15}}$", an_id("sess"))),
        _ => pattern("^[0-9a-f]{1,15}\\.[0-9a-f]{8}$"),
    }
}

fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

/// The pattern of an id.
fn an_id(prefix: &str) -> String {
    format!("{prefix}_[0-7][0-9a-hjkmnp-tv-z]{{25}}")
}

/// What no schema can say.
fn described(route: &ApiRoute, name: &str) -> Option<&'static str> {
    match (route.name, name) {
        (_, "cursor") => Some("`next` of the page before, which had the same conditions."),
        ("search" | "search_session", "q") => Some(
            "Words, `\"a phrase\"`, `prefix*`, `-without`, and `agent:`, `in:`, `session:`, `kind:`, `since:`.",
        ),
        ("search", "in") => Some("A folder by its path or its last parts; sessions in it and below."),
        ("list_histories", "workspace") => Some("Only conversations of this folder."),
        ("attach", "mode" | "after" | "last") => Some("Of `mode`, `after` and `last` send one."),
        (_, "after") if route.path.contains("notifications") => Some("Not together with `cursor`."),
        ("flow_events", "approvals") => Some(
            "The open approvals the client knows of, separated by commas: with `wait_ms`, others are news.",
        ),
        ("records_stream", "after") => {
            Some("The position of the last change that arrived; without it, only what comes.")
        }
        ("find_ids", "name") => Some(
            "An id or a part of it, an alias, a title, `last`, `.`, a task's key or `plan/key`; without it, the newest are listed.",
        ),
        ("find_ids", "kind") => Some("Kinds, separated by commas; without it, all of them."),
        ("find_ids", "here") => Some("The folder that `.` means."),
        ("find_ids", "starting") => {
            Some("Without `name`: only those whose id, name or title starts with this.")
        }
        ("records_stream", "kind") => Some("Kinds, separated by commas; without it, all of them."),
        ("records_stream", "plan") => Some("A plan and its tasks, and nothing else."),
        ("records_stream", "record") => Some("Ids of records, separated by commas."),
        (_, "tags") => Some("Tags, separated by commas."),
        _ => None,
    }
}

fn limit_max(route: &ApiRoute) -> usize {
    match route.name {
        "list_sessions" | "ops_list_sessions" => directory::PAGE_MAX,
        "directory_stream" => streams::LIMIT_MAX,
        "list_events" => directory::EVENTS_MAX,
        "list_turns" => turns::PAGE_MAX,
        "audit" => audit::PAGE_MAX,
        "list_flows" | "flow_events" => flows::PAGE_MAX,
        "find_ids" => name_lookup::LIMIT_MAX,
        "list_histories" => histories::PAGE_MAX,
        "insight" => insight::ROWS_MAX,
        "search" | "search_session" => search::PAGE_MAX,
        "list_mail" => mailbox::PAGE_MAX,
        "list_tasks" | "task_log" => tasks::PAGE_MAX,
        "list_notifications" | "dashboard_notifications" => notifications::PAGE_MAX,
        _ => memory::PAGE_MAX,
    }
}

fn wait_max(route: &ApiRoute) -> u64 {
    match route.name {
        "flow_events" => flows::WAIT_MAX,
        _ => notifications::WAIT_MS_MAX,
    }
}
