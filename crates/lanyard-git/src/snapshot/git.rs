//! One call of the `git` program: bounded in time and output, deaf to the caller's environment, and running no program
//! that a repository's config or attributes name (`disarm`).
//!
//! Knows nothing of snapshots. Blocks the calling thread; the group of processes it starts is gone when it returns late.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use lanyard_core::Backoff;
use rustix::process::{Pid, Signal, kill_process_group};

use super::SnapshotError;
use super::disarm::{self, Disarmed};
use super::live;

/// For a call that looks at one thing.
pub(crate) const QUICK_MAX: Duration = Duration::from_secs(30);
/// For a call that may read or write every file of the worktree.
pub(crate) const WORK_MAX: Duration = Duration::from_mins(3);
/// Lists of paths; a million long paths fit.
const OUTPUT_MAX: usize = 256 * 1024 * 1024;
/// What is kept of the complaints; the rest is read and dropped.
const STDERR_MAX: usize = 8 * 1024;
/// After its output ended, a process is usually gone at once: first short looks, then longer ones.
const LOOKS: Backoff = Backoff::new(Duration::from_micros(200), Duration::from_millis(20));
const READ_BYTES: usize = 64 * 1024;

/// Settings that win over the repository's and the user's: nothing runs on the side, nothing is logged, nothing else
/// is written. `safecrlf` would refuse files whose line ends cannot be converted back; those are kept raw instead.
const SETTINGS: [&str; 25] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "core.ignoreStat=false",
    "core.safecrlf=false",
    "core.logAllRefUpdates=false",
    "index.sparse=false",
    "index.skipHash=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "advice.addEmbeddedRepo=false",
    "i18n.commitEncoding=UTF-8",
    "credential.helper=",
    "core.editor=:",
    "sequence.editor=:",
    "core.sshCommand=false",
    "protocol.allow=never",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "merge.verifySignatures=false",
    "gpg.program=false",
    // Refs of checkpoints are looked for as files.
    "init.defaultRefFormat=files",
    // A worktree is moved after it was made.
    "worktree.useRelativePaths=false",
];

/// How and where git is called. Cheap to change with the `with_*` functions.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    program: OsString,
    folder: PathBuf,
    index: Option<PathBuf>,
    /// Git's folder and the worktree, where they are not to be looked for. A bare repository has no worktree.
    elsewhere: Option<(PathBuf, Option<PathBuf>)>,
    /// Where objects are written, and where more are read.
    objects: Option<(PathBuf, PathBuf)>,
    /// A lock that the process holds for as long as it lives, also if the daemon is killed meanwhile.
    held: Option<Arc<File>>,
    time_max: Duration,
    /// The user's branches move: git notes it where the user would look for it.
    logged: bool,
    /// Overrides for the programs that the repository's config names; looked up once.
    disarmed: Arc<OnceLock<Disarmed>>,
    /// The same for repositories inside the worktree.
    inner: Vec<Disarmed>,
}

/// What a call left behind.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    /// Output was left out because it was longer than asked for; the process was ended.
    pub(crate) cut: bool,
}

impl Git {
    pub(crate) fn new(folder: &Path) -> Self {
        Self::with_program(OsStr::new("git"), folder)
    }

    pub(crate) fn with_program(program: &OsStr, folder: &Path) -> Self {
        Self {
            program: program.to_owned(),
            folder: folder.to_owned(),
            index: None,
            elsewhere: None,
            objects: None,
            held: None,
            time_max: QUICK_MAX,
            logged: false,
            disarmed: Arc::default(),
            inner: Vec::new(),
        }
    }

