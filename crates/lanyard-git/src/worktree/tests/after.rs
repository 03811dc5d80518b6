//! Branches that begin with the work of others (FND-N3).

use super::*;

/// A task that wrote one file and is done; its worktree is gone.
fn done(lab: &Lab, name: &str, file: &str, text: &str, after: &[&FinishedWork]) -> FinishedWork {
    let after: Vec<FinishedWork> = after.iter().map(|work| (*work).clone()).collect();
    let tree = create_after(&lab.root, &lab.top, name, None, None, &after).unwrap();
    write(Path::new(&tree.path), file, text);
    commit_in(&tree.path, &format!("{name} writes {file}"));
    remove(&tree).unwrap();
    FinishedWork { tree, captured: None, merged: None }
}

fn begin(lab: &Lab, name: &str, after: &[&FinishedWork]) -> Result<Tree, WorktreeError> {
    let after: Vec<FinishedWork> = after.iter().map(|work| (*work).clone()).collect();
    create_after(&lab.root, &lab.top, name, None, None, &after)
}

fn tip(lab: &Lab, work: &FinishedWork) -> String {
    lab.git(&["rev-parse", &work.tree.branch])
}

#[test]
fn fnd_n3_one_prerequisite_is_begun_at_its_tip() {
    let lab = Lab::new();
    let one = done(&lab, "task_1", "one", "1\n", &[]);
    // The workspace went on meanwhile, elsewhere.
    lab.write("b", "later\n");
    lab.commit("later");
    let tree = begin(&lab, "task_2", &[&one]).unwrap();
    assert_eq!(tree.base, tip(&lab, &one));
    assert_eq!(read(&tree.path, "one"), "1\n");
    assert_eq!(own_commits(&tree).unwrap(), Some(0), "FND-D17: nothing of its own yet");
    assert_eq!(own_commits(&one.tree).unwrap(), Some(1));
    lab.is_tidy();
}

#[test]
fn fnd_n3_several_prerequisites_are_merged_in_order() {
    let lab = Lab::new();
    let (one, two) = (done(&lab, "task_1", "one", "1\n", &[]), done(&lab, "task_2", "two", "2\n", &[]));
    let three = done(&lab, "task_3", "three", "3\n", &[&one]);
    lab.git(&["config", "user.name", "Somebody"]);
    lab.git(&["config", "commit.gpgSign", "true"]);
    let head = lab.head();
    let fourth = begin(&lab, "task_4", &[&one, &two, &three]).unwrap();
    for (file, text) in [("one", "1\n"), ("two", "2\n"), ("three", "3\n"), ("b", "b\n")] {
        assert_eq!(read(&fourth.path, file), text);
    }
    let parents = lab.git(&["rev-parse", &format!("{}^1^1", fourth.base), &format!("{}^1^2", fourth.base)]);
    assert_eq!(parents, format!("{}\n{}", tip(&lab, &one), tip(&lab, &two)));
    assert_eq!(lab.git(&["rev-parse", &format!("{}^2", fourth.base)]), tip(&lab, &three));
    let by = lab.git(&["log", "-1", "--format=%an <%ae> %cn: %s", &fourth.base]);
    assert_eq!(by, "Lanyard <lanyard@localhost> Lanyard: Merge branch 'lanyard/task_3'");
    assert_eq!((lab.head(), lab.git(&["status", "--porcelain"])), (head, String::new()));
    // Called again after a crash, it is the same.
    assert_eq!(begin(&lab, "task_4", &[&one, &two, &three]).unwrap(), fourth);
    lab.is_tidy();
}

#[test]
fn fnd_n3_what_is_merged_already_adds_nothing() {
    let lab = Lab::new();
    let (one, two) = (done(&lab, "task_1", "one", "1\n", &[]), done(&lab, "task_2", "two", "2\n", &[]));
    merge(&one.tree, &lab.top, "first").unwrap();
    merge(&two.tree, &lab.top, "second").unwrap();
    assert_eq!(begin(&lab, "task_3", &[&one, &two]).unwrap().base, lab.head());
    // Part of it merged: the rest comes on top of where the workspace stands.
    let four = done(&lab, "task_4", "four", "4\n", &[]);
    lab.write("b", "later\n");
    lab.commit("later");
    let tree = begin(&lab, "task_5", &[&one, &four]).unwrap();
    let parents = lab.git(&["rev-parse", &format!("{}^1", tree.base), &format!("{}^2", tree.base)]);
    assert_eq!(parents, format!("{}\n{}", lab.head(), tip(&lab, &four)));
    lab.is_tidy();
}

#[test]
fn fnd_n3_a_conflict_is_found_before_anything_is_made() {
    let lab = Lab::new();
    let (one, two) = (done(&lab, "task_1", "same", "1\n", &[]), done(&lab, "task_2", "same", "2\n", &[]));
    let error = begin(&lab, "task_3", &[&one, &two]).unwrap_err();
    assert_eq!(error.code(), "base_conflict");
    let WorktreeError::BaseConflict { branch, with, files } = error else { panic!("{error}") };
    assert_eq!(
        (branch.as_str(), with, files),
        ("lanyard/task_2", vec!["lanyard/task_1".to_owned()], vec!["same".to_owned()])
    );
    assert!(!lab.root.join("task_3").exists() && !lab.git(&["branch", "--list"]).contains("task_3"));
    // Somebody merges the one into the other.
    lab.git(&["checkout", "-q", "-b", "resolved", "lanyard/task_2"]);
    assert!(git_in(&lab.top, &["merge", "-q", "lanyard/task_1"]).is_err());
    lab.write("same", "both\n");
    lab.git(&["add", "same"]);
    lab.git(&["commit", "-qm", "both"]);
    let tree = begin(&lab, "task_3", &[&one, &two]).unwrap();
    assert_eq!((tree.base, read(&tree.path, "same")), (lab.head(), "both\n".to_owned()));
}

