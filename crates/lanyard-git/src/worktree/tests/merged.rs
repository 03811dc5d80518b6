//! Bringing the work home.

use super::*;
use crate::worktree::merge::Merged;

/// A tree with one commit that changes `a`'s second line and adds `new`.
fn worked(lab: &Lab) -> Tree {
    let tree = lab.create();
    write(Path::new(&tree.path), "a", "1\nmine\n3\n");
    write(Path::new(&tree.path), "new", "new\n");
    commit_in(&tree.path, "mine");
    tree
}

#[test]
fn a_workspace_without_commits_of_its_own_goes_forward() {
    let lab = Lab::new();
    let tree = worked(&lab);
    let tip = lab.git(&["rev-parse", "lanyard/task_1"]);
    lab.write("scratch", "not known to git, and in nobody's way");
    let merged = merge(&tree, &lab.top, "unused").unwrap();
    assert_eq!(
        merged,
        Merged { commit: tip.clone(), into: "main".to_owned(), fast_forward: true, nothing: false }
    );
    assert_eq!((lab.head(), read(&lab.top, "new")), (tip.clone(), "new\n".to_owned()));
    assert_eq!(lab.git(&["status", "--porcelain"]), "?? scratch");
    // The person who works there finds the way back.
    assert_eq!(lab.git(&["rev-parse", "main@{1}"]), tree.base);
    let again = merge(&tree, &lab.top, "unused").unwrap();
    assert_eq!(again, Merged { commit: tip, into: "main".to_owned(), fast_forward: false, nothing: true });
    lab.is_tidy();
}

#[test]
fn both_sides_are_joined_by_a_commit() {
    let lab = Lab::new();
    let tree = worked(&lab);
    lab.write("b", "theirs\n");
    let theirs = lab.commit("theirs");
    // Neither hooks nor settings of the user change what a merge is.
    for (key, value) in [("merge.ff", "only"), ("commit.gpgSign", "true"), ("merge.verifySignatures", "true")]
    {
        lab.git(&["config", key, value]);
    }
    let merged = merge(&tree, &lab.top, "Merge the task\n\nwhy").unwrap();
    assert!(!merged.fast_forward && !merged.nothing);
    let tip = lab.git(&["rev-parse", "lanyard/task_1"]);
    assert_eq!(
        lab.git(&["rev-parse", "HEAD", "HEAD^1", "HEAD^2"]),
        format!("{}\n{theirs}\n{tip}", merged.commit)
    );
    assert_eq!(lab.git(&["log", "-1", "--format=%s"]), "Merge the task");
    assert_eq!(
        (read(&lab.top, "a"), read(&lab.top, "b")),
        ("1\nmine\n3\n".to_owned(), "theirs\n".to_owned())
    );
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    lab.is_tidy();
}

#[test]
fn a_conflict_names_the_files_and_touches_nothing() {
    let lab = Lab::new();
    let tree = worked(&lab);
    lab.write("a", "1\ntheirs\n3\n");
    lab.write("new", "theirs\n");
    let theirs = lab.commit("theirs");
    let error = merge(&tree, &lab.top, "m").unwrap_err();
    assert_eq!((error.code(), error.is_for_good()), ("merge_conflict", true));
    assert_eq!(error.to_string(), "`lanyard/task_1` and `main` change the same places of: `a`, `new`");
    assert_eq!((lab.head(), lab.git(&["status", "--porcelain"])), (theirs, String::new()));
    assert!(!lab.top.join(".git/MERGE_HEAD").exists());
    lab.is_tidy();
}

#[test]
fn work_in_the_workspace_is_not_touched() {
    let lab = Lab::new();
    let tree = worked(&lab);
    let before = lab.head();
    lab.write("b", "not committed\n");
    let error = merge(&tree, &lab.top, "m").unwrap_err();
    assert_eq!(error.code(), "dirty_workspace");
    assert!(error.to_string().ends_with("`b`"), "{error}");
    lab.git(&["add", "b"]);
    assert_eq!(merge(&tree, &lab.top, "m").unwrap_err().code(), "dirty_workspace");
    lab.git(&["reset", "-q", "--hard"]);
    // A file git does not know, or ignores, in the place of one that would come.
    lab.write("new", "precious\n");
    let error = merge(&tree, &lab.top, "m").unwrap_err();
    assert!(error.code() == "dirty_workspace" && error.to_string().ends_with("`new`"), "{error}");
    lab.write(".git/info/exclude", "new\n");
    assert_eq!(merge(&tree, &lab.top, "m").unwrap_err().code(), "dirty_workspace");
    assert_eq!((lab.head(), read(&lab.top, "new")), (before, "precious\n".to_owned()));
}

