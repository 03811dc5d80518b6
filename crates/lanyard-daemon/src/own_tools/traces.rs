//! What a session left behind, as far as the end of its log tells: files it touched, and its last words.

use lanyard_core::SessionId;
use lanyard_core::session::{Envelope, Event, Role, TranscriptEvent};
use lanyard_core::text::cut;
use lanyard_store::Store;
use serde_json::Value;

use crate::tool_refusal::Refused;

/// Events at the end of a log that are looked at.
const EVENTS_MAX: u64 = 1_000;
/// Files that are told of one session, the newest.
const FILES_MAX: usize = 50;
/// Characters of the last words.
const WORDS_MAX: usize = 300;
/// Names under which tools take the file they work on.
const PATH_NAMES: [&str; 4] = ["file_path", "filePath", "path", "notebook_path"];
/// Parts of the names of tools that change files.
const CHANGERS: [&str; 5] = ["write", "edit", "patch", "create", "replace"];

#[derive(Debug, Default)]
pub(super) struct Traces {
    /// The newest first, each once.
    pub(super) files: Vec<String>,
    pub(super) last_words: Option<String>,
}

pub(super) fn of(store: &dyn Store, session: SessionId, workspace: &str) -> Result<Traces, Refused> {
    let head = store.events(session, 0, 0)?.head;
    let limit = usize::try_from(EVENTS_MAX).unwrap_or(usize::MAX);
    let page = store.events(session, head.saturating_sub(EVENTS_MAX), limit)?;
    let mut traces = Traces::default();
    for event in page.events.iter().rev() {
        let Ok(body) = &event.body else { continue };
        let Ok(envelope) = serde_json::from_slice::<Envelope>(body) else { continue };
        let Event::Transcript(event) = envelope.event else { continue };
        if let TranscriptEvent::Message { role: Role::Agent, text, .. } = &event
            && traces.last_words.is_none()
        {
            let (kept, was_cut) = cut(text, WORDS_MAX);
            traces.last_words = Some(if was_cut { format!("{kept}…") } else { kept.to_owned() });
        }
        if let Some(file) = touched(&event) {
            let file = within(&file, workspace).to_owned();
            if traces.files.len() < FILES_MAX && !traces.files.contains(&file) {
                traces.files.push(file);
            }
        }
    }
    Ok(traces)
}

/// The file an event says was changed.
fn touched(event: &TranscriptEvent) -> Option<String> {
    if let TranscriptEvent::FileChanged { path, .. } = event {
        return Some(path.clone());
    }
    let TranscriptEvent::ToolCalled { tool, arguments, .. } = event else { return None };
    let tool = tool.to_ascii_lowercase();
    if !CHANGERS.iter().any(|part| tool.contains(part)) {
        return None;
    }
    PATH_NAMES.iter().find_map(|name| arguments.get(name).and_then(Value::as_str)).map(str::to_owned)
}

/// The path as it is called in the workspace.
pub(super) fn within<'a>(path: &'a str, workspace: &str) -> &'a str {
    let path = path.strip_prefix("./").unwrap_or(path);
    if workspace.is_empty() {
        return path;
    }
    let below = path.strip_prefix(workspace).and_then(|rest| rest.strip_prefix('/'));
    below.unwrap_or(path)
}
