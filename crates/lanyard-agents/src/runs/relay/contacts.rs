//! Which of its MCP servers an agent has reached. Kept in a file of the run's folder, for the daemon that runs when
//! somebody wants to know.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::runs::folder::private;

const FILE: &str = "contacts.json";
/// Servers that are remembered. An agent is offered a few; the names come from addresses it was given.
const SERVERS_MAX: usize = 128;
/// Longest name of a server that is remembered.
const NAME_BYTES_MAX: usize = 256;
/// Larger files are not read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Servers by their names in addresses: true once a first request was answered, false while the only ones failed.
pub(crate) type Reached = BTreeMap<String, bool>;

#[derive(Debug)]
pub(crate) struct Contacts {
    folder: PathBuf,
    reached: Mutex<Reached>,
}

impl Contacts {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, reached: Mutex::default() }
    }

    /// Notes the outcome of a first request. One success counts for good.
    pub(super) fn note(&self, server: &str, answered: bool) {
        let mut reached = self.reached.lock();
        let known = reached.get(server).copied();
        let is_new = known.is_none() && reached.len() < SERVERS_MAX && server.len() <= NAME_BYTES_MAX;
        if is_new || (known == Some(false) && answered) {
            reached.insert(server.to_owned(), answered);
            // A full disk costs a remark about the agent's tools, not the tools.
            let _ = write(&self.folder, &reached);
        }
    }
}

fn write(folder: &Path, reached: &Reached) -> std::io::Result<()> {
    let aside = folder.join(format!("{FILE}.new"));
    let mut file = private().write(true).create(true).truncate(true).open(&aside)?;
    file.write_all(&serde_json::to_vec(reached)?)?;
    std::fs::rename(aside, folder.join(FILE))
}

/// The contacts of a run; none where no relay has noted any.
pub(crate) fn read(folder: &Path) -> Reached {
    let mut text = Vec::new();
    let read = std::fs::File::open(folder.join(FILE))
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut text));
    read.ok().and_then(|_| serde_json::from_slice(&text).ok()).unwrap_or_default()
}
