//! Making a worktree, and making it again after it was interrupted.

use super::*;

#[test]
fn a_task_gets_a_folder_and_a_branch_of_its_own() {
    // S4-09
    let lab = Lab::new();
    lab.write("a", "not committed\n");
    lab.write("untracked", "x");
    let tree = lab.create();
    assert_eq!(
        tree,
        Tree {
            path: lab.root.join("task_1").display().to_string(),
            branch: "lanyard/task_1".to_owned(),
            base: lab.head(),
            repository: lab.top.display().to_string(),
            removed: false,
        }
    );
    assert_eq!(read(&tree.path, "a"), "1\n2\n3\n");
    assert!(!Path::new(&tree.path).join("untracked").exists());
    assert_eq!(git_in(&tree.path, &["branch", "--show-current"]).unwrap(), "lanyard/task_1");
    assert_eq!(read(&lab.top, "a"), "not committed\n");
    lab.is_tidy();
}

#[test]
fn it_begins_at_a_branch_a_tag_or_a_commit() {
    let lab = Lab::new();
    let first = lab.head();
    lab.git(&["tag", "-a", "v1", "-m", "one"]);
    lab.write("c", "c\n");
    lab.commit("second");
    for (name, base) in [("task_1", "v1"), ("task_2", "main~1"), ("task_3", first.as_str())] {
        let tree = create(&lab.root, &lab.top, name, None, Some(base)).unwrap();
        assert_eq!(tree.base, first);
        assert!(!Path::new(&tree.path).join("c").exists());
    }
    for unknown in ["nothing", "--help", "v1..main", "", "a\nb", "main:a", "-x"] {
        let error = create(&lab.root, &lab.top, "task_9", None, Some(unknown)).unwrap_err();
        assert_eq!(error.code(), "unknown_base", "{unknown}: {error}");
    }
    assert!(git_in(&lab.top, &["rev-parse", "lanyard/task_9"]).is_err());
}

#[test]
fn asked_again_it_answers_the_same() {
    // S4-14
    let lab = Lab::new();
    let tree = lab.create();
    write(Path::new(&tree.path), "work", "in progress");
    lab.write("c", "c\n");
    lab.commit("the source goes on");
    assert_eq!(lab.create(), tree);
    assert_eq!(read(&tree.path, "work"), "in progress");
}

#[test]
fn a_redeployed_task_goes_on_with_its_branch() {
    // S4-14
    let lab = Lab::new();
    let tree = lab.create();
    write(Path::new(&tree.path), "work", "done");
    commit_in(&tree.path, "work");
    remove(&tree).unwrap();
    assert_eq!(lab.create(), tree);
    assert_eq!(read(&tree.path, "work"), "done");
    // The folder was deleted by hand.
    fs::remove_dir_all(&tree.path).unwrap();
    assert_eq!(lab.create(), tree);
    assert_eq!(read(&tree.path, "work"), "done");
    lab.is_tidy();
}

