//! `lanyard notifications`: what people should know, and what they did about it.

use lanyard_api::types::{
    NotificationBulk, NotificationBulkAnswer, NotificationDetail, NotificationEdit, NotificationPage,
    NotificationPurge, NotificationWhich, NotificationsPurged,
};
use lanyard_client::Route;
use lanyard_core::notification::{Notification, NotificationKind, NotificationStatus};

use super::duration::duration_ms;
use crate::client::Client;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::table::{Column, table};
use crate::render::text::one_line;
use crate::render::time::ago;

const COLUMNS: [Column; 6] = [
    Column::whole("NOTIFICATION"),
    Column::whole("SEVERITY"),
    Column::whole("KIND"),
    Column::whole("RAISED"),
    Column::whole("STATUS"),
    Column::elastic("TITLE", 20),
];

const EXAMPLES: &str = "\
Lanyard raises a notification once when something begins that people should know: an approval that
waits, a session that fell silent, undelivered guidance, a spent budget, continuity that
is degraded. While it lasts it is not repeated, whatever you did about it; a snoozed one is new
again when its time comes. Receivers outside are set under [notifications] in the config.

Examples:
  lanyard notifications
  lanyard notifications ls --all
  lanyard notifications show ntf_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard notifications ack ntf_01m7n5djg0fayvh8t5cxyjkdnf
  lanyard notifications snooze ntf_01m7n5djg0fayvh8t5cxyjkdnf --for 30m --note \"deploying\"
  lanyard notifications dismiss --all
  lanyard notifications purge";

/// List what you should know, and acknowledge, snooze or dismiss it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct NotificationsArgs {
    #[command(flatten)]
    ls: Ls,
    #[command(subcommand)]
    verb: Option<NotificationsVerb>,
}

#[derive(Debug, clap::Args)]
struct Ls {
    /// Show dismissed ones too
    #[arg(long, short)]
    all: bool,
    /// Only of this kind, such as `gate_waiting`
    #[arg(long, value_parser = kind)]
    kind: Option<NotificationKind>,
    /// Only about this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Which {
    /// These
    #[arg(value_name = "NOTIFICATION", required_unless_present_any = ["all", "kind"])]
    ids: Vec<String>,
    /// Every one that was not dismissed
    #[arg(long, short, conflicts_with = "ids")]
    all: bool,
    /// Every one of this kind
    #[arg(long, value_parser = kind, conflicts_with = "ids")]
    kind: Option<NotificationKind>,
    /// What you have to say about it
    #[arg(long)]
    note: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum NotificationsVerb {
    /// List them, newest first
    Ls(Ls),
    /// Show one, and how its deliveries went
    Show {
        #[arg(value_name = "NOTIFICATION")]
        id: String,
    },
    /// Mark as read
    Read(Which),
    /// Acknowledge: an operator handles it
    Ack(Which),
    /// Put off; it is new again when the time is over
    Snooze {
        #[command(flatten)]
        which: Which,
        /// How long: 90s, 30m, 2h, 1d
        #[arg(long = "for", value_name = "TIME", value_parser = duration_ms, default_value = "30m")]
        ms: u64,
    },
    /// Dismiss: there is nothing to do about it
    Dismiss(Which),
    /// Take those away for good that were dismissed and are over
    Purge {
        /// Only those that were last changed so long ago: 90s, 30m, 2h, 1d
        #[arg(long, value_name = "TIME", value_parser = duration_ms)]
        older_than: Option<u64>,
    },
}

impl NotificationsArgs {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let client = &mut client;
        match self.verb {
            None => list(context, client, &self.ls).await,
            Some(NotificationsVerb::Ls(ls)) => list(context, client, &ls).await,
            Some(NotificationsVerb::Show { id }) => show(context, client, &id).await,
            Some(NotificationsVerb::Read(which)) => {
                change(context, client, which, NotificationStatus::Read, None).await
            }
            Some(NotificationsVerb::Ack(which)) => {
                change(context, client, which, NotificationStatus::Acknowledged, None).await
            }
            Some(NotificationsVerb::Snooze { which, ms }) => {
                change(context, client, which, NotificationStatus::Snoozed, Some(ms)).await
            }
            Some(NotificationsVerb::Dismiss(which)) => {
                change(context, client, which, NotificationStatus::Dismissed, None).await
            }
            Some(NotificationsVerb::Purge { older_than }) => {
                let body = NotificationPurge { older_than_ms: older_than };
                let purged: NotificationsPurged =
                    client.post(&Route::to(&["notifications", "purge"]), &body).await?;
                if context.out.is_json() {
                    return context.out.json(&purged);
                }
                context.out.note(&format!("{} taken away", purged.removed));
                Ok(())
            }
        }
    }
}

