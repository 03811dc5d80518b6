//! The setup file of a repository, worktrees on branches that people name, and taking back what was begun.

use super::*;

/// A worktree whose setup file says `text`, with `.env` and `deps` in the repository.
fn with_setup(text: &str) -> (Lab, Tree) {
    let lab = Lab::new();
    lab.write(".gitignore", ".env\ndeps/\n.lanyard/\n");
    lab.commit("ignore");
    lab.write(".env", "KEY=1\n");
    fs::set_permissions(lab.top.join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
    lab.write("deps/x", "x\n");
    lab.write("plain", "not ignored\n");
    lab.write(SETUP_FILE, text);
    let tree = lab.create();
    (lab, tree)
}

fn code_of(text: &str) -> &'static str {
    let (lab, tree) = with_setup(text);
    let done = setup_file(&lab.top).and_then(|file| bring_files(&file.unwrap(), &tree));
    done.unwrap_err().code()
}

#[test]
fn ignored_files_are_copied_and_linked_and_never_committed() {
    let (lab, tree) = with_setup("copy = ['.env', 'gone']\nlink = ['deps']\n");
    let file = setup_file(&lab.top).unwrap().unwrap();
    for _ in 0..2 {
        bring_files(&file, &tree).unwrap();
        assert_eq!(read(&tree.path, ".env"), "KEY=1\n");
        let mode = fs::metadata(Path::new(&tree.path).join(".env")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_link(Path::new(&tree.path).join("deps")).unwrap(), lab.top.join("deps"));
    }
    // `deps/` ignores a folder, not a link: nothing of it may end up in a commit.
    assert_eq!(capture(&tree, "all").unwrap(), None);
    assert!(!is_set_up(&tree).unwrap());
    set_up(&tree).unwrap();
    assert!(is_set_up(&tree).unwrap());
    remove(&tree).unwrap();
    assert_eq!(read(&lab.top, "deps/x"), "x\n", "the link went, not what it leads to");
    lab.is_tidy();
}

#[test]
fn the_hash_is_of_the_content_and_found_from_any_worktree() {
    let (lab, tree) = with_setup("setup = ['true']\n");
    let first = setup_file(&lab.top).unwrap().unwrap();
    assert_eq!(first.content.setup, ["true"]);
    assert_eq!(setup_file(Path::new(&tree.path)).unwrap().unwrap(), first);
    lab.write(SETUP_FILE, "setup = ['true ']\n");
    assert_ne!(setup_file(&lab.top).unwrap().unwrap().hash, first.hash);
    lab.write(SETUP_FILE, "# nothing\nsetup = []\n");
    assert_eq!(setup_file(&lab.top).unwrap(), None);
    fs::remove_file(lab.top.join(SETUP_FILE)).unwrap();
    assert_eq!(setup_file(&lab.top).unwrap(), None);
}

#[test]
fn a_setup_file_that_asks_for_what_it_must_not_is_refused() {
    for text in [
        "copy = ['../x']",
        "copy = ['/etc/passwd']",
        "link = ['.git']",
        "link = ['.GIT/hooks']",
        "copy = ['a*']",
        "copy = ['plain']",
        "copy = ['deps']",
        "setup = ['']",
        "setup = 'npm ci'",
        "unknown = 1",
        "not toml",
    ] {
        assert_eq!(code_of(text), "worktree_setup_bad", "{text}");
    }
}

#[test]
fn links_do_not_lead_out_of_the_repository() {
    let (lab, tree) = with_setup("link = ['deps']\n");
    fs::remove_dir_all(lab.top.join("deps")).unwrap();
    std::os::unix::fs::symlink("/etc", lab.top.join("deps")).unwrap();
    lab.write(".gitignore", ".env\ndeps\n.lanyard/\n");
    let file = setup_file(&lab.top).unwrap().unwrap();
    assert_eq!(bring_files(&file, &tree).unwrap_err().code(), "worktree_setup_bad");
    let copies = SetupFile {
        content: SetupContent { copy: vec!["deps/passwd".to_owned()], ..SetupContent::default() },
        ..file
    };
    assert_eq!(bring_files(&copies, &tree).unwrap_err().code(), "worktree_setup_bad");
}

#[test]
fn a_setup_file_that_is_no_file_is_refused() {
    let lab = Lab::new();
    fs::create_dir_all(lab.top.join(SETUP_FILE)).unwrap();
    assert_eq!(setup_file(&lab.top).unwrap_err().code(), "worktree_setup_bad");
}

#[test]
fn a_branch_that_is_there_is_used_and_stays_its_owner_s() {
    let lab = Lab::new();
    lab.git(&["branch", "feature"]);
    let tip = lab.head();
    let tree = create_on(&lab.root, &lab.top, "sess_1", "feature", None).unwrap();
    assert_eq!((tree.branch.as_str(), tree.base.as_str()), ("feature", tip.as_str()));
    write(Path::new(&tree.path), "new", "x\n");
    capture(&tree, "kept").unwrap().unwrap();
    remove(&tree).unwrap();
    undo(&lab.root, &lab.top, "sess_1", "feature").unwrap();
    assert_ne!(lab.git(&["rev-parse", "feature"]), tip, "the work is on the branch");
    assert_eq!(create_on(&lab.root, &lab.top, "sess_1", "main", None).unwrap_err().code(), "branch_in_use");
    assert_eq!(create_on(&lab.root, &lab.top, "sess_1", "a b", None).unwrap_err().code(), "bad_branch_name");
    assert_eq!(Lab::init().code(None, None), "no_commit");
    lab.is_tidy();
}

#[test]
fn what_was_begun_is_taken_back_with_its_branch() {
    let lab = Lab::new();
    let tree = create_on(&lab.root, &lab.top, "sess_1", "new", None).unwrap();
    write(Path::new(&tree.path), "half", "x\n");
    for _ in 0..2 {
        undo(&lab.root, &lab.top, "sess_1", "new").unwrap();
        assert!(!Path::new(&tree.path).exists());
        assert_eq!(lab.git(&["branch", "--list", "new"]), "");
        assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 1);
    }
    let config = lab.git(&["config", "--local", "--list"]);
    assert!(!config.contains("lanyard"), "{config}");
    // Commits of its own keep a branch.
    let tree = create_on(&lab.root, &lab.top, "sess_1", "new", None).unwrap();
    write(Path::new(&tree.path), "done", "x\n");
    let commit = commit_in(&tree.path, "work");
    undo(&lab.root, &lab.top, "sess_1", "new").unwrap();
    assert_eq!(lab.git(&["rev-parse", "new"]), commit);
    lab.is_tidy();
}
