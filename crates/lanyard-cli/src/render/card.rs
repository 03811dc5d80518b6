//! One session, readable: what it is, how it is, whose it is, and what happened in it. Empty lines are left out.

use std::fmt::Write;

use lanyard_core::Timestamp;
use lanyard_core::session::{Language, NoteStatus, Run, RunPhase, SessionView, StateName};
use lanyard_core::text::dollars;

use crate::render::event::{driven_by, limit_wait, stop_level};
use crate::render::memory::brief;
use crate::render::offer::choice_words;
use crate::render::session::state;
use crate::render::text::{count, one_line, pad, quoted};
use crate::render::time::{ago, lasting, stamp};

const LABEL_COLUMNS: usize = 13;
/// Checkpoints and handoffs shown; all are in `--json`.
const NEWEST: usize = 3;

/// Labelled values; a label with several values stands on the first only.
#[derive(Debug, Default)]
pub(super) struct Card(String);

impl Card {
    pub(super) fn line(&mut self, label: &str, value: impl AsRef<str>) {
        let value = value.as_ref();
        if !value.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(self.0, "{}{value}", pad(label, LABEL_COLUMNS));
        }
    }

    pub(super) fn text(&mut self, label: &str, value: Option<&String>) {
        self.line(label, value.map(|value| one_line(value)).unwrap_or_default());
    }

    pub(super) fn lines(&mut self, label: &str, values: impl IntoIterator<Item = String>) {
        for (at, value) in values.into_iter().enumerate() {
            self.line(if at == 0 { label } else { "" }, value);
        }
    }

    pub(super) fn gap(&mut self) {
        if !self.0.is_empty() && !self.0.ends_with("\n\n") {
            self.0.push('\n');
        }
    }

    /// The text, without empty lines at its end.
    pub(super) fn done(mut self) -> String {
        self.0.truncate(self.0.trim_end().len());
        self.0.push('\n');
        self.0
    }
}

/// `now` is the daemon's clock.
pub(crate) fn card(view: &SessionView, now: Timestamp) -> String {
    let mut card = Card::default();
    card.line("id", view.id.to_string());
    card.text("title", view.title.as_ref());
    card.lines("alias", view.aliases.iter().map(|alias| one_line(alias)));
    how_it_is(&mut card, view, now);
    card.gap();
    card.text("agent", view.agent.as_ref());
    card.line("worker", view.worker.map(|worker| worker.to_string()).unwrap_or_default());
    card.text("owner", Some(&view.owner));
    card.text("source", Some(&view.source));
    card.line("run by", driven_by(view.driven_by));
    card.text("workspace", view.workspace.as_ref());
    if let Some(tree) = &view.tree {
        card.text("branch", Some(&tree.branch));
        card.text("repository", Some(&tree.repository));
    }
    card.text("plan", view.plan.as_ref());
    card.text("phase", view.phase.as_ref());
    card.text("purpose", view.purpose.as_ref());
    card.line("memory", brief(&view.memory));
    card.gap();
    family(&mut card, view);
    card.gap();
    what_happened(&mut card, view, now);
    card.done()
}

fn choices(card: &mut Card, view: &SessionView) {
    card.line("chosen", choice_words(&view.choice));
    card.line("in force", choice_words(&view.in_force));
    if view.bypasses_approvals {
        card.line("", "in this mode the agent asks for no approvals");
    }
}