#[test]
fn stopped_after_any_step_it_is_finished_the_next_time() {
    let (key, value) = ("branch.lanyard/task_1.lanyard-task", "task_1");
    let mark: fn(&Lab) = |lab| {
        lab.git(&["config", "branch.lanyard/task_1.lanyard-base", &lab.head()]);
        lab.git(&["config", "branch.lanyard/task_1.lanyard-task", "task_1"]);
    };
    let branch: fn(&Lab) = |lab| drop(lab.git(&["branch", "lanyard/task_1"]));
    let empty: fn(&Lab) = |lab| fs::create_dir_all(lab.root.join("task_1")).unwrap();
    // As git leaves it when it is killed: an entry, and as much of the folder as there was time for.
    let half: fn(&Lab) = |lab| {
        let path = lab.root.join(".making/task_1.0");
        lab.git(&["worktree", "add", "-q", "--no-checkout", path.to_str().unwrap(), "lanyard/task_1"]);
        fs::write(lab.top.join(".git/worktrees/task_1.0/locked"), "initializing\n").unwrap();
        fs::write(path.join("a"), "1\n").unwrap();
    };
    let told: fn(&Lab) = |lab| {
        let link = lab.root.join("task_1/.git");
        fs::write(lab.top.join(".git/worktrees/task_1.0/gitdir"), link.to_str().unwrap()).unwrap();
    };
    let headless: fn(&Lab) = |lab| {
        fs::remove_file(lab.top.join(".git/worktrees/task_1.0/HEAD")).unwrap();
    };
    // Killed when it took away what it could not finish.
    let stillborn: fn(&Lab) = |lab| {
        fs::remove_file(lab.top.join(".git/worktrees/task_1.0/gitdir")).unwrap();
        fs::remove_file(lab.top.join(".git/worktrees/task_1.0/locked")).unwrap();
    };
    let placed: fn(&Lab) =
        |lab| fs::rename(lab.root.join(".making/task_1.0"), lab.root.join("task_1")).unwrap();
    let checked_out: fn(&Lab) = |lab| {
        git_in(lab.root.join(".making/task_1.0"), &["reset", "-q", "--hard"]).unwrap();
        fs::remove_file(lab.top.join(".git/worktrees/task_1.0/locked")).unwrap();
    };
    let base_alone: fn(&Lab) =
        |lab| drop(lab.git(&["config", "--unset", "branch.lanyard/task_1.lanyard-task"]));
    let steps: [&[fn(&Lab)]; 11] = [
        &[mark, base_alone],
        &[mark],
        &[mark, branch],
        &[empty],
        &[mark, branch, empty],
        &[mark, branch, half],
        &[mark, branch, half, headless],
        &[mark, branch, half, headless, stillborn],
        &[mark, branch, half, checked_out],
        &[mark, branch, half, checked_out, told],
        &[mark, branch, half, checked_out, told, placed],
    ];
    for (number, steps) in steps.iter().enumerate() {
        let lab = Lab::new();
        steps.iter().for_each(|step| step(&lab));
        let tree = lab.create();
        assert_eq!(tree.base, lab.head(), "{number}");
        assert_eq!(read(&tree.path, "a"), "1\n2\n3\n", "{number}");
        assert_eq!(git_in(&tree.path, &["status", "--porcelain"]).unwrap(), "", "{number}");
        assert_eq!(lab.git(&["config", key]), value);
        assert_eq!(lab.create(), tree, "{number}");
        lab.is_tidy();
    }
}

#[test]
fn a_branch_somebody_else_made_is_left_alone() {
    let lab = Lab::new();
    lab.git(&["branch", "lanyard/task_1"]);
    assert_eq!(lab.code(None, None), "branch_exists");
    assert_eq!(lab.code(Some("main"), None), "branch_exists");
    let tree = lab.try_create(Some("feature/x"), None).unwrap();
    assert_eq!(tree.branch, "feature/x");
    let other = create(&lab.root, &lab.top, "task_2", Some("feature/x"), None).unwrap_err();
    assert_eq!(other.code(), "branch_exists");
    // A branch cannot be a folder of another one.
    let below = create(&lab.root, &lab.top, "task_2", Some("feature/x/y"), None).unwrap_err();
    assert_eq!(below.code(), "branch_exists");
    assert!(git_in(&lab.top, &["config", "branch.feature/x/y.lanyard-task"]).is_err());
    assert!(!lab.root.join("task_2").exists());
}

#[test]
fn names_are_names_and_never_options() {
    let lab = Lab::new();
    for bad in ["-b", "a..b", "HEAD", "", "a b", "x.lock", "@{-1}", "a\nb"] {
        assert_eq!(lab.code(Some(bad), None), "bad_branch_name", "{bad}");
    }
    for bad in ["../x", "", "-x", ".hidden", "a/b"] {
        let error = create(&lab.root, &lab.top, bad, None, None).unwrap_err();
        assert_eq!(error.code(), "bad_branch_name", "{bad}");
    }
}

