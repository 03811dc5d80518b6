//! What agents keep in a plan: phases, steps, notes and hand-offs.

use lanyard_api::types::{PlanDetail, StepView};
use lanyard_core::Timestamp;
use lanyard_core::paper::{PlanPhase, PlanProgress, StepState};

use crate::render::card::Card;
use crate::render::table::{Column, table};
use crate::render::text::one_line;
use crate::render::time::ago;

/// Notes and hand-offs that are shown; all are in `--json`.
const NEWEST: usize = 10;

const STEP: [Column; 8] = [
    Column::whole("STEP"),
    Column::whole("STATE"),
    Column::elastic("PHASE", 6),
    Column::whole("TYPE"),
    Column::elastic("TASK", 16),
    Column::elastic("ACCEPTANCE", 10),
    Column::elastic("NOTES", 10),
    Column::elastic("DONE BY", 10),
];

/// How far a plan is, such as `2 of 6: 1 of 3 steps, 1 of 3 tasks`. Nothing for a plan with nothing to do.
pub(crate) fn progress(progress: &PlanProgress) -> String {
    let parts =
        [(progress.steps_done, progress.steps, "step"), (progress.tasks_done, progress.tasks, "task")];
    let of = |(done, all, what): &(u64, u64, &str)| {
        format!("{done} of {all} {what}{}", if *all == 1 { "" } else { "s" })
    };
    let parts: Vec<String> = parts.iter().filter(|(_, all, _)| *all > 0).map(of).collect();
    match parts.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        _ => format!("{} of {}: {}", progress.done, progress.total, parts.join(", ")),
    }
}

/// The same for a row of a listing.
pub(crate) fn fraction(progress: &PlanProgress) -> String {
    if progress.total == 0 { String::new() } else { format!("{}/{}", progress.done, progress.total) }
}

pub(crate) fn phases(phases: &[PlanPhase]) -> String {
    let one = |phase: &PlanPhase| {
        let current = if phase.current { ", current" } else { "" };
        format!("{} ({}/{}{current})", one_line(&phase.name), phase.done, phase.steps)
    };
    phases.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Notes and hand-offs, the newest of each.
pub(super) fn story(card: &mut Card, detail: &PlanDetail, now: Timestamp) {
    let newest = |all: usize| all.saturating_sub(NEWEST);
    let lineage = detail.lineage.iter().skip(newest(detail.lineage.len()));
    card.lines(
        "handed off",
        lineage.map(|handover| {
            let (from, to) = (one_line(&handover.from), one_line(&handover.to));
            format!("{from} to {to} {}: {}", ago(now, handover.timestamp), one_line(&handover.reason))
        }),
    );
    let notes = detail.notes.iter().skip(newest(detail.notes.len()));
    card.lines(
        "note",
        notes.map(|note| {
            format!("{} ({}, by {})", one_line(&note.text), ago(now, note.at), one_line(&note.by))
        }),
    );
}

pub(crate) fn steps(steps: &[StepView], max: Option<usize>) -> String {
    let cells: Vec<Vec<String>> = steps
        .iter()
        .map(|StepView { step, state }| {
            let text = |text: &Option<String>| text.as_deref().map(one_line).unwrap_or_default();
            let criteria: Vec<String> = step.acceptance.iter().map(|one| one_line(one)).collect();
            let by = match state {
                StepState::Pending => String::new(),
                StepState::Active => {
                    step.taken.map(|taken| format!("taken by {}", taken.by)).unwrap_or_default()
                }
                StepState::Done => {
                    let evidence = step.evidence.as_deref().map(|text| format!(": {}", one_line(text)));
                    format!("{}{}", text(&step.done_by), evidence.unwrap_or_default())
                }
            };
            vec![
                step.number.to_string(),
                mark(*state).to_owned(),
                text(&step.phase),
                step.kind.as_str().to_owned(),
                one_line(&step.task),
                criteria.join("; "),
                text(&step.notes),
                by,
            ]
        })
        .collect();
    table(&STEP, &cells, max)
}

const fn mark(state: StepState) -> &'static str {
    match state {
        StepState::Pending => "[ ] pending",
        StepState::Active => "[>] active",
        StepState::Done => "[x] done",
    }
}
