//! Repositories of every shape.

use super::*;

#[test]
fn a_repository_without_commits() {
    let lab = Lab::init();
    let nothing = lab.take("t0");
    assert_eq!((nothing.head.as_deref(), nothing.files_changed), (None, 0));
    lab.write("a", "a");
    lab.write("b", "b");
    lab.git(&["add", "a"]);
    let state = lab.state();
    let snapshot = lab.take_unseen("t1");
    assert_eq!(snapshot.files_changed, 2);
    lab.write("a", "changed");
    fs::remove_file(lab.path("b")).unwrap();
    lab.git(&["add", "-A"]);
    lab.restore_to(&snapshot, &state);
    lab.restore(&nothing);
    assert!(files_in(&lab.top).is_empty());
    assert_eq!(lab.git(&["ls-files"]), "");
}

#[test]
fn a_detached_head_that_moves_on() {
    let lab = Lab::new();
    lab.git(&["checkout", "-q", "--detach"]);
    lab.write("a", "mine\n");
    let snapshot = lab.take_unseen("t1");
    lab.write("b", "more\n");
    lab.commit("by the agent");
    let head = lab.git(&["rev-parse", "HEAD"]);
    let restored = lab.restore(&snapshot);
    assert_eq!((lab.read("a"), lab.read("b")), ("mine\n".to_owned(), "b\n".to_owned()));
    assert_eq!(lab.git(&["rev-parse", "HEAD"]), head);
    assert!(restored.notes.iter().any(|note| note.starts_with("HEAD is at")), "{restored:?}");
}

#[test]
fn a_linked_worktree_has_its_own_files_and_the_same_refs() {
    let main = Lab::new();
    let linked = Lab::empty();
    fs::remove_dir(&linked.top).unwrap();
    main.git(&[
        "worktree".as_ref(),
        "add".as_ref(),
        "-qb".as_ref(),
        "linked".as_ref(),
        linked.top.as_os_str(),
    ]);
    linked.write("a", "linked\n");
    linked.write("new", "linked\n");
    linked.git(&["add", "a"]);
    let (state, main_state) = (linked.state(), main.state());
    let snapshot = linked.take_unseen("t1");
    assert_eq!(list(&main.top, "s1").unwrap(), std::slice::from_ref(&snapshot));
    linked.write("a", "again\n");
    linked.restore_to(&snapshot, &state);
    assert_eq!(main.state(), main_state);
}

#[test]
fn a_folder_within_a_repository_stands_for_all_of_it() {
    let lab = Lab::new();
    lab.write("a", "changed\n");
    lab.write("sub/untracked", "x\n");
    let state = lab.state();
    let snapshot = take(&lab.path("sub"), "s1", "t1", "").unwrap();
    assert_eq!((snapshot.files_changed, snapshot.message.as_str()), (2, "Checkpoint t1"));
    lab.write("a", "again\n");
    lab.write("z", "z");
    let restored = restore(&lab.path("sub"), &snapshot.commit).unwrap();
    assert_eq!((restored.changed, restored.removed), (1, 1));
    assert_eq!(lab.state(), state);
}

#[test]
fn places_that_are_not_a_worktree() {
    let lab = Lab::new();
    let code = |path: &Path| take(path, "s1", "t1", "").unwrap_err().code();
    assert_eq!(code(&lab.path(".git")), "not_git");
    assert_eq!(code(&lab.path(".git/refs")), "not_git");
    assert_eq!(code(&lab.path("missing")), "workspace_gone");
    assert_eq!(code(&lab.path("a")), "workspace_gone");
    let bare = Lab::empty();
    bare.git(&["init", "-q", "--bare"]);
    assert_eq!(code(&bare.top), "not_git");
    let plain = Lab::empty();
    assert_eq!(code(&plain.top), "not_git");
    assert_eq!(list(&plain.top, "s1").unwrap_err().code(), "not_git");
    assert_eq!(diff(&plain.top, "abcd", DiffTo::Worktree).unwrap_err().code(), "not_git");
    assert_eq!(restore(&plain.top, "abcd").unwrap_err().code(), "not_git");
}

