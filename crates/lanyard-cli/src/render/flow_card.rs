//! One flow, readable: what it is about, where it stands, who works at it, and what it waits for.

use lanyard_api::types::FlowView;
use lanyard_core::Timestamp;
use lanyard_core::flow::{Asking, Flow, FlowRole, GateDefault, PhaseState};

use crate::render::approval::approvals;
use crate::render::card::Card;
use crate::render::flow::{elapsed, phase, state, tokens};
use crate::render::flow_gate::{items, open_gate, question};
use crate::render::ids::Shortener;
use crate::render::text::{commit, count, one_line};
use crate::render::time::{ago, lasting, span, stamp};

/// Sessions that are named, the newest; all are in `--json`.
const SESSIONS_SHOWN: usize = 6;

/// `now` is the daemon's clock.
pub(crate) fn flow_card(view: &FlowView, now: Timestamp) -> String {
    let flow = &view.flow;
    let mut card = Card::default();
    card.line("id", flow.id.to_string());
    card.text("title", Some(&flow.title));
    card.line("kind", flow.kind.as_str());
    card.text("plan", Some(&flow.plan));
    card.line("state", format!("{} {}", state(flow), lasting(now, flow.since)));
    card.text("because", flow.reason.as_ref());
    card.line("phase", phase(flow).unwrap_or_default());
    card.line("elapsed", elapsed(view.elapsed_ms));
    card.line("tokens", tokens(flow.spent).unwrap_or_default());
    card.gap();
    card.lines(
        "phases",
        flow.phases.iter().map(|phase| {
            let commit = phase.commit.as_deref().map(|hash| format!(", commit {}", commit(hash)));
            format!("{} {}{}", mark(phase.state), one_line(&phase.title), commit.unwrap_or_default())
        }),
    );
    card.gap();
    at_work(&mut card, flow, now);
    card.gap();
    last_round(&mut card, flow);
    card.gap();
    how_it_is_run(&mut card, flow);
    card.gap();
    let by = one_line(&flow.created_by.name);
    card.line("created", format!("{} ({}) by {by}", stamp(flow.created_at), ago(now, flow.created_at)));
    card.line("log", count(flow.seq, "event"));
    let mut text = card.done();
    text.push_str(&approvals(&view.approvals));
    if let Some(entry) = open_gate(view) {
        text.push('\n');
        text.push_str(&question(&entry, Shortener::whole(), Some(now)));
        text = format!("{text}  answer it with `lanyard answer {}`\n", entry.gate.id);
    }
    text
}

/// A short mark, so that a column of them can be read at a glance and without colour.
const fn mark(state: PhaseState) -> &'static str {
    match state {
        PhaseState::Open => "[ ]",
        PhaseState::Active => "[>]",
        PhaseState::Complete => "[x]",
        PhaseState::Skipped => "[-]",
        PhaseState::Overridden => "[o]",
    }
}

fn at_work(card: &mut Card, flow: &Flow, now: Timestamp) {
    if let Some(work) = &flow.invocation {
        let how = if work.continues { ", going on" } else { "" };
        let since = lasting(now, work.begun_at);
        card.line(
            "at work",
            format!("{} in {}{how}, step {}, {since}", work.role.as_str(), work.session, work.step),
        );
        card.text("told", work.guidance.as_ref());
    }
    if let Some(check) = &flow.check {
        let name = flow.settings.quality.get(check.place).map(|command| one_line(&command.name));
        card.line("at work", format!("check {} {}", name.unwrap_or_default(), lasting(now, check.begun_at)));
    }
    card.lines(
        "preserved",
        flow.preserved.iter().map(|kept| {
            let until = kept
                .until
                .map_or_else(|| "without end".to_owned(), |until| format!("until {}", stamp(until)));
            format!("{} continues without the flow, {until}", kept.session)
        }),
    );
    let newest = flow.sessions.iter().rev().take(SESSIONS_SHOWN);
    card.lines(
        "sessions",
        newest.map(|worked| {
            format!("{} {} (step {}, {})", worked.session, worked.role.as_str(), worked.step, worked.state)
        }),
    );
}

