//! Where checkpoints are kept: a bare repository of Lanyard's own for every repository that sessions work in.
//!
//! The user's repository gets neither refs nor objects, so `git log --all` and every program that walks its refs see
//! nothing of it, and its garbage collection has no say: a store holds all objects of its checkpoints (`transfer`). Decision
//! 0039 has the reasons.
//!
//! A store is found by the path of the repository's common folder; linked worktrees share one. Refs are files and never
//! packed, so that a session's refs are a folder that is there or not.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::git::{Git, WORK_MAX, path_of};
use super::message::check_name;
use super::repo::{Repo, io_error};
use super::{Snapshot, SnapshotError, old_refs, take};

/// Checkpoints of sessions are below this, each in a folder of the session's name.
pub(super) const ROOT: &str = "refs/lanyard";
/// Waiting for a lock: looks, and the pause between two.
const LOCK_LOOKS: u32 = 600;
/// The same where the next call will do: a program that just starts holds what it inherits for a moment.
const TIDY_LOOKS: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// A store is packed anew with more packs than this, or more loose objects in one of their 256 folders.
const PACKS_MAX: usize = 50;
const LOOSE_MAX: usize = 27;
const LOOSE_FOLDER: &str = "17";
/// The ending of a file that says that a store holds objects of removed checkpoints.
const UNTIDY: &str = "untidy";
/// Says that old checkpoints were moved.
const MOVED: &str = "moved";
/// Characters of a repository's own name in the name of its store.
const LABEL_MAX: usize = 40;

/// All stores of a data folder.
#[derive(Debug, Clone)]
pub struct CheckpointStore {
    root: PathBuf,
}

/// How a store's lock is held. It goes with the value, and with a process that was started with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// To read and to add.
    Shared,
    /// To remove objects, or to change the worktree.
    Alone,
}

/// A workspace's repository and the store of its checkpoints, locked.
#[derive(Debug)]
pub(super) struct OpenedStore {
    /// Writes objects into the store and reads those of the repository too.
    pub(super) repo: Repo,
    /// The objects of the repository itself.
    pub(super) objects: PathBuf,
    /// The store alone.
    pub(super) own: Git,
    pub(super) store: PathBuf,
    _lock: Arc<File>,
}

impl CheckpointStore {
    /// The stores in a data folder; none need to be there yet.
    #[must_use]
    pub fn new(data_dir: &Path) -> Self {
        Self { root: data_dir.join("checkpoints") }
    }

    /// Finds a workspace's repository and its store, which is made if it is missing. Checkpoints that an older Lanyard kept
    /// as refs of the repository are moved on the way.
    pub(super) fn place(
        &self,
        workspace: &Path,
        session: Option<&str>,
        hold: Hold,
    ) -> Result<OpenedStore, SnapshotError> {
        let repo = Repo::find(workspace)?;
        let objects =
            path_of(repo.git.read(&["rev-parse", "--path-format=absolute", "--git-path", "objects"], b"")?);
        let objects = objects.canonicalize().unwrap_or(objects);
        let common = objects.parent().unwrap_or(&objects);
        let format = repo.git.read_line(&["rev-parse", "--show-object-format"], b"")?;
        let store = self.root.join(store_name(common, &format));
        self.make_root()?;
        let lock = lock(&store, hold)?;
        if !store.is_dir() {
            make(&store, common, &format)?;
        }
        let own = Git::bare(&store);
        let git = repo.git.with_objects(&store.join("objects"), &objects);
        let place = OpenedStore { repo: Repo { git, ..repo }, objects, own, store, _lock: lock };
        if let Some(session) = session
            && let Err(error) = old_refs::move_session(&place, session)
        {
            tracing::warn!(session, %error, "checkpoints of an older version stay in the repository");
        }
        Ok(place)
    }

