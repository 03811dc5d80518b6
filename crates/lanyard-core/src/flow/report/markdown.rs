//! A report as readable Markdown: headings, short tables, and nothing in a table that could end it.

use std::fmt::Write as _;

use super::{CheckReport, FlowStory, GateReport, PhaseReport, ReviewReport, SessionReport};
use crate::flow::gate::FlowGateKind;
use crate::flow::record::FlowKind;
use crate::flow::verdict::Item;
use crate::text::dollars;

/// Characters of a text in a table.
const CELL_CHARS_MAX: usize = 200;
const SECOND_MS: u64 = 1_000;
const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 3_600;

#[must_use]
pub fn markdown(report: &FlowStory) -> String {
    let mut text = format!("# {}\n\n", inline(&report.title));
    head(&mut text, report);
    if report.kind == FlowKind::Phases {
        overview(&mut text, report);
    }
    for (place, phase) in report.phases.iter().enumerate() {
        tell(&mut text, report.kind, place, phase);
    }
    sessions(&mut text, &report.sessions);
    text
}

fn head(text: &mut String, report: &FlowStory) {
    let kind = match report.kind {
        FlowKind::Phases => "Flow",
        FlowKind::PlanReview => "Review",
    };
    let _ = write!(text, "- {kind} `{}` is **{}**", report.flow, report.state);
    if let Some(reason) = &report.reason {
        let _ = write!(text, ": {}", inline(reason));
    }
    let _ = writeln!(text, "\n- Plan: {}\n- Folder: {}", code(&report.plan), code(&report.workspace));
    if let (Some(branch), Some(base)) = (&report.branch, &report.base) {
        let _ = writeln!(text, "- Branch: {}, from {}", code(branch), code(short(base)));
    }
    if let Some(commit) = &report.captured {
        let _ = writeln!(text, "- What was left uncommitted is in {}", code(short(commit)));
    }
    let _ = write!(text, "- Begun {}", report.begun_at);
    if let Some(ended) = report.ended_at {
        let _ = write!(text, ", ended {ended}");
    }
    let _ = writeln!(text, ", {} in {} steps", time(report.elapsed_ms), report.steps);
    let (sent, got) = (report.spent.input_tokens, report.spent.output_tokens);
    if sent + got > 0 {
        let _ = writeln!(text, "- Tokens: {} in, {} out", number(sent), number(got));
    }
    if report.spent.cost_micros > 0 {
        let _ = writeln!(text, "- Cost, as agents report it: {}", dollars(report.spent.cost_micros));
    }
    if report.spent.ms > 0 {
        let _ = writeln!(text, "- Agents worked {}", time(report.spent.ms));
    }
}

fn overview(text: &mut String, report: &FlowStory) {
    text.push_str("\n## Phases\n\n");
    let rows = report.phases.iter().enumerate().map(|(place, phase)| {
        let commit = phase.commit.as_deref().map(|commit| code(short(commit))).unwrap_or_default();
        let asked = phase.gates.len();
        vec![
            (place + 1).to_string(),
            cell(&phase.title),
            phase.state.as_str().to_owned(),
            commit,
            phase.steps.to_string(),
            phase.reviews.len().to_string(),
            asked.to_string(),
        ]
    });
    table(text, &["#", "Phase", "State", "Commit", "Steps", "Reviews", "Approvals"], rows);
}

/// Writes a phase. A phase without work has only its line in the overview.
fn tell(text: &mut String, kind: FlowKind, place: usize, phase: &PhaseReport) {
    if phase.steps == 0 {
        return;
    }
    match kind {
        FlowKind::Phases => {
            let _ = writeln!(text, "\n## {}. {}", place + 1, inline(&phase.title));
        }
        FlowKind::PlanReview => text.push_str("\n## The review\n"),
    }
    if phase.quality_retries > 0 {
        let _ = writeln!(text, "\nThe author was sent back by checks {}.", times(phase.quality_retries));
    }
    if phase.auto_retries > 0 {
        let _ = writeln!(text, "\nA lost turn was continued {}.", times(phase.auto_retries));
    }
    checks(text, &phase.checks);
    reviews(text, &phase.reviews);
    gates(text, &phase.gates);
}

fn checks(text: &mut String, checks: &[CheckReport]) {
    if checks.is_empty() {
        return;
    }
    text.push_str("\n### Checks\n\n");
    let rows = checks.iter().map(|check| {
        let result = match (&check.error, check.passed, check.timed_out) {
            (Some(error), _, _) => format!("not started: {}", cell(error)),
            (None, true, _) => "passed".to_owned(),
            (None, false, true) => "took too long".to_owned(),
            (None, false, false) => "failed".to_owned(),
        };
        vec![check.step.to_string(), cell(&check.name), result, time(check.ms)]
    });
    table(text, &["Step", "Check", "Result", "Time"], rows);
}

