//! A flow's log as a story, one line or a few per event, while it is watched and when it is read again. What nobody waits
//! for (leases, hooks) is left out; `--json` has it.

use lanyard_core::Record as _;
use lanyard_core::Timestamp;
use lanyard_core::flow::{
    AuthorStatus, CheckResult, Conclusion, Flow, FlowCreated, FlowEnvelope, FlowEvent, FlowKind, FlowState,
    GateAnswered, PhaseState, Preserved, Spent, Stage, Verdict,
};

use crate::render::flow::{elapsed, phase, title, tokens};
use crate::render::flow_gate::{items, tail};
use crate::render::text::{commit, count, one_line, quoted};
use crate::render::time::{span, stamp};

/// Columns for the time since the flow began.
const TIME_COLUMNS: usize = 7;
/// What details of an event begin with: below the words, not below the time.
const DETAIL: &str = "             ";

/// Tells a log in order. Events must come from the first on, so that it knows which phase an event is about.
#[derive(Debug, Default)]
pub(crate) struct Narrator {
    flow: Option<Flow>,
    /// The phase that was told last.
    told: Option<usize>,
}

/// A line at its depth, and lines that belong to it.
struct Told {
    depth: usize,
    line: String,
    details: Vec<String>,
}

impl Narrator {
    pub(crate) fn tell(&mut self, envelope: &FlowEnvelope) -> Vec<String> {
        match &mut self.flow {
            None => self.flow = Flow::born(envelope).ok(),
            // What this version does not understand is told as it is; the daemon keeps the record.
            Some(flow) => drop(flow.apply(envelope)),
        }
        let began = self.flow.as_ref().map_or(envelope.at, |flow| flow.created_at);
        let mut lines = Vec::new();
        for told in self.told(envelope) {
            lines.push(timed(began, envelope.at, told.depth, &told.line));
            lines.extend(told.details.iter().map(|detail| format!("{DETAIL}{detail}").trim_end().to_owned()));
        }
        lines
    }

    fn told(&mut self, envelope: &FlowEnvelope) -> Vec<Told> {
        let mut all: Vec<Told> = Vec::new();
        if matches!(envelope.event, FlowEvent::Invoked { .. }) {
            all.extend(self.phase_begun());
        }
        all.extend(self.event(&envelope.event));
        all
    }

    /// A phase is printed when its first step starts.
    fn phase_begun(&mut self) -> Option<Told> {
        let flow = self.flow.as_ref()?;
        if self.told == Some(flow.phase) {
            return None;
        }
        self.told = Some(flow.phase);
        phase(flow).map(|phase| Told::new(0, format!("phase {phase}")))
    }

    fn event(&self, event: &FlowEvent) -> Option<Told> {
        Some(match event {
            FlowEvent::Created(created) => Told::new(0, begun(created)),
            FlowEvent::Leased { from: Some(from), .. } => {
                Told::new(0, format!("taken over from {}, which did not let go", one_line(from)))
            }
            FlowEvent::Leased { from: None, .. } | FlowEvent::CheckBegun { .. } => return None,
            FlowEvent::Hooked { failed, .. } => return hooks_failed(failed),
            FlowEvent::TreeMade { tree } => {
                let (path, branch) = (one_line(&tree.path), one_line(&tree.branch));
                Told::new(0, format!("works in {path} on branch {branch}"))
            }
            FlowEvent::Invoked { .. } => self.invoked(event)?,
            FlowEvent::Asked { stage, fault, .. } => asked(*stage, fault.as_deref()),
            FlowEvent::Concluded { conclusion, spent } => concluded(conclusion, *spent),
            FlowEvent::CheckEnded { result } => checked(result),
            FlowEvent::Moved { to, reason } => return moved(*to, reason.as_deref()),
            FlowEvent::Retried { reason, .. } => {
                Told::new(1, format!("goes on by itself: {}", one_line(reason)))
            }
            FlowEvent::PhaseEnded { phase, state } => self.phase_ended(*phase, *state),
            FlowEvent::GateOpened { gate } => {
                let (kind, reason) = (gate.kind.as_str(), one_line(&gate.reason));
                let told = format!("{} waits for approval ({kind}): {reason}", gate.id);
                Told::new(1, told)
            }
            FlowEvent::GateAnswered { gate, answer } => {
                Told::new(1, format!("{gate} is answered: {}", answered(answer)))
            }
            FlowEvent::ContinuationWithdrawn { gate, why } => {
                let why = one_line(why);
                Told::new(1, format!("{gate}: continuing the session is no longer offered: {why}"))
            }
            FlowEvent::SessionPreserved { preserved } => Told::new(1, kept(preserved)),
            FlowEvent::SessionReleased { session, why } => {
                Told::new(1, format!("{session} is let go: {}", one_line(why)))
            }
            FlowEvent::Ended { state, reason } => {
                let reason = reason.as_deref().map(|reason| format!(": {}", one_line(reason)));
                Told::new(0, format!("{state}{}", reason.unwrap_or_default()))
            }
            FlowEvent::Settled { .. } => return settled(event),
            FlowEvent::Resumed {} => {
                let state = self.flow.as_ref().map(|flow| flow.state.to_string()).unwrap_or_default();
                Told::new(0, format!("taken up again: {state}"))
            }
        })
    }

