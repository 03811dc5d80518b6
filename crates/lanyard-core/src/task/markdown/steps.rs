//! The section of the steps that agents keep in a plan, for people to read.

use std::fmt::Write as _;

use super::line::Blocks;
use super::read::Numbered;
use crate::paper::{Plan, Step, StepState};
use crate::text::one_line;

pub(super) const BEGIN: &str = "<!-- lanyard:steps -->";
pub(super) const END: &str = "<!-- /lanyard:steps -->";
/// Characters of one line.
const LINE_MAX: usize = 4_000;

/// The phases, steps and hand-offs of a plan; nothing for a plan without any.
#[must_use]
pub fn section(plan: &Plan) -> Option<String> {
    if plan.steps.is_empty() && plan.lineage.is_empty() {
        return None;
    }
    let mut text = format!("{BEGIN}\n");
    let mut state = vec![format!("status {}", plan.status)];
    state.extend(plan.current_phase.as_ref().map(|phase| format!("phase {}", line(phase))));
    state.extend(plan.current_agent.as_ref().map(|agent| format!("agent {}", line(agent))));
    let _ = writeln!(text, "Steps: {}.", state.join(", "));
    for phase in &plan.phases {
        written(&mut text, Some(phase), plan);
    }
    let other = |step: &Step| step.phase.as_ref().is_none_or(|phase| !plan.phases.contains(phase));
    if plan.steps.iter().any(other) {
        text.push('\n');
        plan.steps.iter().filter(|step| other(step)).for_each(|step| one(&mut text, step));
    }
    if !plan.lineage.is_empty() {
        text.push_str("\nHand-offs:\n\n");
    }
    for handover in &plan.lineage {
        let (from, to, reason) = (line(&handover.from), line(&handover.to), line(&handover.reason));
        let _ = writeln!(text, "- {}: {from} to {to}: {reason}", handover.timestamp);
    }
    let _ = writeln!(text, "{END}");
    Some(text)
}

fn written(text: &mut String, phase: Option<&String>, plan: &Plan) {
    let mut mine = plan.steps.iter().filter(|step| step.phase.as_ref() == phase).peekable();
    if mine.peek().is_some() {
        let _ = writeln!(text, "\n{}:\n", line(phase.map_or("", String::as_str)));
        mine.for_each(|step| one(text, step));
    }
}

fn one(text: &mut String, step: &Step) {
    let (mark, taken) = match step.state() {
        StepState::Pending => (" ", String::new()),
        StepState::Active => {
            (" ", step.taken.map(|taken| format!(", taken by {}", taken.by)).unwrap_or_default())
        }
        StepState::Done => ("x", String::new()),
    };
    let _ =
        writeln!(text, "- [{mark}] {}. {} ({}{taken})", step.number, line(&step.task), step.kind.as_str());
    if let Some(notes) = &step.notes {
        let _ = writeln!(text, "  Notes: {}", line(notes));
    }
    for criterion in &step.acceptance {
        let _ = writeln!(text, "  Acceptance: {}", line(criterion));
    }
    if let Some(evidence) = &step.evidence {
        let _ = writeln!(text, "  Evidence: {}", line(evidence));
    }
}

/// One line that cannot end the section.
fn line(text: &str) -> String {
    one_line(text, LINE_MAX).replace("<!--", "<! --")
}

/// The lines without the section, wherever it stands outside of a code block.
pub(super) fn without<'a>(lines: &[Numbered<'a>]) -> Vec<Numbered<'a>> {
    let mut blocks = Blocks::default();
    let mut inside = false;
    let mut kept = Vec::with_capacity(lines.len());
    for (at, (number, line)) in lines.iter().enumerate() {
        if inside {
            inside = line.trim() != END;
            continue;
        }
        let in_block = blocks.takes(*number, line);
        // A mark without its end is only text.
        inside = !in_block && is_mark(line) && lines[at..].iter().any(|(_, line)| line.trim() == END);
        if !inside {
            kept.push((*number, *line));
        }
    }
    kept
}

/// Whether a line of a text would be taken for the section.
pub(super) fn is_mark(line: &str) -> bool {
    line.trim() == BEGIN
}
