//! An event in one line: where it stands, when it was, what it is, and in a few words what it says.

use lanyard_core::session::{
    AskReason, ChangeEvent, CheckpointReason, Compliance, ContextEvent, ControlEvent, Created, DrivenBy,
    Ending, Envelope, Event, GateEvent, Hands, Import, InboxEvent, Limit, Opening, Pen, PlanEntryState,
    Receipt, ReleaseReason, ReviewEvent, Role, RunEnd, RunEvent, Settled, SnapshotReason, StallKind,
    StopLevel, StopScope, TranscriptEvent, TurnEvent, TurnOutcome, WriterEvent, with_labels,
};
use lanyard_core::text::dollars;
use lanyard_core::{ActorKind, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use crate::render::memory::brief;
use crate::render::offer::{choice_words, offer_words};
use crate::render::text::{count, fit, one_line, pad, quoted};
use crate::render::time::{span, stamp};

/// Columns for the names of events; longer ones push the summary aside.
const TYPE_COLUMNS: usize = 21;
/// The summary of an event may be as long as a message; without a terminal to fit it is still bounded.
const SUMMARY_COLUMNS_MAX: usize = 500;

/// What the daemon puts in the place of an event whose record is damaged.
pub(crate) const DAMAGED: &str = "record.damaged";

/// One line for an event as it came over the wire. What this version cannot understand is shown as it is.
pub(crate) fn line(raw: &Value, max: Option<usize>) -> String {
    let seq = raw["seq"].as_u64().unwrap_or(0);
    let kind = kind(raw);
    let (at, summary) = match Envelope::deserialize(raw) {
        Ok(envelope) => (stamp(envelope.at), summary(&envelope)),
        Err(_) if kind == DAMAGED => (String::new(), one_line(raw["data"]["what"].as_str().unwrap_or(""))),
        Err(_) => (one_line(raw["at"].as_str().unwrap_or("")), one_line(&raw["data"].to_string())),
    };
    let text =
        format!("{seq:>5}  {at:20}  {}  {}", pad(&kind, TYPE_COLUMNS), fit(&summary, SUMMARY_COLUMNS_MAX));
    let text = text.trim_end();
    max.map_or_else(|| text.to_owned(), |max| fit(text, max))
}

/// The event's name on the wire.
pub(crate) fn kind(raw: &Value) -> String {
    one_line(raw["type"].as_str().unwrap_or("?"))
}

fn summary(envelope: &Envelope) -> String {
    let text = match &envelope.event {
        Event::Change(event) => change(event),
        Event::Turn(event) => turn(event),
        Event::Inbox(event) => inbox(event),
        Event::Context(event) => context(event),
        Event::Control(event) => control(event),
        Event::Transcript(event) if envelope.is_imported() => {
            return words([format!("imported, of {}", stamp(envelope.occurred_at())), transcript(event)]);
        }
        Event::Transcript(event) => return transcript(event),
        Event::Run(event) => run(event),
        Event::Gate(event) => gate(event),
        Event::Writer(event) => writer(event),
        Event::Review(event) => review(event),
    };
    match envelope.actor.kind {
        ActorKind::System => text,
        ActorKind::Operator | ActorKind::Observer | ActorKind::Agent => {
            words([text, format!("by {}", one_line(&envelope.actor.name))])
        }
    }
}

fn change(event: &ChangeEvent) -> String {
    match event {
        ChangeEvent::Created(created) => born(created),
        ChangeEvent::Linked { parent, previous: Some(previous) } => {
            format!("under {parent}, before {previous}")
        }
        ChangeEvent::Linked { parent, previous: None } => format!("under {parent}"),
        ChangeEvent::ChildLinked { child, agent } => {
            words([child.to_string(), agent.as_deref().map(one_line).unwrap_or_default()])
        }
        ChangeEvent::ChildUnlinked { child } => child.to_string(),
        ChangeEvent::Migrated { from, to, reason, continuity } => {
            let how = continuity.map(|how| format!("continuity {}", how.as_str()));
            because(&words([handed(from, to), how.unwrap_or_default()]), Some(reason))
        }
        ChangeEvent::AliasAdded { alias } => quoted(alias),
        ChangeEvent::Renamed { title } => quoted(title),
        ChangeEvent::Imported(import) => imported(import),
        ChangeEvent::Driven { by } => format!("by {}", driven_by(*by)),
        ChangeEvent::PlanJoined { plan } => one_line(plan),
        ChangeEvent::MemorySet { policy } => brief(policy),
        ChangeEvent::ChoiceSet { choice } if choice.is_empty() => "the agent's defaults".to_owned(),
        ChangeEvent::ChoiceSet { choice } => choice_words(choice),
        ChangeEvent::Seen { seq } => format!("up to {seq}"),
        ChangeEvent::Archived {} | ChangeEvent::Unarchived {} => String::new(),
        ChangeEvent::Resumed { .. } => "after a stop".to_owned(),
        ChangeEvent::Reset { reason } | ChangeEvent::Deleted { reason } => because("", reason.as_ref()),
        ChangeEvent::WentIdle { quiet_ms } | ChangeEvent::WentStale { quiet_ms } => {
            format!("quiet for {}", span(*quiet_ms))
        }
        ChangeEvent::Ended { how, reason } => {
            let how = match how {
                Ending::Completed => "completed",
                Ending::Failed => "failed",
                Ending::Stopped => "stopped",
            };
            because(how, reason.as_ref())
        }
    }
}

/// `from claude: 12 messages, 30 events, 2 lines unreadable`.
pub(super) fn imported(import: &Import) -> String {
    let counted = |n: u64, noun: &str, what: &str| match n {
        0 => String::new(),
        n => format!(", {}{what}", count(n, noun)),
    };
    format!(
        "from {}: {}, {}{}{}",
        one_line(&import.from),
        count(import.messages, "message"),
        count(import.events, "event"),
        counted(import.left_out, "older event", " left out"),
        counted(import.unreadable, "line", " unreadable"),
    )
}

fn born(created: &Created) -> String {
    let fork = created.forked_from.map(|fork| format!("forked from {} at {}", fork.session, fork.seq));
    words([
        created.state.to_string(),
        created.agent.as_deref().map(one_line).unwrap_or_default(),
        created.title.as_deref().map(quoted).unwrap_or_default(),
        created.parent.map(|parent| format!("under {parent}")).unwrap_or_default(),
        fork.unwrap_or_default(),
        created.tree.as_ref().map(|tree| format!("on branch {}", one_line(&tree.branch))).unwrap_or_default(),
    ])
}

fn handed(from: &Hands, to: &Hands) -> String {
    let named = |what: &str, from: Option<String>, to: Option<String>| match (from, to) {
        (from, Some(to)) if from.as_ref() != Some(&to) => {
            format!(
                "{what} {} → {}",
                from.map_or_else(|| "none".to_owned(), |from| one_line(&from)),
                one_line(&to)
            )
        }
        _ => String::new(),
    };
    words([
        named("agent", from.agent.clone(), to.agent.clone()),
        named("worker", from.worker.map(|id| id.to_string()), to.worker.map(|id| id.to_string())),
        named("owner", Some(from.owner.clone()), Some(to.owner.clone())),
    ])
}

fn turn(event: &TurnEvent) -> String {
    match event {
        TurnEvent::Started { prompt, parts, opening, anchors, queued, .. } => {
            let returned = match opening {
                Opening::Returned { after_ms } => format!("back after {}", span(*after_ms)),
                Opening::New | Opening::Continued => String::new(),
            };
            let told = if anchors.is_empty() {
                String::new()
            } else {
                format!("with {}", count(anchors.len(), "anchor"))
            };
            let waited = if *queued { "from the inbox" } else { "" };
            words([quoted(&with_labels(prompt, parts)), waited.to_owned(), returned, told])
        }
        TurnEvent::CancelRequested { reason, forced, .. } => {
            because(if *forced { "again, not waiting for the agent" } else { "" }, reason.as_ref())
        }
        TurnEvent::Waiting { limit, until, asks, .. } => limit_wait(limit, *until, *asks),
        TurnEvent::Continued { asked, .. } => {
            if *asked {
                "a person said so".to_owned()
            } else {
                String::new()
            }
        }
        TurnEvent::Finished { outcome, reason, .. } => {
            let outcome = match outcome {
                TurnOutcome::Completed => "completed",
                TurnOutcome::Failed => "failed",
                TurnOutcome::Refused => "refused by the agent",
            };
            because(outcome, reason.as_ref())
        }
        TurnEvent::Interrupted { cause, reason, uncertain, receipt, .. } => {
            let what = if *uncertain { "; its effects are unknown" } else { "" };
            let told = because(&format!("{}{what}", cause.as_str()), reason.as_ref());
            words([told, ended(receipt), left(receipt)])
        }
    }
}

/// A wait for a limit: `usage limit of `work`, until 2026-11-15T09:00:00.000Z: …`.
pub(crate) fn limit_wait(limit: &Limit, until: Option<Timestamp>, asks: Option<AskReason>) -> String {
    let account = limit.account.as_deref().map(|account| format!(" of `{}`", one_line(account)));
    let when = match (until, asks) {
        (Some(until), _) => format!("until {until}"),
        (None, Some(asks)) => format!("until a person says so, because {}", asks.sentence()),
        (None, None) => "until a person says so".to_owned(),
    };
    let (kind, words) = (limit.kind.label(), one_line(&limit.text));
    format!("{kind}{}, {when}: {words}", account.unwrap_or_default())
}

fn inbox(event: &InboxEvent) -> String {
    match event {
        InboxEvent::Queued { prompt, parts, delivery, .. } => {
            words([quoted(&with_labels(prompt, parts)), delivery.as_str().to_owned()])
        }
        InboxEvent::Edited { prompt, delivery, .. } => {
            let delivery = delivery.map(|delivery| delivery.as_str().to_owned());
            words([prompt.as_deref().map(quoted).unwrap_or_default(), delivery.unwrap_or_default()])
        }
        InboxEvent::Withdrawn { turn, reason } => because(&turn.to_string(), reason.as_ref()),
        InboxEvent::Promoted { turn, to, .. } => words([turn.to_string(), to.as_str().to_owned()]),
        InboxEvent::Delivered { turn } => turn.to_string(),
        InboxEvent::Steered { turn, into, channel } => {
            format!("{turn} into {into} by {}", one_line(channel))
        }
        InboxEvent::Reordered { turns } => count(turns.len(), "message"),
        InboxEvent::Paused { reason } => reason.as_str().to_owned(),
        InboxEvent::Resumed {} => String::new(),
    }
}

fn context(event: &ContextEvent) -> String {
    match event {
        ContextEvent::AnchorsSet { anchors } => count(anchors.len(), "anchor"),
        ContextEvent::Compacted { size_before, size_after, anchors_lost, .. } => {
            let lost = match anchors_lost.len() {
                0 => String::new(),
                n => format!("{} lost", count(n, "anchor")),
            };
            words([format!("{size_before} → {size_after}"), lost])
        }
        ContextEvent::Checkpoint { position, reason } => {
            let reason = match reason {
                CheckpointReason::TurnEnd => "end of the turn",
                CheckpointReason::Interruption => "interruption",
                CheckpointReason::Compaction => "compaction",
                CheckpointReason::RiskyTool => "before a risky tool",
                CheckpointReason::Asked => "asked for",
            };
            format!("at {position}, {reason}")
        }
        ContextEvent::Snapshot { name, reason, files_changed, .. } => {
            let reason = match reason {
                SnapshotReason::TurnStart => "start of the turn",
                SnapshotReason::TurnEnd => "end of the turn",
                SnapshotReason::Stop => "stop",
                SnapshotReason::Asked => "asked for",
                SnapshotReason::Rollback => "before a rollback",
            };
            let files = count(usize::try_from(*files_changed).unwrap_or(usize::MAX), "file");
            format!("{}, {reason}, {files} changed", one_line(name))
        }
        ContextEvent::SnapshotSkipped { why, .. } => one_line(why),
        ContextEvent::RolledBack { from, to, changed, added, removed } => {
            let (from, to) = (one_line(from), one_line(to));
            format!(
                "to {to}, {changed} changed, {added} added, {removed} removed; {from} has what was there before"
            )
        }
        ContextEvent::BranchMerged { branch, commit, into } => {
            format!("{} into {}, at {}", one_line(branch), one_line(into), one_line(commit))
        }
        ContextEvent::BranchDiscarded { branch, reference } => {
            format!("{}, kept under {}", one_line(branch), one_line(reference))
        }
        ContextEvent::IssueSeen { hash, score } => {
            words([one_line(hash), score.map(|score| format!("score {score}")).unwrap_or_default()])
        }
        ContextEvent::ErrorSeen { hash, text } => text.as_deref().map_or_else(|| one_line(hash), one_line),
        ContextEvent::Stalled { kind, hash, repeats } => {
            let kind = match kind {
                StallKind::Issue => "issue",
                StallKind::Error => "error",
            };
            format!("the same {kind} {repeats} times, {}", one_line(hash))
        }
    }
}

/// Who runs a session's agent, for people.
pub(crate) fn driven_by(by: DrivenBy) -> &'static str {
    match by {
        DrivenBy::Lanyard => "Lanyard",
        DrivenBy::Parent => "its parent's run",
        DrivenBy::Host => "its own host",
        DrivenBy::Nobody => "nobody",
    }
}