fn reviews(text: &mut String, reviews: &[ReviewReport]) {
    if reviews.is_empty() {
        return;
    }
    text.push_str("\n### Reviews\n\n");
    let rows = reviews.iter().map(|review| {
        let score = review.score.map(|score| score.to_string()).unwrap_or_default();
        let summary = review.summary.as_deref().map(cell).unwrap_or_default();
        vec![
            review.step.to_string(),
            review.readiness.as_str().to_owned(),
            score,
            review.items.len().to_string(),
            summary,
        ]
    });
    table(text, &["Step", "Verdict", "Score", "Items", "Summary"], rows);
    for review in reviews.iter().filter(|review| !review.items.is_empty()) {
        let _ = writeln!(text, "\nAsked for in step {}:\n", review.step);
        review.items.iter().for_each(|one| item(text, one));
    }
}

fn item(text: &mut String, item: &Item) {
    let (priority, action) = (item.priority.as_str(), item.action.as_str());
    let _ = write!(text, "- {priority} {}: {} ({action})", code(&item.id), inline(&item.title));
    if let Some(reason) = &item.reason {
        let _ = write!(text, ". {}", inline(reason));
    }
    text.push('\n');
}

fn gates(text: &mut String, gates: &[GateReport]) {
    if gates.is_empty() {
        return;
    }
    text.push_str("\n### Approvals\n\n");
    let rows = gates.iter().map(|gate| {
        let kind = match gate.kind {
            FlowGateKind::Escalation => gate.code.clone(),
            FlowGateKind::Phase | FlowGateKind::Review => gate.kind.as_str().to_owned(),
        };
        let answer = gate.choice.map_or("none", crate::flow::gate::Choice::as_str).to_owned();
        let by = gate.by.as_deref().map(cell).unwrap_or_default();
        vec![gate.step.to_string(), kind, cell(&gate.reason), answer, by, time(gate.waited_ms)]
    });
    table(text, &["Step", "Why", "Reason", "Answer", "By", "Waited"], rows);
    for gate in gates {
        if let Some(words) = &gate.guidance {
            let _ = writeln!(text, "\nSaid in step {}: {}", gate.step, inline(words));
        }
    }
}

fn sessions(text: &mut String, sessions: &[SessionReport]) {
    if sessions.is_empty() {
        return;
    }
    text.push_str("\n## Sessions\n\n");
    let rows = sessions.iter().map(|worked| {
        let how = match (worked.continued, worked.fork_of) {
            (true, _) => "continued".to_owned(),
            (false, Some(other)) => format!("fork of {}", code(&other.to_string())),
            (false, None) => "new".to_owned(),
        };
        vec![
            worked.step.to_string(),
            code(&worked.session.to_string()),
            worked.role.as_str().to_owned(),
            worked.state.to_string(),
            how,
            worked.result.clone().unwrap_or_default(),
            time(worked.spent.ms),
        ]
    });
    table(text, &["Step", "Session", "Role", "State", "How", "Result", "Time"], rows);
}

fn table(text: &mut String, names: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let _ = writeln!(text, "| {} |\n|{}", names.join(" | "), " --- |".repeat(names.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
}

/// Text of others that stays text, on one line. Names between backticks stay such.
fn inline(words: &str) -> String {
    let mut safe = String::new();
    for word in words.split_whitespace() {
        if !safe.is_empty() {
            safe.push(' ');
        }
        for letter in word.chars().filter(|letter| !letter.is_control()) {
            if matches!(letter, '\\' | '*' | '[' | ']' | '<' | '>' | '|' | '#') {
                safe.push('\\');
            }
            safe.push(letter);
        }
    }
    safe
}

/// The same, short enough for a table.
fn cell(words: &str) -> String {
    match crate::text::cut(words.trim(), CELL_CHARS_MAX) {
        (all, false) => inline(all),
        (first, true) => format!("{}…", inline(first)),
    }
}

/// A name as it is. In a table a bar ends the cell even here.
fn code(name: &str) -> String {
    let plain: String = name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if plain.contains(['`', '|']) || plain.trim().is_empty() { inline(&plain) } else { format!("`{plain}`") }
}

/// A commit as people write it.
fn short(commit: &str) -> &str {
    crate::text::cut(commit, 12).0
}

fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    }
}

fn time(ms: u64) -> String {
    let seconds = ms / SECOND_MS;
    match seconds {
        0 => format!("{ms} ms"),
        1..MINUTE_S => format!("{seconds} s"),
        MINUTE_S..HOUR_S => format!("{} min {} s", seconds / MINUTE_S, seconds % MINUTE_S),
        _ => format!("{} h {} min", seconds / HOUR_S, seconds % HOUR_S / MINUTE_S),
    }
}

/// In groups of three.
fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
