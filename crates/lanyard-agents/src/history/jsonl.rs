//! Histories with a file per conversation: finding them, their headers, and one of them whole.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use lanyard_core::Timestamp;
use lanyard_git::workspace_files::listing::{ListedFile, files};
use lanyard_git::workspace_files::{FileError, beneath};
use serde_json::Value;

use super::lines::{BoundedLines, NextLine};
use super::past::{PastConversation, PastEvents};
use super::{
    HistoryError, HistoryHeader, HistoryKind, HistoryPlaces, HistoryQuery, chosen, claude, codex, gemini,
    sound_folder, sound_native,
};

/// Names of one history that are looked at.
const NAMES_MAX: usize = 40_000;
/// Headers that one listing reads, also where a folder filters most of them out.
const HEADERS_MAX: usize = 2_000;
/// Bytes at the beginning of a file in which its header is looked for. Codex puts its instructions first.
const HEAD_BYTES: u64 = 128 * 1024;
/// Bytes at the end in which a title is looked for.
const TAIL_BYTES: u64 = 32 * 1024;
/// Bytes of a conversation whose messages a listing counts, and of all that it counts together.
const COUNTED_BYTES_MAX: u64 = 4 << 20;
const COUNTED_BYTES_OF_ALL_MAX: u64 = 32 << 20;
/// Bytes of a conversation that is imported.
const CONVERSATION_BYTES_MAX: u64 = 512 << 20;
/// Bytes of one whose messages replace each other and are therefore kept until its end.
const KEPT_BYTES_MAX: u64 = 32 << 20;
/// The file of Gemini CLI that names a project's folder.
const PROJECT_ROOT: &str = ".project_root";
const PROJECT_ROOT_BYTES_MAX: u64 = 4_096;

/// Conversations after the query's mark, newest first, and whether there are more.
pub(super) fn list(
    kind: HistoryKind,
    root: &Path,
    query: &HistoryQuery,
) -> Result<(Vec<HistoryHeader>, bool), FileError> {
    let mut found = every(kind, root)?;
    found.sort_by(|one, other| other.modified_ms.cmp(&one.modified_ms).then(other.path.cmp(&one.path)));
    let mut items = Vec::new();
    let after = query.after.as_ref();
    for (read, file) in
        found.iter().filter(|file| after.is_none_or(|mark| file.modified_ms <= mark.updated_ms)).enumerate()
    {
        // One more than is shown tells that there are more.
        if items.len() > query.limit || read >= HEADERS_MAX {
            break;
        }
        // What is gone since, or is no conversation, is not listed.
        let Some(header) = header(kind, root, file) else { continue };
        let here = query.folder.as_ref().is_none_or(|folder| header.folder.as_ref() == Some(folder));
        if here && after.is_none_or(|mark| header.mark() < *mark) {
            items.push(header);
        }
    }
    let more = items.len() > query.limit;
    Ok((items, more))
}

/// Counts the messages of conversations that are small enough, as long as all of them together are.
pub(super) fn count(places: &HistoryPlaces, items: &mut [HistoryHeader]) {
    let mut left = COUNTED_BYTES_OF_ALL_MAX;
    for item in items {
        let (Some(root), Some(path), Some(bytes)) = (places.root(item.kind), &item.file, item.bytes) else {
            continue;
        };
        if bytes > COUNTED_BYTES_MAX.min(left) {
            continue;
        }
        left -= bytes;
        let mut gathered = PastEvents::default();
        let opened = open(root, path, COUNTED_BYTES_MAX);
        if opened.is_ok_and(|file| gather(item.kind, file, &mut gathered).is_ok()) {
            item.messages = Some(gathered.messages());
        }
    }
}

