//! The words an agent is given: its prompt, and before it what it has to know.

use std::borrow::Cow;
use std::fmt::Write as _;

use lanyard_core::session::{
    ActiveTurn, Continuity, Envelope, Event, MessageBreaks, Note, NoteStatus, Role, TranscriptEvent,
    TurnEvent, with_labels,
};

/// Characters of a transcript that is given back whole; a longer one is not.
pub(super) const REPLAY_CHARS_MAX: usize = 200_000;
/// Characters of the summary made from the log.
const PREAMBLE_CHARS_MAX: usize = 8_000;
/// Characters of one message in that summary.
const PREAMBLE_LINE_CHARS: usize = 600;

/// Everything that goes before the prompt itself.
#[derive(Debug, Default)]
pub(super) struct Before<'a> {
    pub(super) instructions: Option<&'a str>,
    /// The session's governance level and languages, as sentences.
    pub(super) rules: Option<String>,
    /// The conversation so far, where the agent does not have it.
    pub(super) past: Option<&'a str>,
    pub(super) anchors: &'a [String],
    pub(super) guidance: &'a [Note],
}

/// The whole text of a prompt.
pub(super) fn prompt(text: &str, before: &Before<'_>) -> String {
    let mut whole = String::new();
    if let Some(instructions) = before.instructions {
        let _ = writeln!(whole, "{}\n", instructions.trim_end());
    }
    if let Some(rules) = &before.rules {
        let _ = writeln!(whole, "{rules}\n");
    }
    if let Some(past) = before.past {
        let _ = writeln!(whole, "{}\n", past.trim_end());
    }
    if !before.anchors.is_empty() {
        whole.push_str("Keep in mind:\n");
        for anchor in before.anchors {
            let _ = writeln!(whole, "- {anchor}");
        }
        whole.push('\n');
    }
    for note in before.guidance.iter().filter(|note| note.status == NoteStatus::Pending) {
        let _ = writeln!(whole, "{}\n", note.in_prompt());
    }
    whole.push_str(text);
    whole
}

/// The whole text of a prompt that is a command of the agent's own: it is one only at the beginning, so what the agent has
/// to know goes behind it.
pub(super) fn command(text: &str, before: &Before<'_>) -> String {
    let words = prompt("", before);
    if words.trim().is_empty() { text.to_owned() } else { format!("{text}\n\n{}", words.trim_end()) }
}

/// The words of a turn's prompt. After a limit an agent that worked in the turn is told to continue, not given its request
/// again; one that did nothing gets the request as it was. `knows` is whether the agent has the conversation.
pub(super) fn of_leg(active: &ActiveTurn, request: String, knows: bool) -> String {
    let Some(leg) = active.leg.as_ref().filter(|_| active.worked) else { return request };
    let what = leg.limit.kind.label();
    let on = format!(
        "Your turn was interrupted by the provider's {what}. It is over. Continue where you stopped, and do not repeat \
         steps that are already done."
    );
    if knows { on } else { format!("{on}\n\nThe request was:\n{request}") }
}

/// The conversation that a past belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PastOf {
    /// The agent's own, whose process is gone.
    Lost,
    /// The one that this session was forked from.
    Forked,
    /// That of the agent before this one.
    Another,
}

