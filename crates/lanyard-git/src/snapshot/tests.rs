//! Snapshots of real repositories in temporary folders.

mod calls;
mod content;
mod hostile;
mod kept;
mod own_store;
mod places;
mod random;
mod safety;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use super::*;

/// A folder with a repository in it, gone at the end of the test.
struct Lab {
    _temp: tempfile::TempDir,
    top: PathBuf,
    /// How many files were written by chance.
    puts: AtomicUsize,
}

/// All that a restore has to bring back, in a form that can be compared and read.
#[derive(Debug, PartialEq, Eq)]
struct State {
    files: BTreeMap<PathBuf, String>,
    entries: String,
    /// The index against HEAD, the worktree against the index.
    changes: [String; 2],
    /// Empty when line ends are converted: git then calls a file changed when its size is not what it was, without
    /// looking into it, and a restore cannot tell.
    status: String,
}

/// All that neither a snapshot nor a restore may touch.
#[derive(Debug, PartialEq, Eq)]
struct Untouched {
    head: String,
    refs: String,
    logs: BTreeMap<PathBuf, String>,
    config: String,
}

impl Lab {
    fn empty() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap().join("work tree");
        fs::create_dir(&top).unwrap();
        Self { _temp: temp, top, puts: AtomicUsize::new(0) }
    }

    /// A repository without commits.
    fn init() -> Self {
        let lab = Self::empty();
        lab.git(&["init", "-q", "-b", "main"]);
        lab
    }

    /// A repository with a commit of `a`, `b`, `sub/c` and `.gitignore`, which ignores `*.log` and `out/`.
    fn new() -> Self {
        let lab = Self::init();
        lab.write("a", "a\n");
        lab.write("b", "b\n");
        lab.write("sub/c", "c\n");
        lab.write(".gitignore", "*.log\nout/\n");
        lab.commit("first");
        lab
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.top.join(path)
    }

    fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: impl AsRef<Path>) -> String {
        String::from_utf8_lossy(&fs::read(self.path(path)).unwrap()).into_owned()
    }

    fn git<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        git_in(&self.top, args).unwrap()
    }

    /// Git with the objects of the store beside the repository's own.
    fn kept<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        let store = self.store();
        let output = Command::new("git")
            .args(args)
            .current_dir(&self.top)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", store.join("objects"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The store of the repository's checkpoints; there is one in a test.
    fn store(&self) -> PathBuf {
        let paths = fs::read_dir(checkpoints(&self.top).0).unwrap().map(|entry| entry.unwrap().path());
        let mut stores = paths.filter(|path| path.extension() == Some("git".as_ref()));
        stores.next().unwrap()
    }

    fn take(&self, name: &str) -> Snapshot {
        take(&self.top, "s1", name, "why").unwrap()
    }

    fn restore(&self, snapshot: &Snapshot) -> RestoredFiles {
        restore(&self.top, &snapshot.commit).unwrap()
    }

    fn state(&self) -> State {
        State {
            files: files_in(&self.top),
            entries: self.git(&["ls-files", "-z", "--stage"]),
            changes: [
                self.git(&["diff", "--cached", "--raw", "-z", "--ita-visible-in-index"]),
                self.git(&["diff", "--raw", "-z"]),
            ],
            status: if self.path(".gitattributes").exists() {
                String::new()
            } else {
                self.git(&["status", "--porcelain=v2", "-z", "--untracked-files=all"])
            },
        }
    }

    fn untouched(&self) -> Untouched {
        let git_dir = self.top.join(self.git(&["rev-parse", "--git-common-dir"]).trim());
        Untouched {
            head: fs::read_to_string(self.git_dir().join("HEAD")).unwrap(),
            refs: self.git(&["for-each-ref"]),
            logs: files_in(&git_dir.join("logs")),
            config: fs::read_to_string(git_dir.join("config")).unwrap(),
        }
    }

    fn git_dir(&self) -> PathBuf {
        PathBuf::from(self.git(&["rev-parse", "--absolute-git-dir"]).trim_end())
    }

    /// The index's bytes, time and inode.
    fn index(&self) -> (Vec<u8>, SystemTime, u64) {
        let path = self.git_dir().join("index");
        let data = fs::metadata(&path).unwrap();
        (fs::read(&path).unwrap(), data.modified().unwrap(), data.ino())
    }

    /// Takes a snapshot and looks that nothing in the repository tells of it.
    fn take_unseen(&self, name: &str) -> Snapshot {
        let before = (self.untouched(), self.index());
        let snapshot = self.take(name);
        assert_eq!(before.1, self.index());
        assert_eq!(before.0, self.untouched());
        self.no_leftovers();
        snapshot
    }

    /// Restores and looks that it is all as it was.
    fn restore_to(&self, snapshot: &Snapshot, state: &State) -> RestoredFiles {
        let before = self.untouched();
        let restored = self.restore(snapshot);
        assert_eq!(&self.state(), state);
        assert_eq!(before, self.untouched());
        self.git(&["fsck", "--connectivity-only", "--no-dangling"]);
        self.no_leftovers();
        restored
    }

    fn no_leftovers(&self) {
        let names = fs::read_dir(self.git_dir()).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = names
            .filter(|name| {
                let name = name.to_string_lossy();
                name.starts_with("lanyard-") || name.as_bytes().ends_with(b".lock")
            })
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The stores of a test's repository: beside its folder, and their folder.
fn checkpoints(workspace: &Path) -> (PathBuf, CheckpointStore) {
    let top = workspace.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(workspace);
    // Git itself would wait for some of the files that tests put into a repository.
    let top = if top.join(".git").is_file() {
        let common = git_in(top, &["rev-parse", "--path-format=absolute", "--git-common-dir"]).unwrap();
        Path::new(common.trim_end()).parent().unwrap().to_owned()
    } else {
        top.to_owned()
    };
    let data = top.parent().unwrap();
    (data.join("checkpoints"), CheckpointStore::new(data))
}

fn take(workspace: &Path, session: &str, name: &str, words: &str) -> Result<Snapshot, SnapshotError> {
    checkpoints(workspace).1.take(workspace, session, name, words)
}

fn list(workspace: &Path, session: &str) -> Result<Vec<Snapshot>, SnapshotError> {
    checkpoints(workspace).1.list(workspace, session)
}

fn diff(workspace: &Path, from: &str, to: DiffTo<'_>) -> Result<Diff, SnapshotError> {
    checkpoints(workspace).1.diff(workspace, from, to)
}

fn restore(workspace: &Path, commit: &str) -> Result<RestoredFiles, SnapshotError> {
    checkpoints(workspace).1.restore(workspace, commit)
}

fn remove_all(workspace: &Path, session: &str) -> Result<u32, SnapshotError> {
    checkpoints(workspace).1.remove_all(session)
}

fn git_in<S: AsRef<OsStr>>(folder: &Path, args: &[S]) -> Result<String, String> {
    let output = Command::new("git")
        .args(["-c", "user.name=Tester", "-c", "user.email=tester@localhost"])
        .args(["-c", "protocol.file.allow=always", "-c", "core.hooksPath=/dev/null"])
        .args(args)
        .current_dir(if folder.is_dir() { folder } else { Path::new("/") })
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    if output.status.success() {
        // Names need not be UTF-8; what differs in bytes is escaped differently too.
        return Ok(output.stdout.escape_ascii().to_string().replace("\\n", "\n"));
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Every file below a folder, git's own left out: its kind, mode and content.
fn files_in(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut open = vec![top.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            let data = fs::symlink_metadata(&path).unwrap();
            let shown = if data.is_symlink() {
                format!("link {}", fs::read_link(&path).unwrap().display())
            } else if data.is_dir() {
                if path.file_name() != Some(".git".as_ref()) {
                    open.push(path);
                }
                continue;
            } else {
                let bytes = fs::read(&path).unwrap_or_default();
                format!("{:o} {}", data.permissions().mode() & 0o100, bytes.escape_ascii())
            };
            files.insert(path.strip_prefix(top).unwrap().to_owned(), shown);
        }
    }
    files
}
