//! How a flow is told in one line: in listings, in notes, and while it is watched.

use lanyard_api::types::FlowView;
use lanyard_core::Timestamp;
use lanyard_core::flow::{Flow, FlowKind, FlowState, Spent};
use lanyard_core::text::dollars;

use crate::render::table::{Column, table};
use crate::render::text::one_line;
use crate::render::time::ago;

const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
/// From here on tokens are told in thousands.
const MANY_TOKENS: u64 = 10_000;

const COLUMNS: [Column; 6] = [
    Column::whole("FLOW"),
    Column::whole("STATE"),
    Column::elastic("PHASE", 8),
    Column::whole("FOR"),
    Column::whole("BEGUN"),
    Column::elastic("TITLE", 8),
];

/// `now` is the daemon's clock.
pub(crate) fn listing(views: &[FlowView], now: Timestamp, max: Option<usize>) -> String {
    let row = |view: &FlowView| {
        let flow = &view.flow;
        vec![
            flow.id.to_string(),
            state(flow),
            phase(flow).unwrap_or_default(),
            elapsed(view.elapsed_ms),
            ago(now, flow.created_at),
            one_line(&flow.title),
        ]
    };
    table(&COLUMNS, &views.iter().map(row).collect::<Vec<_>>(), max)
}

/// `escalate, waits for an answer`.
pub(crate) fn state(flow: &Flow) -> String {
    let waits = if flow.state.asks() { ", waits for an answer" } else { "" };
    format!("{}{waits}", flow.state)
}

/// `2/3 Add the API`; nothing in the review of a plan.
pub(crate) fn phase(flow: &Flow) -> Option<String> {
    let active = flow.active()?;
    Some(format!("{}/{} {}", flow.phase + 1, flow.phases.len(), title(&active.title)))
}

/// A phase's title without the number people like to write before it: that is told already.
pub(crate) fn title(title: &str) -> String {
    let title = one_line(title);
    let rest = title.strip_prefix("Phase ").and_then(|rest| rest.split_once(':'));
    match rest {
        Some((number, rest)) if number.parse::<u32>().is_ok() && !rest.trim().is_empty() => {
            rest.trim().to_owned()
        }
        Some(_) | None => title,
    }
}

/// `flow_… is in review, phase 2/3 Add the API`.
pub(crate) fn sentence(view: &FlowView) -> String {
    let flow = &view.flow;
    let phase = phase(flow).filter(|_| !flow.state.is_ended());
    let phase = phase.map(|phase| format!(", phase {phase}")).unwrap_or_default();
    let reason = flow.reason.as_deref().filter(|_| flow.state.is_ended() || flow.state.asks());
    let reason = reason.map(|reason| format!(": {}", one_line(reason))).unwrap_or_default();
    format!("{} is {}{phase}{reason}", flow.id, state(flow))
}

/// What stands in place while a flow is watched. `later_ms` is the time since the record came.
pub(crate) fn status(view: &FlowView, later_ms: u64) -> String {
    let flow = &view.flow;
    let mut parts = vec![match (phase(flow), flow.kind) {
        (Some(phase), _) => format!("phase {phase}"),
        (None, FlowKind::Phases) => one_line(&flow.title),
        (None, FlowKind::PlanReview) => format!("plan review of {}", one_line(&flow.title)),
    }];
    parts.push(match flow.state {
        FlowState::Review | FlowState::AutoFix if flow.iteration > 0 => {
            format!("{} ({})", flow.state, flow.iteration)
        }
        FlowState::QualityRetry => format!("{} ({})", flow.state, flow.quality_retries),
        FlowState::Execute
        | FlowState::QualityCheck
        | FlowState::Review
        | FlowState::ReviewGate
        | FlowState::AutoFix
        | FlowState::PhaseGate
        | FlowState::PhaseComplete
        | FlowState::Escalate
        | FlowState::Aborted
        | FlowState::Completed
        | FlowState::Approved => flow.state.to_string(),
    });
    if let Some(invocation) = &flow.invocation {
        parts.push(format!("step {}, {} at work", invocation.step, invocation.role.as_str()));
    } else if let Some(check) = &flow.check {
        let name = flow.settings.quality.get(check.place).map(|command| one_line(&command.name));
        parts.push(format!("check {}", name.unwrap_or_default()));
    }
    parts.push(elapsed(view.elapsed_ms.saturating_add(later_ms)));
    parts.extend(tokens(flow.spent));
    parts.join(" · ")
}

