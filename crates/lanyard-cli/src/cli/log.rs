//! `lanyard log`: a session as a conversation one can read.

use std::path::{Path, PathBuf};

use lanyard_api::types::TerminalView;
use lanyard_client::Route;
use lanyard_core::session::SessionView;
use lanyard_core::{GateId, Timestamp};
use serde_json::Value;

use super::duration::duration_ms;
use super::follow::Mark;
use super::printer::{EventSink, Printer, page};
use super::target::Target;
use super::turn_list::{turn_named, turns_started};
use crate::client::Client;
use crate::context::{Context, daemon_now};
use crate::failure::Failure;
use crate::render::log::{HtmlForm, LogForm, LogHead, MarkdownForm, TextForm};
use crate::render::text::{count, one_line};
use crate::render::tool::OpenedPart;
use crate::render::transcript::{CallPairs, Transcriber, TranscriptItem};
use crate::tui::paint::Paint;

/// Bytes of a document that are collected before they are written.
const WRITE_BYTES: usize = 64 * 1024;

const EXAMPLES: &str = "\
Shows messages with their speakers, each tool call on one line with its result, diffs, and the end of
each turn. The margin has the time in UTC. `lanyard logs` shows the events instead. The log is written
as it is read, however long it is. There is no pager: pipe it into one. --html writes one page that
needs nothing else, with the tool calls folded; --full opens them.

Examples:
  lanyard log fix-login
  lanyard log fix-login --since turn
  lanyard log fix-login --since 30m --full | less
  lanyard log -f fix-login
  lanyard log fix-login --html > session.html";

/// Read a session as a transcript, or export it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Log {
    #[command(flatten)]
    target: Target,
    /// Continue with what happens until the session ends
    #[arg(long, short)]
    follow: bool,
    /// Show the input and the output of tools, and diffs of any length
    #[arg(long)]
    full: bool,
    /// Begin here: a duration (30m), a time or day (2026-11-18T10:00:00Z), `turn` for the last turn, or a turn's id or the
    /// end of it (`turn_yjkdnt`)
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Since>,
    #[command(flatten)]
    export: ExportForm,
    /// Of a program on a terminal: write its newest recording to this file, as asciicast 2; `-` is stdout
    #[arg(long, value_name = "FILE", conflicts_with_all = ["follow", "since", "html", "markdown"])]
    cast: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ExportForm {
    /// Write Markdown
    #[arg(long, conflicts_with = "html")]
    markdown: bool,
    /// Write a page of HTML
    #[arg(long)]
    html: bool,
}

/// The place where a transcript begins.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Since {
    Ago(u64),
    At(Timestamp),
    LastTurn,
    Turn(String),
}

fn since(text: &str) -> Result<Since, String> {
    if text == "turn" {
        return Ok(Since::LastTurn);
    }
    if text.starts_with("turn_") {
        return Ok(Since::Turn(text.to_owned()));
    }
    if let Ok(ms) = duration_ms(text) {
        return Ok(Since::Ago(ms));
    }
    let time = text.parse().or_else(|_| format!("{text}T00:00:00Z").parse());
    time.map(Since::At).map_err(|_| {
        "it is a duration (30m), a time (2026-11-18T10:00:00Z), a day (2026-11-18), `turn` or a turn's id"
            .to_owned()
    })
}

