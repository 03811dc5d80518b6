//! What happens around a conversation, one line each: runs, the queue, stops, hand-overs, the writer.

use lanyard_core::session::{
    ChangeEvent, ContextEvent, ControlEvent, InboxEvent, Pen, ReleaseReason, ReviewEvent, RunEnd, RunEvent,
    TerminalActivity, WriterEvent, bound_met_in_words,
};

use crate::render::event::{imported, stop_level};
use crate::render::offer::choice_words;
use crate::render::text::{count, one_line};

pub(super) fn run(event: &RunEvent) -> Option<String> {
    Some(match event {
        RunEvent::Started { mirrored: true, .. } | RunEvent::Wanted { .. } | RunEvent::Offered(_) => {
            return None;
        }
        RunEvent::InForce(choice) if choice.is_empty() => return None,
        RunEvent::InForce(choice) => format!("in force: {}", choice_words(choice)),
        RunEvent::Started { agent, .. } => format!("starting {}", one_line(agent)),
        RunEvent::Ready(ready) => {
            let version = ready.info.version.as_deref().map(|text| format!(" {}", one_line(text)));
            let how = ready.continuity.map(|how| format!(", continuity {}", how.as_str()));
            let name = one_line(&ready.info.name);
            format!("{name}{} is ready{}", version.unwrap_or_default(), how.unwrap_or_default())
        }
        RunEvent::Adopted { .. } => "the daemon was started again; the same process goes on".to_owned(),
        RunEvent::Activity { activity, .. } => match activity {
            TerminalActivity::Working => "the program writes".to_owned(),
            TerminalActivity::Quiet => "the program is quiet".to_owned(),
            TerminalActivity::Rang => "the program rang, and is quiet".to_owned(),
        },
        RunEvent::ToolsMissing { servers, .. } if servers.is_empty() => {
            "the agent has reached all its MCP servers".to_owned()
        }
        RunEvent::ToolsMissing { servers, .. } => {
            format!("the agent works without MCP servers it was offered: {}", one_line(&servers.join(", ")))
        }
        RunEvent::BoundMet { what, limit, times, .. } => bound_met_in_words(*what, &one_line(limit), *times),
        RunEvent::Ended { how, reason, .. } => {
            let how = match how {
                RunEnd::Exited { code } => format!("exited with {code}"),
                RunEnd::Signalled { signal } => format!("was ended by signal {signal}"),
                RunEnd::Lost => "was lost".to_owned(),
                RunEnd::HostLost => "was lost with its machine".to_owned(),
                RunEnd::NotStarted { .. } => "did not come to work".to_owned(),
            };
            let reason = reason.as_deref().map(|reason| format!(": {}", one_line(reason)));
            format!("the agent {how}{}", reason.unwrap_or_default())
        }
    })
}

pub(super) fn inbox(event: &InboxEvent, who: &str) -> Option<String> {
    match event {
        InboxEvent::Edited { .. } => Some(format!("{who} changed a queued message")),
        InboxEvent::Withdrawn { reason: Some(reason), .. } => {
            Some(format!("a queued message was withdrawn: {}", one_line(reason)))
        }
        InboxEvent::Withdrawn { reason: None, .. } => Some(format!("{who} withdrew a queued message")),
        InboxEvent::Promoted { .. } => Some(format!("{who} moved a queued message up")),
        InboxEvent::Steered { .. } => Some("a message went into the running turn".to_owned()),
        InboxEvent::Paused { reason } => Some(format!("the queue is paused ({})", reason.as_str())),
        InboxEvent::Resumed {} => Some(format!("{who} resumed the queue")),
        InboxEvent::Queued { .. } | InboxEvent::Delivered { .. } | InboxEvent::Reordered { .. } => None,
    }
}

pub(super) fn context(event: &ContextEvent) -> Option<String> {
    match event {
        ContextEvent::Compacted { size_before, size_after, .. } => {
            Some(format!("context compacted: {size_before} → {size_after}"))
        }
        ContextEvent::SnapshotSkipped { why, .. } => Some(format!("no checkpoint: {}", one_line(why))),
        ContextEvent::RolledBack { to, .. } => Some(format!("workspace rolled back to {}", one_line(to))),
        ContextEvent::BranchMerged { branch, into, .. } => {
            Some(format!("branch {} merged into {}", one_line(branch), one_line(into)))
        }
        ContextEvent::BranchDiscarded { branch, reference } => {
            Some(format!("branch {} discarded, kept under {}", one_line(branch), one_line(reference)))
        }
        ContextEvent::ErrorSeen { text: Some(text), .. } => Some(format!("error: {}", one_line(text))),
        ContextEvent::Stalled { repeats, .. } => Some(format!("stalled: the same {repeats} times")),
        ContextEvent::AnchorsSet { .. }
        | ContextEvent::Checkpoint { .. }
        | ContextEvent::Snapshot { .. }
        | ContextEvent::IssueSeen { .. }
        | ContextEvent::ErrorSeen { text: None, .. } => None,
    }
}

