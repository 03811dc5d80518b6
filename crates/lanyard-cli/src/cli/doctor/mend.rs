//! `lanyard doctor --fix`: what can be mended without losing anything. Each step is named before it is done.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use lanyard_api::home::{Claim, Home};

use super::Finding;
use crate::context::Context;
use crate::failure::Failure;

/// Something that is mended without losing anything.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mend {
    /// A folder or file that others can use.
    Close { path: PathBuf, mode: u32 },
    /// A folder that is missing.
    Make { path: PathBuf },
    /// A socket without a listener, or a file that an interrupted command left.
    Remove { path: PathBuf, why: &'static str },
}

/// Does what there is to do.
pub(super) fn mend(context: &Context) -> Result<(), Failure> {
    let (found, _held) = find(context);
    for mend in &found {
        context.out.note(&format!("fix: {}", mend.sentence()));
        mend.carry_out().map_err(|error| {
            let title = format!("cannot mend it ({}): {error}", mend.sentence());
            Failure::local("doctor_fix_failed", title, "mend it by hand, then run `lanyard doctor` again")
        })?;
    }
    if found.is_empty() {
        context.out.note("Nothing to fix.");
    }
    Ok(())
}

/// What is found that only `--fix` tells of; modes are findings of their own.
pub(super) fn findings(context: &Context) -> Vec<Finding> {
    let (found, _held) = find(context);
    let told = found.into_iter().filter_map(|mend| match mend {
        Mend::Close { .. } | Mend::Make { .. } => None,
        Mend::Remove { path, why } => {
            Some(Finding::warn("left over", format!("{} ({why})", path.display()), "lanyard doctor --fix"))
        }
    });
    told.collect()
}

/// Everything that can be mended, with the claim that keeps a daemon from starting meanwhile.
fn find(context: &Context) -> (Vec<Mend>, Option<Claim>) {
    let home = &context.home;
    // Files are left over only where no daemon has the folder.
    let claim = if home.lock().exists() { home.claim().ok() } else { None };
    let mut found = in_home(home, claim.is_some());
    if let Some(folder) = context.config_path.parent() {
        found.extend(missing(folder));
        let name = context.config_path.file_name().map(|name| name.to_string_lossy().into_owned());
        found.extend(unfinished(folder, &format!(".{}.", name.unwrap_or_default()), ".new"));
    }
    (found, claim)
}

fn in_home(home: &Home, free: bool) -> Vec<Mend> {
    let mut found: Vec<Mend> = missing(&home.dir).into_iter().collect();
    found.extend(open_to_others(&home.dir, 0o700));
    found.extend(open_to_others(&home.token(), 0o600));
    found.extend(unfinished(&home.dir, ".doctor-", ""));
    let socket = home.socket();
    if free && socket.symlink_metadata().is_ok_and(|found| found.file_type().is_socket()) {
        found.push(Mend::Remove { path: socket, why: "a socket without a listener" });
    }
    let token = home.dir.join("token.new");
    if free && token.is_file() {
        found.push(Mend::Remove { path: token, why: "a token that was never used" });
    }
    found
}

fn missing(folder: &Path) -> Option<Mend> {
    (!folder.exists()).then(|| Mend::Make { path: folder.to_owned() })
}

/// A file of this user that others can use.
fn open_to_others(path: &Path, mode: u32) -> Option<Mend> {
    let found = path.symlink_metadata().ok()?;
    let ours = found.uid() == rustix::process::getuid().as_raw() && !found.file_type().is_symlink();
    (ours && found.mode() & 0o077 != 0).then(|| Mend::Close { path: path.to_owned(), mode })
}

/// Files that a command writes aside under the number of its process, whose process is gone.
fn unfinished(folder: &Path, before: &str, after: &str) -> Vec<Mend> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let number = |name: &str| -> Option<i32> {
        name.strip_prefix(before)?.strip_suffix(after)?.parse().ok().filter(|pid| *pid > 0)
    };
    let gone = |pid: i32| {
        rustix::process::Pid::from_raw(pid)
            .is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
    };
    let left = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        name.to_str().and_then(number).is_some_and(gone) && entry.file_type().is_ok_and(|kind| kind.is_file())
    });
    left.map(|entry| Mend::Remove { path: entry.path(), why: "a command was cut off while it wrote" })
        .collect()
}

impl Mend {
    fn sentence(&self) -> String {
        match self {
            Self::Close { path, mode } => format!("chmod {mode:o} {}", path.display()),
            Self::Make { path } => format!("mkdir -p {}", path.display()),
            Self::Remove { path, why } => format!("rm {} ({why})", path.display()),
        }
    }

    fn carry_out(&self) -> std::io::Result<()> {
        match self {
            Self::Close { path, mode } => std::fs::set_permissions(path, Permissions::from_mode(*mode)),
            Self::Make { path } => DirBuilder::new().recursive(true).mode(0o700).create(path),
            Self::Remove { path, .. } => std::fs::remove_file(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_safe_is_found_and_the_rest_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(&folder.path().join("data")).unwrap();
        for name in ["token", "journal.db", "token.new", ".doctor-1", ".doctor-999999999", ".doctor-x"] {
            std::fs::write(home.dir.join(name), "x").unwrap();
        }
        let _listener = std::os::unix::net::UnixListener::bind(home.socket()).unwrap();
        std::fs::set_permissions(home.token(), Permissions::from_mode(0o644)).unwrap();
        std::fs::set_permissions(&home.dir, Permissions::from_mode(0o755)).unwrap();
        let told = |free| -> Vec<String> {
            let shown = home.dir.display().to_string();
            in_home(&home, free).iter().map(|mend| mend.sentence().replace(&shown, "D")).collect()
        };
        let always = [
            "chmod 700 D",
            "chmod 600 D/token",
            "rm D/.doctor-999999999 (a command was cut off while it wrote)",
        ];
        assert_eq!(told(false), always);
        let mut all = always.to_vec();
        all.extend([
            "rm D/lanyard.sock (a socket without a listener)",
            "rm D/token.new (a token that was never used)",
        ]);
        assert_eq!(told(true), all);
        for mend in in_home(&home, true) {
            mend.carry_out().unwrap();
        }
        assert_eq!(told(true), Vec::<String>::new());
        assert!(home.journal().exists() && home.dir.join(".doctor-1").exists());
    }
}
