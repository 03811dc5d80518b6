//! How the screen of all sessions looks. Only rows that are visible are drawn.

use lanyard_api::types::HaltState;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::Line;

use super::gates::{Answering, name};
use super::row::{Words, words};
use super::{Model, Over};
use crate::render::flow_gate::{choices, items, tail};
use crate::render::text::{count, fit, one_line, pad};
use crate::render::wrap::{columns, wrap};
use crate::tui::directory::{Need, need};
use crate::tui::face::lasting;
use crate::tui::message::{Link, RowVerb};
use crate::tui::paint::{both_ends, hints, key_page, line, overlay, row};

/// Rows of a review's items and of evidence in the dialogue that answers a gate.
const ITEMS_MAX: usize = 5;
const EVIDENCE_MAX: usize = 6;

const HELP: [(&str, &str); 15] = [
    ("f", "answer an approval of a flow"),
    ("Enter", "attach to the session"),
    ("s", "stop it; S stops all below it too"),
    ("g", "give it guidance"),
    ("c", "cancel its turn"),
    ("r", "resume: bring its agent back"),
    ("a", "archive it, or bring it back from the archive"),
    ("x", "delete it"),
    ("/", "filter by words; Esc shows all again"),
    ("Up Down", "choose; PgUp, PgDn, Home and End go further"),
    ("q", "leave; sessions go on"),
    ("", ""),
    ("!", "needs you: waits for approval, or was interrupted"),
    ("*", "a turn runs"),
    ("-", "it is over"),
];

/// Where the columns stand.
struct Columns {
    state: usize,
    lasting: usize,
    agent: usize,
    title: usize,
    tool: usize,
    notes: usize,
}

impl Columns {
    /// What there is room for. The title gets what is left; narrow screens do without the agent and the tool.
    fn of(width: usize) -> Self {
        let (state, lasting, agent, tool, notes) = match width {
            110.. => (21, 5, 12, 18, 26),
            80..110 => (14, 5, 10, 10, 18),
            _ => (12, 4, 0, 0, 14),
        };
        let gaps = 2 + [state, lasting, agent, tool, notes].iter().filter(|columns| **columns > 0).count();
        let title = width.saturating_sub(state + lasting + agent + tool + notes + gaps);
        Self { state, lasting, agent, title, tool, notes }
    }

    fn row(&self, mark: &str, branch: &str, words: &Words) -> String {
        let title = format!("{branch}{}", words.title);
        let cells = [
            (&words.state, self.state),
            (&words.lasting, self.lasting),
            (&words.agent, self.agent),
            (&title, self.title),
            (&words.tool, self.tool),
            (&words.notes, self.notes),
        ];
        let mut text = pad(mark, 2);
        for (cell, width) in cells.into_iter().filter(|(_, width)| *width > 0) {
            text.push_str(&pad(&fit(cell, width), width + 1));
        }
        text.trim_end().to_owned()
    }
}

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    head(model, frame, row(area, 0));
    asking(model, frame, area);
    let above = model.gates.rows();
    let columns = Columns::of(usize::from(area.width));
    let titles = Words {
        mark: " ",
        state: "STATE".to_owned(),
        lasting: "FOR".to_owned(),
        agent: "AGENT".to_owned(),
        title: "SESSION".to_owned(),
        tool: "LAST TOOL".to_owned(),
        notes: "WAITS, WHO IS THERE".to_owned(),
    };
    line(frame, row(area, 1 + above), &columns.row(" ", "", &titles), model.paint.quiet());
    let top = u16::try_from(2 + above).unwrap_or(u16::MAX).min(area.height);
    let list = Rect { y: area.y + top, height: area.height.saturating_sub(top + 1), ..area };
    rows(model, frame, list, &columns);
    foot(model, frame, row(area, usize::from(area.height.saturating_sub(1))));
    over(model, frame);
}