impl Log {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.client().await?;
        let view: SessionView = client.get(&self.target.route(&[])).await?;
        // By its id from here on: an alias could come to mean another session while this one is followed.
        let id = view.id.to_string();
        if let Some(file) = &self.cast {
            return export_recording(context, &mut client, &id, file).await;
        }
        let after = match &self.since {
            None => 0,
            Some(since) => position(&mut client, &view, since).await?,
        };
        let opened = if self.full { OpenedPart::Everything } else { OpenedPart::Edits };
        let form: Box<dyn LogForm> = if self.export.html {
            Box::new(HtmlForm::new(opened))
        } else if self.export.markdown {
            Box::new(MarkdownForm::new(opened))
        } else {
            let columns = context.out.columns;
            Box::new(TextForm::new(columns, columns.is_some() && Paint::from_env().colour, opened))
        };
        let mut sink = Document::new(context, form, &view);
        if !context.out.is_json() {
            sink.begin(&view);
        }
        let mut printer = Printer::new(context, &view, after, sink);
        printer.read(&mut client, &id, view.last_seq).await?;
        if self.follow {
            drop(client);
            return printer.follow(&id).await;
        }
        printer.finish(&id).await?;
        let as_text = !(self.export.html || self.export.markdown || context.out.is_json());
        if view.terminal.is_some() && as_text {
            let route = Route::to(&["sessions", &id, "terminal"]).with("transcript", Some("true"));
            let shown: TerminalView = client.get(&route).await?;
            let state = if shown.running { "The screen now" } else { "The last screen" };
            let text = shown.transcript.unwrap_or(shown.text);
            context.out.document(&format!("\n{state}:\n\n{}\n", text.trim_end()))?;
        }
        Ok(())
    }
}

/// Writes the recording of a program on a terminal.
async fn export_recording(
    context: &Context,
    client: &mut Client<'_>,
    id: &str,
    file: &Path,
) -> Result<(), Failure> {
    let bytes = client.get_bytes(&Route::to(&["sessions", id, "terminal", "recording"])).await?;
    if file == Path::new("-") {
        return context.out.document(&String::from_utf8_lossy(&bytes));
    }
    std::fs::write(file, &bytes).map_err(|error| {
        let title = format!("cannot write {}: {error}", file.display());
        Failure::local("file_unwritable", title, "name a file that can be written")
    })?;
    context.out.note(&format!("{} bytes; play them with `asciinema play {}`", bytes.len(), file.display()));
    Ok(())
}

/// The position after which the transcript begins.
async fn position(client: &mut Client<'_>, view: &SessionView, since: &Since) -> Result<u64, Failure> {
    let id = view.id.to_string();
    let at = match since {
        Since::Ago(ms) => daemon_now(client).await?.minus_millis(*ms),
        Since::At(at) => *at,
        Since::LastTurn | Since::Turn(_) => {
            let turns = turns_started(client, &id).await?;
            let turn = match since {
                Since::Turn(named) => {
                    let meant = turn_named(&turns.iter().map(|row| row.turn).collect::<Vec<_>>(), named)?;
                    turns.iter().find(|row| row.turn == meant)
                }
                Since::Ago(_) | Since::At(_) | Since::LastTurn => turns.last(),
            };
            let started = turn.and_then(|row| row.started_seq).ok_or_else(|| {
                let title = match since {
                    Since::Turn(named) => format!("the session has no turn {}", one_line(named)),
                    Since::Ago(_) | Since::At(_) | Since::LastTurn => {
                        "the session had no turn yet".to_owned()
                    }
                };
                Failure::local("turn_not_found", title, format!("list its turns with `lanyard turns {id}`"))
            })?;
            return Ok(started.saturating_sub(1));
        }
    };
    // All events up to `low` are older; the first one after `high` is not, or there is none.
    let (mut low, mut high) = (0, view.last_seq);
    while low < high {
        let middle = low + (high - low) / 2;
        let page = page(client, &id, middle, 1).await?;
        let first = page.events.first().and_then(|event| serde_json::from_str::<Value>(event.get()).ok());
        let time = first.as_ref().and_then(|raw| raw["at"].as_str()?.parse::<Timestamp>().ok());
        match (first, time) {
            (Some(raw), Some(time)) if time < at => low = raw["seq"].as_u64().unwrap_or(0).max(middle + 1),
            _ => high = middle,
        }
    }
    Ok(low)
}

/// A transcript on its way to stdout.
struct Document<'a> {
    context: &'a Context,
    form: Box<dyn LogForm>,
    transcriber: Transcriber,
    pairs: CallPairs,
    at: Timestamp,
    /// A turn runs: its calls may still return.
    running: bool,
    /// The position up to which `open` is known.
    known_seq: u64,
    /// The approvals that waited for an answer at `known_seq`.
    open: Vec<GateId>,
    written: String,
    held: bool,
}

