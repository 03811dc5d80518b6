//! What nobody committed is committed, wherever the worktree stands (S4-B10).

use super::*;

fn edit(tree: &Tree) {
    let path = Path::new(&tree.path);
    write(path, "a", "1\n2\n3\nmore\n");
    fs::remove_file(path.join("b")).unwrap();
    write(path, "new/file", "new\n");
    write(path, "x.log", "ignored");
}

fn git(tree: &Tree, args: &[&str]) -> String {
    git_in(&tree.path, args).unwrap()
}

/// The worktree's files are in this commit, and what is captured can be removed.
fn is_kept(tree: &Tree, commit: &str) {
    git(tree, &["add", "-A"]);
    assert_eq!(git(tree, &["diff", "--cached", "--name-only", commit]), "");
    assert!(!git(tree, &["for-each-ref", "--contains", commit]).is_empty());
    remove(tree).unwrap();
}

#[test]
fn changes_deletions_and_new_files_are_committed_onto_the_branch() {
    let lab = Lab::new();
    let tree = lab.create();
    assert_eq!(capture(&tree, "nothing").unwrap(), None);
    edit(&tree);
    git(&tree, &["add", "new/file"]);
    let captured = capture(&tree, "Work in progress\n\nof a task").unwrap().unwrap();
    assert_eq!(captured.files, ["a", "b", "new/file"]);
    assert_eq!(captured.files_changed, 3);
    assert_eq!(
        git(&tree, &["rev-parse", "lanyard/task_1", "HEAD^"]),
        format!("{}\n{}", captured.commit, tree.base)
    );
    let shown = git(&tree, &["log", "-1", "--format=%an <%ae> %cn <%ce>|%s|%b"]);
    assert_eq!(
        shown.trim(),
        "Lanyard <lanyard@localhost> Lanyard <lanyard@localhost>|Work in progress|of a task\n\nCaptured-in: task_1"
    );
    assert_eq!(git(&tree, &["status", "--porcelain"]), "");
    assert_eq!(read(&tree.path, "x.log"), "ignored");
    assert_eq!(capture(&tree, "again").unwrap(), None);
    lab.is_tidy();
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    is_kept(&tree, &captured.commit);
}

#[test]
fn no_name_and_no_identity_is_needed() {
    let lab = Lab::new();
    lab.git(&["config", "user.useConfigOnly", "true"]);
    lab.git(&["config", "commit.gpgSign", "true"]);
    lab.git(&["config", "gpg.program", "/bin/false"]);
    let tree = lab.create();
    edit(&tree);
    assert!(capture(&tree, "").unwrap().is_some());
}

#[test]
fn a_merge_in_progress_goes_on_after_it() {
    let lab = Lab::new();
    let tree = lab.create();
    write(Path::new(&tree.path), "a", "1\nmine\n3\n");
    let mine = commit_in(&tree.path, "mine");
    lab.write("a", "1\ntheirs\n3\n");
    let theirs = lab.commit("theirs");
    git_in(&tree.path, &["merge", "main"]).unwrap_err();
    write(Path::new(&tree.path), "beside", "x\n");
    let captured = capture(&tree, "In the middle").unwrap().unwrap();
    assert_eq!(captured.files, ["a", "beside"]);
    let text = git(&tree, &["show", &format!("{}:a", captured.commit)]);
    assert!(text.contains("<<<<<<<") && text.contains("mine") && text.contains("theirs"), "{text}");
    assert!(git(&tree, &["log", "-1", "--format=%B"]).contains("In conflict, as the merge left them:\n- a"));
    // Whoever works there sees the conflict as before, and ends the merge.
    assert_eq!(git(&tree, &["status", "--porcelain"]), "UU a");
    assert_eq!(capture(&tree, "again").unwrap(), None);
    write(Path::new(&tree.path), "a", "1\nboth\n3\n");
    git(&tree, &["commit", "-a", "-q", "--no-edit"]);
    assert_eq!(git(&tree, &["rev-parse", "HEAD^1", "HEAD^2"]), format!("{}\n{theirs}", captured.commit));
    assert_eq!(git(&tree, &["rev-parse", "HEAD~2"]), mine);
    lab.is_tidy();
    remove(&tree).unwrap();
}

#[test]
fn a_worktree_left_in_conflict_can_be_taken_away_once_captured() {
    let lab = Lab::new();
    let tree = lab.create();
    write(Path::new(&tree.path), "a", "1\nmine\n3\n");
    commit_in(&tree.path, "mine");
    lab.write("a", "1\ntheirs\n3\n");
    lab.commit("theirs");
    git_in(&tree.path, &["merge", "main"]).unwrap_err();
    assert_eq!(remove(&tree).unwrap_err().code(), "dirty_worktree");
    capture(&tree, "kept").unwrap().unwrap();
    remove(&tree).unwrap();
}