#[test]
fn a_place_that_is_taken_is_left_alone() {
    let lab = Lab::new();
    let path = lab.root.join("task_1");
    write(&path, "precious", "x");
    assert_eq!(lab.code(None, None), "folder_in_use");
    fs::remove_dir_all(&path).unwrap();
    fs::write(&path, "a file").unwrap();
    assert_eq!(lab.code(None, None), "folder_in_use");
    fs::remove_file(&path).unwrap();
    // Another repository.
    git_in(&lab.root, &["init", "-q", "task_1"]).unwrap();
    assert_eq!(lab.code(None, None), "folder_in_use");
    assert!(path.join(".git").exists());
    assert!(git_in(&lab.top, &["rev-parse", "lanyard/task_1"]).is_err());
}

#[test]
fn a_worktree_somebody_made_in_its_place_is_left_alone() {
    let lab = Lab::new();
    let path = lab.root.join("task_1");
    lab.git(&["worktree", "add", "-q", "-b", "feature", path.to_str().unwrap()]);
    assert_eq!(lab.code(None, None), "folder_in_use");
    lab.git(&["worktree", "remove", "--force", path.to_str().unwrap()]);
    std::os::unix::fs::symlink(&lab.top, &path).unwrap();
    assert_eq!(lab.code(None, None), "folder_in_use");
    fs::remove_file(&path).unwrap();
    let tree = lab.create();
    fs::remove_dir_all(&path).unwrap();
    std::os::unix::fs::symlink(&lab.top, &path).unwrap();
    assert_eq!(capture(&tree, "x").unwrap_err().code(), "worktree_broken");
    assert_eq!(remove(&tree).unwrap_err().code(), "worktree_broken");
}

#[test]
fn without_a_repository_or_a_commit_there_is_none() {
    let lab = Lab::init();
    assert_eq!(lab.code(None, None), "no_commit");
    assert!(is_repository(&lab.top));
    let plain = lab.root.parent().unwrap().join("plain");
    fs::create_dir_all(&plain).unwrap();
    assert!(!is_repository(&plain));
    assert_eq!(create(&lab.root, &plain, "t", None, None).unwrap_err().code(), "not_a_repository");
    git_in(&plain, &["init", "-q", "--bare"]).unwrap();
    assert!(!is_repository(&plain));
    assert_eq!(create(&lab.root, &plain, "t", None, None).unwrap_err().code(), "not_a_repository");
    let gone = plain.join("gone");
    assert_eq!(create(&lab.root, &gone, "t", None, None).unwrap_err().code(), "folder_gone");
}

#[test]
fn a_worktree_of_a_worktree_belongs_to_the_same_repository() {
    let lab = Lab::new();
    lab.write("sub/c", "c\n");
    lab.commit("sub");
    let tree = create(&lab.root, &lab.top.join("sub"), "task_1", None, None).unwrap();
    assert_eq!(tree.repository, lab.top.display().to_string());
    write(Path::new(&tree.path), "work", "of the parent");
    let head = commit_in(&tree.path, "parent");
    let child = create(&lab.root, Path::new(&tree.path), "task_2", None, None).unwrap();
    assert_eq!((child.repository.as_str(), &child.base), (tree.repository.as_str(), &head));
    assert_eq!(read(&child.path, "work"), "of the parent");
}

