//! A flow's approval as text: its reason, its evidence, and the answers it offers. All that an approval carries is
//! bounded here; `--json` has the whole.

use std::fmt::Write;

use lanyard_api::types::{FlowGateEntry, FlowView};
use lanyard_core::Timestamp;
use lanyard_core::flow::{Choice, FlowGate, FlowGateKind, FlowState, GateDefault, Item, Probe};

use crate::render::flow::title;
use crate::render::ids::Shortener;
use crate::render::text::{fit, harmless, one_line, pad};
use crate::render::time::{ago, stamp};

/// Items of a review that are shown.
const ITEMS_SHOWN: usize = 20;
/// Lines of evidence that are shown, the last ones, and how wide.
const EVIDENCE_LINES: usize = 20;
const EVIDENCE_COLUMNS: usize = 160;

/// What a flow asks now.
pub(crate) fn open_gate(view: &FlowView) -> Option<FlowGateEntry> {
    let flow = &view.flow;
    let gate = flow.gate.clone().filter(FlowGate::is_open).filter(|_| !flow.state.is_ended())?;
    Some(FlowGateEntry {
        flow: flow.id,
        title: flow.title.clone(),
        phase: flow.active().map(|phase| phase.title.clone()),
        state: flow.state,
        gate,
    })
}

/// All of the approval but the answers. `now` is the daemon's clock, where it is known.
pub(crate) fn question(entry: &FlowGateEntry, ids: Shortener, now: Option<Timestamp>) -> String {
    let gate = &entry.gate;
    let asked = now.map(|now| format!(", opened {}", ago(now, gate.opened_at))).unwrap_or_default();
    let mut text = format!("{} ({}{asked})\n", ids.named(&gate.id), gate.kind.as_str());
    let mut line = |words: String| {
        text.push_str(&words);
        text.push('\n');
    };
    line(format!("  {}", place(entry)));
    line(format!("  {}", one_line(&gate.reason)));
    for row in items(&gate.items) {
        line(format!("    {row}"));
    }
    if let Some(evidence) = &gate.evidence {
        for row in tail(evidence) {
            line(format!("    | {row}"));
        }
    }
    if let Some(payload) = &gate.continue_session {
        let (role, state) = (payload.role.as_str(), payload.resume_state);
        let session = ids.named(&payload.session);
        line(format!("  {role} of {session}: {}, to go on with {state}", probed(payload.probe)));
    }
    if let Some(fork) = gate.fork_of {
        line(format!("  a new session begins as a fork of {}, which knows the work", ids.named(&fork)));
    }
    if let Some(deadline) = gate.deadline {
        let then = match gate.default {
            GateDefault::Wait => "it goes on waiting",
            GateDefault::ContinueSession => "continue_session is answered, where it is offered",
            GateDefault::Abort => "the flow is aborted",
        };
        line(format!("  without an answer by {}, {then}", stamp(deadline)));
    }
    text
}

/// `Release 1.0, phase "Add the API": review 2`.
fn place(entry: &FlowGateEntry) -> String {
    let phase = entry.phase.as_ref().map(|phase| format!(", phase \"{}\"", title(phase)));
    let after = match (entry.gate.from, entry.gate.iteration) {
        (from, 0) => from.to_string(),
        (FlowState::Review, number) => format!("review {number}"),
        (from, number) => format!("{from}, review {number}"),
    };
    format!("{}{}: {after}", one_line(&entry.title), phase.unwrap_or_default())
}

/// One line per offered answer, and why one is not.
pub(crate) fn choices(gate: &FlowGate) -> Vec<String> {
    let offered = gate.offered().into_iter();
    let mut lines: Vec<String> =
        offered.map(|choice| format!("{}  {}", choice.letter(), choice.words(gate.kind))).collect();
    // A phase and a review are decided; only an escalation has a session that could continue.
    if let (FlowGateKind::Escalation, Some(why)) = (gate.kind, &gate.not_offered) {
        lines.push(format!("(continuing the session is not offered: {})", one_line(why)));
    }
    lines
}

/// The commands that answer it, for output without a prompt.
pub(crate) fn commands(gate: &FlowGate) -> String {
    let command = |choice: Choice| {
        let words = if choice.takes_guidance() { " [--message \"…\"]" } else { "" };
        format!("lanyard answer {} {}{words}", gate.id, choice.letter())
    };
    let offered = gate.offered();
    let widest = offered.iter().map(|choice| command(*choice).chars().count()).max().unwrap_or(0);
    offered.iter().fold(String::new(), |mut text, choice| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}  {}", pad(&command(*choice), widest), choice.words(gate.kind));
        text
    })
}

