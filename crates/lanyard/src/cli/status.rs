//! `lanyard status`: how the daemon is.

use lanyard_api::types::{DaemonStatus, JournalStatus, StorageState};

use super::halt::warning;
use crate::client::Route;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::{one_line, pad};
use crate::render::time::{ago, stamp};

const EXAMPLES: &str = "\
Ends with 3 when no daemon is running; it does not start one.

Examples:
  lanyard status
  lanyard status --json | jq .address";

/// Show how the daemon is
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Status {}

impl Status {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        let Some(mut client) = context.client_if_running().await? else {
            return Err(context.not_running("start one with `lanyard up --detach`"));
        };
        let status: DaemonStatus = client.get(&Route::to(&["status"])).await?;
        if context.out.is_json() {
            return context.out.json(&status);
        }
        if status.version != env!("CARGO_PKG_VERSION") {
            context.out.warn(&format!(
                "the daemon is version {} and this program is {}: restart it with `lanyard down`",
                status.version,
                env!("CARGO_PKG_VERSION")
            ));
        }
        context.out.data(&card(&status))
    }
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
    let mut lines = vec![
        ("address", format!("http://{}", status.address)),
        ("pid", status.pid.to_string()),
        ("version", status.version.clone()),
        ("data", status.data_dir.clone()),
        ("started", format!("{} ({})", stamp(status.started_at), ago(status.now, status.started_at))),
        ("storage", storage),
        ("journal", journal(&status.journal)),
        ("sessions", sessions),
        ("in memory", status.sessions_in_memory.to_string()),
        ("readers", status.readers.to_string()),
        ("written", format!("{} events in {} commits since the start", status.events, status.commits)),
    ];
    if let Some(halted) = warning(&status.halt) {
        lines.push(("halt", halted));
    }
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
    lines.into_iter().fold(String::new(), |text, (name, value)| text + &pad(name, 11) + &value + "\n")
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
