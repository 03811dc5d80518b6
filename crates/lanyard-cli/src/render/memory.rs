//! What is remembered, for people: a row of a list, one entry whole, a session's policy.

use lanyard_api::types::{MemoryPolicyView, MemoryRow, MemoryStatus};
use lanyard_core::Timestamp;
use lanyard_core::memory::{MemoryEntry, MemoryPolicy, MemoryScope, Tags, Where, tag};

use crate::render::card::Card;
use crate::render::table::{Column, table};
use crate::render::text::{harmless, one_line};
use crate::render::time::{ago, stamp};

const COLUMNS: [Column; 6] = [
    Column::whole("MEMORY"),
    Column::whole("STORE"),
    Column::whole("WRITTEN"),
    Column::elastic("NAME", 8),
    Column::elastic("TAGS", 8),
    Column::elastic("TEXT", 20),
];

/// Entries as a table, in the order they were found. `now` is the daemon's clock.
pub(crate) fn entries(rows: &[MemoryRow], now: Timestamp, max: Option<usize>) -> String {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let entry = &row.entry;
            vec![
                entry.id.to_string(),
                entry.store.as_str().to_owned(),
                ago(now, entry.at),
                entry.name.as_deref().map(one_line).unwrap_or_default(),
                tag::joined(&entry.tags),
                one_line(row.excerpt.as_deref().unwrap_or(&entry.text)),
            ]
        })
        .collect();
    table(&COLUMNS, &cells, max)
}

/// One entry with its origin. Its text is labelled as a quotation.
pub(crate) fn entry_card(entry: &MemoryEntry, now: Timestamp) -> String {
    let mut card = Card::default();
    card.line("id", entry.id.to_string());
    card.text("name", entry.name.as_ref());
    let store = match (entry.store, entry.scope) {
        (Where::Session, _) => "session",
        (Where::LongTerm, MemoryScope::Plan) => "long-term, of a plan",
        (Where::LongTerm, MemoryScope::Workspace | MemoryScope::Session) => "long-term",
    };
    card.line("store", store);
    card.line("tags", tag::joined(&entry.tags));
    card.gap();
    card.text("workspace", Some(&entry.workspace).filter(|workspace| !workspace.is_empty()));
    card.text("owner", Some(&entry.owner));
    card.text("plan", entry.plan.as_ref());
    card.line("written", format!("{} ({}), version {}", stamp(entry.at), ago(now, entry.at), entry.version));
    card.line("by", format!("{} {}", entry.by.kind.as_str(), one_line(&entry.by.name)));
    card.line("session", entry.session.map(|session| session.to_string()).unwrap_or_default());
    card.line("turn", entry.turn.map(|turn| turn.to_string()).unwrap_or_default());
    format!("{}\n{}\n", card.done(), harmless(entry.text.trim_end()))
}

/// What a session may remember, and what was refused.
pub(crate) fn policy_card(view: &MemoryPolicyView) -> String {
    let mut card = Card::default();
    card.line("session", view.session.to_string());
    policy(&mut card, &view.policy);
    if view.effective != view.policy {
        card.gap();
        card.line("in force", brief(&view.effective));
        card.line("above it", view.above.as_ref().map(brief).unwrap_or_default());
    }
    if !view.refused.is_empty() {
        card.gap();
        card.lines("refused", view.refused.iter().map(|(rule, times)| format!("{times} × {}", rule.code())));
    }
    card.done()
}

fn policy(card: &mut Card, policy: &MemoryPolicy) {
    card.line("mode", policy.mode.as_str());
    card.line("own memory", if policy.session_memory { "yes" } else { "no" });
    card.line("tags", list(&policy.tags));
    card.line("allow-list", list(&policy.allow));
}

fn list(tags: &Tags) -> String {
    if tags.is_empty() { "none".to_owned() } else { tag::joined(tags) }
}

/// `selective (api, design), tagged dev_test`.
pub(crate) fn brief(policy: &MemoryPolicy) -> String {
    let mut parts = vec![policy.mode.as_str().to_owned()];
    if !policy.allow.is_empty() {
        parts[0] = format!("{} ({})", parts[0], tag::joined(&policy.allow));
    }
    if !policy.session_memory {
        parts.push("no memory of its own".to_owned());
    }
    if !policy.tags.is_empty() {
        parts.push(format!("tagged {}", tag::joined(&policy.tags)));
    }
    if let Some(why) = &policy.unreadable {
        parts.push(format!("the stored policy cannot be read: {}", one_line(why)));
    }
    parts.join(", ")
}

pub(crate) fn status_card(status: &MemoryStatus) -> String {
    let mut card = Card::default();
    card.line(
        "memory",
        match status.mode {
            lanyard_api::config::MemorySwitch::On => "on",
            lanyard_api::config::MemorySwitch::Off => "off; nothing is lost, and nothing is written or read",
        },
    );
    card.line("session", status.session_entries.to_string());
    card.line("long-term", status.long_term_entries.to_string());
    card.line("embeddings", status.embeddings.as_deref().map_or_else(|| "none".to_owned(), one_line));
    card.lines("refused", status.refused.iter().map(|(rule, times)| format!("{times} × {}", rule.code())));
    card.done()
}