#[test]
fn a_workspace_in_the_middle_of_something_is_left_alone() {
    let lab = Lab::new();
    let tree = worked(&lab);
    lab.git(&["checkout", "-q", "-b", "side"]);
    lab.write("a", "1\nside\n3\n");
    lab.commit("side");
    lab.git(&["checkout", "-q", "main"]);
    lab.write("a", "1\ntheirs\n3\n");
    lab.commit("theirs");
    git_in(&lab.top, &["merge", "side"]).unwrap_err();
    assert_eq!(merge(&tree, &lab.top, "m").unwrap_err().code(), "operation_in_progress");
    lab.git(&["merge", "--abort"]);
    git_in(&lab.top, &["rebase", "side"]).unwrap_err();
    let error = merge(&tree, &lab.top, "m").unwrap_err();
    assert!(error.to_string().starts_with("a rebase is in progress"), "{error}");
    lab.git(&["rebase", "--abort"]);
    lab.git(&["checkout", "-q", "--detach"]);
    assert_eq!(merge(&tree, &lab.top, "m").unwrap_err().code(), "detached_head");
    lab.git(&["checkout", "-q", "--orphan", "fresh"]);
    assert_eq!(merge(&tree, &lab.top, "m").unwrap_err().code(), "no_commit");
}

#[test]
fn another_repository_and_a_branch_that_is_gone() {
    let lab = Lab::new();
    let tree = worked(&lab);
    let clone = lab.root.join("clone");
    git_in(&lab.root, &["clone", "-q", lab.top.to_str().unwrap(), "clone"]).unwrap();
    assert_eq!(merge(&tree, &clone, "m").unwrap_err().code(), "other_repository");
    assert_eq!(merge(&tree, &lab.root, "m").unwrap_err().code(), "not_a_repository");
    discard(&tree).unwrap();
    assert_eq!(merge(&tree, &lab.top, "m").unwrap_err().code(), "branch_gone");
}

#[test]
fn a_childs_work_goes_into_its_parents_worktree() {
    // S4-15
    let lab = Lab::new();
    let parent = worked(&lab);
    let child = create(&lab.root, Path::new(&parent.path), "task_2", None, None).unwrap();
    write(Path::new(&child.path), "of the child", "x\n");
    capture(&child, "of the child").unwrap().unwrap();
    write(Path::new(&parent.path), "b", "the parent went on\n");
    commit_in(&parent.path, "went on");
    let merged = pull(&child, Path::new(&parent.path)).unwrap();
    assert_eq!((merged.into.as_str(), merged.fast_forward), ("lanyard/task_1", false));
    assert_eq!(read(&parent.path, "of the child"), "x\n");
    assert_eq!(lab.git(&["log", "-1", "--format=%s", "lanyard/task_1"]), "Merge branch 'lanyard/task_2'");
    assert_eq!(lab.head(), parent.base);
}

/// FND-K13.
#[test]
fn fnd_k13_git_a_merge_driver_does_not_run_and_texts_are_merged() {
    let lab = Lab::new();
    let mark = lab.root.parent().unwrap().with_file_name("MARK");
    let trap = format!("touch '{}'; exit 0", mark.display());
    lab.write(".gitattributes", "* merge=m filter=f\n");
    lab.commit("attributes");
    for key in ["merge.m.driver", "filter.f.clean", "filter.f.smudge"] {
        lab.git(&["config", key, &trap]);
    }
    // No `git` of the test itself may spring it.
    let off = ["-c", "filter.f.clean=", "-c", "filter.f.smudge="];
    let git = |folder: &Path, args: &[&str]| git_in(folder, &[&off[..], args].concat()).unwrap();
    let tree = lab.create();
    let path = Path::new(&tree.path);
    write(path, "a", "1\n2\nmine\n");
    git(path, &["commit", "-qam", "mine"]);
    lab.write("a", "theirs\n2\n3\n");
    git(&lab.top, &["commit", "-qam", "theirs"]);
    merge(&tree, &lab.top, "both").unwrap();
    assert_eq!(read(&lab.top, "a"), "theirs\n2\nmine\n");
    write(path, "a", "1\n2\nnobody's\n");
    lab.write("a", "theirs\n2\nours\n");
    git(path, &["commit", "-qam", "again"]);
    git(&lab.top, &["commit", "-qam", "again"]);
    assert_eq!(merge(&tree, &lab.top, "both").unwrap_err().code(), "merge_conflict");
    assert!(!mark.exists());
}