fn control(event: &ControlEvent) -> String {
    match event {
        ControlEvent::StopRequested { level, scope, reason, inherited } => {
            let scope = if *scope == StopScope::Session { "" } else { scope.as_str() };
            let from = inherited.map(|parent| format!("inherited from {parent}")).unwrap_or_default();
            because(&words([stop_level(*level), scope.to_owned(), from]), reason.as_ref())
        }
        ControlEvent::StopApplied { level, channel, tool, refused, .. } => {
            let how = if *refused { "instead of" } else { "with the answer of" };
            format!("{} told through {} {how} {}", stop_level(*level), channel.as_str(), one_line(tool))
        }
        ControlEvent::StopComplied { how } => match how {
            Compliance::HandOff => "the agent handed off".to_owned(),
            Compliance::Complete => "the agent completes".to_owned(),
            Compliance::Acknowledge => "the agent heard".to_owned(),
        },
        ControlEvent::StopSettled {} => "the turn is over".to_owned(),
        ControlEvent::EndBlocked { why } => one_line(why),
        ControlEvent::NoticeSent { to, .. } => {
            to.map_or("no ancestor lives".to_owned(), |to| format!("{to} is notified"))
        }
        ControlEvent::Introduced { agent, .. } => one_line(agent),
        ControlEvent::HandedOff { from, to, reason } => {
            because(&format!("{} to {}", one_line(from), one_line(to)), Some(reason))
        }
        ControlEvent::StopRaised { to, reason, .. } => because(&stop_level(*to), reason.as_ref()),
        ControlEvent::StopWithdrawn { reason } => because("", reason.as_ref()),
        ControlEvent::GuidanceQueued { text, .. } => quoted(text),
        ControlEvent::GuidanceDelivered { notes, channel, .. } => {
            format!("{} through {}", count(notes.len(), "note"), one_line(channel))
        }
        ControlEvent::GuidanceReturned { notes } => {
            format!("{} to be said again", count(notes.len(), "note"))
        }
        ControlEvent::GuidanceSettled { notes, how } => {
            let how = match how {
                Settled::Acknowledged => "acknowledged",
                Settled::Withdrawn => "withdrawn",
                Settled::Expired => "expired",
                Settled::Undelivered => "not delivered: the session ended",
            };
            format!("{} {how}", count(notes.len(), "note"))
        }
        ControlEvent::CommandRefused { command, code, state } => {
            format!("{} while {state}: {}", one_line(command), one_line(code))
        }
        ControlEvent::SignalUnexpected { signal, state } => format!("{} while {state}", one_line(signal)),
    }
}

