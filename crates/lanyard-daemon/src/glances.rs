//! The activity of sessions for the rows of listings: the running call, the last sentence, the agent's plan, changes and
//! costs. It is read from the log when a row is made and kept in memory. The engine and the store know nothing of it.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use lanyard_api::types::{Glance, GlanceCall, HourlyCost};
use lanyard_core::journal::Row;
use lanyard_core::session::{
    Envelope, Event, LastToolCall, MessageBreaks, PlanEntryState, Role, TranscriptEvent, TurnEvent,
};
use lanyard_core::text::{cut, one_line, telling};
use lanyard_core::{SessionId, Timestamp};
use lanyard_store::{Store, StoreError};
use parking_lot::Mutex;

/// Sessions whose activity is kept in memory. The half that was asked for longest ago is dropped when there are more.
const SESSIONS_MAX: usize = 4_096;
/// Events that are read of a log at most; older ones are passed over.
const EVENTS_MAX: u64 = 2_000;
/// Events read at a time.
const EVENTS_PAGE: usize = 500;
/// Files counted of a session.
const FILES_MAX: usize = 1_000;
/// Hours with costs that are kept: a day of any time zone.
const HOURS_MAX: i64 = 25;
/// The end of a message in which its last sentence is looked for, in Unicode scalars.
const SAID_TAIL_CHARS: usize = 600;
const SAID_CHARS_MAX: usize = 160;
const ABOUT_CHARS_MAX: usize = 120;
const HOUR_MS: i64 = 3_600_000;

/// The activity of the sessions that were listed lately.
#[derive(Debug, Default)]
pub(crate) struct Glances {
    book: Mutex<GlanceBook>,
}

#[derive(Debug, Default)]
struct GlanceBook {
    /// Each with the number of the listing that asked for it last.
    by_session: HashMap<SessionId, (u64, Arc<Mutex<GlanceFold>>)>,
    listings: u64,
}

/// The fold of a log into a glance.
#[derive(Debug, Default)]
struct GlanceFold {
    /// The last event that was read.
    as_of: u64,
    /// Events up to here are part of the usage that the record gave.
    usage_as_of: u64,
    glance: Glance,
    /// The running call.
    call: Option<String>,
    breaks: MessageBreaks,
    /// The end of the agent's latest message.
    words: String,
    files: HashSet<u64>,
}

impl Glances {
    /// The activity of each row's session, as of the row's last event or later. Reads the log; blocks.
    pub(crate) fn of(&self, store: &dyn Store, rows: &[Row]) -> Result<Vec<Glance>, StoreError> {
        let folds = self.folds(rows);
        rows.iter().zip(folds).map(|(row, fold)| follow(store, row, &fold)).collect()
    }

    fn folds(&self, rows: &[Row]) -> Vec<Arc<Mutex<GlanceFold>>> {
        let mut book = self.book.lock();
        book.listings += 1;
        let listing = book.listings;
        let folds = rows
            .iter()
            .map(|row| {
                let held = book.by_session.entry(row.id).or_default();
                held.0 = listing;
                held.1.clone()
            })
            .collect();
        book.bound();
        folds
    }
}

impl GlanceBook {
    fn bound(&mut self) {
        if self.by_session.len() <= SESSIONS_MAX {
            return;
        }
        let mut asked: Vec<u64> = self.by_session.values().map(|(asked, _)| *asked).collect();
        asked.sort_unstable();
        let middle = asked.get(asked.len() / 2).copied().unwrap_or_default();
        // Those of one listing stay or go together.
        let newest = self.listings;
        self.by_session.retain(|_, (asked, _)| *asked > middle || *asked == newest);
    }
}

/// Reads what the fold has not read yet.
fn follow(store: &dyn Store, row: &Row, fold: &Mutex<GlanceFold>) -> Result<Glance, StoreError> {
    let mut fold = fold.lock();
    if fold.as_of == 0 || row.last_seq > fold.as_of.saturating_add(EVENTS_MAX) {
        *fold = begin(store, row)?;
    }
    while fold.as_of < row.last_seq {
        let page = store.events(row.id, fold.as_of, EVENTS_PAGE)?;
        let Some(last) = page.events.last().map(|event| event.seq) else { break };
        for body in page.events.iter().filter_map(|event| event.body.as_ref().ok()) {
            // An event that cannot be read is reported by the log itself.
            let Ok(envelope) = serde_json::from_slice::<Envelope>(body) else { continue };
            fold.take(&envelope);
        }
        fold.as_of = last;
    }
    Ok(fold.glance())
}

/// A fold that starts near the end of the log, with the sums of the record.
fn begin(store: &dyn Store, row: &Row) -> Result<GlanceFold, StoreError> {
    let mut fold = GlanceFold { as_of: row.last_seq.saturating_sub(EVENTS_MAX), ..GlanceFold::default() };
    if let Some(session) = store.load(row.id)?.map(|loaded| loaded.session) {
        fold.usage_as_of = session.seq;
        fold.glance.usage = session.usage;
        // Where the calls of the log are older than what is read of it.
        fold.glance.call = session.last_tool_call.filter(|_| fold.as_of > 0).map(|last| {
            let LastToolCall { tool, at, .. } = last;
            GlanceCall { tool, about: None, at, running: false, failed: false }
        });
    }
    Ok(fold)
}

impl GlanceFold {
    fn glance(&self) -> Glance {
        let said = Some(last_sentence(&self.words)).filter(|said| !said.is_empty());
        Glance { said, files: self.files.len() as u64, ..self.glance.clone() }
    }

