//! What a conversation leaves on disk: one file of JSON lines per session, appended while the turn runs, so that another
//! process can go on with it however this one ended.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{ContentBlock, SessionId, SessionUpdate};
use serde::{Deserialize, Serialize};

/// A longer file is not read.
const FILE_MAX: u64 = 64 << 20;
/// Words of one message are gathered up to this size before they are written.
const PENDING_MAX: usize = 64 << 10;
const ID_MAX: usize = 128;
/// Sessions one `session/list` answers with.
const LIST_MAX: usize = 1_000;

/// The first line of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) session: SessionId,
    pub(super) cwd: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
}

/// Every further line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    Prompt(String),
    Update(Box<SessionUpdate>),
}

/// A file, read.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) header: Header,
    pub(super) records: Vec<Record>,
}

#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    pub(super) fn open(folder: PathBuf) -> std::io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        Ok(Self { folder })
    }

    pub(super) fn create(&self, header: &Header, records: &[Record]) -> std::io::Result<History> {
        let path = self.path(&header.session).ok_or(std::io::ErrorKind::InvalidInput)?;
        let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(path)?;
        let mut history = History { file, pending: None };
        history.write(header);
        for record in records {
            history.write(record);
        }
        Ok(history)
    }

    pub(super) fn append(&self, session: &SessionId) -> std::io::Result<History> {
        let path = self.path(session).ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        // Ends a line that a killed process left half written; an empty line is skipped.
        file.write_all(b"\n")?;
        Ok(History { file, pending: None })
    }

    /// `None` when there is no such session, or nothing readable of it.
    pub(super) fn read(&self, session: &SessionId) -> Option<Saved> {
        read(&self.path(session)?)
    }

    /// Sessions without a parent, by id.
    pub(super) fn list(&self) -> Vec<Saved> {
        let Ok(folder) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = folder.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        let saved = paths.iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        saved
            .filter_map(|path| read(path))
            .filter(|saved| saved.header.parent.is_none())
            .take(LIST_MAX)
            .collect()
    }

    /// An id comes from outside and must not lead out of the folder.
    fn path(&self, session: &SessionId) -> Option<PathBuf> {
        let id = &*session.0;
        let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        (plain && !id.is_empty() && id.len() <= ID_MAX).then(|| self.folder.join(format!("{id}.jsonl")))
    }
}

impl Saved {
    pub(super) fn prompts(&self) -> Vec<String> {
        let prompt = |record: &Record| match record {
            Record::Prompt(text) => Some(text.clone()),
            Record::Update(_) => None,
        };
        self.records.iter().filter_map(prompt).collect()
    }
}

/// Reads line by line; a line that makes no sense is left out.
fn read(path: &Path) -> Option<Saved> {
    let file = File::open(path).ok()?;
    let mut lines = BufReader::new(file.take(FILE_MAX)).split(b'\n').map_while(Result::ok);
    let header = serde_json::from_slice(&lines.next()?).ok()?;
    let records = lines.filter_map(|line| serde_json::from_slice(&line).ok()).collect();
    Some(Saved { header, records })
}

/// The end of one file.
#[derive(Debug)]
pub(super) struct History {
    file: File,
    /// A message whose words still come.
    pending: Option<SessionUpdate>,
}

impl History {
    pub(super) fn prompt(&mut self, text: &str) {
        self.flush();
        self.write(&Record::Prompt(text.to_owned()));
    }

    /// Words of the same message become one record.
    pub(super) fn update(&mut self, update: &SessionUpdate) {
        if let Some(pending) = &mut self.pending {
            if joined(pending, update) {
                return;
            }
            self.flush();
        }
        if matches!(update, SessionUpdate::AgentMessageChunk(_) | SessionUpdate::AgentThoughtChunk(_)) {
            self.pending = Some(update.clone());
        } else {
            self.write(&Record::Update(Box::new(update.clone())));
        }
    }

    pub(super) fn flush(&mut self) {
        if let Some(update) = self.pending.take() {
            self.write(&Record::Update(Box::new(update)));
        }
    }

    /// One write per line. With a full disk the agent goes on and forgets: it is a demo, not a journal.
    fn write(&mut self, line: &impl Serialize) {
        if let Ok(mut bytes) = serde_json::to_vec(line) {
            bytes.push(b'\n');
            let _ = self.file.write_all(&bytes);
        }
    }
}

fn joined(pending: &mut SessionUpdate, update: &SessionUpdate) -> bool {
    let (first, more) = match (pending, update) {
        (SessionUpdate::AgentMessageChunk(first), SessionUpdate::AgentMessageChunk(more)) => (first, more),
        (SessionUpdate::AgentThoughtChunk(first), SessionUpdate::AgentThoughtChunk(more)) => (first, more),
        _ => return false,
    };
    if first.message_id != more.message_id {
        return false;
    }
    let (ContentBlock::Text(first), ContentBlock::Text(more)) = (&mut first.content, &more.content) else {
        return false;
    };
    if first.text.len() + more.text.len() > PENDING_MAX {
        return false;
    }
    first.text.push_str(&more.text);
    true
}
