//! Repositories that name programs, or hold files that git would wait for.

use super::*;

/// A program for a repository's config: it leaves a mark and passes its input on.
struct Trap {
    mark: PathBuf,
    program: String,
}

impl Trap {
    fn new(lab: &Lab) -> Self {
        let folder = lab.top.parent().unwrap();
        let (mark, script) = (folder.join("MARK"), folder.join("trap.sh"));
        fs::write(&script, format!("#!/bin/sh\necho ran >> '{}'\ncat\n", mark.display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        Self { mark, program: script.display().to_string() }
    }

    fn set(&self, top: &Path) {
        let config = [
            "filter.a=b.clean",
            "filter.a=b.smudge",
            "filter.p.process",
            "core.fsmonitor",
            "core.pager",
            "core.editor",
            "core.sshCommand",
            "diff.external",
            "diff.d.command",
            "diff.d.textconv",
            "merge.m.driver",
            "credential.helper",
            "gpg.program",
            "hook.h.command",
        ];
        for key in config {
            git_in(top, &["config", key, &self.program]).unwrap();
        }
        for (key, value) in [
            ("filter.a=b.required", "true"),
            ("filter.p.required", "true"),
            ("commit.gpgSign", "true"),
            ("log.showSignature", "true"),
            ("hook.h.event", "reference-transaction"),
        ] {
            git_in(top, &["config", key, value]).unwrap();
        }
        for hook in ["reference-transaction", "post-checkout", "post-index-change"] {
            let git_dir = git_in(top, &["rev-parse", "--absolute-git-dir"]).unwrap();
            let path = Path::new(git_dir.trim_end()).join("hooks").join(hook);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&path);
            symlink(&self.program, path).unwrap();
        }
    }

    fn sprung(&self) -> bool {
        self.mark.exists()
    }
}

/// As another tool would leave it: the same size, another time, so that git has to read it.
fn touch_up(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
}

/// FND-K13.
#[test]
fn fnd_k13_git_no_program_of_a_repository_runs() {
    let lab = Lab::new();
    lab.write(".gitattributes", "*.f filter=a=b diff=d merge=m\n*.p filter=p\n");
    lab.write("x.f", "x\n");
    lab.write("x.p", "x\n");
    lab.commit("files");
    let trap = Trap::new(&lab);
    trap.set(&lab.top);
    touch_up(&lab.path("x.f"), "y\n");
    touch_up(&lab.path("x.p"), "y\n");
    lab.write("new.f", "new\n");

    let snapshot = lab.take("t1");
    assert!(!trap.sprung(), "a snapshot was taken");
    assert_eq!(snapshot.files_changed, 3);
    touch_up(&lab.path("x.f"), "z\n");
    fs::remove_file(lab.path("new.f")).unwrap();
    let diff = diff(&lab.top, &snapshot.commit, DiffTo::Worktree).unwrap();
    assert!(diff.text.contains("+z"), "{}", diff.text);
    assert!(!trap.sprung(), "the differences were looked at");
    assert_eq!(list(&lab.top, "s1").unwrap().len(), 1);
    lab.restore(&snapshot);
    assert!(!trap.sprung(), "it was restored");
    assert_eq!(
        (lab.read("x.f"), lab.read("x.p"), lab.read("new.f")),
        ("y\n".into(), "y\n".into(), "new\n".into())
    );
    assert_eq!(remove_all(&lab.top, "s1").unwrap(), 1);
    assert!(!trap.sprung(), "it was removed");
}

/// FND-K13: git looks into repositories inside the worktree, with their own config.
#[test]
fn fnd_k13_git_no_program_of_an_inner_repository_runs() {
    let lab = Lab::new();
    let inner = lab.path("inner");
    fs::create_dir(&inner).unwrap();
    git_in(&inner, &["init", "-q", "-b", "main"]).unwrap();
    fs::write(inner.join(".gitattributes"), "*.f filter=a=b\n").unwrap();
    fs::write(inner.join("x.f"), "x\n").unwrap();
    git_in(&inner, &["add", "-A"]).unwrap();
    git_in(&inner, &["commit", "-q", "-m", "inner"]).unwrap();
    lab.commit("with a repository inside");
    let trap = Trap::new(&lab);
    trap.set(&inner);
    touch_up(&inner.join("x.f"), "y\n");
    lab.write("a", "changed\n");
    lab.take("t1");
    assert!(!trap.sprung());
    // The trap works: without care git would have run it.
    let status = git_in(&lab.top, &["status"]);
    assert!(trap.sprung(), "{status:?}");
}

/// FND-K1.
#[test]
fn fnd_k1_git_waits_for_no_fifo() {
    let fifo = |path: PathBuf| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let lab = Lab::new();
    fifo(lab.path("pipe"));
    fs::remove_file(lab.path("a")).unwrap();
    fifo(lab.path("a"));
    symlink("/dev/zero", lab.path("zero")).unwrap();
    symlink("pipe", lab.path("link")).unwrap();
    let snapshot = lab.take("t1");
    assert!(lab.kept(&["ls-tree", "-r", "--name-only", &snapshot.commit]).contains("zero"));

    for name in [".gitignore", ".gitattributes", ".git/config", ".git/index", ".git/HEAD"] {
        let lab = Lab::new();
        let _ = fs::remove_file(lab.path(name));
        fifo(lab.path(name));
        let refused = take(&lab.top, "s1", "t1", "why").unwrap_err();
        assert_eq!(refused.code(), "git_special_file", "{name}");
    }
}

/// FND-K1.
#[test]
fn fnd_k1_a_worktree_elsewhere_is_no_part_of_the_workspace() {
    let lab = Lab::new();
    let outside = lab.top.parent().unwrap().to_owned();
    fs::write(outside.join("secret"), "s").unwrap();
    lab.git(&["config", "core.worktree", outside.to_str().unwrap()]);
    assert_eq!(take(&lab.top, "s1", "t1", "why").unwrap_err().code(), "not_git");
}