    fn invoked(&self, event: &FlowEvent) -> Option<Told> {
        let FlowEvent::Invoked { step, role, session, continues, fork_of, guidance, .. } = event else {
            return None;
        };
        let state = self.flow.as_ref().map(|flow| flow.state.to_string()).unwrap_or_default();
        let role = role.as_str();
        let where_to = match (continues, fork_of) {
            (true, _) => format!("{role} goes on in {session}"),
            (false, Some(fork)) => format!("{role} in {session}, a fork of {fork}"),
            (false, None) => format!("{role} in {session}"),
        };
        let words = guidance.as_deref().map(|words| format!(", told {}", quoted(words)));
        Some(Told::new(1, format!("step {step} {state}: {where_to}{}", words.unwrap_or_default())))
    }

    fn phase_ended(&self, place: usize, state: PhaseState) -> Told {
        let named = self.flow.as_ref().and_then(|flow| flow.phases.get(place));
        let named = named.map(|phase| format!(" {}", title(&phase.title))).unwrap_or_default();
        Told::new(0, format!("phase {}{named}: {}", place + 1, state.as_str()))
    }
}

impl Told {
    fn new(depth: usize, line: String) -> Self {
        Self { depth, line, details: Vec::new() }
    }
}

/// `  3m12s    step 2 review: …`.
fn timed(began: Timestamp, at: Timestamp, depth: usize, line: &str) -> String {
    let indent = "  ".repeat(depth + 1);
    format!("{:>TIME_COLUMNS$}{indent}{line}", elapsed(at.millis_since(began)))
}

fn begun(created: &FlowCreated) -> String {
    let agent =
        |agent: &Option<String>| agent.as_deref().map_or_else(|| "the default agent".to_owned(), one_line);
    let (author, reviewer) = (agent(&created.settings.author.agent), agent(&created.settings.reviewer.agent));
    let (title, plan) = (one_line(&created.title), one_line(&created.plan));
    let what = match created.kind {
        FlowKind::Phases => count(created.phases.len(), "phase"),
        FlowKind::PlanReview => "plan review".to_owned(),
    };
    format!("{title} ({what}, {plan}); author {author}, reviewer {reviewer}")
}

fn asked(stage: Stage, fault: Option<&str>) -> Told {
    let what = match stage {
        Stage::Work => "is at work",
        Stage::Summary => "is asked how it went",
        Stage::Repair => "is asked once more how it went",
    };
    let fault = fault.map(|fault| format!(": {}", one_line(fault))).unwrap_or_default();
    Told::new(2, format!("{what}{fault}"))
}

