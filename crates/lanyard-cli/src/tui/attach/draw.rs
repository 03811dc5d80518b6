//! How the screen of a session looks. Reads the model and changes nothing.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::status::when;
use super::{Aim, Mode, Model, Over};
use crate::render::text::{fit, one_line, quoted};
use crate::render::wrap::{columns, wrap};
use crate::tui::face::{Face, lasting};
use crate::tui::message::Link;
use crate::tui::paint::{both_ends, hints, key_page, line, overlay, row};
use crate::tui::transcript::RowLook;

/// Rows the input may take before it scrolls.
const INPUT_ROWS_MAX: usize = 6;
const STATUS_ROWS_MAX: usize = 3;
/// Steps of a stop that are shown, newest last.
const STEPS_SHOWN: usize = 4;

const HELP: [(&str, &str); 21] = [
    ("Enter", "send what is typed; Ctrl-J or Alt-Enter: new line"),
    ("Tab", "while a turn runs: next, now, interrupt, send if free"),
    ("", "(after the turn, into it, instead of it, not at all)"),
    ("Up Down", "earlier prompts of this session, when nothing is typed"),
    ("Ctrl-A E W U K Y", "start, end; delete a word, to start, to end; put back"),
    ("Alt-B F D", "a word back, a word forward, delete the next word"),
    ("Alt-Up Alt-Down", "select a tool call; Enter or Ctrl-T opens and closes it"),
    ("Alt-T", "open or close all tool calls: output and diffs"),
    ("PgUp PgDn", "scroll; Shift-Up, Shift-Down by a row; Home, End"),
    ("1 2 3 …", "answer the approval shown; Esc puts it aside"),
    ("Alt-A", "attach a file or link to the message; once more: back"),
    ("Ctrl-G", "type guidance for the running agent instead"),
    ("Ctrl-O", "go to the session below that waits for approval"),
    ("Ctrl-S", "stop the session (asks first); once more raises the stop"),
    ("Ctrl-X", "take back a stop that is pending, below level 3"),
    ("Ctrl-C", "detach, cancel the turn, stop, or go on"),
    ("Ctrl-Q", "the queue: reorder, edit, withdraw, move up"),
    ("Alt-W", "take the right to write, or give it back"),
    ("Alt-Y Alt-N", "let the client write that asks to, or not"),
    ("Ctrl-D, q", "detach (q when nothing is typed)"),
    ("?", "this page (when nothing is typed)"),
];

/// Where everything is.
struct Plan {
    head: Rect,
    transcript: Rect,
    panel: Rect,
    status: Rect,
    input: Rect,
    foot: Rect,
}

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    let panel = panel(model, usize::from(area.width));
    let plan = plan(model, area, panel.len());
    head(model, frame, plan.head);
    transcript(model, frame, plan.transcript);
    for (at, (text, style)) in panel.iter().enumerate() {
        line(frame, row(plan.panel, at), text, *style);
    }
    for (at, text) in status_rows(model, usize::from(area.width)).iter().enumerate() {
        let style = if model.link == Link::Up { model.paint.strong() } else { model.paint.bad() };
        line(frame, row(plan.status, at), text, style);
    }
    input(model, frame, plan.input);
    foot(model, frame, plan.foot);
    match &model.over {
        Over::Nothing => {}
        Over::Help => key_page(frame, &HELP),
        Over::Leave => leave(model, frame),
        Over::Stop => stop(model, frame),
        Over::Inbox => inbox(model, frame),
        Over::Again(sent) => again(frame, &sent.prompt),
    }
}

/// Rows of the transcript that are visible.
pub(super) fn transcript_rows(model: &Model) -> usize {
    let area = Rect { x: 0, y: 0, width: model.columns, height: model.rows };
    let panel = panel(model, usize::from(model.columns)).len();
    usize::from(plan(model, area, panel).transcript.height)
}