pub(super) fn read(kind: HistoryKind, root: &Path, native: &str) -> Result<PastConversation, HistoryError> {
    let unreadable = |what: &dyn std::fmt::Display| HistoryError::unreadable(kind, native, what);
    let found = match every(kind, root) {
        Ok(found) => found,
        Err(FileError::Missing) => return Err(HistoryError::not_found(kind, native)),
        Err(error) => return Err(unreadable(&error)),
    };
    let mut named: Vec<(String, ListedFile)> = Vec::new();
    for file in found {
        let Some(id) = named_id(kind, root, &file, native) else { continue };
        if id.starts_with(native) {
            named.push((id, file));
        }
    }
    // The newest of two files of one conversation.
    named.sort_by_key(|(_, file)| std::cmp::Reverse(file.modified_ms));
    let (native, file) = chosen(kind, native, named)?;
    let unreadable = |what: &dyn std::fmt::Display| HistoryError::unreadable(kind, &native, what);
    let header = header(kind, root, &file).unwrap_or_else(|| {
        HistoryHeader::new(kind, native.clone(), Timestamp::from_millis(file.modified_ms))
    });
    let max = if kind == HistoryKind::Gemini { KEPT_BYTES_MAX } else { CONVERSATION_BYTES_MAX };
    let opened = open(root, &file.path, max).map_err(|error| unreadable(&error))?;
    let mut gathered = PastEvents::default();
    gather(kind, opened, &mut gathered).map_err(|error| unreadable(&error))?;
    if gathered.is_empty() {
        let what = match gathered.unreadable {
            0 => "it holds no message".to_owned(),
            lines => format!("it holds no message, and {lines} of its lines are damaged"),
        };
        return Err(unreadable(&what));
    }
    Ok(gathered.done(HistoryHeader { native, ..header }))
}

/// All files that may be conversations.
fn every(kind: HistoryKind, root: &Path) -> Result<Vec<ListedFile>, FileError> {
    let depth = match kind {
        HistoryKind::Claude => 1,
        HistoryKind::Codex => 3,
        HistoryKind::Gemini | HistoryKind::Opencode => 2,
    };
    let wanted = |path: &Path| {
        let (end, stem) = (path.extension().and_then(|end| end.to_str()), stem(path));
        match kind {
            // Files of subagents begin with `agent-`.
            HistoryKind::Claude => {
                end == Some("jsonl") && !stem.starts_with("agent-") && sound_native(stem).is_some()
            }
            HistoryKind::Codex => {
                end == Some("jsonl") && codex::native(stem).is_some_and(|id| sound_native(id).is_some())
            }
            HistoryKind::Gemini => {
                matches!(end, Some("jsonl" | "json"))
                    && stem.starts_with("session-")
                    && path.parent().is_some_and(|folder| folder.ends_with("chats"))
            }
            HistoryKind::Opencode => false,
        }
    };
    Ok(files(root, depth, NAMES_MAX, &wanted)?.files)
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// The id of a file's conversation. Gemini CLI has only the beginning of it in the name.
fn named_id(kind: HistoryKind, root: &Path, file: &ListedFile, wanted: &str) -> Option<String> {
    match kind {
        HistoryKind::Claude => Some(stem(&file.path).to_owned()),
        HistoryKind::Codex => codex::native(stem(&file.path)).map(str::to_owned),
        HistoryKind::Gemini => {
            let begin = wanted.get(..8).unwrap_or(wanted);
            let may = stem(&file.path).rsplit('-').next().is_some_and(|end| end.starts_with(begin));
            if may { header(kind, root, file).map(|header| header.native) } else { None }
        }
        HistoryKind::Opencode => None,
    }
}

/// What a listing shows of a file; nothing where it is no conversation of its own.
fn header(kind: HistoryKind, root: &Path, file: &ListedFile) -> Option<HistoryHeader> {
    let mut opened = beneath::open(root, &file.path).ok()?;
    let native = match kind {
        HistoryKind::Claude => stem(&file.path).to_owned(),
        HistoryKind::Codex => codex::native(stem(&file.path))?.to_owned(),
        HistoryKind::Gemini | HistoryKind::Opencode => String::new(),
    };
    let mut header = HistoryHeader::new(kind, native, Timestamp::from_millis(file.modified_ms));
    (header.bytes, header.file) = (Some(file.bytes), Some(file.path.clone()));
    let document = kind == HistoryKind::Gemini && file.path.extension().is_some_and(|end| end == "json");
    let first = if document { KEPT_BYTES_MAX } else { HEAD_BYTES };
    let head = part(&mut opened, 0, first).ok()?;
    for line in values(&head, document) {
        let goes_on = match kind {
            HistoryKind::Claude => {
                claude::head(&mut header, &line);
                true
            }
            HistoryKind::Codex => codex::head(&mut header, &line),
            HistoryKind::Gemini => gemini::head(&mut header, &line),
            HistoryKind::Opencode => false,
        };
        if !goes_on {
            return None;
        }
    }
    if kind == HistoryKind::Claude {
        let tail = part(&mut opened, file.bytes.saturating_sub(TAIL_BYTES), TAIL_BYTES).ok()?;
        let named = values(&tail, false).filter_map(|line| claude::title(&line)).last();
        header.title = named.or(header.title);
    }
    if kind == HistoryKind::Gemini {
        header.folder = project(root, &file.path);
    }
    sound_native(&header.native)?;
    Some(header)
}

/// The folder of the project whose conversation it is: it is written two levels above.
fn project(root: &Path, path: &Path) -> Option<String> {
    let place = path.parent()?.parent()?.join(PROJECT_ROOT);
    let bytes = beneath::read_plain(&root.canonicalize().ok()?, &place, PROJECT_ROOT_BYTES_MAX).ok()?;
    sound_folder(std::str::from_utf8(&bytes).ok()?.trim_end_matches('\n'))
}

fn part(file: &mut File, from: u64, bytes: u64) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut part = Vec::new();
    file.take(bytes).read_to_end(&mut part)?;
    Ok(part)
}