#[test]
fn worktrees_of_a_bare_repository_have_it_as_their_top() {
    let lab = Lab::new();
    let bare = lab.root.parent().unwrap().join("bare");
    fs::create_dir_all(&bare).unwrap();
    git_in(&bare, &["clone", "-q", "--bare", lab.top.to_str().unwrap(), "."]).unwrap();
    git_in(&bare, &["worktree", "add", "-q", "../linked", "main"]).unwrap();
    let linked = bare.with_file_name("linked");
    let tree = create(&lab.root, &linked, "task_1", None, None).unwrap();
    assert_eq!(tree.repository, bare.display().to_string());
    write(Path::new(&tree.path), "work", "x");
    assert!(capture(&tree, "kept").unwrap().is_some());
    assert!(merge(&tree, &linked, "m").unwrap().fast_forward);
    remove(&tree).unwrap();
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_is_in_use() {
    let lab = Lab::new();
    let tree = lab.create();
    remove(&tree).unwrap();
    lab.git(&["checkout", "-q", "lanyard/task_1"]);
    assert_eq!(lab.code(None, None), "branch_in_use");
    lab.git(&["checkout", "-q", "main"]);
    assert_eq!(lab.create(), tree);
}

#[test]
fn a_worktree_whose_branch_was_renamed_gets_it_again_where_it_stands() {
    let lab = Lab::new();
    let tree = lab.create();
    write(Path::new(&tree.path), "work", "x");
    let head = commit_in(&tree.path, "work");
    git_in(&tree.path, &["branch", "-m", "mine"]).unwrap();
    assert_eq!(lab.create(), tree);
    assert_eq!(lab.git(&["rev-parse", "lanyard/task_1"]), head);
}

/// A git that is killed while it changes a branch leaves the branch's lock. One that is old was left; a fresh one may be
/// another git's, and so may any lock of a branch that is not the worktree's own.
#[test]
fn the_lock_that_a_killed_git_left_on_the_branch_is_removed() {
    let lab = Lab::new();
    let tree = lab.create();
    discard(&tree).unwrap();
    lab.git(&["config", "branch.lanyard/task_1.lanyard-base", &tree.base]);
    lab.git(&["config", "branch.lanyard/task_1.lanyard-task", "task_1"]);
    lab.git(&["branch", "lanyard/task_1"]);
    let lock = lab.top.join(".git/refs/heads/lanyard/task_1.lock");
    let old = std::time::SystemTime::UNIX_EPOCH;
    let leave = |modified: Option<std::time::SystemTime>| {
        let file = fs::File::create(&lock).unwrap();
        if let Some(at) = modified {
            file.set_modified(at).unwrap();
        }
    };
    leave(None);
    assert_eq!(lab.code(None, None), "git_locked");
    assert!(lock.exists(), "a fresh lock is another git's");
    lab.git(&["config", "branch.lanyard/task_1.lanyard-task", "task_2"]);
    leave(Some(old));
    assert_eq!(lab.code(None, None), "branch_exists");
    assert!(lock.exists(), "a lock of another task's branch");
    lab.git(&["config", "branch.lanyard/task_1.lanyard-task", "task_1"]);
    assert_eq!(lab.create(), tree);
    assert!(!lock.exists());
}

#[test]
fn many_at_once_share_one_repository() {
    let lab = Lab::new();
    let make = |number: usize| create(&lab.root, &lab.top, &format!("task_{number}"), None, None);
    let trees: Vec<Tree> = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..6).map(|number| scope.spawn(move || make(number))).collect();
        makers.into_iter().map(|maker| maker.join().unwrap().unwrap()).collect()
    });
    for (number, tree) in trees.iter().enumerate() {
        assert_eq!(&make(number).unwrap(), tree);
    }
    lab.is_tidy();
}