    /// Where it is called.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn with_index(&self, index: &Path) -> Self {
        Self { index: Some(index.to_owned()), ..self.clone() }
    }

    /// The same repository with another folder as its worktree.
    pub(crate) fn with_worktree(&self, git_dir: &Path, worktree: &Path) -> Self {
        Self {
            folder: worktree.to_owned(),
            elsewhere: Some((git_dir.to_owned(), Some(worktree.to_owned()))),
            ..self.clone()
        }
    }

    /// For a bare repository.
    pub(crate) fn bare(git_dir: &Path) -> Self {
        Self { elsewhere: Some((git_dir.to_owned(), None)), ..Self::new(git_dir) }
    }

    /// Objects are written to the folder `write` and read from both.
    pub(crate) fn with_objects(&self, write: &Path, read: &Path) -> Self {
        Self { objects: Some((write.to_owned(), read.to_owned())), ..self.clone() }
    }

    /// Objects are the repository's own again.
    pub(crate) fn own_objects(&self) -> Self {
        Self { objects: None, ..self.clone() }
    }

    /// For calls without input that must not outlive the lock.
    pub(crate) fn holding(&self, lock: &Arc<File>) -> Self {
        Self { held: Some(lock.clone()), ..self.clone() }
    }

    pub(crate) fn with_time(&self, time_max: Duration) -> Self {
        Self { time_max, ..self.clone() }
    }

    /// For a call that moves a branch the user works on.
    pub(crate) fn with_log(&self) -> Self {
        Self { logged: true, ..self.clone() }
    }

    /// For a call that looks into repositories inside the worktree.
    pub(crate) fn with_inner(&self, inner: Vec<Disarmed>) -> Self {
        Self { inner, ..self.clone() }
    }

    /// Overrides for every program that the config around the folder names.
    pub(crate) fn disarmed(&self) -> Result<&Disarmed, SnapshotError> {
        if let Some(disarmed) = self.disarmed.get() {
            return Ok(disarmed);
        }
        let found = Disarmed::read(self)?;
        Ok(self.disarmed.get_or_init(|| found))
    }

    /// The output of a call that has to succeed.
    pub(crate) fn read<S: AsRef<OsStr>>(&self, args: &[S], input: &[u8]) -> Result<Vec<u8>, SnapshotError> {
        let output = self.run(args, input, OUTPUT_MAX)?;
        if output.cut {
            return Err(SnapshotError::TooLarge { what: describe(args) });
        }
        if !output.status.success() {
            return Err(failed(args, output.stderr));
        }
        Ok(output.stdout)
    }

    /// The same for calls that answer with one line, such as an object's name.
    pub(crate) fn read_line<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        input: &[u8],
    ) -> Result<String, SnapshotError> {
        let text = self.read(args, input)?;
        Ok(String::from_utf8_lossy(&text).trim_end().to_owned())
    }

    /// A call whose outcome the caller judges. At most `output_max` bytes of output are kept.
    pub(crate) fn run<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        input: &[u8],
        output_max: usize,
    ) -> Result<Output, SnapshotError> {
        let mut command = self.command(args);
        if disarm::may_run_programs(args) {
            let all = std::iter::once(self.disarmed()?).chain(&self.inner);
            command.envs(disarm::environment(all));
        }
        let output = bounded(command, input, output_max, self.time_max);
        output
            .map_err(|error| self.not_started(&error))?
            .ok_or_else(|| SnapshotError::TooLong { what: describe(args), seconds: self.time_max.as_secs() })
    }

    fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            if [b"GIT_".as_slice(), b"LANYARD_"].iter().any(|own| name.as_bytes().starts_with(own)) {
                command.env_remove(name);
            }
        }
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "true")
            .env("GIT_PAGER", "cat")
            .env("GIT_EDITOR", ":")
            .env("GIT_SEQUENCE_EDITOR", ":")
            .env_remove("SSH_ASKPASS")
            // Nothing here refreshes the real index in passing, nor fetches what a partial clone left out.
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1");
        for role in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{role}_NAME"), "Lanyard")
                .env(format!("GIT_{role}_EMAIL"), "lanyard@localhost");
        }
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        if let Some((git_dir, worktree)) = &self.elsewhere {
            command.env("GIT_DIR", git_dir);
            command.envs(worktree.iter().map(|worktree| ("GIT_WORK_TREE", worktree)));
        }
        if let Some((write, read)) = &self.objects {
            command.env("GIT_OBJECT_DIRECTORY", write).env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(read));
        }
        let held = self.held.as_ref().and_then(|lock| lock.try_clone().ok());
        command.arg("--no-pager");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        if self.logged {
            command.args(["-c", "core.logAllRefUpdates=true"]);
        }
        command.args(args).current_dir(&self.folder).stdin(held.map_or_else(Stdio::piped, Stdio::from));
        command
    }

    fn not_started(&self, error: &io::Error) -> SnapshotError {
        if !self.folder.is_dir() {
            return SnapshotError::Gone { folder: self.folder.clone() };
        }
        if error.kind() == io::ErrorKind::NotFound {
            return SnapshotError::NoGit;
        }
        SnapshotError::Io { what: "start git".to_owned(), source: io::Error::from(error.kind()) }
    }
}

