//! What a tree has that its base has not.

use super::*;
use crate::snapshot::DiffStatus;
use crate::worktree::changes::{Patch, TreeCommit, TreeDiff};

#[test]
fn commits_and_files_since_the_base_with_what_is_not_committed() {
    let lab = Lab::new();
    let tree = lab.create();
    let none = TreeDiff { commits: Vec::new(), files: Vec::new(), uncommitted: false, truncated: false };
    assert_eq!(changes(&tree).unwrap(), none);
    assert_eq!(patch(&tree).unwrap(), Patch { text: String::new(), truncated: false });
    let path = Path::new(&tree.path);
    write(path, "a", "1\nmine\n3\n");
    let one = commit_in(path, "one: änderung");
    fs::remove_file(path.join("b")).unwrap();
    let two = commit_in(path, "two");
    write(path, "new", "1\n2\n");
    let diff = changes(&tree).unwrap();
    let commit =
        |hash: &str, subject: &str| TreeCommit { hash: hash.to_owned(), subject: subject.to_owned() };
    assert_eq!(diff.commits, [commit(&two, "two"), commit(&one, "one: änderung")]);
    let files: Vec<_> =
        diff.files.iter().map(|file| (file.path.as_str(), file.status, file.added, file.removed)).collect();
    assert_eq!(
        files,
        [
            ("a", DiffStatus::Modified, 1, 1),
            ("b", DiffStatus::Deleted, 0, 1),
            ("new", DiffStatus::Added, 2, 0)
        ]
    );
    assert!(diff.uncommitted && !diff.truncated);
    let text = patch(&tree).unwrap().text;
    assert!(text.contains("\n-2\n+mine\n") && text.contains("+++ b/new\n"), "{text}");
    // Looking changes nothing.
    assert_eq!(git_in(path, &["status", "--porcelain"]).unwrap(), "?? new");
    capture(&tree, "new").unwrap().unwrap();
    let committed = changes(&tree).unwrap();
    assert_eq!((committed.files, committed.uncommitted), (diff.files, false));
    // Without the folder the branch says it.
    remove(&tree).unwrap();
    assert_eq!(changes(&tree).unwrap().commits.len(), 3);
    assert_eq!(patch(&tree).unwrap().text, text);
    lab.is_tidy();
}

#[test]
fn what_is_too_long_is_cut() {
    let lab = Lab::new();
    let tree = lab.create();
    write(Path::new(&tree.path), "large", &"0123456789\n".repeat(200_000));
    let patch = patch(&tree).unwrap();
    assert!(patch.truncated && patch.text.len() <= 1024 * 1024 && patch.text.ends_with('\n'));
    for number in 0..2_001 {
        write(Path::new(&tree.path), &format!("many/{number}"), "");
    }
    let diff = changes(&tree).unwrap();
    assert!(diff.truncated && diff.files.len() == 2_000);
}

#[test]
fn a_branch_or_base_that_is_gone_is_said() {
    let lab = Lab::new();
    let tree = lab.create();
    let base = |base: &str| changes(&Tree { base: base.to_owned(), ..tree.clone() }).unwrap_err().code();
    assert_eq!([base(&"0".repeat(40)), base("--help"), base("")], ["unknown_base"; 3]);
    discard(&tree).unwrap();
    assert_eq!(changes(&tree).unwrap_err().code(), "branch_gone");
}