    fn make_root(&self) -> Result<(), SnapshotError> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.root);
        made.map_err(|source| io_error("make the folder for checkpoints", source))
    }

    /// Whether the checkpoints of an older version were looked for in all known workspaces.
    #[must_use]
    pub fn has_moved(&self) -> bool {
        self.root.join(MOVED).exists()
    }

    pub fn set_moved(&self) {
        if self.make_root().is_ok() {
            // A mark that cannot be written is written after the next start.
            File::create(self.root.join(MOVED)).ok();
        }
    }

    /// The stores there are.
    fn stores(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.root) else { return Vec::new() };
        let paths = entries.flatten().map(|entry| entry.path());
        let mut stores: Vec<PathBuf> =
            paths.filter(|path| path.extension() == Some("git".as_ref()) && path.is_dir()).collect();
        stores.sort();
        stores
    }

    /// A session's checkpoints, oldest first; those of the same second by name.
    pub fn list(&self, workspace: &Path, session: &str) -> Result<Vec<Snapshot>, SnapshotError> {
        check_name(session)?;
        let place = self.place(workspace, Some(session), Hold::Shared)?;
        take::list_in(&place.own, session)
    }

    /// The names of all sessions that have checkpoints.
    #[must_use]
    pub fn sessions(&self) -> BTreeSet<String> {
        let folders = self.stores().into_iter().filter_map(|store| fs::read_dir(store.join(ROOT)).ok());
        let names = folders.flat_map(Iterator::flatten).map(|entry| entry.file_name());
        names.filter_map(|name| name.into_string().ok()).collect()
    }

    /// How many checkpoints of a session there are, wherever its workspace was.
    pub fn count(&self, session: &str) -> Result<u32, SnapshotError> {
        check_name(session)?;
        let mut count = 0_usize;
        for store in self.holding(session) {
            count += take::list_in(&Git::bare(&store), session)?.len();
        }
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Forgets a session's checkpoints, wherever its workspace was. [`Self::tidy`] removes their objects. Answers how many
    /// there were.
    pub fn remove_all(&self, session: &str) -> Result<u32, SnapshotError> {
        check_name(session)?;
        let mut count = 0;
        for store in self.holding(session) {
            let _lock = lock(&store, Hold::Shared)?;
            mark(&store)?;
            let own = Git::bare(&store);
            let refs =
                own.read(&["for-each-ref", "--format=%(refname)", &format!("{ROOT}/{session}/")], b"")?;
            let refs = String::from_utf8_lossy(&refs).into_owned();
            let lines: String = refs.lines().flat_map(|name| ["delete ", name, "\n"]).collect();
            own.read(&["update-ref", "--no-deref", "--stdin"], lines.as_bytes())?;
            count += u32::try_from(refs.lines().count()).unwrap_or(u32::MAX);
        }
        Ok(count)
    }

    fn holding(&self, session: &str) -> Vec<PathBuf> {
        self.stores().into_iter().filter(|store| store.join(ROOT).join(session).is_dir()).collect()
    }

    /// Has [`Self::tidy`] look at every store.
    pub fn mark_all(&self) {
        for store in self.stores() {
            mark(&store).ok();
        }
    }

    /// Removes objects that belong to no checkpoint any more, and stores that hold none. A store in use is left for the
    /// next call, one that fails for the next removal.
    pub fn tidy(&self) -> Result<(), SnapshotError> {
        let mut outcome = Ok(());
        for store in self.stores() {
            let mark = beside(&store, UNTIDY);
            if !mark.exists() && !overgrown(&store) {
                continue;
            }
            let lock = match lock_within(&store, Hold::Alone, TIDY_LOOKS) {
                Err(SnapshotError::StoreBusy { .. }) => continue,
                lock => lock?,
            };
            let done = tidy_one(&store, &lock);
            fs::remove_file(&mark).ok();
            outcome = outcome.and(done);
        }
        outcome
    }
}