fn run(event: &RunEvent) -> String {
    match event {
        RunEvent::Started { number, agent, driver, mirrored, sandbox, account, .. } => words([
            format!("run {number} of {}", one_line(agent)),
            format!("driver {}", one_line(driver)),
            if *mirrored { "inside its parent's process".to_owned() } else { String::new() },
            sandbox
                .as_ref()
                .map(|held| format!("sandbox {}", one_line(&held.in_words())))
                .unwrap_or_default(),
            account.as_deref().map(|account| format!("account {}", one_line(account))).unwrap_or_default(),
        ]),
        RunEvent::Ready(ready) => words([
            one_line(&ready.info.name),
            ready.info.version.as_deref().map(one_line).unwrap_or_default(),
            ready.continuity.map(|how| format!("continuity {}", how.as_str())).unwrap_or_default(),
        ]),
        RunEvent::Adopted { .. } => "the same process goes on, continuity exact".to_owned(),
        RunEvent::Activity { activity, watched, .. } => {
            format!("{}{}", activity.as_str(), if *watched { ", on a screen" } else { "" })
        }
        RunEvent::ToolsMissing { servers, .. } if servers.is_empty() => "all are reached".to_owned(),
        RunEvent::ToolsMissing { servers, .. } => format!("not reached: {}", one_line(&servers.join(", "))),
        RunEvent::BoundMet { what, limit, times, .. } => {
            format!("{} {}, {times} in all", what.in_words(), one_line(limit))
        }
        RunEvent::Ended { how, reason, receipt, .. } => {
            let how = match how {
                RunEnd::Exited { code } => format!("exited with {code}"),
                RunEnd::Signalled { signal } => format!("ended by signal {signal}"),
                RunEnd::Lost => "lost".to_owned(),
                RunEnd::HostLost => "lost with its machine".to_owned(),
                RunEnd::NotStarted { code } => format!("not started: {}", one_line(code)),
            };
            let tried: Vec<_> = receipt.tried.iter().map(|one| one_line(&one.channel)).collect();
            let tried = if tried.is_empty() { String::new() } else { format!("tried {}", tried.join(", ")) };
            words([because(&how, reason.as_ref()), tried, ended(receipt)])
        }
        RunEvent::Offered(offer) => offer_words(offer),
        RunEvent::InForce(choice) => choice_words(choice),
        RunEvent::Wanted { .. } => String::new(),
    }
}