fn how_it_is(card: &mut Card, view: &SessionView, now: Timestamp) {
    let before = view.previous_state.map(|state| format!(", before that {state}")).unwrap_or_default();
    let name = state(view.state, view.cause, view.status);
    let word = view.operator_state.label();
    card.line("state", format!("{word} ({name} {}{before})", lasting(now, view.since)));
    let mut remarks: Vec<&str> = Vec::new();
    if view.unread {
        remarks.push("unread");
    }
    if view.archived {
        remarks.push("archived");
    }
    if view.suspected_orphan {
        remarks.push("suspected orphan: nothing was heard of its work for a long time");
    }
    if view.critical {
        remarks.push("stale for very long");
    }
    if view.resumable {
        let stopped = view.state == StateName::Stopped;
        remarks.push(if stopped { "can be resumed with `lanyard resume`" } else { "takes a prompt" });
    }
    card.line("", remarks.join(", "));
    card.text("ended with", view.end_reason.as_ref());
    if let Some(turn) = &view.active_turn {
        let cancel = if turn.cancel_requested { ", cancel requested" } else { "" };
        let name = turn.client_turn_id.as_ref().map(|name| format!(" {}", quoted(name))).unwrap_or_default();
        card.line("turn", format!("{}{name} {}{cancel}", turn.id, lasting(now, turn.started_at)));
        if let Some(wait) = &turn.wait {
            card.line("waits for", limit_wait(&wait.limit, wait.until, wait.asks));
            card.line("", "send it on now with `lanyard resume`, give it up with `lanyard cancel`");
        }
    }
    card.lines(
        "seen",
        view.seen
            .iter()
            .rev()
            .take(NEWEST)
            .map(|mark| format!("by {} {}, up to {}", one_line(&mark.by.name), ago(now, mark.at), mark.seq)),
    );
    if let Some(stop) = &view.stop {
        let reason = stop.reason.as_ref().map(|reason| format!(": {}", quoted(reason))).unwrap_or_default();
        let who = one_line(&stop.by.name);
        card.line(
            "stop",
            format!("{} by {who} {}{reason}", stop_level(stop.level), ago(now, stop.requested_at)),
        );
    }
    if let Some(run) = &view.run {
        card.line("run", run_line(run));
        if let Some(sandbox) = &run.sandbox {
            card.line("sandbox", one_line(&sandbox.in_words()));
            card.lines("  weaker", sandbox.weaker.iter().map(|sentence| one_line(sentence)));
        }
    }
    choices(card, view);
    card.lines(
        "approval",
        view.gates.iter().map(|gate| {
            format!("{} {}: {}", gate.id, ago(now, gate.opened_at), quoted(&gate.question.title))
        }),
    );
    card.lines(
        "guidance",
        view.guidance.iter().map(|note| {
            let status = note_status(note.status);
            format!("{} {status}, {}: {}", note.id, ago(now, note.queued_at), quoted(&note.text))
        }),
    );
}

/// What has become of a piece of guidance, in a word.
pub(crate) fn note_status(status: NoteStatus) -> &'static str {
    match status {
        NoteStatus::Pending => "waiting",
        NoteStatus::Delivered => "delivered",
        NoteStatus::Acknowledged => "acknowledged",
        NoteStatus::Withdrawn => "withdrawn",
        NoteStatus::Expired => "expired",
        NoteStatus::Undelivered => "undelivered",
    }
}

/// The newest incarnation of the agent: what it is, how it is, and what it remembers.
fn run_line(run: &Run) -> String {
    let phase = match run.phase {
        RunPhase::Starting => "starting",
        RunPhase::Ready => "ready",
        RunPhase::Ended => "ended",
    };
    let mut text = format!("{} {phase}", run.number);
    if let Some(info) = &run.info {
        let version = info.version.as_deref().map(|version| format!(" {}", one_line(version)));
        // Writing to a string cannot fail.
        let _ = write!(text, ", {}{}", one_line(&info.name), version.unwrap_or_default());
    }
    if let Some(how) = run.continuity {
        let _ = write!(text, ", continuity {}", how.as_str());
    }
    if !run.missing_tools.is_empty() {
        let _ = write!(text, ", without MCP servers: {}", one_line(&run.missing_tools.join(", ")));
    }
    if run.mirrored {
        text.push_str(", inside its parent's process");
    }
    text
}