/// `12s`, `3m12s`, `1h04m`.
pub(crate) fn elapsed(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        ..MINUTE_S => format!("{seconds}s"),
        MINUTE_S..HOUR_S => format!("{}m{:02}s", seconds / MINUTE_S, seconds % MINUTE_S),
        HOUR_S.. => format!("{}h{:02}m", seconds / HOUR_S, seconds % HOUR_S / MINUTE_S),
    }
}

/// `3400 tokens in, 120 out, $0.42`; nothing where its agents report none.
pub(crate) fn tokens(spent: Spent) -> Option<String> {
    let some = spent.input_tokens > 0 || spent.output_tokens > 0 || spent.cost_micros > 0;
    let cost =
        if spent.cost_micros > 0 { format!(", {}", dollars(spent.cost_micros)) } else { String::new() };
    let tokens = (rounded(spent.input_tokens), rounded(spent.output_tokens));
    some.then(|| format!("{} tokens in, {} out{cost}", tokens.0, tokens.1))
}

fn rounded(tokens: u64) -> String {
    if tokens < MANY_TOKENS { tokens.to_string() } else { format!("{}k", tokens / 1_000) }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::render::flow_fixture::{created, invoked, log, time, view};

    #[test]
    fn flows_are_listed_with_where_they_stand() {
        let working = view(&log(&[created(), invoked("author", &json!({}))]));
        let why = json!({"to": "escalate", "reason": "The author needs a person: which key?"});
        let asking = view(&log(&[created(), ("flow.moved", why)]));
        expect![[r"
            FLOW    STATE                          PHASE            FOR    BEGUN   TITLE
            000003  execute                        2/3 Add the API  3m12s  4m ago  Release 1.0
            000003  escalate, waits for an answer  2/3 Add the API  3m12s  4m ago  Release 1.0
        "]]
        .assert_eq(&listing(&[working.clone(), asking.clone()], time(252), None));
        expect!["flow_00000000000000000000000003 is escalate, waits for an answer, phase 2/3 Add the API: The author needs a person: which key?"].assert_eq(&sentence(&asking));
        expect!["phase 2/3 Add the API · execute · step 1, author at work · 3m13s"]
            .assert_eq(&status(&working, 1_500));
    }

    #[test]
    fn the_number_before_a_title_is_told_once() {
        let titles =
            ["Phase 2: Add the API", "Phase two: more", "Phase 3:", "Phases: all of them", "Add: it"];
        let told = titles.map(title);
        assert_eq!(told, ["Add the API", "Phase two: more", "Phase 3:", "Phases: all of them", "Add: it"]);
    }

    #[test]
    fn time_and_tokens_in_few_letters() {
        let words = [0, 59_999, 60_000, 3_599_000, 3_840_000].map(elapsed);
        assert_eq!(words, ["0s", "59s", "1m00s", "59m59s", "1h04m"]);
        let spent =
            |input_tokens, output_tokens| Spent { input_tokens, output_tokens, ms: 1, ..Spent::default() };
        assert_eq!(tokens(spent(0, 0)), None);
        assert_eq!(tokens(spent(9_999, 120)).as_deref(), Some("9999 tokens in, 120 out"));
        assert_eq!(tokens(spent(120_400, 0)).as_deref(), Some("120k tokens in, 0 out"));
        let paid = Spent { cost_micros: 421_000, ..spent(10, 2) };
        assert_eq!(tokens(paid).as_deref(), Some("10 tokens in, 2 out, $0.42"));
    }
}
