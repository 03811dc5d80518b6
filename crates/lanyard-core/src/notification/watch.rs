//! The notifications that the state of a session calls for. They are derived again and again: missing ones are raised,
//! and those that are no longer called for are over. A crash between an event and its notification therefore loses
//! nothing.

use crate::flow::{Flow, FlowGate};
use crate::notification::record::{NewNotification, NotificationKind, Severity};
use crate::paper::Liveness;
use crate::session::{
    AskReason, EndedTurn, InterruptCause, Note, NoteKind, NoteStatus, Session, State, TurnEnd,
};

/// Key prefixes of notifications that follow a session's state.
const WATCHED: [&str; 8] =
    ["gate:", "guidance:", "orphan:", "budget:", "limit:", "tools:", "stopped:", TURN_KEY];
/// Prefix of the key of a turn's end.
pub const TURN_KEY: &str = "turn:";

/// Whether a notification of this key comes and goes with its session's state.
#[must_use]
pub fn watched_key(key: &str) -> bool {
    WATCHED.iter().any(|prefix| key.starts_with(prefix))
}

/// The notifications a session calls for. Suspected is one that works and was not heard of for too long; orphaned one
/// of another host that nobody works on or looks after any more.
#[must_use]
pub fn wanted(session: &Session, life: Liveness) -> Vec<NewNotification> {
    if session.deleted || session.archived {
        return Vec::new();
    }
    let name = session.title.clone().unwrap_or_else(|| session.id.to_string());
    let of = |kind, severity, key: String, title: String, text: String, subject: Option<String>| {
        NewNotification { kind, severity, key, title, text, session: Some(session.id), subject, lasts: true }
    };
    let mut wanted: Vec<NewNotification> = session
        .open_gates()
        .map(|gate| {
            let text = format!(
                "Session \"{name}\" waits. Answer with `lanyard answer {} allow`, or `deny`.",
                gate.id
            );
            let title = format!("Approval: {}", gate.question.title);
            let (kind, key) = (NotificationKind::GateWaiting, format!("gate:{}", gate.id));
            of(kind, Severity::Warning, key, title, text, Some(gate.id.to_string()))
        })
        .collect();
    wanted.extend(session.guidance_settled.iter().filter(|note| is_undelivered(note)).map(|note| {
        let title = format!("Guidance for \"{name}\" was never delivered");
        let (kind, key) = (NotificationKind::GuidanceUndelivered, format!("guidance:{}", note.id));
        of(kind, Severity::Warning, key, title, note.text.clone(), Some(note.id.to_string()))
    }));
    if session.notice_unheard {
        let title = format!("\"{name}\" was stopped, and no session above it lives");
        let text = format!(
            "Its work is left as it was. Look with `lanyard show {0}`; resume it with `lanyard resume {0}`.",
            session.id
        );
        let key = format!("stopped:{}:{}", session.id, session.since.as_millis());
        wanted.push(of(NotificationKind::ChildStopped, Severity::Info, key, title, text, None));
    }
    if life == Liveness::Orphaned {
        let title = format!("Nobody works on \"{name}\" any more");
        let text = format!(
            "Its agent ran under a host of its own. Look with `lanyard show {0}`; put it away with `lanyard archive {0}`.",
            session.id
        );
        let key = format!("orphan:{}:{}", session.id, session.last_activity_at.as_millis());
        wanted.push(of(NotificationKind::SuspectedOrphan, Severity::Warning, key, title, text, None));
    }
    if let (Liveness::Suspected, Some(turn)) = (life, &session.turn) {
        let title = format!("\"{name}\" works and was not heard of for long");
        let text =
            format!("Look with `lanyard show {0}`; end the turn with `lanyard cancel {0}`.", session.id);
        let (kind, key) = (NotificationKind::SuspectedOrphan, format!("orphan:{}", turn.id));
        wanted.push(of(kind, Severity::Warning, key, title, text, Some(turn.id.to_string())));
    }
    if let Some(run) = session.live_run().filter(|run| !run.missing_tools.is_empty()) {
        let title = format!("\"{name}\" works without MCP servers: {}", run.missing_tools.join(", "));
        let text = format!(
            "The agent has not reached them since it started, so their tools are missing in its turns. \
             Look at `lanyard mcp ls` and `lanyard show {}`.",
            session.id
        );
        let (kind, key) = (NotificationKind::ToolsMissing, format!("tools:{}", run.id));
        wanted.push(of(kind, Severity::Warning, key, title, text, Some(run.id.to_string())));
    }
    if session.state == (State::Interrupted { cause: InterruptCause::Limit }) {
        let title = format!("A turn of \"{name}\" used all it may use");
        let text = format!("It was ended. Go on with `lanyard send {} …`.", session.id);
        let key = format!("budget:{}:{}", session.id, session.since.as_millis());
        wanted.push(of(NotificationKind::BudgetSpent, Severity::Warning, key, title, text, None));
    }
    wanted.extend(limited_turn(session, &name));
    wanted.extend(unread_turn(session, &name));
    wanted
}

