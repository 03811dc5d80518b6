//! What a snapshot keeps and a restore brings back.

use super::*;

/// Every kind of edit at once: staged, partly staged, unstaged, deleted, untracked, ignored.
fn edit(lab: &Lab) {
    lab.write("a", "staged\n");
    lab.git(&["add", "a"]);
    lab.write("a", "staged\nand not\n");
    lab.write("sub/new", "new\n");
    fs::remove_file(lab.path("b")).unwrap();
    lab.write("x.log", "ignored");
    lab.write("out/y", "ignored");
}

#[test]
fn worktree_and_index_come_back_and_the_rest_is_untouched() {
    let lab = Lab::new();
    edit(&lab);
    let state = lab.state();
    let snapshot = lab.take_unseen("t1");
    assert_eq!(snapshot.reference, "refs/lanyard/s1/t1");
    assert_eq!(snapshot.head.as_deref(), Some(lab.git(&["rev-parse", "HEAD"]).trim()));
    assert_eq!((snapshot.files_changed, snapshot.notes.as_slice()), (3, [].as_slice()));
    let names = lab.kept(&["ls-tree", "-r", "--name-only", &snapshot.commit]);
    assert_eq!(names, ".gitignore\na\nsub/c\nsub/new\n");

    lab.write("a", "other");
    lab.write("b", "back");
    lab.write("deep/er/z", "z");
    lab.write("x.log", "ignored and changed");
    lab.git(&["add", "-A"]);
    fs::remove_dir_all(lab.path("sub")).unwrap();
    lab.git(&["stash", "push", "-q", "b"]);
    let restored = lab.restore(&snapshot);
    assert_eq!(lab.read("x.log"), "ignored and changed");
    lab.write("x.log", "ignored");
    assert_eq!(lab.state(), state);
    assert_eq!((restored.changed, restored.added, restored.removed), (1, 2, 2), "{restored:?}");
    assert!(!lab.path("deep").exists());
    assert_eq!(lab.git(&["stash", "list"]).lines().count(), 1);
}

#[test]
fn nothing_to_do_is_done_without_touching_a_file() {
    let lab = Lab::new();
    edit(&lab);
    let state = lab.state();
    let snapshot = lab.take_unseen("t1");
    let inode = || fs::metadata(lab.path("a")).unwrap().ino();
    let before = inode();
    assert_eq!(lab.restore_to(&snapshot, &state), RestoredFiles::default());
    assert_eq!(inode(), before);
}

#[test]
fn odd_names_links_and_modes() {
    let lab = Lab::new();
    let odd: [&[u8]; 8] =
        [b"new\nline", b"not \xff utf8", b"-dash", b"\xc3\xa4", b"tab\t\"q\"", b":(top)x", b" space ", b"*"];
    for name in odd {
        lab.write(OsStr::from_bytes(name), name);
    }
    lab.git(&["add", "--", "-dash"]);
    symlink("a", lab.path("link")).unwrap();
    symlink("/nonexistent/x", lab.path("dangling")).unwrap();
    symlink("sub", lab.path("folder-link")).unwrap();
    fs::set_permissions(lab.path("a"), fs::Permissions::from_mode(0o755)).unwrap();
    let state = lab.state();
    let snapshot = lab.take_unseen("t1");
    for name in odd {
        fs::remove_file(lab.path(OsStr::from_bytes(name))).unwrap();
    }
    fs::set_permissions(lab.path("a"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(lab.path("link")).unwrap();
    fs::create_dir(lab.path("link")).unwrap();
    lab.write("link/inside", "x");
    lab.write(OsStr::from_bytes(b"more\n\xfe"), "x");
    lab.restore_to(&snapshot, &state);
}

#[test]
fn a_file_where_a_folder_was_and_the_other_way() {
    let lab = Lab::new();
    lab.write("flip", "file");
    let state = lab.state();
    let snapshot = lab.take_unseen("t1");
    fs::remove_dir_all(lab.path("sub")).unwrap();
    symlink("/tmp", lab.path("sub")).unwrap();
    fs::remove_file(lab.path("flip")).unwrap();
    lab.write("flip/a/b", "x");
    lab.restore_to(&snapshot, &state);
}

#[test]
fn an_intention_to_add() {
    let lab = Lab::new();
    lab.write("later", "later\n");
    lab.git(&["add", "-N", "later"]);
    let state = lab.state();
    let snapshot = lab.take_unseen("t1");
    lab.git(&["add", "later"]);
    lab.write("later", "changed\n");
    lab.restore_to(&snapshot, &state);
}

#[test]
fn conflicts_come_back_with_all_their_sides() {
    let lab = Lab::new();
    lab.git(&["checkout", "-q", "-b", "other"]);
    lab.write("a", "theirs\n");
    lab.git(&["rm", "-q", "b"]);
    lab.commit("theirs");
    lab.git(&["checkout", "-q", "main"]);
    lab.write("a", "ours\n");
    lab.write("b", "ours\n");
    lab.commit("ours");
    git_in(&lab.top, &["merge", "-q", "other"]).unwrap_err();
    let state = lab.state();
    assert!(state.entries.contains(" 3\\ta"), "{state:?}");
    let snapshot = lab.take_unseen("t1");
    lab.write("a", "settled\n");
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "merged"]);
    let restored = lab.restore(&snapshot);
    assert!(restored.notes.iter().any(|note| note.contains("conflicts")), "{restored:?}");
    let now = lab.state();
    assert_eq!((now.files, now.entries), (state.files, state.entries));
}