/// Runs a program to its end in a process group of its own. At most `output_max` bytes of output are kept; nothing is
/// answered when it takes longer than `time_max`, and then it was ended with all that it started.
pub(crate) fn bounded(
    mut command: Command,
    input: &[u8],
    output_max: usize,
    time_max: Duration,
) -> io::Result<Option<Output>> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let mut living = live::Living::new(&child);
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_owned();
        // A process that ends without reading all of it says why by itself.
        std::thread::spawn(move || stdin.write_all(&input).ok());
    }
    let stdout = child.stdout.take().map(|pipe| drain(pipe, output_max, After::Stop));
    let stderr = child.stderr.take().map(|pipe| drain(pipe, STDERR_MAX, After::Discard));
    let ended = finish((&mut child, &mut living), stdout, stderr, now() + time_max);
    if ended.is_none() {
        drop(living);
        end(&mut child);
    }
    Ok(ended.map(|(status, out, err)| {
        let stderr = String::from_utf8_lossy(&err.bytes).trim().to_owned();
        Output { status, stdout: out.bytes, stderr, cut: out.cut }
    }))
}

/// The error of a call that failed, in its own words.
pub(crate) fn failed<S: AsRef<OsStr>>(args: &[S], stderr: String) -> SnapshotError {
    if stderr.contains("dubious ownership") {
        return SnapshotError::NotOwner { stderr };
    }
    SnapshotError::Git { what: describe(args), stderr }
}

pub(crate) fn describe<S: AsRef<OsStr>>(args: &[S]) -> String {
    let name = args.first().map(|arg| arg.as_ref().to_string_lossy().into_owned()).unwrap_or_default();
    format!("git {name}")
}

/// A folder in a list that is separated by colons.
fn quoted(path: &Path) -> OsString {
    let mut text = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            b'\n' => text.extend(b"\\n"),
            byte => text.push(*byte),
        }
    }
    text.push(b'"');
    OsString::from_vec(text)
}

/// A path as git printed it.
pub(crate) fn path_of(mut printed: Vec<u8>) -> PathBuf {
    if printed.last() == Some(&b'\n') {
        printed.pop();
    }
    PathBuf::from(OsString::from_vec(printed))
}

/// The records of a list that ends each with a zero byte.
pub(crate) fn records(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|record| !record.is_empty())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// Close the pipe: the writer is told by it.
    Stop,
    /// Read on, so that the writer is not blocked.
    Discard,
}

#[derive(Debug, Default)]
struct Drained {
    bytes: Vec<u8>,
    cut: bool,
}

/// Reads a pipe on a thread of its own, because a filter that outlives git may hold it open.
fn drain(mut pipe: impl Read + Send + 'static, max: usize, after: After) -> Receiver<Drained> {
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut drained = Drained::default();
        let mut chunk = vec![0; READ_BYTES];
        loop {
            let count = match pipe.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let room = max.saturating_sub(drained.bytes.len());
            drained.bytes.extend_from_slice(&chunk[..count.min(room)]);
            drained.cut |= count > room;
            if drained.cut && after == After::Stop {
                break;
            }
        }
        // The caller may have given up.
        sender.send(drained).ok();
    });
    receiver
}

/// Waits for both pipes and the process; nothing when the deadline came first.
fn finish(
    (child, living): (&mut Child, &mut live::Living),
    stdout: Option<Receiver<Drained>>,
    stderr: Option<Receiver<Drained>>,
    deadline: Instant,
) -> Option<(ExitStatus, Drained, Drained)> {
    let out = stdout?.recv_timeout(deadline.saturating_duration_since(now())).ok()?;
    if out.cut {
        // It would end by itself at its next write; not waiting for that is quicker.
        child.kill().ok();
    }
    let err = stderr?.recv_timeout(deadline.saturating_duration_since(now())).ok()?;
    let mut backoff = LOOKS;
    loop {
        if let Some(status) = living.try_wait(child).ok()? {
            return Some((status, out, err));
        }
        if now() >= deadline {
            return None;
        }
        // sleep: the standard library has no wait with a bound; the output has ended, so this is short.
        std::thread::sleep(backoff.pause());
    }
}

/// Ends the process and all it started. It is not reaped yet, so the group's number is still its own.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        kill_process_group(group, Signal::KILL).ok();
    }
    child.kill().ok();
    child.wait().ok();
}

#[expect(clippy::disallowed_methods, reason = "a bound on how long a process may take, never recorded")]
fn now() -> Instant {
    Instant::now()
}
