//! What is kept of a program on a terminal after its run: its recording and its last screen, beside the log.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use lanyard_core::session::WindowSize;
use lanyard_core::{RunId, SessionId};
use serde::{Deserialize, Serialize};

use crate::runs::Runs;

/// The folder of what is kept, in the data folder.
const FOLDER: &str = "terminals";
/// Runs of a session whose recordings are kept; the newest.
const RUNS_MAX: usize = 4;
/// Text of a last screen and the lines above it.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The folder of what is kept.
#[derive(Debug, Clone)]
pub struct TerminalArchive {
    root: PathBuf,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRun {
    pub run: RunId,
    pub size: WindowSize,
    pub title: String,
    /// The last screen.
    pub screen: String,
    /// The lines above it, and it.
    pub transcript: String,
}

impl TerminalArchive {
    /// In this data folder.
    #[must_use]
    pub fn in_data(folder: &Path) -> Self {
        Self { root: folder.join(FOLDER) }
    }

    /// In the data folder of these runs.
    #[must_use]
    pub fn beside(runs: &Runs) -> Self {
        Self { root: runs.beside(FOLDER) }
    }

    fn folder(&self, session: SessionId) -> PathBuf {
        self.root.join(session.to_string())
    }

    /// Keeps the end of a run and takes its recording over. Blocks.
    pub(crate) fn keep(&self, session: SessionId, kept: &KeptRun, recording: &Path) -> io::Result<()> {
        let folder = self.folder(session);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let cut = |text: &str| lanyard_core::text::cut(text, TEXT_BYTES_MAX).0.to_owned();
        let kept =
            KeptRun { screen: cut(&kept.screen), transcript: newest(&kept.transcript), ..kept.clone() };
        let aside = folder.join("new");
        std::fs::write(&aside, serde_json::to_vec(&kept).map_err(io::Error::other)?)?;
        match std::fs::rename(recording, folder.join(format!("{}.cast", kept.run))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        std::fs::rename(&aside, folder.join(format!("{}.json", kept.run)))?;
        // Ids of runs are in the order of their beginnings.
        let runs = runs(&folder)?;
        for old in runs.iter().rev().skip(RUNS_MAX) {
            for end in ["cast", "json"] {
                let _ = std::fs::remove_file(folder.join(format!("{old}.{end}")));
            }
        }
        Ok(())
    }

    /// The end of the newest run; nothing before the first has ended. Blocks.
    pub fn newest(&self, session: SessionId) -> io::Result<Option<KeptRun>> {
        let folder = self.folder(session);
        let Some(run) = runs(&folder)?.pop() else { return Ok(None) };
        let text = std::fs::read(folder.join(format!("{run}.json")))?;
        serde_json::from_slice(&text).map(Some).map_err(io::Error::other)
    }

    /// Where the recording of a run is.
    fn recording(&self, session: SessionId, run: RunId) -> PathBuf {
        self.folder(session).join(format!("{run}.cast"))
    }

    /// The recording of the newest run. Blocks.
    pub fn newest_recording(&self, session: SessionId) -> io::Result<Option<Vec<u8>>> {
        match self.newest(session)? {
            Some(kept) => read_recording(&self.recording(session, kept.run)).map(Some),
            None => Ok(None),
        }
    }

    /// Removes all that is kept of a session. Blocks.
    pub fn forget(&self, session: SessionId) -> io::Result<()> {
        match std::fs::remove_dir_all(self.folder(session)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// A recording, without a line that is under way. Blocks.
pub(super) fn read_recording(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = std::fs::read(path)?;
    bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1));
    Ok(bytes)
}

/// The end of a text, from the beginning of a line.
fn newest(text: &str) -> String {
    let from = text.len().saturating_sub(TEXT_BYTES_MAX);
    if from == 0 {
        return text.to_owned();
    }
    let line = text.as_bytes()[from..].iter().position(|byte| *byte == b'\n');
    line.map_or_else(String::new, |at| text[from + at + 1..].to_owned())
}

/// The runs whose end is kept, in order.
fn runs(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut runs: Vec<String> = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        runs.extend(name.to_str().and_then(|name| name.strip_suffix(".json")).map(str::to_owned));
    }
    runs.sort();
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_runs_are_kept_and_forgotten_with_their_session() {
        let dir = tempfile::tempdir().unwrap();
        let archive = TerminalArchive::in_data(dir.path());
        let session = SessionId::from_u128(1);
        assert_eq!(archive.newest(session).unwrap(), None);
        for number in 1..=6_u128 {
            let recording = dir.path().join("recording");
            std::fs::write(&recording, format!("cast {number}")).unwrap();
            let run = RunId::from_u128(number);
            let kept = KeptRun {
                run,
                size: WindowSize::default(),
                title: String::new(),
                screen: format!("screen {number}"),
                transcript: String::new(),
            };
            archive.keep(session, &kept, &recording).unwrap();
            assert_eq!(archive.newest(session).unwrap(), Some(kept));
            assert!(archive.recording(session, run).is_file());
        }
        let left = (1..=6).filter(|number| archive.recording(session, RunId::from_u128(*number)).is_file());
        assert_eq!(left.collect::<Vec<_>>(), [3, 4, 5, 6]);
        archive.forget(session).unwrap();
        archive.forget(session).unwrap();
        assert_eq!(archive.newest(session).unwrap(), None);
    }

    #[test]
    fn of_a_long_transcript_the_newest_lines_are_kept() {
        let text = "a line\n".repeat(TEXT_BYTES_MAX / 4);
        let kept = newest(&text);
        assert!(kept.len() <= TEXT_BYTES_MAX && kept.starts_with("a line\n") && kept.ends_with("a line\n"));
        assert_eq!(newest("short"), "short");
    }
}