#[test]
fn submodules_are_recorded_and_not_descended_into() {
    let (lab, inner) = (Lab::new(), Lab::new());
    lab.git(&["submodule".as_ref(), "add".as_ref(), "-q".as_ref(), inner.top.as_os_str(), "lib".as_ref()]);
    lab.commit("submodule");
    lab.write("lib/a", "changed inside\n");
    lab.write("a", "changed\n");
    let snapshot = lab.take_unseen("t1");
    assert!(snapshot.notes.iter().any(|note| note.contains("submodules")), "{snapshot:?}");
    assert_eq!(snapshot.files_changed, 1);
    let git = |args: &[&str]| git_in(&lab.path("lib"), args).unwrap();
    git(&["commit", "-q", "-a", "-m", "inside"]);
    lab.write("a", "again\n");
    let head = git(&["rev-parse", "HEAD"]);
    let restored = lab.restore(&snapshot);
    assert!(restored.notes.iter().any(|note| note.starts_with("lib is a repository")), "{restored:?}");
    assert_eq!((lab.read("a"), lab.read("lib/a")), ("changed\n".to_owned(), "changed inside\n".to_owned()));
    assert_eq!(git(&["rev-parse", "HEAD"]), head);
}

#[test]
fn a_repository_somebody_made_inside_is_never_removed() {
    let lab = Lab::new();
    let before = lab.take_unseen("t1");
    fs::create_dir_all(lab.path("inner/src")).unwrap();
    git_in(&lab.path("inner"), &["init", "-q"]).unwrap();
    lab.write("inner/src/x", "precious\n");
    // Without a commit git cannot record it at all.
    let unborn = lab.take_unseen("t2");
    assert!(unborn.notes.iter().any(|note| note.contains("inner")), "{unborn:?}");
    lab.restore(&before);
    assert_eq!(lab.read("inner/src/x"), "precious\n");
    git_in(&lab.path("inner"), &["add", "-A"]).unwrap();
    git_in(&lab.path("inner"), &["commit", "-q", "-m", "inside"]).unwrap();
    let recorded = lab.take_unseen("t3");
    assert!(recorded.notes.iter().any(|note| note.contains("inner is a repository")), "{recorded:?}");
    lab.restore(&before);
    assert_eq!(lab.read("inner/src/x"), "precious\n");
    // It stops being a repository: its files were never part of a snapshot, so they stay.
    fs::remove_dir_all(lab.path("inner/.git")).unwrap();
    lab.restore(&recorded);
    assert_eq!(lab.read("inner/src/x"), "precious\n");
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    let lab = Lab::new();
    lab.write("other/d", "d\n");
    lab.commit("more");
    lab.git(&["sparse-checkout", "set", "--cone", "sub"]);
    assert!(!lab.path("other/d").exists());
    lab.write("sub/c", "changed\n");
    lab.write("other/outside", "outside\n");
    let state = lab.state();
    let snapshot = lab.take_unseen("t1");
    let names = lab.kept(&["ls-tree", "-r", "--name-only", &snapshot.commit]);
    assert_eq!(names, ".gitignore\na\nb\nother/d\nother/outside\nsub/c\n");
    lab.write("sub/c", "again\n");
    lab.write("other/outside", "again\n");
    lab.write("sub/new", "new\n");
    lab.restore_to(&snapshot, &state);
    assert!(!lab.path("other/d").exists());
}

#[test]
fn names_of_sixty_four_digits() {
    let lab = Lab::empty();
    if git_in(&lab.top, &["init", "-q", "--object-format=sha256"]).is_err() {
        // This git was built without them.
        return;
    }
    lab.write("a", "a");
    lab.git(&["add", "-N", "a"]);
    let state = lab.state();
    let snapshot = lab.take_unseen("t1");
    assert_eq!(snapshot.commit.len(), 64);
    lab.write("a", "changed");
    lab.restore_to(&snapshot, &state);
}