fn tidy_one(store: &Path, lock: &Arc<File>) -> Result<(), SnapshotError> {
    let own = Git::bare(store).holding(lock).with_time(WORK_MAX);
    if own.read(&["for-each-ref", "--count=1", ROOT], b"")?.is_empty() {
        return fs::remove_dir_all(store).map_err(|source| io_error("remove a store of checkpoints", source));
    }
    own.read(&["repack", "-a", "-d", "-q", "--window=0"], b"")?;
    own.read(&["prune", "--expire=now"], b"")?;
    Ok(())
}

fn mark(store: &Path) -> Result<(), SnapshotError> {
    let marked = OpenOptions::new().create(true).append(true).mode(0o600).open(beside(store, UNTIDY));
    marked.map(drop).map_err(|source| io_error("mark a store of checkpoints", source))
}

/// More than git reads quickly.
fn overgrown(store: &Path) -> bool {
    let count = |folder: PathBuf| fs::read_dir(folder).map_or(0, Iterator::count);
    let objects = store.join("objects");
    // A pack is a file and its index, often with a third one.
    count(objects.join("pack")) / 2 > PACKS_MAX || count(objects.join(LOOSE_FOLDER)) > LOOSE_MAX
}

/// The repository's own name for people, a hash of its path, and what its objects are named by.
fn store_name(common: &Path, format: &str) -> String {
    let top = if common.file_name() == Some(".git".as_ref()) { common.parent() } else { Some(common) };
    let label = top.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let label: String = label.chars().map(plain).take(LABEL_MAX).collect();
    let hash = blake3::hash(common.as_os_str().as_bytes()).to_hex();
    let hash = hash.get(..16).unwrap_or_default();
    let format = if format == "sha1" { String::new() } else { format!("-{format}") };
    format!("{label}-{hash}{format}.git")
}

/// A file of the same name as the store, with another ending.
fn beside(store: &Path, ending: &str) -> PathBuf {
    store.with_extension(ending)
}

/// Made aside and renamed: a store that is there is whole.
fn make(store: &Path, common: &Path, format: &str) -> Result<(), SnapshotError> {
    let aside = beside(store, &format!("new-{}-{:016x}", std::process::id(), fastrand::u64(..)));
    fs::DirBuilder::new().mode(0o700).create(&aside).map_err(|source| io_error("make a store", source))?;
    let format = format!("--object-format={format}");
    let args = ["init", "--quiet", "--bare", "--template=", &format, "."];
    Git::new(&aside).read(&args, b"")?;
    let about = [b"Checkpoints of ", common.as_os_str().as_bytes(), b"\n"].concat();
    fs::write(aside.join("description"), about).map_err(|source| io_error("describe a store", source))?;
    match fs::rename(&aside, store) {
        Ok(()) => Ok(()),
        // Another call was quicker.
        Err(_) if store.is_dir() => {
            fs::remove_dir_all(&aside).ok();
            Ok(())
        }
        Err(source) => Err(io_error("make a store", source)),
    }
}

fn lock(store: &Path, hold: Hold) -> Result<Arc<File>, SnapshotError> {
    lock_within(store, hold, LOCK_LOOKS)
}

fn lock_within(store: &Path, hold: Hold, looks: u32) -> Result<Arc<File>, SnapshotError> {
    for _ in 0..looks {
        if let Some(lock) = try_lock(store, hold)? {
            return Ok(lock);
        }
        // sleep: the standard library has no wait with a bound for a file's lock.
        std::thread::sleep(LOCK_PAUSE);
    }
    Err(SnapshotError::StoreBusy { store: store.to_owned() })
}

/// Nothing when it is held another way. The lock's file stays: removing it would let two hold it.
fn try_lock(store: &Path, hold: Hold) -> Result<Option<Arc<File>>, SnapshotError> {
    let fail = |source| io_error("lock a store of checkpoints", source);
    let path = beside(store, "lock");
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path).map_err(fail)?;
    let locked = match hold {
        Hold::Shared => file.try_lock_shared(),
        Hold::Alone => file.try_lock(),
    };
    match locked {
        Ok(()) => Ok(Some(Arc::new(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(fail(source)),
    }
}