/// The records of a part of a file; those that are cut are none.
fn values(part: &[u8], document: bool) -> impl Iterator<Item = Value> {
    let lines = part.split(move |byte| *byte == b'\n' && !document);
    lines.filter_map(|line| serde_json::from_slice(line).ok())
}

fn open(root: &Path, path: &Path, max: u64) -> Result<File, FileError> {
    let file = beneath::open(&root.canonicalize()?, path)?;
    if file.metadata()?.len() > max { Err(FileError::TooLarge { max }) } else { Ok(file) }
}

/// Gathers a conversation. It may grow meanwhile: no more is read than it had at first.
fn gather(kind: HistoryKind, file: File, out: &mut PastEvents) -> std::io::Result<()> {
    let length = file.metadata()?.len();
    let mut chat = gemini::GeminiChat::default();
    let mut lines = BoundedLines::new(file.take(length));
    let mut document = Vec::new();
    while let Some(next) = lines.next()? {
        let line = match next {
            NextLine::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => continue,
            NextLine::Whole(line) => line,
            NextLine::TooLong => {
                out.unreadable += 1;
                continue;
            }
        };
        match serde_json::from_slice::<Value>(line) {
            Ok(line) if line.is_object() => match kind {
                HistoryKind::Claude => claude::line(&line, out),
                HistoryKind::Codex => codex::line(&line, out),
                HistoryKind::Gemini => chat.record(line),
                HistoryKind::Opencode => {}
            },
            // A document of many lines is read when it is whole.
            Ok(_) | Err(_) if kind == HistoryKind::Gemini => {
                out.unreadable += 1;
                document.extend_from_slice(line);
                document.push(b'\n');
            }
            Ok(_) | Err(_) => out.unreadable += 1,
        }
    }
    if let Ok(whole) = serde_json::from_slice::<Value>(&document)
        && whole["sessionId"].is_string()
    {
        out.unreadable = 0;
        chat.record(whole);
    }
    chat.tell(out);
    Ok(())
}