fn last_round(card: &mut Card, flow: &Flow) {
    card.lines(
        "checks",
        flow.checks.iter().map(|check| {
            let how = if check.passed { "passed" } else { "failed" };
            format!("{}: {how} in {}", one_line(&check.name), span(check.ms))
        }),
    );
    if flow.iteration > 0 {
        card.line("reviews", flow.iteration.to_string());
    }
    card.lines("items", items(&flow.items));
}

fn how_it_is_run(card: &mut Card, flow: &Flow) {
    let rules = &flow.settings.rules;
    for role in [FlowRole::Author, FlowRole::Reviewer] {
        let settings = flow.settings.role(role);
        let agent = settings.agent.as_deref().map_or_else(|| "the default agent".to_owned(), one_line);
        let limit = match settings.timeout_ms {
            0 => String::new(),
            ms if settings.abort_on_timeout => format!(", a turn is ended after {}", span(ms)),
            ms => format!(", a turn is waited for {}", span(ms)),
        };
        card.line(role.as_str(), format!("{agent}{limit}"));
    }
    card.lines("quality", flow.settings.quality.iter().map(|command| one_line(&command.name)));
    let mut asks = vec!["when it cannot go on"];
    if rules.phase_gate == Asking::Ask && !flow.phases.is_empty() {
        asks.push("when a phase is ready");
    }
    if rules.review_gate == Asking::Ask {
        asks.push("before corrections");
    }
    card.line("approvals", asks.join(", "));
    if rules.gate_deadline_ms > 0 && rules.gate_default != GateDefault::Wait {
        let after = span(rules.gate_deadline_ms);
        card.line("unanswered", format!("{} after {after}", rules.gate_default.as_str()));
    }
    match &flow.tree {
        Some(tree) if tree.removed => card.line("branch", one_line(&tree.branch)),
        Some(tree) => {
            card.lines("works in", [one_line(&tree.path), format!("branch {}", one_line(&tree.branch))]);
        }
        None => card.text("works in", Some(&flow.workspace)),
    }
    if let Some(captured) = &flow.captured {
        let files = count(captured.files_changed, "file");
        card.line("captured", format!("{files} in {}", commit(&captured.commit)));
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::render::flow_fixture::{created, escalation, invoked, log, time, view};

    #[test]
    fn a_flow_that_asks() {
        let mut gate = serde_json::to_value(escalation(true)).unwrap();
        gate["step"] = json!(2);
        let status = json!({"is": "author", "status": "needs_human", "reason": "which key?"});
        let spent = json!({"input_tokens": 3_400, "output_tokens": 120, "ms": 12_000});
        let asking = view(&log(&[
            created(),
            invoked("author", &json!({})),
            ("flow.concluded", json!({"conclusion": status, "spent": spent})),
            ("flow.moved", json!({"to": "escalate", "reason": "The author needs a person: which key?"})),
            ("flow.gate_opened", json!({"gate": gate})),
        ]));
        expect![[r#"
            id           flow_00000000000000000000000003
            title        Release 1.0
            kind         phases
            plan         /code/web/PLAN.md
            state        escalate, waits for an answer for 4m
            because      The author needs a person: which key?
            phase        2/3 Add the API
            elapsed      3m12s
            tokens       3400 tokens in, 120 out

            phases       [-] Write it down
                         [>] Add the API
                         [ ] Tell people

            sessions     sess_00000000000000000000000005 author (step 1, execute)

            author       codex, a turn is waited for 1h
            reviewer     claude, a turn is waited for 1h
            quality      tests
            approvals    when it cannot go on, when a phase is ready
            works in     /code/web

            created      2026-11-15T08:00:01Z (4m ago) by ann
            log          5 events

            gate_00000000000000000000000007 (escalation, opened 4m ago)
              Release 1.0, phase "Add the API": execute, review 2
              The author needs a person: which key?
                P0 human_required  Which key?: staging or production
                P1 auto_fix        Name the route
                | error: no key
                | at api.rs:12
              author of sess_00000000000000000000000005: alive, idle, context left, to go on with execute
              answer it with `lanyard answer gate_00000000000000000000000007`
        "#]]
        .assert_eq(&flow_card(&asking, time(252)));
    }
}
