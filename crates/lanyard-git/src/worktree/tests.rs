//! Worktrees of real repositories in temporary folders.

mod after;
mod captured;
mod changed;
mod made;
mod merged;
mod removed;
mod set_up;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use lanyard_core::task::Tree;

/// A repository with a commit of `a`, `b` and `.gitignore`, which ignores `*.log`, and hooks that all fail.
struct Lab {
    _temp: tempfile::TempDir,
    top: PathBuf,
    root: PathBuf,
}

impl Lab {
    /// A repository without commits.
    fn init() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let lab = Self { _temp: temp, top: base.join("work space"), root: base.join("home/worktrees") };
        fs::create_dir(&lab.top).unwrap();
        lab.git(&["init", "-q", "-b", "main"]);
        lab
    }

    fn new() -> Self {
        let lab = Self::init();
        lab.write("a", "1\n2\n3\n");
        lab.write("b", "b\n");
        lab.write(".gitignore", "*.log\n");
        lab.commit("first");
        for hook in ["pre-commit", "commit-msg", "post-checkout", "pre-merge-commit", "reference-transaction"]
        {
            let path = lab.top.join(".git/hooks").join(hook);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "#!/bin/sh\ntouch \"$(git rev-parse --git-common-dir)/hook-ran\"\nexit 1\n")
                .unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        lab
    }

    fn git(&self, args: &[&str]) -> String {
        git_in(&self.top, args).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        write(&self.top, path, text);
    }

    fn commit(&self, message: &str) -> String {
        commit_in(&self.top, message)
    }

    fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    fn create(&self) -> Tree {
        self.try_create(None, None).unwrap()
    }

    fn try_create(&self, branch: Option<&str>, base: Option<&str>) -> Result<Tree, WorktreeError> {
        create(&self.root, &self.top, "task_1", branch, base)
    }

    fn code(&self, branch: Option<&str>, base: Option<&str>) -> &'static str {
        self.try_create(branch, base).unwrap_err().code()
    }

    /// Nothing of ours is left half done, and no hook ran.
    fn is_tidy(&self) {
        assert!(!self.top.join(".git/hook-ran").exists());
        let making = self.root.join(".making");
        assert!(fs::read_dir(making).map_or(0, Iterator::count) == 0);
        let mut folders = vec![self.top.join(".git"), self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                assert!(
                    path.extension() != Some("lock".as_ref())
                        && !name.starts_with("lanyard-tmp")
                        && !name.starts_with(".going"),
                    "{name}"
                );
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
    }
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn read(folder: impl AsRef<Path>, path: &str) -> String {
    fs::read_to_string(folder.as_ref().join(path)).unwrap()
}

fn commit_in(folder: impl AsRef<Path>, message: &str) -> String {
    git_in(&folder, &["add", "-A"]).unwrap();
    git_in(&folder, &["commit", "-q", "-m", message]).unwrap();
    git_in(&folder, &["rev-parse", "HEAD"]).unwrap()
}

/// Git as a person calls it, without that person's settings and hooks.
fn git_in(folder: impl AsRef<Path>, args: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .args(["-c", "user.name=Tester", "-c", "user.email=tester@localhost"])
        .args(["-c", "core.hooksPath=/dev/null", "-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .env("GIT_EDITOR", "true")
        .output()
        .unwrap();
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn every_refusal_has_a_code_of_its_own_and_says_what_to_do() {
    let errors = [
        WorktreeError::GitMissing,
        WorktreeError::Interrupted,
        WorktreeError::TooLong { what: "git add".to_owned(), seconds: 3 },
        WorktreeError::Locked { stderr: "index.lock".to_owned() },
        WorktreeError::DirtyWorktree {
            folder: "/x".into(),
            files: (0..12).map(|file| file.to_string()).collect(),
        },
    ];
    let codes: Vec<_> = errors.iter().map(|error| (error.code(), error.is_for_good())).collect();
    assert_eq!(
        codes,
        [
            ("git_missing", true),
            ("interrupted", false),
            ("git_too_long", false),
            ("git_locked", false),
            ("dirty_worktree", true)
        ]
    );
    assert!(errors.iter().all(|error| error.advice().ends_with('.')));
    assert!(errors[4].to_string().ends_with("`9` and 2 more"), "{}", errors[4]);
}
