//! Prompts of agents. The record alone determines a prompt, so the same record always yields the same prompt.

use std::fmt::Write as _;

use crate::flow::record::{Flow, FlowKind, FlowRole, FlowState, Invocation, Stage};
use crate::flow::verdict;

/// Characters at the end of a check's output that an author is shown.
const OUTPUT_CHARS: usize = 6_000;

/// The prompt of the turn an invocation waits for.
#[must_use]
pub fn text(flow: &Flow, invocation: &Invocation) -> String {
    match invocation.stage {
        Stage::Work if invocation.continues => go_on(invocation),
        Stage::Work => with_guidance(work(flow, invocation.state), invocation),
        Stage::Summary => summary(flow, invocation.role),
        Stage::Repair => repair(flow, invocation),
    }
}

/// Short: the session knows the rest.
fn go_on(invocation: &Invocation) -> String {
    let text = match invocation.role {
        FlowRole::Author => "Continue the current session and complete all remaining tasks.",
        FlowRole::Reviewer => "Continue the current session and complete your review.",
    };
    with_guidance(text.to_owned(), invocation)
}

fn with_guidance(mut text: String, invocation: &Invocation) -> String {
    if let Some(words) = &invocation.guidance {
        let _ = write!(text, "\n\nGuidance from the person in charge:\n{words}");
    }
    text
}

fn work(flow: &Flow, state: FlowState) -> String {
    match (flow.kind, state) {
        (FlowKind::PlanReview, FlowState::AutoFix) => format!(
            "A reviewer asks for changes to the plan in {}. Edit the file so that each of these is settled, and change \
             nothing else:\n{}",
            flow.plan_here(),
            items(flow)
        ),
        (FlowKind::PlanReview, _) => format!(
            "Review the plan in {}. Judge whether somebody could work by it: is it complete, in the right order, without \
             contradictions, and can each phase be checked? Change nothing.",
            flow.plan_here()
        ),
        (FlowKind::Phases, FlowState::Review) => format!(
            "Review the work on one phase of a plan. Look at what was changed, run what you need to run, and judge whether \
             the phase is done and done well. Change nothing.{}\n\n{}",
            committed(flow),
            phase(flow)
        ),
        (FlowKind::Phases, FlowState::QualityRetry) => format!(
            "Your work on this phase does not pass its checks. Find the cause and mend it; do not weaken the \
             checks.{}\n{}\n{}",
            commit_rule(flow),
            failures(flow),
            phase(flow)
        ),
        (FlowKind::Phases, FlowState::AutoFix) => format!(
            "The work on this phase was reviewed. Settle each of these points and change nothing else:{}\n{}\n{}",
            commit_rule(flow),
            items(flow),
            phase(flow)
        ),
        (FlowKind::Phases, _) => format!(
            "Work on one phase of a plan, all of it and nothing beyond it. Tick its items in the plan when they are \
             done.{}\n\n{}",
            commit_rule(flow),
            phase(flow)
        ),
    }
}

fn commit_rule(flow: &Flow) -> &'static str {
    if flow.needs_commit() { " Commit your work when you are done." } else { "" }
}

fn committed(flow: &Flow) -> String {
    let commit = flow.active().and_then(|phase| phase.commit.as_deref());
    let base = flow.tree.as_ref().map(|tree| tree.base.as_str());
    match (base, commit) {
        (Some(base), Some(commit)) => {
            format!(" The flow's branch began at {base}; the phase's last commit is {commit}.")
        }
        (Some(base), None) => format!(" The flow's branch began at {base}."),
        (None, _) => String::new(),
    }
}

fn phase(flow: &Flow) -> String {
    let Some(phase) = flow.active() else { return String::new() };
    format!(
        "Plan: {} ({})\nPhase {} of {}: {}\n\n{}",
        flow.title,
        flow.plan_here(),
        flow.phase + 1,
        flow.phases.len(),
        phase.title,
        phase.text.trim()
    )
}

fn items(flow: &Flow) -> String {
    let mut text = String::new();
    for item in &flow.items {
        let _ = write!(text, "\n- [{}] {}: {}", item.priority.as_str(), item.id, item.title);
        if let Some(reason) = &item.reason {
            let _ = write!(text, "\n  {}", reason.replace('\n', "\n  "));
        }
    }
    if text.is_empty() {
        text.push_str("\n- what the person in charge says below");
    }
    text.push('\n');
    text
}

fn failures(flow: &Flow) -> String {
    let mut text = String::new();
    for check in flow.checks.iter().filter(|check| !check.passed) {
        let how = match (check.timed_out, check.exit_code) {
            (true, _) => "took too long".to_owned(),
            (false, Some(code)) => format!("ended with {code}"),
            (false, None) => "was ended by a signal".to_owned(),
        };
        let skip = check.output.chars().count().saturating_sub(OUTPUT_CHARS);
        let output: String = check.output.chars().skip(skip).collect();
        let _ = write!(text, "\n`{}` {how}:\n~~~~\n{}\n~~~~\n", check.name, output.trim_end());
    }
    text
}

/// The second prompt of the same session: how it went, in a form that can be read.
fn summary(flow: &Flow, role: FlowRole) -> String {
    let schema = serde_json::to_string_pretty(&verdict::schema(role)).unwrap_or_default();
    let ask = match role {
        FlowRole::Author if flow.needs_commit() => {
            "Say how your work went. `complete` means all of it is done and committed; name the commit. `needs_human` means \
             that a person must decide something; `failed` that you could not do it; give the reason."
        }
        FlowRole::Author => {
            "Say how your work went. `complete` means all of it is done. `needs_human` means that a person must decide \
             something; `failed` that you could not do it; give the reason."
        }
        FlowRole::Reviewer => {
            "Give your verdict. `ready` means nothing is to be done; `ready_with_corrections` that small things are; \
             `not_ready` that it must not pass. List each thing to be done as an item: `auto_fix` when the author can do it \
             alone, `human_required` when a person must decide."
        }
    };
    format!("{ask} Answer with one JSON object by this schema and nothing else:\n\n```json\n{schema}\n```")
}

fn repair(flow: &Flow, invocation: &Invocation) -> String {
    let fault = invocation.fault.as_deref().unwrap_or("it is not by the schema");
    format!("Your answer cannot be used: {fault}\n\n{}", summary(flow, invocation.role))
}
