//! What a restore must not destroy, and callers that meet each other.

use super::*;

#[test]
fn ignored_files_survive_the_loss_of_the_rules() {
    let lab = Lab::new();
    lab.write("x.log", "log");
    lab.write("out/deep/y", "built");
    let state = lab.state();
    let snapshot = lab.take_unseen("t1");
    fs::remove_file(lab.path(".gitignore")).unwrap();
    lab.write("new", "new");
    lab.git(&["add", "-A"]);
    let restored = lab.restore_to(&snapshot, &state);
    assert_eq!((restored.added, restored.removed), (1, 1));
    assert!(restored.notes.iter().any(|note| note.contains("2 ignored files")), "{restored:?}");
}

#[test]
fn an_ignored_file_added_by_force_survives() {
    let lab = Lab::new();
    lab.write("secret.log", "key");
    let state = lab.state();
    let snapshot = lab.take_unseen("t1");
    lab.git(&["add", "-f", "secret.log"]);
    lab.restore_to(&snapshot, &state);
}

#[test]
fn a_file_that_is_ignored_by_now_comes_back_and_its_bytes_are_named() {
    let lab = Lab::new();
    lab.write("result", "then");
    let state = lab.state();
    let snapshot = lab.take_unseen("t1");
    lab.write(".gitignore", "*.log\nout/\nresult\n");
    lab.write("result", "now");
    let restored = lab.restore_to(&snapshot, &state);
    let note = restored.notes.iter().find(|note| note.starts_with("result")).unwrap();
    let blob = note.split("blob ").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
    assert_eq!(lab.git(&["cat-file", "blob", blob]), "now");
}

#[test]
fn ignored_files_in_the_way_stay_and_the_notes_say_so() {
    let lab = Lab::new();
    lab.write("spot", "file");
    lab.write("dir/file", "file");
    let snapshot = lab.take_unseen("t1");
    fs::remove_file(lab.path("spot")).unwrap();
    lab.write("spot/x.log", "precious");
    lab.write("spot/y", "new");
    fs::remove_dir_all(lab.path("dir")).unwrap();
    lab.write(".gitignore", "*.log\nout/\ndir\n");
    lab.write("dir", "precious");
    let restored = lab.restore(&snapshot);
    assert_eq!((lab.read("spot/x.log"), lab.read("dir")), ("precious".to_owned(), "precious".to_owned()));
    assert!(!lab.path("spot/y").exists());
    let notes = restored.notes.join("\n");
    assert!(
        notes.contains("spot was not put back") && notes.contains("dir/file was not put back"),
        "{notes}"
    );
}

#[test]
fn a_file_marked_unchanged_keeps_its_local_bytes_and_its_mark() {
    let lab = Lab::new();
    lab.git(&["update-index", "--assume-unchanged", "a"]);
    lab.write("a", "local\n");
    lab.write("b", "then\n");
    let state = lab.state();
    let snapshot = lab.take_unseen("t1");
    lab.write("b", "now\n");
    lab.restore_to(&snapshot, &state);
    assert!(lab.git(&["ls-files", "-v", "a"]).starts_with('h'));
}

#[test]
fn a_file_nobody_may_read_is_left_out_and_named() {
    let lab = Lab::new();
    lab.write("closed", "x");
    fs::set_permissions(lab.path("closed"), fs::Permissions::from_mode(0o0)).unwrap();
    if fs::read(lab.path("closed")).is_ok() {
        // The superuser may read everything.
        return;
    }
    let snapshot = lab.take_unseen("t1");
    assert!(snapshot.notes.iter().any(|note| note.contains("closed")), "{snapshot:?}");
    lab.restore(&snapshot);
    assert!(lab.path("closed").exists());
}

#[test]
fn a_locked_index_is_said_before_anything_is_written() {
    let lab = Lab::new();
    let snapshot = lab.take_unseen("t1");
    lab.write("a", "changed\n");
    let lock = lab.path(".git/index.lock");
    fs::write(&lock, "").unwrap();
    assert_eq!(restore(&lab.top, &snapshot.commit).unwrap_err().code(), "git_locked");
    assert_eq!(lab.read("a"), "changed\n");
    assert!(lock.exists());
    // A snapshot needs no lock.
    lab.take("t2");
}

#[test]
fn many_snapshots_at_once() {
    let lab = Lab::new();
    lab.write("a", "changed\n");
    lab.write("new", "new\n");
    let before = lab.index();
    let trees: Vec<String> = std::thread::scope(|scope| {
        let lab = &lab;
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || lab.take(&format!("t{n}")).tree)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(trees.iter().all(|tree| *tree == trees[0]));
    assert_eq!(list(&lab.top, "s1").unwrap().len(), 8);
    assert_eq!(before, lab.index());
    lab.no_leftovers();
}

#[test]
fn the_same_name_at_once_is_had_by_one() {
    let lab = Lab::new();
    let outcomes: Vec<Result<Snapshot, SnapshotError>> = std::thread::scope(|scope| {
        let start = || take(&lab.top, "s1", "same", "");
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    assert!(list(&lab.top, "s1").unwrap().len() == 1);
}

#[test]
fn hooks_and_file_monitors_of_the_repository_do_not_run() {
    let lab = Lab::new();
    let snapshot = lab.take_unseen("t1");
    let hooks = ["post-index-change", "reference-transaction", "post-checkout", "pre-commit", "monitor"];
    for hook in hooks {
        lab.write(format!(".git/hooks/{hook}"), "#!/bin/sh\ntouch ../ran ran\n");
        let path = lab.path(format!(".git/hooks/{hook}"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    lab.git(&["config", "core.fsmonitor", ".git/hooks/monitor"]);
    lab.write("a", "changed\n");
    lab.take("t2");
    lab.restore(&snapshot);
    remove_all(&lab.top, "s1").unwrap();
    assert!(!lab.path("ran").exists() && !lab.path("../ran").exists());
}
