//! Attachments beside the journal: one file for each content, under its hash, and a mark for each session that refers to it.
//!
//! **Marked before it is referred to.** A session's mark is on disk before the event that names the content is written, and
//! content goes only when no session marks it. So a kill at any moment leaves at most content or a mark too many, which
//! [`Attachments::collect`] removes, and never a reference to nothing.
//!
//! The folder holds `content/ab/ab…` (the files), `sessions/ID/ab…` (the marks, empty), `shown/ID/` (copies for the
//! processes of a session's agent) and `partial/` (uploads that are not whole).

mod copy;
mod upload;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{DirBuilder, File, FileTimes, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lanyard_core::attachment::{AttachmentId, ContentType, SNIFF_BYTES, sniff};
use lanyard_core::journal::{Damage, Report};
use lanyard_core::{SessionId, Timestamp};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use crate::fold::note;

pub use copy::take_copied;
pub use upload::{AttachmentUpload, UploadBounds};

/// Only the owner may read what was attached.
const MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// A copy for an agent is not to be written.
const SHOWN_MODE: u32 = 0o400;
/// Bytes of the longest content that is read, whatever its file says: more than any upload may have.
const READ_MAX: u64 = 1 << 30;
/// Bytes of a name that stays of a copy for an agent.
const SHOWN_NAME_MAX: usize = 80;

/// Why content was not kept or cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum AttachmentError {
    #[error("it has no bytes")]
    Empty,
    #[error("it is larger than {max} bytes")]
    TooLarge { max: u64 },
    #[error("all attachments together would be larger than {max} bytes")]
    Full { max: u64 },
    #[error("there is no such content")]
    Unknown,
    #[error("its content is not as it was")]
    Damaged,
    #[error("cannot use {path}")]
    Io { path: PathBuf, source: io::Error },
}

/// Content that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptContent {
    pub id: AttachmentId,
    pub bytes: u64,
    pub content: ContentType,
}

/// What a collection found, or removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CollectedAttachments {
    pub count: u64,
    pub bytes: u64,
}

/// The attachments of a data folder. All calls block.
#[derive(Debug)]
pub struct Attachments {
    root: PathBuf,
    /// Marks and the removal of content exclude each other.
    held: Mutex<HeldAttachments>,
    /// A copy of the journal is being made: what it refers to stays.
    removal: RwLock<()>,
}

#[derive(Debug, Default)]
struct HeldAttachments {
    /// Bytes of all content.
    total: u64,
    /// Uploaded since the start, and in no message yet: not purged with another session's last reference.
    fresh: HashSet<AttachmentId>,
}

/// While it is held, no content is removed.
#[derive(Debug)]
pub struct RemovalHold<'a>(#[expect(dead_code, reason = "held for its end")] RwLockReadGuard<'a, ()>);