fn family(card: &mut Card, view: &SessionView) {
    card.line("parent", view.parent.map(|parent| parent.to_string()).unwrap_or_default());
    if view.root != view.id && view.parent != Some(view.root) {
        card.line("root", view.root.to_string());
    }
    let delegates = if view.can_delegate { "" } else { ", cannot delegate" };
    card.line("depth", format!("{} of {}, level {}{delegates}", view.depth, view.depth_limit, view.level));
    if let Some(fork) = view.forked_from {
        card.line("forked from", format!("{} at {}", fork.session, fork.seq));
    }
}

fn what_happened(card: &mut Card, view: &SessionView, now: Timestamp) {
    let when = |at: Timestamp| format!("{} ({})", stamp(at), ago(now, at));
    card.line("created", when(view.created_at));
    card.line("active", when(view.last_activity_at));
    card.line("log", format!("{}, {}", count(view.last_seq, "event"), count(view.turns, "turn")));
    if let Some(call) = &view.last_tool_call {
        let all = count(call.count, "call");
        card.line("last tool", format!("{} {}, {all} in all", one_line(&call.tool), ago(now, call.at)));
    }
    if !view.usage.is_zero() {
        let context = view.usage.context_tokens.map(|n| format!(", {n} in context")).unwrap_or_default();
        card.line(
            "tokens",
            format!("{} in, {} out{context}", view.usage.input_tokens, view.usage.output_tokens),
        );
        if view.usage.cost_micros > 0 {
            card.line("cost", format!("{}, as its agent says", dollars(view.usage.cost_micros)));
        }
    }
    if let Some(last) = view.compaction_history.last() {
        let sizes = format!("last {} → {} {}", last.size_before, last.size_after, ago(now, last.at));
        card.line("compacted", format!("{}, {sizes}", count(view.compactions, "time")));
    }
    let rules = &view.governance;
    if view.compactions > 0 && !rules.governance_injected {
        card.line("instructions", "lost by the compaction; told again with the next prompt");
    }
    let Language { communication, documents } = &rules.language;
    card.text("governance", rules.governance_level.as_ref());
    card.text("language", communication.as_ref());
    card.text("documents", documents.as_ref());
    if rules.violation_count > 0 {
        card.line("refused", count(rules.violation_count, "call"));
    }
    if view.stall.stalls > 0 {
        card.line("stalled", count(view.stall.stalls, "time"));
    }
    card.lines("anchor", view.anchors.iter().map(|anchor| one_line(anchor)));
    let newest = view.checkpoints.iter().rev().take(NEWEST);
    card.lines(
        "checkpoint",
        newest.map(|checkpoint| format!("at {}, {}", checkpoint.position, ago(now, checkpoint.at))),
    );
    if view.snapshots > 0 {
        card.line("kept", format!("the workspace, {}", count(view.snapshots, "time")));
    }
    card.lines(
        "handed over",
        view.handoffs
            .iter()
            .rev()
            .take(NEWEST)
            .map(|handoff| format!("{}: {}", ago(now, handoff.at), quoted(&handoff.reason))),
    );
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use lanyard_core::session::{Envelope, Lineage};
    use lanyard_core::session::{SessionView, replay, view};
    use lanyard_core::{SessionId, Staleness, Timestamp};
    use serde_json::json;

    use super::card;

    fn seen(log: &[(&str, serde_json::Value)], lineage: &Lineage) -> SessionView {
        let log: Vec<Envelope> = (1..)
            .zip(log)
            .map(|(seq, (kind, data))| {
                serde_json::from_value(json!({
                    "seq": seq,
                    "session": SessionId::from_u128(7),
                    "at": "2026-11-15T08:00:00.007Z",
                    "actor": { "kind": "operator", "name": "operator" },
                    "type": kind,
                    "data": data,
                }))
                .unwrap()
            })
            .collect();
        view(&replay(&log).unwrap().unwrap(), lineage, now(), &Staleness::default())
    }

    fn now() -> Timestamp {
        "2026-11-15T08:03:20Z".parse().unwrap()
    }

    fn policy() -> serde_json::Value {
        json!({ "depth_limit": 3, "leaf": false, "memory_mode": "session_only" })
    }

    #[test]
    fn a_plain_session_has_a_short_card() {
        let created =
            json!({ "state": "beginning", "owner": "operator", "source": "cli", "policy": policy() });
        let view = seen(&[("session.created", created)], &Lineage::default());
        expect![[r"
            id           sess_00000000000000000000000007
            state        idle (beginning for 3m)
                         takes a prompt

            owner        operator
            source       cli
            run by       nobody
            memory       session_only

            depth        1 of 3, level 1

            created      2026-11-15T08:00:00Z (3m ago)
            active       2026-11-15T08:00:00Z (3m ago)
            log          1 event, 0 turns
        "]]
        .assert_eq(&card(&view, now()));
    }

    #[test]
    fn a_busy_session_shows_all_that_is_known() {
        let turn = "turn_01m7n5djg0fayvh8t5cxyjkdnf";
        let hands = |agent: &str| json!({ "agent": agent, "owner": "mira" });
        let log = [
            (
                "session.created",
                json!({
                    "state": "custom", "title": "fix the\u{1b}[31m test", "agent": "opencode", "owner": "mira",
                    "source": "chat", "workspace": "/srv/web", "plan": "login", "phase": "custom", "purpose": "review",
                    "parent": SessionId::from_u128(2), "aliases": ["ses_4f2a", "a::b"], "anchors": ["the key is in vault"],
                    "policy": policy(),
                }),
            ),
            (
                "session.migrated",
                json!({ "from": hands("opencode"), "to": hands("codex"), "reason": "rest" }),
            ),
            (
                "context.compacted",
                json!({ "size_before": 900, "size_after": 90, "anchors_survived": [], "anchors_lost": [], "nth": 1, "checkpoint": 2 }),
            ),
            (
                "turn.started",
                json!({ "turn": turn, "client_turn_id": "nightly", "prompt": "go", "prompt_hash": "x", "opening": { "kind": "new" } }),
            ),
            ("tool.called", json!({ "call": "1", "tool": "bash" })),
            ("usage.reported", json!({ "input_tokens": 10, "output_tokens": 2, "context_tokens": 900 })),
            (
                "guidance.queued",
                json!({ "note": "note_01m7n5djg0fayvh8t5cxyjkdnf", "text": "use the\nstaging key" }),
            ),
            ("context.checkpoint", json!({ "position": 7, "reason": "asked" })),
            ("turn.cancel_requested", json!({ "turn": turn, "forced": false })),
            ("stop.requested", json!({ "level": 1, "reason": "enough" })),
        ];
        let lineage = Lineage { ancestors: vec![SessionId::from_u128(2), SessionId::from_u128(1)] };
        expect![[r#"
            id           sess_00000000000000000000000007
            title        fix the�[31m test
            alias        ses_4f2a
                         a::b
            state        working (executing, stopping for 3m, before that compacted)
            turn         turn_01m7n5djg0fayvh8t5cxyjkdnf "nightly" for 3m, cancel requested
            stop         level 1 (graceful) by operator 3m ago: "enough"
            guidance     note_01m7n5djg0fayvh8t5cxyjkdnf waiting, 3m ago: "use the staging key"

            agent        codex
            owner        mira
            source       chat
            run by       Lanyard
            workspace    /srv/web
            plan         login
            phase        custom
            purpose      review
            memory       session_only

            parent       sess_00000000000000000000000002
            root         sess_00000000000000000000000001
            depth        3 of 3, level 3, cannot delegate

            created      2026-11-15T08:00:00Z (3m ago)
            active       2026-11-15T08:00:00Z (3m ago)
            log          10 events, 1 turn
            last tool    bash 3m ago, 1 call in all
            tokens       10 in, 2 out, 900 in context
            compacted    1 time, last 900 → 90 3m ago
            anchor       the key is in vault
            checkpoint   at 7, 3m ago
                         at 2, 3m ago
            handed over  3m ago: "rest"
        "#]]
        .assert_eq(&card(&seen(&log, &lineage), now()));
    }
}
