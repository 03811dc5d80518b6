//! Reading what an agent said, straight from the spool.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;

use super::connection::{Link, View};
use crate::runs::folder::Folder;

/// The longest piece.
const PIECE_MAX: usize = 256 * 1024;

/// The stdout of a run from an offset on. What was consumed cannot be read: its place on disk may hold zeroes by now.
#[derive(Debug)]
pub struct Output {
    folder: Folder,
    file: Option<Arc<File>>,
    at: u64,
    /// None for a run that is over.
    live: Option<(Link, View)>,
    /// Of a run that is over.
    consumed: u64,
}

impl Output {
    pub(super) fn of_live(folder: Folder, from: u64, link: Link, view: View) -> Self {
        Self { folder, file: None, at: from, live: Some((link, view)), consumed: 0 }
    }

    pub(super) fn of_ended(folder: Folder, from: u64, consumed: u64) -> Self {
        Self { folder, file: None, at: from, live: None, consumed }
    }

    /// The offset of the next piece.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The next piece, waiting for it. None once the run has ended and all was read.
    ///
    /// Nothing is lost when this is dropped before it is done.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let consumed = self.live.as_ref().map_or(self.consumed, |(link, _)| link.consumed_to());
        if self.at < consumed {
            let text = format!("output before {consumed} was consumed, {} is asked for", self.at);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        loop {
            // Asked before the file is read: what was written before the end is seen.
            let over = match &mut self.live {
                Some((_, view)) => view.borrow_and_update().exit.is_some(),
                None => true,
            };
            let piece = self.read().await?;
            if !piece.is_empty() {
                self.at += piece.len() as u64;
                return Ok(Some(piece));
            }
            if over {
                return Ok(None);
            }
            if let Some((_, view)) = &mut self.live
                && view.changed().await.is_err()
            {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
    }

    async fn read(&mut self) -> io::Result<Bytes> {
        let (held, path, at) = (self.file.clone(), self.folder.file("out"), self.at);
        let (file, piece) = tokio::task::spawn_blocking(move || {
            let file = match held {
                Some(file) => file,
                None => match File::open(path) {
                    Ok(file) => Arc::new(file),
                    // The shim did not come that far.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, Bytes::new())),
                    Err(error) => return Err(error),
                },
            };
            let left = file.metadata()?.len().saturating_sub(at);
            let mut piece = vec![0; usize::try_from(left).unwrap_or(PIECE_MAX).min(PIECE_MAX)];
            let read = if piece.is_empty() { 0 } else { file.read_at(&mut piece, at)? };
            piece.truncate(read);
            Ok((Some(file), Bytes::from(piece)))
        })
        .await
        .map_err(io::Error::other)??;
        self.file = file;
        Ok(piece)
    }
}