fn plan(model: &Model, area: Rect, panel: usize) -> Plan {
    let width = usize::from(area.width);
    let input =
        if model.mode == Mode::ReadOnly { 0 } else { input_rows(model, width).len().min(INPUT_ROWS_MAX) };
    let status = status_rows(model, width).len();
    let mut y = area.y;
    let mut left = area.height;
    let mut take = |rows: usize| {
        let height = u16::try_from(rows).unwrap_or(u16::MAX).min(left);
        let rect = Rect { y, height, ..area };
        y += height;
        left -= height;
        rect
    };
    let below = panel + status + input + 1;
    let head = take(1);
    let transcript = take(usize::from(area.height).saturating_sub(1 + below).max(1));
    Plan { head, transcript, panel: take(panel), status: take(status), input: take(input), foot: take(1) }
}

fn head(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let id = model.id.to_string();
    let name = model.face.as_ref().map_or_else(String::new, |face| {
        let agent = face.agent.as_deref().map(|agent| format!("{agent}  ")).unwrap_or_default();
        format!("{agent}{}", face.title.as_deref().map(quoted).unwrap_or_default())
    });
    both_ends(frame, area, (&name, model.paint.strong()), (&id, model.paint.quiet()));
}

fn transcript(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let rows = model.transcript.visible(usize::from(area.height));
    // Short ones stand at the bottom, near the line one types in.
    let gap = usize::from(area.height).saturating_sub(rows.len());
    for (at, shown) in rows.iter().enumerate() {
        let style = match shown.look {
            RowLook::Own => model.paint.own(),
            RowLook::Plain => Style::new(),
            RowLook::Quiet => model.paint.quiet(),
            RowLook::Loud => model.paint.loud(),
            RowLook::Good => model.paint.good(),
            RowLook::Bad => model.paint.bad(),
        };
        let style = if shown.chosen { style.patch(model.paint.chosen()) } else { style };
        line(frame, row(area, gap + at), shown.text, style);
    }
    if rows.is_empty() && area.height > 0 {
        let text = if model.link == Link::Up { "nothing was said yet" } else { "connecting …" };
        line(frame, row(area, usize::from(area.height) - 1), text, model.paint.quiet());
    }
}

/// What wants an answer or is on its way: a takeover, a question, a stop.
fn panel(model: &Model, width: usize) -> Vec<(String, Style)> {
    let mut rows = Vec::new();
    if let Some(takeover) = model.takeover() {
        let left = takeover.until.map(|until| format!(" ({} left)", lasting(until.millis_since(model.now))));
        let text = format!("! {} asks to write here{}", takeover.name, left.unwrap_or_default());
        rows.push((text, model.paint.loud()));
        rows.push((
            "  y lets them, n keeps it with you; Alt-Y, Alt-N while typing".to_owned(),
            model.paint.loud(),
        ));
    }
    if let Some(gate) = model.question() {
        let title = one_line(&gate.question.title);
        rows.extend(
            wrap(&format!("asks for approval: {title}"), width, "? ", "  ")
                .into_iter()
                .map(|row| (row, model.paint.loud())),
        );
        let options: Vec<String> = (1..10)
            .zip(&gate.question.options)
            .map(|(number, option)| format!("{number} {}", one_line(&option.name)))
            .collect();
        let hint = match model.mode {
            Mode::Write if model.input.is_empty() => "press a number, Esc to put it aside",
            Mode::Write => "numbers answer when nothing is typed",
            Mode::ReadOnly => "read-only",
        };
        let text = flow(&options, width.saturating_sub(2), "   ").join("\n");
        rows.extend(wrap(&text, width, "  ", "  ").into_iter().map(|row| (row, model.paint.loud())));
        rows.push((format!("  ({hint})"), model.paint.quiet()));
    }
    if let Some(asking) = &model.below {
        let text = format!("? {} below asks for approval: {}", asking.name, asking.session);
        rows.push((text, model.paint.loud()));
        rows.push(("  Ctrl-O goes there; Ctrl-D there comes back here".to_owned(), model.paint.quiet()));
    }
    if let Some(receipt) = &model.receipt {
        let level = crate::render::event::stop_level(receipt.level);
        let end = if receipt.confirmed { "; all of it has ended" } else { "" };
        rows.push((format!("! stop {level}, {}{end}", receipt.scope.as_str()), model.paint.bad()));
        let from = receipt.steps.len().saturating_sub(STEPS_SHOWN);
        for step in &receipt.steps[from..] {
            let text = format!("  {}: {}", one_line(&step.channel), one_line(&step.what));
            rows.push((text, model.paint.quiet()));
        }
    }
    rows.extend(model.file_words().map(|text| (text, model.paint.own())));
    rows
}