fn concluded(conclusion: &Conclusion, spent: Spent) -> Told {
    let (mut line, details) = match conclusion {
        Conclusion::Author(status) => author(status),
        Conclusion::Verdict(verdict) => reviewed(verdict),
        Conclusion::Failed { kind, reason } => {
            (format!("no result ({}): {}", kind.as_str(), one_line(reason)), Vec::new())
        }
        Conclusion::Cancelled { reason } => (format!("cancelled: {}", one_line(reason)), Vec::new()),
    };
    let took = (spent.ms > 0).then(|| span(spent.ms));
    let used: Vec<String> = took.into_iter().chain(tokens(spent)).collect();
    if !used.is_empty() {
        line = format!("{line} ({})", used.join(", "));
    }
    Told { depth: 2, line, details }
}

fn author(status: &AuthorStatus) -> (String, Vec<String>) {
    let commit = status.commit.as_deref().map(|hash| format!(", commit {}", commit(hash)));
    let reason = status.reason.as_deref().map(|reason| format!(": {}", one_line(reason)));
    let notes = status.notes.as_deref().map(tail).unwrap_or_default();
    let line = format!("{}{}", commit.unwrap_or_default(), reason.unwrap_or_default());
    (format!("author: {}{line}", status.status.as_str()), notes)
}

fn reviewed(verdict: &Verdict) -> (String, Vec<String>) {
    let score = verdict.score.map(|score| format!(", score {score}")).unwrap_or_default();
    let found = match verdict.items.len() {
        0 => String::new(),
        number => format!(", {}", count(number, "item")),
    };
    let summary = verdict.summary.as_deref().map(|summary| format!(": {}", one_line(summary)));
    let line =
        format!("reviewer: {}{score}{found}{}", verdict.readiness.as_str(), summary.unwrap_or_default());
    (line, items(&verdict.items))
}

fn checked(result: &CheckResult) -> Told {
    let name = one_line(&result.name);
    let took = span(result.ms);
    let line = match (&result.error, result.timed_out, result.exit_code) {
        (Some(error), ..) => format!("check {name}: could not be run: {}", one_line(error)),
        (None, true, _) => format!("check {name}: took too long, ended after {took}"),
        (None, false, _) if result.passed => format!("check {name}: passed in {took}"),
        (None, false, Some(code)) => format!("check {name}: failed with {code} in {took}"),
        (None, false, None) => format!("check {name}: ended by a signal after {took}"),
    };
    let details = if result.passed { Vec::new() } else { tail(&result.output) };
    let details = details.into_iter().map(|line| format!("| {line}")).collect();
    Told { depth: 2, line, details }
}

/// A state is printed with its role, or with its approval; checks have no role.
fn moved(to: FlowState, reason: Option<&str>) -> Option<Told> {
    let reason = reason.map(|reason| format!(": {}", one_line(reason))).unwrap_or_default();
    match to {
        FlowState::QualityCheck | FlowState::QualityRetry => Some(Told::new(1, format!("{to}{reason}"))),
        FlowState::Execute
        | FlowState::Review
        | FlowState::ReviewGate
        | FlowState::AutoFix
        | FlowState::PhaseGate
        | FlowState::PhaseComplete
        | FlowState::Escalate
        | FlowState::Aborted
        | FlowState::Completed
        | FlowState::Approved => None,
    }
}

/// Hooks that did what they should are not told of.
fn hooks_failed(failed: &[String]) -> Option<Told> {
    let details: Vec<String> = failed.iter().map(|failed| one_line(failed)).collect();
    let line = format!("{} failed", count(details.len(), "hook"));
    (!details.is_empty()).then_some(Told { depth: 1, line, details })
}

fn answered(answer: &GateAnswered) -> String {
    let words = answer.guidance.as_deref().map(|words| format!(", {}", quoted(words)));
    format!("{} by {}{}", answer.choice.as_str(), one_line(&answer.by.name), words.unwrap_or_default())
}

fn kept(preserved: &Preserved) -> String {
    let until =
        preserved.until.map_or_else(|| "without end".to_owned(), |until| format!("until {}", stamp(until)));
    format!("{} continues without the flow, {until}", preserved.session)
}