fn ended(receipt: &Receipt) -> String {
    match receipt.processes.len() {
        0 => String::new(),
        1 => "1 process ended".to_owned(),
        n => format!("{n} processes ended"),
    }
}

fn left(receipt: &Receipt) -> String {
    match receipt.left.len() {
        0 => String::new(),
        1 => "1 process may still run".to_owned(),
        n => format!("{n} processes may still run"),
    }
}

fn writer(event: &WriterEvent) -> String {
    match event {
        WriterEvent::Granted { pen, epoch } => format!("{} ({})", pen_words(pen), epoch),
        WriterEvent::Asked { pen, until } => format!("{}, until {}", pen_words(pen), stamp(*until)),
        WriterEvent::Denied { connection } => connection.to_string(),
        WriterEvent::Released { epoch, why } => match why {
            ReleaseReason::Released => format!("({epoch})"),
            ReleaseReason::Lapsed => format!("({epoch}): it was away"),
            ReleaseReason::Taken => format!("({epoch}): taken over"),
        },
    }
}

fn review(event: &ReviewEvent) -> String {
    match event {
        ReviewEvent::Drafted(draft) => {
            format!("{} {}:{}: {}", draft.comment, one_line(&draft.path), draft.lines, one_line(&draft.text))
        }
        ReviewEvent::Edited { comment, text } => format!("{comment}: {}", one_line(text)),
        ReviewEvent::Removed { comment } => comment.to_string(),
        ReviewEvent::Sent { turn, comments } => format!("{} in {turn}", count(comments.len(), "comment")),
        ReviewEvent::Viewed { path, hash: Some(_) } => one_line(path),
        ReviewEvent::Viewed { path, hash: None } => format!("{}: not viewed", one_line(path)),
    }
}