fn status_rows(model: &Model, width: usize) -> Vec<String> {
    let mut rows = flow(&model.status(), width, " · ");
    rows.truncate(STATUS_ROWS_MAX);
    rows
}

/// Parts in rows, broken between parts only.
fn flow(parts: &[String], width: usize, gap: &str) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for part in parts {
        match rows.last_mut() {
            Some(row) if columns(row) + columns(gap) + columns(part) <= width => {
                row.push_str(gap);
                row.push_str(part);
            }
            _ => rows.push(part.clone()),
        }
    }
    if rows.is_empty() {
        rows.push(String::new());
    }
    rows
}

fn input_rows(model: &Model, width: usize) -> Vec<String> {
    let label = model.label();
    let indent = " ".repeat(columns(&label));
    // One column is left for the cursor.
    wrap_typed(model.input.text(), width.saturating_sub(1), &label, &indent)
}

/// Unlike words that are read, what is typed is shown as it is: broken anywhere, and no blank left out.
fn wrap_typed(text: &str, width: usize, label: &str, indent: &str) -> Vec<String> {
    let mut rows = vec![label.to_owned()];
    for letter in text.chars() {
        let shown = if letter == '\t' { ' ' } else { letter };
        let full = rows.last().is_some_and(|row| columns(row) >= width);
        if letter == '\n' || full {
            rows.push(indent.to_owned());
        }
        if letter != '\n'
            && let Some(row) = rows.last_mut()
        {
            row.push(shown);
        }
    }
    rows
}

fn input(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    if model.mode == Mode::ReadOnly || area.height == 0 {
        return;
    }
    let width = usize::from(area.width).saturating_sub(1);
    let rows = input_rows(model, usize::from(area.width));
    let label = model.label();
    let indent = " ".repeat(columns(&label));
    let before = wrap_typed(model.input.before(), width, &label, &indent);
    // The row with the cursor stays in sight.
    let first = before.len().saturating_sub(usize::from(area.height));
    for (at, text) in rows.iter().skip(first).take(usize::from(area.height)).enumerate() {
        line(frame, row(area, at), text, if at + first == 0 { model.paint.own() } else { Style::new() });
        if at + first == 0 {
            let rest = text.get(label.len()..).unwrap_or_default().to_owned();
            let x = u16::try_from(columns(&label)).unwrap_or(0).min(area.width);
            let place = Rect { x: area.x + x, width: area.width - x, ..row(area, at) };
            frame.render_widget(Span::raw(rest), place);
        }
    }
    if model.over == Over::Nothing {
        let x = before.last().map_or(0, |row| columns(row)).min(width);
        let y = before.len() - 1 - first;
        let at =
            Position::new(area.x + u16::try_from(x).unwrap_or(0), area.y + u16::try_from(y).unwrap_or(0));
        frame.set_cursor_position(at);
    }
}