fn settled(event: &FlowEvent) -> Option<Told> {
    let FlowEvent::Settled { captured, tree_removed, failed } = event else { return None };
    let mut parts: Vec<String> = Vec::new();
    if let Some(captured) = captured {
        let files = count(captured.files_changed, "file");
        parts.push(format!("{files} not committed before captured in {}", commit(&captured.commit)));
    }
    if *tree_removed {
        parts.push("the worktree is taken away, the branch stays".to_owned());
    }
    if let Some(failed) = failed {
        parts.push(format!("the worktree stays: {}", one_line(failed)));
    }
    (!parts.is_empty()).then(|| Told::new(0, parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;
    use crate::render::flow_fixture::{created, flow, log, whole};

    fn story(events: &[(&str, Value)]) -> String {
        let log = log(events);
        // It could have happened so.
        flow(&log);
        let mut narrator = Narrator::default();
        let lines = log.iter().flat_map(|envelope| narrator.tell(envelope));
        lines.fold(String::new(), |text, line| text + &line + "\n")
    }

    #[test]
    fn a_log_reads_as_a_story() {
        let text = format!("told:\n{}", story(&whole()));
        expect![[r#"
            told:
                 0s  Release 1.0 (3 phases, /code/web/PLAN.md); author codex, reviewer claude
                 2s  works in /data/trees/f on branch lanyard/flow
                 3s  phase 2/3 Add the API
                 3s    step 1 execute: author in sess_00000000000000000000000005
                 4s      is asked how it went
                 5s      is asked once more how it went: there is no JSON object in the answer
                 6s      author: complete, commit 2b5c13df18e4 (12s, 3400 tokens in, 120 out)
                 7s    quality_check
                 9s      check tests: failed with 1 in 1s
                         | 1 test
                         | 1 failed
                10s    quality_retry: failed: tests
                11s    step 3 quality_retry: author in sess_00000000000000000000000005
                12s      author: complete (900ms)
                14s    step 4 review: reviewer in sess_00000000000000000000000005
                15s      reviewer: not_ready, score 60, 2 items
                         P0 human_required  Which key?: staging or production
                         P1 auto_fix        Name the route
                17s    gate_00000000000000000000000007 waits for approval (escalation): The author needs a person: which key?
                18s    gate_00000000000000000000000007 is answered: continue_session by ann, "the staging key"
                20s    step 6 execute: author goes on in sess_00000000000000000000000005, told "the staging key"
                21s      no result (timeout): 60s (1m)
                22s  aborted: cancelled by ann
                23s  1 file not committed before captured in 2b5c13df18e4; the worktree is taken away, the branch stays
                24s  taken up again: execute
                25s    1 hook failed
                         notify: exit 1
        "#]].assert_eq(&text);
    }

    #[test]
    fn an_event_that_does_not_follow_is_told_all_the_same() {
        let mut narrator = Narrator::default();
        let all = log(&[created(), ("flow.moved", json!({"to": "quality_check"}))]);
        assert_eq!(narrator.tell(&all[1]), ["     0s    quality_check"]);
    }

    #[test]
    fn checks_say_how_they_ended() {
        let check = |changes: Value| {
            let mut result = json!({"name": "lint", "passed": false, "output": "", "ms": 500});
            for (name, value) in changes.as_object().unwrap() {
                result[name] = value.clone();
            }
            checked(&serde_json::from_value(result).unwrap()).line
        };
        let lines = [
            check(json!({"passed": true, "exit_code": 0})),
            check(json!({"exit_code": 2})),
            check(json!({"timed_out": true})),
            check(json!({})),
            check(json!({"error": "no such program"})),
        ];
        expect![[r"
            check lint: passed in 500ms
            check lint: failed with 2 in 500ms
            check lint: took too long, ended after 500ms
            check lint: ended by a signal after 500ms
            check lint: could not be run: no such program"]]
        .assert_eq(&lines.join("\n"));
    }
}