/// Approvals of flows, before everything else: such a flow is blocked until it is answered.
fn asking(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    for (at, held) in model.gates.shown().enumerate() {
        let entry = &held.entry;
        let since = lasting(model.now.millis_since(entry.gate.opened_at));
        let (kind, reason) = (entry.gate.kind.as_str(), one_line(&entry.gate.reason));
        let (mark, kind, style) = if held.is_settled {
            ("-", "settled", model.paint.quiet())
        } else {
            ("!", kind, model.paint.loud())
        };
        let text = format!("{mark} {} {} {}: {reason}", pad(kind, 10), pad(&since, 4), name(entry));
        line(frame, row(area, 1 + at), &text, style);
    }
    if model.gates.hidden() > 0 {
        let text = format!("! and {} more; f answers one after the other", model.gates.hidden());
        line(frame, row(area, model.gates.rows()), &text, model.paint.loud());
    }
}

fn rows(model: &Model, frame: &mut Frame<'_>, area: Rect, columns: &Columns) {
    let height = usize::from(area.height);
    let mut none = true;
    for (at, (place, face)) in model.directory.visible(height).enumerate() {
        none = false;
        let words = words(&face, model.now);
        let chosen = model.directory.chosen() == Some(place.id);
        let style = match need(&face) {
            _ if chosen => model.paint.chosen(),
            Need::Attention => model.paint.loud(),
            Need::Running => Style::new(),
            Need::Resting | Need::Over => model.paint.quiet(),
        };
        let mark = format!("{}{}", words.mark, if chosen { ">" } else { " " });
        let text = columns.row(&mark, &place.branch, &words);
        // The bar of the chosen one goes all the way.
        let text = if chosen { pad(&text, usize::from(area.width)) } else { text };
        line(frame, row(area, at), &text, style);
    }
    if none {
        let text = match (model.directory.complete, model.directory.filter()) {
            (false, _) => "reading the directory …".to_owned(),
            (true, "") => "no sessions; `lanyard run \"…\"` begins one".to_owned(),
            (true, filter) => {
                format!("none of {} matches \"{filter}\"", count(model.directory.len(), "session"))
            }
        };
        line(frame, row(area, 1), &text, model.paint.quiet());
    }
}

fn head(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let (running, wanted) = model.directory.tally();
    let wanted = match wanted {
        0 => String::new(),
        1 => ", 1 needs you".to_owned(),
        more => format!(", {more} need you"),
    };
    let asking = match model.gates.len() {
        0 => String::new(),
        1 => ", 1 flow waits for approval".to_owned(),
        more => format!(", {more} flows wait for approval"),
    };
    let all = count(model.directory.len(), "session");
    let left = format!("lanyard top  {all}, {running} running{wanted}{asking}");
    let halted = model.halt.halted && model.link == Link::Up;
    let right = match (model.link, model.directory.filter()) {
        (Link::Down, _) => "no daemon: `lanyard up` starts it".to_owned(),
        (Link::Connecting, _) => "connecting".to_owned(),
        (Link::Up, _) if halted => halt(&model.halt),
        (Link::Up, "") => String::new(),
        (Link::Up, filter) => {
            format!("\"{filter}\": {} shown", model.directory.places().len())
        }
    };
    let well = model.link == Link::Up && !halted;
    let style = if well { model.paint.strong() } else { model.paint.bad() };
    both_ends(frame, area, (&left, model.paint.strong()), (&right, style));
}

fn halt(halt: &HaltState) -> String {
    let by = halt.by.as_deref().map(|by| format!(" by {}", one_line(by))).unwrap_or_default();
    let why = halt.reason.as_deref().map(|why| format!(": {}", one_line(why))).unwrap_or_default();
    format!("HALTED{by}{why}")
}