impl Attachments {
    /// The attachments in this folder, which is made with the first of them. Uploads that an earlier process did not finish
    /// are removed.
    pub fn open(root: PathBuf) -> Result<Self, AttachmentError> {
        let at = |path: &Path, source| AttachmentError::Io { path: path.to_owned(), source };
        let partial = root.join("partial");
        match std::fs::remove_dir_all(&partial) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(at(&partial, source)),
        }
        let opened = Self { root, held: Mutex::default(), removal: RwLock::default() };
        let total = opened.content().map_err(|source| at(&opened.root, source))?;
        opened.held.lock().total = total.values().fold(0, |sum, file| sum.saturating_add(file.bytes));
        Ok(opened)
    }

    /// Bytes of all content.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.held.lock().total
    }

    /// Size and type of content.
    pub fn describe(&self, id: AttachmentId) -> Result<KeptContent, AttachmentError> {
        let mut file = self.file(id)?;
        let path = self.place(id);
        let io = |source| AttachmentError::Io { path: path.clone(), source };
        let bytes = file.metadata().map_err(io)?.len();
        let mut head = Vec::with_capacity(SNIFF_BYTES);
        Read::by_ref(&mut file).take(SNIFF_BYTES as u64).read_to_end(&mut head).map_err(io)?;
        Ok(KeptContent { id, bytes, content: sniff(&head) })
    }

    /// All of the content, compared with its hash.
    pub fn read(&self, id: AttachmentId) -> Result<Vec<u8>, AttachmentError> {
        let path = self.place(id);
        let mut content = Vec::new();
        let read = self.file(id)?.take(READ_MAX).read_to_end(&mut content);
        read.map_err(|source| AttachmentError::Io { path, source })?;
        if AttachmentId::of(&content) == id { Ok(content) } else { Err(AttachmentError::Damaged) }
    }

    /// Keeps content that is there as a whole.
    pub fn put(
        &self,
        content: &[u8],
        bounds: UploadBounds,
        now: Timestamp,
    ) -> Result<KeptContent, AttachmentError> {
        let mut upload = self.begin(bounds)?;
        upload.write(content)?;
        upload.finish(now)
    }

    /// Marks content as a session's. On disk when it returns; to be called before an event names the content.
    pub fn mark(
        &self,
        session: SessionId,
        ids: &[AttachmentId],
        now: Timestamp,
    ) -> Result<(), AttachmentError> {
        if ids.is_empty() {
            return Ok(());
        }
        let folder = self.marks_of(session);
        let io = |source| AttachmentError::Io { path: folder.clone(), source };
        let mut held = self.held.lock();
        for id in ids {
            drop(self.file(*id)?);
        }
        make_folder(&folder).map_err(io)?;
        for id in ids {
            let mark = folder.join(id.to_string());
            let mark = OpenOptions::new().write(true).create(true).truncate(true).mode(MODE).open(mark);
            mark.and_then(|mark| mark.set_times(at(now))).map_err(io)?;
            held.fresh.remove(id);
        }
        sync_folder(&folder).and_then(|()| sync_folder(&self.root.join("sessions"))).map_err(io)
    }

    /// Whether a session refers to this content.
    #[must_use]
    pub fn is_marked(&self, session: SessionId, id: AttachmentId) -> bool {
        self.marks_of(session).join(id.to_string()).symlink_metadata().is_ok()
    }

    /// The sessions that have marks, each with the content it refers to.
    pub fn marks(&self) -> io::Result<BTreeMap<SessionId, BTreeSet<AttachmentId>>> {
        let mut marks = BTreeMap::new();
        for (name, _) in entries(&self.root.join("sessions"))? {
            let Ok(session) = name.parse::<SessionId>() else { continue };
            let found = entries(&self.marks_of(session))?;
            marks.insert(session, found.iter().filter_map(|(name, _)| name.parse().ok()).collect());
        }
        Ok(marks)
    }

    /// Removes a session's marks, its copies, and the content that no other session refers to.
    pub fn release(&self, session: SessionId) -> io::Result<CollectedAttachments> {
        let _removal = self.removal.write();
        let mut held = self.held.lock();
        let ids: Vec<AttachmentId> =
            entries(&self.marks_of(session))?.iter().filter_map(|(name, _)| name.parse().ok()).collect();
        // The copies first: after the marks nothing would lead to them.
        for folder in [self.shown_of(session), self.marks_of(session)] {
            match std::fs::remove_dir_all(&folder) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let mut found = CollectedAttachments::default();
        if ids.is_empty() {
            return Ok(found);
        }
        let kept: BTreeSet<AttachmentId> = self.marks()?.into_values().flatten().collect();
        for id in ids.into_iter().filter(|id| !kept.contains(id)) {
            if !held.fresh.contains(&id) {
                found.add(self.remove(id, &mut held)?);
            }
        }
        Ok(found)
    }

    /// Removes marks of a session that its log has no use for.
    pub fn unmark(&self, session: SessionId, ids: &[AttachmentId]) -> io::Result<()> {
        let _held = self.held.lock();
        for id in ids {
            match std::fs::remove_file(self.marks_of(session).join(id.to_string())) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes content that no session refers to and that was uploaded before a time. A dry run only counts.
    pub fn collect(&self, before: Timestamp, dry_run: bool) -> io::Result<CollectedAttachments> {
        let _removal = self.removal.write();
        let mut held = self.held.lock();
        let kept: BTreeSet<AttachmentId> = self.marks()?.into_values().flatten().collect();
        let mut found = CollectedAttachments::default();
        for (id, file) in self.content()? {
            if kept.contains(&id) || file.at >= before {
                continue;
            }
            if dry_run {
                found.add(file.bytes);
            } else {
                found.add(self.remove(id, &mut held)?);
                held.fresh.remove(&id);
            }
        }
        Ok(found)
    }

    /// When content was last marked as a session's: the event of a young mark may be on its way.
    #[must_use]
    pub fn marked_at(&self, session: SessionId, id: AttachmentId) -> Option<Timestamp> {
        let mark = self.marks_of(session).join(id.to_string()).symlink_metadata().ok()?;
        mark.modified().ok().map(timestamp)
    }

    /// Keeps all content where it is while it is held.
    pub fn hold(&self) -> RemovalHold<'_> {
        RemovalHold(self.removal.read())
    }

    /// The folder with copies for a session's agent, which is made where it is missing.
    pub fn shown(&self, session: SessionId) -> io::Result<PathBuf> {
        let folder = self.shown_of(session);
        make_folder(&folder)?;
        Ok(folder)
    }

    /// A copy of content that the processes of a session's agent can open, under a name like its own. A copy, so that
    /// nothing they do reaches the content itself.
    pub fn show(
        &self,
        session: SessionId,
        id: AttachmentId,
        name: Option<&str>,
        content: &[u8],
    ) -> Result<PathBuf, AttachmentError> {
        let folder = self.shown_of(session);
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| AttachmentError::Io { path, source }
        };
        make_folder(&folder).map_err(io(&folder))?;
        let place = folder.join(shown_name(id, name));
        let same = std::fs::read(&place).is_ok_and(|held| held == content);
        if !same {
            let aside = folder.join(format!(".{id}"));
            let _ = std::fs::remove_file(&aside);
            let file = OpenOptions::new().write(true).create_new(true).mode(SHOWN_MODE).open(&aside);
            file.and_then(|mut file| file.write_all(content)).map_err(io(&aside))?;
            std::fs::rename(&aside, &place).map_err(io(&place))?;
        }
        Ok(place)
    }

    /// Adds to a report what is missing or damaged of the content that its log refers to.
    pub fn verify(&self, report: &mut Report) {
        let mut read: BTreeMap<AttachmentId, Option<String>> = BTreeMap::new();
        for ((session, id), seq) in &report.attached {
            let what = read.entry(*id).or_insert_with(|| match self.read(*id) {
                Ok(_) => None,
                Err(AttachmentError::Unknown) => Some(format!("attachment {id} is missing")),
                Err(error) => Some(format!("attachment {id}: {error}")),
            });
            let unmarked = || {
                let missing = !self.is_marked(*session, *id);
                missing.then(|| format!("attachment {id} is not counted as the session's"))
            };
            if let Some(what) = what.clone().or_else(unmarked) {
                let damage = Damage { session: Some(*session), first_seq: *seq, last_seq: *seq, what };
                note(&mut report.damage, damage);
            }
        }
    }

    fn remove(&self, id: AttachmentId, held: &mut HeldAttachments) -> io::Result<u64> {
        let path = self.place(id);
        let bytes = match path.symlink_metadata() {
            Ok(file) => file.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        std::fs::remove_file(&path)?;
        held.total = held.total.saturating_sub(bytes);
        Ok(bytes)
    }

    fn file(&self, id: AttachmentId) -> Result<File, AttachmentError> {
        let path = self.place(id);
        match File::open(&path) {
            Ok(file) => Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(AttachmentError::Unknown),
            Err(source) => Err(AttachmentError::Io { path, source }),
        }
    }

    /// All content, with its size and the time of its last upload.
    fn content(&self) -> io::Result<BTreeMap<AttachmentId, ContentFile>> {
        let mut found = BTreeMap::new();
        for (shelf, _) in entries(&self.root.join("content"))? {
            for (name, file) in entries(&self.root.join("content").join(shelf))? {
                let Ok(id) = name.parse() else { continue };
                let at = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.insert(id, ContentFile { bytes: file.size(), at: timestamp(at) });
            }
        }
        Ok(found)
    }

    fn place(&self, id: AttachmentId) -> PathBuf {
        let name = id.to_string();
        self.root.join("content").join(&name[..2]).join(name)
    }

    fn marks_of(&self, session: SessionId) -> PathBuf {
        self.root.join("sessions").join(session.to_string())
    }

    fn shown_of(&self, session: SessionId) -> PathBuf {
        self.root.join("shown").join(session.to_string())
    }
}

impl CollectedAttachments {
    pub const fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// A file of content.
#[derive(Debug, Clone, Copy)]
struct ContentFile {
    bytes: u64,
    at: Timestamp,
}

/// The entries of a folder, which need not exist, with names that are text.
fn entries(folder: &Path) -> io::Result<Vec<(String, std::fs::Metadata)>> {
    let read = match std::fs::read_dir(folder) {
        Ok(read) => read,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in read {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        match entry.metadata() {
            Ok(meta) => found.push((name, meta)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The times of a file as the daemon's clock has them.
fn at(now: Timestamp) -> FileTimes {
    let since = Duration::from_millis(now.as_millis().max(0).unsigned_abs());
    FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + since)
}

fn timestamp(at: SystemTime) -> Timestamp {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The name of a copy: part of the id, so that two files of one name are two, and as much of the name as is harmless.
fn shown_name(id: AttachmentId, name: Option<&str>) -> String {
    let harmless = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let name: String = name.unwrap_or("file").chars().map(harmless).collect();
    let from = name.char_indices().rev().map(|(at, _)| at).find(|at| name.len() - at >= SHOWN_NAME_MAX);
    let tail = &name[from.unwrap_or(0)..];
    format!("{}-{}", &id.to_string()[..8], tail.trim_start_matches('.'))
}
