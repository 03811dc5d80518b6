//! `lanyard status`: what needs a person, what runs, and how the daemon is.

use std::fmt::Write;

use lanyard_api::types::{DaemonStatus, GateList, JournalStatus, SessionPage, StorageState};
use lanyard_client::Route;
use lanyard_core::Timestamp;
use lanyard_core::session::OperatorState;
use serde::Serialize;

use super::halt::warning;
use crate::client::Client;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::flow::title;
use crate::render::text::{fit, one_line, pad, quoted, width};
use crate::render::time::{ago, span, stamp};

/// Sessions of a kind that are shown; more are counted.
const SHOWN_MAX: usize = 5;
/// Columns of the names of sessions before their commands, where there is no terminal.
const NAME_COLUMNS_MAX: usize = 70;

const EXAMPLES: &str = "\
Shows a halt, open approvals, sessions that failed or are ready for review, and running agents,
each with the command that comes next, then how the daemon is. It starts no daemon, and ends with
code 3 when none is running.

Examples:
  lanyard status
  lanyard status --json | jq .address
  lanyard status --json | jq -r '.needs[].command'";

/// Show what needs you, what runs, and how the daemon is
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StatusArgs {}

/// The daemon's status, with what needs a person and what runs.
#[derive(Debug, Serialize)]
struct Overview {
    #[serde(flatten)]
    status: DaemonStatus,
    needs: Vec<Attended>,
    running: Vec<Attended>,
}

/// A session or flow, and the command that comes next.
#[derive(Debug, Serialize)]
struct Attended {
    /// `approval`, `needs_answer`, `failed`, `ready_for_review`, `working` or `waiting_for_limit`.
    kind: &'static str,
    /// The id of the session or flow.
    id: String,
    /// The agent and the title.
    name: String,
    /// The request, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    asks: Option<String>,
    since: Timestamp,
    command: String,
}

impl StatusArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        let Some(mut client) = context.client_if_running().await? else {
            return Err(context.not_running("start one with `lanyard up --detach`"));
        };
        let status: DaemonStatus = client.get(&Route::to(&["status"])).await?;
        let needs = needs(&mut client).await?;
        let mut running = sessions(&mut client, OperatorState::Working).await?;
        running.extend(sessions(&mut client, OperatorState::WaitingForLimit).await?);
        let overview = Overview { status, needs, running };
        if context.out.is_json() {
            return context.out.json(&overview);
        }
        if overview.status.version != env!("CARGO_PKG_VERSION") {
            context.out.warn(&format!(
                "the daemon is version {} and this program is {}: restart it with `lanyard down`",
                overview.status.version,
                env!("CARGO_PKG_VERSION")
            ));
        }
        context.out.data(&(page(&overview, context.out.columns) + &card(&overview.status)))
    }
}

/// Open approvals first, then sessions that wait for something else, failed, or finished.
async fn needs(client: &mut Client<'_>) -> Result<Vec<Attended>, Failure> {
    let list: GateList = client.get(&Route::to(&["gates"])).await?;
    let flows = list.flows.iter().map(|entry| Attended {
        kind: "approval",
        id: entry.flow.to_string(),
        name: title(&entry.title),
        asks: Some(one_line(&entry.gate.reason)),
        since: entry.gate.opened_at,
        command: format!("lanyard answer {}", entry.gate.id),
    });
    let gates = list.gates.iter().map(|entry| Attended {
        kind: "approval",
        id: entry.session.to_string(),
        name: named(entry.agent.as_deref(), entry.session_title.as_deref()),
        asks: Some(one_line(&entry.gate.question.title)),
        since: entry.gate.opened_at,
        command: format!("lanyard answer {}", entry.gate.id),
    });
    let mut needs: Vec<Attended> = flows.chain(gates).collect();
    let asking: Vec<String> = needs.iter().map(|need| need.id.clone()).collect();
    let others = sessions(client, OperatorState::NeedsAnswer).await?;
    needs.extend(others.into_iter().filter(|other| !asking.contains(&other.id)));
    needs.extend(sessions(client, OperatorState::Failed).await?);
    needs.extend(sessions(client, OperatorState::ReadyForReview).await?);
    Ok(needs)
}

/// The newest sessions in a state.
async fn sessions(client: &mut Client<'_>, state: OperatorState) -> Result<Vec<Attended>, Failure> {
    let route = Route::to(&["sessions"])
        .with("archived", Some("false"))
        .with("live", (state == OperatorState::Working).then_some("true"))
        .with("operator_state", Some(state.as_str()))
        .with("sort", Some("activity"))
        .with("limit", Some(SHOWN_MAX));
    let page: SessionPage = client.get(&route).await?;
    let attended = |row: &lanyard_core::journal::Row| {
        let id = row.id.to_string();
        let command = match state {
            OperatorState::Failed | OperatorState::ReadyForReview => format!("lanyard log {id} --since turn"),
            OperatorState::Working
            | OperatorState::NeedsAnswer
            | OperatorState::WaitingForLimit
            | OperatorState::Idle
            | OperatorState::Done => {
                format!("lanyard attach {id}")
            }
        };
        let name = named(row.agent.as_deref(), row.title.as_deref());
        let asks = row.pending.limit_until.map(|until| format!("goes on at {until}"));
        Attended { kind: state.as_str(), id, name, asks, since: row.last_activity_at, command }
    };
    Ok(page.sessions.iter().map(|session| attended(&session.row)).collect())
}

