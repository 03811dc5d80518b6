//! The data folder and the files in it.

use std::fs::{Metadata, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use lanyard_api::home::Home;

use super::Finding;

/// What fits into `sockaddr_un`, less its final NUL.
const SOCKET_PATH_MAX: usize = 107;
/// With less room than this the next hours may fill the disk.
const FREE_BYTES_MIN: u64 = 100 * 1024 * 1024;

pub(super) fn check(home: &Home) -> Vec<Finding> {
    let mut findings = vec![folder(&home.dir)];
    if home.dir.is_dir() {
        findings.push(token(&home.token()));
        findings.extend(disk(&home.dir));
    }
    findings.push(socket(&home.socket()));
    findings
}

fn folder(dir: &Path) -> Finding {
    const NAME: &str = "data folder";
    let shown = dir.display();
    match dir.metadata() {
        Ok(found) if !found.is_dir() => Finding::fail(
            NAME,
            format!("{shown} is not a folder"),
            "move it away, or name another with --data-dir",
        ),
        Ok(found) => private(NAME, dir, &found, 0o700)
            .or_else(|| read_only(NAME, dir))
            .unwrap_or_else(|| Finding::ok(NAME, format!("{shown} is private"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::ok(NAME, format!("{shown} is not there yet; the first start makes it"))
        }
        Err(error) => {
            Finding::fail(NAME, format!("cannot look at {shown}: {error}"), "check the folders above it")
        }
    }
}

/// Whether a file can be made in the folder: modes, mounts and quotas all have a say, so it is tried.
fn read_only(name: &'static str, dir: &Path) -> Option<Finding> {
    let probe = dir.join(format!(".doctor-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&probe);
    match made {
        Ok(_) => {
            // What stays of it is empty and has a name of its own.
            let _ = std::fs::remove_file(&probe);
            None
        }
        Err(error) => {
            let shown = dir.display();
            let fix = format!(
                "make it writable with `chmod u+rwx {shown}`, mount its disk for writing, or name another with --data-dir"
            );
            Some(Finding::fail(name, format!("nothing can be written to {shown}: {error}"), fix))
        }
    }
}

fn token(path: &Path) -> Finding {
    const NAME: &str = "token";
    match path.metadata() {
        Ok(found) if found.len() == 0 => Finding::fail(
            NAME,
            "the operator's token is empty",
            format!("rm {}; the next start makes another", path.display()),
        ),
        Ok(found) => private(NAME, path, &found, 0o600)
            .unwrap_or_else(|| Finding::ok(NAME, "the operator's token is private")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::ok(NAME, "there is none yet; the first start makes one")
        }
        Err(error) => {
            Finding::fail(NAME, format!("cannot look at {}: {error}", path.display()), "check its folder")
        }
    }
}

/// What is wrong with who may use a file, if anything is.
fn private(name: &'static str, path: &Path, found: &Metadata, mode: u32) -> Option<Finding> {
    let shown = path.display();
    if found.uid() != rustix::process::getuid().as_raw() {
        let fix = "run as the user it belongs to, or name another place with --data-dir";
        return Some(Finding::fail(
            name,
            format!("{shown} belongs to another user (uid {})", found.uid()),
            fix,
        ));
    }
    let others = found.mode() & 0o077;
    (others != 0).then(|| {
        let what = format!("others can use {shown} (mode {:04o})", found.mode() & 0o7777);
        Finding::fail(name, what, format!("chmod {mode:o} {shown}"))
    })
}

fn socket(path: &Path) -> Finding {
    const NAME: &str = "socket";
    let length = path.as_os_str().len();
    if length > SOCKET_PATH_MAX {
        let what = format!("the path {} has {length} bytes, more than {SOCKET_PATH_MAX}", path.display());
        return Finding::fail(NAME, what, "name a data folder with a shorter path: --data-dir");
    }
    Finding::ok(NAME, format!("the path has {length} bytes, {SOCKET_PATH_MAX} at most"))
}

fn disk(dir: &Path) -> Option<Finding> {
    // Where the system does not tell, there is nothing to say.
    let found = rustix::fs::statvfs(dir).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let megabytes = free / (1024 * 1024);
    Some(if free < FREE_BYTES_MIN {
        Finding::warn(
            "disk",
            format!("only {megabytes} MB are free"),
            "make room: without it nothing is acknowledged",
        )
    } else {
        Finding::ok("disk", format!("{megabytes} MB are free"))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::FindingLevel;
    use super::*;

    #[test]
    fn a_folder_and_a_token_open_to_others_fail() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::create(&dir.path().join("data")).unwrap();
        std::fs::write(home.token(), "secret").unwrap();
        let mode =
            |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        mode(&home.token(), 0o600);
        assert!(check(&home).iter().all(|finding| finding.level == FindingLevel::Ok), "{:?}", check(&home));
        mode(&home.token(), 0o644);
        mode(&home.dir, 0o755);
        let failed: Vec<&str> = check(&home)
            .iter()
            .filter(|finding| finding.level == FindingLevel::Fail)
            .map(|finding| finding.check)
            .collect();
        assert_eq!(failed, ["data folder", "token"]);
    }

    /// FND-N10. Files cannot be made in /proc, not even by root.
    #[test]
    fn fnd_n10_a_folder_that_cannot_be_written_to_fails() {
        let finding = read_only("data folder", Path::new("/proc")).unwrap();
        assert_eq!(finding.level, FindingLevel::Fail);
        assert!(finding.what.contains("nothing can be written to /proc"), "{}", finding.what);
        assert!(finding.fix.unwrap().contains("--data-dir"));
        let dir = tempfile::tempdir().unwrap();
        assert!(read_only("data folder", dir.path()).is_none());
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_fine() {
        let home = Home { dir: "/nonexistent/lanyard".into() };
        assert!(check(&home).iter().all(|finding| finding.level == FindingLevel::Ok));
    }

    #[test]
    fn a_socket_path_that_is_too_long_fails() {
        let home = Home { dir: format!("/{}", "x".repeat(100)).into() };
        assert_eq!(socket(&home.socket()).level, FindingLevel::Fail);
    }
}
