//! `lanyard audit`: who stopped, guided or answered what, and when.

use clap::builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use lanyard_api::types::{AuditEntry, AuditKind, AuditPage};
use lanyard_client::Route;
use lanyard_client::names::A_SESSION;
use lanyard_core::Timestamp;

use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::table::{Column, table};
use crate::render::text::{count, one_line, quoted};
use crate::render::time::stamp;

/// The most one page may hold.
const PAGE_ENTRIES_MAX: usize = 1_000;
/// Shown when nothing else is said.
const ENTRIES_DEFAULT: usize = 100;

const EXAMPLES: &str = "\
Lists stops, guidance, answered approvals and changes to plans, tasks, flows and the daemon, with
actor, time and reason. Newest first. Changes are kept for 30 days. Times are UTC; --since takes
90s, 15m, 2h, 7d or a time.

Examples:
  lanyard audit
  lanyard audit fix-login --kind stop
  lanyard audit --kind change --since 7d
  lanyard audit --since 24h --jsonl > audit.jsonl
  lanyard audit --since 2026-11-15T08:00:00Z --json";

const COLUMNS: [Column; 6] = [
    Column::whole("AT"),
    Column::whole("SESSION"),
    Column::whole("EVENT"),
    Column::elastic("BY", 5),
    Column::elastic("CHANNEL", 6),
    Column::elastic("WHAT", 20),
];

/// List stops, guidance, answered approvals and changes, with their actors
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct AuditArgs {
    /// Of this session only: its id or one of its aliases
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    session: Option<String>,
    /// Not older than this: a span such as 2h, or a time
    #[arg(long, value_name = "WHEN")]
    since: Option<When>,
    /// Not newer than this
    #[arg(long, value_name = "WHEN")]
    until: Option<When>,
    /// Only these
    #[arg(long, value_parser = kind_parser())]
    kind: Option<String>,
    /// Show this many at most; 0 for all
    #[arg(long, short = 'n', value_name = "N", default_value_t = ENTRIES_DEFAULT)]
    limit: usize,
    /// Go on where a limited listing ended: its `next`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// One JSON document per line, for other programs to keep
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
}

/// The values of `--kind`, as the API names them: approvals are `gate` there.
fn kind_parser() -> impl TypedValueParser<Value = String> {
    let approval = PossibleValue::new("approval").alias("gate");
    let kinds = ["stop", "guidance"].map(PossibleValue::new).into_iter();
    PossibleValuesParser::new(kinds.chain([approval, PossibleValue::new("change")]))
        .map(|kind| if kind == "approval" { "gate".to_owned() } else { kind })
}

/// A point in time, or how long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    At(Timestamp),
    AgoMs(u64),
}

impl std::str::FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(at) = text.parse() {
            return Ok(Self::At(at));
        }
        let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
        units
            .into_iter()
            .find_map(|(unit, ms)| text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(ms))
            .map(Self::AgoMs)
            .ok_or_else(|| {
                "use a span such as 15m, 2h or 7d, or a time such as 2026-11-15T08:00:00Z".to_owned()
            })
    }
}

impl When {
    pub(super) fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::AgoMs(ms) => now.minus_millis(ms),
        }
    }
}

impl AuditArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let now = daemon_now(&mut client).await?;
        let session = client.id_if(A_SESSION, self.session).await?;
        let route = Route::to(&["audit"])
            .with("session", session)
            .with("since", self.since.map(|when| when.at(now)))
            .with("until", self.until.map(|when| when.at(now)))
            .with("kind", self.kind.as_ref());
        let max = if self.limit == 0 { usize::MAX } else { self.limit };
        let mut entries: Vec<AuditEntry> = Vec::new();
        let mut cursor = self.cursor;
        let mut shown = 0;
        while shown < max {
            let limit = PAGE_ENTRIES_MAX.min(max - shown);
            let at = route.clone().with("cursor", cursor.as_ref()).with("limit", Some(limit));
            let page: AuditPage = client.get_patiently(&at).await?;
            warn(context, &page);
            shown += page.entries.len();
            if self.jsonl {
                lines(context, &page.entries)?;
            } else {
                entries.extend(page.entries);
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        if self.jsonl {
            return Ok(());
        }
        if context.out.is_json() {
            return context.out.list(&entries, cursor.as_deref());
        }
        if entries.is_empty() {
            context.out.note("no stops, guidance, answers or changes");
            return Ok(());
        }
        let cells: Vec<Vec<String>> = entries.iter().map(cells).collect();
        context.out.data(&table(&COLUMNS, &cells, context.out.columns))
    }
}

/// What is missing is said, never left out in silence.
fn warn(context: &Context, page: &AuditPage) {
    if page.truncated {
        context.out.warn("not all logs were looked at; name a session or a later --since to see all of it");
    }
    if page.damaged > 0 {
        let records = count(page.damaged, "record");
        context.out.warn(&format!("{records} could not be read; `lanyard doctor` says which"));
    }
}

fn lines(context: &Context, entries: &[AuditEntry]) -> Result<(), Failure> {
    let mut text = String::new();
    for entry in entries {
        let line = serde_json::to_string(entry)
            .map_err(|error| Failure::local("output_failed", error.to_string(), ""))?;
        text.push_str(&line);
        text.push('\n');
    }
    context.out.data(&text)
}

fn cells(entry: &AuditEntry) -> Vec<String> {
    let channel = match (&entry.channel, &entry.call) {
        (Some(channel), Some(call)) => format!("{} {}", one_line(channel), one_line(call)),
        (Some(channel), None) => one_line(channel),
        (None, _) => String::new(),
    };
    vec![
        stamp(entry.at),
        entry.session.map(|session| session.to_string()).unwrap_or_default(),
        one_line(&entry.event),
        one_line(&entry.actor.name),
        channel,
        what(entry),
    ]
}

fn what(entry: &AuditEntry) -> String {
    let level = match (entry.from_level, entry.to_level, entry.escalation_level) {
        (Some(from), Some(to), _) => format!("level {from} → {to}"),
        (_, _, Some(level)) => format!("level {level}"),
        _ => String::new(),
    };
    let text = entry.text_preview.as_deref().or(entry.reason.as_deref()).map(quoted).unwrap_or_default();
    let about = match entry.kind {
        AuditKind::Gate | AuditKind::Change => entry.about.first().cloned().unwrap_or_default(),
        AuditKind::Guidance if text.is_empty() => count(entry.about.len(), "note"),
        AuditKind::Guidance | AuditKind::Stop => String::new(),
    };
    let parts = [level, about, entry.outcome.as_deref().map(one_line).unwrap_or_default(), text];
    let said: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_can_be_said_as_a_span_or_as_it_is() {
        assert_eq!("15m".parse(), Ok(When::AgoMs(900_000)));
        assert_eq!("7d".parse(), Ok(When::AgoMs(604_800_000)));
        assert_eq!("500ms".parse(), Ok(When::AgoMs(500)));
        assert_eq!("2026-11-15T08:00:00Z".parse(), Ok(When::At(Timestamp::from_millis(1_794_729_600_000))));
        assert!("yesterday".parse::<When>().is_err());
        assert!("99999999999999999999d".parse::<When>().is_err());
        let now = Timestamp::from_millis(10_000);
        assert_eq!(When::AgoMs(4_000).at(now), Timestamp::from_millis(6_000));
    }
}