/// `P0 human_required  Which key? [k1]: staging or production`.
pub(crate) fn items(items: &[Item]) -> Vec<String> {
    let mut rows: Vec<String> = items
        .iter()
        .take(ITEMS_SHOWN)
        .map(|item| {
            let reason = item.reason.as_deref().map(|reason| format!(": {}", one_line(reason)));
            let action = pad(item.action.as_str(), "human_required".len());
            let row = format!("{} {action}  {}", item.priority.as_str(), one_line(&item.title));
            fit(&format!("{row}{}", reason.unwrap_or_default()), EVIDENCE_COLUMNS)
        })
        .collect();
    if items.len() > ITEMS_SHOWN {
        rows.push(format!("and {} more", items.len() - ITEMS_SHOWN));
    }
    rows
}

/// The last lines of a text, which is where errors are told.
pub(crate) fn tail(text: &str) -> Vec<String> {
    let text = harmless(text.trim_end()).replace('\t', "    ");
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(EVIDENCE_LINES);
    let mut rows: Vec<String> = Vec::new();
    if skipped > 0 {
        rows.push(format!("({skipped} lines before)"));
    }
    rows.extend(lines[skipped..].iter().map(|line| fit(line, EVIDENCE_COLUMNS)));
    rows
}

/// State of the session that may be continued.
pub(crate) fn probed(probe: Probe) -> String {
    let process = match (probe.exists, probe.alive, probe.loadable) {
        (false, ..) => return "gone".to_owned(),
        (true, true, _) => "alive",
        (true, false, true) => "its agent can load it again",
        (true, false, false) => "its agent cannot load it again",
    };
    let busy = if probe.idle { "idle" } else { "at work, which is ended first" };
    let room = if probe.context_left { "context left" } else { "no context left" };
    format!("{process}, {busy}, {room}")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::render::flow_fixture::{entry, escalation, phase_gate, time};

    /// S2-01: each answer with what it does. S2-03: what is not offered is not among them.
    #[test]
    fn a_gate_says_what_it_is_about_and_what_can_be_answered() {
        let offered = entry(&escalation(true));
        let text =
            question(&offered, Shortener::whole(), Some(time(90))) + &choices(&offered.gate).join("\n");
        expect![[r#"
            gate_00000000000000000000000007 (escalation, opened 1m ago)
              Release 1.0, phase "Add the API": execute, review 2
              The author needs a person: which key?
                P0 human_required  Which key?: staging or production
                P1 auto_fix        Name the route
                | error: no key
                | at api.rs:12
              author of sess_00000000000000000000000005: alive, idle, context left, to go on with execute
            c  continue the same session, which keeps everything it knows
            f  fix it in a new session
            o  override: let it pass as it is
            q  abort the flow; `lanyard flow resume` takes it up again"#]]
        .assert_eq(&text);
        expect![[r"
            f  fix it in a new session
            o  override: let it pass as it is
            q  abort the flow; `lanyard flow resume` takes it up again
            (continuing the session is not offered: its session is gone)"]]
        .assert_eq(&choices(&escalation(false)).join("\n"));
    }

    #[test]
    fn whoever_is_not_at_a_prompt_gets_the_commands() {
        expect![[r#"
            one of
              lanyard answer gate_00000000000000000000000007 c [--message "…"]  continue the same session, which keeps everything it knows
              lanyard answer gate_00000000000000000000000007 f [--message "…"]  fix it in a new session
              lanyard answer gate_00000000000000000000000007 o                  override: let it pass as it is
              lanyard answer gate_00000000000000000000000007 q                  abort the flow; `lanyard flow resume` takes it up again
        "#]]
        .assert_eq(&format!("one of\n{}", commands(&escalation(true))));
        assert!(!commands(&phase_gate()).contains(" c "));
    }

    #[test]
    fn a_deadline_and_what_it_brings_are_told() {
        let mut gate = phase_gate();
        gate.deadline = Some(time(600));
        gate.default = GateDefault::Abort;
        let text = question(&entry(&gate), Shortener::whole(), None);
        assert!(text.contains("without an answer by 2026-11-15T08:10:00Z, the flow is aborted"), "{text}");
    }

    #[test]
    fn what_is_long_or_harmful_is_cut() {
        let evidence: String = (1..=50).fold(String::new(), |text, n| format!("{text}line {n} \u{1b}[31m\n"));
        let rows = tail(&evidence);
        assert_eq!((rows.len(), rows[0].as_str()), (EVIDENCE_LINES + 1, "(30 lines before)"));
        assert!(rows.iter().all(|row| !row.contains('\u{1b}')));
        let many = vec![escalation(true).items[0].clone(); 25];
        assert_eq!(items(&many).last().map(String::as_str), Some("and 5 more"));
    }

    #[test]
    fn a_probe_in_words() {
        let idle = Probe { exists: true, alive: false, loadable: true, idle: false, context_left: true };
        assert_eq!(probed(idle), "its agent can load it again, at work, which is ended first, context left");
        assert_eq!(probed(Probe::default()), "gone");
    }
}