    fn take(&mut self, envelope: &Envelope) {
        let begins = self.breaks.begins(&envelope.event);
        match &envelope.event {
            Event::Transcript(event) => self.transcript(envelope, event, begins),
            Event::Turn(TurnEvent::Started { .. }) => {
                self.words.clear();
                self.call = None;
                self.glance.call = None;
            }
            Event::Turn(
                TurnEvent::Finished { .. } | TurnEvent::Interrupted { .. } | TurnEvent::Waiting { .. },
            ) => {
                self.returned(None, false);
            }
            Event::Turn(TurnEvent::CancelRequested { .. } | TurnEvent::Continued { .. })
            | Event::Change(_)
            | Event::Inbox(_)
            | Event::Context(_)
            | Event::Control(_)
            | Event::Run(_)
            | Event::Gate(_)
            | Event::Writer(_)
            | Event::Review(_) => {}
        }
    }

    fn transcript(&mut self, envelope: &Envelope, event: &TranscriptEvent, begins: bool) {
        match event {
            TranscriptEvent::Message { role: Role::Agent, text, .. } => {
                if begins {
                    self.words.clear();
                }
                self.words.push_str(text);
                self.words = tail(&self.words, SAID_TAIL_CHARS).to_owned();
            }
            TranscriptEvent::ToolCalled { call, tool, arguments } => {
                let about = telling(arguments).map(|text| one_line(&text, ABOUT_CHARS_MAX));
                self.call = Some(call.clone());
                self.words.clear();
                self.called(tool, about.filter(|text| !text.is_empty()), (envelope.at, true));
            }
            TranscriptEvent::ToolReturned { call, is_error, .. } => self.returned(Some(call), *is_error),
            // The agent's own report of a call says more, and says it first.
            TranscriptEvent::ToolRelayed { tool, .. }
                if self.call.is_none() && self.glance.call.is_none() =>
            {
                self.called(tool, None, (envelope.at, false));
            }
            TranscriptEvent::Planned { entries } => {
                self.glance.steps = entries.len() as u64;
                let done = entries.iter().filter(|entry| entry.status == PlanEntryState::Completed);
                self.glance.steps_done = done.count() as u64;
            }
            TranscriptEvent::FileChanged { path, added, removed } => {
                if self.files.len() < FILES_MAX {
                    let mut hasher = DefaultHasher::new();
                    path.hash(&mut hasher);
                    self.files.insert(hasher.finish());
                }
                self.glance.added = self.glance.added.saturating_add(added.unwrap_or_default());
                self.glance.removed = self.glance.removed.saturating_add(removed.unwrap_or_default());
            }
            TranscriptEvent::UsageReported { input_tokens, output_tokens, context_tokens, cost_micros } => {
                if envelope.seq > self.usage_as_of {
                    let usage = &mut self.glance.usage;
                    usage.input_tokens = usage.input_tokens.saturating_add(*input_tokens);
                    usage.output_tokens = usage.output_tokens.saturating_add(*output_tokens);
                    usage.context_tokens = context_tokens.or(usage.context_tokens);
                    usage.cost_micros = usage.cost_micros.saturating_add(*cost_micros);
                }
                self.spent(envelope.at, *cost_micros);
            }
            TranscriptEvent::Message { role: Role::User, .. }
            | TranscriptEvent::Thought { .. }
            | TranscriptEvent::ToolRelayed { .. }
            | TranscriptEvent::InFlight { .. } => {}
        }
    }

    fn called(&mut self, tool: &str, about: Option<String>, (at, running): (Timestamp, bool)) {
        let tool = one_line(tool, ABOUT_CHARS_MAX);
        self.glance.call = Some(GlanceCall { tool, about, at, running, failed: false });
    }

    /// The latest call is over: by its own end, or with its turn.
    fn returned(&mut self, call: Option<&String>, failed: bool) {
        if call.is_some() && call != self.call.as_ref() {
            return;
        }
        self.call = None;
        if let Some(last) = &mut self.glance.call {
            last.running = false;
            last.failed |= failed;
        }
    }

    fn spent(&mut self, at: Timestamp, cost_micros: u64) {
        if cost_micros == 0 {
            return;
        }
        let hour = Timestamp::from_millis(at.as_millis().div_euclid(HOUR_MS) * HOUR_MS);
        let hourly = &mut self.glance.hourly;
        match hourly.last_mut().filter(|last| last.hour >= hour) {
            Some(last) => last.cost_micros = last.cost_micros.saturating_add(cost_micros),
            None => hourly.push(HourlyCost { hour, cost_micros }),
        }
        let oldest = Timestamp::from_millis(hour.as_millis() - HOUR_MS * HOURS_MAX);
        hourly.retain(|one| one.hour > oldest);
    }
}

/// The last `max` Unicode scalars of a text.
fn tail(text: &str, max: usize) -> &str {
    let over = text.chars().count().saturating_sub(max);
    text.char_indices().nth(over).map_or("", |(at, _)| &text[at..])
}

/// The last line with words in it, and of a long line its last sentence. Markup before the words is left out.
fn last_sentence(text: &str) -> String {
    let plain = |line: &str| {
        let words = line
            .trim()
            .trim_start_matches(['#', '>', '*', '-', '`', '_', ' '])
            .trim_end_matches(['*', '`', '_']);
        one_line(words, SAID_TAIL_CHARS)
    };
    let line = text.lines().rev().map(plain).find(|line| !line.is_empty()).unwrap_or_default();
    let (_, long) = cut(&line, SAID_CHARS_MAX);
    let end = tail(&line, SAID_CHARS_MAX);
    match end.split_once(". ") {
        Some((_, sentence)) if long => sentence.to_owned(),
        Some(_) | None if long => format!("{}…", cut(&line, SAID_CHARS_MAX - 1).0),
        Some(_) | None => line,
    }
}

#[cfg(test)]
#[path = "glances_tests.rs"]
mod tests;
