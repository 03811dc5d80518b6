//! Files of a commit, the base of a branch, and the names of contents in a diff.

use super::*;
use crate::snapshot::top_of;

#[test]
fn a_file_is_read_from_a_checkpoint_and_not_from_the_worktree() {
    let lab = Lab::new();
    lab.write("sub/c", "kept\n");
    let snapshot = lab.take("t1");
    lab.write("sub/c", "later\n");
    let (_, store) = checkpoints(&lab.top);
    let read = |path: &str, max: usize| store.file_at(&lab.top, &snapshot.commit, path, max).unwrap();
    assert_eq!(read("sub/c", 100).as_deref(), Some(&b"kept\n"[..]));
    assert_eq!(read("sub/c", 2), None, "it is larger");
    for other in ["sub", "none", "../work tree/a", "/etc/passwd", "--help"] {
        assert_eq!(read(other, 100), None, "{other}");
    }
    assert!(store.file_at(&lab.top, "HEAD", "a", 100).is_err(), "a commit is named by its hash");
    assert_eq!(top_of(&lab.path("sub")).unwrap(), lab.top);
}

#[test]
fn the_base_of_a_branch_is_where_it_left_the_main_one() {
    let lab = Lab::new();
    let first = lab.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let (_, store) = checkpoints(&lab.top);
    assert!(matches!(store.branch_base(&lab.top, None), Err(SnapshotError::NoBaseBranch { .. })));
    assert_eq!(store.branch_base(&lab.top, Some(&first)).unwrap().commit, first);
    lab.git(&["checkout", "-q", "-b", "topic"]);
    lab.write("a", "topic\n");
    lab.commit("second");
    let base = store.branch_base(&lab.top, None).unwrap();
    assert_eq!((base.name.as_str(), base.commit.as_str()), ("main", first.as_str()));
    let second = lab.git(&["rev-parse", "HEAD"]).trim().to_owned();
    lab.git(&["update-ref", "refs/remotes/origin/main", &second]);
    let base = store.branch_base(&lab.top, None).unwrap();
    assert_eq!((base.name.as_str(), base.commit.as_str()), ("origin/main", second.as_str()));
}

#[test]
fn a_diff_names_the_content_of_each_file() {
    let lab = Lab::new();
    let snapshot = lab.take("t1");
    lab.write("a", "changed\n");
    fs::remove_file(lab.path("b")).unwrap();
    let (_, store) = checkpoints(&lab.top);
    let diff = store.diff(&lab.top, &snapshot.commit, DiffTo::Worktree).unwrap();
    let hashes: Vec<(&str, &str)> =
        diff.files.iter().map(|file| (file.path.as_str(), file.hash.as_str())).collect();
    let changed = lab.git(&["hash-object", "a"]);
    assert_eq!(hashes, [("a", changed.trim()), ("b", "0".repeat(40).as_str())]);
}