pub(super) fn control(event: &ControlEvent) -> Option<String> {
    match event {
        ControlEvent::StopRequested { level, .. } => Some(format!("stop requested, {}", stop_level(*level))),
        ControlEvent::StopRaised { to, .. } => Some(format!("stop raised to {}", stop_level(*to))),
        ControlEvent::StopWithdrawn { .. } => Some("the stop was taken back".to_owned()),
        ControlEvent::GuidanceQueued { text, .. } => Some(format!("guidance: {}", one_line(text))),
        ControlEvent::StopApplied { level, channel, .. } => {
            Some(format!("the stop reached the agent through {}, {}", channel.as_str(), stop_level(*level)))
        }
        ControlEvent::EndBlocked { why } => Some(one_line(why)),
        ControlEvent::StopComplied { .. } => Some("the agent does what the stop asks for".to_owned()),
        ControlEvent::GuidanceDelivered { channel, .. } => {
            Some(format!("guidance delivered through {}", one_line(channel)))
        }
        ControlEvent::StopSettled {}
        | ControlEvent::NoticeSent { .. }
        | ControlEvent::Introduced { .. }
        | ControlEvent::HandedOff { .. }
        | ControlEvent::GuidanceReturned { .. }
        | ControlEvent::GuidanceSettled { .. }
        | ControlEvent::CommandRefused { .. }
        | ControlEvent::SignalUnexpected { .. } => None,
    }
}

pub(super) fn change(event: &ChangeEvent) -> Option<String> {
    match event {
        ChangeEvent::ChildLinked { child, agent } => {
            let agent = agent.as_deref().map(|agent| format!(" ({})", one_line(agent))).unwrap_or_default();
            Some(format!("child {child}{agent}"))
        }
        ChangeEvent::Migrated { .. } => Some("the session was handed over".to_owned()),
        ChangeEvent::Resumed { .. } => Some("the session was resumed after a stop".to_owned()),
        ChangeEvent::ChoiceSet { choice } if choice.is_empty() => {
            Some("the agent's defaults were chosen".to_owned())
        }
        ChangeEvent::ChoiceSet { choice } => Some(format!("chosen: {}", choice_words(choice))),
        ChangeEvent::Imported(import) => Some(format!("imported {}", imported(import))),
        ChangeEvent::Renamed { title } => Some(format!("renamed to {}", one_line(title))),
        ChangeEvent::Created(_)
        | ChangeEvent::Linked { .. }
        | ChangeEvent::ChildUnlinked { .. }
        | ChangeEvent::Driven { .. }
        | ChangeEvent::AliasAdded { .. }
        | ChangeEvent::PlanJoined { .. }
        | ChangeEvent::MemorySet { .. }
        | ChangeEvent::Archived {}
        | ChangeEvent::Seen { .. }
        | ChangeEvent::Unarchived {}
        | ChangeEvent::Reset { .. }
        | ChangeEvent::Deleted { .. }
        | ChangeEvent::WentIdle { .. }
        | ChangeEvent::WentStale { .. }
        | ChangeEvent::Ended { .. } => None,
    }
}

pub(super) fn writer(event: &WriterEvent, who: &str) -> Option<String> {
    match event {
        WriterEvent::Granted { pen, .. } => Some(format!("{} writes", pen_name(pen))),
        WriterEvent::Asked { pen, .. } => Some(format!("{} asks to write", pen_name(pen))),
        WriterEvent::Denied { .. } => Some(format!("{who} keeps writing")),
        WriterEvent::Released { why, .. } => match why {
            ReleaseReason::Taken => None,
            ReleaseReason::Lapsed => Some("the writer was away for too long; anybody may write".to_owned()),
            ReleaseReason::Released => Some(format!("{who} no longer writes; anybody may")),
        },
    }
}

/// Drafts and marks are of no interest to the conversation; the message with the comments is there as a turn.
pub(super) fn review(event: &ReviewEvent, who: &str) -> Option<String> {
    match event {
        ReviewEvent::Sent { comments, .. } => {
            Some(format!("{who} sent a review with {}", count(comments.len(), "comment")))
        }
        ReviewEvent::Drafted(_)
        | ReviewEvent::Edited { .. }
        | ReviewEvent::Removed { .. }
        | ReviewEvent::Viewed { .. } => None,
    }
}

/// A person at a client: `operator (web)`.
fn pen_name(pen: &Pen) -> String {
    let client = pen.client.as_deref().map(|client| format!(" ({})", one_line(client)));
    format!("{}{}", one_line(&pen.actor.name), client.unwrap_or_default())
}
