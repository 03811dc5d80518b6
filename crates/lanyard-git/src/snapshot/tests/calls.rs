//! Lists, differences, removal, and calls of git that go wrong.

use std::time::Duration;

use super::super::git::Git;
use super::super::repo::Repo;
use super::*;

#[test]
fn snapshots_are_listed_in_order_and_removed_by_session() {
    let lab = Lab::new();
    let first = take(&lab.top, "s1", "t1", "one\n\nmore words").unwrap();
    lab.write("a", "changed\n");
    let second = lab.take("t2");
    let other = take(&lab.top, "s10", "t1", "").unwrap();
    assert_eq!(list(&lab.top, "s1").unwrap(), [first, second]);
    assert_eq!(remove_all(&lab.top, "s1").unwrap(), 2);
    assert_eq!(remove_all(&lab.top, "s1").unwrap(), 0);
    assert_eq!(list(&lab.top, "s10").unwrap(), [other]);
}

#[test]
fn a_name_is_taken_once_and_must_be_one() {
    let lab = Lab::new();
    lab.take("t1");
    assert_eq!(take(&lab.top, "s1", "t1", "").unwrap_err().code(), "checkpoint_exists");
    assert_eq!(take(&lab.top, "../x", "t1", "").unwrap_err().code(), "bad_checkpoint_name");
    assert_eq!(take(&lab.top, "s1", "a b", "").unwrap_err().code(), "bad_checkpoint_name");
    assert_eq!(restore(&lab.top, "--help").unwrap_err().code(), "no_such_commit");
    assert_eq!(restore(&lab.top, &"0".repeat(40)).unwrap_err().code(), "no_such_commit");
    let head = lab.git(&["rev-parse", "HEAD"]);
    assert_eq!(restore(&lab.top, head.trim()).unwrap_err().code(), "not_a_checkpoint");
}

#[test]
fn a_difference_names_files_and_lines() {
    let lab = Lab::new();
    lab.write("old name", "1\n2\n3\n4\n5\n");
    let from = lab.take("t1");
    lab.write("a", "a\nmore\n");
    fs::rename(lab.path("old name"), lab.path("new\tname")).unwrap();
    fs::remove_file(lab.path("b")).unwrap();
    lab.write("bin", [0, 1, 2]);
    lab.write("x.log", "ignored");
    let now = diff(&lab.top, &from.commit, DiffTo::Worktree).unwrap();
    let shown: Vec<String> = now
        .files
        .iter()
        .map(|f| {
            format!("{:?} {:?} {:?} +{} -{} {}", f.status, f.path, f.old_path, f.added, f.removed, f.binary)
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#"Modified "a" None +1 -0 false"#,
            r#"Deleted "b" None +0 -1 false"#,
            r#"Added "bin" None +0 -0 true"#,
            r#"Renamed "new\tname" Some("old name") +0 -0 false"#,
        ]
    );
    assert!(now.text.contains("+more\n") && !now.truncated, "{}", now.text);
    let to = lab.take("t2");
    assert_eq!(diff(&lab.top, &from.commit, DiffTo::Commit(&to.commit)).unwrap(), now);
    let none = diff(&lab.top, &to.commit, DiffTo::Worktree).unwrap();
    assert_eq!(none, Diff { text: String::new(), truncated: false, files: Vec::new() });
}

#[test]
fn a_large_difference_is_cut_at_a_line() {
    let lab = Lab::new();
    let from = lab.take("t1");
    lab.write("large", "0123456789\n".repeat(200_000));
    let cut = diff(&lab.top, &from.commit, DiffTo::Worktree).unwrap();
    assert!(cut.truncated && cut.text.ends_with("+0123456789\n"));
    assert!(cut.text.len() <= 1024 * 1024);
    assert_eq!(cut.files[0].added, 200_000);
}

#[test]
fn a_git_that_hangs_is_ended_with_what_it_started() {
    let lab = Lab::empty();
    lab.write("git", "#!/bin/sh\nsleep 1000 &\necho $! > pid\nwait\n");
    let program = lab.path("git");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let git = Git::with_program(program.as_os_str(), &lab.top).with_time(Duration::from_millis(300));
    let error = git.read(&["status"], b"").unwrap_err();
    assert_eq!(error.code(), "git_too_long");
    let Ok(pid) = fs::read_to_string(lab.path("pid")) else { return };
    let stat = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    let gone = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z"));
    for _ in 0..500 {
        if gone() {
            return;
        }
        // sleep: the kernel ends the process in its own time.
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} is still there", pid.trim());
}

#[test]
fn a_machine_without_git() {
    let lab = Lab::new();
    let git = Git::with_program(OsStr::new("/nonexistent/git"), &lab.top);
    let error = Repo::find_with(&git, &lab.top).unwrap_err();
    assert_eq!(error.code(), "no_git");
    assert!(error.advice().contains("Install git"));
}