#[test]
fn a_rebase_in_progress_is_not_disturbed() {
    let lab = Lab::new();
    let tree = lab.create();
    write(Path::new(&tree.path), "a", "1\nmine\n3\n");
    let mine = commit_in(&tree.path, "mine");
    lab.write("a", "1\ntheirs\n3\n");
    let theirs = lab.commit("theirs");
    git_in(&tree.path, &["rebase", "main"]).unwrap_err();
    let captured = capture(&tree, "In the middle").unwrap().unwrap();
    let kept = format!("refs/lanyard/captured/task_1/{}", &captured.commit[..16]);
    assert_eq!(git(&tree, &["rev-parse", &kept, "lanyard/task_1"]), format!("{}\n{mine}", captured.commit));
    assert_eq!(capture(&tree, "again").unwrap(), None);
    write(Path::new(&tree.path), "a", "1\nboth\n3\n");
    git(&tree, &["add", "a"]);
    let resolved = capture(&tree, "Resolved").unwrap().unwrap();
    assert_eq!(git(&tree, &["show", &format!("{}:a", resolved.commit)]), "1\nboth\n3");
    git(&tree, &["rebase", "--continue"]);
    assert_eq!(git(&tree, &["log", "--format=%s", "main..lanyard/task_1"]), "mine");
    assert_eq!(git(&tree, &["rev-parse", "HEAD^"]), theirs);
    lab.is_tidy();
    remove(&tree).unwrap();
}

#[test]
fn without_a_branch_the_commits_still_reach_it_when_they_follow_it() {
    let lab = Lab::new();
    let tree = lab.create();
    git(&tree, &["checkout", "-q", "--detach"]);
    write(Path::new(&tree.path), "one", "1\n");
    let one = commit_in(&tree.path, "one");
    assert_eq!(capture(&tree, "no file to commit").unwrap(), None);
    assert_eq!(lab.git(&["rev-parse", "lanyard/task_1"]), one);
    write(Path::new(&tree.path), "two", "2\n");
    let two = capture(&tree, "two").unwrap().unwrap();
    write(Path::new(&tree.path), "three", "3\n");
    let last = capture(&tree, "three").unwrap().unwrap();
    assert_eq!(last.files, ["three"]);
    assert_eq!(
        lab.git(&["log", "--format=%H", "main..lanyard/task_1"]),
        format!("{}\n{}\n{one}", last.commit, two.commit)
    );
    // HEAD is where the agent put it.
    assert_eq!(git(&tree, &["rev-parse", "HEAD"]), one);
    is_kept(&tree, &last.commit);
}

#[test]
fn what_does_not_follow_the_branch_is_kept_beside_it() {
    let lab = Lab::new();
    let tree = lab.create();
    write(Path::new(&tree.path), "one", "1\n");
    let one = commit_in(&tree.path, "one");
    git(&tree, &["checkout", "-q", "--detach", "main"]);
    write(Path::new(&tree.path), "lost", "commit on no branch\n");
    let lost = commit_in(&tree.path, "lost");
    assert_eq!(capture(&tree, "nothing to commit").unwrap(), None);
    assert!(lab.git(&["for-each-ref", "--contains", &lost]).contains("refs/lanyard/captured/task_1/"));
    write(Path::new(&tree.path), "more", "x\n");
    let captured = capture(&tree, "more").unwrap().unwrap();
    assert_eq!(lab.git(&["rev-parse", &format!("{}^", captured.commit)]), lost);
    assert_eq!(lab.git(&["rev-parse", "lanyard/task_1"]), one);
    is_kept(&tree, &captured.commit);
}

#[test]
fn standing_further_back_undoes_nothing_of_the_branch() {
    let lab = Lab::new();
    let tree = lab.create();
    write(Path::new(&tree.path), "one", "1\n");
    let one = commit_in(&tree.path, "one");
    git(&tree, &["checkout", "-q", "--detach", "HEAD~1"]);
    write(Path::new(&tree.path), "beside", "x\n");
    let captured = capture(&tree, "beside").unwrap().unwrap();
    assert_eq!(lab.git(&["rev-parse", "lanyard/task_1"]), one);
    assert_eq!(lab.git(&["rev-parse", &format!("{}^", captured.commit)]), tree.base);
    is_kept(&tree, &captured.commit);
}

