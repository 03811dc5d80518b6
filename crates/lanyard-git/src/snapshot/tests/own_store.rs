//! Checkpoints are in a store of their own, which holds all they need (FND-N9).

use super::*;
use crate::snapshot::old_refs;

fn commits_seen(lab: &Lab) -> usize {
    lab.git(&["log", "--all", "--format=%H"]).lines().count()
}

fn store_is_whole(lab: &Lab) {
    let store = lab.store();
    git_in(&store, &["fsck", "--connectivity-only", "--no-dangling"]).unwrap();
}

#[test]
fn fnd_n9_the_repository_shows_nothing_of_its_checkpoints() {
    let lab = Lab::new();
    let objects = lab.git(&["count-objects", "-v"]);
    for turn in 0..5 {
        lab.write("a", format!("{turn}\n"));
        lab.write(format!("new-{turn}"), "new\n");
        lab.take_unseen(&format!("t{turn}"));
    }
    assert_eq!(commits_seen(&lab), 1);
    assert_eq!(lab.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main\n");
    assert_eq!(lab.git(&["count-objects", "-v"]), objects, "no object was written into the repository");
    store_is_whole(&lab);
}

/// The user rewrites history and collects garbage: all that the checkpoint needs of the old history is still there.
#[test]
fn fnd_n9_the_garbage_collection_of_the_repository_loses_no_checkpoint() {
    let lab = Lab::new();
    lab.write("staged", "staged\n");
    lab.git(&["add", "staged"]);
    lab.write("untracked", "untracked\n");
    let state = lab.state();
    let files = files_in(&lab.top);
    let snapshot = lab.take_unseen("t1");
    lab.git(&["rm", "-rfq", "."]);
    lab.write("other", "other\n");
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "--amend", "-m", "rewritten"]);
    fs::remove_file(lab.path("untracked")).ok();
    lab.git(&["reflog", "expire", "--expire=now", "--all"]);
    lab.git(&["gc", "-q", "--prune=now"]);
    let gone = git_in(&lab.top, &["cat-file", "-e", snapshot.head.as_deref().unwrap()]);
    assert!(gone.is_err(), "the old commit is really gone");
    store_is_whole(&lab);
    assert_eq!(diff(&lab.top, &snapshot.commit, DiffTo::Worktree).unwrap().files.len(), 7);
    lab.restore(&snapshot);
    assert_eq!(files_in(&lab.top), files);
    assert_eq!(lab.state().entries, state.entries);
    lab.git(&["fsck", "--connectivity-only", "--no-dangling"]);
    lab.git(&["commit", "-q", "-m", "the index can be committed"]);
}

#[test]
fn fnd_n9_a_checkpoint_costs_what_changed() {
    let lab = Lab::new();
    for file in 0..300 {
        lab.write(format!("folder-{}/file-{file}", file % 20), format!("{file}\n").repeat(200));
    }
    lab.commit("many files");
    lab.take("t1");
    let count = || {
        let text = git_in(&lab.store(), &["count-objects", "-v"]).unwrap();
        let number = |key: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.trim_start_matches(": ").parse().unwrap()
        };
        number("count") + number("in-pack")
    };
    let first = count();
    lab.write("folder-3/file-3", "changed\n");
    lab.take("t2");
    // A blob, two trees and two commits; the old blob is in the index's tree, which the store has already.
    assert_eq!(count() - first, 5);
    // Committed by the agent: the same files, in objects of the repository.
    lab.commit("by the agent");
    lab.write("folder-4/file-4", "changed too\n");
    lab.take("t3");
    assert_eq!(count() - first, 10);
    store_is_whole(&lab);
}

/// FND-M10: the same files again are another name for the same commit.
#[test]
fn fnd_m10_an_unchanged_workspace_is_not_stored_twice() {
    let lab = Lab::new();
    lab.write("a", "changed\n");
    let first = lab.take("t1");
    let objects = git_in(&lab.store(), &["count-objects", "-v"]).unwrap();
    let second = lab.take("t2");
    assert_eq!((&second.commit, second.name.as_str()), (&first.commit, "t2"));
    assert_eq!(git_in(&lab.store(), &["count-objects", "-v"]).unwrap(), objects);
    let names: Vec<String> = list(&lab.top, "s1").unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["t1", "t2"]);
    // The index alone makes a difference.
    lab.git(&["add", "a"]);
    assert_ne!(lab.take("t3").commit, first.commit);
}