/// The conversation's past as text, from its log: whole, or the newest of it in bounds. Nothing when there is none, or
/// when the whole of it would be too long.
pub(super) fn past(events: &[Envelope], how: Continuity, of: PastOf) -> Option<String> {
    let whole = how == Continuity::Replayed;
    let lines: Vec<String> = joined(events).iter().filter_map(|event| line(event.as_ref(), whole)).collect();
    if lines.is_empty() {
        return None;
    }
    let heading = match (whole, of) {
        (true, PastOf::Lost) => "This is the conversation so far. Your process was lost; go on from here.\n",
        (true, PastOf::Forked) => "This is the conversation you go on from, in a session of your own.\n",
        (true, PastOf::Another) => {
            "You take this conversation over from another agent. This is all of it so far; `you` is that agent.\n"
        }
        (false, PastOf::Lost) => {
            "Your process was lost. This is a summary of the newest part of the conversation, from its log.\n"
        }
        (false, PastOf::Forked) => {
            "You go on from another conversation, in a session of your own. This is a summary of its newest part.\n"
        }
        (false, PastOf::Another) => {
            "You take this conversation over from another agent. This is a summary of its newest part; `you` is that \
             agent.\n"
        }
    };
    let size: usize = lines.iter().map(|line| line.chars().count() + 1).sum();
    if whole {
        return (size <= REPLAY_CHARS_MAX).then(|| format!("{heading}{}\n", lines.join("\n")));
    }
    let mut room = PREAMBLE_CHARS_MAX;
    let mut kept: Vec<&String> = lines
        .iter()
        .rev()
        .take_while(|line| {
            let size = line.chars().count() + 1;
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        })
        .collect();
    kept.reverse();
    let left_out = lines.len() - kept.len();
    let note =
        if left_out > 0 { format!("({left_out} earlier lines are left out)\n") } else { String::new() };
    let kept: Vec<&str> = kept.into_iter().map(String::as_str).collect();
    Some(format!("{heading}{note}{}\n", kept.join("\n")))
}

/// The events, with the pieces of one message put together.
fn joined(events: &[Envelope]) -> Vec<Cow<'_, Event>> {
    let mut breaks = MessageBreaks::default();
    let mut joined: Vec<Cow<'_, Event>> = Vec::with_capacity(events.len());
    // Where the message that may go on stands: calls may have returned since.
    let mut open = None;
    for Envelope { event, .. } in events {
        let begins = breaks.begins(event);
        if let Event::Transcript(TranscriptEvent::Message { text: more, parts: shown, .. }) = event {
            if let Some(Event::Transcript(TranscriptEvent::Message { text, parts, .. })) =
                open.filter(|_| !begins).and_then(|place| joined.get_mut::<usize>(place)).map(Cow::to_mut)
            {
                text.push_str(more);
                parts.extend_from_slice(shown);
                continue;
            }
            open = Some(joined.len());
        }
        joined.push(Cow::Borrowed(event));
    }
    joined
}

fn line(event: &Event, whole: bool) -> Option<String> {
    let (who, text) = match event {
        Event::Turn(TurnEvent::Started { prompt, parts, .. }) => ("user", with_labels(prompt, parts)),
        Event::Transcript(TranscriptEvent::Message { role: Role::Agent, text, parts, .. }) => {
            ("you", with_labels(text, parts))
        }
        Event::Transcript(TranscriptEvent::Message { role: Role::User, text, parts, .. }) => {
            ("user", with_labels(text, parts))
        }
        Event::Transcript(TranscriptEvent::ToolCalled { tool, arguments, .. }) => {
            return Some(format!("you used {tool} {}", short(&arguments.to_string(), whole)));
        }
        Event::Transcript(TranscriptEvent::FileChanged { path, .. }) => {
            return Some(format!("you changed {path}"));
        }
        Event::Transcript(TranscriptEvent::ToolReturned { content, is_error, .. }) if whole => {
            let how = if *is_error { "an error" } else { "an answer" };
            return Some(format!("you got {how}: {content}"));
        }
        Event::Transcript(_)
        | Event::Turn(_)
        | Event::Inbox(_)
        | Event::Change(_)
        | Event::Context(_)
        | Event::Control(_)
        | Event::Run(_)
        | Event::Gate(_)
        | Event::Writer(_)
        | Event::Review(_) => return None,
    };
    Some(format!("{who}: {}", short(&text, whole)))
}

