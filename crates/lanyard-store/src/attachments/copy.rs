//! Attachments in a copy of the journal: a backup is one file, so they are in it, in tables of their own. They leave it when
//! it becomes a journal.

use std::path::Path;

use lanyard_core::SessionId;
use lanyard_core::attachment::AttachmentId;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::{AttachmentError, Attachments};
use crate::error::StoreError;

const TABLES: &str = "CREATE TABLE attachment (id TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT;
     CREATE TABLE attachment_of (session TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (session, id)) STRICT;";

impl Attachments {
    /// Adds all content and marks to a copy of the journal that is not in use. Answers how many are in it, and what could not
    /// be read. The caller holds removals back since before the copy was made.
    pub fn add_to_copy(&self, copy: &Path) -> Result<(u64, Vec<String>), StoreError> {
        let io = |source| StoreError::Io { path: self.root.clone(), source };
        let (marks, content) = (self.marks().map_err(io)?, self.content().map_err(io)?);
        let mut left_out = Vec::new();
        if content.is_empty() {
            return Ok((0, left_out));
        }
        let mut conn = Connection::open_with_flags(copy, flags())?;
        let all = conn.transaction()?;
        all.execute_batch(TABLES)?;
        let mut count = 0;
        for id in content.keys() {
            match self.read(*id) {
                Ok(content) => {
                    all.execute("INSERT INTO attachment VALUES (?1, ?2)", (id.to_string(), content))?;
                    count += 1;
                }
                Err(AttachmentError::Unknown) => {}
                Err(error) => left_out.push(format!("attachment {id}: {error}")),
            }
        }
        for (session, ids) in marks {
            for id in ids {
                all.execute(
                    "INSERT INTO attachment_of VALUES (?1, ?2)",
                    (session.to_string(), id.to_string()),
                )?;
            }
        }
        all.commit()?;
        conn.close().map_err(|(_, error)| error)?;
        std::fs::File::open(copy).and_then(|file| file.sync_all()).map_err(io)?;
        Ok((count, left_out))
    }
}

/// Moves the attachments of a copy, which is not in use, into the folder of attachments, and leaves the copy as the journal
/// it was made of. Answers how many there were. Older copies have none.
pub fn take_copied(copy: &Path, root: &Path) -> Result<u64, StoreError> {
    let attachments = Attachments::open(root.to_owned()).map_err(|error| unusable(root, error))?;
    let mut conn = Connection::open_with_flags(copy, flags())?;
    let found: Option<i64> = conn
        .query_row("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'attachment'", [], |row| {
            row.get(0)
        })
        .optional()?;
    if found.is_none() {
        return Ok(0);
    }
    let count = take(&conn, &attachments).map_err(|error| match error {
        TakeError::Store(error) => error,
        TakeError::Attachment(error) => unusable(root, error),
    })?;
    let all = conn.transaction()?;
    all.execute_batch("DROP TABLE attachment; DROP TABLE attachment_of;")?;
    all.commit()?;
    conn.execute_batch("VACUUM")?;
    conn.close().map_err(|(_, error)| error)?;
    let synced = std::fs::File::open(copy).and_then(|file| file.sync_all());
    synced.map_err(|source| StoreError::Io { path: copy.to_owned(), source })?;
    Ok(count)
}

enum TakeError {
    Store(StoreError),
    Attachment(AttachmentError),
}

impl From<rusqlite::Error> for TakeError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

fn take(conn: &Connection, attachments: &Attachments) -> Result<u64, TakeError> {
    // The bounds were those of the uploads.
    let bounds = super::UploadBounds { one_max: u64::MAX, all_max: u64::MAX };
    let mut read = conn.prepare("SELECT content FROM attachment ORDER BY id")?;
    let mut rows = read.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let content = row.get_ref(0)?.as_blob().unwrap_or_default();
        let mut upload = attachments.begin(bounds).map_err(TakeError::Attachment)?;
        upload.write(content).map_err(TakeError::Attachment)?;
        upload.finish(lanyard_core::Timestamp::from_millis(0)).map_err(TakeError::Attachment)?;
        count += 1;
    }
    let mut read = conn.prepare("SELECT session, id FROM attachment_of")?;
    let mut rows = read.query([])?;
    while let Some(row) = rows.next()? {
        let (session, id): (String, String) = (row.get(0)?, row.get(1)?);
        let (Ok(session), Ok(id)) = (session.parse::<SessionId>(), id.parse::<AttachmentId>()) else {
            continue;
        };
        match attachments.mark(session, &[id], lanyard_core::Timestamp::from_millis(0)) {
            Ok(()) | Err(AttachmentError::Unknown) => {}
            Err(error) => return Err(TakeError::Attachment(error)),
        }
    }
    Ok(count)
}

fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn unusable(root: &Path, error: AttachmentError) -> StoreError {
    match error {
        AttachmentError::Io { path, source } => StoreError::Io { path, source },
        other @ (AttachmentError::Empty
        | AttachmentError::TooLarge { .. }
        | AttachmentError::Full { .. }
        | AttachmentError::Unknown
        | AttachmentError::Damaged) => {
            StoreError::Damaged(format!("attachments in {}: {other}", root.display()))
        }
    }
}