#[test]
fn fnd_n3_a_branch_that_is_taken_up_gets_what_came_since() {
    let lab = Lab::new();
    let one = done(&lab, "task_1", "one", "1\n", &[]);
    let two = done(&lab, "task_2", "two", "2\n", &[&one]);
    // The prerequisite was run again and has more now.
    let again = create(&lab.root, &lab.top, "task_1", None, None).unwrap();
    write(Path::new(&again.path), "more", "more\n");
    commit_in(&again.path, "more");
    remove(&again).unwrap();
    let tree = begin(&lab, "task_2", &[&one]).unwrap();
    assert_eq!((read(&tree.path, "more"), read(&tree.path, "two")), ("more\n".to_owned(), "2\n".to_owned()));
    // The base moves with them: only what the task did itself, and the merge, come after it.
    assert_eq!(tree.base, tip(&lab, &one));
    assert_ne!(tree.base, two.tree.base);
    assert_eq!(own_commits(&tree).unwrap(), Some(2));
    // Called again after a crash, it is the same.
    remove(&tree).unwrap();
    assert_eq!(begin(&lab, "task_2", &[&one]).unwrap(), tree);
    lab.is_tidy();
}

/// A retry begins at a base that has the work of all prerequisites, one of them new to it.
#[test]
fn fnd_n3_a_retry_begins_at_a_base_with_all_prerequisites_as_they_are_now() {
    let lab = Lab::new();
    let (one, two) = (done(&lab, "task_1", "one", "1\n", &[]), done(&lab, "task_2", "two", "2\n", &[]));
    let third = done(&lab, "task_3", "three", "3\n", &[&one]);
    let again = create(&lab.root, &lab.top, "task_1", None, None).unwrap();
    write(Path::new(&again.path), "one", "1, mended\n");
    commit_in(&again.path, "mended");
    remove(&again).unwrap();
    let tree = begin(&lab, "task_3", &[&one, &two]).unwrap();
    for (file, text) in [("one", "1, mended\n"), ("two", "2\n"), ("three", "3\n")] {
        assert_eq!(read(&tree.path, file), text);
    }
    for work in [&one, &two] {
        lab.git(&["merge-base", "--is-ancestor", &tip(&lab, work), &tree.base]);
    }
    let own = lab.git(&["diff", "--name-only", &tree.base, &third.tree.branch]);
    assert_eq!(own, "three", "what it has after its base is its own");
    assert_eq!(own_commits(&tree).unwrap(), Some(2), "its commit and the merge");
    lab.is_tidy();
}

/// A retry has the work of a prerequisite that was merged and whose branch was deleted.
#[test]
fn fnd_n3_a_retry_has_what_was_merged_and_deleted_meanwhile() {
    let lab = Lab::new();
    let mut one = done(&lab, "task_1", "one", "1\n", &[]);
    let second = done(&lab, "task_2", "two", "2\n", &[&one]);
    // Run again, merged into the workspace, and its branch is gone.
    let again = create(&lab.root, &lab.top, "task_1", None, None).unwrap();
    write(Path::new(&again.path), "more", "more\n");
    commit_in(&again.path, "more");
    remove(&again).unwrap();
    lab.git(&["merge", "-q", "--no-ff", "-m", "merged", &one.tree.branch]);
    one.merged = Some(lab.head());
    lab.git(&["branch", "-q", "-D", &one.tree.branch]);
    let tree = begin(&lab, "task_2", &[&one]).unwrap();
    assert_eq!((read(&tree.path, "more"), read(&tree.path, "two")), ("more\n".to_owned(), "2\n".to_owned()));
    assert_eq!((tree.base.as_str(), &tree.branch), (lab.head().as_str(), &second.tree.branch));
    lab.is_tidy();
}

/// Work that does not fit what the task did before is a conflict of the task, and changes nothing.
#[test]
fn fnd_n3_a_retry_that_conflicts_with_its_prerequisite_changes_nothing() {
    let lab = Lab::new();
    let one = done(&lab, "task_1", "same", "1\n", &[]);
    let two = done(&lab, "task_2", "same", "1 and 2\n", &[&one]);
    let again = create(&lab.root, &lab.top, "task_1", None, None).unwrap();
    write(Path::new(&again.path), "same", "another\n");
    commit_in(&again.path, "another");
    remove(&again).unwrap();
    let before = tip(&lab, &two);
    let refused = begin(&lab, "task_2", &[&one]);
    let Err(WorktreeError::BaseConflict { branch, files, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!((branch, files), (one.tree.branch.clone(), vec!["same".to_owned()]));
    assert_eq!(tip(&lab, &two), before);
    lab.is_tidy();
}

#[test]
fn fnd_n3_uncommitted_work_counts_as_it_was_captured() {
    let lab = Lab::new();
    let mut one = done(&lab, "task_1", "one", "1\n", &[]);
    let tree = create(&lab.root, &lab.top, "task_1", None, None).unwrap();
    write(Path::new(&tree.path), "left", "left\n");
    one.captured = capture(&tree, "kept").unwrap().map(|captured| captured.commit);
    remove(&tree).unwrap();
    assert!(one.captured.is_some());
    let tree = begin(&lab, "task_2", &[&one]).unwrap();
    assert_eq!(read(&tree.path, "left"), "left\n");
    // A branch that was deleted, or is of another repository, is nothing to begin at.
    let other = Lab::new();
    let theirs = done(&other, "task_1", "theirs", "t\n", &[]);
    assert_eq!(begin(&lab, "task_3", &[&theirs]).unwrap().base, lab.head());
}
