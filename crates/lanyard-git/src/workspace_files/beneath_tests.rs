//! Files below a root: what is read, what is written, and what is refused without waiting.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::*;

const MAX: u64 = 1_000;

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn word<T>(result: Result<T, FileError>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(FileError::Missing) => "missing".to_owned(),
        Err(FileError::NotRegular) => "not regular".to_owned(),
        Err(FileError::Outside { .. }) => "outside".to_owned(),
        Err(FileError::OfGit) => "of git".to_owned(),
        Err(FileError::TooLarge { .. }) => "too large".to_owned(),
        Err(FileError::Slow) => "slow".to_owned(),
        Err(FileError::Io(error)) => error.to_string(),
    }
}

/// FND-K1.
#[test]
fn fnd_k1_only_regular_files_of_the_root_are_opened() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path();
    fs::write(outside.path().join("secret"), "s").unwrap();
    fs::write(root.join("plain"), "p").unwrap();
    fs::create_dir_all(root.join("deep/.git")).unwrap();
    fs::write(root.join("deep/.git/config"), "").unwrap();
    fs::write(root.join("long"), vec![b'x'; 1_001]).unwrap();
    fs::File::create(root.join("huge")).unwrap().set_len(1 << 40).unwrap();
    fifo(&root.join("fifo"));
    symlink("/dev/zero", root.join("zero")).unwrap();
    symlink(root.join("plain"), root.join("link")).unwrap();
    symlink("fifo", root.join("to-fifo")).unwrap();
    symlink(outside.path(), root.join("out")).unwrap();
    symlink(outside.path().join("new"), root.join("dangling")).unwrap();

    let cases = [
        ("plain", "ok", "ok"),
        ("link", "ok", "ok"),
        ("none", "missing", "ok"),
        ("none/deeper", "missing", "missing"),
        ("fifo", "not regular", "not regular"),
        ("to-fifo", "not regular", "not regular"),
        ("zero", "outside", "outside"),
        ("out/secret", "outside", "outside"),
        ("dangling", "not regular", "missing"),
        ("../secret", "missing", "outside"),
        ("deep", "not regular", "not regular"),
        ("deep/.git/config", "of git", "of git"),
        ("long", "too large", "ok"),
        ("huge", "too large", "ok"),
        (".", "not regular", "not regular"),
    ];
    for (path, reads, writes) in cases {
        assert_eq!(word(read(root, Path::new(path), MAX)), reads, "read {path}");
        assert_eq!(word(write(root, Path::new(path), b"new")), writes, "write {path}");
    }
    assert!(!outside.path().join("new").exists());
    assert_eq!(fs::read_to_string(root.join("plain")).unwrap(), "new");
    assert_eq!(fs::read_to_string(root.join("long")).unwrap(), "new", "the old end is gone");
}

/// FND-K1.
#[test]
fn fnd_k1_a_plain_path_has_no_links_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir(root.join("a")).unwrap();
    fs::write(root.join("a/file"), "f").unwrap();
    symlink("a", root.join("b")).unwrap();
    symlink("file", root.join("a/link")).unwrap();
    fifo(&root.join("a/fifo"));
    let cases =
        [("a/file", "ok"), ("a/link", "not regular"), ("a/fifo", "not regular"), ("../x", "not regular")];
    for (path, reads) in cases {
        assert_eq!(word(read_plain(root, Path::new(path), MAX)), reads, "{path}");
    }
    assert!(read_plain(root, Path::new("b/file"), MAX).is_err());
    assert_eq!(word(open_regular(&root.join("a/fifo"))), "not regular");
    assert_eq!(word(open_regular(&root.join("b/link"))), "ok");
    assert_eq!(word(open_regular(Path::new("/dev/zero"))), "not regular");
}

#[test]
fn a_write_makes_the_folders_above_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/file");
    write(folder.path(), &path, b"one").unwrap();
    assert_eq!(read(folder.path(), &path, MAX).unwrap(), b"one");
    assert_eq!(
        super::folder(folder.path(), Path::new("deep")).unwrap(),
        path.ancestors().nth(2).unwrap().canonicalize().unwrap()
    );
    assert_eq!(word(super::folder(folder.path(), Path::new("/"))), "outside");
    assert_eq!(word(super::folder(folder.path(), &path)), "missing");
}