impl<'a> Document<'a> {
    fn new(context: &'a Context, form: Box<dyn LogForm>, view: &SessionView) -> Self {
        Self {
            context,
            form,
            transcriber: Transcriber::of_agent(view.agent.as_deref().map(one_line)),
            pairs: CallPairs::default(),
            at: view.created_at,
            running: view.active_turn.is_some(),
            known_seq: view.last_seq,
            open: view.gates.iter().map(|gate| gate.id).collect(),
            written: String::new(),
            held: false,
        }
    }

    fn begin(&mut self, view: &SessionView) {
        let title = view.title.as_deref().map_or_else(|| "a session without a title".to_owned(), one_line);
        let known = [view.agent.as_deref(), view.workspace.as_deref(), Some(view.operator_state.label())];
        let mut facts: Vec<String> = known.into_iter().flatten().map(one_line).collect();
        facts.push(count(view.turns, "turn"));
        let head = LogHead { title, id: view.id.to_string(), facts };
        self.written = self.form.head(&head);
    }

    fn item(&mut self, at: Timestamp, item: &TranscriptItem) {
        let text = self.form.item(at, item);
        self.written.push_str(&text);
    }

    fn unfinished(&mut self) {
        for item in self.pairs.unfinished() {
            self.item(self.at, &item);
        }
    }

    fn write(&mut self) -> Result<(), Failure> {
        let text = std::mem::take(&mut self.written);
        if text.is_empty() { Ok(()) } else { self.context.out.document(&text) }
    }
}

impl EventSink for Document<'_> {
    fn event(&mut self, event: &str, _: &Mark) -> Result<(), Failure> {
        let raw: Value = serde_json::from_str(event).unwrap_or_default();
        let past = raw["seq"].as_u64().is_some_and(|seq| seq <= self.known_seq);
        // An imported event is shown at the time that the history of its agent gives.
        let at = raw["cause"]["imported"]["at"].as_str().or(raw["at"].as_str());
        if let Some(at) = at.and_then(|at| at.parse().ok()) {
            self.at = at;
        }
        for mut item in self.transcriber.read(&raw) {
            if let TranscriptItem::Asks { gate, .. } = &mut item {
                *gate = gate.filter(|gate| !past || self.open.contains(gate));
            }
            self.held = matches!(item, TranscriptItem::Words { .. } | TranscriptItem::Thought(_));
            if matches!(item, TranscriptItem::End { .. }) {
                self.unfinished();
            }
            if let Some(item) = self.pairs.join(item) {
                self.item(self.at, &item);
            }
        }
        if self.written.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn holds(&self) -> bool {
        self.held || !self.written.is_empty()
    }

    fn pause(&mut self) -> Result<(), Failure> {
        self.held = false;
        let text = self.form.pause();
        self.written.push_str(&text);
        self.write()
    }

    fn end(&mut self) -> Result<(), Failure> {
        if self.context.out.is_json() {
            return Ok(());
        }
        if !self.running {
            self.unfinished();
        }
        for item in self.pairs.unfinished() {
            if let TranscriptItem::Tool(tool) = item {
                self.item(tool.at, &TranscriptItem::Note(format!("{} …", tool.title)));
            }
        }
        let text = self.form.end();
        self.written.push_str(&text);
        self.write()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_a_duration_a_time_or_a_turn() {
        let at = |text: &str| Since::At(text.parse().unwrap());
        for (text, expected) in [
            ("30m", Since::Ago(1_800_000)),
            ("2026-11-18T10:00:00Z", at("2026-11-18T10:00:00Z")),
            ("2026-11-18", at("2026-11-18T00:00:00Z")),
            ("turn", Since::LastTurn),
            // Without its kind the end of an id could be a word or a time.
            ("turn_yjkdnt", Since::Turn("turn_yjkdnt".to_owned())),
            ("turn_01m7n5djg0fayvh8t5cxyjkdnt", Since::Turn("turn_01m7n5djg0fayvh8t5cxyjkdnt".to_owned())),
        ] {
            assert_eq!(since(text), Ok(expected), "{text}");
        }
        for bad in ["", "yesterday", "10:00", "-1m", "2026-13-01"] {
            assert!(since(bad).is_err(), "{bad}");
        }
    }
}