fn foot(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let typed = match &model.over {
        Over::Filter(input) => Some(("filter> ".to_owned(), input)),
        Over::Guide(_, input) => Some(("guide> ".to_owned(), input)),
        Over::Answer(answering) => match &answering.settled {
            Some(why) => Some((format!("{why}; Enter goes back "), &answering.input)),
            None if !answering.is_ready(model.now) => Some(("read it first ".to_owned(), &answering.input)),
            None => Some((answering.dialogue.prompt(), &answering.input)),
        },
        Over::Nothing | Over::Help | Over::Confirm(..) => None,
    };
    if let Some((label, input)) = typed {
        let text = format!("{label}{}", one_line(input.text()));
        line(frame, area, &text, model.paint.own());
        let x = columns(&label) + columns(input.before());
        let x = u16::try_from(x).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
        return frame.set_cursor_position(Position::new(area.x + x, area.y));
    }
    if let Some((text, bad, _)) = &model.notice {
        let style = if *bad { model.paint.bad() } else { model.paint.good() };
        return line(frame, area, text, style);
    }
    let mut parts = vec![
        "Enter attach",
        "s stop",
        "g guide",
        "/ filter",
        "q leave",
        "c cancel",
        "r resume",
        "a archive",
        "x delete",
    ];
    if model.gates.len() > 0 {
        parts.insert(0, "f answer the flow");
    }
    line(frame, area, &hints(&parts, usize::from(area.width)), model.paint.quiet());
}

fn over(model: &Model, frame: &mut Frame<'_>) {
    match &model.over {
        Over::Help => key_page(frame, &HELP),
        Over::Confirm(verb, id) => {
            let name = model.directory.face(*id).map_or_else(|| id.to_string(), |face| face.name());
            let what = match verb {
                RowVerb::Stop => "stop",
                RowVerb::StopBelow => "stop, with all below it,",
                RowVerb::Delete => "delete",
                RowVerb::Guide => "guide",
                RowVerb::Cancel => "cancel",
                RowVerb::Resume => "resume",
                RowVerb::Archive => "archive",
                RowVerb::Unarchive => "unarchive",
            };
            let width = usize::from(frame.area().width).saturating_sub(6);
            let rows = vec![Line::from(fit(&format!("{what} {name}"), width)), Line::from(id.to_string())];
            overlay(frame, "Sure?", rows, "y yes, any other key no");
        }
        Over::Answer(answering) => answer(model, answering, frame),
        Over::Nothing | Over::Guide(..) | Over::Filter(_) => {}
    }
}

/// The question, what speaks for it and the answers; what was wrong with the last one stands above the line one types in.
fn answer(model: &Model, answering: &Answering, frame: &mut Frame<'_>) {
    let area = frame.area();
    let width = usize::from(area.width).saturating_sub(6);
    let gate = answering.dialogue.gate();
    let mut text = wrap(&one_line(&gate.reason), width, "", "");
    text.extend(items(&gate.items).into_iter().take(ITEMS_MAX).map(|item| format!("  {item}")));
    let evidence = gate.evidence.as_deref().map(tail).unwrap_or_default();
    let skipped = evidence.len().saturating_sub(EVIDENCE_MAX);
    text.extend(evidence.into_iter().skip(skipped).map(|shown| format!("  | {shown}")));
    text.push(String::new());
    match &answering.settled {
        Some(why) => text.push(format!("Settled: {why}.")),
        None => text.extend(choices(gate)),
    }
    let rows: Vec<Line<'_>> = text.into_iter().map(|row| Line::from(fit(&row, width))).collect();
    let others = if model.gates.len() > 1 { "Tab next, " } else { "" };
    let title = format!("{} ({})", answering.title, gate.kind.as_str());
    let leave = if answering.settled.is_some() { "Esc closes" } else { "Esc leaves it open" };
    overlay(frame, &fit(&title, width), rows, &format!("{others}{leave}"));
    if let Some((said, bad, _)) = &model.notice {
        let style = if *bad { model.paint.bad() } else { model.paint.good() };
        let above = row(area, usize::from(area.height.saturating_sub(2)));
        line(frame, above, &pad(said, usize::from(area.width)), style);
    }
}