async fn list(context: &Context, client: &mut Client<'_>, asked: &Ls) -> Result<(), Failure> {
    let mut found: Vec<Notification> = Vec::new();
    let mut cursor: Option<String> = None;
    let session = client.session_if(asked.session.clone()).await?;
    loop {
        let route = Route::to(&["notifications"])
            .with("session", session.as_ref())
            .with("open", (!asked.all).then_some("true"))
            .with("kind", asked.kind.map(NotificationKind::as_str))
            .with("cursor", cursor.as_ref());
        let page: NotificationPage = client.get(&route).await?;
        found.extend(page.notifications);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    if context.out.is_json() {
        return context.out.list(&found, None);
    }
    if found.is_empty() {
        let hint = if asked.all { "" } else { "; --all shows dismissed ones too" };
        context.out.note(&format!("nothing to tell{hint}"));
        return Ok(());
    }
    let now = daemon_now(client).await?;
    let row = |held: &Notification| {
        vec![
            held.id.to_string(),
            held.severity.as_str().to_owned(),
            held.kind.as_str().to_owned(),
            ago(now, held.raised_at),
            status(held),
            one_line(&held.title),
        ]
    };
    let cells: Vec<Vec<String>> = found.iter().map(row).collect();
    context.out.data(&table(&COLUMNS, &cells, context.out.columns))
}

fn status(held: &Notification) -> String {
    let over = if held.over_at.is_some() { ", over" } else { "" };
    format!("{}{over}", held.status.as_str())
}

async fn show(context: &Context, client: &mut Client<'_>, id: &str) -> Result<(), Failure> {
    let detail: NotificationDetail = client.get(&Route::to(&["notifications", id])).await?;
    if context.out.is_json() {
        return context.out.json(&detail);
    }
    let now = daemon_now(client).await?;
    let held = &detail.notification;
    let mut lines = vec![format!("{}  {}", held.id, one_line(&held.title))];
    let mut line = |name: &str, text: String| lines.push(format!("  {name:<10}{text}"));
    line("kind", format!("{}, {}", held.kind.as_str(), held.severity.as_str()));
    line("status", status(held));
    line("raised", ago(now, held.raised_at));
    if let Some(until) = held.snoozed_until {
        line("until", until.to_string());
    }
    if let Some(session) = held.session {
        line("session", session.to_string());
    }
    if let Some(note) = &held.note {
        line("note", one_line(note));
    }
    if held.repeats > 0 {
        line("repeated", format!("{} times", held.repeats));
    }
    for delivery in &detail.deliveries {
        let why = delivery.last_error.as_ref().map(|why| format!(": {}", one_line(why))).unwrap_or_default();
        let (state, attempts) = (delivery.state.as_str(), delivery.attempts);
        line("sent to", format!("{}: {state}, tries {attempts}{why}", delivery.to));
    }
    lines.extend((!held.text.is_empty()).then(|| format!("\n{}", held.text)));
    context.out.data(&lines.join("\n"))
}

/// One by its id, so that it can be refused by name; many in one request.
async fn change(
    context: &Context,
    client: &mut Client<'_>,
    which: Which,
    status: NotificationStatus,
    snooze_ms: Option<u64>,
) -> Result<(), Failure> {
    let Which { ids, all, kind, note } = which;
    if !ids.is_empty() {
        let mut changed = Vec::new();
        for id in &ids {
            let body = NotificationEdit { status, until: None, snooze_ms, note: note.clone() };
            let held: Notification = client.patch(&Route::to(&["notifications", id]), &body).await?;
            changed.push(held);
        }
        if context.out.is_json() {
            return context.out.json(&changed);
        }
        for held in changed {
            context.out.note(&format!("{} is {}", held.id, held.status.as_str()));
        }
        return Ok(());
    }
    let filter = NotificationWhich { all, kind, ..NotificationWhich::default() };
    let body = NotificationBulk { filter, status, until: None, snooze_ms, note, limit: Some(BULK) };
    let answer: NotificationBulkAnswer = client.post(&Route::to(&["notifications", "bulk"]), &body).await?;
    if context.out.is_json() {
        return context.out.json(&answer);
    }
    let more = if answer.more { "; there are more, do it again" } else { "" };
    context.out.note(&format!("{} {}{more}", answer.changed.len(), status.as_str()));
    Ok(())
}

/// What one request changes at most.
const BULK: usize = 500;

fn kind(text: &str) -> Result<NotificationKind, String> {
    NotificationKind::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
        let known: Vec<&str> = NotificationKind::ALL.iter().map(|kind| kind.as_str()).collect();
        format!("it is one of {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_one_of_those_there_are() {
        assert!(kind("gate_waiting").is_ok() && kind("x").unwrap_err().contains("flow_failed"));
    }
}