fn foot(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    if let Some(notice) = &model.notice {
        let style = if notice.bad { model.paint.bad() } else { model.paint.good() };
        return line(frame, area, &one_line(&notice.text), style);
    }
    let parts: &[&str] = match (&model.aim, model.mode) {
        (_, Mode::ReadOnly) => &["PgUp PgDn scroll", "Alt-T tools", "q detach", "Ctrl-Q queue"],
        (Aim::Guidance, _) => &["Enter gives it to the running agent", "Esc back"],
        (Aim::File(_), _) => &["Enter attaches the file", "Backspace takes the last one away", "Esc back"],
        (Aim::Edit(_), _) => &["Enter changes the queued message", "Esc leaves it as it is"],
        (Aim::Turn, _) if model.transcript.is_selecting() => {
            &["Enter opens and closes", "Alt-Up Alt-Down others", "Alt-T all", "Esc back"]
        }
        (Aim::Turn, _) if model.is_busy() => &[
            "Tab when",
            "Ctrl-D detach",
            "Ctrl-G guide",
            "Ctrl-S stop",
            "Ctrl-T tool",
            "Ctrl-C leave …",
            "Ctrl-Q queue",
        ],
        (Aim::Turn, _) => &["Enter sends", "Ctrl-T tool", "Ctrl-D detach", "Alt-W writer", "Ctrl-Q queue"],
    };
    line(frame, area, &hints(parts, usize::from(area.width)), model.paint.quiet());
}

fn leave(model: &Model, frame: &mut Frame<'_>) {
    let ended = model.face.as_ref().is_some_and(Face::is_ended);
    let detach = if ended { "d  detach" } else { "d  detach: the session goes on without you" };
    let mut rows = vec![Line::from(detach)];
    if model.mode == Mode::Write && !ended {
        rows.push(Line::from("c  cancel the turn"));
        rows.push(Line::from("s  stop the session"));
    }
    rows.push(Line::from("g  go on"));
    overlay(frame, "Leave?", rows, "Ctrl-C again detaches");
}

fn stop(model: &Model, frame: &mut Frame<'_>) {
    let width = usize::from(frame.area().width).saturating_sub(8).min(70);
    let what = if model.is_busy() {
        "The agent is asked to end its turn; then its processes are ended."
    } else {
        "No turn is running: the agent's processes are ended at once, which cannot be taken back."
    };
    let kept = format!(
        "A stopped session keeps its log and its conversation. Resume it with `lanyard resume {}`.",
        model.id
    );
    let rows = [what, kept.as_str()]
        .into_iter()
        .flat_map(|text| wrap(text, width, "", ""))
        .map(Line::from)
        .collect();
    overlay(frame, "Stop the session?", rows, "y stops it, any other key does not");
}

fn inbox(model: &Model, frame: &mut Frame<'_>) {
    let width = usize::from(frame.area().width).saturating_sub(8).min(90);
    let height = usize::from(frame.area().height).saturating_sub(4).max(1);
    let inbox = &model.inbox;
    let mut rows: Vec<Line<'_>> = Vec::new();
    let first = inbox.chosen.saturating_sub(height.saturating_sub(2));
    for (at, waiting) in inbox.waiting.iter().enumerate().skip(first).take(height.saturating_sub(1)) {
        let mark = if at == inbox.chosen { ">" } else { " " };
        let text = format!("{mark} {} [{}] {}", at + 1, when(&waiting.delivery), one_line(&waiting.prompt));
        let style = if at == inbox.chosen { model.paint.chosen() } else { Style::new() };
        rows.push(Line::styled(fit(&text, width), style));
    }
    if rows.is_empty() {
        rows.push(Line::from("nothing waits"));
    }
    if let Some(why) = &inbox.paused {
        rows.push(Line::styled(format!("it waits ({why}): g lets it go on"), model.paint.loud()));
    }
    let foot = if width < 70 {
        "j k move · e edit · x withdraw · p s i · g go"
    } else {
        "j k move · e edit · x withdraw · p front · s now · i interrupt · P pause · g go"
    };
    overlay(frame, "Queue", rows, foot);
}

fn again(frame: &mut Frame<'_>, prompt: &str) {
    let width = usize::from(frame.area().width).saturating_sub(8).min(70);
    let mut rows: Vec<Line<'_>> = wrap(
        "The agent had this message when its process was lost. It may have acted on it. Look at the log before you \
         run it once more.",
        width,
        "",
        "",
    )
    .into_iter()
    .map(Line::from)
    .collect();
    rows.push(Line::from(""));
    rows.push(Line::from(fit(&one_line(prompt), width)));
    overlay(frame, "Once more?", rows, "y runs it again, n does not");
}