/// Further lines are set in, so that nothing of the past reads as if it stood at the head of the new prompt.
fn short(text: &str, whole: bool) -> String {
    let (kept, cut) = if whole { (text, false) } else { lanyard_core::text::cut(text, PREAMBLE_LINE_CHARS) };
    let kept = kept.replace('\n', "\n    ");
    if cut { format!("{kept} …") } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanyard_core::session::{Delivery, Opening, PlanEntry, PlanEntryState};
    use lanyard_core::{Actor, NoteId, SessionId, Timestamp, TurnId};

    fn envelope(event: impl Into<Event>) -> Envelope {
        Envelope {
            seq: 1,
            session: SessionId::from_u128(1),
            at: Timestamp::from_millis(0),
            actor: Actor::system("test"),
            cause: None,
            event: event.into(),
        }
    }

    fn asked(prompt: &str) -> Envelope {
        let (turn, prompt_hash) = (TurnId::from_u128(1), String::new());
        let (client_turn_id, opening, anchors) = (None, Opening::New, Vec::new());
        let prompt = prompt.to_owned();
        let (delivery, queued, by) = (Delivery::Reject, false, None);
        envelope(TurnEvent::Started {
            turn,
            client_turn_id,
            prompt,
            parts: Vec::new(),
            prompt_hash,
            opening,
            anchors,
            governance: false,
            delivery,
            queued,
            by,
            memory: None,
            choice: lanyard_core::session::AgentChoice::default(),
            forced: false,
        })
    }

    fn said(text: &str) -> Envelope {
        part("", text)
    }

    fn part(id: &str, text: &str) -> Envelope {
        let message_id = (!id.is_empty()).then(|| id.to_owned());
        envelope(TranscriptEvent::Message {
            role: Role::Agent,
            text: text.to_owned(),
            message_id,
            parts: Vec::new(),
        })
    }

    /// FND-N8.
    #[test]
    fn fnd_n8_the_past_has_a_line_for_each_message() {
        let told = [asked("go"), part("m1", "Look"), part("m1", "ing."), part("m2", "Found it.")];
        let whole = past(&told, Continuity::Replayed, PastOf::Lost).unwrap();
        assert!(whole.ends_with("user: go\nyou: Looking.\nyou: Found it.\n"), "{whole}");
    }

    #[test]
    fn a_prompt_is_told_with_all_that_goes_before_it() {
        let note = |status, text: &str| Note {
            kind: lanyard_core::session::NoteKind::Guidance,
            delivery: None,
            again: false,
            id: NoteId::from_u128(1),
            text: text.to_owned(),
            queued_at: Timestamp::from_millis(0),
            by: Actor::operator("ann"),
            status,
        };
        let before = Before {
            instructions: Some("You review.\n"),
            rules: Some("Write documents in German.".to_owned()),
            past: Some("Long ago.\n"),
            anchors: &["never touch main".to_owned()],
            guidance: &[note(NoteStatus::Pending, "use tabs"), note(NoteStatus::Delivered, "old")],
        };
        assert_eq!(
            prompt("go", &before),
            "You review.\n\nWrite documents in German.\n\nLong ago.\n\nKeep in mind:\n- never touch main\n\nGuidance from ann: use tabs\n\ngo"
        );
        assert_eq!(prompt("go", &Before::default()), "go");
    }

    #[test]
    fn the_past_is_told_whole_or_its_newest_part_in_bounds() {
        let plan = vec![PlanEntry { text: "p".to_owned(), status: PlanEntryState::Pending }];
        let told = [asked("one\n/two"), said("three"), envelope(TranscriptEvent::Planned { entries: plan })];
        let whole = past(&told, Continuity::Replayed, PastOf::Lost).unwrap();
        assert!(whole.ends_with("user: one\n    /two\nyou: three\n"), "{whole}");
        let long: Vec<Envelope> = (0..100)
            .map(|number| part(&number.to_string(), &format!("{number} {}", "x".repeat(1_000))))
            .collect();
        let summary = past(&long, Continuity::Preamble, PastOf::Lost).unwrap();
        assert!(summary.chars().count() < PREAMBLE_CHARS_MAX + 300);
        assert!(summary.contains("earlier lines are left out") && summary.contains("you: 99 x"), "{summary}");
        assert!(!summary.contains("you: 0 x"));
    }

    #[test]
    fn there_may_be_no_past_and_one_that_is_too_long_is_not_told_whole() {
        assert_eq!(past(&[], Continuity::Preamble, PastOf::Lost), None);
        let long: Vec<Envelope> = (0..300).map(|_| said(&"x".repeat(1_000))).collect();
        assert_eq!(past(&long, Continuity::Replayed, PastOf::Lost), None);
    }
}