#[test]
fn fnd_n9_removed_checkpoints_take_their_objects_along() {
    let lab = Lab::new();
    lab.write("a", "a secret of s1\n");
    let secret = lab.take("t1");
    lab.write("a", "known to s2\n");
    let kept = take(&lab.top, "s2", "t1", "").unwrap();
    let store = checkpoints(&lab.top).1;
    assert_eq!(store.sessions().into_iter().collect::<Vec<_>>(), ["s1", "s2"]);
    assert_eq!((store.count("s1").unwrap(), store.remove_all("s1").unwrap()), (1, 1));
    store.tidy().unwrap();
    assert!(git_in(&lab.store(), &["cat-file", "-e", &secret.commit]).is_err());
    assert!(git_in(&lab.store(), &["cat-file", "-e", &format!("{}:a", secret.tree)]).is_err());
    store_is_whole(&lab);
    lab.restore(&kept);
    assert_eq!(store.remove_all("s2").unwrap(), 1);
    store.tidy().unwrap();
    assert!(!checkpoints(&lab.top).0.read_dir().unwrap().any(|entry| entry.unwrap().path().is_dir()));
    // It is made again when it is needed.
    lab.take("t1");
    assert_eq!(list(&lab.top, "s1").unwrap().len(), 1);
}

/// A checkpoint as older versions kept it: a commit on HEAD, under a ref of the repository.
fn old_checkpoint(lab: &Lab, name: &str) -> String {
    let head = lab.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let index_tree = lab.git(&["write-tree"]).trim().to_owned();
    let index = lab.git(&["commit-tree", &index_tree, "-p", &head, "-m", name]).trim().to_owned();
    lab.git(&["add", "-A"]);
    let tree = lab.git(&["write-tree"]).trim().to_owned();
    lab.git(&["read-tree", &index_tree]);
    let text = format!(
        "Before {name}\n\nLanyard-Checkpoint: {name}\nLanyard-Head: {head}\nLanyard-Index: {index}\nLanyard-Extras: none\nLanyard-Files-Changed: 2\n"
    );
    let commit = lab.git(&["commit-tree", &tree, "-p", &head, "-p", &index, "-m", &text]);
    lab.git(&["update-ref", &format!("refs/lanyard/s1/{name}"), commit.trim()]);
    commit.trim().to_owned()
}

#[test]
fn fnd_n9_checkpoints_of_an_older_version_move_to_the_store() {
    let lab = Lab::new();
    lab.write("a", "then\n");
    lab.git(&["add", "a"]);
    lab.write("untracked", "u\n");
    let state = lab.state();
    old_checkpoint(&lab, "t1");
    let cut = old_checkpoint(&lab, "t2");
    lab.git(&["update-ref", "refs/lanyard/s1/other", "HEAD"]);
    lab.git(&["update-ref", "refs/lanyard/captured/task_1/x", "HEAD"]);
    assert_eq!(commits_seen(&lab), 5);
    let names = |lab: &Lab| -> Vec<String> {
        list(&lab.top, "s1").unwrap().into_iter().map(|one| one.name).collect()
    };
    assert_eq!(names(&lab), ["t1", "t2"]);
    assert_eq!(commits_seen(&lab), 1);
    let left = lab.git(&["for-each-ref", "--format=%(refname)", "refs/lanyard"]);
    assert_eq!(
        left, "refs/lanyard/captured/task_1/x\nrefs/lanyard/s1/other\n",
        "what is no checkpoint stays"
    );
    // A kill after the store had it and before the ref went: it is done again, once.
    lab.git(&["update-ref", "refs/lanyard/s1/t2", &cut]);
    assert_eq!(names(&lab), ["t1", "t2"]);
    assert_eq!(commits_seen(&lab), 1);
    store_is_whole(&lab);
    lab.write("a", "later\n");
    lab.git(&["commit", "-qam", "later"]);
    lab.git(&["reflog", "expire", "--expire=now", "--all"]);
    lab.git(&["gc", "-q", "--prune=now"]);
    let moved = list(&lab.top, "s1").unwrap();
    lab.restore(&moved[0]);
    assert_eq!((lab.state().files, lab.state().entries), (state.files, state.entries));
    assert_eq!(old_refs::sessions(&lab.top).unwrap().into_iter().collect::<Vec<_>>(), ["captured", "s1"]);
}