/// A turn that waits for a limit, or went on after one. A try again after an overload is no news.
fn limited_turn(session: &Session, name: &str) -> Option<NewNotification> {
    let turn = session.turn.as_ref()?;
    let id = session.id;
    let of = |kind, severity, key: String, title: String, text: String| NewNotification {
        kind,
        severity,
        key,
        title,
        text,
        session: Some(id),
        subject: Some(turn.id.to_string()),
        lasts: true,
    };
    if let Some(wait) = &turn.wait {
        let (what, said) = (wait.limit.kind.label(), &wait.limit.text);
        let key = format!("limit:{}", wait.leg);
        let ways =
            format!("Send it on now with `lanyard resume {id}`; give it up with `lanyard cancel {id}`.");
        return match (wait.until, wait.asks) {
            (Some(_), _) if wait.limit.kind.is_transient() => None,
            (Some(until), _) => {
                let title = format!("\"{name}\" waits for a limit and goes on at {until}");
                let text = format!("The {what} is reached: {said}. {ways}");
                Some(of(NotificationKind::LimitReached, Severity::Info, key, title, text))
            }
            (None, asks) => {
                let title = format!("\"{name}\" waits for a limit until a person sends it on");
                let why = asks.map_or("no time is known", AskReason::sentence);
                let text = format!("The {what} is reached, and {why}: {said}. {ways}");
                Some(of(NotificationKind::LimitReached, Severity::Warning, key, title, text))
            }
        };
    }
    let leg = turn.leg.as_ref().filter(|leg| !leg.limit.kind.is_transient())?;
    let title = format!("\"{name}\" went on after a limit");
    let text = format!("The {} is over. Follow it with `lanyard attach {id}`.", leg.limit.kind.label());
    let key = format!("limit:{}:over", leg.id);
    Some(of(NotificationKind::LimitOver, Severity::Info, key, title, text))
}

/// The end of a turn that no operator has seen. A turn that ran into its limits has a notification of its own.
fn unread_turn(session: &Session, name: &str) -> Option<NewNotification> {
    let EndedTurn { turn, how, .. } = session.last_turn.as_ref().filter(|_| session.unread())?;
    let (kind, severity, what) = match how {
        TurnEnd::Completed => (NotificationKind::TurnFinished, Severity::Info, "finished"),
        TurnEnd::Failed => (NotificationKind::TurnFailed, Severity::Warning, "failed"),
        TurnEnd::Refused => (NotificationKind::TurnRefused, Severity::Warning, "was refused by the agent"),
        TurnEnd::Crashed | TurnEnd::Uncertain => {
            (NotificationKind::AgentCrashed, Severity::Warning, "was cut off: the agent crashed")
        }
        TurnEnd::Limit | TurnEnd::Cancelled => return None,
    };
    Some(NewNotification {
        kind,
        severity,
        key: format!("{TURN_KEY}{turn}"),
        title: format!("A turn of \"{name}\" {what}"),
        text: format!("Read it with `lanyard attach {0}` or `lanyard logs {0}`.", session.id),
        session: Some(session.id),
        subject: Some(turn.to_string()),
        lasts: true,
    })
}

/// Whether a person's words, or those about a child, reached nobody. A child's report waits in its mailbox instead.
fn is_undelivered(note: &Note) -> bool {
    match note.status {
        NoteStatus::Expired => true,
        NoteStatus::Undelivered => note.kind != NoteKind::Report,
        NoteStatus::Pending | NoteStatus::Delivered | NoteStatus::Acknowledged | NoteStatus::Withdrawn => {
            false
        }
    }
}

/// The notification of a flow's open gate.
#[must_use]
pub fn wanted_of_gate(flow: &Flow, gate: &FlowGate) -> NewNotification {
    let choices: Vec<&str> = gate.offered().iter().map(|choice| choice.as_str()).collect();
    let text = format!("{} Answer with `lanyard answer {}`: {}.", gate.reason, gate.id, choices.join(", "));
    NewNotification {
        kind: NotificationKind::FlowWaiting,
        severity: Severity::Warning,
        key: format!("flow-gate:{}", gate.id),
        title: format!("The flow \"{}\" waits for a person", flow.title),
        text,
        session: gate.continue_session.as_ref().map(|payload| payload.session),
        subject: Some(flow.id.to_string()),
        lasts: true,
    }
}

/// The notification of a flow that ended without a person's request.
#[must_use]
pub fn wanted_of_end(flow: &Flow) -> NewNotification {
    let reason = flow.reason.as_deref().unwrap_or("the reason is unknown");
    NewNotification {
        kind: NotificationKind::FlowFailed,
        severity: Severity::Warning,
        key: format!("flow-end:{}", flow.id),
        title: format!("The flow \"{}\" was aborted", flow.title),
        text: format!("{reason}. Take it up again with `lanyard flow resume {}`.", flow.id),
        session: None,
        subject: Some(flow.id.to_string()),
        lasts: true,
    }
}