/// Whatever moment it is killed at, or when it goes on after the daemon that called it is gone.
#[test]
fn git_is_killed_at_any_moment_or_outlives_its_daemon() {
    use rustix::process::{Pid, Signal, kill_process_group};
    use std::os::unix::process::CommandExt;
    let lab = Lab::new();
    for number in 0..400 {
        lab.write(&format!("many/{number}"), &"x".repeat(2_000));
    }
    lab.commit("many");
    for round in 0..8_u64 {
        let tree = lab.create();
        discard(&tree).unwrap();
        // As far as `create` had come: the branch is made.
        lab.git(&["config", "branch.lanyard/task_1.lanyard-base", &tree.base]);
        lab.git(&["config", "branch.lanyard/task_1.lanyard-task", "task_1"]);
        lab.git(&["branch", "lanyard/task_1"]);
        let attempt = lab.root.join(format!(".making/task_1.{round}"));
        let mut git = Command::new("git")
            .args(["-c", "core.hooksPath=/dev/null"])
            .args(["worktree", "add", "-q", attempt.to_str().unwrap(), "lanyard/task_1"])
            .current_dir(&lab.top)
            .process_group(0)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // sleep: the moment is what is tried; any outcome must be right.
        std::thread::sleep(std::time::Duration::from_millis(round * 4));
        if round % 2 == 0 {
            let group = Pid::from_raw(i32::try_from(git.id()).unwrap()).unwrap();
            kill_process_group(group, Signal::KILL).ok();
        }
        // The one that is still there may write into what is taken away.
        let mut tries = (0..100).map(|_| lab.try_create(None, None));
        let again = tries.find(|made| made.as_ref().err().is_none_or(WorktreeError::is_for_good));
        let again = again.unwrap().unwrap();
        git.wait().unwrap();
        assert_eq!(again, tree);
        assert_eq!(git_in(&tree.path, &["status", "--porcelain"]).unwrap(), "", "{round}");
        assert_eq!(lab.create(), tree);
    }
}

/// FND-R13. A commit counts as new work when it is on the worktree's branch and after the one the work began at.
#[test]
fn fnd_r13_only_a_new_commit_on_the_branch_is_new_work() {
    let lab = Lab::new();
    let tree = create(&lab.root, &lab.top, "flow_1", None, None).unwrap();
    let folder = Path::new(&tree.path);
    let commit = |folder: &Path, message: &str| {
        git_in(folder, &["commit", "-q", "--allow-empty", "-m", message]).unwrap();
        git_in(folder, &["rev-parse", "HEAD"]).unwrap().trim().to_owned()
    };
    let why = |commit: &str, after: &str| is_new_work(folder, commit, Some(after)).unwrap_err();
    assert!(why(&tree.base, &tree.base).contains("is not new"), "the base is nobody's work");
    assert!(why("HEAD", &tree.base).contains("is not new"));
    let elsewhere = commit(&lab.top, "of somebody else");
    assert!(why(&elsewhere, &tree.base).contains("is not on the branch"));
    assert!(why("0123abcd", &tree.base).contains("there is no commit"));
    let first = commit(folder, "first");
    assert_eq!(is_new_work(folder, &first[..10], Some(&tree.base)), Ok(()));
    assert!(why(&first, &first).contains("--allow-empty"));
    let second = commit(folder, "second");
    assert_eq!(is_new_work(folder, &second, Some(&first)), Ok(()));
    assert!(why(&first, &second).contains("is not new"), "older than what was taken");
}

/// FND-R13. What an agent's sandbox has to let it write, and nothing that others run.
#[test]
fn fnd_r13_a_commit_writes_these_folders() {
    let lab = Lab::new();
    let tree = create(&lab.root, &lab.top, "flow_1", None, None).unwrap();
    let common = lab.top.join(".git").canonicalize().unwrap();
    let folders = commit_folders(Path::new(&tree.path));
    let inside: Vec<&Path> = folders.iter().map(|folder| folder.strip_prefix(&common).unwrap()).collect();
    assert!(inside[0].starts_with("worktrees"), "{inside:?}");
    for folder in ["objects", "refs/heads/lanyard", "logs/refs/heads/lanyard"] {
        assert!(inside.contains(&Path::new(folder)), "{inside:?}");
    }
    assert!(inside.iter().all(|folder| !folder.as_os_str().is_empty() && !folder.starts_with("hooks")));
    assert_eq!(commit_folders(&lab.top), Vec::<PathBuf>::new(), "not of the user's own checkout");
}