fn named(agent: Option<&str>, title: Option<&str>) -> String {
    let parts: Vec<String> = agent.map(one_line).into_iter().chain(title.map(quoted)).collect();
    if parts.is_empty() { "a session".to_owned() } else { parts.join(" ") }
}

/// The part about sessions: a chapter per kind, a line per session.
fn page(overview: &Overview, max: Option<usize>) -> String {
    let status = &overview.status;
    let mut text = warning(&status.halt).map(|halt| format!("! {halt}\n\n")).unwrap_or_default();
    let counted = |state: OperatorState| {
        let found = status.operator_states.iter().find(|count| count.operator_state == state);
        found.map_or(0, |count| count.sessions)
    };
    let chapters = [
        ("approval", "waiting for approval", 0),
        ("needs_answer", "waiting for you", 0),
        ("failed", "failed", counted(OperatorState::Failed)),
        ("ready_for_review", "ready for review", counted(OperatorState::ReadyForReview)),
        ("working", "running", counted(OperatorState::Working)),
        ("waiting_for_limit", "waiting for a limit", counted(OperatorState::WaitingForLimit)),
    ];
    for (kind, heading, total) in chapters {
        let all: Vec<&Attended> =
            overview.needs.iter().chain(&overview.running).filter(|one| one.kind == kind).collect();
        if all.is_empty() {
            continue;
        }
        let total = usize::try_from(total).unwrap_or(usize::MAX).max(all.len());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{heading} ({total})");
        for one in all.iter().take(SHOWN_MAX) {
            text.push_str(&line(one, status.now, max));
        }
        if total > SHOWN_MAX {
            let _ = writeln!(text, "  and {} more: lanyard top", total - SHOWN_MAX);
        }
        text.push('\n');
    }
    if overview.needs.is_empty() && overview.running.is_empty() {
        text.push_str("nothing needs you and nothing runs; `lanyard run` starts something\n\n");
    }
    text
}

/// The name and, behind it or on a line of its own, the command: a command is never cut.
fn line(one: &Attended, now: Timestamp, max: Option<usize>) -> String {
    let age = span(now.millis_since(one.since));
    let room = max.unwrap_or(NAME_COLUMNS_MAX).saturating_sub(width(&age) + 4);
    let name = match &one.asks {
        Some(asks) => fit(&format!("{asks} ({})", one.name), room),
        None => fit(&one.name, room),
    };
    format!("  {name}, {age}\n      {}\n", one.command)
}

fn card(status: &DaemonStatus) -> String {
    let storage = match status.storage {
        StorageState::Ok => "ok".to_owned(),
        StorageState::Unavailable => {
            let why = status.storage_error.as_deref().map(one_line).unwrap_or_default();
            format!("unavailable, nothing is acknowledged: {why}")
        }
    };
    let total: u64 = status.operator_states.iter().map(|count| count.sessions).sum();
    let by_word: Vec<String> = status
        .operator_states
        .iter()
        .filter(|count| count.sessions > 0)
        .map(|count| format!("{} {}", count.sessions, count.operator_state.label()))
        .collect();
    let sessions = match total {
        0 => "none".to_owned(),
        _ => format!("{total}: {}", by_word.join(", ")),
    };
    let started = format!("{} ({})", stamp(status.started_at), ago(status.now, status.started_at));
    let held = format!("{} in memory, {} readers", status.sessions_in_memory, status.readers);
    let written = format!("{} events in {} commits since the start", status.events, status.commits);
    let mut lines = vec![
        ("sessions", sessions),
        ("daemon", format!("http://{}, pid {}, version {}", status.address, status.pid, status.version)),
        ("data", status.data_dir.clone()),
        ("started", format!("{started}, {held}")),
        ("storage", format!("{storage}; {}; {written}", journal(&status.journal))),
    ];
    if let Some(error) = &status.config.error {
        lines.push(("config", format!("the file is not used: {}", one_line(error))));
    }
    if !status.config.needs_restart.is_empty() {
        let keys: Vec<&str> = status.config.needs_restart.iter().map(|change| change.key.as_str()).collect();
        lines.push(("restart", format!("needed for {}", one_line(&keys.join(", ")))));
    }
    if status.calls_unrecorded > 0 {
        let lost = format!("{} tool calls passed while storage was unavailable", status.calls_unrecorded);
        lines.push(("not written", lost));
    }
    lines.into_iter().fold(String::new(), |text, (name, value)| text + &pad(name, 13) + &value + "\n")
}

fn journal(journal: &JournalStatus) -> String {
    const MEBI: u64 = 1 << 20;
    let total = journal.size.total();
    let mut parts = vec![format!("{} kB", total.div_ceil(1_024))];
    if journal.alarm_bytes > 0 && total > journal.alarm_bytes {
        parts.push(format!("more than its limit of {} MB", journal.alarm_bytes / MEBI));
    }
    if journal.purging > 0 {
        parts.push(format!("{} deleted sessions not purged yet", journal.purging));
    }
    parts.extend(journal.notices.iter().map(|notice| one_line(notice)));
    parts.join(", ")
}
