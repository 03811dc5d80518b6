//! Content on its way in: written aside, bounded as it comes, and in its place only when it is whole and on disk.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use lanyard_core::Timestamp;
use lanyard_core::attachment::{AttachmentId, ContentType, SNIFF_BYTES, sniff};

use super::{AttachmentError, Attachments, KeptContent, MODE, at, make_folder, sync_folder};

/// How much may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadBounds {
    /// Bytes of one content.
    pub one_max: u64,
    /// Bytes of all content.
    pub all_max: u64,
}

/// Names of files that are not whole, unique in this process; what an earlier one left is removed when it ends.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// One upload. Dropped before its end, it leaves nothing.
#[derive(Debug)]
pub struct AttachmentUpload<'a> {
    attachments: &'a Attachments,
    bounds: UploadBounds,
    partial: PartialFile,
    hash: Box<blake3::Hasher>,
    head: Vec<u8>,
    bytes: u64,
}

#[derive(Debug)]
struct PartialFile {
    file: File,
    path: PathBuf,
    placed: bool,
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.placed {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Attachments {
    /// Begins an upload.
    pub fn begin(&self, bounds: UploadBounds) -> Result<AttachmentUpload<'_>, AttachmentError> {
        let folder = self.root.join("partial");
        let path = folder.join(format!("{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed)));
        let made = make_folder(&folder)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(MODE).open(&path));
        let file = made.map_err(|source| AttachmentError::Io { path: path.clone(), source })?;
        Ok(AttachmentUpload {
            attachments: self,
            bounds,
            partial: PartialFile { file, path, placed: false },
            hash: Box::default(),
            head: Vec::new(),
            bytes: 0,
        })
    }

    fn settle(
        &self,
        upload: &mut AttachmentUpload<'_>,
        now: Timestamp,
    ) -> Result<KeptContent, AttachmentError> {
        let id = AttachmentId::from_bytes(*upload.hash.finalize().as_bytes());
        let kept = KeptContent { id, bytes: upload.bytes, content: sniff(&upload.head) };
        let place = self.place(id);
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| AttachmentError::Io { path, source }
        };
        let times = at(now);
        let mut held = self.held.lock();
        // The same content again, unless the disk has changed it since.
        if self.read(id).is_ok() {
            File::open(&place).and_then(|file| file.set_times(times)).map_err(io(&place))?;
            held.fresh.insert(id);
            return Ok(kept);
        }
        let replaced = place.symlink_metadata().map_or(0, |file| file.len());
        let total = held.total.saturating_sub(replaced).saturating_add(kept.bytes);
        if total > upload.bounds.all_max {
            return Err(AttachmentError::Full { max: upload.bounds.all_max });
        }
        let letters = self.root.join("content").join(&id.to_string()[..2]);
        make_folder(&letters).map_err(io(&letters))?;
        let PartialFile { file, path, placed } = &mut upload.partial;
        file.set_times(times).and_then(|()| file.sync_all()).map_err(io(path))?;
        std::fs::rename(&*path, &place).map_err(io(&place))?;
        *placed = true;
        sync_folder(&letters).and_then(|()| sync_folder(&self.root.join("content"))).map_err(io(&letters))?;
        held.total = total;
        held.fresh.insert(id);
        Ok(kept)
    }
}

impl AttachmentUpload<'_> {
    pub fn write(&mut self, piece: &[u8]) -> Result<(), AttachmentError> {
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        if self.bytes > self.bounds.one_max {
            return Err(AttachmentError::TooLarge { max: self.bounds.one_max });
        }
        let room = SNIFF_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(&piece[..piece.len().min(room)]);
        self.hash.update(piece);
        let written = self.partial.file.write_all(piece);
        written.map_err(|source| AttachmentError::Io { path: self.partial.path.clone(), source })
    }

    /// The type of what came so far.
    #[must_use]
    pub fn content(&self) -> ContentType {
        sniff(&self.head)
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Puts the content into its place. On disk when it returns.
    pub fn finish(mut self, now: Timestamp) -> Result<KeptContent, AttachmentError> {
        if self.bytes == 0 {
            return Err(AttachmentError::Empty);
        }
        self.attachments.settle(&mut self, now)
    }
}