#[test]
fn an_edit_in_the_same_tick_as_the_last_add_is_seen() {
    let lab = Lab::new();
    for round in 0..20 {
        lab.write("a", format!("{round:02} one\n"));
        lab.git(&["add", "a"]);
        let text = format!("{round:02} two\n");
        lab.write("a", &text);
        let snapshot = lab.take(&format!("t{round}"));
        let kept = lab.kept(&["show", &format!("{}:a", snapshot.commit)]);
        assert_eq!(kept, text);
    }
}

#[test]
fn line_ends_come_back_byte_for_byte() {
    for setting in ["true", "input", "false"] {
        let lab = Lab::new();
        lab.git(&["config", "core.autocrlf", setting]);
        lab.write(".gitattributes", "*.txt text=auto\n*.lf text eol=lf\n*.crlf text eol=crlf\n*.id ident\n");
        for (name, text) in [("old.txt", "1\r\n2\r\n"), ("old.crlf", "1\r\n"), ("same.txt", "1\r\n2\r\n")] {
            lab.write(name, text);
        }
        lab.commit("line ends");
        // What was committed and not touched since is as git writes it.
        fs::remove_file(lab.path("same.txt")).unwrap();
        lab.git(&["checkout", "-q", "--", "same.txt"]);
        lab.write("mixed.txt", "1\n2\r\n");
        lab.write("old.txt", "1\n2\n3\r\n");
        lab.write("plain", "1\n2\r\n");
        lab.write("x.lf", "1\r\n");
        lab.write("x.crlf", "1\n");
        lab.write("x.id", "$Id: mine $\r\n");
        let state = lab.state();
        let snapshot = lab.take_unseen("t1");
        for name in ["mixed.txt", "old.txt", "old.crlf", "plain", "x.lf", "x.crlf", "x.id"] {
            let text = lab.read(name);
            lab.write(
                name,
                if text.contains('\r') { text.replace('\r', "") } else { text.replace('\n', "\r\n") },
            );
        }
        lab.write("same.txt", "other");
        fs::remove_file(lab.path("plain")).unwrap();
        let files = state.files.clone();
        lab.restore(&snapshot);
        assert_eq!(files_in(&lab.top), files, "core.autocrlf={setting}");
        assert_eq!(lab.state(), state, "core.autocrlf={setting}");
    }
}

#[test]
fn a_filter_does_not_run_and_loses_nothing() {
    let lab = Lab::new();
    lab.git(&["config", "filter.strip.clean", "grep -v output"]);
    lab.write(".gitattributes", "*.book filter=strip\n");
    lab.write("n.book", "code\noutput 1\n");
    lab.commit("book");
    lab.write("n.book", "code\noutput 22\n");
    let snapshot = lab.take_unseen("t1");
    assert_eq!(lab.kept(&["show", &format!("{}:n.book", snapshot.commit)]), "code\noutput 22\n");
    lab.write("n.book", "code\noutput 333\n");
    let restored = lab.restore(&snapshot);
    assert_eq!(lab.read("n.book"), "code\noutput 22\n");
    assert_eq!(restored.changed, 1);
}
