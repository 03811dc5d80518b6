//! Taking worktrees away, with and without their branches.

use super::*;

#[test]
fn the_folder_goes_and_the_branch_stays() {
    let lab = Lab::new();
    let tree = lab.create();
    write(Path::new(&tree.path), "work", "x");
    let error = remove(&tree).unwrap_err();
    assert_eq!(error.code(), "dirty_worktree");
    assert!(error.to_string().ends_with("`work`"), "{error}");
    let head = commit_in(&tree.path, "work");
    write(Path::new(&tree.path), "x.log", "ignored");
    remove(&tree).unwrap();
    assert!(!Path::new(&tree.path).exists());
    assert_eq!(lab.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    assert_eq!(lab.git(&["rev-parse", "lanyard/task_1"]), head);
    remove(&tree).unwrap();
    lab.is_tidy();
}

#[test]
fn stopped_in_the_middle_it_is_finished_the_next_time() {
    let lab = Lab::new();
    let tree = lab.create();
    let going = lab.root.join(".going-task_1");
    fs::rename(&tree.path, &going).unwrap();
    fs::remove_file(going.join("a")).unwrap();
    remove(&tree).unwrap();
    assert!(!going.exists());
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
    lab.is_tidy();
    assert_eq!(lab.create(), tree);
    // The folder is gone and git still lists it.
    fs::remove_dir_all(&tree.path).unwrap();
    remove(&tree).unwrap();
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_file_nobody_can_read_is_not_thrown_away() {
    let lab = Lab::new();
    let tree = lab.create();
    // Also for root, who can read every file: a repository without commits cannot be added.
    git_in(&tree.path, &["init", "-q", "inner"]).unwrap();
    write(Path::new(&tree.path), "inner/work", "x");
    write(Path::new(&tree.path), "outer", "x");
    let captured = capture(&tree, "as much as there is").unwrap();
    assert_eq!(captured.map(|captured| captured.files), Some(vec!["outer".to_owned()]));
    assert_eq!(remove(&tree).unwrap_err().code(), "dirty_worktree");
    assert_eq!(discard(&tree).unwrap_err().code(), "dirty_worktree");
    assert_eq!(read(&tree.path, "inner/work"), "x");
}

#[test]
fn a_repository_inside_it_keeps_it() {
    let lab = Lab::new();
    let tree = lab.create();
    git_in(&tree.path, &["init", "-q", "inner"]).unwrap();
    write(Path::new(&tree.path), "inner/work", "x");
    commit_in(Path::new(&tree.path).join("inner"), "inside");
    capture(&tree, "kept by its commit alone").unwrap().unwrap();
    let error = remove(&tree).unwrap_err();
    assert_eq!(error.code(), "nested_repository");
    assert!(error.to_string().ends_with("`inner`"), "{error}");
    fs::rename(Path::new(&tree.path).join("inner"), lab.root.join("saved")).unwrap();
    capture(&tree, "gone").unwrap().unwrap();
    remove(&tree).unwrap();
}

#[test]
fn what_is_discarded_is_still_there_under_a_ref() {
    let lab = Lab::new();
    let tree = lab.create();
    write(Path::new(&tree.path), "one", "1\n");
    commit_in(&tree.path, "one");
    write(Path::new(&tree.path), "two", "2\n");
    let kept = discard(&tree).unwrap();
    assert!(kept.starts_with("refs/lanyard/discarded/task_1/"), "{kept}");
    assert_eq!(lab.git(&["show", &format!("{kept}:two")]), "2");
    assert_eq!(lab.git(&["branch", "--list", "lanyard/*"]), "");
    assert!(git_in(&lab.top, &["config", "--get-regexp", "branch"]).is_err());
    assert!(!Path::new(&tree.path).exists());
    assert_eq!(discard(&tree).unwrap(), kept);
    lab.is_tidy();
    // A new one of the same name begins afresh.
    assert_eq!(lab.create(), tree);
    assert!(!Path::new(&tree.path).join("one").exists());
}

#[test]
fn discarding_is_finished_after_any_step() {
    let lab = Lab::new();
    let tree = lab.create();
    write(Path::new(&tree.path), "one", "1\n");
    let one = commit_in(&tree.path, "one");
    // The ref is there.
    let reference = format!("refs/lanyard/discarded/task_1/{}", &one[..16]);
    lab.git(&["update-ref", &reference, &one]);
    // The folder is gone.
    remove(&tree).unwrap();
    // The branch is gone, its mark is not.
    lab.git(&["update-ref", "-d", "refs/heads/lanyard/task_1"]);
    assert_eq!(discard(&tree).unwrap(), reference);
    assert!(git_in(&lab.top, &["config", "--get-regexp", "branch"]).is_err());
}

#[test]
fn a_branch_that_is_not_ours_or_in_use_is_not_discarded() {
    let lab = Lab::new();
    let tree = lab.create();
    remove(&tree).unwrap();
    lab.git(&["checkout", "-q", "lanyard/task_1"]);
    assert_eq!(discard(&tree).unwrap_err().code(), "branch_in_use");
    lab.git(&["checkout", "-q", "main"]);
    lab.git(&["branch", "-q", "-D", "lanyard/task_1"]);
    lab.git(&["branch", "lanyard/task_1"]);
    assert_eq!(discard(&tree).unwrap_err().code(), "branch_exists");
    lab.git(&["rev-parse", "lanyard/task_1"]);
    let never =
        Tree { path: lab.root.join("task_7").display().to_string(), branch: "none".to_owned(), ..tree };
    assert_eq!(discard(&never).unwrap_err().code(), "branch_gone");
}