#[test]
fn a_branch_that_was_deleted_is_made_again_and_still_ours() {
    let lab = Lab::new();
    let tree = lab.create();
    git(&tree, &["checkout", "-q", "--detach"]);
    git(&tree, &["branch", "-q", "-D", "lanyard/task_1"]);
    write(Path::new(&tree.path), "one", "1\n");
    let captured = capture(&tree, "one").unwrap().unwrap();
    assert_eq!(lab.git(&["rev-parse", "lanyard/task_1"]), captured.commit);
    remove(&tree).unwrap();
    assert_eq!(lab.create(), tree);
    assert_eq!(read(&tree.path, "one"), "1\n");
}

#[test]
fn a_branch_the_agent_chose_is_not_moved_and_ours_follows() {
    let lab = Lab::new();
    let tree = lab.create();
    git(&tree, &["checkout", "-q", "-b", "idea"]);
    write(Path::new(&tree.path), "one", "1\n");
    let one = commit_in(&tree.path, "one");
    write(Path::new(&tree.path), "two", "2\n");
    let two = capture(&tree, "two").unwrap().unwrap();
    assert_eq!(lab.git(&["rev-parse", "idea", "lanyard/task_1"]), format!("{one}\n{}", two.commit));
    write(Path::new(&tree.path), "two", "changed\n");
    let last = capture(&tree, "three").unwrap().unwrap();
    assert_eq!(lab.git(&["rev-parse", "idea", "lanyard/task_1"]), format!("{one}\n{}", last.commit));
    is_kept(&tree, &last.commit);
}

#[test]
fn a_branch_without_commits_of_the_agents_making() {
    let lab = Lab::new();
    let tree = lab.create();
    git(&tree, &["checkout", "-q", "--orphan", "fresh"]);
    write(Path::new(&tree.path), "one", "1\n");
    let captured = capture(&tree, "fresh").unwrap().unwrap();
    assert_eq!(captured.files.len(), 4);
    assert_eq!(lab.git(&["rev-parse", "lanyard/task_1"]), tree.base);
    is_kept(&tree, &captured.commit);
}

#[test]
fn a_lock_that_is_held_is_said_and_nothing_moves() {
    let lab = Lab::new();
    let tree = lab.create();
    edit(&tree);
    let lock = PathBuf::from(git(&tree, &["rev-parse", "--absolute-git-dir"])).join("index.lock");
    fs::write(&lock, "").unwrap();
    let error = capture(&tree, "x").unwrap_err();
    assert_eq!((error.code(), error.is_for_good()), ("git_locked", false));
    assert_eq!(lab.git(&["rev-parse", "lanyard/task_1"]), tree.base);
    fs::remove_file(&lock).unwrap();
    assert!(capture(&tree, "x").unwrap().is_some());
}

#[test]
fn stopped_between_index_and_branch_it_is_captured_the_next_time() {
    let lab = Lab::new();
    let tree = lab.create();
    edit(&tree);
    // The index was installed, the branch did not move.
    git(&tree, &["add", "-A"]);
    let captured = capture(&tree, "x").unwrap().unwrap();
    assert_eq!(captured.files_changed, 3);
    is_kept(&tree, &captured.commit);
}

#[test]
fn the_list_of_files_has_an_end() {
    let lab = Lab::new();
    let tree = lab.create();
    for number in 0..250 {
        write(Path::new(&tree.path), &format!("f{number}"), "x");
    }
    let captured = capture(&tree, "many").unwrap().unwrap();
    assert_eq!((captured.files.len(), captured.files_changed), (200, 250));
}

#[test]
fn a_folder_that_lost_its_link_is_never_taken_for_the_repository_around_it() {
    let lab = Lab::new();
    // The worktrees are inside somebody's repository.
    git_in(lab.root.parent().unwrap().parent().unwrap(), &["init", "-q"]).unwrap();
    let tree = lab.create();
    edit(&tree);
    fs::remove_file(Path::new(&tree.path).join(".git")).unwrap();
    assert_eq!(capture(&tree, "x").unwrap_err().code(), "worktree_broken");
    assert_eq!(remove(&tree).unwrap_err().code(), "worktree_broken");
    git_in(&tree.path, &["init", "-q"]).unwrap();
    assert_eq!(capture(&tree, "x").unwrap_err().code(), "worktree_broken");
    assert_eq!(discard(&tree).unwrap_err().code(), "worktree_broken");
    assert_eq!(read(&tree.path, "new/file"), "new\n");
    assert_eq!(
        capture(&Tree { repository: "/nonexistent".to_owned(), ..tree }, "x").unwrap_err().code(),
        "folder_gone"
    );
}