fn pen_words(pen: &Pen) -> String {
    let client = pen.client.as_deref().map(one_line).unwrap_or_default();
    words([one_line(&pen.actor.name), client, pen.connection.to_string()])
}

fn gate(event: &GateEvent) -> String {
    match event {
        GateEvent::Opened { gate, question, .. } => format!("{gate}: {}", one_line(&question.title)),
        GateEvent::Answered { gate, option, message } => {
            because(&format!("{gate}: {}", one_line(option)), message.as_ref())
        }
        GateEvent::Withdrawn { gate, why } => format!("{gate}: {}", one_line(why)),
    }
}

fn transcript(event: &TranscriptEvent) -> String {
    match event {
        TranscriptEvent::Planned { entries } => {
            let done = entries.iter().filter(|entry| entry.status == PlanEntryState::Completed).count();
            format!("{} of {} done", done, count(entries.len(), "step"))
        }
        TranscriptEvent::FileChanged { path, added, removed } => {
            let lines = match (added, removed) {
                (None, None) => String::new(),
                _ => format!("+{} -{}", added.unwrap_or(0), removed.unwrap_or(0)),
            };
            words([one_line(path), lines])
        }
        TranscriptEvent::Message { role, text, .. } => {
            let role = match role {
                Role::User => "user",
                Role::Agent => "agent",
            };
            format!("{role}: {}", one_line(text))
        }
        TranscriptEvent::Thought { text } => one_line(text),
        TranscriptEvent::ToolRelayed { server, tool, is_error, took_ms, .. } => {
            let server = server.as_deref().map(|server| format!("{}/", one_line(server))).unwrap_or_default();
            let how = if *is_error { "error" } else { "ok" };
            words([format!("{server}{}", one_line(tool)), how.to_owned(), format!("{took_ms} ms")])
        }
        TranscriptEvent::InFlight { calls } => count(u64::from(*calls), "call"),
        TranscriptEvent::ToolCalled { tool, arguments: Value::Null, .. } => one_line(tool),
        TranscriptEvent::ToolCalled { tool, arguments, .. } => {
            format!("{} {}", one_line(tool), one_line(&arguments.to_string()))
        }
        TranscriptEvent::ToolReturned { is_error, content, .. } => {
            let content = match content {
                Value::Null => String::new(),
                Value::String(text) => one_line(text),
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    one_line(&content.to_string())
                }
            };
            if *is_error { format!("error: {content}") } else { content }
        }
        TranscriptEvent::UsageReported { input_tokens, output_tokens, context_tokens, cost_micros } => {
            let context = context_tokens.map(|tokens| format!("{tokens} in context")).unwrap_or_default();
            let cost = if *cost_micros > 0 { dollars(*cost_micros) } else { String::new() };
            words([format!("{input_tokens} in, {output_tokens} out"), context, cost])
        }
    }
}

/// A stop's level with its meaning.
pub(crate) fn stop_level(level: StopLevel) -> String {
    let meaning = match level {
        StopLevel::Graceful => "graceful",
        StopLevel::Immediate => "immediate",
        StopLevel::Terminated => "terminated",
    };
    format!("level {} ({meaning})", u8::from(level))
}

fn because(text: &str, reason: Option<&String>) -> String {
    words([text.to_owned(), reason.map(|reason| quoted(reason)).unwrap_or_default()])
}

/// The parts that say something, with a comma between.
fn words<const N: usize>(parts: [String; N]) -> String {
    let said: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    said.join(", ")
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
